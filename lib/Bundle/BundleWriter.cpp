//===- BundleWriter.cpp - Files that the runner loads ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BundleWriter.h"
#include "linattn/Support/BundleFormat.h"
#include "llvm/Support/raw_ostream.h"

using namespace ::linattn;
using namespace ::linattn::detail;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "headers are written as they are in memory");

int64_t BundleWriter::addBlob(std::string blob) {
  blobs.push_back(std::move(blob));
  return blobs.size() - 1;
}

std::string BundleWriter::write(llvm::json::Object manifest) {
  llvm::json::Array list;
  uint64_t offset = 0;
  for (const std::string &blob : blobs) {
    list.push_back(
        llvm::json::Object{{"offset", static_cast<int64_t>(offset)},
                           {"size", static_cast<int64_t>(blob.size())}});
    offset = alignBlob(offset + blob.size());
  }
  manifest["blobs"] = std::move(list);
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::json::Value(std::move(manifest)) << "\n";

  BundleHeader header{};
  std::memcpy(header.magic, kBundleMagic, sizeof(kBundleMagic));
  header.version = kBundleVersion;
  header.manifestSize = text.size();
  std::string file(reinterpret_cast<const char *>(&header), sizeof(header));
  file += text;
  for (const std::string &blob : blobs) {
    file.resize(alignBlob(file.size()), '\0');
    file += blob;
  }
  header.fileSize = file.size();
  std::memcpy(file.data(), &header, sizeof(header));
  header.checksum = getBundleChecksum(file.data(), file.size());
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}
