"""The fragments of NVIDIA's warp-level mma.sync (PTX ISA, "Matrix Fragments for mma.m16n8k*").

With g = lane / 4 and t = lane % 4: A's rows are g and g + 8, B's column is g, C's rows are g and g + 8 and its columns
2t and 2t + 1. A lane holds 4 bytes of consecutive k from k = t * (4 bytes) of each half of the k range.

wgmma is issued by four warps, each of which holds 16 rows of C in the same form; A and B are in shared memory.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Attribute, Value, ir, vector_d
from xcc.passes.gpu.layout.fragments import MatrixInstruction
from xcc.passes.gpu.layout.linear import Layout, log2
from xcc.passes.gpu.vendor.truncated import nearest

MMA = "xtg.mma"     # what nvgpu.mma.sync has no types for, and integers, whose sums it saturates
F8 = ("f8E4M3FN", "f8E5M2")
BYTES = ("i8", "ui8")
COLUMNS = (16, 32, 64, 128, 256)    # of wgmma


def _a(k: int, per: int) -> Layout:
    inside = [(0, 1 << b) for b in range(log2(per))]
    return Layout.make((16, k), {"register": [*inside, (8, 0), (0, 4 * per)],
                                 "lane": [(0, per), (0, 2 * per), (1, 0), (2, 0), (4, 0)]})


def _b(k: int, per: int) -> Layout:
    inside = [(1 << b, 0) for b in range(log2(per))]
    return Layout.make((k, 8), {"register": [*inside, (4 * per, 0)],
                                "lane": [(per, 0), (2 * per, 0), (0, 1), (0, 2), (0, 4)]})


_C = Layout.make((16, 8), {"register": [(0, 1), (8, 0)], "lane": [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]})


def _emit_mma(k: int, per: int) -> Any:
    def emit(a: Value, b: Value, c: Value) -> Value:
        def shaped(v: Value) -> Value:
            t = ir.VectorType(v.type)
            inner = 2 if v is c else per
            return vector_d.shape_cast(ir.VectorType.get([t.shape[0] // inner, inner], t.element_type), v)

        rounded = ir.VectorType(a.type).element_type == ir.F32Type.get()
        operands = [*(shaped(nearest(v) if rounded else v) for v in (a, b)), shaped(c)]
        i64 = ir.IntegerType.get_signless(64)
        attributes = {"mmaShape": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, x) for x in (16, 8, k)])}
        if rounded:
            attributes["tf32Enabled"] = ir.UnitAttr.get()
        op = ir.Operation.create("nvgpu.mma.sync", results=[operands[2].type], operands=operands,
                                 attributes=attributes)
        return vector_d.shape_cast(c.type, op.results[0])

    return emit


def _mma(k: int, per: int, types: tuple[str, str, str], exact: bool = True) -> MatrixInstruction:
    name = f"mma.m16n8k{k}.{types[0] if exact else 'tf32'}"
    return MatrixInstruction(name, "mma", 16, 8, k, _a(k, per), _b(k, per), _C, types, _emit_mma(k, per), exact)


def _wgmma(n: int, types: tuple[str, str, str], size: int = 2) -> MatrixInstruction:
    """Of elements of `size` bytes; where these are not two, they must lie in rows along k. Of f32 it reads tf32."""
    inside, k = [(0, 8 << b) for b in range(log2(n // 8))], 32 // size
    c = Layout.make((64, n), {"register": [*_C.basis("register"), *inside], "lane": _C.basis("lane"),
                              "warp": [(16, 0), (32, 0)]})
    a = Layout.make((64, k), {**dict(_a(k, 4 // size).bases), "warp": [(16, 0), (32, 0)]})     # where A is in registers
    name = ".".join(types[:2] if size == 1 else types[:1] if size == 2 else ("tf32",))
    return MatrixInstruction(f"wgmma.m64n{n}k{k}.{name}", "wgmma", 64, n, k, a, Layout.make((k, n), {}), c, types,
                             None, exact=size < 4, warps=4)


def _mma_bytes(family: str, types: tuple[str, str, str]) -> MatrixInstruction:
    """Bytes of any signs, and f8 (sm_89 and newer), as ``xtg.mma`` (passes/gpu/warpgroup_matrix.py)."""
    def emit(a: Value, b: Value, c: Value) -> Value:
        sizes = {name: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)
                 for name, n in (("m", 16), ("n", 8), ("k", 32))}
        return ir.Operation.create(MMA, results=[c.type], operands=[a, b, c],
                                   attributes={**sizes, "types": _names(types)}).results[0]

    return MatrixInstruction(f"mma.m16n8k32.{types[0]}.{types[1]}", family, 16, 8, 32, _a(32, 4), _b(32, 4), _C, types,
                             emit)


def _names(types: tuple[str, str, str]) -> Attribute:
    return ir.ArrayAttr.get([ir.StringAttr.get(t) for t in types[:2]])


INSTRUCTIONS = (
    _mma(16, 2, ("f16", "f16", "f32")),
    _mma(16, 2, ("bf16", "bf16", "f32")),
    *(_mma_bytes("mma", (a, b, "i32")) for a in BYTES for b in BYTES),
    _mma(8, 1, ("f32", "f32", "f32"), exact=False),
    *(_mma_bytes("mma-f8", (element, element, "f32")) for element in F8),
    *(_wgmma(n, (t, t, "f32")) for n in COLUMNS for t in ("f16", "bf16")),
    *(_wgmma(n, (a, b, "i32"), 1) for n in COLUMNS for a in BYTES for b in BYTES),
    *(_wgmma(n, ("f32", "f32", "f32"), 4) for n in COLUMNS),
)
