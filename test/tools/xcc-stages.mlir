// Every dumped stage goes on to the same model, also by way of xcc-opt.
// RUN: rm -rf %t && mkdir -p %t
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %s --chip=x86-64-v3 -o %t/m.xcm --dump-stages=%t/stages 2>&1 | filecheck %s --check-prefix=DONE
// RUN: filecheck %s --check-prefix=KERNELS < %t/stages/01-kernels.mlir
// RUN: filecheck %s --check-prefix=LINALG < %t/stages/02-linalg.mlir
// RUN: filecheck %s --check-prefix=VECTOR < %t/stages/03-vector.mlir
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/01-kernels.mlir --chip=x86-64-v3 -o %t/1.xcm
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/03-vector.mlir --chip=x86-64-v3 -o %t/3.xcm
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/05-llvm.mlir --chip=x86-64-v3 -o %t/5.xcm
// RUN: %xcc_opt %t/stages/02-linalg.mlir --stage=vector --chip=x86-64-v3 -o %t/opt.mlir
// RUN: filecheck %s --check-prefix=VECTOR < %t/opt.mlir
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/opt.mlir --chip=x86-64-v3 -o %t/o.xcm
// RUN: %xcc_run %t/o.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/1.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/3.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/5.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc %s --emit=linalg | filecheck %s --check-prefix=LINALG
// RUN: %xcc_run %t/m.xcm --info | filecheck %s --check-prefix=INFO

// DONE: xcc: {{.*}}xcc-stages.mlir for cpu {{.*}} -> {{.*}}m.xcm: {{.*}} 1 kernel, {{.*}} s
// KERNELS: module attributes {xcc.stage = "kernels"}
// KERNELS: dispatch
// LINALG: module attributes {xcc.stage = "linalg"}
// LINALG: module @[[KERNEL:.*]] {
// LINALG: func.func private @[[KERNEL]]
// LINALG: linalg.generic
// VECTOR: xcc.stage = "vector"
// VECTOR: scf.forall
// SAME: y: f32[7, 8]
// SAME: same  y: largest difference
// INFO: inputs:
// INFO-NEXT: x: f32[n, 8]
// INFO-NEXT: outputs:
// INFO-NEXT: y: f32[n, 8]

func.func @main(%x: tensor<?x8xf32, ["n", 8]> {xt.name = "x"}) -> (tensor<?x8xf32, ["n", 8]> {xt.name = "y"}) {
  %0 = "xt.exp"(%x) : (tensor<?x8xf32, ["n", 8]>) -> tensor<?x8xf32, ["n", 8]>
  %1 = "xt.reduce"(%0) {axes = [1], keepdims = true, kind = "sum"} : (tensor<?x8xf32, ["n", 8]>) -> tensor<?x1xf32, ["n", 1]>
  %2 = "xt.div"(%0, %1) : (tensor<?x8xf32, ["n", 8]>, tensor<?x1xf32, ["n", 1]>) -> tensor<?x8xf32, ["n", 8]>
  return %2 : tensor<?x8xf32, ["n", 8]>
}
