// RUN: %xcc_opt %s --pass-pipeline="form-kernels" --split-input-file --check-legal=kernels | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{fuse=none}" --split-input-file | filecheck %s --check-prefix=NONE
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{explain}" --split-input-file 2>&1 | filecheck %s --check-prefix=WHY
// RUN: %xcc_opt %s --pass-pipeline="form-kernels{tile-row=64}" --split-input-file | filecheck %s --check-prefix=ROWS
// RUN: not %xcc_opt %s --pass-pipeline="form-kernels{fuse=some}" 2>&1 | filecheck %s --check-prefix=BAD

// BAD: 'some' is neither all nor none
// WHY: exp@0 not fused with dot_general@2: exp would be computed again for each tile of the contraction

// CHECK-LABEL: func.func @dynamic_dims_become_symbols(
// CHECK-SAME: %[[X:.*]]: tensor<?x16xf32, ["batch*seq", 16]>
// CHECK: %[[Y:.*]] = "xtv.dispatch"(%[[X]]) {kernel = @tanh_0, symbols = ["batch*seq"]}
// CHECK: %[[V:.*]] = "xt.reshape"(%[[Y]])
// CHECK: return %[[V]]
// CHECK: func.func private @tanh_0(%[[A:.*]]: tensor<?x16xf32, ["d0", 16]>) -> tensor<?x16xf32, ["d0", 16]>
// CHECK-SAME: attributes {xt.kernel, xt.symbols = ["d0"]}
// CHECK: %[[E:.*]] = "xt.exp"(%[[A]])
// CHECK: %[[T:.*]] = "xt.tanh"(%[[E]])
// CHECK: return %[[T]]
// NONE-LABEL: func.func @dynamic_dims_become_symbols(
// NONE: kernel = @exp_0
// NONE: kernel = @tanh_0
func.func @dynamic_dims_become_symbols(%x: tensor<?x16xf32, ["batch*seq", 16]>) -> tensor<?x?x16xf32, ["batch", "seq", 16]> {
  %0 = "xt.exp"(%x) : (tensor<?x16xf32, ["batch*seq", 16]>) -> tensor<?x16xf32, ["batch*seq", 16]>
  %1 = "xt.tanh"(%0) : (tensor<?x16xf32, ["batch*seq", 16]>) -> tensor<?x16xf32, ["batch*seq", 16]>
  %2 = "xt.reshape"(%1) {shape = ["batch", "seq", 16]} : (tensor<?x16xf32, ["batch*seq", 16]>) -> tensor<?x?x16xf32, ["batch", "seq", 16]>
  return %2 : tensor<?x?x16xf32, ["batch", "seq", 16]>
}

// -----

