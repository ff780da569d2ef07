// A slot for each stage of what is copied asynchronously, two for what waits in registers. Where there is less memory, fewer
// stages; where two find no room, no attribute is left and nothing runs ahead.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory" | filecheck %s --check-prefixes=CHECK,AMD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory{bytes=80000}" | filecheck %s --check-prefixes=CHECK,THREE
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory{bytes=40000}" | filecheck %s --check-prefixes=CHECK,NONE
// CHECK: vector.contract
// SM90-SAME: xcc.staged = [{load = "async", {{.*}}, offset = 0 : i64, slots = 4 : i64}, {{{.*}}, offset = 32768 : i64, slots = 4 : i64}]
// AMD-SAME: xcc.staged = [{load = "registers", {{.*}}, offset = 0 : i64, slots = 2 : i64}, {{{.*}}, offset = 16384 : i64, slots = 2 : i64}]
// THREE-SAME: xcc.staged = [{load = "async", {{.*}}, offset = 0 : i64, slots = 3 : i64}, {{{.*}}, offset = 24576 : i64, slots = 3 : i64}]
// NONE-NOT: xcc.staged
// CHECK: scf.yield
// SM90-NEXT: } {xcc.in_flight = 1 : i64
// NONE-NOT: xcc.stages
