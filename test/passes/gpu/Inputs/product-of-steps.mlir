// a b^T + rest as in product.mlir, of which the run alone knows how many steps along k there are.
func.func @product(%a: memref<256x?xf16>, %b: memref<256x?xf16>, %rest: memref<256x256xf16>, %o: memref<256x256xf16>, %n: index) attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["256", "64*d0"], ["256", "64*d0"], ["256", "256"], ["256", "256"]], xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true, group = 2 : i64, persistent = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %end = arith.muli %n, %c64 : index
  scf.forall (%i, %j) = (0, 0) to (256, 256) step (64, 128) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %ta = vector.transfer_read %a[%i, %k], %h {in_bounds = [true, true]} : memref<256x?xf16>, vector<64x64xf16>
      %tb = vector.transfer_read %b[%j, %k], %h {in_bounds = [true, true]} : memref<256x?xf16>, vector<128x64xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<128x64xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    %t = arith.truncf %r : vector<64x128xf32> to vector<64x128xf16>
    %x = vector.transfer_read %rest[%i, %j], %h {in_bounds = [true, true]} : memref<256x256xf16>, vector<64x128xf16>
    %y = arith.addf %t, %x : vector<64x128xf16>
    vector.transfer_write %y, %o[%i, %j] {in_bounds = [true, true]} : vector<64x128xf16>, memref<256x256xf16>
  }
  return
}
