//===- CheckShapes.cpp - Result shapes and the checks of arguments --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The companion of a function starts as its clone. It first returns sizes and
// truth values instead of tensors. Simplification then removes all that these
// do not need, and the remaining values are stored to the caller's memory.
//===----------------------------------------------------------------------===//

#include "Entry.h"
#include "ShapeChecks.h"
#include "linattn/Dialect/Canonicalization.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Entry/EntryLayout.h"
#include "linattn/Entry/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCHECKSHAPESPASS
#include "linattn/Entry/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

static SmallVector<func::ReturnOp> getReturns(func::FuncOp func) {
  SmallVector<func::ReturnOp> returns;
  for (Block &block : func.getBody())
    if (auto ret = dyn_cast<func::ReturnOp>(block.getTerminator()))
      returns.push_back(ret);
  return returns;
}

static void setResultTypes(func::FuncOp func, TypeRange types) {
  for (unsigned i = func.getNumResults(); i-- > 0;)
    (void)func.eraseResult(i);
  func.setFunctionType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
}

/// Makes `companion` return the sizes of its results and the values of
/// `checks`.
static void returnSizes(func::FuncOp companion, ArrayRef<ShapeCheck> checks) {
  SmallVector<Type> types;
  for (func::ReturnOp ret : getReturns(companion)) {
    ImplicitLocOpBuilder b(ret.getLoc(), ret);
    SmallVector<Value> values;
    for (Value result : ret.getOperands())
      if (auto tensor = dyn_cast<RankedTensorType>(result.getType()))
        for (int64_t d = 0, e = tensor.getRank(); d < e; ++d)
          values.push_back(b.createOrFold<tensor::DimOp>(result, d));
    for (const ShapeCheck &check : checks) {
      values.push_back(check.holds);
      llvm::append_range(values, check.sizes);
    }
    ret.getOperandsMutable().assign(values);
    types.assign(ret.getOperandTypes().begin(), ret.getOperandTypes().end());
  }
  setResultTypes(companion, types);
}

namespace {

/// The position of a check's values among the returned ones.
struct CheckPosition {
  unsigned holds;
  unsigned numSizes;
};

} // namespace

/// Sizes of results of loops and branches, from the arguments where they follow
/// from them.
static void resolveRemainingDims(func::FuncOp companion) {
  auto isArgument = [&](Value value) {
    return value.getParentBlock() == &companion.front() &&
           isa<BlockArgument>(value);
  };
  SmallVector<tensor::DimOp> dims;
  companion.walk([&](tensor::DimOp op) {
    if (op.getConstantIndex() && !isArgument(op.getSource()))
      dims.push_back(op);
  });
  IRRewriter rewriter(companion.getContext());
  for (tensor::DimOp op : dims) {
    rewriter.setInsertionPoint(op);
    FailureOr<OpFoldResult> size = affine::reifyShapedValueDimBound(
        rewriter, op.getLoc(), presburger::BoundType::EQ, op.getSource(),
        *op.getConstantIndex(),
        [&](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
          return isArgument(value);
        });
    if (succeeded(size))
      rewriter.replaceOp(
          op, getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), *size));
  }
}

/// Drops repeated checks and those that simplification has decided.
static SmallVector<std::pair<CheckPosition, std::string>>
getOpenChecks(ArrayRef<func::ReturnOp> returns, unsigned position,
              ArrayRef<ShapeCheck> checks) {
  SmallVector<std::pair<CheckPosition, std::string>> open;
  for (const ShapeCheck &check : checks) {
    CheckPosition at{position, static_cast<unsigned>(check.sizes.size())};
    position += 1 + at.numSizes;
    bool isDecided = llvm::all_of(returns, [&](func::ReturnOp ret) {
      return matchPattern(ret.getOperand(at.holds), m_One());
    });
    bool isRepeated = llvm::any_of(open, [&](const auto &former) {
      return llvm::all_of(returns, [&](func::ReturnOp ret) {
        return ret.getOperand(former.first.holds) == ret.getOperand(at.holds);
      });
    });
    if (!isDecided && !isRepeated)
      open.push_back({at, check.message});
  }
  return open;
}

