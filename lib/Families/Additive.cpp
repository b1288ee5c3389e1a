//===- Additive.cpp - Families whose state is a decayed sum ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// The scan of q, k and v with the family's scale, or the reason of a failure.
static FailureOr<FamilyScan> startScan(FamilyBuilder &f) {
  FailureOr<Scale> scale = f.scale();
  if (failed(scale))
    return failure();
  FamilyScan scan;
  scan.query = f.operand("q");
  scan.key = f.operand("k");
  scan.value = f.operand("v");
  scan.scale = *scale;
  scan.reverse = f.flag("reverse");
  return scan;
}

//===----------------------------------------------------------------------===//
// Linear attention, RFA
//===----------------------------------------------------------------------===//

static FailureOr<FeatureMapKind> getFeatureMap(FamilyBuilder &f) {
  std::string word = f.word("feature_map");
  auto kind = llvm::StringSwitch<std::optional<FeatureMapKind>>(word)
                  .Case("identity", FeatureMapKind::Identity)
                  .Case("elu", FeatureMapKind::Elu1)
                  .Case("relu", FeatureMapKind::Relu)
                  .Case("relu2", FeatureMapKind::Relu2)
                  .Case("softmax_kernel", FeatureMapKind::SoftmaxKernel)
                  .Default(std::nullopt);
  if (kind)
    return *kind;
  return f.fail("feature_map: expected identity, elu, relu, relu2 or "
                "softmax_kernel, but got " +
                word);
}

static NormalizeAttr getNormalizer(FamilyBuilder &f) {
  bool isShort = f.tokenType().getIntOrFloatBitWidth() < 32;
  double eps = f.number("eps").value_or(isShort ? 1e-4 : 1e-6);
  return NormalizeAttr::get(f.b.getContext(), f.b.getF64FloatAttr(eps),
                            /*floor=*/FloatAttr(), /*abs_floor=*/FloatAttr(),
                            /*clamp=*/FloatAttr());
}

static FamilyOption epsOption() {
  return {"eps", std::nullopt,
          "added to the denominator; 1e-6 unless given, 1e-4 for 16-bit "
          "tokens"};
}

static FamilyOption featureMapOption(const char *name) {
  return {"feature_map", FamilyValue(std::string(name)),
          "φ: identity, elu (elu + 1), relu, relu2 or softmax_kernel"};
}

static Family linearAttention() {
  Family family;
  family.name = "linear_attention";
  family.title = "Linear attention";
  family.formula = "S_t = S_{t-1} + φ(k_t) v_tᵀ,  z_t = z_{t-1} + φ(k_t),  "
                   "o_t = s S_tᵀφ(q_t) / (s z_t·φ(q_t) + eps)";
  family.paper = "Katharopoulos et al., Transformers are RNNs, 2020";
  family.note = "`attention` has more feature maps, masks and the non-causal "
                "form.";
  family.signature = "q, k, v, scale=None, initial_state=None, "
                     "output_final_state=False, *, feature_map=\"elu\", "
                     "normalize=True, eps=None, reverse=False";
  family.operands = queryKeyValue() + std::vector{offsets()};
  family.options = {
      scaleOption(),
      featureMapOption("elu"),
      {"normalize", FamilyValue(1.0), "divide by the sum of the weights"},
      epsOption(),
      reverseOption()};
  family.rules = headRules();
  family.state = {{"S", "N H K V"}, {"z", "N H K", "normalize"}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    FailureOr<FeatureMapKind> map = getFeatureMap(f);
    if (failed(scan) || failed(map))
      return failure();
    scan->featureMap = *map;
    if (f.flag("normalize"))
      scan->normalize = getNormalizer(f);
    else if (f.number("eps"))
      return f.fail("eps: expected it only with normalize, but got it without");
    return f.finish(*scan);
  };
  return family;
}

