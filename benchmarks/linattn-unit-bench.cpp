//===- linattn-unit-bench.cpp - Matrix units beside vectors ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times the kernels of bf16 tokens with products in a matrix unit and in FMAs,
// call by call in turn in the CPU time of one thread, beside the ceilings of
// both. Prints
// medians, and the median of the ratio of two calls that follow one another.
//
//===----------------------------------------------------------------------===//

#include "Timing.h"
#include "linattn-c/Runtime.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Peak/FmaPeak.h"
#include "linattn/Peak/UnitPeak.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <random>

using namespace linattn;
using namespace llvm;

static cl::OptionCategory category("linattn-unit-bench options");
static cl::list<int64_t> sizes("d", cl::desc("Head sizes (default: 64,128)"),
                               cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string> only("rule",
                                 cl::desc("Only rules whose names begin so"),
                                 cl::cat(category));
static cl::opt<int64_t> tokens("t", cl::desc("Tokens"), cl::init(4096),
                               cl::cat(category));
static cl::opt<int64_t> heads("heads", cl::desc("Heads"), cl::init(8),
                              cl::cat(category));
static cl::opt<int> repetitions("repetitions", cl::desc("Calls of each"),
                                cl::init(31), cl::cat(category));
static cl::opt<MatrixUnit>
    unit("unit", cl::desc("Matrix unit (default: amx)"),
         cl::init(MatrixUnit::AMX),
         cl::values(clEnumValN(MatrixUnit::AMX, "amx", "the tiles of AMX"),
                    clEnumValN(MatrixUnit::Dot, "dot",
                               "dot products of AVX-512 BF16"),
                    clEnumValN(MatrixUnit::EmulatedAMX, "emulated",
                               "AMX in vectors: a check of this program on any "
                               "machine, not a measurement")),
         cl::cat(category));
static cl::opt<Math>
    math("math", cl::desc("Arithmetic (default: strict)"),
         cl::init(Math::Strict),
         cl::values(clEnumValN(Math::Strict, "strict",
                               "summands for the rounding of outputs alone"),
                    clEnumValN(Math::Fast, "fast", "one summand")),
         cl::cat(category));

static int fail(const Twine &message) {
  errs() << "linattn-unit-bench: " << message << "\n";
  return 1;
}

namespace {

enum class Kind { Scan, AllKeys, Softmax };

struct Rule {
  const char *name;
  /// The rank of decays: none, [H], [H, T] or [H, T, K].
  int decayRank;
  bool isDelta;
  Kind kind = Kind::Scan;
  /// Behind the map relu, with denominators.
  bool isNormalized = false;
};

constexpr Rule rules[] = {{"linear", 0, false},
                          {"retention", 1, false},
                          {"scalar decay", 2, false},
                          {"delta", 0, true},
                          {"gated delta", 2, true},
                          {"decay per channel", 3, false},
                          {"KDA", 3, true},
                          {"linear, all keys", 0, false, Kind::AllKeys},
                          {"normalized, all keys", 0, false, Kind::AllKeys,
                           /*isNormalized=*/true},
                          {"softmax, causal", 0, false, Kind::Softmax}};

/// One rule at one size.
class Comparison {
public:
  Comparison(const Rule &rule, int64_t size) : rule(rule), size(size) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    // Keys of length 1, as in delta rules.
    float scale = 1 / std::sqrt(static_cast<float>(size));
    for (std::vector<uint16_t> *x : {&q, &k, &v, &o[0], &o[1]})
      for (int64_t i = 0; i < heads * tokens * size; ++i)
        x->push_back(toBFloat(scale * normal(random)));
    int64_t channels = rule.decayRank == 3 ? size : 1;
    for (int64_t i = 0; i < heads * tokens * channels; ++i)
      g.push_back(-0.1f * std::abs(normal(random)));
    beta.assign(heads * tokens, 0.5f);
  }

  /// Returns an error, or prints a line.
  Error run() {
    auto vectors = compile(MatrixUnit::None);
    if (!vectors)
      return vectors.takeError();
    auto products = compile(unit);
    if (!products)
      return products.takeError();
    if (staysVectors(*products)) {
      outs() << formatv("| {0} | {1} | stays vectors | | | | |\n", rule.name,
                        size);
      return Error::success();
    }
    std::vector<double> times[2], ratios;
    for (int i = 0; i <= repetitions; ++i) {
      double taken[2];
      for (int kernel = 0; kernel < 2; ++kernel) {
        double start = threadSeconds();
        if (Error error = (kernel ? *products : *vectors)
                              .run(getInputs(), {view(o[kernel])}, {1}))
          return error;
        taken[kernel] = threadSeconds() - start;
      }
      if (i == 0) // Pages and caches were cold.
        continue;
      ratios.push_back(taken[0] / taken[1]);
      for (int kernel = 0; kernel < 2; ++kernel)
        times[kernel].push_back(taken[kernel]);
    }
    // Of softmax two products of half of all pairs.
    double pairs = 4.0 * tokens * heads * size;
    double flops =
        rule.kind == Kind::Softmax ? pairs * tokens / 2 : pairs * size;
    outs() << formatv("| {0} | {1} | {2:F3} | {3:F3} | {4:F2} | {5:F1} | "
                      "{6:E1} |\n",
                      rule.name, size, 1e3 * median(times[0]),
                      1e3 * median(times[1]), median(ratios),
                      flops / median(times[1]) / 1e9, difference());
    outs().flush();
    return Error::success();
  }

private:
  static bool staysVectors(const Kernel &kernel) {
    return any_of(kernel.explain(), [](StringRef remark) {
      return remark.contains("expand-form: stays a") ||
             remark.contains("stays products of vectors");
    });
  }
  static uint16_t toBFloat(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>((bits + 0x8000) >> 16);
  }
  static float toFloat(uint16_t x) {
    uint32_t bits = static_cast<uint32_t>(x) << 16;
    float wide;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
  }

  Expected<Kernel> compile(MatrixUnit unit) const {
    std::string t = formatv("tensor<1x{0}x{1}x{2}xbf16>", heads, tokens, size);
    std::string n = formatv("tensor<1x{0}x{1}xf32>", heads, tokens);
    std::string g = n;
    if (rule.decayRank == 1)
      g = formatv("tensor<{0}xf32>", heads);
    if (rule.decayRank == 3)
      g = formatv("tensor<1x{0}x{1}x{2}xf32>", heads, tokens, size);
    CompilerOptions options;
    options.matrixUnit = unit;
    options.math = math;
    return Compiler(options).compile(
        formatv(R"(
func.func @f(%q: {0}, %k: {0}, %v: {0}, %g: {1}, %b: {2}) -> {0} {{
  {3}
  return %o : {0}
})",
                t, g, n,
                rule.kind == Kind::Scan ? getScan(t, g, n) : getAttention(t))
            .str());
  }

  /// %o, of tokens, decays and betas of these types.
  std::string getScan(StringRef t, StringRef g, StringRef n) const {
    std::string s = formatv("tensor<1x{0}x{1}x{1}xf32>", heads, size);
    std::string clauses, types;
    if (rule.decayRank) {
      clauses += "decay(%g) ";
      types += (g + ", ").str();
    }
    if (rule.isDelta) {
      clauses += "beta(%b) update(delta) ";
      types += (n + ", ").str();
    }
    return formatv(R"(%zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {1}
  %s = linalg.fill ins(%zero : f32) outs(%e : {1}) -> {1}
  %i = tensor.empty() : {0}
  %o, %last = linattn.scan %q, %k, %v {2}into(%i) init(%s)
    : ({0}, {0}, {0}, {3}{0}, {1}) -> ({0}, {1}))",
                   t, s, clauses, types);
  }
  std::string getAttention(StringRef t) const {
    StringRef how =
        rule.kind == Kind::Softmax ? "weights(softmax) {causal, scale = 0.125}"
        : rule.isNormalized ? "{feature_map = #linattn.feature_map<relu>, "
                              "normalize = #linattn.normalize<eps = 1.0e-6>}"
                            : "{scale = 0.125}";
    return formatv("%o = linattn.attention %q, %k, %v {1} : ({0}, {0}, {0}) "
                   "-> {0}",
                   t, how);
  }

  BufferView view(std::vector<uint16_t> &x) const {
    return BufferView(x.data(), DType::BF16, {1, heads, tokens, size});
  }
  std::vector<BufferView> getInputs() {
    std::vector<int64_t> shape{1, heads, tokens};
    if (rule.decayRank == 1)
      shape = {heads};
    if (rule.decayRank == 3)
      shape.push_back(size);
    return {view(q), view(k), view(v), BufferView(g.data(), DType::F32, shape),
            BufferView(beta.data(), DType::F32, {1, heads, tokens})};
  }

  /// The greatest difference over the greatest value.
  double difference() const {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < o[0].size(); ++i) {
      double x = toFloat(o[0][i]), y = toFloat(o[1][i]);
      worst = std::max(worst, std::abs(x - y));
      largest = std::max(largest, std::abs(x));
    }
    return worst / largest;
  }

  const Rule &rule;
  int64_t size;
  std::vector<uint16_t> q, k, v, o[2];
  std::vector<float> g, beta;
};

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv, "Times products in a matrix unit beside vectors.\n");
  if (tokens <= 0 || heads <= 0 || repetitions <= 0)
    return fail("expected --t, --heads and --repetitions to be positive");
  std::vector<int64_t> allSizes(sizes.begin(), sizes.end());
  if (allSizes.empty())
    allSizes = {64, 128};
  for (int64_t size : allSizes)
    if (size <= 0)
      return fail("expected --d to be positive, but got " + Twine(size));
  double ceiling = unit == MatrixUnit::Dot ? measureDotGflops()
                   : linattn_request_amx() ? measureTileGflops()
                                           : 0;
  if (ceiling == 0 && unit != MatrixUnit::EmulatedAMX) {
    outs() << (unit == MatrixUnit::Dot
                   ? "no AVX-512 BF16: the machine lacks it\n"
                   : "no AMX: the machine lacks it, or the operating system "
                     "withholds it\n");
    return 0;
  }
  outs() << formatv("bf16, T = {0}, {1} heads, one thread; unit {2:F0} "
                    "GFLOP/s, {3} FMA {4:F0} GFLOP/s\n\n",
                    tokens, heads, ceiling, getFmaKind(), measureFmaGflops());
  outs() << "| rule | d | vectors, ms | unit, ms | vectors / unit | GFLOP/s "
            "| difference |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Rule &rule : rules) {
    if (!StringRef(rule.name).starts_with(only))
      continue;
    for (int64_t size : allSizes)
      if (Error error = Comparison(rule, size).run())
        return fail(toString(std::move(error)));
  }
  return 0;
}
