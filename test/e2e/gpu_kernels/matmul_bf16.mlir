// o = relu(a x b + bias), tiles of 64x64 with k steps of 32, edges masked; bf16 operands, f32 accumulator
func.func @matmul_bf16(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %bias: memref<?xbf16>, %o: memref<?x?xbf16>, %d0: index, %d1: index, %d2: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "d2"], ["d2", "d1"], ["d1"]], xt.result_dims = [["d0", "d1"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : bf16
  %bm = arith.ceildivui %d0, %c64 : index
  %bn = arith.ceildivui %d1, %c64 : index
  scf.forall (%i, %j) in (%bm, %bn) {
    %m = arith.muli %i, %c64 : index
    %n = arith.muli %j, %c64 : index
    %lm = arith.subi %d0, %m : index
    %ln = arith.subi %d1, %n : index
    %init = arith.constant dense<0.0> : vector<64x64xf32>
    %acc = scf.for %k = %c0 to %d2 step %c32 iter_args(%c = %init) -> (vector<64x64xf32>) {
      %lk = arith.subi %d2, %k : index
      %ma = vector.create_mask %lm, %lk : vector<64x32xi1>
      %mb = vector.create_mask %lk, %ln : vector<32x64xi1>
      %ta = vector.transfer_read %a[%m, %k], %zero, %ma {in_bounds = [true, true]} : memref<?x?xbf16>, vector<64x32xbf16>
      %tb = vector.transfer_read %b[%k, %n], %zero, %mb {in_bounds = [true, true]} : memref<?x?xbf16>, vector<32x64xbf16>
      %p = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %c : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
      scf.yield %p : vector<64x64xf32>
    }
    %mn = vector.create_mask %ln : vector<64xi1>
    %bv = vector.transfer_read %bias[%n], %zero, %mn {in_bounds = [true]} : memref<?xbf16>, vector<64xbf16>
    %bw = arith.extf %bv : vector<64xbf16> to vector<64xf32>
    %bb = vector.broadcast %bw : vector<64xf32> to vector<64x64xf32>
    %s = arith.addf %acc, %bb : vector<64x64xf32>
    %r = arith.maximumf %s, %init : vector<64x64xf32>
    %q = arith.truncf %r : vector<64x64xf32> to vector<64x64xbf16>
    %mo = vector.create_mask %lm, %ln : vector<64x64xi1>
    vector.transfer_write %q, %o[%m, %n], %mo {in_bounds = [true, true]} : vector<64x64xbf16>, memref<?x?xbf16>
  }
  return
}
