//===- TensorMapOps.cpp - Bulk copies as calls of the emulator ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostRewriter.h"
#include "linattn/PTX/TensorMap.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;
using ::linattn::TensorMapReplace;

FailureOr<bool> mlir::linattn::rewriteTensorMap(HostRewriter &b, Operation *op,
                                                StringRef assembly,
                                                ValueRange operands) {
  Location loc = op->getLoc();
  if (assembly == ::linattn::getTensorMapPublish() && operands.size() == 2) {
    b.call(op, "linattn_emu_map_publish",
           {operands[0], operands[1], b.createSite(op)});
    op->erase();
    return true;
  }
  std::optional<TensorMapReplace> replace = TensorMapReplace::parse(assembly);
  if (!replace || operands.size() != (replace->hasConstant() ? 1 : 2) ||
      !operands[0].getType().isInteger(32))
    return false;
  Value value = replace->hasConstant() ? b.createI32(loc, replace->constant)
                                       : operands[1];
  if (value.getType().isInteger(32))
    value = LLVM::ZExtOp::create(b, loc, b.getI64Type(), value);
  b.call(op, "linattn_emu_map_replace",
         {operands[0], b.createI32(loc, static_cast<unsigned>(replace->field)),
          b.createI32(loc, replace->dim), value, b.createSite(op)});
  op->erase();
  return true;
}

static LogicalResult
rewriteCopy(HostRewriter &b,
            NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
  if (!op.getIm2colOffsets().empty() || op.getMulticastMask() ||
      op.getPredicate() || op.getGroup() ||
      op.getMode() != NVVM::TMALoadMode::TILE)
    return op->emitError(
        "the emulator cannot execute copies of this kind: expected tiles, for "
        "one block, without a predicate");
  b.storeWords(op, op.getCoordinates());
  b.call(
      op, "linattn_emu_copy_box",
      {op.getDstMem(), op.getTmaDescriptor(), op.getMbar(), b.getFragment(op),
       b.createI32(op.getLoc(), op.getCoordinates().size()), b.createSite(op)});
  op.erase();
  return success();
}

static LogicalResult rewriteArrival(HostRewriter &b, Operation *op,
                                    Value address, Value count, Value bytes) {
  if (op->getNumResults() && !op->use_empty())
    return op->emitError("the emulator cannot execute an arrival whose state "
                         "is used");
  Location loc = op->getLoc();
  b.call(op, "linattn_emu_mbarrier_arrive",
         {address, count ? count : b.createI32(loc, 1),
          bytes ? bytes : b.createI32(loc, 0), b.createSite(op)});
  op->erase();
  return success();
}

FailureOr<bool> mlir::linattn::rewriteBulkOp(HostRewriter &b, Operation *op) {
  auto done = [](LogicalResult result) -> FailureOr<bool> {
    if (failed(result))
      return failure();
    return true;
  };
  auto call = [&](StringRef symbol, ValueRange operands) -> FailureOr<bool> {
    b.call(op, symbol, operands);
    op->erase();
    return true;
  };
  return llvm::TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
        return done(rewriteCopy(b, op));
      })
      .Case([&](NVVM::MBarrierInitOp op) -> FailureOr<bool> {
        if (op.getPredicate())
          return op.emitError("the emulator cannot execute a predicate");
        return call("linattn_emu_mbarrier_init",
                    {op.getAddr(), op.getCount(), b.createSite(op)});
      })
      .Case([&](NVVM::MBarrierArriveExpectTxOp op) -> FailureOr<bool> {
        if (op.getPredicate())
          return op.emitError("the emulator cannot execute a predicate");
        return done(
            rewriteArrival(b, op, op.getAddr(), Value(), op.getTxcount()));
      })
      .Case([&](NVVM::MBarrierArriveOp op) {
        return done(
            rewriteArrival(b, op, op.getAddr(), op.getCount(), Value()));
      })
      .Case([&](NVVM::MBarrierTryWaitParityOp op) {
        return call("linattn_emu_mbarrier_wait",
                    {op.getAddr(), op.getPhase(), b.createSite(op)});
      })
      .Case([&](NVVM::FenceProxyAcquireOp op) {
        return call("linattn_emu_map_acquire", op.getAddr());
      })
      // Groups belong to copies out of shared memory, which do not occur.
      .Case<NVVM::CpAsyncBulkCommitGroupOp, NVVM::CpAsyncBulkWaitGroupOp>(
          [](Operation *op) -> FailureOr<bool> {
            op->erase();
            return true;
          })
      .Default([](Operation *) -> FailureOr<bool> { return false; });
}
