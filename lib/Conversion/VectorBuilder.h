//===- VectorBuilder.h - Shorthand for emitting vector code -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_VECTORBUILDER_H
#define LINATTN_CONVERSION_VECTORBUILDER_H

#include "LoopBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::linattn {

/// Emits vectors of one float type, scratch memory of it, and accesses to
/// operands of any float type.
class VectorBuilder : public LoopBuilder {
public:
  VectorBuilder(OpBuilder &b, Location loc, Type type)
      : LoopBuilder(b, loc), type(type) {}

  VectorType vectorType(int64_t size) { return VectorType::get(size, type); }
  Value splat(Value scalar, int64_t size) {
    return vector::BroadcastOp::create(b, loc, vectorType(size), scalar);
  }
  Value zeros(int64_t size) { return constant(vectorType(size), 0.0); }
  Value fmaVector(Value x, Value y, Value z) {
    return vector::FMAOp::create(b, loc, x, y, z);
  }
  /// ρ = (e^L − 1) − (Γ − 1), of a scalar or a vector: the rounding residual of
  /// Γ = e^L near 1.
  Value residualOf(Value logarithm, Value factor);
  Value lastLane(Value x) {
    int64_t size = cast<VectorType>(x.getType()).getNumElements();
    return vector::ExtractOp::create(b, loc, x, ArrayRef<int64_t>{size - 1});
  }
  Value reduceVector(vector::CombiningKind kind, Value x) {
    return vector::ReductionOp::create(b, loc, kind, x);
  }

  /// The sum of a vector's elements, in halves: a fixed order, few steps.
  Value sumVector(Value x);
  /// The sums of several vectors, a power of two and at most as many as lanes,
  /// as one vector; in the same order.
  Value sumVectors(SmallVector<Value> vectors) {
    return combineVectors(std::move(vectors),
                          [&](Value x, Value y) { return addf(x, y); });
  }
  /// Their largest elements.
  Value maxVectors(SmallVector<Value> vectors) {
    return combineVectors(std::move(vectors),
                          [&](Value x, Value y) { return larger(x, y); });
  }

  /// x_(i−step) in place of x_i; of the lanes below `step`, y.
  Value delayed(Value x, Value y, int64_t step);

  /// size rounded up to whole multiples.
  Value roundUp(Value size, int64_t multiple) {
    return mul(ceilDiv(size, multiple), index(multiple));
  }

  /// Scratch memory of the accumulation type or another one, on the stack if it
  /// is small, else released by `freeScratch`.
  Value scratch(ArrayRef<OpFoldResult> sizes, Type element = {});
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
  /// The same in the operand's type; `isInside`: nothing is past the end.
  Value readElements(Value memref, ValueRange indices, int64_t size,
                     double padding = 0.0, bool isInside = false);
  /// Writes a vector in the operand's type; elements past the end are dropped.
  void writeOperand(Value value, Value memref, ValueRange indices);

  /// Vectors that are summed up in registers, one per row.
  using Rows = SmallVector<Value>;
  /// Steps of a product's loop that are spelt out.
  int64_t unroll = 4;
  /// sums_r += Σ_k left(r, k) · right(k) for k in [begin, end), a multiple
  /// of `unroll`.
  Rows accumulate(Rows sums, Value begin, Value end,
                  function_ref<Value(int64_t, Value)> left,
                  function_ref<Value(Value)> right);
  /// The end of the whole loop steps of [begin, end).
  Value endOfSteps(Value begin, Value end) {
    return sub(end, rem(sub(end, begin), index(unroll)));
  }
  /// `accumulate`, one k at a time: for what whole steps leave.
  Rows accumulateRest(Rows sums, Value begin, Value end,
                      function_ref<Value(int64_t, Value)> left,
                      function_ref<Value(Value)> right);
  /// The same for [0, size), in parts of one size, about as many as there are
  /// rows. Before each part, `between` gets one or more rows; all rows before
  /// the first part if the size is unknown.
  Rows accumulateInParts(Rows sums, Value size,
                         function_ref<Value(int64_t, Value)> left,
                         function_ref<Value(Value)> right,
                         function_ref<void(Value)> between);

