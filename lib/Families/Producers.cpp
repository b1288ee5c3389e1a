//===- Producers.cpp - Operands that are made of earlier tokens -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

static SmallVector<utils::IteratorType> parallelLoops(unsigned count) {
  return SmallVector<utils::IteratorType>(count, utils::IteratorType::parallel);
}

/// The letters of the first dimensions of a tensor.
static StringRef firstDims(int64_t rank) {
  return StringRef("abcdefg").take_front(rank);
}

/// A tensor in the shape and type of `like`. `body` computes an element of
/// those of the inputs, whose dimensions are named.
static Value
mapLike(FamilyBuilder &f, Value like,
        ArrayRef<std::pair<Value, StringRef>> inputs,
        function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body) {
  Location loc = f.b.getLoc();
  auto type = cast<RankedTensorType>(like.getType());
  Value init = tensor::EmptyOp::create(
      f.b, tensor::getMixedSizes(f.b, loc, like), type.getElementType());
  SmallVector<Value> values;
  std::string subscripts;
  for (auto [value, dims] : inputs) {
    subscripts += (values.empty() ? "" : ",") + dims.str();
    values.push_back(value);
  }
  subscripts += "->" + firstDims(type.getRank()).str();
  return elementwise(f.b, loc, subscripts, values, init,
                     [&](OpBuilder &builder, Location at, ValueRange v) {
                       ImplicitLocOpBuilder nested(at, builder);
                       return body(nested, v);
                     });
}

static SmallVector<OpFoldResult> ones(OpBuilder &b, unsigned count) {
  return SmallVector<OpFoldResult>(count, b.getIndexAttr(1));
}

static SmallVector<OpFoldResult> zeros(OpBuilder &b, unsigned count) {
  return SmallVector<OpFoldResult>(count, b.getIndexAttr(0));
}

//===----------------------------------------------------------------------===//
// Packed sequences
//===----------------------------------------------------------------------===//

/// Extends an integer to 64 bits.
static Value widen(ImplicitLocOpBuilder &b, Value x) {
  Type i64 = b.getI64Type();
  return x.getType() == i64 ? x : arith::ExtSIOp::create(b, i64, x).getResult();
}

/// n where token t is the first of sequence n, −1 elsewhere. Each token
/// compares all offsets: there are few, and they may be in device memory.
static Value emitStarts(FamilyBuilder &f, Value begins, Value ends) {
  ImplicitLocOpBuilder &b = f.b;
  Type i64 = b.getI64Type();
  SmallVector<OpFoldResult> size{f.extent("T")};
  Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(-1));
  Value init = tensor::EmptyOp::create(b, size, i64);
  init = linalg::FillOp::create(b, ValueRange{none}, ValueRange{init})
             .getResult(0);
  return elementwise(
      b, b.getLoc(), "n,n->t", {begins, ends}, init,
      [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
        ImplicitLocOpBuilder body(loc, builder);
        auto index = [&](int64_t loop) -> Value {
          return arith::IndexCastOp::create(
              body, i64, linalg::IndexOp::create(body, loop));
        };
        Value begin = widen(body, v[0]), end = widen(body, v[1]);
        Value isHere = arith::CmpIOp::create(body, arith::CmpIPredicate::eq,
                                             begin, index(0));
        Value hasTokens =
            arith::CmpIOp::create(body, arith::CmpIPredicate::sgt, end, begin);
        Value isFirst = arith::AndIOp::create(body, isHere, hasTokens);
        return arith::SelectOp::create(body, isFirst, index(1), v[2]);
      });
}

SequenceEnds::SequenceEnds(FamilyBuilder &f) {
  Value offsets = f.operand("cu_seqlens");
  if (!offsets)
    return;
  SmallVector<OpFoldResult> size{f.extent("N")}, stride = ones(f.b, 1);
  auto slice = [&](int64_t from) -> Value {
    SmallVector<OpFoldResult> at{f.b.getIndexAttr(from)};
    return tensor::ExtractSliceOp::create(f.b, offsets, at, size, stride);
  };
  begins = slice(0);
  ends = slice(1);
  starts = emitStarts(f, begins, ends);
}

