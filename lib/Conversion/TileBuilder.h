//===- TileBuilder.h - Emitting vector tiles --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the vector lowerings share: scratch buffers, and packing rows of tokens
// into them with the feature map applied, zero-padded to whole vectors so that
// the loops that do the work have no tails.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_TILEBUILDER_H
#define LINATTN_CONVERSION_TILEBUILDER_H

#include "LoopBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::linattn {

/// The registers a schedule is cut for. `cols` is a multiple of `lanes`.
struct TileShape {
  int64_t lanes; ///< Elements of one hardware vector.
  int64_t rows;  ///< Accumulators of one tile.
  int64_t cols;  ///< Elements of one accumulator.
  int64_t block; ///< Tokens between two loads of a tile.
};

class TileBuilder : public LoopBuilder {
public:
  TileBuilder(OpBuilder &b, FeatureMappedOpInterface op, Type tokenType,
              TileShape shape)
      : LoopBuilder(b, op->getLoc()), op(op), tokenType(tokenType),
        type(getAccumulationType(tokenType)), shape(shape) {}

  VectorType vectorType(int64_t size) { return VectorType::get(size, type); }
  Value splat(Value scalar, int64_t size) {
    return vector::BroadcastOp::create(b, loc, vectorType(size), scalar);
  }
  Value zeros(int64_t size) { return constant(vectorType(size), 0.0); }
  Value fmaVector(Value x, Value y, Value z) {
    return vector::FMAOp::create(b, loc, x, y, z);
  }
  Value reduceVector(vector::CombiningKind kind, Value x) {
    return vector::ReductionOp::create(b, loc, kind, x);
  }

  /// size rounded up to whole multiples.
  Value roundUp(Value size, int64_t multiple) {
    return mul(ceilDiv(size, multiple), index(multiple));
  }

  /// Scratch memory of the accumulation type, released by `freeScratch`.
  Value scratch(ArrayRef<OpFoldResult> sizes);
  void freeScratch();

  // Whole vectors of scratch memory.
  Value loadVector(Value memref, ValueRange indices, int64_t size) {
    return vector::LoadOp::create(b, loc, vectorType(size), memref, indices);
  }
  void storeVector(Value value, Value memref, ValueRange indices) {
    vector::StoreOp::create(b, loc, value, memref, indices);
  }

  /// `size` elements of an operand along its last dimension from `indices` on,
  /// converted to the accumulation type; past the end `padding`.
  Value readOperand(Value memref, ValueRange indices, int64_t size,
                    double padding = 0.0);
  /// Writes a vector in the operand's type; elements past the end are dropped.
  void writeOperand(Value value, Value memref, ValueRange indices);

  /// Largest element of the row `indices` of an operand.
  Value rowMaximum(Value memref, ArrayRef<Value> row);

  /// How a row of features is packed.
  struct Row {
    Value source;             ///< [B, H, T, D] operand.
    SmallVector<Value> index; ///< Batch, head, token.
    Value shift;              ///< Subtracted before φ; null if none.
    bool mapped = true;       ///< Apply φ; else copy.
    double scale = 1.0;       ///< Applied after φ.
    Value keep;               ///< i1; the row is 0 where false. Null if none.
  };
  /// Packs a row into `target[position, 0 …]`, a scratch buffer whose last
  /// dimension is padded to whole lanes, and clears the padding.
  void packRow(const Row &row, Value target, ArrayRef<Value> position);

  FeatureMappedOpInterface op;
  Type tokenType, type;
  TileShape shape;

private:
  SmallVector<Value> allocated;
};

/// The vector schedules: each emits its loops for an op on buffers at the
/// builder's insertion point. `tokenForm` streams through the state in memory
/// instead of keeping tiles of it in registers: for a few tokens.
void lowerToStateTile(OpBuilder &b, ScanOp op, TileShape shape, bool tokenForm);
void lowerToStateTile(OpBuilder &b, StateOp op, TileShape shape,
                      bool tokenForm);
void lowerToStateTile(OpBuilder &b, ReadOp op, TileShape shape, bool tokenForm);
void lowerToQuadraticTile(OpBuilder &b, QuadraticOp op, TileShape shape);
/// One query at a time: for a few.
void lowerToQuadraticRows(OpBuilder &b, QuadraticOp op, TileShape shape);

/// Why a schedule cannot run the op; empty if it can.
StringRef whyNoStateTile(ScanOp op);
StringRef whyNoQuadraticTile(QuadraticOp op);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_TILEBUILDER_H
