//===- FeatureSizeTest.cpp - How many features a map makes ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureSize.h"
#include "gtest/gtest.h"
#include <set>

using namespace linattn;

namespace {

TEST(FeatureSize, HeadOf64With128RandomFeatures) {
  std::pair<const char *, int64_t> sizes[] = {{"identity", 64},
                                              {"relu", 64},
                                              {"relu2", 64},
                                              {"elu1", 64},
                                              {"softmax_kernel", 64},
                                              {"exp", 64},
                                              {"softmax", 64},
                                              {"l2norm", 64},
                                              {"sum_norm", 64},
                                              {"favor", 128},
                                              {"favor_hyperbolic", 256},
                                              {"random_fourier", 256},
                                              {"random_fourier_exp", 256},
                                              {"t2r", 128},
                                              {"hadamard", 128},
                                              {"cosformer", 128},
                                              {"hedgehog", 128},
                                              {"hedgehog_exp", 128},
                                              {"dpfp", 384},
                                              {"taylor", 1 + 64 + 2080},
                                              {"taylor_full", 1 + 64 + 4096},
                                              {"rebased", 2080},
                                              {"outer_product", 2080}};
  for (auto [name, size] : sizes) {
    SCOPED_TRACE(name);
    EXPECT_EQ(featureSize(name, {64, 128, 3}), size);
  }
}

// Of the other maps the oracle knows the sizes (FeatureMapsTest.cpp).
TEST(FeatureSize, NamesAreUnique) {
  std::vector<std::string_view> all = getFeatureMapNames();
  EXPECT_EQ(std::set<std::string_view>(all.begin(), all.end()).size(),
            all.size());
}

TEST(FeatureSize, SmallHeads) {
  // Based runs with heads of 16; the smallest head is one number.
  EXPECT_EQ(featureSize("taylor", {16}), 153);
  EXPECT_EQ(featureSize("taylor", {1}), 3);
  EXPECT_EQ(featureSize("dpfp", {16, 0, 1}), 32);
  EXPECT_EQ(featureSize("rebased", {1}), 1);
}

TEST(FeatureSize, LargeParametersDoNotOverflow) {
  int64_t large = int64_t(1) << 30;
  EXPECT_EQ(featureSize("dpfp", {large, 0, large}), int64_t(1) << 61);
  EXPECT_EQ(featureSize("random_fourier", {large, large}), int64_t(1) << 31);
}

std::string getError(std::string_view name, FeatureParameters parameters) {
  std::string error;
  EXPECT_EQ(featureSize(name, parameters, &error), std::nullopt);
  EXPECT_EQ(featureSize(name, parameters), std::nullopt);
  return error;
}

TEST(FeatureSize, Errors) {
  std::string unknown = getError("nystrom", {64});
  EXPECT_EQ(unknown.rfind("expected a feature map among identity, relu, ", 0),
            0u)
      << unknown;
  EXPECT_NE(unknown.find(", outer_product"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find(", but got 'nystrom'"), std::string::npos) << unknown;
  EXPECT_EQ(getError("elu1", {0}),
            "'elu1': expected a head size from 1 to 1073741824, but got 0");
  EXPECT_EQ(getError("favor", {64}),
            "'favor': expected a number of random "
            "features from 1 to 1073741824, but got 0");
  EXPECT_EQ(getError("dpfp", {64, 0, -1}), "'dpfp': expected a number of "
                                           "shifts from 1 to 1073741824, but "
                                           "got -1");
  EXPECT_EQ(getError("taylor", {(int64_t(1) << 30) + 1}),
            "'taylor': expected a head size from 1 to 1073741824, but got "
            "1073741825");
}

} // namespace
