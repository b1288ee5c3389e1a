//===- VectorBuilder.cpp - Shorthand for emitting vector code -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorBuilder.h"
#include "linattn/Support/Sizes.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::linattn;

/// The largest buffer of a task on its stack, and of all its buffers, in bytes.
static constexpr int64_t stackBytes = 64 << 10, taskStackBytes = 384 << 10;

Value VectorBuilder::scratch(ArrayRef<OpFoldResult> sizes, Type element) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  auto memref = MemRefType::get(shape, element ? element : type);
  // A cache line, so that whole vectors never straddle two.
  IntegerAttr alignment = b.getI64IntegerAttr(64);
  if (Block *task = taskBody(); task && dynamic.empty() && fitsStack(memref)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(task);
    return memref::AllocaOp::create(b, loc, memref, ValueRange(), alignment);
  }
  Value buffer = memref::AllocOp::create(b, loc, memref, dynamic, alignment);
  allocated.push_back(buffer);
  return buffer;
}

/// A buffer of a task is on the stack unless it is large, or the other buffers
/// already use the stack that a thread is expected to have.
bool VectorBuilder::fitsStack(MemRefType memref) {
  std::optional<int64_t> bytes = ::linattn::getByteCount(
      memref.getElementTypeBitWidth() / 8, memref.getShape());
  if (!bytes || *bytes > stackBytes || stackTaken + *bytes > taskStackBytes)
    return false;
  stackTaken += *bytes;
  return true;
}

VectorBuilder::Rows
VectorBuilder::accumulate(Rows sums, Value begin, Value end,
                          function_ref<Value(int64_t, Value)> left,
                          function_ref<Value(Value)> right) {
  int64_t width = cast<VectorType>(sums.front().getType()).getNumElements();
  return reduce(begin, end, unroll, sums,
                [&](Value start, ValueRange carried) -> SmallVector<Value> {
                  Rows next(carried);
                  for (int64_t i = 0; i < unroll; ++i) {
                    Value k = add(start, index(i));
                    Value line = right(k);
                    for (auto [r, sum] : llvm::enumerate(next))
                      sum = fmaVector(splat(left(r, k), width), line, sum);
                  }
                  return next;
                });
}

VectorBuilder::Rows
VectorBuilder::accumulateRest(Rows sums, Value begin, Value end,
                              function_ref<Value(int64_t, Value)> left,
                              function_ref<Value(Value)> right) {
  llvm::SaveAndRestore<int64_t> one(unroll, 1);
  return accumulate(std::move(sums), begin, end, left, right);
}

VectorBuilder::Rows VectorBuilder::accumulateInParts(
    Rows sums, Value size, function_ref<Value(int64_t, Value)> left,
    function_ref<Value(Value)> right, function_ref<void(Value)> between) {
  int64_t rows = sums.size();
  std::optional<int64_t> known = getConstantIntValue(size);
  if (!known) {
    forEach(index(rows), between);
    return accumulate(sums, index(0), size, left, right);
  }
  int64_t step = std::max<int64_t>(*known / rows / unroll, 1) * unroll;
  while (*known % step)
    step += unroll;
  int64_t parts = *known / step;
  int64_t each = llvm::divideCeil(rows, parts);
  return reduce(
      index(0), index(parts), 1, sums,
      [&](Value part, ValueRange carried) -> SmallVector<Value> {
        for (int64_t i = 0; i < each; ++i)
          between(min(add(mul(part, index(each)), index(i)), index(rows - 1)));
        Value from = mul(part, index(step));
        return accumulate(Rows(carried), from, add(from, index(step)), left,
                          right);
      });
}

Value VectorBuilder::delayed(Value x, Value y, int64_t step) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> lanesOf;
  for (int64_t i = 0; i < lanes; ++i)
    lanesOf.push_back(i < step ? lanes + i : i - step);
  return vector::ShuffleOp::create(b, loc, x, y, lanesOf);
}

// Without ρ, a slow decay errs at every token or chunk in the same direction.
// Small factors have no useful residual: Γ − 1 would itself be rounded, and
// little of the past remains.
Value VectorBuilder::residualOf(Value logarithm, Value factor) {
  auto number = [&](double value) {
    return constant(logarithm.getType(), value);
  };
  Value rest =
      subf(math::ExpM1Op::create(b, loc, logarithm), subf(factor, number(1.0)));
  Value isSlow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE,
                                       factor, number(0.5));
  return select(isSlow, rest, number(0.0));
}