/// The ops of `block` that compute tensors only for their sizes or for none of
/// the checks. Empty unless a shape depends on data.
static SmallVector<Operation *>
getComputation(func::ReturnOp ret,
               ArrayRef<std::pair<CheckPosition, std::string>> checks) {
  Block *block = ret->getBlock();
  llvm::SetVector<Operation *> needed;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (Operation *ancestor = op ? block->findAncestorOpInBlock(*op) : nullptr)
      needed.insert(ancestor);
  };
  for (const auto &[at, message] : checks)
    for (unsigned i = 0; i <= at.numSizes; ++i)
      need(ret.getOperand(at.holds + i));
  for (unsigned i = 0; i < needed.size(); ++i)
    needed[i]->walk(
        [&](Operation *op) { llvm::for_each(op->getOperands(), need); });
  SmallVector<Operation *> rest;
  bool hasTensors = false;
  for (Operation &op : block->without_terminator()) {
    if (needed.contains(&op))
      continue;
    rest.push_back(&op);
    hasTensors |= llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
  }
  if (!hasTensors)
    rest.clear();
  return rest;
}

/// Stores the number of the first failed check, and from `slot` on the sizes of
/// its message. Returns whether all checks hold.
static Value
storeFailure(ImplicitLocOpBuilder &b, func::ReturnOp ret, Value out,
             int64_t slot,
             ArrayRef<std::pair<CheckPosition, std::string>> checks) {
  Type i64 = b.getI64Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  auto store = [&](OpBuilder &nested, Value value, int64_t at) {
    Value index = arith::ConstantIndexOp::create(nested, b.getLoc(), at);
    memref::StoreOp::create(nested, b.getLoc(), value, out, index);
  };
  Value allHold;
  for (const auto &[at, message] : checks) {
    Value holds = ret.getOperand(at.holds);
    allHold = allHold ? arith::AndIOp::create(b, allHold, holds) : holds;
  }
  store(b, number(-1), slot);
  Value truth = arith::ConstantIntOp::create(b, true, 1);
  Value fails = arith::XOrIOp::create(b, allHold, truth);
  // The sizes are computed only for a message.
  auto branch = scf::IfOp::create(b, fails, /*withElseRegion=*/false);
  ImplicitLocOpBuilder then(b.getLoc(), branch.thenBlock()->getTerminator());
  Value zero = number(0), first = number(-1);
  SmallVector<Value> sizes(kMaxCheckedSizes, zero);
  for (size_t index = checks.size(); index-- > 0;) {
    auto [holds, numSizes] = checks[index].first;
    Value isFine = ret.getOperand(holds);
    auto pick = [&](Value fresh, Value old) -> Value {
      return arith::SelectOp::create(then, isFine, old, fresh);
    };
    first = pick(arith::ConstantIntOp::create(then, index, 64), first);
    for (unsigned i = 0; i < numSizes; ++i)
      sizes[i] = pick(
          arith::IndexCastOp::create(then, i64, ret.getOperand(holds + 1 + i)),
          sizes[i]);
  }
  store(then, first, slot);
  for (auto [i, size] : llvm::enumerate(sizes))
    store(then, size, slot + 1 + i);
  return allHold;
}

