// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=one-pass-moments | filecheck %s

// Batch norm's statistics: parts of at most 1024 rows, each relative to a row in its middle, then those of all parts relative
// to the mean of one.
// CHECK-LABEL: @channels
// CHECK: %[[X:.*]] = "xt.reshape"(%arg0) {shape = [1, 512, 98, 64]}
// CHECK: %[[S:.*]] = "xt.slice"(%[[X]]) {limits = [1, 512, 50, 64], starts = [0, 0, 49, 0]
// CHECK: %[[D:.*]] = "xt.sub"(%[[X]], %[[S]])
// CHECK: %[[DD:.*]] = "xt.mul"(%[[D]], %[[D]])
// CHECK: %[[A:.*]] = "xt.reduce"(%[[D]]) {axes = [2], keepdims = true, kind = "sum"} {{.*}} -> tensor<1x512x1x64xf32>
// CHECK: %[[B:.*]] = "xt.reduce"(%[[DD]]) {axes = [2], keepdims = true, kind = "sum"} {{.*}} -> tensor<1x512x1x64xf32>
// CHECK: "xt.maximum"
// CHECK: %[[E:.*]] = "xt.sub"(%{{.*}}, %{{.*}}) {{.*}} -> tensor<1x512x1x64xf32>
// CHECK: "xt.reduce"(%[[E]]) {axes = [1]
// CHECK: "xt.reduce"(%{{.*}}) {axes = [1]
// CHECK-NOT: "xt.reduce"(%{{.*}}) {axes = [0, 1, 2]
func.func @channels(%x: tensor<16x56x56x64xf32>) -> (tensor<1x1x1x64xf32>, tensor<64xf32>) {
  %n = "xt.constant"() {value = dense<1.99298465e-05> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.reduce"(%x) {axes = [0, 1, 2], keepdims = true, kind = "sum"} : (tensor<16x56x56x64xf32>) -> tensor<1x1x1x64xf32>
  %m = "xt.mul"(%a, %n) : (tensor<1x1x1x64xf32>, tensor<f32>) -> tensor<1x1x1x64xf32>
  %d = "xt.sub"(%x, %m) : (tensor<16x56x56x64xf32>, tensor<1x1x1x64xf32>) -> tensor<16x56x56x64xf32>
  %q = "xt.mul"(%d, %d) : (tensor<16x56x56x64xf32>, tensor<16x56x56x64xf32>) -> tensor<16x56x56x64xf32>
  %b = "xt.reduce"(%q) {axes = [0, 1, 2], keepdims = false, kind = "sum"} : (tensor<16x56x56x64xf32>) -> tensor<64xf32>
  return %m, %b : tensor<1x1x1x64xf32>, tensor<64xf32>
}

// Rows stay in registers; distances from something else than the mean; too few rows; rows that nothing divides.
// CHECK-LABEL: @kept
// CHECK-NOT: xt.slice
func.func @kept(%x: tensor<512x512xf32>, %few: tensor<128x512xf32>, %odd: tensor<4099x512xf32>, %c: tensor<512xf32>)
    -> (tensor<512x1xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) {
  %n = "xt.constant"() {value = dense<0.001953125> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "sum"} : (tensor<512x512xf32>) -> tensor<512x1xf32>
  %m = "xt.mul"(%a, %n) : (tensor<512x1xf32>, tensor<f32>) -> tensor<512x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<512x512xf32>, tensor<512x1xf32>) -> tensor<512x512xf32>
  %q = "xt.mul"(%d, %d) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = "xt.reduce"(%q) {axes = [1], keepdims = true, kind = "sum"} : (tensor<512x512xf32>) -> tensor<512x1xf32>
  %a1 = "xt.reduce"(%x) {axes = [0], keepdims = true, kind = "sum"} : (tensor<512x512xf32>) -> tensor<1x512xf32>
  %m1 = "xt.mul"(%a1, %n) : (tensor<1x512xf32>, tensor<f32>) -> tensor<1x512xf32>
  %d1 = "xt.sub"(%x, %c) : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512x512xf32>
  %q1 = "xt.mul"(%d1, %d1) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %r1 = "xt.reduce"(%q1) {axes = [0], keepdims = false, kind = "sum"} : (tensor<512x512xf32>) -> tensor<512xf32>
  %n2 = "xt.constant"() {value = dense<0.0078125> : tensor<f32>} : () -> tensor<f32>
  %a2 = "xt.reduce"(%few) {axes = [0], keepdims = true, kind = "sum"} : (tensor<128x512xf32>) -> tensor<1x512xf32>
  %m2 = "xt.mul"(%a2, %n2) : (tensor<1x512xf32>, tensor<f32>) -> tensor<1x512xf32>
  %d2 = "xt.sub"(%few, %m2) : (tensor<128x512xf32>, tensor<1x512xf32>) -> tensor<128x512xf32>
  %q2 = "xt.mul"(%d2, %d2) : (tensor<128x512xf32>, tensor<128x512xf32>) -> tensor<128x512xf32>
  %r2 = "xt.reduce"(%q2) {axes = [0], keepdims = false, kind = "sum"} : (tensor<128x512xf32>) -> tensor<512xf32>
  %n3 = "xt.constant"() {value = dense<2.43961953e-04> : tensor<f32>} : () -> tensor<f32>
  %a3 = "xt.reduce"(%odd) {axes = [0], keepdims = true, kind = "sum"} : (tensor<4099x512xf32>) -> tensor<1x512xf32>
  %m3 = "xt.mul"(%a3, %n3) : (tensor<1x512xf32>, tensor<f32>) -> tensor<1x512xf32>
  %d3 = "xt.sub"(%odd, %m3) : (tensor<4099x512xf32>, tensor<1x512xf32>) -> tensor<4099x512xf32>
  %q3 = "xt.mul"(%d3, %d3) : (tensor<4099x512xf32>, tensor<4099x512xf32>) -> tensor<4099x512xf32>
  %r3 = "xt.reduce"(%q3) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4099x512xf32>) -> tensor<512xf32>
  return %r, %r1, %r2, %r3 : tensor<512x1xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
}
