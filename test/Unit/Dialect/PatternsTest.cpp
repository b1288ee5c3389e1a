//===- PatternsTest.cpp - Rewrites of roots, shared patterns --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Canonicalization.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/RootPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class Patterns : public ::testing::Test {
protected:
  Patterns() {
    context
        .loadDialect<arith::ArithDialect, func::FuncDialect, LinAttnDialect>();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  template <typename OpTy>
  static int64_t count(ModuleOp module) {
    int64_t number = 0;
    module.walk([&](OpTy) { ++number; });
    return number;
  }

  MLIRContext context;
};

constexpr const char *kSums = R"mlir(
func.func @sums(%n: index, %x: f32) -> (f32, index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %opposite = arith.negf %x : f32
  %sum = arith.subf %one, %opposite : f32
  %m = arith.addi %n, %c0 : index
  return %sum, %m : f32, index
}
)mlir";

/// 1 − (−x) as 1 + x, in two steps: the first makes an op that the second
/// matches.
struct SubtractionToNegation : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubFOp op,
                                PatternRewriter &rewriter) const override {
    Value opposite =
        arith::NegFOp::create(rewriter, op.getLoc(), op.getRhs()).getResult();
    rewriter.replaceOpWithNewOp<arith::AddFOp>(op, op.getLhs(), opposite);
    return success();
  }
};
struct TwiceNegated : OpRewritePattern<arith::NegFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::NegFOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().getDefiningOp<arith::NegFOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not negated twice");
    rewriter.replaceOp(op, inner.getOperand());
    return success();
  }
};

TEST_F(Patterns, OfRootsReachNewOpsAndLeaveTheRest) {
  OwningOpRef<ModuleOp> module = parse(kSums);
  RewritePatternSet patterns(&context);
  patterns.add<SubtractionToNegation, TwiceNegated>(&context);
  ASSERT_TRUE(succeeded(applyPatternsToRoots(*module, std::move(patterns))));
  EXPECT_EQ(count<arith::SubFOp>(*module), 0);
  EXPECT_EQ(count<arith::AddFOp>(*module), 1);
  // The second is new, and the first has no use left.
  EXPECT_EQ(count<arith::NegFOp>(*module), 0);
  // No pattern has an addition of integers as its root.
  EXPECT_EQ(count<arith::AddIOp>(*module), 1);
  EXPECT_EQ(count<arith::ConstantOp>(*module), 2);
}

TEST_F(Patterns, OfRootsKeepOperandsWithOtherUses) {
  OwningOpRef<ModuleOp> module = parse(R"mlir(
    func.func @both(%x: f32) -> (f32, f32) {
      %opposite = arith.negf %x : f32
      %same = arith.negf %opposite : f32
      return %same, %opposite : f32, f32
    }
  )mlir");
  RewritePatternSet patterns(&context);
  patterns.add<TwiceNegated>(&context);
  ASSERT_TRUE(succeeded(applyPatternsToRoots(*module, std::move(patterns))));
  EXPECT_EQ(count<arith::NegFOp>(*module), 1);
}

TEST_F(Patterns, OfRootsWithoutRootsChangeNothing) {
  OwningOpRef<ModuleOp> module = parse(kSums);
  RewritePatternSet patterns(&context);
  EXPECT_TRUE(succeeded(applyPatternsToRoots(*module, std::move(patterns))));
  EXPECT_EQ(count<arith::SubFOp>(*module), 1);
}

/// A set is shared if it has the same patterns, by address.
const RewritePattern *getFirst(const FrozenRewritePatternSet &patterns,
                               StringRef op, MLIRContext *context) {
  auto found =
      patterns.getOpSpecificNativePatterns().find(OperationName(op, context));
  return found == patterns.getOpSpecificNativePatterns().end()
             ? nullptr
             : found->second.front();
}

TEST_F(Patterns, OfCanonicalizationAreCollectedOnce) {
  auto first = getCanonicalizationPatterns(&context);
  const RewritePattern *pattern = getFirst(first, "arith.addi", &context);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(
      getFirst(getCanonicalizationPatterns(&context), "arith.addi", &context),
      pattern);
}

TEST_F(Patterns, OfCanonicalizationFollowNewDialects) {
  auto before = getCanonicalizationPatterns(&context);
  context.loadDialect<shard::ShardDialect>();
  auto after = getCanonicalizationPatterns(&context);
  EXPECT_NE(getFirst(after, "arith.addi", &context),
            getFirst(before, "arith.addi", &context));
}

TEST_F(Patterns, OfCanonicalizationNeedNoDialectOfOurs) {
  MLIRContext other;
  other.loadDialect<arith::ArithDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kSums, &other);
  canonicalize(*module);
  EXPECT_EQ(count<arith::AddIOp>(*module), 0);
}

} // namespace
