//===- Prediction.cpp - How long kernels take -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Prediction.h"
#include "ChunkKernel.h"
#include "ColumnShape.h"
#include "QuadraticKernel.h"
#include "ReadKernel.h"
#include "StateKernel.h"

using namespace mlir;
using namespace mlir::linattn;

// Estimates, to be replaced by measurements: the time from one kernel to the
// next; that of a chunk whose data are there, of a block of 16 tokens within
// one, of a tile that waits for no tile before it, of a token of the
// recurrence; that of one load.
constexpr double launchSeconds = 3e-6, chunkSeconds = 2e-6, blockSeconds = 1e-6,
                 tileSeconds = 1e-6, tokenSeconds = 4e-7, loadSeconds = 1e-6;
/// The time of a chunk whose scores other warps have made, over that of one
/// whose warps make them; of delta rules. By the model of the schedulers 0.57
/// to 0.69, and 0.69 to 0.81.
constexpr double aheadLatency = 0.6, aheadDeltaLatency = 0.75;
/// A multiprocessor's largest share of the bandwidth, relative to an equal
/// share.
constexpr double bandwidthShares = 2;

int64_t mlir::linattn::countProducts(int64_t a, int64_t b, int64_t terms) {
  int64_t count = 0;
  for (int64_t i = 0; i < a; ++i)
    count += std::clamp<int64_t>(terms - i, 0, b);
  return count;
}

static double bytesOf(Value buffer, const ExpectedSizes &sizes) {
  if (!buffer)
    return 0;
  auto type = cast<MemRefType>(buffer.getType());
  double bytes = type.getElementTypeBitWidth() / 8.0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    bytes *= std::max<int64_t>(sizes.sizeOf(buffer, dim), 0);
  return bytes;
}

/// Of the states of all sequences, of a pool those that have one.
static double stateBytesOf(ScanOp op, const ExpectedSizes &sizes) {
  double bytes = 4.0 * std::max<int64_t>(sizes.sizeOf(sequencesOf(op), 0), 0);
  for (int64_t dim : {1, 2, 3})
    bytes *= staticSize(op.getState(), dim);
  return bytes;
}

