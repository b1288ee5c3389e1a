//===- MatrixUnitTest.cpp - Products in matrix units ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of AMX run emulated anywhere. Where the machine has them, they run as
// well and have to give the same bits. Dot products run where the machine has
// them.
//
//===----------------------------------------------------------------------===//

#include "MatrixUnitCases.h"

#include "linattn-c/Runtime.h"
#include "linattn/CodeGen/CodeGen.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdlib>
#include <limits>

using namespace linattn;
using namespace linattn::test;

namespace {

bool hasTiles() { return getVectorTarget().amx && linattn_request_amx(); }

/// The results in the emulated unit. If there is a real one, it has the same
/// bits.
std::vector<Buffer> runInTiles(const std::string &text,
                               std::vector<Buffer> inputs,
                               Math math = Math::Strict) {
  auto kernel = compile(text, optionsFor(MatrixUnit::EmulatedAMX, math));
  if (!kernel)
    return {};
  EXPECT_FALSE(llvm::any_of(kernel->explain(), [](const std::string &remark) {
    return llvm::StringRef(remark).contains("expand-form: stays a");
  }));
  std::vector<Buffer> results = run(*kernel, inputs);
  if (hasTiles())
    if (auto real = compile(text, optionsFor(MatrixUnit::AMX, math))) {
      std::vector<Buffer> others = run(*real, inputs);
      for (auto [i, pair] : llvm::enumerate(llvm::zip_equal(results, others)))
        EXPECT_EQ(std::get<0>(pair).getBits(), std::get<1>(pair).getBits())
            << "result " << i;
    }
  return results;
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, x)
             : x;
}

/// The unit's product of a row and a column of bf16, 32 numbers at a time.
float multiplyAsUnit(llvm::ArrayRef<float> row, llvm::ArrayRef<float> column) {
  float sum = 0;
  for (size_t k = 0; k < row.size(); k += 32) {
    // Pairs are neighbours.
    float chains[2] = {0, 0};
    for (int parity = 0; parity < 2; ++parity)
      for (size_t m = 0; m < 16; ++m) {
        size_t i = k + 2 * m + parity;
        chains[parity] =
            flush(std::fma(flush(row[i]), flush(column[i]), chains[parity]));
      }
    sum = flush(sum + flush(chains[0] + chains[1]));
  }
  return sum;
}

/// Scores of 32 tokens and 64 features of numbers of about `magnitude`.
void checkBits(double magnitude) {
  SCOPED_TRACE(magnitude);
  std::vector<Buffer> inputs;
  for (uint64_t seed : {1, 2})
    inputs.emplace_back(
        DType::BF16, randomArray({1, 1, 32, 64}, seed, -magnitude, magnitude));
  Array q = inputs[0].toArray(), k = inputs[1].toArray();
  std::vector<Buffer> results = runInTiles(R"(
!rows = tensor<1x1x32x64xf32>
!scores = tensor<1x1x32x32xf32>
func.func @f(%q: tensor<1x1x32x64xbf16>, %k: tensor<1x1x32x64xbf16>) -> !scores {
  %rows = tensor.empty() : !rows
  %into = tensor.empty() : !scores
  %x = linattn.chunk.pack %q into(%rows) : (tensor<1x1x32x64xbf16>, !rows) -> !rows
  %y = linattn.chunk.pack %k into(%rows) : (tensor<1x1x32x64xbf16>, !rows) -> !rows
  %p = linattn.chunk.scores %x, %y into(%into) {summands = array<i64: 1, 1>} : (!rows, !rows, !scores) -> !scores
  return %p : !scores
})",
                                           inputs);
  ASSERT_EQ(results.size(), 1u);
  std::vector<uint64_t> bits = results[0].getBits();
  auto rowOf = [](const Array &array, int64_t t) {
    return std::vector<float>(array.row({0, 0, t}), array.row({0, 0, t}) + 64);
  };
  for (int64_t t = 0; t < 32; ++t)
    for (int64_t j = 0; j < 32; ++j) {
      float expected = j <= t ? multiplyAsUnit(rowOf(q, t), rowOf(k, j)) : 0.0f;
      EXPECT_EQ(bits[t * 32 + j], llvm::bit_cast<uint32_t>(expected))
          << t << " " << j;
    }
}

