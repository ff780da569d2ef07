// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="halved-ranks, mlir(canonicalize, cse)" | filecheck %s

// A pass over the rows for each bit, one for what are numbers, and one for the place.
// CHECK-LABEL: func.func @kth
// CHECK-NOT: xt.sort
// CHECK: %[[LESS:.*]] = "xt.compare"(%arg0, %{{.*}}) {direction = "lt"}
// CHECK: %[[ONES:.*]] = "xt.convert"(%[[LESS]])
// CHECK: "xt.reduce"(%[[ONES]]) {axes = [1], keepdims = true, kind = "sum"}
// CHECK: %[[PLACE:.*]] = "xt.reduce"(%{{.*}}) {axes = [1], keepdims = true, kind = "min"}
// CHECK: %[[WIDE:.*]] = "xt.convert"(%[[PLACE]]) {dtype = i64
// CHECK: %[[VALUE:.*]] = "xt.gather_elements"(%arg0, %[[WIDE]])
// CHECK: return %[[VALUE]], %[[WIDE]]
func.func @kth(%x: tensor<10x1000xf32>) -> (tensor<10x1xf32>, tensor<10x1xi64>) {
  %v, %i = "xt.sort"(%x) {axis = 1, descending = false, stable = true} : (tensor<10x1000xf32>) -> (tensor<10x1000xf32>, tensor<10x1000xi64>)
  %a = "xt.slice"(%v) {starts = [0, 299], limits = [10, 300], strides = [1, 1]} : (tensor<10x1000xf32>) -> tensor<10x1xf32>
  %b = "xt.slice"(%i) {starts = [0, 299], limits = [10, 300], strides = [1, 1]} : (tensor<10x1000xi64>) -> tensor<10x1xi64>
  return %a, %b : tensor<10x1xf32>, tensor<10x1xi64>
}

// The places are computed.
// CHECK-LABEL: func.func @gathered
// CHECK-NOT: xt.sort
// CHECK: return
func.func @gathered(%x: tensor<10x1000xf32>, %k: tensor<10x1xi64>) -> tensor<10x1xf32> {
  %v, %i = "xt.sort"(%x) {axis = 1, descending = false, stable = true} : (tensor<10x1000xf32>) -> (tensor<10x1000xf32>, tensor<10x1000xi64>)
  %a = "xt.gather_elements"(%v, %k) {axis = 1} : (tensor<10x1000xf32>, tensor<10x1xi64>) -> tensor<10x1xf32>
  return %a : tensor<10x1xf32>
}

// The sort is needed anyway.
// CHECK-LABEL: func.func @all
// CHECK: xt.sort
// CHECK-NOT: xt.reduce
// CHECK: return
func.func @all(%x: tensor<10x1000xf32>) -> (tensor<10x1xf32>, tensor<10x1000xf32>) {
  %v, %i = "xt.sort"(%x) {axis = 1, descending = false, stable = true} : (tensor<10x1000xf32>) -> (tensor<10x1000xf32>, tensor<10x1000xi64>)
  %a = "xt.slice"(%v) {starts = [0, 299], limits = [10, 300], strides = [1, 1]} : (tensor<10x1000xf32>) -> tensor<10x1xf32>
  return %a, %v : tensor<10x1xf32>, tensor<10x1000xf32>
}

// What is not sorted stays.
// CHECK-LABEL: func.func @argument
// CHECK-NEXT: "xt.slice"(%arg0)
func.func @argument(%x: tensor<10x1000xf32>) -> tensor<10x1xf32> {
  %a = "xt.slice"(%x) {starts = [0, 29], limits = [10, 30], strides = [1, 1]} : (tensor<10x1000xf32>) -> tensor<10x1xf32>
  return %a : tensor<10x1xf32>
}

// Short rows are sorted.
// CHECK-LABEL: func.func @short
// CHECK: xt.sort
func.func @short(%x: tensor<10x100xf32>) -> tensor<10x1xf32> {
  %v, %i = "xt.sort"(%x) {axis = 1, descending = false, stable = true} : (tensor<10x100xf32>) -> (tensor<10x100xf32>, tensor<10x100xi64>)
  %a = "xt.slice"(%v) {starts = [0, 29], limits = [10, 30], strides = [1, 1]} : (tensor<10x100xf32>) -> tensor<10x1xf32>
  return %a : tensor<10x1xf32>
}
