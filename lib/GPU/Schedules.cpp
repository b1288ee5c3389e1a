//===- Schedules.cpp - Which kernel a scan can run in, and how ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "ChunkKernel.h"
#include "ColumnShape.h"
#include "TokenKernel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::linattn;

std::string mlir::linattn::whyNotBuffers(Operation *op) {
  bool isStatic = true;
  for (Value operand : op->getOperands()) {
    if (isa<FloatType>(operand.getType()))
      return "a scale that is an operand has no kernel";
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type)
      return "it is on tensors";
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return "a buffer is not strided";
    if (type.getElementType().isF64())
      return "f64 has no kernel";
    if (type.getRank() != 4)
      continue;
    if (strides.back() != 1)
      return "the innermost stride of a buffer is not known to be 1";
    isStatic &= !type.isDynamicDim(1) && !type.isDynamicDim(3);
  }
  return isStatic ? "" : "head counts and head sizes must be static";
}

std::string mlir::linattn::whyNotSummands(Operation *op,
                                          ScheduleAttr schedule) {
  if (schedule.getSummands() == allSummands)
    return {};
  if (schedule.getMma() == Mma::Fma)
    return "products of fma have no summands";
  return {};
}

//===----------------------------------------------------------------------===//
// The token kernel
//===----------------------------------------------------------------------===//

/// Tokens that are staged together, unless fewer exist.
constexpr int64_t stagedTokens = 8;
/// Warps of a block: enough to hide latency, few enough for 128 registers each.
constexpr int64_t mostWarps = 8;

std::string mlir::linattn::whyNotTokenKernel(ScanOp op) {
  if (std::string why = whyNotBuffers(op); !why.empty())
    return why;
  if (StringRef why = whyNot(op, ::linattn::Schedule::TokenKernel);
      !why.empty())
    return why.str();
  if (staticSize(op.getState(), 2) > 256)
    return "more than 256 rows of a state do not fit the registers";
  // Every block would update the one normalizer of its head.
  if (op.getNormalizer() &&
      staticSize(op.getState(), 3) > 2 * mostWarps * warpColumns)
    return "a normalizer goes with 256 value columns at most";
  return {};
}

ScheduleAttr mlir::linattn::chooseTokenSchedule(ScanOp op) {
  int64_t tokens = staticSize(op.getKey(), 2);
  int64_t chunk = ShapedType::isDynamic(tokens) || op.getCuSeqlens()
                      ? stagedTokens
                      : std::clamp<int64_t>(tokens, 1, stagedTokens);
  int64_t warps = llvm::divideCeil(staticSize(op.getState(), 3), warpColumns);
  warps = std::min(warps, op.getNormalizer() ? 2 * mostWarps : mostWarps);
  return ScheduleAttr::get(op.getContext(), Form::Token, Mma::Fma, chunk, warps,
                           /*stages=*/1, warps * warpColumns, /*split=*/1);
}

//===----------------------------------------------------------------------===//
// The chunk kernel
//===----------------------------------------------------------------------===//

/// Whether the scan needs the kernel that divides columns among warps: the one
/// that divides a chunk's rows lacks these cases.
bool mlir::linattn::runsByColumns(ScanOp op) {
  return getElementTypeOrSelf(op.getQuery()).isF32() ||
         getRule(op).couplesRows() ||
         (op.getDecay() && rankOf(op.getDecay()) == 4) ||
         op.getReadout() == Readout::Exclusive || op.getNormalizer() ||
         op.getValueDecay() || featureMapOf(op) != FeatureMapKind::Identity;
}

/// Whether its channels are more than those of which `ptxas` spills nothing.
static std::string whyNotRegisters(ScanOp op) {
  bool isPool = op.getStateIndices() != Value();
  bool isGiven = getRule(op).isGiven;
  bool hasChannelDecay = op.getDecay() && rankOf(op.getDecay()) == 4;
  bool isWide = getElementTypeOrSelf(op.getQuery()).isF32();
  if (!runsByColumns(op) || !(isPool || isGiven))
    return {};
  int64_t most = isWide && hasChannelDecay ? 96 : 128;
  if (isPool)
    most = isGiven ? (hasChannelDecay ? 32 : 64) : op.getErase() ? 64 : 96;
  if (staticSize(op.getState(), 2) <= most)
    return {};
  return llvm::formatv("beside {0}{1}{2} the registers hold {3} channels of a "
                       "chunk kernel by columns",
                       isGiven ? "given vectors" : "",
                       isGiven && isPool ? " and " : "",
                       isPool ? "an index into a pool of states" : "", most)
      .str();
}

