// RUN: linattn-opt %s --pass-pipeline='builtin.module(gpu.module(linattn-nvvm-to-host))' --split-input-file --verify-diagnostics

gpu.module @operation {
  llvm.func @k() attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot execute this operation}}
    nvvm.cluster.arrive
    // All of them are named, not only the first.
    // expected-error @below {{the emulator cannot execute the special register clock}}
    %c = nvvm.read.ptx.sreg.clock : i32
    llvm.return
  }
}

// -----

gpu.module @mma {
  llvm.func @k(%a: f64, %c: f64) attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot execute this shape or type of mma: expected m16n8 of bf16, f16 or tf32 with f32 sums}}
    %d = nvvm.mma.sync A[%a] B[%a] C[%c, %c] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 8, n = 8, k = 4>} : (f64, f64, f64) -> !llvm.struct<(f64, f64)>
    llvm.return
  }
}

// -----

gpu.module @call {
  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
  llvm.func @k(%p: !llvm.ptr) attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot call 'vprintf'}}
    %r = llvm.call @vprintf(%p, %p) : (!llvm.ptr, !llvm.ptr) -> i32
    llvm.return
  }
}

// -----

gpu.module @assembly {
  llvm.func @k(%x: f32) attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot execute 'sin.approx.ftz.f32'}}
    %y = nvvm.inline_ptx "sin.approx.ftz.f32 $0, $1;" ro(%x : f32) -> f32
    llvm.return
  }
}

// -----

// Not lowered yet.

gpu.module @memref {
  llvm.func @k(%x: f32) attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot execute this operation}}
    %m = memref.alloca() : memref<4xf32>
    llvm.return
  }
}

// -----

gpu.module @copies {
  llvm.func @k(%to: !llvm.ptr<3>, %far: !llvm.ptr<7>, %map: !llvm.ptr, %c: i32, %p: i1) attributes {nvvm.kernel} {
    // expected-error @below {{the emulator cannot execute copies of this kind: expected tiles, for one block, without a predicate}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %far, %map, %to, box[%c, %c] predicate = %p : !llvm.ptr<7>, !llvm.ptr
    // expected-error @below {{the emulator cannot execute a predicate}}
    nvvm.mbarrier.init %to, %c, predicate = %p : !llvm.ptr<3>, i32, i1
    // expected-error @below {{the emulator cannot execute an arrival whose state is used}}
    %state = nvvm.mbarrier.arrive %to : !llvm.ptr<3> -> i64
    // expected-error @below {{the emulator cannot execute this operation}}
    %done = nvvm.mbarrier.test.wait %to, %state : !llvm.ptr<3>, i64 -> i1
    llvm.return
  }
}
