//===- Momentum.cpp - The delta rule with momentum ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The write of a token depends on S, which the momentum of all tokens before
// has moved: the transition of [S; M] is two scalar decays that are coupled and
// a matrix of rank one, for which linattn.scan has no update. The variable S +
// cM that would uncouple them grows like the quotient of the decays. So this is
// a loop over the tokens, of three operations on the states each.
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The body of the family. Operands are in the accumulation type, with one head
/// per state.
class MomentumLoop {
public:
  explicit MomentumLoop(FamilyBuilder &f)
      : f(f), b(f.b), type(f.accumulationType()) {}

  FailureOr<FamilyResults> emit();

private:
  Value unit(StringRef name);
  Value at(Value x, Value t);
  SmallVector<Value> step(Value t, ValueRange carried);

  FamilyBuilder &f;
  ImplicitLocOpBuilder &b;
  Type type;
  Value queries, keys, corrections, values;
  Value alpha, mu, beta, eta; ///< [B, H, T]
};

} // namespace

/// q, k or p in the accumulation type, normalized under the option.
Value MomentumLoop::unit(StringRef name) {
  StringRef dims = f.dimsOf(name);
  Value x = f.map(dims, f.term(name), type,
                  [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  return f.flag("use_qk_l2norm_in_kernel") ? f.l2norm({x, dims}) : x;
}

/// x at token t, without the dimension of the tokens.
Value MomentumLoop::at(Value x, Value t) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), x);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[2] = t;
  sizes[2] = b.getIndexAttr(1);
  auto whole = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(whole.getShape());
  shape.erase(shape.begin() + 2);
  return tensor::ExtractSliceOp::create(
      b, RankedTensorType::get(shape, whole.getElementType()), x, offsets,
      sizes, strides);
}

/// The next S, M and outputs.
SmallVector<Value> MomentumLoop::step(Value t, ValueRange carried) {
  Value S = carried[0], M = carried[1];
  auto multiplyAdd = [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
    return arith::AddFOp::create(body, v[2],
                                 arith::MulFOp::create(body, v[0], v[1]));
  };
  Value found =
      f.reduce("B H V K", {{S, "B H K V"}, {at(corrections, t), "B Hk K"}}, 0.0,
               multiplyAdd);
  bool decays = f.flag("use_p_times_alpha");
  // −η (v − Sᵀp), the update of M under the key.
  Value write = f.map(
      "B H V",
      {{found, "B H V"},
       {at(values, t), "B Hv V"},
       {at(eta, t), "B H"},
       {at(alpha, t), "B H"}},
      type, [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
        Value read =
            decays ? arith::MulFOp::create(body, v[0], v[3]).getResult() : v[0];
        return arith::MulFOp::create(body, v[2],
                                     arith::SubFOp::create(body, read, v[1]));
      });
  AffineMap all = b.getMultiDimIdentityMap(4);
  MLIRContext *context = b.getContext();
  AffineExpr batch = getAffineDimExpr(0, context),
             head = getAffineDimExpr(1, context),
             row = getAffineDimExpr(2, context),
             column = getAffineDimExpr(3, context);
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(4, 0, exprs, context);
  };
  AffineExpr keyHead = head.floorDiv(f.ratio("H", "Hk"));
  AffineMap scalar = map({batch, head});
  SmallVector<Value> inputs{at(keys, t), write, at(alpha, t), at(mu, t),
                            at(beta, t)};
  SmallVector<AffineMap> maps{map({batch, keyHead, row}),
                              map({batch, head, column}),
                              scalar,
                              scalar,
                              scalar,
                              all,
                              all};
  SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
  auto states = linalg::GenericOp::create(
      b, TypeRange{S.getType(), M.getType()}, inputs, ValueRange{S, M}, maps,
      loops, [&](OpBuilder &builder, Location loc, ValueRange v) {
        ImplicitLocOpBuilder body(loc, builder);
        auto times = [&](Value x, Value y) -> Value {
          return arith::MulFOp::create(body, x, y);
        };
        Value moment =
            arith::AddFOp::create(body, times(v[3], v[6]), times(v[0], v[1]));
        Value next =
            arith::SubFOp::create(body, times(v[2], v[5]), times(v[4], moment));
        linalg::YieldOp::create(body, ValueRange{next, moment});
      });
  Value read =
      f.reduce("B Ho V K",
               {{states.getResult(0), "B H K V"}, {at(queries, t), "B Hq K"}},
               0.0, multiplyAdd);
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)),
      strides(4, b.getIndexAttr(1)), sizes;
  for (StringRef dim : {"B", "Ho", "T", "V"})
    sizes.push_back(f.extent(dim));
  offsets[2] = t;
  sizes[2] = b.getIndexAttr(1);
  Value output = tensor::InsertSliceOp::create(b, read, carried[2], offsets,
                                               sizes, strides);
  return {states.getResult(0), states.getResult(1), output};
}