TEST(MatrixUnit, HasTheBitsOfTheUnit) {
  checkBits(1.0);
  checkBits(1e3);
}

TEST(MatrixUnit, FlushesSubnormals) {
  // Products about the smallest normal number, 1.2e-38.
  checkBits(2e-19);
  checkBits(2e-38);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// All of them under LINATTN_MATRIX=all, otherwise one of each kind of product.
std::vector<ScanCase> makeCases() {
  std::vector<ScanCase> cases{
      named("linear"),
      named("before the own write").decayed(Decay::Token).exclusive(),
      named("gated delta").delta().decayed(Decay::Token),
      named("KDA", 128).delta().decayed(Decay::Channel),
      named("a map and a normaliser", 128)
          .features(FeatureMapKind::Elu1)
          .normalized(),
      named("100 features", 100).decayed(Decay::Token),
      named("packed sequences").sequences({0, 70, 70, 200})};
  const char *matrix = std::getenv("LINATTN_MATRIX");
  if (matrix && llvm::StringRef(matrix) == "all")
    cases.insert(
        cases.end(),
        {named("linear 128", 128),
         named("a scale other than a power of two").scaled(0.3),
         named("a decay per head").decayed(Decay::Head),
         named("a decay per token").decayed(Decay::Token),
         named("delta").delta(),
         named("60 features, gated delta", 60).delta().decayed(Decay::Token),
         named("a decay per channel", 128).decayed(Decay::Channel),
         named("dplr, a decay per channel", 128)
             .dplr(reference::Transition::Before)
             .decayed(Decay::Channel),
         named("grouped heads").heads(4, 2, 2).tokens(80)});
  return cases;
}

/// Rounding of outputs in bf16 beside the largest of them, and of states in
/// two summands.
constexpr double outputRounding = 1.0 / 256, stateError = 1e-5;

/// Records the largest error beside the largest number: --gtest_output=json has
/// the table of docs/MatrixUnits.md.
void record(const std::string &name, Buffer &result, const Array &expected) {
  Array out = result.toArray();
  double worst = 0, largest = 0;
  for (auto [x, y] : llvm::zip_equal(out.data, expected.data)) {
    worst = std::max(worst, std::fabs(x - y));
    largest = std::max(largest, std::fabs(y));
  }
  ::testing::Test::RecordProperty(
      name, llvm::formatv("{0:E1}", worst / largest).str());
}

void checkErrors(const ScanCase &c, std::vector<Buffer> inputs, Math math,
                 double outputBound, double stateBound) {
  SCOPED_TRACE(c.name);
  std::vector<Array> expected = c.getExpected(inputs);
  std::vector<Buffer> results = runInTiles(c.getText(), inputs, math);
  ASSERT_EQ(results.size(), expected.size());
  record(c.name + ", output", results[0], expected[0]);
  record(c.name + ", state", results[1], expected[1]);
  expectClose(results[0], expected[0], "o", outputBound);
  for (size_t i = 1; i < results.size(); ++i)
    expectClose(results[i], expected[i], i == 1 ? "S" : "z", stateBound);
}

void checkErrors(llvm::ArrayRef<ScanCase> cases, Math math, double outputBound,
                 double stateBound) {
  for (const ScanCase &c : cases)
    checkErrors(c, c.getInputs(), math, outputBound, stateBound);
}

TEST(MatrixUnit, ErrsByTheRoundingOfItsOutputs) {
  checkErrors(makeCases(), Math::Strict, outputRounding + stateError,
              stateError);
}

/// 125 tokens leave 61 behind a chunk of 64, 29 behind three of 32.
TEST(MatrixUnit, FillsUpTheLastChunk) {
  std::vector<ScanCase> cases{
      named("linear"),
      named("f16", 128).type(DType::F16).decayed(Decay::Token),
      named("a decay per head").decayed(Decay::Head),
      named("gated delta, 60 features", 60).delta().decayed(Decay::Token),
      named("a map and a normaliser", 128)
          .features(FeatureMapKind::Elu1)
          .normalized(),
      named("KDA", 128).delta().decayed(Decay::Channel),
      named("grouped heads, a scale").heads(4, 2, 2).scaled(0.3),
      named("packed sequences")
          .decayed(Decay::Token)
          .sequences({0, 40, 65, 125})};
  for (ScanCase &c : cases) {
    c.tokens(125);
    checkErrors(c, Math::Strict, outputRounding + stateError, stateError);
  }
}

/// Scores of slow decays are as large behind many tokens as behind one; closed
/// gates leave none.
TEST(MatrixUnit, DecaysChannelsAtAnySpeed) {
  for (const ScanCase &c :
       {named("a decay per channel", 128).decayed(Decay::Channel),
        named("KDA", 128).delta().decayed(Decay::Channel)})
    for (double speed : {0.01, 300.0}) {
      SCOPED_TRACE(c.name + " times " + std::to_string(speed));
      std::vector<Buffer> inputs = c.getInputs();
      Buffer &decay = inputs[c.find("decay")];
      Array logs = decay.toArray();
      for (double &log : logs.data)
        log *= speed;
      decay = Buffer(decay.getDType(), logs);
      checkErrors(c, std::move(inputs), Math::Strict,
                  outputRounding + stateError, stateError);
    }
}

void checkErrors(const AttentionCase &c, Math math, double bound) {
  SCOPED_TRACE(c.name);
  std::vector<Buffer> inputs = c.getInputs();
  Array expected = c.getExpected(inputs);
  std::vector<Buffer> results = runInTiles(c.getText(), inputs, math);
  ASSERT_EQ(results.size(), 1u);
  record(c.name, results[0], expected);
  expectClose(results[0], expected, "o", bound);
}

TEST(MatrixUnit, SumsAllKeysWithoutAMask) {
  for (int64_t heads : {2, 4}) {
    SCOPED_TRACE(heads);
    checkErrors(inUnit<AttentionCase>("without a mask", 64)
                    .heads(heads, 2, 2)
                    .tokens(80, 200),
                Math::Strict, outputRounding + stateError);
  }
  // Zeros fill up the last chunks of queries and of keys.
  checkErrors(inUnit<AttentionCase>("last chunks, a map and a normaliser", 128)
                  .features(FeatureMapKind::Elu1)
                  .normalized()
                  .tokens(100, 250),
              Math::Strict, outputRounding + stateError);
  checkErrors(
      inUnit<AttentionCase>("a map and a normaliser, without a mask", 128)
          .features(FeatureMapKind::Elu1)
          .normalized()
          .tokens(80, 200),
      Math::Strict, outputRounding + stateError);
}

TEST(MatrixUnit, WeighsKeysInTwoSummands) {
  for (int64_t size : {64, 128, 60})
    checkErrors(softmaxOf("softmax, D = " + std::to_string(size), size),
                Math::Strict, outputRounding + stateError);
  checkErrors(softmaxOf("softmax of all keys", 64).tokens(40, 300),
              Math::Strict, outputRounding + stateError);
}

TEST(MatrixUnit, ErrsByASummandUnderFastMath) {
  checkErrors({named("linear"),
               named("gated delta").delta().decayed(Decay::Token),
               named("KDA", 128).delta().decayed(Decay::Channel)},
              Math::Fast, 8e-3, 8e-3);
  checkErrors(softmaxOf("softmax, fast", 64), Math::Fast, 8e-3);
}

TEST(MatrixUnit, ErrsByASummandInDotProducts) {
  if (!getVectorTarget().avx512Bf16)
    GTEST_SKIP() << "this machine has no AVX-512 BF16";
  for (const ScanCase &c :
       {named("linear"), named("gated delta").delta().decayed(Decay::Token),
        named("packed sequences").sequences({0, 70, 70, 200})}) {
    SCOPED_TRACE(c.name);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Array> expected = c.getExpected(inputs);
    auto dots = compile(c.getText(), optionsFor(MatrixUnit::Dot, Math::Fast));
    auto vectors =
        compile(c.getText(), optionsFor(MatrixUnit::None, Math::Fast));
    ASSERT_TRUE(dots && vectors);
    std::vector<Buffer> results = run(*dots, inputs);
    expectClose(results[0], expected[0], "o", 8e-3);
    expectClose(results[1], expected[1], "S", 8e-3);
    EXPECT_FALSE(results[0].isSame(run(*vectors, inputs)[0]));
  }
}

//===----------------------------------------------------------------------===//
// Not a number
//===----------------------------------------------------------------------===//

/// Results are finite where those of vectors are.
template <typename CaseTy>
void checkSpoilt(const CaseTy &c) {
  SCOPED_TRACE(c.name);
  for (double spoilt : {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity()})
    for (int64_t operand : {0, 1, 2}) {
      SCOPED_TRACE(operand);
      std::vector<Buffer> inputs = c.getInputs();
      Array array = inputs[operand].toArray();
      array.at({0, 1, 20, 3}) = spoilt;
      inputs[operand] = Buffer(DType::BF16, array);
      auto vectors = compile(c.getText(), optionsFor(MatrixUnit::None));
      ASSERT_TRUE(vectors);
      std::vector<Buffer> expected = run(*vectors, inputs);
      std::vector<Buffer> results = runInTiles(c.getText(), inputs);
      ASSERT_EQ(results.size(), expected.size());
      for (auto [result, other] : llvm::zip_equal(results, expected)) {
        Array x = result.toArray(), y = other.toArray();
        for (size_t i = 0; i < x.data.size(); ++i)
          ASSERT_EQ(std::isfinite(x.data[i]), std::isfinite(y.data[i])) << i;
      }
    }
}

/// Zeros above the diagonal would spread what is not finite to earlier tokens.
TEST(MatrixUnit, KeepsNaNBehindItsToken) {
  checkSpoilt(named("linear"));
  checkSpoilt(named("a decay per token", 60).decayed(Decay::Token));
  checkSpoilt(named("gated delta").delta().decayed(Decay::Token));
  checkSpoilt(named("a decay per channel", 128).decayed(Decay::Channel));
  checkSpoilt(softmaxOf("softmax", 32));
}

/// Where a matrix is not finite, all three products are those of
/// vectors, bit by bit.
TEST(MatrixUnit, BranchesToTheBitsOfVectors) {
  std::string text = R"(
!rows = tensor<1x1x48x32xf32>
!square = tensor<1x1x48x48xf32>
!state = tensor<1x1x32x32xf32>
!gates = tensor<1x1x48xf32>
func.func @f(%q: !rows, %k: !rows, %v: !rows, %g: !gates, %s: !state) -> (!rows, !state) {
  %square = tensor.empty() : !square
  %rows = tensor.empty() : !rows
  %p = linattn.chunk.scores %q, %k decay(%g) into(%square) {summands = array<i64: 2, 2>} : (!rows, !rows, !gates, !square) -> !square
  %o = linattn.chunk.read %q, %s scores(%p) values(%v) into(%v) {summands = array<i64: 2, 2, 2, 2>}
    : (!rows, !state, !square, !rows, !rows) -> !rows
  %u = linattn.chunk.update keys(%k) values(%v) decay(%g) into(%s) {summands = array<i64: 2, 2>} : (!rows, !rows, !gates, !state) -> !state
  return %o, %u : !rows, !state
})";
  std::vector<Buffer> inputs;
  for (uint64_t seed : {1, 2, 3})
    inputs.emplace_back(DType::F32, randomArray({1, 1, 48, 32}, seed, -1, 1));
  Array keys = inputs[1].toArray();
  keys.at({0, 0, 40, 3}) = std::numeric_limits<float>::infinity();
  inputs[1] = Buffer(DType::F32, keys);
  // One token decays. Factors of several would depend on the lanes of a vector,
  // and the machine may have fewer than a row of a tile.
  Array decays({1, 1, 48});
  decays.at({0, 0, 20}) = -0.1;
  inputs.emplace_back(DType::F32, decays);
  inputs.emplace_back(DType::F32, randomArray({1, 1, 32, 32}, 5, -1, 1));
  auto vectors = compile(text, optionsFor(MatrixUnit::None));
  ASSERT_TRUE(vectors);
  std::vector<Buffer> expected = run(*vectors, inputs);
  std::vector<Buffer> results = runInTiles(text, inputs);
  ASSERT_EQ(results.size(), expected.size());
  for (auto [x, y] : llvm::zip_equal(results, expected))
    EXPECT_TRUE(x.isSame(y));
  // In tiles they have other bits: the branch was taken.
  keys.at({0, 0, 40, 3}) = 1;
  inputs[1] = Buffer(DType::F32, keys);
  expected = run(*vectors, inputs);
  results = runInTiles(text, inputs);
  for (auto [x, y] : llvm::zip_equal(results, expected))
    EXPECT_FALSE(x.isSame(y));
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// The unit that the other kernel was to have is missing, and it says so.
void expectVectors(Kernel &vectors, Kernel &other, std::vector<Buffer> inputs) {
  for (auto [x, y] : llvm::zip_equal(run(vectors, inputs), run(other, inputs)))
    EXPECT_TRUE(x.isSame(y));
  auto explains = [](const std::string &remark) {
    return remark.find("products run in vectors") != std::string::npos;
  };
  EXPECT_TRUE(llvm::any_of(other.explain(), explains));
  EXPECT_FALSE(llvm::any_of(vectors.explain(), explains));
}

TEST(MatrixUnit, IsVectorsWhereThereAreNoTiles) {
  if (hasTiles())
    GTEST_SKIP() << "this machine has them";
  ScanCase c = named("linear");
  std::vector<Buffer> inputs = c.getInputs();
  auto vectors = compile(c.getText(), optionsFor(MatrixUnit::None));
  auto tiles = compile(c.getText(), optionsFor(MatrixUnit::AMX));
  ASSERT_TRUE(vectors && tiles);
  expectVectors(*vectors, *tiles, inputs);
}

TEST(MatrixUnit, IsVectorsWhereDotProductsWouldNeedSummands) {
  ScanCase c = named("linear");
  auto vectors = compile(c.getText(), optionsFor(MatrixUnit::None));
  auto dots = compile(c.getText(), optionsFor(MatrixUnit::Dot));
  ASSERT_TRUE(vectors && dots);
  expectVectors(*vectors, *dots, c.getInputs());
}

/// The unit of the default is the first of this machine that gains: AMX, or dot
/// products under fast math. Its kernel has the bits of the unit that is named.
TEST(MatrixUnit, IsByDefaultWhatGains) {
  bool fastDots = getVectorTarget().fastDotProducts;
  for (Math math : {Math::Strict, Math::Fast}) {
    CompilerOptions options = optionsFor(MatrixUnit::Auto, math);
    MatrixUnit expected = hasTiles()                       ? MatrixUnit::AMX
                          : fastDots && math == Math::Fast ? MatrixUnit::Dot
                                                           : MatrixUnit::None;
    EXPECT_EQ(detail::resolveMatrixUnit(options), expected);
    ScanCase c = named("linear");
    auto chosen = compile(c.getText(), options);
    options.matrixUnit = expected;
    auto unit = compile(c.getText(), options);
    ASSERT_TRUE(chosen && unit);
    std::vector<Buffer> inputs = c.getInputs();
    for (auto [x, y] :
         llvm::zip_equal(run(*chosen, inputs), run(*unit, inputs)))
      EXPECT_TRUE(x.isSame(y));
  }
}

} // namespace
