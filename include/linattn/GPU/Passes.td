//===- Passes.td - Kernels for NVIDIA GPUs -----------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GPU_PASSES_TD
#define LINATTN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnSelectSchedulePass
    : Pass<"linattn-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "Choose the GPU schedules of ops on buffers";
  let description = [{
    Writes `linattn.schedule`, which `linattn-to-kernel` reads, for scans, states,
    reads and quadratic attention. An op that has one keeps it. An op that no
    kernel can run gets none, with a remark that says why: it stays for the plain
    route. Copies by tensor maps and scans by warpgroups have not been timed: they are
    taken where `copy=tma` and `scan-mma=wgmma` select them, and a remark says where
    that is not possible.

    Before:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s) : (memref<2x8x?x64xbf16>, …) -> ()
    ```

    After:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s)
        {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64,
                                              warps = 4, stages = 2, value_slice = 64>}
      : (memref<2x8x?x64xbf16>, …) -> ()
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "Chip of the predicted times: sm_80, sm_90, sm_100 or another">,
    Option<"sms", "sms", "int64_t", /*default=*/"0",
           "Number of multiprocessors; 0: that of the chip">,
    Option<"bandwidth", "bandwidth", "int64_t", /*default=*/"0",
           "Bandwidth of memory in GB/s; 0: that of the chip">,
    Option<"sequences", "sequences", "int64_t", /*default=*/"0",
           "Sequences that schedules are chosen for where types leave them open; "
           "0: not known">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"0",
           "Tokens that schedules are chosen for where types leave them open; 0: "
           "not known">,
    Option<"shared", "shared", "int64_t", /*default=*/"0",
           "Bytes of shared memory that a thread block may have; 0: what the "
           "chip has">,
    Option<"copy", "copy", "::mlir::linattn::CopyEngine",
           /*default=*/"::mlir::linattn::CopyEngine::CpAsync",
           "How the tiles of quadratic attention come to shared memory, where "
           "its products are those of wgmma",
           [{::llvm::cl::values(
             clEnumValN(::mlir::linattn::CopyEngine::CpAsync, "cp_async",
                        "every thread copies 16 bytes at a time"),
             clEnumValN(::mlir::linattn::CopyEngine::Tma, "tma",
                        "by tensor maps, where rows are multiples of 16 bytes"))}]>,
    Option<"scanMma", "scan-mma", "::mlir::linattn::Mma",
           /*default=*/"::mlir::linattn::Mma::MmaSync",
           "Matrix instruction of the chunk kernels of scans",
           [{::llvm::cl::values(
             clEnumValN(::mlir::linattn::Mma::MmaSync, "mma_sync", "warps"),
             clEnumValN(::mlir::linattn::Mma::Wgmma, "wgmma",
                        "warpgroups, on sm_90a and where their kernel can run the "
                        "scan"))}]>,
    Option<"math", "math", "::linattn::Math", /*default=*/"::linattn::Math::Strict",
           "Precision of products of f32", [{
             ::llvm::cl::values(
                 clEnumValN(::linattn::Math::Strict, "strict",
                            "three summands of 16-bit numbers: all of it"),
                 clEnumValN(::linattn::Math::Fast, "fast",
                            "two summands of f32: 16 bits, in half the products; of "
                            "16-bit tokens one"))
           }]>
  ];
}

def LinAttnMaterializeMapsPass : Pass<"linattn-materialize-maps"> {
  let summary = "Apply feature maps that no kernel knows before the op";
  let description = [{
    A scan, state or read on buffers whose map is a region or `softmax_kernel` gets
    mapped tokens of f32 and the identity map, so that it can run in a kernel; values
    and outputs of 16 bits are f32 there, too. Scans with a running maximum and tokens
    of f64 are left alone.

    Before:

    ```mlir
    linattn.read %q, %s into(%o) {feature_map = #linattn.feature_map<region>} phi { … }
      : (memref<2x8x?x64xbf16>, …) -> ()
    ```

    After:

    ```mlir
    linattn.feature_map %q into(%f) {feature_map = #linattn.feature_map<region>} phi { … }
      : (memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>) -> ()
    linattn.read %f, %s into(%w) : (memref<2x8x?x64xf32>, …) -> ()
    linalg.generic … ins(%w : memref<2x8x?x64xf32>) outs(%o : memref<2x8x?x64xbf16>) { … }
    ```
  }];
  let statistics = [
    Statistic<"numMaps", "num-maps", "Number of ops whose map stands before them">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

def LinAttnToKernelPass : Pass<"linattn-to-kernel", "::mlir::ModuleOp"> {
  let summary = "Build the kernel of every op that has a schedule";
  let description = [{
    Each op on buffers with a `linattn.schedule` becomes a `gpu.module` with one
    kernel in the LLVM and NVVM dialects, which carries its
    `linattn.launch_plan`, and a `linattn.launch` in the op's place. A copy into
    the state before the op, or a fill with zeros, becomes part of the kernel. A
    schedule that cannot run its op is an error.

    Before:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s)
        {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4>}
      : (memref<2x8x?x64xbf16>, …) -> ()
    ```

    After:

    ```mlir
    linattn.launch @layer_scan_0::@layer_scan_0(%q, %k, %v, %o, %s) : …
    …
    gpu.module @layer_scan_0 {
      llvm.func @layer_scan_0(%arg0: !llvm.ptr<1>, …) attributes {
          nvvm.kernel, nvvm.maxntid = array<i32: 128>,
          linattn.launch_plan = #linattn.launch_plan<…>} { … }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LinAttnLaunchCopiesPass : Pass<"linattn-launch-copies"> {
  let summary = "Make loops of copies, and give every op a parallel loop";
  let description = [{
    The host cannot access elements of a buffer in the memory of a GPU. A
    `memref.copy` becomes a `linalg.generic`, which the plain route makes a
    kernel of. A copy from one argument of the function to another is guarded by
    a comparison of their addresses, since a result may share an argument's
    buffer. An op without a parallel loop, such as the sum of a vector, gets one
    of a single iteration. Ops in a parallel loop stay there.

    Before:

    ```mlir
    memref.copy %a, %b : memref<4x?xf32> to memref<4x?xf32>
    ```

    After:

    ```mlir
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : memref<4x?xf32>) outs(%b : memref<4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    ```
  }];
  let statistics = [
    Statistic<"numCopies", "num-copies", "Number of copies that became loops">,
    Statistic<"numWrapped", "num-wrapped", "Number of ops that got a loop">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LinAttnSinkHostScalarsPass : Pass<"linattn-sink-host-scalars"> {
  let summary = "Compute scalars of floats and of elements in the loops that use them";
  let description = [{
    The host of a launch computes sizes only. A float that an outermost
    `scf.parallel` uses, or an element of an array of integers, such as the seed
    of a dropout, is computed in the loop's body instead, and so by the kernel.
    An element must belong to an argument that nothing writes to. Bounds of
    loops stay on the host.

    Before:

    ```mlir
    %seed = memref.load %seeds[%c0] : memref<?xi64>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) { … %seed … }
    ```

    After:

    ```mlir
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %seed = memref.load %seeds[%c0] : memref<?xi64>
      …
    }
    ```
  }];
  let statistics = [
    Statistic<"numSunk", "num-sunk", "Number of scalars that loops compute themselves">
  ];
}

def LinAttnMapLoopsToThreadsPass : Pass<"linattn-map-loops-to-threads"> {
  let summary = "Launch parallel loops, an iteration for a thread, a warp or a block";
  let description = [{
    Every outermost `scf.parallel` becomes a `gpu.launch`. Its iterations are
    numbered along x, the last dimension fastest: neighbouring threads work on
    neighbouring elements. A block has 128 threads, or one warp where iterations are
    few. Where the body holds loops `scf.parallel` of one dimension,

    - a warp takes an iteration, its lanes those of the loops inside; their sums and
      maxima are shuffled in a fixed order;
    - or, if one of the loops reads a buffer that is written, a block does, with
      barriers around each of them.

    Loops inside that cannot be divided so become sequential. A loop with a result of
    its own is left alone.

    Before:

    ```mlir
    scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) { … }
    ```

    After:

    ```mlir
    gpu.launch blocks(%b, …) in (%bx = %blocks, …) threads(%t, …) in (%tx = %threads, …) {
      %k = arith.addi (arith.muli %b, %tx), %t
      scf.if (arith.cmpi slt, %k, %mn) { … }
    }
    ```
  }];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "Number of loops that became launches">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::scf::SCFDialect"
  ];
}

def LinAttnExpandDoubleMathPass : Pass<"linattn-expand-double-math"> {
  let summary = "Expand functions of f64 into polynomials";
  let description = [{
    Does for f64 what `linattn-expand-math` does for f32: exp, exp2, expm1,
    log, log2, log10, log1p, tanh, sin and cos of scalars become arithmetic,
    within a few units in the last place. sin and cos take arguments up to
    2^40. Other functions stay as they are; a GPU has no library for them.

    Before:

    ```mlir
    %0 = math.exp %x : f64
    ```

    After:

    ```mlir
    %n = math.roundeven %a : f64
    %r = math.fma %n, %c, %x : f64
    …
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

