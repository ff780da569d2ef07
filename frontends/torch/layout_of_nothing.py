"""How tensors without elements lie in memory: torch divides by sizes of 0 to tell whether strides are multiples."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import _prims_common
from torch.fx.experimental import _config as sizes

__all__ = ["lay_out_nothing"]


def lay_out_nothing() -> None:
    """From now on, in traces for all sizes, the order of a result's dims is as written where torch cannot tell it, and
    a tensor counts as one with gaps."""
    for name, otherwise in (("compute_elementwise_output_logical_to_physical_perm", _as_written),
                            ("is_non_overlapping_and_dense_or_false", lambda x: False)):
        if hasattr(_prims_common, name):
            setattr(_prims_common, name, _of_nothing(getattr(_prims_common, name), otherwise))


def _of_nothing(function: Callable[..., object], otherwise: Callable[..., object]) -> Callable[..., object]:
    def place(*tensors: object, **options: object) -> object:
        try:
            return function(*tensors, **options)
        except ZeroDivisionError:
            if not sizes.backed_size_oblivious:
                raise
            return otherwise(*tensors)

    return place


def _as_written(*tensors: object) -> tuple[list[int], bool]:
    return list(range(max(t.ndim for t in tensors if isinstance(t, torch.Tensor)))), False
