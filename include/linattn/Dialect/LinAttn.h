//===- LinAttn.h - The linattn dialect --------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTN_H
#define LINATTN_DIALECT_LINATTN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "linattn/Dialect/DimRelation.h"

#include "linattn/Dialect/LinAttnDialect.h.inc"
#include "linattn/Dialect/LinAttnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "linattn/Dialect/LinAttnAttrs.h.inc"

#include "linattn/Dialect/LinAttnInterfaces.h.inc"

namespace mlir::linattn {

/// A state and, where an op carries them, its normalizer and running maximum.
struct StateValues {
  Value state, normalizer, runningMax;

  /// The values that are present, in operand order.
  SmallVector<Value, 3> present() const {
    SmallVector<Value, 3> values{state};
    for (Value value : {normalizer, runningMax})
      if (value)
        values.push_back(value);
    return values;
  }
};

} // namespace mlir::linattn

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnOps.h.inc"

namespace mlir::linattn {

/// The number of dimensions of a tensor or a buffer.
inline int64_t rankOf(Value value) {
  return cast<ShapedType>(value.getType()).getRank();
}

/// The type of states and sums unless the op says otherwise: f64 for f64
/// tokens, else f32.
Type getAccumulationType(Type tokenElementType);

/// The type of an op's computation: that of its state, if it has one, which may
/// be f64 beside narrower tokens.
Type getAccumulationType(FeatureMappedOpInterface op);

/// The value of a `scale` attribute, 1 by default.
inline double scaleOr1(std::optional<APFloat> scale) {
  return scale ? scale->convertToDouble() : 1.0;
}

/// The factor of φ(q): the number of an op's attribute, or its f64 operand,
/// which is known at run time only.
class Scale {
public:
  Scale(double number = 1.0) : number(number) {}
  explicit Scale(Value value) : number(1.0), value(value) {}
  template <typename OpTy>
  static Scale of(OpTy op) {
    if (Value operand = op.getScaleValue())
      return Scale(operand);
    return Scale(scaleOr1(op.getScale()));
  }

  /// True if the factor is the constant 1.
  bool isOne() const { return !value && number == 1.0; }
  /// The operand, or null.
  Value getValue() const { return value; }
  /// The attribute, or null for an operand or 1.
  FloatAttr getAttr(Builder &b) const {
    return value || number == 1.0 ? FloatAttr() : b.getF64FloatAttr(number);
  }
  /// The scale in `type`, a float or a vector of them; both kinds are rounded
  /// from f64 in the same way.
  Value emit(OpBuilder &b, Location loc, Type type) const;
  /// x · scale, for a float or a vector x.
  Value apply(OpBuilder &b, Location loc, Value x) const;

private:
  double number;
  Value value;
};

/// True if the accumulation type holds the scale as a finite number, and
/// neither rounds it to zero nor to a denormal.
bool isUsableScale(double scale, Type accumulation);

/// True if `normalize` and the map require a running maximum beside the state.
/// (So does an input gate.)
bool needsRunningMax(FeatureMapKind kind, bool normalized);

/// Clones a structured op with other operands. (`mlir::clone` cannot copy the
/// empty region of a named feature map.)
Operation *cloneStructured(OpBuilder &b, Operation *op, TypeRange types,
                           ValueRange operands);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_LINATTN_H
