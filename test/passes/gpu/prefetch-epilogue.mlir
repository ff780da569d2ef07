// The residual is loaded in four of the loop's last steps, as the first four fill its slots; not where registers hold operands.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, epilogue-pieces, prefetch-epilogue" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, epilogue-pieces, prefetch-epilogue" | filecheck %s --check-prefixes=CHECK,NONE
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, epilogue-pieces, prefetch-epilogue{steps=2}" | filecheck %s --check-prefixes=CHECK,TWO
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, prefetch-epilogue" | filecheck %s --check-prefixes=CHECK,NONE
// In as many as are copied ahead, where the run alone knows how many steps there are.
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, epilogue-pieces, prefetch-epilogue" | filecheck %s --check-prefixes=CHECK,TWO
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: arith.truncf
// SM90-NEXT: vector.transfer_read {{.*}}xcc.in_pieces, {{.*}}xcc.prefetch = 4 : i64}
// TWO-NEXT: vector.transfer_read {{.*}}xcc.in_pieces, {{.*}}xcc.prefetch = 2 : i64}
// NONE-NOT: xcc.prefetch
