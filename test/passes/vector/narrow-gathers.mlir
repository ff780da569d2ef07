// RUN: %xcc_opt %s --chip=znver4 --pass-pipeline="narrow-gathers, mlir(canonicalize)" | filecheck %s

// The image's place in the buffer, of any size, is the offset; rows and columns are below 40 and 32.
// CHECK-LABEL: func.func @image(
// CHECK-SAME: %[[M:.*]]: memref<?xf32>, %[[Y:.*]]: vector<16xf32>, %[[X:.*]]: vector<16xindex>, %[[N:.*]]: index
// CHECK-DAG: %[[ROW:.*]] = arith.fptosi %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK-DAG: %[[AT:.*]] = arith.muli %[[ROW]], %{{.*}} : vector<16xi32>
// CHECK-DAG: %[[COLUMN:.*]] = arith.index_cast %{{.*}} : vector<16xindex> to vector<16xi32>
// CHECK: %[[INDEX:.*]] = arith.addi %[[AT]], %[[COLUMN]] : vector<16xi32>
// CHECK: vector.gather %[[M]][%[[N]]] [%[[INDEX]]]
func.func @image(%m: memref<?xf32>, %y: vector<16xf32>, %x: vector<16xindex>, %n: index) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %on = arith.constant dense<true> : vector<16xi1>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %last = arith.constant dense<39.0> : vector<16xf32>
  %width = arith.constant dense<32> : vector<16xindex>
  %first = arith.constant dense<0> : vector<16xindex>
  %end = arith.constant dense<31> : vector<16xindex>
  %low = arith.maximumf %y, %zero : vector<16xf32>
  %clamped = arith.minimumf %low, %last : vector<16xf32>
  %whole = arith.fptosi %clamped : vector<16xf32> to vector<16xi64>
  %row = arith.index_cast %whole : vector<16xi64> to vector<16xindex>
  %rows = arith.muli %row, %width : vector<16xindex>
  %near = arith.minsi %x, %end : vector<16xindex>
  %column = arith.maxsi %near, %first : vector<16xindex>
  %place = vector.broadcast %n : index to vector<16xindex>
  %start = arith.addi %place, %rows : vector<16xindex>
  %i = arith.addi %start, %column : vector<16xindex>
  %v = vector.gather %m[%c0] [%i], %on, %zero : memref<?xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %v : vector<16xf32>
}

// Nothing is known of the index, and rows of a thousand million elements do not fit.
// CHECK-LABEL: func.func @large(
// CHECK-NOT: i32
// CHECK: vector.gather %{{.*}} : memref<?xf32>, vector<16xindex>
// CHECK: vector.gather %{{.*}} : memref<?xf32>, vector<16xindex>
func.func @large(%m: memref<?xf32>, %x: vector<16xindex>) -> (vector<16xf32>, vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %on = arith.constant dense<true> : vector<16xi1>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %size = arith.constant dense<1000000000> : vector<16xindex>
  %step = vector.step : vector<16xindex>
  %rows = arith.muli %step, %size : vector<16xindex>
  %v = vector.gather %m[%c0] [%x], %on, %zero : memref<?xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %w = vector.gather %m[%c0] [%rows], %on, %zero : memref<?xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  return %v, %w : vector<16xf32>, vector<16xf32>
}
