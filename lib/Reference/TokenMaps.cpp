//===- TokenMaps.cpp - Feature maps of whole tokens -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/TokenMaps.h"
#include "Detail.h"

#include <algorithm>
#include <numeric>

namespace linattn::reference {

using namespace detail;

namespace {

using Vector = std::vector<double>;

/// A token's view of the parameters.
struct Context {
  const TokenMap &map;
  int64_t head;
  double position;

  /// The start of the parameter for this head; `rank` is that of a shared one.
  const double *parameter(size_t index, int64_t rank) const {
    const Array &array = map.parameters[index];
    return array.rank() == rank ? array.data.data() : array.row({head});
  }
  int64_t rows(size_t index) const {
    const Array &array = map.parameters[index];
    return array.dim(array.rank() - 2);
  }
  /// W x
  Vector project(size_t index, const Vector &x) const {
    const double *w = parameter(index, 2);
    Vector z(rows(index));
    int64_t d = static_cast<int64_t>(x.size());
    for (size_t r = 0; r < z.size(); ++r)
      z[r] = dot(w + r * d, x.data(), d);
    return z;
  }
  double eps(double otherwise) const { return map.eps.value_or(otherwise); }
};

double square(const Vector &x) {
  return dot(x.data(), x.data(), static_cast<int64_t>(x.size()));
}

/// [x, −x]
Vector mirrored(const Vector &x) {
  Vector both = x;
  for (double value : x)
    both.push_back(-value);
  return both;
}

Vector exponentials(Vector x) {
  for (double &value : x)
    value = std::exp(value);
  return x;
}

Vector softmaxOf(Vector x) {
  double most = *std::max_element(x.begin(), x.end()), sum = 0.0;
  for (double &value : x) {
    value = std::exp(value - most);
    sum += value;
  }
  for (double &value : x)
    value /= sum;
  return x;
}

// This comparison keeps a NaN.
double positive(double x) { return x < 0.0 ? 0.0 : x; }

//===----------------------------------------------------------------------===//
// The maps
//===----------------------------------------------------------------------===//

Vector softmax(const Vector &x, const Context &) { return softmaxOf(x); }

Vector l2norm(const Vector &x, const Context &context) {
  Vector out = x;
  for (double &value : out)
    value /= std::sqrt(square(x) + context.eps(1e-6));
  return out;
}

Vector sumNorm(const Vector &x, const Context &context) {
  Vector out = x;
  for (double &value : out)
    value /= std::accumulate(x.begin(), x.end(), 0.0) + context.eps(1e-4);
  return out;
}

Vector favorOf(Vector z, const Vector &x, bool log) {
  double shift = square(x) / 2 + std::log(double(z.size())) / 2;
  for (double &value : z)
    value -= shift;
  return log ? z : exponentials(z);
}

Vector favor(const Vector &x, const Context &context) {
  return favorOf(context.project(0, x), x, context.map.log);
}

Vector favorHyperbolic(const Vector &x, const Context &context) {
  return favorOf(mirrored(context.project(0, x)), x, context.map.log);
}

Vector randomFourier(const Vector &x, const Context &context) {
  Vector z = context.project(0, x), out;
  for (double value : z)
    out.push_back(std::sin(value) / std::sqrt(double(z.size())));
  for (double value : z)
    out.push_back(std::cos(value) / std::sqrt(double(z.size())));
  return out;
}

Vector randomFourierExp(const Vector &x, const Context &context) {
  Vector out = randomFourier(x, context);
  for (double &value : out)
    value *= std::exp(square(x) / 2);
  return out;
}

Vector t2r(const Vector &x, const Context &context) {
  Vector z = context.project(0, x);
  for (size_t r = 0; r < z.size(); ++r) {
    if (context.map.parameters.size() > 1)
      z[r] += context.parameter(1, 1)[r];
    z[r] = positive(z[r]);
  }
  return z;
}

Vector hadamard(const Vector &x, const Context &context) {
  Vector y = context.project(0, x), z = context.project(1, x);
  for (size_t r = 0; r < y.size(); ++r)
    y[r] *= z[r];
  return y;
}

Vector cosformer(const Vector &x, const Context &context) {
  double angle = std::acos(-1.0) * context.position /
                 (2.0 * double(context.map.maxLength));
  Vector out;
  for (double value : x)
    out.push_back(positive(value) * std::cos(angle));
  for (double value : x)
    out.push_back(positive(value) * std::sin(angle));
  return out;
}

Vector hedgehog(const Vector &x, const Context &context) {
  return softmaxOf(mirrored(context.project(0, x)));
}

Vector hedgehogExp(const Vector &x, const Context &context) {
  Vector both = mirrored(context.project(0, x));
  return context.map.log ? both : exponentials(both);
}

Vector dpfp(const Vector &x, const Context &context) {
  Vector r = mirrored(x), out;
  for (double &value : r)
    value = positive(value);
  int64_t n = static_cast<int64_t>(r.size());
  for (int64_t shift = 1; shift <= context.map.shifts; ++shift)
    for (int64_t i = 0; i < n; ++i)
      out.push_back(r[i] * r[(((i - shift) % n) + n) % n]);
  return out;
}

Vector taylor(const Vector &x, const Context &) {
  double d = double(x.size());
  Vector out{1.0};
  for (double value : x)
    out.push_back(value / std::pow(d, 0.25));
  for (double value : x)
    out.push_back(value * value / std::sqrt(2.0 * d));
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      out.push_back(x[i] * x[j] / std::sqrt(d));
  return out;
}

Vector taylorFull(const Vector &x, const Context &) {
  double d = double(x.size());
  Vector out{1.0};
  for (double value : x)
    out.push_back(value / std::pow(d, 0.25));
  for (double left : x)
    for (double right : x)
      out.push_back(left * right / std::sqrt(2.0 * d));
  return out;
}

Vector rebased(const Vector &x, const Context &context) {
  double d = double(x.size());
  double mean = std::accumulate(x.begin(), x.end(), 0.0) / d, variance = 0.0;
  for (double value : x)
    variance += (value - mean) * (value - mean) / d;
  Vector y, out;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back((x[i] - mean) / std::sqrt(variance + context.eps(1e-5)) *
                    context.parameter(0, 1)[i] +
                context.parameter(1, 1)[i]);
  for (double value : y)
    out.push_back(value * value / std::sqrt(d));
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      out.push_back(y[i] * y[j] * std::sqrt(2.0 / d));
  return out;
}

Vector outerProduct(const Vector &x, const Context &context) {
  Vector y = context.project(0, x), z = context.project(1, x), out;
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = i; j < z.size(); ++j)
      out.push_back(y[i] * z[j]);
  return out;
}

/// A map and its parameters: M a matrix, S a square one, R a vector of m, D one
/// of d elements.
struct Entry {
  const char *name, *parameters;
  Vector (*apply)(const Vector &, const Context &);
  bool lastIsOptional = false;
};

constexpr Entry entries[] = {
    {"softmax", "", softmax},
    {"l2norm", "", l2norm},
    {"sum_norm", "", sumNorm},
    {"favor", "M", favor},
    {"favor_hyperbolic", "M", favorHyperbolic},
    {"random_fourier", "M", randomFourier},
    {"random_fourier_exp", "M", randomFourierExp},
    {"t2r", "MR", t2r, /*lastIsOptional=*/true},
    {"hadamard", "MM", hadamard},
    {"cosformer", "", cosformer},
    {"hedgehog", "S", hedgehog},
    {"hedgehog_exp", "S", hedgehogExp},
    {"dpfp", "", dpfp},
    {"taylor", "", taylor},
    {"taylor_full", "", taylorFull},
    {"rebased", "DD", rebased},
    {"outer_product", "SS", outerProduct},
};

} // namespace

