"""The pass ``xt-simplify``: algebraic clean-up, one function a rule, grouped by the op that they look at."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from xcc import symbolic
from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of
from xcc.dialects.xt.resize import resized
from xcc.dialects.xt.types import TensorType, is_float
from xcc.dim_expr import Expr
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.concatenated import neighbouring_slices, slice_of_concatenation
from xcc.passes.xt.graph.rewrite import apply_rules, name_of, producer, same_type
from xcc.passes.xt.graph.shared_indices import shared_index
from xcc.passes.xt.graph.split_dims import split_dims
from xcc.passes.xt.products.clip_windows import clipped
from xcc.symbolic import Dim

Rule = Callable[[Operation], Value | None]
RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for ops: from the op to the value that replaces its result, or None."""

    def register(f: Rule) -> Rule:
        for n in names:
            RULES.setdefault(n, []).append(f)
        return f

    return register


@register_pass
class XtSimplify(Pass):
    """Removes ops that do nothing and joins neighbours of one kind, until nothing changes."""

    def run(self, module: Module, ctx: PassContext) -> None:
        apply_rules(module, RULES)


rule("reduce_window")(clipped)
rule("scatter_elements")(shared_index)
rule("slice")(slice_of_concatenation)
rule("concatenate")(neighbouring_slices)


def splat(value: Value) -> float | None:
    """The number that all elements of a constant have, or None."""
    op = producer(value, "constant")
    if op is None or not op.attributes["value"].is_splat:
        return None
    return attrs_of(op).value.reshape(-1)[0]


@rule("reshape", "broadcast", "slice", "pad", "convert", "transpose", "reverse", "resize")
def no_effect(op: Operation) -> Value | None:
    """An op whose result is its operand: same type, and nothing moves."""
    x, a = op.operands[0], attrs_of(op)
    if not same_type(x, op.results[0]):
        return None
    idle: dict[str, Callable[[], bool]]
    idle = {"transpose": lambda: list(a.perm) == sorted(a.perm) or _moves_only_ones(x, a.perm),
            "slice": lambda: all(s == 0 for s in a.starts), "reverse": lambda: not a.axes,
            "pad": lambda: all(p == 0 for p in (*a.low, *a.high, *a.interior)),
            "resize": lambda: not any(resized(a, d, n, n) for d, n in enumerate(a.shape))}
    return x if idle.get(name_of(op), lambda: True)() else None


def _moves_only_ones(x: Value, perm: tuple[int, ...]) -> bool:
    kept = [p for p in perm if TensorType.of(x).shape[p] != 1]
    return kept == sorted(kept)


@rule("transpose")
def transpose_of_transpose(op: Operation) -> Value | None:
    """transpose(transpose(x, p), q) = transpose(x, p[q])."""
    inner = producer(op.operands[0], "transpose")
    if inner is None:
        return None
    p, q = attrs_of(inner).perm, attrs_of(op).perm
    return xt.transpose(inner.operands[0], perm=[p[i] for i in q])


@rule("transpose")
def transpose_of_merged_transpose(op: Operation) -> Value | None:
    """transpose(reshape(transpose(x))) = reshape(transpose(x)) where the inner reshape only merges dims."""
    view = producer(op.operands[0], "reshape")
    turned = producer(view.operands[0], "transpose") if view is not None else None
    if view is None or turned is None:
        return None
    parts = split_dims(TensorType.of(view.results[0]).shape, TensorType.of(turned.results[0]).shape)
    if parts is None:
        return None
    order = [attrs_of(turned).perm[k] for d in attrs_of(op).perm for k in parts[d]]
    return xt.reshape(xt.transpose(turned.operands[0], perm=order), shape=TensorType.of(op.results[0]).shape)


@rule("transpose")
def transpose_is_reshape(op: Operation) -> Value | None:
    """A transpose that moves only dims of 1 is a reshape."""
    x = op.operands[0]
    return xt.reshape(x, shape=TensorType.of(op.results[0]).shape) if _moves_only_ones(x, attrs_of(op).perm) else None


@rule("reshape")
def reshape_of_reshape(op: Operation) -> Value | None:
    """Only the last shape counts."""
    inner = producer(op.operands[0], "reshape")
    return None if inner is None else xt.reshape(inner.operands[0], shape=attrs_of(op).shape)


@rule("reshape")
def reshape_of_transposed_reshape(op: Operation) -> Value | None:
    """reshape(transpose(reshape(x))) = transpose(reshape(x)) where the last reshape only splits dims."""
    turned = producer(op.operands[0], "transpose")
    if turned is None or producer(turned.operands[0], "reshape") is None:
        return None
    parts = split_dims(TensorType.of(op.operands[0]).shape, attrs_of(op).shape)
    if parts is None:
        return None
    perm = attrs_of(turned).perm
    before = [k for i in range(len(perm)) for k in parts[perm.index(i)]]
    shape = attrs_of(op).shape
    return xt.transpose(xt.reshape(turned.operands[0], shape=[shape[k] for k in before]),
                        perm=[before.index(k) for k in range(len(shape))])


@rule("broadcast")
def broadcast_of_broadcast(op: Operation) -> Value | None:
    """Only the last shape counts."""
    inner = producer(op.operands[0], "broadcast")
    return None if inner is None else xt.broadcast(inner.operands[0], shape=attrs_of(op).shape)


@rule("convert")
def convert_of_convert(op: Operation) -> Value | None:
    """convert(convert(x, wide), t) = convert(x, t) when `wide` holds every value of x exactly."""
    inner = producer(op.operands[0], "convert")
    if inner is None or attrs_of(op).saturate or attrs_of(inner).saturate:
        return None
    x = inner.operands[0]
    source, middle = TensorType.of(x).dtype, TensorType.of(inner.results[0]).dtype
    if not holds(middle, source):
        return None
    return xt.convert(x, dtype=attrs_of(op).dtype)


