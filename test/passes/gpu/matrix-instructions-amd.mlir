// RUN: %xcc_opt %s --target=amdgcn --chip=gfx90a "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CDNA2
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CDNA3
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx950 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=CDNA4
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1100 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=RDNA3
// RUN: %xcc_opt %s --target=amdgcn --chip=gfx1201 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=RDNA4

// Each matrix instruction of each AMD chip, from a contraction of a tile of its type.
#m = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>

// 16 bytes of k a lane: two of the older MFMA, one of CDNA4's; WMMA of RDNA3 takes whole rows in both halves of a wave.
// CDNA2-LABEL: gpu.func @f16(
// CDNA2-COUNT-8: amdgpu.mfma 32x32x8 {{.*}}: vector<4xf16>, vector<4xf16>, vector<16xf32>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @f16(
// CDNA3-COUNT-8: amdgpu.mfma 32x32x8 {{.*}}: vector<4xf16>, vector<4xf16>, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @f16(
// CDNA4-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xf16>, vector<8xf16>, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @f16(
// RDNA3-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<16xf16>, vector<16xf16>, vector<8xf32>
// RDNA3-NOT: amdgpu.wmma
// RDNA4-LABEL: gpu.func @f16(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<8xf16>, vector<8xf16>, vector<8xf32>
// RDNA4-NOT: amdgpu.wmma
func.func @f16(%a: memref<32x64xf16>, %b: memref<32x64xf16>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf16>, vector<32x64xf16>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf16>, vector<32x64xf16>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf16>, vector<32x64xf16> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA2-LABEL: gpu.func @bf16(
// CDNA2-COUNT-8: amdgpu.mfma 32x32x8 {{.*}}: vector<4xbf16>, vector<4xbf16>, vector<16xf32>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @bf16(
// CDNA3-COUNT-8: amdgpu.mfma 32x32x8 {{.*}}: vector<4xbf16>, vector<4xbf16>, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @bf16(
// CDNA4-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xbf16>, vector<8xbf16>, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @bf16(
// RDNA3-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<16xbf16>, vector<16xbf16>, vector<8xf32>
// RDNA3-NOT: amdgpu.wmma
// RDNA4-LABEL: gpu.func @bf16(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<8xbf16>, vector<8xbf16>, vector<8xf32>
// RDNA4-NOT: amdgpu.wmma
func.func @bf16(%a: memref<32x64xbf16>, %b: memref<32x64xbf16>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : bf16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xbf16>, vector<32x64xbf16>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xbf16>, vector<32x64xbf16>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xbf16>, vector<32x64xbf16> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA2-LABEL: gpu.func @i8(
// CDNA2-COUNT-8: amdgpu.mfma 32x32x8 {{.*}}: vector<4xi8>, vector<4xi8>, vector<16xi32>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @i8(
// CDNA3-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xi8>, vector<8xi8>, vector<16xi32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @i8(
// CDNA4-COUNT-2: amdgpu.mfma 32x32x32 {{.*}}: vector<16xi8>, vector<16xi8>, vector<16xi32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @i8(
// RDNA3-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<16xi8>, vector<16xi8>, vector<8xi32>
// RDNA3-NOT: amdgpu.wmma
// RDNA4-LABEL: gpu.func @i8(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<8xi8>, vector<8xi8>, vector<8xi32>
// RDNA4-NOT: amdgpu.wmma
func.func @i8(%a: memref<32x64xi8>, %b: memref<32x64xi8>, %o: memref<32x32xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i8
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0> : vector<32x32xi32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xi8>, vector<32x64xi8>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xi8>, vector<32x64xi8>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xi8>, vector<32x64xi8> into vector<32x32xi32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xi32>, memref<32x32xi32>
  }
  return
}

// MFMA multiplies signed bytes alone: register tiles, widened with zeros; WMMA is told the signs.
// CDNA2-LABEL: gpu.func @ui8_i8(
// CDNA2-NOT: amdgpu.mfma
// CDNA2: arith.extui {{.*}}xi8>
// CDNA2: arith.extsi {{.*}}xi8>
// CDNA3-LABEL: gpu.func @ui8_i8(
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @ui8_i8(
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @ui8_i8(
// RDNA3-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}unsignedA
// RDNA4-LABEL: gpu.func @ui8_i8(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}unsignedA
func.func @ui8_i8(%a: memref<32x64xi8>, %b: memref<32x64xi8>, %o: memref<32x32xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i8
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0> : vector<32x32xi32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xi8>, vector<32x64xi8>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xi8>, vector<32x64xi8>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 0>} %x, %y, %init : vector<32x64xi8>, vector<32x64xi8> into vector<32x32xi32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xi32>, memref<32x32xi32>
  }
  return
}

// RDNA multiplies f32 by FMAs.
// CDNA2-LABEL: gpu.func @f32(
// CDNA2-COUNT-32: amdgpu.mfma 32x32x2 {{.*}}: f32, f32, vector<16xf32>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @f32(
// CDNA3-COUNT-32: amdgpu.mfma 32x32x2 {{.*}}: f32, f32, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @f32(
// CDNA4-COUNT-32: amdgpu.mfma 32x32x2 {{.*}}: f32, f32, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @f32(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f32(
// RDNA4-NOT: amdgpu.mfma
// RDNA4-NOT: amdgpu.wmma
// RDNA4: vector.fma
func.func @f32(%a: memref<32x64xf32>, %b: memref<32x64xf32>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x64xf32>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x64xf32>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf32>, vector<32x64xf32> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// Only where the kernel may lose bits (--precision=tf32), and only on CDNA3.
// CDNA2-LABEL: gpu.func @xf32(
// CDNA2-COUNT-32: amdgpu.mfma 32x32x2 {{.*}}: f32, f32, vector<16xf32>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @xf32(
// CDNA3-COUNT-16: amdgpu.mfma 32x32x4 {{.*}}reducePrecision{{.*}}: vector<2xf32>, vector<2xf32>, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @xf32(
// CDNA4-COUNT-32: amdgpu.mfma 32x32x2 {{.*}}: f32, f32, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @xf32(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @xf32(
// RDNA4-NOT: amdgpu.mfma
// RDNA4-NOT: amdgpu.wmma
// RDNA4: vector.fma
func.func @xf32(%a: memref<32x64xf32>, %b: memref<32x64xf32>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x64xf32>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf32>, vector<32x64xf32>
    %c = vector.contract {xcc.lossy, indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf32>, vector<32x64xf32> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA2-LABEL: gpu.func @f64(
// CDNA2-COUNT-64: amdgpu.mfma 16x16x4 {{.*}}: f64, f64, vector<4xf64>
// CDNA2-NOT: amdgpu.mfma
// CDNA3-LABEL: gpu.func @f64(
// CDNA3-COUNT-64: amdgpu.mfma 16x16x4 {{.*}}: f64, f64, vector<4xf64>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @f64(
// CDNA4-COUNT-64: amdgpu.mfma 16x16x4 {{.*}}: f64, f64, vector<4xf64>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @f64(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f64(
// RDNA4-NOT: amdgpu.mfma
// RDNA4-NOT: amdgpu.wmma
// RDNA4: vector.fma
func.func @f64(%a: memref<32x64xf64>, %b: memref<32x64xf64>, %o: memref<32x32xf64>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f64
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf64>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf64>, vector<32x64xf64>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf64>, vector<32x64xf64>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf64>, vector<32x64xf64> into vector<32x32xf64>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf64>, memref<32x32xf64>
  }
  return
}

// On chips without an instruction for them, 8-bit floats come here as f16 (multiplied-types).
// CDNA2-LABEL: gpu.func @f8E4M3FN(
// CDNA2-NOT: amdgpu.mfma
// CDNA2-NOT: amdgpu.wmma
// CDNA2: vector.fma
// CDNA3-LABEL: gpu.func @f8E4M3FN(
// CDNA3-NOT: amdgpu.mfma
// CDNA3-NOT: amdgpu.wmma
// CDNA3: vector.fma
// CDNA4-LABEL: gpu.func @f8E4M3FN(
// CDNA4-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xf8E4M3FN>, vector<8xf8E4M3FN>, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @f8E4M3FN(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f8E4M3FN(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<8xf8E4M3FN>, vector<8xf8E4M3FN>, vector<8xf32>
// RDNA4-NOT: amdgpu.wmma
func.func @f8E4M3FN(%a: memref<32x64xf8E4M3FN>, %b: memref<32x64xf8E4M3FN>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f8E4M3FN
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E4M3FN>, vector<32x64xf8E4M3FN>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E4M3FN>, vector<32x64xf8E4M3FN>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf8E4M3FN>, vector<32x64xf8E4M3FN> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA2-LABEL: gpu.func @f8E5M2(
// CDNA2-NOT: amdgpu.mfma
// CDNA2-NOT: amdgpu.wmma
// CDNA2: vector.fma
// CDNA3-LABEL: gpu.func @f8E5M2(
// CDNA3-NOT: amdgpu.mfma
// CDNA3-NOT: amdgpu.wmma
// CDNA3: vector.fma
// CDNA4-LABEL: gpu.func @f8E5M2(
// CDNA4-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xf8E5M2>, vector<8xf8E5M2>, vector<16xf32>
// CDNA4-NOT: amdgpu.mfma
// RDNA3-LABEL: gpu.func @f8E5M2(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f8E5M2(
// RDNA4-COUNT-8: amdgpu.wmma 16x16x16 {{.*}}: vector<8xf8E5M2>, vector<8xf8E5M2>, vector<8xf32>
// RDNA4-NOT: amdgpu.wmma
func.func @f8E5M2(%a: memref<32x64xf8E5M2>, %b: memref<32x64xf8E5M2>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f8E5M2
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E5M2>, vector<32x64xf8E5M2>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E5M2>, vector<32x64xf8E5M2>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf8E5M2>, vector<32x64xf8E5M2> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA3 has 8-bit floats of its own.
// CDNA2-LABEL: gpu.func @f8E4M3FNUZ(
// CDNA2-NOT: amdgpu.mfma
// CDNA2-NOT: amdgpu.wmma
// CDNA2: vector.fma
// CDNA3-LABEL: gpu.func @f8E4M3FNUZ(
// CDNA3-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xf8E4M3FNUZ>, vector<8xf8E4M3FNUZ>, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @f8E4M3FNUZ(
// CDNA4-NOT: amdgpu.mfma
// CDNA4-NOT: amdgpu.wmma
// CDNA4: vector.fma
// RDNA3-LABEL: gpu.func @f8E4M3FNUZ(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f8E4M3FNUZ(
// RDNA4-NOT: amdgpu.mfma
// RDNA4-NOT: amdgpu.wmma
// RDNA4: vector.fma
func.func @f8E4M3FNUZ(%a: memref<32x64xf8E4M3FNUZ>, %b: memref<32x64xf8E4M3FNUZ>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f8E4M3FNUZ
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E4M3FNUZ>, vector<32x64xf8E4M3FNUZ>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E4M3FNUZ>, vector<32x64xf8E4M3FNUZ>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf8E4M3FNUZ>, vector<32x64xf8E4M3FNUZ> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}

// CDNA2-LABEL: gpu.func @f8E5M2FNUZ(
// CDNA2-NOT: amdgpu.mfma
// CDNA2-NOT: amdgpu.wmma
// CDNA2: vector.fma
// CDNA3-LABEL: gpu.func @f8E5M2FNUZ(
// CDNA3-COUNT-4: amdgpu.mfma 32x32x16 {{.*}}: vector<8xf8E5M2FNUZ>, vector<8xf8E5M2FNUZ>, vector<16xf32>
// CDNA3-NOT: amdgpu.mfma
// CDNA4-LABEL: gpu.func @f8E5M2FNUZ(
// CDNA4-NOT: amdgpu.mfma
// CDNA4-NOT: amdgpu.wmma
// CDNA4: vector.fma
// RDNA3-LABEL: gpu.func @f8E5M2FNUZ(
// RDNA3-NOT: amdgpu.mfma
// RDNA3-NOT: amdgpu.wmma
// RDNA3: vector.fma
// RDNA4-LABEL: gpu.func @f8E5M2FNUZ(
// RDNA4-NOT: amdgpu.mfma
// RDNA4-NOT: amdgpu.wmma
// RDNA4: vector.fma
func.func @f8E5M2FNUZ(%a: memref<32x64xf8E5M2FNUZ>, %b: memref<32x64xf8E5M2FNUZ>, %o: memref<32x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f8E5M2FNUZ
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<32x32xf32>
    %x = vector.transfer_read %a[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E5M2FNUZ>, vector<32x64xf8E5M2FNUZ>
    %y = vector.transfer_read %b[%c0, %c0], %z {in_bounds = [true, true]} : memref<32x64xf8E5M2FNUZ>, vector<32x64xf8E5M2FNUZ>
    %c = vector.contract {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %x, %y, %init : vector<32x64xf8E5M2FNUZ>, vector<32x64xf8E5M2FNUZ> into vector<32x32xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<32x32xf32>, memref<32x32xf32>
  }
  return
}
