//===- ScanCases.cpp - Scans in chunks and in columns of the state --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanCases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <functional>

using namespace linattn;
using namespace linattn::test;

std::vector<ScanCase> linattn::test::chunkCases() {
  std::vector<ScanCase> cases;
  for (int64_t size : {16, 32, 60, 64, 96, 128})
    cases.push_back(makeCase("d" + std::to_string(size), [&](ScanCase &scan) {
      scan.keySize = scan.valueSize = size;
    }));
  for (int64_t size : {192, 256})
    cases.push_back(makeCase("d" + std::to_string(size), [&](ScanCase &scan) {
      scan.keySize = scan.valueSize = size;
      scan.tokens = 70;
      scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
      scan.chip = "sm_90";
    }));
  cases.push_back(makeCase("f16", [](ScanCase &scan) {
    scan.dtype = DType::F16;
    // The sum of many tokens does not fit a number of 16 bits.
    scan.tokens = 80;
  }));
  cases.push_back(makeCase("one_stage_d256", [](ScanCase &scan) {
    scan.keySize = scan.valueSize = 256;
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
  }));
  // Tensor cores cut off: a sum kept in them is 2.4e-6 off.
  cases.push_back(makeCase("long_sum", [](ScanCase &scan) {
    scan.keySize = scan.valueSize = 32;
    scan.tokens = 2000;
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
  }));
  cases.push_back(makeCase("wide_values", [](ScanCase &scan) {
    scan.keySize = 32;
    scan.valueSize = 160;
  }));
  cases.push_back(makeCase("tokens_first",
                           [](ScanCase &scan) { scan.tokensFirst = true; }));
  cases.push_back(makeCase("reverse", [](ScanCase &scan) {
    scan.reverse = true;
    scan.decay = ScanCase::Token;
  }));
  cases.push_back(makeCase("packed", [](ScanCase &scan) {
    scan.offsets = {0, 70, 70, 150};
    scan.decay = ScanCase::Token;
  }));
  cases.push_back(makeCase("grouped_queries", [](ScanCase &scan) {
    scan.queryHeads = 4;
    scan.initial = ScanCase::Zero;
  }));
  cases.push_back(makeCase("grouped_values", [](ScanCase &scan) {
    scan.queryHeads = scan.keyHeads = 1;
    scan.valueHeads = 2;
  }));
  cases.push_back(makeCase(
      "in_place", [](ScanCase &scan) { scan.initial = ScanCase::InPlace; }));
  cases.push_back(makeCase("pool", [](ScanCase &scan) {
    scan.pool = true;
    scan.batch = 3;
    scan.tokens = 70;
  }));
  cases.push_back(makeCase("pool_packed", [](ScanCase &scan) {
    scan.pool = true;
    scan.offsets = {0, 30, 75, 150};
    scan.decay = ScanCase::Token;
    scan.keySize = 32;
    scan.valueSize = 156;
  }));
  cases.push_back(makeCase(
      "head_decay", [](ScanCase &scan) { scan.decay = ScanCase::Head; }));
  cases.push_back(makeCase(
      "token_decay", [](ScanCase &scan) { scan.decay = ScanCase::Token; }));
  cases.push_back(makeCase("token_decay_f16", [](ScanCase &scan) {
    scan.decay = ScanCase::Token;
    scan.dtype = DType::F16;
  }));
  cases.push_back(makeCase("steep_decay", [](ScanCase &scan) {
    scan.decay = ScanCase::Token;
    scan.decayScale = 1000;
  }));
  cases.push_back(makeCase("mask", [](ScanCase &scan) {
    scan.mask = true;
    scan.batch = 2;
    scan.decay = ScanCase::Token;
  }));
  cases.push_back(makeCase("mask_packed_reverse", [](ScanCase &scan) {
    scan.mask = scan.reverse = true;
    scan.offsets = {0, 70, 70, 150};
    scan.keySize = scan.valueSize = 60;
  }));
  return cases;
}

std::vector<ScanCase> linattn::test::warpgroupCases() {
  std::vector<ScanCase> cases;
  for (ScanCase scan : chunkCases())
    if (scan.keySize <= 128)
      cases.push_back(scan);
  auto add = [&](std::string name, std::function<void(ScanCase &)> change) {
    cases.push_back(makeCase(name, change));
  };
  // Two warpgroups of the state, of which one holds rows that do not exist; and
  // columns of which not all slices are full.
  add("decays_d96", [](ScanCase &scan) {
    scan.keySize = scan.valueSize = 96;
    scan.decay = ScanCase::Token;
  });
  add("decays_d128", [](ScanCase &scan) {
    scan.keySize = scan.valueSize = 128;
    scan.decay = ScanCase::Token;
  });
  add("narrow_values", [](ScanCase &scan) {
    scan.keySize = 128;
    scan.valueSize = 16;
    scan.decay = ScanCase::Head;
  });
  add("gates_of_16_bits", [](ScanCase &scan) {
    scan.gates = DType::BF16;
    scan.decay = ScanCase::Token;
  });
  add("whole_chunks", [](ScanCase &scan) { scan.tokens = 192; });
  add("few_tokens", [](ScanCase &scan) {
    scan.tokens = 20;
    scan.decay = ScanCase::Token;
  });
  for (ScanCase &scan : cases) {
    scan.chip = "sm_90a";
    scan.warpgroups = true;
  }
  return cases;
}

