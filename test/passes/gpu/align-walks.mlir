// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=align-walks | filecheck %s

// A walk over rows of 50257 begins at the word that a row begins in. Its first step, and what is left behind the whole steps, have
// masks, which also say that a reduction puts its neutral value in what is not of the row; whole steps have none, and ask for none.
// CHECK-LABEL: @odd
// CHECK: %[[R:.*]] = arith.muli %{{.*}}, %c50257
// CHECK: %[[W:.*]] = arith.divui %[[R]], %c8
// CHECK: %[[F:.*]] = arith.muli %[[W]], %c8
// CHECK: %[[A:.*]] = arith.subi %[[R]], %[[F]]
// CHECK: %[[N:.*]] = arith.addi %c50257{{.*}}, %[[A]]
// CHECK: %[[X:.*]] = memref.collapse_shape %{{.*}} : memref<64x50257xf16> into memref<3216448xf16>
// CHECK: %[[Y:.*]] = memref.collapse_shape %{{.*}} : memref<64x50257xf32> into memref<3216448xf32>
// CHECK: %[[Q:.*]] = arith.divui %[[N]], %c8192
// CHECK: %[[S:.*]] = arith.muli %[[Q]], %c8192
// CHECK: %[[E:.*]] = arith.maxsi %[[S]], %c8192
// CHECK: %[[O:.*]] = arith.minsi %[[N]], %c8192
// CHECK: scf.for %[[J:.*]] = %c0 to %[[O]] step %c8192
// CHECK: %[[P:.*]] = arith.addi %[[F]], %[[J]]
// CHECK: %[[M:.*]] = arith.andi
// CHECK: vector.transfer_read %[[X]][%[[P]]], %{{.*}}, %[[M]]
// CHECK: %[[T:.*]] = arith.constant true
// CHECK: scf.if %[[T]]
// CHECK: arith.select
// CHECK: vector.transfer_write %{{.*}}, %[[Y]][%[[P]]], %{{.*}} {
// CHECK: scf.for %[[J:.*]] = %c8192 to %[[E]] step %c8192
// CHECK: %[[P:.*]] = arith.addi %[[F]], %[[J]]
// CHECK: vector.transfer_read %[[X]][%[[P]]], %{{[a-z0-9_]*}} {
// CHECK: %[[T:.*]] = arith.constant false
// CHECK: scf.if %[[T]]
// CHECK: vector.transfer_write %{{.*}}, %[[Y]][%[[P]]] {
// CHECK: scf.for %[[J:.*]] = %[[E]] to %[[N]] step %c8192
// CHECK: vector.transfer_read %[[X]][%{{.*}}], %{{.*}}, %{{.*}}
// CHECK: vector.transfer_write %{{.*}}, %[[Y]][%{{.*}}], %{{.*}}
func.func @odd(%x: memref<64x50257xf16>, %y: memref<64x50257xf32>) attributes {xt.kernel, xt.symbols = [], xcc.config = {gpu = {threads = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %n = arith.constant 50257 : index
  %step = arith.constant 8192 : index
  %zero = arith.constant 0.0 : f16
  %least = arith.constant dense<-1.0> : vector<8192xf32>
  scf.forall (%r) in (64) {
    scf.for %i = %c0 to %n step %step {
      %rest = arith.subi %n, %i : index
      %left = arith.minsi %rest, %step : index
      %m = vector.create_mask %left : vector<8192xi1>
      %t = vector.transfer_read %x[%r, %i], %zero, %m {in_bounds = [true]} : memref<64x50257xf16>, vector<8192xf16>
      %w = arith.extf %t : vector<8192xf16> to vector<8192xf32>
      %part = arith.cmpi slt, %left, %step : index
      %s = scf.if %part -> vector<8192xf32> {
        %v = arith.select %m, %w, %least : vector<8192xi1>, vector<8192xf32>
        scf.yield %v : vector<8192xf32>
      } else {
        scf.yield %w : vector<8192xf32>
      }
      vector.transfer_write %s, %y[%r, %i], %m {in_bounds = [true]} : vector<8192xf32>, memref<64x50257xf32>
    }
  }
  return
}

// Left as they are: rows that words divide, and those beside a weight for each column, which begins elsewhere.
// CHECK-LABEL: @others
// CHECK-NOT: memref.collapse_shape
func.func @others(%x: memref<64x50256xf16>, %z: memref<64x50257xf16>, %b: memref<50257xf16>) attributes {xt.kernel, xt.symbols = [], xcc.config = {gpu = {threads = 512 : i64}}} {
  %c0 = arith.constant 0 : index
  %n = arith.constant 50256 : index
  %o = arith.constant 50257 : index
  %step = arith.constant 8192 : index
  %zero = arith.constant 0.0 : f16
  scf.forall (%r) in (64) {
    scf.for %i = %c0 to %n step %step {
      %rest = arith.subi %n, %i : index
      %left = arith.minsi %rest, %step : index
      %m = vector.create_mask %left : vector<8192xi1>
      %t = vector.transfer_read %x[%r, %i], %zero, %m {in_bounds = [true]} : memref<64x50256xf16>, vector<8192xf16>
      vector.transfer_write %t, %x[%r, %i], %m {in_bounds = [true]} : vector<8192xf16>, memref<64x50256xf16>
    }
    scf.for %i = %c0 to %o step %step {
      %rest = arith.subi %o, %i : index
      %left = arith.minsi %rest, %step : index
      %m = vector.create_mask %left : vector<8192xi1>
      %t = vector.transfer_read %b[%i], %zero, %m {in_bounds = [true]} : memref<50257xf16>, vector<8192xf16>
      vector.transfer_write %t, %z[%r, %i], %m {in_bounds = [true]} : vector<8192xf16>, memref<64x50257xf16>
    }
  }
  return
}

// As a written kernel walks, whose mask is all that is left; the arrays are as long, in memory and along rows.
// CHECK-LABEL: @written
// CHECK: memref.dim
// CHECK: scf.for %{{.*}} = %c0 to
// CHECK: vector.transfer_read %{{.*}}[%{{.*}}], %{{.*}}, %{{.*}} {in_bounds
// CHECK: scf.for %{{.*}} = %c1024 to
// CHECK: vector.transfer_read %{{.*}}[%{{.*}}], %cst {in_bounds = [true]} : memref<?xf32>, vector<1024xf32>
func.func @written(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %d0: index, %n: index) attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"], ["d0", "d1"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%r) in (%d0) {
    scf.for %i = %c0 to %n step %step {
      %left = arith.subi %n, %i : index
      %m = vector.create_mask %left : vector<1024xi1>
      %t = vector.transfer_read %x[%r, %i], %zero, %m {in_bounds = [true]} : memref<?x?xf32>, vector<1024xf32>
      vector.transfer_write %t, %y[%r, %i], %m {in_bounds = [true]} : vector<1024xf32>, memref<?x?xf32>
    }
  }
  return
}

// Rows of other lengths begin elsewhere.
// CHECK-LABEL: @lengths
// CHECK-NOT: memref.collapse_shape
func.func @lengths(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %d0: index, %n: index, %d2: index) attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "d1"], ["d0", "d2"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%r) in (%d0) {
    scf.for %i = %c0 to %n step %step {
      %left = arith.subi %n, %i : index
      %m = vector.create_mask %left : vector<1024xi1>
      %t = vector.transfer_read %x[%r, %i], %zero, %m {in_bounds = [true]} : memref<?x?xf32>, vector<1024xf32>
      vector.transfer_write %t, %y[%r, %i], %m {in_bounds = [true]} : vector<1024xf32>, memref<?x?xf32>
    }
  }
  return
}