  /// Transposes a square block of vectors.
  SmallVector<Value> transposed(SmallVector<Value> lines);
  /// An operand with its last two dimensions in each other's place.
  Value flip(Value memref);
  /// Where a square block of `lanes` elements each way of an operand's last two
  /// dimensions begins, the first of which has stride 1.
  struct BlockPlace {
    SmallVector<Value> outer; ///< Indices before the two.
    Value row, column;
    /// Columns come in steps of that many, up to the next whole one, ...
    int64_t columnStep;
    /// ... and rows in steps of `lanes`, unless they may be anywhere.
    bool anywhere = false;
  };
  /// Reads the columns of a block and transposes them. Converted to the
  /// accumulation type; past either end 0.
  SmallVector<Value> readTransposed(Value memref, const BlockPlace &place,
                                    int64_t lanes);
  /// Writes such a block in the operand's type; what lies past an end is
  /// dropped.
  void writeTransposed(SmallVector<Value> lines, Value memref,
                       const BlockPlace &place);

  /// Localities of a prefetch: the cache that it fills.
  static constexpr int64_t firstCache = 3, secondCache = 2;
  /// How far ahead of the current row memory is prefetched, where every row
  /// is passed over.
  static constexpr int64_t rowsAhead = 8;
  /// Prefetches `width` elements, at least one, from `column` on of one row of
  /// an operand, which may begin anywhere in a line. An operand [B, H, T, D]
  /// knows the cache that its rows belong into.
  void prefetchRow(Value memref, ArrayRef<Value> row, Value column, Value width,
                   bool isWritten = false) {
    prefetchRow(memref, row, column, width, isWritten, localityOf(memref));
  }
  void prefetchRow(Value memref, ArrayRef<Value> row, Value column, Value width,
                   bool isWritten, int64_t locality);
  /// Prefetches a row of a state, for writing by default, which is always into
  /// the first cache; the row need not exist.
  void prefetchState(Value memref, ValueRange indices, int64_t size,
                     bool isWritten = true, int64_t locality = firstCache);
  /// The number of elements of `memref` in one cache line.
  static int64_t elementsPerLine(Value memref) {
    constexpr int64_t lineBits = 512;
    return lineBits /
           cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
  }
  /// Prefetches the cache line of one element.
  void prefetchLine(Value memref, ValueRange indices, bool isWritten = false,
                    int64_t locality = firstCache) {
    memref::PrefetchOp::create(b, loc, memref, indices, isWritten, locality,
                               /*isDataCache=*/true);
  }

  Type type;
  /// The cache that rows are prefetched into which may lie pages apart: the
  /// second one unless the first has more than 32 KiB. In a small one they fall
  /// into a few sets, and displace one another before they are read.
  int64_t scatteredRows = secondCache;
  /// Of a prefetch of an operand's rows.
  int64_t localityOf(Value memref) const;
  void setFirstCache(int64_t bytes) {
    scatteredRows = bytes > 32 << 10 ? firstCache : secondCache;
  }

private:
  Value combineVectors(SmallVector<Value> vectors,
                       function_ref<Value(Value, Value)> combine);
  void forEachColumn(Value flipped, const BlockPlace &place, int64_t lanes,
                     function_ref<void(int64_t, ArrayRef<Value>, Value)> body);
  Block *taskBody();
  bool fitsStack(MemRefType memref);

  SmallVector<Value> allocated;
  int64_t stackTaken = 0;
};

/// True if vectors of `size` tile the last dimension exactly.
bool dividesLastDim(MemRefType type, int64_t size);

/// True if the dimension before the last one is known to have unit stride, and
/// the last one is not.
bool isTransposed(Value memref);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_VECTORBUILDER_H
