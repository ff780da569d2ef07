// RUN: %xcc_opt %s --target=cpu --chip=znver4 --pass-pipeline=configure --split-input-file | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver5 --pass-pipeline=configure --split-input-file | filecheck %s --check-prefix=ZEN5

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// More rows than columns: a chunk is some rows and all columns; its tiles divide evenly among the cores.
// CHECK-LABEL: func.func private @by_rows
// CHECK-SAME: block = array<i64: 28, 0>, chunks = array<i64: 0, 1>, order = array<i64: 1, 0>, {{.*}}vector = array<i64: 14, 32>
func.func private @by_rows(%x: tensor<3136x64xf32>, %w: tensor<2x64x32xf32>) -> tensor<3136x64xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[3136, 64], [2, 64, 32]], xt.result_dims = [[3136, 64]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3136x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3136x64xf32>) -> tensor<3136x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3136x64xf32>, tensor<2x64x32xf32>) outs(%f : tensor<3136x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3136x64xf32>
  return %y : tensor<3136x64xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// Fewer rows than columns: each weight belongs to one chunk.
// CHECK-LABEL: func.func private @by_columns
// Of few tiles of rows each fetches a part of the next panel.
// CHECK-SAME: block = array<i64: 56, 32>, {{.*}}shares = 4 : i64{{.*}}}, order = array<i64: 1, 0>, parallel = true, {{.*}}vector = array<i64: 14, 32>
func.func private @by_columns(%x: tensor<49x512xf32>, %w: tensor<16x512x32xf32>) -> tensor<49x512xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[49, 512], [16, 512, 32]], xt.result_dims = [[49, 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<49x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<49x512xf32>) -> tensor<49x512xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<49x512xf32>, tensor<16x512x32xf32>) outs(%f : tensor<49x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<49x512xf32>
  return %y : tensor<49x512xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// An unknown number of rows: chunks of a few tiles, neighbours in the rows first, panels fetched a few rows ahead. Rows
// 4 KiB apart share the ways of one set of the L1 cache, 8 or 12, with the panel.
// CHECK-LABEL: func.func private @open
// CHECK-SAME: block = array<i64: 28, 32>, chunks = array<i64: 0, 1>, cpu = {prefetch = 64 : i64}, order = array<i64: 1, 0>, parallel = true, {{.*}}vector = array<i64: 7, 32>
// ZEN5-LABEL: func.func private @open
// ZEN5-SAME: vector = array<i64: 10, 32>
func.func private @open(%x: tensor<?x1024xf32>, %w: tensor<16x1024x32xf32>, %d0: index) -> tensor<?x512xf32>
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 1024], [16, 1024, 32]], xt.result_dims = [["d0", 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x1024xf32>, tensor<16x1024x32xf32>) outs(%f : tensor<?x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// -----

#x = affine_map<(h, w, o, p, q, c) -> (h * 2 + p, w * 2 + q, c)>
#f = affine_map<(h, w, o, p, q, c) -> (o floordiv 32, p, q, c, o mod 32)>
#y = affine_map<(h, w, o, p, q, c) -> (h, w, o)>

// Rows of a tile that are 4 KiB apart share the ways of a set: 7 of one image row, not those of two.
// CHECK-LABEL: func.func private @strided
// CHECK-SAME: vector = array<i64: 1, 7, 32>
func.func private @strided(%x: tensor<15x15x512xf32>, %w: tensor<16x3x3x512x32xf32>) -> tensor<7x7x512xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[15, 15, 512], [16, 3, 3, 512, 32]], xt.result_dims = [[7, 7, 512]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x7x512xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<7x7x512xf32>) -> tensor<7x7x512xf32>
  %y = linalg.generic {indexing_maps = [#x, #f, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<15x15x512xf32>, tensor<16x3x3x512x32xf32>) outs(%i : tensor<7x7x512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<7x7x512xf32>
  return %y : tensor<7x7x512xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// 48 columns are one tile of three vectors, not one and a half of two.
// CHECK-LABEL: func.func private @thirds
// CHECK-SAME: vector = array<i64: 9, 48>
func.func private @thirds(%x: tensor<900x96xf32>, %w: tensor<96x48xf32>) -> tensor<900x48xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[900, 96], [96, 48]], xt.result_dims = [[900, 48]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<900x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<900x48xf32>) -> tensor<900x48xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<900x96xf32>, tensor<96x48xf32>) outs(%f : tensor<900x48xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<900x48xf32>
  return %y : tensor<900x48xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// A large product: rows 4 KiB apart are copied together, a part that stays in the L2 cache, and long sums go in blocks.
// Panels come from memory to the L2 cache by shares, from there to the L1 cache some rows ahead.
// CHECK-LABEL: func.func private @large
// All rows go by columns of which a block of steps stays in the L3 cache.
// CHECK-SAME: block = array<i64: 56, 2048>, chunks = array<i64: 0, 1>, cpu = {depth = 1024 : i64, {{.*}}parts = 16 : i64, prefetch = 16 : i64, {{.*}}shares = {{[0-9]+}} : i64, staged = true}, {{.*}}vector = array<i64: 14, 32>
func.func private @large(%x: tensor<4096x4096xf32>, %w: tensor<128x4096x32xf32>) -> tensor<4096x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4096, 4096], [128, 4096, 32]], xt.result_dims = [[4096, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4096x4096xf32>, tensor<128x4096x32xf32>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// A sum of eleven times a block's steps, which eleven does not divide: eight longer blocks, of fewer columns.
// CHECK-LABEL: func.func private @long
// CHECK-SAME: block = array<i64: 42, 1376>, {{.*}}depth = 1376 : i64
func.func private @long(%x: tensor<4096x11008xf32>, %w: tensor<128x11008x32xf32>) -> tensor<4096x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4096, 11008], [128, 11008, 32]], xt.result_dims = [[4096, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4096x11008xf32>, tensor<128x11008x32xf32>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

// Few rows read a large matrix once: blocks of few steps go along its rows. Where it is small, a tile takes all steps.
// CHECK-LABEL: func.func private @few_rows
// CHECK-SAME: block = array<i64: 8, 512>, cpu = {depth = 40 : i64}, order = array<i64: 1, 0>, {{.*}}vector = array<i64: 8, 32>
func.func private @few_rows(%x: tensor<8x1000xf32>, %w: tensor<1000x8192xf32>) -> tensor<8x8192xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[8, 1000], [1000, 8192]], xt.result_dims = [[8, 8192]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8192xf32>) -> tensor<8x8192xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x1000xf32>, tensor<1000x8192xf32>) outs(%f : tensor<8x8192xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x8192xf32>
  return %y : tensor<8x8192xf32>
}

