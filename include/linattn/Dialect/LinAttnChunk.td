//===- LinAttnChunk.td - The algebra of one chunk ----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The level between a recurrence and its loops: a chunk of C tokens as products
// of matrices. Included by LinAttnOps.td, which holds the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNCHUNK_TD
#define LINATTN_DIALECT_LINATTNCHUNK_TD

def LinAttn_Rows : LinAttn_Shaped<[4], "[B, H, C, N] rows">;
def LinAttn_RowsOrNumbers :
    LinAttn_Shaped<[3, 4], "[B, H, C] numbers or [B, H, C, N] rows">;
def LinAttn_Packable :
    LinAttn_Shaped<[1, 3, 4], "[H], [B, H, C] numbers or [B, H, C, N] rows">;
def LinAttn_Numbers : LinAttn_Shaped<[3], "[B, H, C] numbers">;
def LinAttn_Scores : LinAttn_Shaped<[4], "[B, H, C, C] scores">;

/// A step of a chunk, in destination-passing style, on tensors or on buffers.
class LinAttn_ChunkOp<string mnemonic, list<Trait> traits = []>
    : LinAttn_Op<"chunk." # mnemonic, traits # [
        DeclareOpInterfaceMethods<LinAttn_ShapeContractOpInterface>,
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        LinAttn_Tiling,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;
  code intoOutput = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  code intoOutputOfMatrices = intoOutput # [{
    /// The matrices of the product, in the order of `summands`.
    ::llvm::SmallVector<::mlir::Value> getMatrices();
    /// Whether each term of the sums has a decay of its own, so that a product
    /// of matrices does not compute them.
    bool decaysTerms();
  }];
}

//===----------------------------------------------------------------------===//
// pack, unpack
//===----------------------------------------------------------------------===//

