// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=buffer-accesses, mlir(canonicalize, cse)" | filecheck %s

// A load behind a mask: the row and k of the workgroup move the base, a lane's offset is past the end where it is off.
// CHECK-LABEL: gpu.func @masked(
// CHECK-SAME: %[[X:.*]]: memref<?x512xf16>, %{{.*}}: memref<64x8xf16>, %[[ROWS:.*]]: index
// CHECK-DAG: %[[END:.*]] = arith.constant 1073741824 : index
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 2147483647 : i64
// CHECK: %[[ON:.*]] = arith.cmpi slt
// CHECK: scf.for %[[K:[^ ]*]] =
// CHECK-NOT: scf.if
// CHECK: %[[BASE:[0-9]+]] = arith.addi %{{[0-9]+}}, %[[K]]
// CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %[[X]] to offset: [%[[BASE]]], sizes: [1073741824], strides: [1]
// CHECK: %[[BUFFER:.*]] = amdgpu.fat_raw_buffer_cast %[[VIEW]] validBytes(%[[BYTES]]) resetOffset
// CHECK: %[[AT:.*]] = arith.select %[[ON]], %{{.*}}, %[[END]]
// CHECK: vector.load %[[BUFFER]][%[[AT]]] {alignment = 16 : i64} : memref<1073741824xf16, #amdgpu.address_space<fat_raw_buffer>>, vector<8xf16>
gpu.module @masked_gpu {
  gpu.func @masked(%x: memref<?x512xf16>, %o: memref<64x8xf16>, %d0: index) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant dense<0.0> : vector<8xf16>
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %own = arith.muli %t, %c8 : index
    %m = arith.cmpi slt, %t, %d0 : index
    %s = scf.for %k = %c0 to %c512 step %c16 iter_args(%acc = %zero) -> (vector<8xf16>) {
      %col = arith.addi %k, %own : index
      %v = scf.if %m -> (vector<8xf16>) {
        %l = vector.load %x[%b, %col] {alignment = 16 : i64} : memref<?x512xf16>, vector<8xf16>
        scf.yield %l : vector<8xf16>
      } else {
        scf.yield %zero : vector<8xf16>
      }
      %n = arith.addf %acc, %v : vector<8xf16>
      scf.yield %n : vector<8xf16>
    }
    vector.store %s, %o[%t, %c0] : memref<64x8xf16>, vector<8xf16>
    gpu.return
  }

  // Two loads that canonicalization gave one branch: both without it, their offsets a constant apart, another padding
  // for the second one.
  // CHECK-LABEL: gpu.func @masked_pair(
  // CHECK-DAG: %[[END:.*]] = arith.constant 536870912 : index
  // CHECK-DAG: %[[BEHIND:.*]] = arith.constant 64 : index
  // CHECK: %[[ON:.*]] = arith.cmpi slt
  // CHECK-NOT: scf.if
  // CHECK: %[[AT:.*]] = arith.select %[[ON]], %{{.*}}, %[[END]] : index
  // CHECK: %[[FIRST:.*]] = memref.load %{{.*}}[%[[AT]]] : {{.*}}fat_raw_buffer
  // CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %[[BEHIND]]
  // CHECK: %[[LOADED:.*]] = memref.load %{{.*}}[%[[NEXT]]] : {{.*}}fat_raw_buffer
  // CHECK: %[[SECOND:.*]] = arith.select %[[ON]], %[[LOADED]], %{{.*}} : f32
  // CHECK: arith.addf %[[FIRST]], %[[SECOND]]
  gpu.func @masked_pair(%x: memref<?x64xf32>, %o: memref<64xf32>, %d0: index) kernel {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %m = arith.cmpi slt, %t, %d0 : index
    %v:2 = scf.if %m -> (f32, f32) {
      %a = memref.load %x[%c0, %t] : memref<?x64xf32>
      %b = memref.load %x[%c1, %t] : memref<?x64xf32>
      scf.yield %a, %b : f32, f32
    } else {
      scf.yield %zero, %one : f32, f32
    }
    %s = arith.addf %v#0, %v#1 : f32
    memref.store %s, %o[%t] : memref<64xf32>
    gpu.return
  }

  // Another padding is chosen behind the load; a store past the end does nothing.
  // CHECK-LABEL: gpu.func @padded(
  // CHECK-NOT: scf.if
  // CHECK: %[[LOADED:.*]] = memref.load {{.*}} #amdgpu.address_space<fat_raw_buffer>>
  // CHECK: arith.select %{{.*}}, %[[LOADED]], %{{.*}} : f32
  // CHECK: memref.store {{.*}} #amdgpu.address_space<fat_raw_buffer>>
  gpu.func @padded(%x: memref<?xf32>, %o: memref<?xf32>, %d0: index) kernel {
    %t = gpu.thread_id x
    %low = arith.constant 0xFF800000 : f32
    %m = arith.cmpi slt, %t, %d0 : index
    %v = scf.if %m -> (f32) {
      %l = memref.load %x[%t] : memref<?xf32>
      scf.yield %l : f32
    } else {
      scf.yield %low : f32
    }
    scf.if %m {
      memref.store %v, %o[%t] : memref<?xf32>
    }
    gpu.return
  }

  // Lanes along a dim of unknown stride: their offsets may pass 2 GiB, so addresses stay 64 bits wide.
  // CHECK-LABEL: gpu.func @wide(
  // CHECK: scf.if
  // CHECK: memref.load {{.*}} : memref<?x?xf32>
  // CHECK-NOT: fat_raw_buffer_cast
  gpu.func @wide(%x: memref<?x?xf32>, %o: memref<?x?xf32>, %d0: index, %d1: index) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %m = arith.cmpi slt, %t, %d0 : index
    scf.if %m {
      %l = memref.load %x[%t, %c0] : memref<?x?xf32>
      memref.store %l, %o[%t, %c0] : memref<?x?xf32>
    }
    gpu.return
  }

  // Rows behind a limit lie behind the end of a buffer of so many rows: no lane compares or chooses anything. What always
  // holds is dropped.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[X:.*]]: memref<?x64xf16>, %{{.*}}: memref<64x64xf16>, %[[D0:.*]]: index
  // CHECK-DAG: %[[ROW:.*]] = arith.constant 128 : i32
  // CHECK-DAG: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[TILE:.*]] : index
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[LEFT]] : index to i32
  // CHECK: %[[FROM0:.*]] = arith.maxsi %[[COUNT]], %{{.*}} : i32
  // CHECK: %[[BYTES:.*]] = arith.muli %[[FROM0]], %[[ROW]] : i32
  // CHECK: %[[SCALAR:.*]] = rocdl.readfirstlane %[[BYTES]] : i32
  // CHECK: %[[VALID:.*]] = arith.extui %[[SCALAR]] : i32 to i64
  // CHECK: amdgpu.fat_raw_buffer_cast %{{.*}} validBytes(%[[VALID]])
  // CHECK-NOT: arith.select
  // CHECK: vector.load {{.*}} vector<8xf16>
  // CHECK-NOT: scf.if
  // CHECK: gpu.return
  gpu.func @rows(%x: memref<?x64xf16>, %o: memref<64x64xf16>, %d0: index) kernel {
    %c3 = arith.constant 3 : index
    %c7 = arith.constant 7 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<8xf16>
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %own = arith.andi %t, %c63 : index
    %lane = arith.andi %t, %c7 : index
    %col = arith.shli %lane, %c3 : index
    %tile = arith.muli %b, %c64 : index
    %row = arith.addi %tile, %own : index
    %next = arith.addi %tile, %c64 : index
    %end = arith.minsi %next, %d0 : index
    %left = arith.subi %end, %tile : index
    %inside = arith.cmpi slt, %own, %left : index
    %always = arith.cmpi slt, %col, %c64 : index
    %m = arith.andi %inside, %always : i1
    %v = scf.if %m -> (vector<8xf16>) {
      %l = vector.load %x[%row, %col] {alignment = 16 : i64} : memref<?x64xf16>, vector<8xf16>
      scf.yield %l : vector<8xf16>
    } else {
      scf.yield %zero : vector<8xf16>
    }
    vector.store %v, %o[%own, %col] : memref<64x64xf16>, vector<8xf16>
    gpu.return
  }

  // What is not a limit of rows stays for the lanes; what all of them agree on is a buffer of no bytes.
  // CHECK-LABEL: gpu.func @others(
  // CHECK-SAME: %{{.*}}: memref<?x64xf16>, %[[D0:.*]]: index, %[[D1:.*]]: index
  // CHECK: %[[HALF:.*]] = arith.shrui
  // CHECK: %[[MINE:.*]] = arith.cmpi slt, %[[HALF]], %[[D1]] : index
  // CHECK: %[[ALL:.*]] = arith.cmpi slt, %{{.*}}, %[[D0]] : index
  // CHECK: %[[BYTES:.*]] = arith.select %[[ALL]], %{{.*}}, %{{.*}} : i32
  // CHECK: %[[SCALAR:.*]] = rocdl.readfirstlane %[[BYTES]]
  // CHECK: %[[VALID:.*]] = arith.extui %[[SCALAR]]
  // CHECK: amdgpu.fat_raw_buffer_cast %{{.*}} validBytes(%[[VALID]])
  // CHECK: arith.select %[[MINE]], %{{.*}}, %{{.*}} : index
  // CHECK: memref.store
  gpu.func @others(%x: memref<?x64xf16>, %d0: index, %d1: index) kernel {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f16
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %half = arith.shrui %t, %c1 : index
    %mine = arith.cmpi slt, %half, %d1 : index
    %all = arith.cmpi slt, %b, %d0 : index
    %m = arith.andi %mine, %all : i1
    scf.if %m {
      memref.store %zero, %x[%b, %t] : memref<?x64xf16>
    }
    gpu.return
  }

  // A row of unknown length for each wave of 64: its number goes to the scalar unit, a limit of rows is a buffer of no
  // bytes for the wave.
  // CHECK-LABEL: gpu.func @wave_rows(
  // CHECK-SAME: %[[X:.*]]: memref<?x?xf16>, %[[ROWS:[^ ]*]]: index
  // CHECK-DAG: %[[WAVE:.*]] = arith.shrui %{{.*}}, %c6
  // CHECK-DAG: %[[LANE:.*]] = arith.andi %{{.*}}, %c63
  // CHECK-DAG: %[[ON:.*]] = arith.cmpi slt, %[[WAVE]], %[[ROWS]] : index
  // CHECK-NOT: scf.if
  // CHECK-DAG: %[[NARROW:.*]] = arith.index_cast %[[WAVE]] : index to i32
  // CHECK-DAG: %[[FIRST:.*]] = rocdl.readfirstlane %[[NARROW]]
  // CHECK-DAG: %[[ROW:.*]] = arith.index_cast %[[FIRST]] : i32 to index
  // CHECK-DAG: %[[DIM:.*]] = memref.dim %[[X]], %c1
  // CHECK: %[[BASE:.*]] = arith.muli %[[ROW]], %[[DIM]] : index
  // CHECK: memref.reinterpret_cast %[[X]] to offset: [%[[BASE]]]
  // CHECK: arith.select %[[ON]], %{{.*}}, %{{.*}} : i32
  // CHECK: memref.store %{{.*}}, %{{.*}}[%[[LANE]]]
  gpu.func @wave_rows(%x: memref<?x?xf16>, %rows: index) kernel {
    %c6 = arith.constant 6 : index
    %c63 = arith.constant 63 : index
    %zero = arith.constant 0.0 : f16
    %t = gpu.thread_id x
    %wave = arith.shrui %t, %c6 : index
    %lane = arith.andi %t, %c63 : index
    %on = arith.cmpi slt, %wave, %rows : index
    scf.if %on {
      memref.store %zero, %x[%wave, %lane] : memref<?x?xf16>
    }
    gpu.return
  }

  // Two rows a wave: their distance is not known, so the branch and the address of each lane stay.
  // CHECK-LABEL: gpu.func @half_a_wave(
  // CHECK: scf.if
  // CHECK-NOT: fat_raw_buffer_cast
  // CHECK: gpu.return
  gpu.func @half_a_wave(%x: memref<?x?xf16>, %rows: index) kernel {
    %c5 = arith.constant 5 : index
    %c31 = arith.constant 31 : index
    %zero = arith.constant 0.0 : f16
    %t = gpu.thread_id x
    %half = arith.shrui %t, %c5 : index
    %lane = arith.andi %t, %c31 : index
    %on = arith.cmpi slt, %half, %rows : index
    scf.if %on {
      memref.store %zero, %x[%half, %lane] : memref<?x?xf16>
    }
    gpu.return
  }
}
