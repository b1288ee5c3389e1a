//===- AttentionKernelTest.cpp - Kernels of attention without scans -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whole functions run as for a GPU, their kernels in the emulator, where a race
// or a read of what no thread wrote is an error of the call, and are compared
// with the float64 oracle.
//
//===----------------------------------------------------------------------===//

#include "../Sample.h"
#include "AttentionCase.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>

using namespace linattn;
using namespace linattn::test;

namespace {

class AttentionKernels : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionKernels, AgreeWithTheOracle) {
  const AttentionCase &attention = GetParam();
  AttentionOutcome outcome = runCase(attention);
  ASSERT_TRUE(outcome.ran);
  ASSERT_EQ(outcome.launches.size(), 1u);
  EXPECT_EQ(outcome.launches[0].kernel, "layer_quadratic");
  EXPECT_LE(outcome.error, attention.dtype == DType::BF16  ? 4e-3
                           : attention.dtype == DType::F16 ? 6e-4
                                                           : attention.most);
  double cycles = outcome.launches[0].report.traffic.getCyclesPerPhase();
  EXPECT_LE(cycles, 1.1);
  bool copiesBoxes = llvm::any_of(
      outcome.launches[0].report.sites, [](const emulator::SiteTraffic &site) {
        return llvm::StringRef(site.location).contains("cp.async.bulk.tensor");
      });
  EXPECT_EQ(copiesBoxes, attention.copy == "tma");
  RecordProperty("output", llvm::formatv("{0:E2}", outcome.error).str());
  RecordProperty("cycles", std::to_string(cycles));
}

AttentionCase named(std::string name,
                    std::function<void(AttentionCase &)> change) {
  AttentionCase attention;
  attention.name = std::move(name);
  change(attention);
  return attention;
}

std::vector<AttentionCase> softmaxCases() {
  std::vector<AttentionCase> cases;
  auto add = [&](std::string name,
                 std::function<void(AttentionCase &)> change) {
    cases.push_back(named(name, change));
  };
  for (int64_t size : {16, 32, 60, 64, 96, 128, 192, 256})
    for (bool causal : {false, true})
      add((causal ? "causal_d" : "d") + std::to_string(size),
          [&](AttentionCase &attention) {
            attention.keySize = attention.valueSize = size;
            attention.causal = causal;
            if (size > 64)
              attention.queryHeads = attention.keyHeads = attention.valueHeads =
                  1;
            if (size > 128)
              attention.queries = attention.keys = 70;
          });
  add("f16", [](AttentionCase &attention) {
    attention.dtype = DType::F16;
    attention.causal = true;
  });
  add("other_values", [](AttentionCase &attention) {
    attention.keySize = 32;
    attention.valueSize = 160;
  });
  add("odd_words", [](AttentionCase &attention) {
    attention.keySize = 34;
    attention.valueSize = 250;
    attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
  });
  add("sm_90", [](AttentionCase &attention) {
    attention.keySize = attention.valueSize = 128;
    attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
    attention.chip = "sm_90";
  });
  add("cross", [](AttentionCase &attention) {
    attention.queries = 40;
    attention.keys = 200;
  });
  add("causal_cross", [](AttentionCase &attention) {
    attention.queries = 40;
    attention.keys = 200;
    attention.causal = true;
  });
  add("queries_without_keys", [](AttentionCase &attention) {
    attention.queries = 200;
    attention.keys = 40;
    attention.causal = true;
  });
  add("step", [](AttentionCase &attention) {
    attention.queries = 1;
    attention.keys = 192;
    attention.queryHeads = 16;
    attention.staticTokens = true;
  });
  add("whole_tiles", [](AttentionCase &attention) {
    attention.queries = attention.keys = 128;
    attention.staticTokens = true;
  });
  add("grouped_heads", [](AttentionCase &attention) {
    attention.queryHeads = 4;
    attention.batch = 2;
    attention.queries = attention.keys = 70;
    attention.causal = true;
  });
  add("tokens_first", [](AttentionCase &attention) {
    attention.tokensFirst = true;
    attention.causal = true;
  });
  add("far_apart", [](AttentionCase &attention) {
    attention.queryScale = 60;
    attention.causal = true;
  });
  add("negative_scale",
      [](AttentionCase &attention) { attention.scale = -0.125; });
  add("scale_0", [](AttentionCase &attention) {
    attention.scale = 0;
    attention.causal = true;
  });
  add("mask", [](AttentionCase &attention) {
    attention.mask = true;
    attention.batch = 2;
    attention.queries = 70;
  });
  add("causal_mask", [](AttentionCase &attention) {
    attention.mask = attention.causal = true;
  });
  add("prefix", [](AttentionCase &attention) {
    attention.prefix = attention.causal = true;
  });
  return cases;
}

