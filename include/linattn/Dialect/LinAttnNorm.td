//===- LinAttnNorm.td - Norms of outputs -------------------*- tablegen -*-===//
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

#ifndef LINATTN_DIALECT_LINATTNNORM_TD
#define LINATTN_DIALECT_LINATTNNORM_TD

def LinAttn_NormKind : LinAttn_Enum<"NormKind", "what a row is divided by", [
  I32EnumAttrCase<"Rms", 0, "rms">,
  I32EnumAttrCase<"Layer", 1, "layer">,
  I32EnumAttrCase<"None", 2, "none">
]>;
def LinAttn_NormKindAttr : EnumAttr<LinAttn_Dialect, LinAttn_NormKind, "norm_kind">;

def LinAttn_Activation : LinAttn_Enum<"Activation", "the function of a gate", [
  I32EnumAttrCase<"Silu", 0, "silu">,
  I32EnumAttrCase<"Sigmoid", 1, "sigmoid">
]>;
def LinAttn_ActivationAttr : EnumAttr<LinAttn_Dialect, LinAttn_Activation, "activation">;

def LinAttn_Affine : LinAttn_Shaped<[1, 2], "[D] or [H, D] weights">;

def LinAttn_OutputNormOp : LinAttn_Op<"output_norm", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<LinAttn_ShapeContractOpInterface>,
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    LinAttn_Tiling]> {
  let summary = "epilogue of a recurrence: skip, RMS or layer norm, weights, gate";
  let description = [{
    Normalizes the output, which many linear attentions do instead of dividing by
    a denominator. For the D features x of one token and head:

    ```
    rms     y = x / √(mean(x²) + eps)
    layer   y = (x − mean(x)) / √(mean((x − mean(x))²) + eps)
    none    y = x
    o = (y ⊙ (weight + weight_offset) + bias) ⊙ act(gate)
                                                 act: silu g·σ(g), or sigmoid σ(g)
    ```

    With a skip, `x + skip_weight ⊙ skip` takes the place of x, the D ⊙ v of
    state spaces. With `gate_first` the gate comes before the norm, after the
    skip: `x ⊙ act(gate)` takes the place of x. Gate, skip and weights may have
    other element types than the input. Norms over groups of channels are those
    of as many heads. Statistics are those of one token and head, in the accumulation
    type, never over tokens: a stream of tokens gives the bits of the whole.
    References: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019;
    Sun et al., "Retentive Network", 2023.

    Constraints, beside the operand types:
    - (N1) input, gate, skip and output have the same shape.
    - (N2) output has the element type of the input, or the input the accumulation type of the output: rows that are
      rounded once, behind the norm.
    - (N3) weight, bias and skip_weight are `[D]` or `[H, D]`.
    - (N4) gate_first needs a gate.
    - (N5) eps is finite and not negative.
    - (N6) weight_offset is finite, and other than 0 only with a weight.
    - (N7) skip and skip_weight come together.

    Example:

    ```mlir
    %n = linattn.output_norm %o weight(%w) gate(%g) into(%dest) {eps = 1.0e-5}
      : (tensor<2x8x?x64xf32>, tensor<64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$input, Optional<LinAttn_Affine>:$weight,
    Optional<LinAttn_Affine>:$bias, Optional<LinAttn_Tokens>:$gate,
    Optional<LinAttn_Tokens>:$skip, Optional<LinAttn_Affine>:$skip_weight,
    LinAttn_Tokens:$output,
    DefaultValuedAttr<LinAttn_NormKindAttr, "::mlir::linattn::NormKind::Rms">:$kind,
    DefaultValuedAttr<LinAttn_ActivationAttr, "::mlir::linattn::Activation::Silu">:$activation,
    UnitAttr:$gate_first,
    DefaultValuedAttr<F64Attr, "1.0e-5">:$eps,
    DefaultValuedAttr<F64Attr, "0.0">:$weight_offset);
  let results = (outs Variadic<LinAttn_Tokens>:$results);
  let assemblyFormat = [{
    $input (`kind` `(` custom<Keyword>($kind)^ `)`)? (`weight` `(` $weight^ `)`)?
    (`bias` `(` $bias^ `)`)? (`gate` `(` $gate^ `)`)?
    (`activation` `(` custom<Keyword>($activation)^ `)`)?
    (`skip` `(` $skip^ `)`)? (`skip_weight` `(` $skip_weight^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasVerifier = 1;
}

#endif // LINATTN_DIALECT_LINATTNNORM_TD
