//===- Recurrences.cpp - Recurrences per channel, in float64 --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Recurrences.h"

#include "Detail.h"

#include <algorithm>
#include <complex>

namespace linattn::reference {

using namespace detail;

using Complex = std::complex<double>;
using Shape = std::vector<int64_t>;

/// Checks for [B, T, C].
static Status checkChannels(const Array &array, const std::string &name) {
  if (array.rank() != 3)
    return expected(name + " [B, T, C]", toString(array.shape));
  return checkData(array, name);
}

/// The state as numbers, 0 unless given.
static std::vector<Complex> toComplex(const std::optional<ComplexState> &state,
                                      size_t size) {
  std::vector<Complex> result(size);
  for (size_t i = 0; state && i < size; ++i)
    result[i] = {state->real.data[i],
                 state->imaginary ? state->imaginary->data[i] : 0.0};
  return result;
}

static ComplexState fromComplex(const std::vector<Complex> &numbers,
                                const Shape &shape, bool isComplex) {
  ComplexState state{Array(shape)};
  if (isComplex)
    state.imaginary = Array(shape);
  for (size_t i = 0; i < numbers.size(); ++i) {
    state.real.data[i] = numbers[i].real();
    if (isComplex)
      state.imaginary->data[i] = numbers[i].imag();
  }
  return state;
}

static Status checkInitial(const std::optional<ComplexState> &initial,
                           const Shape &shape, bool isComplex) {
  if (!initial)
    return std::nullopt;
  if (Status error = checkShape(initial->real, "initial state", {shape}))
    return error;
  if (initial->imaginary.has_value() != isComplex)
    return expected(isComplex ? "a complex initial state"
                              : "a real initial state",
                    isComplex ? "a real one" : "a complex one");
  return checkOptional(initial->imaginary, "imaginary initial state", {shape});
}

//===----------------------------------------------------------------------===//
// Selective scan
//===----------------------------------------------------------------------===//

static Status checkSelectiveScan(const SelectiveScanOperands &x) {
  if (Status error = checkChannels(x.u, "u"))
    return error;
  Shape tokens = x.u.shape, channels{x.u.dim(2)};
  if (x.a.rank() != 2)
    return expected("a [C, N]", toString(x.a.shape));
  Shape states{x.u.dim(2), x.a.dim(1)};
  if (Status error = checkShape(x.a, "a", {states}))
    return error;
  if (Status error = checkShape(x.delta, "delta", {tokens, channels}))
    return error;
  auto checkProjection = [&](const Array &array, const char *name) -> Status {
    Shape perToken{tokens[0], tokens[1], states[1]};
    if (array.rank() != 4)
      return checkShape(array, name, {states, perToken});
    int64_t groups = array.dim(1);
    if (groups < 1 || tokens[2] % groups != 0)
      return expected(std::string("groups of ") + name +
                          " that divide the channels",
                      std::to_string(groups));
    return checkShape(array, name, {{tokens[0], groups, tokens[1], states[1]}});
  };
  if (Status error = checkProjection(x.b, "b"))
    return error;
  if (Status error = checkProjection(x.c, "c"))
    return error;
  if (!x.aImag && (x.bImag || x.cImag))
    return expected("imaginary parts of b and c with one of a", "none of a");
  if (Status error = checkOptional(x.aImag, "imaginary a", {states}))
    return error;
  if (Status error = checkOptional(x.bImag, "imaginary b", {x.b.shape}))
    return error;
  if (Status error = checkOptional(x.cImag, "imaginary c", {x.c.shape}))
    return error;
  if (Status error = checkOptional(x.skip, "skip", {channels}))
    return error;
  if (Status error = checkOptional(x.gate, "gate", {tokens}))
    return error;
  return checkOptional(x.deltaBias, "delta bias", {channels});
}

/// Entry n of a projection at one token and channel.
static Complex projectionAt(const Array &real,
                            const std::optional<Array> &imaginary, int64_t b,
                            int64_t t, int64_t c, int64_t channels, int64_t n) {
  int64_t at = real.rank() == 2 ? real.offset({c, n})
               : real.rank() == 3
                   ? real.offset({b, t, n})
                   : real.offset({b, c * real.dim(1) / channels, t, n});
  return {real.data[at], imaginary ? imaginary->data[at] : 0.0};
}

Result<SelectiveScanResult>
selectiveScan(const SelectiveScanOperands &x,
              const SelectiveScanOptions &options,
              const std::optional<ComplexState> &initial) {
  if (Status error = checkSelectiveScan(x))
    return *error;
  int64_t batch = x.u.dim(0), length = x.u.dim(1), channels = x.u.dim(2);
  int64_t states = x.a.dim(1);
  Shape shape{batch, channels, states};
  if (Status error = checkInitial(initial, shape, x.aImag.has_value()))
    return *error;
  std::vector<Complex> h = toComplex(initial, batch * channels * states);
  Array o(x.u.shape);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t step = 0; step < length; ++step) {
      int64_t t = options.reverse ? length - 1 - step : step;
      for (int64_t c = 0; c < channels; ++c) {
        double u = x.u.at({b, t, c});
        double delta =
            x.delta.rank() == 1 ? x.delta.at({c}) : x.delta.at({b, t, c});
        if (x.deltaBias)
          delta += x.deltaBias->at({c});
        if (options.deltaSoftplus)
          delta = std::max(delta, 0.0) + std::log1p(std::exp(-std::abs(delta)));
        double y = 0.0;
        for (int64_t n = 0; n < states; ++n) {
          Complex a(x.a.at({c, n}), x.aImag ? x.aImag->at({c, n}) : 0.0);
          Complex &state = h[(b * channels + c) * states + n];
          state = std::exp(delta * a) * state +
                  delta * u * projectionAt(x.b, x.bImag, b, t, c, channels, n);
          y +=
              (projectionAt(x.c, x.cImag, b, t, c, channels, n) * state).real();
        }
        if (x.skip)
          y += x.skip->at({c}) * u;
        if (x.gate) {
          double z = x.gate->at({b, t, c});
          y *= z / (1.0 + std::exp(-z));
        }
        o.at({b, t, c}) = y;
      }
    }
  return SelectiveScanResult{o, fromComplex(h, shape, x.aImag.has_value())};
}

