//===- BundleWriter.h - Files that the runner loads -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_BUNDLEWRITER_H
#define LINATTN_LIB_BUNDLE_BUNDLEWRITER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace linattn::detail {

/// Collects blobs, and puts them behind a manifest.
class BundleWriter {
public:
  /// Returns the blob's number in the manifest.
  int64_t addBlob(std::string blob);

  /// Adds "blobs" to the manifest and returns the whole file.
  std::string write(llvm::json::Object manifest);

private:
  std::vector<std::string> blobs;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_BUNDLEWRITER_H
