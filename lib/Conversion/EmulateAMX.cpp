//===- EmulateAMX.cpp - Tiles of AMX as vectors ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMXTiles.h"
#include "VectorBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEMULATEAMXPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {

/// Emits one op on tiles that are buffers of two dimensions.
class TileEmulator : public VectorBuilder {
public:
  TileEmulator(OpBuilder &b, Location loc, bool keepSubnormals)
      : VectorBuilder(b, loc, b.getF32Type()), keepSubnormals(keepSubnormals) {}

  void clear(Value tile);
  void copy(Value from, Value to);
  void load(amx::TileLoadOp op, Value tile);
  void store(amx::TileStoreOp op, Value tile);
  /// sums += left · right
  void multiply(Value left, Value right, Value sums);

private:
  void forEachRow(Value tile, function_ref<void(Value row, VectorType)> body);
  Value flush(Value x);

  bool keepSubnormals;
};

} // namespace

void TileEmulator::forEachRow(Value tile,
                              function_ref<void(Value, VectorType)> body) {
  auto type = cast<MemRefType>(tile.getType());
  auto line = VectorType::get(type.getDimSize(1), type.getElementType());
  forEach(dim(tile, 0), [&](Value row) { body(row, line); });
}

void TileEmulator::clear(Value tile) {
  forEachRow(tile, [&](Value row, VectorType line) {
    storeVector(constant(line, 0.0), tile, {row, index(0)});
  });
}

void TileEmulator::copy(Value from, Value to) {
  forEachRow(to, [&](Value row, VectorType line) {
    Value x =
        vector::LoadOp::create(b, loc, line, from, ValueRange{row, index(0)});
    storeVector(x, to, {row, index(0)});
  });
}

void TileEmulator::load(amx::TileLoadOp op, Value tile) {
  forEachRow(tile, [&](Value row, VectorType line) {
    Value x = vector::LoadOp::create(
        b, loc, line, op.getBase(),
        placeInTile(*this, op.getIndices(), op.getStride(), row));
    storeVector(x, tile, {row, index(0)});
  });
}

void TileEmulator::store(amx::TileStoreOp op, Value tile) {
  forEachRow(tile, [&](Value row, VectorType line) {
    Value x =
        vector::LoadOp::create(b, loc, line, tile, ValueRange{row, index(0)});
    storeVector(x, op.getBase(),
                placeInTile(*this, op.getIndices(), op.getStride(), row));
  });
}

/// Subnormal numbers are zeros of their sign, in any mode of the thread.
Value TileEmulator::flush(Value x) {
  if (keepSubnormals)
    return x;
  Value least = constant(x.getType(), std::numeric_limits<float>::min());
  Value zero = math::CopySignOp::create(b, loc, constant(x.getType(), 0.0), x);
  Value isTiny =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                            math::AbsFOp::create(b, loc, x).getResult(), least);
  return select(isTiny, zero, x);
}