std::string mlir::linattn::whyNotChunkKernel(ScanOp op) {
  if (std::string why = whyNotBuffers(op); !why.empty())
    return why;
  if (StringRef why = whyNot(op, ::linattn::Schedule::ChunkKernel);
      !why.empty())
    return why.str();
  for (int64_t size :
       {staticSize(op.getState(), 2), staticSize(op.getState(), 3)})
    if (size > 256 || size % 2)
      return "head sizes must be even and 256 at most";
  if (std::string why = whyNotRegisters(op); !why.empty())
    return why;
  if (op.getValueDecay() && op.getDecay())
    return "a decay per value column goes without another decay";
  // One block could write the state before another has read it.
  if (groupSizeOf(op) > 1 && (findStateSource(op).buffer || op.getNormalizer()))
    return "several query heads read a state that may be updated in place";
  if (op.getNormalizer() &&
      staticSize(op.getState(), 3) > mostColumnWarps * blockSize)
    return "a normalizer goes with 128 value columns at most";
  return {};
}

std::string mlir::linattn::whyNotSegments(ScanOp op) {
  // The place of a segment takes registers, too.
  bool isWide = getElementTypeOrSelf(op.getQuery()).isF32();
  if (op.getErase() && isWide && staticSize(op.getState(), 2) > 96)
    return "beside an erase gate of f32 tokens the registers hold 96 channels "
           "of a segment";
  return whyNot(op, ::linattn::Schedule::SplitKernel).str();
}

/// A chunk kernel's, in one segment.
static ScheduleAttr makeChunkSchedule(ScanOp op, Mma mma, int64_t tokens,
                                      int64_t warps, int64_t stages,
                                      int64_t columns, int64_t summands) {
  return withSummands(ScheduleAttr::get(op.getContext(), Form::Chunk, mma,
                                        tokens, warps, stages, columns,
                                        /*split=*/1),
                      summands);
}

/// The most tokens whose tiles fit twice, so that the next ones arrive early;
/// else the most that fit at all. The equations of a transition take as long
/// for 16 tokens as for 64: where products are few, that is more than an
/// arrival, and the most that fit at all come before fewer twice.
static ScheduleAttr makeColumnSchedule(ScanOp op, int64_t shared, int64_t warps,
                                       int64_t summands) {
  using Shape = std::pair<int64_t, int64_t>; // Tokens, stages.
  SmallVector<Shape> shapes{{64, 2}, {32, 2}, {16, 2},
                            {64, 1}, {32, 1}, {16, 1}};
  if (getRule(op).couplesRows() && summands == 1)
    shapes = {{64, 2}, {64, 1}, {32, 2}, {32, 1}, {16, 2}, {16, 1}};
  for (auto [tokens, stages] : shapes) {
    auto schedule = makeChunkSchedule(op, Mma::MmaSync, tokens, warps, stages,
                                      warps * blockSize, summands);
    if (ColumnShape({{op, schedule}, {}, {}}).sharedBytes() <= shared)
      return schedule;
  }
  return {};
}

/// Rows and columns of a state whose warpgroups have enough registers.
constexpr int64_t mostWarpgroupKeys = 128, mostWarpgroupColumns = 128;

/// Why no warps of a chunk kernel by columns can be ahead of the others.
static std::string whyNotAhead(ScanOp op, ScheduleAttr schedule) {
  if (schedule.getSplit() > 1)
    return "with warps for scores alone there is one segment";
  if (op.getNormalizer())
    return "a normalizer has no warps for scores alone";
  // One that arrives, one of scores, one of the state.
  if (schedule.getStages() < 3)
    return "warps for scores alone take three stages";
  return {};
}

/// With more warps, which make the scores of the next chunk: null where the
/// model of the schedulers (docs/GPU.md) finds little gain, as with more rows
/// or products, whose warps of the state spill.
static ScheduleAttr makeAheadSchedule(ScanOp op, int64_t shared, int64_t warps,
                                      int64_t summands) {
  if (getElementTypeOrSelf(op.getQuery()).isF32() || getRule(op).isGiven ||
      op.getValueDecay() ||
      staticSize(op.getState(), 2) > (summands == 1 ? 128 : 64))
    return {};
  // Two warps do the forward substitution, however many make scores.
  int64_t ahead = getRule(op).couplesRows() ? 4 : 8;
  for (int64_t tokens : {64, 32, 16}) {
    auto schedule =
        makeChunkSchedule(op, Mma::MmaSync, tokens, warps + ahead, /*stages=*/3,
                          warps * blockSize, summands);
    if (whyNotAhead(op, schedule).empty() &&
        ColumnShape({{op, schedule}, {}, {}}).sharedBytes() <= shared)
      return schedule;
  }
  return {};
}

