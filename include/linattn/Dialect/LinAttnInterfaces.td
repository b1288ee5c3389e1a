//===- LinAttnInterfaces.td - Op interfaces ----------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNINTERFACES_TD
#define LINATTN_DIALECT_LINATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def LinAttn_ShapeContractOpInterface : OpInterface<"ShapeContractOpInterface"> {
  let cppNamespace = "::mlir::linattn";
  let description = [{
    An op that can state how the dimensions of its operands relate. The same
    list serves the verifier (static sizes) and the entry point of a compiled
    function (dynamic sizes), so both report the same message.
  }];
  let methods = [
    InterfaceMethod<"Returns every relation between operand dimensions.",
      "::llvm::SmallVector<::mlir::linattn::DimRelation>", "getDimRelations">
  ];
}

def LinAttn_FeatureMappedOpInterface : OpInterface<"FeatureMappedOpInterface"> {
  let cppNamespace = "::mlir::linattn";
  let description = [{
    An op that applies a feature map φ to its queries or keys: a named map, or
    the scalar function in its region.
  }];
  let methods = [
    InterfaceMethod<"Returns the kind of φ.",
      "::mlir::linattn::FeatureMapKind", "getFeatureMapKind", (ins), [{
        return $_op.getFeatureMap() ? $_op.getFeatureMap()->getKind()
                                    : ::mlir::linattn::FeatureMapKind::Identity;
      }]>,
    InterfaceMethod<"Returns the region holding φ, empty for a named map.",
      "::mlir::Region &", "getFeatureMapRegion", (ins), [{
        return $_op.getPhi();
      }]>
  ];
}

#endif // LINATTN_DIALECT_LINATTNINTERFACES_TD
