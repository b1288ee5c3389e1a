//===- Mamba3.cpp - Keys rotated by cumulative angles ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The trapezoidal rule writes every key twice: λΔ of it at its own token, and
// (1 − λ)Δ of that of the next one there. Let γ_t = λ_t Δ_t and β_t = (1 − λ_t)
// Δ_t. The state without the own write of token t,
//
//   X_t = S_t − γ_t k̃_t v_tᵀ
//       = α_t X_{t-1} + α_t (γ_{t-1} + β_t) k̃_{t-1} v_{t-1}ᵀ
//
// is one scan with a decay per token over the tokens before; the own write is
// read beside it, o_t = X_tᵀq̃_t + γ_t (k̃_t·q̃_t) v_t. No coefficient depends on
// a later token. Of R queries and keys per token each is a step of the scan of
// its own, the decay with the first: the r-th query reads what steps 1 … r have
// written, the rest of that token is added like the own write.
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "Tables.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Builds the function of either family. Shapes have a dimension R where there
/// are several queries per token.
class Mamba3Builder {
public:
  Mamba3Builder(FamilyBuilder &f, bool isMimo)
      : f(f), b(f.b), isMimo(isMimo), type(f.accumulationType()),
        tokens(f.tokenType()), sequences(f), state(f.initialState()) {}

  FailureOr<FamilyResults> build();

private:
  /// Names of dimensions, with R in its place or without it.
  std::string dims(StringRef withRank) const;
  LogicalResult checkAngles();
  /// T·R
  OpFoldResult getSteps();
  void emitAngles();
  void emitCoefficients();
  void emitTokens();
  void scan();
  Value emitDots(Value keys, StringRef coefficientDims, Value coefficients,
                 bool onlyLater);
  Value emitOutput();
  Value emitGate(ImplicitLocOpBuilder &body, Value o, Value z);
  Value emitState();
  /// [B, H, T·R, X] of [B, H, T, R, X], and back.
  Value flatten(Value x);
  Value unflatten(Value x);

  FamilyBuilder &f;
  ImplicitLocOpBuilder &b;
  bool isMimo;
  Type type, tokens;
  SequenceEnds sequences;
  SmallVector<Value, 3> state; ///< θ, S, k̃, v
  int64_t rank = 1;

  Rotation rotation;
  Value lastAngles;
  Value own, before; ///< γ_t, α_t (γ_{t-1} + β_t)
  std::optional<LaggedTokens> lagOwn, lagKeys, lagValues;
  Value queries;                  ///< rotated
  Value keysBefore, valuesBefore; ///< what the scan writes
  Value read, end;                ///< what it reads, its last state
  Value lastKeys, lastValues;
};

} // namespace

std::string Mamba3Builder::dims(StringRef withRank) const {
  std::string result;
  SmallVector<StringRef, 6> names;
  withRank.split(names, ' ');
  for (StringRef name : names)
    if (isMimo || (name != "R" && name != "Q"))
      result += (result.empty() ? "" : " ") + name.str();
  return result;
}

LogicalResult Mamba3Builder::checkAngles() {
  auto size = f.staticExtent("K"), pairs = f.staticExtent("S");
  auto ranks = isMimo ? f.staticExtent("R") : std::optional<int64_t>(1);
  if (!size || !pairs || !ranks)
    return f.fail("Angles: expected static sizes of heads and angles");
  rotation.size = *size, rotation.angles = *pairs, rank = *ranks;
  auto groups = f.staticExtent("G"), heads = f.staticExtent("H");
  if (groups && heads && *groups > *heads)
    return f.fail("V: expected at least as many heads as those of Q and K, " +
                  Twine(*groups) + ", but got " + Twine(*heads));
  if (2 * rotation.angles > rotation.size)
    return f.fail("Angles: expected at most half the head size of K, " +
                  Twine(rotation.size / 2) + ", but got " +
                  Twine(rotation.angles));
  if (isMimo && !f.flag("rotate_pairwise") && rotation.size % 2)
    return f.fail("K: expected an even head size, but got " +
                  Twine(rotation.size));
  return success();
}

OpFoldResult Mamba3Builder::getSteps() {
  if (auto count = f.staticExtent("T"))
    return b.getIndexAttr(*count * rank);
  Value count = getValueOrCreateConstantIndexOp(b, b.getLoc(), f.extent("T"));
  return getAsOpFoldResult(
      arith::MulIOp::create(b, count, arith::ConstantIndexOp::create(b, rank)));
}

