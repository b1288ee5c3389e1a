//===- Sharding.cpp - Ops on several processes ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops are those of tiling: batch, head, token. Every other dimension has
// a loop of its own, which is not split. A scan whose tokens are split becomes,
// for each panel of heads, a receive, a scan of this process's tokens, and a
// send.
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Sharding.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/OperandLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MPI/IR/MPI.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::shard;

namespace {

constexpr int64_t kHead = 1, kToken = 2, kNumLoops = 3;
/// Panels per process that waits for the first one: with n of them, n / (n + 1)
/// of the time is work. Each panel has code of its own.
constexpr int64_t kPanelsPerWait = 4;

/// The split of an op, by loop.
struct Split {
  SmallVector<GridAxis> axes(int64_t loop) const {
    return loop < static_cast<int64_t>(byLoop.size()) ? byLoop[loop]
                                                      : SmallVector<GridAxis>();
  }

  ShardingArray byLoop;
  GridOp grid;
};

/// The arguments of `partition`.
struct Parts {
  ArrayRef<Value> operands;
  ArrayRef<Sharding> operandShardings, resultShardings;
  IRMapping &map;
  SymbolTableCollection &symbols;
  OpBuilder &b;
};

} // namespace

/// Loops of operands, then of results. Dimensions that tiling leaves whole have
/// numbers from `kNumLoops` on. A destination and its result share their loops.
static SmallVector<DimLoops> getAllLoops(Operation *op, int &numLoops) {
  SmallVector<DimLoops> loops = getOperandLoops(op);
  numLoops = kNumLoops;
  for (DimLoops &dims : loops)
    for (int64_t &loop : dims)
      loop = loop < 0 ? numLoops++ : loop;
  for (OpOperand &init :
       cast<DestinationStyleOpInterface>(op).getDpsInitsMutable())
    loops.push_back(loops[init.getOperandNumber()]);
  return loops;
}

static bool isSequential(Operation *op) { return isa<ScanOp, StateOp>(op); }

//===----------------------------------------------------------------------===//
// Limits of splitting
//===----------------------------------------------------------------------===//

/// Why the tokens of `op` cannot be split; empty if they can.
static StringRef refuseTokens(Operation *op) {
  if (auto scan = dyn_cast<ScanOp>(op)) {
    if (scan.getCuSeqlens())
      return "its sequences start inside the parts";
    if (scan.getEvery())
      return "its snapshots are counted from the first token";
    if (scan.getStateIndices())
      return "its states are rows of a pool";
  }
  if (auto state = dyn_cast<StateOp>(op))
    if (state.getCuSeqlens())
      return "its sequences start inside the parts";
  if (auto quadratic = dyn_cast<QuadraticOp>(op))
    if (quadratic.getCausal())
      return "its queries see keys by their numbers; linattn-causal-to-scan "
             "makes a scan of it";
  return "";
}

/// Checks that sizes of parts are whole numbers, which partitioning itself does
/// not.
static LogicalResult checkSizes(Operation *op, Split &split,
                                ArrayRef<DimLoops> loops) {
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    for (auto [dim, loop] : llvm::enumerate(loops[number])) {
      int64_t count =
          collectiveProcessGroupSize(split.axes(loop), split.grid.getShape());
      if (ShapedType::isDynamic(count))
        return op->emitOpError("expected a grid of known sizes, but got ")
               << split.grid.getSymName();
      if (type && !type.isDynamicDim(dim) && type.getDimSize(dim) % count != 0)
        return op->emitOpError("expected dimension ")
               << dim << " of operand " << number << " to be a multiple of the "
               << count << " processes it is split over, but got "
               << type.getDimSize(dim);
    }
  }
  return success();
}

