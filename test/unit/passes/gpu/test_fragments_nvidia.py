"""mma.sync of bytes: every combination of signs, at all values, with sums that wrap."""

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.gpu.vendor.fragments_nvidia import INSTRUCTIONS

LANES = 32
RANGE = {"i8": (-128, 128), "ui8": (0, 256)}
BYTES = [i for i in INSTRUCTIONS if i.types[2] == "i32" and i.emit is not None]
KERNEL = """gpu.module @m {
  gpu.func @k(%a: memref<32x16xi8>, %b: memref<32x8xi8>, %c: memref<32x4xi32>)
      kernel attributes {known_block_size = array<i32: 32, 1, 1>, xcc.grid = "1"} {
    %t = gpu.thread_id x
    %z = arith.constant 0 : index
    %va = vector.load %a[%t, %z] : memref<32x16xi8>, vector<16xi8>
    %vb = vector.load %b[%t, %z] : memref<32x8xi8>, vector<8xi8>
    %vc = vector.load %c[%t, %z] : memref<32x4xi32>, vector<4xi32>
    vector.store %vc, %c[%t, %z] : memref<32x4xi32>, vector<4xi32>
    gpu.return
  } }"""


def packed(layout, matrix):
    """The (lanes, registers) array of a matrix."""
    return np.array([[matrix[layout.at(lane=lane, register=r)] for r in range(layout.registers)]
                     for lane in range(LANES)])


def test_all_signs_are_there():
    assert {i.types[:2] for i in BYTES} == {(a, b) for a in RANGE for b in RANGE}


@pytest.mark.parametrize("i", BYTES, ids=lambda i: i.name)
def test_the_op_multiplies(i):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(*RANGE[t], s).astype(np.int8 if t == "i8" else np.uint8)
            for t, s in zip(i.types, ((i.m, i.k), (i.k, i.n)), strict=False))
    c = rng.integers(2**31 - 9000, 2**31, (i.m, i.n)).astype(np.int32)
    out = packed(i.c, c)
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(KERNEL)
        block = module.body.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks[0]
        store = next(op for op in block.operations if op.operation.name == "vector.store")
        with ir.InsertionPoint(store):
            loads = [op.result for op in block.operations if op.operation.name == "vector.load"]
            store.operation.operands[0] = i.emit(*loads)
        run_kernel(module, "k", (1, 1, 1), (LANES, 1, 1),
                   [packed(i.a, a).view(np.int8), packed(i.b, b).view(np.int8), out])
    wanted = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)
    assert (wanted < 0).any()
    np.testing.assert_array_equal(out, packed(i.c, wanted))
