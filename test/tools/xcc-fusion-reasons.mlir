// xcc -v: which kernels an estimate of their cost kept apart, alike ones on one line.
// RUN: %xcc %s --emit=kernels --chip=x86-64-v3 -v -o %t.mlir 2>&1 | filecheck %s
// RUN: %xcc %s --emit=kernels --chip=x86-64-v3 -o %t.mlir 2>&1 | filecheck %s --check-prefix=SHORT

// CHECK-DAG: xcc: transpose not fused with pad: it is estimated to take {{[0-9.]+}} times as long as apart (2 times)
// CHECK-DAG: xcc: exp not fused with dot_general: exp would be computed again for each tile of the contraction
// CHECK-NOT: it is a kernel of its own
// CHECK: xcc: {{.*}} kernels, {{.*}} bytes moved
// SHORT-NOT: not fused

func.func @main(%a: tensor<256x4096xf32> {xt.name = "a"}, %b: tensor<256x4096xf32> {xt.name = "b"}, %w: tensor<256x64xf32> {xt.name = "w"})
    -> (tensor<4098x256xf32> {xt.name = "x"}, tensor<4098x256xf32> {xt.name = "y"}, tensor<256x64xf32> {xt.name = "z"}) {
  %0 = "xt.transpose"(%a) {perm = [1, 0]} : (tensor<256x4096xf32>) -> tensor<4096x256xf32>
  %1 = "xt.transpose"(%b) {perm = [1, 0]} : (tensor<256x4096xf32>) -> tensor<4096x256xf32>
  %2 = "xt.pad"(%0) {low = [1, 0], high = [1, 0], interior = [0, 0], mode = "constant", value = 0.0 : f64} : (tensor<4096x256xf32>) -> tensor<4098x256xf32>
  %4 = "xt.pad"(%1) {low = [1, 0], high = [1, 0], interior = [0, 0], mode = "constant", value = 0.0 : f64} : (tensor<4096x256xf32>) -> tensor<4098x256xf32>
  %3 = "xt.exp"(%a) : (tensor<256x4096xf32>) -> tensor<256x4096xf32>
  %5 = "xt.dot_general"(%3, %0) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f32} : (tensor<256x4096xf32>, tensor<4096x256xf32>) -> tensor<256x256xf32>
  %6 = "xt.dot_general"(%5, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f32} : (tensor<256x256xf32>, tensor<256x64xf32>) -> tensor<256x64xf32>
  return %2, %4, %6 : tensor<4098x256xf32>, tensor<4098x256xf32>, tensor<256x64xf32>
}
