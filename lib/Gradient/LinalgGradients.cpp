//===- LinalgGradients.cpp - Gradients of structured loops ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of a structured op is one linalg.generic for each active input,
// over the same loops: its body computes the scalars again, walks them
// backwards, and the loops that the input's map does not name become sums.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linattn;
using linalg::LinalgOp;

namespace {

/// How a body combines what it computes with the output's old value.
enum class Combiner { Overwrite, Sum, Extremum };

/// One output that has a cotangent.
struct SeededOutput {
  Value summand;    ///< The scalar computed from the inputs.
  Operation *adder; ///< What combines it, null for Overwrite.
  Combiner combiner;
  Value cotangent, result;
  AffineMap map;
};

} // namespace

/// The other operand, if `op` combines `old` with something else.
static Value getOther(Operation *op, Value old) {
  if (op->getNumOperands() != 2)
    return {};
  if (op->getOperand(0) == old)
    return op->getOperand(1);
  return op->getOperand(1) == old ? op->getOperand(0) : Value();
}

static FailureOr<SeededOutput> classify(LinalgOp op, OpOperand &init,
                                        Value cotangent) {
  Block *body = op.getBlock();
  unsigned index = init.getOperandNumber() - op.getNumDpsInputs();
  Value yielded = body->getTerminator()->getOperand(index);
  SeededOutput output{yielded,
                      nullptr,
                      Combiner::Overwrite,
                      cotangent,
                      op->getResult(index),
                      op.getMatchingIndexingMap(&init)};
  if (!op.payloadUsesValueFromOperand(&init))
    return output;
  Value old = op.getMatchingBlockArgument(&init);
  Operation *adder = yielded.getDefiningOp();
  Value other = adder ? getOther(adder, old) : Value();
  bool isSum = adder && isa<arith::AddFOp>(adder);
  bool isExtremum = adder && isa<arith::MaximumFOp, arith::MinimumFOp,
                                 arith::MaxNumFOp, arith::MinNumFOp>(adder);
  if (!other || !old.hasOneUse() || !adder->hasOneUse() ||
      !(isSum || isExtremum))
    return emitNoGradient(op)
           << ": expected a sum, a maximum or a minimum over the loops";
  output.summand = other;
  output.adder = adder;
  output.combiner = isSum ? Combiner::Sum : Combiner::Extremum;
  return output;
}

/// Emits the scalars of `op` at one point of its loops and returns the
/// cotangent of input `index`, or null. `args` are the inputs, then for each
/// output the cotangent and the result.
static FailureOr<Value> emitPoint(OpBuilder &b, LinalgOp op, unsigned index,
                                  ArrayRef<SeededOutput> outputs,
                                  ValueRange args) {
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands())
    mapping.map(op.getMatchingBlockArgument(input),
                args[input->getOperandNumber()]);
  SmallVector<Operation *> ops;
  for (Operation &scalar : op.getBlock()->without_terminator()) {
    auto adds = [&](const SeededOutput &o) { return o.adder == &scalar; };
    if (llvm::any_of(outputs, adds) ||
        llvm::any_of(scalar.getOperands(), [&](Value operand) {
          auto arg = dyn_cast<BlockArgument>(operand);
          return arg && arg.getOwner() == op.getBlock() &&
                 !mapping.contains(operand);
        }))
      continue; // Of an output: nothing that is left depends on it.
    ops.push_back(b.clone(scalar, mapping));
  }
  Cotangents inner;
  inner.activate(args[index]);
  inner.activateThrough(ops);
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value d = args[op.getNumDpsInputs() + 2 * i];
    Value summand = mapping.lookupOrDefault(output.summand);
    if (output.combiner == Combiner::Extremum) {
      Value result = args[op.getNumDpsInputs() + 2 * i + 1];
      Value isTaken = arith::CmpFOp::create(
          b, op.getLoc(), arith::CmpFPredicate::OEQ, summand, result);
      Value zero = arith::ConstantOp::create(b, op.getLoc(),
                                             b.getFloatAttr(d.getType(), 0.0));
      d = arith::SelectOp::create(b, op.getLoc(), isTaken, d, zero);
    }
    inner.add(b, summand, d);
  }
  if (failed(differentiate(b, ops, inner)))
    return failure();
  return inner.get(args[index]);
}

