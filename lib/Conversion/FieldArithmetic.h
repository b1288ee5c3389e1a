//===- FieldArithmetic.h - Float ops as calls -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_FIELDARITHMETIC_H
#define LINATTN_CONVERSION_FIELDARITHMETIC_H

#include "linattn/Field/FieldFunctions.h"
#include "linattn/Field/PrimeField.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::linattn {

/// Replaces float arithmetic whose operands and results are words already.
class FieldArithmetic {
public:
  /// Computes in the field of this number, 0 or 1.
  FieldArithmetic(ModuleOp module, unsigned number)
      : number(number), field(number), symbols(module), b(module.getContext()),
        loc(module.getLoc()) {}

  /// Whether `op`, still on floats, is arithmetic that a field has.
  static bool canRewrite(Operation *op);

  /// Replaces `op`, whose types are converted.
  void rewrite(Operation *op);

private:
  Value emitArith(Operation *op);
  Value emitMath(Operation *op);
  Value emitReduction(Operation *op);
  /// base^exponent: a product where the exponent is a constant integer.
  Value emitPower(Operation *op);

  /// Calls a function of FieldFunctions.h on scalars or lane by lane.
  Value call(StringRef function, ValueRange elements, ValueRange scalars = {});
  /// A random function of one or two elements, one per kind of op.
  Value callRandom(Operation *op, ValueRange elements);
  Value callLanes(StringRef function, ValueRange vectors, ValueRange scalars);
  /// Calls a function of this name; `build` gives a new one its body, none
  /// where it is the process's.
  Value callSymbol(StringRef name, ValueRange operands, Type resultType,
                   function_ref<void(Block &)> build = nullptr);
  /// An element of the shape of `like`.
  Value constant(double value, Value like);
  Value word(int64_t value);
  /// Integers of any width as words, signed or not.
  Value widen(Value integer, bool isSigned);
  /// As `type`: of fewer or of more bits.
  Value narrow(Value integer, Type type);
  Type getResultType(StringRef function, Type like);

  unsigned number;
  ::linattn::PrimeField field;
  SymbolTable symbols;
  OpBuilder b;
  Location loc;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_FIELDARITHMETIC_H
