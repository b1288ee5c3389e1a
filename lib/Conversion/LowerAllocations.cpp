//===- LowerAllocations.cpp - Allocations to the runtime ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Conversion/Passes.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERALLOCATIONSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

constexpr StringLiteral kAllocate = "linattn_allocate";
constexpr StringLiteral kFree = "linattn_free";
/// A cache line, where the op does not say.
constexpr int64_t defaultAlignment = 64;

/// Lowers one allocation.
class AllocationLowering {
public:
  AllocationLowering(memref::AllocOp op, const LLVMTypeConverter &converter)
      : op(op), b(op.getLoc(), op), converter(converter) {}

  void run() {
    MemRefType type = op.getType();
    Value alignment =
        constant(op.getAlignment().value_or(uint64_t(defaultAlignment)));
    for (int64_t extent : type.getShape())
      sizes.push_back(ShapedType::isDynamic(extent) ? nextDynamicSize()
                                                    : constant(extent));
    Value memory =
        LLVM::CallOp::create(b, LLVM::LLVMPointerType::get(b.getContext()),
                             kAllocate, ValueRange{computeBytes(), alignment})
            .getResult();
    Value lowered =
        UnrealizedConversionCastOp::create(b, type, describe(memory))
            .getResult(0);
    op.replaceAllUsesWith(lowered);
    op.erase();
  }

private:
  Value constant(uint64_t value) {
    return LLVM::ConstantOp::create(
        b, b.getI64Type(), b.getI64IntegerAttr(static_cast<int64_t>(value)));
  }

  Value nextDynamicSize() {
    return UnrealizedConversionCastOp::create(
               b, b.getI64Type(), op.getDynamicSizes()[numDynamicSizes++])
        .getResult(0);
  }

  /// The bytes of the static sizes; none if they do not fit.
  std::optional<uint64_t> computeStaticBytes() {
    Type element = converter.convertType(op.getType().getElementType());
    // An i1 takes a byte.
    uint64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
    for (int64_t extent : op.getType().getShape())
      if (!ShapedType::isDynamic(extent) &&
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
        return std::nullopt;
    return bytes;
  }

  Value computeBytes() {
    constexpr uint64_t allOnes = ~uint64_t(0);
    std::optional<uint64_t> known = computeStaticBytes();
    if (!known)
      return constant(allOnes);
    Value bytes = constant(*known), overflows;
    auto productType = LLVM::LLVMStructType::getLiteral(
        b.getContext(), {b.getI64Type(), b.getI1Type()});
    for (auto [extent, size] :
         llvm::zip_equal(op.getType().getShape(), sizes)) {
      if (!ShapedType::isDynamic(extent))
        continue;
      Value product =
          LLVM::UMulWithOverflowOp::create(b, productType, bytes, size);
      bytes = LLVM::ExtractValueOp::create(b, product, 0);
      Value flag = LLVM::ExtractValueOp::create(b, product, 1);
      overflows = overflows ? LLVM::OrOp::create(b, overflows, flag) : flag;
    }
    if (!overflows)
      return bytes;
    return LLVM::SelectOp::create(b, overflows, constant(allOnes), bytes);
  }

  Value describe(Value memory) {
    auto descriptor = MemRefDescriptor::poison(
        b, b.getLoc(), converter.convertType(op.getType()));
    descriptor.setAllocatedPtr(b, b.getLoc(), memory);
    descriptor.setAlignedPtr(b, b.getLoc(), memory);
    descriptor.setConstantOffset(b, b.getLoc(), 0);
    Value stride = constant(1);
    for (size_t i = sizes.size(); i-- > 0;) {
      descriptor.setSize(b, b.getLoc(), i, sizes[i]);
      descriptor.setStride(b, b.getLoc(), i, stride);
      if (i > 0)
        stride = LLVM::MulOp::create(b, stride, sizes[i]);
    }
    return descriptor;
  }

  memref::AllocOp op;
  ImplicitLocOpBuilder b;
  const LLVMTypeConverter &converter;
  SmallVector<Value> sizes;
  size_t numDynamicSizes = 0;
};

struct LowerAllocationsPass
    : public mlir::linattn::impl::LinAttnLowerAllocationsPassBase<
          LowerAllocationsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<memref::AllocOp> allocations;
    SmallVector<memref::DeallocOp> deallocations;
    // Memory is freed as it was allocated: all of it changes, or none.
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
        deallocations.push_back(dealloc);
      auto alloc = dyn_cast<memref::AllocOp>(op);
      if (!alloc)
        return WalkResult::advance();
      MemRefType type = alloc.getType();
      if (!type.getLayout().isIdentity() ||
          !type.getElementType().isIntOrIndexOrFloat())
        return WalkResult(
            op->emitError("expected an allocation with the identity layout, of "
                          "integers or floats, but got ")
            << type);
      allocations.push_back(alloc);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (allocations.empty() && deallocations.empty())
      return;
    declareRuntime();
    LLVMTypeConverter converter(&getContext());
    for (memref::AllocOp op : allocations)
      AllocationLowering(op, converter).run();
    for (memref::DeallocOp op : deallocations)
      lower(op, converter);
    numAllocations += allocations.size();
  }

private:
  static void lower(memref::DeallocOp op, const LLVMTypeConverter &converter) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value memref = op.getMemref();
    MemRefDescriptor descriptor(
        UnrealizedConversionCastOp::create(
            b, converter.convertType(memref.getType()), memref)
            .getResult(0));
    LLVM::CallOp::create(b, TypeRange(), kFree,
                         descriptor.allocatedPtr(b, b.getLoc()));
    op.erase();
  }

  /// Nothing but memory that the code cannot see otherwise changes, and memory
  /// that is new is reached in no other way: what LLVM knows of malloc.
  void declareRuntime() {
    ModuleOp module = getOperation();
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto declare = [&](StringRef name, Type result, ArrayRef<Type> arguments,
                       LLVM::ModRefInfo ofArguments) {
      if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
        return known;
      auto function = LLVM::LLVMFuncOp::create(
          b, module.getLoc(), name,
          LLVM::LLVMFunctionType::get(result, arguments));
      function.setNoUnwind(true);
      function.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
          b.getContext(),
          /*other=*/LLVM::ModRefInfo::NoModRef, ofArguments,
          /*inaccessibleMem=*/LLVM::ModRefInfo::ModRef,
          /*errnoMem=*/LLVM::ModRefInfo::NoModRef,
          /*targetMem0=*/LLVM::ModRefInfo::NoModRef,
          /*targetMem1=*/LLVM::ModRefInfo::NoModRef));
      return function;
    };
    LLVM::LLVMFuncOp allocate =
        declare(kAllocate, pointer, {b.getI64Type(), b.getI64Type()},
                LLVM::ModRefInfo::NoModRef);
    for (StringRef attribute : {LLVM::LLVMDialect::getNoAliasAttrName(),
                                LLVM::LLVMDialect::getNonNullAttrName(),
                                LLVM::LLVMDialect::getNoUndefAttrName()})
      allocate.setResultAttr(0, attribute, b.getUnitAttr());
    declare(kFree, LLVM::LLVMVoidType::get(b.getContext()), {pointer},
            LLVM::ModRefInfo::ModRef);
  }
};

} // namespace