def LinAttn_ChunkPackOp : LinAttn_ChunkOp<"pack", [AttrSizedOperandSegments]> {
  let summary = "tokens of a chunk as rows to compute with";
  let description = [{
    ```
    y_t = scale · gate_t ⊙ (x_s − shift_t)      s = t, or C − 1 − t with reverse
        = fill                                  where mask_t is false
        = 0                                     behind the last token, padded
    ```

    The rows have the element type of the destination and its heads: head h reads
    head ⌊h·Hx/H⌋ of the input, and the gate likewise. An input `[H]` is the same
    number at every token. The input is in the order of the tokens; shift, gate
    and mask are in the order of the rows. `fill` is 0 unless given. With `padded`
    the input may have fewer tokens than there are rows.

    The op is linear in x: its adjoint is a `pack` of the same gate and mask.

    Constraints, beside the operand types:
    - (CP1) an input `[B, H, C, N]` is packed into rows, an input `[B, H, C]` or
      `[H]` into numbers.
    - (CP2) input, gate, shift and mask agree with the output in batch size,
      tokens and head size.
    - (CP3) the head counts of input and gate divide that of the output, shift
      and an input `[H]` have the output's.
    - (CP4) a gate `[B, H, C, N]` goes with rows only, a gate has no rank 1.
    - (CP5) fill goes with a mask only.
    - (CP6) scale is 0 or a normal number of the output's element type.
    - (CP7) the scale is an attribute or an operand, as in `linattn.scan`, not both.
    - (CP8) padded goes with an input of tokens, and excludes shift, gate, mask and
      reverse; the input has at most as many tokens as the output.

    Example:

    ```mlir
    %a = linattn.chunk.pack %k gate(%erase) mask(%m) into(%dest) {scale = -1.0}
      : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xf32>, tensor<2x?xi1>, tensor<2x8x?x64xf32>)
      -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Packable:$input, Optional<LinAttn_Numbers>:$shift,
    Optional<LinAttn_RowsOrNumbers>:$gate, Optional<LinAttn_Mask>:$mask,
    Optional<F64>:$scale_value,
    LinAttn_RowsOrNumbers:$output, OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$fill, UnitAttr:$reverse, UnitAttr:$padded);
  let assemblyFormat = [{
    $input (`shift` `(` $shift^ `)`)? (`gate` `(` $gate^ `)`)?
    (`mask` `(` $mask^ `)`)? (`scale` `(` $scale_value^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutput;
}

def LinAttn_ChunkUnpackOp : LinAttn_ChunkOp<"unpack", [AttrSizedOperandSegments]> {
  let summary = "rows of a chunk as tokens of the output";
  let description = [{
    ```
    o_s = y_t                         s = t, or C − 1 − t with reverse
        = y_t / den_t                 with normalize, whose rules are those of linattn.read
    ```

    in the element type of the destination. `running_max` is the m of a
    denominator that is stored times e^{−m}, for an `abs_floor`; head h reads
    head ⌊h·Hm/H⌋ of it.

    Constraints, beside the operand types:
    - (CU1) rows and output have the same shape.
    - (CU2) a denominator `[B, H, C, 1]` is given exactly with normalize.
    - (CU3) running_max `[B, Hm, C]` goes with abs_floor only; Hm divides H.
    - (CU4) denominator and running_max have the element type of the rows.

    Example:

    ```mlir
    %o = linattn.chunk.unpack %y denominator(%den) into(%dest)
        {normalize = #linattn.normalize<eps = 1.0e-6>}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x1xf32>, tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
    ```
  }];
  let arguments = (ins
    LinAttn_Rows:$rows, Optional<LinAttn_Rows>:$denominator,
    Optional<LinAttn_Numbers>:$running_max, LinAttn_Rows:$output,
    OptionalAttr<LinAttn_NormalizeAttr>:$normalize, UnitAttr:$reverse);
  let assemblyFormat = [{
    $rows (`denominator` `(` $denominator^ `)`)?
    (`running_max` `(` $running_max^ `)`)? `into` `(` $output `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutput;
}

//===----------------------------------------------------------------------===//
// decay, stabilize
//===----------------------------------------------------------------------===//

def LinAttn_ChunkDecayOp : LinAttn_ChunkOp<"decay"> {
  let summary = "rows decayed from the start or to the end of their chunk";
  let description = [{
    ```
    y_t = x_t ⊙ e^{g_0 + … + g_t}            from the start, the token's own decay included
        = x_t ⊙ e^{g_0 + … + g_{t-1}}        before: without it
        = x_t ⊙ e^{g_{t+1} + … + g_{C-1}}    to_end
    ```

    g = `decay` holds natural logarithms, one per token or one per token and
    channel. Each factor is the exponential of one sum: a quotient of factors
    would be 0/0 behind a closed gate. Head h reads head ⌊h·Hg/H⌋ of g.

    Constraints, beside the operand types:
    - (CD1) rows and output have the same shape.
    - (CD2) decay is `[B, Hg, C]` or `[B, Hg, C, N]`; Hg divides H.
    - (CD3) before and to_end exclude each other.
    - (CD4) rows, decay and output have the same element type.

    Example:

    ```mlir
    %kd = linattn.chunk.decay %k by(%g) into(%dest) {to_end}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Rows:$rows, LinAttn_RowsOrNumbers:$decay, LinAttn_Rows:$output,
    UnitAttr:$before, UnitAttr:$to_end);
  let assemblyFormat = [{
    $rows `by` `(` $decay `)` `into` `(` $output `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutput;
}

def LinAttn_ChunkStabilizeOp : LinAttn_ChunkOp<"stabilize"> {
  let summary = "the running maximum that keeps exponentials of a chunk small";
  let description = [{
    With i_t = `magnitude_t`, or its largest feature, and g = `decay` (0 if
    absent),

    ```
    m_t    = max(m_{t-1} + g_t, i_t)        = max(m_{t-1}, i_t) with steady
    fade_t = g_t + m_{t-1} − m_t
    ```

    m_{-1} is the `running_max` that comes in, and the one that goes out is the
    last m. A state that is stored times e^{−m} decays by e^{fade_t}, and token t
    writes e^{i_t − m_t}. Where no token has been written, m_t is the lowest finite
    number in `maxima` and `fade`, whose differences are numbers.

    Constraints, beside the operand types:
    - (CM1) magnitude, decay, fade and maxima agree in batch size, head count and
      tokens, with the `[B, H]` of running_max.
    - (CM2) fade has the shape of decay, or without one that of maxima.
    - (CM3) a decay `[B, H, C, K]` goes with steady only: one maximum cannot
      follow a decay per channel.
    - (CM4) all have the same element type.

    Example:

    ```mlir
    %f, %m, %m1 = linattn.chunk.stabilize %i decay(%g) into(%f0, %dest) init(%m0)
      : (tensor<2x8x?xf32>, tensor<2x8x?xf32>, tensor<2x8x?xf32>, tensor<2x8x?xf32>, tensor<2x8xf32>)
      -> (tensor<2x8x?xf32>, tensor<2x8x?xf32>, tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_RowsOrNumbers:$magnitude, Optional<LinAttn_RowsOrNumbers>:$decay,
    LinAttn_RowsOrNumbers:$fade, LinAttn_Numbers:$maxima,
    LinAttn_RunningMax:$running_max, UnitAttr:$steady);
  let assemblyFormat = [{
    $magnitude (`decay` `(` $decay^ `)`)? `into` `(` $fade `,` $maxima `)`
    `init` `(` $running_max `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Fade, maxima and running maximum.
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
}

//===----------------------------------------------------------------------===//
// scores, solve
//===----------------------------------------------------------------------===//

def LinAttn_ChunkScoresOp : LinAttn_ChunkOp<"scores", [AttrSizedOperandSegments]> {
  let summary = "products of rows and keys under a causal mask, with decays";
  let description = [{
    ```
    P_tj = Σ_d x_td e^{g_{j+1,d} + … + g_td} k_jd      j ≤ t
         = 0                                           j > t, with strict j ≥ t
    ```

    With `before`, row t meets the keys before its own decay: the sum of
    logarithms ends at t − 1. With a `bonus` u the diagonal is
    P_tt = Σ_d x_td u_d k_td. Rows may have more heads than keys: head h meets key
    head ⌊h·Hk/H⌋, and decay and bonus likewise.

    `summands` permits a matrix unit to replace each element of rows and of keys by
    the sum of so many bf16 numbers, each what those before it left over, rounded to
    nearest even. Of the products of summands a and b, counted from 0, those with
    a + b below the larger count are summed. Under a decay `[B, Hg, C, N]` the
    elements come with a part of it each; rows and keys close to each other may keep
    the element type. Without `summands` products are in the element type.

    Constraints, beside the operand types:
    - (CS1) rows and keys agree in batch size, tokens and head size.
    - (CS2) the output is `[B, H, C, C]` with the heads of the rows.
    - (CS3) the head counts of keys, decay and bonus divide that of the rows.
    - (CS4) decay is `[B, Hg, C]` or `[B, Hg, C, N]`, bonus `[Hu, N]`.
    - (CS5) before and bonus go with strict only.
    - (CS6) rows, keys, decay and output have the same element type.
    - (CS7) summands are two numbers, of rows and keys, each 1, 2 or 3; the op is in
      f32.

    Example:

    ```mlir
    %p = linattn.chunk.scores %q, %k decay(%g) into(%dest)
      : (tensor<2x8x?x64xf32>, tensor<2x4x?x64xf32>, tensor<2x4x?xf32>, tensor<2x8x?x?xf32>)
      -> tensor<2x8x?x?xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Rows:$rows, LinAttn_Rows:$keys,
    Optional<LinAttn_RowsOrNumbers>:$decay, Optional<LinAttn_Bonus>:$bonus,
    LinAttn_Scores:$output, UnitAttr:$strict, UnitAttr:$before,
    LinAttn_Summands:$summands);
  let assemblyFormat = [{
    $rows `,` $keys (`decay` `(` $decay^ `)`)? (`bonus` `(` $bonus^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutputOfMatrices;
}

def LinAttn_ChunkSolveOp : LinAttn_ChunkOp<"solve"> {
  let summary = "forward substitution with a unit lower triangular matrix";
  let description = [{
    Replaces the rows y by the solution x of (I − Diag(gate) A) x = gate ⊙ y, with
    A strictly lower triangular:

    ```
    x_t = gate_t ⊙ (y_t + Σ_{j<t} A_tj x_j)
    x_t = gate_t ⊙ (y_t + Σ_{j>t} A_jt x_j)      transpose
    ```

    Elements of A on and above its diagonal are not read. The gate is 1 if absent.
    The adjoint in y of either is the other.

    Constraints, beside the operand types:
    - (CV1) scores are `[B, H, C, C]` with batch size, heads and tokens of the rows.
    - (CV2) gate is `[B, Hg, C]` or `[B, Hg, C, N]`; Hg divides H.
    - (CV3) all have the same element type.

    Example:

    ```mlir
    %d = linattn.chunk.solve %a gate(%beta) into(%y)
      : (tensor<2x8x?x?xf32>, tensor<2x8x?xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Scores:$scores, Optional<LinAttn_RowsOrNumbers>:$gate,
    LinAttn_Rows:$output, UnitAttr:$transpose);
  let assemblyFormat = [{
    $scores (`gate` `(` $gate^ `)`)? `into` `(` $output `)` attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutput;
}

//===----------------------------------------------------------------------===//
// read, update
//===----------------------------------------------------------------------===//

def LinAttn_ChunkReadOp : LinAttn_ChunkOp<"read", [AttrSizedOperandSegments]> {
  let summary = "rows times the state, plus scores times values";
  let description = [{
    Adds to the rows y of the destination

    ```
    y_t += Sᵀ x_t + Σ_w Σ_{j≤t} P^w_tj v^w_j          j < t with strict
    y_t += S x_t  + …                                 transpose
    y_t += …      + Σ_w Σ_{j≥t} P^w_jt v^w_j          adjoint, j > t with strict
    ```

    With g = `decay`, natural logarithms, the columns of state and values decay
    until row t reads them, or back to it:

    ```
    y_t += e^{g_0 + … + g_t} ⊙ Sᵀ x_t         + Σ_w Σ_{j≤t} P^w_tj e^{g_{j+1} + … + g_t} ⊙ v^w_j
    y_t += e^{g_{t+1} + … + g_{C-1}} ⊙ Sᵀ x_t + Σ_w Σ_{j≥t} P^w_jt e^{g_{t+1} + … + g_j} ⊙ v^w_j      adjoint
    ```

    With `adjoint` the scores are those of later tokens with this one. Values of
    tokens on the other side are left out, not multiplied by 0. Rows, scores and
    output have the same heads; state and values may have fewer, head h reads
    head ⌊h·Hs/H⌋. `summands` are those of `linattn.chunk.scores`, for each product
    those of its two matrices.

    Constraints, beside the operand types:
    - (CR1) rows, state and output agree in batch size; rows and output in head
      count and tokens.
    - (CR2) rows have the K features of the state `[B, Hs, K, V]` and the output
      its V columns; with transpose the other way round.
    - (CR3) there are as many values as scores; each scores are `[B, H, C, C]`, each
      values `[B, Hv, C, N]` with the N of the output.
    - (CR4) the head counts of state and values divide that of the output.
    - (CR5) all have the same element type.
    - (CR6) summands are a number for rows, state, each scores and each values, in
      the order of the operands, each 1, 2 or 3; the op is in f32.
    - (CR7) decay is `[B, Hg, C, N]` with the tokens and the N of the output; Hg
      divides H.

    Example:

    ```mlir
    %o = linattn.chunk.read %q, %s scores(%p) values(%v) into(%zero)
      : (tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x?x?xf32>, tensor<2x8x?x64xf32>,
         tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Rows:$rows, LinAttn_State:$state, Variadic<LinAttn_Scores>:$scores,
    Variadic<LinAttn_Rows>:$values, Optional<LinAttn_Rows>:$decay,
    LinAttn_Rows:$output, UnitAttr:$strict, UnitAttr:$transpose,
    UnitAttr:$adjoint, LinAttn_Summands:$summands);
  let assemblyFormat = [{
    $rows `,` $state (`scores` `(` $scores^ `)`)? (`values` `(` $values^ `)`)?
    (`decay` `(` $decay^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutputOfMatrices;
}

def LinAttn_ChunkUpdateOp : LinAttn_ChunkOp<"update", [AttrSizedOperandSegments]> {
  let summary = "the state behind a chunk: decayed, and what its tokens write";
  let description = [{
    ```
    S ← Diag(e^{Σ_t g_t}) S Diag(e^{Σ_t h_t}) + Σ_w Σ_t k^w_t (v^w_t)ᵀ
    ```

    with g = `decay` and h = `value_decay`, natural logarithms. The keys come
    decayed to the end of the chunk (`linattn.chunk.decay … {to_end}`). In f32,
    what the rounding of the factor e^{Σ g} leaves over, times S, is added to the
    writes: a slow decay would lose it at every chunk, always the same way.
    `summands` are those of `linattn.chunk.scores`; the state itself is not rounded.

    Constraints, beside the operand types:
    - (CW1) there are as many values as keys, with the batch size and heads of the
      state `[B, H, K, V]`; keys are `[B, H, C, K]`, values `[B, H, C, V]`.
    - (CW2) decay is `[B, H, C]` or `[B, H, C, K]`, value_decay `[B, H, C, V]`.
    - (CW3) all have the same element type.
    - (CW4) summands are a number for each keys and then for each values, each 1, 2
      or 3; the op is in f32.

    Example:

    ```mlir
    %s1 = linattn.chunk.update keys(%k) values(%v) decay(%g) into(%s0)
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?xf32>, tensor<2x8x64x64xf32>)
      -> tensor<2x8x64x64xf32>
    ```
  }];
  let arguments = (ins
    Variadic<LinAttn_Rows>:$keys, Variadic<LinAttn_Rows>:$values,
    Optional<LinAttn_RowsOrNumbers>:$decay, Optional<LinAttn_Rows>:$value_decay,
    LinAttn_State:$output, LinAttn_Summands:$summands);
  let assemblyFormat = [{
    (`keys` `(` $keys^ `)`)? (`values` `(` $values^ `)`)?
    (`decay` `(` $decay^ `)`)? (`value_decay` `(` $value_decay^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = intoOutputOfMatrices;
}

#endif // LINATTN_DIALECT_LINATTNCHUNK_TD
