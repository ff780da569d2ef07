// What kernels make of weights alone is made when the model is loaded.
// RUN: %xcc_opt %s --pass-pipeline=mark-load-time | filecheck %s

// CHECK: %[[W:.*]] = "xt.weight"
// CHECK: %[[P:.*]] = "xtv.dispatch"(%[[W]]) {host.at_load, kernel = @pack
// CHECK: "xtv.dispatch"(%{{.*}}, %[[P]]) {kernel = @dot
func.func @main(%x: tensor<2x8xf32> {xt.name = "x"}) -> (tensor<2x8xf32> {xt.name = "y"}) {
  %w = "xt.weight"() {name = "w"} : () -> tensor<8x8xf32>
  %p = "xtv.dispatch"(%w) {kernel = @pack, symbols = []} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = "xtv.dispatch"(%x, %p) {kernel = @dot, symbols = []} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
