//===- WgmmaOps.cpp - Products of a warpgroup as calls of the emulator ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostRewriter.h"
#include "Wgmma.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::emulator;
using ::linattn::WgmmaForm;

static LogicalResult replaceBySums(HostRewriter &b, Operation *op) {
  Value sums = b.loadResult(op, 0, op->getResult(0).getType());
  op->getResult(0).replaceAllUsesWith(sums);
  op->erase();
  return success();
}

static LogicalResult rewriteProduct(HostRewriter &b, Operation *op,
                                    WgmmaForm form, ValueRange operands) {
  size_t expected =
      form.wordsOfA() + 1 + (form.accumulates ? form.numSums() : 0);
  auto result = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  if (!result || result.getBody().size() != form.numSums() ||
      operands.size() != expected)
    return op->emitError("expected ")
           << form.numSums() << " sums and " << expected << " operands";
  Value a = operands.front(), descriptorB = operands[form.wordsOfA()];
  SmallVector<Value> words;
  if (form.registersA) {
    llvm::append_range(words, operands.take_front(form.wordsOfA()));
    a = descriptorB;
  }
  llvm::append_range(words, operands.drop_front(form.wordsOfA() + 1));
  b.storeWords(op, words);
  b.call(op, "linattn_emu_wgmma",
         {a, descriptorB, b.createI32(op->getLoc(), encode(form)),
          b.getFragment(op), b.createSite(op)});
  return replaceBySums(b, op);
}

FailureOr<bool> mlir::linattn::rewriteWgmma(HostRewriter &b, Operation *op,
                                            StringRef assembly,
                                            ValueRange operands) {
  if (std::optional<WgmmaForm> form = WgmmaForm::parse(assembly)) {
    if (failed(rewriteProduct(b, op, *form, operands)))
      return failure();
    return true;
  }
  std::optional<unsigned> pending = ::linattn::parseWgmmaWait(assembly);
  if (!pending || op->getNumResults() != 1)
    return false;
  Location loc = op->getLoc();
  b.storeWords(op, operands);
  b.call(op, "linattn_emu_wgmma_wait",
         {b.createI32(loc, *pending), b.createI32(loc, operands.size()),
          b.getFragment(op), b.createSite(op)});
  (void)replaceBySums(b, op);
  return true;
}
