//===- SelectForm.cpp - Choosing the schedule -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FormCost.h"
#include "linattn/Dialect/MapParameters.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Sweeps.h"
#include "linattn/Transforms/Transforms.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSELECTFORMPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

using ::linattn::fewTokens;
using ::linattn::ScanChoice;
using ::linattn::ScanForm;
using ::linattn::ScanProblem;
using ::linattn::VectorTarget;
/// The limit of sizes in `#linattn.config`.
constexpr int64_t largestSize = int64_t(1) << 20;

/// The request of the option `form`.
struct Request {
  Form form = Form::Auto;
  int64_t chunk = ::linattn::chunkTokens;
  int64_t segment = 0; ///< 0: from the number of tokens.
};

/// A form, and the limits of sequence lengths that take another schedule.
struct Selection {
  Form form = Form::Auto;
  int64_t chunk = 0, whole = 0, few = 0;
};

struct LinAttnSelectFormPass final
    : mlir::linattn::impl::LinAttnSelectFormPassBase<LinAttnSelectFormPass> {
  using LinAttnSelectFormPassBase::LinAttnSelectFormPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    std::optional<Request> request = parseRequest();
    if (!request)
      return signalPassFailure();
    if (failed(selectSweeps(*request)))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([&](Operation *op) {
      if (auto scan = dyn_cast<ScanOp>(op))
        return select(scan, scan.getKey(), *request);
      if (auto state = dyn_cast<StateOp>(op))
        return select(state, state.getKey(), *request);
      if (auto read = dyn_cast<ReadOp>(op))
        return select(read, read.getQuery(), *request);
      if (auto map = dyn_cast<FeatureMapOp>(op))
        checkRandomFeatures(map);
      if (auto attention = dyn_cast<AttentionOp>(op))
        selectQuadratic(attention);
      if (auto quadratic = dyn_cast<QuadraticOp>(op))
        selectQuadratic(quadratic);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  std::optional<Request> parseRequest() {
    Request request;
    StringRef text = form;
    auto [name, size] = text.split(':');
    std::optional<Form> parsed = symbolizeForm(name);
    bool takesSize = parsed == Form::Chunk || parsed == Form::Segments;
    int64_t tokens = 0;
    if (!parsed || *parsed == Form::Quadratic ||
        (!size.empty() && (!takesSize || size.getAsInteger(10, tokens) ||
                           tokens < 1 || tokens > largestSize))) {
      getOperation()->emitError(
          "expected form to be auto, token, state_tile, chunk, segments, "
          "chunk:SIZE or segments:SIZE with a SIZE from 1 to ")
          << largestSize << ", but got " << text;
      return std::nullopt;
    }
    request.form = *parsed;
    if (tokens)
      (parsed == Form::Chunk ? request.chunk : request.segment) = tokens;
    return request;
  }

  /// A sweep takes the chunks of its scan, if the scan has this form. Otherwise
  /// it is split, and its scans have forms of their own.
  LogicalResult selectSweeps(const Request &request) {
    SmallVector<SweepOp> sweeps;
    getOperation()->walk([&](SweepOp op) {
      bool isChosen = op.getConfig() && isComplete(*op.getConfig());
      if (op.hasPureTensorSemantics() && !isChosen)
        sweeps.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (SweepOp op : sweeps) {
      rewriter.setInsertionPoint(op);
      ScanOp scan = op.createScan(rewriter);
      bool failed = select(scan, scan.getKey(), request).wasInterrupted();
      ConfigAttr config = scan.getConfigAttr();
      rewriter.eraseOp(scan);
      if (failed)
        return failure();
      if (config.getForm() == Form::Chunk) {
        // A sweep has no kernel for few tokens.
        op.setConfigAttr(ConfigAttr::get(&getContext(), Form::Chunk,
                                         config.getChunk(), config.getRows(),
                                         config.getCols(), config.getBlock(),
                                         /*segment=*/0, config.getWhole(),
                                         /*few=*/0));
        report(op, "both reads of its state in one pass");
        continue;
      }
      warn(op, "its two reads are scans of their own: its form is " +
                   stringifyForm(config.getForm()));
      splitSweep(rewriter, op);
    }
    return success();
  }

  /// Quadratic ops: panels of queries, or rows for a few of them.
  template <typename OpTy>
  void selectQuadratic(OpTy op) {
    if (op.getConfig() && op.getConfig()->getForm() != Form::Auto)
      return;
    int64_t queries = cast<ShapedType>(op.getQuery().getType()).getDimSize(2);
    bool few = !ShapedType::isDynamic(queries) && queries <= fewTokens;
    op.setConfigAttr(ConfigAttr::get(
        &getContext(), few ? Form::Token : Form::Quadratic, 0, 0, 0, 0));
    report(op, few ? "token: one pass over the keys for each of a few queries"
                   : "quadratic: blocks of keys against panels of queries");
  }

  /// The segments' own schedule is chosen once they exist.
  WalkResult selectSegments(ScanOp op, ConfigAttr given, int64_t segment) {
    auto kept =
        given ? given
              : ConfigAttr::get(&getContext(), Form::Segments, 0, 0, 0, 0);
    op.setConfigAttr(ConfigAttr::get(&getContext(), Form::Segments,
                                     kept.getChunk(), kept.getRows(),
                                     kept.getCols(), kept.getBlock(), segment,
                                     kept.getWhole(), kept.getFew()));
    report(op, "segments: as requested; " + describeSegments(op));
    return WalkResult::advance();
  }

  /// The form of a scan. Emits a remark for every other form.
  Selection selectScan(ScanOp op, const Request &request, std::string &reason) {
    ScanProblem problem = describeScan(op);
    std::vector<ScanForm::Kind> legal{ScanForm::Token};
    for (auto [form, kind] : {std::pair(Form::StateTile, ScanForm::StateTile),
                              std::pair(Form::Chunk, ScanForm::Chunk)})
      if (whyNotForm(op, form).empty())
        legal.push_back(kind);
      else if (request.form == Form::Auto)
        refuse(op, form);
    auto rule = ::linattn::getTraits(getRule(op));
    if (!::linattn::whyNot(::linattn::Schedule::Vectors, rule).empty()) {
      reason = "the only form of its rule, without a vector schedule";
      return {Form::Token};
    }
    if (request.form == Form::Auto && op->hasAttr(kRemainderAttrName) &&
        whyNotFilledUp(Recurrence(op)).empty()) {
      reason = "few tokens: zeros fill up chunks for more";
      return {Form::Token};
    }
    if (request.form == Form::Auto)
      return selectByLength(problem, legal, reason);
    reason = "as requested";
    int64_t chunk = request.form == Form::Chunk ? request.chunk : 0;
    auto choice = ::linattn::chooseScanForm(problem, legal, target());
    compareAsked(op, problem, choice, request.form, chunk, reason);
    return {request.form, chunk};
  }

  /// The form is chosen for long sequences, as if the length were unknown. Each
  /// sequence's own length then selects a schedule of this form, here or at run
  /// time, so that a sequence has the same bits alone, in a batch and packed.
  Selection selectByLength(const ScanProblem &problem,
                           const std::vector<ScanForm::Kind> &legal,
                           std::string &reason) {
    ScanProblem many = problem;
    many.tokens = ::linattn::unknownSize;
    auto choice = ::linattn::chooseScanForm(many, legal, target());
    if (choice.get().form.kind != ScanForm::Chunk) {
      // Token by token and in state tiles the bits are equal, so that the
      // length may decide between them. A rank-1 update has token by token
      // alone.
      std::vector<ScanForm::Kind> others = legal;
      llvm::erase(others, ScanForm::Chunk);
      choice = ::linattn::chooseScanForm(problem, others, target());
      reason = describeChoice(problem, choice);
      return {choice.get().form.kind == ScanForm::Token ? Form::Token
                                                        : Form::StateTile};
    }
    int64_t whole = ::linattn::wholeTokensOf(problem, target()),
            few = ::linattn::fewTokensOf(problem, legal, target());
    int64_t tokens = problem.tokens;
    if (few > 0 && tokens >= 0 && tokens <= few) {
      reason = llvm::formatv("few tokens: {0} or fewer of a sequence go one by "
                             "one, more in chunks",
                             few)
                   .str();
      return {Form::Token};
    }
    reason = describeChoice(many, choice);
    Selection chunks{Form::Chunk, choice.get().form.chunk, whole, few};
    if (tokens >= 0)
      chunks.few = 0;
    if (tokens > whole)
      chunks.whole = 0;
    return chunks;
  }

  /// Compares the requested form with the one that the cost model would choose.
  void compareAsked(ScanOp op, const ScanProblem &problem,
                    const ScanChoice &choice, Form form, int64_t chunk,
                    std::string &reason) {
    if (form == Form::Segments || !whyNotForm(op, form).empty())
      return;
    ScanForm named{form == Form::Token       ? ScanForm::Token
                   : form == Form::StateTile ? ScanForm::StateTile
                                             : ScanForm::Chunk,
                   chunk};
    double cost = ::linattn::predictCost(problem, named, target());
    reason += llvm::formatv("; cost {0}", formatCost(cost)).str();
    const ScanChoice::Candidate &best = choice.get();
    if (cost > (1 + ::linattn::betterBy) * best.cost)
      warn(op,
           llvm::formatv("{0} was requested and is predicted to cost {1}, {2} "
                         "only {3}",
                         named.str(), formatCost(cost), best.form.str(),
                         formatCost(best.cost)));
  }

  /// Writes the schedule of one op.
  template <typename OpTy>
  WalkResult select(OpTy op, Value tokens, Request request) {
    // A form written by hand stands. Its open parameters are filled in.
    ConfigAttr given = op.getConfigAttr();
    if (given && isComplete(given))
      return WalkResult::advance();
    if (given && given.getForm() != Form::Auto) {
      request.form = given.getForm();
      if (given.getChunk())
        request.chunk = given.getChunk();
      if (given.getSegment())
        request.segment = given.getSegment();
    }
    Selection chosen{request.form};
    std::string reason = "as requested";
    if constexpr (std::is_same_v<OpTy, ScanOp>) {
      if (failed(verifyForm(op, request.form)))
        return WalkResult::interrupt();
      if (request.form == Form::Segments)
        return selectSegments(op, given, request.segment);
      chosen = selectScan(op, request, reason);
    } else if (request.form == Form::Auto || request.form == Form::Chunk ||
               request.form == Form::Segments) {
      int64_t count = cast<ShapedType>(tokens.getType()).getDimSize(2);
      bool few = !ShapedType::isDynamic(count) && count <= fewTokens;
      reason = few ? "few tokens: one pass over the state"
                   : "the state stays in registers while tokens stream past";
      chosen.form =
          few && request.form == Form::Auto ? Form::Token : Form::StateTile;
    }
    writeConfig(op, given, chosen, reason);
    return WalkResult::advance();
  }

  /// Whether an earlier run has chosen everything.
  static bool isComplete(ConfigAttr given) {
    return given.getForm() != Form::Auto && given.getForm() != Form::Segments &&
           given.getRows() && given.getCols() && given.getBlock() &&
           (given.getChunk() || given.getForm() != Form::Chunk);
  }

  /// Whether the op has one token, read by one head.
  static bool isSingleToken(Operation *op) {
    auto scan = dyn_cast<ScanOp>(op);
    auto size = [](Value value, unsigned dim) {
      return cast<ShapedType>(value.getType()).getDimSize(dim);
    };
    return scan && size(scan.getKey(), 2) == 1 &&
           size(scan.getQuery(), 1) == size(scan.getState(), 1);
  }

  template <typename OpTy>
  void writeConfig(OpTy op, ConfigAttr given, const Selection &chosen,
                   StringRef reason) {
    auto size = [&](int64_t dim) {
      return cast<ShapedType>(op.getState().getType()).getDimSize(dim);
    };
    Type element = getElementTypeOrSelf(op.getState());
    auto tile = ::linattn::chooseStateTile(
        target(), element.getIntOrFloatBitWidth(), size(2), size(3));
    auto keep = [&](int64_t mine, int64_t fallback) {
      return mine ? mine : fallback;
    };
    // A single token leaves enough registers for twice the columns, which makes
    // each memory access longer.
    if (chosen.form == Form::Token && isSingleToken(op) &&
        size(3) % (2 * tile.cols) == 0)
      tile.cols *= 2;
    int64_t rows = keep(given ? given.getRows() : 0, tile.rows);
    int64_t cols = keep(given ? given.getCols() : 0, tile.cols);
    int64_t block = keep(given ? given.getBlock() : 0, tile.block);
    int64_t whole = keep(given ? given.getWhole() : 0, chosen.whole);
    int64_t few = keep(given ? given.getFew() : 0, chosen.few);
    op.setConfigAttr(ConfigAttr::get(&getContext(), chosen.form, chosen.chunk,
                                     rows, cols, block, /*segment=*/0, whole,
                                     few));
    if (chosen.form == Form::Chunk)
      report(op,
             llvm::formatv("chunks of {0} tokens: {1}", chosen.chunk, reason));
    else
      report(op, llvm::formatv("{0}, tile {1}x{2} over {3} tokens: {4}",
                               stringifyForm(chosen.form), rows, cols, block,
                               reason));
    reportLengths(op, chosen);
  }

  //===--------------------------------------------------------------------===//
  // Remarks
  //===--------------------------------------------------------------------===//

  static void report(Operation *op, const Twine &text) {
    remark::passed(op->getLoc(), remarkNamed("select-form")) << text.str();
  }
  /// Emits a remark on the lengths of sequences that take another schedule than
  /// chunks.
  static void reportLengths(Operation *op, const Selection &chosen) {
    if (chosen.whole)
      report(op, llvm::formatv("a sequence of up to {0} tokens is one chunk",
                               chosen.whole));
    if (chosen.few)
      report(op, llvm::formatv("a sequence of up to {0} tokens goes token by "
                               "token, beside sequences of any length",
                               chosen.few));
  }
  static void warn(Operation *op, const Twine &text) {
    remark::missed(op->getLoc(), remarkNamed("select-form")) << text.str();
  }
  /// Fewer random features than elements of a head give a poor estimate of the
  /// weights. Each of many more features costs as much as the last and gains
  /// little.
  static void checkRandomFeatures(FeatureMapOp op) {
    auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
    if (!getMapTraits(mapped.getFeatureMapKind()).has(FeatureMapTraits::Random))
      return;
    ArrayRef<int64_t> shape =
        cast<ShapedType>(op.getParameters().front().getType())
            .getShape()
            .take_back(2);
    int64_t features = shape[0], size = shape[1];
    if (ShapedType::isDynamic(features) || ShapedType::isDynamic(size))
      return;
    if (features < size)
      warn(op, llvm::formatv("{0} random features for heads of {1}: fewer than "
                             "the head size estimate the weights badly",
                             features, size));
    else if (features > 4 * size)
      warn(op, llvm::formatv("{0} random features for heads of {1}: the cost "
                             "grows with them, and more than 4 times the head "
                             "size gain little accuracy",
                             features, size));
  }
  static void refuse(ScanOp op, Form form) {
    warn(op, "not " + stringifyForm(form) + ": " + whyNotForm(op, form));
  }

  static std::string formatCost(double cost) {
    return llvm::formatv("{0:F0}", cost).str();
  }

  /// "cost 1820 per token and head (28 % of the peak); chunk:16 1850, …".
  std::string describeChoice(const ScanProblem &problem,
                             const ScanChoice &choice) const {
    const ScanChoice::Candidate &best = choice.get();
    std::string text =
        llvm::formatv("cost {0} per token and head, {1:F0} % of the peak of "
                      "multiply-adds",
                      formatCost(best.cost),
                      100 *
                          ::linattn::predictShare(problem, best.form, target()))
            .str();
    StringRef separator = "; ";
    for (auto [index, other] : llvm::enumerate(choice.candidates)) {
      if (index == choice.chosen)
        continue;
      text +=
          (separator + other.form.str() + " " + formatCost(other.cost)).str();
      separator = ", ";
    }
    return text;
  }

  /// The gain of segments on the target's cores.
  std::string describeSegments(ScanOp op) const {
    auto state = cast<ShapedType>(op.getState().getType());
    int64_t tasks = 1;
    for (int64_t dim : {0, 1})
      tasks *= state.isDynamicDim(dim) ? 1 : state.getDimSize(dim);
    double ratio =
        ::linattn::predictSegments(describeScan(op), tasks, target().cores);
    return llvm::formatv("predicted to take {0:F2} of the time of one pass on "
                         "{1} cores, for {2} tasks",
                         ratio, target().cores, tasks)
        .str();
  }

  VectorTarget target() const { return {vectorBits, registers, l1, cores}; }
};

} // namespace
