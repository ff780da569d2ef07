"""Complex numbers as a real tensor for each part, which rotary embeddings and their gradients need.

    view_as_complex(x: f32[N, 4, 2])    ->    Complex(x[..., 0], x[..., 1]), two f32[N, 4]

Other ops on complex numbers run in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.frontends.shared.helpers import convert, full, rank_of, slice_axis, squeeze, unsqueeze
from xcc.frontends.torch.context import Complex, Context
from xcc.frontends.torch.graph import REAL_OF, DType, Node, TensorSpec
from xcc.frontends.torch.registry import aten, lookup

_LINEAR = (
    "add.Tensor", "alias.default", "cat.default", "clone.default", "expand.default", "flip.default", "index.Tensor",
    "index_select.default", "mean.dim", "neg.default", "permute.default", "repeat.default", "roll.default",
    "select.int", "slice.Tensor", "split.Tensor", "split_with_sizes.default", "squeeze.default", "squeeze.dim",
    "squeeze.dims", "sub.Tensor", "sum.dim_IntList", "transpose.int", "unbind.int", "unsqueeze.default",
    "view.default", "where.self")
"""Ops of namespace aten that do the same to both parts."""


def _linear(cx: Context) -> list[Complex]:
    """The op itself, of real parts and of imaginary ones."""
    op = lookup(cx.node.op)
    assert op is not None
    node = replace(cx.node, results=tuple(map(_real_spec, cx.node.results)))
    parts = []
    for n in range(2):
        made: Any = op(replace(cx, node=node, args={name: _part(name, a, n) for name, a in cx.args.items()}))
        parts.append(made if isinstance(made, tuple | list) else (made,))
    return [Complex(*pair) for pair in zip(*parts, strict=True)]


def _part(name: str, value: Any, n: int) -> Any:
    """Part `n` of an argument; of a real number the imaginary one is 0 where it is a term, or an element, of the op."""
    if isinstance(value, Complex):
        return (value.real, value.imag)[n]
    if isinstance(value, complex):
        return (value.real, value.imag)[n]
    if isinstance(value, DType):
        return DType(REAL_OF.get(value.name, value.name))
    if name == "tensors":
        return tuple(_part("self", v, n) for v in value)
    if n and name in ("self", "other"):
        return full(xt.shape_of(value), 0, xt.element_type_of(value)) if isinstance(value, Value) else 0
    return value


def _real_spec(spec: Any) -> Any:
    return replace(spec, dtype=REAL_OF.get(spec.dtype, spec.dtype)) if isinstance(spec, TensorSpec) else spec


def _type(node: Node) -> str:
    """The element type of the parts of what the node gives."""
    return str(_real_spec(node.results[0]).dtype)


for _name in _LINEAR:
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
    length, angle = cx.tensor("abs"), cx.tensor("angle")
    return Complex(xt.mul(length, xt.cos(angle)), xt.mul(length, xt.sin(angle)))


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
    a, b = (_factor(cx, name) for name in ("self", "other"))
    if len(a) < len(b):
        a, b = b, a
    if len(b) == 1:
        return Complex(*(xt.mul(part, b[0]) for part in a))
    return Complex(xt.sub(xt.mul(a[0], b[0]), xt.mul(a[1], b[1])), xt.add(xt.mul(a[0], b[1]), xt.mul(a[1], b[0])))


def _factor(cx: Context, name: str) -> Sequence[Value]:
    """The parts of an operand in the type of the result's; one part, where it is a real number."""
    value, kind = cx[name], _type(cx.node)
    if isinstance(value, complex):
        return [xt.scalar(part, kind) for part in (value.real, value.imag)]
    return [convert(p, kind) for p in _parts(cx, name)] if isinstance(value, Complex) else [cx.value_of(value, kind)]


def _parts(cx: Context, name: str) -> tuple[Value, Value]:
    return cx[name].real, cx[name].imag
