//===- LoopGradients.cpp - Gradients of loops over tokens -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is run again with a record of what it carries, then walked from its
// last iteration to its first. Arrays that it only fills are not recorded, and
// the cotangent of an array that it only slices is added to slice by slice: an
// iteration costs what it touches.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "TensorBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class LoopGradient {
public:
  LoopGradient(scf::ForOp loop, OpBuilder &b, Cotangents &c)
      : loop(loop), b(b), c(c), loc(loop.getLoc()) {}

  LogicalResult build();

private:
  /// The results of one iteration of the backward loop.
  struct Iteration {
    SmallVector<Value> carried;  ///< Cotangents of the carried values.
    SmallVector<Value> captured; ///< Those of the captured ones so far.
  };

  void findOperands();
  void countIterations();
  Value createRecord(unsigned arg);
  void recordCarried();
  FailureOr<Iteration> walkBack(OpBuilder &body, Value position,
                                ValueRange carried, ValueRange captured);
  Value emptyLike(OpBuilder &at, Value like);
  Value takeRecord(OpBuilder &at, unsigned arg, Value position);
  Value putRecord(OpBuilder &at, Value value, Value record, Value position);
  Value variableAt(OpBuilder &at, Value position);
  Value addSlice(OpBuilder &at, Value sum, tensor::ExtractSliceOp slice,
                 Value cotangent);

  bool isScalar(Value value) const {
    return !isa<RankedTensorType>(value.getType());
  }

  scf::ForOp loop;
  OpBuilder &b;
  Cotangents &c;
  Location loc;
  Value count; ///< Iterations.
  SmallVector<unsigned> floats;
  SmallVector<Value> captured;
  SmallVector<bool> isFilled;         ///< Carried arrays that are only filled.
  DenseMap<unsigned, Value> recorded; ///< [iterations, …] of the others.
};

} // namespace

static bool isUnread(tensor::ExtractSliceOp slice) {
  return llvm::all_of(slice->getUses(), [](OpOperand &use) {
    auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
    return op && op.isDpsInit(&use) && !op.payloadUsesValueFromOperand(&use);
  });
}

/// Whether all that becomes of a carried array is that slices of it are
/// overwritten, here or in loops inside: no iteration depends on what is in it.
static bool isOnlyFilled(scf::ForOp loop, unsigned number) {
  auto isYielded = [&](Value value) {
    return llvm::all_of(value.getUses(), [&](OpOperand &use) {
      return use.getOwner() == loop.getBody()->getTerminator() &&
             use.getOperandNumber() == number;
    });
  };
  Value arg = loop.getRegionIterArgs()[number];
  return isa<RankedTensorType>(arg.getType()) &&
         llvm::all_of(arg.getUses(), [&](OpOperand &use) {
           Operation *user = use.getOwner();
           if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user))
             return isUnread(slice);
           if (auto insert = dyn_cast<tensor::InsertSliceOp>(user))
             return use.get() != insert.getSource() &&
                    isYielded(insert.getResult());
           auto inner = dyn_cast<scf::ForOp>(user);
           if (!inner || use.getOperandNumber() < inner.getNumControlOperands())
             return false;
           unsigned position =
               use.getOperandNumber() - inner.getNumControlOperands();
           return isOnlyFilled(inner, position) &&
                  isYielded(inner.getResult(position));
         });
}

void LoopGradient::findOperands() {
  for (auto [number, arg] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (isa<FloatType>(getElementTypeOrSelf(arg.getType())))
      floats.push_back(number);
    isFilled.push_back(isOnlyFilled(loop, number));
  }
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(loop.getRegion(), values);
  for (Value value : values)
    if (c.isActive(value))
      captured.push_back(value);
}

void LoopGradient::countIterations() {
  Value length =
      arith::SubIOp::create(b, loc, loop.getUpperBound(), loop.getLowerBound());
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(length.getType()));
  length = arith::MaxSIOp::create(b, loc, length, zero);
  count = arith::CeilDivSIOp::create(b, loc, length, loop.getStep());
  if (!count.getType().isIndex())
    count = arith::IndexCastOp::create(b, loc, b.getIndexType(), count);
}

Value LoopGradient::emptyLike(OpBuilder &at, Value like) {
  Value empty =
      tensor::EmptyOp::create(at, loc, tensor::getMixedSizes(at, loc, like),
                              getElementTypeOrSelf(like.getType()));
  if (empty.getType() == like.getType())
    return empty;
  return tensor::CastOp::create(at, loc, like.getType(), empty);
}

