//===- ReferenceBindings.cpp - The oracle, for Python ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arrays come as contiguous float64 in the oracle's layout; the Python side
// (reference.py) brings them there.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "linattn/Analysis/UpdateRules.h"
#include "linattn/Reference/Reference.h"
#include "linattn/Reference/TokenMaps.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

namespace nb = nanobind;
namespace ref = linattn::reference;
using namespace nb::literals;

namespace {

using Input = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using OptionalInput = std::optional<Input>;
using Output = nb::ndarray<nb::numpy, double>;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

ref::Array toArray(const Input &input) {
  std::vector<int64_t> shape(input.ndim());
  for (size_t i = 0; i < input.ndim(); ++i)
    shape[i] = static_cast<int64_t>(input.shape(i));
  return ref::Array(
      std::move(shape),
      std::vector<double>(input.data(), input.data() + input.size()));
}

std::optional<ref::Array> toArray(const OptionalInput &input) {
  if (!input)
    return std::nullopt;
  return toArray(*input);
}

nb::object toPython(ref::Array array) {
  auto *owned = new ref::Array(std::move(array));
  nb::capsule owner(owned, [](void *pointer) noexcept {
    delete static_cast<ref::Array *>(pointer);
  });
  std::vector<size_t> shape(owned->shape.begin(), owned->shape.end());
  return nb::cast(
      Output(owned->data.data(), shape.size(), shape.data(), owner));
}

nb::object toPython(std::optional<ref::Array> array) {
  return array ? toPython(std::move(*array)) : nb::none();
}

template <typename T>
T unwrap(ref::Result<T> result) {
  if (!result)
    throw nb::value_error(result.error().c_str());
  return std::move(*result);
}

/// A name, a function of one number, or None.
ref::FeatureMap toFeatureMap(nb::handle map) {
  if (map.is_none())
    return {};
  if (nb::isinstance<nb::str>(map))
    return unwrap(ref::FeatureMap::parse(nb::cast<std::string>(map)));
  nb::object function = nb::borrow(map);
  return ref::FeatureMap::fromFunction([function](double x) {
    return nb::cast<double>(nb::float_(function(x)));
  });
}

template <typename T>
std::optional<T> toOptional(const nb::object &value) {
  return value.is_none() ? std::nullopt : std::optional(nb::cast<T>(value));
}

/// (eps, floor, abs_floor, clamp), or None.
std::optional<ref::Normalize> toNormalize(nb::handle normalize) {
  if (normalize.is_none())
    return std::nullopt;
  ref::Normalize result;
  result.eps = toOptional<double>(normalize[0]);
  result.floor = toOptional<double>(normalize[1]);
  result.absFloor = toOptional<double>(normalize[2]);
  result.clamp = toOptional<double>(normalize[3]);
  return result;
}

/// (S, z, m), or None.
std::optional<ref::State> toState(nb::handle state) {
  if (state.is_none())
    return std::nullopt;
  ref::State result;
  result.S = toArray(nb::cast<Input>(nb::object(state[0])));
  result.z = toArray(toOptional<Input>(state[1]));
  result.m = toArray(toOptional<Input>(state[2]));
  return result;
}

nb::tuple toPython(ref::State state) {
  return nb::make_tuple(toPython(std::move(state.S)),
                        toPython(std::move(state.z)),
                        toPython(std::move(state.m)));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Window, dilation and global tokens.
using Pattern = std::tuple<int64_t, int64_t, int64_t>;

ref::AttentionOptions
toOptions(bool causal, bool softmax, nb::handle featureMap,
          nb::handle normalize, std::optional<double> scale,
          const OptionalInput &mask, const OptionalInput &prefix,
          const Pattern &pattern, std::optional<double> softcap,
          const OptionalInput &slopes, const OptionalInput &sinks) {
  ref::AttentionOptions options;
  options.causal = causal;
  options.weights =
      softmax ? ref::AttentionWeights::Softmax : ref::AttentionWeights::Linear;
  options.featureMap = toFeatureMap(featureMap);
  options.normalize = toNormalize(normalize);
  options.scale = scale;
  options.mask = toArray(mask);
  options.prefix = toArray(prefix);
  auto [window, dilation, globals] = pattern;
  options.pattern = {window, dilation, globals};
  options.softcap = softcap;
  options.slopes = toArray(slopes);
  options.sinks = toArray(sinks);
  return options;
}

nb::object computeAttention(const Input &q, const Input &k, const Input &v,
                            bool causal, bool softmax, nb::handle featureMap,
                            nb::handle normalize, std::optional<double> scale,
                            const OptionalInput &mask,
                            const OptionalInput &prefix, const Pattern &pattern,
                            std::optional<double> softcap,
                            const OptionalInput &slopes,
                            const OptionalInput &sinks) {
  return toPython(unwrap(ref::attention(
      toArray(q), toArray(k), toArray(v),
      toOptions(causal, softmax, featureMap, normalize, scale, mask, prefix,
                pattern, softcap, slopes, sinks))));
}

nb::object computeWeights(const Input &q, const Input &k, bool causal,
                          bool softmax, nb::handle featureMap,
                          nb::handle normalize, std::optional<double> scale,
                          const OptionalInput &mask,
                          const OptionalInput &prefix, const Pattern &pattern,
                          std::optional<double> softcap,
                          const OptionalInput &slopes,
                          const OptionalInput &sinks) {
  return toPython(unwrap(
      ref::weights(toArray(q), toArray(k),
                   toOptions(causal, softmax, featureMap, normalize, scale,
                             mask, prefix, pattern, softcap, slopes, sinks))));
}

template <typename Enum>
Enum toEnum(const std::string &name, const char *operand,
            std::initializer_list<std::pair<const char *, Enum>> cases) {
  std::string known;
  for (auto [spelling, value] : cases) {
    if (name == spelling)
      return value;
    known += (known.empty() ? "" : ", ") + std::string(spelling);
  }
  throw nb::value_error((std::string("expected ") + operand + " among " +
                         known + ", but got " + name)
                            .c_str());
}

nb::tuple computeScan(const Input &q, const Input &k, const Input &v,
                      nb::dict gates, nb::dict attributes,
                      nb::handle featureMap, nb::handle normalize,
                      std::optional<double> scale, nb::handle initial) {
  auto gate = [&](const char *name) -> std::optional<ref::Array> {
    return gates.contains(name) ? std::optional(toArray(
                                      nb::cast<Input>(nb::object(gates[name]))))
                                : std::nullopt;
  };
  ref::ScanOperands operands{toArray(q), toArray(k), toArray(v)};
  operands.decay = gate("decay");
  operands.valueDecay = gate("value_decay");
  operands.beta = gate("beta");
  operands.a = gate("a");
  operands.b = gate("b");
  operands.bonus = gate("bonus");
  operands.erase = gate("erase");
  operands.write = gate("write");
  operands.inputGate = gate("input_gate");
  operands.mask = gate("mask");
  if (std::optional<ref::Array> offsets = gate("cu_seqlens"))
    operands.cuSeqlens.emplace(offsets->data.begin(), offsets->data.end());

  auto attribute = [&](const char *name) {
    return nb::cast<std::string>(attributes[name]);
  };
  ref::ScanOptions options;
  std::optional<ref::UpdateRule> rule =
      ref::findUpdateRule(attribute("update"));
  if (!rule)
    throw nb::value_error(
        ("expected a known update, but got " + attribute("update")).c_str());
  options.update = *rule;
  options.readout =
      toEnum<ref::Readout>(attribute("readout"), "readout",
                           {{"inclusive", ref::Readout::Inclusive},
                            {"exclusive", ref::Readout::Exclusive}});
  const linattn::UpdateRule *properties =
      linattn::findUpdateRule(attribute("update"));
  if (properties && properties->takes.contains(linattn::Clause::Before))
    options.transition =
        toEnum<ref::Transition>(attribute("transition"), "transition",
                                {{"before", ref::Transition::Before},
                                 {"after", ref::Transition::After}});
  options.reverse = nb::cast<bool>(attributes["reverse"]);
  options.featureMap = toFeatureMap(featureMap);
  options.normalize = toNormalize(normalize);
  options.scale = scale;
  ref::ScanResult result =
      unwrap(ref::scan(operands, options, toState(initial)));
  return nb::make_tuple(toPython(std::move(result.o)),
                        toPython(std::move(result.state)));
}

nb::tuple computeState(const Input &k, const Input &v, nb::handle featureMap,
                       bool normalize, const OptionalInput &mask) {
  ref::StateOptions options;
  options.featureMap = toFeatureMap(featureMap);
  options.normalize = normalize;
  options.mask = toArray(mask);
  return toPython(unwrap(ref::state(toArray(k), toArray(v), options)));
}

/// `parameters` is a list of arrays, `options` a dictionary with the rest.
nb::object computeTokenMap(const Input &x, const std::string &name,
                           nb::list parameters, const OptionalInput &positions,
                           nb::dict options) {
  ref::TokenMap map{name};
  for (nb::handle parameter : parameters)
    map.parameters.push_back(
        toArray(nb::cast<Input>(nb::object(nb::borrow(parameter)))));
  map.positions = toArray(positions);
  auto take = [&](const char *key, auto &field) {
    if (options.contains(key))
      field = nb::cast<std::decay_t<decltype(field)>>(nb::object(options[key]));
  };
  take("shifts", map.shifts);
  take("max_length", map.maxLength);
  take("scale", map.scale);
  take("eps", map.eps);
  take("log", map.log);
  return toPython(unwrap(ref::applyTokenMap(toArray(x), map)));
}

nb::object computeRead(const Input &q, nb::handle initial,
                       nb::handle featureMap, nb::handle normalize,
                       std::optional<double> scale) {
  ref::ReadOptions options;
  options.featureMap = toFeatureMap(featureMap);
  options.normalize = toNormalize(normalize);
  options.scale = scale;
  return toPython(unwrap(ref::read(toArray(q), *toState(initial), options)));
}

} // namespace

void linattn::python::registerReference(nb::module_ &module) {
  nb::module_ sub = module.def_submodule("reference", "The float64 oracle.");
  sub.def("attention", computeAttention, "q"_a, "k"_a, "v"_a, "causal"_a,
          "softmax"_a, "feature_map"_a.none(), "normalize"_a.none(),
          "scale"_a.none(), "mask"_a.none(), "prefix"_a.none(), "pattern"_a,
          "softcap"_a.none(), "slopes"_a.none(), "sinks"_a.none());
  sub.def("weights", computeWeights, "q"_a, "k"_a, "causal"_a, "softmax"_a,
          "feature_map"_a.none(), "normalize"_a.none(), "scale"_a.none(),
          "mask"_a.none(), "prefix"_a.none(), "pattern"_a, "softcap"_a.none(),
          "slopes"_a.none(), "sinks"_a.none());
  sub.def("scan", computeScan, "q"_a, "k"_a, "v"_a, "gates"_a, "attributes"_a,
          "feature_map"_a.none(), "normalize"_a.none(), "scale"_a.none(),
          "initial"_a.none());
  sub.def("token_map", computeTokenMap, "x"_a, "name"_a, "parameters"_a,
          "positions"_a.none(), "options"_a);
  sub.def("state", computeState, "k"_a, "v"_a, "feature_map"_a.none(),
          "normalize"_a, "mask"_a.none());
  sub.def("read", computeRead, "q"_a, "state"_a, "feature_map"_a.none(),
          "normalize"_a.none(), "scale"_a.none());
}