std::vector<ScanCase> linattn::test::aheadCases() {
  std::vector<ScanCase> cases = columnCases(), others = transitionCases();
  cases.insert(cases.end(), others.begin(), others.end());
  llvm::erase_if(cases, [](const ScanCase &scan) {
    // Three stages of more fit up to 64 channels.
    bool isLarge = scan.dtype == DType::F32 || scan.update == UpdateRule::Dplr;
    int64_t most = isLarge ? 64 : 128;
    return scan.normalize || scan.keySize > most || !scan.schedule.empty();
  });
  for (ScanCase &scan : cases) {
    int64_t warps = std::clamp<int64_t>(
        llvm::divideCeil(scan.valueSize, int64_t(16)), 4, 8);
    // Chunks of one block, and of more than one, have other warps in common.
    bool isLarge = scan.dtype == DType::F32 || scan.update == UpdateRule::Dplr;
    int64_t tokens = scan.keySize > 64 || isLarge ? 16 : 32;
    scan.schedule =
        llvm::formatv("#linattn.schedule<form = chunk, mma = mma_sync, chunk = "
                      "{0}, warps = {1}, stages = 3, value_slice = {2}>",
                      tokens, warps + (scan.reverse ? 8 : 4), 16 * warps)
            .str();
  }
  return cases;
}

std::vector<ScanCase> linattn::test::fastCases() {
  std::vector<ScanCase> cases = columnCases(), others = transitionCases();
  cases.insert(cases.end(), others.begin(), others.end());
  llvm::erase_if(cases,
                 [](const ScanCase &scan) { return !scan.schedule.empty(); });
  for (ScanCase scan : aheadCases()) {
    // Other scans overwrite no operand in its stage.
    if (scan.decay != ScanCase::Channel &&
        scan.featureMap == FeatureMapKind::Identity)
      continue;
    scan.name += "_ahead";
    scan.schedule.back() = ',';
    scan.schedule += " summands = 1>";
    cases.push_back(scan);
  }
  llvm::erase_if(cases,
                 [](const ScanCase &scan) { return scan.dtype == DType::F32; });
  for (ScanCase &scan : cases)
    scan.fast = true;
  return cases;
}

