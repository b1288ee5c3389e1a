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
    sum of what the keys before it wrote.

    Before:

    ```mlir
    %o = linattn.attention %q, %k, %v {causal} : …
    ```

    After:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%empty) init(%zero) : …
    ```

    Non-causal attention and softmax weights are left alone; for causal softmax
    a missed remark says why. Another one tells for how many tokens the
    quadratic form, which can be asked for, is predicted to be faster.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits, for the cost model">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers, for the cost model">
  ];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numScans", "scans", "Number of attentions turned into scans">
  ];
}

def LinAttnRaiseOnnxPass : Pass<"linattn-raise-onnx", "::mlir::func::FuncOp"> {
  let summary = "Raise the LinearAttention operator of ONNX to a scan";
  let description = [{
    Takes `"onnx.LinearAttention"` (opset 27) in the generic form, as importers
    leave it (`--allow-unregistered-dialect`), or `"torch.operator"` with that
    name and builtin tensors, and states it as a scan. Tokens come packed,
    `[B, T, H·D]`; `linattn.permute` presents them as `[B, H, T, D]` by strides, and
    the result is computed where the caller wants it: nothing is copied but a
    state of another element type and a beta that all heads share.

    | `update_rule` | the scan |
    |---|---|
    | `linear` | `S ← S + k vᵀ` |
    | `gated` | `S ← e^g S + k vᵀ` |
    | `delta` | `S ← S + β k (v − Sᵀk)ᵀ` |
    | `gated_delta` | the same after `S ← e^g S` |

    and `o = scale · Sᵀq`. Sums are f32, or f64 for f64 tokens. `chunk_size` is a
    hint without effect on the result and is not used.

    The rules of the operator, each an error on the op where it is broken:
    - (N1) query, key, value, past_state, decay, beta and erase_gate in this order;
      absent ones are left out at the end or have a type `none`. One or two
      results, output and present_state.
    - (N2) query, key, value, decay, beta and erase_gate are `[B, T, F]` tensors of
      one element type, f16, bf16, f32 or f64; their B and T agree.
    - (N3) `q_num_heads` and `kv_num_heads` are positive, the first a multiple of
      the second; query head h reads KV head ⌊h / (Hq / Hkv)⌋.
    - (N4) the packed sizes are Hq·d_k, Hkv·d_k, Hkv·d_v with one d_k, which is known
      unless `scale` is given.
    - (N5) `update_rule` is one of the four, `gated_delta` when absent.
    - (N6) decay comes exactly with `gated` and `gated_delta`, its last size Hkv (tried
      first) or Hkv·d_k.
    - (N7) beta comes exactly with `delta` and `gated_delta`, its last size Hkv or 1.
    - (N8) erase_gate (of later versions) comes with `delta` or `gated_delta` only, its
      last size Hkv·d_k; the delta rule then reads `Sᵀ(erase_gate ⊙ k)`.
    - (N9) past_state is `[B, Hkv, d_k, d_v]`; present_state has its element type, or
      the query's without one. output is `[B, T, Hq·d_v]` of the query's.
    - (N10) `scale` is a finite number, 1/√d_k where it is 0 or absent; no attribute is
      unknown.

    Before:

    ```mlir
    %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s0, %g, %b)
        {q_num_heads = 8 : si64, kv_num_heads = 4 : si64} : (tensor<1x?x512xf32>, …
    ```

    After:

    ```mlir
    %e = tensor.expand_shape %q [[0], [1], [2, 3]] … into tensor<1x?x8x64xf32>
    %h = linattn.permute %e [0, 2, 1, 3] : tensor<1x?x8x64xf32> to tensor<1x8x?x64xf32>
    %r, %s1 = linattn.scan %h, … decay(%g1) beta(%b1) update(delta) into(%d) init(%s0) …
    %p = linattn.permute %r [0, 2, 1, 3] : …
    %o = tensor.collapse_shape %p [[0], [1], [2, 3]] : …
    ```

    Other ops are left alone.
  }];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "Number of operators raised">
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

    Softmax weights and causal attention are no such product; they are left
    alone, with a remark. So is an attention whose `config` asks for the
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

    A scan gets the legal form of the least predicted cost, the additive state
    tile unless another form is predicted to be faster by a tenth. The model is
    in `linattn/Analysis/FormCost.h`, its constants come from a sweep. The
    choice depends on the rule, the sizes of one head and the target; not on
    batch, heads or threads, so that results do not either. Segments are
    therefore never chosen, only asked for.

    Remarks tell every choice with its predicted cost and those of the others,
    every form that is illegal and why, a form that was asked for and is
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
           "Cores that share the tasks: told of in remarks, never decided by">
  ];
  let dependentDialects = ["::mlir::linattn::LinAttnDialect"];
}

def LinAttnChunkPass : Pass<"linattn-chunk", "::mlir::func::FuncOp"> {
  let summary = "Tile scans over chunks of tokens";
  let description = [{
    A scan over T tokens becomes a loop of scans over chunks of `chunk` tokens,
    the state carried from one to the next: chunking is tiling of T. Applies to
    scans whose `config` has form `chunk`, or to all with `chunk-size`. A scan
    that cannot be tiled (reverse, packed sequences) is an error. For the way
    through linalg, before `linattn-decompose`; on buffers
    `linattn-lower-to-vector` cuts chunks itself.

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
    whose outputs nobody reads), a short loop merges them into the states that
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
    What neither reassociation nor the scan took (softmax weights, sequences too
    short to gain) becomes `linattn.quadratic` with a destination.
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

    What breaks the promise is an error at the op that does.
  }];
  let options = [
    Option<"phase", "phase", "std::string", /*default=*/"\"structured\"",
           "structured, linalg or bufferized">
  ];
}

//===----------------------------------------------------------------------===//
// From tensor functions to machine code
//===----------------------------------------------------------------------===//

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
    and tells of the first element that is positive or NaN; −∞ is a decay. A
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
           "What is known about the innermost stride of the caller's buffers.",
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
           "What is known about the innermost stride of the caller's buffers.",
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
    chain of dependent additions. So a matrix product runs as i, k, j and LLVM
    vectorises over j. Strided `memref.copy` becomes loops too, because its
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
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
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
    whatever the machine.

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
    "::mlir::LLVM::LLVMDialect"
  ];
}

def LinAttnExpandMathPass : Pass<"linattn-expand-math"> {
  let summary = "Expand transcendental functions of f32 into vector arithmetic";
  let description = [{
    Scalars and vectors of f32 get the polynomial approximations of MLIR, and an
    exponential of 14 operations, so no call to libm interrupts a vector loop and
    a remainder loop computes the same bits as the vectorised part. f16 and bf16
    operands are widened to f32 first. f64 is left alone: it becomes calls to libm.

    Before:

    ```mlir
    %0 = math.exp %x : vector<16xf32>
    ```

    After:

    ```mlir
    // clamp, split off the exponent, evaluate a polynomial with math.fma, scale
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
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

def LinAttnCheckNormalizerPass : Pass<"linattn-check-normalizer", "func::FuncOp"> {
  let summary = "Warn of denominators that may vanish or turn negative";
  let description = [{
    A normalised output is divided by a sum of weights φ(q)·φ(k). The pass tells
    the sign of the weights from the feature map: of named maps from a table, of
    a region by following its arithmetic on intervals, of maps applied beforehand
    by `linattn.feature_map` from both of them. Weights of any sign are reported
    as a remark (a warning with `as-warnings`), and so are weights that may all be
    0 where eps is 0. A floor keeps every divisor away from zero.

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

#endif // LINATTN_TRANSFORMS_PASSES_TD
