//===- KernelFunction.cpp - A kernel and its arguments --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"

using namespace mlir;
using namespace mlir::linattn;

Value GlobalView::at(KernelBuilder &k, ValueRange indices) const {
  Value elements;
  for (auto [index, stride] : llvm::zip(indices, strides)) {
    Value wide = index.getType().isInteger(64) ? index : k.extend(index);
    Value step = k.mul(wide, stride);
    elements = elements ? k.add(elements, step) : step;
  }
  if (!elements)
    return base;
  return k.offset(base, k.mul(elements, k.i64(bytes())));
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

int64_t KernelFunction::operandOf(Value buffer) {
  auto *found = llvm::find(operands, buffer);
  if (found == operands.end()) {
    operands.push_back(buffer);
    return operands.size() - 1;
  }
  return found - operands.begin();
}

unsigned KernelFunction::addArgument(LaunchValueKind kind, Value buffer,
                                     unsigned dim, int64_t align) {
  arguments.push_back(LaunchValueAttr::get(buffer.getContext(), kind,
                                           operandOf(buffer), dim, align));
  return arguments.size() - 1;
}

void KernelFunction::addBuffer(Value buffer, Access access, int64_t align) {
  if (!buffer)
    return;
  auto type = cast<MemRefType>(buffer.getType());
  auto [known, offset] = type.getStridesAndOffset();
  BufferArgument entry{buffer,
                       access,
                       align,
                       addArgument(LaunchValueKind::Pointer, buffer, 0, align),
                       {}};
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (ShapedType::isDynamic(known[dim]))
      entry.strides.push_back(
          {addArgument(LaunchValueKind::Stride, buffer, dim, 1), 0});
    else
      entry.strides.push_back({none, known[dim]});
  }
  buffers.push_back(entry);
}

void KernelFunction::addSize(Value buffer, unsigned dim) {
  if (!cast<MemRefType>(buffer.getType()).isDynamicDim(dim) ||
      sizes.count({buffer, dim}))
    return;
  sizes[{buffer, dim}] = addArgument(LaunchValueKind::Size, buffer, dim, 1);
}

AffineExpr KernelFunction::gridSize(Value buffer, unsigned dim) {
  MLIRContext *context = buffer.getContext();
  auto size = LaunchValueAttr::get(context, LaunchValueKind::Size,
                                   operandOf(buffer), dim, 1);
  auto *found = llvm::find(gridSizes, size);
  unsigned symbol = found - gridSizes.begin();
  if (found == gridSizes.end())
    gridSizes.push_back(size);
  return getAffineSymbolExpr(symbol, context);
}

//===----------------------------------------------------------------------===//
// Module and function
//===----------------------------------------------------------------------===//

void KernelFunction::create(ModuleOp module, StringRef name, Location loc) {
  MLIRContext *context = module.getContext();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  gpuModule = gpu::GPUModuleOp::create(b, loc, name);
  b.setInsertionPointToStart(gpuModule.getBody());
  // The stock op for dynamic shared memory overlaps static arrays: the symbol
  // is declared here instead.
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                         /*isConstant=*/false, LLVM::Linkage::External,
                         sharedName, Attribute(), /*alignment=*/1024,
                         sharedSpace);

  auto pointer = LLVM::LLVMPointerType::get(context, globalSpace);
  SmallVector<Type> types;
  for (LaunchValueAttr argument : arguments)
    types.push_back(
        argument.getKind() == LaunchValueKind::Pointer ? Type(pointer)
        : argument.getKind() == LaunchValueKind::Size  ? Type(b.getI32Type())
                                                       : Type(b.getI64Type()));
  function = LLVM::LLVMFuncOp::create(
      b, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  for (const BufferArgument &entry : buffers) {
    unsigned number = entry.pointer;
    function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(entry.align));
    if (entry.access != Access::MayAlias)
      function.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(),
                          b.getUnitAttr());
    if (entry.access == Access::Read)
      function.setArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName(),
                          b.getUnitAttr());
  }
  function.addEntryBlock(b);
}

void KernelFunction::emit(ModuleOp module, StringRef name, Location loc,
                          function_ref<void(KernelBuilder &)> body) {
  create(module, name, loc);
  OpBuilder b = OpBuilder::atBlockEnd(&function.getBody().front());
  KernelBuilder k(b, loc);
  body(k);
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

LaunchOp KernelFunction::launch(Operation *op, ArrayRef<AffineExpr> grid,
                                int64_t threads, int64_t shared) {
  OpBuilder b(op);
  MLIRContext *context = b.getContext();
  SmallVector<AffineExpr> extents(grid);
  extents.resize(3, getAffineConstantExpr(1, context));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    b.getDenseI32ArrayAttr({static_cast<int32_t>(threads)}));
  // Left alone, the assembler trades spills for more blocks.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(1));
  auto plan = LaunchPlanAttr::get(
      context, AffineMap::get(0, gridSizes.size(), extents, context), threads,
      shared, gridSizes, arguments);
  function->setAttr(LaunchOp::getPlanAttrName(), plan);

  auto kernel =
      SymbolRefAttr::get(gpuModule.getNameAttr(),
                         {FlatSymbolRefAttr::get(function.getNameAttr())});
  auto launch = LaunchOp::create(b, op->getLoc(), kernel, operands);
  launch->setAttr(LaunchOp::getPlanAttrName(), plan);
  return launch;
}

GlobalView KernelFunction::view(KernelBuilder &k, Value buffer,
                                bool isWritten) const {
  auto *entry = llvm::find_if(buffers, [&](const BufferArgument &entry) {
    return entry.buffer == buffer &&
           !(isWritten && entry.access == Access::Read);
  });
  if (entry == buffers.end())
    return {};
  GlobalView result;
  LLVM::LLVMFuncOp kernel = function;
  result.base = kernel.getArgument(entry->pointer);
  for (auto [argument, known] : entry->strides)
    result.strides.push_back(
        argument == none ? k.i64(known) : Value(kernel.getArgument(argument)));
  result.element = getElementTypeOrSelf(buffer);
  return result;
}

Value KernelFunction::size(KernelBuilder &k, Value buffer, unsigned dim) const {
  auto type = cast<MemRefType>(buffer.getType());
  if (!type.isDynamicDim(dim))
    return k.i32(type.getDimSize(dim));
  LLVM::LLVMFuncOp kernel = function;
  return kernel.getArgument(sizes.lookup({buffer, dim}));
}

Value KernelFunction::sharedBase(KernelBuilder &k) const {
  return LLVM::AddressOfOp::create(
      k.b, k.loc, LLVM::LLVMPointerType::get(k.b.getContext(), sharedSpace),
      sharedName);
}
