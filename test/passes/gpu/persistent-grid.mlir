// Three workgroups for eight tiles, where products run on and all is copied asynchronously; MFMA's tiles have a workgroup each.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, persistent-grid" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, persistent-grid" | filecheck %s --check-prefixes=CHECK,ALONE
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, plan-shared-memory, persistent-grid" | filecheck %s --check-prefixes=CHECK,ALONE
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, persistent-grid{workgroups=5}" | filecheck %s --check-prefixes=CHECK,FIVE
// Of a number of steps that the run alone knows, too.
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, persistent-grid" | filecheck %s --check-prefixes=CHECK,SM90
// CHECK: vector.transfer_write
// SM90-NEXT: } {xcc.persistent = 3 : i64}
// FIVE-NEXT: } {xcc.persistent = 5 : i64}
// ALONE-NEXT: }
// ALONE-NEXT: return
