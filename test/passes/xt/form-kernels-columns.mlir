// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="form-kernels{max-row=16777216 launch=16777216}" --verify-each | filecheck %s

// Three sums of the same columns, and one that needs another of them.
// CHECK-LABEL: func.func @several(
// CHECK: %[[S:.*]]:3 = "xtv.dispatch"(%{{.*}}) {kernel = @reduce_0, symbols = []}
// CHECK: %[[Q:.*]] = "xtv.dispatch"({{.*}}%[[S]]#0
// CHECK-NOT: xtv.dispatch
// CHECK: return %[[S]]#0, %[[S]]#1, %[[S]]#2, %[[Q]]
func.func @several(%x: tensor<4096x256xf32>, %y: tensor<4096x256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>) {
  %a = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %p = "xt.mul"(%x, %y) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %b = "xt.reduce"(%p) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %c = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "max"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %d = "xt.sub"(%x, %a) : (tensor<4096x256xf32>, tensor<256xf32>) -> tensor<4096x256xf32>
  %e = "xt.reduce"(%d) {axes = [0], keepdims = false, kind = "max"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  return %a, %b, %c, %e : tensor<256xf32>, tensor<256xf32>, tensor<256xf32>, tensor<256xf32>
}

// What a kernel stores for others ends what a sum is made of: gradients of two layers are no kernel.
// CHECK-LABEL: func.func @layers(
// CHECK: "xtv.dispatch"(%{{.*}}) {{.*}} -> (tensor<4096x256xf32>, tensor<256xf32>)
// CHECK-NEXT: "xtv.dispatch"(%arg0) {{.*}} -> tensor<256xf32>
func.func @layers(%g: tensor<4096x256xf32>, %z: tensor<4096x256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<4096x256xf32>) {
  %h = "xt.add"(%g, %z) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %a = "xt.reduce"(%h) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %b = "xt.reduce"(%g) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  return %a, %b, %h : tensor<256xf32>, tensor<256xf32>, tensor<4096x256xf32>
}
