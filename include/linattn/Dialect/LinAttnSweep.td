//===- LinAttnSweep.td - Backward passes of recurrences ----*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by LinAttnOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNSWEEP_TD
#define LINATTN_DIALECT_LINATTNSWEEP_TD

def LinAttn_SweepOp : LinAttn_RecurrenceOp<"sweep", [AttrSizedOperandSegments]> {
  let summary = "a scan whose state is read along its keys and along its values";
  let description = [{
    The state of a scan's backward pass: one pass over the tokens gives both
    products of a state with vectors. Per head, for
    t = 0, 1, …:

    ```
    r_t = S_{t-1}ᵀ a_t
    S_t = Diag(e^{decay_t}) S_{t-1} + b_t r_tᵀ + k_t v_tᵀ
    o_t = scale · Xᵀ q_t        X = S_t (readout inclusive) or S_{t-1} (exclusive)
    p_t = scale · X x_t         x: value_query, p: value_output
    ```

    With `decay_writes` a key meets the decay of its token: `e^{decay_t} ⊙ k_t`
    is written in place of `k_t`. Without `a` and `b` the update is additive. The
    first output is that of
    `linattn.scan` with `update(add)`, or `update(dplr) transition(before)`; the
    second one that of the scan of the transposed state, whose keys and values
    are exchanged. `linattn-split-sweeps` writes these scans; a schedule in
    chunks shares the state, its updates and the packed tokens instead.
    `cu_seqlens`, `reverse`, `init` and the type of the state as in
    `linattn.scan`.

    Constraints, beside the operand types:
    - (W1) query and key have the same head size, value and value_query the same
      value size, output has the latter, value_output the former.
    - (W2) all have the same batch size, head count and sequence length.
    - (W3) all tokens have the same element type.
    - (W4) state is `[B, H, K, V]` of the accumulation type or of f64.
    - (W5) decay is `[H]`, `[B, H, T]` or `[B, H, T, K]`; a and b are
      `[B, H, T, K]`.
    - (W6) a and b come together.
    - (W7) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.
    - (W8) scale is 0 or a normal number of the state's type.
    - (W9) a constant decay holds natural logarithms of at most 0.
    - (W10) decay_writes needs a decay, and excludes a and b.

    Example:

    ```mlir
    %o, %p, %s1 = linattn.sweep %q, %k, %v decay(%g) value_query(%x)
        into(%dest, %value_dest) init(%s0) {reverse}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x32xf32>, tensor<2x8x?xf32>,
         tensor<2x8x?x32xf32>, tensor<2x8x?x32xf32>, tensor<2x8x?x64xf32>, tensor<2x8x64x32xf32>)
      -> (tensor<2x8x?x32xf32>, tensor<2x8x?x64xf32>, tensor<2x8x64x32xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Gate>:$decay, Optional<LinAttn_Gate>:$a,
    Optional<LinAttn_Gate>:$b, LinAttn_Tokens:$value_query,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_Tokens:$output, LinAttn_Tokens:$value_output,
    LinAttn_State:$state,
    DefaultValuedAttr<LinAttn_ReadoutAttr, "::mlir::linattn::Readout::Inclusive">:$readout,
    UnitAttr:$reverse, UnitAttr:$decay_writes,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    (`decay` `(` $decay^ `)`)? (`a` `(` $a^ `)`)? (`b` `(` $b^ `)`)?
    `value_query` `(` $value_query `)`
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    (`readout` `(` custom<Keyword>($readout)^ `)`)?
    `into` `(` $output `,` $value_output `)` `init` `(` $state `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// The scan with the first output and the state, before the op, for keys
    /// that have met their decay. On buffers it writes to those of the op.
    ::mlir::linattn::ScanOp createScan(::mlir::OpBuilder &b);
  }];
}

def LinAttn_SweepSelectiveOp
    : LinAttn_RecurrenceOp<"sweep_selective"> {
  let summary = "the backward pass of a selective scan";
  let description = [{
    The gradients of `linattn.selective_scan` with real states, steps Δ that are
    given, and b and c that depend on the token: with f_t[n] = e^{Δ_t a[n]} and
    y_t = Σ_n c_t[n] h_t[n], h_t[n] = f_t[n] h_{t-1}[n] + Δ_t b_t[n] u_t, per
    channel, from the last token to the first,

    ```
    G_t[n] = cotangent_t c_t[n] + f_{t+1}[n] G_{t+1}[n]
    p_t[n] = f_t[n] G_t[n]
    du_t   = Δ_t Σ_n b_t[n] G_t[n]
    dΔ_t   = u_t Σ_n b_t[n] G_t[n] + Σ_n a[n] p_t[n] h_{t-1}[n]
    da[n]  = Σ_t Δ_t p_t[n] h_{t-1}[n]        over all sequences
    db_t[n] = Σ G_t[n] Δ_t u_t                over the channels of a group
    dc_t[n] = Σ cotangent_t h_t[n]            over the channels of a group
    ```

    `start` is the state before the first token. `init` gives the cotangent of
    the state behind the last one, f_{T+1} G_{T+1}, and the last result is that
    of `start`, p_1. States are computed again from those at the start of every
    block of tokens, T / 32 states, which are kept. `cu_seqlens` and `reverse`
    are those of the selective scan. `linattn-split-sweeps` writes scans instead.

    Constraints, beside the operand types:
    - (S1) input, delta, cotangent, output and delta_output have the same shape.
    - (S2) a and a_output are `[C, N]`.
    - (S3) b, c, b_output and c_output are `[B, T, N]` or `[B, G, T, N]` with a G
      that divides C, and have the same shape.
    - (S4) start and state are `[B, C, N]`.
    - (S5) all have the same element type, f32 or f64.
    - (S6) cu_seqlens needs batch size 1; the states' first dimension is then
      one less than the number of offsets.

    Example:

    ```mlir
    %du, %dd, %da, %db, %dc, %dh0 = linattn.sweep_selective %u, %delta, %a, %b, %c
        start(%h0) cotangent(%dy) into(%e0, %e1, %e2, %e3, %e4) init(%dh)
      : (tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<512x16xf32>, tensor<2x?x16xf32>,
         tensor<2x?x16xf32>, tensor<2x512x16xf32>, tensor<2x?x512xf32>, tensor<2x?x512xf32>,
         tensor<2x?x512xf32>, tensor<512x16xf32>, tensor<2x?x16xf32>, tensor<2x?x16xf32>,
         tensor<2x512x16xf32>)
      -> (tensor<2x?x512xf32>, tensor<2x?x512xf32>, tensor<512x16xf32>, tensor<2x?x16xf32>,
          tensor<2x?x16xf32>, tensor<2x512x16xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_ChannelTokens:$input, LinAttn_ChannelTokens:$delta,
    LinAttn_ChannelMatrix:$a, LinAttn_Projection:$b, LinAttn_Projection:$c,
    LinAttn_WideChannelState:$start, LinAttn_ChannelTokens:$cotangent,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_ChannelTokens:$output, LinAttn_ChannelTokens:$delta_output,
    LinAttn_ChannelMatrix:$a_output, LinAttn_Projection:$b_output,
    LinAttn_Projection:$c_output, LinAttn_WideChannelState:$state,
    UnitAttr:$reverse);
  let assemblyFormat = [{
    $input `,` $delta `,` $a `,` $b `,` $c
    `start` `(` $start `)` `cotangent` `(` $cotangent `)`
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `,` $delta_output `,` $a_output `,` $b_output `,` $c_output `)`
    `init` `(` $state `)` attr-dict `:` functional-type(operands, results)
  }];
}

#endif // LINATTN_DIALECT_LINATTNSWEEP_TD
