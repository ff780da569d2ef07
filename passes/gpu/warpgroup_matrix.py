"""Warpgroup instructions as PTX text: descriptors of shared memory, and one asm statement for the steps of a tile.

    %r = "xtg.wgmma"(%acc, %a, %a_at, %b, %b_at) {m = 64, n = 128, k = 16, a = {near_k = true, row = 128, ...}, ...}
    ->
    %d = descriptors of A (or its registers) and B, from the addresses of the memrefs and the offsets
    %s = llvm.inline_asm "wgmma.mma_async ...; add.s64 ...; wgmma.mma_async ...;" %acc[0], ..., %d : !llvm.struct<...>

A descriptor (PTX ISA, "Matrix Descriptor Format") holds the first address, two distances, all in units of 16 bytes, and
the swizzle. ``xtg.wgmma_wait`` passes the accumulators through its statement, so that nothing reads them before it.
``xtg.mma`` is a warp's instruction on types for which nvgpu.mma.sync has none (f8), and on bytes of any signs, whose
sums wrap. `types` of both names the elements of A and B.
"""

from __future__ import annotations

from xcc._mlir import Attribute, Module, Operation, Value, arith_d, ir, memref_d, vector_d
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.vendor.fragments_nvidia import MMA
from xcc.passes.gpu.vendor.inline_asm import inline_asm
from xcc.passes.gpu.vendor.warpgroup import MULTIPLY, WAIT
from xcc.passes.walk import ops_where

SWIZZLES = {128: 1, 64: 2, 32: 3}
UNIT = 16           # bytes
NAMES = {"f32": "tf32", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "i8": "s8", "ui8": "u8"}


