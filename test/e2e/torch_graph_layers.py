"""Random steps that are layers of models: products, windows, norms, attention, tables. STEPS has all steps."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch_graph_builder import Builder, Value
from torch_graph_steps import STEPS, step

__all__ = ["STEPS"]


def _float(b: Builder, rank: int) -> Value | None:
    return b.value(lambda v: v.is_float and v.rank == rank)


@step(3)
def products(b: Builder) -> None:
    x = b.any(1, "float")
    if x is None or not x.static(x.rank - 1):
        return
    k, n = x.shape[-1], b.int(1, 6)
    y = b.value(lambda v: v.dtype == x.dtype and v.rank > 1 and v.shape[-1] == k and v.static(v.rank - 1))
    match b.int(0, 4):
        case 0 if y is not None and x.rank > 1:
            for turned in b.emit("transpose", y, -1, -2, exact=True):
                b.emit(torch.matmul, x, turned)
        case 1 if x.rank == 3 and x.static(1):
            w = b.input([n, x.shape[1], 3], x.dtype)
            b.emit(F.conv1d, x, w, None, b.int(1, 2), b.int(0, 1))
        case 2:
            b.emit(torch.matmul, x, b.input([k, n], x.dtype))
        case 3 if x.rank == 2:
            b.emit(torch.addmm, b.input([n], x.dtype), x, b.input([k, n], x.dtype), beta=b.pick([0, 1, 0.5]),
                   alpha=b.pick([1, -2]))
        case _:
            b.emit(F.linear, x, b.input([n, k], x.dtype), b.input([n], x.dtype))


@step(3)
def images(b: Builder) -> None:
    """Windows over the last two dims."""
    x = _float(b, 4)
    if x is None or not x.static(1):
        return
    channels, k, stride, dilation = x.shape[1], b.int(1, 3), b.int(1, 2), b.int(1, 2)
    pad, ceil = b.int(0, k // 2), b.chance(0.4)
    match b.int(0, 7):
        case 0:
            w = b.input([b.int(1, 4), channels, k, k], x.dtype)
            b.emit(F.conv2d, x, w, b.pick([None, b.input([w.shape[0]], x.dtype)]), stride, pad, dilation)
        case 1:
            b.emit(F.conv2d, x, b.input([2 * channels, 1, k, b.int(1, 3)], x.dtype), None, stride, pad, 1, channels)
        case 2:
            w = b.input([channels, b.int(1, 3), k, k], x.dtype)
            b.emit(F.conv_transpose2d, x, w, None, stride, pad, stride - 1, 1, dilation)
        case 3:
            b.emit(F.max_pool2d, x, k, stride, pad, dilation, ceil, exact=True)
        case 4:
            b.emit(F.avg_pool2d, x, k, stride, pad, ceil, b.chance(0.5), b.pick([None, None, 3]))
        case 5:
            b.emit(F.adaptive_avg_pool2d, x, (b.int(1, 3), b.pick([None, 2])))
        case 6:
            mode = b.pick(["nearest", "bilinear", "bicubic"])
            corners = {} if mode == "nearest" else {"align_corners": b.chance(0.5)}
            b.emit(F.interpolate, x, scale_factor=b.pick([2, 0.5, 1.5]), mode=mode, **corners)
        case _:
            b.emit(F.pad, x, [b.int(0, 2) for _ in range(4)], mode=b.pick(["reflect", "replicate", "circular"]),
                   exact=True)


@step(2)
def norms(b: Builder) -> None:
    x = b.any(2, "float")
    if x is None or not x.static(1):
        return
    channels = x.shape[1]
    weight, bias, mean, spread = (b.input([channels], x.dtype) for _ in range(4))
    match b.int(0, 3):
        case 0 if not channels % 2 or channels == 1:
            b.emit(F.group_norm, x, b.pick([1, 2]), weight, bias)
        case 1:
            for positive in b.emit(torch.square, spread):
                b.emit(F.batch_norm, x, mean, positive, weight, bias, eps=0.1)
        case 2 if x.static(x.rank - 1):
            b.emit(F.rms_norm, x, [x.shape[-1]], b.input([x.shape[-1]], x.dtype), 0.1)
        case _ if x.static(x.rank - 1):
            size = x.shape[-1]
            b.emit(F.layer_norm, x, [size], b.input([size], x.dtype), b.pick([None, b.input([size], x.dtype)]), 0.1)


@step(2)
def attention(b: Builder) -> None:
    """Of three or four dims, with keys of another length, with a mask that hides some of them."""
    q = b.value(lambda v: v.is_float and v.rank in (3, 4) and v.static(v.rank - 1))
    if q is None:
        return
    k = b.value(lambda v: v.dtype == q.dtype and v.rank == q.rank and v.static(v.rank - 1)
                and v.shape[:-2] == q.shape[:-2] and v.shape[-1] == q.shape[-1])
    if k is None:
        return
    extra: dict[str, Any] = {"is_causal": b.chance(0.3)}
    if not extra["is_causal"] and b.chance(0.5):
        extra["attn_mask"] = b.pick([b.input([1], torch.bool), b.input([1], q.dtype)])
    b.emit(F.scaled_dot_product_attention, q, k, k, scale=b.pick([None, 0.5]), **extra)


@step(2)
def tables(b: Builder) -> None:
    """Rows of a table, and elements along a dim; written by index, too."""
    x = b.any(1)
    if x is None:
        return
    dim = b.int(0, x.rank - 1)
    least = min(w.shape[dim] for w in x.worlds)
    if not least or not all(x.shape) or not all(x.static(i) for i in range(x.rank) if i != dim):
        return
    shape = [b.int(1, n) for n in x.shape]
    shape[dim] = b.int(1, least)
    places = b.input(shape, torch.int64, least)
    match b.int(0, 5):
        case 0:
            b.emit(torch.gather, x, dim, places, exact=True)
        case 1:
            for parts in b.emit(torch.gather, x, dim, places, exact=True):
                b.emit(torch.scatter_add, x, dim, places, parts)
        case 2:
            b.emit(torch.scatter, x, dim, places, b.int(0, 2), exact=True)
        case 3 if x.rank == 2 and dim == 0 and x.is_float:
            b.emit(F.embedding, places, x, exact=True)
        case 4 if x.dtype != torch.bool:
            for parts in b.emit(torch.gather, x, dim, places, exact=True):
                b.emit(torch.scatter_reduce, x, dim, places, parts, b.pick(["sum", "amax", "amin", "mean"]),
                       include_self=b.chance(0.5))
        case _:
            b.emit(operator.getitem, x, (*[slice(None)] * dim, places), exact=True)
