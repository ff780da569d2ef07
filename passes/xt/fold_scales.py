"""Moves factors and terms that are weights into the weights of the contraction before them.

    y = mul(convolution(x, w), s)  ->  y = convolution(x, mul(w, s'))       s: one factor an output channel
    y = mul(add(x, b), s)          ->  y = add(mul(x, s), mul(b, s))        x a convolution or matmul
    y = add(add(x, b), c)          ->  y = add(x, add(b, c))                b and c weights

A batch normalization behind a convolution ends as the convolution's own filter and bias, once ``xt-fold`` has
computed what depends on weights alone. A filter that is decoded from narrow numbers is left to stay narrow.
"""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Module, Operation, Region, Value, ir, owner_op
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import name_of
from xcc.passes.xt.quant.decoded import is_decoded
from xcc.passes.xt.quant.quantised import is_constant


@register_pass
class FoldScales(Pass):
    """Moves per-channel factors into the weights of convolutions and matmuls, and joins biases."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function in module.body:
            for region in function.operation.regions:
                self._region(region)

    def _region(self, region: Region) -> None:
        for block in region.blocks:
            for op in [o.operation for o in block.operations]:
                for nested in op.regions:
                    self._region(nested)
                pending = [op]
                while pending:
                    at = pending.pop(0)
                    rule = _RULES.get(name_of(at))
                    pending += rule(at) if rule is not None else []


def _maker(v: Value, *names: str) -> Operation | None:
    """The op of one of `names` that makes `v` for a single user, else None."""
    owner = getattr(v.owner, "operation", None)
    if owner is None or name_of(owner) not in names or len(list(v.uses)) != 1:
        return None
    return owner


def _with_constant(op: Operation) -> tuple[Value, Value] | None:
    """(other operand, constant) of a commutative op whose constant operand does not widen the result."""
    a, b = op.operands
    if is_constant(a):
        a, b = b, a
    if is_constant(a) or not is_constant(b) or xt.shape_of(a) != xt.shape_of(op.results[0]):
        return None
    return a, b


def _replace(op: Operation, value: Value) -> None:
    op.results[0].replace_all_uses_with(value)


def _add(op: Operation) -> list[Operation]:
    parts = _with_constant(op)
    inner = _maker(parts[0], "add") if parts else None
    rest = _with_constant(inner) if inner is not None else None
    if parts is None or inner is None or rest is None:
        return []
    with ir.InsertionPoint(op), op.location:
        total = xt.add(rest[1], parts[1])
        result = xt.add(rest[0], total)
    _replace(op, result)
    op.erase()
    inner.erase()
    return [owner_op(result)]


def _mul(op: Operation) -> list[Operation]:
    parts = _with_constant(op)
    if parts is None or not _is_float(op):
        return []
    x, factor = parts
    inner = _maker(x, "add")
    rest = _with_constant(inner) if inner is not None else None
    if rest is not None and _maker(rest[0], "convolution", "dot_general") is not None:
        return _distribute(op, rest, factor)
    contraction = _maker(x, "convolution", "dot_general")
    if contraction is None or not is_constant(contraction.operands[1]) or is_decoded(contraction.operands[1]):
        return []
    return _scale_filter(op, contraction, factor)


def _distribute(op: Operation, rest: tuple[Value, Value], factor: Value) -> list[Operation]:
    """(y + b) * s as y * s + b * s."""
    with ir.InsertionPoint(op), op.location:
        scaled = xt.mul(rest[0], factor)
        bias = xt.mul(rest[1], factor)
        result = xt.add(scaled, bias)
    _replace(op, result)
    inner = owner_op(next(v for v in op.operands if not is_constant(v)))
    op.erase()
    inner.erase()
    return [owner_op(scaled), owner_op(result)]


def _scale_filter(op: Operation, contraction: Operation, factor: Value) -> list[Operation]:
    """mul(contraction(x, w), factor) as contraction(x, w * factor)."""
    rank = xt.TensorType.of(op.results[0]).rank
    x, w = contraction.operands
    w_rank = xt.TensorType.of(w).rank
    a = xt.attrs_of(contraction)
    if name_of(contraction) == "convolution":
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
    return []


def _is_float(op: Operation) -> bool:
    return xt.is_float(xt.TensorType.of(op.results[0]).dtype)


_RULES: dict[str, Callable[[Operation], list[Operation]]] = {"add": _add, "mul": _mul}
