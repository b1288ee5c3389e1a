//===- LaunchLog.cpp - Reports of launches from host code -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Emulator/LaunchLog.h"
#include "LaunchRecord.h"
#include "linattn/Emulator/Emulator.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

using namespace linattn::emulator;

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

static thread_local LaunchLog *current = nullptr;

LaunchLog::LaunchLog() : outer(current) { current = this; }

LaunchLog::~LaunchLog() {
  current = outer;
  if (outer)
    llvm::append_range(outer->launches, std::move(launches));
}

LaunchLog *LaunchLog::getCurrent() { return current; }

llvm::Error LaunchLog::takeError() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Launch &launch : launches) {
    if (!launch.problem.empty())
      os << launch.kernel << ": " << launch.problem << "\n";
    else if (!launch.report.isClean())
      os << launch.kernel << ": " << launch.report.describeFindings();
  }
  if (text.empty())
    return llvm::Error::success();
  llvm::StringRef trimmed = llvm::StringRef(text).rtrim();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), trimmed);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Returns the kernel of this text, and compiles it at its first launch.
static llvm::Expected<std::shared_ptr<EmulatedKernel>>
getKernel(llvm::StringRef text, llvm::StringRef name) {
  // Programs launch few kernels, so that the cache is small.
  constexpr size_t kMaxKernels = 64;
  static std::mutex mutex;
  static auto *kernels = new llvm::StringMap<std::shared_ptr<EmulatedKernel>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::string key = (name + "\n" + text).str();
  if (auto found = kernels->find(key); found != kernels->end())
    return found->second;
  auto kernel = EmulatedKernel::compile(text, name, name);
  if (!kernel)
    return kernel.takeError();
  if (kernels->size() >= kMaxKernels)
    kernels->clear();
  auto shared = std::make_shared<EmulatedKernel>(std::move(*kernel));
  kernels->try_emplace(key, shared);
  return shared;
}

static Argument getArgument(const LaunchArgument &argument) {
  switch (static_cast<LaunchArgument::Kind>(argument.kind)) {
  case LaunchArgument::Kind::I32:
    return Argument::i32(static_cast<int32_t>(argument.value));
  case LaunchArgument::Kind::I64:
    return Argument::i64(argument.value);
  case LaunchArgument::Kind::F16:
    return Argument::half(argument.value, /*isBrain=*/false);
  case LaunchArgument::Kind::BF16:
    return Argument::half(argument.value, /*isBrain=*/true);
  case LaunchArgument::Kind::F32:
    return Argument::f32(
        llvm::bit_cast<float>(static_cast<uint32_t>(argument.value)));
  case LaunchArgument::Kind::F64:
    return Argument::f64(llvm::bit_cast<double>(argument.value));
  case LaunchArgument::Kind::Buffer:
    return Argument::buffer(reinterpret_cast<void *>(argument.value),
                            argument.bytes);
  }
  llvm_unreachable("unknown kind of argument");
}

static llvm::Expected<Report> launch(llvm::StringRef text, llvm::StringRef name,
                                     const LaunchRecord &record) {
  auto kernel = getKernel(text, name);
  if (!kernel)
    return kernel.takeError();
  LaunchOptions options;
  options.grid = {unsigned(record.grid[0]), unsigned(record.grid[1]),
                  unsigned(record.grid[2])};
  options.block = {unsigned(record.block[0]), unsigned(record.block[1]),
                   unsigned(record.block[2])};
  options.sharedBytes = record.shared;
  llvm::SmallVector<Argument> arguments;
  for (const LaunchArgument &argument :
       llvm::ArrayRef(reinterpret_cast<const LaunchArgument *>(&record + 1),
                      record.numArguments))
    arguments.push_back(getArgument(argument));
  return (*kernel)->launch(arguments, options);
}

static void emulateLaunch(const char *text, const char *name,
                          const LaunchRecord *record) {
  LaunchLog::Launch entry;
  entry.kernel = name;
  llvm::Expected<Report> report = ::launch(text, name, *record);
  if (report)
    entry.report = std::move(*report);
  else
    entry.problem = llvm::toString(report.takeError());
  if (LaunchLog *log = LaunchLog::getCurrent())
    log->add(std::move(entry));
}

void linattn::emulator::forEachLaunchFunction(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit) {
  visit(kLaunchSymbol, reinterpret_cast<void *>(&emulateLaunch));
}
