//===- Loader.cpp - Object code into this process ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loader.h"
#include "CodeGen.h"
#include "Trace.h"
#include "linattn-c/Runtime.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include <mutex>

using namespace linattn;
using namespace linattn::detail;
using llvm::orc::ExecutorAddr;
using llvm::orc::ExecutorSymbolDef;

LoadedCode::LoadedCode(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}

LoadedCode::~LoadedCode() = default;

/// The runtime is linked statically, so the dynamic linker cannot find it.
static llvm::Error defineRuntime(llvm::orc::LLJIT &jit) {
  llvm::orc::SymbolMap symbols;
  symbols[jit.mangleAndIntern("linattn_parallel_for")] = ExecutorSymbolDef(
      ExecutorAddr::fromPtr(&linattn_parallel_for),
      llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
  detail::forEachTracePrinter([&](llvm::StringRef symbol, void *address) {
    symbols[jit.mangleAndIntern(symbol)] = ExecutorSymbolDef(
        ExecutorAddr::fromPtr(address),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
  });
  return jit.getMainJITDylib().define(
      llvm::orc::absoluteSymbols(std::move(symbols)));
}

llvm::Expected<std::unique_ptr<LoadedCode>>
LoadedCode::load(llvm::StringRef object, const Signature &signature) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::orc::JITTargetMachineBuilder host{
      llvm::Triple(llvm::sys::getProcessTriple())};
  // Nothing is compiled and nothing has initialisers: no platform is needed.
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(host))
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = defineRuntime(**jit))
    return std::move(error);
  // malloc, memcpy and libm.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));

  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, signature.entry);
  if (llvm::Error error = (*jit)->addObjectFile(std::move(buffer)))
    return std::move(error);
  auto run = (*jit)->lookup(getRunSymbol(signature));
  if (!run)
    return run.takeError();
  auto shapes = (*jit)->lookup(getShapesSymbol(signature));
  if (!shapes)
    return shapes.takeError();

  std::unique_ptr<LoadedCode> code(new LoadedCode(std::move(*jit)));
  code->run = run->toPtr<Function>();
  code->shapes = shapes->toPtr<Function>();
  return code;
}
