// RUN: %xcc_opt %s --pass-pipeline='xt-recognise' --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline='xt-recognise' --split-input-file --debug-patterns 2>&1 | filecheck %s --check-prefix=WHY

// CHECK-LABEL: @softmax
// CHECK: "xt.softmax"(%arg0) {axis = 1 : i64}
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "max"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %e = "xt.exp"(%d) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = "xt.reduce"(%e) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %y = "xt.div"(%e, %s) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----
// The sum is over another axis.
// CHECK-LABEL: @softmax_other_axis
// CHECK-NOT: xt.softmax
// WHY: no match: xt.div {{.*}}: maximum and sum are not over the same one axis, kept as a dim of 1
func.func @softmax_other_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "max"} : (tensor<8x8xf32>) -> tensor<8x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %e = "xt.exp"(%d) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = "xt.reduce"(%e) {axes = [0], keepdims = true, kind = "sum"} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %y = "xt.div"(%e, %s) : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----
// CHECK-LABEL: @rms_norm
// CHECK: "xt.rms_norm"(%arg0, %arg1) {axes = [1], eps = 9.9{{.*}}E-6
func.func @rms_norm(%x: tensor<4x8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %n = "xt.constant"() {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %eps = "xt.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %q = "xt.mul"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = "xt.reduce"(%q) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = "xt.div"(%s, %n) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %a = "xt.add"(%m, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = "xt.sqrt"(%a) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %i = "xt.reciprocal"(%r) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = "xt.mul"(%x, %i) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %z = "xt.mul"(%g, %y) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----
// Divided by 7, not by the number of elements.
// CHECK-LABEL: @rms_norm_other_count
// CHECK-NOT: xt.rms_norm
// WHY: no match: xt.mul {{.*}}: the root is not of a mean plus a constant
func.func @rms_norm_other_count(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = "xt.constant"() {value = dense<7.0> : tensor<f32>} : () -> tensor<f32>
  %eps = "xt.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %q = "xt.mul"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = "xt.reduce"(%q) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = "xt.div"(%s, %n) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %a = "xt.add"(%m, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %r = "xt.rsqrt"(%a) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = "xt.mul"(%x, %r) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----
// A layer norm is an rms norm of what was centred; the bias joins, the residual (as large as x) does not.
// CHECK-LABEL: @layer_norm
// CHECK: %[[Y:.*]] = "xt.layer_norm"(%arg0, %arg1, %arg2) {axes = [1]
// CHECK: "xt.add"(%[[Y]], %arg3)
func.func @layer_norm(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>, %r: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = "xt.constant"() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
  %eps = "xt.constant"() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %t = "xt.reduce"(%x) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %u = "xt.mul"(%t, %n) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %c = "xt.sub"(%x, %u) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %two = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %q = "xt.pow"(%c, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %s = "xt.reduce"(%q) {axes = [1], keepdims = true, kind = "sum"} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %m = "xt.mul"(%s, %n) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %a = "xt.add"(%m, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %o = "xt.sqrt"(%a) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %y = "xt.div"(%c, %o) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %z = "xt.mul"(%y, %g) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %w = "xt.add"(%z, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %v = "xt.add"(%w, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %v : tensor<4x8xf32>
}

// -----
// CHECK-LABEL: @gelu
// CHECK: "xt.gelu"(%arg0) {approximate = "none"}
func.func @gelu(%x: tensor<8xf32>) -> tensor<8xf32> {
  %h = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r = "xt.constant"() {value = dense<1.41421354> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.div"(%x, %r) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %e = "xt.erf"(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %p = "xt.add"(%e, %one) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %m = "xt.mul"(%x, %p) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %y = "xt.mul"(%m, %h) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CHECK-LABEL: @gelu_tanh
// CHECK: "xt.gelu"(%arg0) {approximate = "tanh"}
func.func @gelu_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  %h = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c = "xt.constant"() {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %r = "xt.constant"() {value = dense<0.797884583> : tensor<f32>} : () -> tensor<f32>
  %2 = "xt.mul"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = "xt.mul"(%2, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = "xt.mul"(%3, %c) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %5 = "xt.add"(%x, %4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = "xt.mul"(%5, %r) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %t = "xt.tanh"(%6) : (tensor<8xf32>) -> tensor<8xf32>
  %p = "xt.add"(%one, %t) : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %g = "xt.mul"(%x, %h) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = "xt.mul"(%g, %p) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CHECK-LABEL: @gelu_not_half
// CHECK-NOT: xt.gelu
// WHY: no match: xt.mul {{.*}}: the product's constant is 0.4, not 0.5
func.func @gelu_not_half(%x: tensor<8xf32>) -> tensor<8xf32> {
  %h = "xt.constant"() {value = dense<0.4> : tensor<f32>} : () -> tensor<f32>
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %r = "xt.constant"() {value = dense<0.707106769> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.mul"(%x, %r) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %e = "xt.erf"(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %p = "xt.add"(%e, %one) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %g = "xt.mul"(%x, %h) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %y = "xt.mul"(%g, %p) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// CHECK-LABEL: @swish
// CHECK: %[[S:.*]] = "xt.sigmoid"(%arg0)
// CHECK: "xt.mul"(%arg0, %[[S]])
func.func @swish(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %n = "xt.neg"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %e = "xt.exp"(%n) : (tensor<8xf32>) -> tensor<8xf32>
  %p = "xt.add"(%one, %e) : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %y = "xt.div"(%x, %p) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----
// Each group as a channel, with a scale of each, and back.
// CHECK-LABEL: @group_norm
// CHECK: %[[S:.*]] = "xt.reshape"(%{{.*}}) {shape = [6]} : (tensor<2x3xf32>) -> tensor<6xf32>
// CHECK: "xt.group_norm"(%arg0, %[[S]], %{{.*}}) {axis = 1 : i64, eps = 5.0{{.*}}, groups = 2 : i64
func.func @group_norm(%x: tensor<1x6x4x5xf32>, %s: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<1x6x4x5xf32> {
  %g = "xt.reshape"(%x) {shape = [1, 2, 60]} : (tensor<1x6x4x5xf32>) -> tensor<1x2x60xf32>
  %n = "xt.group_norm"(%g, %s, %b) {axis = 1 : i64, eps = 0.5 : f64, groups = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x2x60xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x60xf32>
  %y = "xt.reshape"(%n) {shape = [1, 6, 4, 5]} : (tensor<1x2x60xf32>) -> tensor<1x6x4x5xf32>
  return %y : tensor<1x6x4x5xf32>
}

// -----
// Rows of 4 and of 6 elements are no groups of channels.
// CHECK-LABEL: @group_norm_across_channels
// CHECK: "xt.group_norm"({{.*}}groups = 4
// WHY: no match: xt.reshape {{.*}}: what is normalised are not the channels of each group
func.func @group_norm_across_channels(%x: tensor<1x6x4xf32>) -> tensor<1x6x4xf32> {
  %g = "xt.reshape"(%x) {shape = [1, 4, 6]} : (tensor<1x6x4xf32>) -> tensor<1x4x6xf32>
  %n = "xt.group_norm"(%g) {axis = 1 : i64, eps = 0.5 : f64, groups = 4 : i64, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %y = "xt.reshape"(%n) {shape = [1, 6, 4]} : (tensor<1x4x6xf32>) -> tensor<1x6x4xf32>
  return %y : tensor<1x6x4xf32>
}