/// The cotangent of one input.
static FailureOr<Value> buildInput(OpBuilder &b, LinalgOp op, OpOperand &input,
                                   ArrayRef<SeededOutput> outputs) {
  Location loc = op.getLoc();
  AffineMap map = op.getMatchingIndexingMap(&input);
  SmallVector<Value> inputs(op.getDpsInputs());
  SmallVector<AffineMap> maps;
  for (OpOperand *other : op.getDpsInputOperands())
    maps.push_back(op.getMatchingIndexingMap(other));
  for (const SeededOutput &output : outputs)
    for (Value value : {output.cotangent, output.result}) {
      inputs.push_back(value);
      maps.push_back(output.map);
    }
  maps.push_back(map);
  SmallVector<utils::IteratorType> iterators(map.getNumDims(),
                                             utils::IteratorType::reduction);
  for (AffineExpr dim : map.getResults())
    iterators[cast<AffineDimExpr>(dim).getPosition()] =
        utils::IteratorType::parallel;
  bool isSum = map.getNumResults() < map.getNumDims();

  Type type = getElementTypeOrSelf(input.get());
  Type wide =
      isSum && type.getIntOrFloatBitWidth() < 32 ? b.getF32Type() : type;
  SmallVector<OpFoldResult> sizes;
  if (isa<RankedTensorType>(input.get().getType()))
    sizes = tensor::getMixedSizes(b, loc, input.get());
  Value init = isSum ? filled(b, loc, sizes, wide, 0.0)
                     : tensor::EmptyOp::create(b, loc, sizes, wide).getResult();
  bool isBuilt = true;
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &nested, Location at, ValueRange args) {
        FailureOr<Value> d = emitPoint(nested, op, input.getOperandNumber(),
                                       outputs, args.drop_back());
        isBuilt = succeeded(d);
        Value value = isBuilt ? *d : Value();
        if (!value)
          value = arith::ConstantOp::create(nested, at,
                                            nested.getFloatAttr(type, 0.0));
        value = convertFloat(nested, at, value, wide);
        // The order of the sum is that of the vectors of the machine.
        if (isSum)
          value = arith::AddFOp::create(nested, at, args.back(), value,
                                        arith::FastMathFlags::reassoc);
        linalg::YieldOp::create(nested, at, value);
      });
  if (!isBuilt)
    return failure();
  Value sum = generic.getResult(0);
  if (sizes.empty() && !isa<RankedTensorType>(input.get().getType()))
    return convertFloat(b, loc, tensor::ExtractOp::create(b, loc, sum), type);
  if (wide != type)
    sum = arith::TruncFOp::create(b, loc, input.get().getType(), sum);
  return sum;
}

static LogicalResult linalgRule(LinalgOp op, OpBuilder &b, Cotangents &c) {
  if (!op.hasPureTensorSemantics() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return emitNoGradient(op)
           << ": expected tensors that are indexed by loops alone";
  WalkResult captured = op.getBlock()->walk([&](Operation *scalar) {
    return llvm::any_of(scalar->getOperands(),
                        [&](Value value) { return c.isActive(value); })
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  if (captured.wasInterrupted())
    return emitNoGradient(op)
           << ": its body uses a value from outside that depends on what is "
              "differentiated";

  SmallVector<SeededOutput> outputs;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    unsigned index = init.getOperandNumber() - op.getNumDpsInputs();
    Value cotangent = c.get(op->getResult(index));
    if (!cotangent)
      continue;
    FailureOr<SeededOutput> output = classify(op, init, cotangent);
    if (failed(output))
      return failure();
    if (output->combiner == Combiner::Extremum && c.isActive(init.get()))
      return emitNoGradient(op) << ": the start of a maximum or minimum";
    outputs.push_back(*output);
    if (output->combiner == Combiner::Sum)
      c.add(b, init.get(), cotangent);
  }
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!c.isActive(input->get()))
      continue;
    FailureOr<Value> d = buildInput(b, op, *input, outputs);
    if (failed(d))
      return failure();
    c.add(b, input->get(), *d);
  }
  return success();
}

template <typename OpTy>
static LogicalResult namedRule(OpTy op, OpBuilder &b, Cotangents &c) {
  return linalgRule(cast<LinalgOp>(op.getOperation()), b, c);
}

template <typename... OpTys>
static void attachAll(MLIRContext *context) {
  (attachGradient<OpTys, namedRule<OpTys>>(context), ...);
}

void mlir::linattn::registerLinalgGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    using namespace linalg;
    attachAll<GenericOp, MapOp, ReduceOp, BroadcastOp, TransposeOp, FillOp,
              CopyOp, AddOp, SubOp, MulOp, DivOp, ExpOp, LogOp, NegFOp, AbsOp,
              SqrtOp, RsqrtOp, TanhOp, ErfOp, SquareOp, ReciprocalOp, MaxOp,
              MinOp, ElementwiseOp, DotOp, MatvecOp, VecmatOp, MatmulOp,
              BatchMatvecOp, BatchMatmulOp, ContractOp>(context);
  });
}
