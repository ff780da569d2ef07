// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg,mlir(canonicalize),mlir(cse),join-columns" --target=nvptx --chip=sm_90a | filecheck %s
// RUN: %xcc_opt %s --pass-pipeline="xt-to-linalg,mlir(canonicalize),mlir(cse),join-columns,configure{target=nvptx},tile,mlir(canonicalize),mlir(cse)" --target=nvptx --chip=sm_90a | filecheck %s --check-prefix=TILE

// What both sums read is read once.
// CHECK-LABEL: func.func private @columns(
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}}"reduction"
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NOT: "reduction"
// CHECK: return %[[R]]#0, %[[R]]#1
// TILE-LABEL: func.func private @columns(
// TILE: scf.for {{.*}} -> (vector<[[T:.*]]xf32>, vector<[[T]]xf32>)
// TILE: vector.transfer_read %arg0
// TILE: vector.transfer_read %arg1
// TILE-NOT: vector.transfer_read
// TILE: scf.yield
func.func private @columns(%x: tensor<4096x256xf16>, %y: tensor<4096x256xf16>) -> (tensor<256xf32>, tensor<256xf32>) attributes {xt.kernel, xt.symbols = []} {
  %a = "xt.convert"(%x) {dtype = f32, saturate = false} : (tensor<4096x256xf16>) -> tensor<4096x256xf32>
  %s = "xt.reduce"(%a) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  %b = "xt.convert"(%y) {dtype = f32, saturate = false} : (tensor<4096x256xf16>) -> tensor<4096x256xf32>
  %p = "xt.mul"(%a, %b) : (tensor<4096x256xf32>, tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %q = "xt.reduce"(%p) {axes = [0], keepdims = false, kind = "sum"} : (tensor<4096x256xf32>) -> tensor<256xf32>
  return %s, %q : tensor<256xf32>, tensor<256xf32>
}

// One needs the other; rows lie together, so that registers hold them.
// CHECK-LABEL: func.func private @apart(
// CHECK-COUNT-4: "reduction"
// CHECK: return
func.func private @apart(%x: tensor<512x512xf32>) -> (tensor<512xf32>, tensor<512xf32>, tensor<512xf32>) attributes {xt.kernel, xt.symbols = []} {
  %m = "xt.reduce"(%x) {axes = [0], keepdims = false, kind = "max"} : (tensor<512x512xf32>) -> tensor<512xf32>
  %d = "xt.sub"(%x, %m) : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512x512xf32>
  %s = "xt.reduce"(%d) {axes = [0], keepdims = false, kind = "sum"} : (tensor<512x512xf32>) -> tensor<512xf32>
  %r = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "sum"} : (tensor<512x512xf32>) -> tensor<512xf32>
  %q = "xt.reduce"(%x) {axes = [1], keepdims = false, kind = "max"} : (tensor<512x512xf32>) -> tensor<512xf32>
  return %s, %r, %q : tensor<512xf32>, tensor<512xf32>, tensor<512xf32>
}