// -----

// Columns along the sum: so do lanes, in tiles of 5 rows and 4 columns.
// CHECK-LABEL: func.func private @dots
// CHECK-SAME: block = array<i64: 5, 64>, cpu = {along = true}, order = array<i64: 1, 0>, {{.*}}reduce = [array<i64: 16>]{{.*}}vector = array<i64: 5, 4>
func.func private @dots(%x: tensor<5x512xf32>, %w: tensor<4096x512xf32>) -> tensor<5x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[5, 512], [4096, 512]], xt.result_dims = [[5, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4096xf32>) -> tensor<5x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x512xf32>, tensor<4096x512xf32>) outs(%f : tensor<5x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x4096xf32>
  return %y : tensor<5x4096xf32>
}

// -----

// And of 16-bit floats, which are widened as they are read.
// CHECK-LABEL: func.func private @narrow_dots
// CHECK-SAME: block = array<i64: 5, 64>, cpu = {along = true}, order = array<i64: 1, 0>, {{.*}}reduce = [array<i64: 16>]{{.*}}vector = array<i64: 5, 4>
func.func private @narrow_dots(%x: tensor<5x512xf32>, %w: tensor<4096x512xbf16>) -> tensor<5x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[5, 512], [4096, 512]], xt.result_dims = [[5, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4096xf32>) -> tensor<5x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x512xf32>, tensor<4096x512xbf16>) outs(%f : tensor<5x4096xf32>) {
  ^bb0(%p: f32, %q: bf16, %o: f32):
    %v = arith.extf %q : bf16 to f32
    %m = arith.mulf %p, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x4096xf32>
  return %y : tensor<5x4096xf32>
}

// -----

// CHECK-LABEL: func.func private @few_rows_of_little
// CHECK-NOT: depth =
// CHECK: return
func.func private @few_rows_of_little(%x: tensor<8x500xf32>, %w: tensor<500x500xf32>) -> tensor<8x500xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[8, 500], [500, 500]], xt.result_dims = [[8, 500]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x500xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x500xf32>) -> tensor<8x500xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x500xf32>, tensor<500x500xf32>) outs(%f : tensor<8x500xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x500xf32>
  return %y : tensor<8x500xf32>
}
