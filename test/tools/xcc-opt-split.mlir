// RUN: %xcc_opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK-LABEL: func.func @first
func.func @first() { return }

// -----

// expected-error: does not reference a valid function
func.func @bad() {
  func.call @absent() : () -> ()
  return
}

// -----

// expected-error: expected non-function type
func.func @unparsable(

// -----

// CHECK: // -----
// CHECK-LABEL: func.func @last
func.func @last() { return }
