//===- MutationTest.cpp - Exact comparison finds planted errors -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallCode.h"
#include "Mutations.h"
#include "Programs.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Field/PrimeField.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Session/Session.h"
#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <malloc.h>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;
using namespace linattn::test;
using Element = PrimeField::Element;

namespace {

volatile int64_t activeMutation = -1;

/// Runs `plantMutations` inside a pipeline.
struct PlantPass
    : mlir::PassWrapper<PlantPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlantPass)
  explicit PlantPass(std::vector<Mutation> &mutations) : mutations(mutations) {}
  void runOnOperation() override {
    mutations = plantMutations(getOperation(), &activeMutation);
  }
  std::vector<Mutation> &mutations;
};

/// No result depends on what is prefetched.
struct DropPrefetchesPass
    : mlir::PassWrapper<DropPrefetchesPass,
                        mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DropPrefetchesPass)
  void runOnOperation() override {
    getOperation().walk([](mlir::memref::PrefetchOp op) { op.erase(); });
  }
};

struct Program {
  const char *name;
  /// Of a function with static shapes.
  const char *text;
  /// A form of the scans; naive loops in "reference" and in each segment.
  const char *form;
  /// Errors that are none: "kind: op", and which of the ops of that name.
  std::map<std::string, std::vector<int64_t>> equivalent = {};
  /// The operands whose gradients are the program, if that is what it is.
  std::optional<std::vector<int64_t>> differentiate = {};
};

/// In messages of the test.
void PrintTo(const Program &program, std::ostream *os) { *os << program.name; }

/// A program with all its mutants, compiled.
struct Mutants {
  std::vector<Mutation> mutations;
  Signature signature;
  std::unique_ptr<LoadedCode> code;
};

} // namespace

static Mutants compileMutants(const Program &program) {
  Mutants mutants;
  Session session;
  mutants.signature = llvm::cantFail(session.parse(
      program.text, "", "test", /*trusted=*/false, program.differentiate));
  mlir::PassManager pm(session.getModule().getContext());
  llvm::StringRef form = program.form;
  if (form.starts_with("segments")) {
    // The form of a segment is tested by another program.
    mlir::linattn::LinAttnSelectFormPassOptions select;
    select.form = form.str();
    mlir::OpPassManager &functions = pm.nest<mlir::func::FuncOp>();
    functions.addPass(mlir::linattn::createLinAttnSelectFormPass(select));
    functions.addPass(mlir::linattn::createLinAttnSplitSegmentsPass());
  }
  if (form == "reference" || form.starts_with("segments")) {
    mlir::linattn::buildReferenceLoopsPipeline(pm, {});
  } else {
    // Small tiles: as many kinds of ops, fewer of each.
    mlir::linattn::CPUPipelineOptions options;
    options.form = program.form;
    options.vectorBits = 128;
    options.registers = 16;
    mlir::linattn::buildCPULoopsPipeline(pm, options);
  }
  pm.addPass(std::make_unique<DropPrefetchesPass>());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(std::make_unique<PlantPass>(mutants.mutations));
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = false;
  lower.prime = 0;
  mlir::linattn::buildLowerToLLVMPipeline(pm, lower);
  if (failed(runPasses(pm, session.getModule(), /*verifyEach=*/false))) {
    ADD_FAILURE() << program.name << ": the pipeline failed";
    return mutants;
  }
  (void)session.takeChecks(mutants.signature);
  CompilerOptions options;
  options.prime = 0;
  auto object = llvm::cantFail(generateCode(
      session.getModule(), mutants.signature, CodeFormat::Object, options));
  mutants.code = llvm::cantFail(LoadedCode::load(
      llvm::StringRef(object.data(), object.size()), mutants.signature));
  return mutants;
}

static size_t countElements(const ValueInfo &info) {
  size_t count = 1;
  for (int64_t extent : info.shape)
    count *= static_cast<size_t>(extent);
  return count;
}

static size_t getWidth(const ValueInfo &info) {
  return isFloat(info.dtype) ? sizeof(Element)
                             : static_cast<size_t>(getByteSize(info.dtype));
}

