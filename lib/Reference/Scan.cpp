//===- Scan.cpp - The general recurrence, token by token ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step per token and state head, each a few loops over the state:
//
//   Sd = Diag(e^g) S Diag(e^h)
//   r  = X^T a                  X = S (before the decay) or Sd (after it)
//   S' = Sd + b (beta*r)^T + k (beta*w*v)^T
//
// with a = -(erase*k), b = k for the delta rule and beta = w = 1 otherwise. The
// normalizer z is one more column of S, whose values are all one. Oja's rule is
// S' = Sd + (k - Sd v) (beta*v)^T.
//
//===----------------------------------------------------------------------===//

#include "ScanOperands.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

namespace {

/// The recurrence of one sequence and state head, from token to token.
class HeadScan {
public:
  HeadScan(const ScanOperands &x, const ScanOptions &options,
           const Heads &heads, ScanResult &result, int64_t batch, int64_t slot,
           int64_t head);

  /// Consumes token t and writes the outputs of all query heads that read this
  /// state.
  void step(int64_t t);

private:
  bool isWritten(int64_t t) const {
    return !x.mask || x.mask->at({batch, t}) != 0.0;
  }
  void mapKey(int64_t t);
  void openInputGate(int64_t t);
  void rescaleState();
  void decayState(int64_t t);
  void loadTransition(int64_t t);
  void loadValues(int64_t t);
  void readTransition();
  void writeState();
  void writeOja();
  void readOut(int64_t t, bool withBonus);
  double decayAt(int64_t t, int64_t d) const;
  double betaAt(int64_t t, int64_t e) const;

  const ScanOperands &x;
  const ScanOptions &options;
  const Heads &heads;
  ScanResult &result;
  int64_t batch, head, keySize, valueSize;
  bool normalized, stabilized, hasTransition;
  double scale;

  /// This head's part of the state; z and m are null unless they are carried.
  double *S, *z = nullptr, *m = nullptr;
  /// The largest key element including the current token.
  double nextM = 0.0;
  std::vector<double> key, a, b;
  const double *v = nullptr;
  /// For each value column, and for the normalizer as the last: the written
  /// value, the gate of the transition, and the value it reads.
  std::vector<double> values, gate, r;
};

} // namespace

HeadScan::HeadScan(const ScanOperands &x, const ScanOptions &options,
                   const Heads &heads, ScanResult &result, int64_t batch,
                   int64_t slot, int64_t head)
    : x(x), options(options), heads(heads), result(result), batch(batch),
      head(head), keySize(x.k.dim(3)), valueSize(x.v.dim(3)),
      normalized(options.normalize.has_value()),
      stabilized(isStabilized(options.featureMap, normalized)),
      hasTransition(options.update == UpdateRule::Delta ||
                    options.update == UpdateRule::Dplr),
      scale(options.scale.value_or(1.0 / std::sqrt(double(keySize)))),
      S(result.state.S.row({slot, head})), key(keySize), a(keySize), b(keySize),
      values(valueSize + 1), gate(valueSize + 1), r(valueSize + 1) {
  if (normalized)
    z = result.state.z->row({slot, head});
  if (stabilized || x.inputGate)
    m = result.state.m->row({slot, head});
}

void HeadScan::step(int64_t t) {
  bool exclusive = options.readout == Readout::Exclusive;
  mapKey(t);
  // Without a bonus, the exclusive read precedes the change of m, so that token
  // t does not affect its own output, not even through eps.
  if (exclusive && !x.bonus)
    readOut(t, /*withBonus=*/false);
  if (stabilized)
    rescaleState();
  if (x.inputGate)
    openInputGate(t);
  loadValues(t);
  if (exclusive && x.bonus)
    readOut(t, /*withBonus=*/isWritten(t));

  if (hasTransition)
    loadTransition(t);
  bool before =
      options.update == UpdateRule::Dplr &&
      options.transition.value_or(Transition::Before) == Transition::Before;
  if (before)
    readTransition();
  decayState(t);
  if (hasTransition && !before)
    readTransition();
  if (isWritten(t))
    options.update == UpdateRule::Oja ? writeOja() : writeState();
  if (!exclusive)
    readOut(t, /*withBonus=*/false);
}

