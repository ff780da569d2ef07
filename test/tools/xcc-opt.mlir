// RUN: %xcc_opt %s --pass-pipeline="mlir(canonicalize, cse)" --verify-each | filecheck %s
// RUN: %xcc_opt - --pass-pipeline="first: mlir(canonicalize); second: mlir(cse)" < %s | filecheck %s
// RUN: not %xcc_opt %s --pass-pipeline="no-such-pass" 2>&1 | filecheck %s --check-prefix=NOPASS
// RUN: not %xcc_opt %s --no-such-flag 2>&1 | filecheck %s --check-prefix=NOFLAG
// RUN: not %xcc_opt %t.absent 2>&1 | filecheck %s --check-prefix=NOFILE

// CHECK-LABEL: func.func @folds
func.func @folds() -> i32 {
  // CHECK: %[[C:.*]] = arith.constant 5 : i32
  // CHECK: return %[[C]]
  %a = arith.constant 2 : i32
  %b = arith.constant 3 : i32
  %c = arith.addi %a, %b : i32
  return %c : i32
}

// NOPASS: xcc-opt: error: there is no pass 'no-such-pass'
// NOFLAG: xcc-opt: error: unrecognized arguments: --no-such-flag
// NOFILE: xcc-opt: error: {{.*}}.absent: cannot be read: No such file or directory
