//===- PrefetchTest.cpp - Addresses of prefetches -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No result depends on a prefetch, so each one is replaced by a call that notes
// the element. Tokens and heads that do not exist are never fetched, and all
// that exist are, the first block of the first head aside.
//
//===----------------------------------------------------------------------===//

#include "CallCode.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Session/Session.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <array>
#include <set>

using namespace ::linattn;
using namespace ::linattn::detail;
using namespace ::linattn::test;

namespace {

/// An argument of the function, and the four indices of an element.
using Fetch = std::array<int64_t, 5>;
std::vector<Fetch> fetches;

void note(int64_t argument, int64_t i, int64_t j, int64_t k, int64_t l) {
  fetches.push_back({argument, i, j, k, l});
}

/// Replaces prefetches of arrays of rank 4 by calls of `note`, and drops the
/// others.
struct NotePrefetchesPass
    : mlir::PassWrapper<NotePrefetchesPass,
                        mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NotePrefetchesPass)

  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    registry.insert<mlir::LLVM::LLVMDialect>();
  }

  void runOnOperation() override {
    getOperation().walk([](mlir::memref::PrefetchOp op) {
      auto operand = llvm::dyn_cast<mlir::BlockArgument>(op.getMemref());
      if (operand && op.getIndices().size() == 4)
        replace(op, operand.getArgNumber());
      op.erase();
    });
  }

  static void replace(mlir::memref::PrefetchOp op, int64_t argument) {
    mlir::OpBuilder b(op);
    mlir::Location loc = op.getLoc();
    auto constant = [&](int64_t value) -> mlir::Value {
      return mlir::arith::ConstantIntOp::create(b, loc, value, 64);
    };
    mlir::Value function = mlir::LLVM::IntToPtrOp::create(
        b, loc, mlir::LLVM::LLVMPointerType::get(b.getContext()),
        constant(reinterpret_cast<intptr_t>(&note)));
    llvm::SmallVector<mlir::Value> operands = {function, constant(argument)};
    for (mlir::Value index : op.getIndices())
      operands.push_back(
          mlir::arith::IndexCastOp::create(b, loc, b.getI64Type(), index));
    auto type = mlir::LLVM::LLVMFunctionType::get(
        mlir::LLVM::LLVMVoidType::get(b.getContext()),
        llvm::SmallVector<mlir::Type>(5, b.getI64Type()));
    mlir::LLVM::CallOp::create(b, loc, type, operands);
  }
};

constexpr int64_t kTokens = 100, kKeySize = 32, kValueSize = 48;

struct Variant {
  const char *name, *form;
  /// Tokens of a block; the first one of each sequence is never fetched.
  int64_t block;
  int64_t batch = 1, queryHeads = 3, heads = 3;
  bool isReverse = false;

  std::string getText() const {
    auto type = [&](int64_t heads, int64_t rows, int64_t columns) {
      return llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", batch, heads, rows,
                           columns)
          .str();
    };
    std::string q = type(queryHeads, kTokens, kKeySize),
                k = type(heads, kTokens, kKeySize),
                v = type(heads, kTokens, kValueSize),
                s = type(heads, kKeySize, kValueSize),
                o = type(queryHeads, kTokens, kValueSize);
    return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + v +
           ", %g: " + k + ", %s: " + s + ") -> (" + o + ", " + s +
           ") {\n%e = tensor.empty() : " + o +
           "\n%r:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s)" +
           (isReverse ? " {reverse}" : "") + " : (" + q + ", " + k + ", " + v +
           ", " + k + ", " + o + ", " + s + ") -> (" + o + ", " + s +
           ")\nreturn %r#0, %r#1 : " + o + ", " + s + "\n}";
  }
};

/// The function's arguments: those of the text, then the results.
enum { Query, Key, Value, Decay, State, Output, NewState };

