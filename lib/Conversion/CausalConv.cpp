//===- CausalConv.cpp - linattn.causal_conv as loops ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts that all loops share, and the choice among the vector loops:
// strides of the caller's buffers are known at run time, and the code for each
// pair of axes stands beside the others.
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value ConvBuilder::sum(ArrayRef<Value> weights, Value bias,
                       function_ref<Value(int64_t)> input) {
  Value sum = bias;
  for (auto [tap, weight] : llvm::enumerate(weights)) {
    Value x = input(tap);
    sum = sum ? fma(weight, x, sum) : mulf(weight, x);
  }
  return sum;
}

ConvBuilder::Vectors ConvBuilder::activate(ArrayRef<Value> vectors) {
  Vectors parts(vectors);
  if (!conv.getActivation())
    return parts;
  // Takes a power of two of them, then the others.
  size_t whole = std::min<size_t>(llvm::bit_floor(vectors.size()), sideBySide);
  parts.truncate(whole);
  while (parts.size() > 1) {
    Vectors wider;
    for (size_t i = 0; i < parts.size(); i += 2) {
      int64_t size = cast<VectorType>(parts[i].getType()).getNumElements();
      wider.push_back(vector::ShuffleOp::create(
          b, loc, parts[i], parts[i + 1],
          llvm::to_vector(llvm::seq<int64_t>(0, 2 * size))));
    }
    parts = wider;
  }
  Value y = activate(parts.front());
  if (vectors.size() == 1)
    return {y};
  parts.clear();
  for (size_t i = 0; i < whole; ++i)
    parts.push_back(vector::ExtractStridedSliceOp::create(
        b, loc, y, ArrayRef<int64_t>{int64_t(i) * lanes},
        ArrayRef<int64_t>{lanes}, ArrayRef<int64_t>{1}));
  if (whole < vectors.size())
    llvm::append_range(parts, activate(vectors.drop_front(whole)));
  return parts;
}

Value ConvBuilder::activate(Value x) {
  std::optional<Activation> activation = conv.getActivation();
  return activation ? emitActivation(*this, *activation, x,
                                     getElementTypeOrSelf(conv.getInput()))
                    : x;
}

ConvBuilder::Vectors ConvBuilder::split(Value vector) {
  auto form = cast<VectorType>(vector.getType());
  if (parts == 1 || form.getNumElements() == lanes)
    return {convert(vector, type)};
  return Vectors(splitPairs(*this, vector, type));
}

Value ConvBuilder::join(ArrayRef<Value> vectors, Type element) {
  return vectors.size() == 1 ? convert(vectors.front(), element)
                             : joinPairs(*this, vectors, element);
}

SmallVector<Value, 16> mlir::linattn::transposeSquare(LoopBuilder &loops,
                                                      ArrayRef<Value> rows) {
  SmallVector<Value, 16> square(rows);
  int64_t size = rows.size();
  // Blocks of twice the size change their off-diagonal halves.
  for (int64_t half = 1; half < size; half *= 2)
    for (int64_t i = 0; i < size; ++i) {
      if (i & half)
        continue;
      SmallVector<int64_t> upper, lower;
      for (int64_t j = 0; j < size; ++j) {
        upper.push_back(j & half ? size + (j ^ half) : j);
        lower.push_back(j & half ? size + j : j ^ half);
      }
      Value x = square[i], y = square[i | half];
      square[i] = vector::ShuffleOp::create(loops.b, loops.loc, x, y, upper);
      square[i | half] =
          vector::ShuffleOp::create(loops.b, loops.loc, x, y, lower);
    }
  return square;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Value ConvBuilder::countBlocks(int64_t tokens) {
  return conv.getCuSeqlens() ? index(1)
                             : ceilDiv(dim(conv.getInput(), 1), tokens);
}

void ConvBuilder::enterBlock(Value sequence, Value block, int64_t tokens) {
  enterSequence(sequence);
  first = index(0);
  last = sub(end, begin);
  if (conv.getCuSeqlens())
    return;
  first = mul(block, index(tokens));
  last = min(add(first, index(tokens)), last);
}

//===----------------------------------------------------------------------===//
// [C, W] weights and [B, C, S] states
//===----------------------------------------------------------------------===//

// Channels are rows of few elements there. If rows are contiguous, one vector
// holds several of them and shuffles separate them.

Value ConvBuilder::isFlat(Value memref) {
  auto source = cast<MemRefType>(memref.getType());
  int64_t rank = source.getRank();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto equals = [&](Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, index(y));
  };
  return arith::AndIOp::create(
      b, loc, equals(metadata.getStrides()[rank - 1], 1),
      equals(metadata.getStrides()[rank - 2], source.getDimSize(rank - 1)));
}

