//===- SegmentsTest.cpp - Segments of T in parallel -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three kernels with many blocks replace one block that runs chunk after chunk:
// the same results, up to rounding, and not much more traffic.
//
//===----------------------------------------------------------------------===//

#include "../Sample.h"
#include "ScanCase.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;

namespace {

std::string scheduleOf(int64_t chunk, int64_t warps, int64_t columns,
                       int64_t split) {
  return "#linattn.schedule<form = chunk, mma = mma_sync, chunk = " +
         std::to_string(chunk) + ", warps = " + std::to_string(warps) +
         ", stages = 2, value_slice = " + std::to_string(columns) +
         ", split = " + std::to_string(split) + ">";
}

ScanCase named(std::string name, std::function<void(ScanCase &)> change) {
  return makeCase(std::move(name), [&](ScanCase &scan) {
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
    scan.tokens = 200;
    scan.schedule = scheduleOf(64, 4, 64, 3);
    change(scan);
  });
}

class Segments : public testing::TestWithParam<ScanCase> {};

TEST_P(Segments, AgreeWithTheOracle) {
  const ScanCase &scan = GetParam();
  ScanOutcome outcome = runCase(scan);
  ASSERT_EQ(outcome.error, "") << toText(scan);
  EXPECT_EQ(outcome.launches, scan.normalize ? 4u : 3u);
  EXPECT_TRUE(outcome.report.isClean()) << outcome.report.describeFindings();
  double tolerance = scan.dtype == DType::BF16  ? 4e-3
                     : scan.dtype == DType::F16 ? 6e-4
                                                : 2e-6;
  // Without a map that is positive denominators come near 0.
  if (!scan.normalize || scan.featureMap != FeatureMapKind::Identity) {
    EXPECT_LE(outcome.outputError, tolerance) << outcome.worst;
  }
  EXPECT_LE(outcome.stateError, 1e-6);
  EXPECT_LE(outcome.normalizerError, 1e-6);
  EXPECT_LE(outcome.report.traffic.getCyclesPerPhase(), 1.1);
  RecordProperty("output", std::to_string(outcome.outputError));
  RecordProperty("state", std::to_string(outcome.stateError));
}

std::vector<ScanCase> cases() {
  std::vector<ScanCase> cases;
  auto add = [&](std::string name, std::function<void(ScanCase &)> change) {
    cases.push_back(named(name, change));
  };
  add("plain", [](ScanCase &scan) {});
  add("two", [](ScanCase &scan) {
    scan.schedule = scheduleOf(64, 4, 64, 2);
    scan.initial = ScanCase::InPlace;
  });
  // Of 12 segments of a chunk each the last are empty.
  add("more_than_chunks", [](ScanCase &scan) {
    scan.tokens = 100;
    scan.schedule = scheduleOf(64, 4, 64, 12);
    scan.decay = ScanCase::Token;
  });
  add("fewer_tokens_than_a_chunk", [](ScanCase &scan) {
    scan.tokens = 20;
    scan.decay = ScanCase::Head;
  });
  add("head_decay", [](ScanCase &scan) {
    scan.decay = ScanCase::Head;
    scan.initial = ScanCase::Zero;
  });
  add("token_decay", [](ScanCase &scan) {
    scan.batch = 2;
    scan.decay = ScanCase::Token;
    scan.tokensFirst = true;
  });
  add("reverse", [](ScanCase &scan) {
    scan.decay = ScanCase::Token;
    scan.reverse = true;
  });
  add("grouped_queries", [](ScanCase &scan) {
    scan.queryHeads = 4;
    scan.keyHeads = scan.valueHeads = 2;
    scan.decay = ScanCase::Token;
    scan.initial = ScanCase::Zero;
  });
  add("grouped_values", [](ScanCase &scan) { scan.valueHeads = 2; });
  add("wide_values", [](ScanCase &scan) {
    scan.keySize = 32;
    scan.valueSize = 160;
    scan.decay = ScanCase::Token;
    scan.schedule = scheduleOf(64, 8, 128, 2);
  });
  add("f16_d60", [](ScanCase &scan) {
    scan.dtype = DType::F16;
    scan.tokens = 80; // Sums of more do not fit 16 bits.
    scan.keySize = scan.valueSize = 60;
    scan.schedule = scheduleOf(64, 4, 64, 2);
  });
  add("d256", [](ScanCase &scan) {
    scan.keySize = scan.valueSize = 256;
    scan.tokens = 70;
    scan.decay = ScanCase::Head;
    scan.chip = "sm_90";
    scan.schedule = scheduleOf(64, 8, 64, 2);
  });
  // By columns.
  add("gla", [](ScanCase &scan) { scan.decay = ScanCase::Channel; });
  add("gla_steep", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.decayScale = 1000;
  });
  add("gla_f32_d60", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.dtype = DType::F32;
    scan.keySize = scan.valueSize = 60;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  add("gla_wide", [](ScanCase &scan) {
    scan.decay = ScanCase::Channel;
    scan.keySize = 160;
    scan.valueSize = 80;
    scan.tokens = 100;
    scan.schedule = scheduleOf(16, 4, 64, 2);
  });
  add("f32", [](ScanCase &scan) {
    scan.dtype = DType::F32;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  add("f32_token_decay", [](ScanCase &scan) {
    scan.dtype = DType::F32;
    scan.decay = ScanCase::Token;
    scan.reverse = true;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  add("exclusive_head_decay", [](ScanCase &scan) {
    scan.readout = Readout::Exclusive;
    scan.bonus = true;
    scan.decay = ScanCase::Head;
  });
  add("mask", [](ScanCase &scan) {
    scan.mask = true;
    scan.decay = ScanCase::Token;
  });
  add("mask_gla_elu1", [](ScanCase &scan) {
    scan.mask = true;
    scan.decay = ScanCase::Channel;
    scan.featureMap = FeatureMapKind::Elu1;
  });
  // The segments of a sequence are of its own length; one has no token.
  add("packed", [](ScanCase &scan) {
    scan.offsets = {0, 20, 20, 200};
    scan.decay = ScanCase::Token;
  });
  add("packed_reverse", [](ScanCase &scan) {
    scan.offsets = {0, 130, 200};
    scan.decay = ScanCase::Channel;
    scan.reverse = true;
  });
  add("normalized", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
  });
  add("normalized_raw_tokens", [](ScanCase &scan) {
    scan.normalize = true;
    scan.decay = ScanCase::Token;
    scan.initial = ScanCase::InPlace;
    scan.mask = true;
  });
  add("normalized_gla_d60", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
    scan.decay = ScanCase::Channel;
    scan.keySize = scan.valueSize = 60;
    scan.offsets = {0, 50, 200};
  });
  add("normalized_f32", [](ScanCase &scan) {
    scan.normalize = true;
    scan.featureMap = FeatureMapKind::Elu1;
    scan.decay = ScanCase::Head;
    scan.dtype = DType::F32;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  // One of the sequences has no row.
  add("pool", [](ScanCase &scan) {
    scan.batch = 3;
    scan.pool = true;
    scan.decay = ScanCase::Token;
  });
  add("pool_gla", [](ScanCase &scan) {
    scan.batch = 3;
    scan.pool = true;
    scan.decay = ScanCase::Channel;
  });
  // A matrix in place of factors.
  auto delta = [](ScanCase &scan) { scan.update = UpdateRule::Delta; };
  add("delta", delta);
  add("gated_delta_reverse", [&](ScanCase &scan) {
    delta(scan);
    scan.decay = ScanCase::Token;
    scan.reverse = true;
    scan.initial = ScanCase::InPlace;
    scan.schedule = scheduleOf(32, 4, 64, 4);
  });
  add("kda_grouped_queries", [&](ScanCase &scan) {
    delta(scan);
    scan.decay = ScanCase::Channel;
    scan.queryHeads = 4;
    scan.keyHeads = scan.valueHeads = 2;
    scan.initial = ScanCase::Zero;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  add("kda_f32_d60", [&](ScanCase &scan) {
    delta(scan);
    scan.decay = ScanCase::Channel;
    scan.dtype = DType::F32;
    scan.keySize = scan.valueSize = 60;
    scan.schedule = scheduleOf(16, 4, 64, 3);
  });
  add("delta_d256", [&](ScanCase &scan) {
    delta(scan);
    scan.keySize = 256;
    scan.valueSize = 40;
    scan.tokens = 100;
    scan.decay = ScanCase::Head;
    scan.chip = "sm_90";
    scan.schedule = scheduleOf(16, 4, 64, 2);
  });
  // More slices of the transition than of values, and fewer.
  add("delta_wide_values", [&](ScanCase &scan) {
    delta(scan);
    scan.keySize = 34;
    scan.valueSize = 160;
    scan.schedule = scheduleOf(16, 4, 64, 3);
  });
  add("delta_mask_relu_f16", [&](ScanCase &scan) {
    delta(scan);
    scan.mask = true;
    scan.dtype = DType::F16;
    scan.featureMap = FeatureMapKind::Relu;
    scan.keySize = 16;
    scan.schedule = scheduleOf(16, 4, 64, 3);
  });
  add("gates_packed", [&](ScanCase &scan) {
    delta(scan);
    scan.erase = scan.write = true;
    scan.decay = ScanCase::Channel;
    scan.offsets = {0, 20, 20, 200};
    scan.schedule = scheduleOf(16, 4, 64, 3);
  });
  add("delta_pool", [&](ScanCase &scan) {
    delta(scan);
    scan.batch = 3;
    scan.pool = true;
    scan.decay = ScanCase::Token;
    scan.schedule = scheduleOf(32, 4, 64, 3);
  });
  auto given = [](ScanCase &scan) {
    scan.update = UpdateRule::Dplr;
    scan.schedule = scheduleOf(16, 4, 64, 3);
  };
  add("given", given);
  add("given_gla_exclusive", [&](ScanCase &scan) {
    given(scan);
    scan.decay = ScanCase::Channel;
    scan.readout = Readout::Exclusive;
    scan.readsBefore = false;
  });
  add("more_than_chunks_of_delta", [&](ScanCase &scan) {
    delta(scan);
    scan.tokens = 40;
    scan.schedule = scheduleOf(16, 4, 64, 12);
  });
  add("relu2", [](ScanCase &scan) { scan.featureMap = FeatureMapKind::Relu2; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Segments, testing::ValuesIn(draw(cases())),
                         [](const testing::TestParamInfo<ScanCase> &info) {
                           return info.param.name;
                         });

/// 32-byte sectors of all kernels, over the bytes of every operand once.
double trafficOf(std::function<void(ScanCase &)> change) {
  ScanOutcome outcome = runCase(named("", [&](ScanCase &scan) {
    scan.tokens = 1024;
    scan.keySize = scan.valueSize = 32;
    scan.decay = ScanCase::Token;
    change(scan);
  }));
  EXPECT_EQ(outcome.error, "");
  const emulator::Traffic &traffic = outcome.report.traffic;
  return 32.0 * (traffic.sectorsRead + traffic.sectorsWritten) /
         (outcome.bytesToRead + outcome.bytesToWrite);
}

TEST(SegmentsTraffic, IsBounded) {
  double traffic = trafficOf(
      [](ScanCase &scan) { scan.schedule = scheduleOf(64, 4, 32, 2); });
  EXPECT_LE(traffic, 1.6);
  // Keys and values of half of the tokens again, and states.
  EXPECT_GE(traffic, 1.2);
}

/// Keys once more, for the columns of a transition, and its matrices.
TEST(SegmentsTraffic, OfTransitionsIsBounded) {
  double traffic = trafficOf([](ScanCase &scan) {
    scan.update = UpdateRule::Delta;
    scan.schedule = scheduleOf(64, 4, 64, 4);
  });
  EXPECT_LE(traffic, 2.2);
  EXPECT_GE(traffic, 1.6);
  RecordProperty("traffic", std::to_string(traffic));
}

/// The products of the decays of segments must not drift, nor those of their
/// matrices.
TEST(SegmentsErrors, AreThoseOfOnePass) {
  for (UpdateRule update : {UpdateRule::Add, UpdateRule::Delta}) {
    ScanOutcome outcomes[2];
    for (int64_t i = 0; i < 2; ++i)
      outcomes[i] = runCase(named("", [&](ScanCase &scan) {
        scan.update = update;
        scan.tokens = 1000;
        scan.keySize = scan.valueSize = 32;
        scan.decay = ScanCase::Token;
        scan.decayScale = 0.01;
        int64_t columns = update == UpdateRule::Add ? 32 : 64;
        scan.schedule = scheduleOf(64, 4, columns, i ? 4 : 1);
      }));
    ASSERT_EQ(outcomes[0].error + outcomes[1].error, "");
    EXPECT_EQ(outcomes[0].launches, 1u);
    EXPECT_EQ(outcomes[1].launches, 3u);
    EXPECT_LE(outcomes[1].outputError, 1.1 * outcomes[0].outputError);
    EXPECT_LE(outcomes[1].stateError,
              std::max(1e-6, 1.1 * outcomes[0].stateError));
  }
}

TEST(SegmentsBits, DoNotChange) {
  ScanCase scan = named("", [](ScanCase &scan) {
    scan.tokens = 200;
    scan.keySize = scan.valueSize = 32;
    scan.decay = ScanCase::Token;
    scan.schedule = scheduleOf(64, 4, 32, 3);
  });
  ScanOutcome first = runCase(scan), second = runCase(scan);
  ASSERT_EQ(first.error, "");
  EXPECT_EQ(first.output, second.output);
}

} // namespace
