// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="form-kernels{max-row=16777216 launch=16777216}" --verify-each | filecheck %s

// The gradient of a batch norm: both sums are one kernel, which reads the gradient once. The product is copied into it,
// and what the copy reads (the difference) is, too, in place of being stored in f32.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: @sub
// CHECK: %[[A:.*]]:2 = "xtv.dispatch"(%arg1, %arg0, %arg2) {kernel = @[[R:.*]], symbols = []}
// CHECK: "xtv.dispatch"({{.*}}) {kernel = @[[G:.*]], symbols = []}
// CHECK: func.func private @[[R]](
// CHECK: "xt.sub"
// CHECK: "xt.reduce"
// CHECK: "xt.mul"
// CHECK: "xt.reduce"
// CHECK: func.func private @[[G]](
func.func @main(%x: tensor<4096x256xf16>, %g: tensor<4096x256xf16>, %m: tensor<256xf32>) -> tensor<4096x256xf16> {
  %d = "xt.convert"(%g) {dtype = f32, saturate = false} : (tensor<4096x256xf16>) -> tensor<4096x256xf32>
  %w = "xt.convert"(%x) {dtype = f32, saturate = false} : (tensor<4096x256xf16>) -> tensor<4096x256xf32>
  %s = "xt.sub"(%w, %m) : (tensor<4096x256xf32>, tensor<256xf32>) -> tensor<4096x256xf32>
  %a = "xt.reduce"(%d) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %p = "xt.mul"(%d, %s) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %b = "xt.reduce"(%p) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %e = "xt.mul"(%s, %b) : (tensor<4096x256xf32>, tensor<256xf32>) -> tensor<4096x256xf32>
  %f = "xt.sub"(%d, %e) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %h = "xt.sub"(%f, %a) : (tensor<4096x256xf32>, tensor<256xf32>) -> tensor<4096x256xf32>
  %y = "xt.convert"(%h) {dtype = f16, saturate = false} : (tensor<4096x256xf32>) -> tensor<4096x256xf16>
  return %y : tensor<4096x256xf16>
}
