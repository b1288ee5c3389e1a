//===- ColumnKernel.h - Chunks whose warps own columns ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chunk form on tensor cores for what `ChunkKernel` does not do: the delta
// rule, decays per channel, exclusive reads, normalizers, feature maps, f32.
//
// Tokens arrive in chunks; within one the recurrence goes by blocks of 16, the
// size of a product. With c the sum of a block's decays up to a token, in the
// logarithm, the block of queries Q, keys K and values V does
//
//   P_ij = (q_i ⊙ e^(c_i − c_j)) · k_j,              j ≤ i
//   A_ij = β_i (k_i ⊙ e^(c_i − c_j)) · k_j,          j < i
//   Δ    = (I + A)⁻¹ β (V − (K ⊙ e^c) S),            additive: Δ = V
//   O    = scale · ((Q ⊙ e^c) S + P Δ)
//   S    = e^(c_16) ⊙ S + (K ⊙ e^(c_16 − c))ᵀ Δ
//
// The terms that do not depend on S come first, for all blocks of the chunk at
// once, and are shared. Then each warp takes its 16 columns of the state
// through the blocks alone: S and Δ never leave its registers.
//
// All is algebra of 16×16 matrices in the registers of a warp. Where S stands
// as columns × channels, the registers of an accumulator are those of either
// operand, and every product is C += A Bᵀ.
//
// Products keep the state's f32 precision: an operand wider than 16 bits is
// split into three 16-bit summands (bf16x3), and six of the nine products
// count. For f32 tokens the schedule gives the number of summands.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_COLUMNKERNEL_H
#define LINATTN_LIB_GPU_COLUMNKERNEL_H

#include "FloatTile.h"
#include "ScanKernel.h"

namespace mlir::linattn {

/// Tokens of a block; columns of a warp; channels of a product.
constexpr int64_t blockSize = 16;
/// Fewer warps would not share the work before S well.
constexpr int64_t fewestColumnWarps = 4, mostColumnWarps = 8;

/// Sums of decays over the rows of a block: every lane has those of its own
/// rows, in the places of `Matrix`, or just two, one per row. Summed outward
/// from the middle, so that none is the difference of two large sums.
struct RowSums {
  /// Of blocks of one row. `exclusive`: whether `before` is computed.
  RowSums(KernelBuilder &k, ValueRange decays, bool exclusive);
  /// As `flatten` has put them.
  RowSums(ValueRange sums, const RowSums &like);
  SmallVector<Value> flatten() const;
  /// From blocks of `rows` rows (1, 2, 4) to blocks of twice as many. `second`:
  /// whether this lane's rows are in the second half of those.
  void grow(KernelBuilder &k, Value rows, Value second);
  /// From 8 rows to all 16, which each lane has by itself.
  void growToAll(KernelBuilder &k);
  /// Whether element `i` belongs to the lower row.
  bool isLower(size_t i) const { return total.size() == 2 ? i : i / 2 % 2; }
  size_t otherRow(size_t i) const { return i ^ (total.size() == 2 ? 1 : 2); }

  /// Within the block of rows: up to this one; up to the one before; from the
  /// next one on; all.
  Matrix upTo, before, after, total;
};

struct ColumnShape : ScanShape {
  explicit ColumnShape(const ScanShape &shape) : ScanShape(shape) { layOut(); }

  /// Of one sequence and head.
  KernelWork work();

  //===--------------------------------------------------------------------===//
  // Properties of the scan
  //===--------------------------------------------------------------------===//

  bool isDelta() { return getRule(op).correctsValues(); }
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
  /// The diagonal of P is not that of a product of matrices.
  bool hasDiagonal() { return isExclusive() || (reads() && hasChannelDecay()); }
  /// Products take queries and keys as they arrive.
  bool takesTokens() { return !isWide() && !isMapped() && !hasChannelDecay(); }
  /// Summands of what the state depends on.
  int64_t stateSummands() { return schedule.getSummands(); }
  /// Of the state and of scores, for outputs: of 16 bits, their own rounding is
  /// nearly all that they may err by. Of queries. Of keys.
  int64_t readSummands() {
    return isWide() ? stateSummands() : std::min<int64_t>(stateSummands(), 2);
  }
  int64_t querySummands() { return takesTokens() ? 1 : readSummands(); }
  int64_t keySummands() { return takesTokens() ? 1 : stateSummands(); }

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  int64_t tokens() { return schedule.getChunk(); }
  int64_t blocks() { return tokens() / blockSize; }
  int64_t paddedKey() { return llvm::alignTo(keySize(), 32); }
  int64_t steps() { return paddedKey() / blockSize; }
  /// Warps that divide the channels of a block among them.
  int64_t sharers() { return std::min(warps() / blocks(), steps()); }

