//===- Formulas.cpp - Integers that a launch computes ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace ::linattn::detail;
using namespace mlir;

int64_t Formulas::add(llvm::StringRef operation,
                      llvm::ArrayRef<int64_t> operands) {
  std::string key = operation.str();
  llvm::json::Array instruction{operation.str()};
  for (int64_t operand : operands) {
    key += " " + std::to_string(operand);
    instruction.push_back(operand);
  }
  auto [it, isNew] = known.try_emplace(key, values.size());
  if (!isNew)
    return it->second;
  values.push_back(std::move(instruction));
  Entry &entry = entries.emplace_back();
  entry.operation = operation.str();
  entry.operands.assign(operands.begin(), operands.end());
  bool usesValues = operation != "const" && operation != "size" &&
                    operation != "stride" && operation != "address";
  entry.isVariable = operation == "index";
  for (int64_t operand : operands)
    entry.isVariable |=
        usesValues && operation != "index" && entries[operand].isVariable;
  if (operation == "size")
    sizes[it->second] = {operands[0], operands[1]};
  if (operation == "eq" && sizes.count(operands[0]) && sizes.count(operands[1]))
    equalSizes.push_back({sizes[operands[0]], sizes[operands[1]]});
  return it->second;
}

int64_t Formulas::index(int64_t lower, int64_t upper) {
  // The number distinguishes loops with the same bounds. The last operand is
  // the upper bound, for bounds of values alone.
  int64_t number = add("index", {lower, numLoops++});
  entries[number].operands = {lower, upper};
  return number;
}

int64_t Formulas::bound(int64_t value, bool above) {
  const Entry entry = entries[value];
  if (!entry.isVariable)
    return value;
  llvm::StringRef operation = entry.operation;
  if (operation == "index") {
    int64_t lower = bound(entry.operands[0], /*above=*/false);
    if (!above || lower < 0)
      return lower;
    int64_t upper = bound(entry.operands[1], /*above=*/true);
    return upper < 0 ? -1
                     : add("max", {lower, add("sub", {upper, constant(1)})});
  }
  bool isScaled = entries[entry.operands[1]].operation == "const";
  int64_t factor = isScaled ? entries[entry.operands[1]].operands[0] : 0;
  bool grows = operation == "add" || operation == "min" || operation == "max";
  bool scales = (operation == "mul" || operation == "floordiv" ||
                 operation == "ceildiv" || operation == "div") &&
                factor > 0;
  if (!grows && !scales && operation != "sub")
    return -1;
  int64_t lhs = bound(entry.operands[0], above);
  int64_t rhs = bound(entry.operands[1], operation == "sub" ? !above : above);
  // Either operand bounds the smaller of the two.
  if (operation == "min" && above && (lhs < 0 || rhs < 0))
    return std::max(lhs, rhs);
  return lhs < 0 || rhs < 0 ? -1 : add(operation, {lhs, rhs});
}

int64_t Formulas::affine(AffineExpr expr, llvm::ArrayRef<int64_t> symbols) {
  if (auto constantExpr = dyn_cast<AffineConstantExpr>(expr))
    return constant(constantExpr.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = affine(binary.getLHS(), symbols);
  int64_t rhs = affine(binary.getRHS(), symbols);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return add("add", {lhs, rhs});
  case AffineExprKind::Mul:
    return add("mul", {lhs, rhs});
  case AffineExprKind::FloorDiv:
    return add("floordiv", {lhs, rhs});
  case AffineExprKind::CeilDiv:
    return add("ceildiv", {lhs, rhs});
  default:
    return add("mod", {lhs, rhs});
  }
}

static llvm::StringRef getComparison(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return "eq";
  case arith::CmpIPredicate::ne:
    return "ne";
  case arith::CmpIPredicate::slt:
    return "lt";
  case arith::CmpIPredicate::sle:
    return "le";
  case arith::CmpIPredicate::sgt:
    return "gt";
  case arith::CmpIPredicate::sge:
    return "ge";
  default:
    return "";
  }
}

static llvm::StringRef getOperation(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::StringRef>(op)
      .Case<arith::AddIOp>([](auto) { return "add"; })
      .Case<arith::SubIOp>([](auto) { return "sub"; })
      .Case<arith::MulIOp>([](auto) { return "mul"; })
      .Case<arith::DivSIOp>([](auto) { return "div"; })
      .Case<arith::RemSIOp>([](auto) { return "rem"; })
      .Case<arith::FloorDivSIOp>([](auto) { return "floordiv"; })
      .Case<arith::CeilDivSIOp>([](auto) { return "ceildiv"; })
      .Case<arith::MinSIOp>([](auto) { return "min"; })
      .Case<arith::MaxSIOp>([](auto) { return "max"; })
      .Case<arith::AndIOp>([](auto) { return "and"; })
      .Case<arith::OrIOp>([](auto) { return "or"; })
      .Case<arith::XOrIOp>([](auto) { return "xor"; })
      .Case<arith::SelectOp>([](auto) { return "select"; })
      .Case<arith::CmpIOp>([](arith::CmpIOp compare) {
        return getComparison(compare.getPredicate());
      })
      .Default(llvm::StringRef());
}

/// The types of the runner's formulas: 64 bits, and booleans that are 0 or 1.
static bool isWideOrTruth(Type type) {
  return type.isIndex() || type.isInteger(64) || type.isInteger(1);
}

bool Formulas::take(Operation *op) {
  if (auto literal = dyn_cast<arith::ConstantOp>(op)) {
    auto integer = dyn_cast<IntegerAttr>(literal.getValue());
    if (!integer)
      return false;
    bool isTruth = literal.getType().isInteger(1);
    bind(literal, constant(isTruth ? integer.getValue().getZExtValue()
                                   : integer.getValue().getSExtValue()));
    return true;
  }
  // These casts keep the number: every width holds all bits of a size.
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp>(op)) {
    int64_t number = lookup(op->getOperand(0));
    bind(op->getResult(0), number);
    return number >= 0;
  }
  llvm::StringRef operation = getOperation(op);
  if (operation.empty() || !isWideOrTruth(op->getResult(0).getType()))
    return false;
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands())
    operands.push_back(lookup(operand));
  if (llvm::is_contained(operands, -1))
    return false;
  bind(op->getResult(0), add(operation, operands));
  return true;
}