/// The rows of all channels as one dimension of stride 1.
Value ConvBuilder::flatView(Value memref, ValueRange prefix) {
  auto source = cast<MemRefType>(memref.getType());
  int64_t rank = source.getRank();
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  Value offset = metadata.getOffset();
  for (auto [at, stride] : llvm::zip(prefix, metadata.getStrides()))
    offset = add(offset, mul(at, stride));
  Value size = mul(dim(memref, rank - 2), index(source.getDimSize(rank - 1)));
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       ArrayRef<int64_t>{1});
  return memref::ReinterpretCastOp::create(
      b, loc,
      MemRefType::get({ShapedType::kDynamic}, source.getElementType(), layout,
                      source.getMemorySpace()),
      metadata.getBaseBuffer(), OpFoldResult(offset),
      ArrayRef<OpFoldResult>{size}, ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

ConvBuilder::Vectors ConvBuilder::branch(Value condition,
                                         function_ref<Vectors()> then,
                                         function_ref<Vectors()> otherwise) {
  Vectors values;
  auto build = [&](function_ref<Vectors()> body) {
    return [&, body](OpBuilder &, Location) {
      OpBuilder::InsertionGuard guard(b);
      scf::YieldOp::create(b, loc, body());
    };
  };
  auto choice =
      scf::IfOp::create(b, loc, condition, build(then), build(otherwise));
  values.assign(choice.result_begin(), choice.result_end());
  return values;
}

ConvBuilder::Vectors ConvBuilder::loadFlat(Value memref, ValueRange prefix,
                                           Value channel) {
  auto source = cast<MemRefType>(memref.getType());
  int64_t count = source.getShape().back();
  Value flat = flatView(memref, prefix), from = mul(channel, index(count));
  Vectors rows, result;
  for (int64_t r = 0; r < count; ++r)
    rows.push_back(readOperand(flat, {add(from, index(r * lanes))}, lanes));
  for (int64_t k = 0; k < count; ++k) {
    Value column = rows[0];
    for (int64_t r = count > 1 ? 1 : count; r < count; ++r) {
      SmallVector<int64_t> order;
      for (int64_t i = 0; i < lanes; ++i) {
        int64_t element = i * count + k, row = element / lanes;
        // Lanes of rows before are in place already.
        bool isFirst = r == 1 && row == 0;
        order.push_back(row == r  ? lanes + element % lanes
                        : isFirst ? element % lanes
                                  : i);
      }
      column = vector::ShuffleOp::create(b, loc, column, rows[r], order);
    }
    result.push_back(column);
  }
  return result;
}

void ConvBuilder::storeFlat(ArrayRef<Value> vectors, Value memref,
                            ValueRange prefix, Value channel) {
  int64_t count = vectors.size();
  Value flat = flatView(memref, prefix), from = mul(channel, index(count));
  for (int64_t r = 0; r < count; ++r) {
    Value row = vectors[0];
    for (int64_t k = count > 1 ? 1 : count; k < count; ++k) {
      SmallVector<int64_t> order;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t element = r * lanes + lane, of = element % count;
        bool isFirst = k == 1 && of == 0;
        order.push_back(of == k   ? lanes + element / count
                        : isFirst ? element / count
                                  : lane);
      }
      row = vector::ShuffleOp::create(b, loc, row, vectors[k], order);
    }
    writeOperand(row, flat, {add(from, index(r * lanes))});
  }
}

/// The same element by element, for rows that are apart.
ConvBuilder::Vectors ConvBuilder::gather(Value memref, ValueRange prefix,
                                         Value channel) {
  auto source = cast<MemRefType>(memref.getType());
  int64_t rank = source.getRank(), count = source.getShape().back();
  Value channels = min(sub(dim(memref, rank - 2), channel), index(lanes));
  Vectors result;
  for (int64_t k = 0; k < count; ++k) {
    storeVector(zeros(lanes), lane, {index(0)});
    forEach(channels, [&](Value c) {
      SmallVector<Value> at(prefix);
      at.append({add(channel, c), index(k)});
      store(loadAs(memref, at), lane, {c});
    });
    result.push_back(loadVector(lane, {index(0)}, lanes));
  }
  return result;
}

void ConvBuilder::scatter(ArrayRef<Value> vectors, Value memref,
                          ValueRange prefix, Value channel) {
  auto target = cast<MemRefType>(memref.getType());
  Value channels =
      min(sub(dim(memref, target.getRank() - 2), channel), index(lanes));
  for (auto [k, vector] : llvm::enumerate(vectors)) {
    storeVector(vector, lane, {index(0)});
    forEach(channels, [&, k = k](Value c) {
      SmallVector<Value> at(prefix);
      at.append({add(channel, c), index(int64_t(k))});
      store(convert(load(lane, {c}), target.getElementType()), memref, at);
    });
  }
}

ConvBuilder::Vectors
ConvBuilder::loadInterleaved(Value memref, ValueRange prefix, Value channel) {
  return branch(
      isFlat(memref), [&] { return loadFlat(memref, prefix, channel); },
      [&] { return gather(memref, prefix, channel); });
}