  SharedTile tokenTile() { return {tokens(), paddedKey()}; }
  SharedTile rawTile() { return isWide() ? channelTile() : tokenTile(); }
  SharedTile channelTile() {
    return {tokens(), 2 * paddedKey(), /*pairs=*/true};
  }
  SharedTile valueTile() { return {tokens(), slice() * elementBytes() / 2}; }
  /// Of decays per channel, as they arrive.
  SharedTile decayTile() {
    return decayType().isF32() ? channelTile() : tokenTile();
  }
  SharedTile outputTile() { return {blockSize, slice()}; }

  // Scores are matrices of f32: of a block P, and A or what it becomes. Pairs
  // of a row are read from eight rows at once, and two blocks at once.
  static constexpr int64_t scorePitch = 24 * 4;
  static constexpr int64_t scoreBytes = blockSize * scorePitch;
  int64_t scoreMatrices() { return isDelta() ? 2 : 1; }
  int64_t finalBytes() { return scoreMatrices() * scoreBytes + 64; }
  int64_t shareBytes() { return scoreMatrices() * scoreBytes; }
  int64_t sharesBytes() { return sharers() * shareBytes() + 64; }
  /// Numbers that are carried behind the state: what a segment decays by, for
  /// all channels or for those of a thread.
  int64_t factorCount() {
    if (reads() || !hasDecay())
      return 0;
    return hasChannelDecay() ? llvm::divideCeil(paddedKey(), warps() * 32) : 1;
  }
  Type betaType() { return gateTypeOf(op, op.getBeta()); }

  /// Offsets in bytes, within a stage.
  struct {
    int64_t key, value, decay, beta, bytes;
  } inStage;
  /// Offsets in shared memory.
  struct {
    struct {
      int64_t query, read, write;
    } tiles, factors;                  ///< Of decayed or mapped tokens.
    int64_t sharedScores, finalScores; ///< By block: P, then A or its inverse.
    int64_t diagonals, totals, keySums, normalizers, output, bytes;
  } layout;

private:
  void layOut();
};

/// Shared by all parts of the kernel: the values that are fixed before the
/// loop, and operations on matrices in registers.
struct ColumnFrame : ColumnShape {
  using Values = SmallVector<Value>;

  ColumnFrame(const ColumnShape &shape, KernelBuilder &k, ScanLocator &locator,
              WrittenTokens &written)
      : ColumnShape(shape), k(k), locator(locator), written(written),
        scan(k, locator.function), warp(k.shr(scan.thread, 5)) {}

  Value at(int64_t offset, Value index, int64_t bytes = 4);
  Value loadFloat(Value address);
  std::pair<Value, Value> loadPair(Value address);
  Summands split(ValueRange matrix, int64_t count);
  Matrix join(const Summands &summands);
  void multiply(MutableArrayRef<Value> c, const Summands &a, const Summands &b,
                int64_t terms, int64_t halves = 2);
  Matrix product(const Summands &a, const Summands &b);
  /// Channels of the normalizer, divided among the threads.
  void forEachChannel(function_ref<void(Value channel)> body);

  KernelBuilder &k;
  ScanLocator &locator;
  WrittenTokens &written;
  ScanBlock scan;
  Value warp;
  Value headDecay; ///< Null unless all tokens of the head have the same.
  GlobalView bonus;
  Rows output;
};

/// The part of a chunk that needs no state: scores, decayed tokens, inverses.
class ColumnScores : ColumnFrame {
public:
  /// Of the chunk at `stage`, `left` tokens before the end, by this lane.
  ColumnScores(const ColumnFrame &frame, Value stage, Value left, Value lane)
      : ColumnFrame(frame), stage(stage), left(left), lane(lane),
        row(k.shr(lane, 2)), pair(k.band(lane, 3)) {}

