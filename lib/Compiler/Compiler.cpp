//===- Compiler.cpp - From MLIR text to kernels ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Compiler.h"
#include "KernelImpl.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Support/LargeMemory.h"
#include "linattn/Support/OutOfMemory.h"
#include "linattn/Support/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include <list>

using namespace linattn;
using namespace linattn::detail;

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

namespace {

struct Counters {
  std::atomic<uint64_t> memoryHits{0}, diskHits{0}, misses{0};
};

/// The most recently used kernels of the process.
class MemoryCache {
public:
  std::shared_ptr<KernelImpl> find(llvm::StringRef key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = entries.find(key);
    if (it == entries.end())
      return nullptr;
    order.splice(order.begin(), order, it->second);
    return it->second->second;
  }

  void insert(llvm::StringRef key, std::shared_ptr<KernelImpl> impl) {
    std::lock_guard<std::mutex> lock(mutex);
    // Two threads may have compiled the same kernel; either result is valid.
    if (entries.count(key))
      return;
    order.emplace_front(key.str(), std::move(impl));
    entries[key] = order.begin();
    if (order.size() <= kMaxKernels)
      return;
    entries.erase(order.back().first);
    order.pop_back();
  }

  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    entries.clear();
    order.clear();
  }

private:
  /// A kernel is some tens of kilobytes.
  static constexpr size_t kMaxKernels = 1024;

  using Order = std::list<std::pair<std::string, std::shared_ptr<KernelImpl>>>;
  std::mutex mutex;
  Order order;
  llvm::StringMap<Order::iterator> entries;
};

} // namespace

static Counters &getCounters() {
  static Counters counters;
  return counters;
}

static MemoryCache &getMemoryCache() {
  // Never destroyed: kernels may run until the process is gone.
  static auto *cache = new MemoryCache;
  return *cache;
}

CacheStats Compiler::getCacheStats() {
  Counters &counters = getCounters();
  return {counters.memoryHits, counters.diskHits, counters.misses};
}

llvm::Expected<DiskCacheInfo>
Compiler::getDiskCacheInfo(const CompilerOptions &options) {
  auto cache = DiskCache::open(options);
  if (!cache)
    return cache.takeError();
  return cache->getInfo();
}

void Compiler::clearMemoryCache() { getMemoryCache().clear(); }

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// Marks the floats of a signature as elements of a prime field.
static void useElements(Signature &signature) {
  auto convert = [](ValueInfo &info) {
    if (!isFloat(info.dtype))
      return;
    info.dtype = DType::I64;
    info.isElement = true;
  };
  llvm::for_each(signature.arguments, convert);
  llvm::for_each(signature.results, convert);
}

static llvm::Expected<CompiledCode> compileCode(const Source &source,
                                                const EntryLayout &layout) {
  Session session;
  auto signature = parse(session, source);
  if (!signature)
    return signature.takeError();
  if (source.options.prime)
    useElements(*signature);
  if (llvm::Error error = session.lower(source.options, layout))
    return std::move(error);
  std::vector<std::string> checks = session.takeChecks(*signature);
  session.takeInPlace(*signature);
  auto object = generateCode(session.getModule(), *signature,
                             CodeFormat::Object, source.options);
  if (!object)
    return object.takeError();
  return CompiledCode{std::move(*signature), std::move(checks),
                      session.takeRemarks(),
                      std::string(object->begin(), object->end())};
}

static llvm::Expected<CompiledCode> compileSource(const Source &source,
                                                  const EntryLayout &layout) {
  if (source.options.target == Target::NVVM)
    return compileForDevice(source);
  return compileCode(source, layout);
}

static llvm::Expected<CompiledCode> compileIsolated(const Source &source,
                                                    const EntryLayout &layout) {
  auto work = [&]() -> llvm::Expected<std::string> {
    llvm::Expected<CompiledCode> code = compileSource(source, layout);
    if (!code)
      return code.takeError();
    return serialize(*code);
  };
  llvm::Expected<std::string> bytes =
      runIsolated(source.text, source.fileName, work);
  if (!bytes)
    return bytes.takeError();
  std::optional<CompiledCode> code = deserialize(*bytes);
  if (!code)
    return llvm::createStringError(
        "expected the code of '" + source.fileName +
        "' from a child process, but got something else");
  return std::move(*code);
}

