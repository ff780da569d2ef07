// The schedules of NVIDIA chips, family by family. What is not said of one chip holds for both.
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure{tuned=false}" | filecheck %s --check-prefixes=CHECK,SM80
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline="xt-to-linalg, mlir(canonicalize, cse), configure{tuned=false}" | filecheck %s --check-prefixes=CHECK,SM90

// 2048 elements a block, 16 a thread, along the last dim, where cores have more blocks than they hold at once.
// CHECK-LABEL: func.func private @pointwise(
// CHECK-SAME: block = array<i64: 1, 2048>{{.*}}threads = 128 : i64
func.func private @pointwise(%x: tensor<8192x4096xf16>, %b: tensor<4096xf16>) -> tensor<8192x4096xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.add"(%x, %b) : (tensor<8192x4096xf16>, tensor<4096xf16>) -> tensor<8192x4096xf16>
  return %0 : tensor<8192x4096xf16>
}

// 128 bytes are written at once, and 256 read where there are many tiles.
// CHECK-LABEL: func.func private @small_transpose(
// CHECK-SAME: block = array<i64: 64, 64>{{.*}}threads = 256 : i64
func.func private @small_transpose(%x: tensor<2048x1024xf16>) -> tensor<1024x2048xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [1, 0]} : (tensor<2048x1024xf16>) -> tensor<1024x2048xf16>
  return %0 : tensor<1024x2048xf16>
}

// CHECK-LABEL: func.func private @transpose(
// CHECK-SAME: block = array<i64: 128, 64>{{.*}}threads = 256 : i64
func.func private @transpose(%x: tensor<8192x4096xf16>) -> tensor<4096x8192xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [1, 0]} : (tensor<8192x4096xf16>) -> tensor<4096x8192xf16>
  return %0 : tensor<4096x8192xf16>
}

// A warp a row, four of them.
// CHECK-LABEL: func.func private @warp_rows(
// CHECK-SAME: block = array<i64: 4>{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 512>]
func.func private @warp_rows(%x: tensor<4096x512xf32>) -> tensor<4096xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "sum"} : (tensor<4096x512xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// A block a row, kept in registers.
// CHECK-LABEL: func.func private @block_rows(
// CHECK-SAME: block = array<i64: 1>{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 16384>]
func.func private @block_rows(%x: tensor<4096x12345xf32>) -> tensor<4096xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "max"} : (tensor<4096x12345xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// Longer rows in a loop, by large blocks.
// CHECK-LABEL: func.func private @long_rows(
// CHECK-SAME: block = array<i64: 1>{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
func.func private @long_rows(%x: tensor<512x100000xf32>) -> tensor<512xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "sum"} : (tensor<512x100000xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// 128 bytes of neighbours, 16384 elements a step.
// CHECK-LABEL: func.func private @columns(
// CHECK-SAME: block = array<i64: 32>{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 512>]
func.func private @columns(%x: tensor<8192x4096xf32>) -> tensor<4096xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "sum"} : (tensor<8192x4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// Rows and columns of an image are one dim, of which many are added at once.
// CHECK-LABEL: func.func private @images(
// CHECK-SAME: block = array<i64: 1, 8>{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 2048, 1>]
func.func private @images(%x: tensor<32x56x56x16xf32>) -> tensor<32x16xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce"(%x) {axes = [1, 2], keepdims = false, kind = "sum"} : (tensor<32x56x56x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Windows of a row of outputs.
// CHECK-LABEL: func.func private @pool(
// CHECK-SAME: block = array<i64: 1, 1, 4, 64>{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 1, 4>]
func.func private @pool(%x: tensor<32x64x112x112xf16>) -> tensor<32x64x56x56xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.reduce_window"(%x) {dilations = [1, 1, 1, 1], high = [0, 0, 1, 1], kind = "max", low = [0, 0, 1, 1], strides = [1, 1, 2, 2], window = [1, 1, 3, 3]} : (tensor<32x64x112x112xf16>) -> tensor<32x64x56x56xf16>
  return %0 : tensor<32x64x56x56xf16>
}

