"""Medians and k-th values of long rows, which a CPU finds by halving what they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import xcc


class Ranks(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return *x.kthvalue(100, 0), *x.median(1), *x.nanmedian(1)


def test_ranks() -> None:
    """Values are eager's; of places, that their elements are those."""
    x = torch.randn(300, 301, generator=torch.Generator().manual_seed(0))
    x[3, 5], x[5], x[:, 7], x[:, 9], x[:, 11] = torch.nan, torch.nan, torch.inf, 0.0, -0.0
    model = xcc.compile(torch.export.export(Ranks(), (x,)), threads=1)
    found = list(model.run({"x": x.numpy()}).values())
    for n, axis in ((0, 0), (2, 1), (4, 1)):
        want = Ranks()(x)[n].numpy()
        np.testing.assert_array_equal(found[n], want)
        at = np.take_along_axis(x.numpy(), np.expand_dims(found[n + 1], axis), axis)
        np.testing.assert_array_equal(at.squeeze(axis), want)
