//===- ModuleTargets.cpp - Modules from elsewhere -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"
#include "include/linattn/Session/Session.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace linattn;
using namespace linattn::fuzz;
using detail::Session;

/// The dialects of layers.
static constexpr llvm::StringRef kDialects[] = {"func",   "linattn", "arith",
                                                "tensor", "onnx",    "torch"};

static CompilerOptions chooseOptions(Choices &choices) {
  CompilerOptions options;
  options.target = choices.pick(
      {Target::CPU, Target::CPU, Target::Reference, Target::NVVMEmulated});
  options.form = choices.pick(
      {"auto", "auto", "auto", "token", "state_tile", "chunk:5", "segments:4"});
  options.math = Math::Strict;
  options.checkDecays = choices.rarely(4);
  if (choices.rarely(8))
    options.prime = choices.flag();
  return options;
}

static std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

/// Errors must say something, and of ops that were written, not of those that
/// passes made of them.
static void expectMessage(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  if (message.empty())
    report("an error without a message");
  llvm::StringRef name = llvm::StringRef(message).split("error: '").second;
  name = name.take_until([](char c) { return c == '\''; });
  if (name.contains('.') &&
      !llvm::is_contained(kDialects, name.split('.').first))
    report(message);
}

bool linattn::fuzz::lowerText(llvm::StringRef text, Choices &choices) {
  Session session;
  auto signature = session.parse(text, "", "<fuzz>");
  if (!signature) {
    expectMessage(signature.takeError());
    return false;
  }
  std::string printed = print(session.getModule());
  {
    Session second;
    auto again = second.parse(printed, "", "<printed>");
    if (!again)
      report("a module that cannot be read as it is printed: " +
             llvm::toString(again.takeError()) + "\n" + printed);
    if (print(second.getModule()) != printed)
      report("a module that changes as it is printed and read:\n" + printed);
  }
  CompilerOptions options = chooseOptions(choices);
  if (llvm::Error error =
          session.lower(options, detail::InnermostStride::Unit)) {
    expectMessage(std::move(error));
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// MLIR's package has no assertions: a text may end a process in ops of MLIR
/// itself, which is why text of unknown origin is compiled in another one
/// (include/linattn/Session/Isolation.h). Here it may hold those that layers
/// are made of.
static bool hasOtherDialects(llvm::StringRef text) {
  auto isName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  for (size_t dot = text.find('.'); dot != llvm::StringRef::npos;
       dot = text.find('.', dot + 1)) {
    size_t begin = dot;
    while (begin > 0 && isName(text[begin - 1]) && text[begin - 1] != '.')
      --begin;
    llvm::StringRef name = text.slice(begin, dot);
    if (name.empty() || llvm::isDigit(name.front()))
      continue;
    if (!llvm::is_contained(kDialects, name))
      return true;
  }
  // Names of dialects in types and attributes, and of dialects that are left
  // out of names of ops.
  return text.contains("!llvm") || text.contains("affine") ||
         text.contains("sparse") || text.contains("dense_resource") ||
         text.contains("{-#");
}

bool linattn::fuzz::runModule(llvm::StringRef input) {
  // The text decides what happens to it.
  uint64_t hash = llvm::xxh3_64bits(input);
  Choices choices({reinterpret_cast<const char *>(&hash), sizeof(hash)});
  return !hasOtherDialects(input) && lowerText(input, choices);
}
