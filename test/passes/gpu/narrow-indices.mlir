// RUN: %xcc_opt %s --pass-pipeline="narrow-indices,mlir(canonicalize)" --target=nvptx --chip=sm_90a | filecheck %s

gpu.module @m {
  // Ids, constants and loops are narrow, with what is computed of them; a loaded index is not, whatever it meets.
  // CHECK-LABEL: gpu.func @small(
  // CHECK: %[[T:.*]] = gpu.thread_id x
  // CHECK: %[[N:.*]] = arith.index_cast %[[T]] : index to i32
  // CHECK: %[[M:.*]] = arith.muli %[[N]], %{{.*}} : i32
  // CHECK: scf.for
  // CHECK: %[[A:.*]] = arith.addi %[[M]], %{{.*}} : i32
  // CHECK: %[[W:.*]] = arith.index_cast %[[A]] : i32 to index
  // CHECK: memref.load %{{.*}}[%[[W]]]
  // CHECK: arith.minsi %{{.*}} : index
  gpu.func @small(%x: memref<4096xi64>, %y: memref<4096xi64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c4095 = arith.constant 4095 : index
    %t = gpu.thread_id x
    %m = arith.muli %t, %c16 : index
    scf.for %i = %c0 to %c16 step %c1 {
      %a = arith.addi %m, %i : index
      %v = memref.load %x[%a] : memref<4096xi64>
      %d = arith.index_cast %v : i64 to index
      %e = arith.minsi %d, %c4095 : index
      memref.store %v, %y[%e] : memref<4096xi64>
    }
    gpu.return
  }

  // Symbolic sizes and buffers past 2^30 elements keep 64 bits.
  // CHECK-LABEL: gpu.func @symbolic(
  // CHECK-NOT: i32
  gpu.func @symbolic(%x: memref<?xf32>, %d0: index) kernel {
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %m = arith.muli %t, %c4 : index
    %v = memref.load %x[%m] : memref<?xf32>
    memref.store %v, %x[%t] : memref<?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @large(
  // CHECK-NOT: i32
  gpu.func @large(%x: memref<2147483648xf32>) kernel {
    %c4 = arith.constant 4 : index
    %t = gpu.thread_id x
    %m = arith.muli %t, %c4 : index
    %v = memref.load %x[%m] : memref<2147483648xf32>
    memref.store %v, %x[%t] : memref<2147483648xf32>
    gpu.return
  }
}