def LinAttnMathToIntrinsicsPass : Pass<"linattn-math-to-intrinsics"> {
  let summary = "Convert the functions that a GPU has instructions for";
  let description = [{
    Multiply-adds, roundings, square roots and the like of f32 and f64, and
    counts of zeros of integers, become intrinsics of LLVM, before
    `convert-gpu-to-nvvm` turns them into calls of libdevice. Other functions
    are left alone.

    Before:

    ```mlir
    %0 = math.fma %x, %y, %z : f32
    ```

    After:

    ```mlir
    %0 = llvm.call_intrinsic "llvm.fma"(%x, %y, %z) : (f32, f32, f32) -> f32
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def LinAttnPackConversionsPass : Pass<"linattn-pack-conversions"> {
  let summary = "Convert floats to 16 bits two at a time";
  let description = [{
    Every `arith.truncf` of f32 to f16 or bf16 becomes the instruction that
    converts two numbers; a single number is paired with 0. The bits are the
    same. Vectors of odd size and other rounding modes are left alone. For sm_80
    and later.

    Before:

    ```mlir
    %1 = arith.truncf %0 : vector<2xf32> to vector<2xbf16>
    ```

    After:

    ```mlir
    %1 = nvvm.convert.f32x2.to.bf16x2 %high, %low {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def LinAttnModuleToPTXPass
    : Pass<"linattn-module-to-ptx", "::mlir::ModuleOp"> {
  let summary = "Compile every gpu.module to PTX";
  let description = [{
    Does what `gpu-module-to-binary` does for assembly, with only the LLVM
    passes that kernels need. Nothing is linked. A module must have one target,
    of NVVM.

    Before:

    ```mlir
    gpu.module @layer_scan [#nvvm.target<chip = "sm_80">] { llvm.func @layer_scan(…) { … } }
    ```

    After:

    ```mlir
    gpu.binary @layer_scan [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "…">]
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // LINATTN_GPU_PASSES_TD