// Both sides of the transpose are short: other dims fill the tile.
// CHECK-LABEL: func.func private @pixels(
// CHECK-SAME: block = array<i64: 1, 2, 2, 128, 2>{{.*}}threads = 128 : i64
func.func private @pixels(%x: tensor<8x64x2x2x128x128xf16>) -> tensor<8x64x128x2x128x2xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.transpose"(%x) {perm = [0, 1, 4, 2, 5, 3]} : (tensor<8x64x2x2x128x128xf16>) -> tensor<8x64x128x2x128x2xf16>
  return %0 : tensor<8x64x128x2x128x2xf16>
}

// As pointwise.
// CHECK-LABEL: func.func private @gather(
// CHECK-SAME: block = array<i64: 4, 256>{{.*}}threads = 128 : i64
func.func private @gather(%x: tensor<50257x768xf16>, %i: tensor<4096xi64>) -> tensor<4096x768xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.gather"(%x, %i) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<50257x768xf16>, tensor<4096xi64>) -> tensor<4096x768xf16>
  return %0 : tensor<4096x768xf16>
}

// The matrix instruction's tile; of a warpgroup where the chip has it.
// CHECK-LABEL: func.func private @matmul(
// SM80-SAME: block = array<i64: 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-SAME: block = array<i64: 128, 256>{{.*}}stages = 4 : i64{{.*}}threads = 256 : i64{{.*}}warpgroup = true{{.*}}reduce = [array<i64: 64>]
// SM80-NOT: warpgroup
func.func private @matmul(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

// Few rows: all of them in a tile, as wide as there are tiles enough to have memory at work.
// CHECK-LABEL: func.func private @skinny(
// SM80-SAME: block = array<i64: 16, 64>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>]
// SM90-SAME: block = array<i64: 16, 32>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>]
func.func private @skinny(%a: tensor<16x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<16x4096xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<16x4096xf16>, tensor<4096x4096xf16>) -> tensor<16x4096xf16>
  return %0 : tensor<16x4096xf16>
}

// CHECK-LABEL: func.func private @wide(
// CHECK-SAME: block = array<i64: 16, 128>{{.*}}stages = 6 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 64>]
func.func private @wide(%a: tensor<8x4096xf16>, %b: tensor<4096x11008xf16>) -> tensor<8x11008xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<8x4096xf16>, tensor<4096x11008xf16>) -> tensor<8x11008xf16>
  return %0 : tensor<8x11008xf16>
}

// CHECK-LABEL: func.func private @thirty_rows(
// CHECK-SAME: block = array<i64: 32, 128>{{.*}}stages = 6 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 64>]
func.func private @thirty_rows(%a: tensor<30x4096xf16>, %b: tensor<4096x11008xf16>) -> tensor<30x11008xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<30x4096xf16>, tensor<4096x11008xf16>) -> tensor<30x11008xf16>
  return %0 : tensor<30x11008xf16>
}

// One row: a reduction of each column's products.
// CHECK-LABEL: func.func private @vector_matrix(
// CHECK-SAME: block = array<i64: 1>{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
func.func private @vector_matrix(%a: tensor<1x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<1x4096xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<1x4096xf16>, tensor<4096x4096xf16>) -> tensor<1x4096xf16>
  return %0 : tensor<1x4096xf16>
}

// A tile of one matrix.
// CHECK-LABEL: func.func private @batched(
// SM80-SAME: block = array<i64: 1, 128, 128>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
// SM90-SAME: block = array<i64: 1, 128, 64>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32>]
func.func private @batched(%a: tensor<96x512x64xf16>, %b: tensor<96x512x64xf16>) -> tensor<96x512x512xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f16, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [2]} : (tensor<96x512x64xf16>, tensor<96x512x64xf16>) -> tensor<96x512x512xf16>
  return %0 : tensor<96x512x512xf16>
}

