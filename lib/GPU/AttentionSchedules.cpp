//===- AttentionSchedules.cpp - Which kernel attention can run in ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "QuadraticKernel.h"
#include "ReadKernel.h"
#include "StateKernel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::linattn;

static FeatureMapKind mapOf(Operation *op) {
  return cast<FeatureMappedOpInterface>(op).getFeatureMapKind();
}

static std::string whyNotSizes(ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    if (size > 256 || size % 2)
      return "head sizes must be even and 256 at most";
  return {};
}

/// Maps of one element at a time.
static std::string whyNotMap(Operation *op) {
  FeatureMapKind kind = mapOf(op);
  if (kind == FeatureMapKind::SoftmaxKernel || kind == FeatureMapKind::Exp ||
      kind == FeatureMapKind::Region)
    return "a map of whole tokens, exponentials and a region have no kernel";
  return {};
}

//===----------------------------------------------------------------------===//
// Quadratic
//===----------------------------------------------------------------------===//

/// Four warps copy a row of any head size at once.
constexpr int64_t quadraticWarps = 4;
/// Registers of a lane for outputs and scores that leave enough for the rest.
/// With f32 the rest includes the summands of three fragments.
constexpr int64_t mostAccumulators = 128, mostWideAccumulators = 80;

std::string mlir::linattn::whyNotKernel(QuadraticOp op) {
  if (std::string why = whyNotBuffers(op); !why.empty())
    return why;
  if (mapOf(op) != FeatureMapKind::Identity)
    return "a feature map has no kernel by tiles of keys";
  if (op.getPattern() || op.getSoftcap() || op.getSlopes() || op.getSinks())
    return "a pattern, softcap, slopes and sinks have no kernel by tiles of "
           "keys";
  return whyNotSizes(
      {staticSize(op.getKey(), 3), staticSize(op.getValue(), 3)});
}

/// A map's rows begin at multiples of 16 bytes.
static std::string whyNotTensorMaps(QuadraticOp op) {
  Type type = getElementTypeOrSelf(op.getQuery());
  for (Value tokens : {op.getKey(), op.getValue()}) {
    int64_t size = staticSize(tokens, 3);
    if (granuleOf(size, type) < 16)
      return llvm::formatv("tensor maps take rows of multiples of 16 bytes, "
                           "and {0} columns are {1} bytes",
                           size, 2 * size)
          .str();
  }
  return {};
}

ScheduleAttr mlir::linattn::chooseTensorMaps(QuadraticOp op,
                                             ScheduleAttr schedule,
                                             const GPUMachine &machine,
                                             std::string &why) {
  if (schedule.getMma() != Mma::Wgmma) {
    why = "it copies for wgmma alone";
    return schedule;
  }
  ScheduleAttr candidate = withCopy(schedule, CopyEngine::Tma);
  why = whyNotSchedule(op, candidate);
  if (why.empty() &&
      QuadraticShape{{op, candidate}}.sharedBytes() > machine.shared)
    why = "maps and barriers do not fit beside the tiles";
  return why.empty() ? candidate : schedule;
}

ScheduleAttr mlir::linattn::chooseSchedule(QuadraticOp op,
                                           const GPUMachine &machine,
                                           int64_t summands) {
  // Two blocks on a multiprocessor, of which one computes while the other
  // waits; each also takes a kilobyte that is not its own.
  constexpr int64_t reserved = 1024;
  bool isWide = getElementTypeOrSelf(op.getQuery()).isF32();
  Mma mma = machine.warpgroupRate > 0 && !isWide ? Mma::Wgmma : Mma::MmaSync;
  // Two warpgroups share every tile of keys and values.
  int64_t count = staticSize(op.getQuery(), 2);
  bool isFew = !ShapedType::isDynamic(count) && count <= warpgroupRows;
  int64_t warps =
      mma == Mma::Wgmma && !isFew ? 2 * warpgroupWarps : quadraticWarps;
  int64_t fewest = isWide ? 16 : 32;
  int64_t most = isWide ? mostWideAccumulators : mostAccumulators;
  ScheduleAttr least;
  for (int64_t stages : {2, 1})
    for (int64_t keys = 64; keys >= fewest; keys /= 2) {
      auto schedule = withSummands(
          ScheduleAttr::get(op.getContext(), Form::Quadratic, mma, keys, warps,
                            stages, /*valueSlice=*/0, /*split=*/1),
          summands);
      QuadraticShape kernel{{op, schedule}};
      if (keys > fewest && kernel.accumulators() > most)
        continue;
      int64_t bytes = kernel.sharedBytes();
      if (stages == 2 && 2 * bytes + reserved <= machine.shared)
        return schedule;
      if (!least && bytes <= machine.shared)
        least = schedule;
    }
  return least;
}

