//===- ScanGradient.cpp - The gradient of a recurrence as recurrences -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/Gradients.md derives the equations. In short, with G_t the cotangent of
// S_t after its read and H_t = e^{g_t} ⊙ (cotangent of Sd_t) that of S_{t-1}:
// H is a scan from the last token to the first. Its keys are queries times the
// decay of their token, so an exclusive read gives the effect of token t on all
// later ones. Its effect on itself is added apart, and adds to no decay.
//
//===----------------------------------------------------------------------===//

#include "ChunkGradient.h"
#include "GradientModel.h"
#include "OpGradients.h"
#include "ScanNormalForm.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Transforms/Forms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// A scan to be built. Values that are absent are null.
struct ScanSpec {
  Value query, key, value, decay, valueDecay, a, b, state;
  Scale scale = {};
  bool inclusive = false, reverse = false;
  bool decayWrites = false; ///< Of a sweep.
};

/// The gradient of one scan in normal form: additive or dplr, equal heads,
/// tokens of the state's type, no mask, feature map or normalizer.
class ScanGradient {
public:
  ScanGradient(ScanOp op, OpBuilder &b, Cotangents &c)
      : op(op), b(b), c(c),
        t(b, op.getLoc(), getElementTypeOrSelf(op.getState())),
        q(op.getQuery()), k(op.getKey()), v(op.getValue()), g(op.getDecay()),
        h(op.getValueDecay()), a(op.getA()), e(op.getB()), scale(Scale::of(op)),
        keyScale(scale), inclusive(op.getReadout() == Readout::Inclusive),
        after(op.getTransition() == Transition::After), isShared(a && e == k),
        isPlain(inclusive && !g && !h && !a), reverse(op.getReverse()) {}

  void build();

private:
  // Scans
  std::pair<Value, Value> scan(const ScanSpec &spec);
  SmallVector<Value, 3> sweep(const ScanSpec &spec, Value valueQuery);
  ConfigAttr getConfig(const ScanSpec &spec);
  Value readTransposed(Value key, Value value, Value query, Value start,
                       bool backward, Scale factor);
  Value readForward(Value query, Scale factor);
  Value suffixSums(Value x, Value start, bool isExclusive);
  // Steps
  void prepare();
  void readCotangent();
  void addTokens();
  void addTransition();
  void addBonus();
  void addDecay();
  void addValueDecay();
  void addGate(Value gate, char letter, Value seen, Value unseen);

  Value dot(Value x, Value y, Scale factor = {}) {
    return t.product("bhtd,bhtd->bht", x, y, factor);
  }
  Value times(Value x, Value y) {
    return arith::MulFOp::create(b, op.getLoc(), x, y);
  }
  /// The value written under the key: v, or v + r of a transition that writes
  /// it.
  Value written() { return isShared ? t.add(v, r) : v; }
  bool isActive(Value value) const { return value && c.isActive(value); }
  /// Whether one sweep reads H along its keys and its values: not where columns
  /// decay, too.
  bool sweepsCotangent() const {
    return (isActive(k) || isActive(g)) && !h && (a || isActive(v));
  }

  ScanOp op;
  OpBuilder &b;
  Cotangents &c;
  TensorBuilder t;
  Value q, k, v, g, h, a, e; ///< `e` is the op's b.
  Scale scale = {};
  Scale keyScale, readScale; ///< Their product is the scale of H' k.
  bool inclusive, after;
  bool isShared;             ///< The transition writes the key.
  bool isPlain;              ///< Nothing decays: inclusive reads are exact.
  bool decaysWrites = false; ///< The sweep of H decays what it writes.
  bool reverse;

  Value dO, dS;     ///< Cotangents of the output and of the final state.
  Value r;          ///< The read of the transition.
  Value hKey;       ///< What H writes for a query, and with which values.
  Value hValue;     ///< dO, as it meets the state before the token.
  Value hA;         ///< What H writes for a.
  Value dr;         ///< Cotangent of r.
  Value keyRead;    ///< H' k.
  Value queryLater; ///< dq without the token's own write.
  Value aRead;      ///< da.
  Value writesRead; ///< H times what the key writes.
  Value eRead;      ///< H r, where the transition does not write the key.
};

} // namespace

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// A schedule that the caller named holds for the gradient where it is legal.
ConfigAttr ScanGradient::getConfig(const ScanSpec &spec) {
  std::optional<ConfigAttr> config = op.getConfig();
  if (!config)
    return {};
  switch (config->getForm()) {
  case Form::Token:
    return *config;
  case Form::StateTile:
    return spec.a ? ConfigAttr() : *config;
  case Form::Chunk:
    return spec.valueDecay ? ConfigAttr() : *config;
  default:
    return {};
  }
}

