"""Values known at import: constants are computed, shape arithmetic stays symbolic.

A node whose operands are all small constants is evaluated by the reference implementation that comes with onnx. A node
that works on symbolic dims (object arrays of ints, Exprs and Ratios) is evaluated by a rule of :data:`RULES`. Whatever
no rule can decide is left to the op's converter, and becomes host-scalar arithmetic in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import AttributeProto, helper
from onnx.reference import ReferenceEvaluator

from xcc import symbolic
from xcc.bounds import Undecided, sign
from xcc.dialects.xt.types import NUMPY_DTYPES
from xcc.frontends.onnx.context import Array, Context, Tensor
from xcc.frontends.onnx.element_types import DType, from_onnx, is_floating
from xcc.symbolic import Dim, Expr

LIMIT = 1024
"""Constants of more elements than this are left to the converters, which keep them out of memory."""

_KEPT = {"Bernoulli", "DequantizeLinear", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
         "RandomUniformLike"}
"""Never evaluated: random numbers, and bytes that a contraction may take as they are."""


@dataclass(frozen=True)
class Ratio:
    """A dim divided by a positive number that does not divide it: a float in shape arithmetic."""

    top: Dim
    bottom: int


Rule = Callable[[Context, list[Array]], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def propagate(cx: Context) -> tuple[Tensor, ...] | None:
    """The node's results where import can tell them, else None."""
    if cx.node.domain not in ("", "ai.onnx"):
        return None
    if cx.op in ("Shape", "Size"):
        return None
    if not all(t is None or isinstance(t, Tensor) for t in cx.inputs):
        return None
    if cx.op == "Identity":
        return (cx.tensor(0),)
    if not any(t is not None for t in cx.tensors) and cx.op != "Constant":
        return None
    if any(t is not None and t.data is None for t in cx.tensors):
        return None
    if all(t is None or t.const is not None for t in cx.tensors):
        return _evaluate(cx)
    return _symbolic(cx)


def _symbolic(cx: Context) -> tuple[Tensor, ...] | None:
    function = RULES.get(cx.op)
    if function is None:
        return None
    try:
        result = function(cx, [np.array(None) if t is None else _object(t.data) for t in cx.tensors])
    except Undecided:
        return None
    dtype = _result_dtype(cx)
    if isinstance(result, tuple):
        return tuple(Tensor.of_dims(r, dtype) for r in result)
    return (Tensor.of_dims(np.asarray(result, object), dtype),)


def _object(data: Array | None) -> Array:
    assert data is not None
    if data.dtype == object:
        return data
    out = np.empty(data.shape, object)
    out[...] = data.tolist()
    return out


def _result_dtype(cx: Context) -> DType:
    if cx.op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"):
        return np.dtype(np.bool_)
    if cx.op == "Cast":
        return from_onnx(cx.attr("to"))
    if cx.op == "ConstantOfShape":
        return cx.attr("value").dtype if cx.attr("value") is not None else np.dtype(np.float32)
    return cx.dtype(1) if cx.op in ("Where", "CastLike") else cx.dtype(0)


def _evaluate(cx: Context) -> tuple[Tensor, ...] | None:
    """All operands are constants: the reference implementation's results, None when large or not to be had."""
    if cx.op == "Constant":
        return (Tensor.of_array(_constant(cx)),)
    arrays = [t.const for t in cx.tensors if t is not None]
    if cx.op in _KEPT or any(a is not None and a.size > LIMIT for a in arrays) or _grows(cx):
        return None
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in cx.node.attribute):
        return None
    names = [n for n in dict.fromkeys(cx.node.input) if n]
    outputs = [n for n in cx.node.output if n]
    graph = helper.make_graph([cx.node], "node", [_any(n) for n in names], [_any(n) for n in outputs])
    feeds = {n: np.array(t.const, order="C") for n, t in zip(cx.node.input, cx.tensors, strict=True)
             if n and t is not None and t.const is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets={"": cx.opset}).run(None, feeds)
    except Exception:  # the converter reports what is wrong, with the node's name
        return None
    by_name = dict(zip(outputs, results, strict=True))
    if any(not isinstance(r, np.ndarray | np.generic) or np.asarray(r).dtype not in _KNOWN for r in results):
        return None
    out = [by_name.get(n) for n in cx.node.output]
    return tuple(None if r is None else Tensor.of_array(np.asarray(r)) for r in out)  # type: ignore[misc]


