// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 --pass-pipeline=configure | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3,cores=2 --pass-pipeline=configure | filecheck %s --check-prefix=AVX2
// RUN: %xcc_opt %s --target=cpu --chip=sapphirerapids --pass-pipeline=configure | filecheck %s --check-prefix=XEON

// When a product's kernel packs the columns of its right operand on the fly.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#t = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Steps 16 KiB apart: a panel of columns, two lines of each step, does not stay in the L2 cache as it lies.
// CHECK-LABEL: func.func private @far
// CHECK-SAME: cpu = {columns = true, shares = 8 : i64}
// AVX2-LABEL: func.func private @far
// AVX2-SAME: cpu = {columns = true, shares = 8 : i64}{{.*}}vector = array<i64: 6, 16>
// XEON-LABEL: func.func private @far
// XEON-SAME: cpu = {columns = true, shares = 8 : i64}
func.func private @far(%x: tensor<64x1024xf32>, %w: tensor<1024x4096xf32>) -> tensor<64x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 1024], [1024, 4096]], xt.result_dims = [[64, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x1024xf32>, tensor<1024x4096xf32>) outs(%f : tensor<64x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// A long sum in blocks, of which two panels leave room in the L2 cache.
// CHECK-LABEL: func.func private @long
// CHECK-SAME: depth = 1024 : i64
// AVX2-LABEL: func.func private @long
// AVX2-SAME: depth = 1024 : i64
// XEON-LABEL: func.func private @long
// XEON-SAME: depth = 2048 : i64
func.func private @long(%x: tensor<64x4096xf32>, %w: tensor<4096x1024xf32>) -> tensor<64x1024xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 4096], [4096, 1024]], xt.result_dims = [[64, 1024]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x4096xf32>, tensor<4096x1024xf32>) outs(%f : tensor<64x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x1024xf32>
  return %y : tensor<64x1024xf32>
}

// A few tiles of rows pay for the copy, one does not.
// CHECK-LABEL: func.func private @few
// CHECK-SAME: columns = true
func.func private @few(%x: tensor<16x1024xf32>, %w: tensor<1024x4096xf32>) -> tensor<16x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[16, 1024], [1024, 4096]], xt.result_dims = [[16, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x4096xf32>) -> tensor<16x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<16x1024xf32>, tensor<1024x4096xf32>) outs(%f : tensor<16x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<16x4096xf32>
  return %y : tensor<16x4096xf32>
}


// CHECK-LABEL: func.func private @one
// CHECK-NOT: columns = true
// CHECK: return
func.func private @one(%x: tensor<6x1024xf32>, %w: tensor<1024x4096xf32>) -> tensor<6x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[6, 1024], [1024, 4096]], xt.result_dims = [[6, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4096xf32>) -> tensor<6x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x1024xf32>, tensor<1024x4096xf32>) outs(%f : tensor<6x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<6x4096xf32>
  return %y : tensor<6x4096xf32>
}

// A panel that stays in the L2 cache as it lies is read there.
// CHECK-LABEL: func.func private @near
// CHECK-NOT: columns = true
// CHECK: return
func.func private @near(%x: tensor<64x256xf32>, %w: tensor<256x256xf32>) -> tensor<64x256xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 256], [256, 256]], xt.result_dims = [[64, 256]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%f : tensor<64x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// Tiles of many rows, which do not lie 4 KiB apart, multiply as fast as far lines come.
// CHECK-LABEL: func.func private @tall
// CHECK-NOT: columns = true
// CHECK: return
func.func private @tall(%x: tensor<64x768xf32>, %w: tensor<768x4096xf32>) -> tensor<64x4096xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 768], [768, 4096]], xt.result_dims = [[64, 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x768xf32>, tensor<768x4096xf32>) outs(%f : tensor<64x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// Columns that lie along the sum are turned in any case.
// CHECK-LABEL: func.func private @turned
// CHECK-SAME: columns = true
func.func private @turned(%x: tensor<64x768xf32>, %w: tensor<768x768xf32>) -> tensor<64x768xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 768], [768, 768]], xt.result_dims = [[64, 768]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x768xf32>) -> tensor<64x768xf32>
  %y = linalg.generic {indexing_maps = [#a, #t, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x768xf32>, tensor<768x768xf32>) outs(%f : tensor<64x768xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x768xf32>
  return %y : tensor<64x768xf32>
}

// An unknown number of rows: chunks of more tiles, for which the columns are packed.
// CHECK-LABEL: func.func private @open
// CHECK-SAME: block = array<i64: 112, {{[0-9]+}}>{{.*}}columns = true
func.func private @open(%x: tensor<?x1024xf32>, %w: tensor<1024x4096xf32>, %d0: index) -> tensor<?x4096xf32>
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 1024], [1024, 4096]], xt.result_dims = [["d0", 4096]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x1024xf32>, tensor<1024x4096xf32>) outs(%f : tensor<?x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// Many rows: each chunk of them packs the columns.
// CHECK-LABEL: func.func private @many
// CHECK-SAME: block = array<i64: {{[0-9]+}}, 0>{{.*}}columns = true
func.func private @many(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1024, 1024], [1024, 1024]], xt.result_dims = [[1024, 1024]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%f : tensor<1024x1024xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}

