//===- Nesting.cpp - How deep a text nests, how long its numbers are ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Session/Isolation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace linattn::detail;

namespace {

/// Reads a text as MLIR's lexer does, but for its nesting only.
class NestingScanner {
public:
  explicit NestingScanner(llvm::StringRef text) : text(text) {}

  /// The offset at which the parser would recurse more than `limit` deep, or at
  /// which a number ends that has more digits; npos if there is none.
  size_t findTooDeep(int64_t limit) {
    int64_t depth = 0, signs = 0;
    while (at < text.size()) {
      char c = text[at];
      if (skipTrivia())
        continue;
      if (llvm::isAlnum(c) || c == '_') {
        if (skipWord() > limit && llvm::isDigit(c))
          return at - 1;
        signs = 0;
        continue;
      }
      signs = c == '-' ? signs + 1 : 0;
      if (isArrow())
        at += 2;
      else if (isComparison())
        at += 2;
      else if (isOpening(c) && ++depth > limit)
        return at;
      else
        depth -= isClosing(c) && depth > 0, ++at;
      if (signs > limit)
        return at - 1;
    }
    return llvm::StringRef::npos;
  }

private:
  static bool isOpening(char c) {
    return c == '(' || c == '[' || c == '{' || c == '<';
  }
  static bool isClosing(char c) {
    return c == ')' || c == ']' || c == '}' || c == '>';
  }

  bool isArrow() const { return text.substr(at).starts_with("->"); }
  bool isComparison() const {
    return text.substr(at).starts_with(">=") ||
           text.substr(at).starts_with("<=");
  }

  /// Returns the length of a number or a name. LLVM's conversion to floating
  /// point has a buffer of about ten thousand digits and no check.
  int64_t skipWord() {
    size_t begin = at;
    while (at < text.size() && (llvm::isAlnum(text[at]) || text[at] == '.' ||
                                text[at] == '_' || text[at] == '$'))
      ++at;
    return at - begin;
  }

  /// White space, comments and strings, in which brackets do not count.
  bool skipTrivia() {
    char c = text[at];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at;
      return true;
    }
    if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
      return true;
    }
    if (c != '"')
      return false;
    // The lexer ends an unfinished string with its line, as an error.
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      at += text[at] == '\\';
    at = std::min(at + 1, text.size());
    return true;
  }

  llvm::StringRef text;
  size_t at = 0;
};

} // namespace

std::string linattn::detail::locate(llvm::StringRef text,
                                    llvm::StringRef fileName, size_t offset) {
  llvm::StringRef before = text.take_front(offset);
  size_t line = before.count('\n') + 1;
  size_t column = offset - (before.rfind('\n') + 1) + 1;
  return (fileName + ":" + llvm::Twine(line) + ":" + llvm::Twine(column)).str();
}

llvm::Error linattn::detail::checkNesting(llvm::StringRef text,
                                          llvm::StringRef fileName) {
  size_t offset = NestingScanner(text).findTooDeep(1000);
  if (offset == llvm::StringRef::npos)
    return llvm::Error::success();
  if (llvm::isAlnum(text[offset]) || text[offset] == '.')
    return llvm::createStringError(locate(text, fileName, offset) +
                                   ": error: expected a number of at most 1000 "
                                   "digits, but got a longer one");
  llvm::StringRef what = text[offset] == '-' ? "signs" : "brackets";
  return llvm::createStringError(locate(text, fileName, offset) + ": error: " +
                                 what + " are nested more than 1000 deep");
}
