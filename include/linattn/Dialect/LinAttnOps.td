//===- LinAttnOps.td - Operations --------------------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constraints are numbered per op: the number stands in the description, in the
// verifier and in the negative test.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNOPS_TD
#define LINATTN_DIALECT_LINATTNOPS_TD

include "linattn/Dialect/LinAttnAttrs.td"
include "linattn/Dialect/LinAttnInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"

class LinAttn_Op<string mnemonic, list<Trait> traits = []>
    : Op<LinAttn_Dialect, mnemonic, traits>;

defvar LinAttn_Tiling = DeclareOpInterfaceMethods<TilingInterface, [
    "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
    "getResultTilePosition", "generateResultTileValue"]>;

/// Ops that carry a feature map.
class LinAttn_MappedOp<string mnemonic, list<Trait> traits = []>
    : LinAttn_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<LinAttn_ShapeContractOpInterface>,
        LinAttn_FeatureMappedOpInterface,
        SingleBlock]> {
  let hasVerifier = 1;
}

/// Structured ops in destination-passing style, on tensors or on buffers.
class LinAttn_StructuredOp<string mnemonic, list<Trait> traits = []>
    : LinAttn_MappedOp<mnemonic, traits # [
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        LinAttn_Tiling,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]>;

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

def LinAttn_AttentionOp : LinAttn_MappedOp<"attention", [
    AttrSizedOperandSegments, NoMemoryEffect,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<InferTypeOpInterface, ["inferReturnTypes"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "attention, stated by its quadratic formula";
  let description = [{
    With linear weights, per output head,

    ```
    num_i = Σ_j  scale · φ(q_i)·φ(k_j) · v_j        o_i = num_i                     (no normalize)
    den_i = Σ_j  scale · φ(q_i)·φ(k_j)              o_i = num_i / (den_i + eps)     (normalize)
    ```

    and with softmax weights `o_i = Σ_j softmax_j(scale · q_i·k_j) v_j`. `j` runs
    over all keys, or over `j ≤ i` when `causal`; a false `mask[b, j]` removes
    key `j`. With a `prefix`, every query of batch element b also sees all of the
    first `prefix[b]` keys: a prefix LM, whose prompt is read in both directions.
    A query without any key to attend gives 0. The formula is quadratic;
    its evaluation need not be: `linattn-reassociate` and
    `linattn-causal-to-scan` rewrite it so that no N×N value exists.

    A `pattern` limits the keys further, to a sliding window for example. Such
    attention stays quadratic in the window: it has no state of fixed size.

    Softmax scores are, with query i at position p = i + Tk − Tq,

    ```
    s_ij = cap(scale · q_i·k_j) − slope_h · |p − j|        cap(x) = softcap · tanh(x / softcap)
    ```

    the first part with `softcap` only (Gemma 2), the second with `slopes` (ALiBi,
    Press et al., 2022). A head's `sinks` number is the score of a key without a
    value: it takes weight and gives nothing (gpt-oss).

    The scale is the attribute `scale`, or an f64 operand where it is known at run
    time only, or 1. The operand is rounded to the accumulation type as the
    attribute is, so that both give the same bits. Reference: Katharopoulos et al., "Transformers are
    RNNs", 2020.

    Constraints, beside the operand types:
    - (A1) query and key have the same head size.
    - (A2) key and value have the same sequence length.
    - (A3) all have the same batch size.
    - (A4) head counts divide one another.
    - (A5) causal with linear weights and without a pattern: query and key have
      the same sequence length. Else the last query is aligned with the last key.
    - (A6) query, key, value and result have the same element type.
    - (A7) mask is `[B, Tk]`.
    - (A8) a `region` feature map comes with a region that maps one scalar of
      the accumulation type to another by scalar arithmetic, and only then. The
      region may use scalars defined outside. The maps of a whole token stand
      in `linattn.feature_map` only, except `softmax_kernel`.
    - (A9) softmax weights take neither a feature map nor a normalizer.
    - (A10) the result is `[B, max(Hq, Hk, Hv), Tq, V]`.
    - (A11) scale is 0 or a normal number of the accumulation type.
    - (A12) abs_floor goes without the `exp` map, whose true denominator is
      never formed.
    - (A13) prefix is `[B]`, and given only with causal.
    - (A14) the scale is an attribute or an operand, not both. (A11) holds for the
      operand, too, but nothing checks it.
    - (A15) softcap, slopes and sinks go with softmax weights only; softcap is
      positive and finite.
    - (A16) slopes and sinks have a number for each head of the result.
    - (A17) a pattern goes without a prefix.

    Example:

    ```mlir
    %o = linattn.attention %q, %k, %v {causal,
        feature_map = #linattn.feature_map<elu1>,
        normalize = #linattn.normalize<eps = 1.0e-6>}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Lengths>:$prefix,
    Optional<F64>:$scale_value,
    Optional<LinAttn_PerHead>:$slopes, Optional<LinAttn_PerHead>:$sinks,
    DefaultValuedAttr<LinAttn_WeightsAttr, "::mlir::linattn::Weights::Linear">:$weights,
    UnitAttr:$causal,
    OptionalAttr<LinAttn_PatternAttr>:$pattern,
    OptionalAttr<F64Attr>:$softcap,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_NormalizeAttr>:$normalize,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let results = (outs LinAttn_Tokens:$output);
  let regions = (region MaxSizedRegion<1>:$phi);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`scale` `(` $scale_value^ `)`)? (`slopes` `(` $slopes^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`weights` `(` custom<Keyword>($weights)^ `)`)? attr-dict (`phi` $phi^)?
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// The declared result may be more static than the inferred one.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred,
                                        ::mlir::TypeRange declared);
    /// True if the keys before a query can be summed up in a state.
    bool hasState() {
      return getWeights() == ::mlir::linattn::Weights::Linear && !getPattern();
    }
  }];
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// quadratic
//===----------------------------------------------------------------------===//

def LinAttn_QuadraticOp : LinAttn_StructuredOp<"quadratic", [AttrSizedOperandSegments]> {
  let summary = "attention in the quadratic form, into a destination";
  let description = [{
    The meaning, attributes and constraints of `linattn.attention`, as a
    structured op: tiled over batch, head and query, bufferized in place,
    lowered block by block with a running maximum (softmax) so that N×N weights
    need not be stored. `into` names the destination, which is overwritten.

    `causal` aligns the last query with the last key: query i sees the keys
    j ≤ i + Tk − Tq, so that a tile of queries, or new queries over a cache of
    keys, are causal too.

    `summands` permits a matrix unit to replace each element of queries, keys,
    weights and values by so many bf16 numbers, as those of `linattn.chunk.scores`.
    A lowering may ignore it.

    Constraints: (A1) to (A17) of `linattn.attention` without (A5), the
    destination in place of the result, and
    - (Q1) summands are four numbers, of queries, keys, weights and values, each 1, 2
      or 3; tokens are in bf16.

    Example:

    ```mlir
    %o = linattn.quadratic %q, %k, %v weights(softmax) into(%dest) {causal, scale = 0.125}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Lengths>:$prefix,
    Optional<F64>:$scale_value,
    Optional<LinAttn_PerHead>:$slopes, Optional<LinAttn_PerHead>:$sinks,
    LinAttn_Tokens:$output,
    DefaultValuedAttr<LinAttn_WeightsAttr, "::mlir::linattn::Weights::Linear">:$weights,
    UnitAttr:$causal,
    OptionalAttr<LinAttn_PatternAttr>:$pattern,
    OptionalAttr<F64Attr>:$softcap,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_NormalizeAttr>:$normalize,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config,
    LinAttn_Summands:$summands);
  let results = (outs Variadic<LinAttn_Tokens>:$results);
  let regions = (region MaxSizedRegion<1>:$phi);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
      "::mlir::Value":$value, "::mlir::Value":$mask, "::mlir::Value":$prefix,
      "::mlir::Value":$output)>
  ];
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`scale` `(` $scale_value^ `)`)? (`slopes` `(` $slopes^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`weights` `(` custom<Keyword>($weights)^ `)`)? `into` `(` $output `)` attr-dict (`phi` $phi^)?
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

def LinAttn_ScanOp : LinAttn_StructuredOp<"scan", [AttrSizedOperandSegments]> {
  let summary = "the linear recurrence over tokens";
  let description = !strconcat([{
    One recurrence for every family. Per state head, for t = 0, 1, …:

    ```
    Sd_t = Diag(e^{decay_t}) S_{t-1} Diag(e^{value_decay_t})
    r_t  = Xᵀ a_t         X = Sd_t (transition after) or S_{t-1} (transition before)
    S_t  = Sd_t + b_t r_tᵀ + φ(k_t) v_tᵀ
    o_t  = scale · S_tᵀ φ(q_t)                                         readout(inclusive)
         = scale · (S_{t-1}ᵀ φ(q_t) + (φ(q_t)·(bonus ⊙ φ(k_t))) v_t)    readout(exclusive)
    ```

    The operands present say which family it is. `update` is the rule by which
    a token is written, with φ(k) for k; erase and write are 1 where they are
    not given, and a rule without a and b makes them of keys, values and beta:

    | update | S_t | takes | needs |
    |---|---|---|---|}], LinAttn_RuleTable.rows, [{

    Decays are natural logarithms, ≤ 0, `[H]`, `[B, H, T]` or `[B, H, T, K]`
    (`value_decay` `[B, H, T, V]`).

    The scan starts from the state it is given (`init`) and returns the final
    state: chunking it is tiling its T dimension. With `normalize` the sum of
    the written keys z is carried beside S (`normalizer`), and the output is
    divided by scale·φ(q)·z; the `exp` map under a normalizer carries its
    running maximum too (`running_max`, −∞ or the lowest finite value to start).
    A false `mask[b, t]` keeps token t from being written: it decays the state,
    reads it, and does nothing else. With `cu_seqlens` (N+1 offsets, B = 1) the
    state is `[N, H, K, V]`, one per sequence. `reverse` runs from the last token
    to the first.

    With `state_indices` the states are rows of a pool `[P, H, K, V]` (normalizer
    `[P, H, K]`, running maximum `[P, H]`): sequence n starts from row
    `state_indices[n]`, and its final state takes that row's place. The other rows
    stay as they are; the result is the whole pool. A sequence of index −1 has no
    state: it pads the batch, its tokens are not looked at and its outputs are 0.

    An `input_gate` `[B, H, T]`, a natural logarithm of any sign, writes the key
    e^{input_gate}·φ(k) (mLSTM). So that no gate overflows, `running_max` carries
    `m_t = max(decay_t + m_{t-1}, input_gate_t)`, and S and z are stored times
    e^{−m}: decayed by e^{decay_t + m_{t-1} − m_t}, written with
    e^{input_gate_t − m_t}. The factor cancels in the quotient; `eps` and `floor`
    meet the stored denominator, `abs_floor` the true one.

    With `snapshots` the scan also returns the states in between, from which a
    prefix of the sequence can be continued: P = ⌊T / every⌋ of them, after every
    `every`-th token, `[B, P, H, K, V]`; of the normalizer `[B, P, H, K]` and of
    the running maximum `[B, P, H]`. They follow one another as the tokens are
    read: with `reverse` the first of them holds the last tokens.
    `linattn-expand-snapshots` makes them a loop of scans.

    A state may be f64 beside narrower tokens; everything is then computed in
    f64.

    Constraints, beside the operand types:
    - (S1) query and key have the same head size.
    - (S2) query, key and value have the same sequence length.
    - (S3) query, key, value and output have the same batch size.
    - (S4) head counts divide one another.
    - (S5) query, key, value and output have the same element type.
    - (S6) state is `[B, max(Hk, Hv), K, V]` of the accumulation type or of f64;
      normalizer and running_max have its element type.
    - (S7) output is `[B, max(Hq, Hk, Hv), T, V]`.
    - (S8) a normalizer `[B, H, K]` is given exactly with `normalize`.
    - (S9) a running maximum `[B, H]` is given exactly with the `exp` map under
      `normalize` or with an input gate.
    - (S10) as (A8).
    - (S11) decay is `[H]`, `[B, H, T]` or `[B, H, T, K]`; value_decay, write
      `[B, H, T, V]`; beta `[B, H, T]` or `[B, H, T, V]`; a, b, erase
      `[B, H, T, K]`; input_gate `[B, H, T]`; bonus `[H, K]`; mask `[B, T]`.
    - (S12) beta, erase and write go with the update rules that take them, and
      a rule comes with what it needs: see the table.
    - (S13) a and b come together, exactly with the rules that take them.
    - (S14) bonus needs readout(exclusive).
    - (S15) value_decay goes with the rules that take it only: the transitions
      of the others act on keys.
    - (S16) normalize goes with the rules that take it and readout(inclusive)
      only.
    - (S17) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.
    - (S18) transition(before) goes with the rules that take it; the others
      read after the decay.
    - (S19) scale is 0 or a normal number of the accumulation type.
    - (S20) input_gate goes with normalize only: without a quotient the factor
      e^m of the stored state, of any size, would have to be undone.
    - (S21) beside an input_gate decay is `[H]` or `[B, H, T]`: one running
      maximum per head cannot follow a decay per channel.
    - (S22) input_gate goes without the `exp` map: one running maximum cannot
      follow both.
    - (S23) abs_floor goes without the `exp` map, whose true denominator is
      never formed.
    - (S24) normalize goes without value_decay: one denominator cannot follow
      factors that differ between value columns.
    - (S25) where a rule's step has one size, as with update(oja), beta is
      `[B, H, T]`.
    - (S26) a constant decay or value_decay holds no positive number and no NaN.
    - (S27) bonus goes with the rules that take it: the others write beta·k,
      and a bonus could mean that or the key.
    - (S28) state_indices is `[N]`, for the batch or, with cu_seqlens, for the
      packed sequences; the state's first dimension is then any. Each is −1 or
      a row of the state, and no row is there twice: checked at run time, where
      they are an argument of the function.
    - (S29) there is one of the snapshots for each of state, normalizer and
      running_max that is given, or none at all.
    - (S30) snapshots have the sizes and the element type of what they are
      snapshots of, and T / every, rounded down, of them beside the batch.
    - (S31) every is at least 1 and comes exactly with snapshots.
    - (S32) snapshots go without cu_seqlens, whose sequences have different
      numbers of them, and without state_indices.
    - (S33) as (A14).

    Example:

    ```mlir
    %o, %s1, %z1 = linattn.scan %q, %k, %v into(%dest) init(%s0) normalizer(%z0)
        {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>,
         tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x64xf32>)
      -> (tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x64xf32>)
    ```
  }]);
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Gate>:$decay, Optional<LinAttn_Gate>:$value_decay,
    Optional<LinAttn_Gate>:$beta,
    Optional<LinAttn_Gate>:$a, Optional<LinAttn_Gate>:$b,
    Optional<LinAttn_Bonus>:$bonus,
    Optional<LinAttn_Gate>:$erase, Optional<LinAttn_Gate>:$write,
    Optional<LinAttn_Gate>:$input_gate,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Offsets>:$cu_seqlens,
    Optional<LinAttn_Indices>:$state_indices,
    Optional<F64>:$scale_value,
    LinAttn_Tokens:$output, LinAttn_State:$state,
    Optional<LinAttn_Normalizer>:$normalizer,
    Optional<LinAttn_RunningMax>:$running_max,
    Variadic<LinAttn_Snapshots>:$snapshots,
    DefaultValuedAttr<LinAttn_UpdateAttr, "::mlir::linattn::Update::Add">:$update,
    DefaultValuedAttr<LinAttn_ReadoutAttr, "::mlir::linattn::Readout::Inclusive">:$readout,
    DefaultValuedAttr<LinAttn_TransitionAttr, "::mlir::linattn::Transition::After">:$transition,
    UnitAttr:$reverse,
    OptionalAttr<I64Attr>:$every,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_NormalizeAttr>:$normalize,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$phi);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    (`decay` `(` $decay^ `)`)? (`value_decay` `(` $value_decay^ `)`)?
    (`beta` `(` $beta^ `)`)? (`a` `(` $a^ `)`)? (`b` `(` $b^ `)`)?
    (`bonus` `(` $bonus^ `)`)? (`erase` `(` $erase^ `)`)?
    (`write` `(` $write^ `)`)? (`input_gate` `(` $input_gate^ `)`)?
    (`mask` `(` $mask^ `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    (`state_indices` `(` $state_indices^ `)`)? (`scale` `(` $scale_value^ `)`)?
    (`update` `(` custom<Keyword>($update)^ `)`)? (`readout` `(` custom<Keyword>($readout)^ `)`)?
    (`transition` `(` custom<Keyword>($transition)^ `)`)?
    `into` `(` $output `)` `init` `(` $state `)`
    (`normalizer` `(` $normalizer^ `)`)? (`running_max` `(` $running_max^ `)`)?
    (`snapshots` `(` $snapshots^ `)`)?
    attr-dict (`phi` $phi^)? `:` functional-type(operands, results)
  }];
  let builders = [
    // The additive scan; result types follow from the destinations.
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
      "::mlir::Value":$value, "::mlir::Value":$mask, "::mlir::Value":$output,
      "const ::mlir::linattn::StateValues &":$state)>
  ];
  let extraClassDeclaration = [{
    /// Output, state, where present normalizer and running maximum, snapshots.
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// The state, and the normalizer and running maximum beside it.
    ::mlir::linattn::StateValues getStateValues() {
      return {getState(), getNormalizer(), getRunningMax()};
    }
  }];
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// yield
//===----------------------------------------------------------------------===//

def LinAttn_YieldOp : LinAttn_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["AttentionOp", "QuadraticOp", "ScanOp", "StateOp", "ReadOp",
                 "FeatureMapOp"]>]> {
  let summary = "returns φ(x) from a feature map region";
  let arguments = (ins Optional<AnyFloat>:$result);
  let assemblyFormat = "attr-dict ($result^ `:` type($result))?";
  let builders = [OpBuilder<(ins), [{ }]>];
}

include "linattn/Dialect/LinAttnState.td"
include "linattn/Dialect/LinAttnGPU.td"
include "linattn/Dialect/LinAttnViews.td"
include "linattn/Dialect/LinAttnRecurrences.td"
include "linattn/Dialect/LinAttnFeatureMap.td"
include "linattn/Dialect/LinAttnNorm.td"
include "linattn/Dialect/LinAttnConv.td"
include "linattn/Dialect/LinAttnSweep.td"
include "linattn/Dialect/LinAttnSoftmax.td"
include "linattn/Dialect/LinAttnChunk.td"

#endif // LINATTN_DIALECT_LINATTNOPS_TD
