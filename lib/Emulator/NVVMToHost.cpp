//===- NVVMToHost.cpp - NVVM kernels as functions of the host -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostRewriter.h"
#include "linattn/Emulator/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNNVVMTOHOSTPASS
#include "linattn/Emulator/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::emulator;

static constexpr unsigned kShared = 3;

static bool isKernel(LLVM::LLVMFuncOp func) {
  return func->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Assigns addresses to variables in shared memory: those of fixed size one
/// after another, and those without a size (`!llvm.array<0 x …>`) all at the
/// end of these, as CUDA does. Their addresses become constants.
static LogicalResult layOutShared(HostRewriter &b, DataLayout &layout) {
  uint64_t end = 0;
  DenseMap<StringAttr, uint64_t> addresses;
  SmallVector<LLVM::GlobalOp> globals, dynamic;
  for (auto global : b.getModule().getOps<LLVM::GlobalOp>())
    if (global.getAddrSpace() == kShared)
      globals.push_back(global);
  auto place = [&](LLVM::GlobalOp global, uint64_t from) {
    uint64_t alignment =
        std::max<uint64_t>(global.getAlignment().value_or(0),
                           layout.getTypeABIAlignment(global.getType()));
    uint64_t offset = llvm::alignTo(from, alignment);
    addresses[global.getSymNameAttr()] = kSharedBase + offset;
    return offset;
  };
  for (LLVM::GlobalOp global : globals) {
    if (uint64_t size = layout.getTypeSize(global.getType()))
      end = place(global, end) + size;
    else
      dynamic.push_back(global);
  }
  uint64_t dynamicBegin = end;
  for (LLVM::GlobalOp global : dynamic)
    dynamicBegin = std::max(dynamicBegin, place(global, end));
  if (llvm::any_of(dynamic, [&](LLVM::GlobalOp global) {
        return addresses[global.getSymNameAttr()] != kSharedBase + dynamicBegin;
      }))
    return b.getModule().emitError(
        "expected dynamic shared memory of one alignment");
  b.getModule()->setAttr(kStaticSharedAttr, b.getI64IntegerAttr(dynamicBegin));

  b.getModule().walk([&](LLVM::AddressOfOp op) {
    auto found = addresses.find(op.getGlobalNameAttr().getAttr());
    if (found == addresses.end())
      return;
    b.setInsertionPoint(op);
    Value address = LLVM::ConstantOp::create(
        b, op.getLoc(), b.getI64Type(), b.getI64IntegerAttr(found->second));
    op.replaceAllUsesWith(
        LLVM::IntToPtrOp::create(b, op.getLoc(), op.getType(), address)
            .getResult());
    op.erase();
  });
  for (LLVM::GlobalOp global : globals)
    global.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Loads the kernel's arguments from an array of 64-bit slots.
static void loadArguments(HostRewriter &b, Block &entry,
                          ArrayRef<BlockArgument> old, Value array) {
  b.setInsertionPointToStart(&entry);
  for (size_t i = 0; i < old.size(); ++i) {
    BlockArgument argument = old[i];
    Location loc = argument.getLoc();
    Value pointer = array;
    if (i > 0)
      pointer = LLVM::GEPOp::create(b, loc, array.getType(), b.getI64Type(),
                                    array, LLVM::GEPArg(int32_t(i)));
    argument.replaceAllUsesWith(
        LLVM::LoadOp::create(b, loc, argument.getType(), pointer).getResult());
  }
}

/// The types of a kernel's arguments. Read-only arguments are in brackets.
static ArrayAttr describeArguments(HostRewriter &b, LLVM::LLVMFuncOp func) {
  SmallVector<Attribute> arguments;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    Attribute attribute = TypeAttr::get(type);
    if (func.getArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName()))
      attribute = b.getArrayAttr(attribute);
    arguments.push_back(attribute);
  }
  return b.getArrayAttr(arguments);
}

/// Moves the body into a function without attributes, whose first argument is
/// the thread, and whose second, in kernels, the array of arguments.
static void rewriteFunction(HostRewriter &b, LLVM::LLVMFuncOp func) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  bool kernel = isKernel(func);
  Block &entry = func.front();
  SmallVector<BlockArgument> old(entry.getArguments());
  SmallVector<Type> types = {pointer};
  if (kernel)
    types.push_back(pointer);
  else
    llvm::append_range(types, entry.getArgumentTypes());

  b.setInsertionPoint(func);
  auto host = LLVM::LLVMFuncOp::create(
      b, func.getLoc(), func.getName(),
      LLVM::LLVMFunctionType::get(func.getFunctionType().getReturnType(),
                                  types));
  entry.insertArgument(0u, pointer, func.getLoc());
  if (kernel) {
    Value array = entry.insertArgument(1u, pointer, func.getLoc());
    loadArguments(b, entry, old, array);
    entry.eraseArguments(2, old.size());
    host->setAttr(kArgumentsAttr, describeArguments(b, func));
  }
  host.getBody().takeBody(func.getBody());
  func.erase();
}

