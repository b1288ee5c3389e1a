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

/// The source of a kernel, from which it can be compiled again: for another
/// layout, or to inspect its IR.
struct Source {
  std::string text;
  std::string entry;
  std::string fileName;
  CompilerOptions options;
};

inline llvm::Expected<Signature> parse(Session &session, const Source &source) {
  const CompilerOptions &options = source.options;
  return session.parse(source.text, source.entry, source.fileName,
                       options.trusted, options.differentiate, &options);
}

/// Object code for `source`, from the disk cache or through MLIR.
llvm::Expected<CompiledCode> getCode(const Source &source,
                                     const EntryLayout &layout);

/// The code of one kernel. It is immutable, except that code for further
/// layouts is compiled on demand.
class KernelImpl {
public:
  static llvm::Expected<std::shared_ptr<KernelImpl>> create(Source source);

  const Source &getSource() const { return source; }
  const Signature &getSignature() const { return signature; }
  const std::vector<std::string> &getChecks() const { return checks; }
  const std::vector<std::string> &getRemarks() const { return remarks; }

  /// The code if it is for a GPU, else null.
  DeviceCode *getDeviceCode() const { return device.get(); }

  /// Whether code for unit strides may be called with this view. Kernels of a
  /// GPU take gates of any strides.
  bool hasKnownStride(const BufferView &view) const {
    return view.hasUnitInnermostStride() ||
           (source.options.target == Target::NVVMEmulated &&
            view.getRank() != 4);
  }

  /// Whether there is code for the transpose of this view, which lacks a unit
  /// stride. Kernels for the CPU take transposed tokens and states.
  bool canBeTransposed(const BufferView &view) const {
    return source.options.target == Target::CPU && view.getRank() == 4 &&
           view.strides[2] == 1 && !source.options.prime;
  }

  /// The layout that code for these views may assume.
  EntryLayout getLayout(llvm::ArrayRef<BufferView> inputs,
                        llvm::ArrayRef<BufferView> outputs) const;

  /// The stages of the compilation. The first call compiles once more: the
  /// cache holds object code alone.
  llvm::Expected<llvm::ArrayRef<Stage>> getStages();

  /// Code for the CPU that may be called with these views.
  llvm::Expected<const LoadedCode *>
  getCodeFor(llvm::ArrayRef<BufferView> inputs,
             llvm::ArrayRef<BufferView> outputs);

private:
  struct Variant {
    std::mutex mutex;
    std::unique_ptr<LoadedCode> code;
    /// Set together with `code`, for readers without the lock.
    std::atomic<const LoadedCode *> ready{nullptr};
  };

  KernelImpl(Source source, CompiledCode &compiled);
  Variant &getVariant(const EntryLayout &layout);

  Source source;
  Signature signature;
  std::vector<std::string> checks;
  std::vector<std::string> remarks;
  Variant unit, dynamic;
  /// Variants by the transposed arguments and results.
  std::map<std::vector<int64_t>, Variant> transposed;
  std::mutex transposedMutex;
  std::unique_ptr<DeviceCode> device;
  std::vector<Stage> stages;
  std::mutex stagesMutex;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_KERNELIMPL_H
