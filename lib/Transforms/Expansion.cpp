//===- Expansion.cpp - The loops around chunks ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expansion.h"

#include "linattn/Transforms/Forms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::linattn;

SmallVector<Value> Expansion::emit() {
  CarriedValues carried{options.norm ? options.norm.getOutput() : r.output,
                        r.state.state, r.state.normalizer, r.state.runningMax};
  Span tokens{b.getIndexAttr(0), batches(), index(0), length()};
  if (!options.forUnit)
    return resultsOf(emitSpan(tokens, carried));
  return options.fewest ? emitFewOrChunks(tokens, carried)
                        : emitForUnit(tokens, carried);
}

/// Chunks, and the op itself on the tokens behind them.
SmallVector<Value> Expansion::emitForUnit(const Span &tokens,
                                          CarriedValues carried) {
  Span whole = tokens;
  Span remainder = splitRemainder(whole);
  if (!options.mayLackChunk) {
    carried = emitSpan(whole, carried);
  } else {
    // Then the state is not packed in front of the loop.
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       whole.begin, whole.end);
    carried = either(
        some, carried, [&] { return emitSpan(whole, carried); },
        [&] { return carried; });
  }
  return emitOp(remainder, resultsOf(carried), /*isRemainder=*/true);
}

/// The op itself if there are few tokens, which knows that it starts at zero;
/// chunks otherwise.
SmallVector<Value> Expansion::emitFewOrChunks(const Span &tokens,
                                              const CarriedValues &carried) {
  Value areFew = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       tokens.end, index(options.fewest));
  // Each side fills the state, so that vectors find the fill in front of them.
  auto fromZeros = [&] {
    CarriedValues zeros = carried;
    for (Value *state : {&zeros.state, &zeros.normalizer})
      if (*state)
        *state = b.clone(*state->getDefiningOp())->getResult(0);
    return zeros;
  };
  return either(
      areFew, carried.present(),
      [&] { return emitOp(tokens, fromZeros().present()); },
      [&] { return emitForUnit(tokens, fromZeros()); });
}

/// Queries alone leave the state as it is.
SmallVector<Value> Expansion::resultsOf(const CarriedValues &carried) {
  return r.key ? carried.present() : SmallVector<Value>{carried.output};
}

/// The chunks of a span, from and to states as the op has them.
CarriedValues Expansion::emitSpan(const Span &span, CarriedValues carried) {
  Value state = carried.state, normalizer = carried.normalizer;
  carried.state = padded(state, {2, 3});
  if (normalizer)
    carried.normalizer = expandColumn(b, loc, padded(normalizer, {2}));
  if (r.offsets || r.indices)
    carried = emitSequences(carried);
  else
    carried = emitChunks(span, carried);
  carried.state = unpadded(carried.state, state);
  if (normalizer)
    carried.normalizer =
        unpadded(collapseColumn(b, loc, carried.normalizer), normalizer);
  return carried;
}

/// A state whose head sizes are whole tiles: zeros fill them up.
Value Expansion::padded(Value state, ArrayRef<int64_t> dims) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(state, offsets, sizes);
  SmallVector<OpFoldResult> whole = sizes;
  for (int64_t dim : dims)
    if (std::optional<int64_t> size = getConstantIntValue(sizes[dim]))
      whole[dim] = b.getIndexAttr(llvm::alignTo(*size, kTileRows));
  if (!options.forUnit || whole == sizes)
    return state;
  Value zeros = filled(b, loc, whole, getElementTypeOrSelf(state), 0.0);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, state, zeros, offsets, sizes,
                                       strides);
}

/// The part of it that a state has, in the memory of that state: branches of
/// one type yield the same memory.
Value Expansion::unpadded(Value state, Value like) {
  if (state.getType() == like.getType())
    return state;
  SmallVector<OpFoldResult> offsets, sizes;
  place(like, offsets, sizes);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  Value part =
      tensor::ExtractSliceOp::create(b, loc, state, offsets, sizes, strides);
  return linalg::CopyOp::create(b, loc, part, like).getResult(0);
}

CarriedValues
Expansion::loop(Value from, Value to, int64_t step, CarriedValues carried,
                function_ref<CarriedValues(Value, CarriedValues)> body) {
  auto loop =
      scf::ForOp::create(b, loc, from, to, index(step), carried.present());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  CarriedValues next =
      body(loop.getInductionVar(), carried.with(loop.getRegionIterArgs()));
  scf::YieldOp::create(b, loc, next.present());
  return carried.with(loop.getResults());
}