/// The functions of the C library for those of libdevice.
static StringRef getHostFunction(StringRef name) {
  static const llvm::StringSet<> known = {
      "expf",  "exp",   "exp2f", "exp2",   "expm1f", "expm1", "logf",
      "log",   "log2f", "log2",  "log1pf", "log1p",  "sinf",  "sin",
      "cosf",  "cos",   "tanhf", "tanh",   "sqrtf",  "sqrt",  "powf",
      "pow",   "erff",  "erf",   "fabsf",  "fabs",   "fmaxf", "fmax",
      "fminf", "fmin",  "fmaf",  "fma",    "floorf", "floor", "ceilf",
      "ceil",  "rintf", "rint",  "truncf", "trunc"};
  return name.consume_front("__nv_") && known.contains(name) ? name : "";
}

/// Passes the thread to device functions, and replaces functions of libdevice
/// by those of the C library.
static LogicalResult rewriteCall(HostRewriter &b, LLVM::CallOp op) {
  std::optional<StringRef> callee = op.getCallee();
  auto func =
      callee ? b.getModule().lookupSymbol<LLVM::LLVMFuncOp>(*callee) : nullptr;
  if (!func)
    return op.emitError("the emulator cannot execute an indirect call");
  if (!func.isExternal()) {
    op.getCalleeOperandsMutable().assign([&] {
      SmallVector<Value> operands = {b.getThread(op)};
      llvm::append_range(operands, op.getCalleeOperands());
      return operands;
    }());
    return success();
  }
  StringRef name = getHostFunction(*callee);
  if (name.empty())
    return op.emitError("the emulator cannot call '") << *callee << "'";
  Type result = op.getNumResults() ? op.getResult().getType() : Type();
  Value value = b.callPure(op, name, op.getArgOperands(), result);
  op.getResult().replaceAllUsesWith(value);
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Whether the pointer is to the thread's own memory or to a constant. Host
/// memory needs no check.
static bool isHostPointer(Value pointer) {
  while (Operation *def = pointer.getDefiningOp()) {
    if (isa<LLVM::AllocaOp, LLVM::AddressOfOp>(def))
      return true;
    if (!isa<LLVM::GEPOp, LLVM::AddrSpaceCastOp, LLVM::BitcastOp>(def))
      return false;
    pointer = def->getOperand(0);
  }
  return false;
}

/// Requests the host address of a pointer from the emulator. It may have any
/// alignment, because the operation's alignment holds on the device only.
template <typename OpTy>
static void instrument(HostRewriter &b, DataLayout &layout, OpTy op,
                       StringRef symbol, Type type, OpOperand &address) {
  if (isHostPointer(address.get()))
    return;
  uint64_t bytes = layout.getTypeSize(type).getFixedValue();
  uint64_t alignment =
      op.getAlignment().value_or(layout.getTypeABIAlignment(type));
  Value data = b.call(op, symbol,
                      {address.get(), b.createI32(op.getLoc(), bytes),
                       b.createI32(op.getLoc(), alignment), b.createSite(op)},
                      LLVM::LLVMPointerType::get(b.getContext()));
  address.set(data);
}

static void instrumentMemory(HostRewriter &b, DataLayout &layout,
                             Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](LLVM::LoadOp op) {
        instrument(b, layout, op, "linattn_emu_load", op.getType(),
                   op.getAddrMutable());
        op.setAlignment(1);
        op.setInvariant(false);
      })
      .Case([&](LLVM::StoreOp op) {
        instrument(b, layout, op, "linattn_emu_store", op.getValue().getType(),
                   op.getAddrMutable());
        op.setAlignment(1);
      })
      .Case([&](LLVM::AtomicRMWOp op) {
        instrument(b, layout, op, "linattn_emu_atomic", op.getVal().getType(),
                   op.getPtrMutable());
        op.setSyncscope(std::nullopt);
      })
      .Case([&](LLVM::AtomicCmpXchgOp op) {
        instrument(b, layout, op, "linattn_emu_atomic", op.getVal().getType(),
                   op.getPtrMutable());
        op.setSyncscope(std::nullopt);
      });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct LinAttnNVVMToHostPass final
    : mlir::linattn::impl::LinAttnNVVMToHostPassBase<LinAttnNVVMToHostPass> {
  using LinAttnNVVMToHostPassBase::LinAttnNVVMToHostPassBase;

  void runOnOperation() override {
    HostRewriter rewriter(getOperation());
    DataLayout layout = DataLayout::closest(getOperation());
    if (failed(layOutShared(rewriter, layout)))
      return signalPassFailure();
    SmallVector<LLVM::LLVMFuncOp> functions;
    for (auto func : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (!func.isExternal())
        functions.push_back(func);
    // Frames that the rewrites add hold no data of the kernel.
    for (LLVM::LLVMFuncOp func : functions) {
      SmallVector<Operation *> ops;
      func.walk([&](Operation *op) { ops.push_back(op); });
      ops.pop_back(); // The function itself.
      toRewrite.push_back(std::move(ops));
    }
    for (LLVM::LLVMFuncOp func : functions)
      rewriteFunction(rewriter, func);
    bool ok = true;
    for (ArrayRef<Operation *> ops : toRewrite)
      for (Operation *op : ops) {
        rewriter.setInsertionPoint(op);
        ok &= succeeded(rewriteOp(rewriter, layout, op));
      }
    if (!ok)
      return signalPassFailure();
    eraseUnusedDeclarations();
    dropAddressSpaces();
    rewriter.setSitesAttribute();
  }

private:
  LogicalResult rewriteOp(HostRewriter &b, DataLayout &layout, Operation *op);
  void eraseUnusedDeclarations();
  void dropAddressSpaces();

  SmallVector<SmallVector<Operation *>> toRewrite;
};

} // namespace