void TileEmulator::multiply(Value left, Value right, Value sums) {
  auto rightType = cast<MemRefType>(right.getType());
  int64_t columns = rightType.getDimSize(1) / 2;
  auto line = VectorType::get(2 * columns, rightType.getElementType());
  auto number = [&](Value row, Value k) {
    Value x = memref::LoadOp::create(b, loc, left, ValueRange{row, k});
    return flush(splat(convert(x, type), columns));
  };
  forEachRow(sums, [&](Value row, VectorType) {
    SmallVector<Value> chains =
        reduce(index(0), dim(right, 0), 1, {zeros(columns), zeros(columns)},
               [&](Value pair, ValueRange carried) -> SmallVector<Value> {
                 Value pairs = vector::LoadOp::create(
                     b, loc, line, right, ValueRange{pair, index(0)});
                 auto halves = vector::DeinterleaveOp::create(b, loc, pairs);
                 Value even = mul(pair, index(2)), odd = add(even, index(1));
                 auto next = [&](Value k, Value factors, Value chain) {
                   return flush(fmaVector(
                       number(row, k), flush(convert(factors, type)), chain));
                 };
                 return {next(even, halves.getRes1(), carried[0]),
                         next(odd, halves.getRes2(), carried[1])};
               });
    Value past = flush(loadVector(sums, {row, index(0)}, columns));
    Value both = flush(addf(chains[0], chains[1]));
    storeVector(flush(addf(past, both)), sums, {row, index(0)});
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {

/// Gives the tiles of a function or a task buffers for their live ranges, as
/// registers would have.
class Emulation {
public:
  explicit Emulation(bool keepSubnormals) : keepSubnormals(keepSubnormals) {}

  void run(Block &block, Block &scope);

private:
  Value take(amx::TileType type, Block &scope, Location loc);
  void emulate(Operation *op, Block &scope);
  Value sumsOf(amx::TileMulFOp op, Block &scope, TileEmulator &emulator);
  static bool isLastUse(Value tile, Operation *op) {
    return llvm::all_of(tile.getUsers(), [&](Operation *user) {
      return user == op || user->isBeforeInBlock(op);
    });
  }

  bool keepSubnormals;
  llvm::DenseMap<Value, Value> bufferOf;
  /// Those that no tile has at the moment, by scope and type.
  llvm::DenseMap<std::pair<Block *, Type>, SmallVector<Value>> idle;
};

} // namespace

Value Emulation::take(amx::TileType type, Block &scope, Location loc) {
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<Value> &buffers = idle[{&scope, memref}];
  if (!buffers.empty())
    return buffers.pop_back_val();
  OpBuilder b = OpBuilder::atBlockBegin(&scope);
  return memref::AllocaOp::create(b, loc, memref, ValueRange(),
                                  b.getI64IntegerAttr(64));
}

/// The sums of a product take the place of those that it adds to.
Value Emulation::sumsOf(amx::TileMulFOp op, Block &scope,
                        TileEmulator &emulator) {
  Value past = bufferOf.lookup(op.getAcc());
  if (isLastUse(op.getAcc(), op)) {
    bufferOf.erase(op.getAcc());
    return past;
  }
  Value sums = take(op.getTileType(), scope, op.getLoc());
  emulator.copy(past, sums);
  return sums;
}

void Emulation::emulate(Operation *op, Block &scope) {
  OpBuilder b(op);
  TileEmulator emulator(b, op->getLoc(), keepSubnormals);
  TypeSwitch<Operation *>(op)
      .Case([&](amx::TileZeroOp zero) {
        emulator.clear(bufferOf[zero] =
                           take(zero.getTileType(), scope, op->getLoc()));
      })
      .Case([&](amx::TileLoadOp load) {
        Value tile = take(load.getTileType(), scope, op->getLoc());
        emulator.load(load, bufferOf[load] = tile);
      })
      .Case([&](amx::TileStoreOp store) {
        emulator.store(store, bufferOf.lookup(store.getVal()));
      })
      .Case([&](amx::TileMulFOp product) {
        Value left = bufferOf.lookup(product.getLhs()),
              right = bufferOf.lookup(product.getRhs());
        Value sums = sumsOf(product, scope, emulator);
        emulator.multiply(left, right, sums);
        bufferOf[product] = sums;
      });
  for (Value tile : op->getOperands())
    if (auto it = bufferOf.find(tile);
        it != bufferOf.end() && isLastUse(tile, op)) {
      idle[{&scope, it->second.getType()}].push_back(it->second);
      bufferOf.erase(it);
    }
}

void Emulation::run(Block &block, Block &scope) {
  SmallVector<Operation *> emulated;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        run(inner, isa<scf::ForallOp, scf::ParallelOp>(op) ? inner : scope);
    if (!isa<amx::AMXDialect>(op.getDialect()))
      continue;
    emulate(&op, scope);
    emulated.push_back(&op);
  }
  for (Operation *op : llvm::reverse(emulated))
    op->erase();
}

namespace {

struct LinAttnEmulateAMXPass final
    : mlir::linattn::impl::LinAttnEmulateAMXPassBase<LinAttnEmulateAMXPass> {
  using LinAttnEmulateAMXPassBase::LinAttnEmulateAMXPassBase;

  void runOnOperation() override {
    if (failed(verifyTiles(
            getOperation(), "cannot be emulated",
            [](Operation *op) { return whyNoVectorsOfTiles(op).str(); })))
      return signalPassFailure();
    Emulation emulation(keepSubnormals);
    for (Block &block : getOperation()->getRegion(0))
      emulation.run(block, block);
  }
};

} // namespace
