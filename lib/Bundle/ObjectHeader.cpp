//===- ObjectHeader.cpp - C declarations of an object ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ObjectHeader.h"
#include "linattn/Entry/EntryLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace ::linattn;

/// The part of every header. It composes its messages without a C library.
static constexpr llvm::StringLiteral kShared = R"(
#ifndef LINATTN_OBJECT
#define LINATTN_OBJECT

#include <stddef.h>
#include <stdint.h>

/* Other languages call functions with symbols: one file of C that defines
   LINATTN_FUNCTION as nothing before it includes this one has them. */
#ifndef LINATTN_FUNCTION
#define LINATTN_FUNCTION static inline
#endif

/** An operand: its first element, extents, and strides in elements, NULL where
 *  it is contiguous. The innermost stride must be 1. */
typedef struct {
  void *data;
  const int64_t *shape;
  const int64_t *strides;
} linattn_array;

static inline size_t linattn_object_append(char *message, size_t size,
                                           size_t used, const char *text) {
  for (; *text && used + 1 < size; ++text)
    message[used++] = *text;
  if (used < size)
    message[used] = 0;
  return used;
}

static inline size_t linattn_object_number(char *message, size_t size,
                                           size_t used, int64_t number) {
  char digits[24], *at = digits + 23;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  *at = 0;
  do {
    *--at = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (number < 0)
    *--at = '-';
  return linattn_object_append(message, size, used, at);
}

static inline size_t linattn_object_shape(char *message, size_t size,
                                          size_t used, const int64_t *shape,
                                          int rank) {
  int i;
  for (i = 0; i < rank; ++i) {
    if (i)
      used = linattn_object_append(message, size, used, "x");
    used = shape[i] == -1 ? linattn_object_append(message, size, used, "?")
                          : linattn_object_number(message, size, used, shape[i]);
  }
  return used;
}

/* Fills the fields that compiled code reads: address twice, offset, extents,
 * strides. Returns whether the extents are the expected ones, -1 for any. */
static inline int linattn_object_view(int64_t *fields, const void *data,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      const int64_t *expected, int rank,
                                      const char *what, char *message,
                                      size_t size) {
  int64_t step = 1;
  int i, fits = 1;
  size_t used;
  fields[0] = fields[1] = (int64_t)(intptr_t)data;
  fields[2] = 0;
  for (i = rank; i-- > 0;) {
    fields[3 + i] = shape[i];
    fields[3 + rank + i] = strides ? strides[i] : step;
    step = (int64_t)((uint64_t)step * (uint64_t)shape[i]);
    fits &= expected[i] == -1 ? shape[i] >= 0 : shape[i] == expected[i];
  }
  if (!fits) {
    used = linattn_object_append(message, size, 0, what);
    used = linattn_object_append(message, size, used, ": expected shape ");
    used = linattn_object_shape(message, size, used, expected, rank);
    used = linattn_object_append(message, size, used, ", but got ");
    linattn_object_shape(message, size, used, shape, rank);
    return 0;
  }
  if (rank && shape[rank - 1] > 1 && strides && strides[rank - 1] != 1) {
    used = linattn_object_append(message, size, 0, what);
    used = linattn_object_append(
        message, size, used, ": expected an innermost stride of 1, but got ");
    linattn_object_number(message, size, used, strides[rank - 1]);
    return 0;
  }
  if (rank)
    fields[3 + 2 * rank - 1] = 1;
  return 1;
}

/* A message with {0}, {1} for sizes. */
static inline void linattn_object_check(char *message, size_t size,
                                        const char *text,
                                        const int64_t *sizes) {
  size_t used = 0;
  char one[2] = {0, 0};
  for (; *text; ++text) {
    if (text[0] == '{' && text[1] && text[2] == '}') {
      used = linattn_object_number(message, size, used, sizes[text[1] - '0']);
      text += 2;
      continue;
    }
    one[0] = *text;
    used = linattn_object_append(message, size, used, one);
  }
}

#endif
)";

static llvm::StringRef getCType(DType dtype) {
  switch (dtype) {
  case DType::F16:
  case DType::BF16:
    return "uint16_t";
  case DType::F32:
    return "float";
  case DType::F64:
    return "double";
  case DType::I1:
  case DType::I8:
    return "int8_t";
  case DType::I16:
    return "int16_t";
  case DType::I32:
    return "int32_t";
  case DType::I64:
  case DType::Index:
    return "int64_t";
  }
  llvm_unreachable("all types are listed");
}