/// φ as an op of its own, for tokens that are scaled afterwards.
static Value applyFeatureMap(FamilyBuilder &f, FamilyTerm x,
                             FeatureMapKind kind) {
  if (kind == FeatureMapKind::Identity)
    return x.value;
  Value init = f.empty(x.dims, f.tokenType());
  auto map = FeatureMapAttr::get(f.b.getContext(), kind);
  return FeatureMapOp::create(f.b, x.value, /*parameters=*/ValueRange(),
                              /*positions=*/Value(), init, map)
      ->getResult(0);
}

static Family rfa() {
  Family family;
  family.name = "rfa";
  family.title = "Gated random feature attention";
  family.formula =
      "S_t = f_t S_{t-1} + (1−f_t) φ(k_t) v_tᵀ,  z_t = f_t z_{t-1} "
      "+ (1−f_t) φ(k_t),  f_t = e^{g_t},  o_t = s S_tᵀφ(q_t) / "
      "(s z_t·φ(q_t) + eps)";
  family.paper = "Peng et al., Random Feature Attention, 2021";
  family.note = "Queries and keys are features, as those of random maps, or "
                "become positive by `feature_map`. Features of both signs make "
                "denominators near 0, which magnify rounding.";
  family.signature = "q, k, v, g, scale=None, initial_state=None, "
                     "output_final_state=False, *, feature_map=\"identity\", "
                     "normalize=True, eps=None, reverse=False";
  family.operands = queryKeyValue() +
                    std::vector{gate("g", "B T H", "log f, ≤ 0"), offsets()};
  family.options = {
      scaleOption(),
      featureMapOption("identity"),
      {"normalize", FamilyValue(1.0), "divide by the sum of the weights"},
      epsOption(),
      reverseOption()};
  family.rules = headRules();
  family.state = {{"S", "N H K V"}, {"z", "N H K", "normalize"}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    FailureOr<FeatureMapKind> kind = getFeatureMap(f);
    if (failed(scan) || failed(kind))
      return failure();
    scan->query = applyFeatureMap(f, f.term("q"), *kind);
    Value key = applyFeatureMap(f, f.term("k"), *kind);
    // 1 − e^g without the cancellation near g = 0.
    scan->key = f.map(
        "B H T K", {{key, f.dimsOf("k")}, f.term("g")}, f.tokenType(),
        [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
          Value rest = math::ExpM1Op::create(b, v[1]);
          return arith::MulFOp::create(b, v[0], arith::NegFOp::create(b, rest));
        });
    scan->decay = f.operand("g");
    if (f.flag("normalize"))
      scan->normalize = getNormalizer(f);
    else if (f.number("eps"))
      return f.fail("eps: expected it only with normalize, but got it without");
    return f.finish(*scan);
  };
  return family;
}

//===----------------------------------------------------------------------===//
// Decay per head
//===----------------------------------------------------------------------===//

static Family retnet() {
  Family family;
  family.name = "retnet";
  family.title = "RetNet (retention)";
  family.formula = "S_t = γ_h S_{t-1} + k_t v_tᵀ,  γ_h = 1 − 2^{−5−h},  "
                   "o_t = s S_tᵀq_t";
  family.paper = "Sun et al., Retentive Network, 2023";
  family.note = "Queries and keys are rotated beforehand.";
  family.signature = "q, k, v, scale=None, initial_state=None, "
                     "output_final_state=False, *, reverse=False";
  family.operands = queryKeyValue() + std::vector{offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    FailureOr<Value> decay = f.perHead("H", [](int64_t head, int64_t) {
      return std::log1p(-std::exp2(-5.0 - static_cast<double>(head)));
    });
    if (failed(scan) || failed(decay))
      return failure();
    scan->decay = *decay;
    return f.finish(*scan);
  };
  return family;
}

