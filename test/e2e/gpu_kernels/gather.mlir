// o[i, :] = table[ids[i], :]: rows of 64 columns by index, clamped, 16 rows a workgroup
func.func @gather(%table: memref<?x64xf32>, %ids: memref<?xi64>, %o: memref<?x64xf32>, %d0: index, %d1: index)
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", 64], ["d1"]], xt.result_dims = [["d1", 64]], xcc.config = {gpu = {threads = 128 : i64}}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant 0 : i64
  %flat = memref.collapse_shape %table [[0, 1]] : memref<?x64xf32> into memref<?xf32>
  %blocks = arith.ceildivui %d1, %c16 : index
  scf.forall (%i) in (%blocks) {
    %row = arith.muli %i, %c16 : index
    %left = arith.subi %d1, %row : index
    %mrow = vector.create_mask %left : vector<16xi1>
    %id = vector.transfer_read %ids[%row], %none, %mrow {in_bounds = [true]} : memref<?xi64>, vector<16xi64>
    %idx = arith.index_cast %id : vector<16xi64> to vector<16xindex>
    %width = arith.constant dense<64> : vector<16xindex>
    %start = arith.muli %idx, %width : vector<16xindex>
    %start1 = vector.shape_cast %start : vector<16xindex> to vector<16x1xindex>
    %startb = vector.broadcast %start1 : vector<16x1xindex> to vector<16x64xindex>
    %col = vector.step : vector<64xindex>
    %colb = vector.broadcast %col : vector<64xindex> to vector<16x64xindex>
    %at = arith.addi %startb, %colb : vector<16x64xindex>
    %mask = vector.create_mask %left, %c64 : vector<16x64xi1>
    %pass = arith.constant dense<0.0> : vector<16x64xf32>
    %v = vector.gather %flat[%c0] [%at], %mask, %pass : memref<?xf32>, vector<16x64xindex>, vector<16x64xi1>, vector<16x64xf32> into vector<16x64xf32>
    vector.transfer_write %v, %o[%row, %c0], %mask {in_bounds = [true, true]} : vector<16x64xf32>, memref<?x64xf32>
  }
  return
}
