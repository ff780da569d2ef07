// What one rank of a mesh has of a model, and what it exchanges.
// RUN: %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 rank=1}' --target=nvptx --chip=sm_90a --split-input-file | filecheck %s

// Columns of the first matrix, rows of the second, and one sum: nothing is exchanged between them.
// CHECK-LABEL: xt.mesh = {{\[\[}}"tp", 2]]
// CHECK: %[[U:.*]] = "xt.weight"() {name = "up.tp"} : () -> tensor<64x128xf32>
// CHECK: %[[H:.*]] = "xt.dot_general"(%arg0, %[[U]]) {{.*}} -> tensor<16x128xf32>
// CHECK: %[[B:.*]] = "xt.weight"() {name = "bias.tp"} : () -> tensor<128xf32>
// CHECK: %[[I:.*]] = "xt.add"(%[[H]], %[[B]])
// CHECK: %[[G:.*]] = "xt.gelu"(%[[I]])
// CHECK: %[[D:.*]] = "xt.weight"() {name = "down.tp"} : () -> tensor<128x64xf32>
// CHECK: %[[P:.*]] = "xt.dot_general"(%[[G]], %[[D]]) {{.*}} -> tensor<16x64xf32>
// CHECK: %[[Y:.*]] = "xt.all_reduce"(%[[P]]) {axes = ["tp"], combine = "add"}
// CHECK: "xt.add"(%[[Y]], %arg0)
func.func @mlp(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %u = "xt.weight"() {name = "up"} : () -> tensor<64x256xf32>
  %b = "xt.weight"() {name = "bias"} : () -> tensor<256xf32>
  %d = "xt.weight"() {name = "down"} : () -> tensor<256x64xf32>
  %h = "xt.dot_general"(%x, %u) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x64xf32>, tensor<64x256xf32>) -> tensor<16x256xf32>
  %i = "xt.add"(%h, %b) : (tensor<16x256xf32>, tensor<256xf32>) -> tensor<16x256xf32>
  %g = "xt.gelu"(%i) {approximate = "none"} : (tensor<16x256xf32>) -> tensor<16x256xf32>
  %y = "xt.dot_general"(%g, %d) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x256xf32>, tensor<256x64xf32>) -> tensor<16x64xf32>
  %z = "xt.add"(%y, %x) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %z : tensor<16x64xf32>
}

