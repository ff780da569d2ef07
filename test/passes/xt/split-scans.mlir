// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=split-scans | filecheck %s

// Along the last dim: windows over parts of 16, and the totals' scan one place on.
// CHECK-LABEL: @row
// CHECK: %[[C:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x16x16xf32>
// CHECK: %[[T:.*]] = "xt.reduce"(%[[C]]) {axes = [2], {{.*}} -> tensor<1x16xf32>
// CHECK: %[[S:.*]] = "xt.reduce_window"(%[[T]]) {{.*}}low = [0, 15]{{.*}}window = [1, 16]
// CHECK: "xt.slice"(%[[S]]) {limits = [1, 15], starts = [0, 0]
// CHECK: "xt.pad"(%{{.*}}) {{.*}}low = [0, 1]
// CHECK: %[[W:.*]] = "xt.reduce_window"(%[[C]]) {{.*}}low = [0, 0, 15]{{.*}}window = [1, 1, 16]
// CHECK: "xt.add"(%[[W]],
// CHECK-NOT: xt.cumulative
func.func @row(%x: tensor<256xf32>) -> tensor<256xf32> {
  %y = "xt.cumulative"(%x) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<256xf32>) -> tensor<256xf32>
  return %y : tensor<256xf32>
}

// Along another: threads walk parts of 64. A few elements are left as they are.
// CHECK-LABEL: @column
// CHECK: "xt.cumulative"(%{{.*}}) {axis = 1 : i64, {{.*}} -> tensor<16x64x8xf32>
// CHECK: "xt.cumulative"(%{{.*}}) {axis = 0 : i64, exclusive = true, {{.*}} -> tensor<16x8xf32>
// CHECK: "xt.cumulative"(%{{.*}}) {{.*}} -> tensor<12xf32>
func.func @column(%x: tensor<1024x8xf32>, %s: tensor<12xf32>) -> (tensor<1024x8xf32>, tensor<12xf32>) {
  %y = "xt.cumulative"(%x) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<1024x8xf32>) -> tensor<1024x8xf32>
  %z = "xt.cumulative"(%s) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<12xf32>) -> tensor<12xf32>
  return %y, %z : tensor<1024x8xf32>, tensor<12xf32>
}
