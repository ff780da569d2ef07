// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=masked-gathers" | filecheck %s

// CHECK-LABEL: func.func @first_piece(
// CHECK: %[[N:.*]] = vector.step : vector<4xindex>
// CHECK: %[[V:.*]] = vector.gather %arg0[%c0] [%[[N]]], %arg1, %arg2 : memref<2xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK: return %[[V]]
func.func @first_piece(%m: memref<2xf32>, %mask: vector<4xi1>, %rest: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %v = vector.maskedload %m[%c0], %mask, %rest : memref<2xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %v : vector<4xf32>
}
