//===- Targets.cpp - Machines that objects are for ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"
#include "Assemble.h"

#include "llvm-c/Target.h"
#include "llvm/Support/Error.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace linattn;

namespace {

/// An architecture, and the vectors that most of its machines have.
struct Architecture {
  llvm::Triple::ArchType arch;
  llvm::StringRef cpu, features;
  void (*initialize)();
};

#define LINATTN_INITIALIZE(target)                                             \
  [] {                                                                         \
    LLVMInitialize##target##TargetInfo();                                      \
    LLVMInitialize##target##Target();                                          \
    LLVMInitialize##target##TargetMC();                                        \
    LLVMInitialize##target##AsmPrinter();                                      \
  }

const Architecture architectures[] = {
    {llvm::Triple::x86_64, "x86-64-v3", "", LINATTN_INITIALIZE(X86)},
    {llvm::Triple::aarch64, "generic", "", LINATTN_INITIALIZE(AArch64)},
    {llvm::Triple::riscv64, "generic-rv64", "+m,+a,+f,+d,+c,+v",
     LINATTN_INITIALIZE(RISCV)},
    {llvm::Triple::wasm32, "generic", "+simd128,+bulk-memory",
     LINATTN_INITIALIZE(WebAssembly)},
};

} // namespace

static void addFeatures(std::string &features, const llvm::Twine &more) {
  features += ((features.empty() ? "" : ",") + more).str();
}

/// Sets the length of vectors where the architecture leaves it open.
static llvm::Error setVectorBits(const llvm::Triple &triple, int64_t bits,
                                 ObjectOptions &options) {
  if (bits < 128 || bits > 2048 || !llvm::isPowerOf2_64(bits))
    return llvm::createStringError("expected --vector-bits to be a power of 2 "
                                   "from 128 to 2048, but got " +
                                   llvm::Twine(bits));
  if (triple.isAArch64())
    addFeatures(options.features, "+sve");
  else if (triple.isRISCV64())
    addFeatures(options.features, "+zvl" + llvm::Twine(bits) + "b");
  else
    return llvm::createStringError("expected --vector-bits with a target of "
                                   "aarch64 or riscv64, but got " +
                                   triple.str());
  options.vectorBits = bits;
  return llvm::Error::success();
}

llvm::Error linattn::setMachine(llvm::StringRef target, llvm::StringRef cpu,
                                llvm::StringRef features, int64_t vectorBits,
                                ObjectOptions &options) {
  bool isHost = target == "cpu";
  llvm::Triple triple(isHost ? llvm::sys::getProcessTriple()
                             : llvm::Triple::normalize(target));
  for (const Architecture &it : architectures) {
    if (it.arch != triple.getArch())
      continue;
    it.initialize();
    options.triple = triple.str();
    options.cpu = cpu.empty() ? it.cpu.str() : cpu.str();
    options.features = cpu.empty() ? it.features.str() : "";
    if (cpu == "native") {
      if (!isHost)
        return llvm::createStringError(
            "expected --cpu=native with --target=cpu, but got " + target);
      options.cpu = llvm::sys::getHostCPUName().str();
    }
    if (!features.empty())
      addFeatures(options.features, features);
    return vectorBits ? setVectorBits(triple, vectorBits, options)
                      : llvm::Error::success();
  }
  return llvm::createStringError(
      "expected the target of an object to be cpu or a triple of x86_64, "
      "aarch64, riscv64 or wasm32, but got '" +
      target + "'");
}

llvm::Expected<std::string> linattn::linkObject(llvm::StringRef object,
                                                const std::string &linker,
                                                const ObjectOptions &options) {
  if (llvm::Triple(options.triple).isWasm())
    return llvm::createStringError(
        "expected an object for WebAssembly, which its program links, but got "
        "--emit=shared");
  if (linker.empty())
    return llvm::createStringError("expected ld.lld or ld to be installed, or "
                                   "one to be named by --linker");
  return detail::linkShared(object, linker);
}
