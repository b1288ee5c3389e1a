//===- LowerChunksToVector.cpp - Chunks on buffers as vector loops --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ops have a lowering, which of them become one, and which rows of the
// next chunk each product prefetches. ChunkVectors emits them, ChunkProducts
// the products in tiles.
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERCHUNKSTOVECTORPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

static MemRefType memrefOf(Value x) { return cast<MemRefType>(x.getType()); }

//===----------------------------------------------------------------------===//
// Which ops
//===----------------------------------------------------------------------===//

static bool isChunkOp(Operation *op) {
  return op->getName().getStringRef().starts_with("linattn.chunk.");
}

static bool isPerChannel(Value decay) {
  return decay && memrefOf(decay).getRank() == 4;
}

/// The clause of an op that its lowering leaves out; empty if none.
static StringRef whyNotClause(Operation *op) {
  if (auto pack = dyn_cast<ChunkPackOp>(op))
    return pack.getShift() ? "a shift" : "";
  if (auto unpack = dyn_cast<ChunkUnpackOp>(op))
    return unpack.getNormalize() ? "a denominator" : "";
  if (auto decay = dyn_cast<ChunkDecayOp>(op))
    return isPerChannel(decay.getDecay()) ? "a decay per channel" : "";
  if (auto scores = dyn_cast<ChunkScoresOp>(op))
    return scores.getBonus()                 ? "a bonus"
           : isPerChannel(scores.getDecay()) ? "a decay per channel"
                                             : "";
  if (isa<ChunkSolveOp>(op))
    return "";
  if (auto read = dyn_cast<ChunkReadOp>(op))
    return read.getTranspose() ? "a transpose" : "";
  if (auto update = dyn_cast<ChunkUpdateOp>(op))
    return update.getValueDecay()            ? "a decay per value column"
           : isPerChannel(update.getDecay()) ? "a decay per channel"
                                             : "";
  return "an op without vectors";
}

static bool isScores(Operation *op, Value operand) {
  if (auto scores = dyn_cast<ChunkScoresOp>(op))
    return operand == scores.getOutput();
  if (auto solve = dyn_cast<ChunkSolveOp>(op))
    return operand == solve.getScores();
  if (auto read = dyn_cast<ChunkReadOp>(op))
    return llvm::is_contained(read.getScores(), operand);
  return false;
}

/// The type that an op computes in.
static Type typeOf(Operation *op) {
  return getElementTypeOrSelf(
      isa<ChunkUnpackOp>(op) ? op->getOperand(0) : op->getOperands().back());
}

/// Whether an op takes the scores of later tokens.
static bool takesLater(Operation *op) {
  auto solve = dyn_cast<ChunkSolveOp>(op);
  auto read = dyn_cast<ChunkReadOp>(op);
  return (solve && solve.getTranspose()) || (read && read.getAdjoint());
}

/// Whether an operand is rows of tokens, of which there may be fewer than in a
/// whole chunk.
static bool isTokensOf(Operation *op, Value operand) {
  auto pack = dyn_cast<ChunkPackOp>(op);
  return pack && pack.getPadded() && operand == pack.getInput();
}

static bool isStatic(MemRefType memref, bool butTokens) {
  for (auto [i, size] : llvm::enumerate(memref.getShape()))
    if (ShapedType::isDynamic(size) && !(butTokens && i == 2))
      return false;
  return true;
}

