// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=copy-pointers, mlir(canonicalize, cse)" --split-input-file | filecheck %s

// Both copies move by 128 bytes a step: one offset serves them, and nothing is multiplied in the loop.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[A:.*]] = llvm.inline_asm asm_dialect = att "mov.b64 $0, $1;", "=&l,l"
// CHECK: %[[B:.*]] = llvm.inline_asm asm_dialect = att "mov.b64 $0, $1;", "=&l,l"
// CHECK: scf.for {{.*}} iter_args(%[[OFFSET:.*]] = %c0_i64) -> (i64)
// CHECK-NOT: arith.muli
// CHECK: %[[AT:.*]] = arith.addi %[[A]], %[[OFFSET]] : i64
// CHECK: %[[FROM:.*]] = llvm.inttoptr %[[AT]] : i64 to !llvm.ptr<1>
// CHECK: nvvm.cp.async.shared.global %arg2, %[[FROM]]
// CHECK: arith.addi %[[B]], %[[OFFSET]]
// CHECK: %[[MORE:.*]] = arith.addi %[[OFFSET]], %{{.*}} : i64
// CHECK: %[[NEXT:.*]] = llvm.inline_asm {{.*}} %[[MORE]]
// CHECK: scf.yield %[[NEXT]] : i64
func.func @rows(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %s: !llvm.ptr<3>, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %c4096 = arith.constant 4096 : i32
  scf.for %k = %c0 to %c256 step %c64 : i32 {
    nvvm.wgmma.commit.group.sync.aligned
    %r = arith.muli %row, %c4096 : i32
    %i = arith.addi %r, %k : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %q = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %q, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  }
  return
}

// -----

// One array read along its rows and along its columns: two offsets.
// CHECK-LABEL: func.func @square(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %c0_i64, %{{.*}} = %c0_i64) -> (i64, i64)
func.func @square(%a: !llvm.ptr<1>, %s: !llvm.ptr<3>, %row: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  %c4096 = arith.constant 4096 : i32
  scf.for %k = %c0 to %c256 step %c64 : i32 {
    nvvm.wgmma.commit.group.sync.aligned
    %i = arith.addi %row, %k : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %r = arith.muli %k, %c4096 : i32
    %j = arith.addi %row, %r : i32
    %q = llvm.getelementptr %a[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %q, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  }
  return
}

// -----

// An address that is read, or bounded, is not linear.
// CHECK-LABEL: func.func @others(
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK-NOT: inline_asm
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.shared.global
func.func @others(%a: !llvm.ptr<1>, %s: !llvm.ptr<3>, %places: memref<256xi32>, %most: i32) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  scf.for %k = %c0 to %c256 step %c64 {
    nvvm.wgmma.commit.group.sync.aligned
    %i = memref.load %places[%k] : memref<256xi32>
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %n = arith.index_cast %k : index to i32
    %j = arith.minsi %n, %most : i32
    %q = llvm.getelementptr %a[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %q, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  }
  return
}

// -----

// Loops without instructions of warpgroups are left as they are.
// CHECK-LABEL: func.func @warps(
// CHECK-NOT: inline_asm
func.func @warps(%a: !llvm.ptr<1>, %s: !llvm.ptr<3>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  scf.for %k = %c0 to %c256 step %c64 : i32 {
    %p = llvm.getelementptr %a[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  }
  return
}

// -----

// How far a step moves is known when the kernel runs: copies of one stride share an offset.
// CHECK-LABEL: func.func @strides(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %c0_i64, %{{.*}} = %c0_i64) -> (i64, i64)
// CHECK: scf.yield %{{.*}}, %{{.*}} : i64, i64
func.func @strides(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %s: !llvm.ptr<3>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c256 = arith.constant 256 : i32
  scf.for %k = %c0 to %c256 step %c64 : i32 {
    nvvm.wgmma.commit.group.sync.aligned
    %i = arith.muli %k, %n : i32
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %p, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %j = arith.muli %k, %m : i32
    %q = llvm.getelementptr %b[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %q, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    %l = arith.addi %k, %c64 : i32
    %o = arith.muli %l, %n : i32
    %r = llvm.getelementptr %a[%o] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
    nvvm.cp.async.shared.global %s, %r, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  }
  return
}
