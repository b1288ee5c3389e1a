//===- Passes.td - Transformations of linattn IR -----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_PASSES_TD
#define LINATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnCausalToScanPass
    : Pass<"linattn-causal-to-scan", "::mlir::func::FuncOp"> {
  let summary = "Turn causal linear attention into a scan over a state";
  let description = [{
    Causal attention with linear weights is a recurrence: each query reads the
    sum of the writes of the keys before it.

    Before:

    ```mlir
    %o = linattn.attention %q, %k, %v {causal} : …
    ```

    After:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%empty) init(%zero) : …
    ```

    Non-causal attention and softmax weights are left alone; for causal softmax
    a missed remark says why. A short sequence needs no other form: without a
    state on either side a scan in one chunk is the quadratic form
    (`linattn-select-form`).
  }];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numScans", "scans", "Number of attentions turned into scans">
  ];
}

def LinAttnReassociatePass
    : Pass<"linattn-reassociate", "::mlir::func::FuncOp"> {
  let summary = "Reassociate (QKᵀ)V into Q(KᵀV) where that is cheaper";
  let description = [{
    Non-causal attention with linear weights is a product of three matrices, and
    matrix products are associative. `(φ(Q)φ(K)ᵀ)V` costs `Nq·Nk·(K + V)`
    multiply-adds, `φ(Q)(φ(K)ᵀV)` costs `(Nq + Nk)·K·V` and never forms an N×N
    value. With static sizes the cheaper one is chosen, by a cost model fitted to
    the kernels; with a dynamic sequence length the choice is made at run time,
    by `scf.if`. The same rewrite applies
    to two chained linalg contractions (`linalg.matmul`, `batch_matmul`, their
    transposed variants, `linalg.generic`), when nothing else uses the product
    in between.

    Softmax weights and causal attention are not such products; they are left
    alone, with a remark. So is an attention whose `config` names the
    quadratic form.

    Before:

    ```mlir
    %o = linattn.attention %q, %k, %v : …
    ```

    After, when N is known to be large:

    ```mlir
    %s = linattn.state %k, %v init(%zero) : …
    %o = linattn.read %q, %s into(%empty) : …
    ```
  }];
  let options = [
    Option<"mode", "mode", "::mlir::linattn::ReassociateMode",
           /*default=*/"::mlir::linattn::ReassociateMode::Auto",
           "When to reassociate",
           [{::llvm::cl::values(
              clEnumValN(::mlir::linattn::ReassociateMode::Auto, "auto",
                         "where the cost model says it is cheaper"),
              clEnumValN(::mlir::linattn::ReassociateMode::Always, "always",
                         "wherever it is legal"),
              clEnumValN(::mlir::linattn::ReassociateMode::Never, "never",
                         "nowhere"))}]>,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits, for the cost model">
  ];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numReassociated", "reassociated", "Number of products reassociated">,
    Statistic<"numAtRunTime", "at-run-time", "Number of choices left to run time">
  ];
}

def LinAttnSelectFormPass
    : Pass<"linattn-select-form", "::mlir::func::FuncOp"> {
  let summary = "Choose the schedule of every recurrence and write it down";
  let description = [{
    Writes `#linattn.config<form, rows, cols, block, …>` on every op that has
    none, from the op's rule and sizes and the target. It changes nothing else:
    later passes only read the attribute, and a user can write it instead.

    A scan gets the legal form of the least predicted cost for many tokens,
    chunks unless another form is predicted to be faster by a third. The model is
    in `linattn/Analysis/FormCost.h`, its constants come from a sweep. The
    choice depends on the rule, the sizes of one head and the target; not on
    batch, heads or threads, so that results do not either. Segments are
    therefore never chosen, only taken where they are given.

    A sequence's own length decides between the schedules of chunks, so that it
    has the same bits alone, in a batch and packed: up to `whole` tokens it is
    one chunk, where the state that comes in is a fill with zero or the one that
    goes out has no use; up to `few` tokens it goes token by token, where a state
    comes in and goes out. Where all sequences are of one static length, what
    does not apply to it is left out.

    Remarks report every choice with its predicted cost and those of the others,
    the lengths up to which a sequence is one chunk or goes token by token, every
    form that is illegal and why, a form that was requested and is
    predicted to be slower, and what is against the user's interest: random
    features that are too few or too many. A form that cannot run an op is an
    error that says why.

    Before:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%e) init(%s0) : …
    ```

    After:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%e) init(%s0)
        {config = #linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>} : …
    ```
  }];
  let options = [
    Option<"form", "form", "std::string", /*default=*/"\"auto\"",
           "Force a form: auto, token, state_tile, chunk, segments, chunk:SIZE or segments:SIZE">,
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers">,
    Option<"l1", "l1", "int64_t", /*default=*/"0",
           "Bytes of a core's first data cache; 0: what cores with such "
           "registers have">,
    Option<"cores", "cores", "int64_t", /*default=*/"1",
           "Cores that share the tasks: for remarks only, never for decisions">
  ];
  let dependentDialects = ["::mlir::linattn::LinAttnDialect"];
}

