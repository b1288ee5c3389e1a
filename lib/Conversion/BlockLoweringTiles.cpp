//===- BlockLoweringTiles.cpp - Matrices of a block in tiles --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

PackedTiles BlockLowering::packed(Value matrix, TileRole role,
                                  int64_t summands) {
  ChunkProducts products = productsInTiles();
  if (auto tiles = packTokens(matrix, role, summands))
    return *tiles;
  switch (role) {
  case TileRole::Rows:
    return products.packRows(matrix, summands);
  case TileRole::Scores:
  case TileRole::StrictScores:
    return products.packScores(matrix, role == TileRole::StrictScores,
                               summands);
  case TileRole::Values:
    return products.packValues(matrix, summands);
  case TileRole::State:
    return products.packState(matrix, summands);
  case TileRole::KeyRows:
    return products.packKeyRows(transposedKeys(matrix), summands);
  case TileRole::KeyColumns:
    return products.packKeyColumns(transposedKeys(matrix),
                                   sizeOf(matrix, 2) / ChunkProducts::lines,
                                   summands);
  }
  llvm_unreachable("all roles are above");
}

PackedTiles BlockLowering::tilesOf(Value matrix, TileRole role,
                                   int64_t summands) {
  // Exact tokens need one summand: a decay multiplies their sums.
  if (tokensOf(matrix).tokens)
    summands = 1;
  auto *known = made.tiles.find({matrix, role, summands});
  if (known != made.tiles.end())
    return known->second;
  PackedTiles tiles = packed(matrix, role, summands);
  return made.tiles[{matrix, role, summands}] = tiles;
}

//===----------------------------------------------------------------------===//
// Rows that decay per channel
//===----------------------------------------------------------------------===//

ChunkProducts::BlockKeys BlockLowering::blockKeysOf(ChunkScoresOp op) {
  Value gates = factorsOf(op.getDecay()).gates;
  int64_t summands = summandsOf(op)[1];
  auto [it, isNew] =
      made.blockKeys.try_emplace({op.getKeys(), op.getDecay(), summands});
  if (isNew)
    it->second = productsInTiles().decayKeys(op.getKeys(), gates, summands);
  return it->second;
}

ChunkProducts::BlockRows BlockLowering::blockRowsOf(ChunkScoresOp op) {
  Value gates = factorsOf(op.getDecay()).gates;
  auto [it, isNew] =
      made.blockRows.try_emplace({op.getRows(), op.getDecay(), op.getBefore()});
  if (isNew)
    it->second =
        productsInTiles().decayRows(op.getRows(), gates, op.getBefore());
  return it->second;
}

bool BlockLowering::scoresInBlocks(ChunkScoresOp op) {
  return op.decaysTerms() && !summandsOf(op).empty() &&
         sizeOf(op.getRows(), 2) > ChunkProducts::lines;
}

/// Scores of the same rows or keys, whose blocks a decay goes on from.
ChunkScoresOp BlockLowering::findScores(ChunkDecayOp decay) {
  for (auto scores : decay->getBlock()->getOps<ChunkScoresOp>()) {
    bool hasSame = decay.getToEnd()
                       ? scores.getKeys() == decay.getRows()
                       : scores.getRows() == decay.getRows() &&
                             scores.getBefore() == decay.getBefore();
    if (hasSame && scores.getDecay() == decay.getDecay() &&
        scoresInBlocks(scores))
      return scores;
  }
  return {};
}

PackedTiles BlockLowering::packDecayed(ChunkDecayOp decay, int64_t summands) {
  ChunkScoresOp scores = findScores(decay);
  if (decay.getToEnd())
    return productsInTiles().packKeyRows(blockKeysOf(scores), summands);
  return productsInTiles().packRows(blockRowsOf(scores), summands);
}

//===----------------------------------------------------------------------===//
// Buffers that products in tiles do without
//===----------------------------------------------------------------------===//

