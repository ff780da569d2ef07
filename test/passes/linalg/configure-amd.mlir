// RUN: %xcc_opt %s --target=amdgcn --chip=gfx90a --split-input-file "--pass-pipeline=channels-last, xt-decompose{keep=attention}, form-kernels, xt-decompose{fused=true}, xt-to-linalg, mlir(canonicalize, cse), configure" | filecheck %s --check-prefix=CDNA2
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 --split-input-file "--pass-pipeline=channels-last, xt-decompose{keep=attention}, form-kernels, xt-decompose{fused=true}, xt-to-linalg, mlir(canonicalize, cse), configure" | filecheck %s --check-prefix=CDNA3
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx950 --split-input-file "--pass-pipeline=channels-last, xt-decompose{keep=attention}, form-kernels, xt-decompose{fused=true}, xt-to-linalg, mlir(canonicalize, cse), configure" | filecheck %s --check-prefix=CDNA4
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1100 --split-input-file "--pass-pipeline=channels-last, xt-decompose{keep=attention}, form-kernels, xt-decompose{fused=true}, xt-to-linalg, mlir(canonicalize, cse), configure" | filecheck %s --check-prefix=RDNA3
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1201 --split-input-file "--pass-pipeline=channels-last, xt-decompose{keep=attention}, form-kernels, xt-decompose{fused=true}, xt-to-linalg, mlir(canonicalize, cse), configure" | filecheck %s --check-prefix=RDNA4

// The schedule of each kind of kernel on each AMD chip.

// Large products: tiles of all chips but gfx90a, whose tiles come out even, are the largest that fit.
// CDNA2: func.func private @dot_general_0{{.*}}block = array<i64: 256, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 32>]
// CDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
// CDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 64>]
// RDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
// RDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
func.func @main(%arg0: tensor<4096x4096xf16> {xt.name = "x0"}, %arg1: tensor<4096x4096xf16> {xt.name = "x1"}) -> (tensor<4096x4096xf16> {xt.name = "y0"}) {
  %0 = "xt.dot_general"(%arg0, %arg1) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

// -----

// CDNA multiplies f32 by matrix instructions, RDNA by FMAs.
// CDNA2: func.func private @dot_general_0{{.*}}block = array<i64: 256, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
// CDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 16>]
// CDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
// RDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
// RDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 16>]
func.func @main(%arg0: tensor<4096x4096xf32> {xt.name = "x0"}, %arg1: tensor<4096x4096xf32> {xt.name = "x1"}) -> (tensor<4096x4096xf32> {xt.name = "y0"}) {
  %0 = "xt.dot_general"(%arg0, %arg1) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

// -----

// Few rows: columns are spread over the cores.
// CDNA2: func.func private @dot_general_0{{.*}}block = array<i64: 16, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>]
// CDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 16, 32>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>]
// CDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 16, 32>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>]
// RDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 16, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 64>]
// RDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 16, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 64>]
func.func @main(%arg0: tensor<16x4096xf16> {xt.name = "x0"}, %arg1: tensor<4096x4096xf16> {xt.name = "x1"}) -> (tensor<16x4096xf16> {xt.name = "y0"}) {
  %0 = "xt.dot_general"(%arg0, %arg1) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]} : (tensor<16x4096xf16>, tensor<4096x4096xf16>) -> tensor<16x4096xf16>
  return %0 : tensor<16x4096xf16>
}

// -----

// A batch: one tile of the summed dim.
// CDNA2: func.func private @dot_general_0{{.*}}block = array<i64: 1, 256, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 32>]
// CDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 1, 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
// CDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 1, 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 64>]
// RDNA3: func.func private @dot_general_0{{.*}}block = array<i64: 1, 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
// RDNA4: func.func private @dot_general_0{{.*}}block = array<i64: 1, 256, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 32>]
func.func @main(%arg0: tensor<64x512x64xf16> {xt.name = "x0"}, %arg1: tensor<64x64x512xf16> {xt.name = "x1"}) -> (tensor<64x512x512xf16> {xt.name = "y0"}) {
  %0 = "xt.dot_general"(%arg0, %arg1) {dtype = f16, lhs_batch = [0], lhs_contract = [2], rhs_batch = [0], rhs_contract = [1]} : (tensor<64x512x64xf16>, tensor<64x64x512xf16>) -> tensor<64x512x512xf16>
  return %0 : tensor<64x512x512xf16>
}

