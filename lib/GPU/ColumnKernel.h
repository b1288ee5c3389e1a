//===- ColumnKernel.h - Chunks whose warps own columns ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chunk form on tensor cores for what `ChunkKernel` does not do: delta
// rules, given rank-1 updates, decays per channel, exclusive reads,
// normalizers, feature maps, f32.
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
// With an erase gate E the keys of A and of what Δ reads are E ⊙ K, and a write
// gate multiplies V. Given updates have vectors A of their own that read and B
// that are written beside the keys. With scores X_ij = (x_i ⊙ …) · y_j of every
// pair, those of A for j < i,
//
//   R = (I − AB)⁻¹ ((A ⊙ e^c) S + AK V)             a before the decay: c_(i−1)
//   O = scale · ((Q ⊙ e^c) S + QK V + QB R)
//   S = e^(c_16) ⊙ S + (K ⊙ e^(c_16 − c))ᵀ V + (B ⊙ e^(c_16 − c))ᵀ R
//
// A decay per value column leaves the scores P_ij = q_i · k_j alone. With h the
// sum of a block's decays, by column,
//
//   O = scale · (e^h ⊙ (Q S) + Σ_levels e^(h_i − h_m) ⊙ P (e^(h_m − h_j) ⊙ V))
//   S = e^(h_16) ⊙ S + Kᵀ (e^(h_16 − h) ⊙ V)
//
// with m the last token before i's half of a level's block, as for channels.
//
// The terms that do not depend on S come first, for all blocks of the chunk at
// once, and are shared. Then each warp takes its 16 columns of the state
// through the blocks alone: S and Δ never leave its registers. Where a block
// has more warps than sixteens of columns, the others make those terms of the
// next chunk meanwhile, in the other of two copies.
//
// Increments of segments have keys and values alone. Where there is a
// transition, the matrix that a segment multiplies a state by is a state, too:
// more blocks take columns of the identity through the same blocks of tokens,
// with values of 0.
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

#include "ColumnShape.h"
#include "FloatTile.h"

namespace mlir::linattn {

/// Sums of decays over the tokens of a block, the rows or the columns of a
/// matrix: every lane has those of its own tokens, in the places of `Matrix`,
/// or just two, one per row. Summed outward from the middle, so that none is
/// the difference of two large sums.
struct DecaySums {
  /// Of blocks of one token. `exclusive`: whether `before` is computed.
  DecaySums(KernelBuilder &k, ValueRange decays, bool exclusive);
  /// As `flatten` has put them.
  DecaySums(ValueRange sums, const DecaySums &like);
  SmallVector<Value> flatten() const;
  /// From blocks of `rows` rows (1, 2, 4) to blocks of twice as many. `second`:
  /// whether this lane's rows are in the second half of those.
  void grow(KernelBuilder &k, Value rows, Value second);
  /// From 8 rows to all 16, which each lane has by itself.
  void growToAll(KernelBuilder &k) { growWithin(k, total.size() == 2 ? 1 : 2); }
  /// Whether element `i` belongs to the lower row.
  bool isLower(size_t i) const { return total.size() == 2 ? i : i / 2 % 2; }
  /// From blocks of some size to blocks of twice that. The other block is that
  /// of the lane at a distance, or this lane's where `bit` of an element's
  /// number differs. `second`: as above.
  void growAcross(KernelBuilder &k, Value distance, Value second);
  void growWithin(KernelBuilder &k, size_t bit);
  /// Runs `body` for each of so many levels, in a loop for the registers: it
  /// adds to what is carried and grows the sums.
  void growInLoop(KernelBuilder &k, int64_t levels,
                  MutableArrayRef<Value> carried,
                  function_ref<void(Value level, DecaySums &sums,
                                    MutableArrayRef<Value> carried)>
                      body);

  /// Within the block of tokens: up to this one; up to the one before; from the
  /// next one on; all.
  Matrix upTo, before, after, total;
};

/// Shared by all parts of the kernel: the values that are fixed before the
/// loop, and operations on matrices in registers.
struct ColumnFrame : ColumnShape {
  using Values = SmallVector<Value>;

  ColumnFrame(const ColumnShape &shape, KernelBuilder &k, ScanLocator &locator,
              WrittenTokens &written)
      : ColumnShape(shape), k(k), locator(locator), written(written),
        scan(k, locator.function), warp(k.shr(scan.thread, 5)) {
    bases.fill(scan.shared);
  }

