//===- CpuImage.cpp - Shared libraries for CPUs ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuImage.h"
#include "Assemble.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/CodeGen/ForeignCode.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace ::linattn;
using namespace ::linattn::detail;

/// A library that is loaded from memory cannot import symbols of its loader. It
/// calls `linattn_<name>` of the runtime through the pointer
/// `linattn_host_<name>`.
static void callThroughPointer(llvm::Module &module, llvm::StringRef name) {
  llvm::IRBuilder<> b(module.getContext());
  auto *pointer = new llvm::GlobalVariable(
      module, b.getPtrTy(), /*isConstant=*/false,
      llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantPointerNull::get(b.getPtrTy()), "linattn_host_" + name);
  llvm::Function *function = module.getFunction(("linattn_" + name).str());
  if (!function)
    return;
  function->setLinkage(llvm::GlobalValue::InternalLinkage);
  b.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", function));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : function->args())
    arguments.push_back(&argument);
  llvm::CallInst *result =
      b.CreateCall(function->getFunctionType(),
                   b.CreateLoad(b.getPtrTy(), pointer), arguments);
  // The function itself now loads the pointer.
  result->setAttributes(function->getAttributes());
  function->removeFnAttr(llvm::Attribute::Memory);
  if (result->getType()->isVoidTy())
    b.CreateRetVoid();
  else
    b.CreateRet(result);
}

/// The flag is a variable of the loader, too, and is reached through the
/// pointer `linattn_host_poll_flag`.
static void readFlagThroughPointer(llvm::Module &module) {
  llvm::IRBuilder<> b(module.getContext());
  auto *pointer = new llvm::GlobalVariable(
      module, b.getPtrTy(), /*isConstant=*/false,
      llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantPointerNull::get(b.getPtrTy()), "linattn_host_poll_flag");
  llvm::GlobalVariable *flag = module.getNamedGlobal("linattn_poll_flag");
  if (!flag)
    return;
  for (llvm::Use &use : llvm::make_early_inc_range(flag->uses())) {
    b.SetInsertPoint(llvm::cast<llvm::Instruction>(use.getUser()));
    use.set(b.CreateLoad(b.getPtrTy(), pointer));
  }
  flag->eraseFromParent();
}

namespace linattn::detail {

llvm::Expected<std::string> compileCpuImage(mlir::ModuleOp mlirModule,
                                            const Signature &signature,
                                            const Machine &machine,
                                            const BundleOptions &options) {
  auto emitEntries = [&](llvm::Module &module) -> llvm::Error {
    if (!options.trusted)
      if (llvm::Error error = checkSymbols(module))
        return error;
    if (llvm::Error error = emitWrappers(module, signature))
      return error;
    for (const char *name : {"parallel_for", "allocate", "free", "poll"})
      callThroughPointer(module, name);
    readFlagThroughPointer(module);
    return llvm::Error::success();
  };
  auto object = generateCode(
      mlirModule, signature.entry, emitEntries,
      {CodeFormat::Object, options.math, Optimization::Full, machine});
  if (!object)
    return object.takeError();
  return linkShared({object->data(), object->size()}, options.linker);
}

} // namespace linattn::detail
