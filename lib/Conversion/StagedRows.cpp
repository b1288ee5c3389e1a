//===- StagedRows.cpp - Rows that do not lie in memory as such ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of some tokens of an operand, copied before they are packed: of one
// that is transposed, block by block in registers; of one that the kernel makes
// itself (linattn-fuse-prologue), token by token.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "linattn/Transforms/Prologue.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linattn;

/// The loop over features.
static constexpr unsigned kFeature = 3;

static bool hasFeatures(AffineMap map) {
  return map.getNumDims() > kFeature && map.isFunctionOfDim(kFeature);
}

/// Whether an input of a prologue is all rows of tokens.
static bool isRows(AffineMap map) {
  return map.getNumDims() > kFeature && map.isIdentity();
}

/// The ops that make `operand`, each before those whose results it takes.
static SmallVector<linalg::GenericOp> findPrologues(Value operand) {
  SmallVector<linalg::GenericOp> ops;
  if (linalg::GenericOp op = findPrologue(operand)) {
    ops.push_back(op);
    for (Value input : op.getDpsInputs())
      llvm::append_range(ops, findPrologues(input));
  }
  return ops;
}

SmallVector<Value> TileBuilder::rowSources(Value operand) {
  if (!findPrologue(operand))
    return {operand};
  llvm::SmallSetVector<Value, 4> sources;
  for (linalg::GenericOp op : findPrologues(operand))
    for (OpOperand *input : op.getDpsInputOperands())
      if (isRows(op.getMatchingIndexingMap(input)))
        sources.insert(input->get());
  return sources.takeVector();
}

TileBuilder::StagedRows TileBuilder::allocateRows(Value operand,
                                                  int64_t tokens) {
  if (!operand || (!isTransposed(operand) && !findPrologue(operand)))
    return {};
  StagedRows staged;
  int64_t whole = llvm::alignTo(tokens, shape.lanes);
  staged.rows =
      scratch({b.getIndexAttr(whole), getAsOpFoldResult(dim(operand, 3))});
  if (findPrologue(operand))
    for (Value source : rowSources(operand))
      if (StagedRows rows = allocateRows(source, tokens))
        staged.sources[source] = rows.rows;
  return staged;
}

void TileBuilder::stageRows(const StagedRows &staged, Value operand,
                            Value batch, Value head, Value first, Value count) {
  if (!staged)
    return;
  if (!findPrologue(operand))
    return transposeRows(operand, staged.rows, batch, head, first, count);
  for (auto [source, rows] : staged.sources)
    transposeRows(source, rows, batch, head, first, count);
  forEach(count, [&](Value t) {
    makeRow(operand, staged, {batch, head, add(first, t)}, t);
  });
}

void TileBuilder::transposeRows(Value operand, Value rows, Value batch,
                                Value head, Value first, Value count) {
  int64_t lanes = shape.lanes;
  forEach(index(0), count, lanes, [&](Value t) {
    forEach(index(0), dim(operand, 3), lanes, [&](Value d) {
      Rows lines = readTransposed(
          operand, {{batch, head}, add(first, t), d, lanes, /*anywhere=*/true},
          lanes);
      for (auto [i, line] : llvm::enumerate(lines))
        writeOperand(line, rows, {add(t, index(i)), d});
    });
  });
}

void TileBuilder::prefetchColumns(Value operand, ArrayRef<Value> place,
                                  Value first, int64_t tokens, Value part,
                                  Value parts) {
  Value size = dim(operand, 3), last = sub(dim(operand, 2), index(1));
  Value each = ceilDiv(size, parts), start = mul(part, each);
  forEach(start, min(add(start, each), size), 1, [&](Value d) {
    for (int64_t t = 0; t < tokens; t += elementsPerLine(operand)) {
      SmallVector<Value> at(place);
      at.append({min(add(first, index(t)), last), d});
      prefetchLine(operand, at);
    }
  });
}

//===----------------------------------------------------------------------===//
// Rows that the kernel makes
//===----------------------------------------------------------------------===//

/// The body for one element, or for a vector of features where an argument is
/// one; of a sum, what is added.
Value TileBuilder::emitBody(linalg::GenericOp op, ArrayRef<Value> arguments) {
  IRMapping mapping;
  mapping.map(op.getBody()->getArguments().take_front(arguments.size()),
              arguments);
  arith::AddFOp sum = op.getNumReductionLoops() ? getRowSum(op) : nullptr;
  for (Operation &nested : op.getBody()->without_terminator()) {
    if (&nested == sum)
      continue;
    auto isVector = [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    };
    bool isRow = llvm::any_of(nested.getOperands(), isVector);
    IRMapping own(mapping);
    if (isRow)
      for (Value operand : nested.getOperands())
        if (!isVector(operand))
          own.map(operand,
                  vector::BroadcastOp::create(
                      b, loc, VectorType::get(shape.lanes, operand.getType()),
                      mapping.lookupOrDefault(operand)));
    Operation *copy = b.clone(nested, own);
    Value result = copy->getResult(0);
    if (isRow)
      result.setType(VectorType::get(shape.lanes, result.getType()));
    mapping.map(nested.getResult(0), result);
  }
  Value last = op.getBody()->getTerminator()->getOperand(0);
  if (sum)
    last = sum.getLhs() == op.getRegionOutputArgs().front() ? sum.getRhs()
                                                            : sum.getLhs();
  return mapping.lookupOrDefault(last);
}

