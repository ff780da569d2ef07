"""Puts channels last: convolutions become NHWC, and the transposes around them are pushed on until they meet.

Each op is visited once, in order. `last` remembers, for a value in the model's layout, the same value with the
channels last; ops that can work on that form do, and say so for their result. The model's own form of a result is a
transpose that dies unless something needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcc._mlir import Block, Module, Operation, Region, Value, ir
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import access_of, erase_dead, name_of, producer, rebuilt
from xcc.symbolic import Dim

SPATIAL = ("convolution", "group_norm", "reduce_window", "resize")
PICTURES = ("gather", "reduce")     # ops that read images of two dims and more so, beside rows of other things


@register_pass
class ChannelsLast(Pass):
    """Makes convolutions NHWC with HWIO filters.

    Before: ``y = xt.convolution(x, w) {layout = "NCHW", filter = "OIHW"}``
    After:  ``y = transpose(xt.convolution(transpose(x), w') {layout = "NHWC", filter = "HWIO"})``
    with the transposes pushed through pointwise ops, pooling, reductions, group norms, concatenation, padding,
    slices and resizes.

    block: pack the outputs of filters in blocks of this many (filter = "OHWIo") where it divides them; 0: never.
    pointwise-as-matmul: 1x1 convolutions with stride 1 become dot_general.
    """

    block: int = 0
    pointwise_as_matmul: bool = True

    def run(self, module: Module, ctx: PassContext) -> None:
        for function in module.body:
            for region in function.operation.regions:
                self._region(region, ctx)
        erase_dead(module)

    def _region(self, region: Region, ctx: PassContext) -> None:
        for block in region.blocks:
            for op in list(block.operations):
                for nested in op.operation.regions:
                    self._region(nested, ctx)
            _Layouts(self, ctx).block(block)


def to_last(rank: int) -> tuple[int, ...]:
    """The transpose from NC... to N...C."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def _transpose(x: Value, perm: Sequence[int]) -> Value:
    """A transpose, or a reshape where only unit dims change places."""
    shape = xt.shape_of(x)
    moved = [d for d in perm if shape[d] != 1]
    if moved == sorted(moved):
        return xt.reshape(x, shape=tuple(shape[d] for d in perm))
    return xt.transpose(x, perm=perm)


def _images(operations: Sequence[Operation]) -> set[Value]:
    """Values with spatial dims, as what is made of them is read as an image: rows that a transpose makes of one may
    look like one, [N, pixels, C] as [N, C, pixels]."""
    found: set[Value] = set()
    for op in reversed(operations):
        name = name_of(op)
        if name in SPATIAL or name in PICTURES and xt.TensorType.of(op.operands[0]).rank > 3:
            found.add(op.operands[0])
        elif (name in _RULES or access_of(op) == "pointwise") and not found.isdisjoint(op.results):
            found.update(op.operands)
    return found


class _Layouts:
    def __init__(self, options: ChannelsLast, ctx: PassContext) -> None:
        self.options, self.ctx = options, ctx
        self.last: dict[Value, Value] = {}
        self.filters: dict[tuple[Value, str], Value] = {}

    def block(self, block: Block) -> None:
        operations = [o.operation for o in block.operations]
        images = _images(operations)
        for op in operations:       # what comes with the channels last
            if op.name in ("xt.transpose", "xt.reshape") and op.results[0] in images:
                self._note(op.results[0])
        for op in operations:
            rule = _RULES.get(name_of(op)) or (_pointwise if access_of(op) == "pointwise" else None)
            if rule is None or len(op.results) != 1:
                continue
            with ir.InsertionPoint(op), op.location:
                result = rule(self, op)
                if result is None:
                    continue
                y = op.results[0]
                back = _transpose(result, to_first(xt.TensorType.of(result).rank))
                y.replace_all_uses_with(back)
                self.last[back] = result

    def wanted(self, x: Value) -> Value:
        """`x` with the channels last, transposed here if need be."""
        if x not in self.last:
            self._note(x)               # of a block around this one
        if x in self.last:
            return self.last[x]
        owner = getattr(x.owner, "operation", None)
        if owner is not None and owner.name == "xt.pad" and len(list(x.uses)) == 1:
            a = xt.attrs_of(owner)      # behind the transpose, which has less to move then
            return rebuilt(owner, [self.wanted(owner.operands[0])],
                            **{n: _permuted(getattr(a, n)) for n in ("low", "high", "interior")})
        return _transpose(x, to_last(xt.TensorType.of(x).rank))

    def _note(self, x: Value) -> None:
        """Notes what `x` is with the channels last, where it is a transpose of that, or of its pixels in a row."""
        owner = getattr(x.owner, "operation", None)
        if owner is None:
            return
        shape = xt.shape_of(x)
        turned = producer(owner.operands[0], "transpose") if owner.name == "xt.reshape" else None
        if owner.name == "xt.transpose" and xt.attrs_of(owner).perm == to_first(len(shape)):
            self.last[x] = owner.operands[0]
        elif turned is not None and xt.attrs_of(turned).perm == to_first(3) and len(shape) > 3 \
                and xt.shape_of(turned.results[0])[:2] == shape[:2]:
            with ir.InsertionPoint(owner), owner.location:
                self.last[x] = xt.reshape(turned.operands[0], shape=(shape[0], *shape[2:], shape[1]))

    def filter(self, w: Value, kind: str) -> Value:
        """The filter `w` (OIHW) as HWIO, or in blocks as OHWIo; weights are rearranged in the store."""
        if (w, kind) in self.filters:
            return self.filters[w, kind]
        rank = xt.TensorType.of(w).rank
        owner = getattr(w.owner, "operation", None)
        block = self.options.block if kind == "OHWIo" else 0
        if owner is not None and owner.name == "xt.weight" and self.ctx.weights is not None:
            store, name = self.ctx.weights, owner.attributes["name"].value
            shape = _filter_shape(xt.shape_of(w), block)
            new = store.add(f"{name}.{kind}", lambda: _rearranged(store[name], block))
            with ir.InsertionPoint(owner):
                made = xt.weight(new, shape, xt.TensorType.of(w).dtype)
            self.filters[w, kind] = made
            return made
        if not block:
            return xt.transpose(w, perm=(*range(2, rank), 1, 0))
        outs, *rest = xt.shape_of(w)
        split = xt.reshape(w, shape=(outs // block, block, *rest))
        return xt.transpose(split, perm=(0, *range(3, rank + 1), 2, 1))


def _filter_shape(shape: Sequence[Dim], block: int) -> tuple[Dim, ...]:
    outs, ins, *kernel = shape
    return (outs // block, *kernel, ins, block) if block else (*kernel, ins, outs)


def _rearranged(w: np.ndarray[Any, Any], block: int) -> np.ndarray[Any, Any]:
    """OIHW to HWIO, or to [O/block, H, W, I, block]."""
    if not block:
        return np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2)))
    split = w.reshape(w.shape[0] // block, block, *w.shape[1:])
    return np.ascontiguousarray(np.moveaxis(split, (2, 1), (-2, -1)))


def _convolution(s: _Layouts, op: Operation) -> Value | None:
    a = xt.attrs_of(op)
    if a.layout != "NCHW" or a.filter != "OIHW":
        return None
    x, w = op.operands
    outs, _, *kernel = xt.shape_of(w)
    image = s.wanted(x)
    plain = a.groups == 1 and all(v == 1 for v in (*kernel, *a.strides)) and not any((*a.low, *a.high))
    if s.options.pointwise_as_matmul and plain and all(v == 1 for v in a.lhs_dilation):
        flat = xt.reshape(s.filter(w, "HWIO"), shape=(xt.shape_of(w)[1], outs))
        return xt.dot_general(image, flat, lhs_contract=(-1,), rhs_contract=(0,), dtype=a.dtype, precision=a.precision)
    block = s.options.block
    kind = "OHWIo" if block and a.groups == 1 and isinstance(outs, int) and outs % block == 0 else "HWIO"
    rest = {k: v for k, v in vars(a).items() if k not in ("layout", "filter")}
    return xt.convolution(image, s.filter(w, kind), layout="NHWC", filter=kind, **rest)


def _pointwise(s: _Layouts, op: Operation) -> Value | None:
    """All operands with the channels last, when at least one is there already and no large one would be moved."""
    rank = xt.TensorType.of(op.results[0]).rank
    full = xt.shape_of(op.results[0])
    ready = [v in s.last for v in op.operands]
    moved = [not r and xt.shape_of(v) == full for v, r in zip(op.operands, ready, strict=True)]
    if not any(ready) or sum(moved) > sum(ready):
        return None
    if any(r and xt.TensorType.of(v).rank != rank for v, r in zip(op.operands, ready, strict=True)):
        return None
    return rebuilt(op, [_spread(s, v, rank) for v in op.operands])


def _spread(s: _Layouts, v: Value, rank: int) -> Value:
    """An operand that is broadcast: channels last, with unit dims where it has fewer dims than the result."""
    if v in s.last:
        return s.last[v]
    shape = xt.shape_of(v)
    if all(d == 1 for d in shape):
        return xt.reshape(v, shape=()) if shape else v
    wide = (1,) * (rank - len(shape)) + tuple(shape)
    if sum(d != 1 for d in wide) == 1:
        return xt.reshape(v, shape=tuple(wide[d] for d in to_last(rank)))
    return s.wanted(v if len(shape) == rank else xt.reshape(v, shape=wide))


def _permuted(values: Sequence[int]) -> tuple[int, ...]:
    return tuple(values[d] for d in to_last(len(values)))


def _each_dim(*names: str) -> Callable[[_Layouts, Operation], Value | None]:
    """A rule for ops of one operand whose attributes `names` have an entry a dim."""
    def rule(s: _Layouts, op: Operation) -> Value | None:
        if op.operands[0] not in s.last:
            return None
        a = xt.attrs_of(op)
        return rebuilt(op, [s.last[op.operands[0]]], **{n: _permuted(getattr(a, n)) for n in names})
    return rule


def _reduce(s: _Layouts, op: Operation) -> Value | None:
    x = op.operands[0]
    if x not in s.last:
        return None
    a, rank = xt.attrs_of(op), xt.TensorType.of(x).rank
    axes = tuple(sorted(to_last(rank).index(d % rank) for d in a.axes))
    if a.keepdims:
        return rebuilt(op, [s.last[x]], axes=axes)
    kept = [d for d in to_last(rank) if to_last(rank).index(d) not in axes]
    if kept == sorted(kept):
        op.results[0].replace_all_uses_with(rebuilt(op, [s.last[x]], axes=axes))
    return None


def _concatenate(s: _Layouts, op: Operation) -> Value | None:
    rank = xt.TensorType.of(op.results[0]).rank
    if sum(v in s.last for v in op.operands) * 2 <= len(op.operands):
        return None
    axis = to_last(rank).index(xt.attrs_of(op).axis % rank)
    return rebuilt(op, [s.wanted(v) for v in op.operands], axis=axis)


def _group_norm(s: _Layouts, op: Operation) -> Value | None:
    x, *affine = op.operands
    return rebuilt(op, [s.last[x], *affine], axis=xt.TensorType.of(x).rank - 1) if x in s.last else None


def _resize(s: _Layouts, op: Operation) -> Value | None:
    if op.operands[0] not in s.last:
        return None
    a = xt.attrs_of(op)
    half = len(a.roi) // 2
    roi = (*_permuted(a.roi[:half]), *_permuted(a.roi[half:])) if half else ()
    return rebuilt(op, [s.last[op.operands[0]]], shape=_permuted(a.shape), scales=_permuted(a.scales), roi=roi)


def _gather(s: _Layouts, op: Operation) -> Value | None:
    """Lines along a dim, as resizes pick them."""
    x, indices = op.operands
    if x not in s.last or len(xt.shape_of(indices)) != 1 or xt.attrs_of(op).batch_dims:
        return None
    rank = xt.TensorType.of(x).rank
    return rebuilt(op, [s.last[x], indices], axis=to_last(rank).index(xt.attrs_of(op).axis % rank))


_RULES: dict[str, Callable[[_Layouts, Operation], Value | None]] = {
    "concatenate": _concatenate, "convolution": _convolution, "gather": _gather,
    "group_norm": _group_norm,
    "pad": _each_dim("low", "high", "interior"), "reduce": _reduce,
    "reduce_window": _each_dim("window", "strides", "low", "high", "dilations"), "resize": _resize,
    "slice": _each_dim("starts", "limits", "strides")}
