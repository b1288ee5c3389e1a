//===- LinAttnFeatureMap.td - linattn.feature_map ----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by LinAttnOps.td, whose classes it uses.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNFEATUREMAP_TD
#define LINATTN_DIALECT_LINATTNFEATUREMAP_TD

def LinAttn_MapParameter :
    LinAttn_Shaped<[1, 2, 3], "[m, d] or [H, m, d] matrix, or [d] or [H, d] vector,">;
def LinAttn_TokenPositions :
    AnyTypeOf<[TensorRankOf<[I32, I64], [1, 2]>, MemRefRankOf<[I32, I64], [1, 2]>],
              "[T] or [B, T] positions as a ranked tensor or memref of i32 or i64">;

def LinAttn_FeatureMapOp : LinAttn_StructuredOp<"feature_map", [AttrSizedOperandSegments]> {
  let summary = "applies a feature map to tokens";
  let description = [{
    `φ(x)` for every token, into a destination with as many features as φ makes.
    `exp` is the plain exponential here. The maps of one element, and
    `softmax_kernel`, fold into `linattn.scan`, `linattn.state`, `linattn.read`
    and `linattn.attention`, which apply φ as they load; the identity map
    vanishes. The others (see `#linattn.feature_map`) stay. Their parameters are
    operands, `[m, d]` and `[d]` for all heads or `[H, m, d]` and `[H, d]` for each,
    of any float type; queries and keys may have different ones.

    Constraints:
    - (F1) input and output agree in batch, heads and tokens; the output has the
      input's element type, or its accumulation type.
    - (F2) as (A8).
    - (F3) the output has as many features as the map makes of the head size d,
      or of the m rows of its matrix.
    - (F4) params are those of the map, in its order, each a matrix of d columns
      (square for `hedgehog`, `hedgehog_exp` and `outer_product`) or a vector (γ, β
      of d elements, b of m), W1 and W2 with equally many rows; per-head ones
      have the heads of the input.
    - (F5) positions `[T]` or `[B, T]` are given exactly with `cosformer`.

    Example:

    ```mlir
    %f = linattn.feature_map %x params(%w) into(%dest) {feature_map = #linattn.feature_map<favor>}
      : (tensor<2x8x?x64xf32>, tensor<256x64xf32>, tensor<2x8x?x256xf32>) -> tensor<2x8x?x256xf32>
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$input, Variadic<LinAttn_MapParameter>:$parameters,
    Optional<LinAttn_TokenPositions>:$positions, LinAttn_Tokens:$output,
    OptionalAttr<LinAttn_FeatureMapAttr>:$feature_map,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let results = (outs Variadic<LinAttn_Tokens>:$results);
  let regions = (region MaxSizedRegion<1>:$phi);
  let assemblyFormat = [{
    $input (`params` `(` $parameters^ `)`)? (`positions` `(` $positions^ `)`)?
    `into` `(` $output `)` attr-dict (`phi` $phi^)?
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let builders = [
    // A named map; the result type follows from the destination.
    OpBuilder<(ins "::mlir::Value":$input, "::mlir::ValueRange":$parameters,
      "::mlir::Value":$positions, "::mlir::Value":$output,
      "::mlir::linattn::FeatureMapAttr":$map)>
  ];
  let hasCanonicalizer = 1;
}

#endif // LINATTN_DIALECT_LINATTNFEATUREMAP_TD
