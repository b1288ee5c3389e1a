//===- Exact.cpp - Comparison without tolerance ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact.h"
#include "Arguments.h"

#include "llvm/Support/raw_ostream.h"

using namespace linattn;

namespace {

struct Mismatch {
  int64_t index;
  uint64_t prime;
  bool isNaN;
};

/// The comparison of one result over all fields and sizes.
struct Outcome {
  int64_t count = 0;
  std::optional<Mismatch> mismatch;
  /// The shape of the mismatching result.
  llvm::SmallVector<int64_t, 4> shape;
};

} // namespace

static llvm::Expected<Kernel> compileSide(const ExactSide &side,
                                          unsigned prime) {
  CompilerOptions options = side.options;
  options.prime = prime;
  return Compiler(options).compile(side.program.text, side.entry,
                                   side.program.name);
}

static std::optional<Mismatch> findMismatch(const PrimeField &field,
                                            bool areElements,
                                            const NpyArray &got,
                                            const NpyArray &expected) {
  int64_t width = getByteSize(got.dtype);
  int64_t count = static_cast<int64_t>(got.data.size()) / width;
  auto load = [](const NpyArray &array, int64_t i) {
    return reinterpret_cast<const PrimeField::Element *>(array.data.data())[i];
  };
  for (int64_t i = 0; i < count; ++i) {
    bool equal = areElements
                     ? PrimeField::areEqual(load(got, i), load(expected, i))
                     : std::equal(got.data.begin() + i * width,
                                  got.data.begin() + (i + 1) * width,
                                  expected.data.begin() + i * width);
    if (!equal)
      return Mismatch{i, field.getPrime(),
                      areElements && (load(got, i) == PrimeField::kNaN ||
                                      load(expected, i) == PrimeField::kNaN)};
  }
  return std::nullopt;
}

static llvm::Error checkSignatures(const Signature &got,
                                   const Signature &expected) {
  if (got.arguments.size() != expected.arguments.size() ||
      got.results.size() != expected.results.size())
    return llvm::createStringError("--compare: expected '" + got.entry +
                                   "' and '" + expected.entry +
                                   "' to have as many arguments and results");
  return llvm::Error::success();
}

/// One call of each function, with one set of inputs.
static llvm::Error compareOnce(const PrimeField &field, const Kernel &got,
                               const Kernel &other,
                               std::vector<NpyArray> &arguments, int threads,
                               std::vector<Outcome> &outcomes) {
  auto actual = runOnce(got, arguments, {threads});
  if (!actual)
    return actual.takeError();
  auto expected = runOnce(other, arguments, {threads});
  if (!expected)
    return expected.takeError();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const NpyArray &x = (*actual)[i], &y = (*expected)[i];
    if (x.dtype != y.dtype || x.shape != y.shape)
      return llvm::createStringError(
          "--compare: expected result " + llvm::Twine(i) + " as " +
          formatShape(y.shape) + " " + std::string(getName(y.dtype)) +
          ", but got " + formatShape(x.shape) + " " +
          std::string(getName(x.dtype)));
    outcomes[i].count +=
        static_cast<int64_t>(x.data.size()) / getByteSize(x.dtype);
    if (outcomes[i].mismatch)
      continue;
    outcomes[i].mismatch =
        findMismatch(field, got.signature().results[i].isElement, x, y);
    outcomes[i].shape.assign(x.shape.begin(), x.shape.end());
  }
  return llvm::Error::success();
}

/// A row-major index, in NumPy's notation.
static std::string formatIndex(int64_t index, llvm::ArrayRef<int64_t> shape) {
  std::string text = "]";
  for (size_t dim = shape.size(); dim-- > 0; index /= shape[dim])
    text = (dim ? ", " : "") + std::to_string(index % shape[dim]) + text;
  return "[" + text;
}

static bool report(llvm::ArrayRef<Outcome> outcomes, unsigned fields,
                   llvm::json::Array &records) {
  bool equal = true;
  for (auto [i, outcome] : llvm::enumerate(outcomes)) {
    llvm::outs() << "result " << i << ": ";
    llvm::json::Object record{{"equal", !outcome.mismatch}};
    if (!outcome.mismatch) {
      llvm::outs() << (fields == 1 ? "equal in one field, "
                                   : "equal in both fields, ")
                   << outcome.count << " elements\n";
    } else {
      equal = false;
      std::string at = formatIndex(outcome.mismatch->index, outcome.shape);
      llvm::outs() << "not equal, first at " << at << " modulo "
                   << outcome.mismatch->prime
                   << (outcome.mismatch->isNaN ? " (not a number)" : "")
                   << "\n";
      record["index"] = at;
    }
    records.push_back(std::move(record));
  }
  return equal;
}

llvm::Expected<bool> linattn::compareExactly(const ExactSide &candidate,
                                             const ExactSide &reference,
                                             const ExactInputs &inputs,
                                             llvm::json::Array &records) {
  std::vector<Outcome> outcomes;
  for (unsigned prime = 0; prime < inputs.fields; ++prime) {
    PrimeField field(prime);
    auto got = compileSide(candidate, prime);
    if (!got)
      return got.takeError();
    auto other = compileSide(reference, prime);
    if (!other)
      return other.takeError();
    const Signature &signature = got->signature();
    if (llvm::Error error = checkSignatures(signature, other->signature()))
      return std::move(error);
    outcomes.resize(signature.results.size());
    llvm::SmallVector<int64_t> sizes(inputs.openSizes.begin(),
                                     inputs.openSizes.end());
    if (sizes.empty() ||
        llvm::all_of(signature.arguments, [](const ValueInfo &info) {
          return info.hasStaticShape();
        }))
      sizes.assign(1, sizes.empty() ? -1 : sizes.front());
    for (int64_t size : sizes) {
      auto arguments =
          makeInputs(signature, inputs.specifications, size, &field);
      if (!arguments)
        return arguments.takeError();
      if (llvm::Error error = compareOnce(field, *got, *other, *arguments,
                                          inputs.threads, outcomes))
        return std::move(error);
    }
  }
  return report(outcomes, inputs.fields, records);
}
