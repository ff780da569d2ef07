// xcc -v: what each kernel needs of the chip, from its assembled code.
// RUN: %xcc %s -o %t.xcm --target=amdgcn --chip=gfx942 -v 2>&1 | filecheck %s --check-prefix=AMD
// RUN: %xcc %s -o %t.xcm --target=nvptx -v 2>&1 | filecheck %s --check-prefix=NV
// RUN: %xcc %s -o %t.xcm --target=cpu -v 2>&1 | filecheck %s --check-prefix=CPU

// AMD: kernel {{.*}} threads  shared  VGPRs {{.*}} spills  SGPR spills  scratch  waves/SIMD  loop  matrix  share
// AMD: dot_general_0 {{.*}} {{[1-9][0-9]*}}%
// NV: kernel {{.*}} threads  shared
// NV: dot_general_0
// CPU-NOT: waves/SIMD

func.func @main(%x: tensor<64x64xf16> {xt.name = "x"}, %w: tensor<64x64xf16> {xt.name = "w"}) -> (tensor<64x64xf16> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = "f16"} : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
