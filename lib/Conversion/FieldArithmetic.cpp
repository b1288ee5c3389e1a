//===- FieldArithmetic.cpp - Float ops as calls ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FieldArithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

/// Transcendental functions that no form takes apart: any function will do, if
/// it is the same everywhere.
static bool isRandomFunction(Operation *op) {
  return isa<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp,
             math::AtanOp, math::AtanhOp, math::Atan2Op, math::CbrtOp,
             math::CeilOp, math::CopySignOp, math::CosOp, math::CoshOp,
             math::ErfOp, math::ErfcOp, math::FloorOp, math::Log10Op,
             math::RoundOp, math::RoundEvenOp, math::SinOp, math::SinhOp,
             math::SqrtOp, math::TanOp, math::TanhOp, math::TruncOp,
             arith::RemFOp>(op);
}

/// The outcomes for which a predicate holds. Those of the ordered ones are
/// their values; the unordered ones are numbered from UEQ on, UNO but last.
static int64_t getOutcomes(arith::CmpFPredicate predicate) {
  if (predicate == arith::CmpFPredicate::UNO)
    return ::linattn::kFieldUnordered;
  auto value = static_cast<int64_t>(predicate);
  bool isNumberedNext = predicate >= arith::CmpFPredicate::UEQ &&
                        predicate != arith::CmpFPredicate::AlwaysTrue;
  return value + (isNumberedNext ? 1 : 0);
}

bool FieldArithmetic::canRewrite(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (auto vector = dyn_cast<VectorType>(type))
      if (vector.isScalable())
        return false;
  if (auto reduction = dyn_cast<vector::ReductionOp>(op))
    switch (reduction.getKind()) {
    case vector::CombiningKind::ADD:
    case vector::CombiningKind::MUL:
    case vector::CombiningKind::MAXIMUMF:
    case vector::CombiningKind::MAXNUMF:
    case vector::CombiningKind::MINIMUMF:
    case vector::CombiningKind::MINNUMF:
      return true;
    default:
      return false;
    }
  return isRandomFunction(op) ||
         isa<arith::AddFOp, arith::CmpFOp, arith::ConstantOp, arith::DivFOp,
             arith::ExtFOp, arith::FPToSIOp, arith::FPToUIOp, arith::MaximumFOp,
             arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp,
             arith::MulFOp, arith::NegFOp, arith::SIToFPOp, arith::SubFOp,
             arith::TruncFOp, arith::UIToFPOp, math::AbsFOp, math::ClampFOp,
             math::ExpOp, math::Exp2Op, math::ExpM1Op, math::FmaOp,
             math::FPowIOp, math::IsNaNOp, math::LogOp, math::Log1pOp,
             math::Log2Op, math::PowFOp, math::RsqrtOp, vector::FMAOp>(op);
}

void FieldArithmetic::rewrite(Operation *op) {
  // Its value is an element already.
  if (isa<arith::ConstantOp>(op))
    return;
  b.setInsertionPoint(op);
  loc = op->getLoc();
  Value result;
  if (isRandomFunction(op))
    result = callRandom(op, op->getOperands());
  else if (isa<arith::ArithDialect>(op->getDialect()))
    result = emitArith(op);
  else if (isa<math::MathDialect>(op->getDialect()))
    result = emitMath(op);
  else if (isa<vector::FMAOp>(op))
    result = call("add", {call("mul", op->getOperands().take_front(2)),
                          op->getOperand(2)});
  else
    result = emitReduction(op);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

Value FieldArithmetic::emitArith(Operation *op) {
  Value x = op->getOperand(0);
  // Storage formats round; elements do not.
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return x;
  if (isa<arith::NegFOp>(op))
    return call("neg", x);
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return call("from_int", widen(x, isa<arith::SIToFPOp>(op)));
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return narrow(call("to_int", x), op->getResult(0).getType());
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    return call("cmp", op->getOperands(),
                word(getOutcomes(compare.getPredicate())));
  }
  StringRef function =
      TypeSwitch<Operation *, StringRef>(op)
          .Case<arith::AddFOp>([](auto) { return "add"; })
          .Case<arith::SubFOp>([](auto) { return "sub"; })
          .Case<arith::MulFOp>([](auto) { return "mul"; })
          .Case<arith::DivFOp>([](auto) { return "div"; })
          .Case<arith::MaximumFOp, arith::MaxNumFOp>([](auto) { return "max"; })
          .Default([](auto) { return "min"; });
  return call(function, op->getOperands());
}

