// CDNA reads the fragments of the next instruction's k while one runs; RDNA in the order that LLVM chooses, but for tiles that leave
// no registers for two steps; NVIDIA's code generator orders reads itself.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, prefetch-fragments" | filecheck %s --check-prefix=CDNA
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx1100 "--pass-pipeline=assign-layouts, prefetch-fragments" | filecheck %s --check-prefix=RDNA
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx1100 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, plan-shared-memory, prefetch-fragments" | filecheck %s --check-prefix=NONE
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, prefetch-fragments" | filecheck %s --check-prefix=NONE
// CDNA: vector.contract {{.*}} {xcc.fragments = "ahead", xcc.layout
// RDNA: vector.contract {{.*}} {xcc.fragments = "in_turn", xcc.layout
// NONE-NOT: xcc.fragments
