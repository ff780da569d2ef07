// RUN: %xcc_opt %s --pass-pipeline=nvvm-kernel-functions | filecheck %s

// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr) attributes {nvvm.kernel}
// CHECK: llvm.func @helper() attributes {gpu.kernel}
module attributes {gpu.container_module} {
  gpu.module @m {
    llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
    llvm.func @helper() attributes {gpu.kernel} {
      llvm.return
    }
  }
}
