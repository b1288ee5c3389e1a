//===- ShapeChecks.cpp - Checks of arguments' shapes ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops state how the dimensions of their operands relate. Relations that
// types leave open become arithmetic on `tensor.dim`s; folding removes those
// that follow from the program.
//
//===----------------------------------------------------------------------===//

#include "ShapeChecks.h"
#include "CheckEmitter.h"
#include "Relations.h"
#include "linattn/Entry/EntryLayout.h"

#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

bool CheckEmitter::isCheap(Value value) {
  if (!isAvailable(value) || isa<ShapedType>(value.getType()))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || isa<tensor::DimOp>(op))
    return true;
  if (auto it = cheap.find(value); it != cheap.end())
    return it->second;
  bool result;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    result = isa<BlockArgument>(extract.getTensor()) &&
             llvm::all_of(extract.getIndices(),
                          [&](Value index) { return isCheap(index); });
  else
    result = op->getNumRegions() == 0 && isPure(op) &&
             llvm::all_of(op->getOperands(),
                          [&](Value operand) { return isCheap(operand); });
  return cheap[value] = result;
}

FailureOr<Value> CheckEmitter::getSize(const DimRef &ref) {
  RankedTensorType type = getTensorType(ref.value);
  if (!type)
    return failure();
  if (!type.isDynamicDim(ref.dim))
    return constant(type.getDimSize(ref.dim));
  Value value = ref.value;
  // Arithmetic on tensors has the shape of its operands.
  while (!isAvailable(value) && value.getDefiningOp() &&
         OpTrait::hasElementwiseMappableTraits(value.getDefiningOp()))
    value = *llvm::find_if(value.getDefiningOp()->getOperands(), getTensorType);
  if (isAvailable(value))
    return tensor::DimOp::create(b, value, ref.dim).getResult();
  FailureOr<OpFoldResult> size = affine::reifyShapedValueDimBound(
      b, b.getLoc(), presburger::BoundType::EQ, value, ref.dim,
      [&](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
        return isAvailable(value);
      });
  if (failed(size))
    return failure();
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), *size);
}

FailureOr<Value> CheckEmitter::getGuard(Operation *op) {
  Value guard;
  auto require = [&](Value condition) {
    guard = guard ? arith::AndIOp::create(b, guard, condition) : condition;
  };
  for (; op->getBlock() != &entry; op = op->getParentOp()) {
    Operation *parent = op->getParentOp();
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      if (!isCheap(branch.getCondition()))
        return failure();
      bool isThen = op->getParentRegion() == &branch.getThenRegion();
      Value expected = arith::ConstantIntOp::create(b, isThen, 1);
      require(
          compare(arith::CmpIPredicate::eq, branch.getCondition(), expected));
      continue;
    }
    auto loop = dyn_cast<LoopLikeOpInterface>(parent);
    if (!loop || !isa<scf::ForOp, scf::ForallOp, scf::ParallelOp>(parent))
      return failure();
    for (auto [lower, upper] : llvm::zip_equal(*loop.getLoopLowerBounds(),
                                               *loop.getLoopUpperBounds())) {
      for (OpFoldResult bound : {lower, upper})
        if (auto value = dyn_cast<Value>(bound); value && !isCheap(value))
          return failure();
      Value first = getValueOrCreateConstantIndexOp(b, b.getLoc(), lower);
      Value last = getValueOrCreateConstantIndexOp(b, b.getLoc(), upper);
      // Mixed types occur where a loop over integers has constant bounds.
      if (first.getType() != last.getType())
        return failure();
      require(compare(arith::CmpIPredicate::slt, first, last));
    }
  }
  return guard;
}