def LinAttnChunkPass : Pass<"linattn-chunk", "::mlir::func::FuncOp"> {
  let summary = "Tile scans over chunks of tokens";
  let description = [{
    A scan over T tokens becomes a loop of scans over chunks of `chunk` tokens
    that carries the state: chunking is tiling of T. Applies to scans whose
    `config` has form `chunk`, or to all with `chunk-size`. A scan that cannot
    be tiled (reverse, packed sequences) is an error. Used before
    `linattn-decompose`; on buffers, `linattn-lower-to-vector` cuts chunks
    itself.

    Before:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%e) init(%s0) {config = #linattn.config<form = chunk, chunk = 64>} : …
    ```

    After:

    ```mlir
    %r:2 = scf.for %t = %c0 to %T step %c64 iter_args(%o = %e, %s = %s0) -> … {
      … linattn.scan %q_t, %k_t, %v_t into(%o_t) init(%s) : …
    }
    ```
  }];
  let options = [
    Option<"chunkSize", "chunk-size", "int64_t", /*default=*/"0",
           "Chunk every scan by this many tokens; 0: as the config says">,
    Option<"wherePossible", "where-possible", "bool", /*default=*/"false",
           "Leave scans that cannot be tiled as they are">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnExpandSnapshotsPass
    : Pass<"linattn-expand-snapshots", "::mlir::func::FuncOp"> {
  let summary = "Turn scans with snapshots into loops of scans";
  let description = [{
    A scan may be cut at any token, since it starts from the state it is given.
    One that returns `snapshots` becomes a loop of scans over `every` tokens.
    Each starts from the previous state, which is copied to its place among the
    snapshots; a last scan takes the remaining T mod `every` tokens. With
    `reverse` the loop runs from the last tokens to the first. Every form and
    target of a scan therefore supports snapshots.

    Before:

    ```mlir
    %o, %s1, %kept = linattn.scan %q, %k, %v into(%e) init(%s0) snapshots(%p) {every = 64} : …
    ```

    After:

    ```mlir
    %r:3 = scf.for %i = %c0 to %P step %c1 iter_args(%o = %e, %s = %s0, %kept = %p) -> … {
      … linattn.scan %q_i, %k_i, %v_i into(%o_i) init(%s) : …
      … tensor.insert_slice %s_i into %kept[0, %i, 0, 0, 0] …
    }
    … linattn.scan %q_rest, %k_rest, %v_rest into(%o_rest) init(%r#1) : …
    ```
  }];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Number of scans that became loops">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnFuseEpiloguePass
    : Pass<"linattn-fuse-epilogue", "::mlir::func::FuncOp"> {
  let summary = "Let the kernel of a scan apply the norm that follows it";
  let description = [{
    On buffers. A `linattn.output_norm` that is the only reader of a scan's
    outputs moves to its scan, which gets the attribute `linattn.epilogue`.
    `linattn-lower-to-vector` then applies norm, skip, weights and gate to each
    row before it is stored: the row stays in the accumulation type and is
    written once. Operations and their order are the same, so for tokens of that
    type the bits are those of two kernels.

    Whole rows have to belong to one task of the kernel, which is so in the
    forms chunk and state-tile where there are enough heads, or few columns. A
    missed remark says why a norm stays apart.

    Before:

    ```mlir
    linattn.scan %q, %k, %v decay(%g) into(%t) init(%s) : …
    linattn.output_norm %t weight(%w) gate(%z) into(%o) : …
    ```

    After:

    ```mlir
    linattn.scan %q, %k, %v decay(%g) into(%t) init(%s) {linattn.epilogue} : …
    linattn.output_norm %t weight(%w) gate(%z) into(%o) : …
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"256",
           "Width of the vector registers">
  ];
  let statistics = [
    Statistic<"numFused", "fused", "Number of norms that a kernel applies">
  ];
}

def LinAttnFuseProloguePass
    : Pass<"linattn-fuse-prologue", "::mlir::func::FuncOp"> {
  let summary = "Let the kernel of a scan make the rows of its operands";
  let description = [{
    On buffers. A `linalg.generic` that computes a [B, H, T, D] operand of a
    scan, each row from its own token, gets the attribute `linattn.prologue`. So
    do the ops that compute a number per token for it: maps, and sums over a
    row. `linattn-lower-to-vector` then computes a few rows at a time where it
    packs them, and no buffer stores them. Examples are the L2 norm of queries
    and keys, and gates per channel.

    The scan has to be the only one that reads the rows, and what they are made
    of must not change before it runs. A missed remark says why an op stays a
    pass over memory.

    Before:

    ```mlir
    linalg.fill ins(%zero : f32) outs(%s : …)
    linalg.generic … ins(%k : …) outs(%s : …)        // Σ k²
    linalg.generic … ins(%s : …) outs(%n : …)        // 1/√(s + ε)
    linalg.generic … ins(%k, %n : …) outs(%u : …)    // k n
    linattn.scan %q, %u, %v into(%o) init(%S) : …
    ```

    After, each of the first four ops has `{linattn.prologue}`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numFused", "fused", "Number of operands that a kernel makes">
  ];
}

def LinAttnSplitSegmentsPass
    : Pass<"linattn-split-segments", "::mlir::func::FuncOp"> {
  let summary = "Run the segments of long scans in parallel";
  let description = [{
    A scan whose `config` has form `segments` is cut into segments of `segment`
    tokens (0: a length that follows from the number of tokens). A segment maps
    the state it is given to `M S + U`:

    | update | M |
    |---|---|
    | additive | `e^ΣG`: 1, one number per head, or one per row and column of the state |
    | delta, dplr | a K×K matrix: what the segment makes of the identity |

    U and M of all segments are computed in parallel (`linattn.state`, or scans
    whose outputs are not read), a short loop merges them into the states that
    come in, and the scans of all segments run in parallel from those. Segments
    are packed sequences: both steps are ops with `cu_seqlens`. The borders
    depend on the number of tokens alone, so results do not depend on threads;
    they do differ in rounding from those of one pass. A batch is a loop over its
    elements. A scan that cannot be split is an error that says why. The scans
    that come out are left for `linattn-select-form`.

    Before:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%e) init(%s0) {config = #linattn.config<form = segments, segment = 512>} : …
    ```

    After:

    ```mlir
    %u = linattn.state %k, %v cu_seqlens(%first) init(%zeros) : …
    %r:2 = scf.for %i = … iter_args(%s = %s0, %all = %e1) {
      … tensor.insert_slice %s into %all[%i, …], s + %u[%i]
    }
    %o, %s1 = linattn.scan %q, %k, %v cu_seqlens(%borders) into(%e) init(%in) : …
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::linattn::LinAttnDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numSplit", "split", "Number of scans split into segments">
  ];
}

def LinAttnToQuadraticPass
    : Pass<"linattn-to-quadratic", "::mlir::func::FuncOp"> {
  let summary = "State the remaining attentions in the quadratic form";
  let description = [{
    Attention that neither reassociation nor the scan took (softmax weights,
    sequences too short to gain) becomes `linattn.quadratic` with a destination.
  }];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnDecomposePass : Pass<"linattn-decompose", "::mlir::func::FuncOp"> {
  let summary = "Decompose structured ops on tensors into linalg ops";
  let description = [{
    Applies `decomposeOperation` to the ops named in `ops`, all structured ops
    when the list is empty. A scan becomes the masked quadratic form with an
    initial state, so `linattn-chunk` followed by this pass gives the chunk
    form:

    ```
    P = tril(Q Kᵀ)    O = P V + Q S₀    S₁ = S₀ + KᵀV
    ```
  }];
  let options = [
    ListOption<"ops", "ops", "std::string",
               "Names of the ops to decompose, without the dialect">,
    Option<"onlyChunks", "only-chunks", "bool", /*default=*/"false",
           "Decompose only scans whose config has form chunk">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnVerifyContractPass
    : Pass<"linattn-verify-contract", "::mlir::ModuleOp"> {
  let summary = "Check that IR has reached a phase of the pipeline";
  let description = [{
    | phase | promise |
    |---|---|
    | `structured` | no `linattn.attention` is left, only its forms |
    | `linalg` | no linattn op is left |
    | `bufferized` | no tensor is left |

    An op that breaks the promise is an error.
  }];
  let options = [
    Option<"phase", "phase", "std::string", /*default=*/"\"structured\"",
           "structured, linalg or bufferized">
  ];
}

def LinAttnCheckNormalizerPass : Pass<"linattn-check-normalizer", "func::FuncOp"> {
  let summary = "Warn of denominators that may vanish or turn negative";
  let description = [{
    A normalised output is divided by a sum of weights φ(q)·φ(k). The pass
    derives the sign of the weights from the feature map: of a named map from a
    table, of a region by interval arithmetic, of maps that
    `linattn.feature_map` applied beforehand from both. It reports weights of
    any sign, and weights that may all be 0 where eps is 0, as a remark (a
    warning with `as-warnings`). A floor keeps every divisor away from zero.

    ```mlir
    // remark: the denominator may vanish or turn negative: the weights φ(q)·φ(k) may have any sign
    %o = linattn.attention %q, %k, %v {normalize = #linattn.normalize<>} : …
    ```

    The code is left as it is.
  }];
  let options = [
    Option<"asWarnings", "as-warnings", "bool", /*default=*/"false",
           "Report as warnings instead of remarks">
  ];
  let statistics = [
    Statistic<"numWarnings", "num-warnings", "Number of denominators reported">
  ];
}

include "linattn/Transforms/BufferPasses.td"
include "linattn/Transforms/ChunkPasses.td"
include "linattn/Transforms/ForeignPasses.td"

#endif // LINATTN_TRANSFORMS_PASSES_TD
