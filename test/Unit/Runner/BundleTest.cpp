//===- BundleTest.cpp - Good and damaged bundles --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunnerTestUtils.h"
#include "linattn/Support/BundleFormat.h"

#include <array>
#include <cstring>
#include <random>
#include <sstream>

using namespace linattn;
using namespace linattn::test;

namespace {

using BundleTest = RunnerTest;

TEST_F(BundleTest, DescribesItself) {
  KernelPtr kernel = loadNamed("layer");
  ASSERT_TRUE(kernel);
  EXPECT_STREQ(linattn_kernel_target(kernel.get()), "nvvm");
  EXPECT_STREQ(linattn_kernel_entry(kernel.get()), "layer");
  EXPECT_NE(strstr(linattn_kernel_manifest(kernel.get()), "\"variants\""),
            nullptr);
  EXPECT_EQ(linattn_kernel_num_arguments(kernel.get()), 4);
  EXPECT_EQ(linattn_kernel_num_results(kernel.get()), 2);
  const linattn_operand *k = linattn_kernel_operand(kernel.get(), 1);
  EXPECT_STREQ(k->name, "k");
  EXPECT_EQ(k->dtype, LINATTN_BF16);
  EXPECT_EQ(std::vector<int64_t>(k->shape, k->shape + k->rank),
            (std::vector<int64_t>{2, 8, -1, 64}));
  EXPECT_EQ(k->in_place_of, -1);
  EXPECT_EQ(linattn_kernel_operand(kernel.get(), 5)->in_place_of, 3);
  EXPECT_EQ(linattn_kernel_operand(kernel.get(), 6), nullptr);
  EXPECT_EQ(linattn_kernel_operand(kernel.get(), -1), nullptr);
}

TEST_F(BundleTest, LoadsFromAFile) {
  linattn_kernel *kernel = nullptr;
  std::string path = std::string(LINATTN_BUNDLES) + "/layer.lab";
  EXPECT_EQ(take(linattn_kernel_load_file(path.c_str(), &kernel)), "");
  linattn_kernel_free(kernel);
  EXPECT_EQ(take(linattn_kernel_load_file("/no/such.lab", &kernel)),
            "/no/such.lab: cannot be read: No such file or directory");
}

TEST_F(BundleTest, EveryTruncationIsAnError) {
  std::string file = readBundle("retention"), error;
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_FALSE(load(file.substr(0, size), error)) << size;
    ASSERT_NE(error, "");
  }
  EXPECT_FALSE(load(file + '\0', error));
  EXPECT_NE(error.find("damaged bundle"), std::string::npos) << error;
}

TEST_F(BundleTest, EveryFlippedByteIsAnError) {
  std::string file = readBundle("retention"), error;
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = file;
    damaged[random() % file.size()] ^= 1 + random() % 255;
    ASSERT_FALSE(load(damaged, error)) << i;
    ASSERT_NE(error, "");
  }
}

/// A manifest is checked, so that no kernel that loads can crash.
TEST_F(BundleTest, NoManifestCrashes) {
  int loaded = 0;
  for (const char *name : {"retention", "attention", "layer", "loops"}) {
    std::string file = readBundle(name), error;
    BundleHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    std::mt19937 random(2);
    for (int i = 0; i < 1000; ++i) {
      std::string changed = file;
      size_t at = sizeof(header) + random() % header.manifestSize;
      // Mostly one digit for another: the text remains JSON.
      if (isdigit(changed[at]) || i % 4 == 0)
        changed[at] = "0123456789-,\"[]{}"[random() % (i % 4 ? 10 : 17)];
      sign(changed);
      KernelPtr kernel = load(changed, error);
      if (!kernel) {
        ASSERT_NE(error, "");
        continue;
      }
      ++loaded;
      fake.reset();
      if (!take(linattn_kernel_prepare(kernel.get())).empty())
        continue;
      // Sizes that need no memory: whatever is launched, nothing is read.
      std::vector<Operand> operands = makeOperands(loadNamed(name).get(), 3);
      std::vector<linattn_view> views = getViews(operands);
      size_t bytes = 0;
      take(linattn_kernel_workspace_size(kernel.get(), views.data(),
                                         views.size(), &bytes));
      launch(kernel.get(), operands, reinterpret_cast<void *>(1 << 16),
             size_t(1) << 60);
    }
  }
  EXPECT_GT(loaded, 300);
  // The launches above had arbitrary arguments.
  fake.reset();
}

TEST_F(BundleTest, OtherVersionsAreNamed) {
  std::string file = readBundle("layer"), error;
  file[8] = 7;
  sign(file);
  EXPECT_FALSE(load(file, error));
  EXPECT_EQ(error, "expected a bundle of version 3, but got version 7: compile "
                   "it again");
  EXPECT_FALSE(load("something else that is longer than a header is", error));
  EXPECT_EQ(error, "not a bundle: it does not start as one");
  EXPECT_FALSE(load("", error));
  EXPECT_EQ(error, "not a bundle: expected at least 40 bytes, but got 0");
}