Value mlir::linattn::scaleOffsets(FamilyBuilder &f, int64_t factor) {
  Value offsets = f.operand("cu_seqlens");
  if (!offsets || factor == 1)
    return offsets;
  return mapLike(f, offsets, {{offsets, firstDims(1)}},
                 [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                   Value by = arith::ConstantOp::create(
                       body, body.getIntegerAttr(v[0].getType(), factor));
                   return arith::MulIOp::create(body, v[0], by);
                 });
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

/// x [1, H, T, …], with rows of the states where sequences begin.
static Value startFromStates(FamilyBuilder &f, const SequenceEnds &sequences,
                             Value x, Value state) {
  auto type = cast<RankedTensorType>(x.getType());
  StringRef dims = firstDims(type.getRank());
  return mapLike(
      f, x, {{x, dims}, {sequences.starts, dims.substr(2, 1)}},
      [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        Value zero = arith::ConstantOp::create(body, body.getI64IntegerAttr(0));
        Value isFirst =
            arith::CmpIOp::create(body, arith::CmpIPredicate::sge, v[1], zero);
        Value row = arith::MaxSIOp::create(body, v[1], zero);
        SmallVector<Value> at{
            arith::IndexCastOp::create(body, body.getIndexType(), row)};
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (dim != 0 && dim != 2)
            at.push_back(linalg::IndexOp::create(body, dim));
        Value start = tensor::ExtractOp::create(body, state, at);
        start = convertFloat(body, body.getLoc(), start, type.getElementType());
        return arith::SelectOp::create(body, isFirst, start, v[0]);
      });
}

/// Row `end` of x [1, H, T + 1, …] for every sequence; for an empty sequence
/// the row of its state.
static Value gatherEnds(FamilyBuilder &f, const SequenceEnds &sequences,
                        Value x, Value state) {
  auto type = cast<RankedTensorType>(state.getType());
  int64_t rank = type.getRank();
  StringRef dims = firstDims(rank), sequence = dims.take_front(1);
  return mapLike(
      f, state,
      {{sequences.begins, sequence}, {sequences.ends, sequence}, {state, dims}},
      [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        auto end = [&] {
          return arith::IndexCastOp::create(body, body.getIndexType(), v[1]);
        };
        SmallVector<Value> at{arith::ConstantIndexOp::create(body, 0)};
        for (int64_t dim = 1; dim < rank; ++dim) {
          if (dim == 2)
            at.push_back(end());
          at.push_back(linalg::IndexOp::create(body, dim));
        }
        if (rank == 2)
          at.push_back(end());
        Value last = convertFloat(body, body.getLoc(),
                                  tensor::ExtractOp::create(body, x, at),
                                  type.getElementType());
        Value hasTokens =
            arith::CmpIOp::create(body, arith::CmpIPredicate::sgt, v[1], v[0]);
        return arith::SelectOp::create(body, hasTokens, last, v[2]);
      });
}

LaggedTokens::LaggedTokens(FamilyBuilder &f, const SequenceEnds &sequences,
                           ArrayRef<OpFoldResult> sizes, Type elementType,
                           Value state)
    : f(f), sequences(sequences), sizes(sizes), elementType(elementType),
      state(state) {
  ImplicitLocOpBuilder &b = f.b;
  SmallVector<OpFoldResult> all(sizes), row(sizes), rowSizes(sizes);
  if (auto count = getConstantIntValue(sizes[2]))
    all[2] = b.getIndexAttr(*count + 1);
  else
    all[2] = getAsOpFoldResult(arith::AddIOp::create(
        b, getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[2]),
        arith::ConstantIndexOp::create(b, 1)));
  row[2] = b.getIndexAttr(1);
  rowSizes.erase(rowSizes.begin() + 2);
  if (!this->state) {
    // [N, H, …], one state per sequence.
    SmallVector<OpFoldResult> stateSizes(rowSizes);
    stateSizes[0] = f.extent("N");
    this->state = filled(b, b.getLoc(), stateSizes, f.accumulationType(), 0.0);
  }
  Value first;
  if (sequences.isPacked()) {
    first = filled(b, b.getLoc(), rowSizes, elementType, 0.0);
  } else {
    std::string dims = firstDims(rowSizes.size()).str();
    Value init = tensor::EmptyOp::create(b, rowSizes, elementType);
    first = elementwise(b, b.getLoc(), dims + "->" + dims, this->state, init,
                        [&](OpBuilder &body, Location loc, ValueRange v) {
                          return convertFloat(body, loc, v[0], elementType);
                        });
  }
  rows = tensor::EmptyOp::create(b, all, elementType);
  rows = tensor::InsertSliceOp::create(b, first, rows, zeros(b, sizes.size()),
                                       row, ones(b, sizes.size()));
}

