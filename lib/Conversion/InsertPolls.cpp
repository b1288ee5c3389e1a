//===- InsertPolls.cpp - Long loops that may be ended ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNINSERTPOLLSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

constexpr StringLiteral kPoll = "linattn_poll";
constexpr StringLiteral kFlag = "linattn_poll_flag";
constexpr StringLiteral kParallelFor = "linattn_parallel_for";

/// Operations beside which a load and a branch cost nothing.
constexpr uint64_t manyOperations = 10000;
/// A loop with fewer is over before anyone notices.
constexpr uint64_t longLoop = 1000000;

/// Something that is run once, as far as it is known before.
struct Work {
  uint64_t operations = 0;
  /// Whether the number of operations is exact, not a lower bound.
  bool known = true;
  bool hasLoop = false;
  bool polls = false;

  void add(const Work &other) {
    operations = llvm::SaturatingAdd(operations, other.operations);
    known &= other.known;
    hasLoop |= other.hasLoop;
    polls |= other.polls;
  }
};

/// Finds the loops that are to look at the flag.
class LoopFinder {
public:
  explicit LoopFinder(SmallVectorImpl<Block *> &found) : found(found) {}

  Work measure(Region &region, bool insideLoop) {
    Work work;
    for (Block &block : region)
      for (Operation &op : block)
        work.add(measure(op, insideLoop));
    return work;
  }

private:
  static bool isLoop(Operation &op) {
    return isa<scf::ForOp, scf::ParallelOp, scf::WhileOp>(op);
  }

  /// Whether the loop is one of a nest, or of tasks: the next loop in it may be
  /// the long one.
  static bool isTransparent(Operation &op) {
    if (isa<scf::ParallelOp>(op))
      return true;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      return false;
    auto hasRegions = [](Operation &inner) {
      return inner.getNumRegions() != 0;
    };
    return llvm::count_if(*loop.getBody(), hasRegions) == 1 &&
           isLoop(*llvm::find_if(*loop.getBody(), hasRegions));
  }

  static std::optional<uint64_t> countTrips(Operation &op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    std::optional<APInt> trips =
        loop ? loop.getStaticTripCount() : std::nullopt;
    if (!trips || trips->getActiveBits() > 63)
      return std::nullopt;
    return trips->getZExtValue();
  }

  Work measure(Operation &op, bool insideLoop) {
    Work work;
    work.operations = 1;
    if (auto call = dyn_cast<LLVM::CallOp>(op))
      work.polls = call.getCallee() == StringRef(kParallelFor);
    if (!isLoop(op)) {
      for (Region &region : op.getRegions())
        work.add(measure(region, insideLoop));
      return work;
    }
    Work body;
    for (Region &region : op.getRegions())
      body.add(measure(region, insideLoop || !isTransparent(op)));
    std::optional<int64_t> trips = countTrips(op);
    work.hasLoop = true;
    work.known = trips && body.known;
    work.polls = body.polls;
    work.operations =
        llvm::SaturatingMultiply<uint64_t>(trips.value_or(1), body.operations);
    bool isShort = work.known && work.operations < longLoop;
    bool isOuter = !insideLoop && (body.hasLoop || isa<scf::WhileOp>(op));
    if (!isShort && !body.polls &&
        (isOuter || body.operations >= manyOperations)) {
      // The first region of a loop is run in every iteration.
      found.push_back(&op.getRegion(0).front());
      work.polls = true;
    }
    return work;
  }

  SmallVectorImpl<Block *> &found;
};

struct InsertPollsPass
    : public mlir::linattn::impl::LinAttnInsertPollsPassBase<InsertPollsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> loops;
    for (auto function : getOperation().getOps<func::FuncOp>())
      LoopFinder(loops).measure(function.getBody(), /*insideLoop=*/false);
    if (loops.empty())
      return;
    declareRuntime(getOperation());
    for (Block *body : loops)
      insertPoll(*body);
    numPolls += loops.size();
  }

  static void insertPoll(Block &body) {
    ImplicitLocOpBuilder b(body.getParentOp()->getLoc(), body.getParentOp());
    b.setInsertionPointToStart(&body);
    Value address = LLVM::AddressOfOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()), kFlag);
    Value flag = LLVM::LoadOp::create(
        b, b.getI32Type(), address, /*alignment=*/4, /*isVolatile=*/false,
        /*isNonTemporal=*/false, /*isInvariant=*/false,
        /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic);
    Value zero =
        LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(0));
    Value isSet = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, flag, zero);
    auto branch = scf::IfOp::create(b, isSet, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    LLVM::CallOp::create(b, TypeRange(), kPoll, ValueRange());
  }

  static void declareRuntime(ModuleOp module) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    if (!module.lookupSymbol(kFlag))
      LLVM::GlobalOp::create(b, module.getLoc(), b.getI32Type(),
                             /*isConstant=*/false, LLVM::Linkage::External,
                             kFlag, Attribute());
    if (module.lookupSymbol(kPoll))
      return;
    auto poll = LLVM::LLVMFuncOp::create(
        b, module.getLoc(), kPoll,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    {}));
    poll.setNoUnwind(true);
    poll.setPassthroughAttr(b.getStrArrayAttr({"cold"}));
    // Nothing that the module sees: values stay in registers around it.
    auto none = LLVM::ModRefInfo::NoModRef;
    poll.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
        b.getContext(), /*other=*/none, /*argMem=*/none,
        /*inaccessibleMem=*/LLVM::ModRefInfo::ModRef, /*errnoMem=*/none,
        /*targetMem0=*/none, /*targetMem1=*/none));
  }
};

} // namespace
