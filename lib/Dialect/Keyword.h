//===- Keyword.h - Enumerations as bare keywords ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enumerations in a clause are bare keywords: `update(delta)`. Printed as
// attributes they would come with a space of their own.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_DIALECT_KEYWORD_H
#define LINATTN_LIB_DIALECT_KEYWORD_H

#include "mlir/IR/DialectImplementation.h"

namespace mlir::linattn {

template <typename EnumAttrT>
ParseResult parseKeyword(OpAsmParser &parser, EnumAttrT &attr) {
  auto value = FieldParser<decltype(attr.getValue())>::parse(parser);
  if (failed(value))
    return failure();
  attr = EnumAttrT::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttrT>
void printKeyword(OpAsmPrinter &printer, Operation *, EnumAttrT attr) {
  printer << attr.getValue();
}

} // namespace mlir::linattn

#endif // LINATTN_LIB_DIALECT_KEYWORD_H
