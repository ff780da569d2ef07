// RUN: %xcc_opt %s --pass-pipeline="peel-tails, tile" --split-input-file | filecheck %s

// The row's maximum and sum are computed once a row, before the loop over its columns; the last 8 columns are masked.
// CHECK-LABEL: func.func private @softmax(
// CHECK-SAME: %[[X:.*]]: memref<?x1000xf32>, %[[OUT:.*]]: memref<?x1000xf32>, %[[N:.*]]: index)
// CHECK: scf.forall (%[[CHUNK:.*]]) = (0) to (%[[N]]) step (8)
// CHECK: scf.for %[[ROW:.*]] = %[[CHUNK]] to %{{.*}} step
// CHECK: scf.for %{{.*}} = %{{.*}} to %c992 step %c32 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<32xf32>)
// CHECK: arith.maximumf %{{.*}}, %[[ACC]] : vector<32xf32>
// CHECK: %[[MASK:.*]] = vector.create_mask %c8 : vector<32xi1>
// CHECK: %[[MAX:.*]] = vector.multi_reduction <maximumf>, %{{.*}} [0] : vector<32xf32> to f32
// CHECK: %[[SUM:.*]] = vector.multi_reduction <add>, %{{.*}} [0] : vector<32xf32> to f32
// CHECK: scf.for
// CHECK: arith.divf
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]][%[[ROW]], %{{.*}}] {in_bounds = [true]}
// CHECK: vector.transfer_write %{{.*}}, %[[OUT]][%[[ROW]], %c992], %[[MASK]]
#m=affine_map<(d0,d1)->(d0,d1)>
#r=affine_map<(d0,d1)->(d0)>
func.func private @softmax(%x: tensor<?x1000xf32>, %d0: index) -> tensor<?x1000xf32> attributes {xt.kernel, xt.symbols=["d0"], xt.arg_dims=[["d0",1000]], xt.result_dims=[["d0",1000]],
  xcc.config = {block=array<i64: 8, 0>, vector=array<i64: 1, 32>, order=array<i64: 0, 1>, reduce=[array<i64: 32>, array<i64: 32>], tail="peel", access="rows", parallel=true}} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty(%d0) : tensor<?xf32>
  %e2 = tensor.empty(%d0) : tensor<?x1000xf32>
  %f = linalg.fill ins(%ninf: f32) outs(%e1: tensor<?xf32>) -> tensor<?xf32>
  %mx = linalg.generic {indexing_maps=[#m,#r], iterator_types=["parallel","reduction"]} ins(%x: tensor<?x1000xf32>) outs(%f: tensor<?xf32>) {
   ^bb0(%a: f32, %o: f32):
     %s = arith.maximumf %a, %o : f32
     linalg.yield %s : f32 } -> tensor<?xf32>
  %ex = linalg.generic {indexing_maps=[#m,#r,#m], iterator_types=["parallel","parallel"]} ins(%x,%mx: tensor<?x1000xf32>,tensor<?xf32>) outs(%e2: tensor<?x1000xf32>) {
   ^bb0(%a: f32, %b: f32, %o: f32):
     %s = arith.subf %a, %b : f32
     %t = math.exp %s : f32
     linalg.yield %t : f32 } -> tensor<?x1000xf32>
  %g = linalg.fill ins(%zero: f32) outs(%e1: tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps=[#m,#r], iterator_types=["parallel","reduction"]} ins(%ex: tensor<?x1000xf32>) outs(%g: tensor<?xf32>) {
   ^bb0(%a: f32, %o: f32):
     %s = arith.addf %a, %o : f32
     linalg.yield %s : f32 } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps=[#m,#r,#m], iterator_types=["parallel","parallel"]} ins(%ex,%sum: tensor<?x1000xf32>,tensor<?xf32>) outs(%e2: tensor<?x1000xf32>) {
   ^bb0(%a: f32, %b: f32, %o: f32):
     %s = arith.divf %a, %b : f32
     linalg.yield %s : f32 } -> tensor<?x1000xf32>
  return %y : tensor<?x1000xf32>
}

// -----

// A register tile of 14x32 accumulators over a scalar K loop; rows that are left over go by a third of those, by two and one by one.
// CHECK-LABEL: func.func private @matmul(
// CHECK: scf.forall (%[[J:.*]], %[[I:.*]]) = (0, 0) to (3072, %{{.*}}) step (128, 56)
// CHECK: scf.for %[[COL:.*]] = %[[J]]
// CHECK: scf.for %[[ROW:.*]] = %[[I]] to %[[MIDDLE:.*]] step %c14
// CHECK: %[[C:.*]] = scf.for %[[K:.*]] = %c0 to %c768 step %c1 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<14x32xf32>)
// CHECK: vector.transfer_read %{{.*}}[%[[ROW]], %[[K]]]{{.*}} vector<14xf32>
// CHECK: vector.transfer_read %{{.*}}[%[[K]], %[[COL]]]{{.*}} vector<32xf32>
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[ACC]] : vector<14x32xf32>
// CHECK: arith.addf %[[C]]
// CHECK: arith.maximumf
// CHECK: vector.transfer_write {{.*}} vector<14x32xf32>
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %[[FOURS:.*]] step %c4
// CHECK: vector.transfer_write {{.*}} vector<4x32xf32>
// CHECK: scf.for %{{.*}} = %[[FOURS]] to %[[TWOS:.*]] step %c2
// CHECK: vector.transfer_write {{.*}} vector<2x32xf32>
// CHECK: scf.for %{{.*}} = %[[TWOS]] to %{{.*}} step %c1
// CHECK: vector.transfer_write {{.*}} vector<32xf32>
#m=affine_map<(d0,d1)->(d0,d1)>
#r=affine_map<(d0,d1)->(d0)>
func.func private @matmul(%a: tensor<?x768xf32>, %b: tensor<768x3072xf32>, %bias: tensor<3072xf32>, %d0: index) -> tensor<?x3072xf32> attributes {xt.kernel, xt.symbols=["d0"], xt.arg_dims=[["d0",768],[768,3072],[3072]], xt.result_dims=[["d0",3072]],
  xcc.config = {block=array<i64: 56, 128>, vector=array<i64: 14, 32>, order=array<i64: 1, 0>, reduce=[array<i64: 1>], tail="peel", access="rows", parallel=true}} {
  %zero = arith.constant 0.0 : f32
  %e2 = tensor.empty(%d0) : tensor<?x3072xf32>
  %f = linalg.fill ins(%zero: f32) outs(%e2: tensor<?x3072xf32>) -> tensor<?x3072xf32>
  %mm = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d2)>,affine_map<(d0,d1,d2)->(d2,d1)>,affine_map<(d0,d1,d2)->(d0,d1)>], iterator_types=["parallel","parallel","reduction"]} ins(%a,%b: tensor<?x768xf32>,tensor<768x3072xf32>) outs(%f: tensor<?x3072xf32>) {
   ^bb0(%x: f32, %y: f32, %o: f32):
     %p = arith.mulf %x, %y : f32
     %s = arith.addf %p, %o : f32
     linalg.yield %s : f32 } -> tensor<?x3072xf32>
  %y = linalg.generic {indexing_maps=[#m,affine_map<(d0,d1)->(d1)>,#m], iterator_types=["parallel","parallel"]} ins(%mm,%bias: tensor<?x3072xf32>,tensor<3072xf32>) outs(%e2: tensor<?x3072xf32>) {
   ^bb0(%x: f32, %b2: f32, %o: f32):
     %s = arith.addf %x, %b2 : f32
     %z = arith.maximumf %s, %zero : f32
     linalg.yield %z : f32 } -> tensor<?x3072xf32>
  return %y : tensor<?x3072xf32>
}

