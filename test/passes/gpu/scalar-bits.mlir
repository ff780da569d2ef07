// RUN: %xcc_opt %s "--pass-pipeline=scalar-bits" | filecheck %s

// CHECK-LABEL: llvm.func @words(
// CHECK-COUNT-2: llvm.and {{.*}} : i32
// CHECK: llvm.insertelement
// CHECK-NOT: llvm.and
// CHECK: llvm.xor {{.*}} : vector<2xi64>
llvm.func @words(%a: vector<2xi32>, %b: vector<2xi32>, %c: vector<2xi64>) -> vector<2xi64> {
  %r = llvm.and %a, %b : vector<2xi32>
  %w = llvm.zext %r : vector<2xi32> to vector<2xi64>
  %x = llvm.xor %w, %c : vector<2xi64>
  llvm.return %x : vector<2xi64>
}
