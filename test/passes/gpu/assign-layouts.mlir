// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=assign-layouts --split-input-file | filecheck %s

// A coalesced load: 4 neighbours a thread, lanes along the row, a row a warp; the reduction keeps the row's layout.
// CHECK-LABEL: func.func @row_sum(
// CHECK: vector.transfer_read
// CHECK-SAME: xcc.layout = ["tile=[4,256] register=[{{\[}}0,1],[0,2],[0,128]] lane=[{{\[}}0,4],[0,8],[0,16],[0,32],[0,64]] warp=[{{\[}}1,0],[2,0]]"]
// CHECK: vector.multi_reduction
// CHECK-SAME: xcc.layout = ["tile=[4] register=[] lane=[{{\[}}0],[0],[0],[0],[0]] warp=[{{\[}}1],[2]]"]
// CHECK-NOT: unrealized_conversion_cast
func.func @row_sum(%x: memref<?x256xf32>, %o: memref<?xf32>, %d0: index) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %n = arith.ceildivui %d0, %c4 : index
  scf.forall (%i) in (%n) {
    %r = arith.muli %i, %c4 : index
    %a = vector.transfer_read %x[%r, %c0], %pad {in_bounds = [true, true]} : memref<?x256xf32>, vector<4x256xf32>
    %z = arith.constant dense<0.0> : vector<4xf32>
    %s = vector.multi_reduction <add>, %a, %z [1] : vector<4x256xf32> to vector<4xf32>
    vector.transfer_write %s, %o[%r] {in_bounds = [true]} : vector<4xf32>, memref<?xf32>
  }
  return
}

// -----

// The transposed value would be stored column by column: it is converted to the store's coalesced layout.
// CHECK-LABEL: func.func @transpose(
// CHECK: %[[A:.*]] = vector.transfer_read
// CHECK: %[[C:.*]] = builtin.unrealized_conversion_cast %[[A]] : vector<32x32xf32> to vector<32x32xf32>
// CHECK: %[[T:.*]] = vector.transpose %[[C]], [1, 0]
// CHECK: vector.transfer_write %[[T]]
func.func @transpose(%x: memref<?x33xf32>, %o: memref<?x33xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %a = vector.transfer_read %x[%c0, %c0], %pad {in_bounds = [true, true]} : memref<?x33xf32>, vector<32x32xf32>
    %t = vector.transpose %a, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    vector.transfer_write %t, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x33xf32>
  }
  return
}

// -----

// Operands of a contraction are converted to the matrix instruction's fragments; the bias takes the accumulator's
// layout where it is loaded; masks and constants are computed in whatever layout asks for them.
// CHECK-LABEL: func.func @matmul(
// CHECK: arith.constant {xcc.layout = ["tile=[32,16] register=[{{\[}}0,1],[8,0],[0,8]] lane=[{{\[}}0,2],[0,4],[1,0],[2,0],[4,0]] warp=[{{\[}}16,0]]"]} dense<0.000000e+00> : vector<32x16xf32>
// CHECK: %[[A:.*]] = vector.transfer_read
// CHECK: %[[FA:.*]] = builtin.unrealized_conversion_cast %[[A]]
// CHECK-SAME: register=[{{\[}}0,1],[8,0],[0,8]] lane=[{{\[}}0,2],[0,4],[1,0],[2,0],[4,0]] warp=[{{\[}}16,0]]
// CHECK: %[[B:.*]] = vector.transfer_read
// CHECK: %[[FB:.*]] = builtin.unrealized_conversion_cast %[[B]]
// CHECK-SAME: register=[{{\[}}1,0],[8,0],[0,8]] lane=[{{\[}}2,0],[4,0],[0,1],[0,2],[0,4]] warp=[{{\[}}0,0]]
// CHECK: vector.contract {{.*}} %[[FA]], %[[FB]]
// CHECK: %[[BIAS:.*]] = vector.transfer_read {{.*}} {in_bounds = [true], xcc.layout = ["tile=[16] register=[{{\[}}1],[8]]
// CHECK-NEXT: vector.broadcast %[[BIAS]]
func.func @matmul(%a: memref<32x16xf16>, %b: memref<16x16xf16>, %bias: memref<16xf32>, %o: memref<32x16xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x16xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x16xf16>, vector<32x16xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
    %v = vector.transfer_read %bias[%c0], %f {in_bounds = [true]} : memref<16xf32>, vector<16xf32>
    %w = vector.broadcast %v : vector<16xf32> to vector<32x16xf32>
    %s = arith.addf %c, %w : vector<32x16xf32>
    vector.transfer_write %s, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x16xf32>, memref<32x16xf32>
  }
  return
}

