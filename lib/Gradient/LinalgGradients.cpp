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
#include "TensorBuilder.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linattn;
using linalg::LinalgOp;

namespace {

/// How a body combines its value with the output's old value.
enum class Combiner { Overwrite, Sum, Extremum };

/// One output that has a cotangent.
struct SeededOutput {
  SmallVector<Value> summands;     ///< The scalars computed from the inputs.
  SmallVector<Operation *> adders; ///< What combines them; none for Overwrite.
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

/// Whether `value` is `old` and something added to it.
static bool addsTo(Value value, Value old) {
  if (value == old)
    return true;
  auto add = value.getDefiningOp<arith::AddFOp>();
  return add && add->hasOneUse() &&
         (addsTo(add.getLhs(), old) || addsTo(add.getRhs(), old));
}

static FailureOr<SeededOutput> classify(LinalgOp op, OpOperand &init,
                                        Value cotangent) {
  Block *body = op.getBlock();
  unsigned index = init.getOperandNumber() - op.getNumDpsInputs();
  Value yielded = body->getTerminator()->getOperand(index);
  SeededOutput output{{},
                      {},
                      Combiner::Overwrite,
                      cotangent,
                      op->getResult(index),
                      op.getMatchingIndexingMap(&init)};
  if (!op.payloadUsesValueFromOperand(&init)) {
    output.summands.push_back(yielded);
    return output;
  }
  Value old = op.getMatchingBlockArgument(&init);
  Operation *adder = yielded.getDefiningOp();
  bool isExtremum = isa_and_present<arith::MaximumFOp, arith::MinimumFOp,
                                    arith::MaxNumFOp, arith::MinNumFOp>(adder);
  if (isExtremum && old.hasOneUse() && adder->hasOneUse())
    if (Value other = getOther(adder, old)) {
      output.summands.push_back(other);
      output.adders.push_back(adder);
      output.combiner = Combiner::Extremum;
      return output;
    }
  if (!old.hasOneUse() || !addsTo(yielded, old))
    return emitNoGradient(op)
           << ": expected a sum, a maximum or a minimum over the loops";
  output.combiner = Combiner::Sum;
  for (Value sum = yielded; sum != old;) {
    auto add = sum.getDefiningOp<arith::AddFOp>();
    bool isLeft = addsTo(add.getLhs(), old);
    output.summands.push_back(isLeft ? add.getRhs() : add.getLhs());
    output.adders.push_back(add);
    sum = isLeft ? add.getLhs() : add.getRhs();
  }
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
    auto adds = [&](const SeededOutput &o) {
      return llvm::is_contained(o.adders, &scalar);
    };
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
    for (Value scalar : output.summands) {
      Value summand = mapping.lookupOrDefault(scalar);
      if (output.combiner == Combiner::Extremum) {
        Value result = args[op.getNumDpsInputs() + 2 * i + 1];
        Value isTaken = arith::CmpFOp::create(
            b, op.getLoc(), arith::CmpFPredicate::OEQ, summand, result);
        Value zero = arith::ConstantOp::create(
            b, op.getLoc(), b.getFloatAttr(d.getType(), 0.0));
        d = arith::SelectOp::create(b, op.getLoc(), isTaken, d, zero);
      }
      inner.add(b, summand, d);
    }
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

/// The factor of a result `d floordiv factor`, 1 for a loop alone, 0 for
/// others.
static int64_t getGroupSize(AffineExpr expr) {
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv ||
      !isa<AffineDimExpr>(quotient.getLHS()))
    return 0;
  auto factor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
  return factor && factor.getValue() > 0 ? factor.getValue() : 0;
}

static bool hasGroups(AffineMap map) {
  return llvm::any_of(map.getResults(),
                      [](AffineExpr expr) { return getGroupSize(expr) > 1; });
}

/// The same op with inputs that are read in groups, `d floordiv n`, repeated,
/// and what its outputs hold beforehand among its inputs, where no loop sums.
static SmallVector<Value> rewritePlainly(LinalgOp op, OpBuilder &b,
                                         bool takesInits) {
  Location loc = op.getLoc();
  SmallVector<Value> inputs, inits(op.getDpsInits());
  SmallVector<AffineMap> inputMaps, initMaps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    Value value = input->get();
    SmallVector<AffineExpr> dims(map.getResults());
    for (auto [dim, expr] : llvm::enumerate(dims))
      if (int64_t size = getGroupSize(expr); size > 1) {
        value = TensorBuilder(b, loc, getElementTypeOrSelf(value))
                    .repeatedEach(value, dim, size);
        expr = cast<AffineBinaryOpExpr>(expr).getLHS();
      }
    inputs.push_back(value);
    inputMaps.push_back(
        AffineMap::get(map.getNumDims(), 0, dims, op.getContext()));
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    initMaps.push_back(op.getMatchingIndexingMap(&init));
  if (takesInits) {
    inputs.append(inits);
    inputMaps.append(initMaps);
    for (Value &init : inits)
      init =
          tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, init),
                                  getElementTypeOrSelf(init));
  }
  SmallVector<AffineMap> maps(inputMaps);
  maps.append(initMaps);
  auto plain = linalg::GenericOp::create(
      b, loc, ValueRange(inits).getTypes(), inputs, inits, maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &nested, Location at, ValueRange args) {
        IRMapping mapping;
        for (auto [from, to] : llvm::zip(op.getBlock()->getArguments(), args))
          mapping.map(from, to);
        for (Operation &scalar : op.getBlock()->without_terminator())
          nested.clone(scalar, mapping);
        SmallVector<Value> yielded;
        for (Value value : op.getBlock()->getTerminator()->getOperands())
          yielded.push_back(mapping.lookupOrDefault(value));
        linalg::YieldOp::create(nested, at, yielded);
      });
  return plain.getResults();
}

/// Whether each element of an output depends on its previous value.
static bool readsInits(LinalgOp op) {
  return op.getNumReductionLoops() == 0 &&
         llvm::any_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.payloadUsesValueFromOperand(&init);
         });
}

static LogicalResult linalgRule(LinalgOp op, OpBuilder &b, Cotangents &c) {
  bool takesInits = readsInits(op);
  if (op.hasPureTensorSemantics() &&
      (takesInits || llvm::any_of(op.getIndexingMapsArray(), hasGroups)))
    return differentiateThrough(b, op, c, [&](OpBuilder &at) {
      return FailureOr<SmallVector<Value>>(rewritePlainly(op, at, takesInits));
    });
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
