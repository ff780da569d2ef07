// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure, tile, mlir(canonicalize, cse)" | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure, tile, mlir(canonicalize, cse), assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=THREAD

// A piece is read in its own lanes alone, so that eight neighbours are one load; others read zeros, and bits are joined.
// CHECK-LABEL: func.func private @parts(
// CHECK: arith.cmpi slt
// CHECK-NOT: arith.minsi
// CHECK-COUNT-3: vector.gather
// CHECK: arith.ori
// THREAD-LABEL: gpu.func @parts
// THREAD-COUNT-3: vector.load {{.*}}vector<8xf16>
// THREAD-NOT: vector.load
func.func private @parts(%a: tensor<40960x64xf16>, %b: tensor<40960x96xf16>, %c: tensor<40960x96xf16>) -> tensor<40960x256xf16>
    attributes {xt.kernel, xt.symbols = []} {
  %y = "xtv.concatenate"(%a, %b, %c) {axis = 1 : i64} : (tensor<40960x64xf16>, tensor<40960x96xf16>, tensor<40960x96xf16>) -> tensor<40960x256xf16>
  return %y : tensor<40960x256xf16>
}