/// Memory for the carried value of every iteration.
Value LoopGradient::createRecord(unsigned arg) {
  Value init = loop.getInitArgs()[arg];
  SmallVector<OpFoldResult> sizes{count};
  if (!isScalar(init))
    llvm::append_range(sizes, tensor::getMixedSizes(b, loc, init));
  return tensor::EmptyOp::create(b, loc, sizes,
                                 getElementTypeOrSelf(init.getType()));
}

/// Offsets, sizes and strides of one entry of a record.
static void getEntry(OpBuilder &b, Location loc, Value entry, Value position,
                     SmallVectorImpl<OpFoldResult> &offsets,
                     SmallVectorImpl<OpFoldResult> &sizes,
                     SmallVectorImpl<OpFoldResult> &strides) {
  SmallVector<OpFoldResult> own = tensor::getMixedSizes(b, loc, entry);
  offsets.assign(own.size() + 1, b.getIndexAttr(0));
  strides.assign(own.size() + 1, b.getIndexAttr(1));
  sizes.assign(1, b.getIndexAttr(1));
  llvm::append_range(sizes, own);
  offsets[0] = position;
}

Value LoopGradient::takeRecord(OpBuilder &at, unsigned arg, Value position) {
  Value record = recorded.lookup(arg), init = loop.getInitArgs()[arg];
  if (isScalar(init))
    return tensor::ExtractOp::create(at, loc, record, position);
  SmallVector<OpFoldResult> offsets, sizes, strides;
  getEntry(at, loc, init, position, offsets, sizes, strides);
  return tensor::ExtractSliceOp::create(at, loc,
                                        cast<RankedTensorType>(init.getType()),
                                        record, offsets, sizes, strides);
}

Value LoopGradient::putRecord(OpBuilder &at, Value value, Value record,
                              Value position) {
  if (isScalar(value))
    return tensor::InsertOp::create(at, loc, value, record, position);
  SmallVector<OpFoldResult> offsets, sizes, strides;
  getEntry(at, loc, value, position, offsets, sizes, strides);
  return tensor::InsertSliceOp::create(at, loc, value, record, offsets, sizes,
                                       strides);
}

/// The loop's variable in iteration number `position`.
Value LoopGradient::variableAt(OpBuilder &at, Value position) {
  Type type = loop.getStep().getType();
  if (!type.isIndex())
    position = arith::IndexCastOp::create(at, loc, type, position);
  Value offset = arith::MulIOp::create(at, loc, position, loop.getStep());
  return arith::AddIOp::create(at, loc, loop.getLowerBound(), offset);
}

/// The loop again, for the carried values at the start of every iteration.
void LoopGradient::recordCarried() {
  SmallVector<unsigned> kept;
  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (!isFilled[i])
      kept.push_back(i);
  if (kept.empty())
    return;
  SmallVector<Value> inits;
  for (unsigned arg : kept)
    inits.push_back(loop.getInitArgs()[arg]);
  for (unsigned arg : kept)
    inits.push_back(createRecord(arg));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto again = scf::ForOp::create(b, loc, zero, count, one, inits);
  OpBuilder body = OpBuilder::atBlockBegin(again.getBody());
  Value position = again.getInductionVar();
  ValueRange args = again.getRegionIterArgs();
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variableAt(body, position));
  SmallVector<Value> records;
  for (auto [i, arg] : llvm::enumerate(kept)) {
    mapping.map(loop.getRegionIterArgs()[arg], args[i]);
    records.push_back(
        putRecord(body, args[i], args[kept.size() + i], position));
  }
  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (isFilled[i])
      mapping.map(loop.getRegionIterArgs()[i],
                  emptyLike(body, loop.getInitArgs()[i]));
  for (Operation &op : loop.getBody()->without_terminator())
    body.clone(op, mapping);
  SmallVector<Value> next;
  for (unsigned arg : kept)
    next.push_back(mapping.lookupOrDefault(
        loop.getBody()->getTerminator()->getOperand(arg)));
  next.append(records);
  scf::YieldOp::create(body, loc, next);
  for (auto [i, arg] : llvm::enumerate(kept))
    recorded[arg] = again.getResult(kept.size() + i);
}