Value CheckEmitter::emitHolds(const DimRelation &relation, ValueRange sizes) {
  using arith::CmpIPredicate;
  switch (relation.kind) {
  case DimRelationKind::Equal:
    return compare(CmpIPredicate::eq, sizes[0], sizes[1]);
  case DimRelationKind::Divides: {
    Value zero = constant(0);
    Value small = arith::MinSIOp::create(b, sizes[0], sizes[1]);
    Value large = arith::MaxSIOp::create(b, sizes[0], sizes[1]);
    Value divisor = arith::MaxSIOp::create(b, small, constant(1));
    Value rest = arith::RemSIOp::create(b, large, divisor);
    Value divides = compare(CmpIPredicate::eq, rest, zero);
    // Only zero is a multiple of zero.
    Value bothZero = compare(CmpIPredicate::eq, large, zero);
    Value isZero = compare(CmpIPredicate::eq, small, zero);
    Value holds = arith::SelectOp::create(b, isZero, bothZero, divides);
    // The other checks imply this one, but it folds.
    Value same = compare(CmpIPredicate::eq, sizes[0], sizes[1]);
    return arith::OrIOp::create(b, same, holds);
  }
  case DimRelationKind::Max: {
    Value most = sizes[1];
    for (Value size : sizes.drop_front(2))
      most = arith::MaxSIOp::create(b, most, size);
    return compare(CmpIPredicate::eq, sizes[0], most);
  }
  case DimRelationKind::OneLess: {
    Value next = arith::AddIOp::create(b, sizes[0], constant(1));
    return compare(CmpIPredicate::eq, next, sizes[1]);
  }
  case DimRelationKind::Quotient: {
    Value quotient =
        arith::DivSIOp::create(b, sizes[1], constant(relation.divisor));
    return compare(CmpIPredicate::eq, sizes[0], quotient);
  }
  case DimRelationKind::Features: {
    // Compares twice the sizes, since the formula has halves.
    const auto &formula = relation.formula;
    auto times = [&](Value x, Value y) -> Value {
      return arith::MulIOp::create(b, x, y);
    };
    auto plus = [&](Value x, Value y) -> Value {
      return arith::AddIOp::create(b, x, y);
    };
    Value n = sizes[1];
    Value sum =
        plus(times(constant(formula.quadratic), n), constant(formula.linear));
    sum = plus(times(sum, n), constant(formula.constant));
    return compare(CmpIPredicate::eq, times(constant(2), sizes[0]), sum);
  }
  }
  llvm_unreachable("unknown relation");
}

void CheckEmitter::addCheck(Value holds, ArrayRef<Value> sizes,
                            std::string message, Value guard) {
  assert(sizes.size() <= kMaxCheckedSizes && "no room for so many sizes");
  if (guard) {
    Value truth = arith::ConstantIntOp::create(b, true, 1);
    holds = arith::SelectOp::create(b, guard, holds, truth);
  }
  checks.push_back({holds, SmallVector<Value, 4>(sizes), std::move(message)});
}

void CheckEmitter::checkRelations(Operation *op) {
  RelationList list;
  addRelations(op, list);
  if (list.relations.empty())
    return;
  FailureOr<Value> guard = getGuard(op);
  if (failed(guard))
    return remarkSkipped(op, "whether it runs is known only at run time");
  bool isOurs = isa<LinAttnDialect>(op->getDialect());
  bool complete = true;
  for (const DimRelation &relation : list.relations) {
    SmallVector<Value, 4> sizes;
    SmallVector<std::string> spelled;
    for (const DimRef &ref : relation.dims) {
      FailureOr<Value> size = getSize(ref);
      if (failed(size))
        break;
      spelled.push_back("{" + std::to_string(sizes.size()) + "}");
      sizes.push_back(*size);
    }
    if (sizes.size() != relation.dims.size()) {
      complete = false;
      continue;
    }
    // Operands of the dialect have names.
    std::string prefix =
        isOurs ? "" : op->getName().getStringRef().str() + ": ";
    addCheck(emitHolds(relation, sizes), sizes,
             prefix + relation.message(spelled), *guard);
  }
  if (!complete)
    remarkSkipped(op, "a size is computed inside a loop or branch");
}

