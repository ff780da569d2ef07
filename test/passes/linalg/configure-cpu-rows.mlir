// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline=configure --split-input-file | filecheck %s

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// A short row stays in registers: nothing is parked. The maxima of all rows of a chunk come first.
// CHECK-LABEL: func.func private @in_registers
// CHECK-SAME: xcc.config = {access = "rows", block = array<i64: {{[0-9]+}}, 0>, cpu = {kept = [{op = 0 : i64, order = array<i64: 0>, vector = array<i64: 1>}]}, order = array<i64: 0, 1>, parallel = true, reduce = [array<i64: 128>, array<i64: 128>], tail = "peel", vector = array<i64: 1, 128>}
func.func private @in_registers(%x: tensor<1536x128xf32>) -> tensor<1536x128xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1536, 128]], xt.result_dims = [[1536, 128]]} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1536xf32>
  %e2 = tensor.empty() : tensor<1536x128xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<1536xf32>) -> tensor<1536xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1536x128xf32>) outs(%f : tensor<1536xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1536xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<1536x128xf32>, tensor<1536xf32>) outs(%e2 : tensor<1536x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<1536x128xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1536xf32>) -> tensor<1536xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<1536x128xf32>) outs(%g : tensor<1536xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<1536xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<1536x128xf32>, tensor<1536xf32>) outs(%e2 : tensor<1536x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1536x128xf32>
  return %y : tensor<1536x128xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// A longer one parks its exponentials in the result.
// CHECK-LABEL: func.func private @parked
// CHECK-SAME: xcc.config = {access = "rows", block = array<i64: {{[0-9]+}}, 0>, cpu = {ahead = 2048 : i64, park = 1 : i64}, order = array<i64: 0, 1>, parallel = true, reduce = [array<i64: 64>, array<i64: 64>], tail = "peel", vector = array<i64: 1, 32>}
func.func private @parked(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[512, 1024]], xt.result_dims = [[512, 1024]]} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<512xf32>
  %e2 = tensor.empty() : tensor<512x1024xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<512xf32>) -> tensor<512xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x1024xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<512x1024xf32>, tensor<512xf32>) outs(%e2 : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<512x1024xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<512xf32>) -> tensor<512xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<512x1024xf32>) outs(%g : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<512x1024xf32>, tensor<512xf32>) outs(%e2 : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<512x1024xf32>
  return %y : tensor<512x1024xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// Results larger than the caches are stored past them, and rows are fetched ahead.
// CHECK-LABEL: func.func private @past_caches
// CHECK-SAME: xcc.config = {access = "rows", {{.*}}cpu = {ahead = 2048 : i64, park = 1 : i64, stream = true}, {{.*}}tail = "peel", vector = array<i64: 1, 32>}
func.func private @past_caches(%x: tensor<16384x1024xf32>) -> tensor<16384x1024xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[16384, 1024]], xt.result_dims = [[16384, 1024]]} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<16384xf32>
  %e2 = tensor.empty() : tensor<16384x1024xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<16384xf32>) -> tensor<16384xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<16384x1024xf32>) outs(%f : tensor<16384xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<16384xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<16384x1024xf32>, tensor<16384xf32>) outs(%e2 : tensor<16384x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<16384x1024xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16384xf32>) -> tensor<16384xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<16384x1024xf32>) outs(%g : tensor<16384xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<16384xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<16384x1024xf32>, tensor<16384xf32>) outs(%e2 : tensor<16384x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<16384x1024xf32>
  return %y : tensor<16384x1024xf32>
}

