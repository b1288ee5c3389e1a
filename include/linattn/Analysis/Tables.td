//===- Tables.td - Bases of the tables ---------------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SearchableTable.td has no guard of its own.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_TABLES_TD
#define LINATTN_ANALYSIS_TABLES_TD

include "llvm/TableGen/SearchableTable.td"
include "mlir/IR/EnumAttr.td"

#endif // LINATTN_ANALYSIS_TABLES_TD
