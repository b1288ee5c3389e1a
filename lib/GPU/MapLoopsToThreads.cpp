//===- MapLoopsToThreads.cpp - Launches of the plain route ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Iterations of an outermost parallel loop are numbered along one axis, so that
// no grid dimension but x, which holds 2^31 − 1 blocks, grows with a size.
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Machine.h"
#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNMAPLOOPSTOTHREADSPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Threads of a block, where there are iterations for it.
constexpr int64_t blockThreads = 128;
/// Fewer iterations go into blocks of one warp: more multiprocessors get some.
constexpr int64_t fewIterations = 1 << 15;

/// Who works on an iteration.
enum class Worker {
  Thread,
  /// The lanes of a warp divide the loops inside, whose sums they shuffle.
  Warp,
  /// So do the threads of a block, which wait for one another before and behind
  /// each loop: one loop reads what another has written.
  Block,
};

/// The operation that a reduction repeats, if every lane may start from the
/// loop's initial value: a neutral one, or one that repetition does not change.
bool isNeutral(Operation *combine, Value initial) {
  if (isa<arith::AddFOp>(combine))
    return matchPattern(initial, m_AnyZeroFloat());
  return isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp>(combine);
}

/// Whether lanes can share the iterations of a loop in the body of another.
bool isDivisible(scf::ParallelOp loop) {
  if (loop.getNumLoops() != 1)
    return false;
  auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  for (auto [region, initial] :
       llvm::zip(reduce.getReductions(), loop.getInitVals())) {
    Block &block = region.front();
    // A shuffle exchanges 32 bits; 64 bits take two.
    Type type = initial.getType();
    if ((!type.isF32() && !type.isF64()) || !llvm::hasNItems(block, 2) ||
        block.front().getResult(0) != block.back().getOperand(0) ||
        !isNeutral(&block.front(), initial))
      return false;
  }
  return true;
}

/// The loops inside an outermost one, none of which holds another.
Worker findWorker(scf::ParallelOp outer, SmallVector<scf::ParallelOp> &inner) {
  llvm::SmallDenseSet<Value> loaded, stored;
  bool isDivided = true, sums = false;
  outer.getBody()->walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ParallelOp>(op)) {
      inner.push_back(loop);
      isDivided &= isDivisible(loop) &&
                   loop->getParentOfType<scf::ParallelOp>() == outer;
      sums |= loop.getNumReductions() > 0;
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      loaded.insert(load.getMemRef());
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      stored.insert(store.getMemRef());
    } else if (isa<memref::AllocOp, memref::AllocaOp, memref::CopyOp>(op)) {
      // Memory of a thread alone.
      isDivided = false;
    }
  });
  if (inner.empty() || !isDivided)
    return Worker::Thread;
  bool talks =
      llvm::any_of(stored, [&](Value x) { return loaded.contains(x); });
  if (!talks)
    return Worker::Warp;
  return sums ? Worker::Thread : Worker::Block;
}

/// Makes the launch of one loop.
class LaunchMaker {
public:
  LaunchMaker(scf::ParallelOp loop)
      : b(loop), loc(loop.getLoc()), loop(loop),
        worker(findWorker(loop, inner)) {}

  void make();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename OpTy, typename... Args>
  Value fold(Args... args) {
    return b.createOrFold<OpTy>(loc, args...);
  }
  /// Iterations of one dimension, in the host's code; 0 for a reversed range.
  Value countOf(unsigned dim) {
    Value span = fold<arith::SubIOp>(loop.getUpperBound()[dim],
                                     loop.getLowerBound()[dim]);
    span = fold<arith::MaxSIOp>(span, index(0));
    return fold<arith::CeilDivSIOp>(span, loop.getStep()[dim]);
  }
  gpu::LaunchOp createLaunch(Value count);
  /// The number of the iteration that a thread works on.
  Value iterationOf(gpu::LaunchOp launch);
  void fillBody(Value iteration, ArrayRef<Value> counts);
  void divide(scf::ParallelOp inside, Value lane, Value lanes);
  Value shuffle(Value x, int64_t distance);
  Value shuffleSum(Operation *combine, Value partial);
  void makeSequential(scf::ParallelOp inside);
  void guardStores(Block *body, Value lane);
  void barrier() {
    if (worker == Worker::Block)
      gpu::BarrierOp::create(b, loc);
  }

  OpBuilder b;
  Location loc;
  scf::ParallelOp loop;
  SmallVector<scf::ParallelOp> inner;
  Worker worker;
};

} // namespace

