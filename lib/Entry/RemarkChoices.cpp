//===- RemarkChoices.cpp - Choices of a function's author as remarks ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Remarks.h"
#include "linattn/Entry/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNREMARKCHOICESPASS
#include "linattn/Entry/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Removes an array attribute and returns its strings.
static SmallVector<StringRef> takeTexts(func::FuncOp func, StringRef name) {
  SmallVector<StringRef> texts;
  if (auto array = dyn_cast_if_present<ArrayAttr>(func->removeAttr(name)))
    for (Attribute element : array)
      if (auto text = dyn_cast<StringAttr>(element))
        texts.push_back(text.getValue());
  return texts;
}

namespace {

struct LinAttnRemarkChoicesPass final
    : mlir::linattn::impl::LinAttnRemarkChoicesPassBase<
          LinAttnRemarkChoicesPass> {
  using LinAttnRemarkChoicesPassBase::LinAttnRemarkChoicesPassBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    remark::RemarkOpts options = remarkNamed(func.getName());
    for (StringRef text : takeTexts(func, "linattn.chosen")) {
      remark::passed(func.getLoc(), options) << text;
      ++numChoices;
    }
    for (StringRef text : takeTexts(func, "linattn.refused")) {
      remark::missed(func.getLoc(), options) << text;
      ++numChoices;
    }
  }
};

} // namespace