static LogicalResult check(Operation *op, Split &split,
                           ArrayRef<DimLoops> loops) {
  for (size_t loop = kNumLoops; loop < split.byLoop.size(); ++loop)
    if (!split.byLoop[loop].empty())
      return op->emitOpError("expected batches, heads or tokens to be split, "
                             "but got another dimension");
  if (!split.axes(kToken).empty()) {
    if (StringRef reason = refuseTokens(op); !reason.empty())
      return op->emitOpError("cannot be split over tokens: ") << reason;
    if (isSequential(op) && split.axes(kToken).size() > 1)
      return op->emitOpError("expected tokens to be split along one axis of "
                             "the grid, but got ")
             << split.axes(kToken).size();
  }
  return checkSizes(op, split, loops);
}

//===----------------------------------------------------------------------===//
// Tokens of a recurrence
//===----------------------------------------------------------------------===//

namespace {

/// A recurrence that continues from process to process.
class ProcessChain {
public:
  ProcessChain(Operation *op, Split &split, OpBuilder &b)
      : op(op), b(b), loc(op->getLoc()), grid(split.grid.getSymName()),
        axis(split.axes(kToken).front()), count(split.grid.getShape()[axis]) {
    auto scan = dyn_cast<ScanOp>(op);
    auto state = dyn_cast<StateOp>(op);
    reverse = scan ? scan.getReverse() : state.getReverse();
    auto index = ProcessMultiIndexOp::create(b, loc, grid, {axis});
    place = index.getResult().front();
  }

  /// Runs `local`, the op on this process's operands. Returns its results; the
  /// states are those of the last process.
  FailureOr<SmallVector<Value>> run(Operation *local);

private:
  /// The state that the previous process sends; `start` on the first process.
  Value receive(Value start);
  void send(Value state);
  /// The number of panels of heads.
  int64_t countPanels(Operation *local) const;
  FailureOr<SmallVector<Value>> runPanel(Operation *local, int64_t panel,
                                         int64_t panels,
                                         SmallVector<Value> into);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value isNot(int64_t other) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, place,
                                 constant(other));
  }
  Value neighbour(int64_t step) {
    return arith::AddIOp::create(b, loc, place, constant(step));
  }
  int64_t first() const { return reverse ? count - 1 : 0; }
  int64_t last() const { return reverse ? 0 : count - 1; }
  /// Whether a result is a state, which has no tokens.
  bool isState(unsigned result) const { return isa<StateOp>(op) || result > 0; }

  Operation *op;
  OpBuilder &b;
  Location loc;
  StringRef grid;
  GridAxis axis;
  int64_t count;
  bool reverse;
  Value place;
};

} // namespace

Value ProcessChain::receive(Value start) {
  auto branch = scf::IfOp::create(b, loc, TypeRange{start.getType()},
                                  isNot(first()), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  Value from = neighbour(reverse ? 1 : -1);
  auto received = RecvOp::create(
      b, loc, start.getType(), FlatSymbolRefAttr::get(b.getContext(), grid),
      b.getDenseI16ArrayAttr({axis}), start,
      b.getDenseI64ArrayAttr({ShapedType::kDynamic}), ValueRange{from});
  scf::YieldOp::create(b, loc, received.getResult());
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, loc, start);
  return branch.getResult(0);
}

