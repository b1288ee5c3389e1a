//===- NVVMOps.cpp - NVVM operations as calls of the emulator -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::emulator;

static LogicalResult emitUnsupported(Operation *op, const Twine &what) {
  return op->emitError("the emulator cannot execute ") << what;
}

/// Replaces `op` by a value, or by nothing.
static LogicalResult replace(Operation *op, Value value = {}) {
  if (value)
    op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

static std::optional<Register> getRegister(StringRef name) {
  return llvm::StringSwitch<std::optional<Register>>(name)
      .Case("tid.x", kTidX)
      .Case("tid.y", kTidY)
      .Case("tid.z", kTidZ)
      .Case("ntid.x", kNtidX)
      .Case("ntid.y", kNtidY)
      .Case("ntid.z", kNtidZ)
      .Case("ctaid.x", kCtaidX)
      .Case("ctaid.y", kCtaidY)
      .Case("ctaid.z", kCtaidZ)
      .Case("nctaid.x", kNctaidX)
      .Case("nctaid.y", kNctaidY)
      .Case("nctaid.z", kNctaidZ)
      .Case("laneid", kLaneId)
      .Case("warpid", kWarpId)
      .Case("nwarpid", kNumWarps)
      .Case("dynamic.smem.size", kDynamicShared)
      .Case("total.smem.size", kTotalShared)
      .Default(std::nullopt);
}

static LogicalResult rewriteRegister(HostRewriter &b, Operation *op,
                                     StringRef name) {
  Location loc = op->getLoc();
  if (name == "warpsize")
    return replace(op, b.createI32(loc, 32));
  std::optional<Register> reg = getRegister(name);
  if (!reg)
    return emitUnsupported(op, "the special register " + name);
  Value thread = b.getThread(op);
  Value pointer =
      LLVM::GEPOp::create(b, loc, thread.getType(), b.getI32Type(), thread,
                          LLVM::GEPArg(static_cast<int32_t>(*reg)));
  return replace(op, LLVM::LoadOp::create(b, loc, b.getI32Type(), pointer));
}

//===----------------------------------------------------------------------===//
// Barriers and copies
//===----------------------------------------------------------------------===//

static LogicalResult rewriteBarrier(HostRewriter &b, NVVM::BarrierOp op) {
  if (op.getReductionOp())
    return emitUnsupported(op, "a barrier with a reduction");
  Value zero = b.createI32(op.getLoc(), 0);
  Value id = op.getBarrierId() ? op.getBarrierId() : zero;
  Value count = op.getNumberOfThreads() ? op.getNumberOfThreads() : zero;
  b.call(op, "linattn_emu_barrier", {id, count, b.createSite(op)});
  return replace(op);
}

static LogicalResult rewriteBarrierArrive(HostRewriter &b,
                                          NVVM::BarrierArriveOp op) {
  Value id =
      op.getBarrierId() ? op.getBarrierId() : b.createI32(op.getLoc(), 0);
  b.call(op, "linattn_emu_barrier_arrive",
         {id, op.getNumberOfThreads(), b.createSite(op)});
  return replace(op);
}

static LogicalResult rewriteCpAsync(HostRewriter &b, NVVM::CpAsyncOp op) {
  Value bytes = b.createI32(op.getLoc(), op.getSize());
  b.call(op, "linattn_emu_cp_async",
         {op.getDst(), op.getSrc(), bytes,
          op.getCpSize() ? op.getCpSize() : bytes, b.createSite(op)});
  return replace(op);
}

static LogicalResult rewriteProxyFence(HostRewriter &b, NVVM::FenceProxyOp op) {
  if (op.getKind() != NVVM::ProxyKind::async_shared &&
      op.getKind() != NVVM::ProxyKind::async)
    return emitUnsupported(op, "a fence of this proxy");
  b.call(op, "linattn_emu_fence_proxy", {});
  return replace(op);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

static std::optional<MmaKind> getKind(NVVM::MmaOp op) {
  if (op.getShape().getM() != 16 || op.getShape().getN() != 8 ||
      op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col ||
      op.accumPtxType() != NVVM::MMATypes::f32 ||
      op.resultPtxType() != NVVM::MMATypes::f32 ||
      op.getMultiplicandAPtxType() != op.getMultiplicandBPtxType() ||
      !op.getMultiplicandAPtxType())
    return std::nullopt;
  unsigned k = op.getShape().getK();
  switch (*op.getMultiplicandAPtxType()) {
  case NVVM::MMATypes::bf16:
    return k == 16 ? MmaKind::BF16K16 : MmaKind::BF16K8;
  case NVVM::MMATypes::f16:
    return k == 16 ? MmaKind::F16K16 : MmaKind::F16K8;
  case NVVM::MMATypes::tf32:
    return k == 8 ? MmaKind::TF32K8 : MmaKind::TF32K4;
  default:
    return std::nullopt;
  }
}

static LogicalResult rewriteMma(HostRewriter &b, NVVM::MmaOp op) {
  std::optional<MmaKind> kind = getKind(op);
  if (!kind)
    return emitUnsupported(op, "this shape or type of mma: expected m16n8 of "
                               "bf16, f16 or tf32 with f32 sums");
  unsigned first = op.getOperandA().size() + op.getOperandB().size();
  b.storeWords(op, op.getOperands());
  b.call(op, "linattn_emu_mma",
         {b.createI32(op.getLoc(), static_cast<uint32_t>(*kind)),
          b.getFragment(op), b.createSite(op)});
  return replace(op, b.loadResult(op, first, op.getType()));
}

template <typename OpTy>
static LogicalResult checkMatrixShape(OpTy op) {
  if (op.getShape().getM() == 8 && op.getShape().getN() == 8 &&
      op.getEltType() == NVVM::LdStMatrixEltType::B16)
    return success();
  return emitUnsupported(op, "matrices other than 8 x 8 of 16 bits");
}

static Value getMatrixVariant(HostRewriter &b, Operation *op, unsigned count,
                              NVVM::MMALayout layout) {
  constexpr unsigned kTransposed = 8;
  bool transposed = layout == NVVM::MMALayout::col;
  return b.createI32(op->getLoc(), count + (transposed ? kTransposed : 0));
}

static LogicalResult rewriteLdMatrix(HostRewriter &b, NVVM::LdMatrixOp op) {
  if (failed(checkMatrixShape(op)))
    return failure();
  b.call(op, "linattn_emu_ldmatrix",
         {op.getPtr(), getMatrixVariant(b, op, op.getNum(), op.getLayout()),
          b.getFragment(op), b.createSite(op)});
  return replace(op, b.loadResult(op, 0, op.getRes().getType()));
}

static LogicalResult rewriteStMatrix(HostRewriter &b, NVVM::StMatrixOp op) {
  if (failed(checkMatrixShape(op)))
    return failure();
  b.storeWords(op, op.getSources());
  unsigned count = op.getSources().size();
  b.call(op, "linattn_emu_stmatrix",
         {op.getPtr(), getMatrixVariant(b, op, count, op.getLayout()),
          b.getFragment(op), b.createSite(op)});
  return replace(op);
}

//===----------------------------------------------------------------------===//
// Values between lanes
//===----------------------------------------------------------------------===//

static LogicalResult rewriteShuffle(HostRewriter &b, NVVM::ShflOp op) {
  // The enumerations agree.
  auto kind = static_cast<uint32_t>(op.getKind());
  b.storeWords(op, {op.getVal(), op.getOffset(), op.getMaskAndClamp()});
  b.call(op, "linattn_emu_shfl",
         {b.createI32(op.getLoc(), kind), op.getThreadMask(), b.getFragment(op),
          b.createSite(op)});
  Value value = b.loadWord(op, 0, op.getVal().getType());
  if (!isa<LLVM::LLVMStructType>(op.getType()))
    return replace(op, value);
  Value word = b.loadWord(op, 1, b.getI32Type());
  Value valid = arith::TruncIOp::create(b, op.getLoc(), b.getI1Type(), word);
  Value result = LLVM::PoisonOp::create(b, op.getLoc(), op.getType());
  result = LLVM::InsertValueOp::create(b, op.getLoc(), result, value,
                                       ArrayRef<int64_t>{0});
  result = LLVM::InsertValueOp::create(b, op.getLoc(), result, valid,
                                       ArrayRef<int64_t>{1});
  return replace(op, result);
}

static LogicalResult rewriteVote(HostRewriter &b, NVVM::VoteSyncOp op) {
  auto kind = static_cast<uint32_t>(op.getKind());
  Value predicate =
      arith::ExtUIOp::create(b, op.getLoc(), b.getI32Type(), op.getPred());
  b.storeWords(op, predicate);
  b.call(op, "linattn_emu_vote",
         {b.createI32(op.getLoc(), kind), op.getMask(), b.getFragment(op),
          b.createSite(op)});
  Value result = b.loadWord(op, 0, b.getI32Type());
  if (op.getType().isInteger(1))
    result = arith::TruncIOp::create(b, op.getLoc(), b.getI1Type(), result);
  return replace(op, result);
}

static std::optional<ReduxKind> getKind(NVVM::ReduxKind kind) {
  switch (kind) {
  case NVVM::ReduxKind::ADD:
    return ReduxKind::Add;
  case NVVM::ReduxKind::AND:
    return ReduxKind::And;
  case NVVM::ReduxKind::OR:
    return ReduxKind::Or;
  case NVVM::ReduxKind::XOR:
    return ReduxKind::Xor;
  case NVVM::ReduxKind::MAX:
    return ReduxKind::Max;
  case NVVM::ReduxKind::MIN:
    return ReduxKind::Min;
  case NVVM::ReduxKind::UMAX:
    return ReduxKind::UMax;
  case NVVM::ReduxKind::UMIN:
    return ReduxKind::UMin;
  default:
    return std::nullopt;
  }
}

static LogicalResult rewriteRedux(HostRewriter &b, NVVM::ReduxOp op) {
  std::optional<ReduxKind> kind = getKind(op.getKind());
  if (!kind || !op.getType().isInteger(32))
    return emitUnsupported(op, "a reduction of floats in one operation");
  b.storeWords(op, op.getVal());
  b.call(op, "linattn_emu_redux",
         {b.createI32(op.getLoc(), static_cast<uint32_t>(*kind)),
          op.getMaskAndClamp(), b.getFragment(op), b.createSite(op)});
  return replace(op, b.loadWord(op, 0, op.getType()));
}

/// Elects the lowest lane of the mask, as hardware does.
static LogicalResult rewriteElect(HostRewriter &b, NVVM::ElectSyncOp op) {
  Location loc = op.getLoc();
  Value mask = op.getMembermask() ? op.getMembermask() : b.createI32(loc, ~0u);
  b.storeWords(op, b.createI32(loc, 1));
  b.call(op, "linattn_emu_vote",
         {b.createI32(loc, static_cast<uint32_t>(VoteKind::Ballot)), mask,
          b.getFragment(op), b.createSite(op)});
  Value ballot = b.loadWord(op, 0, b.getI32Type());
  Value leader =
      LLVM::CountTrailingZerosOp::create(b, loc, b.getI32Type(), ballot, false);
  Value thread = b.getThread(op);
  Value pointer =
      LLVM::GEPOp::create(b, loc, thread.getType(), b.getI32Type(), thread,
                          LLVM::GEPArg(static_cast<int32_t>(kLaneId)));
  Value lane = LLVM::LoadOp::create(b, loc, b.getI32Type(), pointer);
  return replace(op, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           leader, lane));
}

//===----------------------------------------------------------------------===//
// Arithmetic by name
//===----------------------------------------------------------------------===//

/// The runtime's function for an approximate instruction of PTX.
static StringRef getApproximation(StringRef name) {
  name.consume_front("llvm.nvvm.");
  return llvm::StringSwitch<StringRef>(name)
      .Cases({"ex2.approx.ftz.f", "ex2.approx.ftz.f32", "ex2.approx.ftz"},
             "linattn_emu_ex2")
      .Cases({"lg2.approx.ftz.f", "lg2.approx.ftz.f32"}, "linattn_emu_lg2")
      .Cases({"rcp.approx.ftz.f", "rcp.approx.ftz.f32"}, "linattn_emu_rcp")
      .Cases({"rsqrt.approx.ftz.f", "rsqrt.approx.ftz.f32"},
             "linattn_emu_rsqrt")
      .Cases({"sqrt.approx.ftz.f", "sqrt.approx.ftz.f32"}, "linattn_emu_sqrt")
      .Case("tanh.approx.f32", "linattn_emu_tanh")
      .Default("");
}

static LogicalResult rewriteApproximation(HostRewriter &b, Operation *op,
                                          StringRef name, ValueRange operands) {
  StringRef symbol = getApproximation(name);
  if (symbol.empty() || operands.size() != 1 || op->getNumResults() != 1 ||
      !operands[0].getType().isF32() || !op->getResult(0).getType().isF32())
    return emitUnsupported(op, "'" + name + "'");
  return replace(op, b.callPure(op, symbol, operands, b.getF32Type()));
}

/// Rounds to 10 bits of fraction, ties away from zero, as cvt.rna does. NaN and
/// infinities do not change.
static LogicalResult rewriteToTF32(HostRewriter &b, Operation *op,
                                   Value value) {
  Location loc = op->getLoc();
  Value bits = LLVM::BitcastOp::create(b, loc, b.getI32Type(), value);
  Value half = b.createI32(loc, 0x1000), mask = b.createI32(loc, 0xffffe000);
  Value sum = LLVM::AddOp::create(b, loc, bits, half);
  Value exponent = b.createI32(loc, 0x7f800000);
  Value masked = LLVM::AndOp::create(b, loc, bits, exponent);
  Value special =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, masked, exponent);
  Value chosen = LLVM::SelectOp::create(b, loc, special, bits, sum);
  Value result = LLVM::AndOp::create(b, loc, chosen, mask);
  if (op->getResult(0).getType().isF32())
    result = LLVM::BitcastOp::create(b, loc, b.getF32Type(), result);
  return replace(op, result);
}

