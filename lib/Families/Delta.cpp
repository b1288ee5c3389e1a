//===- Delta.cpp - Families that correct what a key reads -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "Tables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Parts that these families share
//===----------------------------------------------------------------------===//

static FamilyOption l2normOption() {
  return flag("use_qk_l2norm_in_kernel",
              "q and k are divided by √(x·x + 1e-6)");
}

/// q, k and v with the scale, normalized under the option.
static FailureOr<FamilyScan> startScan(FamilyBuilder &f, StringRef query) {
  FailureOr<Scale> scale = f.scale();
  if (failed(scale))
    return failure();
  bool normalizes = f.flag("use_qk_l2norm_in_kernel");
  FamilyScan scan;
  scan.query = normalizes ? f.l2norm(f.term(query)) : f.operand(query);
  scan.key = normalizes ? f.l2norm(f.term("k")) : f.operand("k");
  scan.value = f.operand("v");
  scan.scale = *scale;
  scan.reverse = f.flag("reverse");
  return scan;
}

static std::vector<FamilyOption> betaOptions() {
  return {flag("use_beta_sigmoid_in_kernel", "β = sigmoid(beta)"),
          flag("allow_neg_eigval", "β = 2 sigmoid(beta)")};
}

/// β under the options; ones if it is absent.
static FailureOr<Value> emitBeta(FamilyBuilder &f,
                                 StringRef defaultDims = "B H T") {
  bool sigmoid = f.flag("use_beta_sigmoid_in_kernel");
  bool negative = f.flag("allow_neg_eigval");
  if (negative && !sigmoid)
    return f.fail("allow_neg_eigval: expected it only with "
                  "use_beta_sigmoid_in_kernel, but got it without");
  if (!f.has("beta"))
    return f.filled(defaultDims, f.accumulationType(), 1.0);
  if (!sigmoid)
    return f.operand("beta");
  return f.map(f.dimsOf("beta"), f.term("beta"), f.accumulationType(),
               [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                 Value beta = emitSigmoid(b, v[0]);
                 if (!negative)
                   return beta;
                 return arith::MulFOp::create(
                     b, beta, emitConstant(b, beta.getType(), 2.0));
               });
}

static std::vector<FamilyOption> gateOptions(bool bounded) {
  std::vector<FamilyOption> options{flag(
      "use_gate_in_kernel", "the decay is −e^{A_log} softplus(g + dt_bias)")};
  if (bounded)
    options.push_back({"lower_bound", std::nullopt,
                       "with use_gate_in_kernel, the decay is lower_bound · "
                       "sigmoid(e^{A_log}(g + dt_bias)); none unless given"});
  return options;
}

static std::vector<FamilyOperand> gateParameters(const char *bias) {
  return {optional(gate("A_log", "H", "for use_gate_in_kernel")),
          optional(gate("dt_bias", bias, "for use_gate_in_kernel"))};
}

/// The decay under the options: g itself or a function of it.
static FailureOr<Value> emitGate(FamilyBuilder &f) {
  std::optional<double> bound = f.number("lower_bound");
  if (!f.flag("use_gate_in_kernel")) {
    for (StringRef name : {"A_log", "dt_bias"})
      if (f.has(name))
        return f.fail(name + ": expected it only with use_gate_in_kernel, but "
                             "got it without");
    if (bound)
      return f.fail("lower_bound: expected it only with use_gate_in_kernel, "
                    "but got it without");
    return f.operand("g");
  }
  bool canBeBounded =
      llvm::any_of(f.family.options, [](const FamilyOption &option) {
        return option.name == "lower_bound";
      });
  bool hasRate = f.has("A_log");
  if (!hasRate && !bound)
    return f.fail(Twine("A_log: expected it with use_gate_in_kernel") +
                  (canBeBounded ? " and no lower_bound" : "") +
                  ", but got none");
  if (bound && !(*bound >= -5.0 && *bound < 0.0))
    return f.fail(
        "lower_bound: expected a number from -5 to below 0, but got " +
        std::to_string(*bound));
  SmallVector<FamilyTerm> terms{f.term("g")};
  for (StringRef name : {"A_log", "dt_bias"})
    if (f.has(name))
      terms.push_back(f.term(name));
  bool hasBias = f.has("dt_bias");
  return f.map(f.dimsOf("g"), terms, f.accumulationType(),
               [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                 Value x = v[0];
                 if (hasBias)
                   x = arith::AddFOp::create(b, x, v.back());
                 if (!hasRate)
                   return arith::MulFOp::create(
                       b, emitConstant(b, x.getType(), *bound),
                       emitSigmoid(b, x));
                 Value rate = math::ExpOp::create(b, v[1]);
                 if (bound)
                   return arith::MulFOp::create(
                       b, emitConstant(b, x.getType(), *bound),
                       emitSigmoid(b, arith::MulFOp::create(b, rate, x)));
                 return arith::MulFOp::create(b, arith::NegFOp::create(b, rate),
                                              emitSoftplus(b, x));
               });
}

