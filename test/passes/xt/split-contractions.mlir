// RUN: %xcc_opt %s --pass-pipeline=split-contractions --target=nvptx --chip=sm_90a | filecheck %s

// CHECK-LABEL: @few
// CHECK: %[[A:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<49x16x128xf16>
// CHECK: %[[B:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<16x128x512xf16>
// CHECK: %[[P:.*]] = "xt.dot_general"(%[[A]], %[[B]]){{.*}} -> tensor<16x49x512xf32>
// CHECK: %[[S:.*]] = "xt.reduce"(%[[P]]) {axes = [0], keepdims = false, kind = "sum"}
// CHECK: "xt.convert"(%[[S]]) {dtype = f16
func.func @few(%a: tensor<49x2048xf16>, %b: tensor<2048x512xf16>) -> tensor<49x512xf16> {
  %y = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<49x2048xf16>, tensor<2048x512xf16>) -> tensor<49x512xf16>
  return %y : tensor<49x512xf16>
}

// Few rows: narrow tiles, which copy far ahead, are enough for memory; fewer columns are cut.
// CHECK-LABEL: @rows
// CHECK: "xt.dot_general"{{.*}} -> tensor<8x4096xf16>
// CHECK: "xt.dot_general"{{.*}} -> tensor<4x8x1024xf32>
func.func @rows(%a: tensor<8x4096xf16>, %b: tensor<4096x4096xf16>, %c: tensor<4096x1024xf16>) -> (tensor<8x4096xf16>, tensor<8x1024xf16>) {
  %y = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x4096xf16>, tensor<4096x4096xf16>) -> tensor<8x4096xf16>
  %z = "xt.dot_general"(%a, %c) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x4096xf16>, tensor<4096x1024xf16>) -> tensor<8x1024xf16>
  return %y, %z : tensor<8x4096xf16>, tensor<8x1024xf16>
}

// A sum so long that each of many parts is long.
// CHECK-LABEL: @long
// CHECK: "xt.dot_general"{{.*}} -> tensor<64x64x256xf32>
func.func @long(%a: tensor<100352x64xf16>, %b: tensor<100352x256xf16>) -> tensor<64x256xf16> {
  %y = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} : (tensor<100352x64xf16>, tensor<100352x256xf16>) -> tensor<64x256xf16>
  return %y : tensor<64x256xf16>
}

// Enough tiles, or a short sum: one kernel.
// CHECK-LABEL: @many
// CHECK-NOT: xt.reduce
func.func @many(%a: tensor<4096x2048xf16>, %b: tensor<2048x512xf16>, %c: tensor<49x256xf16>, %d: tensor<256x512xf16>) -> (tensor<4096x512xf16>, tensor<49x512xf16>) {
  %y = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<4096x2048xf16>, tensor<2048x512xf16>) -> tensor<4096x512xf16>
  %z = "xt.dot_general"(%c, %d) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<49x256xf16>, tensor<256x512xf16>) -> tensor<49x512xf16>
  return %y, %z : tensor<4096x512xf16>, tensor<49x512xf16>
}

// A convolution's parts are groups of channels, each with all outputs.
// CHECK-LABEL: @convolution
// CHECK: %[[F:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<3x3x32x4096xf32>
// CHECK: %[[P:.*]] = "xt.convolution"(%{{.*}}, %[[F]]) {{.*}}groups = 8{{.*}} -> tensor<1x7x7x4096xf32>
// CHECK: %[[Q:.*]] = "xt.reshape"(%[[P]]) {{.*}} -> tensor<1x7x7x8x512xf32>
// CHECK: "xt.reduce"(%[[Q]]) {axes = [3], keepdims = false, kind = "sum"}
func.func @convolution(%x: tensor<1x7x7x256xf32>) -> tensor<1x7x7x512xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<3x3x256x512xf32>
  %y = "xt.convolution"(%x, %w) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x7x7x256xf32>, tensor<3x3x256x512xf32>) -> tensor<1x7x7x512xf32>
  return %y : tensor<1x7x7x512xf32>
}

// Products by FMAs have several workgroups a core, where each has a sum that is worth it; those by matrix instructions one.
// CHECK-LABEL: @fma
// CHECK: "xt.dot_general"{{.*}} -> tensor<8x128x4096xf32>
// CHECK: "xt.dot_general"{{.*}} -> tensor<2x512x1024xf32>
// CHECK: "xt.dot_general"{{.*}} -> tensor<128x4096xf16>
func.func @fma(%a: tensor<128x4096xf32>, %b: tensor<4096x4096xf32>, %c: tensor<512x512xf32>, %d: tensor<512x1024xf32>, %e: tensor<128x4096xf16>, %f: tensor<4096x4096xf16>) -> (tensor<128x4096xf32>, tensor<512x1024xf32>, tensor<128x4096xf16>) {
  %y = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<128x4096xf32>, tensor<4096x4096xf32>) -> tensor<128x4096xf32>
  %z = "xt.dot_general"(%c, %d) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<512x512xf32>, tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %h = "xt.dot_general"(%e, %f) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<128x4096xf16>, tensor<4096x4096xf16>) -> tensor<128x4096xf16>
  return %y, %z, %h : tensor<128x4096xf32>, tensor<512x1024xf32>, tensor<128x4096xf16>
}

// 300 tiles take 132 cores three turns, and those of three parts seven short ones. 900 tiles take seven turns anyway.
// CHECK-LABEL: @turns
// CHECK: "xt.dot_general"{{.*}} -> tensor<3x1576x768xf32>
// CHECK: "xt.dot_general"{{.*}} -> tensor<1576x2304xf32>
func.func @turns(%a: tensor<1576x3072xf32>, %b: tensor<3072x768xf32>, %c: tensor<1576x768xf32>, %d: tensor<768x2304xf32>) -> (tensor<1576x768xf32>, tensor<1576x2304xf32>) {
  %y = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<1576x3072xf32>, tensor<3072x768xf32>) -> tensor<1576x768xf32>
  %z = "xt.dot_general"(%c, %d) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<1576x768xf32>, tensor<768x2304xf32>) -> tensor<1576x2304xf32>
  return %y, %z : tensor<1576x768xf32>, tensor<1576x2304xf32>
}
