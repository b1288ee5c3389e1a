//===- Reassociate.cpp - (QKᵀ)V as Q(KᵀV) ---------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/CostModel.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNREASSOCIATEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The cost model's decision for one attention.
enum class FormChoice { Quadratic, Reassociated, AtRunTime };

} // namespace

static FormChoice chooseForm(ReassociateMode mode,
                             const ::linattn::FormComparison &cost,
                             int64_t queries, int64_t keys) {
  if (mode != ReassociateMode::Auto)
    return mode == ReassociateMode::Always ? FormChoice::Reassociated
                                           : FormChoice::Quadratic;
  if (ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys))
    return FormChoice::AtRunTime;
  return cost.prefersReassociated(queries, keys) ? FormChoice::Reassociated
                                                 : FormChoice::Quadratic;
}

/// Emits the comparison at run time: true where reassociated is cheaper.
static Value emitFormChoice(OpBuilder &b, Location loc,
                            const ::linattn::FormComparison &cost,
                            Value queries, Value keys) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, loc, x, y);
  };
  // Beyond the crossover the length does not matter. The limit keeps products
  // within 64 bits.
  Value limit = constant(int64_t(1) << 20);
  queries = arith::MinUIOp::create(b, loc, queries, limit);
  keys = arith::MinUIOp::create(b, loc, keys, limit);
  Value panels =
      arith::CeilDivUIOp::create(b, loc, queries, constant(cost.panel));
  Value quadratic = mul(mul(panels, constant(cost.panel * cost.quadratic)),
                        add(keys, constant(cost.keyOffset)));
  Value linear =
      add(mul(add(queries, keys), constant(cost.linear)), constant(cost.fixed));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, quadratic,
                               linear);
}

LogicalResult mlir::linattn::verifyVectorTarget(MLIRContext *context,
                                                int64_t vectorBits,
                                                int64_t registers) {
  auto check = [&](StringRef name, int64_t value, int64_t least,
                   int64_t most) -> LogicalResult {
    if (llvm::isPowerOf2_64(value) && value >= least && value <= most)
      return success();
    return emitError(UnknownLoc::get(context))
           << "expected " << name << " to be a power of two from " << least
           << " to " << most << ", but got " << value;
  };
  return success(succeeded(check("vector-bits", vectorBits, 128, 4096)) &&
                 succeeded(check("registers", registers, 16, 64)));
}

namespace {

struct ReassociateAttention : OpRewritePattern<AttentionOp> {
  ReassociateAttention(MLIRContext *context, ReassociateMode mode,
                       int64_t vectorBits)
      : OpRewritePattern(context), mode(mode), vectorBits(vectorBits) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto refuse = [&](StringRef reason) {
      remark::missed(op.getLoc(), remarkNamed("reassociate")) << reason.str();
      return rewriter.notifyMatchFailure(op, reason);
    };
    if (op.getWeights() == Weights::Softmax)
      return refuse("softmax weights do not factor: (QKᵀ)V stays quadratic");
    if (op.getPattern())
      return refuse("a pattern gives each query keys of its own: (QKᵀ)V stays "
                    "quadratic in them");
    if (op.getCausal())
      return refuse("causal attention masks the product: it is a scan, not "
                    "Q(KᵀV)");
    if (op.getConfig() && op.getConfig()->getForm() == Form::Quadratic)
      return refuse("the quadratic form was requested");

