"""The pass ``xt-fold``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from xcc import symbolic
from xcc._mlir import Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.dialects.xt.narrow import per_byte
from xcc.dialects.xt.numeric import one_nan
from xcc.dialects.xt.op import attrs_of, grouped_operands, op_class
from xcc.dialects.xt.types import TensorType, numpy_dtype, width
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import at, erase_dead, name_of, producer, replace, walk_ops
from xcc.weights import WeightStore

SOURCES = ("constant", "weight")
MOVES = ("movement", "view")
NEVER = ("random_uniform", "random_normal")
SMALL = 1024        # elements; a larger result is a weight
TINY = 8 * 256      # bits of a result that nobody counts: sizes, indices, numbers
PLAIN_BITS = 16     # of an element; narrower ones are chosen for their size
SLACK = 32          # a part of so many may be added to these, where it makes their rows as long as vectors

Sources = dict[Value, TensorType]


@dataclass(frozen=True)
class _Known:
    """A value that can be computed, and the weights and constants in the module that it is made of."""

    value: Callable[[], Any]
    sources: Sources


@register_pass
class XtFold(Pass):
    """Evaluates ops whose operands are constants and weights, where the result takes no more bytes than these.

    A result of at most `small` elements becomes an xt.constant, a larger one an xt.weight that is computed at first
    use. Weights of 16 bits and more may also be moved into up to `growth` times as many elements of their width, by
    ops that no contraction is (padding), narrower ones into a `SLACK`th more. What stays (a decode of narrow weights
    into floats, a broadcast, an iota) is computed where it is read, or when the model is loaded; what is made of it may
    fold again, where that has fewer bytes than all weights and constants behind it. Results without elements are
    constants whatever they are computed from.

        %w = "xt.weight"() {name = "w"}            %t = "xt.weight"() {name = "w.transpose"}
        %t = "xt.transpose"(%w) {perm = [1, 0]} ->
    """

    small: int = SMALL
    growth: int = 2

    def run(self, module: Module, ctx: PassContext) -> None:
        values: dict[Value, _Known] = {}
        for op in walk_ops(module):
            self._visit(op, values, ctx)
        erase_dead(module)

    def _visit(self, op: Operation, values: dict[Value, _Known], ctx: PassContext) -> None:
        name = name_of(op)
        if name in SOURCES:
            values[op.results[0]] = _source(op, ctx.weights)
            return
        if _is_empty(op):
            with at(op):
                replace(op, [_nothing(TensorType.of(r)) for r in op.results])
            return
        if not _is_computable(op, name, values, ctx):
            return
        known = _evaluated(op, values)
        if not self._pays(op, name, known[0].sources):
            values |= dict(zip(op.results, known, strict=True))
            return
        with at(op):
            new = [self._store(name, r, k, values, ctx) for r, k in zip(op.results, known, strict=True)]
        replace(op, new)

    def _pays(self, op: Operation, name: str, sources: Sources) -> bool:
        """Whether the results of `op` take no more room than the weights and constants `sources` that they are of."""
        kinds, behind = [TensorType.of(r) for r in op.results], list(sources.values())
        made, stored = (sum(map(stored_bits, k)) for k in (kinds, behind))
        count, widened = sum(map(_elements, kinds)), _narrowest(behind) < max(width(k.dtype) for k in kinds)
        if not any(map(_lazy, sources)) and count <= (1 if name == "iota" else self.small) \
                and (made <= TINY or not widened):
            return name != "broadcast" or count <= 1
        if made <= stored:
            return len(behind) > 0
        if widened or getattr(op_class(op), "access", "") == "contraction":
            return False
        wide = min(width(k.dtype) for k in kinds) >= PLAIN_BITS
        return made <= (self.growth * stored if wide else stored + stored // SLACK)

    def _store(self, name: str, result: Value, known: _Known, values: dict[Value, _Known], ctx: PassContext) -> Value:
        kind = TensorType.of(result)
        if _elements(kind) <= self.small and not any(_lazy(v) and _elements(k) > SMALL
                                                     for v, k in known.sources.items()):
            out = xt.constant(np.asarray(known.value(), numpy_dtype(kind.dtype), order="C"))
        else:
            base = next((attrs_of(p).name for v in owner_op(result).operands
                         if (p := producer(v, "weight")) is not None), "folded")
            assert ctx.weights is not None
            key = ctx.weights.add(f"{base}.{name}", lambda: np.asarray(known.value(), order="C"))
            out = xt.weight(key, tuple(kind.shape), kind.dtype)
        values[out] = _Known(known.value, {out: kind})
        return out


def _is_computable(op: Operation, name: str, values: dict[Value, _Known], ctx: PassContext) -> bool:
    """Whether `op` can be evaluated now, or later from weights."""
    cls = op_class(op)
    assert cls is not None
    if name in NEVER or cls.access in ("control", "source", "scalar") or list(op.regions):
        return False
    if any(v not in values for v in op.operands):
        return False
    if ctx.weights is None and any(_lazy(v) for u in op.operands for v in values[u].sources):
        return False
    a = attrs_of(op)
    dims = [d for k, f in cls.attribute_fields.items() if f.kind == "dims" for d in getattr(a, k)]
    return symbolic.is_static(dims) and all(TensorType.of(r).static for r in op.results)


def _is_empty(op: Operation) -> bool:
    """Whether the op has results, and none of them an element, and names no size that is only known when it has run."""
    cls = op_class(op)
    return cls is not None and cls.access not in ("control", "view") and "symbol" not in cls.attribute_fields \
        and len(op.results) > 0 and all(0 in TensorType.of(r).shape for r in op.results)


def _nothing(t: TensorType) -> Value:
    """A value of a type that has no elements."""
    if t.static:
        return xt.constant(np.zeros(cast("tuple[int, ...]", t.shape), numpy_dtype(t.dtype)))
    return xt.reshape(xt.constant(np.zeros(0, numpy_dtype(t.dtype))), shape=t.shape)


def _elements(t: TensorType) -> int:
    return int(symbolic.product(t.shape)) if t.static else 1 << 62  # type: ignore[arg-type]


def stored_bits(t: TensorType) -> int:
    """Bits that a weight of type `t` takes in the artifact: a bool has a byte, numbers of 4 and 2 bits share one."""
    return _elements(t) * max(width(t.dtype), 1 if per_byte(t.dtype) > 1 else 8)


def _narrowest(kinds: Sequence[TensorType]) -> int:
    """The width of the narrowest elements, of those of which there are several."""
    return min((width(k.dtype) for k in kinds if _elements(k) > 1), default=1 << 10)


def _lazy(value: Value) -> bool:
    return producer(value, "weight") is not None


def _source(op: Operation, weights: WeightStore | None) -> _Known:
    a, result = attrs_of(op), op.results[0]
    value = (lambda: a.value) if name_of(op) == "constant" or weights is None else (lambda: weights[a.name])
    return _Known(value, {result: TensorType.of(result)})


def _evaluated(op: Operation, values: dict[Value, _Known]) -> list[_Known]:
    """The results of `op`, computed together at the first use of one; they do not refer to the op."""
    cls, a = op_class(op), attrs_of(op)
    assert cls is not None
    inputs = [tuple(values[v].value for v in g) if isinstance(g, tuple) else None if g is None else values[g].value
              for g in grouped_operands(op)]
    memo: list[Any] = []

    def compute() -> tuple[np.ndarray[Any, Any]]:
        if not memo:
            arrays = [tuple(f() for f in g) if isinstance(g, tuple) else None if g is None else g() for g in inputs]
            out = cls.evaluate(a, *arrays)
            out = out if isinstance(out, tuple) else (out,)
            memo.append(out if cls.access in MOVES else tuple(map(one_nan, out)))
        return memo[0]

    sources = {v: k for u in op.operands for v, k in values[u].sources.items()}
    return [_Known(lambda n=n: compute()[n], sources) for n in range(len(op.results))]   # type: ignore[misc]