// -----
// The queries, keys and values of a rank's heads, of three segments of one matrix. Rows may be any number.
// CHECK-LABEL: @heads
// CHECK: %[[W:.*]] = "xt.weight"() {name = "qkv.tp"} : () -> tensor<64x96xf32>
// CHECK: %[[A:.*]] = "xt.dot_general"(%arg0, %[[W]]) {{.*}} -> tensor<?x96xf32, ["n", 96]>
// CHECK-DAG: "xt.slice"(%[[A]]) {limits = ["n", 32], starts = [0, 0], strides = [1, 1]}
// CHECK-DAG: "xt.slice"(%[[A]]) {limits = ["n", 64], starts = [0, 32], strides = [1, 1]}
// CHECK-DAG: "xt.slice"(%[[A]]) {limits = ["n", 96], starts = [0, 64], strides = [1, 1]}
// CHECK: "xt.reshape"(%{{.*}}) {shape = ["n", 2, 16]}
// CHECK: %[[T:.*]] = "xt.attention"{{.*}} -> tensor<1x2x?x16xf32, [1, 2, "n", 16]>
// CHECK: %[[O:.*]] = "xt.weight"() {name = "out.tp"} : () -> tensor<32x64xf32>
// CHECK: %[[P:.*]] = "xt.dot_general"(%{{.*}}, %[[O]])
// CHECK-NEXT: %[[R:.*]] = "xt.all_reduce"(%[[P]])
// CHECK-NEXT: return %[[R]]
func.func @heads(%x: tensor<?x64xf32, ["n", 64]>) -> tensor<?x64xf32, ["n", 64]> {
  %w = "xt.weight"() {name = "qkv"} : () -> tensor<64x192xf32>
  %o = "xt.weight"() {name = "out"} : () -> tensor<64x64xf32>
  %a = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x64xf32, ["n", 64]>, tensor<64x192xf32>) -> tensor<?x192xf32, ["n", 192]>
  %q0 = "xt.slice"(%a) {starts = [0, 0], limits = ["n", 64], strides = [1, 1]} : (tensor<?x192xf32, ["n", 192]>) -> tensor<?x64xf32, ["n", 64]>
  %k0 = "xt.slice"(%a) {starts = [0, 64], limits = ["n", 128], strides = [1, 1]} : (tensor<?x192xf32, ["n", 192]>) -> tensor<?x64xf32, ["n", 64]>
  %v0 = "xt.slice"(%a) {starts = [0, 128], limits = ["n", 192], strides = [1, 1]} : (tensor<?x192xf32, ["n", 192]>) -> tensor<?x64xf32, ["n", 64]>
  %q1 = "xt.reshape"(%q0) {shape = ["n", 4, 16]} : (tensor<?x64xf32, ["n", 64]>) -> tensor<?x4x16xf32, ["n", 4, 16]>
  %k1 = "xt.reshape"(%k0) {shape = ["n", 4, 16]} : (tensor<?x64xf32, ["n", 64]>) -> tensor<?x4x16xf32, ["n", 4, 16]>
  %v1 = "xt.reshape"(%v0) {shape = ["n", 4, 16]} : (tensor<?x64xf32, ["n", 64]>) -> tensor<?x4x16xf32, ["n", 4, 16]>
  %q2 = "xt.transpose"(%q1) {perm = [1, 0, 2]} : (tensor<?x4x16xf32, ["n", 4, 16]>) -> tensor<4x?x16xf32, [4, "n", 16]>
  %k2 = "xt.transpose"(%k1) {perm = [1, 0, 2]} : (tensor<?x4x16xf32, ["n", 4, 16]>) -> tensor<4x?x16xf32, [4, "n", 16]>
  %v2 = "xt.transpose"(%v1) {perm = [1, 0, 2]} : (tensor<?x4x16xf32, ["n", 4, 16]>) -> tensor<4x?x16xf32, [4, "n", 16]>
  %q = "xt.reshape"(%q2) {shape = [1, 4, "n", 16]} : (tensor<4x?x16xf32, [4, "n", 16]>) -> tensor<1x4x?x16xf32, [1, 4, "n", 16]>
  %k = "xt.reshape"(%k2) {shape = [1, 4, "n", 16]} : (tensor<4x?x16xf32, [4, "n", 16]>) -> tensor<1x4x?x16xf32, [1, 4, "n", 16]>
  %v = "xt.reshape"(%v2) {shape = [1, 4, "n", 16]} : (tensor<4x?x16xf32, [4, "n", 16]>) -> tensor<1x4x?x16xf32, [1, 4, "n", 16]>
  %t = "xt.attention"(%q, %k, %v) {causal = true, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x4x?x16xf32, [1, 4, "n", 16]>, tensor<1x4x?x16xf32, [1, 4, "n", 16]>, tensor<1x4x?x16xf32, [1, 4, "n", 16]>) -> tensor<1x4x?x16xf32, [1, 4, "n", 16]>
  %u = "xt.transpose"(%t) {perm = [0, 2, 1, 3]} : (tensor<1x4x?x16xf32, [1, 4, "n", 16]>) -> tensor<1x?x4x16xf32, [1, "n", 4, 16]>
  %c = "xt.reshape"(%u) {shape = ["n", 64]} : (tensor<1x?x4x16xf32, [1, "n", 4, 16]>) -> tensor<?x64xf32, ["n", 64]>
  %y = "xt.dot_general"(%c, %o) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<?x64xf32, ["n", 64]>, tensor<64x64xf32>) -> tensor<?x64xf32, ["n", 64]>
  return %y : tensor<?x64xf32, ["n", 64]>
}