/// The body of the outermost parallel loop, which becomes a function.
/// Allocations at its start take stack space once.
Block *VectorBuilder::taskBody() {
  Operation *outermost = nullptr;
  for (Operation *op = b.getInsertionBlock()->getParentOp(); op;
       op = op->getParentOp())
    if (isa<scf::ParallelOp, scf::ForallOp>(op))
      outermost = op;
  return outermost ? &outermost->getRegion(0).front() : nullptr;
}

void VectorBuilder::freeScratch() {
  for (Value buffer : allocated)
    memref::DeallocOp::create(b, loc, buffer);
  allocated.clear();
}

bool mlir::linattn::dividesLastDim(MemRefType type, int64_t size) {
  int64_t last = type.getShape().back();
  return !ShapedType::isDynamic(last) && last % size == 0;
}

bool mlir::linattn::isTransposed(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type.getRank() >= 2 &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.back() != 1 && strides[type.getRank() - 2] == 1;
}

// With each step, halves of lines that are `step` apart change places.
SmallVector<Value> VectorBuilder::transposed(SmallVector<Value> lines) {
  int64_t lanes = lines.size();
  for (int64_t step = 1; step < lanes; step *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t c = 0; c < lanes; ++c) {
      low.push_back(c & step ? lanes + c - step : c);
      high.push_back(c & step ? lanes + c : c + step);
    }
    SmallVector<Value> next(lines);
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & step)
        continue;
      Value x = lines[i], y = lines[i + step];
      next[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      next[i + step] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
    lines = next;
  }
  return lines;
}

Value VectorBuilder::flip(Value memref) {
  unsigned rank = cast<MemRefType>(memref.getType()).getRank();
  auto order = llvm::to_vector(llvm::seq(rank));
  std::swap(order[rank - 1], order[rank - 2]);
  AffineMap map = AffineMap::getPermutationMap(order, b.getContext());
  return memref::TransposeOp::create(b, loc, memref, AffineMapAttr::get(map));
}

/// The columns of a block as lines of the flipped operand: where each begins,
/// and the mask of what lies in bounds, null where all does.
void VectorBuilder::forEachColumn(
    Value flipped, const BlockPlace &place, int64_t lanes,
    function_ref<void(int64_t, ArrayRef<Value>, Value)> body) {
  auto flippedType = cast<MemRefType>(flipped.getType());
  int64_t rank = flippedType.getRank(), size = flippedType.getDimSize(rank - 2);
  bool allRows = !place.anywhere && dividesLastDim(flippedType, lanes);
  bool allColumns =
      !ShapedType::isDynamic(size) && size % place.columnStep == 0;
  Value columns = dim(flipped, rank - 2);
  Value left = sub(dim(flipped, rank - 1), place.row);
  auto maskOf = [&](Value count) -> Value {
    auto type = VectorType::get(lanes, b.getI1Type());
    return vector::CreateMaskOp::create(b, loc, type, count);
  };
  Value shared = allColumns && !allRows ? maskOf(left) : Value();
  for (int64_t i = 0; i < lanes; ++i) {
    SmallVector<Value> at(place.outer);
    Value own = add(place.column, index(i)), mask = shared;
    if (!allColumns) {
      Value isInside = compare(arith::CmpIPredicate::slt, own, columns);
      mask = maskOf(select(isInside, left, index(0)));
      own = min(own, sub(columns, index(1)));
    }
    at.append({own, place.row});
    body(i, at, mask);
  }
}

SmallVector<Value> VectorBuilder::readTransposed(Value memref,
                                                 const BlockPlace &place,
                                                 int64_t lanes) {
  Value flipped = flip(memref);
  auto line = VectorType::get(lanes, getElementTypeOrSelf(memref));
  SmallVector<Value> lines;
  forEachColumn(flipped, place, lanes,
                [&](int64_t, ArrayRef<Value> at, Value mask) {
                  Value x;
                  if (mask)
                    x = vector::MaskedLoadOp::create(b, loc, line, flipped, at,
                                                     mask, constant(line, 0.0));
                  else
                    x = vector::LoadOp::create(b, loc, line, flipped, at);
                  lines.push_back(convert(x, type));
                });
  return transposed(lines);
}

void VectorBuilder::writeTransposed(SmallVector<Value> lines, Value memref,
                                    const BlockPlace &place) {
  Value flipped = flip(memref);
  Type element = getElementTypeOrSelf(memref);
  lines = transposed(std::move(lines));
  forEachColumn(flipped, place, lines.size(),
                [&](int64_t i, ArrayRef<Value> at, Value mask) {
                  Value x = convert(lines[i], element);
                  if (mask)
                    vector::MaskedStoreOp::create(b, loc, flipped, at, mask, x);
                  else
                    vector::StoreOp::create(b, loc, x, flipped, at);
                });
}