FailureOr<FamilyResults> MomentumLoop::emit() {
  FailureOr<Scale> scale = f.scale();
  if (failed(scale))
    return failure();
  auto convert = [&](StringRef dims, Value x) {
    return f.map(dims, FamilyTerm{x, dims}, type,
                 [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  };
  queries = f.map(f.dimsOf("q"), FamilyTerm{unit("q"), f.dimsOf("q")}, type,
                  [&](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                    return scale->apply(body, body.getLoc(), v[0]);
                  });
  keys = unit("k");
  corrections = f.has("p") ? unit("p") : keys;
  values = f.operand("v");
  auto exponential = [&](StringRef name) {
    return f.map("B H T", f.term(name), type,
                 [](ImplicitLocOpBuilder &body, ValueRange v) -> Value {
                   return math::ExpOp::create(body, v[0]);
                 });
  };
  alpha = exponential("log_alpha");
  mu = exponential("log_mu");
  auto orOnes = [&](StringRef name) {
    return f.has(name) ? convert("B H T", f.operand(name))
                       : f.filled("B H T", type, 1.0);
  };
  beta = orOnes("beta");
  eta = orOnes("eta");

  SmallVector<Value, 3> state = f.initialState();
  Value tokens = getValueOrCreateConstantIndexOp(b, b.getLoc(), f.extent("T"));
  SmallVector<Value> initial{state[0], state[1], f.empty("B Ho T V", type)};
  auto loop =
      scf::ForOp::create(b, arith::ConstantIndexOp::create(b, 0), tokens,
                         arith::ConstantIndexOp::create(b, 1), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, step(loop.getInductionVar(), loop.getRegionIterArgs()));
  }
  Value output = loop.getResult(2);
  if (type != f.tokenType())
    output = f.map("B Ho T V", FamilyTerm{output, "B Ho T V"}, f.tokenType(),
                   [](ImplicitLocOpBuilder &, ValueRange v) { return v[0]; });
  return FamilyResults{output, {loop.getResult(0), loop.getResult(1)}};
}

static Family momentumDeltaRule() {
  Family family;
  family.name = "momentum_delta_rule";
  family.title = "Momentum DeltaNet";
  family.formula =
      "M_t = e^{log_mu_t} M_{t-1} − η_t k_t (v_t − S_{t-1}ᵀp_t)ᵀ,  S_t = "
      "e^{log_alpha_t} S_{t-1} − β_t M_t,  o_t = s S_tᵀq_t;  p_t is times "
      "e^{log_alpha_t} with use_p_times_alpha";
  family.paper = "Momentum DeltaNet, 2026; flash-linear-attention, "
                 "momentum_delta_rule, 2026";
  family.signature =
      "q, k, v, log_alpha, log_mu, p=None, beta=None, eta=None, "
      "scale=None, initial_state=None, output_final_state=False, "
      "use_qk_l2norm_in_kernel=True, use_p_times_alpha=True";
  family.hasForms = false;
  family.operands =
      queryKeyValue() +
      std::vector{
          gate("log_alpha", "B T H", "log decay of S, ≤ 0"),
          gate("log_mu", "B T H", "log decay of M, ≤ 0"),
          optional(gate("p", "B T Hk K", "what is corrected; k unless given")),
          optional(
              gate("beta", "B T H", "how far S follows M; 1 unless given")),
          optional(gate("eta", "B T H", "step sizes; 1 unless given"))};
  family.options = {scaleOption(),
                    {"use_qk_l2norm_in_kernel", FamilyValue(1.0),
                     "q, k and p are divided by √(x·x + 1e-6)"},
                    {"use_p_times_alpha", FamilyValue(1.0),
                     "p is multiplied by the decay of S"}};
  family.rules = headRules();
  family.state = {{"delta", "N H K V"}, {"momentum", "N H K V"}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) { return MomentumLoop(f).emit(); };
  return family;
}

void mlir::linattn::appendMomentumFamilies(std::vector<Family> &families) {
  families.push_back(momentumDeltaRule());
}
