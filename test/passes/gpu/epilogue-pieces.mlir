// What is computed from the product waits for the store, which takes 16 registers at a time; loads are asked for four pieces ahead,
// where LLVM does not do so itself.
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, epilogue-pieces" | filecheck %s --check-prefixes=CHECK,SM90
// RUN: %xcc_opt %S/Inputs/product.mlir --target=amdgcn --chip=gfx942 "--pass-pipeline=assign-layouts, epilogue-pieces" | filecheck %s --check-prefixes=CHECK,AMD
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, epilogue-pieces{registers=8 ahead=1}" | filecheck %s --check-prefixes=CHECK,EIGHT
// RUN: %xcc_opt %S/Inputs/product.mlir --target=nvptx --chip=sm_90a "--pass-pipeline=assign-layouts, epilogue-pieces{registers=64}" | filecheck %s --check-prefixes=CHECK,WHOLE
// CHECK: scf.yield
// CHECK-NEXT: }
// SM90-NEXT: arith.truncf %{{.*}} {xcc.in_pieces,
// SM90-NEXT: vector.transfer_read {{.*}}xcc.in_pieces
// SM90-NEXT: arith.addf {{.*}}xcc.in_pieces
// SM90-NEXT: vector.transfer_write {{.*}}xcc.ahead = 4 : i64, {{.*}}xcc.pieces = 16 : i64}
// AMD-NEXT: arith.truncf %{{.*}} {xcc.in_pieces,
// AMD-NEXT: vector.transfer_read {{.*}}xcc.in_pieces
// AMD-NEXT: arith.addf {{.*}}xcc.in_pieces
// AMD-NEXT: vector.transfer_write {{.*}}], xcc.pieces = 16 : i64}
// EIGHT: vector.transfer_write {{.*}}xcc.ahead = 1 : i64, {{.*}}xcc.pieces = 8 : i64}
// WHOLE-NOT: pieces