/// Why an op on buffers has no lowering to vectors; empty if it has one.
static StringRef whyNoVectors(Operation *op, int64_t vectorBits,
                              int64_t registers) {
  if (StringRef clause = whyNotClause(op); !clause.empty())
    return clause;
  Type type = typeOf(op);
  if (!type.isF32() && !type.isF64())
    return "rows that are neither f32 nor f64";
  int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
  bool moves = isa<ChunkPackOp, ChunkUnpackOp>(op);
  if (takesLater(op))
    if (auto rows = memrefOf(op->getOperands().back());
        rows.isDynamicDim(2) || rows.getDimSize(2) % (registers / 4))
      return "scores of later tokens without whole tiles";
  for (Value operand : op->getOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    if (!memref || memref.getRank() < 3)
      continue;
    if (!isStatic(memref, isTokensOf(op, operand)))
      return "sizes that are not known";
    if (memref.getDimSize(0) != 1 || memref.getDimSize(1) != 1)
      return "several heads";
    if (memref.getRank() != 4)
      continue;
    if (memref.getDimSize(3) % lanes && !isScores(op, operand))
      return "features that are not whole vectors";
    if (!moves && !memref.isLastDimUnitStride())
      return "rows that do not lie in memory as such";
  }
  return {};
}

/// The summands of a product that runs in tiles; none of one in vectors.
static ArrayRef<int64_t> tileSummandsOf(Operation *op) {
  if (takesLater(op))
    return {};
  return TypeSwitch<Operation *, ArrayRef<int64_t>>(op)
      .Case<ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>(
          [](auto product) -> ArrayRef<int64_t> {
            constexpr int64_t tileRows = 16;
            for (Value matrix : product.getMatrices())
              for (int64_t dim : {2, 3})
                if (memrefOf(matrix).getDimSize(dim) % tileRows)
                  return {};
            return product.getSummands().value_or(ArrayRef<int64_t>());
          })
      .Default({});
}

/// Whether an op transposes a state beside ops of chunks.
static bool isStateOfChunks(linalg::TransposeOp op, int64_t vectorBits) {
  auto input = dyn_cast<MemRefType>(op.getInput().getType());
  auto output = dyn_cast<MemRefType>(op.getInit().getType());
  if (!input || !output || input.getRank() != 4 || !input.hasStaticShape() ||
      op.getPermutation() != ArrayRef<int64_t>{0, 1, 3, 2} ||
      input.getDimSize(0) != 1 || input.getDimSize(1) != 1 ||
      !input.isLastDimUnitStride() || !output.isLastDimUnitStride() ||
      !(input.getElementType().isF32() || input.getElementType().isF64()))
    return false;
  int64_t lanes = vectorBits / input.getElementTypeBitWidth();
  return input.getDimSize(2) % lanes == 0 && input.getDimSize(3) % lanes == 0 &&
         llvm::any_of(*op->getBlock(),
                      [](Operation &other) { return isChunkOp(&other); });
}

//===----------------------------------------------------------------------===//
// Ops that become one
//===----------------------------------------------------------------------===//

static bool isScratch(Value x) {
  return x.getDefiningOp<memref::AllocOp>() ||
         x.getDefiningOp<memref::AllocaOp>();
}

/// The users of a buffer after `op` in its block, except to free it; none where
/// another block uses it.
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

