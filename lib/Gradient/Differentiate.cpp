//===- Differentiate.cpp - Functions and their gradients ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "TensorBuilder.h"
#include "WideClone.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Gradient/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNDIFFERENTIATEPASS
#include "linattn/Gradient/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

InFlightDiagnostic mlir::linattn::emitNoGradient(Operation *op) {
  return op->emitError("linattn-differentiate: '")
         << op->getName() << "' has no gradient yet";
}

void mlir::linattn::registerGradientExternalModels(DialectRegistry &registry) {
  registerArithGradients(registry);
  registerTensorGradients(registry);
  registerLinalgGradients(registry);
  registerLoopGradients(registry);
  registerLinAttnGradients(registry);
}

static bool isFloat(Type type) {
  return isa<FloatType>(getElementTypeOrSelf(type));
}

/// The operands to differentiate, checked.
static FailureOr<SmallVector<int64_t>> getOperands(func::FuncOp func,
                                                   ArrayRef<int64_t> listed) {
  SmallVector<int64_t> operands(listed);
  if (operands.empty())
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
      if (isFloat(type))
        operands.push_back(i);
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t operand : operands) {
    if (operand < 0 || operand >= func.getNumArguments())
      return func.emitError("linattn-differentiate: expected operands of '")
             << func.getName() << "' to be from 0 to "
             << int64_t(func.getNumArguments()) - 1 << ", but got " << operand;
    if (!isFloat(func.getArgumentTypes()[operand]))
      return func.emitError("linattn-differentiate: expected operand ")
             << operand << " of '" << func.getName()
             << "' to be of a float type, but got "
             << func.getArgumentTypes()[operand];
    if (!seen.insert(operand).second)
      return func.emitError("linattn-differentiate: expected operand ")
             << operand << " of '" << func.getName()
             << "' to be listed once, but got it again";
  }
  return operands;
}

static LogicalResult checkFunction(func::FuncOp func) {
  if (func.isDeclaration() || !func.getBody().hasOneBlock())
    return func.emitError("linattn-differentiate: expected '")
           << func.getName() << "' to have a body of one block";
  for (Type type :
       llvm::concat<const Type>(func.getArgumentTypes(), func.getResultTypes()))
    if (isFloat(type) && isa<ShapedType>(type) && !isa<RankedTensorType>(type))
      return func.emitError("linattn-differentiate: expected operands and "
                            "results of '")
             << func.getName() << "' to be ranked tensors or scalars, but got "
             << type;
  return success();
}

/// Bufferization does not know tensor.concat.
static LogicalResult lowerConcats(func::FuncOp func) {
  SmallVector<tensor::ConcatOp> concats;
  func.walk([&](tensor::ConcatOp op) { concats.push_back(op); });
  for (tensor::ConcatOp op : concats) {
    OpBuilder b(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(b);
    if (failed(values))
      return failure();
    op->replaceAllUsesWith(*values);
    op.erase();
  }
  return success();
}

/// Ops of the block that its results need.
static SmallVector<Operation *> getLive(Block &block) {
  llvm::SmallPtrSet<Operation *, 32> live;
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(block)) {
    bool isNeeded = op.hasTrait<OpTrait::IsTerminator>() ||
                    !isMemoryEffectFree(&op) ||
                    llvm::any_of(op.getUsers(), [&](Operation *user) {
                      return live.contains(block.findAncestorOpInBlock(*user));
                    });
    if (!isNeeded)
      continue;
    live.insert(&op);
    ops.push_back(&op);
  }
  return ops;
}

/// Reports the values that the backward pass keeps, and those it recomputes.
static void remarkMemory(func::FuncOp vjp) {
  int64_t scans = 0, sweeps = 0, selective = 0, softmax = 0, loops = 0,
          chunked = 0;
  for (Operation *op : getLive(vjp.getBody().front())) {
    scans += isa<ScanOp>(op);
    sweeps += isa<SweepOp>(op);
    selective += isa<SweepSelectiveOp>(op);
    softmax += isa<SoftmaxOp>(op);
    loops += isa<scf::ForOp>(op);
    chunked += isa<scf::ForallOp>(op);
  }
  std::string text =
      llvm::formatv("keeps only operands for the backward pass; computed again "
                    "without stored states: scans {0}, sweeps {1}",
                    scans, sweeps);
  if (selective)
    text += llvm::formatv(
        "; with a state every 32 tokens: selective sweeps {0}", selective);
  if (softmax)
    text += llvm::formatv(
        "; with the log-sum-exp of each row of weights: softmax attention {0}",
        softmax);
  if (chunked)
    text += llvm::formatv(
        "; with a state of one head every chunk: loops over chunks {0}",
        chunked);
  if (loops)
    text += llvm::formatv("; loops, each with a record of the values it "
                          "carries or none: {0}",
                          loops);
  remark::passed(vjp.getLoc(), remarkNamed("differentiate")) << text;
}

