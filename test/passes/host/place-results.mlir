// Results lie where they are wanted, and where the operand lies that nobody reads later.
// RUN: %xcc_opt %s --split-input-file --pass-pipeline=place-results | filecheck %s

// An update in place of a temporary; what is returned is made in the output, through a view, too.
// CHECK-LABEL: @results
// CHECK: {host.places = ["own"], kernel = @exp
// CHECK: {host.places = ["operand 0"], kernel = @put, {{.*}}xt.in_place}
// CHECK: {host.places = ["result 0"], kernel = @neg
// CHECK: "xt.reshape"(%{{.*}}) {shape
func.func @results(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<2x2xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%0, %x) {kernel = @put, symbols = [], xt.in_place} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "xtv.dispatch"(%1) {kernel = @neg, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "xt.reshape"(%2) {shape = [2, 2]} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

// -----

// Where the old value is read later, the update is in a copy; what a kernel lets be one memory is.
// CHECK-LABEL: @updates
// CHECK: {host.places = ["own"], kernel = @put
// CHECK: {host.places = ["result 0"], host.shares = array<i64: 1, 0>, kernel = @sub
// CHECK: {host.places = ["result 1"], kernel = @exp
func.func @updates(%g: tensor<4xf32> {xt.name = "g"}, %p: tensor<4xf32> {xt.name = "p"})
    -> (tensor<4xf32> {xt.name = "n", xt.updates = "p"}, tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%p, %g) {kernel = @put, symbols = [], xt.in_place} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%0, %p) {host.shares = array<i64: 1, 0>, kernel = @sub, symbols = []} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "xtv.dispatch"(%g) {kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A loop works on what it carries; a branch makes what the if gives.
// CHECK-LABEL: @control
// CHECK: {host.places = ["operand 0"], kernel = @put, {{.*}}xt.in_place}
// CHECK: {host.places = ["result 0"], kernel = @neg
// CHECK: {host.places = ["own"], kernel = @less
// CHECK: {host.places = ["result 0"], kernel = @put, {{.*}}xt.in_place}
// CHECK: {host.places = ["result 0"]} :
func.func @control(%x: tensor<4xf32> {xt.name = "x"}, %c: tensor<i1> {xt.name = "c"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.if"(%c) ({
    %3 = "xtv.dispatch"(%x) {kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "xtv.dispatch"(%3, %x) {kernel = @put, symbols = [], xt.in_place} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "xtv.dispatch"(%4) {kernel = @neg, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
    "xtv.yield"(%5) : (tensor<4xf32>) -> ()
  }, {
    "xtv.yield"(%x) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  %1 = "xtv.while"(%0) ({
  ^bb0(%a: tensor<4xf32>):
    %3 = "xtv.dispatch"(%a) {kernel = @less, symbols = []} : (tensor<4xf32>) -> tensor<i1>
    "xtv.yield"(%3) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<4xf32>):
    %3 = "xtv.dispatch"(%a, %x) {kernel = @put, symbols = [], xt.in_place} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "xtv.yield"(%3) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A state that nothing reads any more when the next one is made is overwritten; not where the same op reads it.
// CHECK-LABEL: @states
// CHECK: kernel = @product
// CHECK: {host.places = ["result 0", "own"], kernel = @gates
func.func @states(%x: tensor<4xf32> {xt.name = "x"}, %z: tensor<4xf32> {xt.name = "z"}) -> (tensor<4xf32> {xt.name = "y"}, tensor<4xf32> {xt.name = "w"}) {
  %0:2 = "xtv.scan"(%x, %z) ({
  ^bb0(%h: tensor<4xf32>, %c: tensor<4xf32>):
    %1 = "xtv.dispatch"(%h) {kernel = @product, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
    %2:2 = "xtv.dispatch"(%1, %c) {kernel = @gates, symbols = []} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    "xtv.yield"(%2#0, %2#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) {axes = [], length = [5], operandSegmentSizes = array<i32: 2, 0>, out_axes = [], out_reverse = [], reverse = []} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}
