//===- CheckNormalizer.cpp - Denominators that may vanish -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/SignAnalysis.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCHECKNORMALIZERPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Why the quotient may be ill-defined; empty if it is safe.
static StringRef explain(Sign sign, NormalizeAttr normalize) {
  // A floor keeps the divisor away from zero for any sum.
  if (normalize.getFloor() || normalize.getAbsFloor())
    return {};
  bool hasEps = !normalize.getEps() || !normalize.getEps().getValue().isZero();
  switch (sign) {
  case Sign::Any:
    return "the denominator may vanish or turn negative: the weights "
           "φ(q)·φ(k) may have any sign";
  case Sign::NotNegative:
    return hasEps ? StringRef()
                  : "the denominator may vanish: the weights φ(q)·φ(k) may "
                    "all be 0, and eps is 0";
  case Sign::Positive:
    return {};
  }
  return {};
}

namespace {

struct LinAttnCheckNormalizerPass final
    : mlir::linattn::impl::LinAttnCheckNormalizerPassBase<
          LinAttnCheckNormalizerPass> {
  using LinAttnCheckNormalizerPassBase::LinAttnCheckNormalizerPassBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op))
        check(attention, attention.getQuery(), attention.getKey());
      else if (auto quadratic = dyn_cast<QuadraticOp>(op))
        check(quadratic, quadratic.getQuery(), quadratic.getKey());
      else if (auto scan = dyn_cast<ScanOp>(op))
        check(scan, scan.getQuery(), scan.getKey());
      else if (auto read = dyn_cast<ReadOp>(op))
        check(read, read.getQuery(), keysOf(read.getState()));
    });
  }

private:
  /// The keys that a state sums, if they are visible here.
  static Value keysOf(Value state) {
    auto op = state.getDefiningOp<StateOp>();
    return op ? op.getKey() : Value();
  }

  template <typename OpTy>
  void check(OpTy op, Value query, Value key) {
    if (!op.getNormalize())
      return;
    auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
    StringRef reason =
        explain(getWeightSign(mapped, query, key), *op.getNormalize());
    if (reason.empty())
      return;
    ++numWarnings;
    if (asWarnings)
      op.emitWarning(reason);
    else
      remark::missed(op.getLoc(), remarkNamed("check-normalizer")) << reason;
  }
};

} // namespace