void HeadScan::mapKey(int64_t t) {
  const double *in = x.k.row({batch, heads.keyOfState(head), t});
  if (!stabilized) {
    mapToken(options.featureMap, in, key.data(), keySize);
    return;
  }
  nextM = *m;
  if (isWritten(t))
    nextM = std::max(nextM, *std::max_element(in, in + keySize));
  for (int64_t d = 0; d < keySize; ++d)
    key[d] = expBelow(in[d], nextM);
}

/// The key times its gate, and the state, relative to the new maximum, which
/// includes the decay: S' e^m' = e^decay S e^m.
void HeadScan::openInputGate(int64_t t) {
  double gate = x.inputGate->at({batch, head, t});
  nextM = *m + decayAt(t, 0);
  if (isWritten(t))
    nextM = std::max(nextM, gate);
  for (int64_t d = 0; d < keySize; ++d)
    key[d] *= expBelow(gate, nextM);
  double factor = rescale(*m + decayAt(t, 0), nextM);
  for (int64_t i = 0; i < keySize * valueSize; ++i)
    S[i] *= factor;
  for (int64_t d = 0; d < keySize; ++d)
    z[d] *= factor;
  *m = nextM;
}

/// Expresses the state relative to the new maximum.
void HeadScan::rescaleState() {
  double factor = rescale(*m, nextM);
  for (int64_t i = 0; i < keySize * valueSize; ++i)
    S[i] *= factor;
  for (int64_t d = 0; d < keySize; ++d)
    z[d] *= factor;
  *m = nextM;
}

double HeadScan::decayAt(int64_t t, int64_t d) const {
  switch (x.decay ? x.decay->rank() : 0) {
  case 0:
    return 0.0;
  case 1:
    return x.decay->at({head});
  case 3:
    return x.decay->at({batch, head, t});
  default:
    return x.decay->at({batch, head, t, d});
  }
}

double HeadScan::betaAt(int64_t t, int64_t e) const {
  if (!x.beta)
    return 1.0;
  if (x.beta->rank() == 3)
    return x.beta->at({batch, head, t});
  return x.beta->at({batch, head, t, e});
}

void HeadScan::decayState(int64_t t) {
  if (x.inputGate)
    return; // done
  for (int64_t d = 0; d < keySize; ++d) {
    double factor = std::exp(decayAt(t, d));
    for (int64_t e = 0; e < valueSize; ++e) {
      double h = x.valueDecay ? x.valueDecay->at({batch, head, t, e}) : 0.0;
      S[d * valueSize + e] *= factor * std::exp(h);
    }
    if (normalized)
      z[d] *= factor;
  }
}

void HeadScan::loadTransition(int64_t t) {
  for (int64_t d = 0; d < keySize; ++d) {
    if (options.update == UpdateRule::Dplr) {
      a[d] = x.a->at({batch, head, t, d});
      b[d] = x.b->at({batch, head, t, d});
      continue;
    }
    a[d] = -key[d] * (x.erase ? x.erase->at({batch, head, t, d}) : 1.0);
    b[d] = key[d];
  }
}

void HeadScan::loadValues(int64_t t) {
  v = x.v.row({batch, heads.valueOfState(head), t});
  for (int64_t e = 0; e < valueSize; ++e) {
    gate[e] = betaAt(t, e);
    values[e] = gate[e] * v[e];
    if (x.write)
      values[e] *= x.write->at({batch, head, t, e});
  }
  // A normalized scan has one beta per token.
  gate[valueSize] = values[valueSize] = normalized ? betaAt(t, 0) : 0.0;
}

