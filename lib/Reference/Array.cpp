//===- Array.cpp - Arrays, comparison and operand checks ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detail.h"

#include <algorithm>
#include <limits>

namespace linattn::reference {

using namespace detail;

static int64_t countElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

//===----------------------------------------------------------------------===//
// Array
//===----------------------------------------------------------------------===//

Array::Array(std::vector<int64_t> shape, double fill)
    : shape(std::move(shape)), data(countElements(this->shape), fill) {}

Array::Array(std::vector<int64_t> shape, std::vector<double> data)
    : shape(std::move(shape)), data(std::move(data)) {}

int64_t Array::offset(std::initializer_list<int64_t> indices) const {
  assert(indices.size() <= shape.size() && "more indices than dimensions");
  int64_t position = 0;
  size_t axis = 0;
  for (int64_t index : indices)
    position = position * shape[axis++] + index;
  for (; axis < shape.size(); ++axis)
    position *= shape[axis];
  return position;
}

Result<Array> slice(const Array &array, int64_t axis, int64_t begin,
                    int64_t end) {
  if (Status error = checkData(array, "array"))
    return *error;
  if (axis < 0 || axis >= array.rank())
    return expected("axis below " + std::to_string(array.rank()),
                    std::to_string(axis));
  if (begin < 0 || begin > end || end > array.dim(axis))
    return expected("a range within 0 to " + std::to_string(array.dim(axis)),
                    std::to_string(begin) + " to " + std::to_string(end));

  std::vector<int64_t> shape = array.shape;
  shape[axis] = end - begin;
  int64_t outer = countElements({shape.begin(), shape.begin() + axis});
  int64_t inner = countElements({shape.begin() + axis + 1, shape.end()});
  Array result(shape, std::vector<double>());
  result.data.reserve(countElements(shape));
  for (int64_t i = 0; i < outer; ++i) {
    auto start = array.data.begin() + i * array.dim(axis) * inner;
    result.data.insert(result.data.end(), start + begin * inner,
                       start + end * inner);
  }
  return result;
}

double compare(const Array &out, const Array &ref) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (out.shape != ref.shape || out.data.size() != ref.data.size())
    return infinity;
  double difference = 0.0, magnitude = 0.0;
  for (size_t i = 0; i < ref.data.size(); ++i) {
    double x = out.data[i], y = ref.data[i];
    // The quotient of two infinities would be a NaN.
    if (std::isinf(x) && x == y)
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return infinity;
    difference = std::max(difference, std::abs(x - y));
    magnitude = std::max(magnitude, std::abs(y));
  }
  return difference == 0.0 ? 0.0 : difference / magnitude;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

std::string detail::toString(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Error detail::expected(const std::string &what, const std::string &got) {
  return {"expected " + what + ", but got " + got};
}

Error detail::expectedSame(const std::string &first, const std::string &second,
                           const std::string &what, int64_t x, int64_t y) {
  return expected(first + " and " + second + " to have the same " + what,
                  std::to_string(x) + " and " + std::to_string(y));
}

Status detail::checkData(const Array &array, const std::string &name) {
  for (int64_t dim : array.shape)
    if (dim < 0)
      return expected(name + " to have no negative size",
                      toString(array.shape));
  int64_t count = countElements(array.shape);
  if (count != static_cast<int64_t>(array.data.size()))
    return expected(name + " of shape " + toString(array.shape) + " to hold " +
                        std::to_string(count) + " elements",
                    std::to_string(array.data.size()));
  return std::nullopt;
}

Status detail::checkShape(const Array &array, const std::string &name,
                          const std::vector<std::vector<int64_t>> &allowed) {
  if (std::find(allowed.begin(), allowed.end(), array.shape) != allowed.end())
    return checkData(array, name);
  std::string shapes;
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (i)
      shapes += i + 1 == allowed.size() ? " or " : ", ";
    shapes += toString(allowed[i]);
  }
  return expected(name + " to have shape " + shapes, toString(array.shape));
}

Status detail::checkTokens(const Array &array, const std::string &name) {
  if (array.rank() != 4)
    return expected(name + " to have rank 4", std::to_string(array.rank()));
  if (Status error = checkData(array, name))
    return error;
  if (array.dim(1) < 1 || array.dim(3) < 1)
    return expected(name + " to have at least one head and one feature",
                    toString(array.shape));
  return std::nullopt;
}

Status detail::checkSameBatch(const Array &x, const std::string &xName,
                              const Array &y, const std::string &yName) {
  if (x.dim(0) != y.dim(0))
    return expectedSame(xName, yName, "batch size", x.dim(0), y.dim(0));
  return std::nullopt;
}

Status detail::checkSameLength(const Array &x, const std::string &xName,
                               const Array &y, const std::string &yName) {
  if (x.dim(2) != y.dim(2))
    return expectedSame(xName, yName, "sequence length", x.dim(2), y.dim(2));
  return std::nullopt;
}

Status detail::checkSameFeatures(const Array &x, const std::string &xName,
                                 const Array &y, const std::string &yName) {
  if (x.dim(3) != y.dim(3))
    return expectedSame(xName, yName, "number of features", x.dim(3), y.dim(3));
  return std::nullopt;
}

Status detail::checkStateParts(const State &state, const std::string &name,
                               const std::vector<int64_t> &zShape,
                               bool normalized, bool stabilized) {
  if (normalized != state.z.has_value())
    return normalized
               ? expected(name + " to carry z for a normalized read", "none")
               : expected(name + " without z for a read that is not normalized",
                          "one");
  if (stabilized != state.m.has_value())
    return stabilized
               ? expected(name + " to carry m for the normalized exp map or an "
                                 "input gate",
                          "none")
               : expected(name +
                              " without m unless the exp map is normalized or "
                              "a gate is given",
                          "one");
  if (state.z)
    if (Status error = checkShape(*state.z, name + " z", {zShape}))
      return error;
  if (state.m)
    return checkShape(*state.m, name + " m", {{zShape[0], zShape[1]}});
  return std::nullopt;
}

Result<Heads> detail::groupHeads(int64_t query, int64_t key, int64_t value) {
  Heads heads;
  heads.query = query;
  heads.key = key;
  heads.value = value;
  heads.state = std::max(key, value);
  heads.output = std::max(query, heads.state);
  if (heads.state % key || heads.state % value)
    return expectedSame("key", "value",
                        "number of heads, or one a multiple of "
                        "the other",
                        key, value);
  if (heads.output % query || heads.output % heads.state)
    return expectedSame("query", "state",
                        "number of heads, or one a multiple "
                        "of the other",
                        query, heads.state);
  return heads;
}

} // namespace linattn::reference