void ConvBuilder::storeInterleaved(ArrayRef<Value> vectors, Value memref,
                                   ValueRange prefix, Value channel) {
  branch(
      isFlat(memref),
      [&] {
        storeFlat(vectors, memref, prefix, channel);
        return Vectors();
      },
      [&] {
        scatter(vectors, memref, prefix, channel);
        return Vectors();
      });
}

//===----------------------------------------------------------------------===//
// Vector loops
//===----------------------------------------------------------------------===//

namespace {

/// Finds out along which axis the elements of a buffer are neighbours.
class AxisChooser : public LoopBuilder {
public:
  AxisChooser(OpBuilder &b, CausalConvOp op, int64_t lanes)
      : LoopBuilder(b, op.getLoc()), op(op), lanes(lanes) {}

  void emit();

private:
  static bool hasUnitChannels(Value memref) {
    return cast<MemRefType>(memref.getType()).isLastDimUnitStride();
  }
  static bool hasUnitTokens(Value memref) {
    SmallVector<int64_t> strides;
    int64_t offset;
    return succeeded(cast<MemRefType>(memref.getType())
                         .getStridesAndOffset(strides, offset)) &&
           strides[1] == 1;
  }
  Value hasUnitStride(Value memref, int64_t dim);
  Value viewAlong(Value memref, ConvAxis axis);
  void emitFor(ConvAxis input, ConvAxis output);

  CausalConvOp op;
  int64_t lanes;
};

} // namespace

Value AxisChooser::hasUnitStride(Value memref, int64_t dim) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                               metadata.getStrides()[dim], index(1));
}

/// [B, T, C] or, along tokens, [B, C, T], the last stride known to be 1.
Value AxisChooser::viewAlong(Value memref, ConvAxis axis) {
  if (axis == ConvAxis::None ||
      (axis == ConvAxis::Channels && hasUnitChannels(memref)))
    return memref;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  auto source = cast<MemRefType>(memref.getType());
  std::array<int64_t, 3> order = {0, 1, 2};
  if (axis == ConvAxis::Tokens)
    std::swap(order[1], order[2]);
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> sizes, strides;
  for (int64_t dim : order) {
    shape.push_back(source.getDimSize(dim));
    sizes.push_back(getAsOpFoldResult(LoopBuilder::dim(memref, dim)));
    strides.push_back(metadata.getStrides()[dim]);
  }
  strides.back() = b.getIndexAttr(1);
  constexpr int64_t any = ShapedType::kDynamic;
  auto layout = StridedLayoutAttr::get(b.getContext(), any,
                                       ArrayRef<int64_t>{any, any, 1});
  return memref::ReinterpretCastOp::create(
      b, loc,
      MemRefType::get(shape, source.getElementType(), layout,
                      source.getMemorySpace()),
      metadata.getBaseBuffer(), OpFoldResult(metadata.getOffset()), sizes,
      strides);
}

void AxisChooser::emitFor(ConvAxis input, ConvAxis output) {
  ConvViews views{viewAlong(op.getInput(), input),
                  viewAlong(op.getOutput(), output), input, output};
  if (input == ConvAxis::Tokens)
    emitConvOverTokens(b, op, lanes, views);
  else
    emitConvOverChannels(b, op, lanes, views);
}

void AxisChooser::emit() {
  if (hasUnitChannels(op.getInput()) && hasUnitChannels(op.getOutput()))
    return emitFor(ConvAxis::Channels, ConvAxis::Channels);
  OpBuilder::InsertionGuard guard(b);
  // A single token's channels are neighbours, too.
  bool areTokens =
      hasUnitTokens(op.getInput()) && hasUnitTokens(op.getOutput());
  std::array<ConvAxis, 2> axes = {ConvAxis::Channels, ConvAxis::Tokens};
  for (ConvAxis input : axes)
    for (ConvAxis output : axes) {
      if (areTokens && input == ConvAxis::Tokens)
        return emitFor(ConvAxis::Tokens, ConvAxis::Tokens);
      if (areTokens && output == ConvAxis::Tokens)
        continue;
      auto dimOf = [](ConvAxis axis) {
        return axis == ConvAxis::Channels ? 2 : 1;
      };
      Value fits = arith::AndIOp::create(
          b, loc, hasUnitStride(op.getInput(), dimOf(input)),
          hasUnitStride(op.getOutput(), dimOf(output)));
      auto branch = scf::IfOp::create(b, loc, fits, /*withElse=*/true);
      b.setInsertionPointToStart(branch.thenBlock());
      emitFor(input, output);
      b.setInsertionPointToStart(branch.elseBlock());
    }
  emitFor(ConvAxis::None, ConvAxis::None);
}

void mlir::linattn::lowerCausalConvToVector(OpBuilder &b, CausalConvOp op,
                                            int64_t lanes) {
  AxisChooser(b, op, lanes).emit();
}
