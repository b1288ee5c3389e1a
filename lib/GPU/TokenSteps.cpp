//===- TokenSteps.cpp - The token form: what a token computes -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenKernel.h"
#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Reading shared memory
//===----------------------------------------------------------------------===//

Value TokenKernel::sharedAt(const Staged &operand, Value number,
                            Value element) {
  Value bytes = k.mul(k.add(k.mul(number, operand.width), element), 4);
  return k.offset(k.offset(here.shared, bytes), operand.offset * 4);
}

Value TokenKernel::scalarOf(const Staged &operand, Value number) {
  return k.load(k.b.getF32Type(), sharedAt(operand, number, k.i32(0)), 4);
}

TokenKernel::Values TokenKernel::rowsOf(const Staged &operand, Value number,
                                        int64_t i) {
  Value address = k.offset(sharedAt(operand, number, k.mul(here.rowGroup, 4)),
                           rowStep * i * 4);
  Value vector = k.load(VectorType::get({4}, k.b.getF32Type()), address, 16);
  Values result;
  for (int64_t e = 0; e < 4; ++e)
    result.push_back(k.element(vector, e));
  return result;
}

TokenKernel::Values TokenKernel::columnsOf(const Staged &operand,
                                           Value number) {
  if (operand.width == 1)
    return Values(laneColumns, scalarOf(operand, number));
  Value address =
      sharedAt(operand, number, k.sub(here.column, here.firstColumn));
  Value vector =
      k.load(VectorType::get({laneColumns}, k.b.getF32Type()), address, 16);
  Values result;
  for (int64_t j = 0; j < laneColumns; ++j)
    result.push_back(k.element(vector, j));
  return result;
}

Value TokenKernel::sumLanes(Value x) {
  for (int64_t mask : {4, 8, 16})
    x = k.addf(x, k.shuffleXor(x, mask));
  return x;
}

TokenKernel::Values TokenKernel::sumRows(ValueRange matrix,
                                         const Staged &weights, Value number) {
  Values sums(laneColumns, k.f32(0));
  for (int64_t i = 0; i < rows(); ++i) {
    Values w = rowsOf(weights, number, i);
    for (int64_t e = 0; e < 4; ++e)
      for (int64_t j = 0; j < laneColumns; ++j)
        sums[j] = k.fma(w[e], matrix[at(i, e, j)], sums[j]);
  }
  for (Value &sum : sums)
    sum = sumLanes(sum);
  return sums;
}

//===----------------------------------------------------------------------===//
// One token
//===----------------------------------------------------------------------===//

void TokenKernel::decay(Value number, Values &state) {
  Value scalar = headDecay;
  if (operands.gate.view && operands.gate.width == 1)
    scalar = scalarOf(operands.gate, number);
  Values perColumn;
  if (operands.valueGate.view)
    perColumn = columnsOf(operands.valueGate, number);
  if (!scalar && !operands.gate.view && perColumn.empty())
    return;
  for (int64_t i = 0; i < rows(); ++i) {
    Values rowFactors(4, scalar);
    if (operands.gate.view && operands.gate.width > 1)
      rowFactors = rowsOf(operands.gate, number, i);
    for (int64_t e = 0; e < 4; ++e) {
      for (int64_t j = 0; j < laneColumns; ++j) {
        Value &x = state[at(i, e, j)];
        if (rowFactors[e])
          x = k.mulf(x, rowFactors[e]);
        if (!perColumn.empty())
          x = k.mulf(x, perColumn[j]);
      }
      if (views.normalizer && rowFactors[e])
        state[zAt(i, e)] = k.mulf(state[zAt(i, e)], rowFactors[e]);
    }
  }
}

/// r = Xᵀa; the sign of the delta rule is left to `write`.
TokenKernel::Values TokenKernel::transition(Value number, ValueRange before,
                                            ValueRange after) {
  ValueRange x = op.getTransition() == Transition::Before ? before : after;
  if (getRule(op).isGiven)
    return sumRows(x, operands.a, number);
  if (!operands.erase.view)
    return sumRows(x, operands.keys, number);
  Values sums(laneColumns, k.f32(0));
  for (int64_t i = 0; i < rows(); ++i) {
    Values row = rowsOf(operands.keys, number, i),
           gates = rowsOf(operands.erase, number, i);
    for (int64_t e = 0; e < 4; ++e) {
      Value erased = k.mulf(row[e], gates[e]);
      for (int64_t j = 0; j < laneColumns; ++j)
        sums[j] = k.fma(erased, x[at(i, e, j)], sums[j]);
    }
  }
  for (Value &sum : sums)
    sum = sumLanes(sum);
  return sums;
}