std::vector<std::string> getTokenMapNames() {
  std::vector<std::string> names;
  for (const Entry &entry : entries)
    names.push_back(entry.name);
  return names;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static Status checkParameters(const Entry &entry, const TokenMap &map,
                              int64_t heads, int64_t d) {
  size_t most = std::string(entry.parameters).size();
  size_t count = map.parameters.size();
  if (count > most || count + entry.lastIsOptional < most)
    return expected(map.name + " to have " + std::to_string(most) +
                        " parameters",
                    std::to_string(count));
  int64_t m = 0;
  for (size_t i = 0; i < count; ++i) {
    const Array &array = map.parameters[i];
    std::string name = "parameter " + std::to_string(i);
    if (Status error = checkData(array, name))
      return error;
    char kind = entry.parameters[i];
    bool isMatrix = kind == 'M' || kind == 'S';
    if (i == 0 && isMatrix && array.rank() >= 2)
      m = kind == 'S' ? d : array.dim(array.rank() - 2);
    std::vector<int64_t> shape;
    if (isMatrix)
      shape = {m, d};
    else
      shape = {kind == 'R' ? m : d};
    std::vector<int64_t> perHead = shape;
    perHead.insert(perHead.begin(), heads);
    if (Status error = checkShape(array, name, {shape, perHead}))
      return error;
  }
  return std::nullopt;
}

static Status checkPositions(const TokenMap &map, int64_t batch,
                             int64_t tokens) {
  bool needed = map.name == "cosformer";
  if (needed != map.positions.has_value())
    return expected(std::string("positions ") + (needed ? "" : "only ") +
                        "with cosformer",
                    needed ? "none" : "some");
  if (!needed)
    return std::nullopt;
  if (map.maxLength < 1)
    return expected("a max_length of at least 1",
                    std::to_string(map.maxLength));
  return checkShape(*map.positions, "positions", {{tokens}, {batch, tokens}});
}

Result<Array> applyTokenMap(const Array &x, const TokenMap &map) {
  auto *entry =
      std::find_if(std::begin(entries), std::end(entries),
                   [&](const Entry &each) { return map.name == each.name; });
  if (entry == std::end(entries))
    return expected("a feature map of whole tokens", "\"" + map.name + "\"");
  if (Status error = checkTokens(x, "input"))
    return *error;
  int64_t batch = x.dim(0), heads = x.dim(1), tokens = x.dim(2), d = x.dim(3);
  if (Status error = checkParameters(*entry, map, heads, d))
    return *error;
  if (Status error = checkPositions(map, batch, tokens))
    return *error;

  // Any token gives the number of features.
  Context context{map, 0, 0.0};
  auto features =
      static_cast<int64_t>(entry->apply(Vector(d, 0.0), context).size());
  Array out({batch, heads, tokens, features});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t) {
        context.head = h;
        if (map.positions)
          context.position = map.positions->rank() == 2
                                 ? map.positions->at({b, t})
                                 : map.positions->at({t});
        const double *in = x.row({b, h, t});
        Vector token(in, in + d);
        for (double &value : token)
          value *= map.scale;
        Vector feature = entry->apply(token, context);
        std::copy(feature.begin(), feature.end(), out.row({b, h, t}));
      }
  return out;
}

} // namespace linattn::reference