/// Two stages, or one where two do not fit.
static ScheduleAttr makeRowSchedule(ScanOp op, int64_t shared, int64_t groups,
                                    int64_t columns, int64_t summands) {
  for (int64_t stages : {2, 1}) {
    auto schedule =
        makeChunkSchedule(op, Mma::MmaSync, chunkTokens, groups * groupWarps,
                          stages, groups * columns, summands);
    if (ChunkShape{{{op, schedule}, {}, {}}}.allBytes() <= shared)
      return schedule;
  }
  return {};
}

SmallVector<ScheduleAttr>
mlir::linattn::listChunkSchedules(ScanOp op, int64_t shared, int64_t summands) {
  SmallVector<ScheduleAttr> schedules;
  auto add = [&](ScheduleAttr schedule) {
    if (schedule && !llvm::is_contained(schedules, schedule))
      schedules.push_back(schedule);
  };
  int64_t keySize = staticSize(op.getState(), 2);
  int64_t valueSize = staticSize(op.getState(), 3);
  if (runsByColumns(op)) {
    int64_t warps = std::clamp<int64_t>(llvm::divideCeil(valueSize, blockSize),
                                        fewestColumnWarps, mostColumnWarps);
    add(makeColumnSchedule(op, shared, warps, summands));
    add(makeAheadSchedule(op, shared, warps, summands));
    // The normalizer needs all columns in one block.
    if (!op.getNormalizer())
      add(makeColumnSchedule(op, shared, fewestColumnWarps, summands));
    return schedules;
  }
  // A group holds 64 columns of up to 128 rows in registers, or 32 columns of
  // more rows. If 64 does not divide the rows, its warps share them unevenly,
  // and decays take too many registers.
  bool uneven = keySize > 64 && keySize % 64 && op.getDecay();
  bool wide = keySize <= 128 && valueSize > 32 && !uneven;
  int64_t columns = wide ? 64 : 32;
  // Queries and keys are read once per block: one block takes all columns if
  // two groups suffice.
  int64_t groups = std::min<int64_t>(2, llvm::divideCeil(valueSize, columns));
  add(makeRowSchedule(op, shared, groups, columns, summands));
  // More blocks for few heads.
  add(makeRowSchedule(op, shared, 1, columns, summands));
  add(makeRowSchedule(op, shared, 1, 32, summands));
  return schedules;
}

ScheduleAttr mlir::linattn::chooseWarpgroups(ScanOp op,
                                             const GPUMachine &machine,
                                             int64_t summands,
                                             std::string &why) {
  why = machine.warpgroupRate == 0 ? "the chip does not have it, as sm_90a does"
        : runsByColumns(op)        ? "the scan needs a chunk kernel by columns"
                                   : "";
  // All columns in as few slices as possible.
  int64_t columns = llvm::alignTo(staticSize(op.getState(), 3), 16);
  int64_t slices = llvm::divideCeil(columns, mostWarpgroupColumns);
  int64_t slice = std::max<int64_t>(
      llvm::alignTo(llvm::divideCeil(columns, slices), 16), 32);
  int64_t groups =
      llvm::divideCeil(staticSize(op.getState(), 2), warpgroupRows);
  ScheduleAttr schedule;
  auto bytes = [&] { return ChunkShape{{{op, schedule}, {}, {}}}.allBytes(); };
  for (int64_t stages = 4; stages > 0; --stages) {
    schedule = makeChunkSchedule(op, Mma::Wgmma, chunkTokens,
                                 (groups + 1) * warpgroupWarps, stages, slice,
                                 summands);
    if (bytes() <= machine.shared)
      break;
  }
  if (why.empty())
    why = whyNotSchedule(op, schedule);
  if (why.empty() && bytes() > machine.shared)
    why = "its tiles do not fit the shared memory";
  return why.empty() ? schedule : ScheduleAttr();
}

/// The schedule, with the given parts kept.
static ScheduleAttr remake(ScheduleAttr schedule, int64_t split,
                           int64_t summands, CopyEngine copy) {
  return ScheduleAttr::get(schedule.getContext(), schedule.getForm(),
                           schedule.getMma(), schedule.getChunk(),
                           schedule.getWarps(), schedule.getStages(),
                           schedule.getValueSlice(), split, summands, copy);
}

ScheduleAttr mlir::linattn::withSplit(ScheduleAttr schedule, int64_t split) {
  return remake(schedule, split, schedule.getSummands(), schedule.getCopy());
}

