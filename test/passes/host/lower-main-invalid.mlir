// Attributes that cannot be obeyed are errors with the op's place.
// RUN: %xcc_opt %s --pass-pipeline=lower-main --split-input-file --verify-diagnostics

// expected-error: host.places of xtv.dispatch is a text a result, 'own', 'result N' or 'operand N', not ["mine"]
// expected-error: "-":7:8
func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {host.places = ["mine"], kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The argument that lies there is read by a later op.
// expected-error: host.places cannot be obeyed: what lies at 'result 0' is still read
func.func @main(%x: tensor<4xf32> {xt.name = "x"})
    -> (tensor<4xf32> {xt.name = "n", xt.updates = "x"}, tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {host.places = ["result 0"], kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%x) {host.places = ["result 1"], kernel = @neg, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Another value than the block's result.
// expected-error: host.places cannot be obeyed: result 0 of the block is not made of result 0 of xtv.dispatch
func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {host.places = ["result 0"], kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%0) {host.places = ["own"], kernel = @neg, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error: host.places cannot be obeyed: xtv.dispatch may not write result 0 to the memory of its operand 0
func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%0) {host.places = ["operand 0"], kernel = @neg, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error: host.places cannot be obeyed: operand 0 is read later
func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "xtv.dispatch"(%0, %x) {host.places = ["operand 0"], kernel = @put, symbols = [], xt.in_place} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "xtv.dispatch"(%0, %1) {kernel = @add, symbols = []} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// expected-error: host.at_load cannot be obeyed: xtv.dispatch reads more than weights
func.func @main(%x: tensor<4xf32> {xt.name = "x"}) -> (tensor<4xf32> {xt.name = "y"}) {
  %0 = "xtv.dispatch"(%x) {host.at_load, kernel = @exp, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
