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
#include "gtest/gtest.h"

#include <array>
#include <set>

using namespace linattn;
using namespace linattn::detail;
using namespace linattn::test;

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

constexpr int64_t kHeads = 3, kTokens = 100, kKeySize = 32, kValueSize = 48;

constexpr const char *kScan = R"(
func.func @f(%q: tensor<1x3x100x32xf32>, %k: tensor<1x3x100x32xf32>, %v: tensor<1x3x100x48xf32>, %g: tensor<1x3x100x32xf32>, %s: tensor<1x3x32x48xf32>) -> (tensor<1x3x100x48xf32>, tensor<1x3x32x48xf32>) {
  %e = tensor.empty() : tensor<1x3x100x48xf32>
  %o:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s)
    : (tensor<1x3x100x32xf32>, tensor<1x3x100x32xf32>, tensor<1x3x100x48xf32>, tensor<1x3x100x32xf32>, tensor<1x3x100x48xf32>, tensor<1x3x32x48xf32>)
    -> (tensor<1x3x100x48xf32>, tensor<1x3x32x48xf32>)
  return %o#0, %o#1 : tensor<1x3x100x48xf32>, tensor<1x3x32x48xf32>
})";

/// The function's arguments: those of the text, then the results.
enum { Query, Key, Value, Decay, State, Output, NewState };

/// Runs the scan in `form`, and leaves what it prefetches in `fetches`.
void runScan(const char *form) {
  fetches.clear();
  Session session;
  Signature signature = llvm::cantFail(session.parse(kScan, "", "test"));
  mlir::PassManager pm(session.getModule().getContext());
  mlir::linattn::CPUPipelineOptions options;
  options.form = form;
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

/// The heads, tokens and cache lines of one operand that were fetched.
std::set<std::array<int64_t, 3>> getLines(int64_t argument, int64_t width) {
  std::set<std::array<int64_t, 3>> lines;
  for (auto [number, batch, head, token, column] : fetches) {
    if (number != argument)
      continue;
    EXPECT_EQ(batch, 0);
    EXPECT_TRUE(head >= 0 && head < kHeads) << head;
    EXPECT_TRUE(token >= 0 && token < kTokens) << token;
    // Rows narrower than a tile are fetched with their neighbours.
    EXPECT_TRUE(column >= 0 && column < (width + 31) / 32 * 32) << column;
    if (column < width)
      lines.insert({head, token, column / 16});
  }
  return lines;
}

class PrefetchTest
    : public testing::TestWithParam<std::pair<const char *, int64_t>> {};

TEST_P(PrefetchTest, EveryTokenAndNoOther) {
  auto [form, block] = GetParam();
  ASSERT_NO_FATAL_FAILURE(runScan(form));
  for (auto [argument, width] : {std::pair(Query, kKeySize),
                                 {Key, kKeySize},
                                 {Value, kValueSize},
                                 {Decay, kKeySize}}) {
    SCOPED_TRACE(argument);
    auto lines = getLines(argument, width);
    // Queries come with the rows of a chunk, of which the last one of a head
    // has a block of 8: the rest of the next head's first chunk is left out.
    bool isCut = argument == Query && block == 16;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t token = head == 0 ? block : 0; token < kTokens; ++token) {
        if (isCut && token >= 8 && token < 16)
          continue;
        for (int64_t line = 0; line < width / 16; ++line)
          EXPECT_TRUE(lines.count({head, token, line}))
              << "head " << head << ", token " << token << ", line " << line;
      }
  }
  // Outputs are written soon; the state's rows may be fetched past the last.
  getLines(Output, kValueSize);
  for (int64_t argument : {State, NewState})
    for (auto [number, batch, head, row, column] : fetches)
      if (number == argument)
        EXPECT_TRUE(batch == 0 && head >= 0 && head < kHeads && row >= 0 &&
                    row < kKeySize + 8 && column >= 0 && column < kValueSize)
            << head << " " << row << " " << column;
}

// Blocks of the state tile are of 64 tokens at heads of this size.
INSTANTIATE_TEST_SUITE_P(Forms, PrefetchTest,
                         testing::Values(std::pair("state_tile", 64),
                                         std::pair("chunk:16", 16)),
                         [](const auto &info) {
                           return std::string(info.index == 0 ? "state_tile"
                                                              : "chunk");
                         });

} // namespace
