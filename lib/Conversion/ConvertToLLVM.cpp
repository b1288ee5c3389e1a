//===- ConvertToLLVM.cpp - One conversion to the LLVM dialect -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A conversion walks over the whole module, and casts every value that crosses
// from one dialect to another. A kernel of thousands of ops converts twice as
// fast in one conversion as in one for each dialect.
//
//===----------------------------------------------------------------------===//

#include "LoopBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/RootPatterns.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCONVERTTOLLVMPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

/// Indices of the elements of a vector fit in 32 bits.
static constexpr bool kIndices32Bit = true;

/// A size by the number of its dimension. The conversion of `memref.dim` sees
/// that number only as long as it is a constant of `arith`.
static LogicalResult takeSize(memref::DimOp op, PatternRewriter &rewriter) {
  std::optional<int64_t> dim = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!dim || !type || *dim < 0 || *dim >= type.getRank())
    return rewriter.notifyMatchFailure(op, "not a known dimension");
  auto metadata = memref::ExtractStridedMetadataOp::create(
      rewriter, op.getLoc(), op.getSource());
  rewriter.replaceOp(op, metadata.getSizes()[*dim]);
  return success();
}

/// Vector ops without a counterpart in LLVM.
static void populateVectorPatterns(RewritePatternSet &patterns) {
  using namespace vector;
  populateVectorContractLoweringPatterns(patterns,
                                         VectorContractLowering::OuterProduct);
  populateVectorTransposeLoweringPatterns(patterns,
                                          VectorTransposeLowering::Shuffle1D);
  populateVectorBitCastLoweringPatterns(patterns);
  populateVectorBroadcastLoweringPatterns(patterns);
  populateVectorFromElementsUnrollPatterns(patterns);
  populateVectorGatherLoweringPatterns(patterns);
  populateVectorInsertExtractStridedSliceTransforms(patterns);
  populateVectorInterleaveLoweringPatterns(patterns);
  populateVectorMaskMaterializationPatterns(patterns, kIndices32Bit);
  populateVectorMaskOpLoweringPatterns(patterns);
  populateVectorRankReducingFMAPattern(patterns);
  populateVectorShapeCastLoweringPatterns(patterns);
  populateVectorStepLoweringPatterns(patterns);
  populateVectorToElementsUnrollPatterns(patterns);
  populateVectorTransferLoweringPatterns(patterns, /*maxTransferRank=*/1);
}

namespace {

struct ConvertToLLVMPass
    : mlir::linattn::impl::LinAttnConvertToLLVMPassBase<ConvertToLLVMPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(takeSize);
    populateVectorPatterns(patterns);
    if (failed(mlir::linattn::applyPatternsToRoots(getOperation(),
                                                   std::move(patterns))) ||
        failed(convert()))
      return signalPassFailure();
    annotateLoops();
  }

private:
  /// The branch back to the start of a loop has what the loop is annotated with
  /// as an attribute that no translation knows.
  void annotateLoops() {
    getOperation()->walk([](LLVM::BrOp branch) {
      if (Attribute annotation = branch->removeDiscardableAttr(
              mlir::linattn::kLoopAnnotationAttrName))
        branch.setLoopAnnotationAttr(
            cast<LLVM::LoopAnnotationAttr>(annotation));
    });
  }

  LogicalResult convert() {
    LLVMTypeConverter types(&getContext());
    RewritePatternSet patterns(&getContext());
    SymbolTableCollection symbols;
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    cf::populateAssertToLLVMConversionPattern(types, patterns);
    index::populateIndexToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns, &symbols);
    populateFuncToLLVMConversionPatterns(types, patterns, &symbols);
    populateVectorToLLVMConversionPatterns(
        types, patterns, /*reassociateFPReductions=*/false, kIndices32Bit);
    ub::populateUBToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget target(getContext());
    if (amx) {
      configureAMXLegalizeForExportTarget(target);
      populateAMXLegalizeForLLVMExportPatterns(types, patterns);
    }
    // These patterns do not fail after they have changed the IR.
    ConversionConfig config;
    config.allowPatternRollback = false;
    return applyPartialConversion(getOperation(), target, std::move(patterns),
                                  config);
  }
};

} // namespace
