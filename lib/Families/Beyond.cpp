//===- Beyond.cpp - Families that the scan cannot say ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

static SmallVector<Type> typesOf(ArrayRef<Value> values) {
  return llvm::map_to_vector(values, [](Value v) { return v.getType(); });
}

//===----------------------------------------------------------------------===//
// Mamba-1
//===----------------------------------------------------------------------===//

static Family selectiveScan() {
  Family family;
  family.name = "selective_scan";
  family.title = "Mamba-1 selective scan";
  family.formula = "h_t = e^{Δ_t A} ⊙ h_{t-1} + Δ_t B_t u_t,  o_t = (C_t·h_t + "
                   "D u_t) silu(z_t)";
  family.paper = "Gu and Dao, Mamba, 2023";
  family.operands = {
      tokens("u", "B C T", "inputs"),
      gate("delta", "B C T", "steps"),
      gate("A", "C S", "decay rates of the S states of each channel, < 0"),
      gate("B", "B S T|B G S T|C S", "input projections"),
      gate("C", "B S T|B G S T|C S", "output projections"),
      optional(gate("D", "C", "what goes past the states")),
      optional(gate("z", "B C T", "gate of the output, through silu")),
      optional(gate("delta_bias", "C", "added to the steps")),
      optional(gate("A_imag", "C S", "imaginary part of A, with `complex`")),
      optional(gate("B_imag", "B S T|B G S T|C S", "imaginary part of B")),
      optional(gate("C_imag", "B S T|B G S T|C S", "imaginary part of C")),
  };
  family.options = {
      flag("delta_softplus", "steps go through softplus"),
      flag("complex", "states are complex; the output is Re C·h")};
  family.state = {{"initial_state", "N C S"},
                  {"initial_imag", "N C S", "complex"}};
  family.output = "B C T";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    SmallVector<Value> inits{f.empty("B T C", f.tokenType())};
    llvm::append_range(inits, f.initialState());
    Value none, imaginary = inits.size() > 2 ? inits[2] : none;
    auto op = SelectiveScanOp::create(
        f.b, typesOf(inits), f.operand("u"), f.operand("delta"), f.operand("A"),
        f.operand("B"), f.operand("C"), f.operand("A_imag"),
        f.operand("B_imag"), f.operand("C_imag"), f.operand("D"),
        f.operand("z"), f.operand("delta_bias"), none, inits[0], inits[1],
        imaginary, f.flag("delta_softplus"), /*reverse=*/false);
    FamilyResults results{op->getResult(0), {}};
    llvm::append_range(results.state, op->getResults().drop_front());
    return results;
  };
  return family;
}

//===----------------------------------------------------------------------===//
// RWKV-4
//===----------------------------------------------------------------------===//

static Family rwkv4() {
  Family family;
  family.name = "rwkv4";
  family.title = "RWKV-4";
  family.formula = "o_t = (A_{t-1} + e^{u+k_t} v_t) / (B_{t-1} + e^{u+k_t}),  "
                   "A_t = e^w A_{t-1} + e^{k_t} v_t,  B_t = e^w B_{t-1} + "
                   "e^{k_t}";
  family.paper = "Peng et al., RWKV, 2023";
  family.signature =
      "w, u, k, v, initial_state=None, output_final_state=False, "
      "*, reverse=False";
  family.hasForms = false;
  family.operands = {tokens("k", "B T C", "keys"),
                     tokens("v", "B T C", "values"),
                     gate("w", "C", "log decay, ≤ 0"),
                     gate("u", "C", "bonus of the current token"), offsets()};
  family.options = {reverseOption()};
  family.state = {{"num", "N C"},
                  {"den", "N C"},
                  {"m", "N C", "", -std::numeric_limits<double>::infinity()}};
  family.output = "B T C";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    ImplicitLocOpBuilder &b = f.b;
    SmallVector<Value, 3> parts = f.initialState();
    SmallVector<OpFoldResult> shape{f.extent("N"), b.getIndexAttr(3),
                                    f.extent("C")};
    SmallVector<OpFoldResult> sizes(shape), strides(3, b.getIndexAttr(1));
    sizes[1] = b.getIndexAttr(1);
    auto at = [&](int64_t part) {
      return SmallVector<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(part),
                                       b.getIndexAttr(0)};
    };
    Value state = tensor::EmptyOp::create(b, shape, f.accumulationType());
    for (auto [index, part] : llvm::enumerate(parts))
      state = tensor::InsertSliceOp::create(b, part, state, at(index), sizes,
                                            strides);
    SmallVector<Value> inits{f.empty("B T C", f.tokenType()), state};
    auto op =
        Wkv4Op::create(b, typesOf(inits), f.operand("k"), f.operand("v"),
                       f.operand("w"), f.operand("u"), f.operand("cu_seqlens"),
                       inits[0], inits[1], f.flag("reverse"));
    FamilyResults results{op->getResult(0), {}};
    for (auto [index, part] : llvm::enumerate(parts))
      results.state.push_back(tensor::ExtractSliceOp::create(
          b, cast<RankedTensorType>(part.getType()), op->getResult(1),
          at(index), sizes, strides));
    return results;
  };
  return family;
}

