//===- Object.cpp - Objects for C programs --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Bundle/Object.h"
#include "ObjectHeader.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/CodeGen/ForeignCode.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Session/CompiledCode.h"
#include "linattn/Session/Isolation.h"
#include "linattn/Session/Session.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace ::linattn;
using namespace ::linattn::detail;

namespace {

/// Defines the runtime functions that the code calls as weak symbols, which a
/// program with threads or memory of its own overrides.
class WeakRuntime {
public:
  explicit WeakRuntime(llvm::Module &module)
      : module(module), b(module.getContext()),
        size(module.getDataLayout().getIntPtrType(module.getContext())) {}

  void define() {
    if (llvm::Function *function = begin("linattn_parallel_for"))
      defineParallelFor(*function);
    if (llvm::Function *function = begin("linattn_allocate"))
      defineAllocate(*function);
    if (llvm::Function *function = begin("linattn_free")) {
      b.CreateCall(
          module.getOrInsertFunction("free", b.getVoidTy(), b.getPtrTy()),
          {function->getArg(0)});
      b.CreateRetVoid();
    }
  }

private:
  /// Returns null if nothing calls the function.
  llvm::Function *begin(llvm::StringRef name) {
    llvm::Function *function = module.getFunction(name);
    if (!function || !function->isDeclaration())
      return nullptr;
    function->setLinkage(llvm::GlobalValue::WeakAnyLinkage);
    // Attributes of the declaration may not hold for this definition.
    function->setAttributes({});
    b.SetInsertPoint(block(*function, "entry"));
    return function;
  }

  llvm::BasicBlock *block(llvm::Function &function, const char *name) {
    return llvm::BasicBlock::Create(module.getContext(), name, &function);
  }

  void defineParallelFor(llvm::Function &function) {
    llvm::Value *count = function.getArg(0), *zero = b.getInt64(0);
    llvm::BasicBlock *entry = b.GetInsertBlock(),
                     *body = block(function, "body"),
                     *exit = block(function, "exit");
    b.CreateCondBr(b.CreateICmpSGT(count, zero), body, exit);
    b.SetInsertPoint(body);
    llvm::PHINode *i = b.CreatePHI(b.getInt64Ty(), 2);
    auto *task = llvm::FunctionType::get(b.getVoidTy(),
                                         {b.getPtrTy(), b.getInt64Ty()}, false);
    b.CreateCall(task, function.getArg(1), {function.getArg(2), i});
    llvm::Value *next = b.CreateAdd(i, b.getInt64(1));
    i->addIncoming(zero, entry);
    i->addIncoming(next, body);
    b.CreateCondBr(b.CreateICmpSLT(next, count), body, exit);
    b.SetInsertPoint(exit);
    b.CreateRetVoid();
  }

  /// The C library requires a size that is a multiple of the alignment, and may
  /// return null for a size of 0. Compiled code cannot continue without its
  /// memory.
  void defineAllocate(llvm::Function &function) {
    llvm::Value *bytes = function.getArg(0), *alignment = function.getArg(1);
    llvm::Value *one = b.getInt64(1);
    llvm::Value *atLeast =
        b.CreateSelect(b.CreateICmpEQ(bytes, b.getInt64(0)), one, bytes);
    llvm::Value *mask = b.CreateSub(alignment, one);
    llvm::Value *whole =
        b.CreateAnd(b.CreateAdd(atLeast, mask), b.CreateNot(mask));
    auto allocate =
        module.getOrInsertFunction("aligned_alloc", b.getPtrTy(), size, size);
    llvm::Value *memory = b.CreateCall(
        allocate, {b.CreateTrunc(alignment, size), b.CreateTrunc(whole, size)});
    llvm::BasicBlock *missing = block(function, "missing"),
                     *done = block(function, "done");
    llvm::Value *fits = b.CreateAnd(
        b.CreateICmpUGE(whole, bytes),
        b.CreateICmpEQ(b.CreateZExt(b.CreateTrunc(whole, size), b.getInt64Ty()),
                       whole));
    b.CreateCondBr(b.CreateAnd(fits, b.CreateIsNotNull(memory)), done, missing);
    b.SetInsertPoint(missing);
    b.CreateCall(module.getOrInsertFunction("abort", b.getVoidTy()));
    b.CreateUnreachable();
    b.SetInsertPoint(done);
    b.CreateRet(memory);
  }