void VectorBuilder::prefetchState(Value memref, ValueRange indices,
                                  int64_t size, bool isWritten,
                                  int64_t locality) {
  int64_t line = elementsPerLine(memref);
  SmallVector<Value> at(indices);
  for (int64_t i = 0; i < size; i += line) {
    at.back() = add(indices.back(), index(i));
    prefetchLine(memref, at, isWritten, locality);
  }
}

/// Whether the rows of a head's tokens are known to be neighbours.
static bool hasNeighbouringRows(Value rows) {
  auto type = cast<MemRefType>(rows.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  return type.getDimSize(1) == 1 ||
         (succeeded(type.getStridesAndOffset(strides, offset)) &&
          !ShapedType::isDynamic(strides[2]) &&
          strides[2] == type.getDimSize(3));
}

int64_t VectorBuilder::localityOf(Value memref) const {
  return hasNeighbouringRows(memref) ? firstCache : scatteredRows;
}

void VectorBuilder::prefetchRow(Value memref, ArrayRef<Value> row, Value column,
                                Value width, bool isWritten, int64_t locality) {
  int64_t line = elementsPerLine(memref);
  auto prefetch = [&](Value d) {
    SmallVector<Value> at(row);
    at.push_back(add(column, d));
    prefetchLine(memref, at, isWritten, locality);
  };
  if (std::optional<int64_t> known = getConstantIntValue(width))
    for (int64_t d = 0; d < *known; d += line)
      prefetch(index(d));
  else
    forEach(index(0), width, line, prefetch);
  // A row that begins within a line ends in one more.
  prefetch(sub(width, index(1)));
}

Value VectorBuilder::sumVector(Value x) {
  for (int64_t n = cast<VectorType>(x.getType()).getNumElements(); n > 1;
       n /= 2) {
    auto half = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, loc, x, ArrayRef<int64_t>{offset}, ArrayRef<int64_t>{n / 2},
          ArrayRef<int64_t>{1});
    };
    x = addf(half(0), half(n / 2));
  }
  return vector::ExtractOp::create(b, loc, x, ArrayRef<int64_t>{0});
}

Value VectorBuilder::combineVectors(SmallVector<Value> vectors,
                                    function_ref<Value(Value, Value)> combine) {
  // The halves of all groups of `size` elements of two vectors, or of one.
  auto halves = [&](Value x, Value y, int64_t size) -> Value {
    int64_t length = cast<VectorType>(x.getType()).getNumElements();
    SmallVector<int64_t> low, high;
    for (int64_t group = 0; group < (y ? 2 : 1) * length; group += size)
      for (int64_t i = 0; i < size / 2; ++i) {
        low.push_back(group + i);
        high.push_back(group + size / 2 + i);
      }
    Value other = y ? y : x;
    return combine(vector::ShuffleOp::create(b, loc, x, other, low),
                   vector::ShuffleOp::create(b, loc, x, other, high));
  };
  int64_t size = cast<VectorType>(vectors.front().getType()).getNumElements();
  for (; vectors.size() > 1; size /= 2) {
    for (size_t i = 0; i < vectors.size() / 2; ++i)
      vectors[i] = halves(vectors[2 * i], vectors[2 * i + 1], size);
    vectors.truncate(vectors.size() / 2);
  }
  Value combined = vectors.front();
  for (; size > 1; size /= 2)
    combined = halves(combined, {}, size);
  return combined;
}

Value VectorBuilder::readOperand(Value memref, ValueRange indices, int64_t size,
                                 double padding) {
  return convert(readElements(memref, indices, size, padding), type);
}

Value VectorBuilder::readElements(Value memref, ValueRange indices,
                                  int64_t size, double padding, bool isInside) {
  auto source = cast<MemRefType>(memref.getType());
  Type element = source.getElementType();
  Value pad =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, padding));
  return vector::TransferReadOp::create(
      b, loc, VectorType::get(size, element), memref, indices, pad,
      ArrayRef<bool>{isInside || dividesLastDim(source, size)});
}

void VectorBuilder::writeOperand(Value value, Value memref,
                                 ValueRange indices) {
  auto target = cast<MemRefType>(memref.getType());
  int64_t size = cast<VectorType>(value.getType()).getNumElements();
  vector::TransferWriteOp::create(
      b, loc, convert(value, target.getElementType()), memref, indices,
      ArrayRef<bool>{dividesLastDim(target, size)});
}