@register_pass
class WarpgroupMatrix(Pass):
    """Writes ``xtg.wgmma``, ``xtg.wgmma_wait`` and ``xtg.mma`` as inline assembly."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for op in ops_where(module, lambda op: op.name in _WRITE):
            with op.location, ir.InsertionPoint(op):
                for old, new in zip(op.results, _WRITE[op.name](op), strict=True):
                    old.replace_all_uses_with(new)
            op.erase()


def _multiply(op: Operation) -> list[Value]:
    acc, *a, b, b_at = op.operands
    size = ir.MemRefType(b.type).element_type.width // 8
    count = ir.VectorType(acc.type).shape[0]
    m, n, k = (op.attributes[name].value for name in "mnk")
    types = [ir.StringAttr(t).value for t in op.attributes["types"]]
    total = "f32" if isinstance(ir.VectorType(acc.type).element_type, ir.FloatType) else "s32"
    kinds = ".".join(NAMES.get(t, t) for t in types)
    sides = [ir.DictAttr(op.attributes[name]) for name in "ab" if name in op.attributes]
    steps = [[n * size // UNIT for n in ir.DenseI64ArrayAttr(s["steps"])] for s in sides]
    transposed = [int(not s["near_k"].value) for s in sides]
    if size != 2 and any(transposed):
        raise CompilerBug("wgmma reads elements that do not have two bytes from rows along k alone")
    scales = ", 1, 1" if total == "f32" else ""
    last = "p" + scales + "".join(f", {t}" for t in transposed if size == 2)
    held = "{" + ", ".join(f"${r}" for r in range(count)) + "}"
    # the fence behind what writes the statement's registers, and be it a copy of LLVM's
    lines = [".reg .b64 a, b;", ".reg .pred p;", "setp.eq.b32 p, 1, 1;", "wgmma.fence.sync.aligned;"]
    packed = _packed(a[0]) if len(a) == 1 else []
    left_at = [_descriptor(a[0], a[1], sides[0], size)] if len(a) == 2 else []
    inputs = [*packed, *left_at, _descriptor(b, b_at, sides[-1], size)]
    first = 2 * count
    for number, step in enumerate(steps[-1]):
        if packed:
            per = len(packed) // len(steps[-1])
            left = "{" + ", ".join(f"${first + number * per + r}" for r in range(per)) + "}"
        else:
            left = "a"
            lines.append(f"add.s64 a, ${first}, {steps[0][number]};")
        lines += [f"add.s64 b, ${first + len(inputs) - 1}, {step};",
                  f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{total}.{kinds} {held}, {left}, b, {last};"]
    return _statement("{" + " ".join(lines) + "}", [acc], inputs)


def _packed(value: Value) -> list[Value]:
    """The elements of a vector in registers of 32 bits."""
    i32 = ir.VectorType.get([1], ir.IntegerType.get_signless(32))
    kind = ir.VectorType(value.type)
    per = 32 // kind.element_type.width
    words = [vector_d.shuffle(value, value, list(range(r, r + per))) for r in range(0, kind.shape[0], per)]
    return [vector_d.extract(vector_d.bitcast(i32, word), [], [0]) for word in words]


def _mma(op: Operation) -> list[Value]:
    a, b, acc = op.operands
    kinds = ".".join(NAMES[ir.StringAttr(t).value] for t in op.attributes["types"])
    total = "f32" if isinstance(ir.VectorType(acc.type).element_type, ir.FloatType) else "s32"
    m, n, k = (op.attributes[name].value for name in "mnk")
    inputs = [_packed(a), _packed(b)]
    held = "{" + ", ".join(f"${r}" for r in range(4)) + "}"
    first, sides = 8, []
    for words in inputs:
        sides.append("{" + ", ".join(f"${first + r}" for r in range(len(words))) + "}")
        first += len(words)
    return _statement(f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{total}.{kinds}.{total} {held}, {sides[0]}, {sides[1]}, "
                      f"{held};", [acc], inputs[0] + inputs[1])


def _wait(op: Operation) -> list[Value]:
    return _statement("wgmma.wait_group.sync.aligned 0;", list(op.operands), [])


def _descriptor(memory: Value, at: Value, side: Attribute, size: int) -> Value:
    """The 64 bits that describe the tile whose first element is number `at` of `memory`."""
    i64 = ir.IntegerType.get_signless(64)

    def number(value: int) -> Value:
        return arith_d.constant(i64, value)

    base = arith_d.index_cast(i64, memref_d.extract_aligned_pointer_as_index(memory))
    byte = arith_d.addi(base, arith_d.muli(arith_d.index_cast(i64, at), number(size)))
    start = arith_d.shrui(arith_d.andi(byte, number((1 << 18) - 1)), number(4))
    rows, blocks = side["rows"].value // UNIT, max(1, side["blocks"].value // UNIT)
    fixed = blocks << 16 | rows << 32 | SWIZZLES[side["row"].value] << 62
    return arith_d.ori(start, number(fixed - (1 << 64) if fixed >> 63 else fixed))


def _statement(text: str, vectors: list[Value], inputs: list[Value]) -> list[Value]:
    """An asm statement that changes all registers of `vectors` in place; their new values."""
    scalars = [vector_d.extract(v, [], [i]) for v in vectors for i in range(ir.VectorType(v.type).shape[0])]
    count = len(scalars)
    element = scalars[0].type
    struct = ir.Type.parse("!llvm.struct<(" + ", ".join([str(element)] * count) + ")>")
    kinds = ["r" if v.type == ir.IntegerType.get_signless(32) else "l" for v in inputs]
    constraints = [*["=f" if isinstance(element, ir.FloatType) else "=r"] * count, *map(str, range(count)), *kinds]
    result = inline_asm(text, ",".join(constraints), [struct], [*scalars, *inputs])
    values = [ir.Operation.create("llvm.extractvalue", results=[element], operands=[result], attributes={
        "position": ir.DenseI64ArrayAttr.get([i])}).results[0] for i in range(count)]
    out = []
    for v in vectors:
        n = ir.VectorType(v.type).shape[0]
        out.append(vector_d.from_elements(v.type, values[:n]))
        values = values[n:]
    return out


_WRITE = {MULTIPLY: _multiply, WAIT: _wait, MMA: _mma}
