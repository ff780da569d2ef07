// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="form-kernels{max-row=16777216 launch=16777216}" --verify-each | filecheck %s

// Three sums of the same columns, and one that needs another of them.
// CHECK-LABEL: func.func @several(
// CHECK: %[[S:.*]]:3 = "xtv.dispatch"(%{{.*}}) {kernel = @[[T:.*]], symbols = []}
// CHECK: %[[Q:.*]] = "xtv.dispatch"({{.*}}%[[S]]#0
// CHECK-NOT: xtv.dispatch
// CHECK: return %[[S]]#0, %[[S]]#1, %[[S]]#2, %[[Q]]
// CHECK: func.func private @[[T]](
// CHECK-COUNT-3: "xt.reduce"
// CHECK: return
func.func @several(%x: tensor<4096x256xf32>, %y: tensor<4096x256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) {
  %a = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %p = "xt.mul"(%x, %y) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %b = "xt.reduce"(%p) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %c = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "max"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %d = "xt.sub"(%x, %a) : (tensor<4096x256xf32>, tensor<256xf32>) -> tensor<4096x256xf32>
  %e = "xt.reduce"(%d) {axes = [0], keepdims = false, kind = "max"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  return %a, %b, %c, %e : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
}