gpu::LaunchOp LaunchMaker::createLaunch(Value count) {
  Value one = index(1), threads, blocks = count;
  if (worker == Worker::Block) {
    threads = index(blockThreads);
    return gpu::LaunchOp::create(b, loc, blocks, one, one, threads, one, one);
  }
  // Of a warp an iteration has all lanes.
  int64_t width = worker == Worker::Warp ? warpSize : 1;
  Value isFew = fold<arith::CmpIOp>(arith::CmpIPredicate::slt, count,
                                    index(fewIterations / width));
  Value rows = fold<arith::SelectOp>(isFew, index(warpSize / width),
                                     index(blockThreads / width));
  blocks = fold<arith::CeilDivSIOp>(count, rows);
  if (worker == Worker::Warp)
    return gpu::LaunchOp::create(b, loc, blocks, one, one, index(warpSize),
                                 rows, one);
  return gpu::LaunchOp::create(b, loc, blocks, one, one, rows, one, one);
}

Value LaunchMaker::iterationOf(gpu::LaunchOp launch) {
  gpu::KernelDim3 block = launch.getBlockIds(), thread = launch.getThreadIds(),
                  size = launch.getBlockSize();
  if (worker == Worker::Block)
    return block.x;
  bool isWarp = worker == Worker::Warp;
  Value before =
      arith::MulIOp::create(b, loc, block.x, isWarp ? size.y : size.x);
  return arith::AddIOp::create(b, loc, before, isWarp ? thread.y : thread.x);
}

/// Moves the loop's body to the insertion point; the last dimension is that of
/// neighbouring threads.
void LaunchMaker::fillBody(Value iteration, ArrayRef<Value> counts) {
  SmallVector<Value> variables(counts.size());
  for (size_t dim = counts.size(); dim-- > 0;) {
    Value number = iteration;
    if (dim > 0) {
      number = arith::RemUIOp::create(b, loc, iteration, counts[dim]);
      iteration = arith::DivUIOp::create(b, loc, iteration, counts[dim]);
    }
    Value offset = fold<arith::MulIOp>(number, loop.getStep()[dim]);
    variables[dim] = fold<arith::AddIOp>(offset, loop.getLowerBound()[dim]);
  }
  loop.getBody()->getTerminator()->erase();
  for (auto [old, variable] : llvm::zip(loop.getInductionVars(), variables))
    old.replaceAllUsesWith(variable);
  Block *target = b.getInsertionBlock();
  target->getOperations().splice(b.getInsertionPoint(),
                                 loop.getBody()->getOperations());
}

/// Lets one lane store the values that all lanes compute alike.
void LaunchMaker::guardStores(Block *body, Value lane) {
  SmallVector<memref::StoreOp> stores;
  body->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<scf::ParallelOp>(op))
      return WalkResult::skip();
    if (auto store = dyn_cast<memref::StoreOp>(op))
      stores.push_back(store);
    return WalkResult::advance();
  });
  OpBuilder::InsertionGuard guard(b);
  for (memref::StoreOp store : stores) {
    b.setInsertionPoint(store);
    barrier();
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, index(0));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
    store->moveBefore(branch.thenBlock()->getTerminator());
    b.setInsertionPointAfter(branch);
    barrier();
  }
}

/// The value of the lane whose number differs by one bit; 64 bits are exchanged
/// as halves.
Value LaunchMaker::shuffle(Value x, int64_t distance) {
  auto exchange = [&](Value part) -> Value {
    return gpu::ShuffleOp::create(b, loc, part, distance, warpSize,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  if (!x.getType().isF64())
    return exchange(x);
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value bits = arith::BitcastOp::create(b, loc, i64, x);
  Value half = arith::ConstantIntOp::create(b, loc, i64, 32);
  Value low = exchange(arith::TruncIOp::create(b, loc, i32, bits));
  Value high = exchange(arith::TruncIOp::create(
      b, loc, i32, arith::ShRUIOp::create(b, loc, bits, half)));
  bits = arith::OrIOp::create(
      b, loc, arith::ExtUIOp::create(b, loc, i64, low),
      arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, i64, high),
                            half));
  return arith::BitcastOp::create(b, loc, x.getType(), bits);
}

Value LaunchMaker::shuffleSum(Operation *combine, Value partial) {
  for (int64_t distance = warpSize / 2; distance > 0; distance /= 2) {
    Value other = shuffle(partial, distance);
    Operation *next = b.clone(*combine);
    next->setOperands({partial, other});
    partial = next->getResult(0);
  }
  return partial;
}

