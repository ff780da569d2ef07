"""The fragments of AMD's matrix instructions: MFMA (CDNA, waves of 64) and WMMA (RDNA, waves of 32).

Sources: "AMD Instinct MI200 ISA" (CDNA2), "AMD Instinct MI300 ISA" (CDNA3) and "CDNA4 ISA", chapter "Matrix Arithmetic
Instructions", operand layouts; "RDNA3 ISA" and "RDNA4 ISA", chapter "Wave Matrix Multiply Accumulate".

MFMA m x m x k with one block: lane l holds row (column of B) l % m; its registers are consecutive k, and the lanes
l / m continue along k. C: four consecutive rows a lane from row 4 * (l / m), column l % m, further registers
further down.
WMMA 16x16x16 on RDNA3: lane l holds the whole row l % 16, both halves of the wave the same; C: rows
2 * register + l / 16.
On RDNA4: half a row, k from 8 * (l / 16); C: rows register + 8 * (l / 16).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Value, ir
from xcc.passes.gpu.layout.fragments import MatrixInstruction
from xcc.passes.gpu.layout.linear import Layout, log2

Vectors = list[tuple[int, int]]


def _bits(count: int, step: int, dim: int) -> Vectors:
    """`count` values along `dim` as basis vectors: step, 2 * step, ..."""
    return [(step << b, 0) if dim == 0 else (0, step << b) for b in range(log2(count))]


def _mfma_layouts(m: int, k: int, double: bool) -> tuple[Layout, Layout, Layout]:
    """Layouts of A (m x k), B (k x m) and C (m x m) over 64 lanes."""
    groups = 64 // m
    per_lane = k // groups
    a = Layout.make((m, k), {"register": _bits(per_lane, 1, 1), "lane": _bits(m, 1, 0) + _bits(groups, per_lane, 1)})
    if double:       # f64: the lanes of a column hold neighbouring rows
        registers, rows = _bits(m // groups, groups, 0), _bits(groups, 1, 0)
    else:
        registers = _bits(4, 1, 0) + _bits(m // (4 * groups), 4 * groups, 0)
        rows = _bits(groups, 4, 0)
    return a, a.permuted((1, 0)), Layout.make((m, m), {"register": registers, "lane": _bits(m, 1, 1) + rows})


def _wmma_layouts(whole_rows: bool, parts: int) -> tuple[Layout, Layout, Layout]:
    """Layouts of 16x16x16 `parts` over 32 lanes; `whole_rows` is RDNA3's form."""
    k = 16 * parts
    if whole_rows:
        a = Layout.make((16, k), {"register": _bits(k, 1, 1), "lane": [*_bits(16, 1, 0), (0, 0)]})
        c = Layout.make((16, 16), {"register": _bits(8, 2, 0), "lane": [*_bits(16, 1, 1), (1, 0)]})
    else:
        a = Layout.make((16, k), {"register": _bits(k // 2, 1, 1), "lane": [*_bits(16, 1, 0), (0, k // 2)]})
        c = Layout.make((16, 16), {"register": _bits(8, 1, 0), "lane": [*_bits(16, 1, 1), (8, 0)]})
    return a, a.permuted((1, 0)), c


def _operation(name: str, m: int, n: int, k: int, **more: Any) -> Callable[[Any, Any, Any], Any]:
    """Builds the amdgpu op; one-element operands are passed as scalars."""
    def emit(a: Value, b: Value, c: Value) -> Value:
        def scalar(value: Value) -> Value:
            if ir.VectorType(value.type).shape[0] > 1:
                return value
            return ir.Operation.create("vector.extract", results=[ir.VectorType(value.type).element_type],
                                       operands=[value],
                                       attributes={"static_position": ir.DenseI64ArrayAttr.get([0])}).result

        i32 = ir.IntegerType.get_signless(32)
        numbers = {"m": m, "n": n, "k": k, **{key: v for key, v in more.items() if isinstance(v, int)}}
        attributes = {key: ir.IntegerAttr.get(i32, v) for key, v in numbers.items()}
        attributes |= {key: ir.Attribute.parse(v) for key, v in more.items() if isinstance(v, str)}
        return ir.Operation.create(name, results=[c.type], operands=[scalar(a), scalar(b), c],
                                   attributes=attributes).result

    return emit


def _mfma(family: str, m: int, k: int, kind: str, result: str = "f32", lossy: bool = False, parts: int = 1
          ) -> MatrixInstruction:
    more: dict[str, Any] = {"blocks": 1, "cbsz": 0, "abid": 0, "blgp": "#rocdl<mfma_perm_b none>"}
    if lossy:
        more["reducePrecision"] = "unit"
    a, b, c = _mfma_layouts(m, k * parts, kind == "f64")
    return MatrixInstruction(f"mfma.m{m}n{m}k{k}.{'xf32' if lossy else kind}{_times(parts)}", family, m, m, k * parts,
                             a, b, c, (kind, kind, result), _operation("amdgpu.mfma", m, m, k, **more),
                             exact=not lossy, parts=parts)


def _wmma(family: str, kind: str, result: str = "f32", parts: int = 1, right: str = "") -> MatrixInstruction:
    """right: B's element type, where it is another than A's."""
    a, b, c = _wmma_layouts(family == "wmma-rdna3", parts)
    kinds = kind, right or kind
    unsigned = {f"unsigned{side}": "unit" for side, t in zip("AB", kinds, strict=True) if t == "ui8"}
    name = ".".join(dict.fromkeys(kinds))
    return MatrixInstruction(f"wmma.m16n16k16.{name}{_times(parts)}", family, 16, 16, 16 * parts, a, b, c,
                             (*kinds, result), _operation("amdgpu.wmma", 16, 16, 16, subwordOffset=0, **unsigned),
                             parts=parts)


def _wmma_bytes(family: str, parts: int = 1) -> tuple[MatrixInstruction, ...]:
    """Products of bytes of any signs; MFMA takes signed ones alone."""
    return tuple(_wmma(family, a, "i32", parts, b) for a in ("i8", "ui8") for b in ("i8", "ui8"))


def _times(parts: int) -> str:
    return f"x{parts}" if parts > 1 else ""


def _both(family: str, large_k: int, small_k: int, kind: str, result: str = "f32", lossy: bool = False, parts: int = 1
          ) -> tuple[MatrixInstruction, ...]:
    """The 32x32 form and the 16x16 form of twice its k: in `parts` that fill 16 bytes of a lane, then singly."""
    counts = (parts, 1) if parts > 1 else (1,)
    return tuple(_mfma(family, m, k, kind, result, lossy, p) for p in counts for m, k in ((32, large_k), (16, small_k)))


INSTRUCTIONS = (
    # parts make the k that a lane holds 16 bytes: one LDS read
    # CDNA4 before what it shares with CDNA3: twice the k an instruction
    *_both("mfma-cdna4", 16, 32, "f16"), *_both("mfma-cdna4", 16, 32, "bf16"),
    *_both("mfma-cdna4", 32, 64, "i8", "i32"),
    *_both("mfma-cdna4", 16, 32, "f8E4M3FN", parts=2), *_both("mfma-cdna4", 16, 32, "f8E5M2", parts=2),
    *_both("mfma-cdna3", 16, 32, "i8", "i32", parts=2),
    *_both("mfma-cdna3-f8", 16, 32, "f8E4M3FNUZ", parts=2), *_both("mfma-cdna3-f8", 16, 32, "f8E5M2FNUZ", parts=2),
    *_both("mfma-cdna2", 8, 16, "i8", "i32", parts=4),
    *_both("mfma", 8, 16, "f16", parts=2), *_both("mfma", 8, 16, "bf16", parts=2),
    *_both("mfma-xf32", 4, 8, "f32", lossy=True, parts=2),
    *_both("mfma", 2, 4, "f32", parts=4),
    _mfma("mfma", 16, 4, "f64", "f64"),
    _wmma("wmma-rdna3", "f16"), _wmma("wmma-rdna3", "bf16"), *_wmma_bytes("wmma-rdna3"),
    _wmma("wmma-rdna4", "f16"), _wmma("wmma-rdna4", "bf16"),
    *_wmma_bytes("wmma-rdna4", 2), *_wmma_bytes("wmma-rdna4"),
    *(_wmma("wmma-rdna4", kind, "f32", parts) for parts in (2, 1) for kind in ("f8E4M3FN", "f8E5M2")),
)
