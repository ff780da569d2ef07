// Four stages: what has the form of asynchronous copies is copied so, on chips that have them; else it waits in registers.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads" | filecheck %s --check-prefixes=CHECK,ASYNC
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads" | filecheck %s --check-prefixes=CHECK,HELD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads{stages=3 asynchronous=false}" | filecheck %s --check-prefixes=CHECK,THREE
// CHECK: vector.contract
// ASYNC-SAME: xcc.staged = [{load = "async", memory = {{.*}}"}, {load = "async", memory =
// HELD-SAME: xcc.staged = [{load = "registers", memory = {{.*}}"}, {load = "registers", memory =
// THREE-SAME: xcc.staged = [{load = "registers", memory = {{.*}}"}, {load = "registers", memory =
// CHECK-NOT: slots
// CHECK: scf.yield
// ASYNC-NEXT: xcc.stages = 4 : i64}
// HELD-NEXT: xcc.stages = 4 : i64}
// THREE-NEXT: xcc.stages = 3 : i64}