/// Code from the disk, or newly compiled.
static llvm::Expected<CompiledCode> findCode(const Source &source,
                                             const EntryLayout &layout) {
  std::string key =
      getCacheKey(source.text, source.entry, source.options, layout);
  llvm::Expected<DiskCache> disk = DiskCache::open(source.options);
  if (!disk)
    return disk.takeError();
  auto find = [&] {
    std::optional<CompiledCode> code = disk->read(key);
    getCounters().diskHits += code.has_value();
    return code;
  };
  if (std::optional<CompiledCode> code = find())
    return std::move(*code);
  CompileClaim claim = disk->claim(key);
  if (std::optional<CompiledCode> code = find())
    return std::move(*code);
  // LLVM ends the process where an allocation fails.
  constexpr size_t compilationBytes = size_t(256) << 20;
  if (!canAllocate(compilationBytes))
    return llvm::make_error<OutOfMemoryError>(
        source.fileName + ": error: expected " +
        llvm::Twine(compilationBytes >> 20) +
        " MiB of memory to compile in, but the system gave less");
  ++getCounters().misses;
  llvm::Expected<CompiledCode> code = source.options.isolated
                                          ? compileIsolated(source, layout)
                                          : compileSource(source, layout);
  if (!code)
    return code.takeError();
  disk->write(key, *code);
  if (!disk->getProblem().empty())
    code->remarks.push_back("analysis: cache: not used: " + disk->getProblem());
  return code;
}

llvm::Expected<CompiledCode>
linattn::detail::getCode(const Source &source, const EntryLayout &layout) {
  llvm::Expected<CompiledCode> code = findCode(source, layout);
  std::string why;
  if (code && (resolveMatrixUnit(source.options, &why), !why.empty()))
    code->remarks.push_back("missed: matrix-unit: products run in vectors: " +
                            why);
  return code;
}

KernelImpl::KernelImpl(Source source, CompiledCode &compiled)
    : source(std::move(source)), signature(std::move(compiled.signature)),
      checks(std::move(compiled.checks)), remarks(std::move(compiled.remarks)) {
}

llvm::Expected<std::shared_ptr<KernelImpl>> KernelImpl::create(Source source) {
  llvm::Expected<CompiledCode> compiled =
      getCode(source, InnermostStride::Unit);
  if (!compiled)
    return compiled.takeError();
  if (source.options.target == Target::NVVM) {
    auto device = DeviceCode::load(compiled->object);
    if (!device)
      return device.takeError();
    std::shared_ptr<KernelImpl> impl(
        new KernelImpl(std::move(source), *compiled));
    impl->device = std::move(*device);
    return impl;
  }
  auto code = LoadedCode::load(compiled->object, compiled->signature);
  if (!code)
    return code.takeError();
  std::shared_ptr<KernelImpl> impl(
      new KernelImpl(std::move(source), *compiled));
  impl->unit.code = std::move(*code);
  impl->unit.ready = impl->unit.code.get();
  return impl;
}

/// Code for arbitrary strides loads elements one by one, so it is the last
/// choice.
EntryLayout KernelImpl::getLayout(llvm::ArrayRef<BufferView> inputs,
                                  llvm::ArrayRef<BufferView> outputs) const {
  EntryLayout layout;
  int64_t number = 0;
  for (llvm::ArrayRef<BufferView> views : {inputs, outputs})
    for (const BufferView &view : views) {
      if (!hasKnownStride(view)) {
        if (!canBeTransposed(view))
          return InnermostStride::Dynamic;
        layout.transposed.push_back(number);
      }
      ++number;
    }
  return layout;
}

KernelImpl::Variant &KernelImpl::getVariant(const EntryLayout &layout) {
  if (layout.innermost != InnermostStride::Unit)
    return dynamic;
  if (layout.transposed.empty())
    return unit;
  std::lock_guard<std::mutex> lock(transposedMutex);
  return transposed[std::vector<int64_t>(layout.transposed.begin(),
                                         layout.transposed.end())];
}

