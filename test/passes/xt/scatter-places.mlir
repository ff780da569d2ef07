// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=scatter-places | filecheck %s

// Few pairs of a place and a vector: a reduction says who writes a place, and a select takes what it writes.
// CHECK-LABEL: func.func @vectors
// CHECK-SAME: %[[X:arg0]]: tensor<8x6x4xf32>, %{{.*}}: tensor<5x2xi64>, %[[U:arg2]]: tensor<5x4xf32>
// CHECK: %[[W:.*]] = "xt.reduce"(%{{.*}}) {{.*}}kind = "max"{{.*}} -> tensor<48xi32>
// CHECK: %[[P:.*]] = "xt.reshape"(%[[W]]) {{.*}} -> tensor<8x6xi32>
// CHECK: %[[R:.*]] = "xt.gather"(%{{.*}}, %[[P]]) {{.*}} -> tensor<8x6x4xf32>
// CHECK: %[[Y:.*]] = "xt.select"(%{{.*}}, %[[R]], %[[X]])
// CHECK: return %[[Y]]
func.func @vectors(%x: tensor<8x6x4xf32>, %i: tensor<5x2xi64>, %u: tensor<5x4xf32>) -> tensor<8x6x4xf32> {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "none"} : (tensor<8x6x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<8x6x4xf32>
  return %y : tensor<8x6x4xf32>
}

// CHECK-LABEL: func.func @many
// CHECK: "xt.last_writers"(%{{.*}}) {axis = 0 : i64, shape = [1048576]}
func.func @many(%x: tensor<1048576xf32>, %i: tensor<4096x1xi64>, %u: tensor<4096xf32>) -> tensor<1048576xf32> {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "none"} : (tensor<1048576xf32>, tensor<4096x1xi64>, tensor<4096xf32>) -> tensor<1048576xf32>
  return %y : tensor<1048576xf32>
}

// What is combined is sorted by place.
// CHECK-LABEL: func.func @sums
// CHECK: %[[K:.*]]:2 = "xt.sort"
// CHECK: %[[S:.*]] = "xt.segment_starts"(%[[K]]#0) {count = [48]} : (tensor<90xi32>) -> tensor<49xi32>
// CHECK: "xt.combine_segments"(%{{.*}}, %[[S]], %[[K]]#1, %{{.*}}) {reduction = "add"}
func.func @sums(%x: tensor<48x4xf32>, %i: tensor<90x1xi64>, %u: tensor<90x4xf32>) -> tensor<48x4xf32> {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "add"} : (tensor<48x4xf32>, tensor<90x1xi64>, tensor<90x4xf32>) -> tensor<48x4xf32>
  return %y : tensor<48x4xf32>
}

// Few places get many rows each: by columns, in parts. A thread would follow thousands.
// CHECK-LABEL: func.func @few_places
// CHECK-NOT: "xt.sort"
// CHECK: %[[P:.*]] = "xt.combine_columns"(%{{.*}}) {{.*}} -> tensor<[[N:[0-9]+]]x32x8xf32>
// CHECK: "xt.reduce"(%{{.*}}) {{.*}}kind = "sum"
func.func @few_places(%x: tensor<32x8xf32>, %i: tensor<262144x1xi64>, %u: tensor<262144x8xf32>) -> tensor<32x8xf32> {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "add"} : (tensor<32x8xf32>, tensor<262144x1xi64>, tensor<262144x8xf32>) -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: %[[W:.*]] = "xt.last_writers"(%arg1) {axis = 1 : i64, shape = [4, 9]}
// CHECK: "xt.gather_elements"(%arg2, %[[W]]) {axis = 1 : i64}
func.func @rows(%x: tensor<4x9xf32>, %i: tensor<4x3xi64>, %u: tensor<4x3xf32>) -> tensor<4x9xf32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 1 : i64, reduction = "none"} : (tensor<4x9xf32>, tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<4x9xf32>
  return %y : tensor<4x9xf32>
}

// Updates of a part of the other dims stay, with narrow indices; so do the few that each thread can walk.
// CHECK-LABEL: func.func @stays
// CHECK: %[[I:.*]] = "xt.convert"(%{{.*}}) {dtype = i32
// CHECK: "xt.scatter_elements"(%{{.*}}, %[[I]], 
// CHECK: xt.scatter_nd
func.func @stays(%x: tensor<4x9xf32>, %i: tensor<2x3xi64>, %u: tensor<2x3xf32>, %j: tensor<3x1xi64>, %v: tensor<3x9xf32>) -> tensor<4x9xf32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 1 : i64, reduction = "none"} : (tensor<4x9xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<4x9xf32>
  %z = "xt.scatter_nd"(%y, %j, %v) {reduction = "mul"} : (tensor<4x9xf32>, tensor<3x1xi64>, tensor<3x9xf32>) -> tensor<4x9xf32>
  return %z : tensor<4x9xf32>
}

