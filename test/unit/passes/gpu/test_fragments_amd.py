"""AMD's fragment tables: each covers its tile and agrees with the interpreter's tables; its op computes A B + C."""

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.interpreter.ops_matrix import mfma_fragments, wmma_fragments
from xcc.interpreter.types import DTYPES
from xcc.passes.base import PassContext
from xcc.passes.gpu.layout.fragments import select_instruction
from xcc.passes.gpu.layout.registers import select_registers
from xcc.passes.gpu.vendor.fragments_amd import INSTRUCTIONS
from xcc.passes.pipeline import Pipeline
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.emit import assembly
from xcc.targets.amdgcn.pipeline import rocdl_stage
from xcc.targets.gpu_module import kernel_llvm_ir


def name(i):
    return f"{i.family}-{i.name}"


def lanes(i):
    return i.a.size("lane")


@pytest.mark.parametrize("i", INSTRUCTIONS, ids=name)
def test_each_fragment_covers_its_tile(i):
    for layout, shape in ((i.a, (i.m, i.k)), (i.b, (i.k, i.n)), (i.c, (i.m, i.n))):
        assert layout.shape == shape
        assert layout.rank == layout.total_bits
        # RDNA3 holds A and B in both halves of the wave
        assert layout.is_injective() or (i.family == "wmma-rdna3" and layout is not i.c)


@pytest.mark.parametrize("i", INSTRUCTIONS, ids=name)
def test_tables_agree_with_the_interpreters(i):
    if i.name.startswith("mfma"):
        tables = mfma_fragments(i.m, i.n, i.k, i.types[2] == "f64")
    else:
        tables = wmma_fragments(i.k, i.a.registers)
    for layout, table in zip((i.a, i.b, i.c), tables, strict=True):
        for lane in range(lanes(i)):
            for register in range(layout.registers):
                assert layout.at(lane=lane, register=register) == (table.row[lane, register],
                                                                   table.column[lane, register])


def kernel_text(i) -> str:
    """Each thread loads its fragments in register order from (lanes, registers) arrays, and stores C likewise."""
    kinds = [kind.removeprefix("u") for kind in i.types]
    a, b, c = (f"vector<{layout.registers}x{kind}>" for layout, kind in zip((i.a, i.b, i.c), kinds, strict=True))
    ma, mb, mc = (f"memref<{lanes(i)}x{layout.registers}x{kind}>"
                  for layout, kind in zip((i.a, i.b, i.c), kinds, strict=True))
    return f"""gpu.module @m {{
      gpu.func @k(%a: {ma}, %b: {mb}, %c: {mc}, %d: {mc})
          kernel attributes {{known_block_size = array<i32: {lanes(i)}, 1, 1>, xcc.grid = "1"}} {{
        %t = gpu.thread_id x
        %z = arith.constant 0 : index
        %va = vector.load %a[%t, %z] : {ma}, {a}
        %vb = vector.load %b[%t, %z] : {mb}, {b}
        %vc = vector.load %c[%t, %z] : {mc}, {c}
        vector.store %vc, %d[%t, %z] : {mc}, {c}
        gpu.return
      }} }}"""


def built(i):
    """The kernel with the instruction between its loads and its store."""
    module = ir.Module.parse(kernel_text(i))
    block = module.body.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks[0]
    loads = [op.result for op in block.operations if op.operation.name == "vector.load"]
    store = next(op for op in block.operations if op.operation.name == "vector.store")
    with ir.InsertionPoint(store), ir.Location.unknown():
        a, b, c = loads
        for part in range(i.parts):
            c = i.emit(select_registers(a, i.part(part, 0)), select_registers(b, i.part(part, 1)), c)
        store.operation.operands[0] = c
    module.operation.verify()
    return module


def packed(layout, matrix):
    """The (lanes, registers) array of a matrix."""
    return np.array([[matrix[layout.at(lane=lane, register=r)] for r in range(layout.registers)]
                     for lane in range(layout.size("lane"))])


def random(shape, kind, rng):
    """Numbers of which exact instructions lose nothing; bytes of all values, sums at the end of their range."""
    if kind in ("i8", "ui8"):
        return rng.integers(*((-128, 128) if kind == "i8" else (0, 256)), shape).astype(DTYPES[kind])
    if kind == "i32":
        return rng.integers(2**31 - 9000, 2**31, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(DTYPES[kind])


@pytest.mark.parametrize("i", INSTRUCTIONS, ids=name)
def test_the_op_multiplies(i):
    rng = np.random.default_rng(3)
    a, b, c = (random(s, t, rng) for s, t in zip(((i.m, i.k), (i.k, i.n), (i.m, i.n)), i.types, strict=True))
    out = np.zeros((lanes(i), i.c.registers), DTYPES[i.types[2]])
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        run_kernel(built(i), "k", (1, 1, 1), (lanes(i), 1, 1),
                   [packed(i.a, a), packed(i.b, b), packed(i.c, c), out], options=Options(warp=lanes(i)))
    if i.types[2] == "i32":
        wanted = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)
        np.testing.assert_array_equal(out, packed(i.c, wanted))
        return
    wanted = a.astype(float) @ b.astype(float) + c.astype(float)
    np.testing.assert_allclose(out, packed(i.c, wanted), rtol=1e-5 if i.exact else 1e-2, atol=1e-5 if i.exact else 1e-2)


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda c: c.name)
def test_every_instruction_of_a_chip_is_in_its_assembly(chip):
    for i in INSTRUCTIONS:
        if i.family not in chip.matrix:
            continue
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True
            module = built(i)
            Pipeline.parse(rocdl_stage(chip)).run(module, PassContext(chip=chip))
            listing = assembly(kernel_llvm_ir(module), chip)
        size = f"{i.m}x{i.n}x{i.k // i.parts}"
        matrix = [line for line in listing.split("\n") if line.strip().startswith(("v_mfma", "v_wmma"))]
        assert len(matrix) == i.parts and all(size in line for line in matrix), i.name


def test_the_chip_takes_its_largest_k():
    types = ("f16", "f16", "f32")
    assert select_instruction(CHIPS["gfx950"], types, (64, 64, 32)).name == "mfma.m32n32k16.f16"
    assert select_instruction(CHIPS["gfx942"], types, (64, 64, 32)).name == "mfma.m32n32k8.f16x2"
    assert select_instruction(CHIPS["gfx942"], types, (16, 16, 32)).name == "mfma.m16n16k16.f16x2"
    assert select_instruction(CHIPS["gfx1201"], types, (16, 16, 16)).family == "wmma-rdna4"
    f32 = ("f32", "f32", "f32")
    assert select_instruction(CHIPS["gfx942"], f32, (32, 32, 8)).name == "mfma.m32n32k2.f32x4"
    assert select_instruction(CHIPS["gfx942"], f32, (32, 32, 8), lossy=True).name == "mfma.m32n32k4.xf32x2"
    assert select_instruction(CHIPS["gfx1100"], f32, (32, 32, 8)) is None