namespace {

class HeaderWriter {
public:
  HeaderWriter(const Signature &signature, llvm::ArrayRef<std::string> checks,
               llvm::StringRef source)
      : signature(signature), checks(checks), source(source), os(text) {
    for (auto [i, argument] : llvm::enumerate(signature.arguments))
      names.push_back(isIdentifier(argument.name)
                          ? argument.name
                          : "argument" + std::to_string(i));
    for (size_t i = 0; i < signature.results.size(); ++i)
      names.push_back("result" + std::to_string(i));
  }

  std::string write() {
    std::string guard = "LINATTN_OBJECT_" + signature.entry;
    os << "/* " << signature.entry << ", compiled from "
       << llvm::sys::path::filename(source)
       << " by linattn-compile. C99, and C++. */\n\n#ifndef " << guard
       << "\n#define " << guard << "\n"
       << kShared << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    os << "void " << signature.entry << "__packed(void **operands);\n"
       << "void " << signature.entry
       << "__shapes__packed(void **operands);\n\n";
    writeShapes();
    writeRun();
    os << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    return text;
  }

private:
  /// Whether a name is a C identifier other than a keyword.
  static bool isIdentifier(llvm::StringRef name) {
    static const llvm::StringSet<> taken = {
        "auto",  "break",  "case",     "char",    "const",   "continue",
        "do",    "double", "default",  "else",    "enum",    "extern",
        "float", "for",    "goto",     "if",      "inline",  "int",
        "long",  "new",    "class",    "message", "size",    "operands",
        "short", "signed", "sizeof",   "static",  "struct",  "switch",
        "this",  "return", "template", "typedef", "union",   "unsigned",
        "void",  "while",  "volatile", "sizes",   "register"};
    return !name.empty() && !llvm::isDigit(name[0]) && !taken.contains(name) &&
           llvm::all_of(name,
                        [](char c) { return llvm::isAlnum(c) || c == '_'; });
  }

  const ValueInfo &getOperand(size_t index) const {
    size_t count = signature.arguments.size();
    return index < count ? signature.arguments[index]
                         : signature.results[index - count];
  }
  size_t countArguments() const { return signature.arguments.size(); }

  /// The parameter of an operand.
  void writeParameter(size_t index) {
    const ValueInfo &info = getOperand(index);
    if (info.isTensor)
      os << "linattn_array " << names[index];
    else
      os << getCType(info.dtype) << " " << names[index];
    os << ", ";
  }

  /// An operand's line in the comment.
  void describe(size_t index) {
    const ValueInfo &info = getOperand(index);
    os << " *  " << names[index] << ": " << getName(info.dtype).data();
    if (info.isTensor)
      os << ", " << formatShape(info.shape);
    if (index >= countArguments() && info.inPlaceOf >= 0)
      os << "; may be the memory of " << names[info.inPlaceOf];
    os << "\n";
  }

  /// Declares `fields<index>`, and documents how they are filled. The extents
  /// are those of the type, or `expected`.
  void writeView(size_t index, std::string expected = "") {
    const ValueInfo &info = getOperand(index);
    std::string what = index < countArguments()
                           ? signature.describeArgument(index)
                           : signature.describeResult(index - countArguments());
    int64_t rank = info.getRank();
    os << "  int64_t fields" << index << "[" << 3 + 2 * rank << "];\n";
    if (expected.empty()) {
      expected = "expected" + std::to_string(index);
      os << "  static const int64_t " << expected << "[] = {";
      llvm::interleaveComma(info.shape, os);
      os << (rank ? "};\n" : "0};\n");
    }
    std::string views =
        llvm::formatv("  if (!linattn_object_view(fields{0}, {1}.data, "
                      "{1}.shape, {1}.strides,\n                           "
                      "{2}, {3}, \"{4}\", message, size))\n    return 1;\n",
                      index, names[index], expected, rank, what);
    checksOfViews += views;
  }

  void writePointers(size_t count, llvm::StringRef last) {
    os << "  void *operands[] = {";
    for (size_t i = 0; i < count; ++i)
      os << (getOperand(i).isTensor ? "fields" + std::to_string(i)
                                    : "&" + names[i])
         << ", ";
    os << last << "};\n";
  }

