//===- KernelImpl.h - State of a kernel -------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_KERNELIMPL_H
#define LINATTN_LIB_COMPILER_KERNELIMPL_H

#include "DeviceCode.h"
#include "Loader.h"
#include "ObjectCache.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Session/Session.h"

#include <atomic>
#include <map>
#include <mutex>

namespace linattn::detail {

/// Where a kernel came from, and enough to compile it again: for the other
/// layout, or to look at its IR.
struct Source {
  std::string text;
  std::string entry;
  std::string fileName;
  CompilerOptions options;
};

/// Object code for `source`, from the disk cache or through MLIR.
llvm::Expected<CompiledCode> getCode(const Source &source,
                                     const EntryLayout &layout);

/// The code of one kernel. Immutable but for the code of further layouts, which
/// is compiled when it is first needed.
class KernelImpl {
public:
  static llvm::Expected<std::shared_ptr<KernelImpl>> create(Source source);

  const Source &getSource() const { return source; }
  const Signature &getSignature() const { return signature; }
  const std::vector<std::string> &getChecks() const { return checks; }
  const std::vector<std::string> &getRemarks() const { return remarks; }

  /// The code if it is for a GPU, else null.
  DeviceCode *getDeviceCode() const { return device.get(); }

  /// Whether code for unit strides may be called with this view: kernels of a
  /// GPU take gates of any strides.
  bool hasKnownStride(const BufferView &view) const {
    return view.hasUnitInnermostStride() ||
           (source.options.target == Target::NVVMEmulated &&
            view.getRank() != 4);
  }

  /// Whether there is code that takes this view, which lacks that stride,
  /// transposed: kernels for the CPU take tokens and states so.
  bool canBeTransposed(const BufferView &view) const {
    return source.options.target == Target::CPU && view.getRank() == 4 &&
           view.strides[2] == 1 && !source.options.prime;
  }

  /// The layout that code for these views may assume.
  EntryLayout getLayout(llvm::ArrayRef<BufferView> inputs,
                        llvm::ArrayRef<BufferView> outputs) const;

  /// Code for the CPU that may be called with these views.
  llvm::Expected<const LoadedCode *>
  getCodeFor(llvm::ArrayRef<BufferView> inputs,
             llvm::ArrayRef<BufferView> outputs);

private:
  struct Variant {
    std::mutex mutex;
    std::unique_ptr<LoadedCode> code;
    /// Set once `code` is, for callers that need no lock.
    std::atomic<const LoadedCode *> ready{nullptr};
  };

  KernelImpl(Source source, CompiledCode &compiled);
  Variant &getVariant(const EntryLayout &layout);

  Source source;
  Signature signature;
  std::vector<std::string> checks;
  std::vector<std::string> remarks;
  Variant unit, dynamic;
  /// By the arguments and results that are transposed.
  std::map<std::vector<int64_t>, Variant> transposed;
  std::mutex transposedMutex;
  std::unique_ptr<DeviceCode> device;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_KERNELIMPL_H
