"""Complex numbers as a real tensor for each part, which rotary embeddings and their gradients need.

    view_as_complex(x: f32[N, 4, 2])    ->    Complex(x[..., 0], x[..., 1]), two f32[N, 4]

Other ops on complex numbers run in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.frontends.shared.helpers import convert, element, full, rank_of, scalar, slice_axis, squeeze, unsqueeze
from xcc.frontends.shared.products import matmul
from xcc.frontends.torch.context import Complex, Context
from xcc.frontends.torch.graph import REAL_OF, DType, Node, Spec, TensorSpec
from xcc.frontends.torch.matmul import RIGHT
from xcc.frontends.torch.registry import aten, lookup
from xcc.frontends.torch.special import length

__all__ = ["LINEAR", "from_pairs"]

LINEAR = (
    "add.Scalar", "add.Tensor", "alias.default", "cat.default", "clone.default", "constant_pad_nd.default",
    "copy.default", "expand.default", "flip.default", "full.default", "full_like.default", "gather.default",
    "index.Tensor", "index_put.default", "index_select.default", "mean.default", "mean.dim", "neg.default",
    *(f"{kind}_pad{n}d.default" for kind in ("reflection", "replication") for n in (1, 2, 3)),
    "permute.default", "repeat.default", "roll.default", "scalar_tensor.default", "scatter_add.default",
    "select.int", "select_scatter.default", "slice.Tensor", "slice_scatter.default", "split.Tensor",
    "split_with_sizes.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "sub.Scalar", "sub.Tensor",
    "sum.dim_IntList", "transpose.int", "unbind.int", "unsqueeze.default", "view.default", "where.self")
"""Ops of namespace aten that do the same to both parts."""

_TERMS = ("self", "other", "s", "fill_value", "src", "value", "values")


def _linear(cx: Context) -> list[Complex]:
    """The op itself, of real parts and of imaginary ones."""
    op = lookup(cx.node.op)
    assert op is not None
    node = replace(cx.node, results=tuple(map(_real_spec, cx.node.results)))
    parts: list[Sequence[Value]] = []
    for n in range(2):
        made = op(replace(cx, node=node, args={name: _part(name, a, n) for name, a in cx.args.items()}))
        parts.append(cast("Sequence[Value]", made if isinstance(made, tuple | list) else (made,)))
    return [Complex(*pair) for pair in zip(*parts, strict=True)]


def _part(name: str, value: object, n: int) -> object:
    """Part `n` of an argument; of a real number the imaginary one is 0 where it is a term, or an element, of the op."""
    if isinstance(value, Complex):
        return (value.real, value.imag)[n]
    if isinstance(value, complex):
        return (value.real, value.imag)[n]
    if isinstance(value, DType):
        return DType(REAL_OF.get(value.name, value.name))
    if name == "tensors" and isinstance(value, tuple):
        return tuple(_part("self", v, n) for v in value)
    if n and name in _TERMS:
        return full(xt.shape_of(value), 0, xt.element_type_of(value)) if isinstance(value, Value) else 0
    return value


def _real_spec(spec: Spec) -> Spec:
    return replace(spec, dtype=REAL_OF.get(spec.dtype, spec.dtype)) if isinstance(spec, TensorSpec) else spec


def _type(node: Node) -> str:
    """The element type of the parts of what the node gives."""
    spec = _real_spec(node.results[0])
    assert isinstance(spec, TensorSpec)
    return spec.dtype


for _name in LINEAR:
    aten(f"aten.{_name}", namespace="complex")(_linear)


@aten("aten.view_as_complex.default", namespace="complex")
def view_as_complex(cx: Context) -> Complex:
    return from_pairs(cx.tensor("self"))


def from_pairs(x: Value) -> Complex:
    """The numbers whose parts are the last dim of `x`."""
    last = rank_of(x) - 1
    return Complex(*(squeeze(slice_axis(x, last, n, n + 1), (last,)) for n in range(2)))


@aten("aten.view_as_real.default", namespace="complex")
def view_as_real(cx: Context) -> Value:
    parts = _parts(cx, "self")
    return xt.concatenate(*(unsqueeze(p, (rank_of(p),)) for p in parts), axis=rank_of(parts[0]))


@aten("aten.complex.default", namespace="complex")
def complex_(cx: Context) -> Complex:
    parts = [cx.tensor("real"), cx.tensor("imag")]
    shape = broadcast_shapes(*(tuple(xt.shape_of(p)) for p in parts))
    return Complex(*(xt.broadcast(p, shape=shape) for p in parts))


@aten("aten.polar.default", namespace="complex")
def polar(cx: Context) -> Complex:
    radius, angle = cx.tensor("abs"), cx.tensor("angle")
    return Complex(xt.mul(radius, xt.cos(angle)), xt.mul(radius, xt.sin(angle)))


@aten("aten._conj.default", "aten._conj_physical.default", "aten.conj_physical.default", namespace="complex")
def conj(cx: Context) -> Complex:
    real, imag = _parts(cx, "self")
    return Complex(real, xt.neg(imag))


@aten("aten.resolve_conj.default", namespace="complex")
def resolved(cx: Context) -> Value | Complex:
    """The same: no value here is a note of what is to be done."""
    value: Value | Complex = cx["self"]
    return value


@aten("aten._to_copy.default", namespace="complex")
def to_copy(cx: Context) -> Complex | Value:
    """Another type; the imaginary part of a real number is 0, and a real number has none."""
    kind, value = _type(cx.node), cx["self"]
    if not isinstance(value, Complex):
        return Complex(convert(value, kind), full(xt.shape_of(value), 0, kind))
    parts = [convert(p, kind) for p in (value.real, value.imag)]
    spec = cx.node.results[0]
    return Complex(*parts) if isinstance(spec, TensorSpec) and spec.dtype in REAL_OF else parts[0]


@aten("aten.mul.Tensor", "aten.mul.Scalar", namespace="complex")
def mul(cx: Context) -> Complex:
    return _product(_factor(cx, "self"), _factor(cx, "other"))


@aten(*(f"aten.{name}.default" for name in ("mm", "bmm", "matmul", "mv", "dot")), namespace="complex")
def matrix_product(cx: Context) -> Complex:
    right = next(name for name in RIGHT if name in cx.args)
    return _product(_factor(cx, "self"), _factor(cx, right), matmul)


@aten("aten.div.Tensor", "aten.div.Scalar", namespace="complex")
def div(cx: Context) -> Complex:
    """Of a complex divisor both parts are divided by the larger one first, which keeps their squares within range."""
    a, b = (_factor(cx, name) for name in ("self", "other"))
    if len(b) == 1:
        return Complex(*(xt.div(part, b[0]) for part in a))
    large = xt.maximum(*map(xt.abs, b))
    real, imag = (xt.div(part, large) for part in b)
    made = _product(a, (real, xt.neg(imag)))
    square = xt.mul(large, xt.add(xt.mul(real, real), xt.mul(imag, imag)))
    return Complex(xt.div(made.real, square), xt.div(made.imag, square))


@aten("aten.abs.default", namespace="complex")
def abs_(cx: Context) -> Value:
    return length(*_parts(cx, "self"))


@aten("aten.angle.default", namespace="complex")
def angle(cx: Context) -> Value:
    real, imag = _parts(cx, "self")
    return xt.atan2(imag, real)


@aten("aten.exp.default", namespace="complex")
def exp(cx: Context) -> Complex:
    """As far along the angle that is the imaginary part as e to the real one; of a real number a real one."""
    real, imag = _parts(cx, "self")
    radius = xt.exp(real)
    none = xt.compare(imag, scalar(0, imag), direction="eq")
    return Complex(xt.mul(radius, xt.cos(imag)), xt.select(none, imag, xt.mul(radius, xt.sin(imag))))


@aten("aten.log.default", namespace="complex")
def log(cx: Context) -> Complex:
    """The logarithm of the distance from 0, and the angle."""
    return _logarithm(*_parts(cx, "self"))


def _logarithm(real: Value, imag: Value) -> Complex:
    return Complex(xt.log(length(real, imag)), xt.atan2(imag, real))


@aten("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar", namespace="complex")
def power(cx: Context) -> Complex:
    """exp(exponent * log(self)); of small whole numbers products; 1 for the exponent 0; 0 of 0 for one
    above it, else NaN."""
    exponent = cx["exponent"]
    if exponent in (1, 2, 3) and isinstance(exponent, int | float):
        base = _factor(cx, "self")
        out = Complex(*base)
        for _ in range(int(exponent) - 1):
            out = _product((out.real, out.imag), base)
        return out
    pair = [_both(_factor(cx, name)) for name in ("self", "exponent")]
    shape = broadcast_shapes(*(tuple(xt.shape_of(parts[0])) for parts in pair))
    base, by = ([xt.broadcast(p, shape=shape) for p in parts] for parts in pair)
    log = _logarithm(*base)
    scaled = _product((log.real, log.imag), by)
    radius = xt.exp(scaled.real)
    zero, one = scalar(0, radius), scalar(1, radius)
    nothing = [xt.and_(*(xt.compare(p, zero, direction="eq") for p in parts)) for parts in (base, by)]
    of_zero = xt.select(xt.compare(by[0], zero, direction="gt"), zero, scalar(float("nan"), radius))
    real, imag = (xt.select(nothing[0], of_zero, xt.mul(radius, f(scaled.imag))) for f in (xt.cos, xt.sin))
    return Complex(xt.select(nothing[1], one, real), xt.select(nothing[1], zero, imag))


def _both(parts: Sequence[Value]) -> Sequence[Value]:
    """The parts of a number that may be real."""
    return parts if len(parts) == 2 else (parts[0], full(xt.shape_of(parts[0]), 0, element(parts[0])))


@aten("aten.eq.Tensor", "aten.eq.Scalar", "aten.ne.Tensor", "aten.ne.Scalar", namespace="complex")
def equal(cx: Context) -> Value:
    """Whether both parts are; those of a real number are itself and 0."""
    kind = next(element(v.real) for v in cx.args.values() if isinstance(v, Complex))
    pairs = [[convert(p, kind) for p in _parts(cx, name)] if isinstance(cx[name], Complex | complex)
             else [cx.value_of(cx[name], kind), xt.scalar(0, kind)] for name in ("self", "other")]
    same = xt.and_(*(xt.compare(a, b, direction="eq") for a, b in zip(*pairs, strict=True)))
    return xt.not_(same) if ".ne." in cx.node.op else same


def _product(a: Sequence[Value], b: Sequence[Value], multiply: Callable[[Value, Value], Value] = xt.mul) -> Complex:
    """Of two numbers, of which one may be real, or of matrices of complex ones."""
    if len(a) < len(b):
        a, b = b, a
    if len(b) == 1:
        return Complex(*(multiply(part, b[0]) for part in a))
    return Complex(xt.sub(multiply(a[0], b[0]), multiply(a[1], b[1])),
                   xt.add(multiply(a[0], b[1]), multiply(a[1], b[0])))


def _factor(cx: Context, name: str) -> Sequence[Value]:
    """The parts of an operand in the type of the result's; one part, where it is a real number."""
    value, kind = cx[name], _type(cx.node)
    return [convert(p, kind) for p in _parts(cx, name)] if isinstance(value, Complex | complex) \
        else [cx.value_of(value, kind)]


def _parts(cx: Context, name: str) -> Sequence[Value]:
    """The parts of an operand that is complex, a tensor or a number."""
    value = cx[name]
    if isinstance(value, complex):
        return [xt.scalar(part, _type(cx.node)) for part in (value.real, value.imag)]
    return value.real, value.imag