double mlir::linattn::operandBytes(ScanOp op, const ExpectedSizes &sizes) {
  double bytes = 2 * stateBytesOf(op, sizes);
  for (Value buffer :
       {op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
        op.getDecay(), op.getValueDecay(), op.getBeta(), op.getA(), op.getB(),
        op.getErase(), op.getWrite()})
    bytes += bytesOf(buffer, sizes);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

KernelWork ChunkShape::work() {
  KernelWork work{groupSize() * slices(), threads(), allBytes()};
  double key = paddedKey(), columns = std::min(slice(), valueSize());
  double written = 2.0 * chunkTokens * key * slice();
  work.operations = written * keySummands();
  // Each group of warps makes the scores of all rows.
  if (reads())
    work.operations += readSummands() * written +
                       2.0 * chunkTokens * chunkTokens *
                           (groups() * key + readSummands() * slice());
  work.bytes = 2.0 * chunkTokens * (reads() ? 2 : 1) * (keySize() + columns);
  work.bytes += hasTokenDecay() ? 4 * chunkTokens : 0;
  work.stateBytes = 4 * keySize() * columns;
  // Warpgroups that advance the state wait for no outputs.
  work.latency = reads() && !usesWarpgroups() ? chunkSeconds : chunkSeconds / 2;
  return work;
}

KernelWork ColumnShape::work() {
  KernelWork work{groupSize() * slices() + transitionSlices(), threads(),
                  sharedBytes()};
  int64_t all = stateSummands();
  double block = 2.0 * blockSize * blockSize; // Times channels or columns.
  bool splitsValues =
      isDelta() || hasScalarDecay() || isWide() || op.getWrite();
  int64_t valueSummands = splitsValues ? all : 1;
  double products = countProducts(valueSummands, keySummands(), all);
  if (hasTransition())
    products += countProducts(all, readerSummands(), all);
  if (isGiven())
    products += countProducts(all, pushSummands(), all);
  double scores = 0;
  if (reads())
    products += countProducts(querySummands(), readSummands(), readSummands());
  if (hasScores()) {
    int64_t terms = readSummands();
    scores = countProducts(terms, all, terms) * (hasChannelDecay() ? 4 : 1);
    scores *= reads() ? scoreMatrices() : scoreMatrices() / 2;
  }
  work.operations = blocks() * block * paddedKey() *
                    (products * slice() / blockSize + scores);
  double columns = std::min(slice(), valueSize());
  work.bytes = double(tokens()) * elementBytes() * (reads() ? 2 : 1) *
               (keySize() + columns);
  if (op.getDecay() && rankOf(op.getDecay()) > 1)
    work.bytes += decayType().getIntOrFloatBitWidth() / 8.0 * tokens() *
                  (hasChannelDecay() ? keySize() : 1);
  auto addVector = [&](Value gate, double size) {
    if (gate)
      work.bytes +=
          typeOf(gate).getIntOrFloatBitWidth() / 8.0 * tokens() * size;
  };
  addVector(readerOperand(), keySize());
  addVector(op.getB(), keySize());
  addVector(op.getWrite(), columns);
  work.stateBytes = 4 * keySize() * columns;
  double ahead = hasTransition() ? aheadDeltaLatency : aheadLatency;
  work.latency = (hasScores() ? 1 : 0.5) * (isAhead() ? ahead : 1) *
                 (chunkSeconds / 2 + blocks() * blockSeconds);
  return work;
}

/// The token kernel, as a block with chunks of one token.
static KernelWork tokenWork(ScanOp op, ScheduleAttr schedule) {
  int64_t keySize = staticSize(op.getState(), 2);
  double columns =
      std::min(schedule.getValueSlice(), staticSize(op.getState(), 3));
  KernelWork work;
  work.blocks =
      llvm::divideCeil(staticSize(op.getState(), 3), schedule.getValueSlice());
  work.threads = schedule.getWarps() * 32;
  int64_t bytes = getElementTypeOrSelf(op.getQuery()).getIntOrFloatBitWidth();
  work.bytes = bytes / 8.0 * (keySize + columns) * (1 + groupSizeOf(op));
  work.stateBytes = 8 * keySize * columns;
  work.latency = tokenSeconds;
  return work;
}

KernelWork QuadraticShape::work() {
  int64_t count = staticSize(op.getQuery(), 2);
  int64_t all = staticSize(op.getKey(), 2);
  int64_t blocks = llvm::divideCeil(count, queries()), tiles = 0;
  for (int64_t block = 1; block <= blocks; ++block) {
    int64_t visible = op.getCausal() ? all - count + block * queries() : all;
    tiles += llvm::divideCeil(std::clamp<int64_t>(visible, 0, all), keys());
  }
  KernelWork work{blocks, threads(), sharedBytes()};
  work.chunks = blocks ? llvm::divideCeil(tiles, blocks) : 0;
  int64_t tokens = tokenSummands(), weights = weightSummands();
  double scores = countProducts(tokens, tokens, tokens) * paddedKey();
  double outputs = countProducts(weights, tokens, weights) * paddedValue();
  work.operations = 2.0 * queries() * keys() * (scores + outputs);
  work.bytes = double(keys()) * (keySize() + valueSize()) * elementBytes();
  work.stateBytes =
      double(queries()) * (keySize() + valueSize()) * elementBytes();
  work.latency = tileSeconds;
  return work;
}

KernelWork StateShape::work() {
  KernelWork work{slices(), threads(), sharedBytes()};
  work.chunks = llvm::divideCeil(staticSize(op.getKey(), 2), tokens());
  double products = countProducts(isWide() || isMapped() ? summands() : 1,
                                  isWide() ? summands() : 1, summands());
  work.operations = 2.0 * tokens() * paddedKey() * slice() * products;
  double columns = std::min(slice(), valueSize());
  work.bytes = double(tokens()) * (keySize() + columns) * elementBytes();
  work.stateBytes = 8 * keySize() * columns; // Read and written.
  work.latency = tileSeconds;
  return work;
}

KernelWork ReadShape::work() {
  int64_t count = llvm::divideCeil(staticSize(op.getQuery(), 2), tileQueries);
  int64_t blocks = llvm::divideCeil(count, blockTiles) * slices();
  KernelWork work{blocks, threads(), sharedBytes()};
  work.chunks = std::min(count, blockTiles);
  double products = countProducts(isWide() || isMapped() ? summands() : 1,
                                  summands(), summands());
  work.operations = 2.0 * tileQueries * paddedKey() * slice() * products;
  double columns = std::min(slice(), valueSize());
  work.bytes = double(tileQueries) * (keySize() + columns) * elementBytes();
  work.stateBytes = 4 * keySize() * columns;
  work.latency = tileSeconds;
  return work;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Waves of blocks, each with its chunks in order. Blocks on one multiprocessor
/// share its rates.
static double secondsOf(const KernelWork &work, const GPUMachine &machine) {
  double sms = machine.multiprocessors;
  int64_t resident = std::clamp<int64_t>(65536 / (256 * work.threads), 1, 16);
  if (work.shared)
    resident = std::clamp<int64_t>(machine.shared / work.shared, 1, resident);
  int64_t waves =
      llvm::divideCeil(work.blocks, machine.multiprocessors * resident);
  double sharing = std::min<int64_t>(
      resident, llvm::divideCeil(work.blocks, machine.multiprocessors));
  double chunk = std::max(
      {work.latency, sharing * work.operations / (machine.rate / sms),
       sharing * work.bytes / (bandwidthShares * machine.bandwidth / sms)});
  double state =
      sharing * work.stateBytes / (bandwidthShares * machine.bandwidth / sms);
  return launchSeconds + std::max(work.allBytes() / machine.bandwidth,
                                  waves * (work.chunks * chunk + state));
}

/// The machine at the rate of the schedule's products.
static GPUMachine withRateOf(ScheduleAttr schedule, GPUMachine machine) {
  if (schedule.getMma() == Mma::Wgmma)
    machine.rate = machine.warpgroupRate;
  return machine;
}

std::optional<int64_t>
mlir::linattn::tokensOfSequence(ScanOp op, const ExpectedSizes &sizes) {
  int64_t tokens = sizes.sizeOf(op.getKey(), 2);
  int64_t sequences = sizes.sizeOf(sequencesOf(op), 0);
  if (ShapedType::isDynamic(tokens) || ShapedType::isDynamic(sequences))
    return std::nullopt;
  return op.getCuSeqlens()
             ? llvm::divideCeil(tokens, std::max<int64_t>(sequences, 1))
             : tokens;
}

/// Blocks that take states through the transitions of segments.
static int64_t transitionBlocks(ScanOp op, int64_t states) {
  return states *
         llvm::divideCeil(staticSize(op.getState(), 3), transitionColumns);
}

/// Of the matrix of a segment, which every block reads.
static double transitionBytes(ScanOp op, int64_t states) {
  double size = staticSize(op.getState(), 2);
  return 4.0 * size * size * transitionBlocks(op, states);
}

/// The products of a segment, whose matrix the second cache holds: for 16 of
/// its columns a block waits half as long as for a load of memory. A
/// multiprocessor has four blocks.
static double transitionSeconds(ScanOp op, int64_t states,
                                const GPUMachine &machine) {
  int64_t waves = llvm::divideCeil(transitionBlocks(op, states),
                                   4 * machine.multiprocessors);
  return waves * loadSeconds / 2 *
         llvm::divideCeil(staticSize(op.getState(), 2), 16);
}

std::optional<Prediction> mlir::linattn::predict(ScanOp op,
                                                 ScheduleAttr schedule,
                                                 const GPUMachine &machine,
                                                 const ExpectedSizes &sizes) {
  std::optional<int64_t> known = tokensOfSequence(op, sizes);
  if (!known)
    return std::nullopt;
  int64_t tokens = *known;
  int64_t states =
      sizes.sizeOf(sequencesOf(op), 0) * staticSize(op.getState(), 1);
  int64_t split = schedule.getSplit(), chunk = schedule.getChunk();
  GPUMachine chosen = withRateOf(schedule, machine);
  Prediction prediction;
  auto add = [&](KernelWork work, int64_t parts) {
    work.blocks *= states * parts;
    work.chunks = llvm::divideCeil(tokens, split * chunk);
    prediction.seconds += secondsOf(work, chosen);
    prediction.bytes += work.allBytes();
    prediction.blocks = std::max(prediction.blocks, work.blocks);
  };
  if (schedule.getForm() == Form::Token) {
    chunk = 1; // See `tokenWork`.
    add(tokenWork(op, schedule), 1);
    return prediction;
  }
  auto workOf = [&](Segments::Part part) {
    Segments segments;
    segments.part = part;
    return runsByColumns(op)
               ? ColumnShape({{op, schedule}, {}, segments}).work()
               : ChunkShape{{{op, schedule}, {}, segments}}.work();
  };
  if (split == 1) {
    KernelWork work = workOf(Segments::Whole);
    work.stateBytes *= 2; // Read and written.
    add(work, 1);
    return prediction;
  }
  add(workOf(Segments::Increments), split - 1);
  add(workOf(Segments::Outputs), split);
  // The second of the three kernels reads and writes one state per segment.
  double stateBytes = stateBytesOf(op, sizes);
  double bytes = 2 * split * stateBytes;
  prediction.bytes += bytes + stateBytes;
  if (getRule(op).couplesRows()) {
    prediction.bytes += (split - 1) * transitionBytes(op, states);
    prediction.seconds +=
        launchSeconds + (split - 1) * transitionSeconds(op, states, machine);
    return prediction;
  }
  // A kernel for the normalizers, which are small.
  if (op.getNormalizer())
    prediction.seconds += launchSeconds + loadSeconds;
  prediction.seconds +=
      launchSeconds + std::max(bytes / machine.bandwidth,
                               llvm::divideCeil(split, 8) * loadSeconds);
  return prediction;
}

/// Of one kernel, whose work is that of `heads`: [B, H, …].
template <typename ShapeTy>
static std::optional<Prediction>
predictOne(ShapeTy shape, ScheduleAttr schedule, Value heads,
           ArrayRef<Value> tokens, const GPUMachine &machine) {
  for (Value buffer : tokens)
    if (ShapedType::isDynamic(staticSize(buffer, 2)))
      return std::nullopt;
  if (ShapedType::isDynamic(staticSize(heads, 0)))
    return std::nullopt;
  KernelWork work = shape.work();
  work.blocks *= staticSize(heads, 0) * staticSize(heads, 1);
  return Prediction{secondsOf(work, withRateOf(schedule, machine)),
                    work.allBytes(), work.blocks};
}

std::optional<Prediction> mlir::linattn::predict(QuadraticOp op,
                                                 ScheduleAttr schedule,
                                                 const GPUMachine &machine) {
  return predictOne(QuadraticShape{{op, schedule}}, schedule, op.getOutput(),
                    {op.getQuery(), op.getKey()}, machine);
}

std::optional<Prediction> mlir::linattn::predict(StateOp op,
                                                 ScheduleAttr schedule,
                                                 const GPUMachine &machine) {
  return predictOne(StateShape{{op, schedule}}, schedule, op.getState(),
                    op.getKey(), machine);
}

std::optional<Prediction> mlir::linattn::predict(ReadOp op,
                                                 ScheduleAttr schedule,
                                                 const GPUMachine &machine) {
  return predictOne(ReadShape{{op, schedule}}, schedule, op.getOutput(),
                    op.getQuery(), machine);
}