    auto size = [](Value value, int64_t dim) {
      return cast<ShapedType>(value.getType()).getDimSize(dim);
    };
    int64_t keySize = size(op.getKey(), 3), valueSize = size(op.getValue(), 3);
    if (mode == ReassociateMode::Auto &&
        (ShapedType::isDynamic(keySize) || ShapedType::isDynamic(valueSize)))
      return refuse("head sizes are dynamic: the cheaper form is unknown");
    int64_t queries = size(op.getQuery(), 2), keys = size(op.getKey(), 2);
    auto cost = ::linattn::compareKernels(keySize, valueSize,
                                          queriesAtOnce(op, queries));
    switch (chooseForm(mode, cost, queries, keys)) {
    case FormChoice::Quadratic:
      return refuse(mode == ReassociateMode::Never
                        ? "mode=never"
                        : "the sequence is too short for Q(KᵀV) to be cheaper");
    case FormChoice::Reassociated:
      remark::passed(op.getLoc(), remarkNamed("reassociate"))
          << "(QKᵀ)V becomes Q(KᵀV)";
      rewriter.replaceOp(op, rewriteAsStateAndRead(rewriter, op));
      return success();
    case FormChoice::AtRunTime:
      chooseAtRunTime(rewriter, op, cost);
      return success();
    }
    llvm_unreachable("unknown choice");
  }

private:
  /// Queries that the quadratic kernel takes at once: two vectors of them, or
  /// one by one if they are known to be few.
  int64_t queriesAtOnce(AttentionOp op, int64_t queries) const {
    if (!ShapedType::isDynamic(queries) && queries <= ::linattn::fewTokens)
      return 1;
    Type type = getAccumulationType(getElementTypeOrSelf(op.getQuery()));
    return 2 * vectorBits / type.getIntOrFloatBitWidth();
  }

  void chooseAtRunTime(PatternRewriter &rewriter, AttentionOp op,
                       const ::linattn::FormComparison &cost) const {
    Location loc = op.getLoc();
    remark::passed(loc, remarkNamed("reassociate"))
        << llvm::formatv("(QKᵀ)V becomes Q(KᵀV) at run time, where "
                         "{0}·up{1}(Nq)·(Nk + {2}) > {3}·(Nq + Nk) + {4}",
                         cost.quadratic, cost.panel, cost.keyOffset,
                         cost.linear, cost.fixed)
               .str();
    auto tokens = [&](Value value) -> Value {
      return tensor::DimOp::create(rewriter, loc, value, 2);
    };
    Value isLong = emitFormChoice(rewriter, loc, cost, tokens(op.getQuery()),
                                  tokens(op.getKey()));
    // Both branches share a destination: whichever runs writes to the same
    // memory.
    Value destination = createDestination(rewriter, op);
    auto branch = scf::IfOp::create(rewriter, loc, op->getResultTypes(), isLong,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    auto read = rewriteAsStateAndRead(rewriter, op, destination);
    scf::YieldOp::create(rewriter, loc, castTo(rewriter, read, op));
    rewriter.setInsertionPointToStart(branch.elseBlock());
    auto quadratic = rewriteAsQuadratic(rewriter, op, destination);
    scf::YieldOp::create(rewriter, loc, castTo(rewriter, quadratic, op));
    rewriter.replaceOp(op, branch);
  }

  static Value castTo(OpBuilder &b, Operation *form, AttentionOp op) {
    Value result = form->getResult(0);
    if (result.getType() == op.getType())
      return result;
    return tensor::CastOp::create(b, op.getLoc(), op.getType(), result);
  }

  ReassociateMode mode;
  int64_t vectorBits;
};

struct LinAttnReassociatePass final
    : mlir::linattn::impl::LinAttnReassociatePassBase<LinAttnReassociatePass> {
  using LinAttnReassociatePassBase::LinAttnReassociatePassBase;
  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits);
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ReassociateAttention>(&getContext(), mode, vectorBits);
    populateReassociateChainPatterns(patterns, mode);
    unsigned choices = count<scf::IfOp>(), reads = count<ReadOp>();
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    numAtRunTime += count<scf::IfOp>() - choices;
    numReassociated += count<ReadOp>() - reads;
  }

private:
  template <typename OpTy>
  unsigned count() {
    unsigned found = 0;
    getOperation()->walk([&](OpTy) { ++found; });
    return found;
  }
};

} // namespace