static Family lightning() {
  Family family;
  family.name = "lightning";
  family.title = "Lightning attention (TransNormer)";
  family.formula = "S_t = e^{g_h} S_{t-1} + k_t v_tᵀ,  g_h = −(8/H)(1 − "
                   "layer_idx/num_layers) h,  o_t = s S_tᵀq_t";
  family.paper = "Qin et al., Lightning Attention-2, 2024";
  family.note = "Decays are constants of the head and the layer.";
  family.signature = "q, k, v, layer_idx, num_layers, scale=None, "
                     "initial_state=None, output_final_state=False, *, "
                     "reverse=False";
  family.operands = queryKeyValue() + std::vector{offsets()};
  family.options = {
      {"layer_idx", std::nullopt, "which layer this is", /*isRequired=*/true},
      {"num_layers", std::nullopt, "how many layers there are",
       /*isRequired=*/true},
      scaleOption(),
      reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    double layer = f.number("layer_idx").value_or(0);
    double layers = f.number("num_layers").value_or(0);
    if (!(layers > 0 && layer >= 0 && layer <= layers))
      return f.fail("layer_idx: expected a layer of 0 to num_layers, but got " +
                    std::to_string(layer) + " of " + std::to_string(layers));
    FailureOr<FamilyScan> scan = startScan(f);
    FailureOr<Value> decay = f.perHead("H", [&](int64_t head, int64_t heads) {
      return -(8.0 / static_cast<double>(heads)) * (1.0 - layer / layers) *
             static_cast<double>(head);
    });
    if (failed(scan) || failed(decay))
      return failure();
    scan->decay = *decay;
    return f.finish(*scan);
  };
  return family;
}

static Family simpleGLA() {
  Family family;
  family.name = "simple_gla";
  family.title = "Simple GLA";
  family.formula = "S_t = e^{g_t} S_{t-1} + k_t v_tᵀ,  o_t = s S_tᵀq_t";
  family.paper = "Yang et al., Gated Linear Attention, 2024; Dao and Gu, 2024";
  family.signature = "q, k, v, g=None, g_gamma=None, scale=None, "
                     "initial_state=None, output_final_state=False, *, "
                     "reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{optional(gate("g", "B T H", "log decay of a token, ≤ 0")),
                  optional(gate("g_gamma", "H", "log decay of a head, ≤ 0")),
                  offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    if (failed(scan))
      return failure();
    if (f.has("g") && f.has("g_gamma"))
      return f.fail("g_gamma: expected one of g and g_gamma, but got both");
    scan->decay = f.has("g") ? f.operand("g") : f.operand("g_gamma");
    return f.finish(*scan);
  };
  return family;
}

//===----------------------------------------------------------------------===//
// Mamba-2
//===----------------------------------------------------------------------===//

/// Δ = dt + dt_bias, or softplus of it under the option.
static Value emitStep(FamilyBuilder &f) {
  SmallVector<FamilyTerm> terms{f.term("dt")};
  if (f.has("dt_bias"))
    terms.push_back(f.term("dt_bias"));
  bool softplus = f.flag("dt_softplus");
  if (terms.size() == 1 && !softplus)
    return f.operand("dt");
  return f.map("B H T", terms, f.accumulationType(),
               [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                 Value x =
                     v.size() > 1 ? arith::AddFOp::create(b, v[0], v[1]) : v[0];
                 return softplus ? emitSoftplus(b, x) : x;
               });
}

static Family mamba2() {
  Family family;
  family.name = "mamba2";
  family.title = "Mamba-2 (SSD)";
  family.formula =
      "S_t = e^{Δ_t A} S_{t-1} + B_t (Δ_t x_t)ᵀ,  y_t = S_tᵀC_t + D "
      "⊙ x_t,  Δ_t = dt_t + dt_bias or its softplus";
  family.paper = "Dao and Gu, Transformers are SSMs, 2024";
  family.note = "Names and layouts are those of `mamba_ssm`; G divides H.";
  family.signature =
      "x, dt, A, B, C, D=None, dt_bias=None, initial_states=None, "
      "dt_softplus=False, return_final_states=False";
  family.operands = {
      tokens("x", "B T Hv V", "inputs (V is the head size P)"),
      tokens("B", "B T G K", "input projections (K is the state size N)"),
      tokens("C", "B T G K", "output projections"),
      gate("dt", "B T H", "step sizes"),
      gate("A", "H", "negative"),
      optional(gate("D", "H | H V", "skip connection")),
      optional(gate("dt_bias", "H", "added to dt")),
      offsets()};
  family.options = {flag("dt_softplus", "Δ = softplus(dt + dt_bias)")};
  family.rules = {"H = max(G, Hv)"};
  family.state = {{"initial_states", "N H V K -> N H K V"}};
  family.output = "B T H V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FamilyTerm step{emitStep(f), "B H T"};
    FamilyScan scan;
    scan.query = f.operand("C");
    scan.key = f.operand("B");
    scan.value =
        f.map("B H T V", {f.term("x"), step}, f.tokenType(), emitProduct);
    scan.decay =
        f.map("B H T", {step, f.term("A")}, f.accumulationType(), emitProduct);
    FamilyResults results = f.finish(scan);
    if (!f.has("D"))
      return results;
    results.output = f.map(
        "B H T V", {{results.output, "B H T V"}, f.term("x"), f.term("D")},
        f.tokenType(), [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
          return arith::AddFOp::create(b, v[0],
                                       arith::MulFOp::create(b, v[1], v[2]));
        });
    return results;
  };
  return family;
}

