// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=cut-reductions | filecheck %s
// RUN: %xcc_opt %s --target=cpu --chip=znver4,cores=2 --pass-pipeline="cut-reductions{where-it-lies=true}" | filecheck %s --check-prefix=CPU

// All of it, with what is computed on the way; narrow floats are summed in f32.
// CHECK-LABEL: @everything
// CHECK: %[[R:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x256x4096x1xf16>
// CHECK: %[[M:.*]] = "xt.mul"(%[[R]], %{{.*}}) {{.*}} -> tensor<1x256x4096x1xf16>
// CHECK: %[[W:.*]] = "xt.convert"(%[[M]]) {dtype = f32
// CHECK: %[[P:.*]] = "xt.reduce"(%[[W]]) {axes = [2], keepdims = false, kind = "sum"} {{.*}} -> tensor<1x256x1xf32>
// CHECK: %[[Y:.*]] = "xt.reduce"(%[[P]]) {axes = [1], keepdims = false, kind = "sum"} {{.*}} -> tensor<1x1xf32>
// CHECK: "xt.convert"
// CPU-LABEL: @everything
// CPU: "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x8x131072x1xf16>
func.func @everything(%x: tensor<1024x1024xf16>, %s: tensor<f16>) -> tensor<f16> {
  %m = "xt.mul"(%x, %s) : (tensor<1024x1024xf16>, tensor<f16>) -> tensor<1024x1024xf16>
  %y = "xt.reduce"(%m) {axes = [0, 1], keepdims = false, kind = "sum"} : (tensor<1024x1024xf16>) -> tensor<f16>
  return %y : tensor<f16>
}

// Sizes that no number of parts divides: what is left is reduced apart.
// CHECK-LABEL: @columns
// CHECK: %[[S:.*]] = "xt.slice"
// CHECK: %[[R:.*]] = "xt.reshape"(%[[S]])
// CHECK: "xt.reduce"(%[[R]]) {axes = [2], {{.*}}kind = "max"}
// CHECK: "xt.reduce"(%{{.*}}) {axes = [1], {{.*}}kind = "max"} {{.*}} -> tensor<1x16xf32>
// CHECK: "xt.slice"
// CHECK: "xt.reduce"
// CHECK: "xt.maximum"
// CHECK: "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x16xf32>
// CPU-LABEL: @columns
// CPU: %[[S:.*]] = "xt.slice"(%{{.*}}) {limits = [1, 65536, 16], starts = [0, 0, 0]
// CPU: %[[R:.*]] = "xt.reshape"(%[[S]]) {{.*}} -> tensor<1x8x8192x16xf32>
// CPU: "xt.reduce"(%[[R]])
// CPU: "xt.slice"(%{{.*}}) {limits = [1, 65537, 16], starts = [0, 65536, 0]
// CPU: "xt.maximum"
func.func @columns(%x: tensor<65537x16xf32>) -> tensor<1x16xf32> {
  %y = "xt.reduce"(%x) {axes = [0], keepdims = true, kind = "max"} : (tensor<65537x16xf32>) -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

// Enough rows for all cores, and rows that one block reduces as fast.
// CHECK-LABEL: @enough
// CHECK-COUNT-2: xt.reduce
// CHECK-NOT: xt.reduce
// CPU-LABEL: @enough
// CPU-COUNT-2: xt.reduce
// CPU-NOT: xt.reduce
// CPU: return
func.func @enough(%x: tensor<256x262144xf32>, %y: tensor<4x8192xf32>) -> (tensor<256xf32>, tensor<4xf32>) {
  %a = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "sum"} : (tensor<256x262144xf32>) -> tensor<256xf32>
  %b = "xt.reduce"(%y) {axes = [1], keepdims = false, kind = "sum"} : (tensor<4x8192xf32>) -> tensor<4xf32>
  return %a, %b : tensor<256xf32>, tensor<4xf32>
}