std::string mlir::linattn::whyNotSchedule(QuadraticOp op,
                                          ScheduleAttr schedule) {
  if (std::string why = whyNotKernel(op); !why.empty())
    return why;
  if (std::string why = whyNotSummands(op, schedule); !why.empty())
    return why;
  if (getElementTypeOrSelf(op.getQuery()).isF32() &&
      schedule.getMma() == Mma::Wgmma)
    return "wgmma takes f16 and bf16; f32 has the products of a warp";
  bool fits = schedule.getForm() == Form::Quadratic &&
              schedule.getMma() != Mma::Fma &&
              llvm::is_contained({16, 32, 64, 128}, schedule.getChunk()) &&
              llvm::is_contained({4, 8}, schedule.getWarps()) &&
              schedule.getValueSlice() == 0 && schedule.getSplit() == 1;
  if (!fits)
    return "attention has the form quadratic, mma_sync or wgmma, tiles of "
           "16, 32, 64 or 128 keys, and four or eight warps";
  return schedule.getCopy() == CopyEngine::Tma ? whyNotTensorMaps(op) : "";
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

/// The conditions shared by the kernels that write and that read a state.
template <typename OpTy>
static std::string whyNotMatrixState(OpTy op) {
  if (op.getRunningMax())
    return "a running maximum has no kernel";
  if (std::string why = whyNotMap(op); !why.empty())
    return why;
  return whyNotSizes(
      {staticSize(op.getState(), 2), staticSize(op.getState(), 3)});
}

std::string mlir::linattn::whyNotKernel(StateOp op) {
  if (std::string why = whyNotBuffers(op); !why.empty())
    return why;
  if (op.getDecay() || op.getValueDecay())
    return "a state with decays has no kernel without its scan";
  if (op.getCuSeqlens())
    return "the state of packed sequences has no kernel without its scan";
  return whyNotMatrixState(op);
}

/// A group of four warps has so many columns of the state.
static bool isStateSlice(int64_t slice, int64_t warps) {
  int64_t groups = warps / StateShape::groupWarps;
  return groups * StateShape::groupWarps == warps && groups &&
         (slice == 32 * groups || slice == 64 * groups);
}

ScheduleAttr mlir::linattn::chooseSchedule(StateOp op,
                                           const GPUMachine &machine,
                                           int64_t summands) {
  int64_t columns = staticSize(op.getState(), 3);
  int64_t perGroup = columns > 32 ? 64 : 32;
  int64_t groups = std::min<int64_t>(2, llvm::divideCeil(columns, perGroup));
  for (int64_t stages : {2, 1})
    for (int64_t tokens : {64, 32, 16}) {
      auto schedule = withSummands(
          ScheduleAttr::get(op.getContext(), Form::Chunk, Mma::MmaSync, tokens,
                            groups * StateShape::groupWarps, stages,
                            groups * perGroup, /*split=*/1),
          summands);
      if (StateShape{{op, schedule}}.sharedBytes() <= machine.shared)
        return schedule;
    }
  return {};
}

std::string mlir::linattn::whyNotSchedule(StateOp op, ScheduleAttr schedule) {
  if (std::string why = whyNotKernel(op); !why.empty())
    return why;
  if (std::string why = whyNotSummands(op, schedule); !why.empty())
    return why;
  bool fits = schedule.getForm() == Form::Chunk &&
              schedule.getMma() == Mma::MmaSync &&
              llvm::is_contained({16, 32, 64}, schedule.getChunk()) &&
              isStateSlice(schedule.getValueSlice(), schedule.getWarps()) &&
              schedule.getSplit() == 1;
  return fits ? ""
              : "a state has the form chunk, chunks of 16, 32 or 64 tokens, "
                "and four warps for 32 or 64 columns";
}

//===----------------------------------------------------------------------===//
// Read
//===----------------------------------------------------------------------===//

std::string mlir::linattn::whyNotKernel(ReadOp op) {
  if (std::string why = whyNotBuffers(op); !why.empty())
    return why;
  return whyNotMatrixState(op);
}

ScheduleAttr mlir::linattn::chooseSchedule(ReadOp op, const GPUMachine &machine,
                                           int64_t summands) {
  int64_t columns = llvm::alignTo(staticSize(op.getState(), 3), 16);
  for (int64_t stages : {2, 1})
    for (int64_t slice : {128, 64, 32}) {
      auto schedule = withSummands(
          ScheduleAttr::get(op.getContext(), Form::Chunk, Mma::MmaSync,
                            ReadShape::tileQueries, ReadShape::blockWarps,
                            stages, std::min(slice, columns), /*split=*/1),
          summands);
      if (ReadShape{{op, schedule}}.sharedBytes() <= machine.shared)
        return schedule;
    }
  return {};
}

std::string mlir::linattn::whyNotSchedule(ReadOp op, ScheduleAttr schedule) {
  if (std::string why = whyNotKernel(op); !why.empty())
    return why;
  if (std::string why = whyNotSummands(op, schedule); !why.empty())
    return why;
  int64_t slice = schedule.getValueSlice();
  bool fits = schedule.getForm() == Form::Chunk &&
              schedule.getMma() == Mma::MmaSync &&
              schedule.getChunk() == ReadShape::tileQueries &&
              schedule.getWarps() == ReadShape::blockWarps && slice % 16 == 0 &&
              slice >= 16 && slice <= 128 && schedule.getSplit() == 1;
  return fits ? ""
              : "reads have the form chunk, chunks of 64 queries, four warps, "
                "and 16 to 128 columns";
}