Value LaggedTokens::slice(int64_t from) {
  SmallVector<OpFoldResult> offsets = zeros(f.b, sizes.size());
  offsets[2] = f.b.getIndexAttr(from);
  return tensor::ExtractSliceOp::create(f.b, rows, offsets, sizes,
                                        ones(f.b, sizes.size()));
}

void LaggedTokens::fill(Value tokens) {
  SmallVector<OpFoldResult> offsets = zeros(f.b, sizes.size());
  offsets[2] = f.b.getIndexAttr(1);
  rows = tensor::InsertSliceOp::create(f.b, tokens, rows, offsets, sizes,
                                       ones(f.b, sizes.size()));
}

Value LaggedTokens::own() { return slice(1); }

Value LaggedTokens::previous() {
  Value before = slice(0);
  if (!sequences.isPacked())
    return before;
  return startFromStates(f, sequences, before, state);
}

Value LaggedTokens::last() {
  if (sequences.isPacked())
    return gatherEnds(f, sequences, rows, state);
  SmallVector<OpFoldResult> offsets = zeros(f.b, sizes.size()), row(sizes);
  offsets[2] = sizes[2];
  row[2] = f.b.getIndexAttr(1);
  SmallVector<int64_t> shape(cast<RankedTensorType>(rows.getType()).getShape());
  shape.erase(shape.begin() + 2);
  return tensor::ExtractSliceOp::create(
      f.b, RankedTensorType::get(shape, elementType), rows, offsets, row,
      ones(f.b, sizes.size()));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

RunningSum mlir::linattn::emitRunningSum(FamilyBuilder &f, StringRef dim,
                                         Value increments, Value state) {
  ImplicitLocOpBuilder &b = f.b;
  Type wide = b.getF64Type();
  std::string from = ("N H " + dim).str(), to = ("N H 1 " + dim).str();
  Value start = f.mapAll(to, FamilyTerm{state, from}, wide,
                         [&](ImplicitLocOpBuilder &body, ValueRange v) {
                           return SmallVector<Value>{
                               convertFloat(body, body.getLoc(), v[0], wide)};
                         })
                    .front();
  // A scan with ones for keys and queries.
  Value one = f.filled("B 1 T 1", wide, 1.0);
  Value init = f.empty(("B H T " + dim).str(), wide);
  auto scan = ScanOp::create(b, one, one, increments, /*mask=*/Value(), init,
                             StateValues{start, Value(), Value()});
  if (Value offsets = f.operand("cu_seqlens"))
    scan.getCuSeqlensMutable().assign(offsets);
  return {scan->getResult(0), scan->getResult(1)};
}

//===----------------------------------------------------------------------===//
// Logarithms of sums
//===----------------------------------------------------------------------===//

/// One step of the running log-sum-exp: from x and the previous z, the next z',
/// the decay z − z' (0 without a predecessor) and the weight e^{x − z'}. z is
/// in f64: its rounding at every token would add up in the states. All else is
/// of type `type`.
static SmallVector<Value> emitLogSumStep(ImplicitLocOpBuilder &b, Value x,
                                         Value z, Type type, Type weightType) {
  Type wide = b.getF64Type();
  auto convert = [&](Value value, Type to) {
    return convertFloat(b, b.getLoc(), value, to);
  };
  Value s = convert(x, wide);
  Value most = arith::MaximumFOp::create(b, s, z);
  Value apart = math::AbsFOp::create(b, arith::SubFOp::create(b, s, z));
  Value rest =
      math::ExpOp::create(b, convert(arith::NegFOp::create(b, apart), type));
  Value sum = arith::AddFOp::create(
      b, most, convert(math::Log1pOp::create(b, rest), wide));
  Value none = emitConstant(b, wide, -std::numeric_limits<double>::infinity());
  Value first = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, z, none);
  Value decay = arith::SelectOp::create(b, first, emitConstant(b, wide, 0.0),
                                        arith::SubFOp::create(b, z, sum));
  Value weight =
      math::ExpOp::create(b, convert(arith::SubFOp::create(b, s, sum), type));
  return {sum, convert(decay, type), convert(weight, weightType)};
}

