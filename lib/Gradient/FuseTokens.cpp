//===- FuseTokens.cpp - Arithmetic between scans, block by block ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op gets a level: the number of scans, or of ops of another kind, that
// must run before it. Ops of one level that run over the same batch, heads and
// tokens share a loop over blocks of tokens. Values that only such ops use
// move into the loop of the first of them, and are never stored as a whole.
// Where it can, the loop goes token by token and keeps these values in vectors.
//
//===----------------------------------------------------------------------===//

#include "TokenRows.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNFUSETOKENSPASS
#include "linattn/Gradient/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Callers often keep the heads of one token side by side: all heads of a block
/// come before the next tokens.
constexpr std::array<unsigned, kNumOuter> kLoopOrder = {0, 2, 1};
/// Tokens of a block: a dozen operands of heads of 64 stay in a second cache.
constexpr int64_t kBlockTokens = 32;

bool startsWithTokens(AffineMap map) {
  if (map.getNumResults() < kNumOuter)
    return false;
  return llvm::all_of(llvm::seq(kNumOuter), [&](unsigned i) {
    return map.getResult(i) == getAffineDimExpr(i, map.getContext());
  });
}

bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// Sizes and empty tensors cost nothing and may stand in front of any loop.
bool isFree(Operation *op) {
  return isa<tensor::DimOp, tensor::EmptyOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>() ||
         (isPure(op) && op->getNumRegions() == 0 &&
          llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>));
}

/// Which op belongs to which loop.
class Schedule {
public:
  explicit Schedule(Block &block) : block(block) {}

  /// The loops' ops, one after another in the block; the other ops have moved
  /// in front of those that need them.
  SmallVector<SmallVector<linalg::LinalgOp>> run() {
    for (Operation &op : block)
      link(&op);
    for (Operation &op : block)
      setEarliest(&op);
    for (Operation &op : llvm::reverse(block))
      delay(&op);
    return sort();
  }

private:
  using Key = const void *;
  static Key keyOf(Value value) { return value.getAsOpaquePointer(); }

  /// Values with the same batch, heads and tokens.
  void link(Operation *op) {
    if (auto scan = dyn_cast<ScanOp>(op))
      return linkTokens(op, {scan.getQuery(), scan.getKey(), scan.getValue(),
                             scan.getDecay(), scan.getValueDecay(), scan.getA(),
                             scan.getB(), scan.getOutput()});
    if (auto sweep = dyn_cast<SweepOp>(op))
      return linkTokens(op, {sweep.getQuery(), sweep.getKey(), sweep.getValue(),
                             sweep.getDecay(), sweep.getA(), sweep.getB(),
                             sweep.getValueQuery(), sweep.getOutput(),
                             sweep.getValueOutput(), op->getResult(1)});
    if (!isRowWise(op))
      return;
    auto linalgOp = cast<linalg::LinalgOp>(op);
    for (OpOperand &operand : op->getOpOperands())
      if (isTensor(operand.get()) &&
          startsWithTokens(linalgOp.getMatchingIndexingMap(&operand)))
        extents.unionSets(keyOf(op->getResult(0)), keyOf(operand.get()));
  }

  /// The operands of a recurrence, and results other than its first one.
  void linkTokens(Operation *op, ArrayRef<Value> values) {
    Value output = op->getResult(0);
    tokenKeys.push_back(keyOf(output));
    extents.insert(keyOf(output));
    int64_t heads = cast<ShapedType>(output.getType()).getDimSize(1);
    for (Value value : values)
      if (value && isTensor(value))
        if (auto type = cast<RankedTensorType>(value.getType());
            type.getRank() >= kNumOuter && type.getDimSize(1) == heads &&
            !ShapedType::isDynamic(heads))
          extents.unionSets(keyOf(output), keyOf(value));
  }

  /// Each row of the result needs no other token.
  static bool isRowWise(Operation *op) {
    if (!isa<linalg::GenericOp, linalg::FillOp>(op))
      return false;
    auto linalgOp = cast<linalg::LinalgOp>(op);
    if (!linalgOp.hasPureTensorSemantics() || op->getNumResults() != 1 ||
        linalgOp.hasIndexSemantics() || linalgOp.getNumLoops() < kNumOuter)
      return false;
    for (utils::IteratorType type :
         ArrayRef(linalgOp.getIteratorTypesArray()).take_front(kNumOuter))
      if (type != utils::IteratorType::parallel)
        return false;
    SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
    return llvm::all_of(
               maps,
               [](AffineMap map) { return map.isProjectedPermutation(); }) &&
           startsWithTokens(maps.back());
  }

