"""Conversions inside a warp, as per-thread code in the interpreter: what was read is what is written."""

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, get_pass
from xcc.targets.nvptx.chip import chips

PROGRAM = """
func.func @copy(%a: memref<8x32x{t}>, %o: memref<8x32x{t}>)
    attributes {{xt.kernel, xcc.config = {{gpu = {{threads = 64 : i64}}}}}} {{
  %c0 = arith.constant 0 : index
  %pad = arith.constant {zero} : {t}
  scf.forall (%i) in (1) {{
    %x = vector.transfer_read %a[%c0, %c0], %pad {{in_bounds = [true, true], xcc.layout = ["{source}"]}}
        : memref<8x32x{t}>, vector<8x32x{t}>
    %y = builtin.unrealized_conversion_cast %x : vector<8x32x{t}> to vector<8x32x{t}> {{xcc.layout = ["{target}"]}}
    vector.transfer_write %y, %o[%c0, %c0] {{in_bounds = [true, true], xcc.layout = ["{target}"]}}
        : vector<8x32x{t}>, memref<8x32x{t}>
  }}
  return
}}
"""
ROWS = "tile=[8,32] register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"
COLUMNS = "tile=[8,32] register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[4,0]]"
PAIRS = "tile=[8,32] register=[[0,1],[1,0]] lane=[[0,2],[0,4],[0,8],[0,16],[2,0]] warp=[[4,0]]"


@pytest.mark.parametrize("kind, target, shuffles", [("f32", COLUMNS, 4), ("f16", PAIRS, 2), ("i8", PAIRS, 4)])
def test_copy(kind, target, shuffles):
    dtype = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[kind]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        zero = "0" if kind == "i8" else "0.0"
        module = ir.Module.parse(PROGRAM.format(t=kind, zero=zero, source=ROWS, target=target))
        for name in ("convert-layouts", "distribute"):
            get_pass(name)().run(module, PassContext(chip=chips()["sm_80"]))
        text = str(module)
        assert text.count("gpu.shuffle") <= shuffles and "gpu.shuffle" in text and "gpu.barrier" not in text
        x = np.random.default_rng(0).integers(-100, 100, (8, 32)).astype(dtype)
        out = np.zeros_like(x)
        run_kernel(module, "copy", (1, 1, 1), (64, 1, 1), [x, out], dynamic_shared=0)
        np.testing.assert_array_equal(out, x)
