//===- Legality.cpp - Which scan can run in which schedule ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/Legality.h"

using namespace linattn;

std::string_view linattn::getName(Schedule schedule) {
  constexpr std::string_view names[numSchedules] = {
      "vectors",     "state_tile",   "chunk",        "segments",
      "chunk_tasks", "token_kernel", "chunk_kernel", "split_kernel"};
  return names[size_t(schedule)];
}

std::string_view linattn::getName(ScanTrait trait) {
  constexpr std::string_view names[numScanTraits] = {
      "a transition along keys",
      "a transition along values",
      "a decay per channel",
      "value_decay",
      "a gate or given vector of another type than f32, f16 and bf16",
      "beta per value column",
      "bonus",
      "input_gate",
      "running_max",
      "normalize",
      "a feature map",
      "the map softmax_kernel",
      "a map that is a region",
      "cu_seqlens",
      "state_indices",
      "snapshots",
      "a config of another form"};
  return names[size_t(trait)];
}

ScanTraits linattn::getTraits(const UpdateRule &rule) {
  ScanTraits traits;
  traits.add(ScanTrait::KeyTransition, rule.couplesRows());
  traits.add(ScanTrait::ValueTransition, rule.couplesColumns());
  return traits;
}

const std::vector<Refusal> &linattn::getRefusals() {
  using S = Schedule;
  using T = ScanTrait;
  static const std::vector<Refusal> refusals = {
      {S::Vectors, T::ValueTransition,
       "a transition along values has no vector schedule"},
      {S::Vectors, T::Snapshots, "its snapshots are not expanded into a loop"},

      {S::StateTile, T::KeyTransition,
       "a rank-1 transition couples the rows of a state column"},
      {S::StateTile, T::ValueTransition,
       "a rank-1 transition couples the columns of a state row"},

      {S::Chunk, T::ValueTransition,
       "its transition reads the rows of the state, chunks its columns"},
      {S::Chunk, T::ValueDecay,
       "a decay per value column does not factor into products of chunks"},

      {S::Segments, T::Packed,
       "its sequences are packed already and run in parallel"},
      {S::Segments, T::Pool,
       "its states are rows of a pool, which segments would have to gather"},
      {S::Segments, T::ValueTransition,
       "its transition acts on the values' side of the state"},
      {S::Segments, T::InputGate, "the summary of a segment has no input gate"},
      {S::Segments, T::Snapshots,
       "its snapshots are counted from the first token"},
      {S::Segments, T::ColumnBeta,
       "a beta per value column gives every column a transition of its own"},

      {S::ChunkTasks, T::OtherSchedule, "its schedule is not chunks"},
      {S::ChunkTasks,
       {T::ValueTransition, T::ValueDecay},
       "it has no form in chunks"},
      {S::ChunkTasks,
       {T::Pool, T::Snapshots},
       "its states are rows of a pool, or kept between tokens"},
      {S::ChunkTasks,
       {T::RunningMax, T::TokenMaximum},
       "it has a running maximum"},
      {S::ChunkTasks, T::Bonus, "it has a bonus"},

      {S::TokenKernel, T::ValueTransition,
       "a transition along values has no kernel"},
      {S::TokenKernel, T::Snapshots,
       "snapshots that are not expanded into a loop have no kernel"},
      {S::TokenKernel,
       {T::InputGate, T::RunningMax},
       "a running maximum has no kernel"},
      {S::TokenKernel, T::TokenMaximum,
       "a map that needs the maximum of a token has no kernel"},
      {S::TokenKernel, T::Region, "a feature map region has no kernel"},

      {S::ChunkKernel, T::Snapshots,
       "snapshots that are not expanded into a loop have no chunk kernel"},
      {S::ChunkKernel, T::ValueTransition,
       "a transition along values has no chunk kernel"},
      {S::ChunkKernel, T::ColumnBeta,
       "a beta per value column gives every column a system of its own"},
      {S::ChunkKernel, T::OtherGates,
       "gates and given vectors of a chunk kernel are f32, f16 or bf16"},
      {S::ChunkKernel,
       {T::InputGate, T::RunningMax},
       "input gates and running maxima have no chunk kernel"},
      {S::ChunkKernel,
       {T::TokenMaximum, T::Region},
       "a map of whole tokens and a region have no chunk kernel"},

      {S::SplitKernel, T::ValueDecay,
       "segments decay by a factor for each channel, not for each column"},
  };
  return refusals;
}

std::string_view linattn::whyNot(Schedule schedule, ScanTraits traits) {
  for (const Refusal &refusal : getRefusals())
    if (refusal.schedule == schedule && traits.intersects(refusal.traits))
      return refusal.reason;
  return {};
}
