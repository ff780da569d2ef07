// Two rows of tiles go together, or as many as the option says.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, group-tiles" | filecheck %s --check-prefixes=CHECK,TWO
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, group-tiles{rows=4}" | filecheck %s --check-prefixes=CHECK,FOUR
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (256, 256) step (64, 128)
// CHECK: vector.transfer_write
// TWO-NEXT: } {xcc.group = 2 : i64}
// FOUR-NEXT: } {xcc.group = 4 : i64}

// Later blocks of queries see more keys: they come first, those of 16 heads together.
// RUN: %xcc_opt %S/Inputs/causal.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, group-tiles" | filecheck %s --check-prefix=CAUSAL
// CAUSAL: scf.forall (%{{.*}}, %{{.*}}) in
// CAUSAL: vector.transfer_write
// CAUSAL-NEXT: } {xcc.descending = 1 : i64, xcc.group = 16 : i64
// RUN: %xcc_opt %S/Inputs/causal.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse)" | filecheck %s --check-prefix=ORDER
// ORDER: gpu.block_id
// ORDER: arith.muli %[[ROWS:.*]], %c16
// ORDER: %[[LAST:.*]] = arith.subi %[[ROWS]], %c1
// ORDER: %[[AT:.*]] = arith.subi %[[LAST]], %{{.*}}
// ORDER: arith.muli %[[AT]], %c64