  void run();

private:
  void shareScores();
  Values scoreStep(Value block, Value step, ValueRange carried);
  Values loadFragment(Value base, Value block, Value step);
  Matrix loadWide(Value base, Value block, Value step);
  Matrix loadTokens(Value base, Value block, Value step, bool areWritten);
  Matrix loadDecays(Value block, Value step);
  void writeTokens(Value block, Value step);
  void storeSummands(int64_t offset, Value block, Value step,
                     const Summands &summands);
  void scoreLevels(Value block, Value step, const Matrix &q, const Matrix &key,
                   MutableArrayRef<Value> p, MutableArrayRef<Value> a);
  void scoreLevel(Value rows, Value reads, const RowSums &sums, const Matrix &q,
                  const Matrix &key, MutableArrayRef<Value> p,
                  MutableArrayRef<Value> a);
  void addDiagonal(Value step, const Matrix &q, const Matrix &key,
                   MutableArrayRef<Value> diagonal);
  void sumKeys(Value block, Value step, Matrix key);
  void storeKeySums(Value block, Value step, const Matrix &key);
  void storeChannels(int64_t offset, Value block, Value step, ValueRange x);
  Value approximateExp(Value c);
  Value decayFactor(Value c);
  void storeTotals(const RowSums &sums, Value block, Value step);
  void storeScores(Value block, Value sharer, ValueRange sums);

  void finishScores();
  Value blockDecay(Value token);
  void finishBlock(Value block, Value lane, Value exists);
  Value sumShares(Value shares, int64_t matrix, int64_t row);
  Value sumDiagonal(Value block, Value column);
  void sumBlockDecays(Value block, Value column, Value exists, Value g);
  Values solve(ValueRange a, Value column, Value first);
  void sumNormalizer();

  Value stage, left, lane;
  Value row, pair; ///< lane / 4, lane % 4: places of a matrix's elements.
};

/// The state of a warp's columns through the blocks of a chunk.
class ColumnSteps : ColumnFrame {
public:
  /// Of chunk `number`, at `stage`, by this lane.
  ColumnSteps(const ColumnFrame &frame, Value number, Value stage, Value lane);

  Values run(ValueRange state);

private:
  Values advance(Value block, ValueRange state);
  /// A matrix of scores, whose rows are tokens.
  Matrix loadScores(Value address);
  Summands loadValues(Value block);
  Matrix subtractRead(Matrix values, ValueRange read, Value block);
  Values tokenFactors(int64_t offset, Value block);
  Summands loadIncrement(Value block);
  Summands scaleTokens(Matrix written, Value block);
  void scaleRows(MutableArrayRef<Value> o, Value block);
  Summands normalizerColumn(Value block, int64_t step);
  Values updateState(Value block, ValueRange state, const Summands &delta);
  void writeOutput(Value block, Values o, ValueRange denominators);
  void writeRows(Value first, ValueRange o);

  Value number, stage, lane;
  Value row, pair; ///< lane / 4, lane % 4: places of a matrix's elements.
  // Places of this lane for ldmatrix.
  Value tokenPlace, transposedPlace, valuePlace;
};

/// The kernel: copies, the loop over chunks, and the state before and after it.
class ColumnKernel : ColumnFrame {
public:
  /// Begins the code of the kernel, whose arguments `locator.function` has.
  ColumnKernel(const ColumnShape &shape, KernelBuilder &k, ScanLocator &locator,
               WrittenTokens &written);

  void run();

private:
  void prepareCopies(TilePipeline &tiles);
  void copyScalars(const TilePipeline::Arrival &arrival, const Rows &gate,
                   int64_t offset, Type element, Value exists);
  void runChunks(TilePipeline &tiles);
  Values chunk(Value number, Value stage, ValueRange state);

  void
  forEachState(const GlobalView &view,
               function_ref<void(int64_t, Value address, Value exists)> body);
  Values loadState();
  void storeState(ValueRange state);
  void storeFactors(ValueRange factors);
  Value normalizerAt(const GlobalView &view, Value channel);
  void loadNormalizer();
  void storeNormalizer();

  Value lane, row, pair; ///< lane / 4, lane % 4.
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_COLUMNKERNEL_H
