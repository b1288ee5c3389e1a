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

static llvm::Error define(llvm::orc::LLJIT &jit,
                          llvm::ArrayRef<HostSymbol> symbols) {
  llvm::orc::SymbolMap map;
  for (const HostSymbol &symbol : symbols)
    map[jit.mangleAndIntern(symbol.name)] = ExecutorSymbolDef(
        ExecutorAddr::fromPtr(symbol.address),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable);
  return jit.getMainJITDylib().define(
      llvm::orc::absoluteSymbols(std::move(map)));
}

llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
linattn::detail::loadObject(llvm::StringRef object, llvm::StringRef name,
                            llvm::ArrayRef<HostSymbol> symbols) {
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
  if (llvm::Error error = define(**jit, symbols))
    return std::move(error);
  // malloc, memcpy and libm.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, name);
  if (llvm::Error error = (*jit)->addObjectFile(std::move(buffer)))
    return std::move(error);
  return std::move(*jit);
}

/// The runtime is linked statically, so the dynamic linker cannot find it.
static llvm::SmallVector<HostSymbol> getRuntimeSymbols() {
  llvm::SmallVector<HostSymbol> symbols;
  symbols.push_back({"linattn_parallel_for",
                     reinterpret_cast<void *>(&linattn_parallel_for)});
  detail::forEachTracePrinter([&](llvm::StringRef symbol, void *address) {
    symbols.push_back({symbol, address});
  });
  return symbols;
}

llvm::Expected<std::unique_ptr<LoadedCode>>
LoadedCode::load(llvm::StringRef object, const Signature &signature) {
  auto jit = loadObject(object, signature.entry, getRuntimeSymbols());
  if (!jit)
    return jit.takeError();
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