// -----
// A filter's outputs, a pool between, the next one's inputs.
// CHECK-LABEL: @convolutions
// CHECK: "xt.convolution"(%arg0, %{{.*}}) {{.*}} -> tensor<1x64x16x16xf32>
// CHECK: "xt.reduce_window"{{.*}} -> tensor<1x64x8x8xf32>
// CHECK: %[[P:.*]] = "xt.convolution"(%{{.*}}) {{.*}} -> tensor<1x32x8x8xf32>
// CHECK: "xt.all_reduce"(%[[P]])
func.func @convolutions(%x: tensor<1x32x16x16xf32>) -> tensor<1x32x8x8xf32> {
  %a = "xt.weight"() {name = "a"} : () -> tensor<128x32x3x3xf32>
  %b = "xt.weight"() {name = "b"} : () -> tensor<32x128x3x3xf32>
  %h = "xt.convolution"(%x, %a) {dtype = f32, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x32x16x16xf32>, tensor<128x32x3x3xf32>) -> tensor<1x128x16x16xf32>
  %p = "xt.reduce_window"(%h) {dilations = [1, 1, 1, 1], high = [0, 0, 0, 0], kind = "max", low = [0, 0, 0, 0], strides = [1, 1, 2, 2], window = [1, 1, 2, 2]} : (tensor<1x128x16x16xf32>) -> tensor<1x128x8x8xf32>
  %y = "xt.convolution"(%p, %b) {dtype = f32, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x128x8x8xf32>, tensor<32x128x3x3xf32>) -> tensor<1x32x8x8xf32>
  return %y : tensor<1x32x8x8xf32>
}

// -----
// Sums of two products, both partial: one collective. 33 columns do not divide.
// CHECK-LABEL: @sums
// CHECK: %[[A:.*]] = "xt.dot_general"{{.*}} -> tensor<16x33xf32>
// CHECK: %[[B:.*]] = "xt.dot_general"{{.*}} -> tensor<16x33xf32>
// CHECK: %[[S:.*]] = "xt.add"(%[[A]], %[[B]])
// CHECK-NEXT: "xt.all_reduce"(%[[S]])
func.func @sums(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x33xf32> {
  %v = "xt.weight"() {name = "v"} : () -> tensor<64x33xf32>
  %w = "xt.weight"() {name = "w"} : () -> tensor<64x33xf32>
  %a = "xt.dot_general"(%x, %v) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x64xf32>, tensor<64x33xf32>) -> tensor<16x33xf32>
  %b = "xt.dot_general"(%y, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x64xf32>, tensor<64x33xf32>) -> tensor<16x33xf32>
  %s = "xt.add"(%a, %b) : (tensor<16x33xf32>, tensor<16x33xf32>) -> tensor<16x33xf32>
  return %s : tensor<16x33xf32>
}

// -----
// A table of 33 rows is split along its features, which are gathered; nothing is known of sorts without a dim to share.
// CHECK-LABEL: @table
// CHECK: %[[W:.*]] = "xt.weight"() {name = "table.tp"} : () -> tensor<33x32xf32>
// CHECK: %[[G:.*]] = "xt.gather"(%[[W]], %arg0) {{.*}} -> tensor<8x32xf32>
// CHECK: "xt.all_gather"(%[[G]]) {axes = ["tp"], dim = 1 : i64, ranks = 2 : i64}
// CHECK: "xt.sort"(%{{.*}}) {{.*}} : (tensor<8x64xf32>)
func.func @table(%x: tensor<8xi64>) -> tensor<8x64xf32> {
  %w = "xt.weight"() {name = "table"} : () -> tensor<33x64xf32>
  %g = "xt.gather"(%w, %x) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<33x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
  %s:2 = "xt.sort"(%g) {axis = 1 : i64, descending = false, stable = true} : (tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xi64>)
  return %s#0 : tensor<8x64xf32>
}

// -----
// What a branch uses from outside is whole.
// CHECK-LABEL: @branch
// CHECK: %[[P:.*]] = "xt.dot_general"{{.*}} -> tensor<16x32xf32>
// CHECK: %[[H:.*]] = "xt.all_gather"(%[[P]])
// CHECK: "xtv.if"
// CHECK: "xt.exp"(%[[H]])
func.func @branch(%x: tensor<16x64xf32>, %c: tensor<i1>) -> tensor<16x64xf32> {
  %w = "xt.weight"() {name = "w"} : () -> tensor<64x64xf32>
  %h = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
  %y = "xtv.if"(%c) ({
    %e = "xt.exp"(%h) : (tensor<16x64xf32>) -> tensor<16x64xf32>
    "xtv.yield"(%e) : (tensor<16x64xf32>) -> ()
  }, {
    "xtv.yield"(%x) : (tensor<16x64xf32>) -> ()
  }) : (tensor<i1>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}
