// A tile program written by hand is compiled as a model is.
// RUN: %xcc %s --target=cpu --chip=x86-64-v3 -o %t.xcm
// RUN: %xcc_run %t.xcm --random | filecheck %s --check-prefix=OUT
// RUN: %xcc %s --target=nvptx --chip=sm_80 --emit=ptx -o - | filecheck %s --check-prefix=PTX
// RUN: %xcc %s --target=amdgcn --chip=gfx942 --emit=gpu -o - | filecheck %s --check-prefix=AMD
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --stage=tile | filecheck %s --check-prefix=TILE
// RUN: sed 's/shape = .1, 64./shape = [1, 60]/' %s > %t.bad.mlir
// RUN: not %xcc %t.bad.mlir 2>&1 | filecheck %s --check-prefix=BAD
// RUN: sed 's/tile.store/tile.print/' %s > %t.print.mlir
// RUN: not %xcc %t.print.mlir 2>&1 | filecheck %s --check-prefix=PRINT

// OUT: y: f32[8, 64]
// PTX: .visible .entry negate(
// AMD: gpu.func @negate
// TILE: scf.forall
// TILE: vector.transfer_read
// BAD: .bad.mlir:{{[0-9]+}}:{{[0-9]+}}: 'tile.load' a size of 60 is no power of two
// PRINT: 'tile.print' is of evaluations (XCC_KERNEL=eager or check) or of lowered code: no target has a rule for it
func.func @negate(%x: memref<8x64xf32> {tile.name = "x"}, %y: memref<8x64xf32> {tile.name = "y"}) attributes {tile.grid = ["8"]} {
  %i = "tile.program_id"() {axis = 0 : i64} : () -> index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 64]} : (memref<8x64xf32>, f32, index, index) -> vector<1x64xf32>
  %n = arith.negf %t : vector<1x64xf32>
  "tile.store"(%n, %y, %i, %c0) : (vector<1x64xf32>, memref<8x64xf32>, index, index) -> ()
  return
}