SmallVector<Value>
Expansion::either(Value condition, ValueRange like,
                  function_ref<SmallVector<Value>()> emitThen,
                  function_ref<SmallVector<Value>()> emitElse) {
  auto branch = scf::IfOp::create(b, loc, like.getTypes(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, emitThen());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, emitElse());
  return branch.getResults();
}

CarriedValues Expansion::either(Value condition, CarriedValues carried,
                                function_ref<CarriedValues()> emitThen,
                                function_ref<CarriedValues()> emitElse) {
  return carried.with(either(
      condition, carried.present(), [&] { return emitThen().present(); },
      [&] { return emitElse().present(); }));
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

CarriedValues Expansion::emitSequences(CarriedValues carried) {
  Value count =
      r.indices
          ? dim(r.indices, 0)
          : Value(arith::SubIOp::create(b, loc, dim(r.offsets, 0), index(1)));
  return loop(index(0), count, 1, carried,
              [&](Value sequence, CarriedValues carried) {
                return emitSequence(sequence, carried);
              });
}

/// One sequence and its state, which may be a row of a pool. The outputs of a
/// sequence without a state are 0.
CarriedValues Expansion::emitSequence(Value sequence, CarriedValues carried) {
  Span span{sequence, b.getIndexAttr(1), index(0), length()};
  if (r.offsets) {
    span.batch = b.getIndexAttr(0);
    span.begin = element(r.offsets, sequence);
    span.end =
        element(r.offsets, arith::AddIOp::create(b, loc, sequence, index(1)));
  }
  auto run = [&](Value slot) {
    CarriedValues own = carried;
    for (Value *states : {&own.state, &own.normalizer, &own.runningMax})
      if (*states)
        *states = stateOf(*states, slot);
    own = emitChunks(span, own);
    CarriedValues all = carried;
    all.output = own.output;
    all.state = insertState(own.state, carried.state, slot);
    if (own.normalizer)
      all.normalizer = insertState(own.normalizer, carried.normalizer, slot);
    if (own.runningMax)
      all.runningMax = insertState(own.runningMax, carried.runningMax, slot);
    return all;
  };
  if (!r.indices)
    return run(sequence);
  Value slot = element(r.indices, sequence);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, slot, index(0));
  return either(
      exists, carried, [&] { return run(slot); },
      [&] {
        CarriedValues untouched = carried;
        untouched.output = clearTokens(span, carried.output);
        return untouched;
      });
}

void Expansion::place(Value x, SmallVector<OpFoldResult> &offsets,
                      SmallVector<OpFoldResult> &sizes) {
  sizes = tensor::getMixedSizes(b, loc, x);
  offsets.assign(sizes.size(), b.getIndexAttr(0));
}

Value Expansion::stateOf(Value states, OpFoldResult slot) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(states, offsets, sizes);
  offsets[0] = slot;
  sizes[0] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, states, offsets, sizes,
                                        strides);
}

Value Expansion::insertState(Value state, Value states, OpFoldResult slot) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(states, offsets, sizes);
  offsets[0] = slot;
  sizes[0] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, state, states, offsets, sizes,
                                       strides);
}

//===----------------------------------------------------------------------===//
// The op itself
//===----------------------------------------------------------------------===//

/// Takes the remainder, the last tokens that are visited, from a span of
/// chunks.
Expansion::Span Expansion::splitRemainder(Span &tokens) {
  Value left =
      b.createOrFold<arith::RemUIOp>(loc, tokens.end, index(options.chunk));
  if (options.fillsUpLast()) {
    Value areFew = b.createOrFold<arith::CmpIOp>(
        loc, arith::CmpIPredicate::ult, left, index(options.fewestOfLast));
    left = b.createOrFold<arith::SelectOp>(loc, areFew, left, index(0));
  }
  Span remainder = tokens;
  if (r.reverse)
    remainder.end = tokens.begin = left;
  else
    remainder.begin = tokens.end =
        b.createOrFold<arith::SubIOp>(loc, tokens.end, left);
  return remainder;
}

