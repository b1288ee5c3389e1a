//===- ScanTraits.h - The rule and the traits of a scan ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_SCANTRAITS_H
#define LINATTN_DIALECT_SCANTRAITS_H

#include "linattn/Analysis/Legality.h"
#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// The properties of a rule; see `linattn::UpdateRule`.
const ::linattn::UpdateRule &getRule(Update update);
inline const ::linattn::UpdateRule &getRule(ScanOp op) {
  return getRule(op.getUpdate());
}

/// The properties that schedules may not support; see `linattn::whyNot`.
::linattn::ScanTraits getTraits(ScanOp op);
::linattn::ScanTraits getTraits(StateOp op);

/// Why a scan cannot run in a schedule, as the end of a sentence; empty if it
/// can.
inline StringRef whyNot(ScanOp op, ::linattn::Schedule schedule) {
  return ::linattn::whyNot(schedule, getTraits(op));
}

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_SCANTRAITS_H
