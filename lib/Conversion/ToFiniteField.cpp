//===- ToFiniteField.cpp - From floats to a prime field -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every float becomes one 64-bit word (PrimeField.h), so that loops, memory and
// vectors keep their structure and only their element type changes. Arithmetic
// becomes calls: of the functions in FieldFunctions.h for scalars, of functions
// of the module that go through the lanes for vectors.
//
//===----------------------------------------------------------------------===//

#include "FieldArithmetic.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/RootPatterns.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/AttrTypeSubElements.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNTOFINITEFIELDPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Whether a float or complex number is anywhere in the type.
static bool hasFloat(Type type) {
  return type
      .walk([](Type nested) {
        return isa<FloatType, ComplexType>(nested) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool touchesFloats(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), hasFloat) ||
      llvm::any_of(op->getResultTypes(), hasFloat))
    return true;
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return hasFloat(function.getFunctionType());
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    return hasFloat(global.getType());
  return false;
}

/// Ops that do the same with elements of any type.
static bool isAgnostic(Operation *op) {
  if (auto function = dyn_cast<func::FuncOp>(op))
    return !function.isExternal();
  // Bits of another type have no residue.
  if (isa<memref::ViewOp, vector::BitCastOp, vector::TypeCastOp>(op))
    return false;
  if (isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp>(op))
    return false;
  if (isa<memref::MemRefDialect, scf::SCFDialect, func::FuncDialect,
          cf::ControlFlowDialect>(op->getDialect()))
    return true;
  return isa<arith::SelectOp, ub::PoisonOp, vector::BroadcastOp,
             vector::CompressStoreOp, vector::DeinterleaveOp,
             vector::ExpandLoadOp, vector::ExtractOp,
             vector::ExtractStridedSliceOp, vector::FromElementsOp,
             vector::GatherOp, vector::InsertOp, vector::InsertStridedSliceOp,
             vector::InterleaveOp, vector::LoadOp, vector::MaskedLoadOp,
             vector::MaskedStoreOp, vector::PrintOp, vector::ScatterOp,
             vector::ShapeCastOp, vector::ShuffleOp, vector::StoreOp,
             vector::ToElementsOp, vector::TransferReadOp,
             vector::TransferWriteOp, vector::TransposeOp>(op);
}

/// The same values as elements.
static TypedAttr embed(const ::linattn::PrimeField &field, TypedAttr attr,
                       Type type) {
  auto single = [&](const APFloat &value) {
    unsigned precision = APFloat::semanticsPrecision(value.getSemantics());
    APFloat wide = value;
    bool losesInfo;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    return APInt(64, static_cast<uint64_t>(
                         field.embed(wide.convertToDouble(), precision)));
  };
  if (auto number = dyn_cast<FloatAttr>(attr))
    return IntegerAttr::get(type, single(number.getValue()));
  auto dense = cast<DenseFPElementsAttr>(attr);
  auto shaped = cast<ShapedType>(type);
  if (dense.isSplat())
    return DenseElementsAttr::get(shaped,
                                  single(dense.getSplatValue<APFloat>()));
  return DenseElementsAttr::get(
      shaped, llvm::map_to_vector(dense.getValues<APFloat>(), single));
}

namespace {

struct ToFiniteFieldPass
    : mlir::linattn::impl::LinAttnToFiniteFieldPassBase<ToFiniteFieldPass> {
  using LinAttnToFiniteFieldPassBase::LinAttnToFiniteFieldPassBase;

  void runOnOperation() override {
    if (prime > 1) {
      getOperation().emitError("expected prime to be 0 or 1, but got ")
          << prime.getValue();
      return signalPassFailure();
    }
    if (failed(lowerVectorOps()) || failed(check()) || failed(checkNames()))
      return signalPassFailure();
    convertTypes(::linattn::PrimeField(prime));
    FieldArithmetic arithmetic(getOperation(), prime);
    // Collected first: the helpers are functions of the same module.
    for (Operation *op : arithmeticOps)
      arithmetic.rewrite(op);
  }

private:
  /// Contractions and reductions along several dimensions become arithmetic on
  /// vectors.
  LogicalResult lowerVectorOps() {
    RewritePatternSet patterns(&getContext());
    vector::populateVectorContractLoweringPatterns(
        patterns, vector::VectorContractLowering::OuterProduct);
    vector::populateVectorOuterProductLoweringPatterns(patterns);
    vector::populateVectorMultiReductionLoweringPatterns(
        patterns, vector::VectorMultiReductionLowering::InnerParallel);
    vector::populateVectorMaskLoweringPatternsForSideEffectingOps(patterns);
    return mlir::linattn::applyPatternsToRoots(getOperation(),
                                               std::move(patterns));
  }

  LogicalResult check() {
    arithmeticOps.clear();
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (!touchesFloats(op))
        return WalkResult::advance();
      auto isComplex = [](Type type) {
        return isa<ComplexType>(getElementTypeOrSelf(type));
      };
      bool known = llvm::none_of(op->getOperandTypes(), isComplex) &&
                   llvm::none_of(op->getResultTypes(), isComplex);
      if (known && FieldArithmetic::canRewrite(op))
        arithmeticOps.push_back(op);
      else if (!known || (!isAgnostic(op) && !isa<memref::GlobalOp>(op))) {
        op->emitOpError("has no meaning in a prime field");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void convertTypes(const ::linattn::PrimeField &field) {
    AttrTypeReplacer replacer;
    replacer.addReplacement([](FloatType type) -> Type {
      return IntegerType::get(type.getContext(), 64);
    });
    getOperation().walk([&](Operation *op) {
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        if (hasFloat(constant.getType()))
          constant.setValueAttr(embed(field, constant.getValue(),
                                      replacer.replace(constant.getType())));
      if (auto global = dyn_cast<memref::GlobalOp>(op))
        convertGlobal(global, field, replacer);
      if (auto function = dyn_cast<func::FuncOp>(op))
        function.setFunctionType(
            cast<FunctionType>(replacer.replace(function.getFunctionType())));
      replacer.replaceElementsIn(op, /*replaceAttrs=*/false,
                                 /*replaceLocs=*/false, /*replaceTypes=*/true);
    });
  }

  static void convertGlobal(memref::GlobalOp global,
                            const ::linattn::PrimeField &field,
                            AttrTypeReplacer &replacer) {
    if (!hasFloat(global.getType()))
      return;
    auto type = cast<MemRefType>(replacer.replace(global.getType()));
    global.setType(type);
    if (auto values = dyn_cast_if_present<DenseFPElementsAttr>(
            global.getInitialValueAttr()))
      global.setInitialValueAttr(
          embed(field, values,
                RankedTensorType::get(type.getShape(), type.getElementType())));
  }

  /// Functions are called by name.
  LogicalResult checkNames() {
    for (auto symbol : getOperation().getOps<SymbolOpInterface>())
      if (symbol.getName().starts_with(::linattn::kFieldPrefix))
        return symbol.emitOpError("has a name that is reserved: @")
               << symbol.getName();
    return success();
  }

  SmallVector<Operation *> arithmeticOps;
};

} // namespace
