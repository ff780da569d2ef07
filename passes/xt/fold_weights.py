"""Computes at compile time what depends on weights alone, and moves per-channel factors into filters.

    y = mul(convolution(x, w), s)  ->  y = convolution(x, mul(w, s'))       s a weight, one factor an output channel
    y = add(add(x, b), c)          ->  y = add(x, add(b, c))                b and c weights
    v = op(weights...)             ->  v = weight, computed when it is first needed

A batch normalization behind a convolution ends as the convolution's own filter and bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.op_graph import element_bytes, short_name
from xcc.weights import WeightStore

__all__ = ["FoldWeights"]

_FOLDED = ("pointwise", "movement", "view", "reduction")


@register_pass
@dataclass(frozen=True)
class FoldWeights(Pass):
    """Folds ops on weights into new weights, and per-channel factors into the weights of convolutions and matmuls.

    max-growth: a folded weight may have this many times the bytes that it is made from (or 64 KiB).
    """

    name: ClassVar[str] = "fold-weights"
    max_growth: int = 4

    def run(self, module: Any, ctx: PassContext) -> None:
        store = ctx.weights if ctx.weights is not None else WeightStore()
        with module.context:
            for function in module.body:
                for region in function.operation.regions:
                    self._region(region, store)

    def _region(self, region: Any, store: WeightStore) -> None:
        for block in region.blocks:
            for op in [o.operation for o in block.operations]:
                for nested in op.regions:
                    self._region(nested, store)
                self._visit(op, store)
            for op in reversed([o.operation for o in block.operations]):
                if _is_weight_op(op) and not any(list(v.uses) for v in op.results):
                    op.erase()

    def _visit(self, op: Any, store: WeightStore) -> None:
        name = short_name(op)
        if self._fold(op, store):
            return
        new = _RULES[name](op) if name in _RULES else []
        for made in new:
            self._visit(made, store)

    def _fold(self, op: Any, store: WeightStore) -> bool:
        """Replaces `op` by a weight when all its operands are weights or constants, one of them a weight."""
        cls = xt.op_class(op)
        if cls is None or cls.access not in _FOLDED or len(op.results) != 1 or not len(op.operands):
            return False
        if not all(map(_is_constant, op.operands)) or not xt.TensorType.of(op.results[0]).static:
            return False
        weights = [v.owner.operation for v in op.operands if v.owner.operation.name == "xt.weight"]
        if any(w.attributes["name"].value not in store for w in weights):
            return False
        if not self._small_enough(op):
            return False
        name = weights[0].attributes["name"].value if weights else "constant"
        new = store.add(f"{name}.{short_name(op)}", _computation(cls, op, store))
        t = xt.TensorType.of(op.results[0])
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(xt.weight(new, t.shape, t.dtype))
        return True

    def _small_enough(self, op: Any) -> bool:
        def size(v: Any) -> int:
            return int(np.prod(xt.shape_of(v), dtype=np.int64)) * element_bytes(v)
        return size(op.results[0]) <= max(65536, self.max_growth * sum(map(size, op.operands)))


def _computation(cls: Any, op: Any, store: WeightStore) -> Callable[[], np.ndarray[Any, Any]]:
    """A function that computes the result of `op` without looking at the IR again."""
    attributes = xt.attrs_of(op)
    groups = [tuple(map(_reader, g)) if isinstance(g, tuple) else None if g is None else _reader(g)
              for g in xt.grouped_operands(op)]

    def compute() -> np.ndarray[Any, Any]:
        arrays = [tuple(r(store) for r in g) if isinstance(g, tuple) else None if g is None else g(store)
                  for g in groups]
        return np.ascontiguousarray(cls.evaluate(attributes, *arrays))
    return compute


def _reader(v: Any) -> Callable[[WeightStore], np.ndarray[Any, Any]]:
    owner = v.owner.operation
    if owner.name == "xt.weight":
        name = owner.attributes["name"].value
        return lambda store: store[name]
    value = xt.attrs_of(owner).value
    return lambda store: value


def _is_weight_op(op: Any) -> bool:
    """Ops that may go when nothing uses them."""
    access = getattr(xt.op_class(op), "access", "")
    return access in (*_FOLDED, "contraction") or op.name in ("xt.weight", "xt.constant")


def _is_constant(v: Any) -> bool:
    owner = getattr(v.owner, "operation", None)
    return owner is not None and owner.name in ("xt.weight", "xt.constant")


def _maker(v: Any, *names: str) -> Any:
    """The op of one of `names` that makes `v` for a single user, else None."""
    owner = getattr(v.owner, "operation", None)
    if owner is None or short_name(owner) not in names or len(list(v.uses)) != 1:
        return None
    return owner


def _with_constant(op: Any) -> tuple[Any, Any] | None:
    """(other operand, constant) of a commutative op whose constant operand does not widen the result."""
    a, b = op.operands
    if _is_constant(a):
        a, b = b, a
    if _is_constant(a) or not _is_constant(b) or xt.shape_of(a) != xt.shape_of(op.results[0]):
        return None
    return a, b


def _replace(op: Any, value: Any) -> None:
    op.results[0].replace_all_uses_with(value)


def _add(op: Any) -> list[Any]:
    parts = _with_constant(op)
    inner = _maker(parts[0], "add") if parts else None
    rest = _with_constant(inner) if inner is not None else None
    if parts is None or rest is None or not _is_float(op):
        return []
    with ir.InsertionPoint(op), op.location:
        total = xt.add(rest[1], parts[1])
        result = xt.add(rest[0], total)
    _replace(op, result)
    return [total.owner.operation, result.owner.operation]


def _mul(op: Any) -> list[Any]:
    parts = _with_constant(op)
    if parts is None or not _is_float(op):
        return []
    x, factor = parts
    inner = _maker(x, "add")
    rest = _with_constant(inner) if inner is not None else None
    if rest is not None and _maker(rest[0], "convolution", "dot_general") is not None:
        return _distribute(op, rest, factor)
    contraction = _maker(x, "convolution", "dot_general")
    if contraction is None or not _is_constant(contraction.operands[1]):
        return []
    return _scale_filter(op, contraction, factor)


def _distribute(op: Any, rest: tuple[Any, Any], factor: Any) -> list[Any]:
    """(y + b) * s as y * s + b * s."""
    with ir.InsertionPoint(op), op.location:
        scaled = xt.mul(rest[0], factor)
        bias = xt.mul(rest[1], factor)
        result = xt.add(scaled, bias)
    _replace(op, result)
    inner = next(iter(v for v in (op.operands[0], op.operands[1]) if not _is_constant(v))).owner.operation
    op.erase()
    inner.erase()
    return [bias.owner.operation, scaled.owner.operation, result.owner.operation]


def _scale_filter(op: Any, contraction: Any, factor: Any) -> list[Any]:
    """mul(contraction(x, w), factor) as contraction(x, w * factor)."""
    rank = xt.TensorType.of(op.results[0]).rank
    x, w = contraction.operands
    w_rank = xt.TensorType.of(w).rank
    a = xt.attrs_of(contraction)
    if short_name(contraction) == "convolution":
        channel = 1 if a.layout == "NCHW" else rank - 1
        place = {"OIHW": 0, "HWIO": w_rank - 1}.get(a.filter)
    else:
        free = [d for d in range(w_rank) if d not in (*a.rhs_batch, *a.rhs_contract)]
        channel, place = rank - 1, free[0] if len(free) == 1 and not a.rhs_batch else None
    shape = xt.shape_of(factor)
    wide = (1,) * (rank - len(shape)) + tuple(shape)
    if place is None or any(n != 1 for d, n in enumerate(wide) if d != channel) or a.dtype != xt.TensorType.of(w).dtype:
        return []
    with ir.InsertionPoint(op), op.location:
        flat = xt.reshape(factor, shape=tuple(wide[channel] if d == place else 1 for d in range(w_rank)))
        scaled = xt.mul(w, flat)
        cls = xt.op_class(contraction)
        assert cls is not None
        result = xt.build(cls, x, scaled, **vars(a))
    _replace(op, result)
    op.erase()
    contraction.erase()
    return [flat.owner.operation, scaled.owner.operation]


def _is_float(op: Any) -> bool:
    return xt.is_float(xt.TensorType.of(op.results[0]).dtype)


_RULES: dict[str, Callable[[Any], list[Any]]] = {"add": _add, "mul": _mul}
