//===- ChunkFusion.cpp - Ops of chunks that become one --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkFusion.h"
#include "ChunkOps.h"

#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;

/// The users of a buffer after `op` in its block, except deallocations; none if
/// another block uses the buffer.
static std::optional<SmallVector<Operation *>> usersAfter(Value buffer,
                                                          Operation *op) {
  SmallVector<Operation *> users;
  for (Operation *user : buffer.getUsers()) {
    user = op->getBlock()->findAncestorOpInBlock(*user);
    if (!user)
      return std::nullopt;
    if (op->isBeforeInBlock(user) && !isa<memref::DeallocOp>(user) &&
        !llvm::is_contained(users, user))
      users.push_back(user);
  }
  return users;
}

linalg::FillOp mlir::linattn::findFill(ChunkReadOp read) {
  for (Operation *op = read->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(op);
        fill && fill.getOutputs()[0] == read.getOutput())
      return matchPattern(fill.getInputs()[0], m_AnyZeroFloat())
                 ? fill
                 : linalg::FillOp();
    if (llvm::is_contained(op->getOperands(), read.getOutput()) ||
        op->getNumRegions())
      return {};
  }
  return {};
}

/// The next op with effects other than those of memory of its own.
static Operation *nextOf(Operation *op) {
  Operation *next = op->getNextNode();
  while (next && (isa<memref::DeallocOp, memref::AllocOp>(next) ||
                  isMemoryEffectFree(next)))
    next = next->getNextNode();
  return next;
}

/// Whether `user` alone reads scratch memory that `op` writes.
static bool isOnlyUser(Operation *user, Value buffer, Operation *op) {
  auto users = usersAfter(buffer, op);
  return isScratch(buffer) && users && users->size() == 1 &&
         users->front() == user;
}

/// Whether an unpack alone reads what `writer` writes, or its first tokens or
/// columns.
static bool isOnlyReader(ChunkUnpackOp unpack, Value rows, Operation *writer) {
  Value read = unpack.getRows();
  if (read == rows)
    return isOnlyUser(unpack, rows, writer);
  return rowsOf(read) == rows && read.hasOneUse() &&
         isOnlyUser(read.getDefiningOp(), rows, writer);
}

ReadOutput mlir::linattn::findOutput(ChunkReadOp read) {
  ReadOutput output;
  Value rows = read.getOutput();
  Operation *writer = read, *next = nextOf(read);
  if (auto pack = dyn_cast_or_null<ChunkPackOp>(next);
      pack && pack.getInput() == rows && pack.getOutput() != rows &&
      !pack.getShift() && !pack.getGate() && !pack.getMask() &&
      !pack.getReverse() && !pack.getPadded() && isOnlyUser(pack, rows, read)) {
    output.scaled = pack;
    rows = pack.getOutput();
    writer = pack;
    next = nextOf(pack);
  }
  auto unpack = dyn_cast_or_null<ChunkUnpackOp>(next);
  if (!unpack || unpack.getNormalize() || unpack.getReverse() ||
      !isOnlyReader(unpack, rows, writer) || !isScratch(read.getRows()) ||
      !llvm::all_of(read.getScores(), isScratch) ||
      !llvm::all_of(read.getValues(), isScratch))
    return {};
  output.unpack = unpack;
  return output;
}

bool mlir::linattn::staysBetween(Value rows, Operation *from, Operation *to) {
  Value memory = memoryOf(rows);
  for (Operation *op = from->getNextNode(); op != to; op = op->getNextNode()) {
    if (!op)
      return false;
    if (isMemoryEffectFree(op) || isa<memref::AllocOp>(op))
      continue;
    SmallVector<Value> written;
    // Bodies of linalg ops have no effects.
    if (auto structured = dyn_cast<DestinationStyleOpInterface>(op))
      llvm::append_range(written, structured.getDpsInits());
    else if (auto free = dyn_cast<memref::DeallocOp>(op))
      written.push_back(free.getMemref());
    else
      return false;
    for (Value buffer : written)
      if (Value other = memoryOf(buffer); other == memory || !isScratch(other))
        return false;
  }
  return true;
}

ChunkReadOp mlir::linattn::findDecayedRead(ChunkDecayOp decay) {
  Value output = decay.getOutput();
  if (isPerChannel(decay.getDecay()) || !isScratch(output))
    return {};
  auto users = usersAfter(output, decay);
  if (!users || users->size() != 1)
    return {};
  auto read = dyn_cast<ChunkReadOp>(users->front());
  if (!read || read.getRows() != output ||
      llvm::count(read->getOperands(), output) != 1 ||
      !staysBetween(decay.getRows(), decay, read))
    return {};
  return read;
}
