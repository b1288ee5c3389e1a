//===- MaterializeMaps.cpp - Feature maps before the scan -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels apply the maps of one element that they know. A region, and a map of
// a whole token, is applied before: to buffers of the accumulation type, so
// that nothing is rounded that is not rounded in the op.
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNMATERIALIZEMAPSPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Moves the map of one op in front of it.
class MapMover {
public:
  MapMover(FeatureMappedOpInterface op, Type type)
      : b(op), loc(op->getLoc()), op(op), type(type) {}

  /// φ of tokens.
  void map(OpOperand &tokens) {
    Value mapped = allocate(tokens.get());
    auto attr = op->getAttrOfType<FeatureMapAttr>("feature_map");
    auto map = FeatureMapOp::create(b, loc, tokens.get(), ValueRange(), Value(),
                                    mapped, attr);
    IRMapping mapping;
    op.getFeatureMapRegion().cloneInto(&map.getPhi(), mapping);
    tokens.set(mapped);
  }
  /// Tokens as they are: all of an op have one type.
  void widen(OpOperand &tokens) {
    if (getElementTypeOrSelf(tokens.get()) == type)
      return;
    Value wide = allocate(tokens.get());
    convert(b, tokens.get(), wide);
    tokens.set(wide);
  }
  /// A result, narrowed behind the op.
  void narrow(OpOperand &output) {
    Value narrow = output.get();
    if (getElementTypeOrSelf(narrow) == type)
      return;
    Value wide = allocate(narrow);
    OpBuilder behind(b.getContext());
    behind.setInsertionPointAfter(op);
    convert(behind, wide, narrow);
    output.set(wide);
  }
  void finish() {
    op->removeAttr("feature_map");
    op.getFeatureMapRegion().getBlocks().clear();
  }

private:
  Value allocate(Value like) {
    auto shaped = cast<MemRefType>(like.getType());
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < shaped.getRank(); ++dim)
      if (shaped.isDynamicDim(dim))
        sizes.push_back(memref::DimOp::create(b, loc, like, dim));
    return memref::AllocOp::create(
        b, loc, MemRefType::get(shaped.getShape(), type), sizes);
  }
  void convert(OpBuilder &at, Value from, Value to) {
    int64_t rank = cast<MemRefType>(from.getType()).getRank();
    AffineMap map = at.getMultiDimIdentityMap(rank);
    Type element = getElementTypeOrSelf(to);
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    linalg::GenericOp::create(
        at, loc, from, to, ArrayRef<AffineMap>{map, map}, loops,
        [&](OpBuilder &nested, Location, ValueRange elements) {
          Value x = elements.front();
          if (getElementTypeOrSelf(from) == type)
            x = arith::TruncFOp::create(nested, loc, element, x);
          else
            x = arith::ExtFOp::create(nested, loc, element, x);
          linalg::YieldOp::create(nested, loc, x);
        });
  }

  OpBuilder b;
  Location loc;
  FeatureMappedOpInterface op;
  Type type;
};

struct LinAttnMaterializeMapsPass final
    : mlir::linattn::impl::LinAttnMaterializeMapsPassBase<
          LinAttnMaterializeMapsPass> {
  using LinAttnMaterializeMapsPassBase::LinAttnMaterializeMapsPassBase;

  void runOnOperation() override {
    SmallVector<FeatureMappedOpInterface> ops;
    getOperation()->walk([&](FeatureMappedOpInterface op) {
      if (isMovable(op))
        ops.push_back(op);
    });
    for (FeatureMappedOpInterface op : ops) {
      MapMover mover(op, Float32Type::get(&getContext()));
      if (auto scan = dyn_cast<ScanOp>(op.getOperation())) {
        mover.map(scan.getQueryMutable());
        mover.map(scan.getKeyMutable());
        mover.widen(scan.getValueMutable());
        mover.narrow(scan.getOutputMutable());
      } else if (auto state = dyn_cast<StateOp>(op.getOperation())) {
        mover.map(state.getKeyMutable());
        mover.widen(state.getValueMutable());
      } else if (auto read = dyn_cast<ReadOp>(op.getOperation())) {
        mover.map(read.getQueryMutable());
        mover.narrow(read.getOutputMutable());
      }
      mover.finish();
      remark::passed(op->getLoc(), remarkNamed("materialize-maps"))
          << "the feature map is applied before, to tokens of f32";
    }
    numMaps += ops.size();
  }

private:
  static bool isMovable(FeatureMappedOpInterface op) {
    FeatureMapKind kind = op.getFeatureMapKind();
    if (kind != FeatureMapKind::Region && kind != FeatureMapKind::SoftmaxKernel)
      return false;
    if (!isa<ScanOp, StateOp, ReadOp>(op.getOperation()) ||
        !isa<MemRefType>(op->getOperand(0).getType()) ||
        getElementTypeOrSelf(op->getOperand(0)).isF64())
      return false;
    // The shift of the exponential depends on earlier tokens.
    auto scan = dyn_cast<ScanOp>(op.getOperation());
    auto state = dyn_cast<StateOp>(op.getOperation());
    return !(scan && scan.getRunningMax()) && !(state && state.getRunningMax());
  }
};

} // namespace
