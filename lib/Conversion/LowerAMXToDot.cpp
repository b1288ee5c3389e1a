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

/// Products that one loop adds to the same sums: tiles of either operand follow
/// one another along a dimension of their memory.
struct Chain {
  amx::TileMulFOp first;
  int64_t leftDim = -1, rightDim = -1, count = 1;
};

/// Emits the ops on tiles of one function. Sums are a vector for each row;
/// operands stay in memory.
class DotLowering {
public:
  void run(Block &block);

private:
  void lower(Operation *op);
  VectorBuilder::Rows multiply(VectorBuilder &v, const Chain &chain);

  llvm::DenseMap<Value, VectorBuilder::Rows> sumsOf;
  /// The products so far of the chain that a product continues.
  llvm::DenseMap<Operation *, Chain> chainOf;
};

} // namespace

/// The dimension along which a tile lies behind another one in the same memory.
static std::optional<int64_t> findStep(Value tile, Value next) {
  auto here = tile.getDefiningOp<amx::TileLoadOp>(),
       there = next.getDefiningOp<amx::TileLoadOp>();
  if (here.getBase() != there.getBase() || here.getStride() ||
      there.getStride() || here.getTileType() != there.getTileType())
    return std::nullopt;
  std::optional<int64_t> step;
  for (auto [dim, pair] : llvm::enumerate(
           llvm::zip_equal(here.getIndices(), there.getIndices()))) {
    auto [x, y] = pair;
    if (isEqualConstantIntOrValue(getAsOpFoldResult(x), getAsOpFoldResult(y)))
      continue;
    std::optional<int64_t> from = getConstantIntValue(x),
                           to = getConstantIntValue(y);
    if (step || !from || !to || *to != *from + 1)
      return std::nullopt;
    step = dim;
  }
  return step;
}

/// The product that adds to the sums of the last one of a chain and continues
/// it: nothing else reads those sums, and no memory changes in between.
static amx::TileMulFOp findNext(amx::TileMulFOp last, Chain &chain) {
  if (!last.getRes().hasOneUse())
    return {};
  auto next = dyn_cast<amx::TileMulFOp>(*last.getRes().user_begin());
  if (!next || next.getAcc() != last.getRes())
    return {};
  std::optional<int64_t> left = findStep(last.getLhs(), next.getLhs()),
                         right = findStep(last.getRhs(), next.getRhs());
  bool isFirst = chain.count == 1;
  if (!left || !right ||
      (!isFirst && (left != chain.leftDim || right != chain.rightDim)))
    return {};
  for (Operation *between = last->getNextNode(); between != next;
       between = between->getNextNode())
    if (!isMemoryEffectFree(between) &&
        !isa<amx::TileLoadOp, amx::TileMulFOp>(between))
      return {};
  chain.leftDim = *left;
  chain.rightDim = *right;
  ++chain.count;
  return next;
}

/// Each pair of a row of the left tile multiplies a row of the right one, which
/// holds a pair for every column.
VectorBuilder::Rows DotLowering::multiply(VectorBuilder &v,
                                          const Chain &chain) {
  amx::TileMulFOp op = chain.first;
  auto left = op.getLhs().getDefiningOp<amx::TileLoadOp>(),
       right = op.getRhs().getDefiningOp<amx::TileLoadOp>();
  Type pairType = v.b.getI32Type();
  // The place of a row in the tile of a step, at a column.
  auto load = [&](amx::TileLoadOp tile, int64_t dim, Value step, Value row,
                  Value column, int64_t size) {
    SmallVector<Value> indices(tile.getIndices());
    if (step)
      indices[dim] = v.add(indices[dim], step);
    SmallVector<Value> place = placeInTile(v, indices, tile.getStride(), row);
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
  auto addTile = [&](Value step, ValueRange sums) {
    return v.reduce(
        v.index(0), v.index(right.getTileType().getDimSize(0)), 1, sums,
        [&](Value pair, ValueRange carried) -> SmallVector<Value> {
          Value columns =
              load(right, chain.rightDim, step, pair, v.index(0), 2 * lanes);
          Value place = v.mul(pair, v.index(2));
          SmallVector<Value> next;
          for (auto [row, sum] : llvm::enumerate(carried)) {
            Value one =
                bitcast(load(left, chain.leftDim, step, v.index(row), place, 2),
                        1, pairType);
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
  };
  VectorBuilder::Rows sums = sumsOf.lookup(op.getAcc());
  if (chain.count == 1)
    return addTile(Value(), sums);
  // A loop around two tiles costs more time than it saves code.
  if (chain.count == 2)
    return addTile(v.index(1), addTile(v.index(0), sums));
  return v.reduce(v.index(0), v.index(chain.count), 1, sums, addTile);
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
        Chain chain = chainOf.lookup(product);
        if (!chain.first)
          chain.first = product;
        if (amx::TileMulFOp next = findNext(product, chain))
          chainOf[next] = chain;
        else
          sumsOf[product] = multiply(v, chain);
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