  /// The loop that the op may belong to; null for none.
  Key loopOf(Operation *op) {
    if (!isRowWise(op))
      return nullptr;
    // A fill by itself is the initial state of a scan.
    if (isa<linalg::FillOp>(op) &&
        !llvm::all_of(op->getUsers(), [](Operation *user) {
          return isa<linalg::GenericOp>(user) && isRowWise(user);
        }))
      return nullptr;
    Key leader = extents.getLeaderValue(keyOf(op->getResult(0)));
    bool hasTokens = llvm::any_of(tokenKeys, [&](Key key) {
      return extents.getLeaderValue(key) == leader;
    });
    return hasTokens ? leader : nullptr;
  }

  /// How many levels `user` comes after `op`.
  int64_t distance(Operation *op, Operation *user) {
    if (isFree(op))
      return 0;
    Key loop = loops.lookup(op);
    if (!loop || loop != loops.lookup(user))
      return 1;
    // Other rows than those of the block.
    auto linalgOp = cast<linalg::LinalgOp>(user);
    for (OpOperand &operand : user->getOpOperands())
      if (operand.get().getDefiningOp() == op &&
          !startsWithTokens(linalgOp.getMatchingIndexingMap(&operand)))
        return 1;
    return 0;
  }

  void setEarliest(Operation *op) {
    if (Key loop = loopOf(op))
      loops[op] = loop;
    int64_t level = 0;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (def && def->getBlock() == &block)
          level = std::max(level, levels.lookup(def) + distance(def, op));
      }
    });
    if (!isPure(op) || op->hasTrait<OpTrait::IsTerminator>()) {
      level = std::max(level, lastEffect);
      lastEffect = level;
    }
    levels[op] = level;
  }

  /// An op moves to its users' loop if they are all in loops over its rows.
  void delay(Operation *op) {
    Key loop = loops.lookup(op);
    if (!loop || op->use_empty())
      return;
    int64_t level = std::numeric_limits<int64_t>::max();
    for (Operation *user : op->getUsers()) {
      if (loops.lookup(user) != loop)
        return;
      level = std::min(level, levels.lookup(user) - distance(op, user));
    }
    levels[op] = level;
  }

  SmallVector<SmallVector<linalg::LinalgOp>> sort() {
    llvm::MapVector<std::pair<int64_t, Key>, SmallVector<linalg::LinalgOp>>
        groups;
    for (Operation &op : block)
      if (Key loop = loops.lookup(&op))
        groups[{levels.lookup(&op), loop}].push_back(
            cast<linalg::LinalgOp>(op));
    SmallVector<SmallVector<linalg::LinalgOp>> shared;
    for (auto &[key, ops] : groups) {
      if (llvm::count_if(ops, llvm::IsaPred<linalg::GenericOp>) >= 2)
        shared.push_back(ops);
    }
    if (shared.empty())
      return {};
    // Ops of one level need none of another loop of it.
    llvm::DenseMap<Key, int64_t> numbers;
    for (Operation &op : block)
      if (Key loop = loops.lookup(&op))
        numbers.try_emplace(loop, int64_t(numbers.size()) + 1);
    SmallVector<std::pair<std::array<int64_t, 3>, Operation *>> order;
    for (auto [i, op] : llvm::enumerate(block.without_terminator())) {
      int64_t kind = isFree(&op) ? 0 : 1 + numbers.lookup(loops.lookup(&op));
      order.push_back({{levels.lookup(&op), kind, int64_t(i)}, &op});
    }
    llvm::sort(order, llvm::less_first());
    for (auto [key, op] : order)
      op->moveBefore(block.getTerminator());
    return shared;
  }

  Block &block;
  llvm::EquivalenceClasses<Key> extents;
  SmallVector<Key> tokenKeys;
  DenseMap<Operation *, Key> loops;
  DenseMap<Operation *, int64_t> levels;
  int64_t lastEffect = 0;
};

/// Emits one loop.
class Fusion {
public:
  Fusion(ArrayRef<linalg::LinalgOp> ops, RewriterBase &rewriter)
      : ops(ops), b(rewriter), loc(ops.front()->getLoc()),
        fused(llvm::from_range,
              llvm::map_range(ops, [](auto op) { return op.getOperation(); })) {
  }

