//===- CompiledCode.cpp - Compiled code as bytes --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Session/CompiledCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"

using namespace linattn;
using namespace linattn::detail;

/// Changes with the file format.
static constexpr llvm::StringLiteral kMagic = "LINATTN4";
static constexpr size_t kChecksumSize = 32;
static constexpr size_t kHeaderSize = 8 + kChecksumSize + 8;

static llvm::json::Value toJSON(const ValueInfo &info) {
  return llvm::json::Object{{"name", info.name},
                            {"dtype", std::string(getName(info.dtype))},
                            {"tensor", info.isTensor},
                            {"element", info.isElement},
                            {"in_place_of", info.inPlaceOf},
                            {"shape", llvm::json::Array(info.shape)}};
}

static bool fromJSON(const llvm::json::Value &json, ValueInfo &info,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  std::string dtype;
  std::vector<int64_t> shape;
  if (!mapper || !mapper.map("name", info.name) ||
      !mapper.map("dtype", dtype) || !mapper.map("tensor", info.isTensor) ||
      !mapper.map("element", info.isElement) ||
      !mapper.map("in_place_of", info.inPlaceOf) || !mapper.map("shape", shape))
    return false;
  std::optional<DType> parsed = parseDType(dtype);
  if (!parsed)
    return false;
  info.dtype = *parsed;
  info.shape.assign(shape.begin(), shape.end());
  return true;
}

template <typename Infos>
static llvm::json::Array listToJSON(const Infos &infos) {
  llvm::json::Array array;
  for (const ValueInfo &info : infos)
    array.push_back(toJSON(info));
  return array;
}

template <typename Infos>
static bool listFromJSON(const llvm::json::Object &object, llvm::StringRef name,
                         Infos &infos) {
  const llvm::json::Array *array = object.getArray(name);
  if (!array)
    return false;
  llvm::json::Path::Root root;
  for (const llvm::json::Value &value : *array)
    if (!fromJSON(value, infos.emplace_back(), root))
      return false;
  return true;
}

static bool textsFromJSON(const llvm::json::Object &object,
                          llvm::StringRef name,
                          std::vector<std::string> &texts) {
  const llvm::json::Array *array = object.getArray(name);
  if (!array)
    return false;
  for (const llvm::json::Value &value : *array) {
    auto text = value.getAsString();
    if (!text)
      return false;
    texts.push_back(text->str());
  }
  return true;
}

std::string linattn::detail::serialize(const CompiledCode &code,
                                       llvm::StringRef key) {
  llvm::json::Value manifest =
      llvm::json::Object{{"key", key},
                         {"entry", code.signature.entry},
                         {"arguments", listToJSON(code.signature.arguments)},
                         {"results", listToJSON(code.signature.results)},
                         {"checks", llvm::json::Array(code.checks)},
                         {"remarks", llvm::json::Array(code.remarks)}};
  std::string text = llvm::formatv("{0}", manifest).str();
  char size[8];
  llvm::support::endian::write64le(size, text.size());
  std::string payload = llvm::StringRef(size, 8).str() + text + code.object;
  auto checksum = llvm::SHA256::hash(llvm::arrayRefFromStringRef(payload));
  return kMagic.str() + llvm::toStringRef(checksum).str() + payload;
}

std::optional<CompiledCode> linattn::detail::deserialize(llvm::StringRef bytes,
                                                         llvm::StringRef key) {
  if (bytes.size() < kHeaderSize || !bytes.consume_front(kMagic))
    return std::nullopt;
  llvm::StringRef stored = bytes.take_front(kChecksumSize);
  bytes = bytes.drop_front(kChecksumSize);
  auto checksum = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  if (stored != llvm::toStringRef(checksum))
    return std::nullopt;
  uint64_t size = llvm::support::endian::read64le(bytes.data());
  bytes = bytes.drop_front(8);
  if (size > bytes.size())
    return std::nullopt;

  llvm::Expected<llvm::json::Value> manifest =
      llvm::json::parse(bytes.take_front(size));
  if (!manifest) {
    llvm::consumeError(manifest.takeError());
    return std::nullopt;
  }
  CompiledCode code;
  const llvm::json::Object *object = manifest->getAsObject();
  if (!object || object->getString("key") != key ||
      !object->getString("entry") ||
      !textsFromJSON(*object, "checks", code.checks) ||
      !textsFromJSON(*object, "remarks", code.remarks) ||
      !listFromJSON(*object, "arguments", code.signature.arguments) ||
      !listFromJSON(*object, "results", code.signature.results))
    return std::nullopt;
  code.signature.entry = object->getString("entry")->str();
  code.object = bytes.drop_front(size).str();
  return code;
}
