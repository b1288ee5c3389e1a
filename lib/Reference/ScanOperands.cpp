//===- ScanOperands.cpp - Checks of a scan's operands ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanOperands.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

/// In the order of the enumeration.
static constexpr const char *updateNames[] = {"add", "delta", "dplr", "oja"};

static const char *updateName(UpdateRule update) {
  return updateNames[static_cast<size_t>(update)];
}

std::optional<UpdateRule> findUpdateRule(const std::string &name) {
  for (size_t i = 0; i < std::size(updateNames); ++i)
    if (name == updateNames[i])
      return static_cast<UpdateRule>(i);
  return std::nullopt;
}

/// Checks that an operand of a single rule is given with that rule only.
static Status checkRule(const std::optional<Array> &operand,
                        const std::string &name, UpdateRule rule,
                        const ScanOptions &options) {
  if (operand && options.update != rule)
    return expected("update " + std::string(updateName(rule)) + " with " + name,
                    updateName(options.update));
  return std::nullopt;
}

/// Refuses operands that the update rule or the readout does not use.
static Status checkMeaning(const ScanOperands &x, const ScanOptions &options) {
  if (options.update != UpdateRule::Oja)
    if (Status error = checkRule(x.beta, "beta", UpdateRule::Delta, options))
      return error;
  if (Status error = checkRule(x.erase, "erase", UpdateRule::Delta, options))
    return error;
  if (Status error = checkRule(x.write, "write", UpdateRule::Delta, options))
    return error;
  if (Status error = checkRule(x.a, "a", UpdateRule::Dplr, options))
    return error;
  if (Status error = checkRule(x.b, "b", UpdateRule::Dplr, options))
    return error;
  if (Status error =
          checkRule(x.inputGate, "input gate", UpdateRule::Add, options))
    return error;
  if (options.update == UpdateRule::Oja && !(x.beta && x.beta->rank() == 3))
    return expected("beta of rank 3 with update oja",
                    x.beta ? std::to_string(x.beta->rank()) : "none");
  if (options.update == UpdateRule::Dplr && !(x.a && x.b))
    return expected("a and b with update dplr",
                    x.a ? "a only" : (x.b ? "b only" : "neither"));
  if (options.transition &&
      (options.update == UpdateRule::Add || options.update == UpdateRule::Oja))
    return expected("no transition with update " +
                        std::string(updateName(options.update)),
                    "one");
  if (options.transition == Transition::Before &&
      options.update == UpdateRule::Delta)
    return expected("transition after with update delta", "before");
  if (x.bonus && options.readout != Readout::Exclusive)
    return expected("readout exclusive with bonus", "inclusive");
  if (x.bonus && (options.update == UpdateRule::Delta ||
                  options.update == UpdateRule::Oja))
    return expected("update add or dplr with bonus",
                    updateName(options.update));
  return std::nullopt;
}

/// Gates that differ between value columns would need a denominator each, and
/// only an additive update is invariant under the factor e^-m.
static Status checkNormalizable(const ScanOperands &x,
                                const ScanOptions &options) {
  if (Status error = checkNormalize(options.normalize, options.featureMap))
    return error;
  if (!options.normalize)
    return x.inputGate ? Status(expected("normalize with input gate", "none"))
                       : std::nullopt;
  if (options.update == UpdateRule::Oja)
    return expected("no normalize with update oja", "one");
  if (x.inputGate && options.featureMap.kind == FeatureMapKind::Exp)
    return expected("no input gate with the exp map", "one");
  if (x.inputGate && options.readout != Readout::Inclusive)
    return expected("readout inclusive with input gate", "exclusive");
  if (x.inputGate && x.decay && x.decay->rank() == 4)
    return expected("decay of rank 1 or 3 with input gate", "4");
  if (x.valueDecay)
    return expected("no value decay with normalize", "one");
  if (x.write)
    return expected("no write gate with normalize", "one");
  if (x.beta && x.beta->rank() == 4)
    return expected("beta of rank 3 with normalize", "4");
  if (isStabilized(options.featureMap, true) &&
      options.update != UpdateRule::Add)
    return expected("update add with the normalized exp map",
                    updateName(options.update));
  return std::nullopt;
}

