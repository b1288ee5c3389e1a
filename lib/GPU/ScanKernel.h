//===- ScanKernel.h - Base of a scan's kernels ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_SCANKERNEL_H
#define LINATTN_LIB_GPU_SCANKERNEL_H

#include "TilePipeline.h"
#include "linattn/Dialect/ScanTraits.h"

namespace mlir::linattn {

struct GPUMachine;

/// Where a state starts: in the state itself, in another buffer that was
/// copied into it, or at 0.
struct StateSource {
  Value buffer; ///< Null: 0.
  /// The copy or fill that the kernel makes unnecessary.
  Operation *replaces = nullptr;
};

/// Finds the copy or fill of `state` that precedes `op`. Source and state may
/// be the same memory: callers may update a state in place.
StateSource findSource(Operation *op, Value state);
/// The source of a scan's state. Rows of a pool that no sequence steps must be
/// copied too.
StateSource findStateSource(ScanOp op);

/// A scan whose tokens are cut into segments that run in parallel, and which
/// part of it a kernel is. S segments need memory of f32:
///
///   states   [S, B, H, K, V]: first in place s + 1 what segment s adds to a
///            state of 0; then in place s the state before segment s
///   factors  [S − 1, B, H] or [S − 1, B, H, K]: by what segment s decays a
///            state; null without decays, or with transitions
///   transitions  [S − 1, B, H, K, K]: what segment s multiplies a state by,
///            where something reads the state for what is written; else null
struct Segments {
  enum Part { Whole, Increments, Outputs };
  Part part = Whole;
  Value states, factors, transitions;
  Value normalizers; ///< [S, B, H, K, 1], like `states`; null without one.
};

/// Why no kernel of `form` can run the scan, as the end of a sentence; empty if
/// one can.
std::string whyNotTokenKernel(ScanOp op);
std::string whyNotChunkKernel(ScanOp op);
/// Why a chunk kernel cannot run segments of the scan in parallel.
std::string whyNotSegments(ScanOp op);

/// The schedules that are chosen unless the user says otherwise.
ScheduleAttr chooseTokenSchedule(ScanOp op);
/// Those that `shared` bytes suffice for, first the one for many heads.
SmallVector<ScheduleAttr> listChunkSchedules(ScanOp op, int64_t shared,
                                             int64_t summands);
/// That of warpgroups, with the most stages that the shared memory suffices
/// for; null, and `why`, where they cannot run the scan.
ScheduleAttr chooseWarpgroups(ScanOp op, const GPUMachine &machine,
                              int64_t summands, std::string &why);
/// The same schedule for so many segments.
ScheduleAttr withSplit(ScheduleAttr schedule, int64_t split);

/// Why a schedule cannot run the scan; empty if it can.
std::string whyNotSchedule(ScanOp op, ScheduleAttr schedule);

/// Appends the kernel to `module`; the scan itself stays.
LaunchOp buildTokenKernel(ScanOp op, ScheduleAttr schedule,
                          const StateSource &source, ModuleOp module,
                          StringRef name);
LaunchOp buildChunkKernel(ScanOp op, ScheduleAttr schedule,
                          const StateSource &source, ModuleOp module,
                          StringRef name);
/// Three kernels, for the segments of `split`.
LaunchOp buildSegmentKernels(ScanOp op, ScheduleAttr schedule,
                             const StateSource &source, ModuleOp module,
                             StringRef name);

/// Columns of a state that a block takes through transitions.
constexpr int64_t transitionColumns = 16;
/// The states before all segments, from `from` or 0 on, through their
/// transitions.
void buildTransitionKernel(ScanOp op, Value from, const Segments &segments,
                           ModuleOp module, StringRef name);

/// The two chunk forms, of a scan or of a part of it in segments.
LaunchOp buildRowKernel(ScanOp op, ScheduleAttr schedule,
                        const StateSource &source, const Segments &segments,
                        ModuleOp module, StringRef name);
LaunchOp buildColumnKernel(ScanOp op, ScheduleAttr schedule,
                           const StateSource &source, const Segments &segments,
                           ModuleOp module, StringRef name);

/// Whether the chunk form of the scan is the one whose warps own columns.
bool runsByColumns(ScanOp op);

/// The state head of a thread block and the tokens of its sequence.
struct ScanPlace {
  Value slot, head; ///< Of the state.
  Value sequence;   ///< Its number; `slot`, unless states are rows of a pool.
  Value exists;     ///< Whether the sequence has a state; null: it has.
  Value segment;    ///< Null: the whole sequence.
  Value batch;      ///< Of the tokens.
  Value begin;      ///< First token, i64; null for 0.
  Value count;      ///< Number of tokens.

