// RUN: %xcc_opt %s --pass-pipeline='xt-recognise, xt-simplify' --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline='xt-recognise, xt-simplify' --split-input-file --debug-patterns 2>&1 | filecheck %s --check-prefix=WHY

// Scales on q, k and the scores multiply; the transpose of k goes; heads repeated for a group are read once.
// CHECK-LABEL: @grouped
// CHECK: "xt.attention"(%arg0, %arg1, %arg2) {causal = false, {{.*}}scale = 1.250000e-01
func.func @grouped(%q: tensor<1x4x5x16xf32>, %k: tensor<1x2x7x16xf32>, %v: tensor<1x2x7x16xf32>) -> tensor<1x4x5x16xf32> {
  %h = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %k1 = "xt.reshape"(%k) {shape = [1, 2, 1, 7, 16]} : (tensor<1x2x7x16xf32>) -> tensor<1x2x1x7x16xf32>
  %k2 = "xt.broadcast"(%k1) {shape = [1, 2, 2, 7, 16]} : (tensor<1x2x1x7x16xf32>) -> tensor<1x2x2x7x16xf32>
  %k3 = "xt.reshape"(%k2) {shape = [1, 4, 7, 16]} : (tensor<1x2x2x7x16xf32>) -> tensor<1x4x7x16xf32>
  %v1 = "xt.reshape"(%v) {shape = [1, 2, 1, 7, 16]} : (tensor<1x2x7x16xf32>) -> tensor<1x2x1x7x16xf32>
  %v2 = "xt.broadcast"(%v1) {shape = [1, 2, 2, 7, 16]} : (tensor<1x2x1x7x16xf32>) -> tensor<1x2x2x7x16xf32>
  %v3 = "xt.reshape"(%v2) {shape = [1, 4, 7, 16]} : (tensor<1x2x2x7x16xf32>) -> tensor<1x4x7x16xf32>
  %k4 = "xt.transpose"(%k3) {perm = [0, 1, 3, 2]} : (tensor<1x4x7x16xf32>) -> tensor<1x4x16x7xf32>
  %k5 = "xt.mul"(%k4, %h) : (tensor<1x4x16x7xf32>, tensor<f32>) -> tensor<1x4x16x7xf32>
  %q1 = "xt.mul"(%q, %h) : (tensor<1x4x5x16xf32>, tensor<f32>) -> tensor<1x4x5x16xf32>
  %s = "xt.dot_general"(%q1, %k5) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x4x5x16xf32>, tensor<1x4x16x7xf32>) -> tensor<1x4x5x7xf32>
  %s1 = "xt.mul"(%s, %h) : (tensor<1x4x5x7xf32>, tensor<f32>) -> tensor<1x4x5x7xf32>
  %p = "xt.softmax"(%s1) {axis = 3 : i64} : (tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %y = "xt.dot_general"(%p, %v3) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x4x5x7xf32>, tensor<1x4x7x16xf32>) -> tensor<1x4x5x16xf32>
  return %y : tensor<1x4x5x16xf32>
}

// -----
// Heads that are repeated for an attention that is whole already are read once, too, when keys and values both are.
// CHECK-LABEL: @whole
// CHECK: %[[Y:.*]] = "xt.attention"(%arg0, %arg1, %arg2, %arg3) {causal = false, {{.*}}scale = 2.500000e-01
// CHECK: "xt.attention"(%arg0, %{{.*}}, %[[Y]], %arg3)
// WHY: no match: xt.attention {{.*}}: keys and values are no repeated heads
func.func @whole(%q: tensor<1x4x7x16xf32>, %k: tensor<1x2x7x16xf32>, %v: tensor<1x2x7x16xf32>, %m: tensor<7x7xf32>) -> tensor<1x4x7x16xf32> {
  %k1 = "xt.reshape"(%k) {shape = [1, 2, 1, 7, 16]} : (tensor<1x2x7x16xf32>) -> tensor<1x2x1x7x16xf32>
  %k2 = "xt.broadcast"(%k1) {shape = [1, 2, 2, 7, 16]} : (tensor<1x2x1x7x16xf32>) -> tensor<1x2x2x7x16xf32>
  %k3 = "xt.reshape"(%k2) {shape = [1, 4, 7, 16]} : (tensor<1x2x2x7x16xf32>) -> tensor<1x4x7x16xf32>
  %v1 = "xt.reshape"(%v) {shape = [1, 2, 1, 7, 16]} : (tensor<1x2x7x16xf32>) -> tensor<1x2x1x7x16xf32>
  %v2 = "xt.broadcast"(%v1) {shape = [1, 2, 2, 7, 16]} : (tensor<1x2x1x7x16xf32>) -> tensor<1x2x2x7x16xf32>
  %v3 = "xt.reshape"(%v2) {shape = [1, 4, 7, 16]} : (tensor<1x2x2x7x16xf32>) -> tensor<1x4x7x16xf32>
  %y = "xt.attention"(%q, %k3, %v3, %m) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x4x7x16xf32>, tensor<1x4x7x16xf32>, tensor<1x4x7x16xf32>, tensor<7x7xf32>) -> tensor<1x4x7x16xf32>
  %z = "xt.attention"(%q, %k3, %y, %m) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x4x7x16xf32>, tensor<1x4x7x16xf32>, tensor<1x4x7x16xf32>, tensor<7x7xf32>) -> tensor<1x4x7x16xf32>
  return %z : tensor<1x4x7x16xf32>
}