  llvm::Module &module;
  llvm::IRBuilder<> b;
  llvm::IntegerType *size;
};

/// Replaces fused f32 multiply-adds by f64 products and sums, for machines that
/// would call the C library for each number. The product is exact; the sum is
/// rounded to f64 and then to f32.
void widenFusedProducts(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!call || call->getIntrinsicID() != llvm::Intrinsic::fma ||
          !call->getType()->getScalarType()->isFloatTy())
        continue;
      llvm::IRBuilder<> b(call);
      llvm::Type *wide = call->getType()->getWithNewType(b.getDoubleTy());
      auto widen = [&](unsigned i) {
        return b.CreateFPExt(call->getArgOperand(i), wide);
      };
      llvm::Value *sum =
          b.CreateFAdd(b.CreateFMul(widen(0), widen(1)), widen(2));
      call->replaceAllUsesWith(b.CreateFPTrunc(sum, call->getType()));
      call->eraseFromParent();
    }
}

/// Compiles to the source, checks and code that a child process sends back.
llvm::Expected<CompiledCode> compile(llvm::StringRef text,
                                     llvm::StringRef entry,
                                     llvm::StringRef fileName,
                                     const ObjectOptions &options) {
  using Format = ObjectOptions::Format;
  Machine machine{options.cpu, options.triple, options.features,
                  options.vectorBits};
  auto target = getVectorTargetOf(machine);
  if (!target)
    return target.takeError();
  Session session;
  auto signature = session.parse(text, entry, fileName, options.trusted);
  if (!signature)
    return signature.takeError();
  auto build = [&](mlir::OpPassManager &pm) {
    mlir::linattn::buildCPULoopsPipeline(pm, *target, options.form);
    // An object has no runtime that could interrupt its loops.
    mlir::linattn::LowerToLLVMOptions llvm;
    llvm.polls = false;
    mlir::linattn::buildLowerToLLVMPipeline(pm, llvm);
  };
  if (llvm::Error error = session.run(build, nullptr))
    return std::move(error);
  CompiledCode code;
  code.checks = session.takeChecks(*signature);
  session.takeInPlace(*signature);
  auto emitEntries = [&](llvm::Module &module) -> llvm::Error {
    if (!options.trusted)
      if (llvm::Error error = checkSymbols(module))
        return error;
    if (llvm::Error error = emitWrappers(module, *signature))
      return error;
    WeakRuntime(module).define();
    if (module.getTargetTriple().isWasm())
      widenFusedProducts(module);
    return llvm::Error::success();
  };
  if (options.format == Format::MLIR) {
    llvm::raw_string_ostream(code.object) << session.getModule() << "\n";
  } else {
    CodeFormat format = options.format == Format::LLVMIR ? CodeFormat::LLVMIR
                        : options.format == Format::Assembly
                            ? CodeFormat::Assembly
                            : CodeFormat::Object;
    auto bytes = generateCode(
        session.getModule(), signature->entry, emitEntries,
        {format, options.math, Optimization::Full, std::move(machine)});
    if (!bytes)
      return bytes.takeError();
    code.object.assign(bytes->begin(), bytes->end());
  }
  code.signature = std::move(*signature);
  code.remarks = session.takeRemarks();
  return code;
}

} // namespace

namespace linattn {

llvm::Expected<CompiledObject> compileObject(llvm::StringRef text,
                                             llvm::StringRef entry,
                                             llvm::StringRef fileName,
                                             const ObjectOptions &options) {
  std::optional<CompiledCode> code;
  if (options.isolated) {
    auto work = [&]() -> llvm::Expected<std::string> {
      auto compiled = compile(text, entry, fileName, options);
      if (!compiled)
        return compiled.takeError();
      return serialize(*compiled);
    };
    llvm::Expected<std::string> bytes = runIsolated(text, fileName, work);
    if (!bytes)
      return bytes.takeError();
    code = deserialize(*bytes);
    if (!code)
      return llvm::createStringError("expected the object of '" + fileName +
                                     "' from a child process, but got "
                                     "something else");
  } else {
    auto compiled = compile(text, entry, fileName, options);
    if (!compiled)
      return compiled.takeError();
    code = std::move(*compiled);
  }
  std::string header = writeHeader(code->signature, code->checks, fileName);
  return CompiledObject{std::move(code->object), std::move(code->signature),
                        std::move(header), std::move(code->remarks)};
}

} // namespace linattn
