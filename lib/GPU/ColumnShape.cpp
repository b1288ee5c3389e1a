//===- ColumnShape.cpp - Chunks by columns: shared memory -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnShape.h"

using namespace mlir;
using namespace mlir::linattn;

/// The next bytes of a stage or copy of the area.
ColumnShape::Place ColumnShape::take(Area area, int64_t bytes, bool isUsed) {
  Place place{area, areas[area].bytes};
  // Tiles begin where the banks do.
  areas[area].bytes += isUsed ? llvm::alignTo(bytes, 128) : 0;
  return place;
}

/// The operands as they arrive in their stages, and the operands of products
/// with the state: these overwrite the former where they fit, or are copies.
void ColumnShape::layOutOperands() {
  Area scored = isAhead() ? ScoreStages : TokenStages;
  Area valued = isAhead() ? ValueStages : TokenStages;
  arrived.query = take(TokenStages, rawTile().bytes(), reads());
  arrived.key = take(TokenStages, rawTile().bytes());
  arrived.value = take(valued, valueTile().bytes());
  arrived.decay =
      take(scored, hasChannelDecay() ? decayTile().bytes() : 4 * tokens(),
           hasChannelDecay() || hasTokenDecay());
  arrived.valueDecay = take(
      valued, columnTile(typeOf(op.getValueDecay())).bytes(), hasValueDecay());
  arrived.beta = take(scored, 4 * tokens(), op.getBeta() != Value());
  auto takeGate = [&](Value gate, int64_t summands) {
    return take(fitsPlace(typeOf(gate), summands) ? TokenStages : scored,
                gateTile(gate).bytes(), gate != Value());
  };
  arrived.reader = takeGate(readerOperand(), readerSummands());
  arrived.push = takeGate(op.getB(), pushSummands());
  arrived.write = take(valued, columnTile(typeOf(op.getWrite())).bytes(),
                       op.getWrite() != Value());

  auto make = [&](Place place, Type element, int64_t summands, bool isUsed) {
    return fitsPlace(element, summands)
               ? place
               : take(Copied, summands * tokenTile().bytes(), isUsed);
  };
  auto &tiles = layout.tiles;
  tiles.query = make(arrived.query, type(), querySummands(), reads());
  tiles.write = make(arrived.key, type(), keySummands(), true);
  // The readers of a delta rule without gates are keys.
  tiles.read = isGiven() || makesReaders()
                   ? make(arrived.reader, typeOf(readerOperand()),
                          readerSummands(), makesReaders())
                   : tiles.write;
  tiles.push = make(arrived.push, typeOf(op.getB()), pushSummands(), isGiven());
}

/// Partial and final scores, decay factors, normalizers and outputs.
void ColumnShape::layOutScores() {
  layout.sharedScores = take(Shared, blocks() * sharesBytes(), hasScores());
  layout.diagonals =
      take(Shared, diagonals() * blocks() * sharers() * blockSize * 4,
           hasDiagonal());
  layout.output = take(Shared, outputTile().bytes(), !isWide() && reads());

  layout.finalScores = take(Copied, blocks() * finalBytes(), hasScores());
  auto takeFactors = [&](bool isUsed) {
    return take(Copied, 4 * tokens(), hasScalarDecay() && isUsed);
  };
  layout.factors.query = takeFactors(reads());
  layout.factors.read = takeFactors(hasTransition());
  layout.factors.write = takeFactors(true);
  int64_t width = hasChannelDecay() ? paddedKey() : 1;
  layout.totals = take(Copied, 4 * blocks() * width, hasDecay());
  layout.keySums = take(Copied, 4 * blocks() * paddedKey(), normalizes());
  layout.normalizers =
      take(Copied, 4 * (blocks() + 1) * paddedKey(), normalizes());
}

/// Whether products with the state have operands in the stages of tokens.
bool ColumnShape::readsStages() {
  const auto &tiles = layout.tiles;
  return llvm::any_of(
      ArrayRef{tiles.query, tiles.read, tiles.write, tiles.push},
      [](Place place) { return place.area == TokenStages; });
}

void ColumnShape::layOut() {
  layOutOperands();
  layOutScores();
  // One stage more than tiles are on their way, and one for the state.
  int64_t stages = comingTiles() + 1;
  areas[TokenStages].count = stages + (isAhead() && readsStages());
  areas[ScoreStages].count = areas[ValueStages].count = stages;
  areas[Copied].count = isAhead() ? 2 : 1;
  int64_t next = 0;
  for (auto &area : areas) {
    area.begin = next;
    next += area.count * area.bytes;
  }
}
