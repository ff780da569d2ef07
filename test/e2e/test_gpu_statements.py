"""Products by wgmma and mma as PTX statements, whose descriptors and registers the interpreter reads."""

from __future__ import annotations

import numpy as np
import pytest
from test_gpu_warpgroup import kernel_of, program, run

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, get_pass

SIZES = {"sums on each half of m": ((128, 128, 192), (128, 128, 64), 256, 3),
         "rows of 64 bytes": ((64, 128, 128), (64, 128, 32), 256, 4),
         "two blocks of rows": ((128, 32, 128), (128, 32, 128), 128, 2),
         "rows of 32 bytes": ((64, 16, 64), (64, 16, 16), 128, 3)}


@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("name", SIZES)
def test_descriptors(name: str, form: str) -> None:
    sizes = SIZES[name]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = kernel_of(program(*sizes, form))
        get_pass("warpgroup-matrix")().run(module, PassContext())
        assert "xtg.wgmma" not in str(module) and "llvm.inline_asm" in str(module)
        run(module, sizes[0], form)


STATEMENT = """
gpu.module @m {{
  gpu.func @k(%out: memref<32xf32>) kernel {{
    %zero = arith.constant 0.0 : f32
    %word = arith.constant {word} : i32
    %t = gpu.thread_id x
    %r = llvm.inline_asm has_side_effects asm_dialect = att "{text}", "{constraints}" %zero, %zero, %zero, %zero, %word
        : (f32, f32, f32, f32, i32) -> !llvm.struct<(f32, f32, f32, f32)>
    %v = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
    memref.store %v, %out[%t] : memref<32xf32>
    gpu.return
  }}
}}
"""
MMA = ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {$0, $1, $2, $3}, {$8, $8, $8, $8}, {$8, $8}, "
       "{$0, $1, $2, $3};")


@pytest.mark.parametrize("word, early, text, want", [
    (0x38383838, "", MMA, 32.0),                # ones; not the bits of the sums: no register is shared
    (0x38383838, "&", MMA + " " + MMA, 64.0),
    (0, "&", MMA + " " + MMA, 0.0),
])
def test_registers(word: int, early: str, text: str, want: float) -> None:
    out = np.full(32, np.nan, np.float32)
    constraints = ",".join([f"={early}f"] * 4 + ["0", "1", "2", "3", "r"])
    run_kernel(STATEMENT.format(word=word, text=text, constraints=constraints), "k", (1, 1, 1), (32, 1, 1), [out])
    np.testing.assert_array_equal(out, want)


def test_other_statements_are_named() -> None:
    text = STATEMENT.format(word=0, text="bar.red $0;", constraints="=f,=f,=f,=f,0,1,2,3,r")
    with pytest.raises(UserError, match=r"does not know the PTX instruction bar\.red"):
        run_kernel(text, "k", (1, 1, 1), (32, 1, 1), [np.zeros(32, np.float32)])