// -----

// A convolution: image, rows and columns are one dim, the window and the channels one loop.
// CDNA2: func.func private @convolution_0{{.*}}block = array<i64: 128, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 32, 1, 1>]
// CDNA3: func.func private @convolution_0{{.*}}block = array<i64: 128, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 64, 1, 1>]
// CDNA4: func.func private @convolution_0{{.*}}block = array<i64: 128, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 64, 1, 1>]
// RDNA3: func.func private @convolution_0{{.*}}block = array<i64: 128, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 32, 1, 1>]
// RDNA4: func.func private @convolution_0{{.*}}block = array<i64: 128, 64>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 32, 1, 1>]
func.func @main(%arg0: tensor<8x64x56x56xf16> {xt.name = "x0"}, %arg1: tensor<64x64x3x3xf16> {xt.name = "x1"}) -> (tensor<8x64x56x56xf16> {xt.name = "y0"}) {
  %0 = "xt.convolution"(%arg0, %arg1) {dtype = f16, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<8x64x56x56xf16>, tensor<64x64x3x3xf16>) -> tensor<8x64x56x56xf16>
  return %0 : tensor<8x64x56x56xf16>
}

// -----

// A filter for each channel: no product, a tile of neighbouring channels.
// CDNA2: func.func private @convolution_0{{.*}}block = array<i64: 1, 1, 4, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 0, 0>]
// CDNA3: func.func private @convolution_0{{.*}}block = array<i64: 1, 1, 4, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 0, 0>]
// CDNA4: func.func private @convolution_0{{.*}}block = array<i64: 1, 1, 4, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 0, 0>]
// RDNA3: func.func private @convolution_0{{.*}}block = array<i64: 1, 1, 4, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 0, 0>]
// RDNA4: func.func private @convolution_0{{.*}}block = array<i64: 1, 1, 4, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 0, 0>]
func.func @main(%arg0: tensor<8x256x28x28xf16> {xt.name = "x0"}, %arg1: tensor<256x1x3x3xf16> {xt.name = "x1"}) -> (tensor<8x256x28x28xf16> {xt.name = "y0"}) {
  %0 = "xt.convolution"(%arg0, %arg1) {dtype = f16, filter = "OIHW", groups = 256 : i64, outputs = 0 : i64, high = [1, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<8x256x28x28xf16>, tensor<256x1x3x3xf16>) -> tensor<8x256x28x28xf16>
  return %0 : tensor<8x256x28x28xf16>
}

// -----

// A lane keeps its row: 32 rows a wave of CDNA, 16 of RDNA; fewer keys a step where registers are short.
// CDNA2: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// RDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 16>, array<i64: 16>, array<i64: 16>]
// RDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
func.func @main(%arg0: tensor<4x16x1024x128xf16> {xt.name = "x0"}, %arg1: tensor<4x16x1024x128xf16> {xt.name = "x1"}, %arg2: tensor<4x16x1024x128xf16> {xt.name = "x2"}) -> (tensor<4x16x1024x128xf16> {xt.name = "y0"}) {
  %0 = "xt.attention"(%arg0, %arg1, %arg2) {causal = true, causal_offset = [0], nan_rows = false, scale = 0.088388347648318433 : f64, softcap = 0.000000e+00 : f64} : (tensor<4x16x1024x128xf16>, tensor<4x16x1024x128xf16>, tensor<4x16x1024x128xf16>) -> tensor<4x16x1024x128xf16>
  return %0 : tensor<4x16x1024x128xf16>
}

// -----

// Too few tiles for all cores, but where half of the rows' threads have no registers for the loads ahead.
// CDNA2: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// RDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 64, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 16>, array<i64: 16>, array<i64: 16>]
// RDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128, 128>,{{.*}}stages = 2 : i64{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
func.func @main(%arg0: tensor<2x8x512x128xf16> {xt.name = "x0"}, %arg1: tensor<2x8x512x128xf16> {xt.name = "x1"}, %arg2: tensor<2x8x512x128xf16> {xt.name = "x2"}) -> (tensor<2x8x512x128xf16> {xt.name = "y0"}) {
  %0 = "xt.attention"(%arg0, %arg1, %arg2) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.125 : f64, softcap = 0.000000e+00 : f64} : (tensor<2x8x512x128xf16>, tensor<2x8x512x128xf16>, tensor<2x8x512x128xf16>) -> tensor<2x8x512x128xf16>
  return %0 : tensor<2x8x512x128xf16>
}

