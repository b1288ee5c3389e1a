//===- EntryPasses.td - From tensor functions to code ------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_ENTRYPASSES_TD
#define LINATTN_TRANSFORMS_ENTRYPASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnCheckShapesPass : Pass<"linattn-check-shapes", "::mlir::ModuleOp"> {
  let summary = "Add the functions that check arguments and tell result shapes";
  let description = [{
    Dynamic sizes that must agree are known only when a function is called. For
    every public function this pass adds a companion `@NAME__shapes`, which a
    caller runs first. It takes the same arguments and a `memref<Nxi64>`:

    | slots | content |
    |---|---|
    | one per dimension | the shapes of the results, result after result |
    | 1 | the number of the first check that failed, −1 if none did |
    | 4 | the sizes that this check's message shows |

    The last five are there only if something has to be checked; the attribute
    `linattn.checks` lists the messages. Checked are the constraints of linattn
    ops, the loops of linalg ops, arithmetic on tensors, casts to static sizes,
    slices, and that `cu_seqlens` start at 0, never decrease and end at T. An op
    inside `scf.if`, `scf.for` or `scf.forall` is checked where its sizes, and
    whether it runs at all, follow from values outside; a missed remark names
    the others.

    The companion starts as a clone of the function and is then reduced to its
    sizes, so it usually costs nothing; where a shape depends on data, it
    computes that data, once the checks have passed. The pass belongs at the start
    of a pipeline: sizes that a loop over chunks takes for granted are still
    operands of one op there.

    With `check-decays` the companion also reads the decays that are arguments,
    and names the first element that is positive or NaN; −∞ is a decay. A
    missed remark names decays that are computed.

    Before:

    ```mlir
    func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %0 = arith.addf %x, %y : tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    ```

    After, beside the unchanged function:

    ```mlir
    func.func @add__shapes(%x: tensor<?xf32>, %y: tensor<?xf32>, %s: memref<6xi64>)
        attributes {linattn.checks = ["arith.addf: expected dimension 0 of operand 0 and dimension 0 of operand 1 to have the same size, but got {0} and {1}"]} {
      … tensor.dim, arith.cmpi, memref.store
    }
    ```
  }];
  let options = [
    Option<"checkDecays", "check-decays", "bool", /*default=*/"false",
           "Also check that decays are natural logarithms of at most 0">,
    Option<"checkIndices", "check-indices", "bool", /*default=*/"true",
           "Also check the elements of offsets and of rows of a pool; not where "
           "they are in the memory of a GPU">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnPrepareEntryPass : Pass<"linattn-prepare-entry", "::mlir::ModuleOp"> {
  let summary = "Give public tensor functions the calling convention of kernels";
  let description = [{
    Every public function gets two things that a caller without MLIR needs: its
    results become trailing memref arguments that the caller allocates, and a
    companion `@NAME__shapes` tells how large they are. `linattn-check-shapes`
    describes the companion; what has none yet gets it here.

    Arguments are marked as not writable: bufferization copies rather than
    updates the caller's inputs in place. Unranked tensors, memrefs, recursion
    and callees without a body are located errors.

    Before:

    ```mlir
    func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
      %0 = linalg.add ins(%x, %x : …) outs(%x : tensor<?xf32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    ```

    After, with `innermost=unit`:

    ```mlir
    func.func @twice(%x: tensor<?xf32> {bufferization.writable = false},
                     %r: memref<?xf32, strided<[1], offset: ?>>) {
      %0 = linalg.add ins(%x, %x : …) outs(%x : tensor<?xf32>) -> tensor<?xf32>
      bufferization.materialize_in_destination %0 in restrict writable %r : …
      return
    }
    func.func @twice__shapes(%x: tensor<?xf32> {bufferization.writable = false},
                             %s: memref<1xi64>) attributes {linattn.checks = []} {
      %c0 = arith.constant 0 : index
      %d = tensor.dim %x, %c0 : tensor<?xf32>
      %0 = arith.index_cast %d : index to i64
      memref.store %0, %s[%c0] : memref<1xi64>
      return
    }
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
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

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
    whatever the machine. Scalar loops, which LLVM vectorizes, learn which of their
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
    exponential of 14 operations, or 11 under `afn`, so no call to libm interrupts
    a vector loop and a remainder loop computes the same bits as the vectorised
    part. Divisions of f32 under `arcp` and `ninf`, whose divisors and their
    inverses are normal numbers, become products. Vectors of bf16 that are taken
    apart into every second element, or made so, are words and their halves. f16 and bf16
    operands are widened to f32 first. f64 is left alone: it becomes calls to libm.

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

def LinAttnSeparateDestinationsPass
    : Pass<"linattn-separate-destinations", "::mlir::func::FuncOp"> {
  let summary = "Give every op that overwrites a tensor one of its own";
  let description = [{
    Bufferization lets one buffer serve many tensors, and results take the place
    of the empty tensors they were computed into. Both work on chains in which
    every tensor is overwritten once. So, what several ops overwrite is cloned
    if it is empty or a constant, and copied otherwise; and since a function may
    not write to its arguments, an initial state of the caller is copied
    explicitly, into an empty tensor whose place the destination can take: one
    copy, and an update in place.

    Before:

    ```mlir
    func.func @step(…, %s0: tensor<1x8x64x64xf32>) {
      %o, %s1 = linattn.scan %q, %k, %v into(%e) init(%s0) : …
    ```

    After:

    ```mlir
      %empty = tensor.empty() : tensor<1x8x64x64xf32>
      %copy = linalg.copy ins(%s0 : …) outs(%empty : …) -> …
      %o, %s1 = linattn.scan %q, %k, %v into(%e) init(%copy) : …
    ```
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnUpdateInPlacePass
    : Pass<"linattn-update-in-place", "::mlir::func::FuncOp"> {
  let summary = "Let the caller of an entry update a state in place";
  let description = [{
    An initial state of the caller is copied to the destination of the final one
    and updated there. Where nothing else reads the initial state, and nothing
    touches the destination before, both may be the same memory: the copy is then
    skipped at run time, and a step costs one pass over its state. The attribute
    `linattn.in_place` tells which destinations may be which arguments.

    Before:

    ```mlir
    func.func @step(%q: memref<…>, %s0: memref<…>, %o: memref<…>, %s1: memref<…>) {
      linalg.copy ins(%s0 : …) outs(%s1 : …)
      linattn.scan … into(%o) init(%s1)
    ```

    After:

    ```mlir
    func.func @step(%q: memref<…>, %s0: memref<…>, %o: memref<…>, %s1: memref<…>)
        attributes {linattn.in_place = array<i64: -1, -1, -1, 1>} {
      %differ = … // the addresses of %s0 and %s1
      scf.if %differ {
        linalg.copy ins(%s0 : …) outs(%s1 : …)
      }
      linattn.scan … into(%o) init(%s1)
    ```

    Without `guard` the copy stays, onto itself where both are the same memory.
  }];
  let options = [
    Option<"guardCopies", "guard", "bool", /*default=*/"true",
           "Skip the copy at run time where both are the same memory; not for "
           "host code that must not branch">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LinAttnSinkDestinationsPass
    : Pass<"linattn-sink-destinations", "::mlir::func::FuncOp"> {
  let summary = "Write the result of a branch to its destination inside the branch";
  let description = [{
    A choice at run time has one result and one destination, but each branch has
    its own last op. With the destination inside, both write to it directly and
    neither result is copied. A result that is a permuted or collapsed view of what
    an op computes becomes a view of the destination instead, which the op then
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
    For a reader who wants to see the numbers flow. After every linattn and
    linalg op on buffers, except fills, each destination of floats goes to an
    external function `linattn_trace_f32` (or another element type) with a
    label and the value of the loop around it. `linattn-run --trace` provides
    the function, and cuts scans into single tokens first, so that every state
    shows.

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

#endif // LINATTN_TRANSFORMS_ENTRYPASSES_TD
