//===- MapParameters.h - Parameters of feature maps -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_MAPPARAMETERS_H
#define LINATTN_DIALECT_MAPPARAMETERS_H

#include "linattn/Analysis/FeatureMaps.h"
#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

using ::linattn::FeatureMapTraits;
using ::linattn::MapParameter;

/// The row of the table of maps. A region has the row of identity.
const FeatureMapTraits &getMapTraits(FeatureMapKind kind);

/// The parameters of a map. Most maps have none.
ArrayRef<MapParameter> getMapParameters(FeatureMapKind kind);

/// True if the operand has a parameter for each head.
bool isPerHead(const MapParameter &parameter, Value operand);

/// True if φ needs a whole token, changes its size or has parameters: such maps
/// stand in `linattn.feature_map` only.
bool needsWholeToken(FeatureMapKind kind);

/// The eps of a map that has one: the attribute's, or the default.
double getMapEps(FeatureMapAttr map);

/// The factor of x before the map.
double getMapScale(FeatureMapAttr map);

/// Verifies (F1) and (F4) to (F5) of `linattn.feature_map`, except for sizes.
LogicalResult verifyMapOperands(FeatureMapOp op);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_MAPPARAMETERS_H