/// Output and final state.
std::pair<Value, Value> ScanGradient::scan(const ScanSpec &spec) {
  SmallVector<OpFoldResult> shape = t.sizes(spec.query);
  shape[3] = t.dim(spec.value, 3);
  Value none, state = spec.state;
  if (!state)
    state = t.zeros({t.dim(op.getState(), 0), t.dim(spec.key, 1),
                     t.dim(spec.key, 3), t.dim(spec.value, 3)});
  Value output = tensor::EmptyOp::create(b, op.getLoc(), shape,
                                         getElementTypeOrSelf(spec.query));
  auto built = ScanOp::create(
      b, op.getLoc(), TypeRange{output.getType(), state.getType()}, spec.query,
      spec.key, spec.value, spec.decay, spec.valueDecay, none, spec.a, spec.b,
      none, none, none, none, none, op.getCuSeqlens(), none,
      spec.scale.getValue(), output, state, none, none, ValueRange(),
      spec.a ? Update::Dplr : Update::Add,
      spec.inclusive ? Readout::Inclusive : Readout::Exclusive,
      spec.a ? Transition::Before : Transition::After, spec.reverse,
      IntegerAttr(), FeatureMapAttr(), NormalizeAttr(), spec.scale.getAttr(b),
      getConfig(spec));
  return {built.getResult(0), built.getResult(1)};
}

/// Output, factor · H x for the state H that the scan carries, its final state.
SmallVector<Value, 3> ScanGradient::sweep(const ScanSpec &spec,
                                          Value valueQuery) {
  // The scan says how it is built.
  auto built = scan(spec).first.getDefiningOp<ScanOp>();
  Value output = built.getOutput();
  Value valueOutput = tensor::EmptyOp::create(
      b, op.getLoc(), t.sizes(spec.query), getElementTypeOrSelf(spec.query));
  auto sweep = SweepOp::create(
      b, op.getLoc(),
      TypeRange{output.getType(), valueOutput.getType(),
                built.getState().getType()},
      built.getQuery(), built.getKey(), built.getValue(), built.getDecay(),
      built.getA(), built.getB(), valueQuery, built.getCuSeqlens(), output,
      valueOutput, built.getState(), built.getReadout(), built.getReverse(),
      spec.decayWrites, built.getScaleAttr(), built.getConfigAttr());
  built.erase();
  return SmallVector<Value, 3>(sweep.getResults());
}

/// factor · S x for the state S that `key` and `value` write, `start` to begin
/// with: the scan of the transposed state, whose keys and values, and their
/// decays, are exchanged.
Value ScanGradient::readTransposed(Value key, Value value, Value query,
                                   Value start, bool backward, Scale factor) {
  ScanSpec spec;
  spec.query = query;
  spec.key = value;
  spec.value = key;
  if (start && !isZeroFill(start))
    spec.state = t.transposed(start);
  spec.scale = factor;
  spec.inclusive = isPlain;
  spec.reverse = backward;
  if (g && cast<ShapedType>(g.getType()).getRank() == 4)
    spec.valueDecay = g;
  else
    spec.decay = g;
  if (h && spec.decay)
    spec.decay =
        t.map("bhtv," + subscriptsOfGate(g, 'v') + "->bhtv", {h, g},
              [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                return arith::AddFOp::create(nested, at, x[0], x[1]);
              });
  else if (h)
    spec.decay = h;
  return scan(spec).first;
}

/// factor · S x, of the state before the token.
Value ScanGradient::readForward(Value query, Scale factor) {
  Value read =
      readTransposed(k, written(), query, op.getState(), reverse, factor);
  if (a && !isShared)
    read = t.add(read, readTransposed(e, r, query, {}, reverse, factor));
  return read;
}

