//===- TokenRows.cpp - A token's rows in vectors --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors are as wide as rows, up to whole registers: the code generator takes
// them apart. linalg's own vectorization would do for single ops, but a row sum
// and what takes it have different ranks there, and the transfers in between do
// not fold.
//
//===----------------------------------------------------------------------===//

#include "TokenRows.h"
#include "linattn/Transforms/Prologue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::linattn;

/// Longer rows would not fit the registers of any machine.
static constexpr int64_t kMaxFeatures = 512;
/// Elements of the widest registers.
static constexpr int64_t kLanes = 16;

/// The lanes of a row: whole registers, or a power of two within one.
static int64_t getLanes(int64_t features) {
  return features < kLanes
             ? static_cast<int64_t>(llvm::PowerOf2Ceil(features))
             : static_cast<int64_t>(llvm::alignTo(features, kLanes));
}

/// The loop over features, if any. A loop of one iteration is none.
static std::optional<unsigned> getFeatureLoop(linalg::LinalgOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (unsigned i = kNumOuter; i < ranges.size(); ++i)
    if (ranges[i] != 1)
      return i;
  return std::nullopt;
}

/// Whether elements along the loop are neighbours in a tensor of this map.
static bool isLast(AffineMap map, unsigned loop) {
  for (unsigned i = 0; i + 1 < map.getNumResults(); ++i)
    if (map.getResult(i).isFunctionOfDim(loop))
      return false;
  return true;
}

static bool hasFeatures(AffineMap map, std::optional<unsigned> loop) {
  return loop && map.isFunctionOfDim(*loop);
}

static bool isReduction(linalg::LinalgOp op, std::optional<unsigned> loop) {
  return loop &&
         op.getIteratorTypesArray()[*loop] == utils::IteratorType::reduction;
}

bool mlir::linattn::isTokenRow(linalg::LinalgOp op, std::string &whyNot) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  std::optional<unsigned> loop = getFeatureLoop(op);
  auto refuse = [&](const Twine &why) {
    whyNot = why.str();
    return false;
  };
  for (unsigned i = kNumOuter; i < ranges.size(); ++i) {
    if (ShapedType::isDynamic(ranges[i]))
      return refuse("the number of features is not known");
    if (ranges[i] > kMaxFeatures)
      return refuse(llvm::formatv("{0} features are too many", ranges[i]));
    if (ranges[i] != 1 && i != *loop)
      return refuse("a token has a matrix");
  }
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!hasFeatures(map, loop))
      continue;
    if (!isLast(map, *loop))
      return refuse("features are not neighbours in memory");
    Type type = getElementTypeOrSelf(operand.get());
    if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() % 8 != 0)
      return refuse("features are not of whole bytes");
  }
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic)
    return isa<linalg::FillOp>(op) || refuse("neither a generic op nor a fill");
  for (Operation &nested : generic.getBody()->without_terminator())
    if (nested.getNumRegions() != 0 || nested.getNumResults() != 1 ||
        (!nested.hasTrait<OpTrait::ConstantLike>() &&
         !OpTrait::hasElementwiseMappableTraits(&nested)))
      return refuse(llvm::formatv("'{0}' does not take vectors",
                                  nested.getName().getStringRef()));
  if (isReduction(op, loop) && !getRowSum(generic))
    return refuse("a reduction is not a sum");
  return true;
}

Value TokenRows::toVector(Value value, int64_t size) {
  if (isa<VectorType>(value.getType()))
    return value;
  auto type = VectorType::get(getLanes(size), value.getType());
  return vector::BroadcastOp::create(b, loc, type, value);
}

Value TokenRows::read(Value tensor, AffineMap map) {
  if (!isa<RankedTensorType>(tensor.getType()))
    return tensor;
  if (Value row = rows.lookup(tensor))
    return row;
  // Other maps may meet other rows.
  std::vector<unsigned> loops;
  for (AffineExpr expr : map.getResults())
    loops.push_back(
        std::min(cast<AffineDimExpr>(expr).getPosition(), kNumOuter));
  Value &row = inputs[{tensor.getAsOpaquePointer(), loops}];
  if (!row)
    row = load(tensor, loops);
  return row;
}