//===----------------------------------------------------------------------===//
// Log-linear attention
//===----------------------------------------------------------------------===//

static Family logLinear() {
  Family family;
  family.name = "log_linear";
  family.title = "Log-linear attention";
  family.formula = "o_t = s Σ_{j≤t} λ_t[ℓ(t,j)] e^{g_{j+1}+…+g_t} (q_t·k_j) "
                   "v_j,  ℓ(t,j) = bits of t xor j";
  family.paper = "Guo et al., Log-Linear Attention, 2025";
  family.note = "One state per level of a tree over the past. 1 + the bits of "
                "the last position are enough levels; `position` counts the "
                "tokens that the states have seen.";
  family.signature =
      "q, k, v, g, level_scales, scale=None, initial_state=None, "
      "output_final_state=False";
  family.hasForms = false;
  family.operands = queryKeyValue() +
                    std::vector{gate("g", "B T H", "log decay, ≤ 0"),
                                gate("level_scales", "B T H L",
                                     "weight of each level; what is beyond the "
                                     "last belongs to the last")};
  family.options = {scaleOption()};
  family.rules = headRules();
  family.state = {{"levels", "N H L K V"}, {"position", "N"}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<Scale> scale = f.scale();
    if (failed(scale))
      return failure();
    if (scale->getValue())
      return f.fail("scale: expected an option for log_linear, whose op takes "
                    "no operand for it, but got an argument");
    ImplicitLocOpBuilder &b = f.b;
    SmallVector<Value, 3> state = f.initialState();
    Type i64 = b.getI64Type();
    SmallVector<OpFoldResult> sequences{f.extent("N")};
    Value counts = tensor::EmptyOp::create(b, sequences, i64);
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(1));
    SmallVector<utils::IteratorType> loops{utils::IteratorType::parallel};
    Value position = linalg::GenericOp::create(
                         b, counts.getType(), state[1], counts, maps, loops,
                         [&](OpBuilder &body, Location loc, ValueRange v) {
                           Value count =
                               arith::FPToSIOp::create(body, loc, i64, v[0]);
                           linalg::YieldOp::create(body, loc, count);
                         })
                         .getResult(0);
    SmallVector<Value> inits{f.empty("B Ho T V", f.tokenType()), state[0]};
    auto op = LogLinearOp::create(
        b, typesOf(inits), f.operand("q"), f.operand("k"), f.operand("v"),
        f.operand("g"), f.operand("level_scales"), position, Value(), inits[0],
        inits[1], scale->getAttr(b));
    Value length =
        getValueOrCreateConstantIndexOp(b, b.getLoc(), f.extent("T"));
    length = arith::SIToFPOp::create(
        b, f.accumulationType(), arith::IndexCastOp::create(b, i64, length));
    Value next = f.map("N", {{state[1], "N"}}, f.accumulationType(),
                       [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                         return arith::AddFOp::create(body, v[0], length);
                       });
    return FamilyResults{op->getResult(0), {op->getResult(1), next}};
  };
  return family;
}

//===----------------------------------------------------------------------===//
// LRU
//===----------------------------------------------------------------------===//