  Value at(Place place) { return k.offset(bases[place.area], offsetOf(place)); }
  Value at(Place place, Value index, int64_t bytes = 4);
  Value loadFloat(Value address);
  std::pair<Value, Value> loadPair(Value address);
  Summands split(ValueRange matrix, int64_t count);
  Matrix join(const Summands &summands);
  void multiply(MutableArrayRef<Value> c, const Summands &a, const Summands &b,
                int64_t terms, int64_t halves = 2);
  Matrix product(const Summands &a, const Summands &b);
  /// e^c, 22 bits of it.
  Value approximateExp(Value c);
  /// By what a token is decayed that the state takes, or that reads it: of one
  /// summand of 16 bits no more than 22 bits of the factor matter.
  Value decayFactor(Value c);
  /// By what something is decayed that an output depends on, but no state.
  Value outputFactor(Value c) {
    return isWide() ? k.exp(c) : approximateExp(c);
  }
  /// Channels of the normalizer, divided among the threads.
  void forEachChannel(function_ref<void(Value channel)> body);

  KernelBuilder &k;
  ScanLocator &locator;
  WrittenTokens &written;
  ScanBlock scan;
  /// Of the areas: of the stages of this chunk, of the copy of its scores.
  std::array<Value, areaCount> bases;
  Value warp;
  Value headDecay; ///< Null unless all tokens of the head have the same.
  GlobalView bonus;
  ScanBlock::Tokens arrays; ///< Of the tokens, in global memory.
};

/// The part of a chunk that needs no state: scores, decayed tokens, inverses.
class ColumnScores : ColumnFrame {
public:
  /// Of a chunk, `left` tokens before the end, by this lane.
  ColumnScores(const ColumnFrame &frame, Value left, Value lane)
      : ColumnFrame(frame), left(left), lane(lane), row(k.shr(lane, 2)),
        pair(k.band(lane, 3)) {}

  void run();

private:
  /// 16 tokens and 16 channels of what reads and what is read. Readers of a
  /// delta rule without an erase gate are keys; others than given updates push
  /// nothing.
  struct Tokens {
    Matrix query, key, reader, push;
  };
  /// The same as operands of products.
  struct Sides {
    Summands query, key, reader, push;
  };

  void shareScores();
  Values scoreStep(Value block, Value step, ValueRange carried);
  Values loadFragment(Place place, Value block, Value step);
  Matrix loadWide(Place place, Value block, Value step);
  Matrix loadTokens(Place place, Value block, Value step, bool areWritten);
  Matrix loadGate(Place place, Type element, Value block, Value step);
  Matrix loadDecays(Value block, Value step);
  Tokens loadSides(Value block, Value step, Sides &taken);
  void makeSides(Value block, Value step, const Tokens &tokens, Sides &sides);
  void
  forEachScore(const Sides &sides, MutableArrayRef<Value> scores,
               function_ref<void(MutableArrayRef<Value> c, const Summands &left,
                                 const Summands &right, int64_t terms)>
                   body);
  void writeTokens(Value block, Value step);
  void awaitReads();
  void storeSummands(Place place, Value block, Value step,
                     const Summands &summands);
  void scoreLevels(Value block, Value step, const Tokens &tokens,
                   MutableArrayRef<Value> scores);
  void scoreLevel(Value rows, Value reads, const DecaySums &sums,
                  const Tokens &tokens, MutableArrayRef<Value> scores);
  Sides decaySides(const DecaySums &sums, const Tokens &tokens, bool isTop,
                   function_ref<Value(size_t i, Value x, Value y)> choose);
  void decayTokens(Value block, Value step, const DecaySums &sums,
                   const Tokens &tokens);
  void addDiagonals(Value step, const Tokens &tokens,
                    MutableArrayRef<Value> sums);
  void sumKeys(Value block, Value step, Matrix key);
  void storeKeySums(Value block, Value step, const Matrix &key);
  void storeChannels(Place place, Value block, Value step, ValueRange x);
  void storeTotals(const DecaySums &sums, Value block, Value step);
  void storeScores(Value block, Value sharer, ValueRange sums);

