// Attention of 128 queries to 128 keys a step: two warpgroups, each with the rows of its own.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
module {
  func.func @attention(%arg0: memref<1x256x128xf16>, %arg1: memref<1x256x128xf16>, %arg2: memref<1x256x128xf16>, %arg3: memref<1x256x128xf16>) attributes {xcc.config = {access = "gather", block = array<i64: 1, 128, 128>, gpu = {stages = 2 : i64, threads = 256 : i64, warpgroup = true}, online = true, order = array<i64: 0, 1, 2>, parallel = true, reduce = [array<i64: 128>, array<i64: 128>, array<i64: 128>, array<i64: 128>], tail = "mask", vector = array<i64: 1, 128, 128>}, xt.arg_dims = [[1, 256, 128], [1, 256, 128], [1, 256, 128]], xt.kernel, xt.result_dims = [[1, 256, 128]], xt.symbols = []} {
    %cst = arith.constant dense<0.127517432> : vector<128x128xf32>
    %cst_0 = arith.constant dense<0.127517432> : vector<128xf32>
    %cst_1 = arith.constant 0.000000e+00 : f16
    %cst_2 = arith.constant dense<0.000000e+00> : vector<128x128xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : vector<128xf32>
    %cst_4 = arith.constant dense<-3.40282347E+38> : vector<128xf32>
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    scf.forall (%arg4, %arg5) = (0, 0) to (1, 256) step (1, 128) {
      %0 = vector.transfer_read %arg0[%arg4, %arg5, %c0], %cst_1 {in_bounds = [true, true]} : memref<1x256x128xf16>, vector<128x128xf16>
      %1:3 = scf.for %arg6 = %c0 to %c256 step %c128 iter_args(%arg7 = %cst_4, %arg8 = %cst_3, %arg9 = %cst_2) -> (vector<128xf32>, vector<128xf32>, vector<128x128xf32>) {
        %6 = vector.transfer_read %arg1[%arg4, %arg6, %c0], %cst_1 {in_bounds = [true, true]} : memref<1x256x128xf16>, vector<128x128xf16>
        %7 = vector.contract {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %6, %cst_2 : vector<128x128xf16>, vector<128x128xf16> into vector<128x128xf32>
        %8 = vector.multi_reduction <maxnumf>, %7, %arg7 [1] : vector<128x128xf32> to vector<128xf32>
        %9 = arith.mulf %8, %cst_0 : vector<128xf32>
        %10 = arith.negf %9 : vector<128xf32>
        %11 = vector.shape_cast %10 : vector<128xf32> to vector<128x1xf32>
        %12 = vector.broadcast %11 : vector<128x1xf32> to vector<128x128xf32>
        %13 = math.fma %7, %cst, %12 : vector<128x128xf32>
        %14 = math.exp2 %13 fastmath<afn> : vector<128x128xf32>
        %15 = arith.mulf %arg7, %cst_0 : vector<128xf32>
        %16 = arith.subf %15, %9 : vector<128xf32>
        %17 = math.exp2 %16 fastmath<afn> : vector<128xf32>
        %18 = arith.mulf %arg8, %17 : vector<128xf32>
        %19 = vector.multi_reduction <add>, %14, %18 [1] : vector<128x128xf32> to vector<128xf32>
        %20 = vector.shape_cast %17 : vector<128xf32> to vector<128x1xf32>
        %21 = vector.broadcast %20 : vector<128x1xf32> to vector<128x128xf32>
        %22 = arith.mulf %arg9, %21 : vector<128x128xf32>
        %23 = arith.truncf %14 : vector<128x128xf32> to vector<128x128xf16>
        %24 = vector.transfer_read %arg2[%arg4, %arg6, %c0], %cst_1 {in_bounds = [true, true]} : memref<1x256x128xf16>, vector<128x128xf16>
        %25 = vector.contract {indexing_maps = [#map, #map3, #map2], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %23, %24, %22 : vector<128x128xf16>, vector<128x128xf16> into vector<128x128xf32>
        scf.yield %8, %19, %25 : vector<128xf32>, vector<128xf32>, vector<128x128xf32>
      }
      %2 = vector.shape_cast %1#1 : vector<128xf32> to vector<128x1xf32>
      %3 = vector.broadcast %2 : vector<128x1xf32> to vector<128x128xf32>
      %4 = arith.divf %1#2, %3 : vector<128x128xf32>
      %5 = arith.truncf %4 : vector<128x128xf32> to vector<128x128xf16>
      vector.transfer_write %5, %arg3[%arg4, %arg5, %c0] {in_bounds = [true, true]} : vector<128x128xf16>, memref<1x256x128xf16>
    } {xcc.parallel}
    return
  }
}