//===----------------------------------------------------------------------===//
// Diagonal scan
//===----------------------------------------------------------------------===//

Result<DiagonalScanResult>
diagonalScan(const DiagonalScanOperands &x, bool reverse,
             const std::optional<ComplexState> &initial) {
  if (Status error = checkChannels(x.x, "x"))
    return *error;
  int64_t batch = x.x.dim(0), length = x.x.dim(1), channels = x.x.dim(2);
  std::vector<Shape> gates{{channels}, x.x.shape};
  if (Status error = checkShape(x.decay, "decay", gates))
    return *error;
  if (Status error = checkOptional(x.phase, "phase", gates))
    return *error;
  if (x.xImag && !x.phase)
    return expected("an imaginary x with a phase", "no phase");
  if (Status error = checkOptional(x.xImag, "imaginary x", {x.x.shape}))
    return *error;
  bool isComplex = x.phase.has_value();
  Shape shape{batch, channels};
  if (Status error = checkInitial(initial, shape, isComplex))
    return *error;
  auto gateAt = [&](const Array &gate, int64_t b, int64_t t, int64_t c) {
    return gate.rank() == 1 ? gate.at({c}) : gate.at({b, t, c});
  };
  std::vector<Complex> state = toComplex(initial, batch * channels);
  std::vector<Complex> h(x.x.data.size());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t step = 0; step < length; ++step) {
        int64_t t = reverse ? length - 1 - step : step;
        int64_t at = x.x.offset({b, t, c});
        Complex log(gateAt(x.decay, b, t, c),
                    x.phase ? gateAt(*x.phase, b, t, c) : 0.0);
        Complex input(x.x.data[at], x.xImag ? x.xImag->data[at] : 0.0);
        Complex &now = state[b * channels + c];
        now = std::exp(log) * now + input;
        h[at] = now;
      }
  return DiagonalScanResult{fromComplex(h, x.x.shape, isComplex),
                            fromComplex(state, shape, isComplex)};
}

//===----------------------------------------------------------------------===//
// WKV of RWKV-4
//===----------------------------------------------------------------------===//

Result<Wkv4Result> wkv4(const Wkv4Operands &x, bool reverse,
                        const std::optional<Array> &initial) {
  if (Status error = checkChannels(x.k, "k"))
    return *error;
  int64_t batch = x.k.dim(0), length = x.k.dim(1), channels = x.k.dim(2);
  if (Status error = checkShape(x.v, "v", {x.k.shape}))
    return *error;
  if (Status error = checkShape(x.decay, "decay", {{channels}}))
    return *error;
  if (Status error = checkShape(x.bonus, "bonus", {{channels}}))
    return *error;
  Array state({batch, 3, channels});
  if (Status error = checkOptional(initial, "initial state", {state.shape}))
    return *error;
  if (initial)
    state = *initial;
  Array o(x.k.shape);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c) {
      double &num = state.at({b, 0, c}), &den = state.at({b, 1, c}),
             &m = state.at({b, 2, c});
      if (!initial)
        m = lowest;
      for (int64_t step = 0; step < length; ++step) {
        int64_t t = reverse ? length - 1 - step : step;
        double k = x.k.at({b, t, c}), v = x.v.at({b, t, c});
        double own = x.bonus.at({c}) + k, top = std::max(m, own);
        double past = expBelow(m, top), fresh = expBelow(own, top);
        double weight = past * den + fresh;
        o.at({b, t, c}) =
            weight == 0.0 ? 0.0 : (past * num + fresh * v) / weight;
        double next = std::max(m + x.decay.at({c}), k);
        past = expBelow(m + x.decay.at({c}), next);
        fresh = expBelow(k, next);
        num = past * num + fresh * v;
        den = past * den + fresh;
        m = next;
      }
    }
  return Wkv4Result{o, state};
}

} // namespace linattn::reference
