//===- CpuImage.cpp - Shared libraries for CPUs
//----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CpuImage.h"
#include "Assemble.h"
#include "CodeGen.h"
#include "ForeignCode.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace linattn;
using namespace linattn::detail;

/// A library that is loaded from memory finds no symbols of the one that loads
/// it: the runtime's function is called through a pointer.
static void callThroughPointer(llvm::Module &module, llvm::StringRef name,
                               llvm::StringRef pointerName) {
  llvm::IRBuilder<> b(module.getContext());
  auto *pointer = new llvm::GlobalVariable(
      module, b.getPtrTy(), /*isConstant=*/false,
      llvm::GlobalValue::ExternalLinkage,
      llvm::ConstantPointerNull::get(b.getPtrTy()), pointerName);
  llvm::Function *function = module.getFunction(name);
  if (!function)
    return;
  function->setLinkage(llvm::GlobalValue::InternalLinkage);
  b.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", function));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : function->args())
    arguments.push_back(&argument);
  b.CreateCall(function->getFunctionType(), b.CreateLoad(b.getPtrTy(), pointer),
               arguments);
  b.CreateRetVoid();
}

llvm::Expected<std::string> linattn::detail::compileCpuImage(
    mlir::ModuleOp mlirModule, const Signature &signature, llvm::StringRef cpu,
    const BundleOptions &options) {
  auto emitEntries = [&](llvm::Module &module) -> llvm::Error {
    if (!options.trusted)
      if (llvm::Error error = checkSymbols(module))
        return error;
    if (llvm::Error error = emitWrappers(module, signature))
      return error;
    callThroughPointer(module, "linattn_parallel_for",
                       "linattn_host_parallel_for");
    return llvm::Error::success();
  };
  auto object = generateCode(
      mlirModule, signature.entry, emitEntries,
      {CodeFormat::Object, options.math, /*runsOnce=*/false, cpu.str()});
  if (!object)
    return object.takeError();
  return linkShared({object->data(), object->size()}, options.linker);
}