//===----------------------------------------------------------------------===//
// mLSTM
//===----------------------------------------------------------------------===//

static Family mlstm() {
  Family family;
  family.name = "mlstm";
  family.title = "mLSTM (xLSTM)";
  family.formula =
      "S_t = f_t S_{t-1} + i_t k_t v_tᵀ,  z_t = f_t z_{t-1} + i_t k_t,  f_t = "
      "sigmoid(f̃_t),  i_t = e^{ĩ_t},  o_t = s S_tᵀq_t / max(|s z_t·q_t|, 1);  "
      "S and z are stored times e^{−m_t}, m_t = max(log f_t + m_{t-1}, ĩ_t), "
      "where eps is added to the divisor";
  family.paper = "Beck et al., xLSTM, 2024";
  family.signature = "q, k, v, i, f, scale=None, initial_state=None, "
                     "output_final_state=False, *, eps=0.0, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{gate("i", "B T H", "input gate, its logarithm"),
                  gate("f", "B T H", "forget gate before its sigmoid"),
                  offsets()};
  family.options = {scaleOption(),
                    {"eps", FamilyValue(0.0), "added to the stored divisor"},
                    reverseOption()};
  family.rules = headRules();
  family.state = {{"S", "N H K V"},
                  {"z", "N H K"},
                  {"m", "N H", "", -std::numeric_limits<double>::infinity()}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    if (failed(scan))
      return failure();
    scan->decay = f.map("B H T", f.term("f"), f.accumulationType(),
                        [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                          return emitLogSigmoid(b, v[0]);
                        });
    scan->inputGate = f.operand("i");
    double eps = f.number("eps").value_or(0.0);
    scan->normalize = NormalizeAttr::get(
        f.b.getContext(), eps == 0 ? FloatAttr() : f.b.getF64FloatAttr(eps),
        /*floor=*/FloatAttr(), /*abs_floor=*/f.b.getF64FloatAttr(1.0),
        /*clamp=*/FloatAttr());
    return f.finish(*scan);
  };
  return family;
}

//===----------------------------------------------------------------------===//
// Decay per channel
//===----------------------------------------------------------------------===//

static Family gla() {
  Family family;
  family.name = "gla";
  family.title = "Gated linear attention";
  family.formula = "S_t = Diag(e^{g_t}) S_{t-1} Diag(e^{gv_t}) + k_t v_tᵀ,  "
                   "o_t = s S_tᵀq_t";
  family.paper = "Yang et al., Gated Linear Attention Transformers, 2024";
  family.signature =
      "q, k, v, g=None, gv=None, scale=None, initial_state=None, "
      "output_final_state=False, *, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{optional(gate("g", "B T H K", "log decay of keys, ≤ 0")),
                  optional(gate("gv", "B T H V", "log decay of values, ≤ 0")),
                  offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    if (failed(scan))
      return failure();
    scan->decay = f.operand("g");
    scan->valueDecay = f.operand("gv");
    return f.finish(*scan);
  };
  return family;
}

