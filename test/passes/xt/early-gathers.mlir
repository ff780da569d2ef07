// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline="early-gathers, mlir(canonicalize, cse)" | filecheck %s

// A loss reads the logit of each row's target; the row's maximum and the logarithm of its sum are what they were.
// CHECK-LABEL: func.func @picked
// CHECK-DAG: %[[MOST:.*]] = "xt.reduce"(%arg0) {axes = [1], keepdims = true, kind = "max"}
// CHECK-DAG: %[[LOG:.*]] = "xt.log"
// CHECK-DAG: %[[X:.*]] = "xt.gather_elements"(%arg0, %arg1) {axis = 1
// CHECK: %[[LESS:.*]] = "xt.sub"(%[[X]], %[[MOST]]) : (tensor<8x1xf32>, tensor<8x1xf32>)
// CHECK: %[[Y:.*]] = "xt.sub"(%[[LESS]], %[[LOG]])
// CHECK: return %[[Y]]
func.func @picked(%x: tensor<8x1000xf32>, %t: tensor<8x1xi64>) -> tensor<8x1xf32> {
  %m = "xt.reduce"(%x) {kind = "max", axes = [1], keepdims = true} : (tensor<8x1000xf32>) -> tensor<8x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<8x1000xf32>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  %e = "xt.exp"(%d) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
  %s = "xt.reduce"(%e) {kind = "sum", axes = [1], keepdims = true} : (tensor<8x1000xf32>) -> tensor<8x1xf32>
  %l = "xt.log"(%s) : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %y = "xt.sub"(%d, %l) : (tensor<8x1000xf32>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  %p = "xt.gather_elements"(%y, %t) {axis = 1} : (tensor<8x1000xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
  return %p : tensor<8x1xf32>
}

// The probability of one class; the sum is a reshape of rows' sums.
// CHECK-LABEL: func.func @one_class
// CHECK: %[[E:.*]] = "xt.exp"(%arg0)
// CHECK: %[[X:.*]] = "xt.slice"(%[[E]]) {limits = [8, 4], starts = [0, 3], strides = [1, 1]}
// CHECK: "xt.div"(%[[X]], %{{.*}}) : (tensor<8x1xf32>, tensor<8x1xf32>)
func.func @one_class(%x: tensor<8x1000xf32>) -> tensor<8x1xf32> {
  %e = "xt.exp"(%x) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
  %s = "xt.reduce"(%e) {kind = "sum", axes = [1], keepdims = false} : (tensor<8x1000xf32>) -> tensor<8xf32>
  %r = "xt.reshape"(%s) {shape = [8, 1]} : (tensor<8xf32>) -> tensor<8x1xf32>
  %y = "xt.div"(%e, %r) : (tensor<8x1000xf32>, tensor<8x1xf32>) -> tensor<8x1000xf32>
  %p = "xt.slice"(%y) {starts = [0, 3], limits = [8, 4], strides = [1, 1]} : (tensor<8x1000xf32>) -> tensor<8x1xf32>
  return %p : tensor<8x1xf32>
}

// Nothing of the rest of the row is needed: the gather's kernel, or the one that makes %x, computes it.
// CHECK-LABEL: func.func @pointwise
// CHECK: %[[E:.*]] = "xt.exp"(%arg0)
// CHECK: "xt.gather_elements"(%[[E]], %arg1)
func.func @pointwise(%x: tensor<8x1000xf32>, %t: tensor<8x1xi64>) -> tensor<8x1xf32> {
  %e = "xt.exp"(%x) : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
  %p = "xt.gather_elements"(%e, %t) {axis = 1} : (tensor<8x1000xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
  return %p : tensor<8x1xf32>
}

// A large part of each row, and elements along the other dim, of which the reduction says nothing.
// CHECK-LABEL: func.func @much
// CHECK-COUNT-2: "xt.gather_elements"(%{{[0-9]+}}, %arg
func.func @much(%x: tensor<64x1000xf32>, %t: tensor<64x500xi64>, %u: tensor<1x1000xi64>) -> (tensor<64x500xf32>, tensor<1x1000xf32>) {
  %m = "xt.reduce"(%x) {kind = "max", axes = [1], keepdims = true} : (tensor<64x1000xf32>) -> tensor<64x1xf32>
  %d = "xt.sub"(%x, %m) : (tensor<64x1000xf32>, tensor<64x1xf32>) -> tensor<64x1000xf32>
  %p = "xt.gather_elements"(%d, %t) {axis = 1} : (tensor<64x1000xf32>, tensor<64x500xi64>) -> tensor<64x500xf32>
  %q = "xt.gather_elements"(%d, %u) {axis = 0} : (tensor<64x1000xf32>, tensor<1x1000xi64>) -> tensor<1x1000xf32>
  return %p, %q : tensor<64x500xf32>, tensor<1x1000xf32>
}
