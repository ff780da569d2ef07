// RUN: %xcc_opt %s --pass-pipeline=xt-decompose --split-input-file | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline='xt-decompose{keep=softmax,gelu}' --split-input-file | filecheck %s --check-prefix=KEEP

// CHECK-LABEL: @softmax
// CHECK: %[[M:.*]] = "xt.reduce"(%arg0) {axes = [1], keepdims = true, kind = "max"}
// CHECK: %[[D:.*]] = "xt.sub"(%arg0, %[[M]])
// CHECK: %[[E:.*]] = "xt.exp"(%[[D]])
// CHECK: %[[S:.*]] = "xt.reduce"(%[[E]]) {axes = [1], keepdims = true, kind = "sum"}
// CHECK: "xt.div"(%[[E]], %[[S]])
// KEEP-LABEL: @softmax
// KEEP: xt.softmax
func.func @softmax(%x: tensor<?x8xf32, ["n", 8]>) -> tensor<?x8xf32, ["n", 8]> {
  %y = "xt.softmax"(%x) {axis = 1 : i64} : (tensor<?x8xf32, ["n", 8]>) -> tensor<?x8xf32, ["n", 8]>
  return %y : tensor<?x8xf32, ["n", 8]>
}

// -----
// Narrow floats compute in f32.
// CHECK-LABEL: @gelu
// CHECK: %[[W:.*]] = "xt.convert"(%arg0) {dtype = f32
// CHECK: xt.erf
// CHECK: "xt.convert"({{.*}}) {dtype = bf16
// KEEP-LABEL: @gelu
// KEEP: xt.gelu
func.func @gelu(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = "xt.gelu"(%x) {approximate = "none"} : (tensor<8xbf16>) -> tensor<8xbf16>
  return %y : tensor<8xbf16>
}

