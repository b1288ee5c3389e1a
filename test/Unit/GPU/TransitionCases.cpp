//===- TransitionCases.cpp - Scans with transitions, and of few tokens ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanCases.h"
#include <functional>

using namespace linattn;
using namespace linattn::test;

std::vector<ScanCase> linattn::test::transitionCases() {
  std::vector<ScanCase> cases;
  auto add = [&](std::string name, UpdateRule update, ScanCase::Gate decay,
                 std::function<void(ScanCase &)> change) {
    cases.push_back(makeCase(name, [&](ScanCase &scan) {
      scan.update = update;
      scan.decay = decay;
      scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
      scan.tokens = 83;
      change(scan);
    }));
  };
  auto gates = [&](std::string name, ScanCase::Gate decay,
                   std::function<void(ScanCase &)> change) {
    add(name, UpdateRule::Delta, decay, [&](ScanCase &scan) {
      scan.erase = scan.write = true;
      change(scan);
    });
  };
  gates("gates", ScanCase::None, [](ScanCase &) {});
  gates("gates_bf16", ScanCase::Token,
        [](ScanCase &scan) { scan.gates = DType::BF16; });
  gates("gates_kda", ScanCase::Channel,
        [](ScanCase &scan) { scan.beta = false; });
  gates("gates_f32_narrow", ScanCase::Token, [](ScanCase &scan) {
    scan.dtype = DType::F32;
    scan.gates = DType::F16;
    scan.keySize = scan.valueSize = 60;
  });
  gates("gates_erase_f16", ScanCase::Channel, [](ScanCase &scan) {
    scan.dtype = scan.gates = DType::F16;
    scan.write = scan.beta = false;
    scan.tokensFirst = scan.reverse = true;
  });
  gates("gates_wide_values_mask", ScanCase::Token, [](ScanCase &scan) {
    scan.keySize = 32;
    scan.valueSize = 156;
    scan.erase = false;
    scan.mask = true;
  });
  auto given = [&](std::string name, ScanCase::Gate decay,
                   std::function<void(ScanCase &)> change) {
    add(name, UpdateRule::Dplr, decay, change);
  };
  for (int64_t size : {16, 60, 64, 128})
    given("given_d" + std::to_string(size), ScanCase::Channel,
          [&](ScanCase &scan) {
            scan.keySize = scan.valueSize = size;
            scan.chip = "sm_90";
          });
  given("given_16_bits", ScanCase::None,
        [](ScanCase &scan) { scan.gates = DType::BF16; });
  given("given_f32", ScanCase::Channel,
        [](ScanCase &scan) { scan.dtype = DType::F32; });
  given("given_f16", ScanCase::Channel,
        [](ScanCase &scan) { scan.dtype = scan.gates = DType::F16; });
  given("given_token_decay", ScanCase::Token,
        [](ScanCase &scan) { scan.gates = DType::BF16; });
  given("given_head_decay_after", ScanCase::Head,
        [](ScanCase &scan) { scan.readsBefore = false; });
  given("given_after_packed_reverse", ScanCase::Channel, [](ScanCase &scan) {
    scan.readsBefore = false;
    scan.offsets = {0, 40, 40, 83};
    scan.reverse = true;
  });
  given("given_steep", ScanCase::Channel,
        [](ScanCase &scan) { scan.decayScale = 1000; });
  given("given_bonus", ScanCase::Channel, [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.bonus = true;
    scan.tokensFirst = true;
  });
  given("given_exclusive", ScanCase::Token,
        [](ScanCase &scan) { scan.readout = Readout::Exclusive; });
  given("given_mask_pool", ScanCase::Channel, [](ScanCase &scan) {
    scan.mask = scan.pool = true;
    scan.batch = 3;
    scan.tokens = 40;
    scan.keySize = 32;
  });
  given("given_wide_values_zero", ScanCase::Channel, [](ScanCase &scan) {
    scan.keySize = 32;
    scan.valueSize = 160;
    scan.initial = ScanCase::Zero;
  });
  return cases;
}

std::vector<ScanCase> linattn::test::tokenCases() {
  std::vector<ScanCase> cases;
  auto add = [&](std::string name, std::function<void(ScanCase &)> change) {
    cases.push_back(makeCase(name, [&](ScanCase &scan) {
      scan.dtype = DType::F32;
      scan.tokens = 11;
      change(scan);
      // Of more tokens the chunk form would be chosen.
      int64_t warps = (scan.valueSize + 15) / 16;
      if (scan.tokens > 8)
        scan.schedule = "#linattn.schedule<form = token, mma = fma, chunk = 8, "
                        "warps = " +
                        std::to_string(warps) +
                        ", value_slice = " + std::to_string(16 * warps) + ">";
    }));
  };
  for (int64_t size : {16, 60, 64, 128, 192, 256})
    add("step_d" + std::to_string(size), [&](ScanCase &scan) {
      scan.keySize = scan.valueSize = size;
      scan.tokens = 1;
      scan.dtype = size % 64 ? DType::F32 : DType::BF16;
    });
  add("odd_sizes", [](ScanCase &scan) {
    scan.keySize = 33;
    scan.valueSize = 19;
  });
  add("head_decay", [](ScanCase &scan) { scan.decay = ScanCase::Head; });
  add("token_decay", [](ScanCase &scan) { scan.decay = ScanCase::Token; });
  add("channel_decay", [](ScanCase &scan) { scan.decay = ScanCase::Channel; });
  add("value_decay", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.valueDecay = true;
  });
  add("f16", [](ScanCase &scan) {
    scan.dtype = DType::F16;
    scan.tokens = 8;
  });
  add("grouped_queries", [](ScanCase &scan) { scan.queryHeads = 4; });
  add("grouped_values",
      [](ScanCase &scan) { scan.queryHeads = scan.keyHeads = 1; });
  add("in_place", [](ScanCase &scan) { scan.initial = ScanCase::InPlace; });
  add("zero", [](ScanCase &scan) { scan.initial = ScanCase::Zero; });
  add("tokens_first", [](ScanCase &scan) { scan.tokensFirst = true; });
  add("reverse", [](ScanCase &scan) {
    scan.reverse = true;
    scan.decay = ScanCase::Channel;
  });
  add("packed", [](ScanCase &scan) { scan.offsets = {0, 3, 3, 11}; });
  add("mask", [](ScanCase &scan) {
    scan.mask = true;
    scan.decay = ScanCase::Token;
  });
  add("pool", [](ScanCase &scan) {
    scan.batch = 3;
    scan.pool = true;
  });
  add("bonus", [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.bonus = true;
    scan.decay = ScanCase::Channel;
  });
  add("normalizer", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
  });
  add("relu2", [](ScanCase &scan) { scan.featureMap = FeatureMapKind::Relu2; });
  add("delta", [](ScanCase &scan) { scan.update = UpdateRule::Delta; });
  add("gated_delta", [](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.decay = ScanCase::Token;
  });
  add("kda", [](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.decay = ScanCase::Channel;
  });
  add("delta_gates", [](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.columnBeta = scan.erase = scan.write = true;
  });
  add("dplr", [](ScanCase &scan) {
    scan.update = UpdateRule::Dplr;
    scan.decay = ScanCase::Channel;
  });
  return cases;
}