/// Checks that offsets of packed sequences start at 0, never decrease and end
/// at T.
void CheckEmitter::checkOffsets(Operation *op, Value offsets,
                                DimRef tokensDim) {
  if (!offsets || !looksAtIndices)
    return;
  if (op->getBlock() != &entry || !isa<BlockArgument>(offsets))
    return remarkSkipped(op, "cu_seqlens are not an argument of the function");
  using arith::CmpIPredicate;
  Value zero = constant(0), one = constant(1);
  Value count = tensor::DimOp::create(b, offsets, 0);
  auto load = [&](OpBuilder &nested, Location loc, Value index) -> Value {
    Value element = tensor::ExtractOp::create(nested, loc, offsets, index);
    return arith::IndexCastOp::create(nested, loc, nested.getIndexType(),
                                      element);
  };
  // The first decrease: position (0 if there is none), value and value before;
  // also the last offset, 0 if there are none.
  auto loop = scf::ForOp::create(
      b, zero, count, one, ValueRange{zero, zero, zero, zero, zero},
      [&](OpBuilder &nested, Location loc, Value index, ValueRange carried) {
        ImplicitLocOpBuilder body(loc, nested);
        Value former = carried[3];
        Value now = load(nested, loc, index);
        Value isFirst =
            arith::CmpIOp::create(body, CmpIPredicate::eq, index, zero);
        Value none =
            arith::CmpIOp::create(body, CmpIPredicate::eq, carried[0], zero);
        Value less =
            arith::CmpIOp::create(body, CmpIPredicate::slt, now, former);
        Value isNew = arith::SelectOp::create(
            body, isFirst, arith::ConstantIntOp::create(body, false, 1),
            arith::AndIOp::create(body, none, less));
        auto pick = [&](Value fresh, Value old) -> Value {
          return arith::SelectOp::create(body, isNew, fresh, old);
        };
        Value start = arith::SelectOp::create(body, isFirst, now, carried[4]);
        scf::YieldOp::create(
            body, ValueRange{pick(index, carried[0]), pick(now, carried[1]),
                             pick(former, carried[2]), now, start});
      });
  Value where = loop.getResult(0), last = loop.getResult(3),
        start = loop.getResult(4);
  Value tokens = *getSize(tokensDim);
  addCheck(compare(CmpIPredicate::eq, start, zero), {start},
           "expected cu_seqlens to start at 0, but got {0}");
  addCheck(compare(CmpIPredicate::eq, where, zero),
           {where, loop.getResult(1), loop.getResult(2)},
           "expected cu_seqlens not to decrease, but offset {0} is {1} after "
           "{2}");
  addCheck(compare(CmpIPredicate::eq, last, tokens), {tokens, last},
           "expected cu_seqlens to end at the sequence length {0}, but got "
           "{1}");
}

