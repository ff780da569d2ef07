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

  // A kernel that says so has small sizes, here d0 and d1: what has a range that fits is narrow, and places are.
  // CHECK-LABEL: gpu.func @sizes(
  // CHECK-DAG: %[[X:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [%{{.*}}], strides: [1]
  // CHECK-DAG: %[[N:.*]] = arith.index_cast %arg1 : index to i32
  // CHECK-DAG: %[[T:.*]] = arith.index_cast %thread_id_x : index to i32
  // CHECK: %[[R:.*]] = arith.remui %[[T]], %[[N]] : i32
  // CHECK: %[[W:.*]] = arith.muli %{{.*}}, %arg3 : index
  // CHECK: arith.cmpi slt, %[[R]], %[[N]] : i32
  // CHECK: arith.cmpi slt, %[[W]], %arg1 : index
  // CHECK: %[[P:.*]] = arith.muli %[[R]], %{{.*}} : i32
  // CHECK: %[[S:.*]] = arith.addi %[[P]], %{{.*}} : i32
  // CHECK: %[[I:.*]] = arith.index_cast %[[S]] : i32 to index
  // CHECK: memref.store %{{.*}}, %[[X]][%[[I]]]
  gpu.func @sizes(%x: memref<?x?xf32>, %d0: index, %d1: index, %a: index) kernel
      attributes {tile.small = ["d0", "d1"], xt.symbols = ["d0", "d1", "d2"]} {
    %v = arith.constant 1.0 : f32
    %t = gpu.thread_id x
    %r = arith.remui %t, %d0 : index
    %w = arith.muli %t, %a : index
    %p = arith.cmpi slt, %r, %d0 : index
    %q = arith.cmpi slt, %w, %d0 : index
    %b = arith.andi %p, %q : i1
    scf.if %b {
      memref.store %v, %x[%r, %w] : memref<?x?xf32>
    }
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
