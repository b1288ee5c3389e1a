//===- BFloatMemory.cpp - bf16 in memory as integers ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BFloatMemory.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

/// i16, or a vector of it, for bf16; null for other types.
static Type *getIntegerType(Type *type) {
  if (!type->getScalarType()->isBFloatTy())
    return nullptr;
  return type->getWithNewType(Type::getInt16Ty(type->getContext()));
}

/// The same load of integers; null for other types.
static Instruction *createLoad(IRBuilder<> &b, Instruction &from) {
  Type *type = getIntegerType(from.getType());
  if (!type)
    return nullptr;
  if (auto *load = dyn_cast<LoadInst>(&from))
    return load->isSimple()
               ? b.CreateAlignedLoad(type, load->getPointerOperand(),
                                     load->getAlign())
               : nullptr;
  auto *call = dyn_cast<IntrinsicInst>(&from);
  if (!call || call->getIntrinsicID() != Intrinsic::masked_load)
    return nullptr;
  return b.CreateMaskedLoad(
      type, call->getArgOperand(0), call->getParamAlign(0).valueOrOne(),
      call->getArgOperand(1), b.CreateBitCast(call->getArgOperand(2), type));
}

/// The same choice among values, or element of a vector, of integers; null for
/// other types.
static Value *createChoice(IRBuilder<> &b, Instruction &from) {
  auto asInteger = [&](Value *value) {
    return b.CreateBitCast(value, getIntegerType(value->getType()));
  };
  if (!getIntegerType(from.getType()))
    return nullptr;
  if (auto *insert = dyn_cast<InsertElementInst>(&from))
    return b.CreateInsertElement(asInteger(insert->getOperand(0)),
                                 asInteger(insert->getOperand(1)),
                                 insert->getOperand(2));
  if (auto *extract = dyn_cast<ExtractElementInst>(&from))
    return b.CreateExtractElement(asInteger(extract->getVectorOperand()),
                                  extract->getIndexOperand());
  if (auto *select = dyn_cast<SelectInst>(&from))
    return b.CreateSelect(select->getCondition(),
                          asInteger(select->getTrueValue()),
                          asInteger(select->getFalseValue()));
  return nullptr;
}

/// The same store of integers; null for other types.
static Instruction *createStore(IRBuilder<> &b, Instruction &from) {
  auto *store = dyn_cast<StoreInst>(&from);
  auto *call = dyn_cast<IntrinsicInst>(&from);
  bool isMasked = call && call->getIntrinsicID() == Intrinsic::masked_store;
  if (!isMasked && !(store && store->isSimple()))
    return nullptr;
  Value *value = from.getOperand(0);
  Type *type = getIntegerType(value->getType());
  if (!type)
    return nullptr;
  value = b.CreateBitCast(value, type);
  if (store)
    return b.CreateAlignedStore(value, store->getPointerOperand(),
                                store->getAlign());
  return b.CreateMaskedStore(value, call->getArgOperand(1),
                             call->getParamAlign(1).valueOrOne(),
                             call->getArgOperand(2));
}

/// The same phi on integers. Code generators without bf16 would extend the
/// value in one block and round it again in another, by a function that most
/// systems lack.
static void chooseIntegers(PHINode &from, Type *type) {
  IRBuilder<> b(&from);
  PHINode *to = b.CreatePHI(type, from.getNumIncomingValues());
  for (auto [value, block] : zip(from.incoming_values(), from.blocks())) {
    b.SetInsertPoint(block->getTerminator());
    to->addIncoming(b.CreateBitCast(value, type), block);
  }
  b.SetInsertPoint(from.getParent(), from.getParent()->getFirstInsertionPt());
  from.replaceAllUsesWith(b.CreateBitCast(to, from.getType()));
  from.eraseFromParent();
}

void linattn::detail::accessBFloatAsInteger(Module &module) {
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (PHINode &phi : make_early_inc_range(block.phis()))
        if (Type *type = getIntegerType(phi.getType()))
          chooseIntegers(phi, type);
  for (Function &function : module)
    for (Instruction &from : make_early_inc_range(instructions(function))) {
      IRBuilder<> b(&from);
      if (Value *to = createChoice(b, from)) {
        from.replaceAllUsesWith(b.CreateBitCast(to, from.getType()));
        from.eraseFromParent();
        continue;
      }
      Instruction *to = createLoad(b, from);
      if (to)
        from.replaceAllUsesWith(b.CreateBitCast(to, from.getType()));
      else
        to = createStore(b, from);
      if (!to)
        continue;
      to->copyMetadata(from);
      from.eraseFromParent();
    }
}
