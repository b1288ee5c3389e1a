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
  I32EnumAttrCase<"Layer", 1, "layer">
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
    DeclareOpInterfaceMethods<TilingInterface,
      ["getLoopIteratorTypes", "getIterationDomain",
       "getTiledImplementation", "getResultTilePosition",
       "generateResultTileValue"]>]> {
  let summary = "RMS or layer norm of every token and head, with an optional gate";
  let description = [{
    What many linear attentions use instead of a denominator. For the features x
    of one token and head, D of them:

    ```
    rms     y = x / √(mean(x²) + eps)
    layer   y = (x − mean(x)) / √(mean((x − mean(x))²) + eps)
    o = (y ⊙ weight + bias) ⊙ act(gate)          act: silu g·σ(g), or sigmoid σ(g)
    ```

    With `gate_first` the gate comes before the norm: `x ⊙ act(gate)` takes the
    place of x. Statistics are those of one token and head, in the accumulation
    type, never over tokens: a stream of tokens gives the bits of the whole.
    References: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019;
    Sun et al., "Retentive Network", 2023.

    Constraints, beside the operand types:
    - (N1) input, gate and output have the same shape.
    - (N2) input, gate and output have the same element type.
    - (N3) weight and bias are `[D]` or `[H, D]`.
    - (N4) gate_first needs a gate.
    - (N5) eps is finite and not negative.

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
    LinAttn_Tokens:$output,
    DefaultValuedAttr<LinAttn_NormKindAttr, "::mlir::linattn::NormKind::Rms">:$kind,
    DefaultValuedAttr<LinAttn_ActivationAttr, "::mlir::linattn::Activation::Silu">:$activation,
    UnitAttr:$gate_first,
    DefaultValuedAttr<F64Attr, "1.0e-5">:$eps);
  let results = (outs Variadic<LinAttn_Tokens>:$results);
  let assemblyFormat = [{
    $input (`kind` `(` custom<Keyword>($kind)^ `)`)? (`weight` `(` $weight^ `)`)?
    (`bias` `(` $bias^ `)`)? (`gate` `(` $gate^ `)`)?
    (`activation` `(` custom<Keyword>($activation)^ `)`)?
    `into` `(` $output `)` attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasVerifier = 1;
}

#endif // LINATTN_DIALECT_LINATTNNORM_TD
