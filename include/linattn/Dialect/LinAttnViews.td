//===- LinAttnViews.td - The same elements in another layout --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNVIEWS_TD
#define LINATTN_DIALECT_LINATTNVIEWS_TD

def LinAttn_PermuteOp : LinAttn_Op<"permute", [
    Pure,
    DeclareOpInterfaceMethods<InferTypeOpInterface, ["inferReturnTypes"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "the same tensor with its dimensions in another order";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the input. No
    element moves: where `linalg.transpose` writes a destination, this op
    bufferizes to `memref.transpose`, a view with other strides. Importers use
    it to present packed tokens `[B, T, H·D]` as `[B, H, T, D]`.

    Constraints:
    - (P1) the permutation holds every dimension of the input once.
    - (P2) the result has the permuted shape and the element type of the input;
      the declared shape may be more static.

    Example:

    ```mlir
    %h = linattn.permute %x [0, 2, 1, 3] : tensor<2x?x8x64xf32> to tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred,
                                        ::mlir::TypeRange declared);
  }];
}

#endif // LINATTN_DIALECT_LINATTNVIEWS_TD
