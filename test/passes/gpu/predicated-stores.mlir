// RUN: %xcc_opt %s --pass-pipeline="predicated-stores" --target=nvptx --chip=sm_90a | filecheck %s

gpu.module @m {
  // A wide store has a predicate; a load keeps its branch.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK: scf.if
  // CHECK: vector.load
  // CHECK-NOT: scf.if
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 st.global.v4.b32 [$1], {$2, $3, $4, $5};", "b,l,r,r,r,r,~{memory}" %{{.*}}, %{{.*}}, %{{.*}} : (i1, !llvm.ptr<1>,
  gpu.func @rows(%x: memref<4x1000xf16>, %y: memref<4x1000xf16>, %m: i1, %i: index) kernel {
    %c2 = arith.constant 2 : index
    %width = arith.constant 32 : i32
    %lane, %valid = gpu.shuffle xor %width, %width, %width : i32
    %zero = arith.constant dense<0.0> : vector<8xf16>
    %v = scf.if %m -> (vector<8xf16>) {
      %l = vector.load %x[%c2, %i] {alignment = 16 : i64} : memref<4x1000xf16>, vector<8xf16>
      scf.yield %l : vector<8xf16>
    } else {
      scf.yield %zero : vector<8xf16>
    }
    scf.if %m {
      %w = arith.addf %v, %v : vector<8xf16>
      vector.store %w, %y[%c2, %i] {alignment = 16 : i64} : memref<4x1000xf16>, vector<8xf16>
    }
    gpu.return
  }

  // Not what is narrower, has strides of the run, lies elsewhere, may be at odd addresses, is one of several, or is held
  // by threads that do not store it.
  // CHECK-LABEL: gpu.func @others(
  // CHECK-NOT: inline_asm
  gpu.func @others(%x: memref<1000xf16>, %y: memref<?x?xf16>, %s: memref<64xf16, #gpu.address_space<workgroup>>,
                   %v: vector<8xf16>, %n: vector<4xf16>, %m: i1, %i: index) kernel {
    %width = arith.constant 32 : i32
    %lane, %valid = gpu.shuffle xor %width, %width, %width : i32
    scf.if %m {
      vector.store %n, %x[%i] {alignment = 8 : i64} : memref<1000xf16>, vector<4xf16>
    }
    scf.if %m {
      vector.store %v, %y[%i, %i] {alignment = 16 : i64} : memref<?x?xf16>, vector<8xf16>
    }
    scf.if %m {
      vector.store %v, %s[%i] {alignment = 16 : i64} : memref<64xf16, #gpu.address_space<workgroup>>, vector<8xf16>
    }
    scf.if %m {
      vector.store %v, %x[%i] {alignment = 2 : i64} : memref<1000xf16>, vector<8xf16>
    }
    scf.if %m {
      vector.store %n, %x[%i] {alignment = 8 : i64} : memref<1000xf16>, vector<4xf16>
      vector.store %v, %x[%i] {alignment = 16 : i64} : memref<1000xf16>, vector<8xf16>
    }
    scf.if %m {
      vector.store %v, %x[%i] {alignment = 16 : i64, xcc.one_of_copies} : memref<1000xf16>, vector<8xf16>
    }
    gpu.return
  }

  // Nor where threads reduce nothing together, or multiply tiles.
  // CHECK-LABEL: gpu.func @pointwise(
  // CHECK-NOT: inline_asm
  gpu.func @pointwise(%x: memref<1000xf16>, %v: vector<8xf16>, %m: i1, %i: index) kernel {
    scf.if %m {
      vector.store %v, %x[%i] {alignment = 16 : i64} : memref<1000xf16>, vector<8xf16>
    }
    gpu.return
  }
  // CHECK-LABEL: gpu.func @product(
  // CHECK-NOT: inline_asm
  gpu.func @product(%x: memref<1000xf16>, %v: vector<8xf16>, %m: i1, %i: index) kernel attributes {xcc.product} {
    %width = arith.constant 32 : i32
    %lane, %valid = gpu.shuffle xor %width, %width, %width : i32
    scf.if %m {
      vector.store %v, %x[%i] {alignment = 16 : i64} : memref<1000xf16>, vector<8xf16>
    }
    gpu.return
  }
}