//===----------------------------------------------------------------------===//
// Delta rules
//===----------------------------------------------------------------------===//

static FamilyOperand betaOperand() {
  return optional(
      gate("beta", "B T H | B T H V", "step sizes; 1 unless given"));
}

static FailureOr<FamilyResults> buildDelta(FamilyBuilder &f) {
  FailureOr<FamilyScan> scan = startScan(f, "q");
  FailureOr<Value> beta = emitBeta(f);
  if (failed(scan) || failed(beta))
    return failure();
  scan->update = Update::Delta;
  scan->beta = *beta;
  if (f.has("g")) {
    FailureOr<Value> decay = emitGate(f);
    if (failed(decay))
      return failure();
    scan->decay = *decay;
  }
  return f.finish(*scan);
}

static Family deltaRule() {
  Family family;
  family.name = "delta_rule";
  family.title = "DeltaNet";
  family.formula = "S_t = S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀk_t)ᵀ,  o_t = s "
                   "S_tᵀq_t";
  family.paper = "Schlag et al., 2021; Yang et al., Parallelizing Linear "
                 "Transformers with the Delta Rule, 2024";
  family.note = "Keys should be of unit length.";
  family.signature = "q, k, v, beta=None, scale=None, initial_state=None, "
                     "output_final_state=False, use_qk_l2norm_in_kernel=False, "
                     "*, use_beta_sigmoid_in_kernel=False, "
                     "allow_neg_eigval=False, reverse=False";
  family.operands = queryKeyValue() + std::vector{betaOperand(), offsets()};
  family.options = std::vector{scaleOption(), l2normOption()} + betaOptions() +
                   std::vector{reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = buildDelta;
  return family;
}

static Family gatedDeltaRule() {
  Family family;
  family.name = "gated_delta_rule";
  family.title = "Gated DeltaNet";
  family.formula =
      "S' = e^{g_t} S_{t-1},  S_t = S' + β_t k_t (v_t − S'ᵀk_t)ᵀ,  "
      "o_t = s S_tᵀq_t";
  family.paper = "Yang et al., Gated Delta Networks, 2024";
  family.signature =
      "q, k, v, g, beta=None, scale=None, initial_state=None, "
      "output_final_state=False, use_qk_l2norm_in_kernel=False, "
      "*, use_gate_in_kernel=False, A_log=None, dt_bias=None, "
      "use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, "
      "reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{gate("g", "B T H", "log decay, ≤ 0, or its preactivation"),
                  betaOperand()} +
      gateParameters("H") + std::vector{offsets()};
  family.options = std::vector{scaleOption(), l2normOption()} +
                   gateOptions(false) + betaOptions() +
                   std::vector{reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = buildDelta;
  return family;
}

static Family kda() {
  Family family;
  family.name = "kda";
  family.title = "Kimi Delta Attention";
  family.formula = "S' = Diag(e^{g_t}) S_{t-1},  S_t = S' + β_t k_t (v_t − "
                   "S'ᵀk_t)ᵀ,  o_t = s S_tᵀq_t";
  family.paper = "Kimi Team, Kimi Linear, 2025";
  family.signature = "q, k, v, g, beta=None, scale=None, initial_state=None, "
                     "output_final_state=False, use_qk_l2norm_in_kernel=False, "
                     "*, use_gate_in_kernel=False, A_log=None, dt_bias=None, "
                     "lower_bound=None, use_beta_sigmoid_in_kernel=False, "
                     "allow_neg_eigval=False, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{gate("g", "B T H K", "log decay, ≤ 0, or its preactivation"),
                  betaOperand()} +
      gateParameters("H K | H*K") + std::vector{offsets()};
  family.options = std::vector{scaleOption(), l2normOption()} +
                   gateOptions(true) + betaOptions() +
                   std::vector{reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = buildDelta;
  return family;
}

static Family gdn2() {
  Family family;
  family.name = "gdn2";
  family.title = "Gated DeltaNet 2";
  family.formula = "S' = Diag(e^{g_t}) S_{t-1},  S_t = S' + k_t (w_t ⊙ v_t − "
                   "S'ᵀ(b_t ⊙ k_t))ᵀ,  o_t = s S_tᵀq_t";
  family.paper = "flash-linear-attention, gdn2, 2026";
  family.note =
      "The delta rule with a gate b of the erased and a gate w of the "
      "written values.";
  family.signature = "q, k, v, g, b, w, scale=None, initial_state=None, "
                     "output_final_state=False, use_qk_l2norm_in_kernel=False, "
                     "*, use_gate_in_kernel=False, A_log=None, dt_bias=None, "
                     "lower_bound=None, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{gate("g", "B T H K", "log decay, ≤ 0, or its preactivation"),
                  gate("b", "B T H K", "gate of what is erased"),
                  gate("w", "B T H V", "gate of what is written")} +
      gateParameters("H K | H*K") + std::vector{offsets()};
  family.options = std::vector{scaleOption(), l2normOption()} +
                   gateOptions(true) + std::vector{reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f, "q");
    FailureOr<Value> decay = emitGate(f);
    if (failed(scan) || failed(decay))
      return failure();
    scan->update = Update::Delta;
    scan->decay = *decay;
    scan->erase = f.operand("b");
    scan->write = f.operand("w");
    return f.finish(*scan);
  };
  return family;
}

