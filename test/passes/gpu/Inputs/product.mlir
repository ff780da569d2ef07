func.func @product(%a: memref<64x256xf16>, %b: memref<256x128xf16>, %o: memref<64x128xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%c0, %k], %h {in_bounds = [true, true]} : memref<64x256xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%k, %c0], %h {in_bounds = [true, true]} : memref<256x128xf16>, vector<64x128xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    vector.transfer_write %r, %o[%c0, %c0] {in_bounds = [true, true]} : vector<64x128xf32>, memref<64x128xf32>
  }
  return
}
