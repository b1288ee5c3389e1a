//===- VerifyContract.cpp - Seam checks of the pipelines ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNVERIFYCONTRACTPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Why an op violates the contract of a phase; empty if it does not.
static StringRef breach(Operation *op, StringRef phase) {
  if (phase == "structured")
    return isa<AttentionOp>(op) ? "is not in one of its forms" : "";
  if (phase == "linalg")
    return isa_and_nonnull<LinAttnDialect>(op->getDialect())
               ? "is not converted to linalg"
               : "";
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
                 llvm::any_of(op->getResultTypes(), isTensor)
             ? "still works on tensors"
             : "";
}

namespace {

struct LinAttnVerifyContractPass final
    : mlir::linattn::impl::LinAttnVerifyContractPassBase<
          LinAttnVerifyContractPass> {
  using LinAttnVerifyContractPassBase::LinAttnVerifyContractPassBase;
  void runOnOperation() override {
    static constexpr StringRef phases[] = {"structured", "linalg",
                                           "bufferized"};
    if (!llvm::is_contained(phases, StringRef(phase))) {
      getOperation()->emitError("expected phase to be structured, linalg or "
                                "bufferized, but got ")
          << phase;
      return signalPassFailure();
    }
    bool broken = false;
    getOperation()->walk([&](Operation *op) {
      if (StringRef reason = breach(op, phase); !reason.empty()) {
        op->emitOpError(reason) << ", as phase " << phase << " promises";
        broken = true;
      }
    });
    if (broken)
      signalPassFailure();
  }
};

} // namespace