Value FieldArithmetic::emitMath(Operation *op) {
  Value x = op->getOperand(0);
  // e^(x ln 2), for any value of ln 2: constants log₂e are its inverse.
  auto ln2 = [&] { return constant(M_LN2, x); };
  auto one = [&] { return constant(1, x); };
  return TypeSwitch<Operation *, Value>(op)
      .Case<math::AbsFOp>([&](auto) { return call("abs", x); })
      .Case<math::ExpOp>([&](auto) { return call("exp", x); })
      .Case<math::Exp2Op>(
          [&](auto) { return call("exp", call("mul", {x, ln2()})); })
      .Case<math::ExpM1Op>(
          [&](auto) { return call("sub", {call("exp", x), one()}); })
      .Case<math::LogOp>([&](auto) { return call("log", x); })
      .Case<math::Log1pOp>(
          [&](auto) { return call("log", call("add", {x, one()})); })
      .Case<math::Log2Op>(
          [&](auto) { return call("div", {call("log", x), ln2()}); })
      .Case<math::RsqrtOp>([&](auto) {
        // The inverse of math.sqrt's element.
        OperationState sqrt(loc, math::SqrtOp::getOperationName(), {x},
                            {x.getType()}, {});
        Operation *root = b.create(sqrt);
        Value inverse = call("inv", callRandom(root, x));
        root->erase();
        return inverse;
      })
      .Case<math::ClampFOp>([&](auto clamp) {
        return call("min", {call("max", {x, clamp.getMin()}), clamp.getMax()});
      })
      .Case<math::FmaOp>([&](auto fma) {
        return call("add", {call("mul", {x, fma.getB()}), fma.getC()});
      })
      // NaN is the one value unequal to itself.
      .Case<math::IsNaNOp>([&](auto) {
        return call("cmp", {x, x}, word(::linattn::kFieldUnordered));
      })
      .Default([&](Operation *power) { return emitPower(power); });
}

Value FieldArithmetic::emitPower(Operation *op) {
  Value x = op->getOperand(0), exponent = op->getOperand(1);
  if (isa<math::FPowIOp>(op)) {
    Value wide = widen(exponent, /*isSigned=*/true);
    return call("pow_int", {x, wide});
  }
  APInt element;
  if (matchPattern(exponent, m_ConstantInt(&element)))
    for (int64_t whole = -16; whole <= 16; ++whole)
      if (field.embedInteger(whole) == element.getSExtValue())
        return call("pow_int", x, word(whole));
  return callRandom(op, {x, exponent});
}

Value FieldArithmetic::emitReduction(Operation *op) {
  auto reduction = cast<vector::ReductionOp>(op);
  StringRef function;
  switch (reduction.getKind()) {
  case vector::CombiningKind::ADD:
    function = "add";
    break;
  case vector::CombiningKind::MUL:
    function = "mul";
    break;
  case vector::CombiningKind::MAXIMUMF:
  case vector::CombiningKind::MAXNUMF:
    function = "max";
    break;
  default:
    function = "min";
    break;
  }
  Value sum = reduction.getAcc();
  int64_t lanes = reduction.getSourceVectorType().getNumElements();
  for (int64_t i = 0; i < lanes; ++i) {
    Value lane = vector::ExtractOp::create(b, loc, reduction.getVector(), i);
    sum = sum ? call(function, {sum, lane}) : lane;
  }
  return sum;
}

Value FieldArithmetic::constant(double value, Value like) {
  Value element = word(field.embed(value));
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return vector::BroadcastOp::create(b, loc, vector, element);
  return element;
}

Value FieldArithmetic::word(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}