LogicalResult mlir::linattn::rewriteIntrinsicCall(HostRewriter &b,
                                                  LLVM::CallIntrinsicOp op) {
  if (op.getIntrin() == "llvm.nvvm.cp.async.wait.all") {
    b.call(op, "linattn_emu_cp_async_wait_all", {});
    return replace(op);
  }
  // Other intrinsics are LLVM's own, which the host supports.
  if (!op.getIntrin().starts_with("llvm.nvvm."))
    return success();
  return rewriteApproximation(b, op, op.getIntrin(), op.getArgs());
}

LogicalResult mlir::linattn::rewriteInlineAssembly(HostRewriter &b,
                                                   Operation *op,
                                                   StringRef assembly,
                                                   ValueRange operands) {
  FailureOr<bool> isWgmma = rewriteWgmma(b, op, assembly, operands);
  if (failed(isWgmma) || *isWgmma)
    return isWgmma;
  FailureOr<bool> isMap = rewriteTensorMap(b, op, assembly, operands);
  if (failed(isMap) || *isMap)
    return isMap;
  auto [name, arguments] = assembly.trim().split(' ');
  if (name == "cp.async.wait_all;" && operands.empty()) {
    b.call(op, "linattn_emu_cp_async_wait_all", {});
    return replace(op);
  }
  if (arguments.trim() != "$0, $1;" || operands.size() != 1 ||
      op->getNumResults() != 1)
    return emitUnsupported(op, "the assembly '" + assembly + "'");
  // Moves hide an address from the optimizer.
  if (name.starts_with("mov.") &&
      operands[0].getType() == op->getResult(0).getType())
    return replace(op, operands[0]);
  if (name == "cvt.rna.tf32.f32")
    return rewriteToTF32(b, op, operands[0]);
  return rewriteApproximation(b, op, name, operands);
}

