//===- VerifyUtils.cpp - Helpers of verifiers -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"
#include "linattn/Dialect/MapParameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

void verify::stateRelations(StringRef id, Named key, Named value, Named state,
                            Value normalizer, Value runningMax,
                            Relations &relations) {
  relations.headsMax(id, state, {key, value});
  relations.equal(id, "head size", key, 3, state, 2);
  relations.equal(id, "head size", value, 3, state, 3);
  if (normalizer)
    for (int64_t dim = 0; dim < 3; ++dim)
      relations.equal(id,
                      dim == 0   ? "batch size"
                      : dim == 1 ? "head count"
                                 : "head size",
                      {normalizer, "normalizer"}, dim, state, dim);
  if (runningMax)
    for (int64_t dim = 0; dim < 2; ++dim)
      relations.equal(id, dim == 0 ? "batch size" : "head count",
                      {runningMax, "running_max"}, dim, state, dim);
}

void verify::gateRelations(Named gate, Named tokens, Named state,
                           int64_t lastDim, StringRef last, Named lastOf,
                           Relations &relations) {
  if (!gate.value)
    return;
  if (rankOf(gate.value) == 1) {
    relations.equal("S11", "head count", gate, 0, state, 1);
    return;
  }
  relations.equal("S11", "batch size", gate, 0, tokens, 0);
  relations.equal("S11", "head count", gate, 1, state, 1);
  relations.equal("S11", "sequence length", gate, 2, tokens, 2);
  if (rankOf(gate.value) == 4)
    relations.equal("S11", last, gate, 3, lastOf, lastDim);
}

LogicalResult verify::verifyRelations(ShapeContractOpInterface op) {
  for (const DimRelation &relation : op.getDimRelations()) {
    SmallVector<int64_t> sizes;
    SmallVector<std::string> spelled;
    for (const DimRef &ref : relation.dims) {
      int64_t size = cast<ShapedType>(ref.value.getType()).getDimSize(ref.dim);
      sizes.push_back(size);
      spelled.push_back(std::to_string(size));
    }
    if (llvm::any_of(sizes, ShapedType::isDynamic) || relation.holds(sizes))
      continue;
    return op->emitOpError(relation.message(spelled));
  }
  return success();
}

LogicalResult verify::verifySameElementType(Operation *op, Named a, Named b) {
  if (elementType(a.value) == elementType(b.value))
    return success();
  return op->emitOpError("expected ")
         << a.name << " and " << b.name
         << " to have the same element type, but got " << elementType(a.value)
         << " and " << elementType(b.value);
}

LogicalResult verify::verifyElementType(Operation *op, Named operand,
                                        Type expected) {
  if (!operand.value || elementType(operand.value) == expected)
    return success();
  return op->emitOpError("expected ")
         << operand.name << " to have element type " << expected << ", but got "
         << elementType(operand.value);
}

LogicalResult verify::verifyRank(Operation *op, Named operand,
                                 ArrayRef<int64_t> ranks, StringRef shapes) {
  if (!operand.value || llvm::is_contained(ranks, rankOf(operand.value)))
    return success();
  return op->emitOpError("expected ")
         << operand.name << " to be " << shapes << ", but got "
         << operand.value.getType();
}

LogicalResult verify::verifyStateTypes(Operation *op, Type tokenType,
                                       Named state, Value normalizer,
                                       Value runningMax) {
  Type expected = getAccumulationType(tokenType),
       actual = elementType(state.value);
  if (actual != expected && !actual.isF64())
    return op->emitOpError("expected state to have element type ")
           << expected << (expected.isF64() ? "" : " or 'f64'") << ", but got "
           << actual;
  if (failed(verifyElementType(op, {normalizer, "normalizer"}, actual)))
    return failure();
  return verifyElementType(op, {runningMax, "running_max"}, actual);
}

/// Verifies that φ maps one scalar to another by scalar arithmetic, so that it
/// can be emitted on vectors. It may use scalars from outside: a parameter, or
/// a constant that a pass has hoisted.
static LogicalResult verifyScalarFunction(Operation *op, Region &region,
                                          Type scalar) {
  Block &block = region.front();
  if (block.getNumArguments() != 1 || block.getArgument(0).getType() != scalar)
    return op->emitOpError("expected phi to take one argument of type ")
           << scalar << ", but got (" << block.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.back());
  Value result = yield ? yield.getResult() : Value();
  if (!result || result.getType() != scalar) {
    InFlightDiagnostic error =
        op->emitOpError("expected phi to yield one value of type ") << scalar;
    return result ? error << ", but got " << result.getType()
                  : error << ", but got none";
  }
  for (Operation &inner : block) {
    bool isScalarArithmetic =
        llvm::all_of(inner.getResultTypes(),
                     [](Type type) { return type.isIntOrIndexOrFloat(); }) &&
        (isa<arith::ConstantOp>(inner) ||
         (isPure(&inner) && OpTrait::hasElementwiseMappableTraits(&inner)));
    if (!isScalarArithmetic && &inner != yield)
      return op->emitOpError("expected phi to hold scalar arithmetic only, "
                             "but got '")
             << inner.getName() << "'";
    for (Value operand : inner.getOperands())
      if (!operand.getType().isIntOrIndexOrFloat())
        return op->emitOpError("expected phi to use scalars only, but got ")
               << operand.getType();
  }
  return success();
}