// Columns that all chunks of rows read: 1.4 MB do not stay in an L2 cache of 2 MiB beside rows and sums, 0.96 MB do. Chunks
// that pack have more tiles, for a copy.
// XEON-LABEL: func.func private @again
// XEON-SAME: block = array<i64: 42, 0>{{.*}}columns = true
func.func private @again(%x: tensor<1848x600xf32>, %w: tensor<600x600xf32>) -> tensor<1848x600xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1848, 600], [600, 600]], xt.result_dims = [[1848, 600]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1848x600xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1848x600xf32>) -> tensor<1848x600xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1848x600xf32>, tensor<600x600xf32>) outs(%f : tensor<1848x600xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1848x600xf32>
  return %y : tensor<1848x600xf32>
}

// XEON-LABEL: func.func private @half
// XEON-SAME: block = array<i64: 14, 0>
// XEON-NOT: columns = true
// XEON: return
func.func private @half(%x: tensor<1848x600xf32>, %w: tensor<600x400xf32>) -> tensor<1848x400xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1848, 600], [600, 400]], xt.result_dims = [[1848, 400]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1848x400xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1848x400xf32>) -> tensor<1848x400xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1848x600xf32>, tensor<600x400xf32>) outs(%f : tensor<1848x400xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1848x400xf32>
  return %y : tensor<1848x400xf32>
}

// 3.5 MB, no power of two apart, are more than an L2 cache of 2 MiB holds. Half a MiB stays there.
// XEON-LABEL: func.func private @large
// XEON-SAME: columns = true
func.func private @large(%x: tensor<64x768xf32>, %w: tensor<768x1152xf32>) -> tensor<64x1152xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 768], [768, 1152]], xt.result_dims = [[64, 1152]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1152xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x1152xf32>) -> tensor<64x1152xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x768xf32>, tensor<768x1152xf32>) outs(%f : tensor<64x1152xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x1152xf32>
  return %y : tensor<64x1152xf32>
}

// CHECK-LABEL: func.func private @small
// CHECK-NOT: columns
// XEON-LABEL: func.func private @small
// XEON-NOT: columns
func.func private @small(%x: tensor<64x384xf32>, %w: tensor<384x352xf32>) -> tensor<64x352xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 384], [384, 352]], xt.result_dims = [[64, 352]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x352xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x352xf32>) -> tensor<64x352xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x384xf32>, tensor<384x352xf32>) outs(%f : tensor<64x352xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x352xf32>
  return %y : tensor<64x352xf32>
}

// No size is known: rows of steps are asked for where a sum is too long for a panel.
// CHECK-LABEL: func.func private @free
// CHECK-SAME: block = array<i64: 224, 128>
// CHECK-SAME: cpu = {columns = true, prefetch = 16 : i64}
// XEON-LABEL: func.func private @free
// XEON-SAME: cpu = {columns = true, prefetch = 16 : i64}
func.func private @free(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %d0: index, %d1: index, %d2: index) -> tensor<?x?xf32>
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", "d1"], ["d1", "d2"]], xt.result_dims = [["d0", "d2"]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0, %d2) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