  void writeShapes();
  void writeRun();

  const Signature &signature;
  llvm::ArrayRef<std::string> checks;
  llvm::StringRef source;
  std::vector<std::string> names;
  std::string text, checksOfViews;
  llvm::raw_string_ostream os;
};

} // namespace

void HeaderWriter::writeShapes() {
  size_t count = countArguments();
  int64_t extents = 0;
  for (const ValueInfo &result : signature.results)
    extents += result.getRank();
  os << "/** Computes the extents of all results, one result after the other, "
        "from those of the\n *  arguments, whose data is not looked at. "
        "Returns "
        "0, or 1 where they do not fit together:\n *  `message`, of `size` "
        "bytes, then holds the reason; NULL and 0 leave it out. */\n"
     << "LINATTN_FUNCTION int " << signature.entry << "_shapes(";
  for (size_t i = 0; i < count; ++i)
    writeParameter(i);
  os << "int64_t extents[" << std::max<int64_t>(extents, 1)
     << "], char *message, size_t size) {\n";
  checksOfViews.clear();
  for (size_t i = 0; i < count; ++i)
    if (getOperand(i).isTensor)
      writeView(i);
  int64_t slots =
      extents + (checks.empty() ? 0 : 1 + mlir::linattn::kMaxCheckedSizes);
  os << "  int64_t slots[" << std::max<int64_t>(slots, 1) << "], out[5];\n"
     << "  int i;\n";
  writePointers(count, "out");
  if (!checks.empty()) {
    os << "  static const char *const checks[] = {\n";
    for (const std::string &check : checks) {
      os << "      \"";
      os.write_escaped(check);
      os << "\",\n";
    }
    os << "  };\n";
  }
  os << checksOfViews << "  out[0] = out[1] = (int64_t)(intptr_t)slots;\n"
     << "  out[2] = 0;\n  out[3] = " << slots << ";\n  out[4] = 1;\n"
     << "  " << signature.entry << "__shapes__packed(operands);\n";
  if (!checks.empty())
    os << "  if (slots[" << extents << "] >= 0) {\n"
       << "    linattn_object_check(message, size, checks[slots[" << extents
       << "]], slots + " << extents + 1 << ");\n    return 1;\n  }\n";
  os << "  for (i = 0; i < " << extents << "; ++i)\n"
     << "    extents[i] = slots[i];\n"
     << "  return 0;\n}\n\n";
}

void HeaderWriter::writeRun() {
  size_t count = countArguments(), all = count + signature.results.size();
  os << "/** Computes:\n *\n";
  for (size_t i = 0; i < all; ++i)
    describe(i);
  os << " *\n *  f16 and bf16 are bits in 16-bit integers, i1 is a byte, 0 or "
        "1. The results' memory\n *  belongs to the caller and overlaps "
        "nothing "
        "else but where it says so; without\n *  a shape it has the computed "
        "one. Returns as above; after 1 nothing has been computed. */\n"
     << "LINATTN_FUNCTION int " << signature.entry << "(";
  for (size_t i = 0; i < all; ++i)
    writeParameter(i);
  os << "char *message, size_t size) {\n";
  checksOfViews.clear();
  int64_t extents = 0;
  std::string defaults;
  for (size_t i = 0; i < all; ++i) {
    if (i < count) {
      if (getOperand(i).isTensor)
        writeView(i);
      continue;
    }
    std::string own = "extents + " + std::to_string(extents);
    writeView(i, own);
    defaults += llvm::formatv("  if (!{0}.shape)\n    {0}.shape = {1};\n",
                              names[i], own);
    extents += getOperand(i).getRank();
  }
  os << "  int64_t extents[" << std::max<int64_t>(extents, 1) << "];\n";
  writePointers(all, "NULL");
  os << "  if (" << signature.entry << "_shapes(";
  for (size_t i = 0; i < count; ++i)
    os << names[i] << ", ";
  os << "extents, message, size))\n    return 1;\n"
     << defaults << checksOfViews << "  " << signature.entry
     << "__packed(operands);\n  return 0;\n}\n\n";
}

namespace linattn::detail {

std::string writeHeader(const Signature &signature,
                        llvm::ArrayRef<std::string> checks,
                        llvm::StringRef source) {
  return HeaderWriter(signature, checks, source).write();
}

} // namespace linattn::detail
