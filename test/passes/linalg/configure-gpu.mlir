// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=configure{tuned=false}" --split-input-file | filecheck %s --check-prefixes=SM80
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=configure{tuned=false}" --split-input-file | filecheck %s --check-prefixes=SM90

// What the cost model chooses for matrix products, without the tuning database.

// A large product, with more tiles than cores.
// SM80-LABEL: func.func private @large(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-LABEL: func.func private @large(
// SM90-SAME: block = array<i64: 128, 256>{{.*}}persistent = 132 : i64{{.*}}stages = 4 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
func.func private @large(%x: tensor<4000x4000xf16>, %w: tensor<4000x4000xf16>) -> tensor<4000x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf16>, tensor<4000x4000xf16>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y : tensor<4000x4000xf32>
}

// -----

// A result that is stored twice is sent over a link: a workgroup each, which ends while its stores are under way.
// SM90-LABEL: func.func private @sent(
// SM90-NOT: persistent
// SM90-SAME: block = array<i64: 128, 256>{{.*}}stages = 4 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
func.func private @sent(%x: tensor<4000x4000xf16>, %w: tensor<4000x4000xf16>) -> (tensor<4000x4000xf32>, tensor<4000x4000xf32>)
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000], [4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf16>, tensor<4000x4000xf16>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y, %y : tensor<4000x4000xf32>, tensor<4000x4000xf32>
}

// -----

// The right operand's rows lie along n: the same tile.
// SM80-LABEL: func.func private @columns(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-LABEL: func.func private @columns(
// SM90-SAME: block = array<i64: 128, 256>{{.*}}persistent = 132 : i64{{.*}}stages = 4 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
func.func private @columns(%x: tensor<4000x4000xf16>, %w: tensor<4000x4000xf16>) -> tensor<4000x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf16>, tensor<4000x4000xf16>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y : tensor<4000x4000xf32>
}

// -----

// Few rows: the instruction's 16 or 64 are padded.
// SM80-LABEL: func.func private @skinny(
// SM80-SAME: block = array<i64: 16, 64>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>]
// SM90-LABEL: func.func private @skinny(
// SM90-SAME: block = array<i64: 16, 32>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>]
func.func private @skinny(%x: tensor<16x4096xf16>, %w: tensor<4000x4096xf16>) -> tensor<16x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[16, 4096], [4000, 4096]], xt.result_dims = [[16, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x4000xf32>) -> tensor<16x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<16x4096xf16>, tensor<4000x4096xf16>) outs(%f : tensor<16x4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<16x4000xf32>
  return %y : tensor<16x4000xf32>
}

// -----

// One row is a row reduction.
// SM80-LABEL: func.func private @vector(
// SM80-SAME: block = array<i64: 1>{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
// SM90-LABEL: func.func private @vector(
// SM90-SAME: block = array<i64: 1>{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
func.func private @vector(%x: tensor<4000xf16>, %w: tensor<4000x4000xf16>) -> tensor<4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000], [4000, 4000]], xt.result_dims = [[4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000xf32>) -> tensor<4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<4000xf16>, tensor<4000x4000xf16>) outs(%f : tensor<4000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000xf32>
  return %y : tensor<4000xf32>
}

// -----

// 128 rows.
// SM80-LABEL: func.func private @rows_128(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-LABEL: func.func private @rows_128(
// SM90-SAME: block = array<i64: 128, 96>{{.*}}stages = 6 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
// SM90-NOT: persistent
func.func private @rows_128(%x: tensor<128x4096xf16>, %w: tensor<11000x4096xf16>) -> tensor<128x11000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[128, 4096], [11000, 4096]], xt.result_dims = [[128, 11000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x11000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x11000xf32>) -> tensor<128x11000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<128x4096xf16>, tensor<11000x4096xf16>) outs(%f : tensor<128x11000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<128x11000xf32>
  return %y : tensor<128x11000xf32>
}

// -----