std::vector<AttentionCase> linearCases() {
  std::vector<AttentionCase> cases;
  auto add = [&](std::string name,
                 std::function<void(AttentionCase &)> change) {
    cases.push_back(named(name, [&](AttentionCase &attention) {
      attention.linear = true;
      change(attention);
    }));
  };
  add("linear", [](AttentionCase &) {});
  add("linear_causal_mask", [](AttentionCase &attention) {
    attention.causal = attention.mask = true;
  });
  return cases;
}

/// The same by products of warpgroups, in the ways that their tiles differ.
std::vector<AttentionCase> wgmmaCases() {
  std::vector<AttentionCase> cases;
  auto add = [&](std::string name,
                 std::function<void(AttentionCase &)> change) {
    cases.push_back(named(name, [&](AttentionCase &attention) {
      attention.chip = "sm_90a";
      attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
      change(attention);
    }));
  };
  for (int64_t size : {16, 60, 64, 96, 128, 256})
    for (bool causal : {false, true})
      if (causal == (size != 64 && size != 128) || size == 64)
        add((causal ? "causal_d" : "d") + std::to_string(size),
            [&](AttentionCase &attention) {
              attention.keySize = attention.valueSize = size;
              attention.causal = causal;
              if (size > 128)
                attention.queries = attention.keys = 70;
            });
  add("f16", [](AttentionCase &attention) {
    attention.dtype = DType::F16;
    attention.keySize = 128;
    attention.causal = true;
  });
  add("other_values", [](AttentionCase &attention) {
    attention.keySize = 34;
    attention.valueSize = 160;
  });
  add("step", [](AttentionCase &attention) {
    attention.queries = 1;
    attention.keys = 192;
    attention.queryHeads = 4;
    attention.staticTokens = true;
  });
  add("whole_tiles", [](AttentionCase &attention) {
    attention.queries = attention.keys = 128;
    attention.staticTokens = true;
  });
  add("causal_cross", [](AttentionCase &attention) {
    attention.queries = 40;
    attention.keys = 200;
    attention.causal = attention.prefix = true;
  });
  add("queries_without_keys", [](AttentionCase &attention) {
    attention.queries = 200;
    attention.keys = 40;
    attention.causal = true;
  });
  add("grouped_tokens_first", [](AttentionCase &attention) {
    attention.queryHeads = 4;
    attention.keyHeads = attention.valueHeads = 2;
    attention.queries = attention.keys = 70;
    attention.tokensFirst = attention.causal = true;
  });
  add("far_apart", [](AttentionCase &attention) {
    attention.queryScale = 60;
    attention.causal = true;
  });
  add("mask", [](AttentionCase &attention) {
    attention.mask = attention.causal = true;
  });
  add("linear", [](AttentionCase &attention) { attention.linear = true; });
  return cases;
}

