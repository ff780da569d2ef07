// o = sum over rows of x, 64 columns a workgroup, 32 rows a step: the accumulator goes round the loop
func.func @column_sum(%x: memref<?x256xf32>, %o: memref<256xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 256]], xt.result_dims = [[256]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %col = arith.muli %i, %c64 : index
    %init = arith.constant dense<0.0> : vector<64xf32>
    %s = scf.for %r = %c0 to %d0 step %c32 iter_args(%acc = %init) -> (vector<64xf32>) {
      %left = arith.subi %d0, %r : index
      %mask = vector.create_mask %left, %c64 : vector<32x64xi1>
      %a = vector.transfer_read %x[%r, %col], %zero, %mask {in_bounds = [true, true]} : memref<?x256xf32>, vector<32x64xf32>
      %n = vector.multi_reduction <add>, %a, %acc [0] : vector<32x64xf32> to vector<64xf32>
      scf.yield %n : vector<64xf32>
    }
    vector.transfer_write %s, %o[%col] {in_bounds = [true]} : vector<64xf32>, memref<256xf32>
  }
  return
}