// CHECK-LABEL: func.func @equal_kernels_merge(
// CHECK: kernel = @exp_0
// CHECK: kernel = @exp_0
// CHECK-NOT: @exp_1
func.func @equal_kernels_merge(%x: tensor<4x4xf32>) -> tensor<2x8xf32> {
  %0 = "xt.exp"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "xt.reshape"(%0) {shape = [16]} : (tensor<4x4xf32>) -> tensor<16xf32>
  %2 = "xt.reshape"(%1) {shape = [4, 4]} : (tensor<16xf32>) -> tensor<4x4xf32>
  %3 = "xt.exp"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "xt.reshape"(%3) {shape = [2, 8]} : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @constants_and_weights(
// CHECK: %[[W:.*]] = "xt.weight"
// CHECK: %[[C:.*]] = "xt.constant"() {value = dense<[1.0
// CHECK: "xtv.dispatch"(%{{.*}}, %[[W]], %[[C]])
// CHECK: func.func private
// CHECK: "xt.constant"() {value = dense<2.0
func.func @constants_and_weights(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<2xf32>
  %c = "xt.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %s = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "xt.add"(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = "xt.mul"(%0, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = "xt.mul"(%1, %s) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @prologue(
// CHECK: kernel = @exp_0
// CHECK: kernel = @dot_general_0
func.func @prologue(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  %0 = "xt.exp"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "xt.tanh"(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "xt.dot_general"(%0, %1) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "xt.add"(%2, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----
// A loop kernel writes all results of its op, used or not.
// CHECK-LABEL: @unused_result
// CHECK: "xtv.dispatch"(%arg0) {{.*}} -> (tensor<5x7xf32>, tensor<5x7xi64>)
// CHECK: func.func private @sort_0
// CHECK: return {{.*}} : tensor<5x7xf32>, tensor<5x7xi64>
func.func @unused_result(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0:2 = "xt.sort"(%x) {axis = 1, descending = false, stable = true} : (tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<5x7xi64>)
  return %0#0 : tensor<5x7xf32>
}

// -----

// What only widens a product's result is computed by the reader; what narrows it again stays in the product's kernel.
// CHECK-LABEL: func.func @widening_goes_to_the_reader(
// CHECK: func.func private @dot_general_0(
// CHECK-SAME: tensor<8x16xf16>
// CHECK-NOT: xt.convert
// CHECK: return
// CHECK: func.func private @reduce_0(
// CHECK-SAME: tensor<8x16xf16>
// CHECK: "xt.convert"
func.func @widening_goes_to_the_reader(%x: tensor<8x4xf16>, %w: tensor<4x16xf16>) -> tensor<8xf32> {
  %0 = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  %1 = "xt.convert"(%0) {dtype = f32, saturate = false} : (tensor<8x16xf16>) -> tensor<8x16xf32>
  %2 = "xt.mul"(%1, %1) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = "xt.reduce"(%2) {axes = [1], keepdims = false, kind = "sum"} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// Transposes and slices around an op that a target keeps whole are its kernel's coordinates.
// CHECK-LABEL: func.func @attention_takes_its_views(
// CHECK-COUNT-1: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: func.func private @attention_0(%{{.*}}: tensor<1x8x3x2x16xf16>, %{{.*}}: tensor<1x2x8x16xf16>)
// CHECK: xt.slice
// CHECK: xt.transpose
// CHECK: xt.attention
// CHECK: xt.transpose
func.func @attention_takes_its_views(%x: tensor<1x8x3x2x16xf16>, %v: tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16> {
  %0 = "xt.slice"(%x) {starts = [0, 0, 1, 0, 0], limits = [1, 8, 2, 2, 16], strides = [1, 1, 1, 1, 1]} : (tensor<1x8x3x2x16xf16>) -> tensor<1x8x1x2x16xf16>
  %1 = "xt.reshape"(%0) {shape = [1, 8, 2, 16]} : (tensor<1x8x1x2x16xf16>) -> tensor<1x8x2x16xf16>
  %2 = "xt.transpose"(%1) {perm = [0, 2, 1, 3]} : (tensor<1x8x2x16xf16>) -> tensor<1x2x8x16xf16>
  %3 = "xt.attention"(%2, %v, %v) {causal = true, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> tensor<1x2x8x16xf16>
  %4 = "xt.transpose"(%3) {perm = [0, 2, 1, 3]} : (tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16>
  return %4 : tensor<1x8x2x16xf16>
}

// -----

// Keys and values that are put together for an attention are read where their parts lie.
// CHECK-LABEL: func.func @attention_takes_parts(
// CHECK-COUNT-1: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: func.func private @attention_0(%{{.*}}: tensor<1x1x2x16xf16>, %{{.*}}: tensor<1x2x40x16xf16>, %{{.*}}: tensor<1x2x40x16xf16>, %{{.*}}: tensor<1x2x1x16xf16>)
// CHECK-COUNT-2: xtv.concatenate
// CHECK: xt.attention
func.func @attention_takes_parts(%q: tensor<1x2x1x16xf16>, %k: tensor<1x2x40x16xf16>, %v: tensor<1x2x40x16xf16>, %n: tensor<1x1x2x16xf16>) -> tensor<1x2x1x16xf16> {
  %0 = "xt.transpose"(%n) {perm = [0, 2, 1, 3]} : (tensor<1x1x2x16xf16>) -> tensor<1x2x1x16xf16>
  %1 = "xtv.concatenate"(%k, %0) {axis = 2 : i64} : (tensor<1x2x40x16xf16>, tensor<1x2x1x16xf16>) -> tensor<1x2x41x16xf16>
  %2 = "xtv.concatenate"(%v, %q) {axis = 2 : i64} : (tensor<1x2x40x16xf16>, tensor<1x2x1x16xf16>) -> tensor<1x2x41x16xf16>
  %3 = "xt.attention"(%q, %1, %2) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x2x1x16xf16>, tensor<1x2x41x16xf16>, tensor<1x2x41x16xf16>) -> tensor<1x2x1x16xf16>
  return %3 : tensor<1x2x1x16xf16>
}

// -----

// Not those that are cut elsewhere than the first, heads that are put together, or a result of the model.
// CHECK-LABEL: func.func @attention_takes_no_others(
// CHECK: {kernel = @attention_0
// CHECK: {kernel = @attention_1
// CHECK: func.func private @attention_0(
// CHECK-COUNT-1: xtv.concatenate
// CHECK-NOT: xtv.concatenate
// CHECK: xt.attention
// CHECK: func.func private @attention_1(
// CHECK-NOT: xtv.concatenate
// CHECK: xt.attention
func.func @attention_takes_no_others(%q: tensor<1x2x1x16xf16>, %k: tensor<1x2x40x16xf16>, %h: tensor<1x1x41x16xf16>) -> (tensor<1x2x1x16xf16>, tensor<1x2x1x16xf16>, tensor<1x2x41x16xf16>) {
  %0 = "xtv.concatenate"(%k, %q) {axis = 2 : i64} : (tensor<1x2x40x16xf16>, tensor<1x2x1x16xf16>) -> tensor<1x2x41x16xf16>
  %1 = "xtv.concatenate"(%q, %k) {axis = 2 : i64} : (tensor<1x2x1x16xf16>, tensor<1x2x40x16xf16>) -> tensor<1x2x41x16xf16>
  %2 = "xt.attention"(%q, %0, %1) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x2x1x16xf16>, tensor<1x2x41x16xf16>, tensor<1x2x41x16xf16>) -> tensor<1x2x1x16xf16>
  %3 = "xtv.concatenate"(%h, %h) {axis = 1 : i64} : (tensor<1x1x41x16xf16>, tensor<1x1x41x16xf16>) -> tensor<1x2x41x16xf16>
  %4 = "xt.neg"(%k) : (tensor<1x2x40x16xf16>) -> tensor<1x2x40x16xf16>
  %5 = "xtv.concatenate"(%4, %q) {axis = 2 : i64} : (tensor<1x2x40x16xf16>, tensor<1x2x1x16xf16>) -> tensor<1x2x41x16xf16>
  %6 = "xt.attention"(%q, %3, %5) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x2x1x16xf16>, tensor<1x2x41x16xf16>, tensor<1x2x41x16xf16>) -> tensor<1x2x1x16xf16>
  return %2, %6, %5 : tensor<1x2x1x16xf16>, tensor<1x2x1x16xf16>, tensor<1x2x41x16xf16>
}

// -----
// A stored pad joins the product in front of it, which has another user too.
// CHECK-LABEL: @stored_pad
// CHECK: %[[P:.*]]:2 = "xtv.dispatch"({{.*}}) {kernel = @dot_general_0{{.*}} -> (tensor<1x4x4x8xf32>, tensor<1x6x6x8xf32>)
// CHECK: func.func private @dot_general_0
// CHECK: %[[Y:.*]] = "xt.dot_general"
// CHECK: %[[Q:.*]] = "xt.pad"(%[[Y]]) {{.*}}xcc.stored
// CHECK: return %[[Y]], %[[Q]]
func.func @stored_pad(%x: tensor<1x4x4x4xf32>, %w: tensor<4x8xf32>, %f: tensor<3x3x8x8xf32>) -> (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [3], rhs_batch = [], rhs_contract = [0]} : (tensor<1x4x4x4xf32>, tensor<4x8xf32>) -> tensor<1x4x4x8xf32>
  %1 = "xt.pad"(%0) {low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0], mode = "constant", value = 0.0 : f64, xcc.stored} : (tensor<1x4x4x8xf32>) -> tensor<1x6x6x8xf32>
  %2 = "xt.convolution"(%1, %f) {dtype = f32, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [0, 0], layout = "NHWC", lhs_dilation = [1, 1], low = [0, 0], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x6x6x8xf32>, tensor<3x3x8x8xf32>) -> tensor<1x4x4x8xf32>
  return %2, %0 : tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>
}

// -----

// What nobody uses is in no kernel, whatever dialect it is of.
// CHECK-LABEL: func.func @unused(
// CHECK-COUNT-1: xtv.dispatch
// CHECK-NOT: xtv.dispatch
// CHECK: return
func.func @unused(%a: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %y = "xtv.concatenate"(%a, %a) {axis = 1 : i64} : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x10xf32>
  %z = "xt.exp"(%y) : (tensor<4x10xf32>) -> tensor<4x10xf32>
  %v = "xt.abs"(%a) : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return %v : tensor<4x5xf32>
}

// -----

// Rows of a product that fit in a tile are reduced in its kernel, where that is asked for; the sum that goes on is stored
// by the same kernel.
// ROWS-LABEL: func.func @rows_of_a_product(
// ROWS: %[[Y:.*]]:2 = "xtv.dispatch"(%{{.*}}) {kernel = @dot_general_0
// ROWS-NEXT: return %[[Y]]
// CHECK-LABEL: func.func @rows_of_a_product(
// CHECK: kernel = @dot_general_0
// CHECK: kernel = @reduce_0
func.func @rows_of_a_product(%x: tensor<100x64xf32>, %w: tensor<64x48xf32>) -> (tensor<100x48xf32>, tensor<100x48xf32>) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<100x64xf32>, tensor<64x48xf32>) -> tensor<100x48xf32>
  %1 = "xt.exp"(%0) : (tensor<100x48xf32>) -> tensor<100x48xf32>
  %2 = "xt.reduce"(%1) {axes = [1], keepdims = true, kind = "sum"} : (tensor<100x48xf32>) -> tensor<100x1xf32>
  %3 = "xt.div"(%1, %2) : (tensor<100x48xf32>, tensor<100x1xf32>) -> tensor<100x48xf32>
  return %3, %0 : tensor<100x48xf32>, tensor<100x48xf32>
}

// -----

// Rows that are too long for it are not.
// ROWS-LABEL: func.func @long_rows(
// ROWS: kernel = @dot_general_0
// ROWS: kernel = @reduce_0
func.func @long_rows(%x: tensor<100x64xf32>, %w: tensor<64x72xf32>) -> tensor<100xf32> {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<100x64xf32>, tensor<64x72xf32>) -> tensor<100x72xf32>
  %1 = "xt.reduce"(%0) {axes = [1], keepdims = false, kind = "max"} : (tensor<100x72xf32>) -> tensor<100xf32>
  return %1 : tensor<100xf32>
}

// One with the logs of its sums reads through transposes, too; what turns its result is a kernel of its own.
// CHECK-LABEL: func.func @attention_with_sums_takes_its_views(
// CHECK: xtv.dispatch{{.*}} -> (tensor<1x2x8x16xf16>, tensor<1x2x8xf32>)
// CHECK: xtv.dispatch{{.*}} -> tensor<1x8x2x16xf16>
func.func @attention_with_sums_takes_its_views(%q: tensor<1x8x2x16xf16>, %k: tensor<1x2x8x16xf16>) -> (tensor<1x8x2x16xf16>, tensor<1x2x8xf32>) {
  %0 = "xt.transpose"(%q) {perm = [0, 2, 1, 3]} : (tensor<1x8x2x16xf16>) -> tensor<1x2x8x16xf16>
  %1:2 = "xt.attention_with_sums"(%0, %k, %k) {causal = true, scale = 0.25 : f64} : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8xf32>)
  %2 = "xt.transpose"(%1#0) {perm = [0, 2, 1, 3]} : (tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16>
  return %2, %1#1 : tensor<1x8x2x16xf16>, tensor<1x2x8xf32>
}

// Both gradients of keys are written turned, as the same transpose reads them; by another one each is a kernel.
// CHECK-LABEL: func.func @gradients_are_stored_turned(
// CHECK: xtv.dispatch{{.*}}kernel = @attention_key_gradients_{{.*}} -> (tensor<1x8x2x16xf16>, tensor<1x8x2x16xf16>)
// CHECK-NEXT: return
func.func @gradients_are_stored_turned(%x: tensor<1x2x8x16xf16>, %s: tensor<1x2x8xf32>) -> (tensor<1x8x2x16xf16>, tensor<1x8x2x16xf16>) {
  %0:2 = "xt.attention_key_gradients"(%x, %x, %x, %x, %s, %s) {causal = true, scale = 0.25 : f64} : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>)
  %1 = "xt.transpose"(%0#0) {perm = [0, 2, 1, 3]} : (tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16>
  %2 = "xt.transpose"(%0#1) {perm = [0, 2, 1, 3]} : (tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16>
  return %1, %2 : tensor<1x8x2x16xf16>, tensor<1x8x2x16xf16>
}

// CHECK-LABEL: func.func @gradients_are_turned_apart(
// CHECK: xtv.dispatch{{.*}}kernel = @attention_key_gradients_{{.*}} -> (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>)
func.func @gradients_are_turned_apart(%x: tensor<1x2x8x16xf16>, %s: tensor<1x2x8xf32>) -> (tensor<1x8x2x16xf16>, tensor<1x2x16x8xf16>) {
  %0:2 = "xt.attention_key_gradients"(%x, %x, %x, %x, %s, %s) {causal = true, scale = 0.25 : f64} : (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x2x8x16xf16>, tensor<1x2x8x16xf16>)
  %1 = "xt.transpose"(%0#0) {perm = [0, 2, 1, 3]} : (tensor<1x2x8x16xf16>) -> tensor<1x8x2x16xf16>
  %2 = "xt.transpose"(%0#1) {perm = [0, 1, 3, 2]} : (tensor<1x2x8x16xf16>) -> tensor<1x2x16x8xf16>
  return %1, %2 : tensor<1x8x2x16xf16>, tensor<1x2x16x8xf16>
}

// -----

// A reduction reads the parts of a slice where they lie; a product reads them as a kernel of their own stores them.
// CHECK-LABEL: func.func @split_slice(
// CHECK: "xtv.dispatch"(%{{.*}}) {kernel = @reduce_0{{.*}}(tensor<1000xf32>) -> tensor<9xf32>
// CHECK: %[[P:.*]] = "xtv.dispatch"(%{{.*}}) {kernel = @reshape_0{{.*}}(tensor<1000xf32>) -> tensor<9x111xf32>
// CHECK: "xtv.dispatch"(%[[P]], %{{.*}}) {kernel = @dot_general_0
func.func @split_slice(%x: tensor<1000xf32>, %v: tensor<1000xf32>, %w: tensor<111x64xf32>) -> (tensor<9xf32>, tensor<9x64xf32>) {
  %s = "xt.slice"(%x) {limits = [1000], starts = [1], strides = [1]} : (tensor<1000xf32>) -> tensor<999xf32>
  %r = "xt.reshape"(%s) {shape = [9, 111]} : (tensor<999xf32>) -> tensor<9x111xf32>
  %y = "xt.reduce"(%r) {axes = [1], keepdims = false, kind = "sum"} : (tensor<9x111xf32>) -> tensor<9xf32>
  %t = "xt.slice"(%v) {limits = [999], starts = [0], strides = [1]} : (tensor<1000xf32>) -> tensor<999xf32>
  %p = "xt.reshape"(%t) {shape = [9, 111]} : (tensor<999xf32>) -> tensor<9x111xf32>
  %z = "xt.dot_general"(%p, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<9x111xf32>, tensor<111x64xf32>) -> tensor<9x64xf32>
  return %y, %z : tensor<9xf32>, tensor<9x64xf32>
}
