// RUN: %xcc_opt %s --pass-pipeline=split-reductions | filecheck %s

// CHECK-LABEL: @pool
// CHECK: %[[W:.*]] = "xt.convert"(%{{.*}}) {dtype = f32
// CHECK: %[[P:.*]] = "xt.reduce"(%[[W]]) {axes = [2], keepdims = true, kind = "sum"}{{.*}} -> tensor<1x240x1x96xf32>
// CHECK: %[[S:.*]] = "xt.reduce"(%[[P]]) {axes = [1, 2], keepdims = false, kind = "sum"}{{.*}} -> tensor<1x96xf32>
// CHECK: "xt.convert"(%[[S]]) {dtype = f16
func.func @pool(%x: tensor<1x240x320x96xf16>) -> tensor<1x96xf16> {
  %y = "xt.reduce"(%x) {axes = [1, 2], keepdims = false, kind = "sum"} : (tensor<1x240x320x96xf16>) -> tensor<1x96xf16>
  return %y : tensor<1x96xf16>
}

// Channels ahead of the image: each image first.
// CHECK-LABEL: @images
// CHECK: %[[P:.*]] = "xt.reduce"(%{{.*}}) {axes = [2, 3], keepdims = true, kind = "sum"}{{.*}} -> tensor<32x64x1x1xf32>
// CHECK: "xt.reduce"(%[[P]]) {axes = [0, 2, 3], keepdims = false, kind = "sum"}{{.*}} -> tensor<64xf32>
func.func @images(%x: tensor<32x64x56x56xf32>) -> tensor<64xf32> {
  %y = "xt.reduce"(%x) {axes = [0, 2, 3], keepdims = false, kind = "sum"} : (tensor<32x64x56x56xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// Small maps, and rows that lie together, are reduced at once.
// CHECK-LABEL: @small
// CHECK-COUNT-1: xt.reduce
// CHECK-NOT: xt.reduce
// CHECK-LABEL: @rows
// CHECK-COUNT-1: xt.reduce
// CHECK-NOT: xt.reduce
func.func @small(%x: tensor<1x7x7x96xf32>) -> tensor<1x96xf32> {
  %y = "xt.reduce"(%x) {axes = [1, 2], keepdims = false, kind = "max"} : (tensor<1x7x7x96xf32>) -> tensor<1x96xf32>
  return %y : tensor<1x96xf32>
}
func.func @rows(%x: tensor<8x640x96xf32>) -> tensor<8xf32> {
  %y = "xt.reduce"(%x) {axes = [1, 2], keepdims = false, kind = "sum"} : (tensor<8x640x96xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
