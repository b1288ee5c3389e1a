//===- Passes.td - Entries of compiled functions -----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ENTRY_PASSES_TD
#define LINATTN_ENTRY_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnCheckShapesPass : Pass<"linattn-check-shapes", "::mlir::ModuleOp"> {
  let summary = "Add functions that check arguments and compute result shapes";
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
    companion `@NAME__shapes` computes their sizes. `linattn-check-shapes`
    describes the companion; what has none yet gets it here.

    Arguments are marked as not writable: bufferization copies rather than
    updates the caller's inputs in place. Those that `transposed` lists have
    the stride 1 in the dimension before their last one, which the attribute
    `bufferization.buffer_layout` says. Unranked tensors, memrefs, recursion
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
                        "it is 1 where there are four dimensions"))}]>,
    ListOption<"transposed", "transposed", "int64_t",
               "Numbers of arguments, and behind them of results, of which the "
               "dimension before the last one has stride 1">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnSeparateDestinationsPass
    : Pass<"linattn-separate-destinations", "::mlir::func::FuncOp"> {
  let summary = "Give every op that overwrites a tensor one of its own";
  let description = [{
    Bufferization lets one buffer serve many tensors, and places results into
    the empty tensors of their destinations. Both need chains in which every
    tensor is overwritten once. A tensor that several ops overwrite is therefore
    cloned in front of the op if it is empty or a constant, and copied otherwise. A function may
    not write to its arguments, so a caller's initial state is copied into an
    empty tensor, whose place the destination can take: one copy, then updates
    in place.

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

def LinAttnRemarkChoicesPass
    : Pass<"linattn-remark-choices", "::mlir::func::FuncOp"> {
  let summary = "Report what the author of a function chose, as remarks";
  let description = [{
    A program that writes a function makes choices that no pass sees, such as
    the landmarks of a Nyström attention. It records them as attributes. This
    pass emits them as remarks under the function's name, `linattn.chosen` as
    passed and `linattn.refused` as missed, and removes the attributes.

    Before:

    ```mlir
    func.func @nystrom(…) attributes {linattn.chosen = ["landmarks are means of segments of one length"]}
    ```

    After, with the remark `passed: nystrom: landmarks are means of segments of one length`:

    ```mlir
    func.func @nystrom(…)
    ```
  }];
  let statistics = [
    Statistic<"numChoices", "num-choices", "Number of choices that were reported">
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
    `linattn.in_place` lists the destinations that may be arguments.

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

#endif // LINATTN_ENTRY_PASSES_TD
