//===- linattn-tile-bench.cpp - Generated code beside intrinsics ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times the compiled state tile and the same schedule written by hand, call by
// call in turn on one thread, with a slice of an FMA loop between them: both
// meet the same neighbours and the same clock. Prints the medians of the ratio
// of two calls that follow one another, and of both shares of the FMA loop.
//
//===----------------------------------------------------------------------===//

#include "HandTile.h"
#include "Timing.h"

#include "linattn/Compiler/Compiler.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <random>
#include <sys/mman.h>

using namespace linattn;
using namespace linattn::bench;
using namespace llvm;

static cl::OptionCategory category("linattn-tile-bench options");
static cl::list<int64_t> sizes("d", cl::desc("Head sizes, 64 or 128"),
                               cl::CommaSeparated, cl::cat(category));
static cl::opt<int64_t> tokens("t", cl::desc("Tokens, a multiple of 64"),
                               cl::init(4096), cl::cat(category));
static cl::opt<int64_t> heads("heads", cl::desc("Heads"), cl::init(8),
                              cl::cat(category));
static cl::opt<int> repetitions("repetitions", cl::desc("Calls of each"),
                                cl::init(101), cl::cat(category));
static cl::opt<int> block("block",
                          cl::desc("Tokens per block of the compiled code; "
                                   "default: the compiler's choice"),
                          cl::init(0), cl::cat(category));
static cl::opt<bool> tokenMajor("token-major",
                                cl::desc("Arrays are [T, H, D], not [H, T, D]"),
                                cl::cat(category));
static cl::opt<std::string>
    instructions("isa",
                 cl::desc("avx512 or avx2; default: the widest "
                          "of this machine"),
                 cl::cat(category));
static cl::list<Rule> rules(
    "rule", cl::desc("Rules to run"), cl::CommaSeparated,
    cl::values(clEnumValN(Rule::Linear, "linear", "no decay"),
               clEnumValN(Rule::Scalar, "scalar", "a decay per token"),
               clEnumValN(Rule::Gate, "gate", "a decay per token and channel")),
    cl::cat(category));

static int fail(const Twine &message) {
  errs() << "linattn-tile-bench: " << message << "\n";
  return 1;
}

static StringRef nameOf(Rule rule) {
  return rule == Rule::Linear   ? "linear"
         : rule == Rule::Scalar ? "scalar"
                                : "gate";
}

static std::string moduleText(Rule rule, int64_t size) {
  std::string t = formatv("tensor<1x{0}x{1}x{2}xf32>", heads, tokens, size);
  std::string s = formatv("tensor<1x{0}x{1}x{1}xf32>", heads, size);
  std::string g = rule == Rule::Scalar
                      ? formatv("tensor<1x{0}x{1}xf32>", heads, tokens).str()
                      : t;
  bool decays = rule != Rule::Linear;
  return formatv(R"(
func.func @f(%q: {0}, %k: {0}, %v: {0}, %g: {2}) -> {0} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {1}
  %s = linalg.fill ins(%zero : f32) outs(%e : {1}) -> {1}
  %i = tensor.empty() : {0}
  %o, %last = linattn.scan %q, %k, %v {3} into(%i) init(%s) {5}
    : ({0}, {0}, {0}, {4} {0}, {1}) -> ({0}, {1})
  return %o : {0}
})",
                 t, s, g, decays ? "decay(%g)" : "",
                 decays ? g + "," : std::string(),
                 formatv("{{config = #linattn.config<form = state_tile{0}>}",
                         block ? formatv(", block = {0}", block).str() : "")
                     .str());
}

namespace {

/// Floats in whole huge pages, like large arrays in NumPy. Otherwise each token
/// of a head in [T, H, D] would cost a page.
class Floats {
public:
  explicit Floats(size_t count) : count(count) {
    constexpr size_t page = size_t(2) << 20;
    size_t bytes = (count * sizeof(float) + page - 1) / page * page;
    memory = static_cast<float *>(std::aligned_alloc(page, bytes));
    madvise(memory, bytes, MADV_HUGEPAGE);
    std::fill(begin(), end(), 0.0f);
  }
  Floats(const Floats &) = delete;
  ~Floats() { std::free(memory); }
  float *begin() { return memory; }
  float *end() { return memory + count; }

private:
  float *memory;
  size_t count;
};

/// One rule at one size: the buffers, both implementations, and the clock.
class Comparison {
public:
  Comparison(Rule rule, int64_t size, bool wide)
      : rule(rule), size(size), wide(wide), q(count()), k(count()), v(count()),
        g(count()), generated(count()), written(count()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (Floats *x : {&q, &k, &v})
      for (float &element : *x)
        element = normal(random);
    for (float &element : g)
      element = -0.1f * std::abs(normal(random));
  }