TEST_F(BundleTest, ManifestsAreChecked) {
  std::string file = readBundle("layer"), error;
  auto replace = [&](const std::string &from, const std::string &to) {
    std::string changed = file;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    // The manifest keeps its length.
    changed.replace(at, from.size(), to);
    EXPECT_EQ(from.size(), to.size());
    sign(changed);
    EXPECT_FALSE(load(changed, error)) << to;
    return error;
  };
  EXPECT_EQ(replace("\"target\":\"nvvm\"", "\"target\":\"cudb\""),
            "malformed manifest: expected the target nvvm or cpu, but got "
            "'cudb'");
  EXPECT_EQ(replace("\"bf16\"", "\"bf61\""),
            "malformed manifest: expected a type of elements, but got 'bf61'");
  EXPECT_EQ(replace("[\"size\",0,2]", "[\"size\",9,2]"),
            "malformed manifest: expected a number from 0 to 3, but got 9");
  EXPECT_EQ(replace("[\"size\",0,2]", "[\"sine\",0,2]"),
            "malformed manifest: unknown operation 'sine'");
  file = readBundle("loops");
  EXPECT_EQ(replace("\"inner\":1", "\"inner\":5"),
            "malformed manifest: expected a number from 0 to 1, but got 5");
  EXPECT_EQ(replace("\"count\":2,\"first\":0", "\"count\":1,\"first\":0"),
            "malformed manifest: expected loops to be nested");
}

/// The bundle with another manifest, in front of the same code.
std::string replaceManifest(const std::string &file,
                            const std::string &manifest) {
  BundleHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  std::string blobs = file.substr(getBlobStart(header.manifestSize));
  header.manifestSize = manifest.size();
  std::string result(reinterpret_cast<char *>(&header), sizeof(header));
  result += manifest;
  result.resize(getBlobStart(manifest.size()));
  result += blobs;
  sign(result);
  return result;
}

std::string repeat(const std::string &text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += text;
  return result;
}

// A manifest of a megabyte must not take gigabytes, nor a stack.
TEST_F(BundleTest, SizesOfListsAreBounded) {
  auto getManifest = [](const std::string &file) {
    BundleHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    return file.substr(sizeof(header), header.manifestSize);
  };
  std::string chain = readBundle("chain"), error;
  std::string manifest = getManifest(chain), list = "\"buffers\":[";
  size_t at = manifest.find(list) + list.size();
  manifest.insert(at, repeat(R"({"bytes":11,"element_bytes":4},)", 60000));
  EXPECT_FALSE(load(replaceManifest(chain, manifest), error));
  EXPECT_EQ(error, "malformed manifest: expected at most 1024 buffers, but got "
                   "60003");

  std::string loops = readBundle("loops");
  manifest = getManifest(loops);
  list = "\"loops\":[";
  at = manifest.find(list) + list.size();
  std::string nested;
  for (int inner = 60001; inner > 1; --inner)
    nested += R"({"count":2,"first":0,"index":18,"inner":)" +
              std::to_string(inner) + R"(,"lower":14,"step":16,"upper":2},)";
  manifest.insert(at, nested);
  EXPECT_FALSE(load(replaceManifest(loops, manifest), error));
  EXPECT_EQ(error, "malformed manifest: expected loops to be nested at most 64 "
                   "deep");
}

/// The chain's three buffers, of other sizes and in use for longer.
KernelPtr loadUnequalChain() {
  std::string file = readBundle("chain"), error;
  auto change = [&](const std::string &from, const std::string &to) {
    size_t at = file.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    file.replace(at, from.size(), to);
  };
  // Value 13 is 4 n, value 14 is 256 n.
  std::string buffer = R"("element_bytes":4,"first":)";
  change(R"({"bytes":14,)" + buffer + R"(0,"last":1})",
         R"({"bytes":13,)" + buffer + R"(0,"last":1})");
  change(buffer + R"(1,"last":2})", buffer + R"(0,"last":2})");
  sign(file);
  KernelPtr kernel = load(file, error);
  EXPECT_EQ(error, "");
  return kernel;
}

// A buffer fits the place of one that is free again, but not beside the one in
// use.
TEST_F(BundleTest, UnequalBuffersThatAreInUseAtOnceAreApart) {
  KernelPtr kernel = loadUnequalChain();
  ASSERT_TRUE(kernel);
  ASSERT_EQ(take(linattn_kernel_prepare(kernel.get())), "");
  std::vector<Operand> operands = makeOperands(kernel.get(), 5);
  std::vector<linattn_view> views = getViews(operands);
  // 20 bytes, rounded up, and twice 1280.
  constexpr size_t whole = 256 + 2 * 1280;
  size_t bytes = 0;
  ASSERT_EQ(take(linattn_kernel_workspace_size(kernel.get(), views.data(),
                                               views.size(), &bytes)),
            "");
  EXPECT_EQ(bytes, whole);
  alignas(256) static char workspace[whole];
  fake.takeCalls();
  EXPECT_EQ(launch(kernel.get(), operands, workspace, bytes), "");
  std::vector<std::string> launches;
  for (const std::string &call : fake.takeCalls())
    if (call.rfind("cuLaunchKernel", 0) == 0)
      launches.push_back(call + " ");
  ASSERT_EQ(launches.size(), 4u);
  auto uses = [&](size_t i, size_t offset) {
    std::ostringstream address;
    address << " " << std::hex
            << reinterpret_cast<uintptr_t>(workspace + offset) << " ";
    return launches[i].find(address.str()) != std::string::npos;
  };
  for (auto [offset, first, last] :
       {std::array<size_t, 3>{0, 0, 1}, {256, 1, 2}, {256 + 1280, 2, 3}})
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(uses(i, offset), i >= first && i <= last) << offset << " " << i;
}

} // namespace