_KNOWN = set(NUMPY_DTYPES.values())


def _any(name: str) -> Any:
    return helper.make_value_info(name, helper.make_tensor_type_proto(1, None))


def _grows(cx: Context) -> bool:
    """Whether a constant result would be large: those stay ops (a broadcast needs no storage)."""
    if cx.op in ("Expand", "ConstantOfShape", "EyeLike", "Tile", "OneHot", "Range"):
        if cx.op == "Range":
            start, limit, delta = (cx.const(i).reshape(-1)[0] for i in range(3))
            return bool(delta == 0 or (limit - start) / delta > LIMIT)
        shape = cx.tensors[1 if cx.op in ("Expand", "Tile") else 0]
        return shape is None or shape.const is None or bool(np.prod(shape.const.astype(float)) > LIMIT)
    return False


def _constant(cx: Context) -> Array:
    attrs = cx.attrs
    if attrs.get("value") is not None:
        if not isinstance(attrs["value"], np.ndarray):
            cx.fail("a string constant is not supported")
        return np.asarray(attrs["value"])
    if attrs.get("sparse_value") is not None:
        from xcc.frontends.onnx.graph import dense_of
        return dense_of(cx.graph.model.source, attrs["sparse_value"])
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64),
                        ("value_ints", np.int64)):
        if name in attrs:
            return np.array(attrs[name], dtype)
    cx.fail("a constant without a numeric value is not supported")


# Rules on object arrays


def _elementwise(function: Callable[..., Any]) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        broadcast = np.broadcast_arrays(*xs)
        out = np.empty(broadcast[0].shape, object)
        for at in np.ndindex(out.shape):
            out[at] = function(*(b[at] for b in broadcast))
        return out

    return apply


def _exact(x: Any) -> Any:
    """Floats as fractions; Undecided for those that no small fraction equals."""
    if isinstance(x, float):
        f = Fraction(x)
        if f.denominator > 1 << 20:
            raise Undecided
        return int(f) if f.denominator == 1 else f
    return x


def _multiply(a: Any, b: Any) -> Any:
    a, b = _exact(a), _exact(b)
    if isinstance(a, Fraction | Ratio) and isinstance(b, Fraction | Ratio):
        raise Undecided
    if isinstance(a, Fraction | Ratio):
        a, b = b, a
    if isinstance(b, Fraction):
        return _ratio(a * b.numerator, b.denominator)
    if isinstance(b, Ratio):
        return _ratio(a * b.top, b.bottom)
    return a * b


def _ratio(top: Dim, bottom: int) -> Any:
    return symbolic.floordiv(top, bottom) if symbolic.mod(top, bottom) == 0 else Ratio(top, bottom)


def _add(a: Any, b: Any) -> Any:
    a, b = _exact(a), _exact(b)
    if isinstance(a, Expr | int) and isinstance(b, Expr | int):
        return a + b
    (ta, ba), (tb, bb) = _parts(a), _parts(b)
    return _ratio(ta * bb + tb * ba, ba * bb)


def _parts(x: Any) -> tuple[Dim, int]:
    if isinstance(x, Ratio):
        return x.top, x.bottom
    return (x.numerator, x.denominator) if isinstance(x, Fraction) else (x, 1)


def _negate(a: Any) -> Any:
    top, bottom = _parts(_exact(a))
    return top * -1 if bottom == 1 else Ratio(top * -1, bottom)


def _divide(cx: Context, xs: list[Array]) -> Array:
    floating = is_floating(cx.dtype(0))

    def divide(a: Any, b: Any) -> Any:
        a, b = _exact(a), _exact(b)
        if isinstance(b, int) and b > 0 and isinstance(a, Expr | int | Ratio):
            top, bottom = _parts(a)
            if floating:
                return _ratio(top, bottom * b)
            if sign(cx.graph.model.bounds, top) < 0 or isinstance(a, Ratio):
                raise Undecided
            return symbolic.floordiv(top, b)
        if isinstance(b, Fraction) and b > 0:
            return _multiply(a, Fraction(b.denominator, b.numerator))
        if isinstance(b, Expr) and not isinstance(a, Ratio | Fraction) and not floating:
            return symbolic.floordiv(a, b)
        if isinstance(b, Expr) and isinstance(a, Expr) and symbolic.mod(a, b) == 0:
            return symbolic.floordiv(a, b)
        raise Undecided

    out: Array = _elementwise(divide)(cx, xs)
    return out


