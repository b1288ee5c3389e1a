//===- Assemble.cpp - Programs that finish code ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Assemble.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace ::linattn::detail;

/// Runs `program` with `options` on a file with the contents `input`. Returns
/// the contents of its output file, whose name follows the options.
static llvm::Expected<std::string>
runOnFiles(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> options,
           llvm::StringRef input) {
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("linattn", folder))
    return llvm::createStringError(code,
                                   "no temporary directory: " + code.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });
  auto inFolder = [&](const char *name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return std::string(path);
  };
  std::string in = inFolder("in"), out = inFolder("out"), log = inFolder("log");
  std::error_code code;
  {
    llvm::raw_fd_ostream stream(in, code);
    stream << input;
  }
  llvm::SmallVector<llvm::StringRef> command{program};
  command.append(options.begin(), options.end());
  command.append({"-o", out, in});
  std::string why;
  int status = llvm::sys::ExecuteAndWait(
      program, command, std::nullopt,
      {std::nullopt, llvm::StringRef(log), llvm::StringRef(log)},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  auto result = llvm::MemoryBuffer::getFile(out);
  if (status == 0 && result)
    return (*result)->getBuffer().str();
  auto said = llvm::MemoryBuffer::getFile(log);
  return llvm::createStringError(
      program + " failed: " + why +
      (said ? (*said)->getBuffer().rtrim().str() : ""));
}

namespace linattn::detail {

llvm::Expected<std::string>
assemblePTX(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef ptxas) {
  std::string arch = ("-arch=" + chip).str();
  return runOnFiles(ptxas, {arch, "-O3"}, ptx);
}

llvm::Expected<std::string> linkShared(llvm::StringRef object,
                                       llvm::StringRef linker) {
  return runOnFiles(linker,
                    {"-shared", "--gc-sections", "--strip-all",
                     "--build-id=none", "-z", "noexecstack"},
                    object);
}

} // namespace linattn::detail
