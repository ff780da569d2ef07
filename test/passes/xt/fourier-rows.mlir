// RUN: %xcc_opt %s --target=cpu --chip=znver5,cores=2 --pass-pipeline=fourier-rows | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=x86-64-v3 --pass-pipeline=fourier-rows | filecheck %s --check-prefix=AVX2

// Rows of an even number of real numbers; 16 of them, or what a vector holds.
// CHECK-LABEL: func.func @real
// CHECK: %[[X:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<?x400xf32
// CHECK: "xt.fourier_rows"(%[[X]], %{{.*}}) {kind = "real", lanes = 16 : i64} {{.*}}tensor<?x402xf32
// AVX2-LABEL: func.func @real
// AVX2: "xt.fourier_rows"{{.*}}lanes = 8
func.func @real(%x: tensor<?x400x1xf32, ["n", 400, 1]>) -> tensor<?x201x2xf32, ["n", 201, 2]> {
  %y = "xt.dft"(%x) {axis = 1 : i64, inverse = false, onesided = true, length = []} : (tensor<?x400x1xf32, ["n", 400, 1]>) -> tensor<?x201x2xf32, ["n", 201, 2]>
  return %y : tensor<?x201x2xf32, ["n", 201, 2]>
}

// An odd number of them are complex ones; few rows are in few lanes, rows along another axis are transposed.
// CHECK-LABEL: func.func @odd
// CHECK: %[[T:.*]] = "xt.transpose"
// CHECK: %[[P:.*]] = "xt.pad"(%[[T]]
// CHECK: "xt.fourier_rows"({{.*}}kind = "forward", lanes = 4
// CHECK: "xt.slice"({{.*}}limits = [3, 32, 2]
func.func @odd(%x: tensor<63x3x1xf32>) -> tensor<32x3x2xf32> {
  %y = "xt.dft"(%x) {axis = 0 : i64, inverse = false, onesided = true, length = []} : (tensor<63x3x1xf32>) -> tensor<32x3x2xf32>
  return %y : tensor<32x3x2xf32>
}

// CHECK-LABEL: func.func @real_inverse
// CHECK: "xt.fourier_rows"({{.*}}kind = "real_inverse", lanes = 8 : i64} : (tensor<8x66xf64>, tensor<64x2xf64>) -> tensor<8x64xf64>
func.func @real_inverse(%x: tensor<8x33x2xf64>) -> tensor<8x64x1xf64> {
  %y = "xt.dft"(%x) {axis = 1 : i64, inverse = true, onesided = true, length = [64]} : (tensor<8x33x2xf64>) -> tensor<8x64x1xf64>
  return %y : tensor<8x64x1xf64>
}

// Short rows, large primes and free lengths stay products.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: "xt.dft"
func.func @stays(%x: tensor<8x16x2xf32>, %y: tensor<8x34x2xf32>, %z: tensor<8x?x2xf32, [8, "n", 2]>) -> (tensor<8x16x2xf32>, tensor<8x34x2xf32>, tensor<8x?x2xf32, [8, "n", 2]>) {
  %a = "xt.dft"(%x) {axis = 1 : i64, inverse = false, onesided = false, length = []} : (tensor<8x16x2xf32>) -> tensor<8x16x2xf32>
  %b = "xt.dft"(%y) {axis = 1 : i64, inverse = false, onesided = false, length = []} : (tensor<8x34x2xf32>) -> tensor<8x34x2xf32>
  %c = "xt.dft"(%z) {axis = 1 : i64, inverse = false, onesided = false, length = []} : (tensor<8x?x2xf32, [8, "n", 2]>) -> tensor<8x?x2xf32, [8, "n", 2]>
  return %a, %b, %c : tensor<8x16x2xf32>, tensor<8x34x2xf32>, tensor<8x?x2xf32, [8, "n", 2]>
}