// Columns that shared memory holds are combined there; those that are too long are walked.
// CHECK-LABEL: func.func @columns_kept
// CHECK: "xt.combine_columns"({{.*}}) {columns = 8 : i64, held = 4096 : i64, reduction = "add"} : (tensor<1x4096x1024xf32>, tensor<1x4000x1024xi64>, tensor<1x4000x1024xf32>)
func.func @columns_kept(%x: tensor<4096x1024xf32>, %i: tensor<4000x1024xi64>, %u: tensor<4000x1024xf32>) -> tensor<4096x1024xf32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "add"} : (tensor<4096x1024xf32>, tensor<4000x1024xi64>, tensor<4000x1024xf32>) -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// CHECK-LABEL: func.func @few_of_columns
// CHECK: "xt.combine_columns"({{.*}}) {columns = 8 : i64, held = 4096 : i64, reduction = "none"}
func.func @few_of_columns(%x: tensor<4096x1024xf32>, %i: tensor<500x1024xi64>, %u: tensor<500x1024xf32>) -> tensor<4096x1024xf32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "none"} : (tensor<4096x1024xf32>, tensor<500x1024xi64>, tensor<500x1024xf32>) -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// CHECK-LABEL: func.func @last_dim
// CHECK: "xt.combine_columns"({{.*}}) {columns = 8 : i64, held = 128 : i64, reduction = "max"} : (tensor<600x100x1xf16>,
func.func @last_dim(%x: tensor<20x30x100xf16>, %i: tensor<20x30x50xi32>, %u: tensor<20x30x50xf16>) -> tensor<20x30x100xf16> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 2 : i64, reduction = "max"} : (tensor<20x30x100xf16>, tensor<20x30x50xi32>, tensor<20x30x50xf16>) -> tensor<20x30x100xf16>
  return %y : tensor<20x30x100xf16>
}

// Those that are too long, or of unknown size, are sorted by their place.
// CHECK-LABEL: func.func @long_columns
// CHECK-NOT: scatter_elements
// CHECK: "xt.sort"
// CHECK: "xt.combine_segments"
func.func @long_columns(%x: tensor<8000000x64xf32>, %i: tensor<100000x64xi64>, %u: tensor<100000x64xf32>) -> tensor<8000000x64xf32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "add"} : (tensor<8000000x64xf32>, tensor<100000x64xi64>, tensor<100000x64xf32>) -> tensor<8000000x64xf32>
  return %y : tensor<8000000x64xf32>
}

// Sums for two places: what names each is added up, in 64 parts and then those.
// CHECK-LABEL: @added
// CHECK-NOT: xt.sort
// CHECK: %[[P:.*]] = "xt.reduce"{{.*}} -> tensor<2x64x768xf32>
// CHECK: "xt.reduce"(%[[P]]) {{.*}} -> tensor<2x768xf32>
func.func @added(%x: tensor<2x768xf32>, %i: tensor<2048x1xi64>, %u: tensor<2048x768xf32>) -> tensor<2x768xf32> {
  %y = "xt.scatter_nd"(%x, %i, %u) {reduction = "add"} : (tensor<2x768xf32>, tensor<2048x1xi64>, tensor<2048x768xf32>) -> tensor<2x768xf32>
  return %y : tensor<2x768xf32>
}

// Sums that begin with zeros begin with what they are added to, and are rounded where they are combined.
// CHECK-LABEL: func.func @tied
// CHECK: %[[W:.*]] = "xt.convert"(%arg2)
// CHECK: %[[Y:.*]] = "xt.combine_segments"(%arg0, %{{.*}}, %{{.*}}, %[[W]]) {reduction = "add"} : (tensor<777x256xf16>, {{.*}}, tensor<512x256xf32>) -> tensor<777x256xf16>
// CHECK: return %[[Y]]
func.func @tied(%y: tensor<777x256xf16>, %i: tensor<512x1xi64>, %u: tensor<512x256xf16>) -> tensor<777x256xf16> {
  %z = "xt.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %b = "xt.broadcast"(%z) {shape = [777, 256]} : (tensor<f32>) -> tensor<777x256xf32>
  %w = "xt.convert"(%u) {dtype = f32, saturate = false} : (tensor<512x256xf16>) -> tensor<512x256xf32>
  %s = "xt.scatter_nd"(%b, %i, %w) {reduction = "add"} : (tensor<777x256xf32>, tensor<512x1xi64>, tensor<512x256xf32>) -> tensor<777x256xf32>
  %n = "xt.convert"(%s) {dtype = f16, saturate = false} : (tensor<777x256xf32>) -> tensor<777x256xf16>
  %a = "xt.add"(%y, %n) : (tensor<777x256xf16>, tensor<777x256xf16>) -> tensor<777x256xf16>
  return %a : tensor<777x256xf16>
}

