// RUN: %xcc_opt %s --pass-pipeline=tile | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="tile,mlir(canonicalize),mlir(cse),assign-layouts,distribute,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=THREAD

// A padded 3x3 window as a matrix product: 2*5*5 rows are one tile dim, whose coordinates come from divisions; the window
// and the channels are one loop, uniform divisions, for 16 lanes stay in one tap.
// CHECK-LABEL: func.func private @conv(
// CHECK: scf.forall (%[[ROW:.*]], %[[COLUMN:.*]]) = (0, 0) to (50, 8) step (32, 8)
// CHECK: arith.divui %{{.*}} : vector<32xindex>
// CHECK: arith.remui %{{.*}} : vector<32xindex>
// CHECK: scf.for %[[K:.*]] = %c0 to %c144 step %c16
// CHECK: arith.remui %[[K]], %c16 : index
// Rows that are padding are not read; so is what lies past the last row.
// CHECK: %[[INSIDE:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<32x16xi1>
// CHECK: %[[A:.*]] = vector.gather %{{.*}} [%{{.*}}], %[[INSIDE]]
// The filter's dims are walked as one: a plain transfer.
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}}[%[[K]], %[[COLUMN]]]{{.*}} : memref<144x8xf16{{.*}}>, vector<16x8xf16>
// CHECK: vector.contract {{.*}} %[[A]], %[[B]]
// CHECK: vector.transfer_write %{{.*}}, %{{.*}}[%[[ROW]], %[[COLUMN]]]{{.*}} memref<50x8xf32

// A thread reads 8 channels at once, behind one test.
// THREAD-LABEL: gpu.func @conv(
// THREAD: %[[TEST:.*]] = vector.extract %{{.*}} : i1 from vector<8xi1>
// THREAD: scf.if %{{.*}} -> (vector<8xf16>) {
// THREAD-NEXT: %{{.*}} = vector.load %{{.*}}[%{{.*}}] {alignment = 16 : i64} : memref<800xf16{{.*}}>, vector<8xf16>
// THREAD: nvgpu.mma.sync
#o=affine_map<(n,h,w,o,c,i,j)->(n,h,w,o)>
#x=affine_map<(n,h,w,o,c,i,j)->(n,h+i,w+j,c)>
#f=affine_map<(n,h,w,o,c,i,j)->(i,j,c,o)>
#id=affine_map<(n,h,w,c)->(n,h,w,c)>
func.func private @conv(%x: tensor<2x5x5x16xf16>, %f: tensor<3x3x16x8xf16>) -> tensor<2x5x5x8xf32> attributes {xt.kernel,
  xt.symbols=[], xt.arg_dims=[[2,5,5,16],[3,3,16,8]], xt.result_dims=[[2,5,5,8]],
  xcc.config = {flatten=array<i64: 3, 1>, block=array<i64: 32, 8>, vector=array<i64: 32, 8>, order=array<i64: 0, 1>,
                reduce=[array<i64: 16, 1, 1>], joined=[array<i64: 5, 6, 4>], tail="mask", access="gather", parallel=true,
                gpu = {threads=64 : i64}}} {
  %zero = arith.constant 0.0 : f32
  %z16 = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<2x7x7x16xf16>
  %p = linalg.generic {indexing_maps=[#id], iterator_types=["parallel","parallel","parallel","parallel"]} outs(%e: tensor<2x7x7x16xf16>) {
   ^bb0(%o: f16):
     %n = linalg.index 0 : index
     %hp = linalg.index 1 : index
     %wp = linalg.index 2 : index
     %c = linalg.index 3 : index
     %h = arith.subi %hp, %c1 : index
     %ht = arith.cmpi ult, %h, %c5 : index
     %hm = arith.minsi %h, %c4 : index
     %hc = arith.maxsi %hm, %c0 : index
     %w = arith.subi %wp, %c1 : index
     %wt = arith.cmpi ult, %w, %c5 : index
     %wm = arith.minsi %w, %c4 : index
     %wc = arith.maxsi %wm, %c0 : index
     %t = arith.andi %ht, %wt : i1
     %v = tensor.extract %x[%n, %hc, %wc, %c] : tensor<2x5x5x16xf16>
     %s = arith.select %t, %v, %z16 : f16
     linalg.yield %s : f16 } -> tensor<2x7x7x16xf16>
  %e2 = tensor.empty() : tensor<2x5x5x8xf32>
  %i = linalg.fill ins(%zero: f32) outs(%e2: tensor<2x5x5x8xf32>) -> tensor<2x5x5x8xf32>
  %y = linalg.generic {indexing_maps=[#x,#f,#o], iterator_types=["parallel","parallel","parallel","parallel","reduction","reduction","reduction"]} ins(%p,%f: tensor<2x7x7x16xf16>,tensor<3x3x16x8xf16>) outs(%i: tensor<2x5x5x8xf32>) {
   ^bb0(%a: f16, %b: f16, %o: f32):
     %a32 = arith.extf %a : f16 to f32
     %b32 = arith.extf %b : f16 to f32
     %m = arith.mulf %a32, %b32 : f32
     %s = arith.addf %o, %m : f32
     linalg.yield %s : f32 } -> tensor<2x5x5x8xf32>
  return %y : tensor<2x5x5x8xf32>
}
