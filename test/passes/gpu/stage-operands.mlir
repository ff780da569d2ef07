// Both operands of a loop's product get a place in shared memory: rows of 128 bytes for the instruction of a warpgroup,
// in an order of its columns that lets threads hold neighbours of the result; the swizzle for MFMA. Without `stages` there is none.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands" | filecheck %s --check-prefixes=CHECK,AMD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a --pass-pipeline=assign-layouts | filecheck %s --check-prefix=BEFORE
// BEFORE: vector.contract {{.*}} {xcc.layout = [{{[^{]*}}], xcc.run = 8 : i64} : vector<64x64xf16>
// CHECK: scf.for
// CHECK: vector.contract
// SM90-SAME: xcc.staged = [{memory = "tile=[4096] dim0={{.*}}[2048]] dim1={{.*}}"}, {memory = "tile=[8192] dim0=[[72],[512],[1024],[144],[288],[2048],[4096]] dim1=[[1],[2],[4],[8],[16],[32]]"}]
// AMD-SAME: xcc.staged = [{memory = "tile=[4096] dim0={{.*}}[2048]] dim1={{.*}}"}, {memory = "tile=[8192] dim0=[[72],[144],[288],[512],[1024],[2048],[4096]] dim1=[[1],[2],[4],[8],[16],[32]]"}]
// CHECK-NOT: xcc.stages
