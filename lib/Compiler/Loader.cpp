//===- Loader.cpp - Object code into this process -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loader.h"
#include "Trace.h"
#include "linattn-c/Runtime.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/CodeGen/ObjectLoader.h"
#include "linattn/Emulator/LaunchLog.h"
#include "linattn/Field/FieldFunctions.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace linattn;
using namespace linattn::detail;

LoadedCode::LoadedCode(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}

LoadedCode::~LoadedCode() = default;

/// The runtime is linked statically, so the dynamic linker cannot find it.
static llvm::SmallVector<HostSymbol> getRuntimeSymbols() {
  llvm::SmallVector<HostSymbol> symbols;
  symbols.push_back({"linattn_parallel_for",
                     reinterpret_cast<void *>(&linattn_parallel_for)});
  symbols.push_back(
      {"linattn_allocate", reinterpret_cast<void *>(&linattn_allocate)});
  symbols.push_back({"linattn_free", reinterpret_cast<void *>(&linattn_free)});
  symbols.push_back({"linattn_poll", reinterpret_cast<void *>(&linattn_poll)});
  symbols.push_back(
      {"linattn_poll_flag", const_cast<int32_t *>(linattn_get_poll_flag())});
  detail::forEachTracePrinter([&](llvm::StringRef symbol, void *address) {
    symbols.push_back({symbol, address});
  });
  emulator::forEachLaunchFunction([&](llvm::StringRef symbol, void *address) {
    symbols.push_back({symbol, address});
  });
  for (const FieldFunction &function : getFieldFunctions())
    symbols.push_back({function.symbol, function.address});
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
