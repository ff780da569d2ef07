// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=early-launch | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=early-launch | filecheck %s --check-prefix=OLD

// A kernel waits for the one before it ahead of anything else; a chip that cannot is left alone.
// CHECK-LABEL: llvm.func @k(
// CHECK-SAME: xcc.early
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait; griddepcontrol.launch_dependents;", "~{memory}"
// CHECK: llvm.store
// Products wait as well, but are not placed before the kernel ahead of them has ended: they would not lie evenly.
// CHECK-LABEL: llvm.func @product(
// CHECK-NOT: xcc.early
// CHECK: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait; griddepcontrol.launch_dependents;", "~{memory}"
// CHECK-LABEL: llvm.func @sized(
// CHECK-NOT: xcc.early
// One of a size that the run knows tells the next kernel where its blocks are few.
// CHECK: llvm.inline_asm {{.*}}"griddepcontrol.wait; {{.*}}%nctaid.x; setp.le.u32 p, n, 2112; @p griddepcontrol.launch_dependents; }"
// Those that leave half of the cores (132) without work are: there is room beside them.
// CHECK-LABEL: llvm.func @few(
// CHECK-SAME: xcc.early
// More blocks than the cores hold at once do not tell it: that takes longer than it saves.
// CHECK-LABEL: llvm.func @many(
// CHECK-SAME: xcc.early
// CHECK-NEXT: "griddepcontrol.wait;", "~{memory}"
// CHECK-LABEL: llvm.func @helper(
// CHECK-NOT: griddepcontrol
// OLD-NOT: griddepcontrol
// OLD-NOT: xcc.early
gpu.module @k_gpu {
  llvm.func @k(%x: !llvm.ptr) attributes {nvvm.kernel, xcc.grid = "2112"} {
    %c = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %c, %x : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @product(%x: !llvm.ptr) attributes {nvvm.kernel, xcc.grid = "67", xcc.product} {
    %c = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %c, %x : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @sized(%x: !llvm.ptr) attributes {nvvm.kernel, xcc.grid = "n", xcc.product} {
    llvm.return
  }
  llvm.func @few(%x: !llvm.ptr) attributes {nvvm.kernel, xcc.grid = "66", xcc.product} {
    llvm.return
  }
  llvm.func @many(%x: !llvm.ptr) attributes {nvvm.kernel, xcc.grid = "2113"} {
    llvm.return
  }
  llvm.func @helper(%x: !llvm.ptr) {
    llvm.return
  }
}
