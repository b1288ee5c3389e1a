//===- ObjectCache.cpp - Compiled code on disk ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ObjectCache.h"
#include "BuildId.h"
#include "CodeGen.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;

/// Changes with the file format.
static constexpr llvm::StringLiteral kMagic = "LINATTN3";
static constexpr size_t kChecksumSize = 32;
static constexpr size_t kHeaderSize = 8 + kChecksumSize + 8;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

std::string
linattn::detail::getCacheKey(llvm::StringRef text, llvm::StringRef entry,
                             const CompilerOptions &options,
                             mlir::linattn::InnermostStride innermost) {
  llvm::SHA256 hash;
  // Lengths keep neighbouring fields from running into each other.
  auto add = [&](llvm::StringRef field) {
    hash.update(std::to_string(field.size()) + ":");
    hash.update(field);
  };
  add(text);
  add(entry);
  add(std::to_string(static_cast<int>(options.target)));
  add(options.chip);
  add(options.copy);
  add(options.reassociate);
  add(options.form);
  add(options.checkDecays ? "decays" : "");
  add(options.prime ? std::to_string(*options.prime) : "floats");
  add(options.math == Math::Fast ? "fast" : "strict");
  add(innermost == mlir::linattn::InnermostStride::Unit ? "unit" : "dynamic");
  add(getTargetCPU());
  add(getTargetFeatures());
  // Forms are chosen by it, and remarks tell of the cores.
  VectorTarget target = getVectorTarget();
  add(std::to_string(target.l1));
  add(std::to_string(target.cores));
  add(LLVM_VERSION_STRING);
  add(getBuildId());
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

bool linattn::detail::isCacheEnabled() {
  auto setting = llvm::sys::Process::GetEnv("LINATTN_CACHE");
  return !setting || (*setting != "off" && *setting != "0");
}

//===----------------------------------------------------------------------===//
// Format
//===----------------------------------------------------------------------===//

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

std::string linattn::detail::serialize(const CompiledCode &code) {
  llvm::json::Value manifest =
      llvm::json::Object{{"entry", code.signature.entry},
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

std::optional<CompiledCode>
linattn::detail::deserialize(llvm::StringRef bytes) {
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
  if (!object || !object->getString("entry") ||
      !textsFromJSON(*object, "checks", code.checks) ||
      !textsFromJSON(*object, "remarks", code.remarks) ||
      !listFromJSON(*object, "arguments", code.signature.arguments) ||
      !listFromJSON(*object, "results", code.signature.results))
    return std::nullopt;
  code.signature.entry = object->getString("entry")->str();
  code.object = bytes.drop_front(size).str();
  return code;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string chooseDirectory(const CompilerOptions &options) {
  if (!options.cacheDir.empty())
    return options.cacheDir;
  auto variable = [](const char *name) {
    auto value = llvm::sys::Process::GetEnv(name);
    return value ? *value : std::string();
  };
  if (std::string dir = variable("LINATTN_CACHE_DIR"); !dir.empty())
    return dir;
  llvm::SmallString<128> path(variable("XDG_CACHE_HOME"));
  if (path.empty()) {
    path = variable("HOME");
    if (path.empty())
      return "";
    llvm::sys::path::append(path, ".cache");
  }
  llvm::sys::path::append(path, "linattn");
  return path.str().str();
}

/// Whether only this user could have written there.
static bool isTrusted(const struct stat &status) {
  return status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

DiskCache DiskCache::open(const CompilerOptions &options) {
  DiskCache cache;
  if (!options.diskCache || !isCacheEnabled())
    return cache;
  if (getBuildId().empty()) {
    cache.problem =
        "this build has no id that would tell its code from others'";
    return cache;
  }
  std::string path = chooseDirectory(options);
  if (path.empty()) {
    cache.problem = "there is no home directory";
    return cache;
  }
  if (auto error = llvm::sys::fs::create_directories(
          llvm::sys::path::parent_path(path))) {
    cache.problem = "cannot create '" + path + "': " + error.message();
    return cache;
  }
  struct stat status;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    cache.problem = "cannot create '" + path + "': " + strerror(errno);
    return cache;
  }
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    cache.problem = "'" + path + "' is not a directory";
  else if (!isTrusted(status))
    cache.problem = "'" + path + "' belongs to or can be written by others";
  else
    cache.directory = path;
  return cache;
}

std::string DiskCache::getPath(llvm::StringRef key) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, key + ".lak");
  return path.str().str();
}

std::optional<CompiledCode> DiskCache::read(llvm::StringRef key) const {
  if (directory.empty())
    return std::nullopt;
  // The file that was checked is the file that is read: by descriptor.
  // A pipe in its place must not make us wait.
  int file = ::open(getPath(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return std::nullopt;
  std::optional<CompiledCode> code;
  struct stat status;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      isTrusted(status)) {
    auto buffer = llvm::MemoryBuffer::getOpenFile(
        file, key, status.st_size, /*RequiresNullTerminator=*/false,
        /*IsVolatile=*/true);
    if (buffer)
      code = deserialize((*buffer)->getBuffer());
  }
  ::close(file);
  return code;
}

void DiskCache::write(llvm::StringRef key, const CompiledCode &code) const {
  if (directory.empty())
    return;
  std::string path = getPath(key);
  auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp",
                                              llvm::sys::fs::owner_read |
                                                  llvm::sys::fs::owner_write);
  if (!file)
    return llvm::consumeError(file.takeError());
  {
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os << serialize(code);
    os.flush();
    if (os.has_error()) {
      os.clear_error();
      return llvm::consumeError(file->discard());
    }
  }
  llvm::consumeError(file->keep(path));
}
