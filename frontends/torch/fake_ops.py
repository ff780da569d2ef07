"""What ops give for tensors without data, where torch's own rule takes no symbolic sizes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
from torch._decomp import meta_table
from torch._subclasses import fake_impls

from xcc.frontends.torch.batched import declare_batching_rules
from xcc.frontends.torch.ctc import declare_ctc_loss
from xcc.frontends.torch.cumprod import declare_cumprod
from xcc.frontends.torch.fake_quantized import declare_fake_quantization
from xcc.frontends.torch.keep import new_zeros_with_same_feature_meta
from xcc.frontends.torch.kept_results import copy_kept_results
from xcc.frontends.torch.whole_resizes import RESIZES, declare_whole_resizes
from xcc.frontends.torch.zero_tensors import declare_zero_tensors

__all__ = ["declare_fake_ops"]


@cache
def declare_fake_ops() -> None:
    """From now on gradients of resizes, which are traced whole, and of ``cumprod``, and ``take_along_dim`` are traced
    at any size, and so are fake quantization and what ``torch.func`` makes of ops."""
    declare_batching_rules()
    declare_zero_tensors()
    copy_kept_results()
    declare_whole_resizes()
    declare_cumprod()
    declare_ctc_loss()
    declare_fake_quantization(fake_impls.register_op_impl)
    for name in (*RESIZES, "_upsample_bicubic2d_aa"):
        op = getattr(torch.ops.aten, f"{name}_backward").default
        if op not in meta_table and op not in fake_impls.op_implementations_dict:
            fake_impls.register_op_impl(op)(_as_input)
    glu = torch.ops.aten.glu.default
    meta_table[glu] = torch.ops.aten.empty_like.default     # that there is one keeps torch 2.11 from taking it apart
    fake_impls.register_op_impl(glu)(_halved)
    fake_impls.register_op_impl(torch.ops.aten._new_zeros_with_same_feature_meta.default)(_zeros)
    composite, along = torch._C.DispatchKey.CompositeImplicitAutograd, torch.ops.aten.take_along_dim.default
    if composite not in along.py_kernels:
        along.py_impl(composite)(_take_along_dim)


def _as_input(mode: Any, op: Any, grad: Any, output_size: Any, input_size: Any, *rest: Any, **named: Any) -> Any:
    with mode:
        return grad.new_empty(input_size)


def _halved(mode: AbstractContextManager[object], op: object, x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The result of glu, whose halves torch 2.11 cuts off by sizes that no result has."""
    if not x.dim():
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = x.shape[dim]
    torch._check(size % 2 == 0,     # type: ignore[no-untyped-call]
                 lambda: f"Halving dimension must be even, but dimension {dim} is size {size}")
    shape = list(x.shape)
    shape[dim] = size // 2
    with mode:
        return x.new_empty(shape)


def _zeros(mode: AbstractContextManager[object], op: object, x: torch.Tensor, other: torch.Tensor, **named: int
           ) -> torch.Tensor:
    with mode:
        return new_zeros_with_same_feature_meta(x, other, **named)


def _take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Any:
    """As torch has it, whose own rule reads the sizes as numbers."""
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    if x.dim() != indices.dim():
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                           f"got {x.dim()} dimensions for input, and {indices.dim()} dimensions for indices")
    dim = dim % max(x.dim(), 1)
    beside = [(*v.shape[:dim], 1, *v.shape[dim + 1:]) for v in (x, indices)]
    shape = torch.broadcast_shapes(*beside)         # type: ignore[no-untyped-call]
    wide = (v.expand(*shape[:dim], v.shape[dim], *shape[dim + 1:]) for v in (x, indices))
    return next(wide).gather(dim, next(wide))