ScheduleAttr mlir::linattn::withSummands(ScheduleAttr schedule,
                                         int64_t summands) {
  return remake(schedule, schedule.getSplit(), summands, schedule.getCopy());
}

ScheduleAttr mlir::linattn::withCopy(ScheduleAttr schedule, CopyEngine copy) {
  return remake(schedule, schedule.getSplit(), schedule.getSummands(), copy);
}

/// Of a chunk kernel, which takes so many bytes.
static std::string whyNotBytes(int64_t bytes) {
  if (bytes <= mostShared)
    return {};
  return llvm::formatv("its tiles take {0} bytes of shared memory, and a block "
                       "has {1} at most",
                       bytes, mostShared)
      .str();
}

/// Of a chunk kernel by rows.
static std::string whyNotWarpgroupSchedule(ScanOp op, ScheduleAttr schedule) {
  if (schedule.getSplit() > 1)
    return "the chunk kernel of wgmma has one segment";
  if (schedule.getCopy() != CopyEngine::CpAsync)
    return "the chunk kernel has no copies by tensor maps";
  if (staticSize(op.getState(), 2) > mostWarpgroupKeys)
    return llvm::formatv("the chunk kernel of wgmma holds {0} rows of a state "
                         "at most",
                         mostWarpgroupKeys)
        .str();
  ChunkShape shape{{{op, schedule}, {}, {}}};
  bool fits = schedule.getWarps() == shape.stateWarps() + warpgroupWarps &&
              schedule.getChunk() == chunkTokens &&
              schedule.getValueSlice() % 16 == 0 &&
              schedule.getValueSlice() >= 32 &&
              schedule.getValueSlice() <= mostWarpgroupColumns;
  return fits ? whyNotBytes(shape.allBytes())
              : "the chunk kernel of wgmma has chunks of 64 tokens, four warps "
                "for every 64 rows of the state and four more, and 32 to 128 "
                "columns, in sixteens";
}

std::string mlir::linattn::whyNotSchedule(ScanOp op, ScheduleAttr schedule) {
  bool isChunk = schedule.getForm() == Form::Chunk;
  std::string why = isChunk ? whyNotChunkKernel(op) : whyNotTokenKernel(op);
  if (why.empty())
    why = whyNotSummands(op, schedule);
  if (!why.empty())
    return why;
  if (schedule.getSplit() > 1)
    if (why = isChunk ? whyNotSegments(op)
                      : "the token kernel runs no segments of T in parallel";
        !why.empty())
      return why;
  if (isChunk && runsByColumns(op)) {
    int64_t warps = schedule.getValueSlice() / blockSize;
    int64_t ahead = schedule.getWarps() - warps;
    bool fits = warps >= fewestColumnWarps && warps <= mostColumnWarps &&
                warps * blockSize == schedule.getValueSlice() &&
                llvm::is_contained({0, 4, 8}, ahead) &&
                llvm::is_contained({16, 32, 64}, schedule.getChunk()) &&
                schedule.getMma() == Mma::MmaSync;
    if (!fits)
      return "this chunk kernel has chunks of 16, 32 or 64 tokens, and four to "
             "eight warps of 16 columns, with none, four or eight more for "
             "scores";
    if (ahead)
      if (std::string why = whyNotAhead(op, schedule); !why.empty())
        return why;
    return whyNotBytes(ColumnShape({{op, schedule}, {}, {}}).sharedBytes());
  }
  if (isChunk && schedule.getMma() == Mma::Wgmma)
    return whyNotWarpgroupSchedule(op, schedule);
  if (isChunk) {
    int64_t groups = schedule.getWarps() / groupWarps;
    int64_t columns = groups ? schedule.getValueSlice() / groups : 0;
    bool fits = groups * groupWarps == schedule.getWarps() &&
                groups * columns == schedule.getValueSlice() &&
                (columns == 32 || columns == 64) &&
                schedule.getChunk() == chunkTokens &&
                schedule.getMma() == Mma::MmaSync;
    return fits ? whyNotBytes(ChunkShape{{{op, schedule}, {}, {}}}.allBytes())
                : "the chunk kernel has chunks of 64 tokens, and four warps "
                  "for 32 or 64 columns";
  }
  if (schedule.getStages() != 1)
    return "the token kernel has one stage";
  if (schedule.getValueSlice() != 16 * schedule.getWarps())
    return llvm::formatv("a warp of the token kernel owns 16 columns, {0} "
                         "warps do not own {1}",
                         schedule.getWarps(), schedule.getValueSlice())
        .str();
  if (op.getNormalizer() &&
      schedule.getValueSlice() < staticSize(op.getState(), 3))
    return "a normalizer needs all value columns in one block";
  return {};
}