void TokenKernel::write(Value number, ValueRange before, Values &state) {
  Values written = columnsOf(operands.values, number), r;
  bool isGiven = getRule(op).isGiven;
  if (operands.write.view) {
    Values gates = columnsOf(operands.write, number);
    for (auto [x, g] : llvm::zip(written, gates))
      x = k.mulf(x, g);
  }
  if (!getRule(op).isAdditive())
    r = transition(number, before, state);
  if (getRule(op).correctsValues()) {
    Values steps;
    if (operands.beta.view)
      steps = columnsOf(operands.beta, number);
    for (int64_t j = 0; j < laneColumns; ++j) {
      written[j] = k.subf(written[j], r[j]);
      if (operands.beta.view)
        written[j] = k.mulf(written[j], steps[j]);
    }
  }
  for (int64_t i = 0; i < rows(); ++i) {
    Values row = rowsOf(operands.keys, number, i), push;
    if (isGiven)
      push = rowsOf(operands.b, number, i);
    for (int64_t e = 0; e < 4; ++e) {
      for (int64_t j = 0; j < laneColumns; ++j) {
        Value &x = state[at(i, e, j)];
        if (isGiven)
          x = k.fma(push[e], r[j], x);
        x = k.fma(row[e], written[j], x);
      }
      if (views.normalizer)
        state[zAt(i, e)] = k.addf(state[zAt(i, e)], row[e]);
    }
  }
}

/// Every query of the group reads the state.
void TokenKernel::read(Value number, Value first, ValueRange state) {
  for (int64_t member = 0; member < groupSize(); ++member) {
    Staged mine = operands.query;
    mine.offset += member * tokens() * operands.query.width;
    Values sums = sumRows(state, mine, number);
    Value denominator;
    if (views.normalizer || operands.bonus.view) {
      denominator = k.f32(0);
      for (int64_t i = 0; i < rows(); ++i) {
        Values w = rowsOf(mine, number, i), keyRow, bonusRow;
        if (operands.bonus.view) {
          keyRow = rowsOf(operands.keys, number, i);
          bonusRow = rowsOf(operands.bonus, k.i32(0), i);
        }
        for (int64_t e = 0; e < 4; ++e)
          denominator =
              k.fma(w[e],
                    operands.bonus.view ? k.mulf(bonusRow[e], keyRow[e])
                                        : state[zAt(i, e)],
                    denominator);
      }
      denominator = sumLanes(denominator);
    }
    if (operands.bonus.view) {
      // The weight that the token gives its own value.
      Values own = columnsOf(operands.values, number);
      for (int64_t j = 0; j < laneColumns; ++j)
        sums[j] = k.fma(denominator, own[j], sums[j]);
      denominator = Value();
    }
    writeOutput(number, first, member, sums, denominator);
  }
}

void TokenKernel::writeOutput(Value number, Value first, int64_t member,
                              ValueRange o, Value denominator) {
  Value scale = k.f32(scaleOr1(op.getScale()));
  Value inverse;
  if (denominator)
    inverse = emitInverseDenominator(k.b, k.loc, *op.getNormalize(),
                                     getElementTypeOrSelf(op.getQuery()),
                                     k.mulf(denominator, scale));
  Values results;
  for (Value x : o) {
    x = k.mulf(x, scale);
    if (inverse)
      x = emitClamp(k.b, k.loc, *op.getNormalize(), k.mulf(x, inverse));
    results.push_back(x);
  }
  // The sums are in all lanes of a column; the first row of lanes writes them.
  k.ifThen(k.equal(here.rowGroup, 0), [&] {
    Value token = tokenAt(k.add(first, number));
    Value head = k.add(k.mul(here.scan.head, groupSize()), member);
    Value address =
        views.output.at(k, {here.scan.batch, head, token, here.column});
    if (isWholeVectors())
      return k.ifThen(columnExists(0), [&] {
        k.store(k.convert(k.vectorOf(results), views.output.element), address,
                laneColumns * views.output.bytes());
      });
    for (int64_t j = 0; j < laneColumns; ++j)
      k.ifThen(columnExists(j), [&] {
        k.store(k.convert(results[j], views.output.element),
                k.offset(address, j * views.output.bytes()),
                views.output.bytes());
      });
  });
}

TokenKernel::Values TokenKernel::token(Value number, Value first,
                                       ValueRange carried) {
  Values state(carried);
  Values before(carried);
  bool exclusive = op.getReadout() == Readout::Exclusive;
  if (exclusive)
    read(number, first, state);
  decay(number, state);
  write(number, before, state);
  if (!exclusive)
    read(number, first, state);
  return state;
}
