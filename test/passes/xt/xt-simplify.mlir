// RUN: %xcc_opt %s --pass-pipeline=xt-simplify --split-input-file | filecheck %s

// CHECK-LABEL: @no_effect
// CHECK-NEXT: return %arg0
func.func @no_effect(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = "xt.reshape"(%x) {shape = [2, 3]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "xt.transpose"(%a) {perm = [0, 1]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = "xt.convert"(%b) {dtype = f32, saturate = false} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = "xt.slice"(%c) {starts = [0, 0], limits = [2, 3], strides = [1, 1]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = "xt.pad"(%d) {low = [0, 0], high = [0, 0], interior = [0, 0], mode = "constant", value = 0.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %e : tensor<2x3xf32>
}

// -----
// A pad that moves the data by one place has the operand's type, but does something.
// CHECK-LABEL: @shifting_pad
// CHECK: xt.pad
func.func @shifting_pad(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = "xt.pad"(%x) {low = [1], high = [-1], interior = [0], mode = "constant", value = 0.0 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  return %e : tensor<3xf32>
}

// -----
// CHECK-LABEL: @square_transpose
// CHECK: xt.transpose
func.func @square_transpose(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %e = "xt.transpose"(%x) {perm = [1, 0]} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %e : tensor<3x3xf32>
}

// -----
// CHECK-LABEL: @transpose_of_transpose
// CHECK: %[[T:.*]] = "xt.transpose"(%arg0) {perm = [2, 0, 1]}
// CHECK-NEXT: return %[[T]]
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %a = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %b = "xt.transpose"(%a) {perm = [2, 1, 0]} : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  return %b : tensor<4x2x3xf32>
}

// -----
// CHECK-LABEL: @transpose_of_ones
// CHECK: "xt.reshape"(%arg0) {shape = [2, 1, 3]}
func.func @transpose_of_ones(%x: tensor<1x2x3xf32>) -> tensor<2x1x3xf32> {
  %a = "xt.transpose"(%x) {perm = [1, 0, 2]} : (tensor<1x2x3xf32>) -> tensor<2x1x3xf32>
  return %a : tensor<2x1x3xf32>
}

// -----
// CHECK-LABEL: @views_join
// CHECK: %[[R:.*]] = "xt.reshape"(%arg0) {shape = [6, "n"]}
// CHECK-NEXT: return %[[R]]
func.func @views_join(%x: tensor<?x2x3xf32, ["n", 2, 3]>) -> tensor<6x?xf32, [6, "n"]> {
  %a = "xt.reshape"(%x) {shape = ["6*n"]} : (tensor<?x2x3xf32, ["n", 2, 3]>) -> tensor<?xf32, ["6*n"]>
  %b = "xt.reshape"(%a) {shape = [6, "n"]} : (tensor<?xf32, ["6*n"]>) -> tensor<6x?xf32, [6, "n"]>
  return %b : tensor<6x?xf32, [6, "n"]>
}

// -----
// CHECK-LABEL: @slices_join
// CHECK: "xt.slice"(%arg0) {limits = [8], starts = [3], strides = [4]}
func.func @slices_join(%x: tensor<10xf32>) -> tensor<2xf32> {
  %a = "xt.slice"(%x) {starts = [1], limits = [10], strides = [2]} : (tensor<10xf32>) -> tensor<5xf32>
  %b = "xt.slice"(%a) {starts = [1], limits = [5], strides = [2]} : (tensor<5xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}

// -----
// Widening first changes nothing; narrowing first does.
// CHECK-LABEL: @converts
// CHECK: %[[A:.*]] = "xt.convert"(%arg0) {dtype = bf16
// CHECK: %[[B:.*]] = "xt.convert"(%arg1) {dtype = f16
// CHECK: %[[C:.*]] = "xt.convert"(%[[B]]) {dtype = f32
// CHECK: return %[[A]], %[[C]]
func.func @converts(%x: tensor<2xf16>, %y: tensor<2xf32>) -> (tensor<2xbf16>, tensor<2xf32>) {
  %a = "xt.convert"(%x) {dtype = f32, saturate = false} : (tensor<2xf16>) -> tensor<2xf32>
  %b = "xt.convert"(%a) {dtype = bf16, saturate = false} : (tensor<2xf32>) -> tensor<2xbf16>
  %c = "xt.convert"(%y) {dtype = f16, saturate = false} : (tensor<2xf32>) -> tensor<2xf16>
  %d = "xt.convert"(%c) {dtype = f32, saturate = false} : (tensor<2xf16>) -> tensor<2xf32>
  return %b, %d : tensor<2xbf16>, tensor<2xf32>
}

// -----
// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %zero = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.mul"(%one, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %b = "xt.add"(%a, %zero) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c = "xt.div"(%b, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d = "xt.neg"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  %e = "xt.neg"(%d) : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// -----
// 1 / x and 0 - x are no identities, and x * 1 that broadcasts x stays.
// CHECK-LABEL: @not_neutral
// CHECK: xt.div
// CHECK: xt.sub
// CHECK: xt.mul
func.func @not_neutral(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) {
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %ones = "xt.constant"() {value = dense<1.0> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %zero = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.div"(%one, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %b = "xt.sub"(%zero, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %c = "xt.mul"(%x, %ones) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>
}

// -----
// CHECK-LABEL: @select_known
// CHECK-NEXT: return %arg1
func.func @select_known(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %p = "xt.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %a = "xt.select"(%p, %x, %y) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = "xt.maximum"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----
// CHECK-LABEL: @powers
// CHECK: "xt.mul"(%arg0, %arg0)
// CHECK: "xt.sqrt"(%arg0)
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = "xt.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %half = "xt.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = "xt.pow"(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = "xt.pow"(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----
// CHECK-LABEL: @dims
// CHECK: %[[D:.*]] = "xt.dim"() {value = ["2*n + 3"]}
// CHECK-NEXT: return %[[D]]
func.func @dims(%x: tensor<?xf32, ["n"]>) -> tensor<i64> {
  %n = "xt.dim"() {value = ["n"]} : () -> tensor<i64>
  %two = "xt.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %three = "xt.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %a = "xt.mul"(%n, %two) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %b = "xt.add"(%a, %three) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %b : tensor<i64>
}

// -----
// CHECK-LABEL: @lists
// CHECK-NEXT: return %arg0
func.func @lists(%x: tensor<4xf32>, %e: tensor<0xf32>) -> tensor<4xf32> {
  %a = "xtv.concatenate"(%x, %e) {axis = 0 : i64} : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
  %dead = "xtv.concatenate"(%a, %a) {axis = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %a : tensor<4xf32>
}
// -----
// A window is clipped to what results read of the image; one that is the whole image is a reduction.
// CHECK-LABEL: func.func @wide_window
// CHECK-NEXT: "xt.reduce"(%arg0) {axes = [1, 2], keepdims = true, kind = "sum"}
func.func @wide_window(%x: tensor<?x7x7xf32, ["n", 7, 7]>) -> tensor<?x1x1xf32, ["n", 1, 1]> {
  %y = "xt.reduce_window"(%x) {kind = "sum", window = [1, 1280, 1280], strides = [1, 1280, 1280], low = [0, 0, 0], high = [0, 1273, 1273], dilations = [1, 1, 1]} : (tensor<?x7x7xf32, ["n", 7, 7]>) -> tensor<?x1x1xf32, ["n", 1, 1]>
  return %y : tensor<?x1x1xf32, ["n", 1, 1]>
}

// -----
// Elements 2 to 4 of nine, four apart, are inside for some result.
// CHECK-LABEL: func.func @clipped_window
// CHECK: "xt.reduce_window"(%arg0) {dilations = [1, 4], high = [0, 5], kind = "max", low = [0, 5], strides = [1, 1], window = [1, 3]}
func.func @clipped_window(%x: tensor<8x5xf32>) -> tensor<8x7xf32> {
  %y = "xt.reduce_window"(%x) {kind = "max", window = [1, 9], strides = [1, 1], low = [0, 17], high = [0, 17], dilations = [1, 4]} : (tensor<8x5xf32>) -> tensor<8x7xf32>
  return %y : tensor<8x7xf32>
}

// -----
// Pixels of an image whose channels lie last, as rows; both transposes are one where they are not none.
// CHECK-LABEL: func.func @turned_back
// CHECK-NEXT: %[[Y:.*]] = "xt.reshape"(%arg0) {shape = [2, 12, 5]}
// CHECK-NEXT: %[[T:.*]] = "xt.transpose"(%arg0) {perm = [3, 1, 2, 0]}
// CHECK-NEXT: %[[Z:.*]] = "xt.reshape"(%[[T]]) {shape = [5, 12, 2]}
// CHECK-NEXT: return %[[Y]], %[[Z]]
func.func @turned_back(%x: tensor<2x3x4x5xf32>) -> (tensor<2x12x5xf32>, tensor<5x12x2xf32>) {
  %t = "xt.transpose"(%x) {perm = [0, 3, 1, 2]} : (tensor<2x3x4x5xf32>) -> tensor<2x5x3x4xf32>
  %m = "xt.reshape"(%t) {shape = [2, 5, 12]} : (tensor<2x5x3x4xf32>) -> tensor<2x5x12xf32>
  %y = "xt.transpose"(%m) {perm = [0, 2, 1]} : (tensor<2x5x12xf32>) -> tensor<2x12x5xf32>
  %z = "xt.transpose"(%m) {perm = [1, 2, 0]} : (tensor<2x5x12xf32>) -> tensor<5x12x2xf32>
  return %y, %z : tensor<2x12x5xf32>, tensor<5x12x2xf32>
}

// -----
// The channels are merged with what they lie beside now.
// CHECK-LABEL: func.func @turned_and_split
// CHECK: "xt.transpose"(%arg0) {perm = [0, 2, 1]}
// CHECK: "xt.transpose"({{.*}}) {perm = [0, 2, 1]}
func.func @turned_and_split(%x: tensor<2x6x4xf32>) -> tensor<2x8x3xf32> {
  %t = "xt.transpose"(%x) {perm = [0, 2, 1]} : (tensor<2x6x4xf32>) -> tensor<2x4x6xf32>
  %m = "xt.reshape"(%t) {shape = [2, 3, 8]} : (tensor<2x4x6xf32>) -> tensor<2x3x8xf32>
  %y = "xt.transpose"(%m) {perm = [0, 2, 1]} : (tensor<2x3x8xf32>) -> tensor<2x8x3xf32>
  return %y : tensor<2x8x3xf32>
}

// -----
// One index for a row of elements is not repeated for each of them; whole rows along the first axis are written as rows.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[I:.*]] = "xt.reshape"(%arg2) {{.*}} -> tensor<2x1xi64>
// CHECK: "xt.scatter_nd"(%arg0, %[[I]], %arg1) {reduction = "add"}
// CHECK: %[[J:.*]] = "xt.reshape"(%arg2) {{.*}} -> tensor<1x2x1xi64>
// CHECK: "xt.scatter_elements"(%arg3, %[[J]], %arg4)
func.func @rows(%c: tensor<8x4xf32>, %u: tensor<2x4xf32>, %i: tensor<2xi64>, %d: tensor<3x8x4xf32>, %v: tensor<3x2x4xf32>)
    -> (tensor<8x4xf32>, tensor<3x8x4xf32>) {
  %c0 = "xt.reshape"(%i) {shape = [2, 1]} : (tensor<2xi64>) -> tensor<2x1xi64>
  %0 = "xt.broadcast"(%c0) {shape = [2, 4]} : (tensor<2x1xi64>) -> tensor<2x4xi64>
  %1 = "xt.scatter_elements"(%c, %0, %u) {axis = 0 : i64, reduction = "add"} : (tensor<8x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %2 = "xt.broadcast"(%c0) {shape = [3, 2, 4]} : (tensor<2x1xi64>) -> tensor<3x2x4xi64>
  %3 = "xt.scatter_elements"(%d, %2, %v) {axis = 1 : i64, reduction = "none"} : (tensor<3x8x4xf32>, tensor<3x2x4xi64>, tensor<3x2x4xf32>) -> tensor<3x8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<3x8x4xf32>
}

// -----
// A part of each row, and an index along the axis that is repeated itself.
// CHECK-LABEL: func.func @parts_of_rows(
// CHECK: "xt.scatter_elements"(%arg0, %{{.*}}, %arg1) {{.*}}tensor<2x1xi64>
// CHECK: "xt.scatter_elements"(%arg0, %{{.*}}, %arg1) {{.*}}tensor<2x3xi64>
func.func @parts_of_rows(%c: tensor<8x4xf32>, %u: tensor<2x3xf32>, %i: tensor<2x1xi64>, %j: tensor<1x3xi64>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = "xt.broadcast"(%i) {shape = [2, 3]} : (tensor<2x1xi64>) -> tensor<2x3xi64>
  %1 = "xt.scatter_elements"(%c, %0, %u) {axis = 0 : i64, reduction = "add"} : (tensor<8x4xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<8x4xf32>
  %2 = "xt.broadcast"(%j) {shape = [2, 3]} : (tensor<1x3xi64>) -> tensor<2x3xi64>
  %3 = "xt.scatter_elements"(%c, %2, %u) {axis = 0 : i64, reduction = "add"} : (tensor<8x4xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----
// Rows that are not known to be whole are no scatter of rows. How often a row is written to is counted once.
// CHECK-LABEL: func.func @unknown_rows(
// CHECK: "xt.scatter_elements"(%arg0, %{{.*}}, %arg1) {{.*}}tensor<?x1xi64, ["n", 1]>
// CHECK: "xt.scatter_elements"({{.*}}tensor<8x1xf32>, {{.*}} -> tensor<8x1xf32>
// CHECK: "xt.compare"
// CHECK: "xt.select"
// CHECK-LABEL: func.func @counts(
// CHECK: %[[C:.*]] = "xt.scatter_elements"({{.*}} -> tensor<8x1xf32>
// CHECK: %[[R:.*]] = "xt.broadcast"(%[[C]]) {shape = [8, 4]}
// CHECK-NEXT: return %[[R]]
func.func @unknown_rows(%c: tensor<8x?xf32, [8, "w"]>, %u: tensor<?x?xf32, ["n", "m"]>, %i: tensor<?x1xi64, ["n", 1]>) -> (tensor<8x?xf32, [8, "w"]>, tensor<8x?xf32, [8, "w"]>) {
  %0 = "xt.broadcast"(%i) {shape = ["n", "m"]} : (tensor<?x1xi64, ["n", 1]>) -> tensor<?x?xi64, ["n", "m"]>
  %1 = "xt.scatter_elements"(%c, %0, %u) {axis = 0 : i64, reduction = "add"} : (tensor<8x?xf32, [8, "w"]>, tensor<?x?xi64, ["n", "m"]>, tensor<?x?xf32, ["n", "m"]>) -> tensor<8x?xf32, [8, "w"]>
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %x = "xt.broadcast"(%one) {shape = [8, "w"]} : (tensor<f32>) -> tensor<8x?xf32, [8, "w"]>
  %v = "xt.broadcast"(%one) {shape = ["n", "m"]} : (tensor<f32>) -> tensor<?x?xf32, ["n", "m"]>
  %2 = "xt.scatter_elements"(%x, %0, %v) {axis = 0 : i64, reduction = "add"} : (tensor<8x?xf32, [8, "w"]>, tensor<?x?xi64, ["n", "m"]>, tensor<?x?xf32, ["n", "m"]>) -> tensor<8x?xf32, [8, "w"]>
  return %1, %2 : tensor<8x?xf32, [8, "w"]>, tensor<8x?xf32, [8, "w"]>
}
func.func @counts(%i: tensor<3x1xi64>) -> tensor<8x4xf32> {
  %0 = "xt.broadcast"(%i) {shape = [3, 4]} : (tensor<3x1xi64>) -> tensor<3x4xi64>
  %one = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %x = "xt.broadcast"(%one) {shape = [8, 4]} : (tensor<f32>) -> tensor<8x4xf32>
  %v = "xt.broadcast"(%one) {shape = [3, 4]} : (tensor<f32>) -> tensor<3x4xf32>
  %1 = "xt.scatter_elements"(%x, %0, %v) {axis = 0 : i64, reduction = "add"} : (tensor<8x4xf32>, tensor<3x4xi64>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----
// What a slice takes of one part of a concatenation; what it takes of two stays.
// CHECK-LABEL: func.func @part_of_parts(
// CHECK: "xtv.concatenate"
// CHECK: %[[A:.*]] = "xt.slice"(%arg1) {limits = [2, 4], starts = [1, 1], strides = [1, 2]}
// CHECK: %[[B:.*]] = "xt.slice"(%{{.*}}) {limits = [3, 6], starts = [0, 3]
// CHECK: return %[[A]], %[[B]]
func.func @part_of_parts(%x: tensor<3x4xf32>, %y: tensor<3x6xf32>) -> (tensor<1x2xf32>, tensor<3x3xf32>) {
  %c = "xtv.concatenate"(%x, %y) {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<3x10xf32>
  %0 = "xt.slice"(%c) {starts = [1, 5], limits = [2, 8], strides = [1, 2]} : (tensor<3x10xf32>) -> tensor<1x2xf32>
  %1 = "xt.slice"(%c) {starts = [0, 3], limits = [3, 6], strides = [1, 1]} : (tensor<3x10xf32>) -> tensor<3x3xf32>
  return %0, %1 : tensor<1x2xf32>, tensor<3x3xf32>
}

// -----
// Slices that lie beside each other are one, all of a value are that value; in another order they stay.
// CHECK-LABEL: func.func @rejoined(
// CHECK-DAG: %[[F:.*]] = "xt.slice"(%arg0) {limits = [3, 5], starts = [0, 1], strides = [1, 1]}
// CHECK-DAG: %[[I:.*]] = "xt.slice"(%arg0) {limits = [3, 4], starts = [0, 0], strides = [1, 3]}
// CHECK: %[[J:.*]] = "xtv.concatenate"
// CHECK: return %arg0, %[[F]], %[[I]], %[[J]]
func.func @rejoined(%x: tensor<3x6xf32>) -> (tensor<3x6xf32>, tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x6xf32>) {
  %a = "xt.slice"(%x) {starts = [0, 0], limits = [3, 2], strides = [1, 1]} : (tensor<3x6xf32>) -> tensor<3x2xf32>
  %b = "xt.slice"(%x) {starts = [0, 2], limits = [3, 6], strides = [1, 1]} : (tensor<3x6xf32>) -> tensor<3x4xf32>
  %c = "xtv.concatenate"(%a, %b) {axis = 1 : i64} : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x6xf32>
  %d = "xt.slice"(%x) {starts = [0, 1], limits = [3, 2], strides = [1, 1]} : (tensor<3x6xf32>) -> tensor<3x1xf32>
  %e = "xt.slice"(%x) {starts = [0, 2], limits = [3, 5], strides = [1, 1]} : (tensor<3x6xf32>) -> tensor<3x3xf32>
  %f = "xtv.concatenate"(%d, %e) {axis = 1 : i64} : (tensor<3x1xf32>, tensor<3x3xf32>) -> tensor<3x4xf32>
  %g = "xt.slice"(%x) {starts = [0, 0], limits = [3, 1], strides = [1, 3]} : (tensor<3x6xf32>) -> tensor<3x1xf32>
  %h = "xt.slice"(%x) {starts = [0, 3], limits = [3, 4], strides = [1, 3]} : (tensor<3x6xf32>) -> tensor<3x1xf32>
  %i = "xtv.concatenate"(%g, %h) {axis = 1 : i64} : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %j = "xtv.concatenate"(%b, %a) {axis = 1 : i64} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
  return %c, %f, %i, %j : tensor<3x6xf32>, tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x6xf32>
}