/// Runs the op itself on the tokens of a span, from `results` so far, and
/// returns its own in their place.
SmallVector<Value> Expansion::emitOp(const Span &span,
                                     SmallVector<Value> results,
                                     bool isRemainder) {
  Value left = b.createOrFold<arith::SubIOp>(loc, span.end, span.begin);
  if (getConstantIntValue(left) == 0)
    return results;
  OpFoldResult first = getAsOpFoldResult(span.begin),
               count = getAsOpFoldResult(left);
  SmallVector<Value> inits(results);
  Value into;
  if (r.output) {
    inits.front() = into = slice(results.front(), span, first, count);
    if (options.norm)
      inits.front() =
          tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, into),
                                  getElementTypeOrSelf(r.output));
  }
  SmallVector<Value *> tokenOperands = r.tokenOperands();
  SmallVector<Value> operands(r.op->getOperands());
  for (Value &operand : operands)
    if (llvm::any_of(tokenOperands,
                     [&](Value *tokens) { return *tokens == operand; }))
      operand = slice(operand, span, first, count);
  auto structured = cast<DestinationStyleOpInterface>(r.op.getOperation());
  size_t next = 0;
  for (OpOperand &init : structured.getDpsInitsMutable())
    operands[init.getOperandNumber()] = inits[next++];
  Operation *part =
      cloneStructured(b, r.op, ValueRange(inits).getTypes(), operands);
  if (isRemainder && options.fillsUpLast())
    part->setDiscardableAttr(kRemainderAttrName, b.getUnitAttr());
  SmallVector<Value> ends(part->getResults());
  if (options.norm)
    ends.front() = emitNorm(ends.front(), into, span, first, count);
  if (r.output)
    ends.front() = insertBack(b, ends.front(), into, results.front());
  return ends;
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

CarriedValues Expansion::emitChunks(const Span &span, CarriedValues carried) {
  if (options.exact)
    return emitExactChunks(span, carried);
  // A single chunk needs no loop.
  std::optional<int64_t> begin = getConstantIntValue(span.begin),
                         end = getConstantIntValue(span.end);
  if (begin == 0 && end && *end > 0 && *end <= options.chunk)
    return emitChunk(span, span.begin, tokensFrom(span, span.begin), carried);
  return loop(span.begin, span.end, options.chunk, carried,
              [&](Value position, CarriedValues carried) {
                return emitChunk(span, position, tokensFrom(span, position),
                                 carried);
              });
}

/// Behind the last token nothing decays.
void Expansion::packDecayOfHead(const Span &span) {
  if (!options.fillsUpLast() || !r.decay || rankOf(r.decay) != 1)
    return;
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(1),
                                  tensor::getMixedSize(b, loc, r.decay, 0),
                                  b.getIndexAttr(options.chunk)};
  auto pack = [&](Value numbers, bool padded) -> Value {
    Value into = tensor::EmptyOp::create(b, loc, sizes,
                                         getElementTypeOrSelf(r.state.state));
    auto op = ChunkPackOp::create(
        b, loc, TypeRange{into.getType()}, numbers, Value(), Value(), Value(),
        Value(), into, FloatAttr(), FloatAttr(), /*reverse=*/false, padded);
    return op->getResult(0);
  };
  decays.whole = pack(r.decay, /*padded=*/false);
  Value count = b.createOrFold<arith::RemUIOp>(
      loc, b.createOrFold<arith::SubIOp>(loc, span.end, span.begin),
      index(options.chunk));
  SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0)),
      strides(3, b.getIndexAttr(1)), ofLast = sizes;
  ofLast[2] = getAsOpFoldResult(count);
  Value numbers = tensor::ExtractSliceOp::create(b, loc, decays.whole, offsets,
                                                 ofLast, strides);
  decays.last = pack(numbers, /*padded=*/true);
}

/// Whole chunks. The remaining tokens are one chunk if their number is static,
/// else small chunks and single tokens.
CarriedValues Expansion::emitExactChunks(const Span &span,
                                         CarriedValues carried) {
  auto chunksOf = [&](Value from, Value to, int64_t tokens,
                      CarriedValues carried) {
    return loop(
        from, to, tokens, carried, [&](Value position, CarriedValues carried) {
          OpFoldResult count = options.fillsUpLast()
                                   ? tokensFrom(span, position)
                                   : OpFoldResult(b.getIndexAttr(tokens));
          return emitChunk(span, position, count, carried);
        });
  };
  if (options.forUnit) {
    packDecayOfHead(span);
    return chunksOf(span.begin, span.end, options.chunk, carried);
  }
  if (std::optional<int64_t> end = getConstantIntValue(span.end)) {
    Value whole = index(*end / options.chunk * options.chunk);
    if (*end >= options.chunk)
      carried = chunksOf(span.begin, whole, options.chunk, carried);
    if (*end % options.chunk)
      carried =
          emitChunk(span, whole, b.getIndexAttr(*end % options.chunk), carried);
    return carried;
  }
  // A large chunk may leave many tokens, so that smaller chunks precede single
  // tokens.
  constexpr int64_t smallChunk = 16;
  Value done = span.begin;
  for (int64_t tokens : {options.chunk, smallChunk, int64_t(1)}) {
    if (tokens != options.chunk && tokens >= options.chunk)
      continue;
    Value until = span.end;
    if (tokens > 1) {
      Value left = arith::SubIOp::create(b, loc, span.end, done);
      Value rest = arith::RemUIOp::create(b, loc, left, index(tokens));
      until = arith::SubIOp::create(b, loc, span.end, rest);
    }
    carried = chunksOf(done, until, tokens, carried);
    done = until;
  }
  return carried;
}

