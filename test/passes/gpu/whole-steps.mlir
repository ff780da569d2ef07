// Whole steps have a loop of their own, where masks ask for what there is along the loop; not where steps are known to be whole,
// nor where loads wait in registers.
// RUN: %xcc_opt %S/Inputs/masked-product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, whole-steps" | filecheck %s --check-prefixes=CHECK,WHOLE
// RUN: %xcc_opt %S/Inputs/masked-product.mlir --target=nvptx --chip=sm_80 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, whole-steps" | filecheck %s --check-prefixes=CHECK,WHOLE
// RUN: %xcc_opt %S/Inputs/product-of-steps.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, whole-steps" | filecheck %s --check-prefixes=CHECK,NONE
// RUN: %xcc_opt %S/Inputs/masked-product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, stage-operands, pipeline-loads, overlap-products, plan-shared-memory, peel-steps, whole-steps" | filecheck %s --check-prefixes=CHECK,NONE
// CHECK: scf.yield
// WHOLE-NEXT: } {{{.*}}xcc.whole}
// NONE-NOT: xcc.whole

// The first loop ends two steps, which are copied ahead, before the last step that is whole, and compares rows alone.
// RUN: %xcc_opt %S/Inputs/masked-product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse, loop-invariant-code-motion)" | filecheck %s --check-prefix=CODE
// CODE: %[[COUNT:.*]] = arith.divui %{{.*}}, %c64
// CODE: arith.subi %[[COUNT]], %c2
// CODE: arith.minsi
// CODE: %[[MIDDLE:.*]] = arith.muli %{{.*}}, %c64
// CODE: scf.for %{{.*}} = %c0 to %[[MIDDLE]] step %c64
// CODE-NOT: arith.cmpi slt
// CODE: scf.yield
// CODE: scf.for %{{.*}} = %[[MIDDLE]] to %{{.*}} step %c64
// CODE: arith.cmpi slt
// CODE: scf.yield

// Of causal attention a step is whole where its last key comes before the first query, too; what is copied for the next
// one asks for keys alone. All steps are in the first loop where all keys are there.
// RUN: %xcc_opt %S/Inputs/causal.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, %decisions, distribute, mlir(canonicalize, cse, loop-invariant-code-motion)" | filecheck %s --check-prefix=CAUSAL
// CAUSAL: %[[EVERY:.*]] = arith.cmpi sge, %[[FULL:.*]], %[[STEPS:.*]] : index
// CAUSAL: %[[KEYS:.*]] = arith.select %[[EVERY]], %[[STEPS]], %{{.*}} : index
// CAUSAL: %[[COUNT:.*]] = arith.minsi %[[KEYS]], %{{.*}} : index
// CAUSAL: %[[MIDDLE:.*]] = arith.muli %[[COUNT]], %c64
// CAUSAL: scf.for %{{.*}} = %c0 to %[[MIDDLE]] step %c64
// CAUSAL-NOT: arith.cmpi sge, %{{.*}} : vector
// CAUSAL: scf.yield
// CAUSAL: scf.for %{{.*}} = %[[MIDDLE]] to %{{.*}} step %c64
// CAUSAL: arith.cmpi sge, %{{.*}} : vector<32xindex>
// CAUSAL: scf.yield
