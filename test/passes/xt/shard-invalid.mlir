// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 shard=y=tp:0}' 2>&1 | filecheck %s --check-prefix=DIVIDE
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=dp:2}' 2>&1 | filecheck %s --check-prefix=BATCH
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 shard=y:0}' 2>&1 | filecheck %s --check-prefix=WRITTEN
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 shard=z=tp:0}' 2>&1 | filecheck %s --check-prefix=NOBODY
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 shard=x=pp:0}' 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp}' 2>&1 | filecheck %s --check-prefix=MESH
// RUN: not %xcc_opt %s --pass-pipeline='shard{mesh=tp:2 rank=2}' 2>&1 | filecheck %s --check-prefix=RANK

// DIVIDE: shard 'y=tp:0': output 'y' is f32[3, 64], whose dim 0 is not known to divide among 2 ranks
// BATCH: axis dp: the first dim of the first input, 3, is not known to divide among 2 ranks
// WRITTEN: shard 'y:0': write PATTERN=AXIS:DIM, as in 'h.*.weight=tp:0', or PATTERN=whole
// NOBODY: shard 'z=tp:0': no input, output or weight is called so
// OTHER: shard 'x=pp:0': the mesh tp:2 has no axis 'pp'
// MESH: mesh 'tp': 'tp' is no axis; write NAME:SIZE, as in dp:2,tp:4
// RANK: rank 2: the mesh tp:2 has 2 ranks, from 0 on
func.func @main(%x: tensor<3x64xf32> {xt.name = "x"}) -> (tensor<3x64xf32> {xt.name = "y"}) {
  %y = "xt.exp"(%x) : (tensor<3x64xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
