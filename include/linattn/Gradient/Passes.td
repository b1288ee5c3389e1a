//===- Passes.td - Gradients -------------------------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GRADIENT_PASSES_TD
#define LINATTN_GRADIENT_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnDifferentiatePass : Pass<"linattn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Give a function of tensors its vector-Jacobian product";
  let description = [{
    Adds a function `@NAME_vjp` beside the function that `function` names, or
    beside every function with an attribute `linattn.differentiate`. Its arguments
    are those of the function, then the cotangents of its floating-point results;
    its results are the cotangents of the operands that `operands` (or the
    attribute, `array<i64: …>`) lists, of all floating-point operands where the
    list is empty. Integers and masks have no cotangent. The product of a
    function with the attribute `linattn.keep_results` takes the floating-point
    results between the operands and the cotangents, and does not compute them
    again: the output and the log-sum-exp of `linattn.softmax` for example.

    The forward pass is computed again as far as the gradient needs it, which a
    remark counts; dead code is left to canonicalization. Floats of 16 bits are
    computed with as f32, and gradients rounded once. Gradients of recurrences are recurrences
    (docs/Gradients.md): no state is stored, but those at the start of every 32 tokens of a
    selective scan. Calls must be
    inlined beforehand. An op without a gradient on the way from an operand to a
    result is an error on it.

    Before:

    ```mlir
    func.func @layer(%q: tensor<…>, %k: tensor<…>, %v: tensor<…>) -> tensor<…> {
      %o, %s = linattn.scan %q, %k, %v into(%e) init(%zero) : …
    ```

    After, beside it:

    ```mlir
    func.func @layer_vjp(%q: tensor<…>, %k: tensor<…>, %v: tensor<…>, %do: tensor<…>)
        -> (tensor<…>, tensor<…>, tensor<…>) {
      %dq, %0 = linattn.scan %do, %v, %k into(%e0) init(%zero0) : …
      %dv, %1 = linattn.scan %k, %q, %do into(%e1) init(%zero1) {reverse} : …
      %dk, %2 = linattn.scan %v, %do, %q into(%e2) init(%zero2) {reverse} : …
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"",
           "The function to differentiate; those with the attribute if empty">,
    ListOption<"operands", "operands", "int64_t",
               "Indices of the operands whose cotangents are returned">,
    Option<"isolate", "isolate", "bool", /*default=*/"false",
           "Make the function private: only its product is called">,
    Option<"chunkSize", "chunk-size", "int64_t", /*default=*/"0",
           "Tokens of a chunk in gradients that are loops over chunks; 0 for "
           "none of these">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Bits of a vector register, which features must fill in such a loop">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::linattn::LinAttnDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect"
  ];
}

def LinAttnFuseTokensPass : Pass<"linattn-fuse-tokens", "::mlir::func::FuncOp"> {
  let summary = "Compute what stands between scans block of tokens by block";
  let description = [{
    Acts on functions with the attribute `linattn.gradient`, which
    `linattn-differentiate` sets. Linalg ops that run over the same batch, heads
    and tokens, and between the same scans, become one `scf.forall` over blocks of
    tokens. A result that only these ops use is never stored as a whole, and
    operands that they share are read from memory once.

    If all ops take rows of features of a known size, elementwise or in a sum, the
    block is a loop over its tokens: a row is one vector, which ops hand on without
    memory in between, and a sum one `vector.reduction`, whose order depends on
    the number of features alone. A result takes the memory of a tensor whose last
    use is in the loop. Otherwise a remark says why, and the ops stay linalg on
    blocks.

    Before:

    ```mlir
    %x = linalg.generic … ins(%q, %dk : tensor<1x8x4096x64xf32>, …)
    %y = linalg.generic … ins(%x, %k : tensor<1x8x4096x64xf32>, …)
    ```

    After:

    ```mlir
    %y = scf.forall (%b, %t, %h) = (0, 0, 0) to (1, 4096, 8) step (1, 32, 1)
        shared_outs(%all = %dk) -> (tensor<1x8x4096x64xf32>) {
      %block = tensor.extract_slice %all[%b, %h, %t, 0] [1, 1, 32, 64] …
      %rows = scf.for %i = %c0 to %c32 step %c1 iter_args(%tile = %block) … {
        %q_row = vector.transfer_read %q[%b, %h, %token, %c0] …
        %dk_row = vector.transfer_read %tile[%c0, %c0, %i, %c0] …
        %x_row = arith.mulf %q_row, %dk_row : vector<64xf32>
        …
        %next = vector.transfer_write %y_row, %tile[%c0, %c0, %i, %c0] …
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LinAttnSplitSweepsPass
    : Pass<"linattn-split-sweeps", "::mlir::func::FuncOp"> {
  let summary = "Turn sweeps into scans";
  let description = [{
    A `linattn.sweep` reads its state along the keys, as a scan does, and along
    the values. The second read, S x, is a scan of the transposed state with
    query x: keys and values, and their decays, are exchanged. The state of a
    rank-1 update is additive in `k vᵀ` and in `b rᵀ`, given the transition's
    read r: each is a scan, and their reads are added. So sweeps run in every
    form and on every target that has scans, but the reads no longer share a
    state.

    Before:

    ```mlir
    %o, %p, %s1 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%d, %e) init(%s0) : …
    ```

    After, for a decay `[B, H, T, K]`:

    ```mlir
    %o, %s1 = linattn.scan %q, %k, %v decay(%g) into(%d) init(%s0) : …
    %t0 = linalg.transpose ins(%s0 : …) outs(…) permutation = [0, 1, 3, 2]
    %p, %t1 = linattn.scan %x, %v, %k value_decay(%g) into(%e) init(%t0) : …
    ```

    A `linattn.sweep_selective` becomes the scans of the states and of their
    cotangents, whose heads are its channels, and the equations between them: the
    states of all tokens are stored.
  }];
  let statistics = [
    Statistic<"numSplit", "split", "Number of sweeps that became scans">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // LINATTN_GRADIENT_PASSES_TD
