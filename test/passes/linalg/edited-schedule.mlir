// What the passes of stage schedule decided can be edited in the dumped stage and fed back: the numbers are the same.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %xcc %s --chip=x86-64-v3 --no-cache -o %t/m.xcm --dump-stages=%t
// RUN: filecheck %s < %t/03-schedule.mlir
// RUN: sed -e "s/, xcc.packed//" -e "s/, xcc.peeled//" -e "s/xcc.depth = [0-9]*/xcc.depth = 512/" %t/03-schedule.mlir > %t/edited.mlir
// RUN: %xcc %t/edited.mlir --chip=x86-64-v3 --no-cache -o %t/edited.xcm --dump-stages=%t/edited
// RUN: filecheck %s --check-prefix=EDITED < %t/edited/04-vector.mlir
// RUN: %xcc_run %t/edited.xcm --random --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: sed -e "s/xcc.depth = [0-9]*/xcc.depth = 496/" %t/03-schedule.mlir > %t/wrong.mlir
// RUN: not %xcc %t/wrong.mlir --chip=x86-64-v3 --no-cache -o %t/wrong.xcm 2>&1 | filecheck %s --check-prefix=WRONG

// CHECK: xcc.peeled
// CHECK: linalg.generic
// CHECK-SAME: xcc.depth = 2048 : i64
// CHECK-SAME: xcc.packed
// EDITED-NOT: memref.alloca
// EDITED: = %c0 to %c512 step
// SAME: same  y: largest difference
// WRONG: loc({{.*}}): blocks of depth 496 need one product

func.func @main(%x: tensor<600x4096xf32> {xt.name = "x"}, %w: tensor<4096x520xf32> {xt.name = "w"}) -> (tensor<600x520xf32> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<600x4096xf32>, tensor<4096x520xf32>) -> tensor<600x520xf32>
  return %0 : tensor<600x520xf32>
}