Value FieldArithmetic::widen(Value integer, bool isSigned) {
  Type type = integer.getType(), element = getElementTypeOrSelf(type);
  if (element.isInteger(64))
    return integer;
  Type wide = b.getI64Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  if (element.isIndex())
    return arith::IndexCastOp::create(b, loc, wide, integer);
  if (isSigned)
    return arith::ExtSIOp::create(b, loc, wide, integer);
  return arith::ExtUIOp::create(b, loc, wide, integer);
}

Value FieldArithmetic::narrow(Value integer, Type type) {
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (bits < 64)
    return arith::TruncIOp::create(b, loc, type, integer);
  if (bits > 64)
    return arith::ExtSIOp::create(b, loc, type, integer);
  return integer;
}

Value FieldArithmetic::callRandom(Operation *op, ValueRange elements) {
  auto function =
      static_cast<int64_t>(llvm::xxh3_64bits(op->getName().getStringRef()));
  return call(elements.size() == 1 ? "random" : "random2", elements,
              word(function));
}

Type FieldArithmetic::getResultType(StringRef function, Type like) {
  Type element = function == "cmp" ? b.getI1Type() : b.getI64Type();
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

Value FieldArithmetic::call(StringRef function, ValueRange elements,
                            ValueRange scalars) {
  auto vector = dyn_cast<VectorType>(elements.front().getType());
  if (vector && vector.getRank() == 1)
    return callLanes(function, elements, scalars);
  Type resultType = getResultType(function, elements.front().getType());
  if (!vector) {
    SmallVector<Value> operands(elements);
    llvm::append_range(operands, scalars);
    return callSymbol(::linattn::getFieldSymbol(number, function), operands,
                      resultType);
  }
  // Row by row.
  auto slice = [&](int64_t row) {
    return llvm::map_to_vector(elements, [&](Value x) -> Value {
      if (vector.getRank() == 0)
        return vector::ExtractOp::create(b, loc, x);
      return vector::ExtractOp::create(b, loc, x, row);
    });
  };
  if (vector.getRank() == 0)
    return vector::BroadcastOp::create(b, loc, resultType,
                                       call(function, slice(0), scalars));
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(resultType));
  for (int64_t row = 0; row < vector.getDimSize(0); ++row)
    result = vector::InsertOp::create(
        b, loc, call(function, slice(row), scalars), result, row);
  return result;
}

/// Calls `@linattn_field0_<function>_x<lanes>` (`_by_scalar_x` with scalars): a
/// kernel has many operations on vectors of few sizes.
Value FieldArithmetic::callLanes(StringRef function, ValueRange vectors,
                                 ValueRange scalars) {
  auto type = cast<VectorType>(vectors.front().getType());
  Type resultType = getResultType(function, type);
  std::string name = ::linattn::getFieldSymbol(number, function) +
                     (scalars.empty() ? "_x" : "_by_scalar_x") +
                     std::to_string(type.getNumElements());
  SmallVector<Value> operands(vectors);
  llvm::append_range(operands, scalars);
  return callSymbol(name, operands, resultType, [&](Block &body) {
    ValueRange arguments = body.getArguments();
    Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(resultType));
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
      auto elements = llvm::map_to_vector(
          arguments.take_front(vectors.size()), [&](Value x) -> Value {
            return vector::ExtractOp::create(b, loc, x, lane);
          });
      Value element =
          call(function, elements, arguments.drop_front(vectors.size()));
      result = vector::InsertOp::create(b, loc, element, result, lane);
    }
    func::ReturnOp::create(b, loc, result);
  });
}

Value FieldArithmetic::callSymbol(StringRef name, ValueRange operands,
                                  Type resultType,
                                  function_ref<void(Block &)> build) {
  if (!symbols.lookup(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.clearInsertionPoint();
    auto function = func::FuncOp::create(
        b, loc, name, b.getFunctionType(operands.getTypes(), resultType));
    function.setPrivate();
    symbols.insert(function);
    if (build) {
      function.setNoInline(true);
      Block *body = function.addEntryBlock();
      b.setInsertionPointToStart(body);
      build(*body);
    }
  }
  return func::CallOp::create(b, loc, name, resultType, operands).getResult(0);
}
