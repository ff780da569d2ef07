// RUN: %xcc_opt %s --pass-pipeline=masked-bits --target=cpu --chip=x86-64-v3 | filecheck %s

// CHECK-LABEL: llvm.func @narrow(
// CHECK: %[[OTHER:.*]] = llvm.bitcast %arg3 : vector<8xbf16> to vector<8xi16>
// CHECK: %[[BITS:.*]] = llvm.intr.masked.load %arg0, %arg2, %[[OTHER]] {{.*}} vector<8xi16>
// CHECK: llvm.bitcast %[[BITS]] : vector<8xi16> to vector<8xbf16>
// CHECK: llvm.intr.masked.store %{{.*}}, %arg1, %arg2 {{.*}} : vector<8xi16>
llvm.func @narrow(%a: !llvm.ptr, %b: !llvm.ptr, %m: vector<8xi1>, %o: vector<8xbf16>) {
  %v = llvm.intr.masked.load %a, %m, %o {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xbf16>) -> vector<8xbf16>
  llvm.intr.masked.store %v, %b, %m {alignment = 2 : i32} : vector<8xbf16>, vector<8xi1> into !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @shuffled(
// CHECK: %[[MOVED:.*]] = llvm.shufflevector %{{.*}}, %{{.*}} [0, 4, 1, 5] : vector<4xi16>
// CHECK: llvm.bitcast %[[MOVED]] : vector<4xi16> to vector<4xbf16>
llvm.func @shuffled(%a: vector<4xbf16>, %b: vector<4xbf16>) -> vector<4xbf16> {
  %v = llvm.shufflevector %a, %b [0, 4, 1, 5] : vector<4xbf16>
  llvm.return %v : vector<4xbf16>
}

// Other types stay.
// CHECK-LABEL: llvm.func @wide(
// CHECK-NOT: bitcast
llvm.func @wide(%a: !llvm.ptr, %m: vector<8xi1>, %o: vector<8xf32>) -> vector<8xf32> {
  %v = llvm.intr.masked.load %a, %m, %o {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
  llvm.return %v : vector<8xf32>
}
