//===- LinAttnRecurrences.td - Recurrences beyond scan -----*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recurrences beyond `linattn.scan`: a decay of its own for every element of the
// state, complex states, a quotient with a running maximum per channel, and one
// state per level of a tree over time. Included by LinAttnOps.td, which holds
// the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNRECURRENCES_TD
#define LINATTN_DIALECT_LINATTNRECURRENCES_TD

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def LinAttn_ChannelTokens : LinAttn_Shaped<[3], "[B, T, C] tokens">;
def LinAttn_ChannelOrTokens : LinAttn_Shaped<[1, 3], "[C] or [B, T, C] operand">;
def LinAttn_Channels : LinAttn_Shaped<[1], "[C] operand">;
def LinAttn_ChannelMatrix : LinAttn_Shaped<[2], "[C, N] operand">;
def LinAttn_Projection :
    LinAttn_Shaped<[2, 3, 4], "[C, N], [B, T, N] or [B, G, T, N] operand">;
def LinAttn_ChannelState : LinAttn_Shaped<[2], "[B, C] state">;
def LinAttn_WideChannelState : LinAttn_Shaped<[3], "[B, C, N] state">;
def LinAttn_QuotientState : LinAttn_Shaped<[3], "[B, 3, C] state">;
def LinAttn_HeadTokens : LinAttn_Shaped<[3], "[B, H, T] gate">;
def LinAttn_LevelState : LinAttn_Shaped<[5], "[B, H, L, K, V] state">;
def LinAttn_Positions :
    AnyTypeOf<[TensorRankOf<[I32, I64], [1]>, MemRefRankOf<[I32, I64], [1]>],
              "[B] positions as a ranked tensor or memref of i32 or i64">;

