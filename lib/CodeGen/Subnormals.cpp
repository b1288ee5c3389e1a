//===- Subnormals.cpp - Whether subnormal numbers are zeros ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/Subnormals.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

using namespace linattn::detail;

namespace {

/// Reads and writes the register that holds the mode.
class ModeRegister {
public:
  explicit ModeRegister(llvm::IRBuilder<> &b)
      : b(b), triple(b.GetInsertBlock()->getModule()->getTargetTriple()) {
    if (triple.isX86())
      slot = b.CreateAlloca(b.getInt32Ty());
  }

  llvm::Value *read() {
    if (!triple.isX86())
      return b.CreateIntrinsic(b.getInt64Ty(),
                               llvm::Intrinsic::aarch64_get_fpcr, {});
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_sse_stmxcsr, {slot});
    return b.CreateLoad(b.getInt32Ty(), slot);
  }

  void write(llvm::Value *mode) {
    if (!triple.isX86()) {
      b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::aarch64_set_fpcr,
                        {mode});
      return;
    }
    b.CreateStore(mode, slot);
    b.CreateIntrinsic(b.getVoidTy(), llvm::Intrinsic::x86_sse_ldmxcsr, {slot});
  }

  llvm::Value *makeMode(bool flush) {
    if (!triple.isX86())
      return b.getInt64(flush ? 1 << 24 : 0);
    // All traps masked; flush to zero, denormals are zeros.
    return b.getInt32(0x1f80 | (flush ? 0x8040 : 0));
  }

private:
  llvm::IRBuilder<> &b;
  const llvm::Triple &triple;
  llvm::Value *slot = nullptr;
};

} // namespace

void linattn::detail::emitFloatMode(llvm::Function &body, bool flush) {
  llvm::Module &module = *body.getParent();
  const llvm::Triple &triple = module.getTargetTriple();
  if (!triple.isX86() && !triple.isAArch64())
    return;
  // Constants must fold to the numbers that the machine would compute.
  if (flush)
    for (llvm::Function &function : module)
      if (!function.isDeclaration())
        function.addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");

  auto *wrapper = llvm::Function::Create(body.getFunctionType(),
                                         body.getLinkage(), "", module);
  wrapper->takeName(&body);
  body.setName(wrapper->getName() + ".body");
  body.setLinkage(llvm::GlobalValue::InternalLinkage);
  // Arithmetic may move past the change of the mode, a call may not.
  body.addFnAttr(llvm::Attribute::NoInline);

  llvm::IRBuilder<> b(
      llvm::BasicBlock::Create(module.getContext(), "entry", wrapper));
  ModeRegister mode(b);
  llvm::Value *former = mode.read();
  mode.write(mode.makeMode(flush));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : wrapper->args())
    arguments.push_back(&argument);
  b.CreateCall(&body, arguments);
  mode.write(former);
  b.CreateRetVoid();
}