// -----

// Updates of neighbours: those of a warp's lanes are side by side in memory, and the elements are read so.
// CHECK-LABEL: func.func @rows_added(
// CHECK: vector.transfer_read
// CHECK-SAME: xcc.layout = ["tile=[256] register=[{{\[}}128]] lane=[{{\[}}1],[2],[4],[8],[16]] warp=[{{\[}}32],[64]]"]
// CHECK: "tile.atomic"
// CHECK-SAME: xcc.layout = ["tile=[256] register=[{{\[}}128]] lane=[{{\[}}1],[2],[4],[8],[16]] warp=[{{\[}}32],[64]]"]
func.func @rows_added(%x: memref<?xf32>, %o: memref<?xf32>, %p: memref<?xindex>, %d0: index) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant dense<16> : vector<16x16xindex>
  %all = arith.constant dense<true> : vector<256xi1>
  scf.forall (%i) in (%d0) {
    %t = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<?xf32>, vector<256xf32>
    %r = vector.transfer_read %p[%c0], %c0 {in_bounds = [true]} : memref<?xindex>, vector<16xindex>
    %rows = vector.shape_cast %r : vector<16xindex> to vector<16x1xindex>
    %row = vector.broadcast %rows : vector<16x1xindex> to vector<16x16xindex>
    %first = arith.muli %row, %c16 : vector<16x16xindex>
    %step = vector.step : vector<16xindex>
    %column = vector.broadcast %step : vector<16xindex> to vector<16x16xindex>
    %at = arith.addi %first, %column : vector<16x16xindex>
    %places = vector.shape_cast %at : vector<16x16xindex> to vector<256xindex>
    %old = "tile.atomic"(%t, %o, %all, %places) {kind = "add"} : (vector<256xf32>, memref<?xf32>, vector<256xi1>, vector<256xindex>) -> vector<256xf32>
  }
  return
}

// -----
// Places that two smaller vectors add up to are added in the layout of the gather, and what a thread loads one of is
// loaded again there: nothing is exchanged.
// CHECK-LABEL: func.func @picked(
// CHECK-NOT: unrealized_conversion_cast
// CHECK: return
func.func @picked(%x: memref<4096xf16>, %i: memref<128xi64>, %o: memref<8x128xf16>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i64
  scf.forall (%b) in (%c1) {
    %n = vector.transfer_read %i[%c0], %z {in_bounds = [true]} : memref<128xi64>, vector<128xi64>
    %p = arith.index_cast %n : vector<128xi64> to vector<128xindex>
    %columns = vector.broadcast %p : vector<128xindex> to vector<8x128xindex>
    %s = vector.step : vector<8xindex>
    %w = arith.constant dense<128> : vector<8xindex>
    %t = arith.muli %s, %w : vector<8xindex>
    %u = vector.shape_cast %t : vector<8xindex> to vector<8x1xindex>
    %rows = vector.broadcast %u : vector<8x1xindex> to vector<8x128xindex>
    %at = arith.addi %rows, %columns : vector<8x128xindex>
    %on = arith.constant dense<true> : vector<8x128xi1>
    %none = arith.constant dense<0.0> : vector<8x128xf16>
    %g = vector.gather %x[%c0] [%at], %on, %none : memref<4096xf16>, vector<8x128xindex>, vector<8x128xi1>, vector<8x128xf16> into vector<8x128xf16>
    vector.transfer_write %g, %o[%c0, %c0] {in_bounds = [true, true]} : vector<8x128xf16>, memref<8x128xf16>
  }
  return
}
