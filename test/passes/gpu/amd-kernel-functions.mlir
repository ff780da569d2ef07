// RUN: %xcc_opt %s --pass-pipeline="amd-kernel-functions" | filecheck %s

// Arguments point to global memory; the launch's LDS has its true size.
// CHECK: llvm.module_flags [#llvm.mlir.module_flag<error, "amdhsa_code_object_version", 500 : i32>]
// CHECK: llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4096 x i8>
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.noalias, llvm.noundef}, %[[N:.*]]: i64)
// CHECK-NOT: gpu.kernel
// CHECK: %[[P:.*]] = llvm.addrspacecast %[[X]] : !llvm.ptr<1> to !llvm.ptr
// CHECK: llvm.store %[[N]], %[[P]] : i64, !llvm.ptr
// CHECK-LABEL: llvm.func @helper(
// CHECK-SAME: !llvm.ptr)
gpu.module @m {
  llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @kernel(%x: !llvm.ptr, %n: i64) attributes {gpu.kernel, rocdl.kernel, xcc.shared_bytes = 4096 : i64} {
    llvm.store %n, %x : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @helper(%x: !llvm.ptr) {
    llvm.return
  }
}
