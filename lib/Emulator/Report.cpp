//===- Report.cpp - Findings of an emulated launch ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Emulator/Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace linattn::emulator;

static constexpr const char *kNames[kNumChecks] = {
    "shared-race",          "global-race",
    "shared-out-of-bounds", "global-out-of-bounds",
    "read-only-write",      "uninitialized-read",
    "early-read",           "misaligned",
    "divergence",           "deadlock",
    "missing-fence",        "bad-tensor-map"};

const char *linattn::emulator::getName(Check check) {
  return kNames[static_cast<unsigned>(check)];
}

Traffic &Traffic::operator+=(const Traffic &other) {
  sharedPhases += other.sharedPhases;
  sharedCycles += other.sharedCycles;
  sectorsRead += other.sectorsRead;
  sectorsWritten += other.sectorsWritten;
  return *this;
}

double Traffic::getCyclesPerPhase() const {
  return sharedPhases ? double(sharedCycles) / double(sharedPhases) : 0;
}

bool Report::isClean() const {
  return finished && llvm::all_of(findings, [](const Finding &finding) {
           return finding.count == 0;
         });
}

std::string Report::describeFindings() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned i = 0; i < kNumChecks; ++i)
    if (findings[i].count > 0)
      os << kNames[i] << ": " << findings[i].count << ", first "
         << findings[i].example << "\n";
  return text;
}

std::string Report::describeTraffic() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "shared memory: " << traffic.sharedPhases << " phases, "
     << llvm::format("%.3f", traffic.getCyclesPerPhase())
     << " bank cycles each\n"
     << "global memory: " << 32 * traffic.sectorsRead << " bytes read ("
     << uniqueBytesRead << " of them different), "
     << 32 * traffic.sectorsWritten << " bytes written (" << uniqueBytesWritten
     << " different)\n";
  return text;
}