/// Whether a view of rows is the columns that an op writes, or those behind
/// them, which are filled with zeros.
static bool isOwnPart(memref::SubViewOp view, Operation *writer) {
  Value written = writer->getOperands().back();
  if (view.getResult() == written)
    return view->hasOneUse();
  return wholeRowsOf(written) == view.getSource() &&
         isConstantIntValue(view.getMixedOffsets().back(),
                            sizeOf(written, 3)) &&
         llvm::all_of(view->getUsers(), [](Operation *user) {
           auto fill = dyn_cast<linalg::FillOp>(user);
           return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
         });
}

/// Whether only products in tiles read what an op writes to its scratch memory,
/// or ops that are deferred themselves.
bool BlockLowering::isForTiles(Value buffer, Operation *writer) {
  if (!target.tiles || !target.hasBits || !isScratch(buffer))
    return false;
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (user == writer)
      return true;
    if (auto view = dyn_cast<memref::SubViewOp>(user))
      return isOwnPart(view, writer);
    // It may be gone where the branch of vectors would write it.
    if (isa<memref::DeallocOp>(user))
      return false;
    if (auto pack = dyn_cast<ChunkPackOp>(user))
      return pack.getOutput() != buffer && isDeferrable(pack);
    if (auto decay = dyn_cast<ChunkDecayOp>(user)) {
      ChunkReadOp read = findDecayedRead(decay);
      return decay.getOutput() != buffer &&
             ((read && !summandsOf(read).empty()) || isDeferrable(decay));
    }
    // Scores within a block are vectors.
    if (auto scores = dyn_cast<ChunkScoresOp>(user);
        scores && scores.decaysTerms())
      return false;
    auto structured = dyn_cast<DestinationStyleOpInterface>(user);
    return structured && !summandsOf(user).empty() &&
           !llvm::is_contained(structured.getDpsInits(), buffer);
  });
}

bool BlockLowering::isDeferrable(ChunkPackOp pack) {
  Value input = pack.getInput();
  auto type = cast<MemRefType>(input.getType());
  double scale = pack.getScale() ? pack.getScale()->convertToDouble() : 1.0;
  return (type.getElementType().isBF16() || isScratch(input)) &&
         !pack.getShift() && !pack.getGate() && !pack.getMask() &&
         !pack.getFill() && !pack.getScaleValue() && !pack.getReverse() &&
         std::abs(scale) == 1.0 && type.getRank() == 4 &&
         isStatic(type, /*butTokens=*/pack.getPadded()) &&
         type.isLastDimUnitStride() &&
         isForTiles(wholeRowsOf(pack.getOutput()), pack);
}

/// Keys that decay to the end of the chunk, or rows that decay per channel from
/// its start.
bool BlockLowering::isDeferrable(ChunkDecayOp decay) {
  Value output = decay.getOutput();
  bool hasBlocks = isPerChannel(decay.getDecay());
  if (hasBlocks ? !findScores(decay) : !decay.getToEnd())
    return false;
  auto takes = [&](Operation *user) {
    if (user == decay)
      return true;
    if (hasBlocks && !staysBetween(decay.getRows(), decay, user))
      return false;
    if (auto read = dyn_cast<ChunkReadOp>(user))
      return !decay.getToEnd() && read.getRows() == output &&
             llvm::count(read->getOperands(), output) == 1;
    auto update = dyn_cast<ChunkUpdateOp>(user);
    return update && decay.getToEnd() &&
           llvm::is_contained(update.getKeys(), output);
  };
  return isForTiles(output, decay) && llvm::all_of(output.getUsers(), takes);
}

/// The read that alone takes scores, and can take them in tiles.
ChunkReadOp BlockLowering::findReader(ChunkScoresOp scores) {
  if (target.tiles != 2 || !isScratch(scores.getOutput()))
    return {};
  ChunkReadOp reader;
  for (Operation *user : scores.getOutput().getUsers()) {
    if (user == scores || isa<memref::DeallocOp>(user))
      continue;
    auto read = dyn_cast<ChunkReadOp>(user);
    if (!read || reader || summandsOf(read).empty() ||
        read->getBlock() != scores->getBlock() ||
        (read.getStrict() && !scores.getStrict()) ||
        llvm::count(read.getScores(), scores.getOutput()) != 1)
      return {};
    reader = read;
  }
  return reader;
}

