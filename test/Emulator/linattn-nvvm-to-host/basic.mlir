// RUN: linattn-opt %s --pass-pipeline='builtin.module(gpu.module(linattn-nvvm-to-host))' --split-input-file | FileCheck %s

// Arguments come from an array, registers from the thread; every access asks.

// CHECK-LABEL: gpu.module @memory
// CHECK-SAME: linattn.emulator_sites = ["llvm.load at {{.*}}basic.mlir:{{[0-9]+}}:10", "llvm.store at {{.*}}basic.mlir:{{[0-9]+}}:5"]
// CHECK-SAME: linattn.static_shared = 0
// CHECK-DAG: llvm.func @linattn_emu_load(!llvm.ptr, !llvm.ptr, i32, i32, i32) -> !llvm.ptr
// CHECK-DAG: llvm.func @linattn_emu_store(!llvm.ptr, !llvm.ptr, i32, i32, i32) -> !llvm.ptr
// CHECK: llvm.func @k(%[[THREAD:.+]]: !llvm.ptr, %[[ARGUMENTS:.+]]: !llvm.ptr)
// CHECK-SAME: linattn.kernel_arguments = [!llvm.ptr, i32]
// CHECK-NOT: nvvm
gpu.module @memory {
  llvm.func @k(%p: !llvm.ptr<1> {llvm.noalias}, %n: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>} {
    // CHECK: %[[P:.+]] = llvm.load %[[ARGUMENTS]] : !llvm.ptr -> !llvm.ptr
    // CHECK: %[[SLOT:.+]] = llvm.getelementptr %[[ARGUMENTS]][1] : (!llvm.ptr) -> !llvm.ptr, i64
    // CHECK: %[[N:.+]] = llvm.load %[[SLOT]] : !llvm.ptr -> i32
    // CHECK: %[[REGISTER:.+]] = llvm.getelementptr %[[THREAD]][0] : (!llvm.ptr) -> !llvm.ptr, i32
    // CHECK: %[[TID:.+]] = llvm.load %[[REGISTER]] : !llvm.ptr -> i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    // CHECK: %[[A:.+]] = llvm.getelementptr %[[P]][%[[TID]]] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %a = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    // CHECK-DAG: %[[BYTES:.+]] = llvm.mlir.constant(16 : i32) : i32
    // CHECK-DAG: %[[ALIGNMENT:.+]] = llvm.mlir.constant(8 : i32) : i32
    // CHECK-DAG: %[[SITE:.+]] = llvm.mlir.constant(0 : i32) : i32
    // CHECK: %[[DATA:.+]] = llvm.call @linattn_emu_load(%[[THREAD]], %[[A]], %[[BYTES]], %[[ALIGNMENT]], %[[SITE]])
    // CHECK: %[[X:.+]] = llvm.load %[[DATA]] {alignment = 1 : i64} : !llvm.ptr -> vector<4xf32>
    %x = llvm.load %a {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xf32>
    // CHECK: %[[TO:.+]] = llvm.call @linattn_emu_store(%[[THREAD]], %[[A]]
    // CHECK: llvm.store %[[X]], %[[TO]] {alignment = 1 : i64}
    llvm.store %x, %a : vector<4xf32>, !llvm.ptr<1>
    llvm.return
  }
}

// -----

// Static shared memory comes first, then the dynamic one; the thread's own memory
// is the host's.

// CHECK-LABEL: gpu.module @shared
// CHECK-SAME: linattn.static_shared = 1024
// CHECK-NOT: llvm.mlir.global
// CHECK: llvm.func @k
gpu.module @shared {
  llvm.mlir.global external @linattn_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @a() {addr_space = 3 : i32} : !llvm.array<3 x i32>
  llvm.mlir.global internal @b() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x i32>
  llvm.func @k() attributes {nvvm.kernel} {
    // 2^24 + 1024, + 0, + 16.
    // CHECK: llvm.mlir.constant(16778240 : i64)
    // CHECK: llvm.mlir.constant(16777216 : i64)
    // CHECK: llvm.mlir.constant(16777232 : i64)
    %d = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %a = llvm.mlir.addressof @a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @b : !llvm.ptr<3>
    // CHECK-COUNT-3: llvm.call @linattn_emu_load
    %x = llvm.load %d : !llvm.ptr<3> -> i32
    %y = llvm.load %a : !llvm.ptr<3> -> i32
    %z = llvm.load %b : !llvm.ptr<3> -> i32
    // CHECK: %[[OWN:.+]] = llvm.alloca
    // CHECK: llvm.store %{{.*}}, %[[OWN]]
    %own = llvm.alloca %x x i32 : (i32) -> !llvm.ptr
    llvm.store %x, %own : i32, !llvm.ptr
    llvm.return
  }
}

// -----

// Collective operations pass operands and results through the frame.

// CHECK-LABEL: gpu.module @collective
gpu.module @collective {
  // CHECK: llvm.func @helper(%[[T:.+]]: !llvm.ptr, %{{.*}}: i32)
  // CHECK: llvm.call @linattn_emu_barrier(%[[T]]
  llvm.func @helper(%id: i32) {
    nvvm.barrier id = %id
    llvm.return
  }
  // CHECK: llvm.func @k(%[[THREAD:.+]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
  // CHECK-SAME: linattn.kernel_arguments = {{\[\[}}!llvm.ptr], f32]
  llvm.func @k(%p: !llvm.ptr<3> {llvm.readonly}, %x: f32) attributes {nvvm.kernel} {
    // CHECK: %[[WORDS:.+]] = llvm.alloca %{{.*}} x i32 {alignment = 16 : i64}
    %all = llvm.mlir.constant(-1 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    // CHECK: llvm.call @helper(%[[THREAD]], %{{.*}})
    llvm.call @helper(%c1) : (i32) -> ()
    // CHECK: %[[FIRST:.+]] = llvm.getelementptr %[[WORDS]][0]
    // CHECK: llvm.store %{{.*}}, %[[FIRST]] {alignment = 4 : i64} : f32
    // CHECK: llvm.call @linattn_emu_shfl(%[[THREAD]], %{{.*}}, %{{.*}}, %[[WORDS]], %{{.*}})
    // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> f32
    %y = nvvm.shfl.sync bfly %all, %x, %c1, %c1 : f32 -> f32
    // CHECK: llvm.call @linattn_emu_ldmatrix(%[[THREAD]], %{{.*}}, %{{.*}}, %[[WORDS]], %{{.*}})
    // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
    // CHECK: llvm.insertvalue %{{.*}}[0]
    // CHECK: llvm.insertvalue %{{.*}}[1]
    %m = nvvm.ldmatrix %p {num = 2 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    // CHECK: llvm.call @linattn_emu_ex2(%{{.*}}) : (f32) -> f32
    %e = nvvm.inline_ptx "ex2.approx.ftz.f32 $0, $1;" ro(%y : f32) -> f32
    // CHECK: llvm.call @expf(%{{.*}}) : (f32) -> f32
    %f = llvm.call @__nv_expf(%e) : (f32) -> f32
    llvm.return
  }
  // CHECK-NOT: __nv_expf
  llvm.func @__nv_expf(f32) -> f32
}

// -----

// CHECK-LABEL: llvm.func @copies(
// CHECK: llvm.call @linattn_emu_map_replace(
// CHECK: llvm.call @linattn_emu_map_publish(
// CHECK: llvm.call @linattn_emu_map_acquire(
// CHECK: llvm.call @linattn_emu_mbarrier_init(
// CHECK: llvm.call @linattn_emu_mbarrier_arrive(
// CHECK: llvm.call @linattn_emu_copy_box(
// CHECK: llvm.call @linattn_emu_mbarrier_wait(
gpu.module @maps {
  llvm.func @copies(%tile: !llvm.ptr<3>, %bar: !llvm.ptr<3>, %maps: !llvm.ptr<1>, %map: i32, %row: i32) attributes {nvvm.kernel} {
    %generic = llvm.addrspacecast %maps : !llvm.ptr<1> to !llvm.ptr
    %bytes = llvm.mlir.constant(128 : i32) : i32
    llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 1, $1;", "r,r,~{memory}" %map, %row : (i32, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;", "l,r,~{memory}" %maps, %map : (!llvm.ptr<1>, i32) -> ()
    nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %generic, %bytes
    nvvm.mbarrier.init %bar, %row : !llvm.ptr<3>, i32
    nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %generic, %bar, box[%row, %row] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    nvvm.mbarrier.try_wait.parity %bar, %row, %bytes : !llvm.ptr<3>, i32, i32
    llvm.return
  }
}
