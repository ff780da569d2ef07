// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=box-pairs | filecheck %s

// CHECK-LABEL: func.func @limited
// CHECK: %[[S:.*]]:2 = "xt.top_k"
// CHECK: %[[ALIVE:.*]] = "xt.compare"(%[[S]]#0, %arg4) {{.*}}direction = "gt"
// CHECK: %[[CLASH:.*]] = "xt.and"({{.*}} -> tensor<1x2x50x50xi1>
// CHECK: %[[KEPT:.*]] = "xtv.scan"(%[[ALIVE]], %[[CLASH]], %{{.*}})
// CHECK: %[[RANK:.*]] = "xt.cumulative"
// CHECK: "xt.compare"(%[[RANK]], %arg2) {{.*}}direction = "le"
// CHECK: "xt.sort"
// CHECK: "xt.select"({{.*}} -> tensor<1x2x50xi32>
func.func @limited(%b: tensor<1x50x4xf32>, %s: tensor<1x2x50xf32>, %m: tensor<i64>, %o: tensor<f32>, %t: tensor<f32>) -> tensor<1x2x50xi32> {
  %r = "xt.best_boxes"(%b, %s, %m, %o, %t) : (tensor<1x50x4xf32>, tensor<1x2x50xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x2x50xi32>
  return %r : tensor<1x2x50xi32>
}

// Without a least score all take part.
// CHECK-LABEL: func.func @all
// CHECK-NOT: direction = "gt"{{.*}}tensor<1x2x50xi1>
// CHECK: "xtv.scan"
func.func @all(%b: tensor<1x50x4xf32>, %s: tensor<1x2x50xf32>, %m: tensor<i64>, %o: tensor<f32>) -> tensor<1x2x50xi32> {
  %r = "xt.best_boxes"(%b, %s, %m, %o) : (tensor<1x50x4xf32>, tensor<1x2x50xf32>, tensor<i64>, tensor<f32>) -> tensor<1x2x50xi32>
  return %r : tensor<1x2x50xi32>
}
