//===- TwoPass.cpp - Families of two scans --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "Tables.h"

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
/// reads the score of each slot, the second reads the slots' values. Both use
/// the accumulation type for tokens, which is the type of their results: 16
/// bits would round the scores and their softmax once more.
static FailureOr<FamilyResults> buildSlots(FamilyBuilder &f, Value slots,
                                           Value decay) {
  FailureOr<Scale> scale = f.scale();
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
  SmallVector<Value, 4> logits = f.scan(keys, "B Ho T M");

  FamilyScan values = keys;
  values.query = f.softmax({logits[0], "B Ho T M"}, *scale);
  values.key = slots;
  values.value = widen("B Hv T V", f.operand("v"));
  values.valueDecay = Value();
  values.decay = decay;
  values.state = {state[1]};
  SmallVector<Value, 4> read = f.scan(values, "B Ho T V");
  Value output = convertTo(f, f.tokenType(), "B Ho T V", read[0]);
  return FamilyResults{output, {logits[1], read[1]}};
}

static Family gsa() {
  Family family;
  family.name = "gsa";
  family.title = "Gated slot attention";
  family.formula = "K_t = K_{t-1} Diag(e^{g_t}) + k_t s_tᵀ,  p_t = softmax(s "
                   "K_tᵀq_t),  V_t = Diag(e^{g_t}) V_{t-1} + s_t v_tᵀ,  o_t = "
                   "V_tᵀp_t";
  family.paper = "Zhang et al., Gated Slot Attention, 2024";
  family.signature = "q, k, v, s, g, scale=None, initial_state=None, "
                     "output_final_state=False, *, reverse=False";
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

static Family abc() {
  Family family;
  family.name = "abc";
  family.title = "Attention with bounded-memory control";
  family.formula = "z_t = log Σ_{j≤t} e^{s_j},  w_t = e^{s_t − z_t},  g_t = "
                   "z_{t-1} − z_t;  then as gated slot attention with w for s";
  family.paper = "Peng et al., ABC, 2022";
  family.signature = "q, k, v, s, scale=None, initial_state=None, "
                     "output_final_state=False";
  family.operands = queryKeyValue() +
                    std::vector{tokens("s", "B T H M", "scores of the slots")};
  family.options = {scaleOption()};
  family.rules = headRules();
  family.state = {{"hk", "N H K M"},
                  {"hv", "N H M V"},
                  {"z", "N H M", "", -std::numeric_limits<double>::infinity()}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    // The weights have the scores' type, which is as wide as both scans.
    Value scores =
        convertTo(f, f.accumulationType(), "B H T M", f.operand("s"));
    RunningLogSum slots = emitRunningLogSum(
        f, SequenceEnds(f), {scores, "B H T M"}, f.initialState()[2]);
    FailureOr<FamilyResults> results =
        buildSlots(f, slots.weights, slots.decay);
    if (succeeded(results))
      results->state.push_back(slots.last);
    return results;
  };
  return family;
}

void mlir::linattn::appendTwoPassFamilies(std::vector<Family> &families) {
  families = families + std::vector{gsa(), abc()};
}