def holds(wide: str, narrow: str) -> bool:
    """Whether the float type `wide` has every value of the float type `narrow`."""
    order = {"f8E4M3FN": 0, "f8E5M2": 0, "f16": 1, "bf16": 1, "f32": 2, "f64": 3}
    return narrow in order and wide in order and (wide == narrow or order[wide] > order[narrow])


def _identity(op: Operation, x: Value) -> Value | None:
    """x when it may stand for the result."""
    return x if same_type(x, op.results[0]) else None


@rule("add", "sub", "or", "xor", "mul", "div", "and", "pow")
def neutral_operand(op: Operation) -> Value | None:
    """x+0, x-0, x|0, x^0, x*1, x/1, x&true, x^1 (power); the other order too where the op commutes.

    For floats x + 0 counts as x, also where x is -0.
    """
    name = name_of(op)
    a, b = op.operands
    dtype = TensorType.of(a).dtype
    unit: int | None = {"add": 0, "sub": 0, "or": 0, "xor": 0, "mul": 1, "div": 1, "pow": 1}.get(name)
    if name == "and":
        unit = True if dtype == "i1" else -1 if dtype.startswith("i") else None
    if unit is None:
        return None
    for x, c in ((a, b), (b, a))[:2 if name in ("add", "mul", "and", "or", "xor") else 1]:
        value = splat(c)
        if value is not None and value == unit and _identity(op, x) is not None:
            return x
    return None


@rule("mul")
def times_zero(op: Operation) -> Value | None:
    """Integer x*0 = 0 when the constant has the result's type."""
    for c in op.operands:
        if not is_float(TensorType.of(c).dtype) and splat(c) == 0 and same_type(c, op.results[0]):
            return c
    return None


@rule("select")
def select_known(op: Operation) -> Value | None:
    """A constant predicate, or two equal branches."""
    pred, x, y = op.operands
    value = splat(pred)
    if x == y:
        return _identity(op, x)
    return None if value is None else _identity(op, x if value else y)


@rule("not", "neg")
def twice(op: Operation) -> Value | None:
    """not(not(x)) and neg(neg(x)) are x."""
    inner = producer(op.operands[0], name_of(op))
    return None if inner is None else inner.operands[0]


@rule("maximum", "minimum", "and", "or")
def same_operands(op: Operation) -> Value | None:
    """op(x, x) = x."""
    return op.operands[0] if op.operands[0] == op.operands[1] else None


@rule("pow")
def square(op: Operation) -> Value | None:
    """x^2 = x*x, x^0.5 = sqrt(x), x^-1 = 1/x for floats."""
    x, c = op.operands
    value = splat(c)
    if value is None or not is_float(TensorType.of(x).dtype) or not same_type(x, op.results[0]):
        return None
    makers = {2.0: lambda: xt.mul(x, x), 0.5: lambda: xt.sqrt(x), -1.0: lambda: xt.reciprocal(x)}
    return makers[float(value)]() if float(value) in makers else None


@rule("concatenate")
def single_operand(op: Operation) -> Value | None:
    """The concatenation of one value, or of values of which all but one are empty."""
    live = [x for x in op.operands if TensorType.of(x).shape[attrs_of(op).axis] != 0]
    if len(live) == 1:
        return _identity(op, live[0])
    return xt.concatenate(*live, axis=attrs_of(op).axis) if 0 < len(live) < len(op.operands) else None


@rule("slice")
def slice_of_slice(op: Operation) -> Value | None:
    """Two slices are one: starts add up, strides multiply."""
    inner = producer(op.operands[0], "slice")
    if inner is None:
        return None
    a, b = attrs_of(inner), attrs_of(op)
    starts = [s + t * step for s, t, step in zip(a.starts, b.starts, a.strides, strict=True)]
    strides = [s * t for s, t in zip(a.strides, b.strides, strict=True)]
    sizes = [symbolic.ceildiv(h - lo, t) for lo, h, t in zip(b.starts, b.limits, b.strides, strict=True)]
    limits = [lo + (n - 1) * t + 1 for lo, n, t in zip(starts, sizes, strides, strict=True)]
    if not all(isinstance(n, int) and n > 0 or t == 1 for n, t in zip(sizes, strides, strict=True)):
        return None
    return xt.slice_(inner.operands[0], starts=starts, limits=limits, strides=strides)


def _host_dim(value: Value) -> int | Expr | None:
    """The dim expression of an integer scalar on the host, or None."""
    op = producer(value, "dim")
    if op is not None:
        return attrs_of(op).value[0]
    op = producer(value, "constant")
    if op is None or TensorType.of(value).shape != () or not TensorType.of(value).dtype.startswith("i"):
        return None
    return int(attrs_of(op).value)


@rule("add", "sub", "mul", "maximum", "minimum")
def dim_arithmetic(op: Operation) -> Value | None:
    """Arithmetic of xt.dim values is one xt.dim."""
    if str(TensorType.of(op.results[0])) != "i64[]":
        return None
    a, b = (_host_dim(v) for v in op.operands)
    if a is None or b is None:
        return None
    makers: dict[str, Callable[[Dim, Dim], Dim]] = {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "maximum": symbolic.dim_max,
        "minimum": symbolic.dim_min}
    both = makers[name_of(op)](a, b)
    if len(str(both)) > symbolic.LONGEST:
        return None
    return xt.constant(np.int64(both)) if isinstance(both, int) else xt.dim(both)