// -----

// The 7 rows behind the last whole tile are one tile, of the last chunk alone.
// CHECK-LABEL: func.func private @rest(
// CHECK: scf.forall (%[[J:.*]], %[[I:.*]]) = (0, 0) to (64, 49) step (32, 28)
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: scf.for %{{.*}} = %[[I]] to %[[MIDDLE:.*]] step %c14
// CHECK: -> (vector<14x32xf32>)
// CHECK: scf.for %{{.*}} = %[[MIDDLE]] to %[[END]] step %c7
// CHECK: -> (vector<7x32xf32>)
// CHECK-NOT: scf.for
// CHECK: return
func.func private @rest(%a: tensor<49x8xf32>, %b: tensor<8x64xf32>) -> tensor<49x64xf32> attributes {xt.kernel, xt.symbols=[], xt.arg_dims=[[49,8],[8,64]], xt.result_dims=[[49,64]],
  xcc.config = {block=array<i64: 28, 32>, vector=array<i64: 14, 32>, order=array<i64: 1, 0>, reduce=[array<i64: 1>], tail="peel", access="rows", parallel=true}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<49x64xf32>
  %f = linalg.fill ins(%zero: f32) outs(%e: tensor<49x64xf32>) -> tensor<49x64xf32>
  %mm = linalg.generic {indexing_maps=[affine_map<(d0,d1,d2)->(d0,d2)>,affine_map<(d0,d1,d2)->(d2,d1)>,affine_map<(d0,d1,d2)->(d0,d1)>], iterator_types=["parallel","parallel","reduction"]} ins(%a,%b: tensor<49x8xf32>,tensor<8x64xf32>) outs(%f: tensor<49x64xf32>) {
   ^bb0(%x: f32, %y: f32, %o: f32):
     %p = arith.mulf %x, %y : f32
     %s = arith.addf %p, %o : f32
     linalg.yield %s : f32 } -> tensor<49x64xf32>
  return %mm : tensor<49x64xf32>
}