Value Expansion::slice(Value x, const Span &span, OpFoldResult first,
                       OpFoldResult count) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(x, offsets, sizes);
  // [B, H, T, …], or the [B, T] of a mask.
  int64_t tokenDim = sizes.size() == 2 ? 1 : 2;
  offsets[0] = span.batch;
  sizes[0] = span.batches;
  offsets[tokenDim] = first;
  sizes[tokenDim] = count;
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, x, offsets, sizes, strides);
}

Value Expansion::clearTokens(const Span &span, Value output) {
  if (!output)
    return {};
  OpFoldResult count =
      arith::SubIOp::create(b, loc, span.end, span.begin).getResult();
  Value tokens = slice(output, span, span.begin, count);
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(getElementTypeOrSelf(output)));
  Value cleared = linalg::FillOp::create(b, loc, zero, tokens).getResult(0);
  return insertBack(b, cleared, tokens, output);
}

/// The tokens of the chunk at a position.
OpFoldResult Expansion::tokensFrom(const Span &span, Value position) {
  // The whole chunks of a known number of tokens.
  std::optional<int64_t> begins = getConstantIntValue(span.begin),
                         ends = getConstantIntValue(span.end);
  if (options.chunk == 1 || (begins == 0 && ends && *ends % options.chunk == 0))
    return b.getIndexAttr(options.chunk);
  AffineExpr at, end;
  bindDims(b.getContext(), at, end);
  return affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(2, 0, {b.getAffineConstantExpr(options.chunk), end - at},
                     b.getContext()),
      {position, span.end});
}

CarriedValues Expansion::emitChunk(const Span &span, Value position,
                                   OpFoldResult count, CarriedValues carried) {
  OpFoldResult first = position;
  if (r.reverse) { // begin + end − position − count
    AffineExpr at, end, begin, size;
    bindDims(b.getContext(), at, end, begin, size);
    first = affine::makeComposedFoldedAffineApply(
        b, loc, begin + end - at - size,
        {position, span.end, span.begin, count});
  }
  Recurrence part = r;
  part.output = carried.output;
  for (Value *operand : part.tokenOperands())
    *operand = slice(*operand, span, first, count);
  Value output = part.output;
  bool mayBeFilledUp =
      options.fillsUpLast() && getConstantIntValue(count) != options.chunk;
  if (options.norm)
    part.output = rowsFor(output, mayBeFilledUp);
  if (mayBeFilledUp && decays.whole) {
    Value isWhole = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        getValueOrCreateConstantIndexOp(b, loc, count), index(options.chunk));
    part.decay =
        arith::SelectOp::create(b, loc, isWhole, decays.whole, decays.last);
  }
  ChunkSteps steps(b, part, carried, /*headByHead=*/options.exact,
                   /*scalesOutputs=*/options.forUnit,
                   mayBeFilledUp ? options.chunk : 0);
  CarriedValues next = !r.key            ? steps.emitQueries()
                       : options.byToken ? steps.emitToken()
                                         : steps.emitProducts();
  if (!carried.output)
    return next;
  if (options.norm)
    next.output = emitNorm(next.output, output, span, first, count);
  next.output = insertBack(b, next.output, output, carried.output);
  return next;
}

/// Memory for the rows of outputs in front of their norm, a part of that for a
/// whole chunk if it may be filled up.
Value Expansion::rowsFor(Value output, bool mayBeFilledUp) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, output);
  SmallVector<OpFoldResult> whole = sizes;
  if (mayBeFilledUp)
    whole[2] = b.getIndexAttr(options.chunk);
  Value rows = tensor::EmptyOp::create(b, loc, whole,
                                       getElementTypeOrSelf(r.state.state));
  if (!mayBeFilledUp)
    return rows;
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, rows, offsets, sizes, strides);
}

/// The norm of the rows of a chunk, which are rounded behind it alone.
Value Expansion::emitNorm(Value rows, Value output, const Span &span,
                          OpFoldResult first, OpFoldResult count) {
  SmallVector<Value> operands(options.norm->getOperands());
  for (auto [operand, value] :
       llvm::zip(options.norm->getOpOperands(), operands)) {
    if (value == options.norm.getInput())
      value = rows;
    else if (options.norm.isDpsInit(&operand))
      value = output;
    else if (cast<ShapedType>(value.getType()).getRank() == 4)
      value = slice(value, span, first, count);
  }
  return cloneStructured(b, options.norm, output.getType(), operands)
      ->getResult(0);
}