// -----
// Grouped query: two heads share a key head, and the softmax inside is kept when it is listed.
// CHECK-LABEL: @attention
// CHECK: "xt.reshape"(%arg0) {shape = [1, 2, 2, 3, 8]}
// CHECK: "xt.dot_general"{{.*}}rhs_batch = [0, 1]
// CHECK-NOT: xt.softmax
// CHECK: xt.dot_general
// KEEP-LABEL: @attention
// KEEP: xt.dot_general
// KEEP: xt.softmax
// KEEP: xt.dot_general
func.func @attention(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32> {
  %y = "xt.attention"(%q, %k, %v) {causal = false, causal_offset = [0], nan_rows = false, scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %y : tensor<1x4x3x8xf32>
}

// -----
// The best value of each row, then the first place that has it or NaN: two reductions like others.
// CHECK-LABEL: @argmax
// CHECK: %[[M:.*]] = "xt.reduce"(%arg0) {axes = [1], keepdims = true, kind = "max"}
// CHECK: %[[EQ:.*]] = "xt.compare"(%arg0, %[[M]]) {direction = "eq"}
// CHECK: %[[NAN:.*]] = "xt.compare"(%arg0, %arg0) {direction = "ne"}
// CHECK: %[[FOUND:.*]] = "xt.or"(%[[EQ]], %[[NAN]])
// CHECK: %[[AT:.*]] = "xt.iota"() {axis = 1 : i64, dtype = i32, shape = [1, 8]}
// CHECK: "xt.select"(%[[FOUND]], %[[AT]]
// CHECK: "xt.reduce"({{.*}}) {axes = [1], keepdims = false, kind = "min"}
// CHECK: "xt.convert"({{.*}}) {dtype = i64
func.func @argmax(%x: tensor<?x8xf32, ["n", 8]>) -> tensor<?xi64, ["n"]> {
  %y = "xt.arg_reduce"(%x) {axis = 1 : i64, keepdims = false, kind = "argmax", select_last = false} : (tensor<?x8xf32, ["n", 8]>) -> tensor<?xi64, ["n"]>
  return %y : tensor<?xi64, ["n"]>
}

// -----
// Of integers no value is unequal to itself; the last of equal places is the largest.
// CHECK-LABEL: @last_argmin
// CHECK: "xt.reduce"(%arg0) {axes = [0], keepdims = true, kind = "min"}
// CHECK-NOT: direction = "ne"
// CHECK: "xt.reduce"({{.*}}) {axes = [0], keepdims = true, kind = "max"}
func.func @last_argmin(%x: tensor<5x?xui8, [5, "n"]>) -> tensor<1x?xi64, [1, "n"]> {
  %y = "xt.arg_reduce"(%x) {axis = 0 : i64, keepdims = true, kind = "argmin", select_last = true} : (tensor<5x?xui8, [5, "n"]>) -> tensor<1x?xi64, [1, "n"]>
  return %y : tensor<1x?xi64, [1, "n"]>
}

// -----
// Gates and cells of narrow floats are f32 from step to step; the state that products read and results are is narrow.
// CHECK-LABEL: @lstm
// CHECK: "xt.dot_general"({{.*}}) {dtype = f32
// CHECK: "xtv.scan"
// CHECK: (%[[H:.*]]: tensor<2x5xbf16>, %{{.*}}: tensor<2x5xf32>, %{{.*}}: tensor<2x20xf32>
// CHECK: "xt.dot_general"(%[[H]], {{.*}}) {dtype = f32
// CHECK: "xt.convert"({{.*}}) {dtype = bf16
func.func @lstm(%x: tensor<9x2x3xbf16>, %w: tensor<1x20x3xbf16>, %r: tensor<1x20x5xbf16>) -> tensor<9x1x2x5xbf16> {
  %y:3 = "xt.lstm"(%x, %w, %r) {activations = ["sigmoid", "tanh", "tanh"], alphas = [0.0, 0.0, 0.0], betas = [0.0, 0.0, 0.0],
      clip = 0.0, direction = "forward", input_forget = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>}
      : (tensor<9x2x3xbf16>, tensor<1x20x3xbf16>, tensor<1x20x5xbf16>) -> (tensor<9x1x2x5xbf16>, tensor<1x2x5xbf16>, tensor<1x2x5xbf16>)
  return %y#0 : tensor<9x1x2x5xbf16>
}

// -----

// Rows that stay or double go by their sizes, whatever the factor.

// CHECK-LABEL: func @resized_by_multiples
// CHECK: %[[STAYS:.*]] = "xt.compare"{{.*}} {direction = "eq"}
// CHECK: %[[ONE_OR:.*]] = "xt.select"(%[[STAYS]], %{{.*}}, %{{.*}})
// CHECK: %[[DOUBLES:.*]] = "xt.compare"{{.*}} {direction = "eq"}
// CHECK: %[[CHOSEN:.*]] = "xt.select"(%[[DOUBLES]], %{{.*}}, %[[ONE_OR]])
// CHECK: "xt.div"(%{{.*}}, %[[CHOSEN]])
// CHECK: "xt.gather"
func.func @resized_by_multiples(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]> {
  %0 = "xt.resize"(%x) {shape = ["m"], mode = "nearest", coordinate = "asymmetric", nearest_mode = "floor", cubic_coeff = -0.75, exclude_outside = false, extrapolation = 0.0, antialias = false, scales = [2.3], multiples = 2 : i64, roi = []} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["m"]>
  func.return %0 : tensor<?xf32, ["m"]>
}

// -----
// 120 numbers as 12 x 10; of the second product, one for each of the first's 12 results, half of the frequencies.
// CHECK-LABEL: @long_transform
// CHECK: %[[X:.*]] = "xt.reshape"(%arg0) {{.*}}tensor<?x12x10x1xf32
// CHECK: "xt.dot_general"(%[[X]], {{.*}}lhs_batch = [], lhs_contract = [1, 3]
// CHECK: "xt.dot_general"({{.*}}lhs_batch = [1], lhs_contract = [2, 3]{{.*}}tensor<12x10x2x6x2xf32
// CHECK: "xt.slice"({{.*}}limits = {{.*}}61
func.func @long_transform(%x: tensor<?x120x1xf32, ["n", 120, 1]>) -> tensor<?x61x2xf32, ["n", 61, 2]> {
  %y = "xt.dft"(%x) {axis = 1 : i64, inverse = false, onesided = true, length = []} : (tensor<?x120x1xf32, ["n", 120, 1]>) -> tensor<?x61x2xf32, ["n", 61, 2]>
  return %y : tensor<?x61x2xf32, ["n", 61, 2]>
}

// -----
// Of a length that only a run tells the roots are computed: turns of i * j modulo n, by a sine. There are two products,
// by the length's divisor next to its root.
// CHECK-LABEL: @free_transform
// CHECK: %[[X:.*]] = "xt.reshape"(%arg0) {shape = [4, "floordiv(n, divisor(n, root(n, 2)))", "divisor(n, root(n, 2))", 1]}
// CHECK: %[[S:.*]] = "xt.sin"({{.*}}tensor<?x1x?x1xf32, ["floordiv(n, divisor(n, root(n, 2)))", 1, "floordiv(n, divisor(n, root(n, 2)))", 1]>
// CHECK: %[[T:.*]] = "xtv.concatenate"(%[[S]], %{{.*}}) {axis = 3
// CHECK: "xt.dot_general"(%[[X]], %[[T]])
// CHECK: "xt.dot_general"(
// CHECK: "xt.slice"({{.*}}"floordiv(n, 2) + 1"
func.func @free_transform(%x: tensor<4x?x1xf32, [4, "n", 1]>) -> tensor<4x?x2xf32, [4, "floordiv(n, 2) + 1", 2]> {
  %y = "xt.dft"(%x) {axis = 1 : i64, inverse = false, onesided = true, length = []} : (tensor<4x?x1xf32, [4, "n", 1]>) -> tensor<4x?x2xf32, [4, "floordiv(n, 2) + 1", 2]>
  return %y : tensor<4x?x2xf32, [4, "floordiv(n, 2) + 1", 2]>
}

// -----
// Taps of a resized last dim lie ahead of its results, along which lanes go.
// CHECK-LABEL: @shrunk_columns
// CHECK: "xt.gather"(%arg0, %{{.*}}) {{.*}}-> tensor<4x?x61xf32
// CHECK: "xt.reduce"(%{{.*}}) {axes = [1], {{.*}}-> tensor<4x61xf32
func.func @shrunk_columns(%x: tensor<4x?xf32, [4, "n"]>) -> tensor<4x61xf32> {
  %0 = "xt.resize"(%x) {shape = [4, 61], mode = "linear", coordinate = "half_pixel", nearest_mode = "floor", cubic_coeff = -0.75, exclude_outside = false, extrapolation = 0.0, antialias = true, scales = [0.0, 0.0], multiples = 1 : i64, roi = []} : (tensor<4x?xf32, [4, "n"]>) -> tensor<4x61xf32>
  func.return %0 : tensor<4x61xf32>
}

// -----
// A deformable convolution reads its taps once, as a long image, and is a convolution of 1x1 then.
// CHECK-LABEL: @deformed
// CHECK: %[[COLUMNS:.*]] = "xt.grid_sample"(%{{.*}}, %{{.*}}) {{.*}}-> tensor<1x8x36x5xf32>
// CHECK: %[[FLAT:.*]] = "xt.reshape"(%[[COLUMNS]]) {{.*}}-> tensor<1x72x4x5xf32>
// CHECK: "xt.convolution"(%[[FLAT]], %{{.*}}) {{.*}}tensor<6x72x1x1xf32>) -> tensor<1x6x4x5xf32>
func.func @deformed(%x: tensor<1x8x4x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x18x4x5xf32>) -> tensor<1x6x4x5xf32> {
  %0 = "xt.deform_conv"(%x, %w, %o) {strides = [1, 1], low = [1, 1], high = [1, 1], dilations = [1, 1], groups = 1 : i64, offset_groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<1x8x4x5xf32>, tensor<6x8x3x3xf32>, tensor<1x18x4x5xf32>) -> tensor<1x6x4x5xf32>
  func.return %0 : tensor<1x6x4x5xf32>
}
