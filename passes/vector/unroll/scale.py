"""x * 2**n on chips with an instruction for it: AVX-512's vscalef, rounded once, subnormal results included."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.lanes import SCALE, Lanes
from xcc.passes.shared.values import op, scalar_attr, splat_constant, vec
from xcc.passes.vector.math.elementary import in_two_steps
from xcc.passes.vector.unroll.unroller import Unroller, unrolls

_WIDTHS = {16: "512", 8: "256", 4: "128"}
_ALL = {16: -1, 8: -1, 4: 15}        # masks of all lanes
_CURRENT_ROUNDING = 4


@unrolls(SCALE)
def _scale(u: Unroller, o: Operation) -> None:
    """Chunks of a width that the instruction has, which takes n in f32; others in two steps."""
    x, exponent, whole = (u.tiles[v] for v in o.operands)
    out = u.new(o.results[0])
    seen: dict[tuple[Value, Value, Value], Value] = {}
    for key in out.keys():
        at = (x.chunk(key), exponent.chunk(key), whole.chunk(key))
        if at not in seen:
            seen[at] = _scalef(*at[:2]) if out.width(key) in _WIDTHS else in_two_steps(Lanes(at[0]), Lanes(at[2])).v
        out.chunks[key] = seen[at]
    u.set(o, out)


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
