//===- LowerShardToMPI.cpp - Messages between processes -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MPI/IR/MPI.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERSHARDTOMPIPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::shard;

namespace {

/// Emits the messages of one op.
class MessageBuilder {
public:
  MessageBuilder(Operation *op, GridOp grid, ArrayRef<GridAxis> axes)
      : b(op), loc(op->getLoc()), grid(grid), axes(axes) {
    world =
        mpi::CommWorldOp::create(b, loc, mpi::CommType::get(b.getContext()));
    // A pair of processes receives messages in the order of sending, so that
    // one tag is enough.
    tag = arith::ConstantIntOp::create(b, loc, 0, 32);
  }

  /// The rank of a process of this group, by its index along `axes`.
  Value rankOf(ArrayRef<OpFoldResult> place);
  void send(Value tensor, Value rank);
  Value receive(Value like, Value rank);

  OpBuilder b;
  Location loc;

private:
  Value flatten(Value buffer);
  /// The dynamic sizes of a tensor.
  SmallVector<Value> openSizes(Value tensor);

  GridOp grid;
  ArrayRef<GridAxis> axes;
  Value world, tag;
};

} // namespace

Value MessageBuilder::rankOf(ArrayRef<OpFoldResult> place) {
  SmallVector<Value> index(
      ProcessMultiIndexOp::create(b, loc, grid).getResults());
  for (auto [axis, at] : llvm::zip_equal(axes, place))
    index[axis] =
        isa<Value>(at)
            ? cast<Value>(at)
            : arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(at))
                  .getResult();
  Value rank = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [size, at] : llvm::zip_equal(grid.getShape(), index)) {
    Value extent = arith::ConstantIndexOp::create(b, loc, size);
    rank = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, rank, extent), at);
  }
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), rank);
}

SmallVector<Value> MessageBuilder::openSizes(Value tensor) {
  SmallVector<Value> sizes;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(b, loc, tensor, dim));
  return sizes;
}

static MemRefType getBufferType(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// LLVM 22 sends as many elements as the first dimension has.
Value MessageBuilder::flatten(Value buffer) {
  auto rank = cast<MemRefType>(buffer.getType()).getRank();
  if (rank == 1)
    return buffer;
  ReassociationIndices all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  return memref::CollapseShapeOp::create(b, loc, buffer,
                                         ArrayRef<ReassociationIndices>(all));
}

void MessageBuilder::send(Value tensor, Value rank) {
  Value buffer = bufferization::ToBufferOp::create(
      b, loc, getBufferType(tensor), tensor, /*read_only=*/true);
  mpi::SendOp::create(b, loc, TypeRange{}, flatten(buffer), tag, rank, world);
}

Value MessageBuilder::receive(Value like, Value rank) {
  Value buffer =
      memref::AllocOp::create(b, loc, getBufferType(like), openSizes(like));
  mpi::RecvOp::create(b, loc, TypeRange{}, flatten(buffer), tag, rank, world);
  return bufferization::ToTensorOp::create(b, loc, like.getType(), buffer,
                                           /*restrict=*/true,
                                           /*writable=*/true);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void lower(SendOp op, MessageBuilder &messages) {
  Value rank = messages.rankOf(getMixedValues(
      op.getDestination(), op.getDestinationDynamic(), messages.b));
  messages.send(op.getInput(), rank);
  op.getResult().replaceAllUsesWith(op.getInput());
}

static LogicalResult lower(RecvOp op, MessageBuilder &messages) {
  if (!op.getSource())
    return op.emitOpError("expected a source, but got none");
  Value rank = messages.rankOf(
      getMixedValues(*op.getSource(), op.getSourceDynamic(), messages.b));
  op.getResult().replaceAllUsesWith(messages.receive(op.getInput(), rank));
  return success();
}

/// The root sends to each of the others, in the order of their indices.
static LogicalResult lower(BroadcastOp op, GridOp grid,
                           MessageBuilder &messages) {
  if (op.getGridAxes().size() != 1)
    return op.emitOpError("expected one axis of the grid, but got ")
           << op.getGridAxes().size();
  OpBuilder &b = messages.b;
  Location loc = messages.loc;
  GridAxis axis = op.getGridAxes().front();
  int64_t count = grid.getShape()[axis];
  OpFoldResult root =
      getMixedValues(op.getRoot(), op.getRootDynamic(), b).front();
  Value rootIndex =
      isa<Value>(root)
          ? cast<Value>(root)
          : arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(root))
                .getResult();
  Value place = ProcessMultiIndexOp::create(b, loc, grid.getSymName(), {axis})
                    .getResult()
                    .front();
  Value isRoot =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, place, rootIndex);
  auto branch = scf::IfOp::create(b, loc, TypeRange{op.getType()}, isRoot,
                                  /*withElseRegion=*/true);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  for (int64_t other = 0; other < count; ++other) {
    if (getConstantIntValue(root) == other)
      continue;
    Value rank = messages.rankOf({b.getIndexAttr(other)});
    if (getConstantIntValue(root)) {
      messages.send(op.getInput(), rank);
      continue;
    }
    Value at = arith::ConstantIndexOp::create(b, loc, other);
    Value isOther =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, at, rootIndex);
    auto to = scf::IfOp::create(b, loc, isOther, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&to.getThenRegion().front());
    messages.send(op.getInput(), rank);
  }
  scf::YieldOp::create(b, loc, op.getInput());
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  Value received =
      messages.receive(op.getInput(), messages.rankOf({OpFoldResult(root)}));
  scf::YieldOp::create(b, loc, received);
  op.getResult().replaceAllUsesWith(branch.getResult(0));
  return success();
}

namespace {

struct LowerShardToMPIPass
    : public mlir::linattn::impl::LinAttnLowerShardToMPIPassBase<
          LowerShardToMPIPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<SendOp, RecvOp, BroadcastOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(lowerOp(op)))
        return signalPassFailure();
    numMessages += ops.size();
  }

private:
  LogicalResult lowerOp(Operation *op) {
    SymbolTableCollection symbols;
    auto name = op->getAttrOfType<FlatSymbolRefAttr>("grid");
    GridOp grid = getGridOrNull(op, name, symbols);
    if (!grid || ShapedType::isDynamicShape(grid.getShape()))
      return op->emitOpError("expected a grid of known sizes, but got ")
             << name;
    ArrayRef<GridAxis> axes =
        op->getAttrOfType<DenseI16ArrayAttr>("grid_axes").asArrayRef();
    MessageBuilder messages(op, grid, axes);
    LogicalResult result = success();
    if (auto send = dyn_cast<SendOp>(op))
      lower(send, messages);
    else if (auto receive = dyn_cast<RecvOp>(op))
      result = lower(receive, messages);
    else
      result = lower(cast<BroadcastOp>(op), grid, messages);
    if (succeeded(result))
      op->erase();
    return result;
  }
};

} // namespace
