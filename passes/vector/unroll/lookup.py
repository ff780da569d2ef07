"""Numbers looked up by lanes: AVX-512's vpermps, a table of 16 in a register."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.lanes import LOOKUP
from xcc.passes.shared.values import op, vec
from xcc.passes.vector.unroll.unroller import Unroller, unrolls

ENTRIES = 16


@unrolls(LOOKUP)
def _lookup(u: Unroller, o: Operation) -> None:
    n = u.tiles[o.operands[0]]
    out = u.new(o.results[0])
    table = op("arith.constant", [vec(ENTRIES, ir.F32Type.get())], [], value=ir.DenseElementsAttr.get(
        [ir.FloatAttr.get_f32(x) for x in ir.DenseF32ArrayAttr(o.attributes["table"])], vec(ENTRIES, ir.F32Type.get())))
    seen: dict[Value, Value] = {}
    for key in out.keys():
        at = n.chunk(key)
        if at not in seen:
            seen[at] = _permuted(table, at, out.width(key))
        out.chunks[key] = seen[at]
    u.set(o, out)


def _permuted(table: Value, n: Value, width: int) -> Value:
    """`table` at `width` numbers, which are a vector's first where they are fewer than a register's."""
    f32 = ir.F32Type.get()
    if width < ENTRIES:
        n = op("vector.shuffle", [vec(ENTRIES, ir.IntegerType.get_signless(32))], [n, n],
               mask=ir.DenseI64ArrayAttr.get([min(i, width - 1) for i in range(ENTRIES)]))
    found = op("llvm.call_intrinsic", [vec(ENTRIES, f32)], [table, n], op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
               intrin=ir.StringAttr.get("llvm.x86.avx512.permvar.sf.512"),
               operandSegmentSizes=ir.DenseI32ArrayAttr.get([2, 0]))
    if width == ENTRIES:
        return found
    return op("vector.shuffle", [vec(width, f32)], [found, found], mask=ir.DenseI64ArrayAttr.get(list(range(width))))
