// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="update-in-place, scatter-places" | filecheck %s

// A result updates the argument: written in place whatever its size, and by both updates on the way.
// CHECK-LABEL: func.func @main(
// CHECK: %[[A:.*]] = "xt.dynamic_update_slice"(%arg0, %arg1, %arg2, %arg2) {xt.in_place}
// CHECK: %[[V:.*]] = "xt.reshape"(%[[A]])
// CHECK: %[[B:.*]] = "xt.scatter_nd"(%[[V]], %{{.*}}, %{{.*}}) {{.*}}xt.in_place
// CHECK: return %[[B]]
func.func @main(%c: tensor<8x4xf32> {xt.name = "past"}, %u: tensor<7x4xf32> {xt.name = "u"}, %i: tensor<i64> {xt.name = "i"},
                %p: tensor<5x1xi64> {xt.name = "p"}, %v: tensor<5xf32> {xt.name = "v"})
    -> (tensor<32xf32> {xt.name = "flat"}, tensor<8x4xf32> {xt.name = "present", xt.updates = "past"}) {
  %0 = "xt.dynamic_update_slice"(%c, %u, %i, %i) : (tensor<8x4xf32>, tensor<7x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %1 = "xt.reshape"(%0) {shape = [32]} : (tensor<8x4xf32>) -> tensor<32xf32>
  %2 = "xt.scatter_nd"(%1, %p, %v) {reduction = "add"} : (tensor<32xf32>, tensor<5x1xi64>, tensor<5xf32>) -> tensor<32xf32>
  %3 = "xt.reshape"(%2) {shape = [8, 4]} : (tensor<32xf32>) -> tensor<8x4xf32>
  return %2, %3 : tensor<32xf32>, tensor<8x4xf32>
}

// An argument that no result updates stays as it is; what the function makes may be changed where few elements are.
// CHECK-LABEL: func.func @few(
// CHECK: "xt.dynamic_update_slice"(%arg0, %arg1, %arg2, %arg2) :
// CHECK: %[[E:.*]] = "xt.exp"
// CHECK: "xt.dynamic_update_slice"(%[[E]], %arg1, %arg2, %arg2) {xt.in_place}
func.func @few(%c: tensor<8x4xf32>, %u: tensor<1x4xf32>, %i: tensor<i64>) -> tensor<8x4xf32> {
  %0 = "xt.dynamic_update_slice"(%c, %u, %i, %i) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %1 = "xt.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "xt.dynamic_update_slice"(%1, %u, %i, %i) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// Half of the elements are as soon all written; what is read later is another value.
// CHECK-LABEL: func.func @many(
// CHECK-NOT: xt.in_place
func.func @many(%c: tensor<8x4xf32>, %u: tensor<4x4xf32>, %w: tensor<1x4xf32>, %i: tensor<i64>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = "xt.exp"(%c) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = "xt.dynamic_update_slice"(%0, %u, %i, %i) : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  %2 = "xt.dynamic_update_slice"(%1, %w, %i, %i) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}

// What a loop carries is changed where it lies.
// CHECK-LABEL: func.func @loop(
// CHECK: "xtv.while"
// CHECK: "xt.dynamic_update_slice"(%{{.*}}, %arg1, %{{.*}}, %{{.*}}) {xt.in_place}
func.func @loop(%c: tensor<8x4xf32>, %u: tensor<4x4xf32>, %i: tensor<i64>, %g: tensor<i1>) -> tensor<8x4xf32> {
  %0 = "xtv.while"(%c) ({
  ^bb0(%x: tensor<8x4xf32>):
    "xtv.yield"(%g) : (tensor<i1>) -> ()
  }, {
  ^bb0(%x: tensor<8x4xf32>):
    %1 = "xt.dynamic_update_slice"(%x, %u, %i, %i) : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<i64>, tensor<i64>) -> tensor<8x4xf32>
    "xtv.yield"(%1) : (tensor<8x4xf32>) -> ()
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
