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
#include "linattn/Transforms/Forms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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
  TaskBuilder(RewriterBase &b, const Recurrence &r, OutputNormOp norm,
              int64_t columns)
      : b(b), op(r.op), norm(norm), loc(r.op->getLoc()), r(r),
        columns(columns) {}

  Task emit();

private:
  OpFoldResult size(Value x, int64_t dim) {
    return tensor::getMixedSize(b, loc, x, dim);
  }
  int64_t stateSize(int64_t dim) {
    return cast<ShapedType>(r.state.state.getType()).getDimSize(dim);
  }
  void findTokens();
  std::pair<OpFoldResult, OpFoldResult> headsOf(Value x, int64_t dim);
  Part partOf(Value x, ArrayRef<int64_t> loops);
  Value slice(Value x, const Part &part) {
    return tensor::ExtractSliceOp::create(b, loc, x, part.offsets, part.sizes,
                                          part.strides);
  }
  bool isReturned(OpOperand &init);
  Value initOf(OpOperand &init, const Part &part, scf::ForallOp forall,
               SmallVectorImpl<Part> &inserted);
  void takeColumns(const OpOperand &operand, Part &part);
  Task emitTask(scf::ForallOp forall, SmallVectorImpl<Part> &inserted);
  OutputNormOp emitNorm(Value rows, Value output);
  void insert(scf::ForallOp forall, ValueRange values, ArrayRef<Part> parts);

  RewriterBase &b;
  Operation *op;
  OutputNormOp norm;
  Location loc;
  const Recurrence &r;
  /// Of the values in a task; 0: all.
  int64_t columns;
  // The current task.
  Value sequence, head, firstColumn;
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
  int64_t states = stateSize(1);
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

/// The operands of which every token, or state, has a row of values.
static SmallVector<const OpOperand *> findRowsOfValues(Operation *op) {
  SmallVector<const OpOperand *> found;
  auto add = [&](MutableOperandRange range) {
    for (OpOperand &operand : range)
      if (cast<ShapedType>(operand.get().getType()).getRank() == 4)
        found.push_back(&operand);
  };
  TypeSwitch<Operation *>(op)
      .Case([&](ScanOp scan) {
        found.append({&scan.getValueMutable(), &scan.getOutputMutable(),
                      &scan.getStateMutable()});
        add(scan.getValueDecayMutable());
        add(scan.getWriteMutable());
        add(scan.getBetaMutable());
      })
      .Case([&](StateOp state) {
        found.append({&state.getValueMutable(), &state.getStateMutable()});
      })
      .Case([&](ReadOp read) {
        found.append({&read.getStateMutable(), &read.getOutputMutable()});
      });
  return found;
}

/// The part of an operand in the columns of the task.
void TaskBuilder::takeColumns(const OpOperand &operand, Part &part) {
  if (!columns || !llvm::is_contained(findRowsOfValues(op), &operand))
    return;
  part.offsets.back() = firstColumn;
  part.sizes.back() = b.getIndexAttr(columns);
}

void TaskBuilder::insert(scf::ForallOp forall, ValueRange values,
                         ArrayRef<Part> parts) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [value, all, part] :
       llvm::zip_equal(values, forall.getRegionIterArgs(), parts))
    tensor::ParallelInsertSliceOp::create(b, loc, value, all, part.offsets,
                                          part.sizes, part.strides);
}

/// Whether the loop over tasks returns an updated operand: outputs, and a state
/// that is read afterwards.
bool TaskBuilder::isReturned(OpOperand &init) {
  auto structured = cast<DestinationStyleOpInterface>(op);
  return init.get() == r.output ||
         !structured.getTiedOpResult(&init).use_empty();
}

/// An output or a state of a task: its part of the loop's result, or memory of
/// its own if the last state is not read. States that start at zero do so in
/// each task, which may find that it need not read them.
Value TaskBuilder::initOf(OpOperand &init, const Part &part,
                          scf::ForallOp forall,
                          SmallVectorImpl<Part> &inserted) {
  Value x = init.get(), own;
  bool returned = isReturned(init);
  if (returned) {
    own = forall.getRegionIterArgs()[inserted.size()];
    inserted.push_back(part);
  }
  // The norm takes the place of the outputs in the loop's results.
  if (x == r.output)
    return slice(norm ? x : own, part);
  own = returned ? slice(own, part)
                 : tensor::EmptyOp::create(b, loc, part.sizes,
                                           getElementTypeOrSelf(x))
                       .getResult();
  if (isZeroFill(x))
    return linalg::FillOp::create(
               b, loc, x.getDefiningOp<linalg::FillOp>().value(), own)
        .getResult(0);
  if (returned)
    return own;
  return linalg::CopyOp::create(b, loc, slice(x, part), own).getResult(0);
}