static Family tttLinear() {
  Family family;
  family.name = "ttt_linear";
  family.title = "TTT-linear";
  family.formula = "S_t = S_{t-1} − η_t ∇_S ½‖S_{t-1}ᵀk_t − v_t‖² = S_{t-1} + "
                   "η_t k_t (v_t − S_{t-1}ᵀk_t)ᵀ,  o_t = s S_tᵀq_t";
  family.paper = "Sun et al., Learning to (Learn at Test Time), 2024: "
                 "mini-batches of one token, no inner layer norm";
  family.signature = "q, k, v, eta, scale=None, initial_state=None, "
                     "output_final_state=False, use_qk_l2norm_in_kernel=False, "
                     "*, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{gate("eta", "B T H | B T H 1 -> B H T", "learning rates"),
                  offsets()};
  family.options = {scaleOption(), l2normOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f, "q");
    if (failed(scan))
      return failure();
    scan->update = Update::Delta;
    scan->beta = f.operand("eta");
    return f.finish(*scan);
  };
  return family;
}

static Family gatedOja() {
  Family family;
  family.name = "gated_oja";
  family.title = "Gated Oja";
  family.formula = "S' = S_{t-1} Diag(e^{gv_t}),  S_t = S' + β_t (k_t − S'v_t) "
                   "v_tᵀ,  o_t = s S_tᵀq_t";
  family.paper = "flash-linear-attention, gated_oja_rule, 2025";
  family.note = "The delta rule with keys and values exchanged. Values should "
                "be of unit length.";
  family.signature = "q, k, v, gv=None, beta=None, scale=None, "
                     "initial_state=None, output_final_state=False, "
                     "use_q_l2norm=False, use_k_l2norm=False, *, reverse=False";
  family.operands =
      queryKeyValue() +
      std::vector{optional(gate("gv", "B T H V", "log decay of values, ≤ 0")),
                  optional(gate("beta", "B T H", "step sizes; 1 unless given")),
                  offsets()};
  family.options = {
      scaleOption(), flag("use_q_l2norm", "q is divided by √(q·q + 1e-6)"),
      flag("use_k_l2norm", "k is divided by √(k·k + 1e-6)"), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f, "q");
    FailureOr<Value> beta = emitBeta(f);
    if (failed(scan) || failed(beta))
      return failure();
    if (f.flag("use_q_l2norm"))
      scan->query = f.l2norm(f.term("q"));
    if (f.flag("use_k_l2norm"))
      scan->key = f.l2norm(f.term("k"));
    scan->update = Update::Oja;
    scan->valueDecay = f.operand("gv");
    scan->beta = *beta;
    return f.finish(*scan);
  };
  return family;
}