// -----
#w = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#v = affine_map<(d0, d1, d2) -> (d0, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// Matrices of rows times vectors: lanes walk the rows, whose elements are neighbours, not the results.
// CHECK-LABEL: func.func private @matrix_of_rows_times_vector
// CHECK-SAME: reduce = [array<i64: 64>], tail = "peel", vector = array<i64: 1, 1>
func.func private @matrix_of_rows_times_vector(%a: tensor<256x512x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x512xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[256, 512, 256], [256, 256]], xt.result_dims = [[256, 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %s = linalg.generic {indexing_maps = [#w, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<256x512x256xf32>, tensor<256x256xf32>) outs(%f : tensor<256x512xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %p = arith.mulf %x, %z : f32
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<256x512xf32>
  return %s : tensor<256x512xf32>
}

// -----
#w = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#v = affine_map<(d0, d1, d2) -> (d0, d2)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>

// Vectors times matrices of rows: lanes walk the result.
// CHECK-LABEL: func.func private @vector_times_matrix_of_rows
// CHECK-SAME: reduce = [array<i64: 1>], tail = "peel", vector = array<i64: 1, 64>
func.func private @vector_times_matrix_of_rows(%a: tensor<256x512x256xf32>, %b: tensor<256x512xf32>) -> tensor<256x256xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[256, 512, 256], [256, 512]], xt.result_dims = [[256, 256]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.generic {indexing_maps = [#w, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<256x512x256xf32>, tensor<256x512xf32>) outs(%f : tensor<256x256xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %p = arith.mulf %x, %z : f32
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  return %s : tensor<256x256xf32>
}

// -----
#turn = affine_map<(d0, d1) -> (d1, d0)>
#here = affine_map<(d0, d1) -> (d0, d1)>

// Columns become rows: a chunk reads four lines of each of 256 rows, not one of each of 4096.
// CHECK-LABEL: func.func private @transpose
// CHECK-SAME: block = array<i64: 64, 256>{{.*}} vector = array<i64: 16, 16>
func.func private @transpose(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4096, 4096]], xt.result_dims = [[4096, 4096]]} {
  %e = tensor.empty() : tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#turn, #here], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----
#phases = affine_map<(d0, d1, d2, d3) -> (d1, d3, d2, d0)>
#there = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>

// Rows of three elements, of which a column is three lines of what is read: a tile has 16 of them, whole lines of the result.
// CHECK-LABEL: func.func private @between
// CHECK-SAME: vector = array<i64: 16, 1, 16, 3>
func.func private @between(%x: tensor<32x3x40x64xf32>) -> tensor<64x32x40x3xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[32, 3, 40, 64]], xt.result_dims = [[64, 32, 40, 3]]} {
  %e = tensor.empty() : tensor<64x32x40x3xf32>
  %y = linalg.generic {indexing_maps = [#phases, #there], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<32x3x40x64xf32>) outs(%e : tensor<64x32x40x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64x32x40x3xf32>
  return %y : tensor<64x32x40x3xf32>
}

// -----
#cut = affine_map<(d0, d1) -> (d1 + 2, d0)>
#kept = affine_map<(d0, d1) -> (d0, d1)>

// A transpose of a slice is one.
// CHECK-LABEL: func.func private @cut_out
// CHECK-SAME: vector = array<i64: 16, 16>
func.func private @cut_out(%x: tensor<100x64xf32>) -> tensor<64x96xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[100, 64]], xt.result_dims = [[64, 96]]} {
  %e = tensor.empty() : tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#cut, #kept], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<100x64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// -----
#column = affine_map<(d0, d1) -> (d1, d0)>
#line = affine_map<(d0, d1) -> (d0, d1)>

// So is that of a slice from the first element on, which is a value of its own.
// CHECK-LABEL: func.func private @first
// CHECK-SAME: vector = array<i64: 16, 16>
func.func private @first(%x: tensor<100x64xf32>) -> tensor<64x96xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[100, 64]], xt.result_dims = [[64, 96]]} {
  %s = tensor.empty() : tensor<96x64xf32>
  %c = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel", "parallel"]} outs(%s : tensor<96x64xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = tensor.extract %x[%i, %j] : tensor<100x64xf32>
    linalg.yield %a : f32
  } -> tensor<96x64xf32>
  %e = tensor.empty() : tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#column, #line], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<96x64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// -----
#shifted = affine_map<(d0, d1, d2) -> (d0, d1 + d2)>
#window = affine_map<(d0, d1, d2) -> (d2)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>

