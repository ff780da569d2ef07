// xcc-run: files in and out, comparison, the interpreter on both vendors' kernels.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %xcc %s --chip=x86-64-v3 -o %t/cpu.xcm
// RUN: %xcc_run %t/cpu.xcm --random 7 --dim n=5 -o %t/out.npz | filecheck %s
// RUN: %xcc_run %t/cpu.xcm --random 7 --dim n=5 --compare %t/out.npz | filecheck %s --check-prefix=EXACT
// RUN: not %xcc_run %t/cpu.xcm --random 8 --dim n=5 --compare %t/out.npz | filecheck %s --check-prefix=OTHER
// RUN: %xcc %s -o %t/nv.xcm --target=nvptx --keep-ir
// RUN: %xcc_run %t/nv.xcm --interpret --random 7 --dim n=5 --compare %t/out.npz | filecheck %s --check-prefix=SAME
// RUN: %xcc %s -o %t/amd.xcm --target=amdgcn --keep-ir
// RUN: %xcc_run %t/amd.xcm --interpret --random 7 --dim n=5 --compare %t/out.npz | filecheck %s --check-prefix=SAME

// CHECK: y: f32[5, 8] min {{.*}} max {{.*}} mean
// EXACT: same  y: largest difference 0 at
// OTHER: DIFFERENT  y: {{.*}} are outside the tolerance
// SAME: same  y: largest difference

func.func @main(%x: tensor<?x8xf32, ["n", 8]> {xt.name = "x"}) -> (tensor<?x8xf32, ["n", 8]> {xt.name = "y"}) {
  %0 = "xt.exp"(%x) : (tensor<?x8xf32, ["n", 8]>) -> tensor<?x8xf32, ["n", 8]>
  %1 = "xt.reduce"(%0) {axes = [1], keepdims = true, kind = "sum"} : (tensor<?x8xf32, ["n", 8]>) -> tensor<?x1xf32, ["n", 1]>
  %2 = "xt.div"(%0, %1) : (tensor<?x8xf32, ["n", 8]>, tensor<?x1xf32, ["n", 1]>) -> tensor<?x8xf32, ["n", 8]>
  return %2 : tensor<?x8xf32, ["n", 8]>
}