/// Sums of x over a token and all later ones (all later ones alone), behind
/// `start`: a scan of one row, in f64.
Value ScanGradient::suffixSums(Value x, Value start, bool isExclusive) {
  TensorBuilder wide(b, op.getLoc(), b.getF64Type());
  SmallVector<OpFoldResult> sizes = t.sizes(x);
  ScanSpec spec;
  spec.state = wide.zeros(
      {t.dim(op.getState(), 0), sizes[1], b.getIndexAttr(1), sizes[3]});
  if (start)
    spec.state = wide.map("bhd,bhod->bhod", {start, spec.state});
  spec.value = x;
  spec.inclusive = !isExclusive;
  spec.reverse = !reverse;
  sizes[3] = b.getIndexAttr(1);
  spec.query = spec.key =
      filled(b, op.getLoc(), sizes, getElementTypeOrSelf(x), 1.0);
  return scan(spec).first;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Builds the operands of the gradient's scans.
void ScanGradient::prepare() {
  dO = c.get(op.getResult(0));
  dS = c.get(op.getResult(1));
  if (!dO)
    dO = t.zeros(t.sizes(op.getOutput()));
  hValue = inclusive ? t.timesExp(dO, h) : dO;
  // Where the state of H does not matter, its reads take the scale instead of a
  // pass over the queries, and a sweep their decay. A sweep takes a constant.
  decaysWrites = inclusive && g && !a && sweepsCotangent();
  if ((isPlain || decaysWrites) && !dS && !isActive(op.getState()) &&
      !scale.getValue())
    std::swap(readScale, keyScale);
  hKey = t.timesExp(q, inclusive && !decaysWrites ? g : Value(), keyScale);
  if (!a)
    return;
  // r = Sd' a = S' (e^g ⊙ a), of the state before the token.
  hA = after ? t.timesExp(a, g) : t.convert(a);
  ScanSpec spec{hA, k, v, g, h, hA, e, op.getState()};
  spec.reverse = reverse;
  // The gradient of the query also reads the state before the token.
  if (isActive(q) || isActive(g)) {
    SmallVector<Value, 3> results = sweep(spec, hValue);
    r = results[0];
    queryLater = results[1];
  } else {
    r = scan(spec).first;
  }
}

/// H from the last token to the first: dS_0, and its reads of k and e.
void ScanGradient::readCotangent() {
  ScanSpec spec;
  spec.query = k;
  spec.key = hKey;
  spec.value = hValue;
  spec.decay = g;
  spec.valueDecay = h;
  spec.state = dS;
  spec.scale = readScale;
  spec.inclusive = isPlain;
  spec.reverse = !reverse;
  if (a) {
    // H = e^g ⊙ (H + s q do') + a (H'e + s (q·e) do)'
    spec.a = t.convert(e);
    spec.b = hA;
    if (inclusive)
      spec.key = t.addScaled(hKey, dot(q, e, scale), hA);
  }
  Value start;
  // The same sweep reads the key's write.
  if (sweepsCotangent()) {
    spec.decayWrites = decaysWrites;
    SmallVector<Value, 3> results = sweep(spec, written());
    keyRead = results[0];
    writesRead = results[1];
    start = results[2];
  } else {
    std::tie(keyRead, start) = scan(spec);
  }
  c.add(b, op.getState(), start);
  if (!a)
    return;
  dr = keyRead;
  if (!isShared) {
    spec.query = t.convert(e);
    if (isActive(e) || isActive(g)) {
      SmallVector<Value, 3> results = sweep(spec, r);
      dr = results[0];
      eRead = results[1];
    } else {
      dr = scan(spec).first;
    }
  }
  if (inclusive)
    dr = t.addScaled(dr, dot(q, e, scale), dO);
}

void ScanGradient::addTokens() {
  bool hasOwn = inclusive && !isPlain;
  Value own = written();
  if (isActive(v)) {
    if (isShared)
      c.add(b, v, dr);
    else
      c.add(b, v,
            hasOwn ? t.addScaled(keyRead, dot(q, k, scale), dO) : keyRead);
  }
  if (isActive(k) || isActive(g)) {
    if (!writesRead)
      writesRead = readTransposed(hKey, hValue, own, dS, !reverse, readScale);
    c.add(b, k,
          hasOwn ? t.addScaled(writesRead, dot(own, dO, scale), t.convert(q))
                 : writesRead);
  }
  if (isActive(q) || isActive(g)) {
    // A sweep has not scaled it.
    Scale factor = queryLater ? scale : Scale();
    if (!queryLater)
      queryLater = readForward(hValue, scale);
    queryLater = t.timesExp(queryLater, hasOwn ? g : Value(), factor);
    Value dq = queryLater;
    if (hasOwn)
      dq = t.addScaled(dq, dot(own, dO, scale), k);
    if (hasOwn && a && !isShared)
      dq = t.addScaled(dq, dot(r, dO, scale), e);
    c.add(b, q, dq);
  }
}

void ScanGradient::addTransition() {
  if (!a)
    return;
  if (isActive(a) || isActive(g)) {
    aRead = readForward(dr, 1.0);
    if (after)
      aRead = t.timesExp(aRead, g);
    c.add(b, a, aRead);
  }
  if (!isShared && (isActive(e) || isActive(g))) {
    c.add(b, e,
          inclusive ? t.addScaled(eRead, dot(r, dO, scale), t.convert(q))
                    : eRead);
  }
}

/// o_t takes s (q·(u ⊙ k)) v.
void ScanGradient::addBonus() {
  Value u = op.getBonus();
  if (!u)
    return;
  auto multiply = [](OpBuilder &nested, Location at, ValueRange x) -> Value {
    Value product = arith::MulFOp::create(nested, at, x[0], x[1]);
    for (Value factor : x.drop_front(2))
      product = arith::MulFOp::create(nested, at, product, factor);
    return product;
  };
  Value weight = dot(v, dO, scale);
  if (isActive(q))
    c.add(b, q, t.map("bht,hd,bhtd->bhtd", {weight, u, k}, multiply));
  if (isActive(k))
    c.add(b, k, t.map("bht,hd,bhtd->bhtd", {weight, u, q}, multiply));
  if (isActive(u))
    c.add(b, u, t.sum("bht,bhtd,bhtd->hd", {weight, q, k}, multiply));
  if (isActive(v)) {
    Value score = t.sum("bhtd,hd,bhtd->bht", {q, u, k}, multiply);
    Value own = t.product("bht,bhtd->bhtd", score, dO, scale);
    c.add(b, v, own);
  }
}

/// x summed over its last dimension, which stays with one element.
static Value sumFeatures(TensorBuilder &t, Value x) {
  auto rank = cast<ShapedType>(x.getType()).getRank();
  return t.sum(rank == 4 ? "bhtd->bhto" : "bhd->bho", x);
}

/// Per token, reads that see the decay add and writes subtract; per gate, the
/// sum over the token and all later ones, behind rowsum(S_T ⊙ dS_T). Reads that
/// come before the decay of their token (`unseen`) count from the next one on.
void ScanGradient::addGate(Value gate, char letter, Value seen, Value unseen) {
  auto type = cast<RankedTensorType>(gate.getType());
  // Sums over features are in f64 too.
  TensorBuilder wide(b, op.getLoc(), b.getF64Type());
  auto reduce = [&](Value x) {
    return x && type.getRank() != 4 ? sumFeatures(wide, x) : x;
  };
  Value start;
  if (dS)
    start =
        reduce(t.product(letter == 'k' ? "bhkv,bhkv->bhk" : "bhkv,bhkv->bhv",
                         op.getResult(1), dS));
  seen = reduce(seen);
  unseen = reduce(unseen);
  Value d = suffixSums(t.add(seen, unseen), start, bool(unseen));
  if (unseen)
    d = t.add(d, seen);
  if (type.getRank() != 4)
    d = wide.sum(type.getRank() == 3 ? "bhtd->bht" : "bhtd->h", d);
  c.add(b, gate,
        TensorBuilder(b, op.getLoc(), type.getElementType()).convert(d));
}

void ScanGradient::addDecay() {
  if (!isActive(g))
    return;
  Value seen, unseen;
  (inclusive ? seen : unseen) = times(t.convert(q), queryLater);
  if (a)
    (after ? seen : unseen) =
        t.add(after ? seen : unseen, times(t.convert(a), aRead));
  seen = t.sub(seen, times(t.convert(k), writesRead));
  if (eRead)
    seen = t.sub(seen, times(t.convert(e), eRead));
  addGate(g, 'k', seen, unseen);
}

void ScanGradient::addValueDecay() {
  if (!isActive(h))
    return;
  // The output without the token's own write.
  ScanSpec spec{
      inclusive ? t.timesExp(q, g) : q, k, v, g, h, {}, {}, op.getState()};
  spec.scale = scale;
  spec.reverse = reverse;
  Value output = scan(spec).first;
  if (inclusive)
    output = t.timesExp(output, h);
  Value seen, unseen;
  (inclusive ? seen : unseen) = times(output, dO);
  addGate(h, 'v', t.sub(seen, times(v, keyRead)), unseen);
}

void ScanGradient::build() {
  prepare();
  readCotangent();
  addTokens();
  addTransition();
  addBonus();
  addDecay();
  addValueDecay();
}

LogicalResult mlir::linattn::buildScanGradient(ScanOp op, OpBuilder &b,
                                               Cotangents &c) {
  if (failed(checkScanGradient(op)))
    return failure();
  if (c.chunks.tokens) {
    std::string why = whyNoChunkGradient(op, c);
    if (why.empty()) {
      remark::passed(op.getLoc(), remarkNamed("differentiate"))
          << llvm::formatv("its gradient is a loop over chunks of {0} tokens",
                           c.chunks.tokens)
                 .str();
      addScaleGradient(op, b, c);
      buildChunkGradient(op, b, c);
      return success();
    }
    remark::missed(op.getLoc(), remarkNamed("differentiate"))
        << ("its gradient is scans and sweeps: " + why);
  }
  if (needsNormalForm(op)) {
    bool keepsStates = llvm::any_of(
        op->getResults().take_back(op.getSnapshots().size()),
        [&](Value snapshots) { return c.get(snapshots) != nullptr; });
    return differentiateThrough(b, op, c, [&](OpBuilder &at) {
      return FailureOr<SmallVector<Value>>(
          buildNormalForm(op, at, keepsStates));
    });
  }
  addScaleGradient(op, b, c);
  ScanGradient(op, b, c).build();
  return success();
}
