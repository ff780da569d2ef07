// Every dumped stage goes on to the same model, also by way of xcc-opt.
// RUN: rm -rf %t && mkdir -p %t
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %s --chip=x86-64-v3 -o %t/m.xcm --dump-stages=%t/stages 2>&1 | filecheck %s --check-prefix=DONE
// RUN: filecheck %s --check-prefix=KERNELS < %t/stages/01-kernels.mlir
// RUN: filecheck %s --check-prefix=LINALG < %t/stages/02-linalg.mlir
// RUN: filecheck %s --check-prefix=VECTOR < %t/stages/04-vector.mlir
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/01-kernels.mlir --chip=x86-64-v3 -o %t/1.xcm
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/04-vector.mlir --chip=x86-64-v3 -o %t/3.xcm
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/06-llvm.mlir --chip=x86-64-v3 -o %t/5.xcm
// RUN: filecheck %s --check-prefix=MEMORY < %t/stages/07-memory.mlir
// RUN: filecheck %s --check-prefix=HOST < %t/stages/08-host.mlir
// RUN: sed 's/"result 0"/"own"/' %t/stages/07-memory.mlir > %t/edited.mlir
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/edited.mlir --chip=x86-64-v3 -o %t/6.xcm --dump-stages=%t/edited
// RUN: filecheck %s --check-prefix=EDITED < %t/edited/08-host.mlir
// RUN: %xcc_opt %t/stages/06-llvm.mlir --stage=memory -o - | filecheck %s --check-prefix=MEMORY
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/stages/08-host.mlir --chip=x86-64-v3 -o %t/7.xcm
// RUN: sed 's/"output", name = "y"/"output"/' %t/stages/08-host.mlir > %t/wrong.mlir
// RUN: not %xcc %t/wrong.mlir --chip=x86-64-v3 -o %t/8.xcm 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: %xcc_opt %t/stages/02-linalg.mlir --stage=schedule --chip=x86-64-v3 -o %t/schedule.mlir
// RUN: %xcc_opt %t/schedule.mlir --stage=vector --chip=x86-64-v3 -o %t/opt.mlir
// RUN: filecheck %s --check-prefix=VECTOR < %t/opt.mlir
// RUN: env XCC_CACHE_DIR=%t/cache %xcc %t/opt.mlir --chip=x86-64-v3 -o %t/o.xcm
// RUN: %xcc_run %t/o.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/1.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/3.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/5.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/6.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
// RUN: %xcc_run %t/7.xcm --random --dim n=7 --compare %t/m.xcm | filecheck %s --check-prefix=SAME
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
// MEMORY: xcc.stage = "memory"
// MEMORY: "xtv.dispatch"(%{{.*}}) {host.places = ["result 0"], kernel = @[[KERNEL:.*]], symbols
// MEMORY: module @[[KERNEL]] {
// HOST: xcc.stage = "host"
// HOST: %[[Y:.*]] = "host.buffer"() {kind = "output", name = "y", shape = ["n", 8]}
// HOST: "host.launch"(%{{.*}}, %[[Y]])
// HOST-NEXT: return %[[Y]]
// EDITED: %[[Y:.*]] = "host.buffer"() {kind = "output"
// EDITED: %[[T:.*]] = "host.buffer"() {kind = "temp"
// EDITED: "host.launch"(%{{.*}}, %[[T]])
// EDITED-NEXT: "host.copy"(%[[T]], %[[Y]])
// WRONG: error: loc({{.*}}): host.buffer: program.buffers[1]: output without a name
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