// -----

// A wave keeps its rows in registers that matrix instructions alone name, where a lane has them.
// CDNA2: func.func private @attention_0{{.*}}block = array<i64: 1, 64, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 64, 256>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// CDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 64, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>, array<i64: 32>, array<i64: 32>, array<i64: 32>]
// RDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 16, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>, array<i64: 16>, array<i64: 16>, array<i64: 16>]
// RDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 16, 256>,{{.*}}stages = 2 : i64{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 256>, array<i64: 16>, array<i64: 16>, array<i64: 16>]
func.func @main(%arg0: tensor<2x8x512x256xf16> {xt.name = "x0"}, %arg1: tensor<2x8x512x256xf16> {xt.name = "x1"}, %arg2: tensor<2x8x512x256xf16> {xt.name = "x2"}) -> (tensor<2x8x512x256xf16> {xt.name = "y0"}) {
  %0 = "xt.attention"(%arg0, %arg1, %arg2) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.125 : f64, softcap = 0.000000e+00 : f64} : (tensor<2x8x512x256xf16>, tensor<2x8x512x256xf16>, tensor<2x8x512x256xf16>) -> tensor<2x8x512x256xf16>
  return %0 : tensor<2x8x512x256xf16>
}

// -----

// One query a head: all threads read its keys.
// CDNA2: func.func private @attention_0{{.*}}block = array<i64: 1, 128>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 64>, array<i64: 64>, array<i64: 64>]
// CDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 128>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 64>, array<i64: 64>, array<i64: 64>]
// CDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 64>, array<i64: 64>, array<i64: 64>]
// RDNA3: func.func private @attention_0{{.*}}block = array<i64: 1, 128>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 64>, array<i64: 64>, array<i64: 64>]
// RDNA4: func.func private @attention_0{{.*}}block = array<i64: 1, 128>,{{.*}}threads = 128 : i64{{.*}}reduce = [array<i64: 128>, array<i64: 64>, array<i64: 64>, array<i64: 64>]
func.func @main(%arg0: tensor<64x32x1x128xf16> {xt.name = "x0"}, %arg1: tensor<64x32x4096x128xf16> {xt.name = "x1"}, %arg2: tensor<64x32x4096x128xf16> {xt.name = "x2"}) -> (tensor<64x32x1x128xf16> {xt.name = "y0"}) {
  %0 = "xt.attention"(%arg0, %arg1, %arg2) {causal = false, causal_offset = [0], nan_rows = false, scale = 0.088388347648318433 : f64, softcap = 0.000000e+00 : f64} : (tensor<64x32x1x128xf16>, tensor<64x32x4096x128xf16>, tensor<64x32x4096x128xf16>) -> tensor<64x32x1x128xf16>
  return %0 : tensor<64x32x1x128xf16>
}

// -----