// -----

// All dims are walked together: one loop over the flat array.
// CHECK-LABEL: func.func private @pointwise(
// CHECK-SAME: %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, %[[N:.*]]: index)
// CHECK: %[[TOTAL:.*]] = arith.muli %c147, %[[N]]
// CHECK: scf.forall (%{{.*}}) = (0) to (%[[TOTAL]]) step (64)
// CHECK: scf.for
// CHECK: arith.addf %{{.*}} : vector<32xf32>
// CHECK: scf.for
// CHECK: vector.create_mask
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func private @pointwise(%x: tensor<?x3x7x7xf32>, %y: tensor<?x3x7x7xf32>, %d0: index) -> tensor<?x3x7x7xf32> attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [["d0", 3, 7, 7], ["d0", 3, 7, 7]], xt.result_dims = [["d0", 3, 7, 7]],
  xcc.config = {block = array<i64: 64>, vector = array<i64: 32>, order = array<i64: 0>, reduce = []}} {
  %e = tensor.empty(%d0) : tensor<?x3x7x7xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %y : tensor<?x3x7x7xf32>, tensor<?x3x7x7xf32>) outs(%e : tensor<?x3x7x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x3x7x7xf32>
  return %r : tensor<?x3x7x7xf32>
}

// -----

// A table of a kernel is memory of the module, without dims of 1.
// CHECK-LABEL: func.func private @table(
// CHECK: memref.get_global @[[TABLE:.*]] : memref<4xf32>
#every_row = affine_map<(d0, d1) -> (0, d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>
func.func private @table(%x: tensor<6x4xf32>) -> tensor<6x4xf32>
    attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[6, 4]], xt.result_dims = [[6, 4]],
  xcc.config = {block = array<i64: 1, 0>, vector = array<i64: 1, 2>, order = array<i64: 0, 1>, reduce = []}} {
  %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : tensor<1x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %y = linalg.generic {indexing_maps = [#same, #every_row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<6x4xf32>, tensor<1x4xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// -----

// A padded read: the clamped coordinates are scalars here, so rows stay contiguous reads.
// CHECK-LABEL: func.func private @pad(
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: vector.transfer_read %{{.*}} vector<16xf32>
// CHECK: arith.select
// CHECK-NOT: vector.gather
func.func private @pad(%x: tensor<9x16xf32>) -> tensor<11x16xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[9, 16]], xt.result_dims = [[11, 16]],
  xcc.config = {block = array<i64: 1, 0>, vector = array<i64: 1, 16>, order = array<i64: 0, 1>, reduce = []}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<11x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<11x16xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = arith.subi %i, %c1 : index
    %low = arith.maxsi %at, %c0 : index
    %in = arith.minsi %low, %c8 : index
    %v = tensor.extract %x[%in, %j] : tensor<9x16xf32>
    %inside = arith.cmpi eq, %at, %in : index
    %s = arith.select %inside, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<11x16xf32>
  return %r : tensor<11x16xf32>
}

// -----

// Padded rows of bytes: a tile that is inside is read whole; of another what is inside is read under a mask, and the padding is what
// lanes outside of it get.
// CHECK-LABEL: func.func private @pad_columns(
// CHECK-SAME: %[[X:.*]]: memref<9x?xi8>, %{{.*}}, %[[N:.*]]: index)
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}} : vector<16xindex>
// CHECK: %[[END:.*]] = arith.addi %[[AT:.*]], %c15
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[AT]], %[[N]] : index
// CHECK: %[[LAST:.*]] = arith.cmpi ult, %[[END]], %[[N]] : index
// CHECK: %[[WHOLE:.*]] = arith.andi %[[FIRST]], %[[LAST]] : i1
// CHECK: scf.if %[[WHOLE]]
// CHECK: vector.transfer_read %{{[a-z_0-9]*}}[%{{[a-z_0-9]*}}], %c2_i8 {
// CHECK: else
// CHECK: vector.transfer_read %{{.*}}, %c2_i8, %[[INSIDE]]
// CHECK-NOT: memref.load
// CHECK-NOT: arith.select
func.func private @pad_columns(%x: tensor<9x?xi8>, %n: index) -> tensor<9x32xi8> attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [[9, "d0"]], xt.result_dims = [[9, 32]],
  xcc.config = {block = array<i64: 1, 0>, vector = array<i64: 1, 16>, order = array<i64: 0, 1>, reduce = []}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %fill = arith.constant 2 : i8
  %last = arith.subi %n, %c1 : index
  %e = tensor.empty() : tensor<9x32xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<9x32xi8>) {
  ^bb0(%o: i8):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = arith.subi %j, %c2 : index
    %inside = arith.cmpi ult, %at, %n : index
    %high = arith.minsi %at, %last : index
    %in = arith.maxsi %high, %c0 : index
    %v = tensor.extract %x[%i, %in] : tensor<9x?xi8>
    %s = arith.select %inside, %v, %fill : i8
    linalg.yield %s : i8
  } -> tensor<9x32xi8>
  return %r : tensor<9x32xi8>
}