  void meet();
  void finishScores();
  Value blockDecay(Value token);
  void finishBlock(Value block, Value firstRow, Value lane, Value exists);
  Values finishRows(Value block, Value firstRow, Value column, Value first,
                    Value exists, Value g);
  Value betasOf(Value block);
  Value sumShares(Value shares, int64_t matrix, int64_t row);
  Value diagonalAt(int64_t which, Value block, Value sharer, Value token);
  Value sumDiagonal(int64_t which, Value block, Value column);
  void sumBlockDecays(Value block, Value column, Value exists, Value g);
  Values solve(ValueRange a, Value column, Value first);
  void sumNormalizer();

  Value left, lane;
  Value row, pair; ///< lane / 4, lane % 4: places of a matrix's elements.
};

/// The state of a warp's columns through the blocks of a chunk.
class ColumnSteps : ColumnFrame {
public:
  /// Of chunk `number`, by this lane.
  ColumnSteps(const ColumnFrame &frame, Value number, Value lane);

  Values run(ValueRange state);

private:
  Values advance(Value block, ValueRange state);
  /// A matrix of scores, whose rows are tokens.
  Matrix loadScores(Value address);
  using TileRows = SmallVector<LanePointer>;
  TileRows rowsOf(Place tiles, Value block, int64_t summands, Value place);
  Summands loadStep(TileRows &rows, int64_t step, bool transposed = false);
  Value placeOfColumns(Type element);
  Values loadColumns(Place tile, Type element, Value place, Value block);
  Matrix loadGates(Place tile, Value gate, Value place, Value block);
  Summands loadValues(Value block);
  Summands loadScore(Value block, Score score, int64_t count);
  Matrix decayRead(Matrix read, Value block);
  Matrix solveDelta(Value block, ValueRange read, Matrix values);
  Matrix solveGiven(Value block, Matrix read, const Summands &values);
  Values tokenFactors(Place factors, Value block);
  Summands loadIncrement(Value block);
  Summands scaleTokens(Matrix written, Value block);
  void scaleRows(MutableArrayRef<Value> o, Value block);
  Summands normalizerColumn(Value block, int64_t step);
  Values updateState(Value block, ValueRange state, const Summands &delta,
                     const Summands &pushed = {}, ValueRange decayedRows = {});
  Values advanceColumns(Value block, ValueRange state);
  Matrix readColumns(Value block, ValueRange state);
  void addLevel(Value tokens, Value scores, ValueRange values,
                const DecaySums *sums, MutableArrayRef<Value> o);
  void addHalves(Value scores, ValueRange values, const DecaySums &sums,
                 MutableArrayRef<Value> o);
  void addRead(ValueRange scores, ValueRange values, const DecaySums *sums,
               MutableArrayRef<Value> o);
  Matrix transposed(ValueRange matrix);
  void writeOutput(Value block, Values o, ValueRange denominators);
  void writeRows(Value first, ValueRange o);

  Value number, lane;
  Value row, pair; ///< lane / 4, lane % 4: places of a matrix's elements.
  // Places of this lane for ldmatrix, and their parts.
  Value paired, bit3;
  Value tokenPlace, transposedPlace, valuePlace, gatePlace, decayPlace;
};

/// The kernel: copies, the loop over chunks, and the state before and after it.
class ColumnKernel : ColumnFrame {
public:
  /// Begins the code of the kernel, whose arguments `locator.function` has.
  ColumnKernel(const ColumnShape &shape, KernelBuilder &k, ScanLocator &locator,
               WrittenTokens &written);

  void run();

private:
  void findTokens();
  TileStages stagesOf(Area area);
  StagePlace stagePlace(Place place);
  TilePipeline makePipeline(Area area, Value thread, int64_t threads);
  void copyScored(TilePipeline &tiles);
  void copyValues(TilePipeline &tiles);
  void copyVectors(TilePipeline &tiles, const TilePipeline::Filter &filter);
  void copyColumns(TilePipeline &tiles, Value gate, Place place,
                   const TilePipeline::Filter &filter);
  void copyScalars(const TilePipeline::Arrival &arrival, const Rows &gate,
                   Place place, Type element, Value exists);
  void runChunks();
  void runAhead();
  void runScores();
  void runStates();
  ColumnFrame frameOf(Value number);
  void makeScores(const ColumnFrame &frame, Value number);
  Values advance(const ColumnFrame &frame, Value number, ValueRange state);

  void
  forEachState(const GlobalView &view,
               function_ref<void(int64_t, Value address, Value exists)> body);
  Value stateColumn();
  Value stateChannel(int64_t i);
  Values makeIdentity();
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