/// `sum` with the cotangent of one of its slices.
Value LoopGradient::addSlice(OpBuilder &at, Value sum,
                             tensor::ExtractSliceOp slice, Value cotangent) {
  Value old = tensor::ExtractSliceOp::create(
      at, loc, slice.getType(), sum, slice.getMixedOffsets(),
      slice.getMixedSizes(), slice.getMixedStrides());
  Value added = arith::AddFOp::create(at, loc, old, cotangent);
  return tensor::InsertSliceOp::create(
      at, loc, added, sum, slice.getMixedOffsets(), slice.getMixedSizes(),
      slice.getMixedStrides());
}

/// Walks the iteration number `position` backwards.
FailureOr<LoopGradient::Iteration> LoopGradient::walkBack(OpBuilder &body,
                                                          Value position,
                                                          ValueRange carried,
                                                          ValueRange sums) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variableAt(body, position));
  Cotangents inner;
  for (auto [number, arg] : llvm::enumerate(loop.getRegionIterArgs()))
    mapping.map(arg, isFilled[number]
                         ? emptyLike(body, loop.getInitArgs()[number])
                         : takeRecord(body, number, position));
  for (unsigned number : floats)
    inner.activate(mapping.lookup(loop.getRegionIterArgs()[number]));
  for (Value value : captured)
    inner.activate(value);

  SmallVector<Operation *> ops;
  SmallVector<tensor::ExtractSliceOp> slices;
  for (Operation &op : loop.getBody()->without_terminator()) {
    Operation *clone = body.clone(op, mapping);
    auto slice = dyn_cast<tensor::ExtractSliceOp>(clone);
    if (slice && llvm::is_contained(captured, slice.getSource())) {
      inner.activate(slice.getResult());
      slices.push_back(slice);
    } else {
      ops.push_back(clone);
    }
  }
  inner.activateThrough(ops);
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [number, cotangent] : llvm::zip_equal(floats, carried))
    inner.add(body, mapping.lookupOrDefault(yield->getOperand(number)),
              cotangent);
  if (failed(differentiate(body, ops, inner)))
    return failure();

  Iteration result;
  for (unsigned number : floats) {
    Value arg = mapping.lookup(loop.getRegionIterArgs()[number]);
    Value cotangent = inner.get(arg);
    result.carried.push_back(cotangent ? cotangent : zerosLike(body, loc, arg));
  }
  for (auto [value, before] : llvm::zip_equal(captured, sums)) {
    Value sum = before;
    for (tensor::ExtractSliceOp slice : slices)
      if (Value cotangent = inner.get(slice.getResult());
          cotangent && slice.getSource() == value)
        sum = addSlice(body, sum, slice, cotangent);
    if (Value cotangent = inner.get(value))
      sum = arith::AddFOp::create(body, loc, sum, cotangent);
    result.captured.push_back(sum);
  }
  return result;
}

LogicalResult LoopGradient::build() {
  findOperands();
  if (floats.empty())
    return success();
  countIterations();
  recordCarried();
  SmallVector<Value> inits;
  for (unsigned number : floats) {
    Value cotangent = c.get(loop.getResult(number));
    inits.push_back(cotangent ? cotangent
                              : zerosLike(b, loc, loop.getInitArgs()[number]));
  }
  for (Value value : captured)
    inits.push_back(zerosLike(b, loc, value));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  // An error takes the function with it, however unfinished.
  auto backward = scf::ForOp::create(b, loc, zero, count, one, inits);
  OpBuilder body = OpBuilder::atBlockBegin(backward.getBody());
  Value last = arith::SubIOp::create(body, loc, count, one);
  Value position =
      arith::SubIOp::create(body, loc, last, backward.getInductionVar());
  ValueRange args = backward.getRegionIterArgs();
  FailureOr<Iteration> result =
      walkBack(body, position, args.take_front(floats.size()),
               args.drop_front(floats.size()));
  if (failed(result))
    return failure();
  SmallVector<Value> next(result->carried);
  next.append(result->captured);
  scf::YieldOp::create(body, loc, next);
  for (auto [i, number] : llvm::enumerate(floats))
    c.add(b, loop.getInitArgs()[number], backward.getResult(i));
  for (auto [i, value] : llvm::enumerate(captured))
    c.add(b, value, backward.getResult(floats.size() + i));
  return success();
}

static LogicalResult forRule(scf::ForOp op, OpBuilder &b, Cotangents &c) {
  return LoopGradient(op, b, c).build();
}

void mlir::linattn::registerLoopGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    attachGradient<scf::ForOp, forRule>(context);
    attachGradient<scf::IfOp, buildBranchGradient>(context);
  });
}
