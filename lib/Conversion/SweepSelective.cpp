//===- SweepSelective.cpp - linattn.sweep_selective as loops --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors run over channels. A task is one sequence and `strips` times `width`
// channels of one group; it walks the tokens twice:
//
//   forward   the states at the start of every block of tokens, which are kept
//   backward  block by block from the last one on, for each few states: the
//             block's states and factors again, forward, into scratch memory;
//             then their cotangents, backward, in registers
//
// Gradients of b and c are sums over channels: over a task's strips in vectors,
// over their lanes at the end of a block, over tasks when all are done, in this
// order for any number of threads. So are those of a over sequences.
//
//===----------------------------------------------------------------------===//

#include "SweepSelective.h"

using namespace mlir;
using namespace mlir::linattn;

void SweepSelective::allocateSums() {
  Value tasks = mul(groups, blocks);
  auto allocate = [&](ArrayRef<Value> sizes) -> Value {
    auto memref = MemRefType::get(
        SmallVector<int64_t>(sizes.size(), ShapedType::kDynamic), type);
    return memref::AllocOp::create(b, loc, memref, sizes,
                                   b.getI64IntegerAttr(64));
  };
  SmallVector<Value> sizes{tasks, dim(op.getInput(), 0), dim(op.getInput(), 1),
                           padded};
  bSums = allocate(sizes);
  cSums = allocate(sizes);
  aSums = allocate({dim(op.getState(), 0), dim(op.getInput(), 2), states});
}

void SweepSelective::emit() {
  Value perSlot = mul(groups, blocks);
  parallel(mul(dim(op.getState(), 0), perSlot), [&](Value task) {
    emitSweepTask(*this, div(task, perSlot), rem(task, perSlot));
  });
  addProjections();
  addDecays();
  for (Value sums : {bSums, cSums, aSums})
    memref::DeallocOp::create(b, loc, sums);
}

Value SweepSelective::sumTasks(Value count, Value sums, ValueRange first) {
  return reduce(count, constant(type, 0.0),
                [&](Value task, Value partial) -> Value {
                  SmallVector<Value> at(first);
                  at.front() = add(at.front(), task);
                  return addf(partial, load(sums, at));
                });
}

void SweepSelective::addProjections() {
  Value length = dim(op.getInput(), 1), perBatch = ceilDiv(length, blockTokens);
  parallel(mul(dim(op.getInput(), 0), perBatch), [&](Value task) {
    Value batch = div(task, perBatch);
    Value first = mul(rem(task, perBatch), index(blockTokens));
    Value last = min(add(first, index(blockTokens)), length);
    forEach(groups, [&](Value group) {
      forEach(first, last, 1, [&](Value token) {
        for (auto [sums, output] : {std::pair(bSums, op.getBOutput()),
                                    std::pair(cSums, op.getCOutput())}) {
          SmallVector<Value> at = projectionRow(output, batch, group, token);
          at.push_back(Value());
          forEach(states, [&, sums = sums, output = output](Value n) {
            at.back() = n;
            store(sumTasks(blocks, sums, {mul(group, blocks), batch, token, n}),
                  output, at);
          });
        }
      });
    });
  });
}

void SweepSelective::addDecays() {
  Value sequences = dim(op.getState(), 0);
  forEach(dim(op.getInput(), 2), [&](Value c) {
    forEach(states, [&](Value n) {
      store(sumTasks(sequences, aSums, {index(0), c, n}), op.getAOutput(),
            {c, n});
    });
  });
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, SweepSelectiveOp op,
                                    int64_t width) {
  LoopBuilder loops(b, op.getLoc());
  bool isGrouped = cast<MemRefType>(op.getB().getType()).getRank() == 4;
  Value groups = isGrouped ? loops.dim(op.getB(), 1) : loops.index(1);
  SweepSelective(b, op, width, groups).emit();
}
