// RUN: %xcc_opt %s --target=nvptx --chip=sm_90a --pass-pipeline=streamed-lines | filecheck %s
// RUN: %xcc_opt %s --target=nvptx --chip=sm_80 --pass-pipeline=streamed-lines | filecheck %s --check-prefix=OLD

// OLD-NOT: evict

gpu.module @k_gpu {
  // Loads at the index of a store get the hint, and their lines are released behind the stores; what all rows share does
  // not.
  // CHECK-LABEL: llvm.func @row(
  // CHECK-SAME: %[[X:[a-z0-9]+]]: !llvm.ptr, %[[W:[a-z0-9]+]]: !llvm.ptr, %[[Y:[a-z0-9]+]]: !llvm.ptr
  // CHECK: %[[P:.+]] = llvm.inline_asm has_side_effects {{.*}}"createpolicy.fractional.L2::evict_last.b64 $0, 1.0;"
  // CHECK: %[[I:.+]] = llvm.sext
  // CHECK: %[[AT:.+]] = llvm.addrspacecast {{.*}} : !llvm.ptr to !llvm.ptr<1>
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"ld.global.L2::cache_hint.v4.b32 {{.*}} %[[AT]], %[[P]]
  // CHECK: llvm.bitcast {{.*}} : vector<4xi32> to vector<8xf16>
  // CHECK: llvm.load {{.*}} -> vector<8xf16>
  // CHECK: %[[TO:.+]] = llvm.getelementptr %[[Y]][%[[I]]]
  // CHECK: llvm.store {{.*}}, %[[TO]]
  // CHECK-DAG: %[[A:.+]] = llvm.addrspacecast %[[X]] :
  // CHECK-DAG: %[[B:.+]] = llvm.addrspacecast %[[Y]] :
  // CHECK-DAG: %[[C:.+]] = llvm.addrspacecast %[[TO]] :
  // CHECK: llvm.inline_asm has_side_effects {{.*}}applypriority.global.L2::evict_normal{{.*}} %[[A]], %[[B]], %[[C]]
  // CHECK-NEXT: llvm.return
  llvm.func @row(%x: !llvm.ptr, %w: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xt.arg_dims = [[4096, 1024], [1024]], xt.result_dims = [[4096, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %s = llvm.add %b, %t : i32
    %i = llvm.sext %s : i32 to i64
    %j = llvm.sext %t : i32 to i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %pw = llvm.getelementptr %w[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vw = llvm.load %pw {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %v = llvm.fmul %vx, %vw : vector<8xf16>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    llvm.store %v, %py {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr
    llvm.return
  }

  // An array that is read at other indices as well; one of which 4 MB are read; an access that may be at odd addresses;
  // a store of wider elements; and a product: nothing changes.
  // CHECK-LABEL: llvm.func @neighbours(
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  llvm.func @neighbours(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xt.arg_dims = [[4096, 1024]], xt.result_dims = [[4096, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.sext %t : i32 to i64
    %c = llvm.mlir.constant(8 : i64) : i64
    %j = llvm.add %i, %c : i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %pn = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vn = llvm.load %pn {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %v = llvm.fadd %vx, %vn : vector<8xf16>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    llvm.store %v, %py {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr
    llvm.return
  }
  // CHECK-LABEL: llvm.func @small(
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  llvm.func @small(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xt.arg_dims = [[2048, 1024]], xt.result_dims = [[2048, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.sext %t : i32 to i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    llvm.store %vx, %py {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr
    llvm.return
  }
  // CHECK-LABEL: llvm.func @unaligned(
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  llvm.func @unaligned(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xt.arg_dims = [[4096, 1024]], xt.result_dims = [[4096, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.sext %t : i32 to i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 2 : i64} : !llvm.ptr -> vector<8xf16>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    llvm.store %vx, %py {alignment = 2 : i64} : vector<8xf16>, !llvm.ptr
    llvm.return
  }
  // CHECK-LABEL: llvm.func @widened(
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  llvm.func @widened(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xt.arg_dims = [[4096, 1024]], xt.result_dims = [[4096, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.sext %t : i32 to i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %v = llvm.fpext %vx : vector<8xf16> to vector<8xf32>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v, %py {alignment = 16 : i64} : vector<8xf32>, !llvm.ptr
    llvm.return
  }
  // CHECK-LABEL: llvm.func @product(
  // CHECK-NOT: llvm.inline_asm
  // CHECK: llvm.return
  llvm.func @product(%x: !llvm.ptr, %y: !llvm.ptr) attributes {nvvm.kernel, xcc.product, xt.arg_dims = [[4096, 1024]], xt.result_dims = [[4096, 1024]]} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.sext %t : i32 to i64
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    %vx = llvm.load %px {alignment = 16 : i64} : !llvm.ptr -> vector<8xf16>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
    llvm.store %vx, %py {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr
    llvm.return
  }
}