  void run() {
    b.setInsertionPoint(ops.front());
    SmallVector<OpFoldResult> upper;
    Value root = rootOf(ops.front());
    for (unsigned i : kLoopOrder)
      upper.push_back(tensor::getMixedSize(b, loc, root, i));
    SmallVector<OpFoldResult> lower(kNumOuter, b.getIndexAttr(0));
    SmallVector<OpFoldResult> steps{
        b.getIndexAttr(1), b.getIndexAttr(kBlockTokens), b.getIndexAttr(1)};
    SmallVector<Value> initial;
    bool areRows = checkRows();
    for (linalg::LinalgOp op : ops)
      if (isUsedOutside(op)) {
        results.push_back(op);
        Value last = areRows ? lastUsed(op) : Value();
        reused.push_back(last);
        initial.push_back(last ? last : emptyLike(op));
      }
    auto loop = scf::ForallOp::create(b, loc, lower, upper, steps, initial,
                                      /*mapping=*/std::nullopt);
    b.setInsertionPoint(loop.getTerminator());
    offsets.resize(kNumOuter);
    for (auto [i, iv] : llvm::zip_equal(kLoopOrder, loop.getInductionVars()))
      offsets[i] = iv;
    AffineExpr position, end;
    bindDims(b.getContext(), position, end);
    sizes = {
        b.getIndexAttr(1), b.getIndexAttr(1),
        affine::makeComposedFoldedAffineMin(
            b, loc,
            AffineMap::get(
                2, 0, {b.getAffineConstantExpr(kBlockTokens), end - position},
                b.getContext()),
            {offsets[2], upper[1]})};
    if (areRows)
      emitRows(loop);
    else
      for (linalg::LinalgOp op : ops)
        emit(op, loop);
    for (auto [i, op] : llvm::enumerate(results)) {
      Value target = loop.getRegionIterArgs()[i];
      b.setInsertionPoint(loop.getTerminator());
      View view = viewOf(target, op.getIndexingMapsArray().back());
      b.setInsertionPointToEnd(loop.getTerminator().getBody());
      tensor::ParallelInsertSliceOp::create(
          b, loc, tiles.lookup(op->getResult(0)), target, view.offsets,
          view.sizes, view.strides);
      b.replaceUsesWithIf(
          op->getResult(0), loop.getResult(i),
          [&](OpOperand &use) { return !fused.contains(use.getOwner()); });
    }
    for (linalg::LinalgOp op : llvm::reverse(ops))
      b.eraseOp(op);
  }

private:
  struct View {
    SmallVector<OpFoldResult> offsets, sizes, strides;
  };

