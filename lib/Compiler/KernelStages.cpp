//===- KernelStages.cpp - Intermediate results of a compilation -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelImpl.h"
#include "linattn/Compiler/Kernel.h"

using namespace linattn;
using namespace linattn::detail;

llvm::Expected<llvm::ArrayRef<Stage>> KernelImpl::getStages() {
  std::lock_guard<std::mutex> lock(stagesMutex);
  if (stages.empty()) {
    Session session;
    if (auto parsed = parse(session, source); !parsed)
      return parsed.takeError();
    std::vector<Stage> made;
    if (llvm::Error error =
            session.lower(source.options, InnermostStride::Unit, &made))
      return std::move(error);
    stages = std::move(made);
  }
  return stages;
}

/// Compiles the source of a kernel once more, to another kind of text.
static llvm::Expected<std::string> getCodeText(const Source &source,
                                               CodeFormat format) {
  Session session;
  auto signature = parse(session, source);
  if (!signature)
    return signature.takeError();
  if (llvm::Error error =
          session.lower(source.options, InnermostStride::Unit, nullptr))
    return std::move(error);
  auto code =
      generateCode(session.getModule(), *signature, format, source.options);
  if (!code)
    return code.takeError();
  return std::string(code->begin(), code->end());
}

llvm::Expected<std::vector<std::string>> Kernel::stages() const {
  auto stages = impl->getStages();
  if (!stages)
    return stages.takeError();
  std::vector<std::string> names;
  for (const Stage &stage : *stages)
    names.push_back(stage.name);
  return names;
}

llvm::Expected<std::string> Kernel::mlir(llvm::StringRef name) const {
  auto stages = impl->getStages();
  if (!stages)
    return stages.takeError();
  std::string known;
  for (const Stage &stage : *stages) {
    if (stage.name == name)
      return stage.ir;
    known += (known.empty() ? "" : ", ") + stage.name;
  }
  return llvm::createStringError("expected a stage among " + known +
                                 ", but got '" + name + "'");
}

llvm::Expected<std::string> Kernel::llvmIR() const {
  return getCodeText(impl->getSource(), CodeFormat::LLVMIR);
}

llvm::Expected<std::string> Kernel::assembly() const {
  return getCodeText(impl->getSource(), CodeFormat::Assembly);
}
