// Eight steps: the last two have nothing to copy, two being copied ahead; with loads in registers the loop is unrolled by its two
// slots, and the last two of a small even number of steps stand behind it.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps" | filecheck %s --check-prefixes=CHECK,AMD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps{few=4}" | filecheck %s --check-prefixes=CHECK,MANY
// Where the run alone knows how many steps there are, as many as are copied ahead: of fewer, the others add zeros. Loads in
// registers have none that stand behind.
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps" | filecheck %s --check-prefixes=CHECK,SM80
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps" | filecheck %s --check-prefixes=CHECK,HELD
// CHECK: scf.yield
// SM80-NEXT: } {{{.*}}xcc.peeled = 3 : i64, xcc.stages = 4 : i64}
// HELD-NEXT: } {{{.*}}"], xcc.stages = 4 : i64}
// SM90-NEXT: } {{{.*}}xcc.peeled = 2 : i64, xcc.stages = 4 : i64}
// AMD-NEXT: } {{{.*}}xcc.peeled = 2 : i64, xcc.stages = 4 : i64, xcc.unroll = 2 : i64}
// MANY-NEXT: } {{{.*}}"], xcc.stages = 4 : i64, xcc.unroll = 2 : i64}