  /// The address of the state in a view of states, or in one of the states of
  /// segments, of which it is number `later` from this one on.
  Value stateIn(KernelBuilder &k, const GlobalView &view,
                int64_t later = 0) const;
  /// Runs `body` for a sequence that has a state, `otherwise` for one without.
  void ifExists(KernelBuilder &k, function_ref<void()> body,
                function_ref<void()> otherwise) const;
};

/// The operand with one state, or row of a pool, for every sequence.
inline Value sequencesOf(ScanOp op) {
  return op.getStateIndices() ? op.getStateIndices() : op.getState();
}

/// Where a sequence has its state.
struct StateSlot {
  Value number; ///< The row of a pool, or the sequence.
  Value exists; ///< Whether it has one; null: it has.
};
StateSlot findSlot(KernelBuilder &k, const KernelFunction &function, ScanOp op,
                   Value sequence);

/// Adds the sizes and offsets that `locate` needs to the arguments.
class ScanLocator {
public:
  /// With `segments` the second dimension of the grid counts them; each is a
  /// multiple of `chunk` tokens long, but the last.
  ScanLocator(ScanOp op, KernelFunction &function, int64_t segments = 1,
              int64_t chunk = 1);
  /// `state`: the number of the state, slots times heads.
  ScanPlace locate(KernelBuilder &k, Value state);
  /// Sequences times heads, in the grid.
  AffineExpr gridStates();
  /// The address of a token operand's first row, and bytes between its rows;
  /// without a `head` of [B, T].
  Rows rowsOf(KernelBuilder &k, const ScanPlace &place, const GlobalView &view,
              Value head);
  /// ⌊head · heads(buffer) / heads of the state⌋.
  Value headOf(KernelBuilder &k, Value buffer, Value head);

  ScanOp op;
  KernelFunction &function;

private:
  void locateSegment(KernelBuilder &k, ScanPlace &place);

  int64_t segments, chunk;
};

/// Which tokens are written: all of them, or those of the scan's mask.
class WrittenTokens {
public:
  void addBuffers(ScanOp op, KernelFunction &function) {
    function.addBuffer(op.getMask(), Access::Read, 1);
  }
  void place(KernelBuilder &k, ScanLocator &locator, const ScanPlace &place);
  explicit operator bool() const { return rows.base != nullptr; }
  /// i1, of the place's token of that number: false unless it `exists`.
  Value has(KernelBuilder &k, Value number, Value exists) const;
  /// For copies of written tokens alone; null where all are. Refers to this
  /// object.
  TilePipeline::Filter filter(KernelBuilder &k) const;

private:
  Rows rows;
};

inline FeatureMapKind featureMapOf(ScanOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

/// The element type of a decay or beta; f32 where there is none.
inline Type gateTypeOf(ScanOp op, Value gate) {
  return gate ? getElementTypeOrSelf(gate) : Float32Type::get(op.getContext());
}

/// Starts to copy one number of a gate to shared memory as f32, or 0 where it
/// does not exist. One of 16 bits is converted on its way: no copy moves 2
/// bytes.
void copyGate(KernelBuilder &k, Value shared, Value global, Type element,
              Value exists);

/// Output heads that read one state.
inline int64_t groupSizeOf(ScanOp op) {
  return staticSize(op.getOutput(), 1) / staticSize(op.getState(), 1);
}

//===----------------------------------------------------------------------===//
// Chunk kernels
//===----------------------------------------------------------------------===//

/// The sizes of both chunk kernels, of a scan or of a part of it in segments.
struct ScanShape : KernelShape<ScanOp> {
  StateSource source;
  Segments segments;

  /// Whether there are queries and outputs.
  bool reads() const { return segments.part != Segments::Increments; }
  int64_t groupSize() { return reads() ? groupSizeOf(op) : 1; }
  /// Whether blocks of their own make the matrices that segments multiply a
  /// state by, columns of which are states that start from those of the
  /// identity and are written values of 0.
  bool makesTransitions() { return !reads() && getRule(op).couplesRows(); }
  int64_t transitionSlices() {
    return makesTransitions() ? llvm::divideCeil(keySize(), slice()) : 0;
  }
  bool hasDecay() { return op.getDecay() != Value(); }
  bool hasTokenDecay() { return hasDecay() && rankOf(op.getDecay()) == 3; }
  bool hasChannelDecay() { return hasDecay() && rankOf(op.getDecay()) == 4; }
  Type decayType() { return gateTypeOf(op, op.getDecay()); }

  /// The states that the kernel starts from, and those that it writes; null: 0.
  Value stateIn() {
    if (segments.part == Segments::Whole)
      return source.buffer;
    return reads() ? segments.states : Value();
  }
  Value stateOut() { return reads() ? Value(op.getState()) : segments.states; }
  /// Adds them to the arguments.
  void addStates(KernelFunction &function, int64_t align);
  /// Adds queries, keys, values and outputs.
  void addTokens(KernelFunction &function);
  /// The launch of a kernel whose blocks have a slice of a head each.
  LaunchOp launch(KernelFunction &function, ScanLocator &locator,
                  int64_t shared);
};

/// The part of a scan that a block of a chunk kernel runs.
struct ScanBlock {
  /// The tokens of its head in global memory, from its first column on.
  struct Tokens {
    Rows query, key, value, output;
  };

  ScanBlock(KernelBuilder &k, const KernelFunction &function)
      : shared(function.sharedBase(k)), thread(k.thread()) {}
  /// Finds its slice, head and tokens.
  void place(KernelBuilder &k, ScanShape shape, ScanLocator &locator);
  Tokens findTokens(KernelBuilder &k, ScanShape shape, ScanLocator &locator);
  /// The decay of the head, f32, where all tokens have the same.
  Value loadHeadDecay(KernelBuilder &k, ScanShape shape,
                      const KernelFunction &function);
  /// Of the blocks that could write a state, the one that does; null: all.
  Value isWriter(KernelBuilder &k, ScanShape shape);

  Value shared, thread;
  Value firstColumn; ///< Of the slice; null for the only one.
  /// Whether the slice is one of a transition; null: it is not.
  Value isTransition;
  Value member; ///< Of the state's output heads; null for the only one.
  ScanPlace here;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_SCANKERNEL_H