static LogicalResult rewriteInlinePtx(HostRewriter &b, NVVM::InlinePtxOp op) {
  if (op.getPredicate() || !op.getReadWriteArgs().empty())
    return emitUnsupported(op, "assembly with a predicate or with operands "
                               "that it changes");
  return rewriteInlineAssembly(b, op, op.getPtxCode(), op.getReadOnlyArgs());
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

LogicalResult mlir::linattn::rewriteNVVMOp(HostRewriter &b, Operation *op) {
  StringRef name = op->getName().stripDialect();
  if (name.consume_front("read.ptx.sreg."))
    return rewriteRegister(b, op, name);
  FailureOr<bool> isBulk = rewriteBulkOp(b, op);
  if (failed(isBulk) || *isBulk)
    return isBulk;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](NVVM::Barrier0Op op) {
        Value zero = b.createI32(op.getLoc(), 0);
        b.call(op, "linattn_emu_barrier", {zero, zero, b.createSite(op)});
        return replace(op);
      })
      .Case([&](NVVM::BarrierOp op) { return rewriteBarrier(b, op); })
      .Case(
          [&](NVVM::BarrierArriveOp op) { return rewriteBarrierArrive(b, op); })
      .Case([&](NVVM::SyncWarpOp op) {
        b.call(op, "linattn_emu_warp_sync", {op.getMask(), b.createSite(op)});
        return replace(op);
      })
      .Case([&](NVVM::CpAsyncOp op) { return rewriteCpAsync(b, op); })
      .Case([&](NVVM::CpAsyncCommitGroupOp op) {
        b.call(op, "linattn_emu_cp_async_commit", {});
        return replace(op);
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp op) {
        b.call(op, "linattn_emu_cp_async_wait",
               b.createI32(op.getLoc(), op.getN()));
        return replace(op);
      })
      .Case([&](NVVM::MmaOp op) { return rewriteMma(b, op); })
      .Case([&](NVVM::LdMatrixOp op) { return rewriteLdMatrix(b, op); })
      .Case([&](NVVM::StMatrixOp op) { return rewriteStMatrix(b, op); })
      .Case([&](NVVM::ShflOp op) { return rewriteShuffle(b, op); })
      .Case([&](NVVM::VoteSyncOp op) { return rewriteVote(b, op); })
      .Case([&](NVVM::ReduxOp op) { return rewriteRedux(b, op); })
      .Case([&](NVVM::ElectSyncOp op) { return rewriteElect(b, op); })
      .Case([&](NVVM::RcpApproxFtzF32Op op) {
        return replace(
            op, b.callPure(op, "linattn_emu_rcp", op.getArg(), b.getF32Type()));
      })
      .Case([&](NVVM::ConvertFloatToTF32Op op) {
        if (op.getRnd() != NVVM::FPRoundingMode::RNA || op.getRelu() ||
            op.getSat() != NVVM::SaturationMode::NONE)
          return emitUnsupported(op, "a rounding to tf32 other than rna");
        return rewriteToTF32(b, op, op.getSrc());
      })
      .Case([&](NVVM::WgmmaFenceAlignedOp op) {
        b.call(op, "linattn_emu_wgmma_fence", b.createSite(op));
        return replace(op);
      })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp op) {
        b.call(op, "linattn_emu_wgmma_commit", b.createSite(op));
        return replace(op);
      })
      .Case([&](NVVM::FenceProxyOp op) { return rewriteProxyFence(b, op); })
      .Case([&](NVVM::InlinePtxOp op) { return rewriteInlinePtx(b, op); })
      // All threads share one order of memory, so that fences and hints have no
      // effect.
      .Case<NVVM::MembarOp, NVVM::FenceScClusterOp, NVVM::SetMaxRegisterOp,
            NVVM::GriddepcontrolOp>([&](Operation *op) { return replace(op); })
      .Default(
          [&](Operation *op) { return emitUnsupported(op, "this operation"); });
}
