//===- EntryWrappers.cpp - Entries that take an array of pointers ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Entry/EntryLayout.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace linattn;
using namespace linattn::detail;

std::string linattn::detail::getRunSymbol(const Signature &signature) {
  return signature.entry + "__packed";
}

std::string linattn::detail::getShapesSymbol(const Signature &signature) {
  return signature.entry + mlir::linattn::kShapesSuffix.str() + "__packed";
}

namespace {

/// Loads the fields of memref descriptors and the scalars from an array of
/// pointers, in the argument order of a lowered function.
class ArgumentUnpacker {
public:
  ArgumentUnpacker(llvm::IRBuilder<> &b, llvm::Value *array)
      : b(b), array(array) {}

  void addMemRef(int64_t rank) {
    llvm::Value *descriptor = nextPointer();
    // Allocated pointer, aligned pointer, offset, sizes, strides: every field
    // takes eight bytes.
    for (int64_t field = 0; field < 3 + 2 * rank; ++field) {
      llvm::Type *type =
          field < 2 ? b.getPtrTy() : static_cast<llvm::Type *>(b.getInt64Ty());
      values.push_back(b.CreateLoad(
          type, b.CreateConstGEP1_64(b.getInt64Ty(), descriptor, field)));
    }
  }

  void addScalar(DType dtype, llvm::Type *type) {
    llvm::Value *pointer = nextPointer();
    if (dtype != DType::I1)
      return values.push_back(b.CreateLoad(type, pointer));
    llvm::Value *byte = b.CreateLoad(b.getInt8Ty(), pointer);
    values.push_back(b.CreateIsNotNull(byte));
  }

  llvm::ArrayRef<llvm::Value *> getValues() const { return values; }

private:
  llvm::Value *nextPointer() {
    return b.CreateLoad(b.getPtrTy(),
                        b.CreateConstGEP1_64(b.getPtrTy(), array, next++));
  }

  llvm::IRBuilder<> &b;
  llvm::Value *array;
  uint64_t next = 0;
  llvm::SmallVector<llvm::Value *> values;
};

} // namespace

/// Emits `void symbol(void **args)`, which calls `callee` with the arguments of
/// `signature` followed by memrefs of the given ranks.
static llvm::Error emitPackedWrapper(llvm::Module &module,
                                     const Signature &signature,
                                     llvm::StringRef callee,
                                     llvm::StringRef symbol,
                                     llvm::ArrayRef<int64_t> trailingRanks) {
  llvm::Function *function = module.getFunction(("linattn." + callee).str());
  if (!function)
    return llvm::createStringError("the pipeline dropped the function '" +
                                   callee + "'");
  llvm::IRBuilder<> b(module.getContext());
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  auto *wrapper = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  b.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", wrapper));

  ArgumentUnpacker unpacker(b, wrapper->getArg(0));
  llvm::FunctionType *calleeType = function->getFunctionType();
  auto mismatch = [&] {
    return llvm::createStringError("the pipeline changed the signature of '" +
                                   callee + "'");
  };
  for (const ValueInfo &argument : signature.arguments) {
    if (argument.isTensor) {
      unpacker.addMemRef(argument.getRank());
      continue;
    }
    size_t position = unpacker.getValues().size();
    if (position >= calleeType->getNumParams())
      return mismatch();
    unpacker.addScalar(argument.dtype, calleeType->getParamType(position));
  }
  for (int64_t rank : trailingRanks)
    unpacker.addMemRef(rank);
  if (unpacker.getValues().size() != calleeType->getNumParams())
    return mismatch();
  b.CreateCall(function, unpacker.getValues());
  b.CreateRetVoid();

  return llvm::Error::success();
}

void linattn::detail::internalize(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setName("linattn." + function.getName());
  }
}

llvm::Error linattn::detail::emitWrappers(llvm::Module &module,
                                          const Signature &signature,
                                          Subnormals subnormals) {
  internalize(module); // Only wrappers are visible.
  llvm::SmallVector<int64_t> ranks;
  for (const ValueInfo &result : signature.results)
    ranks.push_back(result.getRank());
  std::string shapes = signature.entry + mlir::linattn::kShapesSuffix.str();
  if (llvm::Error error = emitPackedWrapper(module, signature, shapes,
                                            getShapesSymbol(signature), {1}))
    return error;
  std::string run = getRunSymbol(signature);
  if (llvm::Error error =
          emitPackedWrapper(module, signature, signature.entry, run, ranks))
    return error;
  bool isDouble = llvm::any_of(signature.results, [](const ValueInfo &result) {
    return result.dtype == DType::F64;
  });
  emitFloatMode(*module.getFunction(run),
                subnormals == Subnormals::Automatic && !isDouble);
  return llvm::Error::success();
}
