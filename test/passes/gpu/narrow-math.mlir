// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=narrow-math | filecheck %s

// What ends in a 16-bit type has the short form; a product of f32 beside it has not.
// CHECK-LABEL: func.func @sigmoid(
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: math.exp2 %[[T]] fastmath<afn>
// CHECK: %[[D:.*]] = arith.addf
// CHECK: arith.divf %{{.*}}, %[[D]] fastmath<afn>
func.func @sigmoid(%x: vector<4xf32>) -> vector<4xf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %p = arith.mulf %s, %x : vector<4xf32>
  %y = arith.truncf %p : vector<4xf32> to vector<4xf16>
  return %y : vector<4xf16>
}

// bf16 has numbers as small as f32's: they are not flushed.
// CHECK-LABEL: func.func @bf16_sigmoid(
// CHECK: math.exp2 %{{[0-9]+}} : vector<4xf32>
// CHECK: arith.divf %{{.*}}, %{{.*}} fastmath<contract,afn>
func.func @bf16_sigmoid(%x: vector<4xf32>) -> vector<4xbf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %y = arith.truncf %s : vector<4xf32> to vector<4xbf16>
  return %y : vector<4xbf16>
}

// CHECK-LABEL: func.func @wide_sigmoid(
// CHECK: math.exp %
// CHECK-NOT: afn
// CHECK: return
func.func @wide_sigmoid(%x: vector<4xf32>) -> (vector<4xf16>, vector<4xf32>) {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %n = arith.negf %x : vector<4xf32>
  %e = math.exp %n : vector<4xf32>
  %d = arith.addf %e, %one : vector<4xf32>
  %s = arith.divf %one, %d : vector<4xf32>
  %y = arith.truncf %s : vector<4xf32> to vector<4xf16>
  return %y, %s : vector<4xf16>, vector<4xf32>
}

// What 2 is raised to is rounded once.
// CHECK-LABEL: func.func @less_the_most(
// CHECK: %[[MINUS:.*]] = arith.negf %arg1 : vector<4x1xf32>
// CHECK: %[[ROW:.*]] = vector.broadcast %[[MINUS]]
// CHECK: %[[T:.*]] = math.fma %arg0, %arg2, %[[ROW]]
// CHECK: math.exp2 %[[T]] fastmath<afn>
func.func @less_the_most(%x: vector<4x256xf32>, %top: vector<4x1xf32>, %c: vector<4x256xf32>) -> vector<4x256xf16> {
  %b = vector.broadcast %top : vector<4x1xf32> to vector<4x256xf32>
  %s = arith.mulf %x, %c : vector<4x256xf32>
  %d = arith.subf %s, %b : vector<4x256xf32>
  %e = math.exp2 %d : vector<4x256xf32>
  %y = arith.truncf %e : vector<4x256xf32> to vector<4x256xf16>
  return %y : vector<4x256xf16>
}

// A row's sum passes a relative error on: the exps of a softmax, and 1 / sum.
// CHECK-LABEL: func.func @softmax(
// CHECK: %[[E:.*]] = math.exp2 %{{.*}} fastmath<afn> : vector<4x256xf32>
// CHECK: vector.multi_reduction <add>, %[[E]]
// CHECK: arith.divf %{{.*}} fastmath<afn> : vector<4x1xf32>
func.func @softmax(%x: vector<4x256xf32>) -> vector<4x256xf16> {
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<4x1xf32>
  %e = math.exp %x : vector<4x256xf32>
  %s = vector.multi_reduction <add>, %e, %zero [1] : vector<4x256xf32> to vector<4xf32>
  %c = vector.shape_cast %s : vector<4xf32> to vector<4x1xf32>
  %r = arith.divf %one, %c : vector<4x1xf32>
  %b = vector.broadcast %r : vector<4x1xf32> to vector<4x256xf32>
  %p = arith.mulf %e, %b : vector<4x256xf32>
  %y = arith.truncf %p : vector<4x256xf32> to vector<4x256xf16>
  return %y : vector<4x256xf16>
}

// A product of a row does not (the error is that of all its factors together), nor does a logarithm.
// CHECK-LABEL: func.func @row_product(
// CHECK: math.exp %
// CHECK-LABEL: func.func @logarithm(
// CHECK: math.exp %
func.func @row_product(%x: vector<4x256xf32>) -> vector<4xf16> {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %e = math.exp %x : vector<4x256xf32>
  %s = vector.multi_reduction <mul>, %e, %one [1] : vector<4x256xf32> to vector<4xf32>
  %y = arith.truncf %s : vector<4xf32> to vector<4xf16>
  return %y : vector<4xf16>
}
func.func @logarithm(%x: vector<4xf32>) -> vector<4xf16> {
  %e = math.exp %x : vector<4xf32>
  %l = math.log %e : vector<4xf32>
  %y = arith.truncf %l : vector<4xf32> to vector<4xf16>
  return %y : vector<4xf16>
}

