//===- VerifyUtils.h - Helpers of verifiers ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_DIALECT_VERIFYUTILS_H
#define LINATTN_LIB_DIALECT_VERIFYUTILS_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn::verify {

/// An operand and its name in messages.
struct Named {
  Value value;
  StringRef name;
};

class Relations {
public:
  void equal(StringRef id, StringRef what, Named a, int64_t dimA, Named b,
             int64_t dimB) {
    list.push_back({DimRelationKind::Equal,
                    {{a.value, dimA, a.name}, {b.value, dimB, b.name}},
                    what,
                    id});
  }

  /// Head counts of the given operands divide one another, pair by pair.
  void headsDivide(StringRef id, ArrayRef<Named> operands) {
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t j = i + 1; j < operands.size(); ++j)
        list.push_back({DimRelationKind::Divides,
                        {{operands[i].value, 1, operands[i].name},
                         {operands[j].value, 1, operands[j].name}},
                        "head count",
                        id});
  }

  /// The head count of `result` is the largest of the others'.
  void headsMax(StringRef id, Named result, ArrayRef<Named> others) {
    DimRelation relation{DimRelationKind::Max,
                         {{result.value, 1, result.name}},
                         "head count",
                         id};
    for (const Named &other : others)
      relation.dims.push_back({other.value, 1, other.name});
    list.push_back(std::move(relation));
  }

  void oneLess(StringRef id, StringRef what, Named a, int64_t dimA, Named b,
               int64_t dimB) {
    list.push_back({DimRelationKind::OneLess,
                    {{a.value, dimA, a.name}, {b.value, dimB, b.name}},
                    what,
                    id});
  }

  void quotient(StringRef id, StringRef what, Named a, int64_t dimA, Named b,
                int64_t dimB, int64_t divisor) {
    list.push_back({DimRelationKind::Quotient,
                    {{a.value, dimA, a.name}, {b.value, dimB, b.name}},
                    what,
                    id});
    list.back().divisor = divisor;
  }

  SmallVector<DimRelation> list;
};

inline Type elementType(Value value) { return getElementTypeOrSelf(value); }

/// The state beside its tokens: [N, H, K, V], [N, H, K] and [N, H].
void stateRelations(StringRef id, Named key, Named value, Named state,
                    Value normalizer, Value runningMax, Relations &relations);

/// (S11): the operand that gives each dimension of a gate, by the gate's rank.
/// Heads of a gate are state heads.
void gateRelations(Named gate, Named tokens, Named state, int64_t lastDim,
                   StringRef last, Named lastOf, Relations &relations);

/// Checks the relations whose sizes are all static.
LogicalResult verifyRelations(ShapeContractOpInterface op);

LogicalResult verifySameElementType(Operation *op, Named a, Named b);
LogicalResult verifyElementType(Operation *op, Named operand, Type expected);
LogicalResult verifyRank(Operation *op, Named operand, ArrayRef<int64_t> ranks,
                         StringRef shapes);

/// A state has the accumulation type of its tokens or f64, and its normalizer
/// and running maximum have the state's element type.
LogicalResult verifyStateTypes(Operation *op, Type tokenType, Named state,
                               Value normalizer, Value runningMax);

/// (A8) and its twins: a region comes exactly with the map `region`, and maps
/// one scalar of the type the op computes in to another.
LogicalResult verifyFeatureMap(FeatureMappedOpInterface op);

/// `type` holds the scale, which is an attribute or an operand, not both.
LogicalResult verifyScale(Operation *op, Type type,
                          std::optional<APFloat> scale, Value operand);

/// (A11), (A14) and their twins.
template <typename OpTy>
LogicalResult verifyScale(OpTy op) {
  return verifyScale(op, getAccumulationType(op), op.getScale(),
                     op.getScaleValue());
}

/// (A12) and its twins.
LogicalResult verifyAbsFloor(FeatureMappedOpInterface op,
                             std::optional<NormalizeAttr> normalize);

/// A normalizer is present exactly if `normalize` is.
LogicalResult verifyNormalizer(Operation *op,
                               std::optional<NormalizeAttr> normalize,
                               Value normalizer);

/// (S17) and its twin: packed sequences have a batch of 1.
LogicalResult verifyPackedBatch(Operation *op, Value offsets, Value tokens);

/// (S26) and its twin: a constant decay holds natural logarithms of at most 0.
LogicalResult verifyConstantDecay(Operation *op, Named decay);

/// Structured ops return their tensors, or nothing on buffers.
LogicalResult verifySemantics(DestinationStyleOpInterface op);

/// Checks that `summands`, if present, are a number from 1 to 3 for each
/// matrix.
LogicalResult verifySummands(Operation *op,
                             std::optional<ArrayRef<int64_t>> summands,
                             size_t matrices);

} // namespace mlir::linattn::verify

#endif // LINATTN_LIB_DIALECT_VERIFYUTILS_H
