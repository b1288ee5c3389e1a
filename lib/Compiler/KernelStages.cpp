//===- KernelStages.cpp - Intermediate results of a compilation -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelImpl.h"
#include "linattn/Compiler/Kernel.h"

#include <optional>

using namespace linattn;
using namespace linattn::detail;

/// Compiles the source of a kernel once more, for its intermediate results.
static llvm::Expected<std::vector<Stage>>
recompile(const Source &source, std::optional<CodeFormat> format,
          llvm::SmallVector<char, 0> *code) {
  Session session;
  auto signature = parse(session, source);
  if (!signature)
    return signature.takeError();
  std::vector<Stage> stages;
  if (llvm::Error error = session.lower(source.options, InnermostStride::Unit,
                                        format ? nullptr : &stages))
    return std::move(error);
  if (format) {
    auto generated =
        generateCode(session.getModule(), *signature, *format, source.options);
    if (!generated)
      return generated.takeError();
    *code = std::move(*generated);
  }
  return stages;
}

static llvm::Expected<std::string> getCodeText(const Source &source,
                                               CodeFormat format) {
  llvm::SmallVector<char, 0> code;
  auto stages = recompile(source, format, &code);
  if (!stages)
    return stages.takeError();
  return std::string(code.begin(), code.end());
}

llvm::Expected<std::vector<std::string>> Kernel::stages() const {
  auto stages = recompile(impl->getSource(), std::nullopt, nullptr);
  if (!stages)
    return stages.takeError();
  std::vector<std::string> names;
  for (const Stage &stage : *stages)
    names.push_back(stage.name);
  return names;
}

llvm::Expected<std::string> Kernel::mlir(llvm::StringRef name) const {
  auto stages = recompile(impl->getSource(), std::nullopt, nullptr);
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