// By FMAs.
// CHECK-LABEL: func.func private @f32(
// SM80-SAME: block = array<i64: 64, 128>{{.*}}stages = 3 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 16>]
// SM90-SAME: block = array<i64: 256, 128>{{.*}}stages = 3 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
func.func private @f32(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}

// Image, height and width are one dim of the tile, window and channels one loop.
// CHECK-LABEL: func.func private @convolution(
// CHECK-SAME: block = array<i64: 128, 64>{{.*}}flatten = array<i64: 3, 1>{{.*}}stages = 4 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 32, 1, 1>]
func.func private @convolution(%x: tensor<32x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<32x56x56x64xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {lhs_dilation = [1, 1], rhs_dilation = [1, 1], dtype = f16, filter = "HWIO", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", low = [1, 1], strides = [1, 1]} : (tensor<32x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<32x56x56x64xf16>
  return %0 : tensor<32x56x56x64xf16>
}

// A thread has eight neighbours along a row, whose windows overlap, and eight channels; the window is written out.
// CHECK-LABEL: func.func private @depthwise(
// CHECK-SAME: block = array<i64: 1, 4, 8, 64>, gpu = {beside = 8 : i64, threads = 32 : i64}{{.*}}reduce = [array<i64: 0, 0>]
func.func private @depthwise(%x: tensor<32x56x56x64xf16>, %w: tensor<3x3x1x64xf16>) -> tensor<32x56x56x64xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {lhs_dilation = [1, 1], rhs_dilation = [1, 1], dtype = f16, filter = "HWIO", groups = 64 : i64, outputs = 0 : i64, high = [1, 1], layout = "NHWC", low = [1, 1], strides = [1, 1]} : (tensor<32x56x56x64xf16>, tensor<3x3x1x64xf16>) -> tensor<32x56x56x64xf16>
  return %0 : tensor<32x56x56x64xf16>
}

// With windows of 5x5, two apart, too: the filter's taps, which lie in its columns, are no sums of columns.
// CHECK-LABEL: func.func private @depthwise_strided(
// CHECK-SAME: gpu = {beside = 8 : i64, threads = 32 : i64}{{.*}}reduce = [array<i64: 1, 0>]
func.func private @depthwise_strided(%x: tensor<32x56x56x96xf16>, %w: tensor<5x5x1x96xf16>) -> tensor<32x28x28x96xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {lhs_dilation = [1, 1], rhs_dilation = [1, 1], dtype = f16, filter = "HWIO", groups = 96 : i64, outputs = 0 : i64, high = [2, 2], layout = "NHWC", low = [2, 2], strides = [2, 2]} : (tensor<32x56x56x96xf16>, tensor<5x5x1x96xf16>) -> tensor<32x28x28x96xf16>
  return %0 : tensor<32x28x28x96xf16>
}

// The gradient of its filter: all of a window's columns are one thread's, lines of images are dealt out to parts, a line is
// written out.
// CHECK-LABEL: func.func private @filter_gradient(
// SM90-SAME: block = array<i64: 8, 8, 32>, gpu = {beside = 8 : i64, splits = 32 : i64, threads = 128 : i64}, joined = [array<i64: 5, 6>]{{.*}}reduce = [array<i64: 1, 1, 0>]
func.func private @filter_gradient(%x: tensor<1x16x14x14x384xf16>, %g: tensor<16x14x14x1x384xf16>) -> tensor<1x1x7x7x384xf16> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %g) {lhs_dilation = [1, 1, 1], rhs_dilation = [1, 1, 1], dtype = f16, filter = "HWIO", groups = 384 : i64, high = [0, 3, 3], layout = "NHWC", low = [0, 3, 3], outputs = 0 : i64, strides = [1, 1, 1]} : (tensor<1x16x14x14x384xf16>, tensor<16x14x14x1x384xf16>) -> tensor<1x1x7x7x384xf16>
  return %0 : tensor<1x1x7x7x384xf16>
}

