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

def LinAttn_RecurrenceOpInterface : OpInterface<"RecurrenceOpInterface"> {
  let cppNamespace = "::mlir::linattn";
  let description = [{
    A recurrence over tokens whose destinations are outputs, then states. The
    dimensions of its first output are its loops; a table says which of them
    walks each dimension of each operand.
  }];
  let methods = [
    InterfaceMethod<[{
        Returns the loop of each dimension of each operand, −1 for one that is
        needed whole.
      }],
      "::llvm::SmallVector<::llvm::SmallVector<int64_t, 5>>", "getOperandLoops">,
    InterfaceMethod<"Returns the first output, which is only written.",
      "::mlir::OpOperand &", "getFirstOutput", (ins), [{
        return $_op.getOutputMutable();
      }]>,
    InterfaceMethod<"Returns the first state, which is read and written.",
      "::mlir::OpOperand &", "getFirstState", (ins), [{
        return $_op.getStateMutable();
      }]>,
    InterfaceMethod<"Returns the offsets of packed sequences, or null.",
      "::mlir::Value", "getSequenceOffsets", (ins), [{
        return $_op.getCuSeqlens();
      }]>,
    InterfaceMethod<"Returns whether tokens run from the last to the first.",
      "bool", "isReversed", (ins), [{ return $_op.getReverse(); }]>
  ];
  let extraSharedClassDeclaration = [{
    /// The loop over tokens: [B, T, C] or [B, H, T, D].
    int64_t getTokenLoop() {
      auto type = ::llvm::cast<::mlir::ShapedType>(
          $_op.getFirstOutput().get().getType());
      return type.getRank() == 4 ? 2 : 1;
    }
  }];
}

#endif // LINATTN_DIALECT_LINATTNINTERFACES_TD