namespace {

/// Tokens per block. States are kept for one block at a time.
constexpr int64_t lruBlock = 64;

/// The factors of an LRU's tokens, in the accumulation type. λ and the
/// recurrence are in f64: a mode that remembers thousands of tokens multiplies
/// by λ as often.
struct LruWeights {
  Value decay, phase;      ///< [S], f64
  Value inReal, inImag;    ///< [S, D], times γ
  Value outReal, outMinus; ///< [D, S], the latter −Im C
};

} // namespace

static LruWeights emitLruWeights(FamilyBuilder &f) {
  Type type = f.accumulationType(), wide = f.b.getF64Type();
  auto exp = [](ImplicitLocOpBuilder &b, Value x) -> Value {
    return math::ExpOp::create(b, x);
  };
  auto wideExp = [&](ImplicitLocOpBuilder &b, Value x) -> Value {
    return exp(b, convertFloat(b, b.getLoc(), x, wide));
  };
  LruWeights w;
  w.decay = f.map("S", {f.term("nu_log")}, wide,
                  [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                    return arith::NegFOp::create(b, wideExp(b, v[0]));
                  });
  w.phase = f.map(
      "S", {f.term("theta_log")}, wide,
      [&](ImplicitLocOpBuilder &b, ValueRange v) { return wideExp(b, v[0]); });
  // γ = √(1 − |λ|²) unless given, with 1 − e^{2 log|λ|} by expm1.
  Value gamma;
  if (f.has("gamma_log"))
    gamma = f.map(
        "S", {f.term("gamma_log")}, type,
        [&](ImplicitLocOpBuilder &b, ValueRange v) { return exp(b, v[0]); });
  else
    gamma = f.map("S", {{w.decay, "S"}}, type,
                  [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                    Value twice = arith::AddFOp::create(b, v[0], v[0]);
                    Value rest = arith::NegFOp::create(
                        b, math::ExpM1Op::create(b, twice));
                    return math::SqrtOp::create(b, rest);
                  });
  auto input = [&](StringRef name) {
    return f.map("S D", {f.term(name), {gamma, "S"}}, type, emitProduct);
  };
  w.inReal = input("B_re");
  w.inImag = input("B_im");
  w.outReal = f.map("D S", {f.term("C_re")}, type,
                    [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  w.outMinus = f.map("D S", {f.term("C_im")}, type,
                     [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                       return arith::NegFOp::create(b, v[0]);
                     });
  return w;
}

/// y and the next states for a few tokens u [B, n, D].
static SmallVector<Value> emitLruBlock(FamilyBuilder &f, OpBuilder &b,
                                       Location loc, const LruWeights &w,
                                       Value u, ArrayRef<OpFoldResult> sizes,
                                       ValueRange states) {
  Type type = f.accumulationType();
  SmallVector<OpFoldResult> inner{sizes[0], sizes[1], f.extent("S")};
  auto project = [&](Value weight) {
    return einsum(b, loc, "btd,sd->bts", u, weight,
                  filled(b, loc, inner, type, 0.0));
  };
  SmallVector<Value> inits;
  for (int part = 0; part < 2; ++part)
    inits.push_back(tensor::EmptyOp::create(b, loc, inner, type));
  inits.append({states[0], states[1]});
  auto scan = DiagonalScanOp::create(b, loc, typesOf(inits), project(w.inReal),
                                     project(w.inImag), w.decay, w.phase,
                                     Value(), inits[0], inits[1], inits[2],
                                     inits[3], /*reverse=*/false);
  Value y = einsum(b, loc, "bts,ds->btd", scan->getResult(0), w.outReal,
                   filled(b, loc, sizes, type, 0.0));
  y = einsum(b, loc, "bts,ds->btd", scan->getResult(1), w.outMinus, y);
  SmallVector<Value> inputs{y};
  std::string subscripts = "btd";
  if (f.has("D")) {
    inputs.append({u, f.operand("D")});
    subscripts += ",btd,d";
  }
  Value o =
      elementwise(b, loc, subscripts + "->btd", inputs,
                  tensor::EmptyOp::create(b, loc, sizes, f.tokenType()),
                  [&](OpBuilder &body, Location loc, ValueRange v) -> Value {
                    Value sum = v[0];
                    if (f.has("D"))
                      sum = arith::AddFOp::create(
                          body, loc, sum,
                          arith::MulFOp::create(
                              body, loc, convertFloat(body, loc, v[1], type),
                              convertFloat(body, loc, v[2], type)));
                    return convertFloat(body, loc, sum, f.tokenType());
                  });
  return {o, scan->getResult(2), scan->getResult(3)};
}

static FailureOr<FamilyResults> buildLruBlocks(FamilyBuilder &f) {
  ImplicitLocOpBuilder &b = f.b;
  LruWeights weights = emitLruWeights(f);
  SmallVector<Value> initial{f.empty("B T D", f.tokenType())};
  // Two values [B, S], f64 between blocks.
  auto convertStates = [&](ValueRange states, Type type) {
    return llvm::map_to_vector(states, [&](Value state) -> Value {
      return f.map("N S", {{state, "N S"}}, type,
                   [&](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
    });
  };
  initial.append(convertStates(f.initialState(), b.getF64Type()));
  Value length = getValueOrCreateConstantIndexOp(b, b.getLoc(), f.extent("T"));
  Value block = arith::ConstantIndexOp::create(b, lruBlock);
  SmallVector<OpFoldResult> whole{f.extent("B"), f.extent("T"), f.extent("D")};
  auto loop = scf::ForOp::create(
      b, arith::ConstantIndexOp::create(b, 0), length, block, initial,
      [&](OpBuilder &body, Location loc, Value first, ValueRange carried) {
        Value count = arith::MinSIOp::create(
            body, loc, arith::SubIOp::create(body, loc, length, first), block);
        SmallVector<OpFoldResult> sizes(whole), at(3, body.getIndexAttr(0)),
            strides(3, body.getIndexAttr(1));
        sizes[1] = count;
        at[1] = first;
        Value u = tensor::ExtractSliceOp::create(body, loc, f.operand("u"), at,
                                                 sizes, strides);
        SmallVector<Value> next =
            emitLruBlock(f, body, loc, weights, u, sizes, carried.drop_front());
        next[0] = tensor::InsertSliceOp::create(body, loc, next[0], carried[0],
                                                at, sizes, strides);
        scf::YieldOp::create(body, loc, next);
      });
  return FamilyResults{
      loop.getResult(0),
      convertStates(loop.getResults().drop_front(), f.accumulationType())};
}

static Family lru() {
  Family family;
  family.name = "lru";
  family.title = "LRU";
  family.formula =
      "h_t = λ ⊙ h_{t-1} + γ ⊙ B u_t,  o_t = Re(C h_t) + D ⊙ u_t,  "
      "λ = e^{−e^ν + i e^θ}";
  family.paper = "Orvieto et al., Resurrecting Recurrent Neural Networks for "
                 "Long Sequences, 2023";
  family.note =
      "h is kept for 64 tokens at a time. λ and h are float64: a mode "
      "that remembers thousands of tokens multiplies by λ as often.";
  family.signature = "u, nu_log, theta_log, B_re, B_im, C_re, C_im, "
                     "gamma_log=None, D=None, initial_state=None, "
                     "output_final_state=False";
  family.hasForms = false;
  family.operands = {
      tokens("u", "B T D", "inputs"),
      gate("nu_log", "S", "ν: log(−log|λ|)"),
      gate("theta_log", "S", "θ: log of the angle of λ"),
      gate("B_re", "S D", "input matrix"),
      gate("B_im", "S D", "its imaginary part"),
      gate("C_re", "D S", "output matrix"),
      gate("C_im", "D S", "its imaginary part"),
      optional(gate("gamma_log", "S", "log γ; γ = √(1 − |λ|²) unless given")),
      optional(gate("D", "D", "what goes past the states"))};
  family.state = {{"h_re", "N S"}, {"h_im", "N S"}};
  family.output = "B T D";
  family.build = buildLruBlocks;
  return family;
}

void mlir::linattn::appendBeyondFamilies(std::vector<Family> &families) {
  families =
      families + std::vector{selectiveScan(), rwkv4(), logLinear(), lru()};
}