/// Creates `@NAME_vjp` behind `func`.
static LogicalResult createVjp(func::FuncOp func, ArrayRef<int64_t> listed,
                               ChunkLoops chunks) {
  FailureOr<SmallVector<int64_t>> operands = getOperands(func, listed);
  if (failed(operands) || failed(checkFunction(func)))
    return failure();
  std::string name = (func.getName() + kVjpSuffix).str();
  auto module = func->getParentOfType<ModuleOp>();
  if (module.lookupSymbol(name))
    return func.emitError("linattn-differentiate: expected no function '")
           << name << "', but the module has one";

  bool keeps = func->hasAttr(kKeepResultsAttrName);
  SmallVector<Type> inputs(func.getArgumentTypes()), results;
  // Results that are kept, then cotangents.
  for (int i = 0; i < 1 + keeps; ++i)
    llvm::copy_if(func.getResultTypes(), std::back_inserter(inputs), isFloat);
  for (int64_t operand : *operands)
    results.push_back(func.getArgumentTypes()[operand]);
  OpBuilder b(func);
  b.setInsertionPointAfter(func);
  auto vjp = func::FuncOp::create(b, func.getLoc(), name,
                                  b.getFunctionType(inputs, results));
  vjp.setVisibility(func.getVisibility());
  vjp->setAttr(kGradientAttrName, b.getUnitAttr());
  Block *entry = vjp.addEntryBlock();
  b.setInsertionPointToStart(entry);

  IRMapping mapping;
  Block &source = func.getBody().front();
  auto own = entry->getArguments().take_front(func.getNumArguments());
  SmallVector<Operation *> ops = cloneWide(b, source, own, mapping);

  Cotangents cotangents;
  cotangents.chunks = chunks;
  for (int64_t operand : *operands)
    cotangents.activate(entry->getArgument(operand));
  cotangents.activateThrough(ops);
  SmallVector<Value> returned;
  for (Value result : source.getTerminator()->getOperands())
    if (isFloat(result.getType()))
      returned.push_back(mapping.lookup(result));
  auto given = entry->getArguments().drop_front(func.getNumArguments());
  for (auto [value, cotangent] :
       llvm::zip(returned, given.take_back(returned.size())))
    cotangents.add(b, value, convertTo(b, cotangent, value.getType()));
  if (failed(mlir::linattn::differentiate(b, ops, cotangents)))
    return failure();
  if (keeps) { // Without a use of its results the forward pass goes.
    OpBuilder atStart = OpBuilder::atBlockBegin(entry);
    for (auto [value, kept] : llvm::zip(returned, given))
      value.replaceAllUsesWith(convertTo(atStart, kept, value.getType()));
  }

  SmallVector<Value> values;
  for (int64_t operand : *operands) {
    Value argument = entry->getArgument(operand);
    Value cotangent = cotangents.get(argument);
    values.push_back(cotangent ? cotangent
                               : zerosLike(b, argument.getLoc(), argument));
  }
  func::ReturnOp::create(b, func.getLoc(), values);
  remarkMemory(vjp);
  return lowerConcats(vjp);
}

namespace {

struct LinAttnDifferentiatePass final
    : mlir::linattn::impl::LinAttnDifferentiatePassBase<
          LinAttnDifferentiatePass> {
  using LinAttnDifferentiatePassBase::LinAttnDifferentiatePassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LinAttnDifferentiatePassBase::getDependentDialects(registry);
    registerGradientExternalModels(registry);
  }

  void runOnOperation() override {
    if (failed(function.empty() ? runOnMarked() : runOnNamed()))
      signalPassFailure();
  }

private:
  LogicalResult differentiate(func::FuncOp func, ArrayRef<int64_t> listed) {
    if (failed(createVjp(func, listed, {chunkSize, vectorBits})))
      return failure();
    if (isolate)
      func.setPrivate();
    return success();
  }

  LogicalResult runOnNamed() {
    auto func = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!func)
      return getOperation().emitError(
                 "linattn-differentiate: expected a function '")
             << function << "', but the module has none";
    return differentiate(func, llvm::to_vector(operands));
  }

  LogicalResult runOnMarked() {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      Attribute attr = func->removeAttr(kDifferentiateAttrName);
      if (!attr)
        continue;
      auto listed = dyn_cast<DenseI64ArrayAttr>(attr);
      if (!listed)
        return func.emitError("linattn-differentiate: expected ")
               << kDifferentiateAttrName << " to be array<i64>, but got "
               << attr;
      if (failed(differentiate(func, listed)))
        return failure();
    }
    return success();
  }
};

} // namespace
