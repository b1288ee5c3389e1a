//===- TargetMachine.cpp - The machine that code is for -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetMachine.h"
#include "linattn/CodeGen/CodeGen.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <cstdlib>
#include <mutex>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;

/// The CPU that LINATTN_CPU names. This machine must be able to run its code.
static const char *getForcedCPU() {
  static const char *forced = std::getenv("LINATTN_CPU");
  return forced && *forced ? forced : nullptr;
}

const std::string &linattn::detail::getTargetCPU() {
  static const std::string cpu =
      getForcedCPU() ? getForcedCPU() : llvm::sys::getHostCPUName().str();
  return cpu;
}

const std::string &linattn::detail::getTargetFeatures() {
  static const std::string features = [] {
    if (getForcedCPU()) // A named CPU has the features of its name.
      return std::string();
    llvm::StringMap<bool> map = llvm::sys::getHostCPUFeatures();
    // The map iterates in hash order; cache keys and code need a fixed one.
    std::vector<std::string> names;
    for (const auto &feature : map)
      names.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(names);
    return llvm::join(names, ",");
  }();
  return features;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
linattn::detail::createTargetMachine(const Machine &named) {
  bool isNamed = !named.cpu.empty();
  std::string cpu = isNamed ? named.cpu : getTargetCPU();
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  llvm::Triple triple(named.triple.empty() ? llvm::sys::getProcessTriple()
                                           : named.triple);
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("no code generator for " + triple.str() +
                                   ": " + error);
  llvm::TargetOptions options;
  // Fuse exactly the operations that the IR fuses: vector.fma arrives as
  // llvm.fmuladd, which Strict would split.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  if (triple.isRISCV64())
    options.MCOptions.ABIName = "lp64d";
  // The WebAssembly linker links position-independent code only to other such
  // code.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, isNamed ? named.features : getTargetFeatures(), options,
      triple.isWasm() ? llvm::Reloc::Static : llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive,
      /*JIT=*/!isNamed));
  if (!machine)
    return llvm::createStringError("no code generator for " + triple.str());
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(cpu))
    return llvm::createStringError(
        (isNamed ? "expected the name of a CPU of "
                 : "expected LINATTN_CPU to name a CPU of ") +
        triple.str() + ", but got " + cpu);
  return machine;
}

static VectorTarget describe(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo &cpu = *machine.getMCSubtargetInfo();
  auto has = [&](const char *feature) { return cpu.checkFeatures(feature); };
  VectorTarget target{128, 32};
  if (machine.getTargetTriple().isX86()) {
    target = {has("+avx2") ? 256 : 128, 16};
    if (has("+avx512f") && has("+avx512vl")) {
      target = {512, 32};
      target.avx512 = has("+avx512dq") && has("+avx512bw");
      target.avx512Bf16 = target.avx512 && has("+avx512bf16");
      target.fastDotProducts = target.avx512Bf16 && cpu.getCPU() == "znver4";
      target.amx = has("+amx-tile") && has("+amx-bf16");
    }
  }
  return target;
}

llvm::Expected<VectorTarget>
linattn::detail::getVectorTargetOf(const Machine &machine) {
  auto created = createTargetMachine(machine);
  if (!created)
    return created.takeError();
  VectorTarget target = describe(**created);
  if (machine.vectorBits)
    target.vectorBits = machine.vectorBits;
  return target;
}

static VectorTarget describeTarget() {
  auto machine = createTargetMachine();
  if (!machine) { // Code generation will report it.
    llvm::consumeError(machine.takeError());
    return {128, 16};
  }
  VectorTarget target = describe(**machine);
  if (getForcedCPU()) // Of another machine only the name is known.
    return target;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  target.l1 = std::max<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0);
#endif
  target.cores = std::max<int64_t>(sysconf(_SC_NPROCESSORS_CONF), 1);
  return target;
}

VectorTarget linattn::getVectorTarget() {
  static const VectorTarget target = describeTarget();
  return target;
}