/// cos θ and sin θ, θ_t = θ_{t-1} + π tanh(angle_t) Δ_t. Increments and sums
/// are in f64: their errors add up, and θ modulo 2π is all that counts.
void Mamba3Builder::emitAngles() {
  Type wide = b.getF64Type();
  Value increments =
      f.mapAll("B H T S", {f.term("Angles"), f.term("DT")}, wide,
               [&](ImplicitLocOpBuilder &body, ValueRange v) {
                 auto widen = [&](Value x) {
                   return convertFloat(body, body.getLoc(), x, wide);
                 };
                 Value turn =
                     arith::MulFOp::create(body, emitTanh(body, widen(v[0])),
                                           emitConstant(body, wide, M_PI));
                 return SmallVector<Value>{
                     arith::MulFOp::create(body, turn, widen(v[1]))};
               })
          .front();
  RunningSum sum = emitRunningSum(f, "S", increments, state[0]);
  SmallVector<Value> rotated =
      f.mapAll("B H T S", FamilyTerm{sum.sums, "B H T S"}, {type, type},
               [&](ImplicitLocOpBuilder &body, ValueRange v) {
                 auto [sine, cosine] = emitSinCos(body, v[0]);
                 auto narrow = [&](Value x) {
                   return convertFloat(body, body.getLoc(), x, type);
                 };
                 return SmallVector<Value>{narrow(cosine), narrow(sine)};
               });
  rotation.cosines = rotated[0], rotation.sines = rotated[1];
  lastAngles =
      f.mapAll("N H S", FamilyTerm{sum.last, "N H 1 S"}, type,
               [&](ImplicitLocOpBuilder &body, ValueRange v) {
                 Value turns = math::FloorOp::create(
                     body,
                     arith::MulFOp::create(
                         body, v[0], emitConstant(body, wide, 0.5 / M_PI)));
                 Value rest = math::FmaOp::create(
                     body, turns, emitConstant(body, wide, -2.0 * M_PI), v[0]);
                 return SmallVector<Value>{
                     convertFloat(body, body.getLoc(), rest, type)};
               })
          .front();
}

void Mamba3Builder::emitCoefficients() {
  own =
      f.map("B H T", {f.term("Trap"), f.term("DT")}, type,
            [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
              return arith::MulFOp::create(body, emitSigmoid(body, v[0]), v[1]);
            });
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), own);
  lagOwn.emplace(f, sequences, sizes, type, Value());
  lagOwn->fill(own);
  // 1 − sigmoid(x) = sigmoid(−x)
  before = f.map("B H T",
                 {f.term("Trap"),
                  f.term("DT"),
                  f.term("ADT"),
                  {lagOwn->previous(), "B H T"}},
                 type, [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                   Value rest =
                       emitSigmoid(body, arith::NegFOp::create(body, v[0]));
                   Value sum = arith::AddFOp::create(
                       body, arith::MulFOp::create(body, rest, v[1]), v[3]);
                   return arith::MulFOp::create(
                       body, math::ExpOp::create(body, v[2]), sum);
                 });
}

/// Rotated queries and keys; keys and values with those of the token before.
void Mamba3Builder::emitTokens() {
  rotation.pairwise = !isMimo || f.flag("rotate_pairwise");
  std::string from = dims("B G T R K"), to = dims("B H T R K"),
              biasDims = dims("H R K");
  queries =
      emitRotation(f, rotation, {f.operand("Q"), from},
                   {f.operand("Q_bias"), biasDims}, to, f.empty(to, tokens), 0);
  SmallVector<OpFoldResult> keySizes, valueSizes;
  SmallVector<StringRef, 6> names;
  StringRef(to).split(names, ' ');
  for (StringRef name : names)
    keySizes.push_back(f.extent(name));
  for (StringRef name : {"B", "H", "T", "V"})
    valueSizes.push_back(f.extent(name));
  lagKeys.emplace(f, sequences, keySizes, tokens, state[2]);
  lagKeys->rows =
      emitRotation(f, rotation, {f.operand("K"), from},
                   {f.operand("K_bias"), biasDims}, to, lagKeys->rows, 1);
  lagValues.emplace(f, sequences, valueSizes, tokens, state[3]);
  lagValues->fill(f.operand("V"));
}

Value Mamba3Builder::flatten(Value x) {
  if (!isMimo)
    return x;
  SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}, {4}};
  return tensor::CollapseShapeOp::create(b, x, groups);
}

Value Mamba3Builder::unflatten(Value x) {
  if (!isMimo)
    return x;
  SmallVector<OpFoldResult> sizes;
  for (StringRef dim : {"B", "H", "T", "R", "V"})
    sizes.push_back(f.extent(dim));
  SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}, {4}};
  auto from = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape{from.getDimSize(0), from.getDimSize(1),
                             ShapedType::kDynamic, rank, from.getDimSize(3)};
  if (auto count = f.staticExtent("T"))
    shape[2] = *count;
  auto to = RankedTensorType::get(shape, from.getElementType());
  return tensor::ExpandShapeOp::create(b, to, x, groups, sizes);
}

