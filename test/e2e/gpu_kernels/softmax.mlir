// row softmax, 1000 columns in a tile of 1024, four rows a workgroup
func.func @softmax(%x: memref<?x1000xf32>, %o: memref<?x1000xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 1000]], xt.result_dims = [["d0", 1000]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1000 = arith.constant 1000 : index
  %low = arith.constant 0xFF800000 : f32
  %blocks = arith.ceildivui %d0, %c4 : index
  scf.forall (%i) in (%blocks) {
    %row = arith.muli %i, %c4 : index
    %left = arith.subi %d0, %row : index
    %mask = vector.create_mask %left, %c1000 : vector<4x1024xi1>
    %a = vector.transfer_read %x[%row, %c0], %low, %mask {in_bounds = [true, true]} : memref<?x1000xf32>, vector<4x1024xf32>
    %lows = arith.constant dense<0xFF800000> : vector<4xf32>
    %zeros = arith.constant dense<0.0> : vector<4xf32>
    %m = vector.multi_reduction <maximumf>, %a, %lows [1] : vector<4x1024xf32> to vector<4xf32>
    %m1 = vector.shape_cast %m : vector<4xf32> to vector<4x1xf32>
    %mb = vector.broadcast %m1 : vector<4x1xf32> to vector<4x1024xf32>
    %d = arith.subf %a, %mb : vector<4x1024xf32>
    %e = math.exp %d : vector<4x1024xf32>
    %s = vector.multi_reduction <add>, %e, %zeros [1] : vector<4x1024xf32> to vector<4xf32>
    %s1 = vector.shape_cast %s : vector<4xf32> to vector<4x1xf32>
    %sb = vector.broadcast %s1 : vector<4x1xf32> to vector<4x1024xf32>
    %r = arith.divf %e, %sb : vector<4x1024xf32>
    vector.transfer_write %r, %o[%row, %c0], %mask {in_bounds = [true, true]} : vector<4x1024xf32>, memref<?x1000xf32>
  }
  return
}