/// The fill with zero that a read adds to.
static linalg::FillOp findFill(ChunkReadOp read) {
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

/// The op that takes a read's sums to their tokens unchanged, with nothing
/// between the two that could read these.
static ChunkUnpackOp findUnpack(ChunkReadOp read) {
  Operation *next = read->getNextNode();
  while (next && (isa<memref::DeallocOp, memref::AllocOp>(next) ||
                  isMemoryEffectFree(next)))
    next = next->getNextNode();
  auto unpack = dyn_cast_or_null<ChunkUnpackOp>(next);
  if (!unpack || unpack.getRows() != read.getOutput() ||
      unpack.getNormalize() || unpack.getReverse() ||
      !isScratch(read.getOutput()) || !isScratch(read.getRows()) ||
      !llvm::all_of(read.getScores(), isScratch) ||
      !llvm::all_of(read.getValues(), isScratch))
    return {};
  auto users = usersAfter(read.getOutput(), read);
  return users && users->size() == 1 ? unpack : ChunkUnpackOp();
}

/// The only reader of decayed rows, which can decay its sums instead.
static ChunkReadOp findDecayedRead(ChunkDecayOp decay) {
  Value output = decay.getOutput(), rows = decay.getRows();
  if (decay.getToEnd() || !isScratch(output) || !isScratch(rows))
    return {};
  auto users = usersAfter(output, decay);
  if (!users || users->size() != 1)
    return {};
  auto read = dyn_cast<ChunkReadOp>(users->front());
  if (!read || read.getRows() != output ||
      llvm::count(read->getOperands(), output) != 1)
    return {};
  // The rows before their decay are still there.
  auto others = usersAfter(rows, decay);
  if (!others)
    return {};
  for (Operation *other : *others)
    if (auto chunk = dyn_cast<DestinationStyleOpInterface>(other);
        !chunk || llvm::is_contained(chunk.getDpsInits(), rows))
      return {};
  return read;
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

namespace {

/// The chunks that a loop of a task goes through, and the one after each.
class ChunkOrder {
public:
  ChunkOrder(ChunkVectors &v, scf::ForOp loop)
      : v(v), loop(loop), step(getConstantIntValue(loop.getStep())) {}

  /// The streams of the next chunk's rows behind `x`, the tokens of one chunk,
  /// or what the task itself keeps for it.
  SmallVector<ChunkVectors::Stream> findStreams(Value x, bool isWritten);

private:
  struct Next {
    Value first;  ///< Of the chunk after the current one, ...
    Value isLast; ///< ... if there is one.
  };
  std::optional<Next> findNext(OpFoldResult offset);
  bool hasLoopBehind();
  std::optional<ChunkVectors::Stream>
  tokensOf(memref::SubViewOp chunk, memref::SubViewOp task, bool isWritten);
  SmallVector<ChunkVectors::Stream> keptBy(memref::SubViewOp chunk,
                                           bool isWritten);
  Value value(OpFoldResult offset) {
    return getValueOrCreateConstantIndexOp(v.b, v.loc, offset);
  }

  ChunkVectors &v;
  scf::ForOp loop;
  std::optional<int64_t> step;
};

} // namespace

/// Chunks come from the first to the last, or the other way round: then the
/// offset is what is left of a length that stays the same.
std::optional<ChunkOrder::Next> ChunkOrder::findNext(OpFoldResult offset) {
  auto position = dyn_cast<Value>(offset);
  if (!position)
    return std::nullopt;
  Value follow = v.add(loop.getInductionVar(), loop.getStep());
  Value isLast =
      v.compare(arith::CmpIPredicate::sge, follow, loop.getUpperBound());
  if (position == loop.getInductionVar())
    return Next{follow, isLast};
  auto left = position.getDefiningOp<arith::SubIOp>();
  if (!left || left.getRhs() != loop.getInductionVar() ||
      !loop.isDefinedOutsideOfLoop(left.getLhs()))
    return std::nullopt;
  return Next{v.sub(left.getLhs(), follow), isLast};
}

/// Whether the task has more chunks behind those of the loop.
bool ChunkOrder::hasLoopBehind() {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (isa<scf::ForOp>(op) && op->walk([](Operation *nested) {
                                   return isChunkOp(nested)
                                              ? WalkResult::interrupt()
                                              : WalkResult::advance();
                                 }).wasInterrupted())
      return true;
  return false;
}

/// After the last chunk come those of the next head.
std::optional<ChunkVectors::Stream>
ChunkOrder::tokensOf(memref::SubViewOp chunk, memref::SubViewOp task,
                     bool isWritten) {
  MemRefType type = chunk.getType();
  if (!memrefOf(task.getSource()).isLastDimUnitStride())
    return std::nullopt;
  std::optional<Next> next = findNext(chunk.getMixedOffsets()[2]);
  if (!next)
    return std::nullopt;
  Value source = task.getSource(), one = v.index(1);
  Value head = value(task.getMixedOffsets()[1]), nextHead = head;
  Value first = loop.getInductionVar();
  if (!hasLoopBehind()) {
    nextHead = v.min(v.add(head, one), v.sub(v.dim(source, 1), one));
    first = loop.getLowerBound();
  }
  first = v.select(next->isLast, first, next->first);
  int64_t size = type.getDimSize(2);
  return ChunkVectors::Stream{source,
                              value(task.getMixedOffsets()[0]),
                              v.select(next->isLast, nextHead, head),
                              v.add(value(task.getMixedOffsets()[2]), first),
                              v.sub(v.dim(source, 2), one),
                              ShapedType::isDynamic(size) ? *step : size,
                              type.getDimSize(3),
                              isWritten};
}

/// Rows of tokens, or a state for each chunk: as many rows at a time as a chunk
/// has tokens.
SmallVector<ChunkVectors::Stream> ChunkOrder::keptBy(memref::SubViewOp chunk,
                                                     bool isWritten) {
  MemRefType type = chunk.getType();
  SmallVector<OpFoldResult> offsets = chunk.getMixedOffsets();
  Value source = chunk.getSource(), zero = v.index(0);
  Value last = v.sub(v.dim(source, 2), v.index(1));
  if (!type.hasStaticShape())
    return {};
  if (std::optional<Next> next = findNext(offsets[2])) {
    Value first = v.select(next->isLast, value(offsets[2]), next->first);
    return {{source, zero, zero, first, last, *step, type.getDimSize(3),
             isWritten}};
  }
  auto number = dyn_cast<Value>(offsets[1]);
  auto quotient = number ? number.getDefiningOp<arith::DivUIOp>() : nullptr;
  if (!quotient || getConstantIntValue(quotient.getRhs()) != step)
    return {};
  std::optional<Next> next = findNext(quotient.getLhs());
  if (!next)
    return {};
  Value follow =
      v.select(next->isLast, number, v.div(next->first, loop.getStep()));
  SmallVector<ChunkVectors::Stream> streams;
  for (int64_t row = 0; row < type.getDimSize(2); row += *step)
    streams.push_back({source, zero, follow, v.index(row), last, *step,
                       type.getDimSize(3), isWritten});
  return streams;
}

SmallVector<ChunkVectors::Stream> ChunkOrder::findStreams(Value x,
                                                          bool isWritten) {
  auto chunk = x.getDefiningOp<memref::SubViewOp>();
  if (!chunk || memrefOf(x).getRank() != 4 || !step ||
      !loop->getParentOfType<scf::ForallOp>() ||
      !isStatic(memrefOf(x), /*butTokens=*/true))
    return {};
  if (isScratch(chunk.getSource()))
    return keptBy(chunk, isWritten);
  auto task = chunk.getSource().getDefiningOp<memref::SubViewOp>();
  if (!task)
    return {};
  std::optional<ChunkVectors::Stream> stream = tokensOf(chunk, task, isWritten);
  return stream ? SmallVector<ChunkVectors::Stream>{*stream}
                : SmallVector<ChunkVectors::Stream>();
}

namespace {

/// What the lines of a matrix in tiles are: its rows, its rows up to the
/// diagonal or before it, its columns, or those of keys and columns of keys
/// that are transposed.
enum class TileRole {
  Rows,
  Scores,
  StrictScores,
  Columns,
  KeyRows,
  KeyColumns
};

/// Lowers the ops of a block one after the other.
class BlockLowering {
public:
  /// Values made of buffers, valid while these stay as they are.
  struct Made {
    llvm::SmallDenseMap<Value, Value> keysT;
    llvm::SmallDenseMap<Value, ChunkVectors::Factors> factors;
    llvm::MapVector<std::tuple<Value, TileRole, int64_t>, PackedTiles> tiles;
  };
  struct Target {
    int64_t vectorBits, registers;
    bool matrixUnit;
  };

  BlockLowering(Block &block, const Target &target, Made made)
      : block(block), b(block.getParentOp()->getContext()), target(target),
        vectorBits(target.vectorBits), made(std::move(made)) {}

  void run();

private:
  void findStreams();
  void lower(Operation *op);
  void lowerScores(ChunkScoresOp op);
  void lowerRead(ChunkReadOp op);
  void lowerUpdate(ChunkUpdateOp op);
  void invalidate(Operation *op);
  Value transposedKeys(Value keys);
  PackedTiles tilesOf(Value matrix, TileRole role, int64_t summands);
  ChunkVectors::Factors factorsOf(Value decay);
  ChunkVectors &at(Operation *op);
  ArrayRef<int64_t> summandsOf(Operation *op) {
    return target.matrixUnit ? tileSummandsOf(op) : ArrayRef<int64_t>();
  }
  ArrayRef<ChunkVectors::Stream> streamsOf(Operation *op) {
    auto it = streams.find(op);
    return it == streams.end() ? ArrayRef<ChunkVectors::Stream>() : it->second;
  }

  Block &block;
  OpBuilder b;
  const Target &target;
  int64_t vectorBits;
  Made made;
  std::optional<ChunkVectors> vectors;
  llvm::SmallDenseMap<Operation *, SmallVector<ChunkVectors::Stream>> streams;
  /// Reads, by what they read: rows that were to be decayed.
  llvm::SmallDenseMap<Operation *, ChunkVectors::ReadRows> decayedReads;
  SmallVector<Operation *> lowered;
};

} // namespace

/// The builder before an op, for its accumulation type.
ChunkVectors &BlockLowering::at(Operation *op) {
  Type type = typeOf(op);
  b.setInsertionPoint(op);
  if (!vectors || vectors->type != type) {
    int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
    vectors.emplace(b, op->getLoc(), type, lanes, target.registers / 4);
  }
  vectors->loc = op->getLoc();
  return *vectors;
}

/// Products divide the rows of the next chunk among them: only so many lines
/// can be under way.
void BlockLowering::findStreams() {
  auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
  SmallVector<Operation *> products;
  for (Operation &op : block)
    if (isa<ChunkReadOp, ChunkUpdateOp>(op) &&
        whyNoVectors(&op, vectorBits, target.registers).empty())
      products.push_back(&op);
  if (!loop || products.empty())
    return;
  // Every view of a part of the operands, once; what is written, if only once.
  llvm::MapVector<Value, bool> views;
  auto add = [&](Value x, bool isWritten) {
    if (x.getDefiningOp<memref::SubViewOp>())
      views[x] |= isWritten;
  };
  for (Operation &op : block) {
    if (auto structured = dyn_cast<DestinationStyleOpInterface>(op))
      for (OpOperand &operand : op.getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          add(operand.get(), structured.isDpsInit(&operand));
    // Rows that go to their tokens vector by vector.
    op.walk([&](vector::TransferWriteOp write) { add(write.getBase(), true); });
  }
  SmallVector<ChunkVectors::Stream> all;
  ChunkOrder order(at(products.front()), loop);
  for (auto [x, isWritten] : views)
    llvm::append_range(all, order.findStreams(x, isWritten));
  for (auto [i, stream] : llvm::enumerate(all))
    streams[products[i * products.size() / all.size()]].push_back(stream);
}

ChunkVectors::Factors BlockLowering::factorsOf(Value decay) {
  if (!decay)
    return {};
  auto [it, isNew] = made.factors.try_emplace(decay);
  if (isNew)
    it->second = vectors->factorsOf(decay);
  return it->second;
}

Value BlockLowering::transposedKeys(Value keys) {
  auto [it, isNew] = made.keysT.try_emplace(keys);
  if (isNew)
    it->second = vectors->transposedKeys(keys);
  return it->second;
}

PackedTiles BlockLowering::tilesOf(Value matrix, TileRole role,
                                   int64_t summands) {
  auto known = made.tiles.find({matrix, role, summands});
  if (known != made.tiles.end())
    return known->second;
  ChunkProducts products(*vectors);
  auto pack = [&]() -> PackedTiles {
    switch (role) {
    case TileRole::Rows:
      return products.packRows(matrix, summands);
    case TileRole::Scores:
    case TileRole::StrictScores:
      return products.packScores(matrix, role == TileRole::StrictScores,
                                 summands);
    case TileRole::Columns:
      return products.packColumns(matrix, summands);
    case TileRole::KeyRows:
      return products.packKeyRows(matrix, transposedKeys(matrix), summands);
    case TileRole::KeyColumns:
      return products.packKeyColumns(matrix, transposedKeys(matrix), summands);
    }
    llvm_unreachable("all roles are above");
  };
  return made.tiles[{matrix, role, summands}] = pack();
}

/// Forgets the values made of buffers that an op writes, or an op inside it.
void BlockLowering::invalidate(Operation *op) {
  op->walk([&](DestinationStyleOpInterface writer) {
    for (Value output : writer.getDpsInits()) {
      made.keysT.erase(output);
      made.factors.erase(output);
      made.tiles.remove_if(
          [&](auto &made) { return std::get<0>(made.first) == output; });
    }
  });
}

void BlockLowering::lowerScores(ChunkScoresOp op) {
  ChunkVectors::Factors factors = factorsOf(op.getDecay());
  Value keysT = transposedKeys(op.getKeys());
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, keysT, factors);
  PackedTiles rows = tilesOf(op.getRows(), TileRole::Rows, summands[0]),
              keys = tilesOf(op.getKeys(), TileRole::KeyColumns, summands[1]);
  ChunkProducts(*vectors).emit(op, {rows, keys}, keysT, factors);
}

void BlockLowering::lowerRead(ChunkReadOp op) {
  ChunkVectors::ReadRows rows{op.getRows(), {}, false};
  if (auto it = decayedReads.find(op); it != decayedReads.end())
    rows = it->second;
  linalg::FillOp fill = findFill(op);
  Value into = op.getOutput();
  if (ChunkUnpackOp unpack = findUnpack(op);
      unpack && whyNoVectors(unpack, vectorBits, target.registers).empty()) {
    into = unpack.getOutput();
    lowered.push_back(unpack);
  }
  if (fill)
    lowered.push_back(fill);
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, rows, bool(fill), into, streamsOf(op));
  TileRole role = op.getStrict() ? TileRole::StrictScores : TileRole::Scores;
  SmallVector<PackedTiles> matrices{
      tilesOf(rows.rows, TileRole::Rows, summands[0]),
      tilesOf(op.getState(), TileRole::Columns, summands[1])};
  summands = summands.drop_front(2);
  for (Value scores : op.getScores()) {
    matrices.push_back(tilesOf(scores, role, summands.front()));
    summands = summands.drop_front();
  }
  for (auto [values, count] : llvm::zip_equal(op.getValues(), summands))
    matrices.push_back(tilesOf(values, TileRole::Columns, count));
  ChunkProducts(*vectors).emit(op, matrices, rows, bool(fill), into,
                               streamsOf(op));
}

void BlockLowering::lowerUpdate(ChunkUpdateOp op) {
  ChunkVectors::Factors factors = factorsOf(op.getDecay());
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, factors, streamsOf(op));
  SmallVector<PackedTiles> matrices;
  size_t writes = op.getKeys().size();
  for (auto [keys, count] :
       llvm::zip_equal(op.getKeys(), summands.take_front(writes)))
    matrices.push_back(tilesOf(keys, TileRole::KeyRows, count));
  for (auto [values, count] :
       llvm::zip_equal(op.getValues(), summands.drop_front(writes)))
    matrices.push_back(tilesOf(values, TileRole::Columns, count));
  ChunkProducts(*vectors).emit(op, matrices, factors, streamsOf(op));
}

