//===- LaunchLog.h - Reports of launches from host code ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_EMULATOR_LAUNCHLOG_H
#define LINATTN_EMULATOR_LAUNCHLOG_H

#include "linattn/Emulator/Report.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace linattn::emulator {

/// Collects the reports of the kernels that host code launches on this thread
/// while the log lives. An inner log adds its launches to the outer one when it
/// ends.
class LaunchLog {
public:
  LaunchLog();
  ~LaunchLog();
  LaunchLog(const LaunchLog &) = delete;
  LaunchLog &operator=(const LaunchLog &) = delete;

  struct Launch {
    std::string kernel;
    /// Why the launch did not take place.
    std::string problem;
    Report report;
  };
  const std::vector<Launch> &getLaunches() const { return launches; }

  /// All findings, kernel by kernel, as an error; success if there are none.
  llvm::Error takeError() const;

  /// The innermost log of this thread, or null.
  static LaunchLog *getCurrent();
  void add(Launch launch) { launches.push_back(std::move(launch)); }

private:
  std::vector<Launch> launches;
  LaunchLog *outer;
};

/// The functions that host code calls after `linattn-emulate-launches`.
void forEachLaunchFunction(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit);

} // namespace linattn::emulator

#endif // LINATTN_EMULATOR_LAUNCHLOG_H