static Family hgrn() {
  Family family;
  family.name = "hgrn";
  family.title = "HGRN";
  family.formula = "h_t = e^{g_t} ⊙ h_{t-1} + x_t,  o_t = h_t";
  family.paper = "Qin et al., Hierarchically Gated Recurrent Network, 2023";
  family.signature = "x, g, initial_state=None, output_final_state=False, *, "
                     "reverse=False";
  family.operands = {tokens("x", "B T V -> B 1 T V", "inputs"),
                     gate("g", "B T V -> B 1 T V", "log decay, ≤ 0"),
                     offsets()};
  family.options = {reverseOption()};
  family.state = {{"initial_state", "N V -> N 1 1 V"}};
  family.output = "B T V -> B 1 T V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FamilyScan scan;
    scan.query = scan.key = f.filled("B 1 T 1", f.tokenType(), 1.0);
    scan.value = f.operand("x");
    scan.valueDecay = f.operand("g");
    scan.reverse = f.flag("reverse");
    return f.finish(scan);
  };
  return family;
}

static Family hgrn2() {
  Family family;
  family.name = "hgrn2";
  family.title = "HGRN2";
  family.formula = "S_t = Diag(f_t) S_{t-1} + (1−f_t) v_tᵀ,  f_t = e^{g_t},  "
                   "o_t = s S_tᵀq_t";
  family.paper = "Qin et al., HGRN2, 2024";
  family.note = "Gated linear attention with 1 − f_t for the keys.";
  family.signature = "q, v, g, scale=None, initial_state=None, "
                     "output_final_state=False, *, reverse=False";
  family.operands = {tokens("q", "B T Hq K", "queries"),
                     tokens("v", "B T H V", "inputs"),
                     gate("g", "B T H K", "log forget gate, ≤ 0"), offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = {"Ho = max(Hq, H)"};
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    if (failed(scan))
      return failure();
    scan->key =
        f.map("B H T K", f.term("g"), f.tokenType(),
              [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                return arith::NegFOp::create(b, math::ExpM1Op::create(b, v[0]));
              });
    scan->decay = f.operand("g");
    return f.finish(*scan);
  };
  return family;
}

/// RWKV-5 and 6 differ in the layout of w only.
static Family rwkv(const char *name, const char *title, const char *w,
                   const char *paper) {
  Family family;
  family.name = name;
  family.title = title;
  family.formula = "o_t = s (S_{t-1}ᵀr_t + (r_t·(u ⊙ k_t)) v_t),  S_t = "
                   "Diag(e^{w_t}) S_{t-1} + k_t v_tᵀ";
  family.paper = paper;
  family.signature = "r, k, v, w, u, scale=None, initial_state=None, "
                     "output_final_state=False, *, reverse=False";
  family.operands = {tokens("r", "B T Hq K", "receptances"),
                     tokens("k", "B T Hk K", "keys"),
                     tokens("v", "B T Hv V", "values"),
                     gate("w", w, "log decay, ≤ 0"),
                     gate("u", "H K", "weight of the token's own key"),
                     offsets()};
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f);
    if (failed(scan))
      return failure();
    scan->query = f.operand("r");
    scan->decay = f.operand("w");
    // A decay for all tokens is broadcast.
    if (f.dimsOf("w") == "H K")
      scan->decay = f.map(
          "B H T K", f.term("w"), f.accumulationType(),
          [](ImplicitLocOpBuilder &, ValueRange v) -> Value { return v[0]; });
    scan->bonus = f.operand("u");
    scan->readout = Readout::Exclusive;
    return f.finish(*scan);
  };
  return family;
}

void mlir::linattn::appendAdditiveFamilies(std::vector<Family> &families) {
  families = families + std::vector{linearAttention(),
                                    rfa(),
                                    retnet(),
                                    lightning(),
                                    simpleGLA(),
                                    mamba2(),
                                    gla(),
                                    mlstm(),
                                    hgrn(),
                                    hgrn2(),
                                    rwkv("rwkv5", "RWKV-5 (Eagle)", "H K",
                                         "Peng et al., Eagle and Finch, 2024"),
                                    rwkv("rwkv6", "RWKV-6 (Finch)", "B T H K",
                                         "Peng et al., Eagle and Finch, 2024")};
}
