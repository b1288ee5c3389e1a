//===- LightNet.cpp - Keys over their running sums ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "Tables.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

static Family lightnet() {
  Family family;
  family.name = "lightnet";
  family.title = "LightNet";
  family.formula = "z_t = log Σ_{j≤t} e^{k_j},  S_t = Diag(e^{z_{t-1} − z_t}) "
                   "S_{t-1} + e^{k_t − z_t} v_tᵀ,  o_t = s S_tᵀq_t";
  family.paper = "Qin et al., You Only Scan Once, 2024";
  family.signature = "q, k, v, scale=None, initial_state=None, "
                     "output_final_state=False";
  family.operands = {tokens("q", "B T Hq K", "queries"),
                     tokens("k", "B T H K", "logarithms of the keys"),
                     tokens("v", "B T H V", "values"), offsets()};
  family.options = {scaleOption()};
  family.rules = {"Ho = max(Hq, H)"};
  family.state = {{"initial_state", "N H K V"},
                  {"z", "N H K", "", -std::numeric_limits<double>::infinity()}};
  family.output = "B T Ho V";
  family.build = [](FamilyBuilder &f) -> FailureOr<FamilyResults> {
    FailureOr<Scale> scale = f.scale();
    if (failed(scale))
      return failure();
    SmallVector<Value, 3> state = f.initialState();
    RunningLogSum keys =
        emitRunningLogSum(f, SequenceEnds(f), f.term("k"), state[1]);
    FamilyScan scan;
    scan.query = f.operand("q");
    scan.key = keys.weights;
    scan.value = f.operand("v");
    scan.decay = keys.decay;
    scan.scale = *scale;
    scan.state = {state[0]};
    FamilyResults results = f.finish(scan);
    results.state.push_back(keys.last);
    return results;
  };
  return family;
}

void mlir::linattn::appendLightNetFamilies(std::vector<Family> &families) {
  families.push_back(lightnet());
}
