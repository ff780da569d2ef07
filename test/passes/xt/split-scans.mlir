// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=split-scans | filecheck %s

// Along the last dim a workgroup scans a row; long rows in parts that begin at the scan of the parts' sums.
// CHECK-LABEL: @rows
// CHECK: "xt.scan_rows"(%{{.*}}) {exclusive = true, kind = "max", part = 0 : i64, reverse = true} : (tensor<6x256xf32>)
// CHECK: %[[F:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x10000xf16>
// CHECK: %[[T:.*]] = "xt.scan_parts"(%[[F]]) {kind = "sum", part = 4096 : i64} : (tensor<1x10000xf16>) -> tensor<1x3xf32>
// CHECK: %[[S:.*]] = "xt.scan_rows"(%[[T]]) {exclusive = true, {{.*}}part = 0
// CHECK: "xt.scan_rows"(%[[F]], %[[S]]) {exclusive = false, {{.*}}part = 4096
// CHECK-NOT: xt.cumulative
func.func @rows(%x: tensor<2x3x256xf32>, %l: tensor<10000x1xf16>) -> (tensor<2x3x256xf32>, tensor<10000x1xf16>) {
  %y = "xt.cumulative"(%x) {axis = 2, exclusive = true, kind = "max", reverse = true} : (tensor<2x3x256xf32>) -> tensor<2x3x256xf32>
  %z = "xt.cumulative"(%l) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<10000x1xf16>) -> tensor<10000x1xf16>
  return %y, %z : tensor<2x3x256xf32>, tensor<10000x1xf16>
}

// A size that is not known is cut into parts; many long rows fill the chip by themselves.
// CHECK-LABEL: @sizes
// CHECK: "xt.scan_parts"(%{{.*}}) {{.*}} -> tensor<1x?xi32, [1, "{{.*}}"]>
// CHECK: "xt.scan_rows"(%{{.*}}) {{.*}}part = 0{{.*}} : (tensor<512x9000xf32>)
func.func @sizes(%x: tensor<?xi32, ["n"]>, %r: tensor<512x9000xf32>) -> (tensor<?xi32, ["n"]>, tensor<512x9000xf32>) {
  %y = "xt.cumulative"(%x) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<?xi32, ["n"]>) -> tensor<?xi32, ["n"]>
  %z = "xt.cumulative"(%r) {axis = 1, exclusive = false, kind = "sum", reverse = false} : (tensor<512x9000xf32>) -> tensor<512x9000xf32>
  return %y, %z : tensor<?xi32, ["n"]>, tensor<512x9000xf32>
}

// Columns likewise, whose parts leave all cores work; a few elements are left as they are.
// CHECK-LABEL: @column
// CHECK: %[[F:.*]] = "xt.reshape"(%{{.*}}) {{.*}} -> tensor<1x1024x8xf32>
// CHECK: %[[T:.*]] = "xt.scan_parts"(%[[F]]) {kind = "sum", part = 128 : i64} : (tensor<1x1024x8xf32>) -> tensor<1x8x8xf32>
// CHECK: %[[S:.*]] = "xt.scan_rows"(%[[T]]) {exclusive = true, {{.*}}part = 0
// CHECK: "xt.scan_rows"(%[[F]], %[[S]]) {exclusive = false, {{.*}}part = 128
// CHECK: "xt.scan_rows"(%{{.*}}) {{.*}}part = 0{{.*}} : (tensor<1x300x40000xf32>)
// CHECK: "xt.cumulative"(%{{.*}}) {{.*}} -> tensor<12xf32>
func.func @column(%x: tensor<1024x8xf32>, %w: tensor<300x40000xf32>, %s: tensor<12xf32>) -> (tensor<1024x8xf32>, tensor<300x40000xf32>, tensor<12xf32>) {
  %y = "xt.cumulative"(%x) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<1024x8xf32>) -> tensor<1024x8xf32>
  %v = "xt.cumulative"(%w) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<300x40000xf32>) -> tensor<300x40000xf32>
  %z = "xt.cumulative"(%s) {axis = 0, exclusive = false, kind = "sum", reverse = false} : (tensor<12xf32>) -> tensor<12xf32>
  return %y, %v, %z : tensor<1024x8xf32>, tensor<300x40000xf32>, tensor<12xf32>
}

// Logarithms of sums, too.
// CHECK-LABEL: @logarithms
// CHECK: "xt.scan_parts"(%{{.*}}) {kind = "logsumexp", part = 4096 : i64} : (tensor<1x10000xbf16>) -> tensor<1x3xf32>
func.func @logarithms(%x: tensor<10000xbf16>) -> tensor<10000xbf16> {
  %y = "xt.cumulative"(%x) {axis = 0, exclusive = false, kind = "logsumexp", reverse = false} : (tensor<10000xbf16>) -> tensor<10000xbf16>
  return %y : tensor<10000xbf16>
}