/// A loop that every thread runs through, lane after lane of its iterations.
void LaunchMaker::divide(scf::ParallelOp inside, Value lane, Value lanes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(inside);
  // Other threads may still read the buffer written here.
  barrier();
  Value step = inside.getStep().front();
  Value first =
      arith::AddIOp::create(b, loc, inside.getLowerBound().front(),
                            arith::MulIOp::create(b, loc, lane, step));
  Value stride = arith::MulIOp::create(b, loc, lanes, step);
  auto own = scf::ForOp::create(b, loc, first, inside.getUpperBound().front(),
                                stride, inside.getInitVals());
  auto reduce = cast<scf::ReduceOp>(inside.getBody()->getTerminator());
  SmallVector<Operation *> combiners;
  for (Region &region : reduce.getReductions())
    combiners.push_back(&region.front().front());
  // Without values to carry the loop was made with its terminator.
  if (!combiners.empty())
    b.setInsertionPointToEnd(own.getBody());
  SmallVector<Value> next;
  inside.getInductionVars().front().replaceAllUsesWith(own.getInductionVar());
  own.getBody()->getOperations().splice(
      own.getBody()->begin(), inside.getBody()->getOperations(),
      inside.getBody()->begin(), reduce->getIterator());
  for (auto [combine, carried, term] :
       llvm::zip(combiners, own.getRegionIterArgs(), reduce.getOperands())) {
    Operation *sum = b.clone(*combine);
    sum->setOperands({carried, term});
    next.push_back(sum->getResult(0));
  }
  if (!combiners.empty())
    scf::YieldOp::create(b, loc, next);
  b.setInsertionPointAfter(own);
  for (auto [combine, old, partial] :
       llvm::zip(combiners, inside.getResults(), own.getResults()))
    old.replaceAllUsesWith(shuffleSum(combine, partial));
  barrier();
  inside.erase();
}

/// A nest of sequential loops.
void LaunchMaker::makeSequential(scf::ParallelOp inside) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(inside);
  auto reduce = cast<scf::ReduceOp>(inside.getBody()->getTerminator());
  SmallVector<Operation *> combiners;
  for (Region &region : reduce.getReductions())
    combiners.push_back(&region.front().front());
  scf::LoopNest nest = scf::buildLoopNest(
      b, loc, inside.getLowerBound(), inside.getUpperBound(), inside.getStep(),
      inside.getInitVals(),
      [&](OpBuilder &nested, Location, ValueRange variables,
          ValueRange carried) -> scf::ValueVector {
        IRMapping map;
        map.map(inside.getInductionVars(), variables);
        for (Operation &op : inside.getBody()->without_terminator())
          nested.clone(op, map);
        scf::ValueVector next;
        for (auto [region, past, term] :
             llvm::zip(reduce.getReductions(), carried, reduce.getOperands())) {
          IRMapping args;
          args.map(region.getArguments(),
                   SmallVector<Value>{past, map.lookupOrDefault(term)});
          for (Operation &op : region.front().without_terminator())
            nested.clone(op, args);
          next.push_back(args.lookupOrDefault(
              region.front().getTerminator()->getOperand(0)));
        }
        return next;
      });
  inside.replaceAllUsesWith(nest.results);
  inside.erase();
}

void LaunchMaker::make() {
  SmallVector<Value> counts;
  Value count = index(1);
  for (unsigned dim = 0; dim < loop.getNumLoops(); ++dim) {
    counts.push_back(countOf(dim));
    count = fold<arith::MulIOp>(count, counts.back());
  }
  gpu::LaunchOp launch = createLaunch(count);
  Block &entry = launch.getBody().front();
  b.setInsertionPointToStart(&entry);
  Value iteration = iterationOf(launch);
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         iteration, count);
  auto branch = scf::IfOp::create(b, loc, isInside, /*withElse=*/false);
  gpu::TerminatorOp::create(b, loc);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  if (worker != Worker::Thread)
    guardStores(loop.getBody(), launch.getThreadIds().x);
  fillBody(iteration, counts);
  // Innermost first.
  for (scf::ParallelOp inside : llvm::reverse(inner))
    if (worker == Worker::Thread)
      makeSequential(inside);
    else
      divide(inside, launch.getThreadIds().x, launch.getBlockSize().x);
  loop.erase();
}

namespace {

struct LinAttnMapLoopsToThreadsPass final
    : mlir::linattn::impl::LinAttnMapLoopsToThreadsPassBase<
          LinAttnMapLoopsToThreadsPass> {
  using LinAttnMapLoopsToThreadsPassBase::LinAttnMapLoopsToThreadsPassBase;

  void runOnOperation() override {
    SmallVector<scf::ParallelOp> loops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::LaunchOp>(op))
        return WalkResult::skip();
      auto loop = dyn_cast<scf::ParallelOp>(op);
      if (!loop)
        return WalkResult::advance();
      // The sum over threads would be computed by the host.
      if (loop.getNumReductions() == 0)
        loops.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ParallelOp loop : loops)
      LaunchMaker(loop).make();
    numLaunches += loops.size();
  }
};

} // namespace
