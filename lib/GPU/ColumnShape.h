//===- ColumnShape.h - Sizes of chunks by columns ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties, sizes and shared memory of a chunk kernel by columns, from the
// scan and its schedule.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_COLUMNSHAPE_H
#define LINATTN_LIB_GPU_COLUMNSHAPE_H

#include "ScanKernel.h"
#include "llvm/ADT/bit.h"

namespace mlir::linattn {

/// Tokens of a block; columns of a warp; channels of a product.
constexpr int64_t blockSize = 16;
constexpr double log2e = 1.44269504088896341;
/// Fewer warps would not share the work before S well.
constexpr int64_t fewestColumnWarps = 4, mostColumnWarps = 8;

struct ColumnShape : ScanShape {
  explicit ColumnShape(const ScanShape &shape) : ScanShape(shape) { layOut(); }

  /// Of one sequence and head.
  KernelWork work();

  //===--------------------------------------------------------------------===//
  // Properties of the scan
  //===--------------------------------------------------------------------===//

  bool isDelta() { return getRule(op).correctsValues(); }
  /// The vectors of the rank-1 updates are the operands a and b.
  bool isGiven() { return getRule(op).isGiven; }
  /// Something reads the state for what is written.
  bool hasTransition() { return getRule(op).couplesRows(); }
  /// Something reads the state: outputs, or a transition.
  bool hasScores() { return reads() || hasTransition(); }
  /// That reads it before the decay of its token.
  bool readsBefore() { return op.getTransition() == Transition::Before; }
  bool isExclusive() {
    return reads() && op.getReadout() == Readout::Exclusive;
  }
  /// One number per token, by itself or for all tokens of the head.
  bool hasScalarDecay() { return hasDecay() && !hasChannelDecay(); }
  /// Decays per channel are logarithms to base 2 in registers. Only the totals
  /// of blocks are used without `approximateExp`.
  bool hasBinaryDecays() {
    return hasChannelDecay() && !isWide() && stateSummands() == 1;
  }
  bool normalizes() { return op.getNormalizer() != Value(); }
  bool hasValueDecay() { return op.getValueDecay() != Value(); }
  /// The diagonal of P is not that of a product of matrices.
  bool hasDiagonal() { return isExclusive() || (reads() && hasChannelDecay()); }
  /// Of queries by keys, and by b; an exclusive read has none of the latter.
  int64_t diagonals() {
    return !hasDiagonal() ? 0 : isGiven() && !isExclusive() ? 2 : 1;
  }
  /// Products take queries and keys as they arrive.
  bool takesTokens() { return !isWide() && !isMapped() && !hasChannelDecay(); }
  /// And the given vectors.
  bool takesVectors() {
    return isGiven() && takesTokens() && typeOf(op.getA()) == type() &&
           typeOf(op.getB()) == type();
  }
  /// Whether the kernel computes the readers of the transition: they are
  /// neither tokens as they arrive nor the written keys.
  bool makesReaders() {
    if (isGiven())
      return !takesVectors();
    return op.getErase() || (isDelta() && hasChannelDecay());
  }
  /// The operand that readers are computed from, beside the keys or alone.
  Value readerOperand() { return isGiven() ? op.getA() : op.getErase(); }
  /// Summands of what the state depends on.
  int64_t stateSummands() { return schedule.getSummands(); }
  /// Of the state and of scores, for outputs: of 16 bits, their own rounding is
  /// nearly all that they may err by. Of queries. Of keys.
  int64_t readSummands() {
    return isWide() ? stateSummands() : std::min<int64_t>(stateSummands(), 2);
  }
  int64_t querySummands() { return takesTokens() ? 1 : readSummands(); }
  int64_t keySummands() { return takesTokens() ? 1 : stateSummands(); }
  int64_t pushSummands() { return takesVectors() ? 1 : stateSummands(); }
  int64_t readerSummands() {
    if (makesReaders())
      return stateSummands();
    return isGiven() ? 1 : keySummands();
  }

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  /// Warps that own columns, and those that make scores: the same, or others,
  /// which are one chunk ahead.
  int64_t stateWarps() { return slice() / blockSize; }
  bool isAhead() { return warps() > stateWarps(); }
  int64_t scoreWarps() { return isAhead() ? warps() - stateWarps() : warps(); }

  /// Chunks on their way.
  int64_t comingTiles() { return stages() - (isAhead() ? 2 : 1); }

  int64_t tokens() { return schedule.getChunk(); }
  int64_t blocks() { return tokens() / blockSize; }
  int64_t paddedKey() { return llvm::alignTo(keySize(), 32); }
  int64_t steps() { return paddedKey() / blockSize; }
  /// Warps that divide the channels of a block among them.
  int64_t sharers() { return std::min(scoreWarps() / blocks(), steps()); }

