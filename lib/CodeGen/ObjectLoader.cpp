//===- ObjectLoader.cpp - Object code into this process -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/ObjectLoader.h"

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