/// Random elements, masks with a hole, offsets of sequences that grow.
static Arrays makeInputs(const Signature &signature) {
  PrimeField field(0);
  Arrays arrays;
  for (const ValueInfo &info : signature.arguments) {
    size_t count = countElements(info);
    std::vector<char> &bytes = arrays.emplace_back(count * getWidth(info));
    for (size_t i = 0; i < count; ++i) {
      if (info.dtype == DType::I1)
        bytes[i] = i % 3 != 0;
      else if (info.dtype == DType::I32)
        reinterpret_cast<int32_t *>(bytes.data())[i] =
            static_cast<int32_t>(i * (i + 3) / 2);
      else
        reinterpret_cast<Element *>(bytes.data())[i] =
            field.makeRandom(17, arrays.size(), i);
    }
  }
  return arrays;
}

/// Values of an earlier run on the stack must not stand in for a mutant's
/// missing writes.
LLVM_ATTRIBUTE_NOINLINE static void fillStack() {
  volatile char bytes[1 << 20];
  for (volatile char &byte : bytes)
    byte = 0x11;
}

/// The results of a call. They start out as values that no program computes.
static Arrays runOnce(const Mutants &mutants, Arrays &inputs) {
  Arrays results;
  for (const ValueInfo &info : mutants.signature.results)
    results.emplace_back(countElements(info) * getWidth(info), 0x11);
  fillStack();
  callCode(*mutants.code, mutants.signature, inputs, results);
  return results;
}

static bool areEqual(const Signature &signature, const Arrays &got,
                     const Arrays &expected) {
  for (auto [info, x, y] : llvm::zip(signature.results, got, expected)) {
    if (!isFloat(info.dtype)) {
      if (x != y)
        return false;
      continue;
    }
    auto *first = reinterpret_cast<const Element *>(x.data());
    auto *second = reinterpret_cast<const Element *>(y.data());
    for (size_t i = 0, e = countElements(info); i < e; ++i)
      if (!PrimeField::areEqual(first[i], second[i]))
        return false;
  }
  return true;
}