static bool decaysOtherBlock(Value numbers, Block &block) {
  return llvm::any_of(numbers.getUsers(), [&](Operation *user) {
    auto update = dyn_cast<ChunkUpdateOp>(user);
    return update && update.getDecay() == numbers && user->getBlock() != &block;
  });
}

void BlockLowering::lower(Operation *op) {
  ChunkVectors &v = at(op);
  TypeSwitch<Operation *>(op)
      .Case<ChunkPackOp, ChunkUnpackOp, ChunkSolveOp>(
          [&](auto plain) { v.emit(plain); })
      .Case([&](ChunkDecayOp decay) {
        ChunkVectors::Factors factors = factorsOf(decay.getDecay());
        ChunkReadOp read = findDecayedRead(decay);
        if (read && whyNoVectors(read, vectorBits, target.registers).empty())
          decayedReads[read] = {decay.getRows(), factors.start,
                                decay.getBefore()};
        else
          v.emit(decay, factors);
      })
      .Case([&](ChunkScoresOp scores) { lowerScores(scores); })
      .Case([&](ChunkReadOp read) { lowerRead(read); })
      .Case([&](ChunkUpdateOp update) { lowerUpdate(update); });
  lowered.push_back(op);
  invalidate(op);
  // A decay that is the same in every chunk.
  if (isa<ChunkPackOp>(op) && decaysOtherBlock(op->getOperands().back(), block))
    factorsOf(op->getOperands().back());
}