TileTokens BlockLowering::tokensOf(Value buffer) {
  auto pack = dyn_cast_or_null<ChunkPackOp>(made.deferred.lookup(buffer));
  if (!pack)
    return {};
  bool isNegated = pack.getScale() && pack.getScale()->isNegative();
  TileTokens from = tokensOf(pack.getInput());
  if (!from.tokens)
    return {pack.getInput(), isNegated};
  return {from.tokens, from.isNegated != isNegated};
}

/// The tiles of a matrix whose buffer was not written.
std::optional<PackedTiles>
BlockLowering::packTokens(Value matrix, TileRole role, int64_t summands) {
  ChunkProducts products = productsInTiles();
  auto decay = dyn_cast_or_null<ChunkDecayOp>(made.deferred.lookup(matrix));
  if (decay && isPerChannel(decay.getDecay()))
    return packDecayed(decay, summands);
  Value rows = decay ? decay.getRows() : matrix;
  TileTokens from = tokensOf(rows);
  if (!from.tokens)
    return std::nullopt;
  switch (role) {
  case TileRole::Rows:
    return products.packTokenRows(from.tokens, from.isNegated);
  case TileRole::Values:
    return products.packTokenValues(from.tokens, from.isNegated);
  case TileRole::KeyColumns:
    return products.packTokenKeyColumns(from.tokens, from.isNegated);
  case TileRole::KeyRows: {
    PackedTiles columns = tilesOf(rows, TileRole::KeyColumns, 1);
    int64_t features = tiledFeatures(from.tokens);
    if (!decay)
      return products.packTokenKeyRows(columns, features, {}, 1);
    ChunkVectors::Factors factors = factorsOf(decay.getDecay());
    return products.packTokenKeyRows(
        columns, features,
        {factors.between, vectors->index(sizeOf(from.tokens, 2))}, summands);
  }
  case TileRole::Scores:
  case TileRole::StrictScores:
  case TileRole::State:
    return std::nullopt;
  }
  llvm_unreachable("all roles are above");
}

/// Scores with the least code, in a branch that hardly ever runs.
void BlockLowering::emitCompact(ChunkScoresOp op) {
  materialize(op.getRows());
  materialize(op.getKeys());
  ChunkVectors compact = vectors->compact();
  compact.emit(op, compact.transposedKeys(op.getKeys()),
               factorsOf(op.getDecay()));
  compact.freeScratch();
}

/// Writes a buffer after all, for vectors.
void BlockLowering::materialize(Value buffer) {
  Operation *writer = made.deferred.lookup(buffer);
  if (!writer)
    return;
  ChunkVectors compact = vectors->compact();
  TypeSwitch<Operation *>(writer)
      .Case([&](ChunkPackOp pack) {
        materialize(pack.getInput());
        compact.emit(pack);
      })
      .Case([&](ChunkDecayOp decay) {
        materialize(decay.getRows());
        compact.emit(decay, factorsOf(decay.getDecay()));
      })
      .Case([&](ChunkScoresOp scores) { emitCompact(scores); });
}

/// Packs a state before a loop that reads it in tiles and updates it once: the
/// update packs it anew.
void BlockLowering::keepPacked(scf::ForOp loop) {
  for (auto update : loop.getBody()->getOps<ChunkUpdateOp>()) {
    Value state = update.getOutput();
    if (summandsOf(update).empty() || !loop.isDefinedOutsideOfLoop(state))
      continue;
    int64_t writers = 0, summands = 0;
    loop->walk([&](DestinationStyleOpInterface op) {
      writers += llvm::is_contained(op.getDpsInits(), state);
      if (auto read = dyn_cast<ChunkReadOp>(op.getOperation());
          read && read.getState() == state && !summandsOf(read).empty())
        summands = summandsOf(read)[1];
    });
    if (writers != 1 || !summands)
      continue;
    at(update);
    b.setInsertionPoint(loop);
    PackedTiles tiles = productsInTiles().packState(state, summands);
    tiles.isKept = true;
    if (tiles.isFinite) {
      tiles.flag = vectors->scratch({b.getIndexAttr(1)}, b.getI1Type());
      vectors->store(tiles.isFinite, tiles.flag, {vectors->index(0)});
    }
    made.tiles[{state, TileRole::State, summands}] = tiles;
  }
}
