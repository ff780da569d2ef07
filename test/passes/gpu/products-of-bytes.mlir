// RUN: %xcc %s --target=nvptx --chip=sm_90a --emit=gpu -o - | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc %s --target=nvptx --chip=sm_80 --emit=gpu -o - | filecheck %s --check-prefixes=CHECK,SM80
// RUN: %xcc %s --target=amdgcn --chip=gfx942 --emit=gpu -o - | filecheck %s --check-prefixes=CHECK,CDNA3
// RUN: %xcc %s --target=amdgcn --chip=gfx1100 --emit=gpu -o - | filecheck %s --check-prefixes=CHECK,RDNA3

// A quantised convolution and a quantised product behind it multiply bytes. Weights lie along the summed dim, and bytes
// go from one kernel to the other.

// CHECK: gpu.func @convolution_0(%{{[^ ]*}}: memref<{{[^>]*}}x64xi8>, %{{[^ ]*}}: memref<128x3x3x64xi8>,
// SM90: "xtg.mma"({{.*}}types = ["i8", "i8"]
// SM80: "xtg.mma"({{.*}}types = ["i8", "i8"]
// CDNA3: amdgpu.mfma {{.*}}xi8>, vector<{{.*}}xi32>
// RDNA3: amdgpu.wmma {{.*}}xi8>, vector<{{.*}}xi32>
// CHECK: gpu.func @dot_general_0(%{{[^ ]*}}: memref<64x128xi8>, %{{[^ ]*}}: memref<2048x128xi8>, {{.*}}: memref<64x2048xi8>)
// SM90: "xtg.wgmma"({{.*}}types = ["i8", "i8"]
// SM80: "xtg.mma"({{.*}}types = ["i8", "i8"]
// CDNA3: amdgpu.mfma {{.*}}xi8>, vector<{{.*}}xi32>
// RDNA3: amdgpu.wmma {{.*}}xi8>, vector<{{.*}}xi32>

func.func @main(%arg0: tensor<1x64x8x8xi8> {xt.name = "x0"}) -> (tensor<64x2048xi8> {xt.name = "y0"}) {
  %0 = "xt.weight"() {name = "w"} : () -> tensor<128x64x3x3xi8>
  %1 = "xt.constant"() {value = dense<2.000000e-02> : tensor<f32>} : () -> tensor<f32>
  %2 = "xt.dequantize"(%0, %1) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<128x64x3x3xi8>, tensor<f32>) -> tensor<128x64x3x3xf32>
  %3 = "xt.weight"() {name = "v"} : () -> tensor<128x2048xi8>
  %4 = "xt.constant"() {value = dense<0.00999999977> : tensor<f32>} : () -> tensor<f32>
  %5 = "xt.dequantize"(%3, %4) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<128x2048xi8>, tensor<f32>) -> tensor<128x2048xf32>
  %6 = "xt.constant"() {value = dense<5.000000e-01> : tensor<f32>} : () -> tensor<f32>
  %7 = "xt.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %8 = "xt.dequantize"(%arg0, %6, %7) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<1x64x8x8xi8>, tensor<f32>, tensor<i8>) -> tensor<1x64x8x8xf32>
  %9 = "xt.convolution"(%8, %2) {dtype = f32, filter = "OIHW", groups = 1 : i64, outputs = 0 : i64, high = [1, 1], layout = "NCHW", lhs_dilation = [1, 1], low = [1, 1], rhs_dilation = [1, 1], strides = [1, 1]} : (tensor<1x64x8x8xf32>, tensor<128x64x3x3xf32>) -> tensor<1x128x8x8xf32>
  %10 = "xt.constant"() {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %11 = "xt.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %12 = "xt.quantize"(%9, %10, %11) {axis = 0 : i64, block = 0 : i64, dtype = i8, reciprocal = false, saturate = true} : (tensor<1x128x8x8xf32>, tensor<f32>, tensor<i8>) -> tensor<1x128x8x8xi8>
  %13 = "xt.constant"() {value = dense<2.500000e-01> : tensor<f32>} : () -> tensor<f32>
  %14 = "xt.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %15 = "xt.dequantize"(%12, %13, %14) {axis = 0 : i64, block = 0 : i64, dtype = f32} : (tensor<1x128x8x8xi8>, tensor<f32>, tensor<i8>) -> tensor<1x128x8x8xf32>
  %16 = "xt.transpose"(%15) {perm = [0, 2, 3, 1]} : (tensor<1x128x8x8xf32>) -> tensor<1x8x8x128xf32>
  %17 = "xt.reshape"(%16) {shape = [64, 128]} : (tensor<1x8x8x128xf32>) -> tensor<64x128xf32>
  %18 = "xt.dot_general"(%17, %5) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<64x128xf32>, tensor<128x2048xf32>) -> tensor<64x2048xf32>
  %19 = "xt.constant"() {value = dense<1.250000e-01> : tensor<f32>} : () -> tensor<f32>
  %20 = "xt.constant"() {value = dense<0> : tensor<i8>} : () -> tensor<i8>
  %21 = "xt.quantize"(%18, %19, %20) {axis = 0 : i64, block = 0 : i64, dtype = i8, reciprocal = false, saturate = true} : (tensor<64x2048xf32>, tensor<f32>, tensor<i8>) -> tensor<64x2048xi8>
  return %21 : tensor<64x2048xi8>
}