// What a loop carries is followed to what reads it behind the loop.
// CHECK-LABEL: func.func @long_row(
// CHECK: math.exp2 %{{.*}} fastmath<afn>
// CHECK-LABEL: func.func @kept_sum(
// CHECK: math.exp %
func.func @long_row(%x: memref<?x8xf32>, %n: index) -> vector<8xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (vector<8xf32>) {
    %v = vector.transfer_read %x[%i, %c0], %f0 {in_bounds = [true]} : memref<?x8xf32>, vector<8xf32>
    %e = math.exp %v : vector<8xf32>
    %t = arith.addf %s, %e : vector<8xf32>
    scf.yield %t : vector<8xf32>
  }
  %y = arith.truncf %sum : vector<8xf32> to vector<8xf16>
  return %y : vector<8xf16>
}
func.func @kept_sum(%x: memref<?x8xf32>, %n: index) -> (vector<8xf16>, vector<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (vector<8xf32>) {
    %v = vector.transfer_read %x[%i, %c0], %f0 {in_bounds = [true]} : memref<?x8xf32>, vector<8xf32>
    %e = math.exp %v : vector<8xf32>
    %t = arith.addf %s, %e : vector<8xf32>
    scf.yield %t : vector<8xf32>
  }
  %y = arith.truncf %sum : vector<8xf32> to vector<8xf16>
  return %y, %sum : vector<8xf16>, vector<8xf32>
}

// What products are added to passes a relative error on, as sums do; an operand of products that is f32 does not.
// CHECK-LABEL: func.func @scaled_sums(
// CHECK: %[[S:.*]] = math.exp2 %{{.*}} fastmath<afn>
// CHECK: arith.mulf %{{.*}}, %[[S]]
// CHECK: math.exp2 %{{[a-z0-9]*}} :
func.func @scaled_sums(%a: vector<8x8xf16>, %b: vector<8x8xf16>, %acc: vector<8x8xf32>, %s: vector<8x8xf32>,
                       %b32: vector<8x8xf32>) -> (vector<8x8xf16>, vector<8x8xf16>) {
  %e = math.exp2 %s : vector<8x8xf32>
  %scaled = arith.mulf %acc, %e : vector<8x8xf32>
  %c = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %scaled : vector<8x8xf16>, vector<8x8xf16> into vector<8x8xf32>
  %f = math.exp2 %acc : vector<8x8xf32>
  %d = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %b32, %acc : vector<8x8xf32>, vector<8x8xf32> into vector<8x8xf32>
  %y = arith.truncf %c : vector<8x8xf32> to vector<8x8xf16>
  %z = arith.truncf %d : vector<8x8xf32> to vector<8x8xf16>
  return %y, %z : vector<8x8xf16>, vector<8x8xf16>
}

// erf that ends in a 16-bit type is shorter.
// CHECK-LABEL: func.func @erf(
// CHECK-NOT: math.erf
// CHECK: math.exp2 %{{.*}} fastmath<afn>
// CHECK: math.copysign
// CHECK: arith.truncf
// CHECK-LABEL: func.func @precise_erf(
// CHECK: math.erf
func.func @erf(%x: f32) -> f16 {
  %y = math.erf %x : f32
  %z = arith.mulf %x, %y : f32
  %t = arith.truncf %z : f32 to f16
  return %t : f16
}
func.func @precise_erf(%x: f32) -> (f32, f16) {
  %y = math.erf %x : f32
  %t = arith.truncf %y : f32 to f16
  return %y, %t : f32, f16
}

// gelu in one: no 1 + erf that cancels.
// CHECK-LABEL: func.func @gelu(
// CHECK-NOT: math.erf
// CHECK: %[[TAIL:.*]] = math.exp2 %{{.*}} fastmath<afn>
// CHECK: %[[POSITIVE:.*]] = arith.maximumf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: %[[LESS:.*]] = arith.negf
// CHECK: %[[Y:.*]] = math.fma %[[LESS]], %[[TAIL]], %[[POSITIVE]]
// CHECK: arith.truncf %[[Y]]
func.func @gelu(%x: vector<4xf32>) -> vector<4xf16> {
  %half = arith.constant dense<0.5> : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<4xf32>
  %c = arith.constant dense<0.707106769> : vector<4xf32>
  %h = arith.mulf %x, %half : vector<4xf32>
  %z = arith.mulf %x, %c : vector<4xf32>
  %e = math.erf %z : vector<4xf32>
  %s = arith.addf %e, %one : vector<4xf32>
  %y = arith.mulf %h, %s : vector<4xf32>
  %t = arith.truncf %y : vector<4xf32> to vector<4xf16>
  return %t : vector<4xf16>
}

// tanh: with a polynomial where 1 - e would cancel; 1 + tanh is 2 / (1 + exp(-2 x)).
// CHECK-LABEL: func.func @tanh(
// CHECK: %[[E:.*]] = math.exp2 %{{.*}} fastmath<afn>
// CHECK: arith.divf %{{.*}} fastmath<afn>
// CHECK: math.copysign
// CHECK: arith.select
// CHECK-LABEL: func.func @one_and_tanh(
// CHECK: %[[E:.*]] = math.exp2 %{{.*}} fastmath<afn>
// CHECK: %[[D:.*]] = arith.addf %[[E]]
// CHECK: arith.divf %{{.*}}, %[[D]] fastmath<afn>
// CHECK-NOT: select
// CHECK-LABEL: func.func @precise_tanh(
// CHECK: math.tanh
func.func @tanh(%x: f32) -> bf16 {
  %y = math.tanh %x : f32
  %t = arith.truncf %y : f32 to bf16
  return %t : bf16
}
func.func @one_and_tanh(%x: f32, %h: f32) -> f16 {
  %one = arith.constant 1.0 : f32
  %y = math.tanh %x : f32
  %s = arith.addf %one, %y : f32
  %g = arith.mulf %s, %h : f32
  %t = arith.truncf %g : f32 to f16
  return %t : f16
}
func.func @precise_tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}