// Columns behind several dims: what has an element for each stays beside the parts. What others read as well is made
// twice (the difference), or cut where it lies (the selection), by what that reads.
// CHECK-LABEL: @channels
// CHECK-DAG: %[[SEL:.*]] = "xt.select"(%{{.*}}) {{.*}} -> tensor<32x56x56x256xf16>
// CHECK-DAG: %[[D:.*]] = "xt.reshape"(%[[SEL]]) {{.*}} -> tensor<1x128x784x256xf16>
// CHECK-DAG: %[[DW:.*]] = "xt.convert"(%[[D]]) {{.*}} -> tensor<1x128x784x256xf32>
// CHECK-DAG: %[[X:.*]] = "xt.reshape"(%arg0) {{.*}} -> tensor<1x128x784x256xf16>
// CHECK-DAG: %[[XW:.*]] = "xt.convert"(%[[X]]) {{.*}} -> tensor<1x128x784x256xf32>
// CHECK-DAG: %[[M:.*]] = "xt.reshape"(%arg1) {shape = [256]}
// CHECK: %[[S:.*]] = "xt.sub"(%[[XW]], %[[M]]) {{.*}} -> tensor<1x128x784x256xf32>
// CHECK: %[[P:.*]] = "xt.mul"(%[[DW]], %[[S]]) {{.*}} -> tensor<1x128x784x256xf32>
// CHECK: %[[A:.*]] = "xt.reduce"(%[[P]]) {axes = [2], {{.*}} -> tensor<1x128x256xf32>
// CHECK: "xt.reduce"(%[[A]]) {axes = [1], {{.*}} -> tensor<1x256xf32>
func.func @channels(%x: tensor<32x56x56x256xf16>, %m: tensor<1x1x1x256xf32>, %c: tensor<32x56x56x256xi1>, %g: tensor<32x56x56x256xf16>, %z: tensor<f16>) -> (tensor<256xf32>, tensor<32x56x56x256xf32>) {
  %s = "xt.select"(%c, %z, %g) : (tensor<32x56x56x256xi1>, tensor<f16>, tensor<32x56x56x256xf16>) -> tensor<32x56x56x256xf16>
  %d = "xt.convert"(%s) {dtype = f32, saturate = false} : (tensor<32x56x56x256xf16>) -> tensor<32x56x56x256xf32>
  %w = "xt.convert"(%x) {dtype = f32, saturate = false} : (tensor<32x56x56x256xf16>) -> tensor<32x56x56x256xf32>
  %e = "xt.sub"(%w, %m) : (tensor<32x56x56x256xf32>, tensor<1x1x1x256xf32>) -> tensor<32x56x56x256xf32>
  %p = "xt.mul"(%d, %e) : (tensor<32x56x56x256xf32>, tensor<32x56x56x256xf32>) -> tensor<32x56x56x256xf32>
  %y = "xt.reduce"(%p) {axes = [0, 1, 2], keepdims = false, kind = "sum"} : (tensor<32x56x56x256xf32>) -> tensor<256xf32>
  %o = "xt.add"(%d, %e) : (tensor<32x56x56x256xf32>, tensor<32x56x56x256xf32>) -> tensor<32x56x56x256xf32>
  return %y, %o : tensor<256xf32>, tensor<32x56x56x256xf32>
}

// A part of a matrix, and numbers of rows, would be put into memory to be cut, and shared products of two matrices stay
// there.
// CPU-LABEL: @on_the_way
// CPU-COUNT-3: xt.reduce
// CPU-NOT: xt.reduce
// CPU: return
func.func @on_the_way(%x: tensor<1024x1200xf32>, %y: tensor<1024x1024xf32>, %z: tensor<1024x1xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<1024x1024xf32>) {
  %s = "xt.slice"(%x) {starts = [0, 0], limits = [1024, 1024], strides = [1, 1]} : (tensor<1024x1200xf32>) -> tensor<1024x1024xf32>
  %e = "xt.exp"(%s) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %a = "xt.reduce"(%e) {axes = [0, 1], keepdims = false, kind = "sum"} : (tensor<1024x1024xf32>) -> tensor<f32>
  %r = "xt.mul"(%y, %z) : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1024xf32>
  %b = "xt.reduce"(%r) {axes = [0, 1], keepdims = false, kind = "sum"} : (tensor<1024x1024xf32>) -> tensor<f32>
  %p = "xt.mul"(%y, %s) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %c = "xt.reduce"(%p) {axes = [0, 1], keepdims = false, kind = "sum"} : (tensor<1024x1024xf32>) -> tensor<f32>
  return %a, %b, %c, %p : tensor<f32>, tensor<f32>, tensor<f32>, tensor<1024x1024xf32>
}
