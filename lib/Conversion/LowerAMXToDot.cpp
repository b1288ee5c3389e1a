//===- LowerAMXToDot.cpp - Tiles of AMX as dot products of vectors --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMXTiles.h"
#include "VectorBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERAMXTODOTPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Columns of a tile of sums, which are a vector.
static constexpr int64_t lanes = 16;

namespace {

/// Emits the ops on tiles of one function. Sums are a vector for each row;
/// operands stay in memory.
class DotLowering {
public:
  void run(Block &block);

private:
  void lower(Operation *op);
  VectorBuilder::Rows multiply(VectorBuilder &v, amx::TileMulFOp op);

  llvm::DenseMap<Value, VectorBuilder::Rows> sumsOf;
};

} // namespace

/// Each pair of a row of the left tile multiplies a row of the right one, which
/// holds a pair for every column.
VectorBuilder::Rows DotLowering::multiply(VectorBuilder &v,
                                          amx::TileMulFOp op) {
  auto left = op.getLhs().getDefiningOp<amx::TileLoadOp>(),
       right = op.getRhs().getDefiningOp<amx::TileLoadOp>();
  Type pairType = v.b.getI32Type();
  auto load = [&](amx::TileLoadOp tile, Value row, Value column, int64_t size) {
    SmallVector<Value> place =
        placeInTile(v, tile.getIndices(), tile.getStride(), row);
    place.back() = v.add(place.back(), column);
    return vector::LoadOp::create(v.b, v.loc,
                                  VectorType::get(size, v.b.getBF16Type()),
                                  tile.getBase(), place)
        .getResult();
  };
  auto bitcast = [&](Value x, int64_t size, Type type) {
    return vector::BitCastOp::create(v.b, v.loc, VectorType::get(size, type), x)
        .getResult();
  };
  return v.reduce(
      v.index(0), v.index(right.getTileType().getDimSize(0)), 1,
      sumsOf.lookup(op.getAcc()),
      [&](Value pair, ValueRange carried) -> SmallVector<Value> {
        Value columns = load(right, pair, v.index(0), 2 * lanes);
        Value place = v.mul(pair, v.index(2));
        SmallVector<Value> next;
        for (auto [row, sum] : llvm::enumerate(carried)) {
          Value one = bitcast(load(left, v.index(row), place, 2), 1, pairType);
          one = vector::ExtractOp::create(v.b, v.loc, one, int64_t(0));
          Value all = vector::BroadcastOp::create(
              v.b, v.loc, VectorType::get(lanes, pairType), one);
          Value factors = bitcast(all, 2 * lanes, v.b.getBF16Type());
          next.push_back(
              LLVM::CallIntrinsicOp::create(
                  v.b, v.loc, sum.getType(),
                  v.b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                  ValueRange{sum, columns, factors})
                  .getResult(0));
        }
        return next;
      });
}

void DotLowering::lower(Operation *op) {
  OpBuilder b(op);
  VectorBuilder v(b, op->getLoc(), b.getF32Type());
  auto isOfSums = [](amx::TileType type) {
    return type.getElementType().isF32();
  };
  TypeSwitch<Operation *>(op)
      .Case([&](amx::TileZeroOp zero) {
        if (isOfSums(zero.getTileType()))
          sumsOf[zero].assign(zero.getTileType().getDimSize(0), v.zeros(lanes));
      })
      .Case([&](amx::TileLoadOp load) {
        if (!isOfSums(load.getTileType()))
          return;
        for (int64_t row = 0; row < load.getTileType().getDimSize(0); ++row)
          sumsOf[load].push_back(v.loadVector(
              load.getBase(),
              placeInTile(v, load.getIndices(), load.getStride(), v.index(row)),
              lanes));
      })
      .Case([&](amx::TileStoreOp store) {
        for (auto [row, sum] : llvm::enumerate(sumsOf.lookup(store.getVal())))
          v.storeVector(sum, store.getBase(),
                        placeInTile(v, store.getIndices(), store.getStride(),
                                    v.index(row)));
      })
      .Case([&](amx::TileMulFOp product) {
        sumsOf[product] = multiply(v, product);
      });
}

void DotLowering::run(Block &block) {
  SmallVector<Operation *> lowered;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        run(inner);
    if (!isa<amx::AMXDialect>(op.getDialect()))
      continue;
    lower(&op);
    lowered.push_back(&op);
  }
  for (Operation *op : llvm::reverse(lowered))
    op->erase();
}

/// Why an op is not a dot product, or an operand of one, as a sentence; empty
/// if it is.
static std::string whyNoDot(Operation *op) {
  if (StringRef why = whyNoVectorsOfTiles(op); !why.empty())
    return why.str();
  if (auto store = dyn_cast<amx::TileStoreOp>(op);
      store && !store.getTileType().getElementType().isF32())
    return "it does not store sums";
  auto product = dyn_cast<amx::TileMulFOp>(op);
  if (!product)
    return {};
  if (int64_t columns = product.getTileType().getDimSize(1); columns != lanes)
    return llvm::formatv("its sums have {0} columns, not {1}", columns, lanes);
  for (Value operand : {product.getLhs(), product.getRhs()}) {
    auto load = operand.getDefiningOp<amx::TileLoadOp>();
    if (!load)
      return "its operand is not a tile in memory";
    for (Operation *between = load->getNextNode(); between != op;
         between = between->getNextNode()) {
      auto store = dyn_cast<amx::TileStoreOp>(between);
      if (store ? store.getBase() == load.getBase()
                : !isa<amx::AMXDialect>(between->getDialect()) &&
                      !isMemoryEffectFree(between))
        return "the memory of its operand may have changed";
    }
  }
  return {};
}

namespace {

struct LinAttnLowerAMXToDotPass final
    : mlir::linattn::impl::LinAttnLowerAMXToDotPassBase<
          LinAttnLowerAMXToDotPass> {
  using LinAttnLowerAMXToDotPassBase::LinAttnLowerAMXToDotPassBase;

  void runOnOperation() override {
    if (failed(verifyTiles(getOperation(), "has no dot products", whyNoDot)))
      return signalPassFailure();
    DotLowering lowering;
    for (Block &block : getOperation()->getRegion(0))
      lowering.run(block);
  }
};

} // namespace
