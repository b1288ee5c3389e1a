//===- ChunkTasks.cpp - Tasks of one head and sequence --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tiling interface refuses grouped heads and packed sequences: a tile of
// its loops is not one of their operands. A task here is a sequence and a head
// of the state, and each operand has its part in it.
//
//===----------------------------------------------------------------------===//

#include "ChunkTasks.h"

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/OperandLoops.h"
#include "linattn/Transforms/Recurrence.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The offsets and sizes of an operand in a task.
struct Part {
  SmallVector<OpFoldResult> offsets, sizes, strides;
};

class TaskBuilder {
public:
  TaskBuilder(RewriterBase &b, Operation *op, const Recurrence &r)
      : b(b), op(op), loc(op->getLoc()), r(r) {}

  Operation *emit();

private:
  OpFoldResult size(Value x, int64_t dim) {
    return tensor::getMixedSize(b, loc, x, dim);
  }
  void findTokens();
  std::pair<OpFoldResult, OpFoldResult> headsOf(Value x, int64_t dim);
  Part partOf(Value x, ArrayRef<int64_t> loops);
  void insert(scf::ForallOp forall, Operation *task, ArrayRef<Part> parts);

  RewriterBase &b;
  Operation *op;
  Location loc;
  const Recurrence &r;
  // The current task.
  Value sequence, head;
  /// Of a packed sequence; null otherwise.
  OpFoldResult firstToken, tokens;
};

} // namespace

void TaskBuilder::findTokens() {
  if (!r.offsets)
    return;
  auto offset = [&](Value position) -> Value {
    Value number =
        tensor::ExtractOp::create(b, loc, r.offsets, ValueRange{position});
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  };
  Value begin = offset(sequence);
  Value end = offset(arith::AddIOp::create(
      b, loc, sequence, arith::ConstantIndexOp::create(b, loc, 1)));
  firstToken = begin;
  tokens = arith::SubIOp::create(b, loc, end, begin).getResult();
}

/// The head that a head of the state has of an operand, or those of a group.
std::pair<OpFoldResult, OpFoldResult> TaskBuilder::headsOf(Value x,
                                                           int64_t dim) {
  int64_t heads = cast<ShapedType>(x.getType()).getDimSize(dim);
  int64_t states = cast<ShapedType>(r.state.state.getType()).getDimSize(1);
  AffineExpr own = b.getAffineDimExpr(0);
  AffineExpr first =
      heads > states ? own * (heads / states) : own.floorDiv(states / heads);
  return {affine::makeComposedFoldedAffineApply(b, loc, first, {head}),
          b.getIndexAttr(std::max<int64_t>(heads / states, 1))};
}

Part TaskBuilder::partOf(Value x, ArrayRef<int64_t> loops) {
  Part part;
  part.sizes = tensor::getMixedSizes(b, loc, x);
  part.offsets.assign(part.sizes.size(), b.getIndexAttr(0));
  part.strides.assign(part.sizes.size(), b.getIndexAttr(1));
  bool isState = x == r.state.state || x == r.state.normalizer;
  for (auto [dim, loop] : llvm::enumerate(loops)) {
    OpFoldResult &offset = part.offsets[dim], &size = part.sizes[dim];
    // All tokens of packed sequences are one batch element's.
    if ((loop == 0 && !r.offsets) || (isState && dim == 0)) {
      offset = sequence;
      size = b.getIndexAttr(1);
    }
    if (loop == 1)
      std::tie(offset, size) = headsOf(x, dim);
    if (loop == 2 && r.offsets) {
      offset = firstToken;
      size = tokens;
    }
  }
  return part;
}

void TaskBuilder::insert(scf::ForallOp forall, Operation *task,
                         ArrayRef<Part> parts) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [i, part] : llvm::enumerate(parts))
    tensor::ParallelInsertSliceOp::create(
        b, loc, task->getResult(i), forall.getRegionIterArgs()[i], part.offsets,
        part.sizes, part.strides);
}

Operation *TaskBuilder::emit() {
  b.setInsertionPoint(op);
  auto structured = cast<DestinationStyleOpInterface>(op);
  SmallVector<Value> inits(structured.getDpsInits());
  // Every token is written, which the loop over chunks does not show.
  if (r.output)
    inits.front() =
        tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, r.output),
                                getElementTypeOrSelf(r.output));
  auto forall = scf::ForallOp::create(
      b, loc, {size(r.state.state, 0), size(r.state.state, 1)}, inits,
      /*mapping=*/std::nullopt);
  b.setInsertionPointToStart(forall.getBody());
  sequence = forall.getInductionVar(0);
  head = forall.getInductionVar(1);
  findTokens();

  auto loops = getOperandLoops(op);
  SmallVector<Value> operands;
  SmallVector<Part> inserted;
  SmallVector<Type> types;
  for (OpOperand &operand : op->getOpOperands()) {
    Value x = operand.get();
    if (!isa<ShapedType>(x.getType()) || x == r.offsets) {
      operands.push_back(x);
      continue;
    }
    Part part = partOf(x, loops[operand.getOperandNumber()]);
    if (structured.isDpsInit(&operand)) {
      x = forall.getRegionIterArgs()[inserted.size()];
      inserted.push_back(part);
    }
    operands.push_back(tensor::ExtractSliceOp::create(
        b, loc, x, part.offsets, part.sizes, part.strides));
    if (structured.isDpsInit(&operand))
      types.push_back(operands.back().getType());
  }
  Operation *task = cloneStructured(b, op, types, operands);
  if (r.offsets)
    TypeSwitch<Operation *>(task).Case<ScanOp, StateOp>(
        [](auto packed) { packed.getCuSeqlensMutable().clear(); });
  insert(forall, task, inserted);
  b.replaceOp(op, forall.getResults());
  return task;
}

Operation *mlir::linattn::makeTasks(RewriterBase &rewriter, Operation *op) {
  return TypeSwitch<Operation *, Operation *>(op).Case<ScanOp, StateOp, ReadOp>(
      [&](auto recurrence) {
        Recurrence r(recurrence);
        return TaskBuilder(rewriter, op, r).emit();
      });
}
