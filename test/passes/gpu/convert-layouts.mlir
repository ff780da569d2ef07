// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=convert-layouts | filecheck %s
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, convert-layouts" | filecheck %s --check-prefix=AMD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, %decisions" | filecheck %s --check-prefix=STAGED

// Operands go to fragments through shared memory; not where the contraction reads them there.
// AMD-COUNT-2: builtin.unrealized_conversion_cast {{.*}} {xcc.exchange = {by = "shared", memory =
// STAGED-NOT: xcc.exchange

// Threads keep their elements.
// CHECK-LABEL: func.func @renamed(
// CHECK: builtin.unrealized_conversion_cast {{.*}} {xcc.exchange = {by = "registers"}, xcc.layout
func.func @renamed(%a: memref<8x32xf32>, %o: memref<8x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %x = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"]} : memref<8x32xf32>, vector<8x32xf32>
    %y = builtin.unrealized_conversion_cast %x : vector<8x32xf32> to vector<8x32xf32> {xcc.layout = ["tile=[8,32] register=[[0,2],[0,1]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"]}
    vector.transfer_write %y, %o[%c0, %c0] {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[0,2],[0,1]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"]} : vector<8x32xf32>, memref<8x32xf32>
  }
  return
}

// Warps keep theirs.
// CHECK-LABEL: func.func @moved(
// CHECK: builtin.unrealized_conversion_cast {{.*}} {xcc.exchange = {by = "shuffles"}, xcc.layout
func.func @moved(%a: memref<8x32xf32>, %o: memref<8x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %x = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"]} : memref<8x32xf32>, vector<8x32xf32>
    %y = builtin.unrealized_conversion_cast %x : vector<8x32xf32> to vector<8x32xf32> {xcc.layout = ["tile=[8,32] register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[4,0]]"]}
    vector.transfer_write %y, %o[%c0, %c0] {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[4,0]]"]} : vector<8x32xf32>, memref<8x32xf32>
  }
  return
}

// Elements change warps: shared memory, whose rows are as the reads want them.
// CHECK-LABEL: func.func @through(
// CHECK: builtin.unrealized_conversion_cast {{.*}} {xcc.exchange = {by = "shared", memory = "tile=[256] {{[^"]*}}"}, xcc.layout
func.func @through(%a: memref<8x32xf32>, %o: memref<8x32xf32>) attributes {xt.kernel, xcc.config = {gpu = {threads = 64 : i64}}} {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (1) {
    %x = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[1,0],[2,0]] warp=[[4,0]]"]} : memref<8x32xf32>, vector<8x32xf32>
    %y = builtin.unrealized_conversion_cast %x : vector<8x32xf32> to vector<8x32xf32> {xcc.layout = ["tile=[8,32] register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[4,0]] warp=[[0,16]]"]}
    vector.transfer_write %y, %o[%c0, %c0] {in_bounds = [true, true], xcc.layout = ["tile=[8,32] register=[[1,0],[2,0]] lane=[[0,1],[0,2],[0,4],[0,8],[4,0]] warp=[[0,16]]"]} : vector<8x32xf32>, memref<8x32xf32>
  }
  return
}
