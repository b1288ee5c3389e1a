//===- ChunkPasses.td - Recurrences as loops over chunks ---*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_CHUNKPASSES_TD
#define LINATTN_TRANSFORMS_CHUNKPASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnExpandFormPass
    : Pass<"linattn-expand-form", "::mlir::func::FuncOp"> {
  let summary = "Expand scans on tensors into loops over the ops of a chunk";
  let description = [{
    A `linattn.scan` or `linattn.state` becomes a loop over chunks of tokens, whose
    body is a dozen `linattn.chunk` ops: products of matrices with triangular,
    decaying weights. A `linattn.read` becomes three of them, without a loop. The
    chunk is that of the op's `#linattn.config`, if its form is `chunk`, else
    `chunk-size`; a decay per column of the state and Oja's rule, which have no
    chunk form, go token by token, and a remark says why.

    With `tasks`, a scan, a state or a read is expanded inside a `scf.forall` over
    sequences and heads of the state, where `linattn-lower-chunks-to-vector` takes it whole:
    known head counts, head sizes that are multiples of 16, no bonus,
    no running maximum, no pool of states. A batch element is a sequence, or each
    of the packed ones. Where several heads of queries read one state, a loop in each chunk
    goes over them. The size of every chunk is
    known there: tokens that are left over are one shorter chunk, or, if their number is
    dynamic, come in chunks of 16 and then token by token. Other ops stay, and a remark says why.
    A `linattn.output_norm` that alone reads the outputs is applied to the rows of each
    chunk, which are then rounded behind it alone.

    A task owns a state that is not read afterwards, and fills one that starts at zero.

    Under `matrix-unit` chunks have one body, which zeros fill up for the last tokens, if they are
    `fill-from` percent of a chunk or more: packs are `padded`, and an unpack takes the first rows. A copy
    of the op processes fewer tokens, the remainder, in the same task; it does so for all behind the last whole
    chunk with a mask, a gate of the values or `reverse`, and the remark says so. A decay per head goes on for as
    many tokens as there are: each chunk selects one of two packed decays, that of the last chunk being zero
    behind them.
    The op takes all tokens of a sequence from zeros that has fewer than 64, or 128 if
    its state is not read afterwards: vectors then read no state. An op of fewer tokens than that, or
    than make a chunk, stays; where a state is given, the attribute `linattn.remainder` lets
    `linattn-select-form` choose the form that a remainder has: token by token where zeros fill up chunks for
    more. `tokens` and `sequences`
    say how many a call has where types leave it open. Where sequences and heads are fewer than `cores`, a
    task has a part of the columns of the values, at least 32; the attribute `linattn.columns` gives the
    remainder the form of all of them. The option
    `where-measured` excludes decays per channel, normalisers, feature maps, transitions and
    gates of their own, one head of one sequence, head sizes that zeros fill up, and
    attention over all keys. Zeros fill up other head sizes of 32 or more to multiples of 16,
    unless a feature map makes other numbers of them. Tasks are made of those ops alone whose
    products a matrix unit of bf16 gains by: of 16-bit tokens with a state in f32, under `fast-products` also
    of f32 tokens. Their chunks are 64 tokens, 32 under a delta rule or `dplr`, unless
    their schedule says otherwise.

    Before:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%dest) init(%s0) : …
    ```

    After:

    ```mlir
    %o, %s = scf.for %t = %c0 to %T step %c16 iter_args(%o_t = %dest, %s_t = %s0) {
      %n  = affine.min affine_map<(d0)[s0] -> (16, s0 - d0)>(%t)[%T]
      …                                                     // slices of n tokens
      %kc = linattn.chunk.pack %k_t into(…) : …
      %vc = linattn.chunk.pack %v_t into(…) : …
      %qc = linattn.chunk.pack %q_t into(…) : …
      %p  = linattn.chunk.scores %qc, %kc into(…) : …
      %oc = linattn.chunk.read %qc, %s_t scores(%p) values(%vc) into(%zeros) : …
      %o1 = linattn.chunk.unpack %oc into(…) : …
      %s1 = linattn.chunk.update keys(%kc) values(%vc) into(%s_t) : …
      …
      scf.yield %o2, %s1
    }
    ```
  }];
  let options = [
    Option<"chunkSize", "chunk-size", "int64_t", /*default=*/"16",
           "Tokens per chunk where the schedule does not say">,
    Option<"tasks", "tasks", "bool", /*default=*/"false",
           "One task a head and sequence, where all chunks have a lowering to vectors">,
    Option<"matrixUnit", "matrix-unit", "bool", /*default=*/"false",
           "With tasks: only where a matrix unit gains by them">,
    Option<"fastProducts", "fast-products", "bool", /*default=*/"false",
           "With matrix-unit: also for those of f32 tokens">,
    Option<"fillFrom", "fill-from", "int64_t", /*default=*/"50",
           "With matrix-unit: tokens that zeros fill up to a chunk, in percent of it">,
    Option<"whereMeasured", "where-measured", "bool", /*default=*/"false",
           "With matrix-unit: only for what was measured to gain by it">,
    Option<"tokens", "tokens", "int64_t", /*default=*/"0",
           "With matrix-unit: tokens of a call whose types leave them open; 0: unknown">,
    Option<"sequences", "sequences", "int64_t", /*default=*/"0",
           "With matrix-unit: sequences of a call whose types leave them open; 0: unknown">,
    Option<"cores", "cores", "int64_t", /*default=*/"1",
           "With matrix-unit: cores of the machine">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of ops expanded">
  ];
}

def LinAttnSelectSummandsPass
    : Pass<"linattn-select-summands", "::mlir::func::FuncOp"> {
  let summary = "Choose by how many bf16 numbers a matrix unit replaces an f32";
  let description = [{
    Writes the `summands` of the products of a chunk on tensors that a matrix unit can
    run: in f32, of one head, with sizes that are known multiples of 16. So it does of a
    `linattn.quadratic` of bf16 tokens without a feature map, of 16 queries or more, with
    known head sizes from 16 on: queries, keys and values are exact, weights are one of the
    others below. It has not been measured: under `where-measured` it stays as it is.

    | matrix | summands | under `fast-products` |
    |---|---|---|
    | bf16 tokens, packed with a scale that is a power of two and without a gate, also under relu | 1, exact | 1 |
    | f16 tokens likewise | 2, exact | 1 |
    | all others: states, scores, decayed keys, tokens in scores that decay per channel, δ of a delta rule | 2 | 1 |
    | f32 tokens | 2 | 2 |

    Two summands hold 16 bits of the significand or more. A product without summands stays
    one of vectors, and a remark says why.

    Before:

    ```mlir
    %p = linattn.chunk.scores %q, %k into(%dest)
      : (tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
    ```

    After:

    ```mlir
    %p = linattn.chunk.scores %q, %k into(%dest) {summands = array<i64: 1, 1>} : …
    ```
  }];
  let options = [
    Option<"fastProducts", "fast-products", "bool", /*default=*/"false",
           "One summand of everything but f32 tokens">,
    Option<"whereMeasured", "where-measured", "bool", /*default=*/"false",
           "Only of what was measured to gain by a matrix unit">
  ];
  let statistics = [
    Statistic<"numProducts", "num-products", "Number of ops with summands">
  ];
}

#endif // LINATTN_TRANSFORMS_CHUNKPASSES_TD