def _round(up: bool) -> Callable[[Any], Any]:
    def rounded(a: Any) -> Any:
        top, bottom = _parts(_exact(a))
        return symbolic.ceildiv(top, bottom) if up else symbolic.floordiv(top, bottom)

    return rounded


def _cast(cx: Context, xs: list[Array]) -> Array:
    target = from_onnx(cx.attr("to")) if cx.op == "Cast" else cx.dtype(1)
    if target == np.bool_:
        raise Undecided
    out: Array = xs[0] if is_floating(target) else _elementwise(_round(False))(cx, [xs[0]])
    return out


def _compare(direction: str) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        def decide(a: Any, b: Any) -> bool:
            return _decide(direction, _add(a, _negate(b)), cx.graph.model.bounds)

        return _elementwise(decide)(cx, xs)

    return apply


def _decide(direction: str, difference: Any, bounds: Any) -> bool:
    """Whether ``a <direction> b`` for ``difference = a - b``."""
    if isinstance(difference, Ratio):
        difference = difference.top
    if isinstance(difference, int | Fraction):
        s, strict = (difference > 0) - (difference < 0), True
    else:
        s = sign(bounds, difference)
        strict = abs(s) == 2
        s = (s > 0) - (s < 0)
    if direction == "eq" and strict:
        return s == 0
    if direction == "gt" and (strict or s < 0):
        return s > 0
    if direction == "lt" and (strict or s > 0):
        return s < 0
    if direction == "ge" and (s > 0 or strict):
        return s >= 0
    if direction == "le" and (s < 0 or strict):
        return s <= 0
    raise Undecided


def _where(c: Any, a: Any, b: Any) -> Any:
    if isinstance(c, bool | np.bool_):
        return a if c else b
    raise Undecided


def _extreme(function: Callable[[Any, Any], Any]) -> Rule:
    def apply(cx: Context, xs: list[Array]) -> Array:
        out = xs[0]
        for x in xs[1:]:
            out = _elementwise(lambda a, b: function(_whole(a), _whole(b)))(cx, [out, x])
        return out

    return apply


def _whole(x: Any) -> Dim:
    x = _exact(x)
    if isinstance(x, Expr | int):
        return x
    raise Undecided


def _mod(cx: Context, xs: list[Array]) -> Array:
    out: Array = _elementwise(lambda a, b: symbolic.mod(_whole(a), _whole(b)))(cx, xs)
    return out


def _sum(cx: Context, xs: list[Array]) -> Array:
    out = xs[0]
    for x in xs[1:]:
        out = _elementwise(_add)(cx, [out, x])
    return out


RULES |= {
    "Add": _elementwise(_add), "Sub": _elementwise(lambda a, b: _add(a, _negate(b))), "Mul": _elementwise(_multiply),
    "Div": _divide, "Mod": _mod, "Neg": _elementwise(_negate), "Floor": _elementwise(_round(False)),
    "Ceil": _elementwise(_round(True)), "Cast": _cast, "CastLike": lambda cx, xs: _cast(cx, xs),
    "Equal": _compare("eq"), "Less": _compare("lt"), "Greater": _compare("gt"), "LessOrEqual": _compare("le"),
    "GreaterOrEqual": _compare("ge"), "Where": _elementwise(_where), "Max": _extreme(symbolic.dim_max),
    "Min": _extreme(symbolic.dim_min), "Sum": _sum,
    "Not": _elementwise(lambda a: not a), "And": _elementwise(lambda a, b: bool(a and b)),
    "Or": _elementwise(lambda a, b: bool(a or b)),
}


@rule("Gather")
def _gather(cx: Context, xs: list[Array]) -> Array:
    return np.asarray(np.take(xs[0], _ints(xs[1]), axis=cx.axis()), object)


