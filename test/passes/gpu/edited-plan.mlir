// Stage `plan` of a kernel is dumped, edited and fed back: the code is as it says.
// RUN: %xcc %s --target=nvptx --chip=sm_80 --no-cache --dump-stages=%t --emit=gpu -o - | filecheck %s --check-prefix=BEFORE
// RUN: filecheck %s --check-prefix=PLAN < %t/05-plan.mlir
// RUN: sed -e "s/slots = 4/slots = 3/g" -e "s/xcc.peeled = 3 : i64, //" %t/05-plan.mlir > %t/edited.mlir
// RUN: %xcc %t/edited.mlir --target=nvptx --chip=sm_80 --no-cache --emit=gpu -o - | filecheck %s --check-prefix=AFTER
// RUN: sed -e "s/slots = 4/slots = 1/g" %t/05-plan.mlir > %t/wrong.mlir
// RUN: not %xcc %t/wrong.mlir --target=nvptx --chip=sm_80 --no-cache --emit=gpu 2>&1 | filecheck %s --check-prefix=WRONG

// BEFORE: xcc.shared_bytes = 49152
// BEFORE: nvvm.cp.async.wait.group 2
// PLAN: vector.contract {{.*}}xcc.staged = [{load = "async", memory = "{{.*}}", offset = 0 : i64, slots = 4 : i64}
// PLAN: xcc.peeled = 3 : i64, xcc.stages = 4 : i64
// AFTER: xcc.shared_bytes = 45056
// AFTER: scf.for
// AFTER: nvvm.cp.async.wait.group 1
// AFTER-NOT: nvvm.cp.async.wait.group 1
// WRONG: error: {{.*}}the loop's loads cannot run ahead as its attributes say: what is copied asynchronously has 2 slots
func.func @main(%a: tensor<2048x2048xf16> {xt.name = "a"}, %b: tensor<2048x2048xf16> {xt.name = "b"}) -> (tensor<2048x2048xf16> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf16>
  return %0 : tensor<2048x2048xf16>
}