/// An input's number, or null where it has a vector of features.
Value TileBuilder::readNumber(linalg::GenericOp op, OpOperand *input,
                              const StagedRows &staged, ArrayRef<Value> token,
                              Value t) {
  AffineMap map = op.getMatchingIndexingMap(input);
  if (!isa<MemRefType>(input->get().getType()))
    return input->get();
  if (hasFeatures(map))
    return {};
  if (linalg::GenericOp producer = findPrologue(input->get()))
    return makeNumber(producer, staged, token, t);
  SmallVector<Value> at;
  for (AffineExpr expr : map.getResults())
    at.push_back(token[cast<AffineDimExpr>(expr).getPosition()]);
  return load(input->get(), at);
}

/// The features [d, d + lanes) of an input, in its own type.
Value TileBuilder::readFeatures(linalg::GenericOp op, OpOperand *input,
                                const StagedRows &staged, ArrayRef<Value> token,
                                Value t, Value d) {
  Value memref = input->get();
  Type element = getElementTypeOrSelf(memref);
  if (Value rows = staged.sources.lookup(memref))
    return convert(readOperand(rows, {t, d}, shape.lanes), element);
  SmallVector<Value> at;
  for (AffineExpr expr : op.getMatchingIndexingMap(input).getResults()) {
    unsigned position = cast<AffineDimExpr>(expr).getPosition();
    at.push_back(position == kFeature ? d : token[position]);
  }
  return readElements(memref, at, shape.lanes);
}

/// The body for the features [d, d + lanes); `numbers` has the inputs that are
/// one number per token.
Value TileBuilder::emitFeatures(linalg::GenericOp op, ArrayRef<Value> numbers,
                                const StagedRows &staged, ArrayRef<Value> token,
                                Value t, Value d) {
  SmallVector<Value> arguments(numbers);
  for (auto [i, input] : llvm::enumerate(op.getDpsInputOperands()))
    if (!arguments[i])
      arguments[i] = readFeatures(op, input, staged, token, t, d);
  return emitBody(op, arguments);
}

/// One number per token: a map of other numbers, or a sum over a row.
Value TileBuilder::makeNumber(linalg::GenericOp op, const StagedRows &staged,
                              ArrayRef<Value> token, Value t) {
  SmallVector<Value> numbers;
  for (OpOperand *input : op.getDpsInputOperands())
    numbers.push_back(readNumber(op, input, staged, token, t));
  if (!op.getNumReductionLoops())
    return emitBody(op, numbers);
  OpOperand *rows = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (hasFeatures(op.getMatchingIndexingMap(input)))
      rows = input;
  auto type =
      VectorType::get(shape.lanes, op.getRegionOutputArgs().front().getType());
  Value size = lastDim(rows->get()), none = constant(type, 0.0);
  auto summands = [&](Value d) {
    Value x = emitFeatures(op, numbers, staged, token, t, d);
    if (dividesLastDim(cast<MemRefType>(rows->get().getType()), shape.lanes))
      return x;
    auto mask = VectorType::get(shape.lanes, b.getI1Type());
    return select(vector::CreateMaskOp::create(b, loc, mask, sub(size, d)), x,
                  none);
  };
  // Up to four partial sums: one alone would wait for each of its additions.
  int64_t parts = 4;
  std::optional<int64_t> known = getConstantIntValue(size);
  while (parts > 1 && (!known || *known % (parts * shape.lanes)))
    parts /= 2;
  SmallVector<Value> sums = reduce(
      index(0), size, parts * shape.lanes, Rows(parts, none),
      [&](Value d, ValueRange carried) {
        SmallVector<Value> next;
        for (auto [i, sum] : llvm::enumerate(carried))
          next.push_back(addf(sum, summands(add(d, index(i * shape.lanes)))));
        return next;
      });
  for (; parts > 1; parts /= 2)
    for (int64_t i = 0; i < parts / 2; ++i)
      sums[i] = addf(sums[i], sums[i + parts / 2]);
  return addf(sumVector(sums.front()), findFill(op.getDpsInits()[0]).value());
}

/// Row `t` of the staged rows: that of `token`.
void TileBuilder::makeRow(Value operand, const StagedRows &staged,
                          ArrayRef<Value> token, Value t) {
  linalg::GenericOp op = findPrologue(operand);
  SmallVector<Value> numbers;
  for (OpOperand *input : op.getDpsInputOperands())
    numbers.push_back(readNumber(op, input, staged, token, t));
  forEach(index(0), lastDim(operand), shape.lanes, [&](Value d) {
    Value row = emitFeatures(op, numbers, staged, token, t, d);
    if (!isa<VectorType>(row.getType()))
      row = vector::BroadcastOp::create(
          b, loc, VectorType::get(shape.lanes, row.getType()), row);
    writeOperand(convert(row, type), staged.rows, {t, d});
  });
}