/// Dialects with the same meaning on the host.
static bool isPortable(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (isa<LLVM::MemcpyOp, LLVM::MemmoveOp, LLVM::MemsetOp, LLVM::MaskedLoadOp,
          LLVM::MaskedStoreOp, LLVM::masked_gather, LLVM::masked_scatter,
          LLVM::InvokeOp, LLVM::VaArgOp>(op))
    return false;
  return llvm::is_contained(
      {"llvm", "arith", "cf", "math", "scf", "ub", "vector"}, dialect);
}

LogicalResult LinAttnNVVMToHostPass::rewriteOp(HostRewriter &b,
                                               DataLayout &layout,
                                               Operation *op) {
  if (isa<NVVM::NVVMDialect>(op->getDialect()))
    return rewriteNVVMOp(b, op);
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    return rewriteCall(b, call);
  if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return rewriteIntrinsicCall(b, intrinsic);
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return rewriteInlineAssembly(b, op, assembly.getAsmString(),
                                 assembly.getOperands());
  if (!isPortable(op))
    return op->emitError("the emulator cannot execute this operation");
  // Rounding to bf16 is expanded into integer arithmetic later: hosts round
  // differently, or call functions that the system lacks.
  if (auto truncate = dyn_cast<LLVM::FPTruncOp>(op);
      truncate && getElementTypeOrSelf(truncate.getType()).isBF16()) {
    Value value = arith::TruncFOp::create(b, op->getLoc(), truncate.getType(),
                                          truncate.getArg());
    truncate.replaceAllUsesWith(value);
    op->erase();
    return success();
  }
  instrumentMemory(b, layout, op);
  return success();
}

void LinAttnNVVMToHostPass::eraseUnusedDeclarations() {
  for (auto func :
       llvm::make_early_inc_range(getOperation().getOps<LLVM::LLVMFuncOp>()))
    if (func.isExternal() &&
        SymbolTable::symbolKnownUseEmpty(func, getOperation()))
      func.erase();
}

void LinAttnNVVMToHostPass::dropAddressSpaces() {
  AttrTypeReplacer replacer;
  auto pointer = LLVM::LLVMPointerType::get(&getContext());
  replacer.addReplacement(
      [&](LLVM::LLVMPointerType) -> std::optional<Type> { return pointer; });
  replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  for (auto global : getOperation().getOps<LLVM::GlobalOp>())
    global.setAddrSpace(0);
  getOperation().walk([](LLVM::AddrSpaceCastOp op) {
    op.replaceAllUsesWith(op.getArg());
    op.erase();
  });
}
