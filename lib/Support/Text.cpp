//===- Text.cpp - Text of modules -----------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/Text.h"
#include "linattn/Support/LargeMemory.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

using namespace linattn;

/// Reserves memory for this number of bytes in total.
static llvm::Error reserve(std::string &text, uint64_t bytes,
                           llvm::StringRef path) {
  // The text, the copy in the child that compiles it, and the IR made from it.
  constexpr uint64_t copies = 4;
  if (bytes > std::numeric_limits<size_t>::max() / copies ||
      !canAllocate(copies * bytes))
    return llvm::createStringError(
        path + ": error: expected text that fits into memory " +
        llvm::Twine(copies) + " times, but got at least " +
        llvm::Twine(text.empty() ? bytes : text.size()) + " bytes");
  text.reserve(bytes);
  return llvm::Error::success();
}

static llvm::Expected<std::string> readAll(llvm::sys::fs::file_t file,
                                           llvm::StringRef path) {
  constexpr uint64_t least = 1 << 16;
  llvm::sys::fs::file_status status;
  uint64_t size = least;
  if (!llvm::sys::fs::status(file, status) &&
      status.type() == llvm::sys::fs::file_type::regular_file)
    size = std::max(least, status.getSize() + 1); // One more sees the end.
  std::string text;
  if (llvm::Error error = reserve(text, size, path))
    return std::move(error);
  while (true) {
    size_t filled = text.size();
    if (filled == text.capacity())
      if (llvm::Error error = reserve(text, 2 * uint64_t(filled), path))
        return std::move(error);
    text.resize(std::min(text.capacity(), filled + size_t(least)));
    auto count = llvm::sys::fs::readNativeFile(
        file, llvm::MutableArrayRef(&text[filled], text.size() - filled));
    if (!count)
      return llvm::createStringError(path + ": error: cannot be read: " +
                                     llvm::toString(count.takeError()));
    text.resize(filled + *count);
    if (*count == 0)
      return text;
  }
}

llvm::Expected<std::string> linattn::readText(llvm::StringRef path) {
  if (path == "-")
    return readAll(llvm::sys::fs::getStdinHandle(), path);
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return llvm::createStringError(
        path + ": error: cannot be read: " + llvm::toString(file.takeError()));
  llvm::scope_exit close([&] { llvm::sys::fs::closeFile(*file); });
  return readAll(*file, path);
}