Value TokenRows::load(Value tensor, ArrayRef<unsigned> loops) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto tile = tiles.find(tensor);
  Value source = tile == tiles.end() ? tensor : tile->second.value;
  ArrayRef<Value> at = tile == tiles.end() ? position : tile->second.position;
  SmallVector<Value> indices;
  int64_t features = 1;
  for (auto [i, loop] : llvm::enumerate(loops)) {
    if (loop == kNumOuter)
      features *= type.getDimSize(i);
    indices.push_back(loop < kNumOuter
                          ? at[loop]
                          : arith::ConstantIndexOp::create(b, loc, 0));
  }
  if (features == 1)
    return tensor::ExtractOp::create(b, loc, source, indices);
  Type element = type.getElementType();
  Value padding = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  int64_t lanes = getLanes(features);
  return vector::TransferReadOp::create(b, loc, VectorType::get(lanes, element),
                                        source, indices, padding,
                                        ArrayRef<bool>{lanes == features});
}

Value TokenRows::emitBody(linalg::GenericOp op, ArrayRef<Value> arguments) {
  IRMapping mapping;
  mapping.map(op.getBody()->getArguments(), arguments);
  std::optional<unsigned> loop = getFeatureLoop(op);
  int64_t size = loop ? op.getStaticLoopRanges()[*loop] : 1;
  arith::AddFOp sum = isReduction(op, loop) ? getRowSum(op) : nullptr;
  for (Operation &nested : op.getBody()->without_terminator()) {
    if (&nested == sum)
      continue;
    bool isRow = llvm::any_of(nested.getOperands(), [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    });
    if (isRow)
      for (Value operand : nested.getOperands()) {
        Value value = mapping.lookupOrDefault(operand);
        mapping.map(operand, toVector(value, size));
      }
    Operation *copy = b.clone(nested, mapping);
    if (isRow)
      copy->getResult(0).setType(
          VectorType::get(getLanes(size), nested.getResult(0).getType()));
  }
  if (!sum)
    return mapping.lookupOrDefault(
        op.getBody()->getTerminator()->getOperand(0));
  BlockArgument out = op.getRegionOutputArgs().front();
  Value summand = sum.getLhs() == out ? sum.getRhs() : sum.getLhs();
  return mapping.lookupOrDefault(summand);
}

void TokenRows::emit(linalg::LinalgOp op) {
  Value result = op->getResult(0);
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation())) {
    rows[result] = fill.value();
    return;
  }
  auto generic = cast<linalg::GenericOp>(op.getOperation());
  SmallVector<Value> arguments;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isUsed = op.payloadUsesValueFromOperand(&operand);
    arguments.push_back(
        isUsed ? read(operand.get(), op.getMatchingIndexingMap(&operand))
               : Value());
  }
  // Arguments that the body does not use have no value.
  for (auto [value, operand] : llvm::zip_equal(arguments, op->getOpOperands()))
    if (!value)
      value = op.getMatchingBlockArgument(&operand);
  Value value = emitBody(generic, arguments);
  std::optional<unsigned> loop = getFeatureLoop(op);
  if (isReduction(op, loop)) {
    int64_t features = op.getStaticLoopRanges()[*loop];
    Value row = toVector(value, features);
    auto type = cast<VectorType>(row.getType());
    if (type.getNumElements() != features) {
      SmallVector<bool> isFeature(type.getNumElements(), false);
      std::fill_n(isFeature.begin(), features, true);
      auto mask = DenseElementsAttr::get(
          VectorType::get(type.getNumElements(), b.getI1Type()), isFeature);
      row = arith::SelectOp::create(
          b, loc, arith::ConstantOp::create(b, loc, mask), row,
          arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
    }
    value = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, row,
                                        arguments.back(),
                                        getRowSum(generic).getFastmath());
  }
  rows[result] = value;
}

Value TokenRows::write(OpResult result, Value tile, ArrayRef<Value> position) {
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  AffineMap map = op.getIndexingMapsArray().back();
  std::optional<unsigned> loop = getFeatureLoop(op);
  Value row = rows.lookup(result);
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    unsigned at = cast<AffineDimExpr>(expr).getPosition();
    indices.push_back(at < kNumOuter
                          ? position[at]
                          : arith::ConstantIndexOp::create(b, loc, 0));
  }
  if (!hasFeatures(map, loop))
    return tensor::InsertOp::create(b, loc, row, tile, indices);
  int64_t features = op.getStaticLoopRanges()[*loop];
  row = toVector(row, features);
  return vector::TransferWriteOp::create(
             b, loc, row, tile, indices,
             ArrayRef<bool>{getLanes(features) == features})
      .getResult();
}