static Status checkTokenOperands(const ScanOperands &x) {
  if (Status error = checkTokens(x.q, "query"))
    return error;
  if (Status error = checkTokens(x.k, "key"))
    return error;
  if (Status error = checkTokens(x.v, "value"))
    return error;
  if (Status error = checkSameBatch(x.q, "query", x.k, "key"))
    return error;
  if (Status error = checkSameBatch(x.k, "key", x.v, "value"))
    return error;
  if (Status error = checkSameLength(x.q, "query", x.k, "key"))
    return error;
  if (Status error = checkSameLength(x.k, "key", x.v, "value"))
    return error;
  return checkSameFeatures(x.q, "query", x.k, "key");
}

static Status checkGates(const ScanOperands &x, int64_t heads) {
  int64_t batch = x.k.dim(0), length = x.k.dim(2);
  int64_t keySize = x.k.dim(3), valueSize = x.v.dim(3);
  std::vector<int64_t> perToken = {batch, heads, length};
  std::vector<int64_t> perKey = {batch, heads, length, keySize};
  std::vector<int64_t> perValue = {batch, heads, length, valueSize};
  if (Status error =
          checkOptional(x.decay, "decay", {{heads}, perToken, perKey}))
    return error;
  if (Status error = checkOptional(x.valueDecay, "value decay", {perValue}))
    return error;
  if (Status error = checkOptional(x.beta, "beta", {perToken, perValue}))
    return error;
  if (Status error = checkOptional(x.a, "a", {perKey}))
    return error;
  if (Status error = checkOptional(x.b, "b", {perKey}))
    return error;
  if (Status error = checkOptional(x.bonus, "bonus", {{heads, keySize}}))
    return error;
  if (Status error = checkOptional(x.erase, "erase", {perKey}))
    return error;
  if (Status error = checkOptional(x.write, "write", {perValue}))
    return error;
  if (Status error = checkOptional(x.inputGate, "input gate", {perToken}))
    return error;
  return checkOptional(x.mask, "mask", {{batch, length}});
}

static Status checkOffsets(const ScanOperands &x) {
  if (!x.cuSeqlens)
    return std::nullopt;
  if (x.k.dim(0) != 1)
    return expected("batch size 1 with cu_seqlens", std::to_string(x.k.dim(0)));
  const std::vector<int64_t> &offsets = *x.cuSeqlens;
  bool spans =
      !offsets.empty() && offsets.front() == 0 && offsets.back() == x.k.dim(2);
  if (!spans || !std::is_sorted(offsets.begin(), offsets.end()))
    return expected("cu_seqlens to rise from 0 to " +
                        std::to_string(x.k.dim(2)),
                    toString(offsets));
  return std::nullopt;
}

int64_t detail::countStates(const ScanOperands &operands) {
  return operands.cuSeqlens
             ? static_cast<int64_t>(operands.cuSeqlens->size()) - 1
             : operands.k.dim(0);
}

bool detail::carriesMaximum(const ScanOperands &operands,
                            const ScanOptions &options) {
  return operands.inputGate ||
         isStabilized(options.featureMap, options.normalize.has_value());
}

Result<Heads> detail::checkScan(const ScanOperands &operands,
                                const ScanOptions &options,
                                const std::optional<State> &initial) {
  if (Status error = checkFeatureMap(options.featureMap))
    return *error;
  if (Status error = checkMeaning(operands, options))
    return *error;
  if (Status error = checkNormalizable(operands, options))
    return *error;
  if (Status error = checkTokenOperands(operands))
    return *error;
  Result<Heads> heads =
      groupHeads(operands.q.dim(1), operands.k.dim(1), operands.v.dim(1));
  if (!heads)
    return heads;
  if (Status error = checkGates(operands, heads->state))
    return *error;
  if (Status error = checkOffsets(operands))
    return *error;
  if (!initial)
    return heads;

  int64_t states = countStates(operands), keySize = operands.k.dim(3);
  if (Status error =
          checkShape(initial->S, "initial state",
                     {{states, heads->state, keySize, operands.v.dim(3)}}))
    return *error;
  if (Status error = checkStateParts(
          *initial, "initial state", {states, heads->state, keySize},
          options.normalize.has_value(), carriesMaximum(operands, options)))
    return *error;
  return heads;
}

} // namespace linattn::reference
