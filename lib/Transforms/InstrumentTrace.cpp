//===- InstrumentTrace.cpp - Show values as they are computed -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Runs on buffers: an op's result can be read right after the op, without a
// copy for the reader.
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNINSTRUMENTTRACEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// The op's name for one of its destinations.
static std::string getInitName(DestinationStyleOpInterface op,
                               OpOperand &init) {
  Value value = init.get();
  StateValues state;
  if (auto scan = dyn_cast<ScanOp>(op.getOperation()))
    state = {scan.getState(), scan.getNormalizer(), scan.getRunningMax()};
  else if (auto sweep = dyn_cast<SweepOp>(op.getOperation()))
    state = {sweep.getState(), Value(), Value()};
  else if (auto sum = dyn_cast<StateOp>(op.getOperation()))
    state = {sum.getState(), sum.getNormalizer(), sum.getRunningMax()};
  if (value == state.state)
    return "state S";
  if (value == state.normalizer)
    return "normalizer z";
  if (value == state.runningMax)
    return "running maximum m";
  if (isa<LinAttnDialect>(op->getDialect()))
    return "output";
  return "result " +
         std::to_string(init.getOperandNumber() -
                        op.getDpsInitOperand(0)->getOperandNumber());
}

namespace {

class Instrumenter {
public:
  explicit Instrumenter(ModuleOp module) : module(module) {}

  void instrument(DestinationStyleOpInterface op) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = cast<MemRefType>(init.get().getType());
      if (!isa<FloatType>(type.getElementType()))
        continue;
      ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
      b.setInsertionPointAfter(last ? last : op.getOperation());
      auto values =
          UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace());
      std::string label =
          (op->getName().getStringRef() + ": " + getInitName(op, init)).str();
      SmallVector<Value> arguments{
          getLabel(b, label), getStep(b, op),
          memref::CastOp::create(b, values, init.get())};
      last = func::CallOp::create(b, getPrinter(b, values), arguments);
    }
    last = nullptr;
  }

private:
  /// The token of a scan over one token; −1 outside of loops.
  Value getStep(ImplicitLocOpBuilder &b, Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
      return arith::IndexCastOp::create(b, b.getI64Type(),
                                        loop.getInductionVar());
    return arith::ConstantIntOp::create(b, -1, 64);
  }

  /// The label as constant characters in memory.
  Value getLabel(ImplicitLocOpBuilder &b, StringRef text) {
    auto type =
        MemRefType::get({static_cast<int64_t>(text.size())}, b.getI8Type());
    std::string &name = labels[text];
    if (name.empty()) {
      name = "linattn_trace_label" + std::to_string(labels.size() - 1);
      SmallVector<int8_t> characters(text.begin(), text.end());
      auto value = DenseElementsAttr::get(
          RankedTensorType::get(type.getShape(), b.getI8Type()),
          ArrayRef<int8_t>(characters));
      OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
      memref::GlobalOp::create(top, b.getLoc(), name,
                               top.getStringAttr("private"), type, value,
                               /*constant=*/true, /*alignment=*/IntegerAttr());
    }
    Value label = memref::GetGlobalOp::create(b, type, name);
    return memref::CastOp::create(b, UnrankedMemRefType::get(b.getI8Type(), {}),
                                  label);
  }

  func::FuncOp getPrinter(ImplicitLocOpBuilder &b, UnrankedMemRefType values) {
    std::string name;
    llvm::raw_string_ostream(name)
        << "linattn_trace_" << values.getElementType();
    if (auto printer = module.lookupSymbol<func::FuncOp>(name))
      return printer;
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    auto type = top.getFunctionType(
        {UnrankedMemRefType::get(b.getI8Type(), {}), b.getI64Type(), values},
        {});
    auto printer = func::FuncOp::create(top, b.getLoc(), name, type);
    printer.setPrivate();
    return printer;
  }

  ModuleOp module;
  /// The call that prints the previous destination.
  Operation *last = nullptr;
  llvm::StringMap<std::string> labels;
};

struct LinAttnInstrumentTracePass final
    : mlir::linattn::impl::LinAttnInstrumentTracePassBase<
          LinAttnInstrumentTracePass> {
  using LinAttnInstrumentTracePassBase::LinAttnInstrumentTracePassBase;

  void runOnOperation() override {
    SmallVector<DestinationStyleOpInterface> ops;
    getOperation()->walk([&](DestinationStyleOpInterface op) {
      bool shown = isa<linalg::LinalgOp>(op.getOperation()) ||
                   isa<LinAttnDialect>(op->getDialect());
      // Zeros that start a sum are not printed.
      auto func = op->getParentOfType<func::FuncOp>();
      bool isCompanion = func && func->hasAttr(kChecksAttrName);
      if (shown && !isCompanion && op.hasPureBufferSemantics() &&
          !isa<linalg::FillOp>(op.getOperation()))
        ops.push_back(op);
    });
    Instrumenter instrumenter(getOperation());
    for (DestinationStyleOpInterface op : ops)
      instrumenter.instrument(op);
  }
};

} // namespace