namespace {

/// The loop over tokens, which carries z alone.
class LogSumLoop {
public:
  LogSumLoop(FamilyBuilder &f, const SequenceEnds &sequences, FamilyTerm x,
             Value state)
      : f(f), sequences(sequences), x(x), state(state),
        type(f.accumulationType()), tokenType(getElementTypeOrSelf(x.value)) {
    StringRef rest = x.dims;
    rest.consume_front("B H T ");
    channel = rest;
    for (StringRef dim :
         {StringRef("B"), StringRef("H"), StringRef("T"), channel})
      sizes.push_back(f.extent(dim));
    tokens = sizes[2];
    sizes[2] = f.b.getIndexAttr(1);
  }

  RunningLogSum emit();

private:
  Value slice(ImplicitLocOpBuilder &b, Value from, Value t);
  SmallVector<Value> step(ImplicitLocOpBuilder &b, Value t, ValueRange carried);

  FamilyBuilder &f;
  const SequenceEnds &sequences;
  FamilyTerm x;
  Value state;
  Type type, tokenType;
  StringRef channel;
  SmallVector<OpFoldResult> sizes;
  OpFoldResult tokens;
};

} // namespace

/// [B, H, X] of [B, H, T, X], or the single element of [T].
Value LogSumLoop::slice(ImplicitLocOpBuilder &b, Value from, Value t) {
  auto whole = cast<RankedTensorType>(from.getType());
  if (whole.getRank() == 1)
    return tensor::ExtractSliceOp::create(b, from, ArrayRef<OpFoldResult>{t},
                                          ones(b, 1), ones(b, 1));
  SmallVector<OpFoldResult> offsets = zeros(b, 4);
  offsets[2] = t;
  auto part = RankedTensorType::get(
      {whole.getDimSize(0), whole.getDimSize(1), whole.getDimSize(3)},
      whole.getElementType());
  return tensor::ExtractSliceOp::create(b, part, from, offsets, sizes,
                                        ones(b, 4));
}