// Rows that are known at run time: a second function for few of them, whose tiles are smaller.
// CHECK-LABEL: func.func private @rows_of_any_number(
// SM90-SAME: block = array<i64: 256, 128>{{.*}}xcc.launched = "min(1, floordiv(d0*d1, 5632))"
// CHECK-LABEL: func.func private @rows_of_any_number_few(
// SM90-SAME: block = array<i64: 64, 32>{{.*}}xcc.launched = "-min(1, floordiv(d0*d1, 5632)) + 1"
func.func private @rows_of_any_number(%x: tensor<?x256xf16, ["d0*d1", 256]>, %w: tensor<256x384xf16>) -> tensor<?x384xf16, ["d0*d1", 384]> attributes {xt.kernel, xt.symbols = ["d0", "d1"]} {
  %0 = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f16} : (tensor<?x256xf16, ["d0*d1", 256]>, tensor<256x384xf16>) -> tensor<?x384xf16, ["d0*d1", 384]>
  return %0 : tensor<?x384xf16, ["d0*d1", 384]>
}

// Columns enough for half of the cores in one tile of rows: one function.
// CHECK-LABEL: func.func private @many_columns(
// CHECK-NOT: xcc.launched
// CHECK-NOT: _few
func.func private @many_columns(%x: tensor<?x256xf16, ["d0", 256]>, %w: tensor<256x32768xf16>) -> tensor<?x32768xf16, ["d0", 32768]> attributes {xt.kernel, xt.symbols = ["d0"]} {
  %0 = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f16} : (tensor<?x256xf16, ["d0", 256]>, tensor<256x32768xf16>) -> tensor<?x32768xf16, ["d0", 32768]>
  return %0 : tensor<?x32768xf16, ["d0", 32768]>
}

// Few tiles by FMAs: small ones, of threads with 16 results each.
// CHECK-LABEL: func.func private @few_f32(
// CHECK-SAME: block = array<i64: 32, 32>{{.*}}threads = 64 : i64{{.*}}reduce = [array<i64: 32>]
func.func private @few_f32(%a: tensor<128x768xf32>, %b: tensor<768x2304xf32>) -> tensor<128x2304xf32> attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<128x768xf32>, tensor<768x2304xf32>) -> tensor<128x2304xf32>
  return %0 : tensor<128x2304xf32>
}

// A product with another result as large, which is not made of it, as dropout's mask is: tiled as a product all the same.
// CHECK-LABEL: func.func private @masked_product(
// CHECK-NOT: access = "gather", block = array<i64: 4, 0>
// CHECK-SAME: stages = {{[2-6]}} : i64{{.*}}reduce = [array<i64: {{32|64}}>]
func.func private @masked_product(%x: tensor<2048x768xf16>, %w: tensor<768x768xf16>, %r: tensor<2048x768xf16>) -> (tensor<2048x768xi1>, tensor<2048x768xf16>) attributes {xt.kernel, xt.symbols = []} {
  %p = "xt.constant"() {value = dense<1.000000e-01> : tensor<f16>} : () -> tensor<f16>
  %m = "xt.compare"(%r, %p) {direction = "ge"} : (tensor<2048x768xf16>, tensor<f16>) -> tensor<2048x768xi1>
  %y = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<2048x768xf16>, tensor<768x768xf16>) -> tensor<2048x768xf16>
  %z = "xt.constant"() {value = dense<0.000000e+00> : tensor<f16>} : () -> tensor<f16>
  %s = "xt.select"(%m, %y, %z) : (tensor<2048x768xi1>, tensor<2048x768xf16>, tensor<f16>) -> tensor<2048x768xf16>
  return %m, %s : tensor<2048x768xi1>, tensor<2048x768xf16>
}