// -----

// Where a test says something else, the place is clamped: the row's last element may be wanted.
// CHECK-LABEL: func.func private @other_columns(
// CHECK-SAME: %[[X:.*]]: memref<9x?xf32>, %{{.*}}, %[[N:.*]]: index)
// CHECK: memref.load
// CHECK: arith.select
func.func private @other_columns(%x: tensor<9x?xf32>, %n: index) -> tensor<9x32xf32> attributes {xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [[9, "d0"]], xt.result_dims = [[9, 32]],
  xcc.config = {block = array<i64: 1, 0>, vector = array<i64: 1, 16>, order = array<i64: 0, 1>, reduce = []}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %fill = arith.constant 2.0 : f32
  %last = arith.subi %n, %c1 : index
  %e = tensor.empty() : tensor<9x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<9x32xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = arith.subi %j, %c2 : index
    %inside = arith.cmpi ult, %at, %c2 : index
    %high = arith.minsi %at, %last : index
    %in = arith.maxsi %high, %c0 : index
    %v = tensor.extract %x[%i, %in] : tensor<9x?xf32>
    %s = arith.select %inside, %v, %fill : f32
    linalg.yield %s : f32
  } -> tensor<9x32xf32>
  return %r : tensor<9x32xf32>
}

// -----

// A tile of 6 columns in a vector of 8: lanes from there on are off, and behind the last column, too.
// CHECK-LABEL: func.func private @columns_off(
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (8, 15) step (4, 6)
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[J]]
// CHECK: %[[ON:.*]] = arith.minsi %{{.*}}, %[[LEFT]]
// CHECK: vector.create_mask %{{.*}}, %[[ON]] : vector<4x8xi1>
func.func private @columns_off(%x: tensor<15x8xf32>) -> tensor<8x15xf32> attributes {xt.kernel, xt.symbols = [], xt.arg_dims = [[15, 8]], xt.result_dims = [[8, 15]],
    xcc.config = {block = array<i64: 4, 6>, vector = array<i64: 4, 8>, order = array<i64: 0, 1>, reduce = [], tail = "mask", access = "gather", parallel = true}} {
  %e = tensor.empty() : tensor<8x15xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<15x8xf32>) outs(%e : tensor<8x15xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x15xf32>
  return %y : tensor<8x15xf32>
}

// -----

// Columns of a panel are all there, also behind the result's last one: no lane is off where they are read, some are where the
// result is stored.
// CHECK-LABEL: func.func private @panels(
// CHECK-SAME: %[[X:.*]]: memref<?x8xf32>, %[[W:.*]]: memref<?x8x16xf32>, %[[Y:.*]]: memref<?x?xf32>
// CHECK-NOT: vector.create_mask
// CHECK: vector.transfer_read %[[W]]
// CHECK: %[[ON:.*]] = vector.create_mask
// CHECK: vector.transfer_write %{{.*}}, %[[Y]]{{.*}}, %[[ON]]
func.func private @panels(%x: tensor<?x8xf32>, %w: tensor<?x8x16xf32>, %m: index, %p: index, %n: index) -> tensor<?x?xf32>
    attributes {xt.kernel, xt.symbols = ["d0", "d1", "d2"], xt.arg_dims = [["d0", 8], ["d1", 8, 16]], xt.result_dims = [["d0", "d2"]],
    xcc.config = {block = array<i64: 1, 16>, vector = array<i64: 1, 16>, order = array<i64: 1, 0>, reduce = [array<i64: 1>]}} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x8xf32>, tensor<?x8x16xf32>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    %s = arith.addf %o, %r : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
