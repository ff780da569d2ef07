// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=scalar-indices, mlir(canonicalize, cse)" | filecheck %s

gpu.module @m {
  // A clamped coordinate: behind the test that it is inside, the coordinate itself; no vector is left.
  // CHECK-LABEL: gpu.func @clamped(
  // CHECK-SAME: %[[X:.*]]: memref<?xf16>, %{{.*}}: memref<64xf16>, %[[W:.*]]: index
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
  // CHECK: %[[T:.*]] = gpu.thread_id x
  // CHECK: %[[AT:.*]] = arith.addi %[[T]], %{{.*}} : index
  // CHECK: %[[ON:.*]] = arith.cmpi ult, %[[AT]], %[[W]] : index
  // CHECK-NOT: vector<
  // CHECK-NOT: arith.maxsi
  // CHECK: %[[PLACE:.*]] = arith.muli %[[AT]], %[[C32]] : index
  // CHECK: scf.if %[[ON]]
  // CHECK: memref.load %[[X]][%[[PLACE]]]
  gpu.func @clamped(%x: memref<?xf16>, %o: memref<64xf16>, %w: index) kernel {
    %c_1 = arith.constant -1 : index
    %zero = arith.constant dense<0> : vector<2xindex>
    %two = arith.constant dense<-2> : vector<2xindex>
    %c32 = arith.constant dense<32> : vector<2xindex>
    %none = arith.constant 0.0 : f16
    %t = gpu.thread_id x
    %own = vector.broadcast %t : index to vector<2xindex>
    %at = arith.addi %own, %two : vector<2xindex>
    %last = arith.addi %w, %c_1 : index
    %most = vector.broadcast %last : index to vector<2xindex>
    %size = vector.broadcast %w : index to vector<2xindex>
    %low = arith.minsi %at, %most : vector<2xindex>
    %inside = arith.maxsi %low, %zero : vector<2xindex>
    %m = arith.cmpi ult, %at, %size : vector<2xindex>
    %place = arith.muli %inside, %c32 : vector<2xindex>
    %i = vector.extract %place[1] : index from vector<2xindex>
    %on = vector.extract %m[1] : i1 from vector<2xi1>
    %v = scf.if %on -> (f16) {
      %l = memref.load %x[%i] : memref<?xf16>
      scf.yield %l : f16
    } else {
      scf.yield %none : f16
    }
    memref.store %v, %o[%t] : memref<64xf16>
    gpu.return
  }

  // A coordinate that is computed in floats.
  // CHECK-LABEL: gpu.func @floats(
  // CHECK-NOT: vector<
  // CHECK: %[[HALF:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK: %[[MOVED:.*]] = arith.addf %[[HALF]], %{{.*}} : f32
  // CHECK: arith.fptosi %[[MOVED]] : f32 to i32
  // CHECK: memref.load
  gpu.func @floats(%x: memref<?xf16>, %o: memref<64xf16>, %f: f32) kernel {
    %half = arith.constant dense<0.5> : vector<2xf32>
    %move = arith.constant dense<[0.25, -0.25]> : vector<2xf32>
    %t = gpu.thread_id x
    %v = vector.broadcast %f : f32 to vector<2xf32>
    %h = arith.mulf %v, %half : vector<2xf32>
    %m = arith.addf %h, %move : vector<2xf32>
    %n = arith.fptosi %m : vector<2xf32> to vector<2xi32>
    %at = arith.index_cast %n : vector<2xi32> to vector<2xindex>
    %i = vector.extract %at[1] : index from vector<2xindex>
    %l = memref.load %x[%i] : memref<?xf16>
    memref.store %l, %o[%t] : memref<64xf16>
    gpu.return
  }

  // Without that test, or with another bound, the clamp stays; what was read from memory is an element of its vector.
  // CHECK-LABEL: gpu.func @kept(
  // CHECK: %[[INDICES:.*]] = vector.load
  // CHECK: %[[READ:.*]] = vector.extract %[[INDICES]][1]
  // CHECK: arith.minsi
  // CHECK: %[[INSIDE:.*]] = arith.maxsi
  // CHECK: scf.if
  // CHECK: memref.load %{{.*}}[%[[INSIDE]]]
  // CHECK: memref.load %{{.*}}[%[[READ]]]
  gpu.func @kept(%x: memref<?xf16>, %p: memref<64xindex>, %o: memref<64xf16>, %w: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c_1 = arith.constant -1 : index
    %none = arith.constant 0.0 : f16
    %t = gpu.thread_id x
    %read = vector.load %p[%t] : memref<64xindex>, vector<2xindex>
    %at = arith.addi %t, %c_1 : index
    %last = arith.addi %w, %c_1 : index
    %low = arith.minsi %at, %last : index
    %inside = arith.maxsi %low, %c0 : index
    %m = arith.cmpi ult, %at, %n : index
    %v = scf.if %m -> (f16) {
      %l = memref.load %x[%inside] : memref<?xf16>
      scf.yield %l : f16
    } else {
      scf.yield %none : f16
    }
    %i = vector.extract %read[1] : index from vector<2xindex>
    %u = memref.load %x[%i] : memref<?xf16>
    %s = arith.addf %u, %v : f16
    memref.store %s, %o[%t] : memref<64xf16>
    gpu.return
  }
}