/// Replaces the returned values by stores to a last argument.
static void storeSizes(func::FuncOp companion, unsigned numSizes,
                       ArrayRef<ShapeCheck> checks) {
  Builder types(companion.getContext());
  SmallVector<func::ReturnOp> returns = getReturns(companion);
  auto open = getOpenChecks(returns, numSizes, checks);
  int64_t numSlots = numSizes + (open.empty() ? 0 : 1 + kMaxCheckedSizes);
  unsigned outIndex = companion.getNumArguments();
  (void)companion.insertArgument(
      outIndex, MemRefType::get({numSlots}, types.getI64Type()), {},
      companion.getLoc());
  Value out = companion.getArgument(outIndex);
  for (func::ReturnOp ret : returns) {
    ImplicitLocOpBuilder b(ret.getLoc(), ret);
    if (!open.empty()) {
      SmallVector<Operation *> computation;
      if (companion.getBody().hasOneBlock())
        computation = getComputation(ret, open);
      Value allHold = storeFailure(b, ret, out, numSizes, open);
      // The sizes of tensors are checked before the tensors are read.
      if (!computation.empty()) {
        auto branch = scf::IfOp::create(b, allHold, /*withElseRegion=*/false);
        Operation *yield = branch.thenBlock()->getTerminator();
        for (Operation *op : computation)
          op->moveBefore(yield);
        b.setInsertionPoint(yield);
      }
    }
    for (unsigned i = 0; i < numSizes; ++i) {
      Value wide =
          arith::IndexCastOp::create(b, b.getI64Type(), ret.getOperand(i));
      Value slot = arith::ConstantIndexOp::create(b, i);
      memref::StoreOp::create(b, wide, out, slot);
    }
    ret->setOperands({});
  }
  setResultTypes(companion, {});
  SmallVector<Attribute> messages;
  for (const auto &[at, message] : open)
    messages.push_back(types.getStringAttr(message));
  companion->setAttr(kChecksAttrName, types.getArrayAttr(messages));
}

static void simplify(func::FuncOp func) {
  canonicalize(func);
  IRRewriter rewriter(func.getContext());
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
}

static LogicalResult addShapesCompanion(func::FuncOp func, RunPasses run,
                                        CheckedElements elements) {
  OpBuilder builder(func->getContext());
  builder.setInsertionPointAfter(func);
  auto companion = cast<func::FuncOp>(builder.clone(*func));
  companion.setName((func.getName() + kShapesSuffix).str());

  unsigned numSizes = 0;
  for (Type type : func.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      numSizes += tensor.getRank();
  SmallVector<ShapeCheck> checks = emitShapeChecks(companion, elements.indices);
  if (elements.decays)
    llvm::append_range(checks, emitDecayChecks(companion));
  returnSizes(companion, checks);

  OpPassManager resolve(func::FuncOp::getOperationName());
  // Elementwise ops on tensors do not implement the reification of shapes.
  resolve.addPass(createConvertElementwiseToLinalgPass());
  resolve.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
  if (failed(run(resolve, companion)))
    return failure();
  canonicalize(companion);
  resolveRemainingDims(companion);
  simplify(companion);
  // Sizes that are now known to be equal decide comparisons.
  simplify(companion);
  storeSizes(companion, numSizes, checks);
  simplify(companion);
  return success();
}

FailureOr<SmallVector<func::FuncOp>>
mlir::linattn::getEntriesWithCompanions(ModuleOp module, RunPasses run,
                                        CheckedElements elements) {
  FailureOr<SmallVector<func::FuncOp>> entries = getCheckedEntries(module);
  if (failed(entries))
    return failure();
  for (func::FuncOp func : *entries)
    if (!getShapesCompanion(func) &&
        failed(addShapesCompanion(func, run, elements)))
      return failure();
  return entries;
}

namespace {

struct LinAttnCheckShapesPass final
    : mlir::linattn::impl::LinAttnCheckShapesPassBase<LinAttnCheckShapesPass> {
  using LinAttnCheckShapesPassBase::LinAttnCheckShapesPassBase;

  void runOnOperation() override {
    auto run = [&](OpPassManager &pm, Operation *op) {
      return runPipeline(pm, op);
    };
    if (failed(getEntriesWithCompanions(getOperation(), run,
                                        {checkIndices, checkDecays})))
      signalPassFailure();
  }
};

} // namespace