std::vector<ScanCase> linattn::test::columnCases() {
  std::vector<ScanCase> cases;
  auto add = [&](std::string name, std::function<void(ScanCase &)> change) {
    cases.push_back(makeCase(name, change));
  };
  auto delta = [](ScanCase &scan) { scan.update = UpdateRule::Delta; };
  auto gatedDelta = [](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.decay = ScanCase::Token;
  };
  auto kda = [](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.decay = ScanCase::Channel;
  };
  for (int64_t size : {16, 32, 60, 64, 96, 128, 192, 256})
    add("gated_delta_d" + std::to_string(size), [&](ScanCase &scan) {
      gatedDelta(scan);
      scan.keySize = scan.valueSize = size;
      if (size > 128) {
        scan.tokens = 70;
        scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
      }
    });
  add("delta", delta);
  add("delta_f16", [&](ScanCase &scan) {
    delta(scan);
    scan.dtype = DType::F16;
  });
  add("delta_f32", [&](ScanCase &scan) {
    delta(scan);
    scan.dtype = DType::F32;
  });
  add("delta_head_decay", [&](ScanCase &scan) {
    delta(scan);
    scan.decay = ScanCase::Head;
  });
  add("delta_steep", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.decayScale = 1000;
  });
  add("delta_packed_reverse", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.offsets = {0, 70, 70, 150};
    scan.reverse = true;
  });
  add("delta_exclusive", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.readout = Readout::Exclusive;
  });
  add("delta_pool", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.pool = true;
    scan.batch = 3;
    scan.tokens = 40;
    scan.keySize = scan.valueSize = 60;
  });
  add("f32_pool_packed_reverse", [&](ScanCase &scan) {
    scan.dtype = DType::F32;
    scan.pool = scan.reverse = true;
    scan.offsets = {0, 30, 75, 150};
    scan.keySize = scan.valueSize = 32;
  });
  add("delta_wide_values", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.keySize = 32;
    scan.valueSize = 160;
    scan.initial = ScanCase::InPlace;
  });
  add("delta_grouped_queries", [&](ScanCase &scan) {
    delta(scan);
    scan.queryHeads = 4;
    scan.initial = ScanCase::Zero;
  });
  add("kda", kda);
  add("kda_f32_d60", [&](ScanCase &scan) {
    kda(scan);
    scan.dtype = DType::F32;
    scan.keySize = scan.valueSize = 60;
  });
  add("kda_steep", [&](ScanCase &scan) {
    kda(scan);
    scan.decayScale = 1000;
  });
  add("gla", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.tokensFirst = true;
  });
  add("gla_f16", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.dtype = DType::F16;
  });
  add("gla_steep", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.decayScale = 1000;
  });
  auto small = [](ScanCase &scan, int64_t size) {
    scan.keySize = scan.valueSize = size;
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
    scan.tokens = size > 64 ? 70 : 150;
  };
  for (int64_t size : {16, 32, 60, 96, 128, 192, 256}) {
    std::string suffix = "_d" + std::to_string(size);
    add("gla" + suffix, [&](ScanCase &scan) {
      small(scan, size);
      scan.decay = ScanCase::Channel;
    });
    add("kda" + suffix, [&](ScanCase &scan) {
      small(scan, size);
      kda(scan);
    });
    add("f32" + suffix, [&](ScanCase &scan) {
      small(scan, size);
      scan.dtype = DType::F32;
    });
  }
  // Values that are rounded once per block must not drift.
  auto slow = [](ScanCase &scan) {
    scan.tokens = 1000;
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
    scan.keySize = scan.valueSize = 32;
    scan.decayScale = 0.01;
  };
  add("long_gla", [&](ScanCase &scan) {
    slow(scan);
    scan.decay = ScanCase::Channel;
  });
  add("long_gated_delta", [&](ScanCase &scan) {
    gatedDelta(scan);
    slow(scan);
  });
  add("long_columns", [&](ScanCase &scan) {
    slow(scan);
    scan.valueDecay = true;
  });
  add("long_f32", [&](ScanCase &scan) {
    slow(scan);
    scan.dtype = DType::F32;
  });
  add("f32_token_decay", [](ScanCase &scan) {
    scan.dtype = DType::F32;
    scan.decay = ScanCase::Token;
    scan.offsets = {0, 70, 70, 150};
  });
  add("bonus", [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.bonus = true;
  });
  add("bonus_channel_decay", [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.bonus = true;
    scan.decay = ScanCase::Channel;
    scan.keySize = scan.valueSize = 60;
  });
  add("exclusive_f32", [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.decay = ScanCase::Token;
    scan.dtype = DType::F32;
  });
  add("columns", [](ScanCase &scan) {
    scan.valueDecay = true;
    scan.initial = ScanCase::InPlace;
  });
  add("columns_steep_f16", [](ScanCase &scan) {
    scan.valueDecay = true;
    scan.decayScale = 1000;
    scan.dtype = DType::F16;
  });
  add("columns_bonus_reverse", [](ScanCase &scan) {
    scan.valueDecay = scan.bonus = scan.reverse = true;
    scan.readout = Readout::Exclusive;
    scan.keySize = scan.valueSize = 60;
  });
  add("columns_narrow_mask_packed", [](ScanCase &scan) {
    scan.valueDecay = scan.mask = true;
    scan.gates = DType::BF16;
    scan.offsets = {0, 70, 70, 150};
    scan.keySize = 32;
    scan.valueSize = 156;
  });
  add("columns_exclusive_f32", [](ScanCase &scan) {
    scan.valueDecay = true;
    scan.readout = Readout::Exclusive;
    scan.dtype = DType::F32;
    scan.keySize = scan.valueSize = 128;
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
    scan.tokens = 70;
  });
  add("normalizer", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
  });
  add("normalizer_token_decay", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Relu;
    scan.decay = ScanCase::Token;
    scan.dtype = DType::F16;
    scan.keySize = scan.valueSize = 60;
  });
  add("normalizer_channel_decay", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
    scan.decay = ScanCase::Channel;
    scan.dtype = DType::F32;
  });
  add("relu2", [](ScanCase &scan) { scan.featureMap = FeatureMapKind::Relu2; });
  add("mask_normalizer", [](ScanCase &scan) {
    scan.mask = scan.normalize = true;
    scan.batch = 2;
    scan.featureMap = FeatureMapKind::Elu1;
  });
  add("mask_gated_delta", [&](ScanCase &scan) {
    gatedDelta(scan);
    scan.mask = true;
    scan.batch = 2;
  });
  add("mask_kda_f32_packed_reverse", [&](ScanCase &scan) {
    kda(scan);
    scan.mask = scan.reverse = true;
    scan.dtype = DType::F32;
    scan.offsets = {0, 70, 70, 150};
  });
  add("mask_bonus_tokens_first", [](ScanCase &scan) {
    scan.mask = scan.bonus = scan.tokensFirst = true;
    scan.readout = Readout::Exclusive;
    scan.decay = ScanCase::Channel;
    scan.batch = 2;
  });
  add("mask_delta_pool", [&](ScanCase &scan) {
    delta(scan);
    scan.mask = scan.pool = true;
    scan.batch = 3;
    scan.tokens = 40;
    scan.keySize = scan.valueSize = 60;
  });
  return cases;
}
