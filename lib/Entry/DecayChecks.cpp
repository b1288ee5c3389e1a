//===- DecayChecks.cpp - Logarithms that are none -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decay is a natural logarithm of at most 0, −∞ included. The check reads
// an argument in its own layout, before any work is done.
//
//===----------------------------------------------------------------------===//

#include "ShapeChecks.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Entry/EntryLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

/// The operands that are decays, with their names.
static SmallVector<std::pair<Value, StringRef>> getDecays(Operation *op) {
  SmallVector<std::pair<Value, StringRef>> decays;
  if (auto scan = dyn_cast<ScanOp>(op))
    decays = {{scan.getDecay(), "decay"},
              {scan.getValueDecay(), "value_decay"}};
  else if (auto sweep = dyn_cast<SweepOp>(op))
    decays = {{sweep.getDecay(), "decay"}};
  else if (auto scan = dyn_cast<DiagonalScanOp>(op))
    decays = {{scan.getDecay(), "decay"}};
  else if (auto scan = dyn_cast<LogLinearOp>(op))
    decays = {{scan.getDecay(), "decay"}};
  else if (auto wkv = dyn_cast<Wkv4Op>(op))
    decays = {{wkv.getDecay(), "decay"}};
  llvm::erase_if(decays, [](const auto &decay) { return !decay.first; });
  return decays;
}

/// The value that holds these elements, each of them once.
static Value getSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    bool keepsElements = isa<PermuteOp, tensor::CastOp, tensor::CollapseShapeOp,
                             tensor::ExpandShapeOp, arith::ExtFOp>(op);
    if (!keepsElements)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The flat index of the first element above 0 or NaN, −1 if there is none, and
/// whether that one is NaN. Loops over the dimensions from `indices` on.
static ValueRange findBad(OpBuilder &builder, Location loc, Value decay,
                          ArrayRef<Value> sizes, SmallVector<Value> indices,
                          Value flat, ValueRange found) {
  ImplicitLocOpBuilder b(loc, builder);
  if (indices.size() < sizes.size()) {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value size = sizes[indices.size()];
    auto loop = scf::ForOp::create(
        b, zero, size, one, found,
        [&](OpBuilder &nested, Location loc, Value i, ValueRange carried) {
          SmallVector<Value> inner(indices);
          inner.push_back(i);
          Value row = arith::MulIOp::create(nested, loc, flat, size);
          Value at = arith::AddIOp::create(nested, loc, row, i);
          scf::YieldOp::create(
              nested, loc,
              findBad(nested, loc, decay, sizes, inner, at, carried));
        });
    return loop.getResults();
  }
  Value x = tensor::ExtractOp::create(b, decay, indices);
  if (x.getType().getIntOrFloatBitWidth() < 32)
    x = arith::ExtFOp::create(b, b.getF32Type(), x);
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(x.getType(), 0.0));
  Value isBad = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, zero);
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  Value none = arith::ConstantIndexOp::create(b, -1);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, found[0], none);
  Value isNew = arith::AndIOp::create(b, isBad, isFirst);
  // One op with both results: a range needs an owner.
  auto branch = scf::IfOp::create(
      b, isNew,
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, ValueRange{flat, isNaN});
      },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, found);
      });
  return branch.getResults();
}

static void addChecks(ImplicitLocOpBuilder &b, Operation *op, Value decay,
                      StringRef name, SmallVectorImpl<ShapeCheck> &checks) {
  SmallVector<Value> sizes;
  int64_t rank = cast<RankedTensorType>(decay.getType()).getRank();
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(tensor::DimOp::create(b, decay, d));
  Value none = arith::ConstantIndexOp::create(b, -1);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value isNumber = arith::ConstantIntOp::create(b, false, 1);
  ValueRange found =
      findBad(b, b.getLoc(), decay, sizes, {}, zero, {none, isNumber});
  Value first = found[0], isNaN = found[1];

  SmallVector<Value, 4> indices(rank);
  Value rest = first;
  Value one = arith::ConstantIndexOp::create(b, 1);
  for (int64_t d = rank; d-- > 0;) {
    // An empty tensor has no element to report.
    Value size = arith::MaxSIOp::create(b, sizes[d], one);
    indices[d] = arith::RemSIOp::create(b, rest, size);
    rest = arith::DivSIOp::create(b, rest, size);
  }
  std::string at = "[";
  for (int64_t d = 0; d < rank; ++d)
    at += (d ? ", {" : "{") + std::to_string(d) + "}";
  at += "]";

  Value truth = arith::ConstantIntOp::create(b, true, 1);
  Value isFine =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, none);
  auto add = [&](Value isOther, StringRef got) {
    std::string message =
        (op->getName().getStringRef() + ": expected " + name +
         " to be natural logarithms of at most 0, but got " + got + " at " + at)
            .str();
    checks.push_back({arith::OrIOp::create(b, isFine, isOther), indices,
                      std::move(message)});
  };
  add(isNaN, "a positive number");
  add(arith::XOrIOp::create(b, isNaN, truth), "NaN");
}

SmallVector<ShapeCheck> mlir::linattn::emitDecayChecks(func::FuncOp func) {
  Block &entry = func.front();
  ImplicitLocOpBuilder b(func.getLoc(), entry.getTerminator());
  SmallVector<ShapeCheck> checks;
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    for (auto [value, name] : getDecays(op)) {
      Value decay = getSource(value);
      auto type = dyn_cast<RankedTensorType>(decay.getType());
      bool isArgument = isa<BlockArgument>(decay) &&
                        decay.getParentBlock() == &entry && type &&
                        type.getRank() <= int64_t(kMaxCheckedSizes);
      if (!isArgument || op->getBlock() != &entry) {
        remark::missed(op->getLoc(), remarkNamed("check-shapes"))
            << (name + " is not checked: it is not an argument of the function")
                   .str();
        continue;
      }
      b.setLoc(op->getLoc());
      addChecks(b, op, decay, name, checks);
    }
  return checks;
}