// Small: more tiles than half of the cores.
// SM80-LABEL: func.func private @small(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-LABEL: func.func private @small(
// SM90-SAME: block = array<i64: 64, 128>{{.*}}stages = 6 : i64{{.*}}threads = 128 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
// SM90-NOT: persistent
func.func private @small(%x: tensor<1000x1000xf16>, %w: tensor<1000x1000xf16>) -> tensor<1000x1000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1000, 1000], [1000, 1000]], xt.result_dims = [[1000, 1000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1000x1000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1000x1000xf16>, tensor<1000x1000xf16>) outs(%f : tensor<1000x1000xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<1000x1000xf32>
  return %y : tensor<1000x1000xf32>
}

// -----

// A batch: one matrix a workgroup.
// SM80-LABEL: func.func private @batched(
// SM80-SAME: block = array<i64: 1, 128, 64>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-LABEL: func.func private @batched(
// SM90-SAME: block = array<i64: 1, 128, 64>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
func.func private @batched(%x: tensor<64x500x64xf16>, %w: tensor<64x500x64xf16>) -> tensor<64x500x500xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[64, 500, 64], [64, 500, 64]], xt.result_dims = [[64, 500, 500]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x500x500xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x500x500xf32>) -> tensor<64x500x500xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x500x64xf16>, tensor<64x500x64xf16>) outs(%f : tensor<64x500x500xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<64x500x500xf32>
  return %y : tensor<64x500x500xf32>
}

// -----

// f32 stays f32: register tiles.
// SM80-LABEL: func.func private @floats(
// SM80-SAME: block = array<i64: 256, 128>{{.*}}stages = 3 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
// SM90-LABEL: func.func private @floats(
// SM90-SAME: block = array<i64: 256, 128>{{.*}}stages = 3 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
func.func private @floats(%x: tensor<4000x4000xf32>, %w: tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf32>, tensor<4000x4000xf32>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y : tensor<4000x4000xf32>
}

// -----

// Bytes: twice as deep steps.
// SM80-LABEL: func.func private @bytes(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 64>]
// SM90-LABEL: func.func private @bytes(
// SM90-SAME: block = array<i64: 128, 256>{{.*}}persistent = 132 : i64{{.*}}stages = 4 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 128>]
func.func private @bytes(%x: tensor<4000x4000xi8>, %w: tensor<4000x4000xi8>) -> tensor<4000x4000xi32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4000x4000xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4000x4000xi32>) -> tensor<4000x4000xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xi8>, tensor<4000x4000xi8>) outs(%f : tensor<4000x4000xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %pw = arith.extsi %p : i8 to i32
    %qw = arith.extsi %q : i8 to i32
    %t = arith.muli %pw, %qw : i32
    %s = arith.addi %o, %t : i32
    linalg.yield %s : i32
  } -> tensor<4000x4000xi32>
  return %y : tensor<4000x4000xi32>
}

// -----

// f8: as bytes where the chip multiplies it.
// SM80-LABEL: func.func private @eighths(
// SM80-SAME: block = array<i64: 64, 128>{{.*}}stages = 3 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 16>]
// SM90-LABEL: func.func private @eighths(
// SM90-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 64>]
func.func private @eighths(%x: tensor<4000x4000xf8E4M3FN>, %w: tensor<4000x4000xf8E4M3FN>) -> tensor<4000x4000xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[4000, 4000], [4000, 4000]], xt.result_dims = [[4000, 4000]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4000x4000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4000x4000xf32>) -> tensor<4000x4000xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4000x4000xf8E4M3FN>, tensor<4000x4000xf8E4M3FN>) outs(%f : tensor<4000x4000xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %o: f32):
    %pw = arith.extf %p : f8E4M3FN to f32
    %qw = arith.extf %q : f8E4M3FN to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<4000x4000xf32>
  return %y : tensor<4000x4000xf32>
}

// -----

// Few elements: a block for each core, with as many threads as a whole tile has; all of a large tensor's.
// SM80-LABEL: func.func private @few(
// SM80-SAME: block = array<i64: 128>{{.*}}threads = 128 : i64
// SM90-LABEL: func.func private @few(
// SM90-SAME: block = array<i64: 128>{{.*}}threads = 128 : i64
func.func private @few(%x: tensor<16x256xf32>) -> tensor<16x256xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[16, 256]], xt.result_dims = [[16, 256]]} {
  %e = tensor.empty() : tensor<16x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x256xf32>) outs(%e : tensor<16x256xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<16x256xf32>
  return %y : tensor<16x256xf32>
}

// -----

// SM80-LABEL: func.func private @many(
// SM80-SAME: block = array<i64: 1024>{{.*}}threads = 128 : i64
// SM90-LABEL: func.func private @many(
// SM90-SAME: block = array<i64: 1024>{{.*}}threads = 128 : i64
func.func private @many(%x: tensor<1600x1024xf32>) -> tensor<1600x1024xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[1600, 1024]], xt.result_dims = [[1600, 1024]]} {
  %e = tensor.empty() : tensor<1600x1024xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1600x1024xf32>) outs(%e : tensor<1600x1024xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<1600x1024xf32>
  return %y : tensor<1600x1024xf32>
}
