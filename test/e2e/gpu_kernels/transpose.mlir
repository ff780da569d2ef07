// o = transpose(x), tiles of 32x32 through shared memory, masked edges
func.func @transpose(%x: memref<?x?xf32>, %o: memref<?x?xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d1", "d0"]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %bi = arith.ceildivui %d0, %c32 : index
  %bj = arith.ceildivui %d1, %c32 : index
  scf.forall (%i, %j) in (%bi, %bj) {
    %r = arith.muli %i, %c32 : index
    %c = arith.muli %j, %c32 : index
    %lr = arith.subi %d0, %r : index
    %lc = arith.subi %d1, %c : index
    %mask = vector.create_mask %lr, %lc : vector<32x32xi1>
    %a = vector.transfer_read %x[%r, %c], %zero, %mask {in_bounds = [true, true]} : memref<?x?xf32>, vector<32x32xf32>
    %t = vector.transpose %a, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    %maskt = vector.create_mask %lc, %lr : vector<32x32xi1>
    vector.transfer_write %t, %o[%c, %r], %maskt {in_bounds = [true, true]} : vector<32x32xf32>, memref<?x?xf32>
  }
  return
}