  /// Returns an error, or prints a line.
  Error run() {
    Expected<Kernel> kernel = Compiler().compile(moduleText(rule, size));
    if (!kernel)
      return kernel.takeError();
    std::vector<double> ours, theirs, peaks, ratios;
    for (int i = 0; i <= repetitions; ++i) {
      double peak = timePeak();
      double start = seconds();
      if (Error error = kernel->run({view(q), view(k), view(v), gates()},
                                    {view(generated)}, {1}))
        return error;
      double middle = seconds();
      runByHand();
      double end = seconds();
      if (i == 0) // Pages and caches were cold.
        continue;
      peaks.push_back(peak);
      ours.push_back(flops() / (middle - start) / peak);
      theirs.push_back(flops() / (end - middle) / peak);
      ratios.push_back((end - middle) / (middle - start));
    }
    outs() << formatv("| {0} | {1} | {2:F0} | {3:F1} | {4:F1} | {5:F3} | "
                      "{6:E1} |\n",
                      nameOf(rule), size, median(peaks) / 1e9,
                      100 * median(ours), 100 * median(theirs), median(ratios),
                      difference());
    outs().flush();
    return Error::success();
  }

private:
  size_t count() const { return heads * tokens * size; }
  double flops() const { return 4.0 * tokens * heads * size * size; }

  BufferView view(Floats &x) const {
    int64_t h = heads, t = tokens;
    if (!tokenMajor)
      return BufferView(x.begin(), DType::F32, {1, h, t, size});
    return BufferView(x.begin(), DType::F32, {1, h, t, size},
                      {h * t * size, size, h * size, 1});
  }
  /// Scalar decays are stored head by head in either layout.
  BufferView gates() {
    if (rule == Rule::Scalar)
      return BufferView(g.begin(), DType::F32, {1, heads, tokens});
    return view(g);
  }

  void runByHand() {
    HandTask task{q.begin(), k.begin(), v.begin(), g.begin(), written.begin(),
                  heads,     tokens,    size,      0,         0};
    task.headStride = tokenMajor ? size : tokens * size;
    task.tokenStride = tokenMajor ? heads * size : size;
    (wide ? runHandTileAVX512 : runHandTileAVX2)(rule, task);
  }

  double timePeak() const {
    double start = seconds();
    double operations = (wide ? runPeakAVX512 : runPeakAVX2)(100000);
    return operations / (seconds() - start);
  }

  /// The greatest difference over the greatest value.
  double difference() {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count(); ++i) {
      float x = generated.begin()[i], y = written.begin()[i];
      worst = std::max(worst, double(std::abs(x - y)));
      largest = std::max(largest, double(std::abs(y)));
    }
    return worst / largest;
  }

  Rule rule;
  int64_t size;
  bool wide;
  Floats q, k, v, g, generated, written;
};

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Times the state tile, compiled and by hand.\n");
  bool hasWide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  if (!instructions.empty() && instructions != "avx512" &&
      instructions != "avx2")
    return fail("expected --isa to be avx512 or avx2, but got " + instructions);
  bool wide = instructions.empty() ? hasWide : instructions == "avx512";
  if ((wide && !hasWide) || !__builtin_cpu_supports("avx2"))
    return fail("this CPU lacks the instructions");
  if (tokens <= 0 || tokens % 64 || heads <= 0 || repetitions <= 0)
    return fail("expected --t to be a positive multiple of 64, --heads and "
                "--repetitions to be positive");
  std::vector<int64_t> allSizes(sizes.begin(), sizes.end());
  if (allSizes.empty())
    allSizes = {64, 128};
  for (int64_t size : allSizes)
    if (size != 64 && size != 128)
      return fail("expected --d to be 64 or 128, but got " + Twine(size));
  std::vector<Rule> allRules(rules.begin(), rules.end());
  if (allRules.empty())
    allRules = {Rule::Linear, Rule::Scalar, Rule::Gate};
  // LINATTN_CPU is read once, before the first kernel.
  setenv("LINATTN_CPU", wide ? "x86-64-v4" : "x86-64-v3", /*overwrite=*/0);

  outs() << formatv("{0}, T = {1}, {2} heads, {3}\n\n",
                    wide ? "AVX-512" : "AVX2", tokens, heads,
                    tokenMajor ? "[T, H, D]" : "[H, T, D]");
  outs() << "| rule | d | FMA GFLOP/s | compiled, % of it | by hand, % | "
            "compiled / by hand | difference |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (Rule rule : allRules)
    for (int64_t size : allSizes)
      if (Error error = Comparison(rule, size, wide).run())
        return fail(toString(std::move(error)));
  return 0;
}