//===----------------------------------------------------------------------===//
// A general transition of rank one
//===----------------------------------------------------------------------===//

static Family comba() {
  Family family;
  family.name = "comba";
  family.title = "Comba";
  family.formula =
      "S_t = e^{g_t} S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ,  o_t = "
      "s S_tᵀq_t";
  family.paper = "Hu et al., Comba, 2025";
  family.note = "The delta rule, corrected by p before the decay.";
  family.signature =
      "q, k, v, p, g, beta=None, scale=None, initial_state=None, "
      "output_final_state=False, use_qk_l2norm_in_kernel=False";
  family.operands =
      queryKeyValue() +
      std::vector{tokens("p", "B T Hk K", "what is corrected"),
                  gate("g", "B T H", "log decay, ≤ 0"),
                  optional(gate("beta", "B T H", "step sizes; 1 unless given")),
                  offsets()};
  family.options = {scaleOption(),
                    flag("use_qk_l2norm_in_kernel",
                         "q, k and p are divided by √(x·x + 1e-6)")};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f, "q");
    FailureOr<Value> beta = emitBeta(f);
    if (failed(scan) || failed(beta))
      return failure();
    Value p = f.flag("use_qk_l2norm_in_kernel") ? f.l2norm(f.term("p"))
                                                : f.operand("p");
    // a = −p reads the state before the decay. b is βk, and k is written.
    scan->a = f.map("B H T K", FamilyTerm{p, f.dimsOf("p")}, f.tokenType(),
                    [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                      return arith::NegFOp::create(b, v[0]);
                    });
    scan->b = scan->key =
        f.map("B H T K", {{scan->key, f.dimsOf("k")}, {*beta, "B H T"}},
              f.tokenType(), emitProduct);
    scan->decay = f.operand("g");
    scan->update = Update::Dplr;
    scan->transition = Transition::Before;
    return f.finish(*scan);
  };
  return family;
}

/// IPLR, DPLR and RWKV-7: the same recurrence with or without a decay.
static Family generalized(const char *name, const char *title,
                          const char *query, const char *decay,
                          const char *formula, const char *paper) {
  Family family;
  family.name = name;
  family.title = title;
  family.formula = formula;
  family.paper = paper;
  family.operands = {tokens(query, "B T Hq K", "queries"),
                     tokens("k", "B T Hk K", "keys"),
                     tokens("v", "B T Hv V", "values"),
                     gate("a", "B T H K", "reads the state"),
                     gate("b", "B T H K", "writes what a reads")};
  family.signature = "q, k, v, a, b, ";
  if (decay) {
    family.operands.push_back(gate(decay, "B T H K", "log decay, ≤ 0"));
    family.signature += decay + std::string(", ");
  }
  family.signature += "scale=None, initial_state=None, "
                      "output_final_state=False, *, reverse=False";
  family.operands.push_back(offsets());
  family.options = {scaleOption(), reverseOption()};
  family.rules = headRules();
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = [query, decay](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<FamilyScan> scan = startScan(f, query);
    if (failed(scan))
      return failure();
    scan->a = f.operand("a");
    scan->b = f.operand("b");
    if (decay)
      scan->decay = f.operand(decay);
    scan->update = Update::Dplr;
    scan->transition = Transition::Before;
    return f.finish(*scan);
  };
  return family;
}

static Family rwkv7() {
  Family family = generalized(
      "rwkv7", "RWKV-7 (Goose)", "r", "w",
      "S_t = Diag(e^{w_t}) S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ,  o_t = s "
      "S_tᵀr_t;  a = −κ̂, b = κ̂ ⊙ a_icl",
      "Peng et al., RWKV-7 Goose, 2025");
  family.signature = "r, w, k, v, a, b, scale=1.0, initial_state=None, "
                     "output_final_state=False, *, reverse=False";
  family.options.front() = {"scale", FamilyValue(1.0), "1 unless given"};
  return family;
}

//===----------------------------------------------------------------------===//
// Several steps per token
//===----------------------------------------------------------------------===//