void ProcessChain::send(Value state) {
  auto branch =
      scf::IfOp::create(b, loc, isNot(last()), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  Value to = neighbour(reverse ? -1 : 1);
  SendOp::create(b, loc, state.getType(), grid, ArrayRef<GridAxis>{axis}, state,
                 ArrayRef<int64_t>{ShapedType::kDynamic}, ValueRange{to});
}

int64_t ProcessChain::countPanels(Operation *local) const {
  // Tiles of heads need the same number of heads in all operands.
  int64_t heads = 0;
  SmallVector<DimLoops> loops = getOperandLoops(local);
  for (auto [operand, dims] : llvm::zip_equal(local->getOperands(), loops))
    for (auto [dim, loop] : llvm::enumerate(dims)) {
      if (loop != kHead)
        continue;
      int64_t size = cast<RankedTensorType>(operand.getType()).getDimSize(dim);
      if (ShapedType::isDynamic(size) || (heads && heads != size))
        return 1;
      heads = size;
    }
  int64_t panels = std::min(heads, kPanelsPerWait * (count - 1));
  while (panels > 1 && heads % panels != 0)
    --panels;
  return std::max<int64_t>(panels, 1);
}

/// `into` holds the results of earlier panels.
FailureOr<SmallVector<Value>> ProcessChain::runPanel(Operation *local,
                                                     int64_t panel,
                                                     int64_t panels,
                                                     SmallVector<Value> into) {
  Operation *tiled = local;
  b.setInsertionPoint(local);
  SmallVector<OpFoldResult> offsets, sizes;
  auto tiling = cast<TilingInterface>(local);
  if (panels > 1) {
    for (Range range : tiling.getIterationDomain(b)) {
      offsets.push_back(range.offset);
      sizes.push_back(range.size);
    }
    int64_t heads = *getConstantIntValue(sizes[kHead]) / panels;
    offsets[kHead] = b.getIndexAttr(panel * heads);
    sizes[kHead] = b.getIndexAttr(heads);
    FailureOr<TilingResult> tile =
        tiling.getTiledImplementation(b, offsets, sizes);
    if (failed(tile))
      return failure();
    tiled = tile->tiledOps.front();
  }
  auto inits = cast<DestinationStyleOpInterface>(tiled).getDpsInitsMutable();
  b.setInsertionPoint(tiled);
  for (auto [result, init] : llvm::enumerate(inits))
    if (isState(result))
      init.set(receive(init.get()));
  b.setInsertionPointAfter(tiled);
  for (auto [result, value] : llvm::enumerate(tiled->getResults()))
    if (isState(result))
      send(value);
  if (panels == 1)
    return SmallVector<Value>(tiled->getResults());
  for (auto [result, value] : llvm::enumerate(tiled->getResults())) {
    SmallVector<OpFoldResult> at, extent;
    if (failed(tiling.getResultTilePosition(b, result, offsets, sizes, at,
                                            extent)))
      return failure();
    SmallVector<OpFoldResult> strides(at.size(), b.getIndexAttr(1));
    into[result] = tensor::InsertSliceOp::create(b, loc, value, into[result],
                                                 at, extent, strides);
  }
  return into;
}

FailureOr<SmallVector<Value>> ProcessChain::run(Operation *local) {
  int64_t panels = countPanels(local);
  auto dest = cast<DestinationStyleOpInterface>(local);
  SmallVector<Value> results(dest.getDpsInits());
  for (int64_t panel = 0; panel < panels; ++panel) {
    FailureOr<SmallVector<Value>> next =
        runPanel(local, panel, panels, results);
    if (failed(next))
      return failure();
    results = *next;
  }
  if (panels > 1) {
    b.setInsertionPointAfter(local);
    local->erase();
  }
  // The final state is the same on every process.
  for (auto [result, value] : llvm::enumerate(results))
    if (isState(result))
      value = BroadcastOp::create(b, loc, value.getType(), grid,
                                  ArrayRef<GridAxis>{axis}, value,
                                  ArrayRef<int64_t>{last()}, ValueRange{});
  return results;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

static LogicalResult partition(Operation *op, ShardingInterface sharding,
                               const Parts &parts) {
  int numLoops;
  SmallVector<DimLoops> loops = getAllLoops(op, numLoops);
  Split split;
  split.byLoop = getGridAxisAssignmentForLoopIterators(
      parts.operandShardings, parts.resultShardings,
      sharding.getLoopIteratorTypes(), sharding.getIndexingMaps());
  for (ArrayRef<Sharding> all : {parts.operandShardings, parts.resultShardings})
    for (const Sharding &it : all)
      if (it && !split.grid)
        split.grid = getGrid(op, it.getGridAttr(), parts.symbols);
  if (!split.grid)
    return op->emitOpError("expected a grid that it is split over, but got "
                           "none");
  if (failed(check(op, split, loops)))
    return failure();
  partitionTriviallyShardableOperation(
      *op, parts.operands, parts.operandShardings, parts.resultShardings,
      parts.map, parts.symbols, parts.b);
  if (!isSequential(op) || split.axes(kToken).empty() ||
      collectiveProcessGroupSize(split.axes(kToken), split.grid) == 1)
    return success();
  Operation *local = parts.map.lookup(op->getResult(0)).getDefiningOp();
  OpBuilder::InsertionGuard guard(parts.b);
  parts.b.setInsertionPoint(local);
  FailureOr<SmallVector<Value>> results =
      ProcessChain(op, split, parts.b).run(local);
  if (failed(results))
    return failure();
  parts.map.map(op->getResults(), *results);
  return success();
}

namespace {

template <typename OpTy>
struct StructuredSharding
    : ShardingInterface::ExternalModel<StructuredSharding<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    int numLoops;
    getAllLoops(op, numLoops);
    // Tokens of a recurrence are ordered, but are not summed over processes.
    return SmallVector<utils::IteratorType>(numLoops,
                                            utils::IteratorType::parallel);
  }

  SmallVector<AffineMap> getIndexingMaps(Operation *op) const {
    int numLoops;
    SmallVector<AffineMap> maps;
    for (const DimLoops &dims : getAllLoops(op, numLoops)) {
      SmallVector<AffineExpr> results;
      for (int loop : dims)
        results.push_back(getAffineDimExpr(loop, op->getContext()));
      maps.push_back(AffineMap::get(numLoops, 0, results, op->getContext()));
    }
    // The number of loops is static here.
    for (AffineMap &map : maps)
      map = AffineMap::get(numLoops, 0, map.getResults(), op->getContext());
    return maps;
  }

  LogicalResult partition(Operation *op, ArrayRef<Value> operands,
                          ArrayRef<Sharding> operandShardings,
                          ArrayRef<Sharding> resultShardings, IRMapping &map,
                          SymbolTableCollection &symbols, OpBuilder &b) const {
    return ::partition(
        op, cast<ShardingInterface>(op),
        {operands, operandShardings, resultShardings, map, symbols, b});
  }
};

/// Declares the effects of messages, on the buffer and on other processes, for
/// the deallocation of buffers. LLVM 22 does not declare them.
template <typename OpTy, typename Effect>
struct MessageEffects
    : MemoryEffectOpInterface::ExternalModel<MessageEffects<OpTy, Effect>,
                                             OpTy> {
  void
  getEffects(Operation *op,
             SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
                 &effects) const {
    effects.emplace_back(Effect::get(), &op->getOpOperand(0));
    effects.emplace_back(MemoryEffects::Write::get());
  }
};

} // namespace

void mlir::linattn::registerShardingInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, mpi::MPIDialect *) {
    mpi::SendOp::attachInterface<
        MessageEffects<mpi::SendOp, MemoryEffects::Read>>(*context);
    mpi::RecvOp::attachInterface<
        MessageEffects<mpi::RecvOp, MemoryEffects::Write>>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, LinAttnDialect *,
                            ShardDialect *) {
    QuadraticOp::attachInterface<StructuredSharding<QuadraticOp>>(*context);
    ScanOp::attachInterface<StructuredSharding<ScanOp>>(*context);
    StateOp::attachInterface<StructuredSharding<StateOp>>(*context);
    ReadOp::attachInterface<StructuredSharding<ReadOp>>(*context);
    FeatureMapOp::attachInterface<StructuredSharding<FeatureMapOp>>(*context);
    OutputNormOp::attachInterface<StructuredSharding<OutputNormOp>>(*context);
    context->getOrLoadDialect<scf::SCFDialect>();
    context->getOrLoadDialect<tensor::TensorDialect>();
    context->getOrLoadDialect<arith::ArithDialect>();
  });
}
