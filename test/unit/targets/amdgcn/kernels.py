"""Hand-written kernels at stage `gpu` for the tests of AMD code generation."""

from xcc._mlir import ir
from xcc.passes.base import PassContext
from xcc.passes.pipeline import Pipeline
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.pipeline import rocdl_stage

SHARED = "#gpu.address_space<workgroup>"


def attributes(threads: int, grid: str, arguments: str, results: str, shared: int = 0, symbols: str = '["d0"]') -> str:
    return (f"kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>, xt.symbols = {symbols}, "
            f"xt.arg_dims = {arguments}, xt.result_dims = {results}, xcc.grid = \"{grid}\", "
            f"xcc.shared_bytes = {shared} : i64}}")


ROW_SUM = f"""gpu.module @m {{
  gpu.func @row_sum(%x: memref<?x256xf32>, %y: memref<?xf32>, %d0: index)
      {attributes(256, "d0", '[["d0", 256]]', '[["d0"]]', 1024)} {{
    %row = gpu.block_id x
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c256 = arith.constant 256 : index
    %raw = gpu.dynamic_shared_memory : memref<?xi8, {SHARED}>
    %s = memref.view %raw[%c0][] : memref<?xi8, {SHARED}> to memref<256xf32, {SHARED}>
    %v = memref.load %x[%row, %t] : memref<?x256xf32>
    memref.store %v, %s[%t] : memref<256xf32, {SHARED}>
    gpu.barrier
    scf.for %i = %c0 to %c8 step %c1 {{
      %up = arith.addi %i, %c1 : index
      %half = arith.shrui %c256, %up : index
      %low = arith.cmpi ult, %t, %half : index
      scf.if %low {{
        %other = arith.addi %t, %half : index
        %a = memref.load %s[%t] : memref<256xf32, {SHARED}>
        %b = memref.load %s[%other] : memref<256xf32, {SHARED}>
        %sum = arith.addf %a, %b : f32
        memref.store %sum, %s[%t] : memref<256xf32, {SHARED}>
      }}
      gpu.barrier
    }}
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {{
      %sum = memref.load %s[%c0] : memref<256xf32, {SHARED}>
      memref.store %sum, %y[%row] : memref<?xf32>
    }}
    gpu.return
  }} }}"""


def mfma_loop() -> str:
    """C (32 x 32) = A (32 x d0) B^T (32 x d0) by one wave, d0 a multiple of 8."""
    stores = "".join(f"""
        %o{r} = arith.constant {8 * (r // 4) + r % 4} : index
        %r{r} = arith.addi %o{r}, %k : index
        %e{r} = vector.extract %d[{r}] : f32 from vector<16xf32>
        memref.store %e{r}, %c[%r{r}, %line] : memref<32x32xf32>""" for r in range(16))
    return f"""gpu.module @m {{
      gpu.func @product(%a: memref<32x?xf16>, %bt: memref<32x?xf16>, %c: memref<32x32xf32>, %d0: index)
          {attributes(64, "1", '[[32, "d0"], [32, "d0"]]', '[[32, 32]]')} {{
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %c32 = arith.constant 32 : index
        %line = arith.remui %t, %c32 : index
        %half = arith.divui %t, %c32 : index
        %k = arith.muli %half, %c4 : index
        %zero = arith.constant dense<0.0> : vector<16xf32>
        %d = scf.for %i = %c0 to %d0 step %c8 iter_args(%acc = %zero) -> vector<16xf32> {{
          %at = arith.addi %i, %k : index
          %fa = vector.load %a[%line, %at] {{alignment = 8}} : memref<32x?xf16>, vector<4xf16>
          %fb = vector.load %bt[%line, %at] {{alignment = 8}} : memref<32x?xf16>, vector<4xf16>
          %n = amdgpu.mfma 32x32x8 %fa * %fb + %acc blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
          scf.yield %n : vector<16xf32>
        }}
        {stores}
        gpu.return
      }} }}"""


def lowered(text: str, chip_name: str):
    """The module at stage `rocdl`. Call it inside an ir.Context that allows unregistered dialects."""
    chip = CHIPS[chip_name]
    module = ir.Module.parse(text)
    Pipeline.parse(rocdl_stage(chip)).run(module, PassContext(chip=chip))
    module.operation.verify()
    return module