/// Runs one mutant in a process of its own: it may crash or never end, and both
/// count as found. True if it computes what is right.
static bool survives(const Mutants &mutants, int64_t number, Arrays &inputs,
                     const Arrays &expected) {
  pid_t child = fork();
  if (child == 0) {
    alarm(5);
    // Nor does what it left in memory that has been freed.
    mallopt(M_PERTURB, 0x11);
    activeMutation = number;
    _exit(areEqual(mutants.signature, runOnce(mutants, inputs), expected) ? 0
                                                                          : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    ADD_FAILURE() << "expected to run a process";
    return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The program as it was written, through the compiler.
static bool agreesWithReference(const Program &program, Arrays &inputs,
                                const Arrays &got) {
  CompilerOptions options;
  options.target = Target::Reference;
  options.prime = 0;
  options.differentiate = program.differentiate;
  options.memoryCache = options.diskCache = false;
  Kernel kernel = llvm::cantFail(Compiler(options).compile(program.text));
  // Views point into the arrays.
  Arrays expected;
  expected.reserve(got.size());
  auto view = [](const ValueInfo &info, std::vector<char> &bytes) {
    return BufferView(bytes.data(), info.dtype, info.shape);
  };
  llvm::SmallVector<BufferView> arguments, results;
  for (auto [info, bytes] : llvm::zip(kernel.signature().arguments, inputs))
    arguments.push_back(view(info, bytes));
  for (auto [info, bytes] : llvm::zip(kernel.signature().results, got))
    results.push_back(view(info, expected.emplace_back(bytes.size())));
  llvm::cantFail(kernel.run(arguments, results));
  // The signature of the mutants has floats where this one has elements.
  for (auto [info, x, y] : llvm::zip(kernel.signature().results, got, expected))
    for (size_t i = 0, e = x.size() / sizeof(Element); i < e; ++i)
      if (!PrimeField::areEqual(reinterpret_cast<const Element *>(x.data())[i],
                                reinterpret_cast<const Element *>(y.data())[i]))
        return false;
  return true;
}

/// "drop product: vector.fma", without names of values.
static std::string getName(const Mutation &mutation) {
  llvm::StringRef op = mutation.op;
  if (op.starts_with("%"))
    op = op.split(" = ").second;
  op = op.take_until([](char c) { return c == ' ' || c == '('; });
  return mutation.kind + ": " + op.str();
}

/// As `Program` has it: the code of a form that was changed has other numbers.
static std::string
formatTable(const std::map<std::string, std::vector<int64_t>> &errors) {
  std::string text;
  for (const auto &[name, numbers] : errors) {
    text += "{\"" + name + "\", {";
    for (auto [i, number] : llvm::enumerate(numbers))
      text += (i ? ", " : "") + std::to_string(number);
    text += "}},\n";
  }
  return text;
}

namespace {

class MutationTest : public testing::TestWithParam<Program> {};

TEST_P(MutationTest, ErrorsAreFound) {
  const Program &program = GetParam();
  Mutants mutants = compileMutants(program);
  ASSERT_TRUE(mutants.code);
  Arrays inputs = makeInputs(mutants.signature);
  Arrays expected = runOnce(mutants, inputs);
  EXPECT_TRUE(agreesWithReference(program, inputs, expected));
  int64_t found = 0, excused = 0;
  std::string unknown;
  std::map<std::string, std::vector<int64_t>> equivalent;
  for (auto [number, mutation] : llvm::enumerate(mutants.mutations)) {
    if (!survives(mutants, static_cast<int64_t>(number), inputs, expected))
      ++found;
    else if (!mutation.excuse.empty())
      ++excused;
    else {
      std::string name = getName(mutation);
      equivalent[name].push_back(mutation.number);
      auto allowed = program.equivalent.find(name);
      if (allowed == program.equivalent.end() ||
          !llvm::is_contained(allowed->second, mutation.number))
        unknown += name + " " + std::to_string(mutation.number) + ": " +
                   mutation.op + "\n";
      ++excused;
    }
  }
  EXPECT_EQ(unknown, "") << "all that make no difference:\n"
                         << formatTable(equivalent);
  // That there is something to find.
  EXPECT_GE(found, 80);
  llvm::outs() << found << " found, " << excused << " make no difference\n";
  RecordProperty("found", std::to_string(found));
}

// Naive loops have no padding that could excuse an error.
INSTANTIATE_TEST_SUITE_P(
    Programs, MutationTest,
    testing::Values(
        Program{"naive_exclusive", kExclusive, "reference"},
        Program{"naive_delta", kDelta, "reference"},
        Program{"naive_normalized", kNormalized, "reference"},
        // Keys and queries of the sums over tokens, which are 1 everywhere, and
        // the zeros that sums start from; the output of the scan for the final
        // state, which nothing reads.
        Program{"gradient",
                kSmallGated,
                "reference",
                {{"drop first factor: arith.mulf", {25}},
                 {"drop second factor: arith.mulf", {26}},
                 {"drop second term: arith.addf", {4, 11, 16}},
                 {"first one missing: scf.for", {15}},
                 {"index 0 before: memref.load", {28, 30}},
                 {"index 1 before: memref.load", {28, 30}},
                 {"index 2 before: memref.load", {28, 30}},
                 {"last one missing: scf.for", {14, 15}},
                 {"last task missing: scf.parallel", {3}},
                 {"not written: memref.store", {8}},
                 {"sign: arith.addf", {4, 11, 16}}},
                std::vector<int64_t>{}},
        // Zeros in padding, which meet other zeros: three of the four rows of
        // the last tile, which has code of its own.
        Program{"state_tile",
                kExclusive,
                "state_tile",
                {{"constant: arith.constant", {9, 10}},
                 {"drop addend: vector.fma", {22, 23, 24}},
                 {"drop first factor: arith.mulf", {12, 13, 14}},
                 {"drop first factor: vector.fma", {18, 19, 20, 22, 23, 24}},
                 {"drop product: vector.fma", {18, 19, 20, 22, 23, 24}},
                 {"drop second factor: arith.mulf", {12, 13, 14}},
                 {"index 0 before: memref.load", {31, 32, 33, 34, 35, 36}},
                 {"index 1 before: memref.load", {26, 27, 28}},
                 {"not written: vector.store", {18, 19, 20}},
                 {"sign: vector.fma", {18, 19, 20, 22, 23, 24}}}},
        // Zeros in padding, as above; what queries are shifted by, which
        // cancels; and the code for blocks in which the maximum rests, which a
        // random one never does.
        Program{
            "state_tile_normalized",
            kNormalized,
            "state_tile",
            {{"comparison inverted: arith.cmpf", {3}},
             {"constant: arith.constant", {15}},
             {"drop addend: vector.fma",
              {5,  18, 19, 20, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34,
               35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}},
             {"drop first factor: arith.mulf", {10, 11, 12, 14}},
             {"drop first factor: vector.fma",
              {18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
               34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}},
             {"drop product: vector.fma",
              {18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
               34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}},
             {"drop second factor: arith.mulf", {10, 11, 12, 14}},
             {"first one missing: scf.for", {18, 26, 27, 28, 29, 30, 31, 32}},
             {"index 0 before: memref.load",
              {5,  26, 27, 28, 30, 31, 32, 34, 35, 36, 37, 38, 39, 40, 41, 42,
               43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58}},
             {"index 0 before: vector.transfer_write", {1}},
             {"index 1 before: memref.load",
              {30, 31, 32, 38, 39, 40, 41, 46, 47, 48, 49, 54, 55, 56, 57, 58}},
             {"index 1 before: vector.transfer_write", {1}},
             {"index 2 before: vector.transfer_write", {1}},
             {"index 3 before: vector.transfer_read", {5}},
             {"index 3 before: vector.transfer_write", {1}},
             {"last one missing: scf.for", {18, 26, 27, 28, 29, 30, 31, 32}},
             {"not written: vector.store",
              {21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
               37}},
             {"not written: vector.transfer_write", {1}},
             {"sign: vector.fma",
              {18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
               34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48}}}},
        // The decay before the first token and after the last one, both 1;
        // rows of a whole block written one by one; the row that no tail has;
        // what the rounding of a factor left over, which in a field is 0.
        Program{"chunk",
                kDelta,
                "chunk:12",
                {{"comparison inverted: arith.cmpf", {0}},
                 {"comparison off by one: arith.cmpi", {2}},
                 {"constant: arith.constant", {0}},
                 {"drop first factor: vector.fma", {132, 134, 136, 138}},
                 {"drop product: vector.fma", {132, 134, 136, 138}},
                 {"last one missing: scf.for", {36}},
                 {"not written: memref.store", {4}},
                 {"not written: vector.store", {31}},
                 {"other choice: arith.select", {2}},
                 {"sign: vector.fma", {132, 134, 136, 138}}}},
        // The outputs of the scans that summarize a segment, which nothing
        // uses, and the values of the one that writes none:
        // they are all 0.
        Program{"segments",
                kDelta,
                "segments:8",
                {{"drop first term: arith.addf", {4}},
                 {"index 1 before: memref.load", {12}},
                 {"index 2 before: memref.load", {12}},
                 {"index 3 before: memref.load", {12}}}},
        // Keys past the last one that a query sees have weight 0, so that each
        // limit may be one too far; the first of four rows has no keys left in
        // the loop over the rest; keys are masked twice; the start of the
        // maximum and two of its keys, as it only shifts exponents; zeros of
        // lanes past the last query, whose results are not stored.
        Program{"quadratic",
                kSoftmax,
                "auto",
                {{"comparison off by one: arith.cmpi", {0, 1, 2, 3, 4}},
                 {"constant: arith.constant", {0, 9}},
                 {"drop addend: vector.fma", {36}},
                 {"drop first factor: vector.fma", {36}},
                 {"drop product: vector.fma", {36}},
                 {"first one missing: scf.for", {20}},
                 {"index 0 before: memref.load", {42}},
                 {"index 1 before: memref.load", {42}},
                 {"last one missing: scf.for", {20}},
                 {"not written: vector.store", {7}},
                 {"other choice: arith.select", {5}},
                 {"sign: vector.fma", {36}}}}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
