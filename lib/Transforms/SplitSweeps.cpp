//===- SplitSweeps.cpp - Reads along the values as scans ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// S x is what the transposed state reads for the query x: a scan in which keys
// and values, and their decays, are exchanged. Given r, S is additive in k vᵀ
// and in b rᵀ, and each of these writes is a scan.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Einsum.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Sweeps.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class SweepSplit {
public:
  SweepSplit(OpBuilder &b, SweepOp op) : b(b), loc(op.getLoc()), op(op) {}

  /// The results of the op.
  SmallVector<Value> emit();

private:
  Value readAlongValues(Value key, Value value, Value state, Value output);
  Value readOfTransition(ScanOp scan);
  Value transposedState();
  Value zeroState();
  Value decayedKey();
  Value empty(Value like) {
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, like),
                                   getElementTypeOrSelf(like));
  }

  OpBuilder &b;
  Location loc;
  SweepOp op;
};

} // namespace

/// [B, H, V, K] of zeros.
Value SweepSplit::zeroState() {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getState());
  std::swap(sizes[2], sizes[3]);
  Type type = getElementTypeOrSelf(op.getState());
  Value destination = tensor::EmptyOp::create(b, loc, sizes, type);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return linalg::FillOp::create(b, loc, zero, destination).getResult(0);
}

Value SweepSplit::transposedState() {
  if (isZeroFill(op.getState()))
    return zeroState();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, op.getState());
  std::swap(sizes[2], sizes[3]);
  Value destination = tensor::EmptyOp::create(
      b, loc, sizes, getElementTypeOrSelf(op.getState()));
  return linalg::TransposeOp::create(b, loc, op.getState(), destination,
                                     ArrayRef<int64_t>{0, 1, 3, 2})
      ->getResult(0);
}

/// scale · S x, for the state that `key` and `value` write.
Value SweepSplit::readAlongValues(Value key, Value value, Value state,
                                  Value output) {
  Value none, decay = op.getDecay(), valueDecay;
  if (decay && cast<ShapedType>(decay.getType()).getRank() == 4)
    std::swap(decay, valueDecay);
  // The caller's schedule applies where it is legal.
  ConfigAttr config = op.getConfigAttr();
  if (config && config.getForm() == Form::Chunk && valueDecay)
    config = {};
  return ScanOp::create(
             b, loc, TypeRange{output.getType(), state.getType()},
             op.getValueQuery(), value, key, decay, valueDecay, none, none,
             none, none, none, none, none, none, op.getCuSeqlens(), none, none,
             output, state, none, none, ValueRange(), Update::Add,
             op.getReadout(), Transition::After, op.getReverse(), IntegerAttr(),
             FeatureMapAttr(), NormalizeAttr(), op.getScaleAttr(), config)
      .getResult(0);
}

/// r, which may be equal to the op's read for its query.
Value SweepSplit::readOfTransition(ScanOp scan) {
  bool isRead = op.getQuery() == op.getA() &&
                op.getReadout() == Readout::Exclusive &&
                (!op.getScale() || op.getScale()->isExactlyValue(1.0));
  if (isRead)
    return scan.getResult(0);
  Value output = empty(op.getOutput());
  ScanOp again = op.createScan(b);
  again.getQueryMutable().assign(op.getA());
  again.getOutputMutable().assign(output);
  again.setReadout(Readout::Exclusive);
  again.removeScaleAttr();
  return again.getResult(0);
}

/// The written key, e^decay ⊙ k under `decay_writes`.
Value SweepSplit::decayedKey() {
  Value key = op.getKey(), decay = op.getDecay();
  if (!op.getDecayWrites())
    return key;
  int64_t rank = cast<ShapedType>(decay.getType()).getRank();
  Type type = getElementTypeOrSelf(op.getState());
  StringRef gate = rank == 1 ? "h" : rank == 3 ? "bht" : "bhtk";
  return elementwise(
      b, loc, ("bhtk," + gate + "->bhtk").str(), {key, decay}, empty(key),
      [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
        Value wide = convertFloat(nested, at, x[0], type);
        Value factor = math::ExpOp::create(
            nested, at, convertFloat(nested, at, x[1], type));
        Value product = arith::MulFOp::create(nested, at, wide, factor);
        return convertFloat(nested, at, product, x[0].getType());
      });
}

SmallVector<Value> SweepSplit::emit() {
  ScanOp scan = op.createScan(b);
  Value key = decayedKey();
  if (key != op.getKey()) {
    scan.getKeyMutable().assign(key);
    scan->moveAfter(key.getDefiningOp());
    b.setInsertionPointAfter(scan);
  }
  Value read = readAlongValues(key, op.getValue(), transposedState(),
                               op.getValueOutput());
  if (op.getA()) {
    Value other = readAlongValues(op.getB(), readOfTransition(scan),
                                  zeroState(), empty(op.getValueOutput()));
    read = linalg::AddOp::create(b, loc, ValueRange{read, other},
                                 empty(op.getValueOutput()))
               .getResult(0);
  }
  return {scan.getResult(0), read, scan.getResult(1)};
}

SmallVector<Value> mlir::linattn::buildSplitSweep(OpBuilder &b, SweepOp op) {
  return SweepSplit(b, op).emit();
}

void mlir::linattn::splitSweep(RewriterBase &rewriter, SweepOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  rewriter.replaceOp(op, buildSplitSweep(rewriter, op));
}

int64_t mlir::linattn::splitSweeps(Operation *root) {
  SmallVector<SweepOp> sweeps;
  root->walk([&](SweepOp op) {
    if (op.hasPureTensorSemantics())
      sweeps.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (SweepOp op : sweeps) {
    remark::passed(op.getLoc(), remarkNamed("split-sweeps"))
        << "its two reads are scans of their own";
    splitSweep(rewriter, op);
  }
  return static_cast<int64_t>(sweeps.size());
}
