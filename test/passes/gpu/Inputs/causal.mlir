// Attention of a block of queries to those keys that come before each.
#map = affine_map<(d0, d1, d2) -> (d2, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @attention(%arg0: memref<?x?x?xf16>, %arg1: memref<?x?x?xf16>, %arg2: memref<?x?x?xf16>, %arg3: memref<?x?x?xf16>, %arg4: index, %arg5: index, %arg6: index, %arg7: index, %arg8: index) attributes {tile.small = ["d0", "d1", "d2", "d4"], tile.symbols = ["q_0", "q_1", "q_2", "scale", "grid_0"], xcc.blocks, xcc.config = {gpu = {stages = 2 : i64, threads = 128 : i64, warpgroup = 1 : i64}}, xcc.may_alias, xt.arg_dims = [["d0", "d1", "8*floordiv(d2, 8)"], ["d0", "d1", "8*floordiv(d2, 8)"], ["d0", "d1", "8*floordiv(d2, 8)"], ["d0", "d1", "8*floordiv(d2, 8)"]], xt.kernel, xt.symbols = ["d0", "d1", "d2", "d3", "d4"]} {
    %cst = arith.constant dense<0xFF800000> : vector<64x64xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : vector<64x1xf32>
    %cst_1 = arith.constant dense<0xFF800000> : vector<64x1xf32>
    %cst_2 = arith.constant dense<-0.000000e+00> : vector<64xf32>
    %cst_3 = arith.constant dense<0xFF800000> : vector<64xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : vector<64x64xf32>
    %cst_5 = arith.constant 0.000000e+00 : f16
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %cst_6 = arith.constant 1.4426950408889634 : f64
    %c8 = arith.constant 8 : index
    %0 = arith.divui %arg6, %c8 : index
    %1 = arith.muli %0, %c8 : index
    %2 = arith.index_cast %arg7 : index to i64
    %3 = arith.bitcast %2 : i64 to f64
    scf.forall (%arg9, %arg10) in (%arg4, %arg8) {
      %4 = arith.mulf %3, %cst_6 : f64
      %5 = arith.muli %arg10, %c64 : index
      %6 = arith.subi %arg5, %5 : index
      %7 = vector.create_mask %6, %1 : vector<64x64xi1>
      %8 = vector.transfer_read %arg0[%arg9, %5, %c0], %cst_5, %7 {in_bounds = [true, true]} : memref<?x?x?xf16>, vector<64x64xf16>
      %9 = arith.addi %5, %c64 : index
      %10 = arith.minsi %arg5, %9 : index
      %11:3 = scf.for %arg11 = %c0 to %10 step %c64 iter_args(%arg12 = %cst_0, %arg13 = %cst_4, %arg14 = %cst_1) -> (vector<64x1xf32>, vector<64x64xf32>, vector<64x1xf32>) {
        %17 = vector.step : vector<64xindex>
        %18 = vector.shape_cast %17 : vector<64xindex> to vector<1x64xindex>
        %19 = vector.broadcast %arg11 : index to vector<1x64xindex>
        %20 = arith.addi %19, %18 : vector<1x64xindex>
        %21 = vector.broadcast %arg5 : index to vector<1x64xindex>
        %22 = arith.cmpi slt, %20, %21 : vector<1x64xindex>
        %23 = vector.shape_cast %17 : vector<64xindex> to vector<64x1xindex>
        %24 = vector.broadcast %5 : index to vector<64x1xindex>
        %25 = arith.addi %24, %23 : vector<64x1xindex>
        %26 = vector.broadcast %20 : vector<1x64xindex> to vector<64x64xindex>
        %27 = vector.broadcast %25 : vector<64x1xindex> to vector<64x64xindex>
        %28 = arith.cmpi sle, %26, %27 : vector<64x64xindex>
        %29 = vector.broadcast %22 : vector<1x64xi1> to vector<64x64xi1>
        %30 = arith.andi %29, %28 : vector<64x64xi1>
        %31 = arith.subi %arg5, %arg11 : index
        %32 = vector.create_mask %31, %1 : vector<64x64xi1>
        %33 = vector.transfer_read %arg1[%arg9, %arg11, %c0], %cst_5, %32 {in_bounds = [true, true], permutation_map = #map} : memref<?x?x?xf16>, vector<64x64xf16>
        %34 = vector.contract {indexing_maps = [#map1, #map, #map2], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %8, %33, %cst_4 : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
        %35 = arith.select %30, %34, %cst : vector<64x64xi1>, vector<64x64xf32>
        %36 = vector.multi_reduction <maximumf>, %35, %cst_3 [1] : vector<64x64xf32> to vector<64xf32>
        %37 = vector.shape_cast %36 : vector<64xf32> to vector<64x1xf32>
        %38 = arith.truncf %4 : f64 to f32
        %39 = vector.broadcast %38 : f32 to vector<64x1xf32>
        %40 = arith.mulf %37, %39 : vector<64x1xf32>
        %41 = arith.maximumf %arg14, %40 : vector<64x1xf32>
        %42 = vector.broadcast %38 : f32 to vector<64x64xf32>
        %43 = arith.mulf %35, %42 : vector<64x64xf32>
        %44 = vector.broadcast %41 : vector<64x1xf32> to vector<64x64xf32>
        %45 = arith.subf %43, %44 : vector<64x64xf32>
        %46 = math.exp2 %45 : vector<64x64xf32>
        %47 = arith.subf %arg14, %41 : vector<64x1xf32>
        %48 = math.exp2 %47 : vector<64x1xf32>
        %49 = arith.mulf %arg12, %48 : vector<64x1xf32>
        %50 = vector.multi_reduction <add>, %46, %cst_2 [1] : vector<64x64xf32> to vector<64xf32>
        %51 = vector.shape_cast %50 : vector<64xf32> to vector<64x1xf32>
        %52 = arith.addf %49, %51 : vector<64x1xf32>
        %53 = vector.transfer_read %arg2[%arg9, %arg11, %c0], %cst_5, %32 {in_bounds = [true, true]} : memref<?x?x?xf16>, vector<64x64xf16>
        %54 = arith.truncf %46 : vector<64x64xf32> to vector<64x64xf16>
        %55 = vector.broadcast %48 : vector<64x1xf32> to vector<64x64xf32>
        %56 = arith.mulf %arg13, %55 : vector<64x64xf32>
        %57 = vector.contract {indexing_maps = [#map1, #map, #map2], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %54, %53, %56 : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
        scf.yield %52, %57, %41 : vector<64x1xf32>, vector<64x64xf32>, vector<64x1xf32>
      }
      %12 = vector.broadcast %11#0 : vector<64x1xf32> to vector<64x64xf32>
      %13 = arith.divf %11#1, %12 : vector<64x64xf32>
      %14 = vector.shape_cast %13 : vector<64x64xf32> to vector<1x64x64xf32>
      %15 = arith.truncf %14 : vector<1x64x64xf32> to vector<1x64x64xf16>
      %16 = vector.shape_cast %15 : vector<1x64x64xf16> to vector<64x64xf16>
      vector.transfer_write %16, %arg3[%arg9, %5, %c0], %7 {in_bounds = [true, true]} : vector<64x64xf16>, memref<?x?x?xf16>
    } {xcc.parallel}
    return
  }
}