LogicalResult verify::verifyFeatureMap(FeatureMappedOpInterface op) {
  if (needsWholeToken(op.getFeatureMapKind()) && !isa<FeatureMapOp>(op))
    return op->emitOpError("expected feature map ")
           << stringifyFeatureMapKind(op.getFeatureMapKind())
           << " only in linattn.feature_map, since it needs whole tokens";
  Region &region = op.getFeatureMapRegion();
  bool isRegion = op.getFeatureMapKind() == FeatureMapKind::Region;
  if (isRegion != !region.empty())
    return op->emitOpError(isRegion
                               ? "expected a phi region with feature map "
                                 "region, but got none"
                               : "expected a phi region only with feature map "
                                 "region, but got feature map ")
           << (isRegion ? StringRef()
                        : stringifyFeatureMapKind(op.getFeatureMapKind()));
  return isRegion ? verifyScalarFunction(op, region, getAccumulationType(op))
                  : success();
}

LogicalResult verify::verifyScale(Operation *op, Type type,
                                  std::optional<APFloat> scale, Value operand) {
  if (scale && operand)
    return op->emitOpError("expected the scale as an attribute or as an "
                           "operand, but got both");
  if (!scale || isUsableScale(scale->convertToDouble(), type))
    return success();
  return op->emitOpError("expected scale to be 0 or a normal number of ")
         << type << ", but got " << scale->convertToDouble();
}

LogicalResult verify::verifyAbsFloor(FeatureMappedOpInterface op,
                                     std::optional<NormalizeAttr> normalize) {
  if (!normalize || !normalize->getAbsFloor() ||
      op.getFeatureMapKind() != FeatureMapKind::Exp)
    return success();
  return op->emitOpError("expected abs_floor without the feature map exp, "
                         "whose true denominator is never formed, but got "
                         "both");
}

LogicalResult verify::verifyNormalizer(Operation *op,
                                       std::optional<NormalizeAttr> normalize,
                                       Value normalizer) {
  if (normalize.has_value() == bool(normalizer))
    return success();
  return op->emitOpError(
             "expected a normalizer exactly with normalize, but got ")
         << (normalizer ? "a normalizer without normalize"
                        : "normalize without a normalizer");
}

LogicalResult verify::verifyPackedBatch(Operation *op, Value offsets,
                                        Value tokens) {
  int64_t batch = cast<ShapedType>(tokens.getType()).getDimSize(0);
  if (!offsets || ShapedType::isDynamic(batch) || batch == 1)
    return success();
  return op->emitOpError("expected batch size 1 with cu_seqlens, but got ")
         << batch;
}

LogicalResult verify::verifyConstantDecay(Operation *op, Named decay) {
  DenseFPElementsAttr elements;
  if (!decay.value || !matchPattern(decay.value, m_Constant(&elements)))
    return success();
  auto isBad = [](const APFloat &x) {
    return x.isNaN() || (!x.isNegative() && !x.isZero());
  };
  auto report = [&](const APFloat &x) -> InFlightDiagnostic {
    SmallString<16> spelled;
    x.toString(spelled, /*FormatPrecision=*/6);
    return op->emitOpError("expected ")
           << decay.name << " to hold natural logarithms of at most 0, but got "
           << spelled;
  };
  if (elements.isSplat()) {
    APFloat x = elements.getSplatValue<APFloat>();
    return isBad(x) && !elements.empty() ? LogicalResult(report(x)) : success();
  }
  for (auto [index, x] : llvm::enumerate(elements.getValues<APFloat>()))
    if (isBad(x))
      return report(x) << " at element " << index;
  return success();
}

LogicalResult verify::verifySemantics(DestinationStyleOpInterface op) {
  if (op.hasPureTensorSemantics() || op.hasPureBufferSemantics())
    return success();
  return op->emitOpError("expected all operands to be tensors or all to be "
                         "buffers, but got a mixture");
}

LogicalResult verify::verifySummands(Operation *op,
                                     std::optional<ArrayRef<int64_t>> summands,
                                     size_t matrices) {
  if (!summands)
    return success();
  if (summands->size() != matrices)
    return op->emitOpError("expected summands of ")
           << matrices << " matrices, but got " << summands->size();
  for (int64_t count : *summands)
    if (count < 1 || count > 3)
      return op->emitOpError("expected 1, 2 or 3 summands, but got ") << count;
  return success();
}
