//===- BufferizableOpInterfaceImpl.cpp - Bufferization models -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/BufferizableOpInterfaceImpl.h"

#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Bufferization/IR/BufferViewFlowOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::linattn;

namespace {

/// Ops that read every destination before they write it.
template <typename OpTy>
constexpr bool updatesInPlace =
    std::is_same_v<OpTy, StateOp> || std::is_same_v<OpTy, ChunkSolveOp> ||
    std::is_same_v<OpTy, ChunkReadOp> || std::is_same_v<OpTy, ChunkUpdateOp>;

/// One model for every structured op: the same op on buffers, whose results are
/// the destinations.
template <typename OpTy>
struct StructuredOpModel
    : DstBufferizableOpInterfaceExternalModel<StructuredOpModel<OpTy>, OpTy> {
  /// States are read before they are written; outputs are only written.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    if (auto recurrence = dyn_cast<RecurrenceOpInterface>(op)) {
      unsigned number = operand.getOperandNumber();
      return number < recurrence.getFirstOutput().getOperandNumber() ||
             number >= recurrence.getFirstState().getOperandNumber();
    }
    if constexpr (std::is_same_v<OpTy, SoftmaxOp> ||
                  std::is_same_v<OpTy, SoftmaxGradientOp>)
      return !cast<OpTy>(op).isDpsInit(&operand);
    else if constexpr (std::is_same_v<OpTy, ChunkStabilizeOp>)
      return &operand != &cast<OpTy>(op).getFadeMutable() &&
             &operand != &cast<OpTy>(op).getMaximaMutable();
    else if constexpr (!updatesInPlace<OpTy>)
      return &operand != &cast<OpTy>(op).getOutputMutable();
    return true;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) { // a scale
        buffers.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    auto onBuffers =
        cast<OpTy>(cloneStructured(rewriter, op, TypeRange{}, buffers));
    SmallVector<Value> results;
    for (OpOperand &init : onBuffers.getDpsInitsMutable())
      results.push_back(init.get());
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

/// A view: the result is the input's buffer with other strides.
struct PermuteOpModel
    : BufferizableOpInterface::ExternalModel<PermuteOpModel, PermuteOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &,
                                      const AnalysisState &) const {
    // Not equivalent, because a loop may not yield it in place of the input.
    return {{op->getOpResult(0), BufferRelation::Unknown}};
  }

  FailureOr<BufferLikeType>
  getBufferType(Operation *op, Value, const BufferizationOptions &options,
                const BufferizationState &state,
                SmallVector<Value> &invocationStack) const {
    auto permute = cast<PermuteOp>(op);
    auto input = bufferization::getBufferType(permute.getInput(), options,
                                              state, invocationStack);
    if (failed(input))
      return failure();
    auto buffer = cast<MemRefType>(*input);
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(buffer.getStridesAndOffset(strides, offset)))
      return op->emitOpError("expected a strided buffer, but got ") << buffer;
    ArrayRef<int64_t> order = permute.getPermutation();
    return cast<BufferLikeType>(MemRefType::get(
        applyPermutation(buffer.getShape(), order), buffer.getElementType(),
        StridedLayoutAttr::get(op->getContext(), offset,
                               applyPermutation(ArrayRef(strides), order)),
        buffer.getMemorySpace()));
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto permute = cast<PermuteOp>(op);
    FailureOr<Value> buffer =
        getBuffer(rewriter, permute.getInput(), options, state);
    if (failed(buffer))
      return failure();
    AffineMap order = AffineMap::getPermutationMap(permute.getPermutation(),
                                                   op->getContext());
    replaceOpWithNewBufferizedOp<memref::TransposeOp>(
        rewriter, op, *buffer, AffineMapAttr::get(order));
    return success();
  }
};

/// Declares that the result of memref.transpose is a view, which LLVM 22 does
/// not. Otherwise a buffer would be freed before the last use of that view.
struct TransposeViewFlow
    : BufferViewFlowOpInterface::ExternalModel<TransposeViewFlow,
                                               memref::TransposeOp> {
  void populateDependencies(Operation *op,
                            RegisterDependenciesFn registerDependencies) const {
    auto transpose = cast<memref::TransposeOp>(op);
    registerDependencies(transpose.getIn(), transpose.getResult());
  }
  bool mayBeTerminalBuffer(Operation *, Value) const { return false; }
};

template <typename... OpTys>
void attachStructured(MLIRContext &context) {
  (OpTys::template attachInterface<StructuredOpModel<OpTys>>(context), ...);
}

} // namespace

void mlir::linattn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, memref::MemRefDialect *) {
    memref::TransposeOp::attachInterface<TransposeViewFlow>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, LinAttnDialect *) {
    QuadraticOp::attachInterface<StructuredOpModel<QuadraticOp>>(*context);
    ScanOp::attachInterface<StructuredOpModel<ScanOp>>(*context);
    StateOp::attachInterface<StructuredOpModel<StateOp>>(*context);
    ReadOp::attachInterface<StructuredOpModel<ReadOp>>(*context);
    FeatureMapOp::attachInterface<StructuredOpModel<FeatureMapOp>>(*context);
    PermuteOp::attachInterface<PermuteOpModel>(*context);
    SelectiveScanOp::attachInterface<StructuredOpModel<SelectiveScanOp>>(
        *context);
    DiagonalScanOp::attachInterface<StructuredOpModel<DiagonalScanOp>>(
        *context);
    Wkv4Op::attachInterface<StructuredOpModel<Wkv4Op>>(*context);
    LogLinearOp::attachInterface<StructuredOpModel<LogLinearOp>>(*context);
    OutputNormOp::attachInterface<StructuredOpModel<OutputNormOp>>(*context);
    CausalConvOp::attachInterface<StructuredOpModel<CausalConvOp>>(*context);
    SweepOp::attachInterface<StructuredOpModel<SweepOp>>(*context);
    attachStructured<SweepSelectiveOp, SoftmaxOp, SoftmaxGradientOp,
                     ChunkPackOp, ChunkUnpackOp, ChunkDecayOp, ChunkStabilizeOp,
                     ChunkScoresOp, ChunkSolveOp, ChunkReadOp, ChunkUpdateOp>(
        *context);
  });
}
