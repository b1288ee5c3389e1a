//===- TwoPass.cpp - Families of two scans --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

static Value convertTo(FamilyBuilder &f, Type type, StringRef dims, Value x) {
  if (getElementTypeOrSelf(x) == type)
    return x;
  return f.map(dims, {{x, dims}}, type,
               [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
}

/// Keys and values meet in M slots: the first scan writes keys into slots and
/// reads how much each slot is wanted, the second reads the slots' values. Both
/// are in the accumulation type, since their tokens' type is that of their
/// results: in 16 bits the scores would be rounded once more, and their
/// softmax.
static FailureOr<FamilyResults> buildSlots(FamilyBuilder &f, Value slots,
                                           Value decay) {
  FailureOr<double> scale = f.scale();
  if (failed(scale))
    return failure();
  auto widen = [&](StringRef dims, Value x) {
    return convertTo(f, f.accumulationType(), dims, x);
  };
  SmallVector<Value, 3> state = f.initialState();
  slots = widen("B H T M", slots);
  FamilyScan keys;
  keys.query = widen("B Hq T K", f.operand("q"));
  keys.key = widen("B Hk T K", f.operand("k"));
  keys.value = slots;
  keys.valueDecay = decay;
  keys.state = {state[0]};
  keys.offsets = f.operand("cu_seqlens");
  keys.reverse = f.flag("reverse");
  SmallVector<Value, 4> wanted = f.scan(keys, "B Ho T M");

  FamilyScan values = keys;
  values.query = f.softmax({wanted[0], "B Ho T M"}, *scale);
  values.key = slots;
  values.value = widen("B Hv T V", f.operand("v"));
  values.valueDecay = Value();
  values.decay = decay;
  values.state = {state[1]};
  SmallVector<Value, 4> read = f.scan(values, "B Ho T V");
  Value output = convertTo(f, f.tokenType(), "B Ho T V", read[0]);
  return FamilyResults{output, {wanted[1], read[1]}};
}

static Family gsa() {
  Family family;
  family.name = "gsa";
  family.title = "Gated slot attention";
  family.formula = "K_t = K_{t-1} Diag(e^{g_t}) + k_t s_tᵀ,  p_t = softmax(s "
                   "K_tᵀq_t),  V_t = Diag(e^{g_t}) V_{t-1} + s_t v_tᵀ,  o_t = "
                   "V_tᵀp_t";
  family.paper = "Zhang et al., Gated Slot Attention, 2024";
  family.operands =
      queryKeyValue() +
      std::vector{tokens("s", "B T H M", "how much goes into each slot"),
                  gate("g", "B T H M", "log decay of the slots, ≤ 0"),
                  offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = {{"hk", "N H K M"}, {"hv", "N H M V"}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    return buildSlots(f, f.operand("s"), f.operand("g"));
  };
  return family;
}

namespace {

/// What ABC makes of its slot scores.
struct SlotWeights {
  Value weights, decay, sums;
};

} // namespace

/// One step of the running log of the sum of exponentials: from the score s and
/// the sum z before it, the sum z' with it, the decay z − z' (0 where nothing
/// came before) and the weight e^{s − z'}. z is in f64, or its rounding at
/// every token would add up in the states; `type` is what all else is in.
static void emitSlotStep(ImplicitLocOpBuilder &b, ValueRange v, Type type) {
  Type wide = b.getF64Type();
  auto convert = [&](Value x, Type to) {
    return convertFloat(b, b.getLoc(), x, to);
  };
  Value s = convert(v[0], wide), z = v[1];
  Value most = arith::MaximumFOp::create(b, s, z);
  Value apart = math::AbsFOp::create(b, arith::SubFOp::create(b, s, z));
  Value rest =
      math::ExpOp::create(b, convert(arith::NegFOp::create(b, apart), type));
  Value sum = arith::AddFOp::create(
      b, most, convert(math::Log1pOp::create(b, rest), wide));
  Value none = emitConstant(b, wide, -std::numeric_limits<double>::infinity());
  Value first = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, z, none);
  Value decay = arith::SelectOp::create(b, first, emitConstant(b, wide, 0.0),
                                        arith::SubFOp::create(b, z, sum));
  Value weight =
      math::ExpOp::create(b, convert(arith::SubFOp::create(b, s, sum), type));
  linalg::YieldOp::create(b, ValueRange{sum, convert(decay, type),
                                        convert(weight, v[3].getType())});
}

/// Runs over the tokens once; nothing but z is carried.
static SlotWeights emitSlotWeights(FamilyBuilder &f, Value sums) {
  ImplicitLocOpBuilder &b = f.b;
  Type type = f.accumulationType();
  Value s = f.operand("s");
  auto convertSums = [&](Value from, Type to) {
    return f.map("N H M", {{from, "N H M"}}, to,
                 [&](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  };
  SmallVector<OpFoldResult> sizes;
  for (StringRef dim : {"B", "H", "T", "M"})
    sizes.push_back(f.extent(dim));
  Value tokens = getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[2]);
  sizes[2] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> strides(4, b.getIndexAttr(1));
  auto loop = scf::ForOp::create(
      b, arith::ConstantIndexOp::create(b, 0), tokens,
      arith::ConstantIndexOp::create(b, 1),
      ValueRange{convertSums(sums, b.getF64Type()), f.empty("B H T M", type),
                 f.empty("B H T M", type)},
      [&](OpBuilder &builder, Location loc, Value t, ValueRange carried) {
        ImplicitLocOpBuilder body(loc, builder);
        SmallVector<OpFoldResult> offsets(4, body.getIndexAttr(0));
        offsets[2] = t;
        auto slice = [&](Value from) -> Value {
          auto whole = cast<RankedTensorType>(from.getType());
          auto part = RankedTensorType::get(
              {whole.getDimSize(0), whole.getDimSize(1), whole.getDimSize(3)},
              whole.getElementType());
          return tensor::ExtractSliceOp::create(body, part, from, offsets,
                                                sizes, strides);
        };
        SmallVector<Value> outs{carried[0], slice(carried[1]),
                                slice(carried[2])};
        SmallVector<AffineMap> maps(4, body.getMultiDimIdentityMap(3));
        SmallVector<utils::IteratorType> iterators(
            3, utils::IteratorType::parallel);
        auto step = linalg::GenericOp::create(
            body, TypeRange(ValueRange(outs)), slice(s), outs, maps, iterators,
            [&](OpBuilder &inner, Location loc, ValueRange v) {
              ImplicitLocOpBuilder scalars(loc, inner);
              emitSlotStep(scalars, v, type);
            });
        SmallVector<Value> next{step.getResult(0)};
        for (unsigned i : {1u, 2u})
          next.push_back(tensor::InsertSliceOp::create(
              body, step.getResult(i), carried[i], offsets, sizes, strides));
        scf::YieldOp::create(body, next);
      });
  return {loop.getResult(2), loop.getResult(1),
          convertSums(loop.getResult(0), type)};
}

static Family abc() {
  Family family;
  family.name = "abc";
  family.title = "Attention with bounded-memory control";
  family.formula = "z_t = log Σ_{j≤t} e^{s_j},  w_t = e^{s_t − z_t},  g_t = "
                   "z_{t-1} − z_t;  then as gated slot attention with w for s";
  family.paper = "Peng et al., ABC, 2022";
  family.operands = queryKeyValue() +
                    std::vector{tokens("s", "B T H M", "scores of the slots")};
  family.options = {scaleOption()};
  family.rules = headRules();
  family.state = {{"hk", "N H K M"},
                  {"hv", "N H M V"},
                  {"z", "N H M", "", -std::numeric_limits<double>::infinity()}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    SlotWeights slots = emitSlotWeights(f, f.initialState()[2]);
    FailureOr<FamilyResults> results =
        buildSlots(f, slots.weights, slots.decay);
    if (succeeded(results))
      results->state.push_back(slots.sums);
    return results;
  };
  return family;
}

void mlir::linattn::appendTwoPassFamilies(std::vector<Family> &families) {
  families = families + std::vector{gsa(), abc()};
}