/// A token's `x` on its micro-token `step`; zero on the others.
static Value placeOnStep(FamilyBuilder &f, FamilyTerm x, StringRef dims,
                         Type type, int64_t steps, int64_t step) {
  return f.map(
      dims, x, type, [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        Value index = linalg::IndexOp::create(b, 2);
        Value phase = arith::RemUIOp::create(
            b, index, arith::ConstantIndexOp::create(b, steps));
        Value here =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, phase,
                                  arith::ConstantIndexOp::create(b, step));
        Value zero = emitConstant(b, v[0].getType(), 0.0);
        return arith::SelectOp::create(b, here, v[0], zero);
      });
}

static FailureOr<FamilyResults> buildDeltaProduct(FamilyBuilder &f) {
  auto steps = static_cast<int64_t>(f.number("num_householder").value_or(0));
  if (steps < 1)
    return f.fail("num_householder: expected a positive integer, but got " +
                  Twine(steps));
  FailureOr<FamilyScan> scan = startScan(f, "q");
  FailureOr<Value> beta = emitBeta(f, "B H Tn");
  if (failed(scan) || failed(beta))
    return failure();
  scan->update = Update::Delta;
  scan->beta = *beta;
  // The decay is that of the first step, the output that of the last.
  scan->query = placeOnStep(f, {scan->query, "B Hq T K"}, "B Hq Tn K",
                            f.tokenType(), steps, steps - 1);
  if (f.has("g"))
    scan->decay =
        placeOnStep(f, f.term("g"), "B H Tn", f.accumulationType(), steps, 0);
  scan->offsets = scaleOffsets(f, steps);
  scan->state = f.initialState();
  SmallVector<Value, 4> values = f.scan(*scan, "B Ho Tn V");
  SmallVector<OpFoldResult> offsets(4, f.b.getIndexAttr(0)),
      strides(4, f.b.getIndexAttr(1)), sizes;
  for (StringRef dim : {"B", "Ho", "T", "V"})
    sizes.push_back(f.extent(dim));
  offsets[2] = f.b.getIndexAttr(steps - 1);
  strides[2] = f.b.getIndexAttr(steps);
  FamilyResults results;
  results.output =
      tensor::ExtractSliceOp::create(f.b, values[0], offsets, sizes, strides);
  results.state = {values[1]};
  return results;
}

static Family gatedDeltaProduct() {
  Family family;
  family.name = "gated_deltaproduct";
  family.title = "Gated DeltaProduct";
  family.formula =
      "S' = e^{g_t} S_{t-1},  then for i = 1 … n: S' ← S' + β_{t,i} "
      "k_{t,i} (v_{t,i} − S'ᵀk_{t,i})ᵀ,  S_t = S',  o_t = s S_tᵀq_t";
  family.paper = "Siems et al., DeltaProduct, 2025";
  family.signature = "q, k, v, g, beta, num_householder, scale=None, "
                     "initial_state=None, output_final_state=False, "
                     "use_qk_l2norm_in_kernel=False";
  family.operands = {
      tokens("q", "B T Hq K", "queries"),
      tokens("k", "B Tn Hk K", "keys, n in a row for every token"),
      tokens("v", "B Tn Hv V", "values"),
      optional(gate("g", "B T H", "log decay of a token, ≤ 0")),
      optional(gate("beta", "B Tn H", "step sizes; 1 unless given")),
      offsets()};
  family.options = {{"num_householder", std::nullopt, "n, the steps per token",
                     /*isRequired=*/true},
                    scaleOption(),
                    l2normOption()};
  family.rules =
      headRules() + std::vector<std::string>{"Tn = {num_householder} T"};
  family.state = matrixState();
  family.output = "B T Ho V";
  family.build = buildDeltaProduct;
  return family;
}

void mlir::linattn::appendDeltaFamilies(std::vector<Family> &families) {
  families =
      families +
      std::vector{
          deltaRule(),
          gatedDeltaRule(),
          kda(),
          gdn2(),
          gatedOja(),
          tttLinear(),
          comba(),
          rwkv7(),
          gatedDeltaProduct(),
          generalized("iplr", "IPLR", "q", nullptr,
                      "S_t = S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t v_tᵀ,  o_t = s "
                      "S_tᵀq_t",
                      "flash-linear-attention, generalized delta rule, 2024"),
          generalized("dplr", "DPLR", "q", "gk",
                      "S_t = Diag(e^{gk_t}) S_{t-1} + b_t (S_{t-1}ᵀa_t)ᵀ + k_t "
                      "v_tᵀ,  o_t = s S_tᵀq_t",
                      "flash-linear-attention, generalized delta rule, 2024")};
}
