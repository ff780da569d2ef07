// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=private-updates" | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=private-updates, assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CODE

// Eight workgroups go from one iteration to the next and update their copies of 128 elements, if that is enough room, and
// an element is updated twice by a workgroup; then the copies are added to the buffer.
// CHECK-LABEL: func.func @counts(
// CHECK: %[[GRID:.*]] = arith.minsi %{{.*}}, %c8
// CHECK: scf.forall (%[[W:.*]]) in (%[[GRID]]) {
// CHECK: %[[COPY:.*]] = memref.alloc() : memref<128xi32, #gpu.address_space<workgroup>>
// CHECK: %[[ENOUGH:.*]] = arith.cmpi sle
// CHECK: %[[ROOM:.*]] = arith.cmpi sle, %arg2, %c128
// CHECK: %[[USED:.*]] = arith.andi %[[ROOM]], %[[ENOUGH]]
// CHECK: scf.if %[[USED]]
// CHECK: vector.scatter %[[COPY]]
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} = %[[W]] to %{{.*}} step %c8
// CHECK: scf.if %[[USED]]
// CHECK: "tile.atomic"(%{{.*}}, %[[COPY]],
// CHECK: else
// CHECK: "tile.atomic"(%{{.*}}, %arg1,
// CHECK: gpu.barrier
// CHECK: scf.if %[[USED]]
// CHECK: vector.gather %[[COPY]]
// CHECK: arith.cmpi ne
// CHECK: "tile.atomic"(%{{.*}}, %arg1,
// CODE: gpu.func @counts(
// CODE-SAME: xcc.grid = "min(8, d1)", xcc.shared_bytes = 512
// CODE: memref.atomic_rmw addi {{.*}} memref<128xi32, #gpu.address_space<workgroup>>
// CODE: memref.atomic_rmw addi {{.*}} memref<?xi32>
// CODE: gpu.barrier
// CODE: memref.atomic_rmw addi {{.*}} memref<?xi32>
func.func @counts(%x: memref<?xindex>, %o: memref<?xi32>, %d0: index, %d1: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["256*d1"], ["d0"]], xcc.config = {gpu = {threads = 128 : i64, persistent = 8 : i64, private = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %one = arith.constant dense<1> : vector<256xi32>
  %all = arith.constant dense<true> : vector<256xi1>
  scf.forall (%i) in (%d1) {
    %at = arith.muli %i, %c256 : index
    %p = vector.transfer_read %x[%at], %c0 {in_bounds = [true]} : memref<?xindex>, vector<256xindex>
    %old = "tile.atomic"(%one, %o, %all, %p) {kind = "add"} : (vector<256xi32>, memref<?xi32>, vector<256xi1>, vector<256xindex>) -> vector<256xi32>
  }
  return
}

// What was there before is asked for.
// CHECK-LABEL: func.func @tickets(
// CHECK-NOT: memref.alloc
func.func @tickets(%x: memref<?xindex>, %o: memref<?xi32>, %t: memref<?xi32>, %d0: index, %d1: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["256*d1"], ["d0"], ["256*d1"]], xcc.config = {gpu = {threads = 128 : i64, persistent = 8 : i64, private = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %one = arith.constant dense<1> : vector<256xi32>
  %all = arith.constant dense<true> : vector<256xi1>
  scf.forall (%i) in (%d1) {
    %at = arith.muli %i, %c256 : index
    %p = vector.transfer_read %x[%at], %c0 {in_bounds = [true]} : memref<?xindex>, vector<256xindex>
    %old = "tile.atomic"(%one, %o, %all, %p) {kind = "add"} : (vector<256xi32>, memref<?xi32>, vector<256xi1>, vector<256xindex>) -> vector<256xi32>
    vector.transfer_write %old, %t[%at] {in_bounds = [true]} : vector<256xi32>, memref<?xi32>
  }
  return
}

// Nor is there a copy where the schedule has no room for one.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: memref.alloc
func.func @plain(%x: memref<?xindex>, %o: memref<?xi32>, %d0: index, %d1: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["256*d1"], ["d0"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %one = arith.constant dense<1> : vector<256xi32>
  %all = arith.constant dense<true> : vector<256xi1>
  scf.forall (%i) in (%d1) {
    %at = arith.muli %i, %c256 : index
    %p = vector.transfer_read %x[%at], %c0 {in_bounds = [true]} : memref<?xindex>, vector<256xindex>
    %old = "tile.atomic"(%one, %o, %all, %p) {kind = "add"} : (vector<256xi32>, memref<?xi32>, vector<256xi1>, vector<256xindex>) -> vector<256xi32>
  }
  return
}

// Places that are the same in all iterations: the copy is in registers, and its elements go to memory with neighbours in lanes.
// CHECK-LABEL: func.func @column_sums(
// CHECK: %[[AT:.*]] = vector.step
// CHECK: %[[MASK:.*]] = vector.create_mask %arg2
// CHECK: scf.forall (%[[W:.*]]) in
// CHECK-NOT: memref.alloc
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %[[W]] to %{{.*}} step %c8{{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (vector<256xf32>)
// CHECK: %[[T:.*]] = vector.transfer_read
// CHECK: %[[SOME:.*]] = arith.select %[[MASK]], %[[T]], %{{.*}}
// CHECK: %[[NEXT:.*]] = arith.addf %[[SO_FAR]], %[[SOME]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: "tile.atomic"(%[[SUM]], %arg1, %[[MASK]], %[[AT]]) {kind = "add"}
// CODE: gpu.func @column_sums(
// CODE-SAME: xcc.shared_bytes = 0
// CODE: scf.for
// CODE-NOT: memref.atomic_rmw
// CODE: scf.yield
// CODE-COUNT-2: memref.atomic_rmw addf
// CODE-NOT: memref.atomic_rmw
func.func @column_sums(%x: memref<?x?xf32>, %o: memref<?xf32>, %d0: index, %d1: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d1", "d0"], ["d0"]], xcc.config = {gpu = {threads = 128 : i64, persistent = 8 : i64, private = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d1) {
    %at = vector.step : vector<256xindex>
    %mask = vector.create_mask %d0 : vector<256xi1>
    %t = vector.transfer_read %x[%i, %c0], %zero, %mask {in_bounds = [true]} : memref<?x?xf32>, vector<256xf32>
    %old = "tile.atomic"(%t, %o, %mask, %at) {kind = "add"} : (vector<256xf32>, memref<?xf32>, vector<256xi1>, vector<256xindex>) -> vector<256xf32>
  }
  return
}
