// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s --check-prefixes=ALL,SM80
// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, distribute, mlir(canonicalize, cse)" --split-input-file | filecheck %s --check-prefixes=ALL,SM90

// Each type of operands has its matrix instruction on a chip, or register tiles of FMAs where it has none.

// ALL-LABEL: gpu.func @f16(
// ALL: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
func.func @f16(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x8xf16>, vector<16x8xf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x16xf16>, vector<16x8xf16> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @bf16(
// ALL: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
func.func @bf16(%a: memref<16x16xbf16>, %b: memref<16x8xbf16>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : bf16
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xbf16>, vector<16x16xbf16>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x8xbf16>, vector<16x8xbf16>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x16xbf16>, vector<16x8xbf16> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @i8(
// ALL: "xtg.mma"({{.*}}) {k = 32 : i64, m = 16 : i64, n = 8 : i64, types = ["i8", "i8"]} : (vector<16xi8>, vector<8xi8>, vector<4xi32>) -> vector<4xi32>
func.func @i8(%a: memref<16x32xi8>, %b: memref<32x8xi8>, %o: memref<16x8xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0 : i8
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0> : vector<16x8xi32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xi8>, vector<16x32xi8>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x8xi8>, vector<32x8xi8>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x32xi8>, vector<32x8xi8> into vector<16x8xi32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xi32>, memref<16x8xi32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @ui8_i8(
// ALL: "xtg.mma"({{.*}}) {k = 32 : i64, m = 16 : i64, n = 8 : i64, types = ["ui8", "i8"]} : (vector<16xi8>, vector<8xi8>, vector<4xi32>) -> vector<4xi32>
func.func @ui8_i8(%a: memref<16x32xi8>, %b: memref<32x8xi8>, %o: memref<16x8xi32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0 : i8
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0> : vector<16x8xi32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xi8>, vector<16x32xi8>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x8xi8>, vector<32x8xi8>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, xcc.unsigned = array<i64: 0>} %ta, %tb, %init : vector<16x32xi8>, vector<32x8xi8> into vector<16x8xi32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xi32>, memref<16x8xi32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @tf32(
// ALL: nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
func.func @tf32(%a: memref<16x8xf32>, %b: memref<8x8xf32>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x8xf32>, vector<16x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<8x8xf32>, vector<8x8xf32>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>, xcc.lossy} %ta, %tb, %init : vector<16x8xf32>, vector<8x8xf32> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @f32(
// ALL-NOT: mma.sync
// ALL: vector.fma
func.func @f32(%a: memref<16x8xf32>, %b: memref<8x8xf32>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x8xf32>, vector<16x8xf32>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<8x8xf32>, vector<8x8xf32>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x8xf32>, vector<8x8xf32> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @e4m3(
// SM80-NOT: mma
// SM80: vector.fma
// SM90: "xtg.mma"({{.*}}) {k = 32 : i64, m = 16 : i64, n = 8 : i64, types = ["{{f8E.*}}", "{{f8E.*}}"]} : (vector<16xf8E4M3FN>, vector<8xf8E4M3FN>, vector<4xf32>) -> vector<4xf32>
func.func @e4m3(%a: memref<16x32xf8E4M3FN>, %b: memref<32x8xf8E4M3FN>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f8E4M3FN
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf8E4M3FN>, vector<16x32xf8E4M3FN>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x8xf8E4M3FN>, vector<32x8xf8E4M3FN>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x32xf8E4M3FN>, vector<32x8xf8E4M3FN> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}

// -----

// ALL-LABEL: gpu.func @e5m2(
// SM80-NOT: mma
// SM80: vector.fma
// SM90: "xtg.mma"({{.*}}) {k = 32 : i64, m = 16 : i64, n = 8 : i64, types = ["{{f8E.*}}", "{{f8E.*}}"]} : (vector<16xf8E5M2>, vector<8xf8E5M2>, vector<4xf32>) -> vector<4xf32>
func.func @e5m2(%a: memref<16x32xf8E5M2>, %b: memref<32x8xf8E5M2>, %o: memref<16x8xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 32 : i64}}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 0.0 : f8E5M2
  scf.forall (%i) in (1) {
    %init = arith.constant dense<0.0> : vector<16x8xf32>
    %ta = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf8E5M2>, vector<16x32xf8E5M2>
    %tb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x8xf8E5M2>, vector<32x8xf8E5M2>
    %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %init : vector<16x32xf8E5M2>, vector<32x8xf8E5M2> into vector<16x8xf32>
    vector.transfer_write %c, %o[%c0, %c0] {in_bounds = [true, true]} : vector<16x8xf32>, memref<16x8xf32>
  }
  return
}
