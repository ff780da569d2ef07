// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=nvvm-kernel-functions | filecheck %s

// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr) attributes {nvvm.kernel}
// Registers for 32 warps of a core: eight workgroups of four.
// CHECK: llvm.func @bounded() attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 8 : i32, xcc.resident = 32 : i64}
// CHECK: llvm.func @helper() attributes {gpu.kernel}
module attributes {gpu.container_module} {
  gpu.module @m {
    llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
    llvm.func @bounded() attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>, xcc.resident = 32 : i64} {
      llvm.return
    }
    llvm.func @helper() attributes {gpu.kernel} {
      llvm.return
    }
  }
}
