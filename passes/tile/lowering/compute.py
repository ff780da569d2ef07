"""Products, reductions, scans and sorts of tile programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.attributes import REVERSE
from xcc.passes.shared.values import op, splat_constant
from xcc.passes.tile.lowering.vectors import (
    element_of,
    kind_attr,
    like,
    narrowed,
    neutral,
    reduced,
    reshaped,
    shape_of,
    transposed,
    vector_of,
    widened,
)

if TYPE_CHECKING:
    from xcc.dialects.xt.reading import Attrs
    from xcc.passes.tile.lowering.body import Body


def _contract(body: Body, source: Operation, a: Attrs, x: Value, y: Value, acc: Value) -> Value:
    lhs, rhs, start = (body.get(v) for v in (x, y, acc))
    narrow = element_of(start)
    if isinstance(narrow, ir.FloatType) and narrow.width < 32:
        start = arith_d.extf(like(start, ir.F32Type.get()), start)
    rank = len(shape_of(lhs))
    batch = list(range(rank - 2))
    m, n, k = rank - 2, rank - 1, rank
    maps = [ir.AffineMap.get(rank + 1, 0, [ir.AffineDimExpr.get(d) for d in (*batch, *dims)])
            for dims in ((m, k), (k, n), (m, n))]
    kinds = [ir.Attribute.parse(f"#vector.iterator_type<{'reduction' if d == k else 'parallel'}>")
             for d in range(rank + 1)]
    signs = {"xcc.unsigned": ir.DenseI64ArrayAttr.get(list(a.unsigned))} if a.unsigned else {}
    made = op("vector.contract", [start.type], [lhs, rhs, start], kind=ir.Attribute.parse("#vector.kind<add>"),
              indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(v) for v in maps]),
              iterator_types=ir.ArrayAttr.get(kinds), **signs)
    return arith_d.truncf(like(made, narrow), made) if element_of(made) != narrow else made


def _scan(body: Body, source: Operation, a: Attrs, x: Value) -> Value:
    value = body.get(x)
    shape, element = shape_of(value), element_of(value)
    order = [d for d in range(len(shape)) if d != a.axis] + [a.axis]
    wide = widened(transposed(value, order), a.kind)
    rows = [prod(shape) // shape[a.axis], shape[a.axis]]
    line = reshaped(wide, rows)
    start = splat_constant(vector_of(rows[:1], element_of(line)), neutral(a.kind, element_of(line)))
    i64 = ir.IntegerType.get_signless(64)
    more = {REVERSE: ir.UnitAttr.get()} if a.reverse else {}
    made = ir.Operation.create("vector.scan", results=[line.type, start.type], operands=[line, start], attributes={
        "kind": kind_attr(a.kind, element_of(line)), "reduction_dim": ir.IntegerAttr.get(i64, 1),
        "inclusive": ir.BoolAttr.get(not a.exclusive), **more}).results[0]
    back = [order.index(d) for d in range(len(shape))]
    return transposed(reshaped(narrowed(made, element), [shape[d] for d in order]), back)


def _sort(body: Body, source: Operation, a: Attrs, words: Sequence[Value]) -> list[Value]:
    values = [widened(body.get(w), "") for w in words]
    kinds = [vector_of(ir.VectorType(r.type).shape, element_of(v)) for r, v in zip(source.results, values, strict=True)]
    made = ir.Operation.create("tile.sort", results=kinds, operands=values, attributes={
        "keep": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), a.keep)})
    return [narrowed(v, ir.VectorType(r.type).element_type)
            for v, r in zip(made.results, source.results, strict=True)]


HANDLERS: dict[str, Callable[..., Any]] = {
    "contract": _contract,
    "reduce": lambda body, source, a, x: reduced(body.get(x), a.kind, a.axes),
    "scan": _scan,
    "sort": _sort,
}
