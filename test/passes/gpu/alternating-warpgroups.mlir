// Two warpgroups take turns where a second product multiplies what was computed of the first: a step's tiles have three slots,
// and two named barriers, to which each comes ahead of the wait of the other, stand in the place of one for all.
// RUN: %xcc_opt %S/Inputs/attention.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory" | filecheck %s --check-prefix=PLAN
// RUN: %xcc_opt %S/Inputs/attention.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory{bytes=200000}" | filecheck %s --check-prefix=LESS
// RUN: %xcc_opt %S/Inputs/attention.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, convert-layouts, distribute" | filecheck %s --check-prefix=CODE
// PLAN: vector.contract
// PLAN-SAME: slots = 3 : i64
// PLAN: vector.contract
// PLAN-SAME: slots = 3 : i64
// PLAN: xcc.in_flight = 1
// LESS: vector.contract
// LESS-SAME: slots = 2 : i64
// LESS-NOT: xcc.in_flight
// CODE: nvvm.barrier.arrive
// CODE: nvvm.barrier.arrive
// CODE: scf.for
// CODE-NOT: gpu.barrier
// CODE: nvvm.barrier id
// CODE: "xtg.wgmma"
// CODE: nvvm.cp.async.wait.group 0
// CODE: nvvm.barrier.arrive
// CODE: "xtg.wgmma_wait"
// CODE: "xtg.wgmma"
// CODE: nvvm.barrier id
// CODE: nvvm.cp.async.commit.group
// CODE: "xtg.wgmma_wait"
// CODE: nvvm.barrier.arrive
// CODE-NEXT: scf.yield
// CODE: nvvm.barrier id
// CODE: nvvm.barrier id
// CODE: gpu.barrier
