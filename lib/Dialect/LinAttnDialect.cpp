//===- LinAttnDialect.cpp - The linattn dialect ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedPatterns.h"
#include "linattn/Analysis/CostModel.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

#include "linattn/Dialect/LinAttnDialect.cpp.inc"
#include "linattn/Dialect/LinAttnEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "linattn/Dialect/LinAttnAttrs.cpp.inc"

#include "linattn/Dialect/LinAttnInterfaces.cpp.inc"

void LinAttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "linattn/Dialect/LinAttnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "linattn/Dialect/LinAttnOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "linattn/Dialect/LinAttnConv.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "linattn/Dialect/LinAttnSweep.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "linattn/Dialect/LinAttnSoftmax.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "linattn/Dialect/LinAttnChunk.cpp.inc"
      >();
  addInterfaces<SharedPatterns>();
}

Type mlir::linattn::getAccumulationType(Type tokenElementType) {
  return tokenElementType.isF64()
             ? tokenElementType
             : Type(Float32Type::get(tokenElementType.getContext()));
}

Type mlir::linattn::getAccumulationType(FeatureMappedOpInterface op) {
  Value state;
  if (auto scan = dyn_cast<ScanOp>(op.getOperation()))
    state = scan.getState();
  else if (auto sum = dyn_cast<StateOp>(op.getOperation()))
    state = sum.getState();
  else if (auto read = dyn_cast<ReadOp>(op.getOperation()))
    state = read.getState();
  if (state)
    return getElementTypeOrSelf(state);
  return getAccumulationType(getElementTypeOrSelf(op->getOperand(0)));
}

Value Scale::emit(OpBuilder &b, Location loc, Type type) const {
  if (!value)
    return emitFloat(b, loc, type, number);
  Value rounded = convertFloat(b, loc, value, getElementTypeOrSelf(type));
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector::BroadcastOp::create(b, loc, vector, rounded)
                : rounded;
}

Value Scale::apply(OpBuilder &b, Location loc, Value x) const {
  return isOne() ? x
                 : arith::MulFOp::create(b, loc, x, emit(b, loc, x.getType()));
}

bool mlir::linattn::isUsableScale(double scale, Type accumulation) {
  APFloat value(scale);
  bool losesInfo;
  value.convert(cast<FloatType>(accumulation).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &losesInfo);
  return value.isNormal() || scale == 0;
}

bool mlir::linattn::needsRunningMax(FeatureMapKind kind, bool normalized) {
  return kind == FeatureMapKind::Exp && normalized;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult NormalizeAttr::verify(function_ref<InFlightDiagnostic()> emit,
                                    FloatAttr eps, FloatAttr floor,
                                    FloatAttr absFloor, FloatAttr clamp) {
  if (eps && floor)
    return emit() << "expected either eps or floor, but got both";
  if (floor && absFloor)
    return emit() << "expected either floor or abs_floor, but got both";
  auto check = [&](FloatAttr attr, StringRef name,
                   bool mayBeZero) -> LogicalResult {
    if (!attr)
      return success();
    const APFloat value = attr.getValue();
    if (value.isFinite() && (value.isZero() ? mayBeZero : !value.isNegative()))
      return success();
    return emit() << "expected " << name << " to be finite and "
                  << (mayBeZero ? "not negative" : "positive") << ", but got "
                  << attr.getValueAsDouble();
  };
  return success(succeeded(check(eps, "eps", /*mayBeZero=*/true)) &&
                 succeeded(check(floor, "floor", /*mayBeZero=*/false)) &&
                 succeeded(check(absFloor, "abs_floor", /*mayBeZero=*/false)) &&
                 succeeded(check(clamp, "clamp", /*mayBeZero=*/false)));
}

LogicalResult PatternAttr::verify(function_ref<InFlightDiagnostic()> emit,
                                  int64_t window, int64_t dilation,
                                  int64_t globals) {
  // Positions are compared in 64 bits, which must hold the product.
  constexpr int64_t most = int64_t(1) << 31;
  auto check = [&](StringRef name, int64_t value,
                   int64_t least) -> LogicalResult {
    if (value >= least && value < most)
      return success();
    return emit() << "expected " << name << " in [" << least
                  << ", 2^31), but got " << value;
  };
  return success(succeeded(check("window", window, 0)) &&
                 succeeded(check("dilation", dilation, 1)) &&
                 succeeded(check("globals", globals, 0)));
}

LogicalResult ConfigAttr::verify(function_ref<InFlightDiagnostic()> emit,
                                 Form form, int64_t chunk, int64_t rows,
                                 int64_t cols, int64_t block, int64_t segment,
                                 int64_t whole, int64_t few) {
  auto check = [&](int64_t value, StringRef name,
                   int64_t limit) -> LogicalResult {
    if (value >= 0 && value <= limit)
      return success();
    return emit() << "expected " << name << " to be between 0 and " << limit
                  << ", but got " << value;
  };
  // Limits the sizes of vectors and of stack memory that a schedule can
  // request.
  return success(succeeded(check(chunk, "chunk", 1 << 20)) &&
                 succeeded(check(rows, "rows", 64)) &&
                 succeeded(check(cols, "cols", 256)) &&
                 succeeded(check(block, "block", 4096)) &&
                 succeeded(check(segment, "segment", 1 << 30)) &&
                 succeeded(check(whole, "whole", ::linattn::largestWhole)) &&
                 succeeded(check(few, "few", ::linattn::largestFew)));
}
