//===- Legality.h - Which scan can run in which schedule --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The table of traits that each schedule of each target lacks, with reasons.
// Passes, kernels, the generated page and Python read it. Schedules themselves
// check sizes against registers and shared memory.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_LEGALITY_H
#define LINATTN_ANALYSIS_LEGALITY_H

#include "linattn/Analysis/UpdateRules.h"

namespace linattn {

/// The ways to run a scan. Loops over scalars, token by token, run every scan.
enum class Schedule : uint8_t {
  Vectors,     ///< On a CPU: any schedule of vectors.
  StateTile,   ///< Blocks of the state in registers.
  Chunk,       ///< Products of chunks of tokens.
  Segments,    ///< Segments of the sequence in parallel.
  ChunkTasks,  ///< Tasks of the ops of a chunk, each lowered to vectors.
  TokenKernel, ///< On a GPU: token by token.
  ChunkKernel, ///< On a GPU: chunks on tensor cores.
  SplitKernel, ///< On a GPU: chunks of segments in parallel.
};
constexpr size_t numSchedules = 8;

std::string_view getName(Schedule schedule);

/// Properties of a scan that some schedule leaves out.
enum class ScanTrait : uint8_t {
  KeyTransition,   ///< Its rule couples the rows of a state column.
  ValueTransition, ///< Its rule couples the columns of a state row.
  ChannelDecay,    ///< A decay per channel.
  ValueDecay,      ///< A decay per value column.
  OtherGates,      ///< Gates or vectors of other types than f32, f16 and bf16.
  ColumnBeta,      ///< A beta per value column.
  Bonus,
  InputGate,
  RunningMax,
  Normalizer,   ///< A denominator.
  FeatureMap,   ///< Any but identity.
  TokenMaximum, ///< A map that subtracts the maximum of a token.
  Region,       ///< A map that is a region.
  Packed,       ///< Sequences of their own lengths.
  Pool,         ///< States that are rows of a pool.
  Snapshots,
  OtherSchedule, ///< A config that names another form than chunks.
};
constexpr size_t numScanTraits = 17;

std::string_view getName(ScanTrait trait);

using ScanTraits = EnumSet<ScanTrait>;

/// The traits of a rule alone.
ScanTraits getTraits(const UpdateRule &rule);

/// A schedule that refuses scans with any of the traits.
struct Refusal {
  Schedule schedule;
  ScanTraits traits;
  /// The reason, as the end of a sentence.
  std::string_view reason;
};

/// The table, in the order of precedence of its reasons.
const std::vector<Refusal> &getRefusals();

/// Why a scan cannot run in a schedule: the first reason that applies; empty if
/// it can.
std::string_view whyNot(Schedule schedule, ScanTraits traits);

} // namespace linattn

#endif // LINATTN_ANALYSIS_LEGALITY_H
