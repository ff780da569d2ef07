// RUN: %xcc_opt %s "--pass-pipeline=common-bounds, mlir(canonicalize)" --target=nvptx --chip=sm_90a | filecheck %s

// Keys end at %n, and are hidden from a row on: one bound for each row.
// CHECK-LABEL: func.func @causal(
// CHECK: %[[LAST:.*]] = arith.addi %arg1, %c-1 : index
// CHECK: %[[N:.*]] = vector.broadcast %[[LAST]] : index to vector<64x1xindex>
// CHECK: %[[L:.*]] = arith.minsi %[[N]], %arg2 : vector<64x1xindex>
// CHECK: %[[WIDE:.*]] = vector.broadcast %[[L]] : vector<64x1xindex> to vector<64x128xindex>
// CHECK: %[[M:.*]] = arith.cmpi sle, %{{.*}}, %[[WIDE]] : vector<64x128xindex>
// CHECK-NOT: arith.andi
// CHECK: return %[[M]]
func.func @causal(%c: vector<1x128xindex>, %n: index, %r: vector<64x1xindex>) -> vector<64x128xi1> {
  %nw = vector.broadcast %n : index to vector<1x128xindex>
  %in = arith.cmpi slt, %c, %nw : vector<1x128xindex>
  %inw = vector.broadcast %in : vector<1x128xi1> to vector<64x128xi1>
  %cw = vector.broadcast %c : vector<1x128xindex> to vector<64x128xindex>
  %rw = vector.broadcast %r : vector<64x1xindex> to vector<64x128xindex>
  %before = arith.cmpi sge, %rw, %cw : vector<64x128xindex>
  %m = arith.andi %inw, %before : vector<64x128xi1>
  return %m : vector<64x128xi1>
}

// Of other positions, of bounds that both differ, and of unsigned ones each is compared.
// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-3: arith.andi
func.func @apart(%c: vector<64xindex>, %d: vector<64xindex>, %n: index, %r: vector<64xindex>, %s: vector<64xindex>) -> (vector<64xi1>, vector<64xi1>, vector<64xi1>) {
  %nw = vector.broadcast %n : index to vector<64xindex>
  %0 = arith.cmpi slt, %c, %nw : vector<64xindex>
  %1 = arith.cmpi slt, %d, %r : vector<64xindex>
  %2 = arith.cmpi slt, %c, %s : vector<64xindex>
  %3 = arith.cmpi slt, %c, %r : vector<64xindex>
  %4 = arith.cmpi ult, %c, %r : vector<64xindex>
  %a = arith.andi %0, %1 : vector<64xi1>
  %b = arith.andi %2, %3 : vector<64xi1>
  %e = arith.andi %0, %4 : vector<64xi1>
  return %a, %b, %e : vector<64xi1>, vector<64xi1>, vector<64xi1>
}

// A comparison of scalars, as of windows' coordinates that a whole tile shares, bounds no positions.
// CHECK-LABEL: func.func @scalars(
// CHECK: arith.andi
func.func @scalars(%c: vector<64xindex>, %i: index, %n: index, %r: vector<64xindex>) -> vector<64xi1> {
  %0 = arith.cmpi slt, %i, %n : index
  %in = vector.broadcast %0 : i1 to vector<64xi1>
  %1 = arith.cmpi slt, %c, %r : vector<64xindex>
  %m = arith.andi %in, %1 : vector<64xi1>
  return %m : vector<64xi1>
}