// -----
// A ramp of keys compared with one of queries, and a table: both are causal masks.
// CHECK-LABEL: @causal_compare
// CHECK: "xt.attention"(%arg0, %arg1, %arg2) {causal = true, causal_offset = [0]
func.func @causal_compare(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %row = "xt.iota"() {axis = 0 : i64, dtype = i64, shape = [4, 1]} : () -> tensor<4x1xi64>
  %col = "xt.iota"() {axis = 0 : i64, dtype = i64, shape = [4]} : () -> tensor<4xi64>
  %c = "xt.compare"(%row, %col) {direction = "ge"} : (tensor<4x1xi64>, tensor<4xi64>) -> tensor<4x4xi1>
  %inf = "xt.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %s = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [3]} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32>
  %m = "xt.select"(%c, %s, %inf) : (tensor<4x4xi1>, tensor<1x1x4x4xf32>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %p = "xt.softmax"(%m) {axis = 3 : i64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = "xt.dot_general"(%p, %v) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x1x4x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----
// CHECK-LABEL: @causal_table
// CHECK: "xt.attention"(%{{.*}}, %{{.*}}, %{{.*}}) {causal = true, causal_offset = [1]
func.func @causal_table(%q: tensor<6x2x8xf32>, %k: tensor<6x3x8xf32>, %v: tensor<6x3x8xf32>) -> tensor<6x2x8xf32> {
  %t = "xt.constant"() {value = dense<[[0.0, 0.0, -3.4e38], [0.0, 0.0, 0.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %s = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : (tensor<6x2x8xf32>, tensor<6x3x8xf32>) -> tensor<6x2x3xf32>
  %m = "xt.add"(%s, %t) : (tensor<6x2x3xf32>, tensor<2x3xf32>) -> tensor<6x2x3xf32>
  %p = "xt.softmax"(%m) {axis = 2 : i64} : (tensor<6x2x3xf32>) -> tensor<6x2x3xf32>
  %y = "xt.dot_general"(%p, %v) {dtype = f32, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<6x2x3xf32>, tensor<6x3x8xf32>) -> tensor<6x2x8xf32>
  return %y : tensor<6x2x8xf32>
}

// -----
// The guard gives 0 for a row of which nothing is visible, as attention does: any mask will do.
// CHECK-LABEL: @guarded
// CHECK: "xt.attention"(%arg0, %arg1, %arg2, %arg3)
func.func @guarded(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %t: tensor<4x4xf32>) -> tensor<1x1x4x8xf32> {
  %zero = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %s = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [3]} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32>
  %m = "xt.add"(%s, %t) : (tensor<1x1x4x4xf32>, tensor<4x4xf32>) -> tensor<1x1x4x4xf32>
  %p = "xt.softmax"(%m) {axis = 3 : i64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %n = "xt.is_nan"(%p) : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xi1>
  %g = "xt.select"(%n, %zero, %p) : (tensor<1x1x4x4xi1>, tensor<f32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = "xt.dot_general"(%g, %v) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x1x4x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----
// Without the guard a row of -inf gives NaN.
// CHECK-LABEL: @unguarded
// CHECK: "xt.attention"(%arg0, %arg1, %arg2, %arg3) {{.*}}nan_rows = true
func.func @unguarded(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>, %t: tensor<4x4xf32>) -> tensor<1x1x4x8xf32> {
  %s = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [3]} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32>
  %m = "xt.add"(%s, %t) : (tensor<1x1x4x4xf32>, tensor<4x4xf32>) -> tensor<1x1x4x4xf32>
  %p = "xt.softmax"(%m) {axis = 3 : i64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = "xt.dot_general"(%p, %v) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x1x4x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}

// -----
// The model returns the weights too.
// CHECK-LABEL: @weights_used
// CHECK: xt.dot_general
// CHECK: xt.softmax
// WHY: no match: xt.dot_general {{.*}}: the weights have another user
func.func @weights_used(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x4x8xf32>, %v: tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>) {
  %s = "xt.dot_general"(%q, %k) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [3]} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32>
  %p = "xt.softmax"(%s) {axis = 3 : i64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = "xt.dot_general"(%p, %v) {dtype = f32, lhs_batch = [0, 1], lhs_contract = [3], rhs_batch = [0, 1], rhs_contract = [2]} : (tensor<1x1x4x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %y, %p : tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>
}

// -----
// Keys up to the query, of the same sequence: none begins within rows whose positions rise by one. Gradients, too.
// CHECK-LABEL: @counted
// CHECK: "xt.attention_with_sums"(%arg0, %arg0, %arg0) {causal = true
// CHECK: "xt.attention_query_gradient"(%arg0, %arg0, %arg0, %arg0, %arg1, %arg1) {causal = true
func.func @counted(%x: tensor<1x1x?x8xf32, [1, 1, "n", 8]>, %d: tensor<1x1x?xf32, [1, 1, "n"]>) -> (tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?xf32, [1, 1, "n"]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>) {
  %at = "xt.iota"() {axis = 0 : i64, dtype = i64, shape = ["n"]} : () -> tensor<?xi64, ["n"]>
  %minus = "xt.constant"() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = "xt.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %line = "xtv.concatenate"(%minus, %at) {axis = 0 : i64} : (tensor<1xi64>, tensor<?xi64, ["n"]>) -> tensor<?xi64, ["n + 1"]>
  %old = "xt.slice"(%line) {limits = ["n"], starts = [0], strides = [1]} : (tensor<?xi64, ["n + 1"]>) -> tensor<?xi64, ["n"]>
  %step = "xt.sub"(%at, %old) : (tensor<?xi64, ["n"]>, tensor<?xi64, ["n"]>) -> tensor<?xi64, ["n"]>
  %new = "xt.compare"(%step, %one) {direction = "ne"} : (tensor<?xi64, ["n"]>, tensor<i64>) -> tensor<?xi1, ["n"]>
  %wide = "xt.convert"(%new) {dtype = i64, saturate = false} : (tensor<?xi1, ["n"]>) -> tensor<?xi64, ["n"]>
  %own = "xt.cumulative"(%wide) {axis = 0 : i64, exclusive = false, kind = "sum", reverse = false} : (tensor<?xi64, ["n"]>) -> tensor<?xi64, ["n"]>
  %rows = "xt.reshape"(%at) {shape = ["n", 1]} : (tensor<?xi64, ["n"]>) -> tensor<?x1xi64, ["n", 1]>
  %owns = "xt.reshape"(%own) {shape = ["n", 1]} : (tensor<?xi64, ["n"]>) -> tensor<?x1xi64, ["n", 1]>
  %le = "xt.compare"(%at, %rows) {direction = "le"} : (tensor<?xi64, ["n"]>, tensor<?x1xi64, ["n", 1]>) -> tensor<?x?xi1, ["n", "n"]>
  %eq = "xt.compare"(%own, %owns) {direction = "eq"} : (tensor<?xi64, ["n"]>, tensor<?x1xi64, ["n", 1]>) -> tensor<?x?xi1, ["n", "n"]>
  %m = "xt.and"(%le, %eq) : (tensor<?x?xi1, ["n", "n"]>, tensor<?x?xi1, ["n", "n"]>) -> tensor<?x?xi1, ["n", "n"]>
  %y:2 = "xt.attention_with_sums"(%x, %x, %x, %m) {causal = false, scale = 0.25 : f64} : (tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<?x?xi1, ["n", "n"]>) -> (tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?xf32, [1, 1, "n"]>)
  %g = "xt.attention_query_gradient"(%x, %x, %x, %x, %d, %d, %m) {causal = false, scale = 0.25 : f64} : (tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?xf32, [1, 1, "n"]>, tensor<1x1x?xf32, [1, 1, "n"]>, tensor<?x?xi1, ["n", "n"]>) -> tensor<1x1x?x8xf32, [1, 1, "n", 8]>
  return %y#0, %y#1, %g : tensor<1x1x?x8xf32, [1, 1, "n", 8]>, tensor<1x1x?xf32, [1, 1, "n"]>, tensor<1x1x?x8xf32, [1, 1, "n", 8]>
}

// -----
// The first keys for all queries: one row of a mask is no diagonal.
// CHECK-LABEL: @one_row
// CHECK: "xt.attention"(%arg0, %arg0, %arg0, %{{.*}}) {causal = false
func.func @one_row(%x: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %at = "xt.iota"() {axis = 1 : i64, dtype = i64, shape = [1, 4]} : () -> tensor<1x4xi64>
  %two = "xt.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %m = "xt.compare"(%at, %two) {direction = "le"} : (tensor<1x4xi64>, tensor<i64>) -> tensor<1x4xi1>
  %y = "xt.attention"(%x, %x, %x, %m) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.25 : f64, softcap = 0.0 : f64} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x4xi1>) -> tensor<1x1x4x8xf32>
  return %y : tensor<1x1x4x8xf32>
}
