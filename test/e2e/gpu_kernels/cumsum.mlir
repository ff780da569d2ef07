// a loop kernel: the running sum of each row, one thread a row
func.func @cumsum(%x: memref<?x?xf32>, %o: memref<?x?xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xcc.loops, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d0", "d1"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%d0) {
    %t = scf.for %j = %c0 to %d1 step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %n = arith.addf %s, %v : f32
      memref.store %n, %o[%i, %j] : memref<?x?xf32>
      scf.yield %n : f32
    }
  }
  return
}