/// Checks that indices into a pool of states are −1 or distinct rows of it.
void CheckEmitter::checkIndices(ScanOp op) {
  Value indices = op.getStateIndices();
  if (!indices || !looksAtIndices)
    return;
  FailureOr<Value> rows = getSize({op.getState(), 0, "state"});
  if (op->getBlock() != &entry || !isa<BlockArgument>(indices) || failed(rows))
    return remarkSkipped(op, "state_indices are not an argument of the "
                             "function");
  using arith::CmpIPredicate;
  Value zero = constant(0), one = constant(1), none = constant(-1);
  auto load = [&](ImplicitLocOpBuilder &nested, Value position) -> Value {
    Value element = tensor::ExtractOp::create(nested, indices, position);
    return arith::IndexCastOp::create(nested, nested.getIndexType(), element);
  };
  // The last index out of range and its position; the last repeated row and its
  // position.
  auto loop = scf::ForOp::create(
      b, zero, tensor::DimOp::create(b, indices, 0), one,
      ValueRange{none, none, none, none, none},
      [&](OpBuilder &nested, Location loc, Value i, ValueRange carried) {
        ImplicitLocOpBuilder body(loc, nested);
        Value row = load(body, i);
        auto former = scf::ForOp::create(
            body, zero, i, one, none,
            [&](OpBuilder &inner, Location innerLoc, Value j, ValueRange last) {
              ImplicitLocOpBuilder search(innerLoc, inner);
              Value same = arith::CmpIOp::create(search, CmpIPredicate::eq,
                                                 load(search, j), row);
              Value found =
                  arith::SelectOp::create(search, same, j, last.front());
              scf::YieldOp::create(search, found);
            });
        auto compare = [&](CmpIPredicate predicate, Value x, Value y) -> Value {
          return arith::CmpIOp::create(body, predicate, x, y);
        };
        Value outside =
            arith::OrIOp::create(body, compare(CmpIPredicate::slt, row, none),
                                 compare(CmpIPredicate::sge, row, *rows));
        Value twice = arith::AndIOp::create(
            body, compare(CmpIPredicate::sge, row, zero),
            compare(CmpIPredicate::sge, former.getResult(0), zero));
        auto pick = [&](Value condition, Value fresh, Value old) -> Value {
          return arith::SelectOp::create(body, condition, fresh, old);
        };
        scf::YieldOp::create(
            body,
            ValueRange{pick(outside, i, carried[0]),
                       pick(outside, row, carried[1]),
                       pick(twice, i, carried[2]), pick(twice, row, carried[3]),
                       pick(twice, former.getResult(0), carried[4])});
      });
  addCheck(compare(CmpIPredicate::slt, loop.getResult(0), zero),
           {loop.getResult(1), loop.getResult(0), *rows},
           "expected state_indices to be -1 or a row of the state, which has "
           "{2}, but got {0} at {1}");
  addCheck(
      compare(CmpIPredicate::slt, loop.getResult(2), zero),
      {loop.getResult(3), loop.getResult(4), loop.getResult(2)},
      "expected a row of the state no more than once in state_indices, but got "
      "{0} at {1} and {2}");
}

void CheckEmitter::visit(Operation *op) {
  b.setLoc(op->getLoc());
  checkRelations(op);
  if (auto scan = dyn_cast<ScanOp>(op)) {
    checkOffsets(scan, scan.getCuSeqlens(), {scan.getKey(), 2, "key"});
    checkIndices(scan);
  } else if (auto state = dyn_cast<StateOp>(op))
    checkOffsets(state, state.getCuSeqlens(), {state.getKey(), 2, "key"});
  else if (auto split = dyn_cast<tensor::ExpandShapeOp>(op))
    checkSplits(split);
  else if (auto recurrence = dyn_cast<RecurrenceOpInterface>(op))
    checkOffsets(op, recurrence.getSequenceOffsets(),
                 {op->getOperand(0), recurrence.getTokenLoop(), "input"});
  else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    checkSlice(slice, slice.getSourceType(), slice.getSource());
  else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    checkSlice(slice, slice.getDestType(), slice.getDest());
    checkInserted(slice);
  } else if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    checkElements(reshape);
}

SmallVector<ShapeCheck> mlir::linattn::emitShapeChecks(func::FuncOp func,
                                                       bool looksAtIndices) {
  // Checks are ops, too: the existing ops are listed before any are added.
  SmallVector<Operation *> ops;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == func)
      return WalkResult::advance();
    ops.push_back(op);
    // The bodies of structured ops work on scalars.
    return isa<linalg::LinalgOp, ShapeContractOpInterface>(op)
               ? WalkResult::skip()
               : WalkResult::advance();
  });
  CheckEmitter emitter(func, looksAtIndices);
  for (Operation *op : ops)
    emitter.visit(op);
  return std::move(emitter.checks);
}
