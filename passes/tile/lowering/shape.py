"""Positions, and what moves elements, of tile programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.values import index, splat_constant
from xcc.passes.tile.lowering.vectors import (
    broadcast,
    element_of,
    like,
    reduced,
    reshaped,
    shape_of,
    step,
    transposed,
    vector_of,
)

if TYPE_CHECKING:
    from xcc.dialects.xt.reading import Attrs
    from xcc.passes.tile.lowering.body import Body

_I = arith_d.CmpIPredicate


def _iota(body: Body, source: Operation, a: Attrs) -> Value:
    line = step((a.size,), 0)
    element = ir.VectorType(source.results[0].type).element_type
    return line if isinstance(element, ir.IndexType) else arith_d.index_cast(vector_of((a.size,), element), line)


def _second(shape: tuple[int, ...]) -> Value:
    """Which elements are the second along the last dim, of size 2."""
    return arith_d.cmpi(_I.eq, step(shape, len(shape) - 1), broadcast(index(1), shape))


def join(x: Value, y: Value) -> Value:
    """x and y side by side along a new last dim."""
    shape = (*shape_of(x), 2)
    a, b = (broadcast(reshaped(v, (*shape[:-1], 1)), shape) for v in (x, y))
    return arith_d.select(_second(shape), b, a)


def split(x: Value) -> list[Value]:
    """The two halves along the last dim: what is of the other half is made nothing, and added."""
    shape = shape_of(x)
    second = _second(shape)
    floats = isinstance(element_of(x), ir.FloatType)
    bits = x
    if floats:      # bits are added exactly, whatever they stand for
        bits = arith_d.bitcast(like(x, ir.IntegerType.get_signless(element_of(x).width)), x)
    none = splat_constant(bits.type, 0)
    out = [reduced(arith_d.select(second, *pair), "or", (len(shape) - 1,)) for pair in ((none, bits), (bits, none))]
    return [arith_d.bitcast(like(v, element_of(x)), v) if floats else v for v in out]


def _transpose(body: Body, source: Operation, a: Attrs, x: Value) -> Value:
    """tile.transpose: what is loaded for it alone is loaded in that order."""
    value = body.get(x)
    read = None if isinstance(value.owner, ir.Block) else value.owner
    if read is None or read.name != "vector.transfer_read" or len(list(x.uses)) > 1:
        return transposed(value, a.order)
    dims = list(ir.AffineMapAttr(read.attributes["permutation_map"]).value.results)
    rank = ir.MemRefType(read.operands[0].type).rank
    attributes = {n: read.attributes[n] for n in read.attributes}
    attributes["permutation_map"] = ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, [dims[d] for d in a.order]))
    with ir.InsertionPoint(read), read.location:
        return ir.Operation.create("vector.transfer_read", results=[source.results[0].type],
                                   operands=list(read.operands), attributes=attributes).result


HANDLERS: dict[str, Callable[..., Any]] = {
    "iota": _iota,
    "broadcast": lambda body, source, a, x: broadcast(body.get(x), a.shape),
    "reshape": lambda body, source, a, x: reshaped(body.get(x), a.shape),
    "transpose": _transpose,
    "join": lambda body, source, a, x, y: join(body.get(x), body.get(y)),
    "split": lambda body, source, a, x: split(body.get(x)),
}
