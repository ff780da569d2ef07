"""How tensors without elements lie in memory: torch divides by sizes of 0 to tell whether strides are multiples, and
takes one of free sizes to have elements when it counts what it reaches over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import _prims_common
from torch._subclasses import fake_impls
from torch.fx.experimental import _config as sizes

from xcc.frontends.torch.kernel_choice import of_kernels

__all__ = ["lay_out_nothing"]


def lay_out_nothing() -> None:
    """From now on, in traces for all sizes, the order of a result's dims is as written where torch cannot tell it, and
    a tensor counts as one with gaps; what has no elements needs no memory."""
    for name, otherwise in (("compute_elementwise_output_logical_to_physical_perm", _as_written),
                            ("is_non_overlapping_and_dense_or_false", lambda x: False)):
        if hasattr(_prims_common, name):
            setattr(_prims_common, name, _of_nothing(getattr(_prims_common, name), otherwise))
    torch._debug_has_internal_overlap = of_kernels(torch._debug_has_internal_overlap)     # of written slices
    rules, copy = fake_impls.op_implementations_dict, torch.ops.aten.copy.default
    rules[copy] = _in_place(rules[copy])
    _prims_common.compute_required_storage_length = _not_negative(_prims_common.compute_required_storage_length)


def _of_nothing(function: Callable[..., object], otherwise: Callable[..., object]) -> Callable[..., object]:
    def place(*tensors: object, **options: object) -> object:
        try:
            return function(*tensors, **options)
        except ZeroDivisionError:
            if not sizes.backed_size_oblivious:
                raise
            return otherwise(*tensors)

    return place


def _not_negative(function: Callable[..., int]) -> Callable[..., int]:
    """``(n - 1) * stride + 1`` elements are less than none where n is 0."""
    def length(*layout: object) -> int:
        needed = function(*layout)
        if not sizes.backed_size_oblivious or isinstance(needed, int):
            return needed
        return torch.sym_max(needed, 0)

    return length


def _in_place(function: Callable[..., object]) -> Callable[..., object]:
    """What is written lies where it did: torch asks for that whether there is anything, and one row or several."""
    def copy(mode: AbstractContextManager[object], op: object, x: torch.Tensor, source: torch.Tensor, *rest: object,
             **named: object) -> object:
        if not sizes.backed_size_oblivious or 0 in x.stride():
            return function(mode, op, x, source, *rest, **named)
        with mode:
            source.expand(x.shape)      # an error where it does not fit
            return x.new_empty_strided(x.shape, x.stride())

    return copy


def _as_written(*tensors: object) -> tuple[list[int], bool]:
    return list(range(max(t.ndim for t in tensors if isinstance(t, torch.Tensor)))), False
