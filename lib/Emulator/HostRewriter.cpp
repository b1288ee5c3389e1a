//===- HostRewriter.cpp - Kernels rewritten for the emulator --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostRewriter.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::emulator;

HostRewriter::HostRewriter(gpu::GPUModuleOp module)
    : OpBuilder(module.getContext()), module(module) {}

Value HostRewriter::getThread(Operation *op) {
  return op->getParentOfType<LLVM::LLVMFuncOp>().getArgument(0);
}

Value HostRewriter::getFragment(Operation *op) {
  auto func = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &fragment = fragments[func];
  if (fragment)
    return fragment;
  InsertionGuard guard(*this);
  setInsertionPointToStart(&func.front());
  Value size = createI32(func.getLoc(), kFragmentWords);
  fragment = LLVM::AllocaOp::create(*this, func.getLoc(),
                                    LLVM::LLVMPointerType::get(getContext()),
                                    getI32Type(), size, /*alignment=*/16);
  return fragment;
}

/// "file:line:column" of the innermost location that has one.
static std::string formatLocation(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto place = dyn_cast<FileLineColLoc>(part);
    if (!place)
      return WalkResult::advance();
    llvm::raw_string_ostream(text)
        << place.getFilename().getValue() << ":" << place.getLine() << ":"
        << place.getColumn();
    return WalkResult::interrupt();
  });
  return text;
}

Value HostRewriter::createSite(Operation *op) {
  // Kernels built by a program have no source lines; a number identifies the
  // op.
  std::string location = formatLocation(op->getLoc());
  std::string text = op->getName().getStringRef().str() +
                     (location.empty() ? " #" + std::to_string(sites.size())
                                       : " at " + location);
  Value site = createI32(op->getLoc(), sites.size());
  sites.push_back(getStringAttr(text));
  return site;
}

void HostRewriter::setSitesAttribute() {
  module->setAttr(kSitesAttr, getArrayAttr(sites));
}

Value HostRewriter::createI32(Location loc, uint32_t value) {
  return LLVM::ConstantOp::create(*this, loc, getI32Type(),
                                  getI32IntegerAttr(value));
}

LLVM::LLVMFuncOp HostRewriter::declare(StringRef symbol, TypeRange operands,
                                       Type result) {
  if (auto func = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol))
    return func;
  InsertionGuard guard(*this);
  setInsertionPointToStart(module.getBody());
  Type type = LLVM::LLVMFunctionType::get(
      result ? result : LLVM::LLVMVoidType::get(getContext()),
      llvm::to_vector(operands));
  return LLVM::LLVMFuncOp::create(*this, module.getLoc(), symbol, type);
}

Value HostRewriter::callPure(Operation *op, StringRef symbol,
                             ValueRange operands, Type result) {
  LLVM::LLVMFuncOp func = declare(symbol, operands.getTypes(), result);
  auto call = LLVM::CallOp::create(*this, op->getLoc(), func, operands);
  return result ? call.getResult() : Value();
}

Value HostRewriter::call(Operation *op, StringRef symbol, ValueRange operands,
                         Type result) {
  SmallVector<Value> all = {getThread(op)};
  llvm::append_range(all, operands);
  // Pointers lose their address spaces at the end; declarations have none from
  // the start.
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  for (Value &operand : all)
    if (isa<LLVM::LLVMPointerType>(operand.getType()) &&
        operand.getType() != pointer)
      operand =
          LLVM::AddrSpaceCastOp::create(*this, op->getLoc(), pointer, operand);
  return callPure(op, symbol, all, result);
}

Value HostRewriter::getWordPointer(Operation *op, unsigned index) {
  Value fragment = getFragment(op);
  return LLVM::GEPOp::create(*this, op->getLoc(), fragment.getType(),
                             getI32Type(), fragment,
                             LLVM::GEPArg(static_cast<int32_t>(index)));
}

void HostRewriter::storeWords(Operation *op, ValueRange values,
                              unsigned first) {
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(*this, op->getLoc(), value,
                          getWordPointer(op, first + i), /*alignment=*/4);
}

Value HostRewriter::loadWord(Operation *op, unsigned index, Type type) {
  return LLVM::LoadOp::create(*this, op->getLoc(), type,
                              getWordPointer(op, index), /*alignment=*/4);
}

Value HostRewriter::loadResult(Operation *op, unsigned first, Type type) {
  auto structure = dyn_cast<LLVM::LLVMStructType>(type);
  if (!structure)
    return loadWord(op, first, type);
  Value result = LLVM::PoisonOp::create(*this, op->getLoc(), type);
  for (auto [i, element] : llvm::enumerate(structure.getBody())) {
    Value word = loadWord(op, first + i, element);
    result = LLVM::InsertValueOp::create(*this, op->getLoc(), result, word, i);
  }
  return result;
}
