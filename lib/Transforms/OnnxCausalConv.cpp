//===- OnnxCausalConv.cpp - CausalConvWithState of ONNX -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules are numbered as in the description of linattn-raise-onnx. Inputs
// come as [B, C, T] and are stated under other strides.
//
//===----------------------------------------------------------------------===//

#include "OnnxCausalConv.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

LogicalResult OnnxCausalConv::readOperands() { // (C1)
  return readInputs({&input, &weight, &bias, &pastState}, /*required=*/2);
}

LogicalResult OnnxCausalConv::readAttributes() {
  for (NamedAttribute attr : op->getAttrDictionary()) { // (C5)
    if (mayHave(attr, StringRef("activation")))
      continue;
    StringRef name = attr.getName();
    name.consume_front(prefix);
    return fail("the attribute activation") << "'" << name << "'";
  }
  Attribute attr = get("activation"); // (C4)
  if (!attr)
    return success();
  auto activation = dyn_cast<StringAttr>(attr);
  static constexpr StringRef known[] = {"none", "silu", "swish"};
  if (!activation || !llvm::is_contained(known, activation.getValue()))
    return fail("activation to be none, silu or swish") << attr;
  silu = activation.getValue() != "none";
  return success();
}

LogicalResult OnnxCausalConv::checkRank(OnnxInput operand, int64_t rank,
                                        StringRef shape) {
  if (operand && operand.type().getRank() != rank)
    return fail(operand.name + " to be " + shape) << operand.value.getType();
  return success();
}

LogicalResult OnnxCausalConv::readShapes() {
  if (failed(checkRank(input, 3, "[B, C, T]")) || // (C2)
      failed(checkRank(weight, 3, "[C, 1, k]")) ||
      failed(checkRank(bias, 1, "[C]")) ||
      failed(checkRank(pastState, 3, "[B, C, k - 1]")))
    return failure();
  Type element = input.type().getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32() &&
      !element.isF64())
    return fail("input to be of f16, bf16, f32 or f64") << element;
  for (OnnxInput operand : {weight, bias, pastState})
    if (operand && operand.type().getElementType() != element)
      return fail(operand.name + Twine(" to have the element type of input, ") +
                  (element.isF16()    ? "f16"
                   : element.isBF16() ? "bf16"
                   : element.isF32()  ? "f32"
                                      : "f64"))
             << operand.type().getElementType();
  constexpr int64_t widest = 16;
  int64_t taps = weight.size(2); // (C3)
  if (taps < 1 || taps > widest)
    return fail("weight to have a fixed width from 1 to " + Twine(widest))
           << (taps == kOpenSize ? "?" : std::to_string(taps));
  if (failed(checkSize("the second size of weight", weight.size(1), 1)) ||
      failed(
          checkSize("the channels of weight", weight.size(0), input.size(1))))
    return failure();
  if (bias &&
      failed(checkSize("the channels of bias", bias.size(0), input.size(1))))
    return failure();
  if (pastState && (failed(checkSize("the batch size of past_state",
                                     pastState.size(0), input.size(0))) ||
                    failed(checkSize("the channels of past_state",
                                     pastState.size(1), input.size(1))) ||
                    failed(checkSize("the inputs of past_state",
                                     pastState.size(2), taps - 1))))
    return failure();
  return success();
}

LogicalResult OnnxCausalConv::readResults() { // (C6)
  Type element = input.type().getElementType();
  SmallVector<int64_t> state = {input.size(0), input.size(1),
                                weight.size(2) - 1};
  for (auto [index, name, shape] :
       {std::tuple(0u, "output", ArrayRef(input.type().getShape())),
        std::tuple(1u, "present_state", ArrayRef<int64_t>(state))}) {
    if (index >= op->getNumResults())
      continue;
    Value result = op->getResult(index);
    if (index == 1 && isOnnxNone(result.getType())) {
      if (!result.use_empty())
        return fail("present_state to be a ranked tensor, since it is used")
               << result.getType();
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || type.getRank() != 3 || type.getElementType() != element)
      return fail(name + Twine(" to be a tensor of three dimensions of the "
                               "element type of input"))
             << result.getType();
    for (int64_t dim = 0; dim < 3; ++dim)
      if (failed(checkSize("dimension " + Twine(dim) + " of " + name,
                           type.getDimSize(dim), shape[dim])))
        return failure();
  }
  return success();
}

SmallVector<Value, 2> OnnxCausalConv::write(OpBuilder &b) {
  Location loc = op->getLoc();
  Type element = input.type().getElementType();
  auto castTo = [&](Value value, Type type) -> Value {
    if (value.getType() == type)
      return value;
    return tensor::CastOp::create(b, loc, type, value);
  };
  int64_t taps = weight.size(2);
  Value tokens =
      PermuteOp::create(b, loc, input.value, ArrayRef<int64_t>{0, 2, 1});
  Value square =
      castTo(weight.value,
             weight.type().clone(ArrayRef<int64_t>{weight.size(0), 1, taps}));
  Value weights = tensor::CollapseShapeOp::create(
      b, loc, square, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input.value);
  Value output = tensor::EmptyOp::create(
      b, loc, ArrayRef<OpFoldResult>{sizes[0], sizes[2], sizes[1]}, element);
  Value state;
  if (pastState) {
    SmallVector<int64_t> shape(pastState.type().getShape());
    shape[2] = taps - 1;
    state = castTo(pastState.value, pastState.type().clone(shape));
  } else {
    Value empty = tensor::EmptyOp::create(
        b, loc,
        ArrayRef<OpFoldResult>{sizes[0], sizes[1], b.getIndexAttr(taps - 1)},
        element);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    state = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  }
  ActivationAttr activation;
  if (silu)
    activation = ActivationAttr::get(b.getContext(), Activation::Silu);
  auto conv = CausalConvOp::create(
      b, loc, TypeRange{output.getType(), state.getType()}, tokens, weights,
      bias.value, /*cu_seqlens=*/Value(), output, state, activation,
      /*dilation=*/1, /*reverse=*/false);
  Value back = PermuteOp::create(b, loc, conv.getResults()[0],
                                 ArrayRef<int64_t>{0, 2, 1});
  SmallVector<Value, 2> values = {castTo(back, op->getResult(0).getType())};
  if (op->getNumResults() > 1) {
    Type type = op->getResult(1).getType();
    Value present = conv.getResults()[1];
    values.push_back(isOnnxNone(type) ? present : castTo(present, type));
  }
  return values;
}
