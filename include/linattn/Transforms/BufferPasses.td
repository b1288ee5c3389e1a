//===- BufferPasses.td - From tensors to loops and memory --*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_BUFFERPASSES_TD
#define LINATTN_TRANSFORMS_BUFFERPASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnBufferizeModulePass : Pass<"linattn-bufferize-module", "::mlir::ModuleOp"> {
  let summary = "Bufferize functions of tensors with the layout of kernels";
  let description = [{
    One-shot bufferization across function boundaries. It differs from
    `one-shot-bufferize` in the layout of arguments: a caller's tensor has any
    strides, except that the innermost one is 1 with `innermost=unit`, which is
    what vector loads need.

    Before:

    ```mlir
    func.func @f(%x: tensor<2x?xf32> {bufferization.writable = false})
    ```

    After:

    ```mlir
    func.func @f(%x: memref<2x?xf32, strided<[?, 1], offset: ?>>)
    ```
  }];
  let options = [
    Option<"innermost", "innermost", "::mlir::linattn::InnermostStride",
           /*default=*/"::mlir::linattn::InnermostStride::Unit",
           "Innermost stride of the caller's buffers.",
           [{::llvm::cl::values(
             clEnumValN(::mlir::linattn::InnermostStride::Unit, "unit", "it is 1"),
             clEnumValN(::mlir::linattn::InnermostStride::Dynamic, "dynamic",
                        "nothing"),
             clEnumValN(::mlir::linattn::InnermostStride::Tokens, "tokens",
                        "it is 1 where there are four dimensions"))}]>
  ];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"
  ];
}

def LinAttnLowerLinalgToLoopsPass
    : Pass<"linattn-lower-linalg-to-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower linalg on memrefs to loops in an order that vectorises";
  let description = [{
    Linalg operations that no faster lowering took become `scf.for` nests. Loops
    are ordered by what they cost as the innermost one: walking memory with
    stride 1 or not at all is cheap, other strides are not, and a reduction is a
    chain of dependent additions, unless `fastmath<reassoc>` leaves its order open.
    So a matrix product runs as i, k, j and LLVM vectorises over j. Strided `memref.copy` becomes loops too, because its
    upstream lowering calls a support library.

    Before:

    ```mlir
    linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
    ```

    After:

    ```mlir
    scf.for %i = … {
      scf.for %k = … {
        scf.for %j = … {
          // c[i, j] += a[i, k] * b[k, j]
    ```

    With `parallel`, outer loops without a reduction become one `scf.parallel`
    over blocks of their iterations, of many elements each, which are in one block
    if all of them are few. Operations within a parallel loop stay on its threads.
  }];
  let options = [
    Option<"parallel", "parallel", "bool", /*default=*/"false",
           "Make tasks of the outer loops of large operations">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LinAttnOutlineParallelPass : Pass<"linattn-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Turn outermost parallel loops into tasks of the runtime";
  let description = [{
    The body of each outermost `scf.parallel` without reductions becomes a
    private function, run once per iteration by the runtime's thread pool.
    Captured values travel in a structure on the caller's stack; constants are
    cloned instead, so that they still specialise the code. Iteration spaces of
    several dimensions are flattened in row-major order. The tasks are fixed by
    the problem, never by the number of threads, which keeps results the same
    for any machine. Scalar loops, which LLVM vectorizes, learn which of their
    buffers the function has allocated: these overlap no other.

    Before:

    ```mlir
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %v, %m[%i] : memref<?xf32>
    }
    ```

    After:

    ```mlir
    %ctx = llvm.alloca %one x !llvm.struct<(…)> : (i64) -> !llvm.ptr
    llvm.store %captured, %ctx : !llvm.struct<(…)>, !llvm.ptr
    llvm.call @linattn_parallel_for(%trips, %task, %ctx) : (i64, !llvm.ptr, !llvm.ptr) -> ()

    func.func private @f__task0(%ctx: !llvm.ptr, %i: i64) {
      %captured = llvm.load %ctx : !llvm.ptr -> !llvm.struct<(…)>
      …
    }
    ```
  }];
  let statistics = [
    Statistic<"numTasks", "tasks", "Number of parallel loops outlined">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"
  ];
}

def LinAttnExpandMathPass : Pass<"linattn-expand-math"> {
  let summary = "Expand transcendental functions of f32 into vector arithmetic";
  let description = [{
    Scalars and vectors of f32 get the polynomial approximations of MLIR, and an
    exponential of 14 operations, or 11 under `afn`. The logarithm of 1 + e^-|x|,
    as softplus has it, is a polynomial of e^-|x|. No call of libm then interrupts
    a vector loop, and a remainder loop computes the same bits as the vectorised
    part. A division of f32 under `arcp` and `ninf`, with a divisor
    whose inverse is normal, becomes a product. Interleaved and deinterleaved
    vectors of bf16 become words and their halves. f16 and bf16 operands are
    widened to f32 first. f64 becomes calls of libm.

    With `avx512`, vectors of 16 elements and multiples of it use its instructions:
    rough exponentials split off the whole number and scale by 2^n in one each,
    quotients begin with an estimate of 14 bits, which is all of a rough one. With
    `avx512-bf16` two vectors become pairs of bf16 in one instruction and a shuffle;
    subnormal numbers come out as zeros.

    Before:

    ```mlir
    %0 = math.exp %x : vector<16xf32>
    ```

    After:

    ```mlir
    // clamp, split off the exponent, evaluate a polynomial with math.fma, scale
    ```
  }];
  let options = [
    Option<"avx512", "avx512", "bool", /*default=*/"false",
           "Use AVX-512 for rough exponentials and quick quotients">,
    Option<"avx512Bf16", "avx512-bf16", "bool", /*default=*/"false",
           "Use its conversions to bf16">
  ];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

def LinAttnSinkDestinationsPass
    : Pass<"linattn-sink-destinations", "::mlir::func::FuncOp"> {
  let summary = "Write the result of a branch to its destination inside the branch";
  let description = [{
    A branch on sizes has one result and one destination, but each side has its
    own last op. With the destination inside, both sides write to it directly
    and neither result is copied. A result that is a permuted or collapsed view
    of an op's output becomes a view of the destination, which the op then
    writes.

    Before:

    ```mlir
    %r = scf.if %c -> (tensor<?xf32>) {
      scf.yield %a : tensor<?xf32>
    } else {
      scf.yield %b : tensor<?xf32>
    }
    bufferization.materialize_in_destination %r in restrict writable %dest : …
    ```

    After:

    ```mlir
    scf.if %c {
      bufferization.materialize_in_destination %a in restrict writable %dest : …
    } else {
      bufferization.materialize_in_destination %b in restrict writable %dest : …
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LinAttnInstrumentTracePass
    : Pass<"linattn-instrument-trace", "::mlir::ModuleOp"> {
  let summary = "Call a printer after every op on buffers";
  let description = [{
    Prints intermediate results. After every linattn and linalg op on buffers,
    except fills, each float destination is passed to an external function
    `linattn_trace_f32` (or another element type) with a label and the value of
    the loop around it. `linattn-run --trace` provides the function, and cuts
    scans into single tokens first, so that it prints every state.

    Before:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s) : (memref<…>, …) -> ()
    ```

    After:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s) : (memref<…>, …) -> ()
    call @linattn_trace_f32(%label0, %token, %o) : (memref<*xi8>, i64, memref<*xf32>) -> ()
    call @linattn_trace_f32(%label1, %token, %s) : (memref<*xi8>, i64, memref<*xf32>) -> ()
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

#endif // LINATTN_TRANSFORMS_BUFFERPASSES_TD
