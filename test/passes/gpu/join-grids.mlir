// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=join-grids --split-input-file | filecheck %s

// One grid: the first workgroups run one part, the rest the other, with numbers from 0; fewer threads where it needs fewer.
// CHECK: gpu.module @beside_0_gpu
// CHECK: gpu.func @beside_0(%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<?xf32>, %[[P:.*]]: memref<8xf32>, %[[Q:.*]]: memref<?xf32>, %[[N:.*]]: index)
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>
// CHECK-SAME: xcc.grid = "d0 + 2"
// CHECK-SAME: xcc.shared_bytes = 256
// CHECK-SAME: xt.arg_dims = {{\[}}[8], ["d0"]]
// CHECK-SAME: xt.result_dims = {{\[}}[8], ["d0"]]
// CHECK: %[[B:.*]] = gpu.block_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[B]], %{{.*}}
// CHECK: scf.if %[[FIRST]]
// CHECK:   memref.store %{{.*}}, %[[P]][%[[B]]]
// CHECK: else
// CHECK:   %[[C:.*]] = arith.subi %[[B]],
// CHECK:   %[[SOME:.*]] = arith.cmpi ult, %{{.*}}
// CHECK:   scf.if %[[SOME]] {
// CHECK:     memref.store %{{.*}}, %[[Q]][%[[C]]]
// CHECK:   } {xcc.ends}
// CHECK: gpu.return
gpu.module @beside_0__0_gpu {
  gpu.func @beside_0__0(%x: memref<8xf32>, %p: memref<8xf32>, %d0: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "2", xcc.shared_bytes = 256 : i64, xt.symbols = ["d0"],
                  xt.arg_dims = [[8]], xt.result_dims = [[8]], xcc.part = {of = "beside_0", args = array<i64: 0>, results = array<i64: 0>}} {
    %b = gpu.block_id x
    %v = memref.load %x[%b] : memref<8xf32>
    gpu.barrier
    memref.store %v, %p[%b] : memref<8xf32>
    gpu.return
  }
}
gpu.module @beside_0__1_gpu {
  gpu.func @beside_0__1(%y: memref<?xf32>, %q: memref<?xf32>, %d0: index) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>, xcc.grid = "d0", xcc.shared_bytes = 0 : i64, xt.symbols = ["d0"],
                  xt.arg_dims = [["d0"]], xt.result_dims = [["d0"]], xcc.part = {of = "beside_0", args = array<i64: 1>, results = array<i64: 1>}} {
    %b = gpu.block_id x
    gpu.barrier
    %v = memref.load %y[%b] : memref<?xf32>
    memref.store %v, %q[%b] : memref<?xf32>
    gpu.return
  }
}

// -----

// What a launch stores another one reads: they stay two, with all arguments.
// CHECK: gpu.func @beside_1(%{{.*}}: memref<8xf32>, %[[P:.*]]: memref<8xf32>, %[[Q:.*]]: memref<8xf32>) kernel
// CHECK: memref.store %{{.*}}, %[[P]]
// CHECK: gpu.func @beside_1_1(%{{.*}}: memref<8xf32>, %[[P:.*]]: memref<8xf32>, %[[Q:.*]]: memref<8xf32>) kernel
// CHECK: memref.load %[[P]]
// CHECK: memref.store %{{.*}}, %[[Q]]
gpu.module @beside_1__0_gpu {
  gpu.func @beside_1__0(%x: memref<8xf32>, %p: memref<8xf32>, %q: memref<8xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "2", xcc.shared_bytes = 0 : i64, xt.symbols = [],
                  xt.arg_dims = [[8]], xt.result_dims = [[8], [8]], xcc.part = {of = "beside_1", args = array<i64: 0>, results = array<i64: 0, 1>}} {
    %b = gpu.block_id x
    %v = memref.load %x[%b] : memref<8xf32>
    memref.store %v, %p[%b] : memref<8xf32>
    gpu.return
  }
  gpu.func @beside_1__0_1(%x: memref<8xf32>, %p: memref<8xf32>, %q: memref<8xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "2", xcc.shared_bytes = 0 : i64, xt.symbols = [],
                  xt.arg_dims = [[8]], xt.result_dims = [[8], [8]], xcc.part = {of = "beside_1", args = array<i64: 0>, results = array<i64: 0, 1>}} {
    %b = gpu.block_id x
    %v = memref.load %p[%b] : memref<8xf32>
    memref.store %v, %q[%b] : memref<8xf32>
    gpu.return
  }
}

// -----

// An input that the parts have in shapes of their own has one in the whole, and is a view for the other part.
// CHECK: gpu.func @beside_2(%[[X:.*]]: memref<?xf32>, %[[P:.*]]: memref<?x4xf32>, %[[Q:.*]]: memref<?xf32>, %[[N:.*]]: index) kernel
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[N]], 4], strides: [4, 1] : memref<?xf32> to memref<?x4xf32>
// CHECK: memref.load %[[ROWS]]
// CHECK: memref.store %{{.*}}, %[[P]]
// CHECK: memref.load %[[X]]
// CHECK: memref.store %{{.*}}, %[[Q]]
gpu.module @beside_2__0_gpu {
  gpu.func @beside_2__0(%x: memref<?x4xf32>, %p: memref<?x4xf32>, %d0: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "d0", xcc.shared_bytes = 0 : i64, xt.symbols = ["d0"],
                  xt.arg_dims = [["d0", 4]], xt.result_dims = [["d0", 4]], xcc.part = {of = "beside_2", args = array<i64: 0>, results = array<i64: 0>}} {
    %b = gpu.block_id x
    %zero = arith.constant 0 : index
    %v = memref.load %x[%b, %zero] : memref<?x4xf32>
    memref.store %v, %p[%b, %zero] : memref<?x4xf32>
    gpu.return
  }
}
gpu.module @beside_2__1_gpu {
  gpu.func @beside_2__1(%x: memref<?xf32>, %q: memref<?xf32>, %d0: index) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>, xcc.grid = "d0", xcc.shared_bytes = 0 : i64, xt.symbols = ["d0"],
                  xt.arg_dims = [["4*d0"]], xt.result_dims = [["4*d0"]], xcc.part = {of = "beside_2", args = array<i64: 0>, results = array<i64: 1>}} {
    %b = gpu.block_id x
    %v = memref.load %x[%b] : memref<?xf32>
    memref.store %v, %q[%b] : memref<?xf32>
    gpu.return
  }
}
