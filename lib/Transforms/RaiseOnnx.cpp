//===- RaiseOnnx.cpp - Operators of ONNX ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LinearAttention comes packed, [B, T, H·D], and is stated under other strides,
// as a scan; CausalConvWithState is the short convolution.
//
//===----------------------------------------------------------------------===//

#include "OnnxCausalConv.h"
#include "OnnxLinearAttention.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNRAISEONNXPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Writing the scan
//===----------------------------------------------------------------------===//

namespace {

class Writer {
public:
  Writer(OpBuilder &b, Location loc, const OnnxLinearAttention &op)
      : b(b), loc(loc), op(op) {}

  /// Output and present state, with the types of `results`.
  SmallVector<Value, 2> write(TypeRange results);

private:
  /// Packed [B, T, H·D] as [B, H, T, D].
  Value unpack(OnnxInput input, int64_t count, int64_t size);
  /// [B, T, H] as [B, H, T]; a last size of 1 serves all heads.
  Value unpackGate(OnnxInput gate);
  Value convert(Value value, Type element);
  /// The size of one of the KV heads of `input`.
  OpFoldResult perHead(OnnxInput input, int64_t size);
  Value makeState();
  Value castTo(Value value, Type type);

  Type accumulation() const {
    return getAccumulationType(op.query.type().getElementType());
  }

  OpBuilder &b;
  Location loc;
  const OnnxLinearAttention &op;
};

} // namespace

Value Writer::castTo(Value value, Type type) {
  return value.getType() == type
             ? value
             : tensor::CastOp::create(b, loc, type, value).getResult();
}

Value Writer::unpack(OnnxInput input, int64_t count, int64_t size) {
  // Checks of shapes use this name.
  Location named = NameLoc::get(b.getStringAttr(input.name), loc);
  OpBuilder::InsertionGuard guard(b);
  Value value = input.value;
  RankedTensorType type = input.type();
  SmallVector<int64_t> shape(type.getShape());
  if (size != kOpenSize) {
    shape[2] = count * size;
    value = castTo(value, type.clone(shape));
  }
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, named, value);
  SmallVector<int64_t> split = {shape[0], shape[1], count, size};
  OpFoldResult perHead = b.getIndexAttr(size);
  if (size == kOpenSize)
    perHead =
        arith::DivUIOp::create(b, named, cast<Value>(sizes[2]),
                               arith::ConstantIndexOp::create(b, named, count))
            .getResult();
  Value expanded = tensor::ExpandShapeOp::create(
      b, named, type.clone(split), value,
      ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}},
      ArrayRef<OpFoldResult>{sizes[0], sizes[1], b.getIndexAttr(count),
                             perHead});
  return PermuteOp::create(b, named, expanded, ArrayRef<int64_t>{0, 2, 1, 3});
}

Value Writer::unpackGate(OnnxInput gate) {
  if (gate.size(2) == op.heads)
    return PermuteOp::create(b, loc, gate.value, ArrayRef<int64_t>{0, 2, 1});
  Value flat = tensor::CollapseShapeOp::create(
      b, loc, gate.value, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, gate.value);
  Value empty = tensor::EmptyOp::create(
      b, loc,
      ArrayRef<OpFoldResult>{sizes[0], b.getIndexAttr(op.heads), sizes[1]},
      gate.type().getElementType());
  return linalg::BroadcastOp::create(b, loc, flat, empty, ArrayRef<int64_t>{1})
      ->getResult(0);
}

Value Writer::convert(Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  unsigned from = type.getElementTypeBitWidth();
  unsigned to = element.getIntOrFloatBitWidth();
  if (type.getElementType() == element)
    return value;
  // f16 and bf16 do not convert into each other directly, and machines do not
  // convert f64 into them.
  if (from == to || from == 4 * to)
    return convert(convert(value, b.getF32Type()), element);
  if (from < to)
    return arith::ExtFOp::create(b, loc, type.clone(element), value);
  return arith::TruncFOp::create(b, loc, type.clone(element), value);
}

OpFoldResult Writer::perHead(OnnxInput input, int64_t size) {
  if (size != kOpenSize)
    return b.getIndexAttr(size);
  Value packed = tensor::DimOp::create(b, loc, input.value, 2);
  Value count = arith::ConstantIndexOp::create(b, loc, op.heads);
  return arith::DivUIOp::create(b, loc, packed, count).getResult();
}

Value Writer::makeState() {
  if (op.pastState) {
    SmallVector<int64_t> shape(op.pastState.type().getShape());
    shape[1] = op.heads;
    shape[2] = op.keySize == kOpenSize ? shape[2] : op.keySize;
    shape[3] = op.valueSize == kOpenSize ? shape[3] : op.valueSize;
    Value state = castTo(op.pastState.value, op.pastState.type().clone(shape));
    return convert(state, accumulation());
  }
  SmallVector<OpFoldResult> sizes = {
      tensor::getMixedSize(b, loc, op.query.value, 0), b.getIndexAttr(op.heads),
      perHead(op.key, op.keySize), perHead(op.value, op.valueSize)};
  Value empty = tensor::EmptyOp::create(b, loc, sizes, accumulation());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(accumulation()));
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