/// The next loop-carried values: z, decays, weights, and for packed sequences
/// every z.
SmallVector<Value> LogSumLoop::step(ImplicitLocOpBuilder &b, Value t,
                                    ValueRange carried) {
  SmallVector<Value> inputs{slice(b, x.value, t)}, outs{carried[0]};
  for (Value whole : carried.drop_front())
    outs.push_back(slice(b, whole, t));
  AffineMap identity = b.getMultiDimIdentityMap(3);
  SmallVector<AffineMap> maps{identity};
  if (sequences.isPacked()) {
    inputs.push_back(slice(b, sequences.starts, t));
    maps.push_back(
        AffineMap::get(3, 0, getAffineConstantExpr(0, b.getContext())));
  }
  maps.append(outs.size(), identity);
  auto generic = linalg::GenericOp::create(
      b, TypeRange(ValueRange(outs)), inputs, outs, maps, parallelLoops(3),
      [&](OpBuilder &inner, Location loc, ValueRange v) {
        ImplicitLocOpBuilder body(loc, inner);
        Value z = v[inputs.size()];
        if (sequences.isPacked()) {
          Value zero =
              arith::ConstantOp::create(body, body.getI64IntegerAttr(0));
          Value isFirst = arith::CmpIOp::create(body, arith::CmpIPredicate::sge,
                                                v[1], zero);
          Value row = arith::IndexCastOp::create(
              body, body.getIndexType(),
              arith::MaxSIOp::create(body, v[1], zero));
          SmallVector<Value> at{row, linalg::IndexOp::create(body, 1),
                                linalg::IndexOp::create(body, 2)};
          Value start = convertFloat(body, loc,
                                     tensor::ExtractOp::create(body, state, at),
                                     z.getType());
          z = arith::SelectOp::create(body, isFirst, start, z);
        }
        SmallVector<Value> next =
            emitLogSumStep(body, v[0], z, type, tokenType);
        if (sequences.isPacked())
          next.push_back(next.front());
        linalg::YieldOp::create(body, next);
      });
  SmallVector<Value> next{generic.getResult(0)};
  SmallVector<OpFoldResult> offsets = zeros(b, 4);
  offsets[2] = t;
  for (unsigned i = 1; i < outs.size(); ++i)
    next.push_back(tensor::InsertSliceOp::create(
        b, generic.getResult(i), carried[i], offsets, sizes, ones(b, 4)));
  return next;
}

RunningLogSum LogSumLoop::emit() {
  ImplicitLocOpBuilder &b = f.b;
  std::string dims = x.dims.str();
  std::string stateDims = ("N H " + channel).str();
  std::string carriedDims = ("B H " + channel).str();
  Type wide = b.getF64Type();
  auto convertStates = [&](StringRef to, StringRef from, Value z, Type type) {
    return f
        .mapAll(to, FamilyTerm{z, from}, type,
                [&](ImplicitLocOpBuilder &body, ValueRange v) {
                  return SmallVector<Value>{
                      convertFloat(body, body.getLoc(), v[0], type)};
                })
        .front();
  };
  SmallVector<Value> initial;
  if (sequences.isPacked())
    initial.push_back(
        f.filled(carriedDims, wide, -std::numeric_limits<double>::infinity()));
  else
    initial.push_back(convertStates(stateDims, stateDims, state, wide));
  initial.append({f.empty(dims, type), f.empty(dims, tokenType)});
  if (sequences.isPacked())
    initial.push_back(f.empty(dims, wide));
  auto loop = scf::ForOp::create(
      b, arith::ConstantIndexOp::create(b, 0),
      getValueOrCreateConstantIndexOp(b, b.getLoc(), tokens),
      arith::ConstantIndexOp::create(b, 1), initial,
      [&](OpBuilder &builder, Location loc, Value t, ValueRange carried) {
        ImplicitLocOpBuilder body(loc, builder);
        scf::YieldOp::create(body, step(body, t, carried));
      });
  RunningLogSum result{loop.getResult(2), loop.getResult(1), Value()};
  if (sequences.isPacked()) {
    Value sums = loop.getResult(3);
    LaggedTokens lagged(
        f, sequences, tensor::getMixedSizes(b, b.getLoc(), sums), wide, state);
    lagged.fill(sums);
    result.last = lagged.last();
    return result;
  }
  result.last = convertStates(stateDims, stateDims, loop.getResult(0), type);
  return result;
}

RunningLogSum mlir::linattn::emitRunningLogSum(FamilyBuilder &f,
                                               const SequenceEnds &sequences,
                                               FamilyTerm x, Value state) {
  return LogSumLoop(f, sequences, x, state).emit();
}