void BlockLowering::run() {
  findStreams();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (llvm::is_contained(lowered, &op))
      continue;
    // A loop may write again what its body reads, and its ops go as they are
    // lowered.
    if (op.getNumRegions() != 0)
      invalidate(&op);
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        BlockLowering(inner, target, made).run();
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op);
        transpose && isStateOfChunks(transpose, vectorBits)) {
      at(transpose).emit(transpose);
      lowered.push_back(transpose);
      invalidate(transpose);
      continue;
    }
    auto structured = dyn_cast<DestinationStyleOpInterface>(op);
    if (!structured || !structured.hasPureBufferSemantics() ||
        !isChunkOp(&op)) {
      invalidate(&op);
      continue;
    }
    StringRef reason = whyNoVectors(&op, vectorBits, target.registers);
    if (reason.empty()) {
      lower(&op);
      continue;
    }
    remark::missed(op.getLoc(), remarkNamed("lower-chunks-to-vector"))
        << ("runs as scalar loops: it has " + reason).str();
    invalidate(&op);
  }
  if (vectors) {
    b.setInsertionPoint(block.getTerminator());
    vectors->freeScratch();
  }
  for (Operation *op : llvm::reverse(lowered))
    op->erase();
}

/// The buffers of a task's chunks lie on its stack: there are as many calls of
/// the allocator as chunks otherwise.
static void moveToStack(scf::ForallOp task) {
  constexpr int64_t mostBytes = 64 << 10, mostOfAll = 384 << 10;
  int64_t taken = 0;
  SmallVector<memref::AllocOp> buffers;
  task.walk([&](memref::AllocOp op) {
    MemRefType type = op.getType();
    if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return;
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    if (!llvm::any_of(op->getUsers(), isChunkOp) || bytes > mostBytes ||
        taken + bytes > mostOfAll)
      return;
    taken += bytes;
    buffers.push_back(op);
  });
  OpBuilder b = OpBuilder::atBlockBegin(task.getBody());
  for (memref::AllocOp op : buffers) {
    Value buffer = memref::AllocaOp::create(
        b, op.getLoc(), op.getType(), ValueRange(), b.getI64IntegerAttr(64));
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    op.getResult().replaceAllUsesWith(buffer);
    op.erase();
  }
}

namespace {

struct LinAttnLowerChunksToVectorPass final
    : mlir::linattn::impl::LinAttnLowerChunksToVectorPassBase<
          LinAttnLowerChunksToVectorPass> {
  using LinAttnLowerChunksToVectorPassBase::LinAttnLowerChunksToVectorPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (matrixUnit && vectorBits != 512)
      return emitError(UnknownLoc::get(context))
             << "expected vector-bits to be 512 with matrix-unit, but got "
             << int64_t(vectorBits);
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    getOperation()->walk([](scf::ForallOp task) { moveToStack(task); });
    BlockLowering::Target target{vectorBits, registers, matrixUnit};
    for (Block &block : getOperation()->getRegion(0))
      BlockLowering(block, target, BlockLowering::Made()).run();
  }
};

} // namespace