// The steps of a narrow window need no loop; a row of three vectors is one tile, where two would be four vectors.
// CHECK-LABEL: func.func private @narrow_window
// CHECK-SAME: reduce = [array<i64: 0>]{{.*}} vector = array<i64: 1, 48>
func.func private @narrow_window(%x: tensor<5120x44xf32>) -> tensor<5120x40xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[5120, 44]], xt.result_dims = [[5120, 40]]} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5120x40xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<5120x40xf32>) -> tensor<5120x40xf32>
  %w = tensor.empty() : tensor<5xi8>
  %y = linalg.generic {indexing_maps = [#shifted, #window, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5120x44xf32>, tensor<5xi8>) outs(%f : tensor<5120x40xf32>) {
  ^bb0(%a: f32, %n: i8, %o: f32):
    %m = arith.maximumf %a, %o : f32
    linalg.yield %m : f32
  } -> tensor<5120x40xf32>
  return %y : tensor<5120x40xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#c = affine_map<(d0, d1) -> (d1)>

// Columns are reduced as many together as registers hold, where the cores have enough chunks then.
// CHECK-LABEL: func.func private @columns
// CHECK-SAME: block = array<i64: 128>, {{.*}}vector = array<i64: 128>
func.func private @columns(%x: tensor<4096x4096xf32>) -> tensor<4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4096, 4096]], xt.result_dims = [[4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %sum = linalg.generic {indexing_maps = [#m, #c], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x4096xf32>) outs(%f : tensor<4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<4096xf32>
  return %sum : tensor<4096xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#c = affine_map<(d0, d1) -> (d1)>

// Few columns are dealt to the cores.
// CHECK-LABEL: func.func private @few_columns
// CHECK-SAME: block = array<i64: 32>, {{.*}}vector = array<i64: 32>
func.func private @few_columns(%x: tensor<4096x256xf32>) -> tensor<256xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4096, 256]], xt.result_dims = [[256]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %sum = linalg.generic {indexing_maps = [#m, #c], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<4096x256xf32>) outs(%f : tensor<256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %sum : tensor<256xf32>
}

// -----

#x4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#c4 = affine_map<(d0, d1, d2, d3) -> (d1)>

// The dims of an image that are reduced together are one: 782 elements in four vectors, no row of 17 by itself.
// CHECK-LABEL: func.func private @channels
// CHECK-SAME: reduce = [array<i64: 1, 64, 0>]
func.func private @channels(%x: tensor<13x10x46x17xf32>) -> tensor<10xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[13, 10, 46, 17]], xt.result_dims = [[10]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %y = linalg.generic {indexing_maps = [#x4, #c4], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<13x10x46x17xf32>) outs(%f : tensor<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// Rows of seven: a vector of them is reduced at once.
// CHECK-LABEL: func.func private @short_rows
// CHECK-SAME: reduce = [array<i64: 7>], tail = "peel", vector = array<i64: 16>
func.func private @short_rows(%x: tensor<999x7xf32>) -> tensor<999xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[999, 7]], xt.result_dims = [[999]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<999xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<999xf32>) -> tensor<999xf32>
  %y = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<999x7xf32>) outs(%f : tensor<999xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<999xf32>
  return %y : tensor<999xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// Rows of a length that only a run knows: where it is short, each lane has a row, of which a few elements are turned at
// once, or of very short ones none.
// CHECK-LABEL: func.func private @free_rows
// CHECK-SAME: reduce = [array<i64: 64>], tail = "peel", vector = array<i64: 1>}
// CHECK-SAME: xcc.launched = "min(1, floordiv(d1, 128))"
// CHECK-LABEL: func.func private @free_rows_few
// CHECK-SAME: reduce = [array<i64: 8>], tail = "peel", vector = array<i64: 16>}
// CHECK-SAME: xcc.launched = "-min(1, floordiv(d1, 128)) + min(1, floordiv(d1, 8))", xcc.of = "free_rows"
// CHECK-LABEL: func.func private @free_rows_few2
// CHECK-SAME: reduce = [array<i64: 1>], tail = "peel", vector = array<i64: 16>}
// CHECK-SAME: xcc.launched = "-min(1, floordiv(d1, 8)) + 1", xcc.of = "free_rows"
func.func private @free_rows(%x: tensor<?x?xf32>, %d0: index, %d1: index) -> tensor<?xf32>
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d0"]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#i = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#o = affine_map<(d0, d1, d2) -> (d0)>

// Images of a free size are rows as well, of all of their pixels.
// CHECK-LABEL: func.func private @free_images
// CHECK-SAME: reduce = [array<i64: 64, 0>], tail = "peel", vector = array<i64: 1>}
// CHECK-SAME: xcc.launched = "min(1, floordiv(d1*d2, 128))"
// CHECK-LABEL: func.func private @free_images_few
// CHECK-SAME: reduce = [array<i64: 8, 1>], tail = "peel", vector = array<i64: 16>}
func.func private @free_images(%x: tensor<?x?x?xf32>, %d0: index, %d1: index, %d2: index) -> tensor<?xf32>
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "d1", "d2"]], xt.result_dims = [["d0"]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#i, #o], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<?x?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#a = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#b = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#c = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// A product of a free depth has its register tile however few terms its sums turn out to have.
// CHECK-LABEL: func.func private @free_depth
// CHECK-SAME: vector = array<i64: 1, 14, 32>
// CHECK-NOT: xcc.launched
// CHECK-NOT: @free_depth_few
func.func private @free_depth(%x: tensor<?x?x?xf32>, %w: tensor<?x?x?xf32>, %d0: index, %d1: index, %d2: index, %d3: index)
    -> tensor<?x?x?xf32> attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2", "d3"],
    xt.arg_dims = [["d0", "d1", "d2"], ["d0", "d2", "d3"]], xt.result_dims = [["d0", "d1", "d3"]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0, %d1, %d3) : tensor<?x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%f : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}

// -----

#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>

// Short rows that are stored again: a tile of as many as a vector has lanes, whose sums are written out.
// CHECK-LABEL: func.func private @rows_of_three
// CHECK-SAME: block = array<i64: 256, 0>, order = array<i64: 0, 1>, {{.*}}reduce = [array<i64: 0>], tail = "peel", vector = array<i64: 16, 3>
func.func private @rows_of_three(%x: tensor<999x3xf32>) -> tensor<999x3xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[999, 3]], xt.result_dims = [[999, 3]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<999xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<999xf32>) -> tensor<999xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<999x3xf32>) outs(%f : tensor<999xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<999xf32>
  %g = tensor.empty() : tensor<999x3xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<999x3xf32>, tensor<999xf32>) outs(%g : tensor<999x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<999x3xf32>
  return %y : tensor<999x3xf32>
}

// -----

#column = affine_map<(d0, d1) -> (d1 + 1, d0 + 1)>
#line = affine_map<(d0, d1) -> (d0, d1)>

// And of one from the second element of the contiguous dim on.
// CHECK-LABEL: func.func private @behind
// CHECK-SAME: vector = array<i64: 16, 16>
func.func private @behind(%x: tensor<100x65xf32>) -> tensor<64x96xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[100, 65]], xt.result_dims = [[64, 96]]} {
  %e = tensor.empty() : tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#column, #line], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<100x65xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}

// -----

// A matrix product with a sum of unknown length has one schedule, a tile of its result.
// CHECK-LABEL: func.func private @free_depth
// CHECK-NOT: xcc.launched
// CHECK-NOT: @free_depth_few
func.func private @free_depth(%x: tensor<?x?xf32>, %w: tensor<?x64xf32>, %d0: index, %d1: index) -> tensor<?x64xf32>
    attributes {xt.kernel, xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"], ["d1", 64]],
                xt.result_dims = [["d0", 64]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?xf32>, tensor<?x64xf32>) outs(%f : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
