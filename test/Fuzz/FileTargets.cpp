//===- FileTargets.cpp - Files from elsewhere -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"
#include "include/linattn/Session/CompiledCode.h"
#include "linattn-c/Runner.h"
#include "linattn/Support/BundleFormat.h"
#include "linattn/Support/Npy.h"
#include "linattn/Support/Sizes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <dlfcn.h>

using namespace linattn;
using namespace linattn::fuzz;

void linattn::fuzz::report(const llvm::Twine &what) {
  llvm::errs() << "finding: " << what << "\n";
  std::abort();
}

bool linattn::fuzz::runNpy(llvm::StringRef input) {
  llvm::Expected<NpyArray> array = parseNpy(input, "x.npy");
  if (!array) {
    if (llvm::toString(array.takeError()).empty())
      report("an error without a message");
    return false;
  }
  std::optional<int64_t> bytes =
      getByteCount(getByteSize(array->dtype), array->shape);
  if (!bytes || static_cast<size_t>(*bytes) != array->data.size())
    report("an array of another size than its data");
  if (array->strides.size() != array->shape.size())
    report("an array without a stride for each extent");
  return true;
}

//===----------------------------------------------------------------------===//
// Bundles
//===----------------------------------------------------------------------===//

namespace {

/// Errors must say something.
bool take(linattn_error *error) {
  if (!error)
    return true;
  if (!*linattn_error_message(error))
    report("an error without a message");
  linattn_error_free(error);
  return false;
}

/// The driver without a GPU keeps what was called until it is told to forget.
void forgetCalls() {
  static auto *reset = [] {
    setenv("LINATTN_CUDA_DRIVER", LINATTN_FAKE_DRIVER, /*overwrite=*/1);
    void *library = dlopen(LINATTN_FAKE_DRIVER, RTLD_NOW);
    void *symbol = library ? dlsym(library, "fakeCudaReset") : nullptr;
    if (!symbol)
      report("no driver at " LINATTN_FAKE_DRIVER);
    return reinterpret_cast<void (*)()>(symbol);
  }();
  reset();
}

/// Views of the operands as the kernel describes them. No element is read:
/// nothing runs.
void launchOn(linattn_kernel *kernel, int64_t openExtent) {
  static char memory[64];
  std::vector<linattn_view> views;
  std::vector<std::vector<int64_t>> shapes;
  int32_t count =
      linattn_kernel_num_arguments(kernel) + linattn_kernel_num_results(kernel);
  for (int32_t i = 0; i < count; ++i) {
    const linattn_operand *operand = linattn_kernel_operand(kernel, i);
    std::vector<int64_t> &shape =
        shapes.emplace_back(operand->shape, operand->shape + operand->rank);
    std::replace(shape.begin(), shape.end(), int64_t(-1), openExtent);
    // Apart from one another, and aligned as the target needs.
    void *data = operand->is_scalar
                     ? static_cast<void *>(memory)
                     : reinterpret_cast<void *>(uintptr_t(i + 1) << 40);
    views.push_back({data, nullptr, nullptr, operand->rank, operand->dtype});
  }
  for (auto [view, shape] : llvm::zip(views, shapes))
    view.shape = shape.data();
  std::vector<int64_t> extents(64 * (1 + linattn_kernel_num_results(kernel)));
  take(linattn_kernel_result_shapes(kernel, views.data(),
                                    linattn_kernel_num_arguments(kernel),
                                    extents.data()));
  size_t bytes = 0;
  take(linattn_kernel_workspace_size(kernel, views.data(), count, &bytes));
  take(linattn_kernel_launch(kernel, views.data(), count,
                             reinterpret_cast<void *>(uintptr_t(1) << 52),
                             size_t(1) << 50, nullptr));
}

} // namespace

/// A file around a manifest. Its blobs are PTX that has the kernels it names,
/// and zeros.
static std::string makeBundle(llvm::StringRef manifest) {
  constexpr size_t blobBytes = 1 << 17;
  BundleHeader header = {};
  std::memcpy(header.magic, kBundleMagic, sizeof(kBundleMagic));
  header.version = kBundleVersion;
  header.manifestSize = manifest.size();
  size_t start = getBlobStart(manifest.size());
  header.fileSize = start + blobBytes;
  std::string file(header.fileSize, '\0');
  std::memcpy(file.data() + sizeof(header), manifest.data(), manifest.size());
  std::string ptx;
  for (auto [text, rest] = manifest.split("\"kernel\":\""); !rest.empty();
       std::tie(text, rest) = rest.split("\"kernel\":\""))
    ptx += ".entry " + rest.split('"').first.str() + "()\n";
  ptx.copy(file.data() + start, blobBytes - 1);
  std::memcpy(file.data(), &header, sizeof(header));
  header.checksum = getBundleChecksum(file.data(), file.size());
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

bool linattn::fuzz::runBundle(llvm::StringRef input) {
  forgetCalls();
  // Machine code of a CPU is loaded at once, and nothing can check that.
  if (input.contains("\"cpu\"") || input.contains("\\u"))
    return false;
  std::string file = makeBundle(input);
  linattn_kernel *kernel = nullptr;
  if (!take(linattn_kernel_load(file.data(), file.size(), &kernel)))
    return false;
  if (take(linattn_kernel_prepare(kernel)))
    for (int64_t openExtent : {0, 3, 200})
      launchOn(kernel, openExtent);
  linattn_kernel_free(kernel);
  return true;
}

//===----------------------------------------------------------------------===//
// Entries of the cache
//===----------------------------------------------------------------------===//

bool linattn::fuzz::runCache(llvm::StringRef input) {
  // As an entry begins: its magic, a checksum, the size of the manifest.
  static const std::string empty = detail::serialize({}, "key");
  constexpr size_t magicBytes = 8, checksumBytes = 32;
  auto checksum = llvm::SHA256::hash(llvm::arrayRefFromStringRef(input));
  std::string file = empty.substr(0, magicBytes) +
                     llvm::toStringRef(checksum).str() + input.str();
  static_assert(sizeof(checksum) == checksumBytes);
  std::optional<detail::CompiledCode> code = detail::deserialize(file, "key");
  if (!code)
    return false;
  std::string again = detail::serialize(*code, "key");
  std::optional<detail::CompiledCode> copy = detail::deserialize(again, "key");
  if (!copy || detail::serialize(*copy, "key") != again)
    report("an entry that changes as it is written and read");
  return true;
}
