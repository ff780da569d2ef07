// RUN: %xcc_opt %s --pass-pipeline="form-kernels" --check-legal=kernels | filecheck %s

// What a step yields as a state and as a result is written twice by the kernel, where it would be copied.
// CHECK-LABEL: func.func @steps(
// CHECK: xtv.scan
// CHECK: %[[H:.*]]:2 = "xtv.dispatch"(%{{.*}}, %{{.*}}) {{.*}} -> (tensor<4x256xf32>, tensor<4x256xf32>)
// CHECK-NEXT: "xtv.yield"(%[[H]]#0, %[[H]]#1)
func.func @steps(%h: tensor<4x256xf32>, %x: tensor<9x4x256xf32>) -> (tensor<4x256xf32>, tensor<9x4x256xf32>) {
  %y:2 = "xtv.scan"(%h, %x) ({
  ^bb0(%a: tensor<4x256xf32>, %b: tensor<4x256xf32>):
    %0 = "xt.add"(%a, %b) : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<4x256xf32>
    "xtv.yield"(%0, %0) : (tensor<4x256xf32>, tensor<4x256xf32>) -> ()
  }) {axes = [0], length = [9], operandSegmentSizes = array<i32: 1, 1>, out_axes = [0], out_reverse = [0], reverse = [0]} : (tensor<4x256xf32>, tensor<9x4x256xf32>) -> (tensor<4x256xf32>, tensor<9x4x256xf32>)
  return %y#0, %y#1 : tensor<4x256xf32>, tensor<9x4x256xf32>
}
