"""Distances of points."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc.dialects import xt
from xcc.frontends.shared.helpers import rank_of, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.reduce import norm_over
from xcc.frontends.torch.registry import aten


@aten("_cdist_forward", "cdist")
def cdist(cx: Context) -> Any:
    """The p-norm of the difference of each row of x1 and each of x2; leading dims are batches."""
    a, b = cx.tensor("x1"), cx.tensor("x2")
    far = xt.sub(unsqueeze(a, [rank_of(a) - 1]), unsqueeze(b, [rank_of(b) - 2]))
    return norm_over(xt.abs(far), (rank_of(far) - 1,), float(cx["p"]), False)


@aten("_pdist_forward")
def pdist(cx: Context) -> Any:
    """The p-norm of the difference of each two rows, one after the other."""
    x = cx.tensor("self")
    rows = xt.shape_of(x)[0]
    if not isinstance(rows, int):
        cx.fail(f"the number of rows, {rows}, must be known: use torch.cdist")
    first, second = (xt.gather(x, xt.constant(np.asarray(i, np.int64)), axis=0) for i in np.triu_indices(rows, 1))
    return norm_over(xt.abs(xt.sub(first, second)), (1,), float(cx.get("p", 2)), False)
