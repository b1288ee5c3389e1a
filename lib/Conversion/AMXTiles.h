//===- AMXTiles.h - What lowerings of tiles to vectors share ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_AMXTILES_H
#define LINATTN_CONVERSION_AMXTILES_H

#include "LoopBuilder.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::linattn {

/// The start of a row of a tile in memory; without a stride, rows follow the
/// dimension before the last one.
SmallVector<Value> placeInTile(LoopBuilder &b, ValueRange indices, Value stride,
                               Value row);

/// Why an op of AMX or on tiles has no lowering to vectors, as a sentence;
/// empty if it has one. Tiles must stay in the block that defines them.
StringRef whyNoVectorsOfTiles(Operation *op);

/// Emits an error on the first op of the function that `why` has a reason for:
/// "cannot be emulated: " and the reason.
LogicalResult verifyTiles(Operation *function, StringRef what,
                          function_ref<std::string(Operation *)> why);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_AMXTILES_H
