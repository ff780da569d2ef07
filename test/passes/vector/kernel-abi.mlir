// RUN: %xcc_opt %s --pass-pipeline="kernel-abi" | filecheck %s

// CHECK-LABEL: func.func @k
// CHECK-SAME: (%[[X:.*]]: !llvm.ptr, %[[OUT:.*]]: !llvm.ptr, %[[N:.*]]: i64)
// CHECK: %[[D0:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK: llvm.insertvalue %[[X]]
// CHECK: %[[M:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x?xf32>
// CHECK: memref.load %[[M]]
func.func private @k(%x: memref<?x?xf32>, %out: memref<1xf32>, %d0: index)
    attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", "2*d0 + 1"]], xt.result_dims = [[1]]} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0, %c0] : memref<?x?xf32>
  memref.store %v, %out[%c0] : memref<1xf32>
  return
}
