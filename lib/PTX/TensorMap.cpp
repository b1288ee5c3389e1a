//===- TensorMap.cpp - Tensor maps that a kernel makes, as text -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/PTX/TensorMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace linattn;

static constexpr llvm::StringLiteral kFields[] = {
    "global_address", "rank",           "box_dim",  "global_dim",
    "global_stride",  "element_stride", "elemtype", "interleave_layout",
    "swizzle_mode",   "fill_mode"};
static constexpr llvm::StringLiteral kReplace = "tensormap.replace.tile.";

std::string TensorMapReplace::getAssembly() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << kReplace << kFields[static_cast<unsigned>(field)]
     << ".shared::cta.b1024." << (isWide() ? "b64" : "b32") << " [$0], ";
  if (hasDim())
    os << dim << ", ";
  if (hasConstant())
    os << constant << ";";
  else
    os << "$1;";
  return text;
}

std::optional<TensorMapReplace>
TensorMapReplace::parse(llvm::StringRef assembly) {
  llvm::StringRef rest = assembly;
  if (!rest.consume_front(kReplace))
    return std::nullopt;
  const auto *name = llvm::find(kFields, rest.split('.').first);
  if (name == std::end(kFields))
    return std::nullopt;
  TensorMapReplace replace;
  replace.field = static_cast<TensorMapField>(name - std::begin(kFields));
  rest = rest.split("[$0], ").second;
  if ((replace.hasDim() && rest.consumeInteger(10, replace.dim)) ||
      (replace.hasConstant() && rest.consumeInteger(10, replace.constant)) ||
      replace.dim >= tensor_map::maxRank || replace.getAssembly() != assembly)
    return std::nullopt;
  return replace;
}

llvm::StringRef linattn::getTensorMapPublish() {
  return "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
         "release.gpu.sync.aligned [$0], [$1], 128;";
}