void HeadScan::readTransition() {
  for (int64_t e = 0; e < valueSize; ++e) {
    r[e] = 0.0;
    for (int64_t d = 0; d < keySize; ++d)
      r[e] += a[d] * S[d * valueSize + e];
  }
  r[valueSize] = normalized ? dot(a.data(), z, keySize) : 0.0;
}

void HeadScan::writeState() {
  for (int64_t d = 0; d < keySize; ++d) {
    for (int64_t e = 0; e <= valueSize; ++e) {
      if (e == valueSize && !normalized)
        break;
      double &element = e < valueSize ? S[d * valueSize + e] : z[d];
      if (hasTransition)
        element += b[d] * gate[e] * r[e];
      element += key[d] * values[e];
    }
  }
}

void HeadScan::writeOja() {
  for (int64_t d = 0; d < keySize; ++d) {
    double *row = S + d * valueSize, error = key[d];
    for (int64_t e = 0; e < valueSize; ++e)
      error -= row[e] * v[e];
    for (int64_t e = 0; e < valueSize; ++e)
      row[e] += error * values[e];
  }
}

void HeadScan::readOut(int64_t t, bool withBonus) {
  std::vector<double> q(keySize);
  int64_t group = heads.output / heads.state;
  for (int64_t i = head * group; i < (head + 1) * group; ++i) {
    const double *in = x.q.row({batch, heads.queryOfOutput(i), t});
    // A query's own factor cancels in the quotient.
    if (stabilized)
      mapTokenStabilized(in, q.data(), keySize);
    else
      mapToken(options.featureMap, in, q.data(), keySize);

    double self = 0.0;
    for (int64_t d = 0; withBonus && d < keySize; ++d)
      self += q[d] * x.bonus->at({head, d}) * key[d];
    double den = 0.0;
    if (normalized) {
      den = scale * dot(q.data(), z, keySize);
      if (withBonus)
        den += scale * self * values[valueSize];
    }
    double *out = result.o.row({batch, i, t});
    for (int64_t e = 0; e < valueSize; ++e) {
      double num = 0.0;
      for (int64_t d = 0; d < keySize; ++d)
        num += scale * q[d] * S[d * valueSize + e];
      if (withBonus)
        num += scale * self * values[e];
      // With the Exp map only the quotient is known; with a gate, both parts
      // are.
      double known = x.inputGate ? *m : 0.0;
      out[e] = normalized ? normalizeValue(num, den, *options.normalize, known)
                          : num;
    }
  }
}

Result<ScanResult> scan(const ScanOperands &operands,
                        const ScanOptions &options,
                        const std::optional<State> &initial) {
  Result<Heads> heads = checkScan(operands, options, initial);
  if (!heads)
    return Error{heads.error()};

  int64_t batch = operands.q.dim(0), length = operands.q.dim(2);
  int64_t keySize = operands.k.dim(3), valueSize = operands.v.dim(3);
  int64_t states = countStates(operands);
  ScanResult result{Array({batch, heads->output, length, valueSize}), {}};
  if (initial) {
    result.state = *initial;
  } else {
    result.state.S = Array({states, heads->state, keySize, valueSize});
    if (options.normalize)
      result.state.z = Array({states, heads->state, keySize});
    if (carriesMaximum(operands, options))
      result.state.m = Array({states, heads->state}, lowest);
  }
  for (int64_t slot = 0; slot < states; ++slot) {
    const auto &offsets = operands.cuSeqlens;
    int64_t begin = offsets ? (*offsets)[slot] : 0;
    int64_t end = offsets ? (*offsets)[slot + 1] : length;
    for (int64_t head = 0; head < heads->state; ++head) {
      HeadScan recurrence(operands, options, *heads, result, offsets ? 0 : slot,
                          slot, head);
      for (int64_t t = begin; t < end; ++t)
        recurrence.step(options.reverse ? begin + end - 1 - t : t);
    }
  }
  return result;
}

} // namespace linattn::reference
