// wgmma, which only adds to what the loop carries, runs on during the next step; MFMA gives its result when it is issued.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products" | filecheck %s --check-prefixes=CHECK,ON
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products" | filecheck %s --check-prefixes=CHECK,OFF
// CHECK: scf.yield
// ON-NEXT: } {xcc.in_flight = 1 : i64, {{.*}}xcc.stages = 4 : i64}
// OFF-NOT: in_flight
