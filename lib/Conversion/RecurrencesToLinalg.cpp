//===- RecurrencesToLinalg.cpp - Other recurrences as loops of linalg -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activations.h"
#include "TokenLoops.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Recurrences of channels
//===----------------------------------------------------------------------===//

/// "h" for numbers of channels, "bh" for those of a token.
static StringRef channelLetters(Value x) {
  return x && rankOf(x) == 1 ? "h" : "bh";
}

static SmallVector<Value> expandTokens(OpBuilder &b, DiagonalScanOp op) {
  TokenLoops loops(b, op);
  return loops.emit<DiagonalScanOp>([&](DiagonalScanOp part) {
    Value stateImag = part.getStateImag();
    Inputs in;
    size_t x = in.add(part.getInput(), "bh");
    size_t xImag = in.add(part.getImag(), "bh");
    size_t log = in.add(part.getDecay(), channelLetters(part.getDecay()));
    size_t angle = in.add(part.getPhase(), channelLetters(part.getPhase()));
    size_t real = in.add(part.getState(), "bh");
    size_t imag = in.add(stateImag, "bh");
    auto compute = [&](bool imaginary, Value into) {
      return loops.map(
          in.subscripts + "->bh", in.values, into,
          [&](RecurrenceBuilder &r, ValueRange args) {
            Value other = stateImag ? Inputs::get(args, xImag) : Value();
            if (stateImag && !other)
              other = r.number(0.0);
            auto next = r.complexFma(
                r.polar(args[log], Inputs::get(args, angle)),
                {args[real], Inputs::get(args, imag)}, {args[x], other});
            return imaginary ? next.second : next.first;
          });
    };
    SmallVector<Value> next{compute(false, part.getOutput())};
    if (Value output = part.getOutputImag())
      next.push_back(compute(true, output));
    next.push_back(compute(false, part.getState()));
    if (stateImag)
      next.push_back(compute(true, stateImag));
    return next;
  });
}

static SmallVector<Value> expandTokens(OpBuilder &b, Wkv4Op op) {
  TokenLoops loops(b, op);
  return loops.emit<Wkv4Op>([&](Wkv4Op step) -> SmallVector<Value> {
    // [B, 3, C]: sums, weights and maxima.
    Value state = step.getState();
    SmallVector<Value> inputs{step.getKey(), step.getValue(), op.getDecay(),
                              op.getBonus()};
    for (int64_t part = 0; part < 3; ++part)
      inputs.push_back(loops.take(state, 1, loops.index(part), /*drop=*/true));
    auto compute = [&](unsigned result, Value into) {
      return loops.map("bh,bh,h,h,bh,bh,bh->bh", inputs, into,
                       [&](RecurrenceBuilder &r, ValueRange args) {
                         return emitQuotientStep(r, args.slice(4, 3), args[0],
                                                 args[1], args[2],
                                                 args[3])[result];
                       });
    };
    Value output = compute(0, step.getOutput());
    for (int64_t part = 0; part < 3; ++part)
      state = loops.insert(compute(part + 1, inputs[4 + part]), state, 1,
                           loops.index(part));
    return {output, state};
  });
}

/// [C, N], or the [B, N] or [B, G, N] of a token.
static StringRef projectionLetters(Value projection, Value slice) {
  if (rankOf(projection) == 2)
    return "hn";
  return rankOf(slice) == 3 ? "bhn" : "bn";
}

/// Δ, in the type of the state.
static Value stepSizes(TokenLoops &loops, SelectiveScanOp part) {
  Inputs in;
  size_t raw = in.add(part.getDelta(), channelLetters(part.getDelta()));
  size_t bias = in.add(part.getDeltaBias(), "h");
  return loops.map(in.subscripts + "->bh", in.values,
                   loops.zerosLike(part.getInput()),
                   [&](RecurrenceBuilder &r, ValueRange args) {
                     Value x = args[raw];
                     if (Value more = Inputs::get(args, bias))
                       x = r.addf(x, more);
                     return part.getDeltaSoftplus() ? r.softplus(x) : x;
                   });
}