  bool isUsedOutside(linalg::LinalgOp op) {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return !fused.contains(user); });
  }

  static Value destination(linalg::LinalgOp op) {
    return op.getDpsInitOperand(0)->get();
  }

  /// Where the result goes, from outside of the loop.
  Value rootOf(linalg::LinalgOp op) {
    Value value = destination(op);
    while (Operation *def = value.getDefiningOp()) {
      if (!fused.contains(def))
        break;
      value = destination(cast<linalg::LinalgOp>(def));
    }
    return value;
  }

  Value emptyLike(linalg::LinalgOp op) {
    Value root = rootOf(op);
    OpBuilder::InsertionGuard guard(b);
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, root),
                                   getElementTypeOrSelf(op->getResult(0)));
  }

  /// Whether the ops can run token by token; a remark says if not.
  bool checkRows() {
    std::string whyNot;
    for (linalg::LinalgOp op : ops)
      if (!isTokenRow(op, whyNot)) {
        remark::missed(op.getLoc(), remarkNamed("fuse-tokens"))
            << "no vectors between scans: " + whyNot;
        return false;
      }
    return true;
  }

  /// Memory of this function's own.
  static bool isOwn(Value value) {
    Operation *def = value.getDefiningOp();
    if (auto loop = dyn_cast_or_null<scf::ForallOp>(def))
      return isOwn(loop.getTiedOpOperand(cast<OpResult>(value))->get());
    if (auto op = dyn_cast_or_null<DestinationStyleOpInterface>(def))
      return isOwn(op.getTiedOpOperand(cast<OpResult>(value))->get());
    return isa_and_nonnull<tensor::EmptyOp>(def);
  }

  /// A tensor whose rows only these ops read, each before `op` has one to write
  /// there: its memory, which is cached, takes the result.
  Value lastUsed(linalg::LinalgOp op) {
    Value result = op->getResult(0);
    auto isLastUse = [&](OpOperand &use) {
      if (isa<tensor::DimOp>(use.getOwner()))
        return true;
      return fused.contains(use.getOwner()) &&
             startsWithTokens(cast<linalg::LinalgOp>(use.getOwner())
                                  .getMatchingIndexingMap(&use));
    };
    for (linalg::LinalgOp member : ops)
      for (OpOperand *input : member.getDpsInputOperands()) {
        Value value = input->get();
        if (value.getType() == result.getType() &&
            !fused.contains(value.getDefiningOp()) &&
            !llvm::is_contained(reused, value) && isOwn(value) &&
            llvm::all_of(value.getUses(), isLastUse))
          return value;
      }
    return {};
  }

  /// One loop over the tokens of a block.
  void emitRows(scf::ForallOp loop) {
    SmallVector<Value> blocks;
    for (auto [op, block] : llvm::zip_equal(results, loop.getRegionIterArgs()))
      blocks.push_back(slice(block, op.getIndexingMapsArray().back()));
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value count = getValueOrCreateConstantIndexOp(b, loc, sizes[2]);
    auto tokens = scf::ForOp::create(b, loc, zero, count, one, blocks);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(tokens.getBody());
      auto outer = llvm::map_to_vector(
          offsets, [](OpFoldResult offset) { return cast<Value>(offset); });
      SmallVector<Value> inside{zero, zero, tokens.getInductionVar()};
      outer[2] = arith::AddIOp::create(b, loc, outer[2], inside[2]);
      TokenRows rows(b, loc, outer);
      for (auto [tensor, tile] :
           llvm::zip_equal(reused, tokens.getRegionIterArgs()))
        if (tensor)
          rows.readFrom(tensor, tile, inside);
      for (linalg::LinalgOp op : ops)
        rows.emit(op);
      SmallVector<Value> written;
      for (auto [op, tile] :
           llvm::zip_equal(results, tokens.getRegionIterArgs()))
        written.push_back(
            rows.write(cast<OpResult>(op->getResult(0)), tile, inside));
      scf::YieldOp::create(b, loc, written);
    }
    for (auto [op, block] : llvm::zip_equal(results, tokens.getResults()))
      tiles[op->getResult(0)] = block;
  }

  /// The part of an operand that the block of tokens needs.
  View viewOf(Value value, AffineMap map) {
    View view;
    for (auto [i, expr] : llvm::enumerate(map.getResults())) {
      unsigned position = cast<AffineDimExpr>(expr).getPosition();
      bool isOuter = position < kNumOuter;
      view.offsets.push_back(isOuter ? offsets[position]
                                     : OpFoldResult(b.getIndexAttr(0)));
      view.sizes.push_back(isOuter ? sizes[position]
                                   : tensor::getMixedSize(b, loc, value, i));
      view.strides.push_back(b.getIndexAttr(1));
    }
    return view;
  }

  Value slice(Value value, AffineMap map) {
    View view = viewOf(value, map);
    return tensor::ExtractSliceOp::create(b, loc, value, view.offsets,
                                          view.sizes, view.strides);
  }

  Value tileOf(Value value, AffineMap map) {
    if (Value tile = tiles.lookup(value))
      return tile;
    return isTensor(value) ? slice(value, map) : value;
  }

  Value destinationTile(linalg::LinalgOp op, scf::ForallOp loop) {
    Value value = destination(op);
    AffineMap map = op.getIndexingMapsArray().back();
    if (!value.getDefiningOp<tensor::EmptyOp>())
      return tileOf(value, map);
    auto *result = llvm::find(results, op);
    if (result != results.end())
      return slice(loop.getRegionIterArgs()[result - results.begin()], map);
    return tensor::EmptyOp::create(b, loc, viewOf(value, map).sizes,
                                   getElementTypeOrSelf(value));
  }

  void emit(linalg::LinalgOp op, scf::ForallOp loop) {
    SmallVector<Value> operands;
    for (OpOperand *input : op.getDpsInputOperands())
      operands.push_back(
          tileOf(input->get(), op.getMatchingIndexingMap(input)));
    operands.push_back(destinationTile(op, loop));
    tiles[op->getResult(0)] =
        clone(b, op, TypeRange{operands.back().getType()}, operands)
            ->getResult(0);
  }

  ArrayRef<linalg::LinalgOp> ops;
  RewriterBase &b;
  Location loc;
  llvm::SmallPtrSet<Operation *, 16> fused;
  SmallVector<linalg::LinalgOp> results;
  /// Of each result the tensor whose memory it takes, if any.
  SmallVector<Value> reused;
  SmallVector<OpFoldResult> offsets, sizes;
  /// The part of a result that a block of tokens computes.
  DenseMap<Value, Value> tiles;
};

struct LinAttnFuseTokensPass final
    : mlir::linattn::impl::LinAttnFuseTokensPassBase<LinAttnFuseTokensPass> {
  using LinAttnFuseTokensPassBase::LinAttnFuseTokensPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isDeclaration() || !function->hasAttr(kGradientAttrName))
      return;
    IRRewriter rewriter(&getContext());
    for (Block &block : function.getBody())
      for (ArrayRef<linalg::LinalgOp> ops : Schedule(block).run())
        Fusion(ops, rewriter).run();
  }
};

} // namespace