  /// Rows of a block's scores that a warp finishes: all of a system's, or of
  /// those that sum decays from row to row.
  int64_t finishedRows() {
    if (hasTransition() || hasScalarDecay())
      return blockSize;
    int64_t warps = scoreWarps() / llvm::divideCeil(blocks(), 2);
    return std::max(blockSize / int64_t(llvm::bit_floor(uint64_t(warps))),
                    int64_t(1));
  }

  SharedTile tokenTile() { return {tokens(), paddedKey()}; }
  SharedTile rawTile() { return isWide() ? channelTile() : tokenTile(); }
  SharedTile channelTile() {
    return {tokens(), 2 * paddedKey(), /*pairs=*/true};
  }
  SharedTile valueTile() { return columnTile(type()); }
  /// Of value columns, as they arrive.
  SharedTile columnTile(Type element) {
    return {tokens(), slice() * (element.isF32() ? 2 : 1)};
  }
  /// Of gates per channel, as they arrive.
  SharedTile gateTile(Type element) {
    return element.isF32() ? channelTile() : tokenTile();
  }
  SharedTile gateTile(Value gate) { return gateTile(typeOf(gate)); }
  SharedTile decayTile() { return gateTile(decayType()); }
  SharedTile outputTile() { return {blockSize, slice()}; }

  // Scores are matrices of f32: of queries and of what reads for a transition,
  // by keys, then by b; the last of a transition becomes an inverse. Pairs of a
  // row are read from eight rows at once, and two blocks at once.
  static constexpr int64_t scorePitch = 24 * 4;
  static constexpr int64_t scoreBytes = blockSize * scorePitch;
  enum Score : int64_t { QueryKey, ReaderKey, QueryPush, ReaderPush };
  int64_t scoreMatrices() { return isGiven() ? 4 : isDelta() ? 2 : 1; }
  /// Whether a matrix of scores is computed: those of queries only for outputs.
  bool makes(int64_t score) { return reads() || score % 2; }
  Score inverted() { return isGiven() ? ReaderPush : ReaderKey; }
  int64_t finalBytes() { return scoreMatrices() * scoreBytes + 64; }
  int64_t shareBytes() { return scoreMatrices() * scoreBytes; }
  int64_t sharesBytes() { return sharers() * shareBytes() + 64; }
  /// Numbers that are carried behind the state: what a segment decays by, for
  /// all channels or for those of a thread.
  int64_t factorCount() {
    if (hasScores() || !hasDecay())
      return 0;
    return hasChannelDecay() ? llvm::divideCeil(paddedKey(), warps() * 32) : 1;
  }
  Type typeOf(Value gate) { return gateTypeOf(op, gate); }
  Type betaType() { return typeOf(op.getBeta()); }

  //===--------------------------------------------------------------------===//
  // Shared memory
  //===--------------------------------------------------------------------===//

  /// Rings of stages for what arrives, memory of the block, and what scores are
  /// made into for the state. Where scores are made ahead there are three
  /// rings: of tokens, which the state reads as well, of operands of scores
  /// alone, and of values; and two copies of the last area. Else tokens have
  /// the one ring.
  enum Area { TokenStages, ScoreStages, ValueStages, Shared, Copied };
  static constexpr int64_t areaCount = Copied + 1;
  struct {
    int64_t begin = 0, bytes = 0, count = 1;
  } areas[areaCount];
  /// Bytes from the beginning of a stage, or of a copy, of an area.
  struct Place {
    Area area;
    int64_t offset;

    Place operator+(int64_t bytes) const { return {area, offset + bytes}; }
  };
  /// From the address of the stage, or copy, where its area begins at 0.
  int64_t offsetOf(Place place) {
    return areas[place.area].begin + place.offset;
  }
  int64_t sharedBytes() {
    return areas[Copied].begin + areas[Copied].count * areas[Copied].bytes;
  }
  bool readsStages();
  /// Whether an operand of these elements is overwritten in its stage by the
  /// summands that are computed from it.
  bool fitsPlace(Type element, int64_t summands) {
    return !isWide() && summands == 1 && element == type();
  }

  /// In stages.
  struct {
    Place query, key, value, decay, valueDecay, beta, reader, push, write;
  } arrived;
  struct {
    struct {
      Place query, read, write, push;
    } tiles, factors;                ///< Of decayed or mapped tokens.
    Place sharedScores, finalScores; ///< By block, in the order of `Score`.
    Place diagonals, totals, keySums, normalizers, output;
  } layout;

private:
  Place take(Area area, int64_t bytes, bool isUsed = true);
  void layOutOperands();
  void layOutScores();
  void layOut();
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_COLUMNSHAPE_H