/// One scan over the writes before each token.
void Mamba3Builder::scan() {
  std::string valueDims = dims("B H T R V");
  keysBefore = lagKeys->previous();
  // The coefficients multiply values rather than keys, which are longer.
  SmallVector<FamilyTerm> terms{{lagValues->previous(), "B H T V"},
                                {before, "B H T"}};
  if (isMimo)
    terms.push_back(f.term("MIMO_V"));
  valuesBefore = f.map(valueDims, terms, tokens,
                       [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                         Value x = arith::MulFOp::create(body, v[0], v[1]);
                         if (v.size() == 2)
                           return x;
                         return arith::MulFOp::create(body, x, v[2]);
                       });
  Value decay = f.operand("ADT");
  if (isMimo) {
    // The decay comes with the first step.
    decay = f.map(
        "B H T R", f.term("ADT"), type,
        [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
          Value isFirst = arith::CmpIOp::create(
              body, arith::CmpIPredicate::eq, linalg::IndexOp::create(body, 3),
              arith::ConstantIndexOp::create(body, 0));
          return arith::SelectOp::create(
              body, isFirst, v[0], emitConstant(body, v[0].getType(), 0.0));
        });
    SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}};
    decay = tensor::CollapseShapeOp::create(b, decay, groups);
  }
  FamilyScan scan;
  scan.query = flatten(queries);
  scan.key = flatten(keysBefore);
  scan.value = flatten(valuesBefore);
  scan.decay = decay;
  scan.offsets = scaleOffsets(f, rank);
  scan.state = {state[1]};
  SmallVector<Value, 4> results = f.scan(scan, isMimo ? "B H Tr V" : "B H T V");
  read = unflatten(results[0]);
  end = results[1];
}

/// Coefficients times q̃·k: [B, H, T], or for R queries and keys [B, H, T, R,
/// Q]; 0 for keys that are not later in their token than the query, if they are
/// read already.
Value Mamba3Builder::emitDots(Value keys, StringRef coefficientDims,
                              Value coefficients, bool onlyLater) {
  std::string all = isMimo ? "B H T R Q K" : "B H T K",
              kept = isMimo ? "B H T R Q" : "B H T",
              keyDims = isMimo ? "B H T Q K" : "B H T K",
              queryDims = dims("B H T R K");
  Value dots =
      f.reduce(all, {{queries, queryDims}, {keys, keyDims}}, 0.0,
               [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                 return arith::AddFOp::create(
                     body, v[2], arith::MulFOp::create(body, v[0], v[1]));
               });
  SmallVector<FamilyTerm> terms{{dots, kept}};
  if (coefficients)
    terms.push_back({coefficients, coefficientDims});
  return f.map(
      kept, terms, type,
      [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        if (!onlyLater)
          return arith::MulFOp::create(body, v[0], v[1]);
        Value isLater = arith::CmpIOp::create(body, arith::CmpIPredicate::ugt,
                                              linalg::IndexOp::create(body, 4),
                                              linalg::IndexOp::create(body, 3));
        return arith::SelectOp::create(body, isLater, v[0],
                                       emitConstant(body, v[0].getType(), 0.0));
      });
}

/// silu(z) o
Value Mamba3Builder::emitGate(ImplicitLocOpBuilder &body, Value o, Value z) {
  Value gate = arith::MulFOp::create(body, z, emitSigmoid(body, z));
  return arith::MulFOp::create(body, o, gate);
}

