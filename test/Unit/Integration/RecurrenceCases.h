//===- RecurrenceCases.h - Small recurrences as text and numbers ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_INTEGRATION_RECURRENCECASES_H
#define LINATTN_TEST_UNIT_INTEGRATION_RECURRENCECASES_H

#include "Cases.h"
#include "linattn/Reference/Recurrences.h"

namespace linattn::test {

/// One op, its operands and what the oracle makes of them. Sizes of tokens stay
/// open in the text, so one kernel serves every length.
struct RecurrenceCase {
  struct Operand {
    std::string clause; ///< Without one the operand stands in front.
    DType dtype;
    Array array;
    int64_t tokenDim = -1;
  };

  std::string name, op, attributes;
  std::vector<Operand> operands;
  /// Clauses of the outputs, all of one type.
  std::vector<std::string> outputs = {"into"};
  DType dtype = DType::F32;
  std::vector<int64_t> outputShape;
  std::vector<Operand> states;
  Extents extents = Extents::DynamicTokens;
  /// Of results in f32; the compiler's promise unless given.
  double tolerance = -1;
  /// The expected results, from operands and states as they were rounded:
  /// outputs, then states.
  std::function<std::vector<Array>(const std::vector<Array> &,
                                   const std::vector<Array> &)>
      expect;
  /// Converts a result before it is compared: from its number, itself and the
  /// expected value.
  std::function<Array(size_t, Array, const Array &)> comparable;

  int64_t tokenDim() const { return outputShape.size() == 4 ? 2 : 1; }
  int64_t tokens() const { return outputShape[tokenDim()]; }
  std::string getText() const;
  std::vector<Buffer> getInputs(Layout layout = Layout::Contiguous) const;
  std::vector<Array> getExpected(const std::vector<Buffer> &inputs) const;
  /// The same with the tokens [begin, end) and other states.
  RecurrenceCase sliced(int64_t begin, int64_t end) const;
};

/// The cases, with this many tokens.
RecurrenceCase selectiveScanCase(int64_t tokens, DType dtype = DType::F32);
/// Complex states, fixed b and c, and a step that is fixed too.
RecurrenceCase s4dCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase complexSelectiveCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase groupedSelectiveCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase diagonalCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase complexDiagonalCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase wkv4Case(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase logLinearCase(int64_t tokens, DType dtype = DType::F32);
RecurrenceCase groupedLogLinearCase(int64_t tokens, DType dtype = DType::F32);

using CaseMaker = RecurrenceCase (*)(int64_t, DType);
inline constexpr CaseMaker allRecurrences[] = {selectiveScanCase,
                                               s4dCase,
                                               complexSelectiveCase,
                                               groupedSelectiveCase,
                                               diagonalCase,
                                               complexDiagonalCase,
                                               wkv4Case,
                                               logLinearCase,
                                               groupedLogLinearCase};

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_INTEGRATION_RECURRENCECASES_H
