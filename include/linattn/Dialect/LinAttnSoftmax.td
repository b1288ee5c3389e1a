//===- LinAttnSoftmax.td - Softmax attention for training --*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The forward pass that keeps a number for each row of weights, and the
// backward pass that computes the weights again from it. Included by
// LinAttnOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNSOFTMAX_TD
#define LINATTN_DIALECT_LINATTNSOFTMAX_TD

def LinAttn_Spans :
    AnyTypeOf<[TensorRankOf<[I32, I64], [3]>, MemRefRankOf<[I32, I64], [3]>],
              "[B, Tq, 3] spans of keys as a ranked tensor or memref of i32 or i64">;
def LinAttn_RowNumbers : LinAttn_Shaped<[3], "[B, H, Tq] numbers of rows">;

/// In destination-passing style, on tensors or on buffers.
class LinAttn_SoftmaxBase<string mnemonic>
    : LinAttn_Op<mnemonic, [AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<LinAttn_ShapeContractOpInterface>,
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<AggregatedOpInterface, ["decomposeOperation"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;
  code baseDeclaration = [{
    /// The destinations are the last operands.
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// `linattn.quadratic` with these scores, of which lowerings read shapes,
    /// scale and visible keys.
    ::mlir::linattn::QuadraticOp createQuadratic(::mlir::OpBuilder &b);
  }];
  let extraClassDeclaration = baseDeclaration;
}

def LinAttn_SoftmaxOp : LinAttn_SoftmaxBase<"softmax"> {
  let summary = "softmax attention that keeps the log-sum-exp of its rows";
  let description = [{
    The output of `linattn.quadratic` with softmax weights, and for each query
    the logarithm of the sum that its weights are divided by:

    ```
    L_i = log(Σ_j e^{s_ij} + e^{sink})        o_i = Σ_j e^{s_ij − L_i} v_j
    ```

    Scores, visible keys and operands are those of `linattn.quadratic`. L is −∞
    for a query that sees neither a key nor a sink. From L the weights can be
    computed again in any order, block by block: `linattn.softmax_gradient` does.

    With `spans` query i of batch element b sees the keys from `spans[b, i, 0]` up
    to, without, `spans[b, i, 1]`, and stands at position `spans[b, i, 2]` of them:
    keys of a span count from its first one. Packed sequences and caches are such
    spans. Bounds beyond [0, Tk] are moved there.

    With `seed` and `dropout = p` each weight is multiplied, behind the sum, by 0
    or by 1 / (1 − p): by 0 where the first word of Philox4x32-10 of the counter
    (key, query, head, batch) under the seed is below p · 2³². (Salmon et al.,
    "Parallel random numbers: as easy as 1, 2, 3", 2011.)

    Constraints, beside the operand types:
    - (F1) query, key, value, mask, prefix, slopes, sinks, scale, softcap and
      pattern as (A1) to (A4), (A6), (A7), (A10), (A11) and (A13) to (A17) of
      `linattn.attention`.
    - (F2) log_sum is `[B, H, Tq]`, with the heads of the output, of the
      accumulation type.
    - (F3) spans are `[B, Tq, 3]`, and come without a prefix.
    - (F4) seed and dropout come together, dropout in [0, 1).

    Example:

    ```mlir
    %o, %l = linattn.softmax %q, %k, %v into(%dest, %rows) {causal, scale = 0.125}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>,
         tensor<2x8x?x64xf32>, tensor<2x8x?xf32>)
      -> (tensor<2x8x?x64xf32>, tensor<2x8x?xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Lengths>:$prefix,
    Optional<F64>:$scale_value,
    Optional<LinAttn_PerHead>:$slopes, Optional<LinAttn_PerHead>:$sinks,
    Optional<LinAttn_Spans>:$spans, Optional<I64>:$seed,
    LinAttn_Tokens:$output, LinAttn_RowNumbers:$log_sum,
    UnitAttr:$causal,
    OptionalAttr<LinAttn_PatternAttr>:$pattern,
    OptionalAttr<F64Attr>:$softcap,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$dropout);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`scale` `(` $scale_value^ `)`)? (`slopes` `(` $slopes^ `)`)? (`sinks` `(` $sinks^ `)`)?
    (`spans` `(` $spans^ `)`)? (`seed` `(` $seed^ `)`)?
    `into` `(` $output `,` $log_sum `)` attr-dict `:` functional-type(operands, results)
  }];
}

def LinAttn_SoftmaxGradientOp : LinAttn_SoftmaxBase<"softmax_gradient"> {
  let summary = "the backward pass of softmax attention";
  let description = [{
    The gradients of `linattn.softmax`, from the log-sum-exp L of its rows and
    their correction D, per head:

    ```
    P_ij  = e^{s_ij − L_i}
    dS_ij = P_ij (dO_i·v_j − D_i)             D_i = dO_i·o_i
    dv_j  = Σ_i P_ij dO_i
    dq_i  = scale · Σ_j cap'(s_ij) dS_ij k_j
    dk_j  = scale · Σ_i cap'(s_ij) dS_ij q_i
    ```

    with cap' = 1 − tanh² of the softcap, or 1. No N×N value is stored. A
    cotangent of L is taken from D. With `slopes` a last output holds the
    distances that they are multiplied by, `Σ_j −|p − j| dS_ij` for each query
    at position p. (Dao, "FlashAttention-2", 2023.)

    `spans`, `seed` and `dropout` are those of `linattn.softmax`. Where a weight is
    multiplied by z, dv has z P_ij in place of P_ij, and dS_ij the product z dO_i·v_j.

    Constraints, beside the operand types:
    - (G1) query and key have the same head size, value and cotangent too.
    - (G2) all have the same batch size and head count; query and cotangent have
      the same sequence length, key and value too.
    - (G3) all have the same element type, f32 or f64.
    - (G4) log_sum and correction are `[B, H, Tq]`.
    - (G5) each of query_output, key_output and value_output has the shape of its
      operand.
    - (G6) slope_output, `[B, H, Tq]`, is given exactly with slopes.
    - (G7) mask, prefix, slopes, scale, softcap and pattern as (A7), (A11) and
      (A13) to (A17) of `linattn.attention`.
    - (G8) spans, seed and dropout as (F3) and (F4) of `linattn.softmax`.

    Example:

    ```mlir
    %dq, %dk, %dv = linattn.softmax_gradient %q, %k, %v cotangent(%do)
        rows(%l, %d) into(%e0, %e1, %e2) {causal, scale = 0.125}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>,
         tensor<2x8x?xf32>, tensor<2x8x?xf32>,
         tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      -> (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    LinAttn_Tokens:$cotangent,
    LinAttn_RowNumbers:$log_sum, LinAttn_RowNumbers:$correction,
    Optional<LinAttn_Mask>:$mask, Optional<LinAttn_Lengths>:$prefix,
    Optional<F64>:$scale_value, Optional<LinAttn_PerHead>:$slopes,
    Optional<LinAttn_Spans>:$spans, Optional<I64>:$seed,
    LinAttn_Tokens:$query_output, LinAttn_Tokens:$key_output,
    LinAttn_Tokens:$value_output, Optional<LinAttn_RowNumbers>:$slope_output,
    UnitAttr:$causal,
    OptionalAttr<LinAttn_PatternAttr>:$pattern,
    OptionalAttr<F64Attr>:$softcap,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<F64Attr>:$dropout);
  let assemblyFormat = [{
    $query `,` $key `,` $value `cotangent` `(` $cotangent `)`
    `rows` `(` $log_sum `,` $correction `)`
    (`mask` `(` $mask^ `)`)? (`prefix` `(` $prefix^ `)`)?
    (`scale` `(` $scale_value^ `)`)? (`slopes` `(` $slopes^ `)`)?
    (`spans` `(` $spans^ `)`)? (`seed` `(` $seed^ `)`)?
    `into` `(` $query_output `,` $key_output `,` $value_output (`,` $slope_output^)? `)`
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif // LINATTN_DIALECT_LINATTNSOFTMAX_TD