// A row a block or a warp.
// CDNA2: func.func private @reduce_0{{.*}}block = array<i64: 1>,{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
// CDNA3: func.func private @reduce_0{{.*}}block = array<i64: 1>,{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
// CDNA4: func.func private @reduce_0{{.*}}block = array<i64: 1>,{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
// RDNA3: func.func private @reduce_0{{.*}}block = array<i64: 1>,{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
// RDNA4: func.func private @reduce_0{{.*}}block = array<i64: 1>,{{.*}}threads = 256 : i64{{.*}}reduce = [array<i64: 4096>]
func.func @main(%arg0: tensor<8192x4096xf16> {xt.name = "x0"}) -> (tensor<8192xf16> {xt.name = "y0"}) {
  %0 = "xt.reduce"(%arg0) {axes = [1], keepdims = false, kind = "sum"} : (tensor<8192x4096xf16>) -> tensor<8192xf16>
  return %0 : tensor<8192xf16>
}

// -----

// Neighbouring columns, many rows a step.
// CDNA2: func.func private @reduce_0{{.*}}block = array<i64: 32>,{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 512>]
// CDNA3: func.func private @reduce_0{{.*}}block = array<i64: 16>,{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 1024>]
// CDNA4: func.func private @reduce_0{{.*}}block = array<i64: 16>,{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 1024>]
// RDNA3: func.func private @reduce_0{{.*}}block = array<i64: 32>,{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 512>]
// RDNA4: func.func private @reduce_0{{.*}}block = array<i64: 64>,{{.*}}threads = 512 : i64{{.*}}reduce = [array<i64: 256>]
func.func @main(%arg0: tensor<8192x4096xf16> {xt.name = "x0"}) -> (tensor<4096xf16> {xt.name = "y0"}) {
  %0 = "xt.reduce"(%arg0) {axes = [0], keepdims = false, kind = "sum"} : (tensor<8192x4096xf16>) -> tensor<4096xf16>
  return %0 : tensor<4096xf16>
}

// -----

// 128 bytes are written at once, and 256 read where there are many tiles.
// CDNA2: func.func private @transpose_0{{.*}}block = array<i64: 128, 64>,{{.*}}threads = 256 : i64
// CDNA3: func.func private @transpose_0{{.*}}block = array<i64: 128, 64>,{{.*}}threads = 256 : i64
// CDNA4: func.func private @transpose_0{{.*}}block = array<i64: 128, 64>,{{.*}}threads = 256 : i64
// RDNA3: func.func private @transpose_0{{.*}}block = array<i64: 128, 64>,{{.*}}threads = 256 : i64
// RDNA4: func.func private @transpose_0{{.*}}block = array<i64: 128, 64>,{{.*}}threads = 256 : i64
func.func @main(%arg0: tensor<8192x4096xf16> {xt.name = "x0"}) -> (tensor<4096x8192xf16> {xt.name = "y0"}) {
  %0 = "xt.transpose"(%arg0) {perm = [1, 0]} : (tensor<8192x4096xf16>) -> tensor<4096x8192xf16>
  return %0 : tensor<4096x8192xf16>
}

// -----

// CDNA2: func.func private @gather_0{{.*}}block = array<i64: 1, 1024>,{{.*}}threads = 128 : i64
// CDNA3: func.func private @gather_0{{.*}}block = array<i64: 1, 1024>,{{.*}}threads = 128 : i64
// CDNA4: func.func private @gather_0{{.*}}block = array<i64: 1, 1024>,{{.*}}threads = 128 : i64
// RDNA3: func.func private @gather_0{{.*}}block = array<i64: 1, 1024>,{{.*}}threads = 128 : i64
// RDNA4: func.func private @gather_0{{.*}}block = array<i64: 1, 2048>,{{.*}}threads = 128 : i64
func.func @main(%arg0: tensor<32000x4096xf16> {xt.name = "x0"}, %arg1: tensor<512xi64> {xt.name = "x1"}) -> (tensor<512x4096xf16> {xt.name = "y0"}) {
  %0 = "xt.gather"(%arg0, %arg1) {axis = 0 : i64, batch_dims = 0 : i64} : (tensor<32000x4096xf16>, tensor<512xi64>) -> tensor<512x4096xf16>
  return %0 : tensor<512x4096xf16>
}