llvm::Expected<const LoadedCode *>
KernelImpl::getCodeFor(llvm::ArrayRef<BufferView> inputs,
                       llvm::ArrayRef<BufferView> outputs) {
  EntryLayout layout = getLayout(inputs, outputs);
  Variant &variant = getVariant(layout);
  if (const LoadedCode *code = variant.ready)
    return code;
  std::lock_guard<std::mutex> lock(variant.mutex);
  if (variant.code)
    return variant.code.get();
  llvm::Expected<CompiledCode> compiled = getCode(source, layout);
  if (!compiled)
    return compiled.takeError();
  auto code = LoadedCode::load(compiled->object, compiled->signature);
  if (!code)
    return code.takeError();
  variant.code = std::move(*code);
  variant.ready = variant.code.get();
  return variant.code.get();
}

/// Takes what the caller leaves open from the environment.
static llvm::Error setDefaults(CompilerOptions &options) {
  llvm::Error error = llvm::Error::success();
  auto set = [&](auto &option, auto getDefault) {
    if (option || error)
      return;
    auto value = getDefault();
    if (value)
      option = *value;
    else
      error = value.takeError();
  };
  set(options.math, getDefaultMath);
  set(options.optimization, getDefaultOptimization);
  set(options.matrixUnit, getDefaultMatrixUnit);
  set(options.scanMma, getDefaultScanMma);
  return error;
}

bool Compiler::hasMatrixUnit() {
  CompilerOptions options;
  if (llvm::Error error = setDefaults(options)) {
    llvm::consumeError(std::move(error)); // Compilation reports it.
    return false;
  }
  return resolveMatrixUnit(options) != MatrixUnit::None;
}

llvm::Expected<Kernel> Compiler::compile(llvm::StringRef text,
                                         llvm::StringRef entry,
                                         llvm::StringRef fileName) const {
  CompilerOptions resolved = options;
  if (llvm::Error error = setDefaults(resolved))
    return std::move(error);
  if (resolved.target == Target::NVVM && resolved.chip.empty())
    if (llvm::Error error = describeDevice(resolved))
      return std::move(error);
  if (llvm::Error error =
          detail::verifyKernelOptions(resolved.copy, *resolved.scanMma))
    return std::move(error);
  bool useMemory = options.memoryCache && isCacheEnabled();
  std::string key;
  if (useMemory) {
    key = getCacheKey(text, entry, resolved, InnermostStride::Unit);
    if (std::shared_ptr<KernelImpl> impl = getMemoryCache().find(key)) {
      ++getCounters().memoryHits;
      return Kernel(std::move(impl));
    }
  }
  auto impl =
      KernelImpl::create({text.str(), entry.str(), fileName.str(), resolved});
  if (!impl)
    return impl.takeError();
  if (useMemory)
    getMemoryCache().insert(key, *impl);
  return Kernel(std::move(*impl));
}

llvm::Expected<Kernel> Compiler::compileFile(llvm::StringRef path,
                                             llvm::StringRef entry) const {
  llvm::Expected<std::string> text = readText(path);
  if (!text)
    return text.takeError();
  return compile(*text, entry, path);
}

llvm::Expected<Kernel> Compiler::compile(mlir::ModuleOp module,
                                         llvm::StringRef entry) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo(
                        /*enable=*/true, /*prettyForm=*/false));
  return compile(text, entry, "<module>");
}

llvm::Expected<std::vector<std::string>>
Compiler::getPublicFunctions(llvm::StringRef text, llvm::StringRef fileName,
                             bool isolated) {
  if (!isolated)
    return Session().getPublicFunctions(text, fileName);
  auto work = [&]() -> llvm::Expected<std::string> {
    auto names = Session().getPublicFunctions(text, fileName);
    if (!names)
      return names.takeError();
    return llvm::join(*names, std::string(1, '\0'));
  };
  llvm::Expected<std::string> joined = runIsolated(text, fileName, work);
  if (!joined)
    return joined.takeError();
  std::vector<std::string> names;
  if (!joined->empty())
    for (llvm::StringRef name : llvm::split(*joined, '\0'))
      names.push_back(name.str());
  return names;
}