/// The recurrence of a task, with its results in the parts of the loop's.
Task TaskBuilder::emitTask(scf::ForallOp forall,
                           SmallVectorImpl<Part> &inserted) {
  auto structured = cast<DestinationStyleOpInterface>(op);
  auto loops = getOperandLoops(op);
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (OpOperand &operand : op->getOpOperands()) {
    Value x = operand.get();
    if (!isa<ShapedType>(x.getType()) || x == r.offsets) {
      operands.push_back(x);
      continue;
    }
    Part part = partOf(x, loops[operand.getOperandNumber()]);
    takeColumns(operand, part);
    if (!structured.isDpsInit(&operand)) {
      operands.push_back(slice(x, part));
      continue;
    }
    operands.push_back(initOf(operand, part, forall, inserted));
    types.push_back(operands.back().getType());
  }
  Task task{cloneStructured(b, op, types, operands), {}};
  if (columns)
    task.op->setDiscardableAttr(kColumnsAttrName,
                                b.getI64IntegerAttr(stateSize(3)));
  if (r.offsets)
    TypeSwitch<Operation *>(task.op).Case<ScanOp, StateOp>(
        [](auto packed) { packed.getCuSeqlensMutable().clear(); });
  if (norm)
    task.norm =
        emitNorm(task.op->getResult(0),
                 slice(forall.getRegionIterArgs().front(), inserted.front()));
  return task;
}

OutputNormOp TaskBuilder::emitNorm(Value rows, Value output) {
  auto loops = getOperandLoops(norm);
  SmallVector<Value> operands;
  for (OpOperand &operand : norm->getOpOperands()) {
    Value x = operand.get();
    bool isOutput = norm.isDpsInit(&operand);
    operands.push_back(
        x == norm.getInput() ? rows
        : isOutput           ? output
                   : slice(x, partOf(x, loops[operand.getOperandNumber()])));
  }
  return cast<OutputNormOp>(
      cloneStructured(b, norm, output.getType(), operands));
}

Task TaskBuilder::emit() {
  b.setInsertionPoint(op);
  auto structured = cast<DestinationStyleOpInterface>(op);
  SmallVector<Value> inits;
  SmallVector<OpResult> returned;
  for (OpOperand &init : structured.getDpsInitsMutable()) {
    if (!isReturned(init))
      continue;
    returned.push_back(structured.getTiedOpResult(&init));
    inits.push_back(init.get());
    bool isOutput = init.get() == r.output;
    // Tasks write every token, and every state that starts at zero.
    if (isOutput || isZeroFill(init.get()))
      inits.back() = tensor::EmptyOp::create(
          b, loc, tensor::getMixedSizes(b, loc, init.get()),
          getElementTypeOrSelf(isOutput && norm ? norm.getOutput()
                                                : init.get()));
  }
  SmallVector<OpFoldResult> counts{size(r.state.state, 0),
                                   size(r.state.state, 1)};
  if (columns)
    counts.push_back(b.getIndexAttr(stateSize(3) / columns));
  auto forall = scf::ForallOp::create(b, loc, counts, inits,
                                      /*mapping=*/std::nullopt);
  b.setInsertionPointToStart(forall.getBody());
  sequence = forall.getInductionVar(0);
  head = forall.getInductionVar(1);
  if (columns)
    firstColumn = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(b, loc,
                                              b.getAffineDimExpr(0) * columns,
                                              {forall.getInductionVar(2)}));
  findTokens();

  SmallVector<Part> inserted;
  Task task = emitTask(forall, inserted);
  SmallVector<Value> values;
  for (OpResult result : returned)
    values.push_back(task.op->getResult(result.getResultNumber()));
  SmallVector<Value> results(structured.getDpsInits());
  for (auto [result, all] : llvm::zip_equal(returned, forall.getResults()))
    results[result.getResultNumber()] = all;
  if (norm) {
    values.front() = task.norm->getResult(0);
    b.replaceOp(norm, results.front());
    results.front() = r.output; // Nothing else reads them.
  }
  insert(forall, values, inserted);
  b.replaceOp(op, results);
  return task;
}

Task mlir::linattn::makeTasks(RewriterBase &rewriter,
                              const Recurrence &recurrence, OutputNormOp norm,
                              int64_t columns) {
  return TaskBuilder(rewriter, recurrence, norm, columns).emit();
}
