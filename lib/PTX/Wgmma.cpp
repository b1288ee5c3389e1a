//===- Wgmma.cpp - The products of a warpgroup, as text and bits ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/PTX/Wgmma.h"
#include "llvm/Support/raw_ostream.h"

using namespace linattn;

/// `{$first, …}`.
static std::string listOperands(unsigned first, unsigned count) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned i = 0; i < count; ++i)
    os << (i == 0 ? "{" : ", ") << "$" << first + i;
  os << "}";
  return text;
}

std::string WgmmaForm::getAssembly() const {
  llvm::StringRef type = isBF16 ? "bf16" : "f16";
  std::string text;
  llvm::raw_string_ostream os(text);
  unsigned a = numSums(), b = a + wordsOfA();
  os << "{ .reg .pred accumulates; setp.ne.b32 accumulates, "
     << int(accumulates) << ", 0; wgmma.mma_async.sync.aligned.m64n" << columns
     << "k16.f32." << type << "." << type << " " << listOperands(0, numSums())
     << ", ";
  if (registersA)
    os << listOperands(a, wordsOfA());
  else
    os << "$" << a;
  // No operand is negated; one in registers has no order to choose.
  os << ", $" << b << ", accumulates, 1, 1, " << (registersA ? "" : "0, ")
     << int(transposedB) << "; }";
  return text;
}

std::optional<WgmmaForm> WgmmaForm::parse(llvm::StringRef assembly) {
  auto [before, after] = assembly.split(".m64n");
  WgmmaForm form;
  if (after.consumeInteger(10, form.columns) || form.columns == 0 ||
      form.columns > 256 || form.columns % 8)
    return std::nullopt;
  form.isBF16 = after.starts_with("k16.f32.bf16");
  form.registersA = after.count('{') == 2;
  form.transposedB = after.ends_with("1; }");
  form.accumulates = before.contains("accumulates, 1,");
  if (form.getAssembly() != assembly)
    return std::nullopt;
  return form;
}

static constexpr llvm::StringLiteral kWait = "wgmma.wait_group.sync.aligned ";

std::string linattn::getWgmmaWait(unsigned pending) {
  return (kWait + llvm::Twine(pending) + ";").str();
}

std::optional<unsigned> linattn::parseWgmmaWait(llvm::StringRef assembly) {
  unsigned pending;
  if (!assembly.consume_front(kWait) || assembly.consumeInteger(10, pending) ||
      assembly != ";")
    return std::nullopt;
  return pending;
}
