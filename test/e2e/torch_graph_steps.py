"""The table of random steps: each adds a call or a few to an FX graph, or nothing where no value fits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch_graph_builder import Builder, Value

Step = Callable[[Builder], Any]
STEPS: dict[str, tuple[float, Step]] = {}


def step(weight: float = 1.0) -> Callable[[Step], Step]:
    def register(f: Step) -> Step:
        STEPS[f.__name__] = (weight, f)
        return f
    return register


SMOOTH = (torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.atan, torch.erf, F.gelu, F.silu, F.softplus, F.elu,
          F.mish, torch.square, torch.asinh, F.logsigmoid, torch.expm1)
LINEAR = (torch.neg, torch.abs, torch.relu, F.relu6, F.hardtanh)
TYPES = (torch.float32, torch.int64, torch.int32, torch.bool, torch.float64, torch.float16, torch.bfloat16)
STEPPED = (torch.floor, torch.ceil, torch.trunc, torch.round, torch.sign)


@step(4)
def unary(b: Builder) -> None:
    kind = b.int(0, 3)
    x = b.any(kind="float" if kind < 2 else "exact")
    if x is None:
        return
    if kind < 2:
        b.emit(b.pick(SMOOTH), x)
    else:
        b.emit(b.pick(LINEAR if kind == 2 or not x.is_float else STEPPED), x, exact=True)


@step(5)
def binary(b: Builder) -> None:
    """Types are promoted as torch does."""
    x = b.any()
    if x is None:
        return
    y = b.partner(x)
    match b.int(0, 5):
        case 0:
            b.emit(torch.add, x, y, alpha=b.pick([1, 2, -3]))
        case 1 if isinstance(y, Value):
            for positive in b.emit(torch.square, y):
                for divisor in b.emit(torch.add, positive, 1):
                    b.emit(operator.truediv, x, divisor)
        case 2 if isinstance(y, Value):
            b.emit(b.pick([torch.maximum, torch.minimum]), x, y, exact=True)
        case 2:
            b.emit(torch.clamp, x, min=-1, max=y, exact=True)
        case 3:
            b.emit(torch.rsub, x, y)
        case _:
            b.emit(b.pick([operator.mul, operator.sub, operator.add]), x, y)


@step(2)
def integers(b: Builder) -> None:
    x = b.any(kind="int")
    y = None if x is None else b.partner(x, lambda v: v.is_int)
    if x is None:
        return
    ops: list[Any] = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, operator.add, operator.mul]
    b.emit(b.pick(ops), x, y)
    b.emit(b.pick([torch.remainder, torch.floor_divide, torch.fmod]), x, b.pick([2, 3, -3, 5]))


@step(3)
def choices(b: Builder) -> None:
    """Comparisons and what is chosen by them; casts."""
    x = b.any(kind="exact")
    if x is None:
        return
    y = b.partner(x, lambda v: v.exact)
    mask = b.emit(b.pick([operator.lt, operator.ge, operator.eq, operator.ne]), x, y)
    other = b.any()
    if not mask or other is None:
        return
    match b.int(0, 3):
        case 0:
            b.emit(torch.where, mask[0], other, b.pick([0.0, 1, b.partner(other)]), exact=True)
        case 1:
            b.emit("masked_fill", other, mask[0], b.int(0, 2), exact=True)
        case 2:
            b.emit(b.pick([torch.logical_not, torch.any, torch.all]), mask[0])
        case _:
            b.emit("to", x, b.pick(TYPES), exact=True)


@step(5)
def views(b: Builder) -> None:
    x = b.any(1)
    if x is None:
        return
    dim, rank = b.int(-x.rank, x.rank - 1), x.rank
    match b.int(0, 9):
        case 0:
            b.emit("permute", x, *[int(p) for p in b.rng.permutation(rank)], exact=True)
        case 1:
            b.emit("unsqueeze", x, b.int(-rank - 1, rank), exact=True)
        case 2:
            b.emit("select", x, dim, b.pick([0, -1, 1]), exact=True)
        case 3:
            b.emit(operator.getitem, x, tuple(_slice(b) for _ in range(b.int(1, rank))), exact=True)
        case 4:
            b.emit("expand", x, *[-1 if x.shape[i] != 1 else b.int(1, 3) for i in range(rank)], exact=True)
        case 5 if rank > 1:
            b.emit(torch.diagonal, x, b.int(-1, 1), 0, rank - 1, exact=True)
        case 6:
            b.emit(b.pick([torch.chunk, torch.tensor_split]), x, b.int(1, 3), dim=dim, exact=True)
        case 7:
            b.emit("unfold", x, dim, b.int(1, 3), b.int(1, 2), exact=True)
        case 8 if not b.symbolic:       # torch takes a symbolic size to be none of 1
            b.emit(torch.squeeze, x, exact=True)
        case _:
            _reshape(b, x)


def _slice(b: Builder) -> Any:
    return b.pick([slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(-3, 100), slice(1, 3)])


def _reshape(b: Builder, x: Value) -> None:
    """Neighbours merge, or a dim splits."""
    name = b.pick(["reshape", "view"])
    axis = b.int(0, x.rank - 1)
    parts = [p for p in range(1, 5) if all(w.shape[axis] % p == 0 for w in x.worlds)]
    if b.chance(0.5) and all(x.static(i) for i in range(x.rank) if i != axis):
        b.emit(name, x, *x.shape[:axis], -1, b.pick(parts), *x.shape[axis + 1:], exact=True)
    elif b.chance(0.5):
        b.emit("flatten", x, b.int(0, axis), axis, exact=True)
    elif all(x.static(i) for i in range(1, x.rank)):
        b.emit(name, x, -1, *x.shape[2:], exact=True)


@step(3)
def moves(b: Builder) -> None:
    x = b.any(1)
    if x is None:
        return
    dim, rank = b.int(-x.rank, x.rank - 1), x.rank
    y = b.value(lambda v: v.rank == rank and v.dtype == x.dtype
                and all(v.shape[i] == x.shape[i] for i in range(rank) if i != dim % rank))
    match b.int(0, 7):
        case 0 if y is not None:
            b.emit(torch.cat, [x, y, x][:b.int(1, 3)], dim=dim, exact=True)
        case 1:
            b.emit(torch.stack, [x, x], dim=dim, exact=True)
        case 2:
            b.emit(torch.flip, x, [dim], exact=True)
        case 3:
            b.emit(torch.roll, x, b.int(-2, 3), dim, exact=True)
        case 4:
            b.emit("repeat", x, *[b.int(1, 2) for _ in range(rank + b.int(0, 1))], exact=True)
        case 5:
            b.emit(F.pad, x, [b.int(-1, 2) for _ in range(2 * b.int(1, rank))], value=1, exact=True)
        case 6 if rank > 1:
            b.emit(b.pick([torch.tril, torch.triu]), x, b.int(-1, 1), exact=True)
        case _:
            b.emit(b.pick(["clone", "contiguous"]), x, exact=True)


@step(2)
def indices(b: Builder) -> None:
    """Places of a dim whose size is known, read and written."""
    x = b.any(1)
    if x is None:
        return
    dim = b.int(0, x.rank - 1)
    least = min(w.shape[dim] for w in x.worlds)
    if not least:
        return
    places = b.input([b.int(1, 4)], torch.int64, least)
    match b.int(0, 4):
        case 0:
            b.emit(torch.index_select, x, dim, places, exact=True)
        case 1:
            b.emit(operator.getitem, x, (*[slice(None)] * dim, places), exact=True)
        case 2:
            for rows in b.emit(torch.index_select, x, dim, places, exact=True):
                b.emit(torch.index_add, x, dim, places, rows)
        case 3 if x.is_float:
            b.write("index_fill_", x, dim, places, b.int(-1, 1), exact=True)
        case _:
            b.write(operator.setitem, x, (*[slice(None)] * dim, places), b.int(0, 1), exact=True)


@step(6)
def writes(b: Builder) -> None:
    """In place: of inputs, of views, of what views were taken of."""
    x = b.any(kind="written")
    if x is None:
        return
    y = b.partner(x, lambda v: v.memory != x.memory)
    match b.int(0, 7):
        case 0:
            b.write(b.pick(["add_", "sub_"]), x, y, alpha=b.pick([1, 2]))
        case 1:
            b.write("mul_", x, y)
        case 2:
            b.write("copy_" if isinstance(y, Value) else "fill_", x, y, exact=True)
        case 3 if x.is_float:
            b.write(b.pick(["sigmoid_", "tanh_", "sin_"]), x)
        case 4 if x.dtype != torch.bool:
            b.write("clamp_", x, -1, b.int(0, 2), exact=True)
        case 5 if x.rank:
            b.write(operator.setitem, x, tuple(_slice(b) for _ in range(b.int(1, x.rank))), b.int(0, 2), exact=True)
        case 6 if x.dtype != torch.bool:
            b.write(b.pick(["zero_", "neg_", "abs_"]), x, exact=True)
        case _:
            for mask in b.emit(operator.ge, x, 0) if x.exact else []:
                b.write("masked_fill_", x, mask, b.int(0, 1), exact=True)


@step(4)
def reductions(b: Builder) -> None:
    x = b.any(1, "float")
    if x is None:
        return
    dim, keep = b.int(-x.rank, x.rank - 1), b.chance(0.4)
    match b.int(0, 9):
        case 0:
            b.emit(b.pick([torch.sum, torch.mean]), x)
        case 1:
            b.emit(b.pick([torch.sum, torch.mean, torch.logsumexp]), x, dim, keepdim=keep)
        case 2:
            b.emit(b.pick([torch.amax, torch.amin]), x, dim, keepdim=keep, exact=True)
        case 3:
            b.emit(torch.var, x, dim, correction=0, keepdim=keep)
        case 4:
            b.emit(b.pick([torch.cumsum, F.softmax, F.log_softmax]), x, dim)
        case 5 if x.static(x.rank - 1):
            b.emit(F.layer_norm, x, [x.shape[-1]])
        case 6 if x.exact:
            b.emit(torch.max, x, dim, keepdim=keep, exact=True)
        case 7 if x.exact:
            b.emit(torch.argmin, x, dim, keepdim=keep)
        case 8 if x.exact:
            b.emit(torch.sort, x, dim=dim, stable=True, descending=keep, exact=True)
        case _:
            b.emit(torch.linalg.vector_norm, x, 2, dim, keepdim=keep)


@step(1)
def counts(b: Builder) -> None:
    x = b.any(1, "int")
    if x is not None:
        b.emit(b.pick([torch.sum, torch.cumsum, torch.any, torch.prod]), x, b.int(-x.rank, x.rank - 1))
