"""Instructions of AVX-512 on lanes: numbers looked up in a table of 16 in a register (vpermps), and x * 2**n (vscalef),
rounded once, subnormal results included."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.lanes import LOOKUP, SCALE, Lanes
from xcc.passes.shared.values import op, scalar_attr, splat_constant, vec
from xcc.passes.vector.math.elementary import LOWEST, in_two_steps
from xcc.passes.vector.unroll.unroller import Unroller, unrolls

ENTRIES = 16        # of a table in a register
_WIDTHS = {16: "512", 8: "256", 4: "128"}
_ALL = {16: -1, 8: -1, 4: 15}        # masks of all lanes
_CURRENT_ROUNDING = 4


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


@unrolls(SCALE)
def _scale(u: Unroller, o: Operation) -> None:
    """Chunks of a width that the instruction has, which takes n in f32; others in two steps."""
    x, exponent, whole = (u.tiles[v] for v in o.operands)
    out = u.new(o.results[0])
    seen: dict[tuple[Value, Value, Value], Value] = {}
    for key in out.keys():
        at = (x.chunk(key), exponent.chunk(key), whole.chunk(key))
        if at not in seen:
            seen[at] = _scalef(*at[:2]) if out.width(key) in _WIDTHS else _in_two_steps(Lanes(at[0]), Lanes(at[2])).v
        out.chunks[key] = seen[at]
    u.set(o, out)


def _in_two_steps(x: Lanes, n: Lanes) -> Lanes:
    least = int(LOWEST)
    return in_two_steps(x, n.compare("slt", least).select(n.const(least), n))


def _scalef(x: Value, n: Value) -> Value:
    width = ir.VectorType(x.type).shape[0]
    bits = ir.IntegerType.get_signless(max(8, width))
    mask = op("llvm.mlir.constant", [bits], [], value=ir.IntegerAttr.get(bits, _ALL[width]))
    operands = [x, n, splat_constant(vec(width, ir.F32Type.get()), 0.0), mask]
    if width == 16:
        i32 = ir.IntegerType.get_signless(32)
        operands.append(op("llvm.mlir.constant", [i32], [], value=scalar_attr(i32, _CURRENT_ROUNDING)))
    return op("llvm.call_intrinsic", [x.type], operands, op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
              intrin=ir.StringAttr.get(f"llvm.x86.avx512.mask.scalef.ps.{_WIDTHS[width]}"),
              operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]))
