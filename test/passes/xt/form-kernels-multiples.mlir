// RUN: %xcc_opt %s --pass-pipeline="form-kernels" | filecheck %s

// A dim that is a multiple of another one of the kernel is written so: rows of 4 stay rows of 4. That of another kernel,
// where the other one is no dim, is a dim as any.
// CHECK-LABEL: func.func @main
// CHECK: "xtv.dispatch"(%arg0) {kernel = @[[K:.*]], symbols = ["n", "floordiv(n, 4)"]}
// CHECK: "xtv.dispatch"(%arg1) {kernel = @[[P:.*]], symbols = ["4*m"]}
// CHECK: func.func private @[[K]](%{{.*}}: tensor<?xf32, ["d0"]>) -> tensor<?xf32, ["d1"]>
// CHECK: xt.slice{{.*}} -> tensor<?xf32, ["4*d1"]>
// CHECK: xt.reshape{{.*}} -> tensor<?x4xf32, ["d1", 4]>
// CHECK: func.func private @[[P]](%{{.*}}: tensor<?xf32, ["d0"]>)
func.func @main(%x: tensor<?xf32, ["n"]> {xt.name = "x"}, %y: tensor<?xf32, ["4*m"]> {xt.name = "y"})
    -> (tensor<?xf32, ["floordiv(n, 4)"]> {xt.name = "s"}, tensor<?xf32, ["4*m"]> {xt.name = "t"}) {
  %0 = "xt.slice"(%x) {starts = [0], limits = ["4*floordiv(n, 4)"], strides = [1]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["4*floordiv(n, 4)"]>
  %1 = "xt.reshape"(%0) {shape = ["floordiv(n, 4)", 4]} : (tensor<?xf32, ["4*floordiv(n, 4)"]>) -> tensor<?x4xf32, ["floordiv(n, 4)", 4]>
  %2 = "xt.reduce"(%1) {kind = "sum", axes = [1], keepdims = false} : (tensor<?x4xf32, ["floordiv(n, 4)", 4]>) -> tensor<?xf32, ["floordiv(n, 4)"]>
  %3 = "xt.exp"(%y) : (tensor<?xf32, ["4*m"]>) -> tensor<?xf32, ["4*m"]>
  return %2, %3 : tensor<?xf32, ["floordiv(n, 4)"]>, tensor<?xf32, ["4*m"]>
}
