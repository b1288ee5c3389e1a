//===- BufferizableOpInterfaceImpl.cpp - Bufferization models -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/BufferizableOpInterfaceImpl.h"

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::linattn;

namespace {

/// One model serves every structured op: same op on buffers, results replaced
/// by the destinations.
template <typename OpTy>
struct StructuredOpModel
    : DstBufferizableOpInterfaceExternalModel<StructuredOpModel<OpTy>, OpTy> {
  /// States are read before they are written; outputs are only written.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    if constexpr (!std::is_same_v<OpTy, StateOp>)
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

} // namespace

void mlir::linattn::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, LinAttnDialect *) {
    QuadraticOp::attachInterface<StructuredOpModel<QuadraticOp>>(*context);
    ScanOp::attachInterface<StructuredOpModel<ScanOp>>(*context);
    StateOp::attachInterface<StructuredOpModel<StateOp>>(*context);
    ReadOp::attachInterface<StructuredOpModel<ReadOp>>(*context);
    FeatureMapOp::attachInterface<StructuredOpModel<FeatureMapOp>>(*context);
  });
}