Value Mamba3Builder::emitOutput() {
  Value dots = emitDots(lagKeys->own(), "B H T", own, /*onlyLater=*/false);
  bool hasSkip = f.has("D"), hasGate = f.has("Z");
  auto multiply = [](ImplicitLocOpBuilder &body, Value x, Value y) -> Value {
    return arith::MulFOp::create(body, x, y);
  };
  auto add = [](ImplicitLocOpBuilder &body, Value x, Value y) -> Value {
    return arith::AddFOp::create(body, x, y);
  };
  if (!isMimo) {
    SmallVector<FamilyTerm> terms{
        {read, "B H T V"}, {dots, "B H T"}, f.term("V")};
    if (hasSkip)
      terms.push_back(f.term("D"));
    if (hasGate)
      terms.push_back(f.term("Z"));
    return f.map("B H T V", terms, tokens,
                 [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                   Value weight = hasSkip ? add(body, v[1], v[3]) : v[1];
                   Value o = add(body, v[0], multiply(body, weight, v[2]));
                   return hasGate ? emitGate(body, o, v.back()) : o;
                 });
  }
  // Terms that the scan does not read: later keys of the step, and the token's
  // own.
  Value later = emitDots(keysBefore, "", Value(), /*onlyLater=*/true);
  f.setExtent("Q", b.getIndexAttr(rank));
  StringRef pairs = "B H T R Q";
  SmallVector<FamilyTerm> terms{{later, pairs},
                                {valuesBefore, "B H T Q V"},
                                {dots, pairs},
                                f.term("V"),
                                {f.operand("MIMO_V"), "H Q V"}};
  Value rest = f.reduce(
      "B H T R V Q", terms, 0.0,
      [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        Value sum = add(body, v[5], multiply(body, v[0], v[1]));
        return add(body, sum, multiply(body, v[2], multiply(body, v[3], v[4])));
      });
  SmallVector<FamilyTerm> last{
      {read, "B H T R V"}, {rest, "B H T R V"}, f.term("V"), f.term("MIMO_V")};
  if (hasSkip)
    last.push_back(f.term("D"));
  if (hasGate)
    last.append({f.term("Z"), f.term("MIMO_Z")});
  Value each = f.map(
      "B H T R V", last, type,
      [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        Value o = add(body, v[0], v[1]);
        if (hasSkip)
          o = add(body, o, multiply(body, v[4], multiply(body, v[2], v[3])));
        if (!hasGate)
          return o;
        Value z = multiply(body, v[v.size() - 2], v.back());
        return emitGate(body, o, z);
      });
  Value sum =
      f.reduce("B H T V R", {{each, "B H T R V"}, f.term("MIMO_Out")}, 0.0,
               [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                 return add(body, v[2], multiply(body, v[0], v[1]));
               });
  return f.map("B H T V", FamilyTerm{sum, "B H T V"}, tokens,
               [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
}

/// The final state includes the last token's own write.
Value Mamba3Builder::emitState() {
  std::string keyDims = isMimo ? "N H R K" : "N H K";
  SmallVector<FamilyTerm> terms{
      {lastKeys, keyDims}, {lastValues, "N H V"}, {lagOwn->last(), "N H"}};
  auto product = [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
    Value key = arith::MulFOp::create(body, v[0], v[2]);
    return arith::MulFOp::create(body, key, v[1]);
  };
  if (!isMimo) {
    terms.push_back({end, "N H K V"});
    return f.map("N H K V", terms, type,
                 [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                   return arith::AddFOp::create(body, v[3], product(body, v));
                 });
  }
  terms.push_back(f.term("MIMO_V"));
  Value sum = f.reduce("N H K V R", terms, 0.0,
                       [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                         Value write = arith::MulFOp::create(
                             body, product(body, v), v[3]);
                         return arith::AddFOp::create(body, v[4], write);
                       });
  return f.map("N H K V", {{end, "N H K V"}, {sum, "N H K V"}}, type,
               [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                 return arith::AddFOp::create(body, v[0], v[1]);
               });
}

FailureOr<FamilyResults> Mamba3Builder::build() {
  if (failed(checkAngles()))
    return failure();
  if (isMimo) {
    if (f.has("Z") != f.has("MIMO_Z"))
      return f.fail("MIMO_Z: expected it with Z, and Z with it");
    f.setExtent("Tr", getSteps());
    f.setExtent("Q", b.getIndexAttr(rank));
  }
  emitAngles();
  emitCoefficients();
  emitTokens();
  scan();
  lastKeys = lagKeys->last();
  lastValues = lagValues->last();
  FamilyResults results;
  results.output = emitOutput();
  auto convert = [&](StringRef names, Value x) {
    return f.map(names, FamilyTerm{x, names}, type,
                 [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  };
  results.state = {lastAngles, emitState(),
                   convert(isMimo ? "N H R K" : "N H K", lastKeys),
                   convert("N H V", lastValues)};
  return results;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static const char *const mamba3Paper =
    "Mamba-3: Improved Sequence Modeling using State Space Principles, 2026";

/// Operands that both families have.
static std::vector<FamilyOperand> steps() {
  return {gate("ADT", "B H T", "log decay A Δ, ≤ 0"),
          gate("DT", "B H T", "steps Δ"),
          gate("Trap", "B H T", "λ before its sigmoid"),
          gate("Angles", "B T H S", "rates of the angles before their tanh")};
}

static Family mamba3() {
  Family family;
  family.name = "mamba3";
  family.title = "Mamba-3";
  family.formula =
      "λ = sigmoid(Trap),  θ_t = θ_{t-1} + π tanh(Angles_t) Δ_t,  k̃ = Rot(θ)(K "
      "+ K_bias),  q̃ = Rot(θ)(Q + Q_bias),  S_t = e^{ADT_t} (S_{t-1} + (1−λ_t) "
      "Δ_t k̃_{t-1} v_{t-1}ᵀ) + λ_t Δ_t k̃_t v_tᵀ,  o_t = (S_tᵀq̃_t + D v_t) ⊙ "
      "silu(Z_t)";
  family.paper = mamba3Paper;
  family.note =
      "Rot turns elements 2i and 2i + 1 by the i-th of S angles, 2S ≤ "
      "N; the other elements stay. Names and layouts are those of "
      "`mamba_ssm`. Angles that repeat along H need no copy; those of "
      "the final state are modulo 2π.";
  family.signature = "Q, K, V, ADT, DT, Trap, Q_bias, K_bias, Angles, D=None, "
                     "Z=None, Input_States=None, return_final_states=False";
  family.operands =
      std::vector<FamilyOperand>{tokens("Q", "B T G K", "queries (C)"),
                                 tokens("K", "B T G K", "keys (B)"),
                                 tokens("V", "B T H V", "values (x)")} +
      steps() +
      std::vector{
          optional(gate("Q_bias", "H K", "added to the queries")),
          optional(gate("K_bias", "H K", "added to the keys")),
          optional(gate("D", "H", "skip connection")),
          optional(gate("Z", "B T H V", "gate of the output, through silu")),
          offsets()};
  family.rules = {"Ho = max(G, H)"};
  family.state = {{"angle", "N H S"},
                  {"ssm", "N H V K -> N H K V"},
                  {"k", "N H K"},
                  {"v", "N H V"}};
  family.output = "B T H V";
  family.build = [](FamilyBuilder &f) {
    return Mamba3Builder(f, /*isMimo=*/false).build();
  };
  return family;
}

static Family mamba3Mimo() {
  Family family;
  family.name = "mamba3_mimo";
  family.title = "Mamba-3, several inputs and outputs per state";
  family.formula =
      "as Mamba-3 with R keys and queries per token: S_t = e^{ADT_t} (S_{t-1} "
      "+ "
      "(1−λ_t) Δ_t Σ_r k̃_{t-1,r} (v_{t-1} ⊙ MIMO_V_r)ᵀ) + λ_t Δ_t Σ_r k̃_{t,r} "
      "(v_t ⊙ MIMO_V_r)ᵀ,  o_{t,r} = (S_tᵀq̃_{t,r} + D v_t ⊙ MIMO_V_r) ⊙ "
      "silu(Z_t ⊙ MIMO_Z_r),  o_t = Σ_r MIMO_Out_r ⊙ o_{t,r}";
  family.paper = mamba3Paper;
  family.signature = "Q, K, V, ADT, DT, Trap, Q_bias, K_bias, MIMO_V, MIMO_Z, "
                     "MIMO_Out, Angles, D=None, Z=None, Input_States=None, "
                     "return_final_states=False, *, rotate_pairwise=False";
  family.operands =
      std::vector<FamilyOperand>{
          tokens("Q", "B T R G K -> B G T R K", "queries (C)"),
          tokens("K", "B T R G K -> B G T R K", "keys (B)"),
          tokens("V", "B T H V", "values (x)")} +
      steps() +
      std::vector{
          gate("MIMO_V", "H R V", "what the values are multiplied by"),
          gate("MIMO_Out", "H R V", "what the outputs are multiplied by"),
          optional(gate("Q_bias", "H R K", "added to the queries")),
          optional(gate("K_bias", "H R K", "added to the keys")),
          optional(gate("D", "H", "skip connection")),
          optional(gate("Z", "B T H V", "gate of the output, through silu")),
          optional(gate("MIMO_Z", "H R V", "what Z is multiplied by")),
          offsets()};
  family.options = {flag("rotate_pairwise",
                         "rotate elements 2i and 2i + 1, in place of i and "
                         "i + K/2")};
  family.rules = {"Ho = max(G, H)"};
  family.state = {{"angle", "N H S"},
                  {"ssm", "N H V K -> N H K V"},
                  {"k", "N R H K -> N H R K"},
                  {"v", "N H V"}};
  family.output = "B T H V";
  family.build = [](FamilyBuilder &f) {
    return Mamba3Builder(f, /*isMimo=*/true).build();
  };
  return family;
}

void mlir::linattn::appendMamba3Families(std::vector<Family> &families) {
  families.push_back(mamba3());
  families.push_back(mamba3Mimo());
}
