//===- LinAttnState.td - Writing and reading a state -------*- tablegen -*-===//
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

#ifndef LINATTN_DIALECT_LINATTNSTATE_TD
#define LINATTN_DIALECT_LINATTNSTATE_TD

def LinAttn_StateOp : LinAttn_StructuredOp<"state", [AttrSizedOperandSegments]> {
  let summary = "sums keys and values into a state";
  let description = [{
    `S = S_0 + Σ_t φ(k_t) v_tᵀ`, and with a `normalizer` `z = z_0 + Σ_t φ(k_t)`:
    the first half of reassociated attention. The `exp` map under a normalizer
    carries its running maximum, as in `linattn.scan`. With decays, `reverse` or
    `cu_seqlens` it is what such a scan leaves behind, without the scan's outputs:
    the first half of a scan in segments.

    Constraints, beside the operand types:
    - (T1) key and value have the same sequence length.
    - (T2) key, value and state have the same batch size.
    - (T3) head counts divide one another.
    - (T4) key and value have the same element type.
    - (T5) state is `[B, max(Hk, Hv), K, V]` of the accumulation type or of f64,
      normalizer `[B, H, K]` and running maximum `[B, H]` of its element type,
      mask `[B, T]`.
    - (T6) as (A8).
    - (T7) a running maximum is given exactly with the `exp` map and a
      normalizer.
    - (T8) decay is `[H]`, `[B, H, T]` or `[B, H, T, K]`, value_decay
      `[B, H, T, V]`; a value_decay and a normalizer exclude each other.
    - (T9) as (S17).

    Example:

    ```mlir
    %s, %z = linattn.state %k, %v init(%s0) normalizer(%z0) {feature_map = #linattn.feature_map<elu1>}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x64xf32>)
      -> (tensor<2x8x64x64xf32>, tensor<2x8x64xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Gate>:$decay, Optional<LinAttn_Gate>:$value_decay,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_State:$state, Optional<LinAttn_Normalizer>:$normalizer,
    Optional<LinAttn_RunningMax>:$running_max,
    UnitAttr:$reverse,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$phi);
  let assemblyFormat = [{
    $key `,` $value (`decay` `(` $decay^ `)`)?
    (`value_decay` `(` $value_decay^ `)`)? (`mask` `(` $mask^ `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `)`)? `init` `(` $state `)`
    (`normalizer` `(` $normalizer^ `)`)? (`running_max` `(` $running_max^ `)`)?
    attr-dict (`phi` $phi^)? `:` functional-type(operands, results)
  }];
  let builders = [
    // Without gates; the result types follow from the destinations.
    OpBuilder<(ins "::mlir::Value":$key, "::mlir::Value":$value,
      "::mlir::Value":$mask, "const ::mlir::linattn::StateValues &":$state)>,
    OpBuilder<(ins "::mlir::Value":$key, "::mlir::Value":$value,
      "::mlir::Value":$decay, "::mlir::Value":$valueDecay,
      "::mlir::Value":$mask, "::mlir::Value":$offsets,
      "const ::mlir::linattn::StateValues &":$state)>
  ];
  let extraClassDeclaration = [{
    /// State and, where present, normalizer and running maximum.
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
  let hasCanonicalizer = 1;
}

def LinAttn_ReadOp : LinAttn_StructuredOp<"read", [AttrSizedOperandSegments]> {
  let summary = "reads queries from a state";
  let description = [{
    `o_t = scale · Sᵀφ(q_t)`, divided by `scale · φ(q_t)·z` under `normalize`: the
    second half of reassociated attention. A state that an input gate has written
    (see `linattn.scan`) is stored times e^{−m}; `running_max` is that m, for an
    `abs_floor` to be compared with the true denominator.

    Constraints, beside the operand types:
    - (R1) query and state have the same head size, batch size.
    - (R2) head counts divide one another.
    - (R3) output is `[B, max(Hq, H), T, V]` with the query's element type.
    - (R4) a normalizer `[B, H, K]` is given exactly with `normalize`.
    - (R5) state is of the accumulation type of the query or of f64; normalizer
      and running_max have its element type.
    - (R6) as (A8).
    - (R7) scale is 0 or a normal number of the accumulation type.
    - (R8) running_max `[B, H]` goes with abs_floor only; elsewhere it cancels.
    - (R9) as (A12).
    - (R10) as (A14).

    Example:

    ```mlir
    %o = linattn.read %q, %s normalizer(%z) into(%dest)
        {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
      : (tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x64xf32>, tensor<2x8x?x64xf32>)
      -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_State:$state,
    Optional<LinAttn_Normalizer>:$normalizer,
    Optional<LinAttn_RunningMax>:$running_max, Optional<F64>:$scale_value,
    LinAttn_Tokens:$output,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_NormalizeAttr>:$normalize,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let results = (outs Variadic<LinAttn_Tokens>:$results);
  let regions = (region MaxSizedRegion<1>:$phi);
  let assemblyFormat = [{
    $query `,` $state (`normalizer` `(` $normalizer^ `)`)?
    (`running_max` `(` $running_max^ `)`)? (`scale` `(` $scale_value^ `)`)?
    `into` `(` $output `)` attr-dict (`phi` $phi^)?
    `:` functional-type(operands, results)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$state,
      "::mlir::Value":$normalizer, "::mlir::Value":$output)>
  ];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasCanonicalizer = 1;
}

#endif // LINATTN_DIALECT_LINATTNSTATE_TD