@rule("Slice")
def _slice(cx: Context, xs: list[Array]) -> Array:
    x = xs[0]
    if cx.opset < 10:
        starts, ends, axes = cx.attr("starts"), cx.attr("ends"), cx.attr("axes")
        steps = None
    else:
        starts, ends = _ints(xs[1]).tolist(), _ints(xs[2]).tolist()
        axes = _ints(xs[3]).tolist() if cx.has(3) else None
        steps = _ints(xs[4]).tolist() if cx.has(4) else None
    index = [slice(None)] * x.ndim
    axes, steps = axes or range(len(starts)), steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0 and end < -x.shape[axis]:
            end = None
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


@rule("Concat")
def _concat(cx: Context, xs: list[Array]) -> Array:
    return np.concatenate(xs, axis=cx.attr("axis", 1))


@rule("Unsqueeze")
def _unsqueeze(cx: Context, xs: list[Array]) -> Array:
    axes = cx.attr("axes") if cx.opset < 13 else _ints(xs[1]).tolist()
    rank = xs[0].ndim + len(axes)
    out = xs[0]
    for axis in sorted(a % rank for a in axes):
        out = np.expand_dims(out, axis)
    return out


@rule("Squeeze")
def _squeeze(cx: Context, xs: list[Array]) -> Array:
    axes = cx.attr("axes") if cx.opset < 13 else (_ints(xs[1]).tolist() if cx.has(1) else None)
    return np.squeeze(xs[0], axis=None if axes is None else tuple(axes))


@rule("Reshape")
def _reshape(cx: Context, xs: list[Array]) -> Array:
    shape = _ints(xs[1]).tolist()
    if not cx.attr("allowzero", 0):
        shape = [xs[0].shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return xs[0].reshape(shape)


@rule("Flatten")
def _flatten(cx: Context, xs: list[Array]) -> Array:
    axis = cx.axis(default=1)
    return xs[0].reshape(int(np.prod(xs[0].shape[:axis])), -1)


@rule("Expand")
def _expand(cx: Context, xs: list[Array]) -> Array:
    return np.broadcast_to(xs[0], np.broadcast_shapes(xs[0].shape, tuple(_ints(xs[1]).tolist())))


@rule("Transpose")
def _transpose(cx: Context, xs: list[Array]) -> Array:
    return np.transpose(xs[0], cx.attr("perm"))


@rule("Tile")
def _tile(cx: Context, xs: list[Array]) -> Array:
    return np.tile(xs[0], _ints(xs[1]).tolist())


@rule("Split")
def _split(cx: Context, xs: list[Array]) -> tuple[Array, ...]:
    axis, count = cx.axis(), len(cx.node.output)
    sizes = cx.attr("split") if cx.opset < 13 else (_ints(xs[1]).tolist() if cx.has(1) else None)
    if sizes is None:
        each = -(-xs[0].shape[axis] // count)
        sizes = [min(each, xs[0].shape[axis] - i * each) for i in range(count)]
    return tuple(np.split(xs[0], np.cumsum(sizes)[:-1], axis=axis))


@rule("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(cx: Context, xs: list[Array]) -> Array:
    functions: dict[str, Callable[[Any, Any], Any]] = {"ReduceProd": _multiply, "ReduceSum": _add,
                                                       "ReduceMax": symbolic.dim_max, "ReduceMin": symbolic.dim_min}
    function, x = functions[cx.op], xs[0]
    if x.ndim != 1 or x.size == 0:
        raise Undecided
    axes = _ints(xs[1]).tolist() if cx.has(1) else cx.attr("axes")
    if not axes and cx.attr("noop_with_empty_axes", 0):
        return x
    total = x[0]
    for value in x[1:]:
        total = function(total, value)
    out = np.empty((1,) if cx.attr("keepdims", 1) else (), object)
    out[...] = total
    return out


def _ints(x: Array) -> Array:
    """Indices must be plain numbers."""
    if any(isinstance(v, Expr | Ratio) for v in x.flat):
        raise Undecided
    return np.array(x.tolist(), np.int64)


def rules() -> tuple[str, ...]:
    return tuple(sorted(RULES))