/// h ← e^{Δ a} h + Δ b u: its real part and, where there is one, its imaginary
/// part. `op` is the whole op, `part` that of a token.
static SmallVector<Value> nextStates(TokenLoops &loops, SelectiveScanOp op,
                                     SelectiveScanOp part) {
  Value delta = stepSizes(loops, part), stateImag = part.getStateImag();
  Inputs in;
  size_t u = in.add(part.getInput(), "bh"), size = in.add(delta, "bh");
  size_t log = in.add(op.getA(), "hn"), angle = in.add(op.getAImag(), "hn");
  size_t write = in.add(part.getB(), projectionLetters(op.getB(), part.getB()));
  size_t writeImag = Inputs::none;
  if (Value imag = part.getBImag())
    writeImag = in.add(imag, projectionLetters(op.getBImag(), imag));
  size_t real = in.add(part.getState(), "bhn"), imag = in.add(stateImag, "bhn");
  auto update = [&](bool imaginary) {
    return loops.map(
        in.subscripts + "->bhn", in.values,
        imaginary ? stateImag : Value(part.getState()),
        [&](RecurrenceBuilder &r, ValueRange args) {
          Value input = r.mulf(args[size], args[u]);
          std::pair<Value, Value> x{r.mulf(input, args[write]), Value()};
          if (stateImag) {
            Value other = Inputs::get(args, writeImag);
            x.second = other ? r.mulf(input, other) : r.number(0.0);
          }
          auto next = r.complexFma(
              r.polarStep(args[size], args[log], Inputs::get(args, angle)),
              {args[real], Inputs::get(args, imag)}, x);
          return imaginary ? next.second : next.first;
        });
  };
  SmallVector<Value> states{update(false)};
  if (stateImag)
    states.push_back(update(true));
  return states;
}

/// Re Σ c h, then skip and gate.
static Value readStates(TokenLoops &loops, SelectiveScanOp op,
                        SelectiveScanOp part, ArrayRef<Value> states) {
  auto read = [&](Value projection, Value slice, Value state, Value into,
                  double sign) {
    std::string letters = projectionLetters(projection, slice).str();
    return loops.map(letters + ",bhn->bh", {slice, state}, into,
                     [&](RecurrenceBuilder &r, ValueRange args) {
                       Value c = sign < 0 ? r.negate(args[0]) : args[0];
                       return r.fma(c, args[1], args[2]);
                     });
  };
  Value y = read(op.getC(), part.getC(), states.front(),
                 loops.zerosLike(part.getInput()), 1.0);
  if (Value cImag = part.getCImag())
    y = read(op.getCImag(), cImag, states.back(), y, -1.0);
  Inputs in;
  size_t sum = in.add(y, "bh"), x = in.add(part.getInput(), "bh");
  size_t skip = in.add(op.getSkip(), "h"), gate = in.add(part.getGate(), "bh");
  return loops.map(
      in.subscripts + "->bh", in.values, part.getOutput(),
      [&](RecurrenceBuilder &r, ValueRange args) {
        Value result = args[sum];
        if (Value factor = Inputs::get(args, skip))
          result = r.fma(factor, args[x], result);
        if (Value g = Inputs::get(args, gate))
          result = r.mulf(
              result, emitActivation(r, Activation::Silu, g,
                                     getElementTypeOrSelf(part.getOutput())));
        return result;
      });
}

static SmallVector<Value> expandTokens(OpBuilder &b, SelectiveScanOp op) {
  TokenLoops loops(b, op);
  return loops.emit<SelectiveScanOp>([&](SelectiveScanOp part) {
    SmallVector<Value> states = nextStates(loops, op, part);
    SmallVector<Value> results{readStates(loops, op, part, states)};
    llvm::append_range(results, states);
    return results;
  });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Groups are read in place by their numbers, which have to be known.
static LogicalResult checkGroups(SelectiveScanOp op) {
  for (Value projection : {op.getB(), op.getC()}) {
    auto type = cast<ShapedType>(projection.getType());
    auto channels = cast<ShapedType>(op.getInput().getType()).getDimSize(2);
    if (type.getRank() == 4 && (ShapedType::isDynamic(type.getDimSize(1)) ||
                                ShapedType::isDynamic(channels)))
      return op.emitOpError("cannot be converted to linalg: the number of its "
                            "channels or of their groups is dynamic");
  }
  return success();
}

static LogicalResult checkGroups(LogLinearOp op) {
  for (Value operand :
       {op.getQuery(), op.getKey(), op.getValue(), op.getOutput()})
    if (cast<ShapedType>(operand.getType()).isDynamicDim(1))
      return op.emitOpError("cannot be converted to linalg: a head count is "
                            "dynamic");
  return success();
}

static LogicalResult checkGroups(Operation *) { return success(); }

namespace {

template <typename OpTy>
struct RecurrenceToLinalg : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (failed(checkGroups(op)))
      return failure();
    rewriter.replaceOp(op, expandTokens(rewriter, op));
    return success();
  }
};

} // namespace

void mlir::linattn::populateRecurrencesToLinalgPatterns(
    RewritePatternSet &patterns) {
  patterns.add<RecurrenceToLinalg<DiagonalScanOp>, RecurrenceToLinalg<Wkv4Op>,
               RecurrenceToLinalg<SelectiveScanOp>,
               RecurrenceToLinalg<LogLinearOp>>(patterns.getContext());
}
