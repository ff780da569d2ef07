"""The pass ``xt-fold``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from xcc import symbolic
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of, grouped_operands, op_class
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.rewrite import at, erase_dead, name_of, producer, replace, walk_ops

SOURCES = ("constant", "weight")
NEVER = ("random_uniform", "random_normal")
SMALL = 1024  # elements; a larger result is a weight

Value = Callable[[], Any]


@register_pass
@dataclass(frozen=True)
class Fold(Pass):
    """Evaluates ops whose operands are constants and weights.

    A result of at most `small` elements becomes an xt.constant, a larger one an xt.weight that is computed at first
    use. An op that makes more data than `growth` times its operands' (a broadcast, an iota) stays, and so does a
    contraction that makes more data than its operands': the model is stored small, and does it when it is loaded.
    Results without elements are constants whatever they are computed from.

        %w = "xt.weight"() {name = "w"}            %t = "xt.weight"() {name = "w.transpose"}
        %t = "xt.transpose"(%w) {perm = [1, 0]} ->
    """

    name: ClassVar[str] = "xt-fold"
    small: int = SMALL
    growth: int = 2

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context:
            values: dict[Any, Value] = {}
            for op in walk_ops(module):
                self._visit(op, values, ctx)
            erase_dead(module)

    def _visit(self, op: Any, values: dict[Any, Value], ctx: PassContext) -> None:
        name = name_of(op)
        if name in SOURCES:
            values[op.results[0]] = _source(op, ctx.weights)
            return
        if _is_empty(op):
            with at(op):
                replace(op, [_nothing(TensorType.of(r)) for r in op.results])
            return
        if not self._folds(op, name, values, ctx):
            return
        outs = _evaluated(op, values)
        with at(op):
            new = [self._store(name, r, outs, i, values, ctx) for i, r in enumerate(op.results)]
        replace(op, new)

    def _folds(self, op: Any, name: str, values: dict[Any, Value], ctx: PassContext) -> bool:
        cls = op_class(op)
        assert cls is not None
        if name in NEVER or cls.access in ("control", "source", "scalar") or list(op.regions):
            return False
        if any(v not in values for v in op.operands):
            return False
        if any(_lazy(v) for v in op.operands) and ctx.weights is None:
            return False
        a = attrs_of(op)
        dims = [d for k, f in cls.attribute_fields.items() if f.kind == "dims" for d in getattr(a, k)]
        kinds = [TensorType.of(r) for r in op.results]
        if not symbolic.is_static(dims) or not all(k.static for k in kinds):
            return False
        made = sum(_elements(k) for k in kinds)
        if made <= (1 if name == "iota" else self.small) and not any(_lazy(v) for v in op.operands):
            return name != "broadcast" or made <= 1
        growth = 1 if cls.access == "contraction" else self.growth
        return ctx.weights is not None and made <= growth * sum(_elements(TensorType.of(v)) for v in op.operands)

    def _store(self, name: str, result: Any, outs: Callable[[], Any], index: int, values: dict[Any, Value],
               ctx: PassContext) -> Any:
        kind = TensorType.of(result)
        if _elements(kind) <= self.small and not _has_big_inputs(result.owner):
            out = xt.constant(np.asarray(outs()[index], numpy_dtype(kind.dtype), order="C"))
        else:
            base = next((attrs_of(p).name for v in result.owner.operation.operands
                         if (p := producer(v, "weight")) is not None), "folded")
            key = ctx.weights.add(f"{base}.{name}", lambda: np.asarray(outs()[index], order="C"))
            out = xt.weight(key, tuple(kind.shape), kind.dtype)
        values[out] = lambda: outs()[index]
        return out


def _is_empty(op: Any) -> bool:
    """Whether the op has results, and none of them an element, and names no size that is only known when it has run."""
    cls = op_class(op)
    return cls is not None and cls.access not in ("control", "view") and "symbol" not in cls.attribute_fields \
        and len(op.results) > 0 and all(0 in TensorType.of(r).shape for r in op.results)


def _nothing(t: TensorType) -> Any:
    """A value of a type that has no elements."""
    if t.static:
        return xt.constant(np.zeros(cast("tuple[int, ...]", t.shape), numpy_dtype(t.dtype)))
    return xt.reshape(xt.constant(np.zeros(0, numpy_dtype(t.dtype))), shape=t.shape)


def _elements(t: TensorType) -> int:
    return int(symbolic.product(t.shape)) if t.static else 1 << 62  # type: ignore[arg-type]


def _lazy(value: Any) -> bool:
    return producer(value, "weight") is not None


def _has_big_inputs(op: Any) -> bool:
    """Whether evaluation would read large weights now, where a lazy entry reads them later."""
    return any(_lazy(v) and _elements(TensorType.of(v)) > SMALL for v in op.operation.operands)


def _source(op: Any, weights: Any) -> Value:
    a = attrs_of(op)
    return (lambda: a.value) if name_of(op) == "constant" else (lambda: weights[a.name])


def _evaluated(op: Any, values: dict[Any, Value]) -> Callable[[], Any]:
    """The results of `op`, computed at the first call; it does not refer to the op."""
    cls, a = op_class(op), attrs_of(op)
    assert cls is not None
    inputs = [tuple(values[v] for v in g) if isinstance(g, tuple) else None if g is None else values[g]
              for g in grouped_operands(op)]
    memo: list[Any] = []

    def compute() -> Any:
        if not memo:
            arrays = [tuple(f() for f in g) if isinstance(g, tuple) else None if g is None else g() for g in inputs]
            out = cls.evaluate(a, *arrays)
            memo.append(out if isinstance(out, tuple) else (out,))
        return memo[0]

    return compute
