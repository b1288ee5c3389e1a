//===- ObjectCache.cpp - Compiled code on disk ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ObjectCache.h"
#include "BuildId.h"
#include "linattn/CodeGen/CodeGen.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

std::string
linattn::detail::getCacheKey(llvm::StringRef text, llvm::StringRef entry,
                             const CompilerOptions &options,
                             const mlir::linattn::EntryLayout &layout) {
  // Lists all options, so that the compiler reports a new one: all are part of
  // the key except `isolated`, `memoryCache`, `diskCache` and `cacheDir`.
  [[maybe_unused]] const auto &[o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11,
                                o12, o13, o14, o15, o16, o17, o18] = options;
  llvm::SHA256 hash;
  // Lengths keep adjacent fields apart.
  auto add = [&](llvm::StringRef field) {
    hash.update(std::to_string(field.size()) + ":");
    hash.update(field);
  };
  add(text);
  add(entry);
  add(std::to_string(static_cast<int>(options.target)));
  add(options.chip);
  for (int64_t hint : {options.hints.sequences, options.hints.tokens,
                       options.hints.multiprocessors, options.hints.bandwidth})
    add(std::to_string(hint));
  add(options.copy);
  add(options.scanMma.value_or(""));
  add(options.reassociate);
  add(options.form);
  add(options.checkDecays ? "decays" : "");
  add(options.prime ? std::to_string(*options.prime) : "floats");
  add(options.math == Math::Fast ? "fast" : "strict");
  add(options.optimization == Optimization::Quick ? "quick" : "full");
  // A missing unit leaves a remark in the result; another process may have the
  // unit.
  for (MatrixUnit unit : {options.matrixUnit.value_or(MatrixUnit::None),
                          resolveMatrixUnit(options)})
    add(std::to_string(static_cast<int>(unit)));
  add(options.differentiate ? "differentiate" : "");
  for (int64_t operand : options.differentiate.value_or(std::vector<int64_t>()))
    add(std::to_string(operand));
  // An untrusted module must not find the code of a trusted one.
  add(options.trusted ? "trusted" : "");
  bool isUnit = layout.innermost == mlir::linattn::InnermostStride::Unit;
  add(isUnit ? "unit" : "dynamic");
  add(std::to_string(layout.transposed.size()));
  for (int64_t number : layout.transposed)
    add(std::to_string(number));
  add(getTargetCPU());
  add(getTargetFeatures());
  // Forms depend on the target, and remarks name the number of cores.
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
// Claims
//===----------------------------------------------------------------------===//

CompileClaim::CompileClaim(CompileClaim &&other) noexcept
    : path(std::move(other.path)), file(std::exchange(other.file, -1)) {}

CompileClaim::~CompileClaim() {
  if (file < 0)
    return;
  // Those that wait have opened the file already, and find the code.
  (void)llvm::sys::fs::remove(path);
  ::close(file);
}

CompileClaim CompileClaim::wait(std::string path,
                                std::chrono::milliseconds patience) {
  constexpr auto pause = std::chrono::milliseconds(2);
  CompileClaim claim;
  claim.file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  claim.path = std::move(path);
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (claim.file >= 0 && flock(claim.file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > deadline) {
      ::close(std::exchange(claim.file, -1));
      break;
    }
    std::this_thread::sleep_for(pause);
  }
  return claim;
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

/// Whether the file belongs to this user and no other user can write to it.
static bool isTrusted(const struct stat &status) {
  return status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

/// Bytes, or with a K, M or G behind the number.
static llvm::Expected<uint64_t> getMaxBytes() {
  auto text = llvm::sys::Process::GetEnv("LINATTN_CACHE_SIZE");
  if (!text || text->empty())
    return uint64_t(1) << 30;
  llvm::StringRef rest = *text;
  unsigned shift = rest.consume_back("K")   ? 10
                   : rest.consume_back("M") ? 20
                   : rest.consume_back("G") ? 30
                                            : 0;
  uint64_t number;
  if (rest.getAsInteger(10, number) || number > (uint64_t(1) << 62 >> shift))
    return llvm::createStringError(
        "expected LINATTN_CACHE_SIZE to be a size such as 512M, but got '" +
        *text + "'");
  return number << shift;
}

/// Warns once per problem that every compilation starts anew.
static void warnOnce(const std::string &problem) {
  static std::once_flag once;
  std::call_once(once, [&] {
    llvm::errs() << "linattn: warning: compiled code is not kept: " << problem
                 << "\n";
  });
}

void DiskCache::use(const std::string &path) {
  // Processes may have different working directories.
  if (!llvm::sys::path::is_absolute(path)) {
    problem =
        "expected the path of the cache to be absolute, but got '" + path + "'";
    return;
  }
  if (auto error = llvm::sys::fs::create_directories(
          llvm::sys::path::parent_path(path))) {
    problem = "cannot create '" + path + "': " + error.message();
    return;
  }
  struct stat status;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    problem = "cannot create '" + path + "': " + strerror(errno);
  else if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    problem = "'" + path + "' is not a directory";
  else if (!isTrusted(status))
    problem = "'" + path + "' belongs to or can be written by others";
  else
    directory = path;
}

llvm::Expected<DiskCache> DiskCache::open(const CompilerOptions &options) {
  DiskCache cache;
  if (!options.diskCache || !isCacheEnabled())
    return cache;
  llvm::Expected<uint64_t> maxBytes = getMaxBytes();
  if (!maxBytes)
    return maxBytes.takeError();
  cache.maxBytes = *maxBytes;
  if (getBuildId().empty()) {
    cache.problem =
        "this build has no id that distinguishes its code from others'";
    return cache;
  }
  std::string path = chooseDirectory(options);
  if (path.empty())
    cache.problem = "the home directory is unknown";
  else
    cache.use(path);
  if (!cache.problem.empty())
    warnOnce(cache.problem);
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
  // The checked file is opened and read by one descriptor. A pipe in its place
  // must not block.
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
      code = deserialize((*buffer)->getBuffer(), key);
    // Recently used entries are evicted last. Failing to set the time does no
    // harm.
    if (code)
      (void)futimens(file, nullptr);
  }
  ::close(file);
  return code;
}

CompileClaim DiskCache::claim(llvm::StringRef key) const {
  // A file of this name goes after an hour, should its process end early.
  return directory.empty() ? CompileClaim()
                           : CompileClaim::wait(getPath(key) + ".tmp");
}

void DiskCache::write(llvm::StringRef key, const CompiledCode &code) const {
  if (directory.empty())
    return;
  std::string path = getPath(key);
  auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%.tmp",
                                              llvm::sys::fs::owner_read |
                                                  llvm::sys::fs::owner_write);
  if (!file)
    return warnOnce("'" + directory +
                    "' cannot be written: " + llvm::toString(file.takeError()));
  std::string text = serialize(code, key);
  {
    llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
    os << text;
    os.flush();
    if (os.has_error()) {
      os.clear_error();
      return llvm::consumeError(file->discard());
    }
  }
  llvm::consumeError(file->keep(path));
  if (mayExceed(text.size()))
    evict();
}

std::vector<DiskCache::File> DiskCache::list() const {
  std::vector<File> files;
  std::error_code error;
  auto now = std::chrono::system_clock::now();
  for (llvm::sys::fs::directory_iterator it(directory, error), end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef path = it->path();
    auto status = it->status();
    if (!status)
      continue;
    auto used = status->getLastModificationTime();
    if (path.ends_with(".tmp") && now - used > std::chrono::hours(1))
      (void)llvm::sys::fs::remove(path);
    if (path.ends_with(".lak"))
      files.push_back({used, status->getSize(), path.str()});
  }
  return files;
}

DiskCacheInfo DiskCache::getInfo() const {
  DiskCacheInfo info{directory, problem, 0, 0, maxBytes};
  if (directory.empty())
    return info;
  for (const File &file : list()) {
    ++info.files;
    info.bytes += file.bytes;
  }
  return info;
}

/// The bytes that this process may still write to a folder, by folder and
/// bound, before it has to look at the folder's files again.
static std::mutex budgetMutex;
static std::map<std::pair<std::string, uint64_t>, uint64_t> budgets;

bool DiskCache::mayExceed(uint64_t bytes) const {
  std::lock_guard<std::mutex> lock(budgetMutex);
  uint64_t &budget = budgets[{directory, maxBytes}];
  if (bytes > budget)
    return true;
  budget -= bytes;
  return false;
}

void DiskCache::evict() const {
  std::vector<File> files = list();
  uint64_t total = 0;
  for (const File &file : files)
    total += file.bytes;
  llvm::sort(files, [](const File &a, const File &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const File &file : files) {
    if (total <= maxBytes)
      break;
    // Another process may have removed it already.
    (void)llvm::sys::fs::remove(file.path);
    total -= file.bytes;
  }
  // Other processes write too: half of the room is left to them.
  std::lock_guard<std::mutex> lock(budgetMutex);
  budgets[{directory, maxBytes}] =
      total < maxBytes ? (maxBytes - total) / 2 : 0;
}