// CHECK-LABEL: func.func @one_number
// CHECK: %[[Z:.*]] = "xt.constant"() {value = dense<1.000000e+00> : tensor<1x1xf32>}
// CHECK: "xt.combine_segments"(%[[Z]], {{.*}} {reduction = "mul"} : (tensor<1x1xf32>, {{.*}} -> tensor<777x256xf32>
func.func @one_number(%i: tensor<512x1xi64>, %u: tensor<512x256xf32>) -> tensor<777x256xf32> {
  %z = "xt.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %b = "xt.broadcast"(%z) {shape = [777, 256]} : (tensor<f32>) -> tensor<777x256xf32>
  %s = "xt.scatter_nd"(%b, %i, %u) {reduction = "mul"} : (tensor<777x256xf32>, tensor<512x1xi64>, tensor<512x256xf32>) -> tensor<777x256xf32>
  return %s : tensor<777x256xf32>
}

// A long column is cut into parts, and padded by what changes nothing: a workgroup for each of them.
// CHECK-LABEL: func.func @histogram
// CHECK: %[[U:.*]] = "xt.pad"(%{{.*}}) {{.*}}value = 0.0
// CHECK: "xt.combine_columns"({{.*}}) {columns = 8 : i64, held = 64 : i64, reduction = "add"} : (tensor<[[P:[0-9]+]]x64x1xi32>, tensor<[[P]]x{{[0-9]+}}x1xi64>
// CHECK: "xt.reduce"(%{{.*}}) {axes = [1], {{.*}}kind = "sum"
// CHECK: "xt.add"(%arg0,
func.func @histogram(%x: tensor<64xi32>, %i: tensor<1000003xi64>, %u: tensor<1000003xi32>) -> tensor<64xi32> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "add"} : (tensor<64xi32>, tensor<1000003xi64>, tensor<1000003xi32>) -> tensor<64xi32>
  return %y : tensor<64xi32>
}

// How many updates there are is the run's to know: those of few places are combined by columns, the rest is sorted.
// CHECK-LABEL: func.func @counted_by_the_run
// CHECK: "xt.combine_columns"
// CHECK-NOT: scatter_elements
// CHECK: "xt.combine_segments"
// CHECK-NOT: scatter_nd
// CHECK: "xt.combine_segments"
func.func @counted_by_the_run(%x: tensor<100xf32>, %i: tensor<?xi64, ["n"]>, %u: tensor<?xf32, ["n"]>, %b: tensor<?x100xf32, ["b", 100]>, %j: tensor<?x?xi64, ["b", "m"]>, %v: tensor<?x?xf32, ["b", "m"]>, %w: tensor<100x9xf32>, %n: tensor<?x9xf32, ["n", 9]>) -> (tensor<100xf32>, tensor<?x100xf32, ["b", 100]>, tensor<100x9xf32>) {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "add"} : (tensor<100xf32>, tensor<?xi64, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<100xf32>
  %z = "xt.scatter_elements"(%b, %j, %v) {axis = 1 : i64, reduction = "add"} : (tensor<?x100xf32, ["b", 100]>, tensor<?x?xi64, ["b", "m"]>, tensor<?x?xf32, ["b", "m"]>) -> tensor<?x100xf32, ["b", 100]>
  %k = "xt.reshape"(%i) {shape = ["n", 1]} : (tensor<?xi64, ["n"]>) -> tensor<?x1xi64, ["n", 1]>
  %q = "xt.scatter_nd"(%w, %k, %n) {reduction = "add"} : (tensor<100x9xf32>, tensor<?x1xi64, ["n", 1]>, tensor<?x9xf32, ["n", 9]>) -> tensor<100x9xf32>
  return %y, %z, %q : tensor<100xf32>, tensor<?x100xf32, ["b", 100]>, tensor<100x9xf32>
}

// -----
// Updates that are not known to be as wide as what they go to: nothing is read for a place beside them.
// CHECK-LABEL: func.func @unknown_width(
// CHECK-NOT: xt.gather_elements
// CHECK: return
func.func @unknown_width(%x: tensor<8x?xf32, [8, "w"]>, %i: tensor<?x?xi64, ["n", "m"]>, %u: tensor<?x?xf32, ["n", "m"]>) -> tensor<8x?xf32, [8, "w"]> {
  %y = "xt.scatter_elements"(%x, %i, %u) {axis = 0 : i64, reduction = "none"} : (tensor<8x?xf32, [8, "w"]>, tensor<?x?xi64, ["n", "m"]>, tensor<?x?xf32, ["n", "m"]>) -> tensor<8x?xf32, [8, "w"]>
  return %y : tensor<8x?xf32, [8, "w"]>
}