/// Of f32, which has tiles and places of its own.
std::vector<AttentionCase> wideCases() {
  std::vector<AttentionCase> cases;
  auto add = [&](std::string name,
                 std::function<void(AttentionCase &)> change) {
    cases.push_back(named(name, [&](AttentionCase &attention) {
      attention.dtype = DType::F32;
      attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
      attention.queries = attention.keys = 70;
      change(attention);
    }));
  };
  for (int64_t size : {16, 32, 60, 64, 96, 128, 192, 256})
    for (bool causal : {false, true})
      add((causal ? "causal_d" : "d") + std::to_string(size),
          [&](AttentionCase &attention) {
            attention.keySize = attention.valueSize = size;
            attention.causal = causal;
            attention.scale = 1 / std::sqrt(double(size));
            if (size <= 64)
              attention.queries = attention.keys = 150;
          });
  add("sm_90a", [](AttentionCase &attention) {
    attention.keySize = attention.valueSize = 128;
    attention.chip = "sm_90a";
  });
  add("other_values", [](AttentionCase &attention) {
    attention.keySize = 34;
    attention.valueSize = 154;
  });
  add("odd_words", [](AttentionCase &attention) {
    attention.keySize = 162;
    attention.valueSize = 34;
  });
  add("many_keys", [](AttentionCase &attention) {
    attention.queries = 40;
    attention.keys = 1000;
    attention.keySize = attention.valueSize = 32;
  });
  add("causal_cross", [](AttentionCase &attention) {
    attention.queries = 40;
    attention.keys = 200;
    attention.causal = attention.prefix = true;
  });
  add("queries_without_keys", [](AttentionCase &attention) {
    attention.queries = 200;
    attention.keys = 40;
    attention.causal = true;
  });
  add("step", [](AttentionCase &attention) {
    attention.queries = 1;
    attention.keys = 192;
    attention.staticTokens = true;
  });
  add("whole_tiles", [](AttentionCase &attention) {
    attention.queries = attention.keys = 128;
    attention.staticTokens = true;
  });
  add("grouped_tokens_first", [](AttentionCase &attention) {
    attention.queryHeads = 4;
    attention.keyHeads = attention.valueHeads = 2;
    attention.keySize = attention.valueSize = 32;
    attention.batch = 2;
    attention.tokensFirst = attention.causal = true;
  });
  add("far_apart", [](AttentionCase &attention) {
    attention.queryScale = 60;
    attention.causal = true;
    attention.most = 1e-5; // Scores of 100 have 24 bits as all others do.
  });
  add("mask", [](AttentionCase &attention) {
    attention.mask = attention.causal = true;
  });
  add("linear", [](AttentionCase &attention) { attention.linear = true; });
  add("linear_normalized", [](AttentionCase &attention) {
    attention.linear = attention.causal = attention.normalize = true;
    attention.most = 1e-4; // The divisors are sums that cancel.
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Wide, AttentionKernels, testing::ValuesIn(wideCases()),
                         [](const auto &info) { return info.param.name; });
/// The same with copies by tensor maps.
std::vector<AttentionCase> tmaCases() {
  std::vector<AttentionCase> cases;
  for (AttentionCase attention : wgmmaCases())
    if (attention.keySize % 8 == 0 && attention.valueSize % 8 == 0)
      cases.push_back(attention);
  for (int64_t size : {32, 192})
    cases.push_back(
        named("d" + std::to_string(size), [&](AttentionCase &attention) {
          attention.chip = "sm_90a";
          attention.keySize = attention.valueSize = size;
          attention.queries = attention.keys = 70;
        }));
  cases.push_back(named("other_values", [](AttentionCase &attention) {
    attention.chip = "sm_90a";
    attention.keySize = 24;
    attention.valueSize = 136;
    attention.batch = 2;
    attention.queries = attention.keys = 70;
    attention.tokensFirst = true;
  }));
  for (AttentionCase &attention : cases)
    attention.copy = "tma";
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Tma, AttentionKernels, testing::ValuesIn(tmaCases()),
                         [](const auto &info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Wgmma, AttentionKernels,
                         testing::ValuesIn(wgmmaCases()),
                         [](const auto &info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Softmax, AttentionKernels,
                         testing::ValuesIn(draw(softmaxCases())),
                         [](const auto &info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Linear, AttentionKernels,
                         testing::ValuesIn(linearCases()),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

/// Queries and outputs move once, keys and values once for every tile of
/// queries, as far as one of it sees them.
TEST(AttentionKernelTraffic, KeysAndValuesAreReadOncePerTileOfQueries) {
  for (int64_t size : {64, 128})
    for (bool causal : {false, true}) {
      AttentionCase attention = named("", [&](AttentionCase &attention) {
        attention.keySize = attention.valueSize = size;
        attention.queries = attention.keys = 256;
        attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
        attention.causal = causal;
      });
      AttentionOutcome outcome = runCase(attention);
      ASSERT_TRUE(outcome.ran);
      const emulator::Traffic &traffic = outcome.launches[0].report.traffic;
      int64_t row = size * 2, seen = 0;
      for (int64_t first = 0; first < attention.queries; first += 128)
        seen += causal ? first + 128 : attention.keys;
      EXPECT_LE(32 * traffic.sectorsWritten, 1.05 * attention.queries * row);
      EXPECT_LE(32 * traffic.sectorsRead,
                1.05 * (attention.queries + 2 * seen) * row)
          << size << ", " << causal;
      EXPECT_LE(traffic.getCyclesPerPhase(), 1.1);
    }
}

} // namespace