SmallVector<Value, 2> Writer::write(TypeRange results) {
  Value query = unpack(op.query, op.queryHeads, op.keySize);
  Value key = unpack(op.key, op.heads, op.keySize);
  Value value = unpack(op.value, op.heads, op.valueSize);
  Value state = makeState();
  SmallVector<OpFoldResult> sizes = {
      tensor::getMixedSize(b, loc, op.query.value, 0),
      b.getIndexAttr(op.queryHeads),
      tensor::getMixedSize(b, loc, op.query.value, 1),
      perHead(op.value, op.valueSize)};
  Value output =
      tensor::EmptyOp::create(b, loc, sizes, op.query.type().getElementType());
  Value decay, beta, erase;
  if (op.decay)
    decay = op.decay.size(2) == op.heads
                ? unpackGate(op.decay)
                : unpack(op.decay, op.heads, op.keySize);
  if (op.beta)
    beta = unpackGate(op.beta);
  if (op.eraseGate)
    erase = unpack(op.eraseGate, op.heads, op.keySize);
  auto scan = ScanOp::create(b, loc, query, key, value, /*mask=*/Value(),
                             output, StateValues{state, {}, {}});
  scan.setScale(APFloat(op.scale));
  if (op.isDelta())
    scan.setUpdate(Update::Delta);
  if (decay)
    scan.getDecayMutable().assign(decay);
  if (beta)
    scan.getBetaMutable().assign(beta);
  if (erase)
    scan.getEraseMutable().assign(erase);
  Value back = PermuteOp::create(b, loc, scan.getResults()[0],
                                 ArrayRef<int64_t>{0, 2, 1, 3});
  Value packed = tensor::CollapseShapeOp::create(
      b, loc, back, ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
  SmallVector<Value, 2> values = {castTo(packed, results[0])};
  if (results.size() > 1) {
    Value present = scan.getResults()[1];
    if (auto type = dyn_cast<RankedTensorType>(results[1]))
      present = castTo(convert(present, type.getElementType()), type);
    values.push_back(present);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The prefix of the operator's attributes; none for other ops.
static std::optional<StringRef> matchOperator(Operation *op,
                                              StringRef operatorName) {
  StringRef name = op->getName().getStringRef();
  if (name == operatorName)
    return "";
  auto of = op->getAttrOfType<StringAttr>("name");
  if (name == "torch.operator" && of && of.getValue() == operatorName)
    return "torch.onnx.";
  return std::nullopt;
}

namespace {

struct LinAttnRaiseOnnxPass final
    : mlir::linattn::impl::LinAttnRaiseOnnxPassBase<LinAttnRaiseOnnxPass> {
  using LinAttnRaiseOnnxPassBase::LinAttnRaiseOnnxPassBase;

  void runOnOperation() override {
    SmallVector<std::pair<Operation *, StringRef>> ops, convs;
    SmallVector<Operation *> nones;
    getOperation()->walk([&](Operation *op) {
      if (auto prefix = matchOperator(op, "onnx.LinearAttention"))
        ops.push_back({op, *prefix});
      if (auto prefix = matchOperator(op, "onnx.CausalConvWithState"))
        convs.push_back({op, *prefix});
      StringRef name = op->getName().getStringRef();
      if (name == "onnx.NoValue" || name == "torch.constant.none")
        nones.push_back(op);
    });
    for (auto [op, prefix] : ops)
      if (failed(raise(op, prefix)))
        return signalPassFailure();
    for (auto [op, prefix] : convs)
      if (failed(raiseConv(op, prefix)))
        return signalPassFailure();
    // Unregistered ops may have effects, which these do not.
    for (Operation *none : nones)
      if (none->use_empty())
        none->erase();
  }

private:
  LogicalResult raise(Operation *op, StringRef prefix) {
    OnnxLinearAttention reader(op, prefix);
    if (failed(reader.read()))
      return failure();
    if (op->getNumResults() > 1 && isOnnxNone(op->getResult(1).getType()) &&
        !op->getResult(1).use_empty())
      return op->emitOpError("expected present_state to be a ranked tensor, "
                             "since it is used, but got ")
             << op->getResult(1).getType();
    OpBuilder b(op);
    Writer writer(b, op->getLoc(), reader);
    SmallVector<Value, 2> values = writer.write(op->getResultTypes());
    remark::passed(op->getLoc(), remarkNamed("raise-onnx"))
        << ("LinearAttention with update_rule " + reader.rule +
            " runs as a scan")
               .str();
    replace(op, values);
    return success();
  }

  LogicalResult raiseConv(Operation *op, StringRef prefix) {
    OnnxCausalConv reader(op, prefix);
    if (failed(reader.read()))
      return failure();
    OpBuilder b(op);
    SmallVector<Value, 2> values = reader.write(b);
    remark::passed(op->getLoc(), remarkNamed("raise-onnx"))
        << "CausalConvWithState runs as a causal convolution";
    replace(op, values);
    return success();
  }

  void replace(Operation *op, ValueRange values) {
    for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
      if (!result.use_empty())
        result.replaceAllUsesWith(value);
    op->erase();
    ++numRaised;
  }
};

} // namespace