/// Runs the scan, and leaves what it prefetches in `fetches`.
void runScan(const Variant &variant) {
  fetches.clear();
  Session session;
  Signature signature =
      llvm::cantFail(session.parse(variant.getText(), "", "test"));
  mlir::PassManager pm(session.getModule().getContext());
  mlir::linattn::CPUPipelineOptions options;
  options.form = variant.form;
  mlir::linattn::buildCPULoopsPipeline(pm, options);
  pm.addPass(std::make_unique<NotePrefetchesPass>());
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = false;
  mlir::linattn::buildLowerToLLVMPipeline(pm, lower);
  ASSERT_TRUE(succeeded(pm.run(session.getModule())));
  (void)session.takeChecks(signature);
  session.takeInPlace(signature);
  auto object = llvm::cantFail(
      generateCode(session.getModule(), signature, CodeFormat::Object, {}));
  std::unique_ptr<LoadedCode> code = llvm::cantFail(LoadedCode::load(
      llvm::StringRef(object.data(), object.size()), signature));
  auto makeArrays = [](const auto &infos) {
    Arrays arrays;
    for (const ValueInfo &info : infos) {
      size_t count = 4;
      for (int64_t extent : info.shape)
        count *= static_cast<size_t>(extent);
      arrays.emplace_back(count);
    }
    return arrays;
  };
  Arrays inputs = makeArrays(signature.arguments),
         results = makeArrays(signature.results);
  callCode(*code, signature, inputs, results);
}

/// The sequences, heads, tokens and cache lines of one operand that were
/// fetched.
std::set<std::array<int64_t, 4>> getLines(const Variant &variant,
                                          int64_t argument, int64_t heads,
                                          int64_t width) {
  std::set<std::array<int64_t, 4>> lines;
  for (auto [number, batch, head, token, column] : fetches) {
    if (number != argument)
      continue;
    EXPECT_TRUE(batch >= 0 && batch < variant.batch) << batch;
    EXPECT_TRUE(head >= 0 && head < heads) << head;
    EXPECT_TRUE(token >= 0 && token < kTokens) << token;
    // Each of two panels fetches a tile's columns: rows that are narrower are
    // fetched with their neighbours.
    EXPECT_TRUE(column >= 0 && column < 64) << column;
    if (column < width)
      lines.insert({batch, head, token, column / 16});
  }
  return lines;
}

/// Whether all lines of the operand were fetched that some block comes before.
void expectAll(const Variant &variant, int64_t argument, int64_t heads,
               int64_t width) {
  SCOPED_TRACE(argument);
  auto lines = getLines(variant, argument, heads, width);
  // Queries come with the rows of a chunk, of which the last one of a head has
  // a block of 8: the rest of the next head's first chunk is left out.
  bool isCut = argument == Query && variant.block == 16;
  int64_t first = heads / variant.heads;
  for (int64_t batch = 0; batch < variant.batch; ++batch)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = head < first ? variant.block : 0; i < kTokens; ++i) {
        if (isCut && i >= 8 && i < 16)
          continue;
        int64_t token = variant.isReverse ? kTokens - 1 - i : i;
        for (int64_t line = 0; line < width / 16; ++line)
          EXPECT_TRUE(lines.count({batch, head, token, line}))
              << "batch " << batch << ", head " << head << ", token " << token
              << ", line " << line;
      }
}

class PrefetchTest : public testing::TestWithParam<Variant> {};

TEST_P(PrefetchTest, EveryTokenAndNoOther) {
  const Variant &variant = GetParam();
  ASSERT_NO_FATAL_FAILURE(runScan(variant));
  expectAll(variant, Query, variant.queryHeads, kKeySize);
  expectAll(variant, Key, variant.heads, kKeySize);
  expectAll(variant, Value, variant.heads, kValueSize);
  expectAll(variant, Decay, variant.heads, kKeySize);
  // Outputs are written soon; the state's rows may be fetched past the last.
  getLines(variant, Output, variant.queryHeads, kValueSize);
  for (int64_t argument : {State, NewState})
    for (auto [number, batch, head, row, column] : fetches)
      if (number == argument)
        EXPECT_TRUE(batch >= 0 && batch < variant.batch && head >= 0 &&
                    head < variant.heads && row >= 0 && row < kKeySize + 8 &&
                    column >= 0 && column < kValueSize)
            << batch << " " << head << " " << row << " " << column;
}

// Blocks of the state tile are of 64 tokens at heads of this size.
INSTANTIATE_TEST_SUITE_P(
    Forms, PrefetchTest,
    testing::Values(Variant{"state_tile", "state_tile", 64},
                    Variant{"chunk", "chunk:16", 16},
                    Variant{"state_tile_grouped", "state_tile", 64, 2, 4, 2},
                    Variant{"chunk_grouped", "chunk:16", 16, 2, 4, 2},
                    Variant{"state_tile_reverse", "state_tile", 64, 2, 2, 2,
                            true},
                    Variant{"chunk_reverse", "chunk:16", 16, 2, 2, 2, true}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
