// a b as in product-of-steps.mlir, of which the last step may have fewer terms: masks say which there are.
func.func @product(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %o: memref<?x?xf16>, %m: index, %n: index, %t: index) attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "8*d2"], ["8*d2", "8*d1"], ["d0", "8*d1"]], xcc.config = {gpu = {threads = 128 : i64, stages = 4 : i64, warpgroup = true, persistent = 3 : i64}}} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %end = arith.muli %t, %c8 : index
  %columns = arith.muli %n, %c8 : index
  scf.forall (%i, %j) = (0, 0) to (%m, %columns) step (64, 128) {
    %init = arith.constant dense<0.0> : vector<64x128xf32>
    %r = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %init) -> (vector<64x128xf32>) {
      %rows = arith.subi %m, %i : index
      %rest = arith.subi %end, %k : index
      %ma = vector.create_mask %rows, %rest : vector<64x64xi1>
      %ta = vector.transfer_read %a[%i, %k], %h, %ma {in_bounds = [true, true]} : memref<?x?xf16>, vector<64x64xf16>
      %left = arith.subi %columns, %j : index
      %mb = vector.create_mask %rest, %left : vector<64x128xi1>
      %tb = vector.transfer_read %b[%k, %j], %h, %mb {in_bounds = [true, true]} : memref<?x?xf16>, vector<64x128xf16>
      %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %acc : vector<64x64xf16>, vector<64x128xf16> into vector<64x128xf32>
      scf.yield %c : vector<64x128xf32>
    }
    %y = arith.truncf %r : vector<64x128xf32> to vector<64x128xf16>
    %rows = arith.subi %m, %i : index
    %left = arith.subi %columns, %j : index
    %mo = vector.create_mask %rows, %left : vector<64x128xi1>
    vector.transfer_write %y, %o[%i, %j], %mo {in_bounds = [true, true]} : vector<64x128xf16>, memref<?x?xf16>
  }
  return
}