/// A recurrence over tokens in destination-passing style: outputs, then states.
class LinAttn_RecurrenceOp<string mnemonic, list<Trait> traits = []>
    : LinAttn_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<LinAttn_ShapeContractOpInterface>,
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<LinAttn_RecurrenceOpInterface>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        LinAttn_Tiling,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;
  code baseDeclaration = [{
    /// Outputs, then states.
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
  let extraClassDeclaration = baseDeclaration;
}

//===----------------------------------------------------------------------===//
// selective_scan
//===----------------------------------------------------------------------===//

def LinAttn_SelectiveScanOp : LinAttn_RecurrenceOp<"selective_scan", [AttrSizedOperandSegments]> {
  let summary = "state space with a decay per channel and state (Mamba-1, S4D)";
  let description = [{
    Per channel c with N states, for t = 0, 1, …:

    ```
    Δ_t    = delta_t (+ delta_bias), through softplus under `delta_softplus`
    h_t[n] = e^{Δ_t a[n]} h_{t-1}[n] + Δ_t b_t[n] u_t
    y_t    = Re Σ_n c_t[n] h_t[n] + skip · u_t
    o_t    = y_t · silu(gate_t)
    ```

    (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State
    Spaces", 2023.) `input` u, `gate` and the output are `[B, T, C]`; the
    official `[B, C, T]` is a matter of strides. `delta` is `[B, T, C]`, or `[C]`
    for a fixed step; `a` `[C, N]`; `b` and `c` are `[B, T, N]`, `[B, G, T, N]`
    with the channels in G groups, or `[C, N]` for fixed ones: with all three
    fixed it is S4D (Gu et al., "On the Parameterization and Initialization of
    Diagonal State Space Models", 2022).

    `a_imag` makes the state complex; it is then carried as two tensors. `b_imag`
    and `c_imag` may be given too. Where the states stand for themselves and
    their conjugates, `c` comes doubled.

    Starts from the state it is given and returns the final one: a sequence
    split anywhere gives the same bits. With `cu_seqlens` (N+1 offsets, B = 1)
    the state's first dimension counts sequences. `reverse` runs from the last
    token to the first.

    Constraints, beside the operand types:
    - (M1) input, gate and output have the same shape; input and output the same
      element type.
    - (M2) delta is `[B, T, C]` or `[C]`.
    - (M3) a is `[C, N]`; skip and delta_bias are `[C]`.
    - (M4) b and c are `[C, N]`, `[B, T, N]` or `[B, G, T, N]` with a G that
      divides C; if both depend on the token, they have the same rank and G.
    - (M5) a_imag and init_imag come together; b_imag and c_imag need a_imag. An
      imaginary part has the shape of its real part.
    - (M6) the state is `[B, C, N]` of f32 or f64, f64 for tokens of f64; both
      parts of it have one type.
    - (M7) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.

    Example:

    ```mlir
    %y, %h1 = linattn.selective_scan %u, %delta, %a, %b, %c skip(%d) gate(%z)
        into(%dest) init(%h0) {delta_softplus}
      : (tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<512x16xf32>, tensor<2x?x16xf32>,
         tensor<2x?x16xf32>, tensor<512xf32>, tensor<2x?x512xf32>, tensor<2x?x512xf32>,
         tensor<2x512x16xf32>) -> (tensor<2x?x512xf32>, tensor<2x512x16xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_ChannelTokens:$input, LinAttn_ChannelOrTokens:$delta,
    LinAttn_ChannelMatrix:$a, LinAttn_Projection:$b, LinAttn_Projection:$c,
    Optional<LinAttn_ChannelMatrix>:$a_imag,
    Optional<LinAttn_Projection>:$b_imag, Optional<LinAttn_Projection>:$c_imag,
    Optional<LinAttn_Channels>:$skip, Optional<LinAttn_ChannelTokens>:$gate,
    Optional<LinAttn_Channels>:$delta_bias,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_ChannelTokens:$output, LinAttn_WideChannelState:$state,
    Optional<LinAttn_WideChannelState>:$state_imag,
    UnitAttr:$delta_softplus, UnitAttr:$reverse);
  let assemblyFormat = [{
    $input `,` $delta `,` $a `,` $b `,` $c
    (`a_imag` `(` $a_imag^ `)`)? (`b_imag` `(` $b_imag^ `)`)?
    (`c_imag` `(` $c_imag^ `)`)? (`skip` `(` $skip^ `)`)?
    (`gate` `(` $gate^ `)`)? (`delta_bias` `(` $delta_bias^ `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `)` `init` `(` $state `)`
    (`init_imag` `(` $state_imag^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// diagonal_scan
//===----------------------------------------------------------------------===//

def LinAttn_DiagonalScanOp : LinAttn_RecurrenceOp<"diagonal_scan", [AttrSizedOperandSegments]> {
  let summary = "elementwise recurrence, real or complex (LRU, HGRN)";
  let description = [{
    Per channel, for t = 0, 1, …:

    ```
    h_t = λ_t h_{t-1} + x_t        λ = e^{decay + i·phase}
    ```

    `decay` is the logarithm of |λ|, ≤ 0, and `phase` its angle in radians, `[C]`
    or `[B, T, C]`. With a phase the state is complex and is carried as two
    tensors; `imag` is the imaginary part of x (0 if absent), and the imaginary
    part of every h_t is stored only where `into_imag` gives it a place. Without
    one all is real: HGRN (Qin et al., 2023), RG-LRU, minGRU. Between two
    products with matrices it is the LRU (Orvieto et al., "Resurrecting Recurrent
    Neural Networks for Long Sequences", 2023) or S5.

    Starts from the state it is given and returns the final one: a sequence
    split anywhere gives the same bits. `cu_seqlens` and `reverse` as in
    `linattn.scan`.

    Constraints, beside the operand types:
    - (D1) input, imag, output and output_imag have the same shape and element
      type.
    - (D2) decay and phase are `[C]` or `[B, T, C]`.
    - (D3) phase and init_imag come together; imag and into_imag need a phase.
    - (D4) the state is `[B, C]` of f32 or f64, f64 for tokens of f64; both parts
      of it have one type.
    - (D5) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.

    Example:

    ```mlir
    %h, %s1 = linattn.diagonal_scan %x decay(%g) into(%dest) init(%s0)
      : (tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<2x512xf32>)
      -> (tensor<2x?x512xf32>, tensor<2x512xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_ChannelTokens:$input, Optional<LinAttn_ChannelTokens>:$imag,
    LinAttn_ChannelOrTokens:$decay, Optional<LinAttn_ChannelOrTokens>:$phase,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_ChannelTokens:$output, Optional<LinAttn_ChannelTokens>:$output_imag,
    LinAttn_ChannelState:$state, Optional<LinAttn_ChannelState>:$state_imag,
    UnitAttr:$reverse);
  let assemblyFormat = [{
    $input (`imag` `(` $imag^ `)`)? `decay` `(` $decay `)`
    (`phase` `(` $phase^ `)`)? (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `)` (`into_imag` `(` $output_imag^ `)`)?
    `init` `(` $state `)` (`init_imag` `(` $state_imag^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// wkv4
//===----------------------------------------------------------------------===//

def LinAttn_Wkv4Op : LinAttn_RecurrenceOp<"wkv4"> {
  let summary = "weighted average of values per channel (RWKV-4)";
  let description = [{
    Per channel, for t = 0, 1, …, with exponential keys, a constant decay and a
    bonus for the current token:

    ```
    o_t = (A_{t-1} + e^{bonus + k_t} v_t) / (B_{t-1} + e^{bonus + k_t})
    A_t = e^{decay} A_{t-1} + e^{k_t} v_t        B_t = e^{decay} B_{t-1} + e^{k_t}
    ```

    (Peng et al., "RWKV: Reinventing RNNs for the Transformer Era", 2023.)
    `decay` ≤ 0 is the logarithm of the factor per token. The state holds
    A e^{-m}, B e^{-m} and the running maximum m_t = max(m_{t-1} + decay, k_t), in
    this order, so that no exponential of a positive number is formed. To start
    from nothing, A = B = 0 and m = −∞ or the lowest finite value; the m that
    comes out is finite. It is rounded at every token, which the factors of A and
    B make up for: A e^{-m} and B e^{-m} belong to the m beside them. Where
    nothing has any weight the output is 0.

    Starts from the state it is given and returns the final one: a sequence
    split anywhere gives the same bits. `cu_seqlens` and `reverse` as in
    `linattn.scan`.

    Constraints, beside the operand types:
    - (W1) key, value and output have the same shape and element type.
    - (W2) decay and bonus are `[C]`.
    - (W3) the state is `[B, 3, C]`, the 3 static, of f32 or f64, f64 for tokens of f64.
    - (W4) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.

    Example:

    ```mlir
    %o, %s1 = linattn.wkv4 %k, %v decay(%w) bonus(%u) into(%dest) init(%s0)
      : (tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<512xf32>, tensor<512xf32>,
         tensor<2x?x512xf32>, tensor<2x3x512xf32>)
      -> (tensor<2x?x512xf32>, tensor<2x3x512xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_ChannelTokens:$key, LinAttn_ChannelTokens:$value,
    LinAttn_Channels:$decay, LinAttn_Channels:$bonus,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_ChannelTokens:$output, LinAttn_QuotientState:$state,
    UnitAttr:$reverse);
  let assemblyFormat = [{
    $key `,` $value `decay` `(` $decay `)` `bonus` `(` $bonus `)`
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `)` `init` `(` $state `)`
    attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// log_linear
//===----------------------------------------------------------------------===//

def LinAttn_LogLinearOp : LinAttn_RecurrenceOp<"log_linear", [AttrSizedOperandSegments]> {
  let summary = "one state per level of a Fenwick tree over time";
  let description = [{
    Linear attention whose weights also depend on how far away a token is, on a
    logarithmic scale (Guo et al., "Log-Linear Attention", 2025):

    ```
    o_t = scale · Σ_{j ≤ t} levels_t[ℓ(t, j)] e^{g_{j+1} + … + g_t} (q_t·k_j) v_j
    ℓ(t, j) = the number of bits of t xor j
    ```

    with t and j counted from the start of the sequence, and g = `decay`. Level 0
    is the token itself; level ℓ holds the tokens whose position differs from t
    in bit ℓ−1 at the highest, at most 2^{ℓ-1} of them. One state per level is
    all there is to carry, log T states for T tokens. Per state head, for each
    token:

    ```
    S[ℓ]  ← S[0] + … + S[ℓ], S[i] ← 0 for i < ℓ     ℓ = number of bits of t & −t, if t > 0
    S[i]  ← e^{g_t} S[i]   for all i,    then  S[0] ← S[0] + k_t v_tᵀ
    o_t   = scale · Σ_i levels_t[i] S[i]ᵀ q_t
    ```

    With L levels, everything beyond the last level belongs to the last.
    `position` says how many tokens each sequence has had before the first one
    here (0 if absent), which makes the states of a former call the `init` of the
    next; a sequence split anywhere gives the same bits. Heads are grouped as in
    `linattn.scan`, `cu_seqlens` too.

    Constraints, beside the operand types:
    - (L1) query and key have the same head size.
    - (L2) query, key and value have the same sequence length.
    - (L3) query, key, value and output have the same batch size.
    - (L4) head counts divide one another.
    - (L5) query, key, value and output have the same element type.
    - (L6) the state is `[B, max(Hk, Hv), L, K, V]` of f32 or f64, f64 for tokens
      of f64, with a static L > 0.
    - (L7) output is `[B, max(Hq, Hk, Hv), T, V]`.
    - (L8) decay is `[B, H, T]`, levels `[B, H, T, L]`.
    - (L9) position has one entry per state.
    - (L10) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.
    - (L11) scale is 0 or a normal number of the accumulation type.

    Example:

    ```mlir
    %o, %s1 = linattn.log_linear %q, %k, %v decay(%g) levels(%l) into(%dest) init(%s0)
        {scale = 0.125}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?xf32>,
         tensor<2x8x?x12xf32>, tensor<2x8x?x64xf32>, tensor<2x8x12x64x64xf32>)
      -> (tensor<2x8x?x64xf32>, tensor<2x8x12x64x64xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_HeadTokens>:$decay, LinAttn_Tokens:$levels,
    Optional<LinAttn_Positions>:$position,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_Tokens:$output, LinAttn_LevelState:$state,
    OptionalAttr<F64Attr>:$scale);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` `(` $decay^ `)`)?
    `levels` `(` $levels `)` (`position` `(` $position^ `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `)` `init` `(` $state `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = baseDeclaration # [{
    bool getReverse() { return false; }
  }];
}

#endif // LINATTN_DIALECT_LINATTNRECURRENCES_TD
