// Buffers and statements are what the attributes say; edited ones are obeyed, and without any all is copied.
// RUN: %xcc_opt %s --pass-pipeline=lower-main | filecheck %s --check-prefixes=CHECK,SAID
// RUN: sed -e "s/operand 0/own/" -e "s/, host.at_load//" %s | %xcc_opt - --pass-pipeline=lower-main | filecheck %s --check-prefixes=CHECK,EDITED
// RUN: sed "s/host.places = [^]]*],//" %s | %xcc_opt - --pass-pipeline=lower-main | filecheck %s --check-prefixes=CHECK,BARE

// CHECK: func.func @main() -> memref<?x4xf32> attributes {host.bounds = {n = [1, 9]}, host.symbols = ["n"]}
// CHECK: %[[X:.*]] = "host.buffer"() {kind = "input", name = "x", shape = ["n", 4]} : () -> memref<?x4xf32>
// CHECK: %[[Y:.*]] = "host.buffer"() {kind = "output", name = "y", shape = ["n", 4]}
// CHECK: %[[W:.*]] = "host.buffer"() {kind = "weight", name = "w"} : () -> memref<4xf32>
// SAID: %[[P:.*]] = "host.buffer"() {kind = "kept"} : () -> memref<4xf32>
// SAID: %[[T:.*]] = "host.buffer"() {kind = "temp", shape = ["n", 4]}
// SAID: "host.setup"() ({
// SAID-NEXT: "host.launch"(%[[W]], %[[P]]) {kernel = "pack", symbols = []}
// SAID: "host.launch"(%[[X]], %[[P]], %[[T]]) {kernel = "add", symbols = ["n"]}
// SAID: "host.launch"(%[[T]], %[[X]], %[[T]]) {kernel = "put", symbols = ["n"]}
// SAID: "host.launch"(%[[T]], %[[Y]]) {kernel = "neg", symbols = ["n"]}
// EDITED: %[[P:.*]] = "host.buffer"() {kind = "temp"} : () -> memref<4xf32>
// EDITED: %[[T:.*]] = "host.buffer"() {kind = "temp", shape = ["n", 4]}
// EDITED: %[[U:.*]] = "host.buffer"() {kind = "temp", shape = ["n", 4]}
// EDITED-NOT: host.setup
// EDITED: "host.launch"(%[[W]], %[[P]]) {kernel = "pack", symbols = []}
// EDITED: "host.copy"(%[[T]], %[[U]])
// EDITED: "host.launch"(%[[T]], %[[X]], %[[U]]) {kernel = "put", symbols = ["n"]}
// EDITED: "host.launch"(%[[U]], %[[Y]]) {kernel = "neg", symbols = ["n"]}
// BARE: "host.launch"(%{{.*}}, %[[T:.*]]) {kernel = "neg", symbols = ["n"]}
// BARE: "host.copy"(%[[T]], %[[Y]])
// CHECK: return %[[Y]] : memref<?x4xf32>
module attributes {xt.dims = {n = [1, 9]}} {
  func.func @main(%x: tensor<?x4xf32, ["n", 4]> {xt.name = "x"}) -> (tensor<?x4xf32, ["n", 4]> {xt.name = "y"}) {
    %w = "xt.weight"() {name = "w"} : () -> tensor<4xf32>
    %p = "xtv.dispatch"(%w) {kernel = @pack, host.at_load, symbols = []} : (tensor<4xf32>) -> tensor<4xf32>
    %0 = "xtv.dispatch"(%x, %p) {host.places = ["own"], kernel = @add, symbols = ["n"]} : (tensor<?x4xf32, ["n", 4]>, tensor<4xf32>) -> tensor<?x4xf32, ["n", 4]>
    %1 = "xtv.dispatch"(%0, %x) {host.places = ["operand 0"], kernel = @put, symbols = ["n"], xt.in_place} : (tensor<?x4xf32, ["n", 4]>, tensor<?x4xf32, ["n", 4]>) -> tensor<?x4xf32, ["n", 4]>
    %2 = "xtv.dispatch"(%1) {host.places = ["result 0"], kernel = @neg, symbols = ["n"]} : (tensor<?x4xf32, ["n", 4]>) -> tensor<?x4xf32, ["n", 4]>
    return %2 : tensor<?x4xf32, ["n", 4]>
  }
}
