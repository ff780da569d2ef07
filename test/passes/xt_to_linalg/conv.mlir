// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg" --verify-each | filecheck %s

// Groups are a parallel dim of their own; the epilogue runs over it too, and the result has it.
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 3 + d4, d2 * 2 + d5, d3 * 2 + d6)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
// CHECK-LABEL: func.func private @depthwise_like
func.func private @depthwise_like(%x: tensor<1x6x5x5xf32>, %w: tensor<2x3x3x3xf32>) -> tensor<1x2x2x2xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: linalg.generic {indexing_maps = [#[[X]], #[[W]], #{{[a-z0-9]+}}]
  // CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
  %0 = "xt.convolution"(%x, %w) {strides = [2, 2], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1],
      rhs_dilation = [1, 1], groups = 2, outputs = 0, layout = "NCHW", filter = "OIHW", dtype = f32}
      : (tensor<1x6x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x2x2xf32>
  return %0 : tensor<1x2x2x2xf32>
}

// CHECK-LABEL: func.func private @grouped
func.func private @grouped(%x: tensor<1x4x4x6xf32>, %w: tensor<1x1x3x8xf32>) -> tensor<1x4x4x8xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x4x4x2x4xf32>)
  // CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<1x4x4x2x4xf32>)
  // CHECK: return %[[EXP]] : tensor<1x4x4x2x4xf32>
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1],
      rhs_dilation = [1, 1], groups = 2, outputs = 0, layout = "NHWC", filter = "HWIO", dtype = f32}
      : (tensor<1x4x4x6xf32>, tensor<1x1x3x8xf32>) -> tensor<1x4x4x8xf32>
  %1 = "xt.exp"(%0) : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %1 : tensor<1x4x4x8xf32>
}

// Padding is a producer: a clamped read and a select.
// CHECK-LABEL: func.func private @padded
// CHECK-SAME: %[[X:.*]]: tensor<1x1x4xf32>
func.func private @padded(%x: tensor<1x1x4xf32>, %w: tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
    attributes {xt.kernel, xt.symbols = []} {
  // CHECK: %[[PAD:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x6xf32>)
  // CHECK: %[[IN:.*]] = arith.cmpi ult
  // CHECK: %[[V:.*]] = tensor.extract %[[X]]
  // CHECK: arith.select %[[IN]], %[[V]]
  // CHECK: linalg.generic {{.*}} ins(%[[PAD]]
  %0 = "xt.convolution"(%x, %w) {strides = [1], low = [1], high = [1], lhs_dilation = [1],
      rhs_dilation = [1], groups = 1, outputs = 0, layout = "NCHW", filter = "OIHW", dtype = f32}
      : (tensor<1x1x4xf32>, tensor<1x1x3xf32>) -> tensor<1x1x4xf32>
  return %0 : tensor<1x1x4xf32>
}

// Products that may round their factors say so to the tiles.
// CHECK-LABEL: func.func private @rounded
// CHECK-COUNT-2: arith.mulf {{.*}} {xcc.lossy} : f32
// CHECK-NOT: xcc.lossy
func.func private @rounded(%x: tensor<1x3x5x5xf32>, %w: tensor<2x3x3x3xf32>, %a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> (tensor<1x2x3x3xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
    attributes {xt.kernel, xt.symbols = []} {
  %0 = "xt.convolution"(%x, %w) {strides = [1, 1], low = [0, 0], high = [0, 0], lhs_dilation = [1, 1], precision = "tf32",
      rhs_dilation = [1, 1], groups = 1, outputs = 0, layout = "NCHW", filter = "OIHW", dtype = f32}
      : (tensor<1x3x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x2x3x3xf32>
  %1 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], precision = "tf32", rhs_batch = [], rhs_contract = [0]} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %2 = "xt.dot_general"(%a, %b) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0, %1, %2 : tensor<1x2x3x3xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}
