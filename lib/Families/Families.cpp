//===- Families.cpp - The table of named families -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/Families.h"
#include "Tables.h"
#include "linattn/Families/FamilyBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

ArrayRef<Family> mlir::linattn::getFamilies() {
  static const std::vector<Family> families = [] {
    std::vector<Family> unordered, ordered;
    appendAdditiveFamilies(unordered);
    appendDeltaFamilies(unordered);
    appendTwoPassFamilies(unordered);
    appendBeyondFamilies(unordered);
    appendMamba3Families(unordered);
    appendLightNetFamilies(unordered);
    appendMomentumFamilies(unordered);
    for (const char *name : {
#define LINATTN_FAMILY(BUILDER, NAME) #NAME,
#include "linattn/Families/Families.def"
         })
      for (Family &family : unordered)
        if (family.name == name)
          ordered.push_back(std::move(family));
    return ordered;
  }();
  return families;
}

const Family *mlir::linattn::lookupFamily(StringRef name) {
  for (const Family &family : getFamilies())
    if (family.name == name)
      return &family;
  return nullptr;
}

llvm::Expected<FamilyResults>
mlir::linattn::buildFamily(OpBuilder &b, Location loc, const Family &family,
                           const FamilyArguments &arguments) {
  FamilyBuilder builder(b, loc, family, arguments);
  auto run = [&]() -> FailureOr<FamilyResults> {
    size_t parts = getStateParts(family, arguments.options).size();
    if (failed(builder.checkOptions()) || failed(builder.bindOperands()) ||
        failed(builder.applyRules()))
      return failure();
    if (!arguments.state.empty() && arguments.state.size() != parts)
      return builder.fail("initial state: expected " + Twine(parts) +
                          " tensors, but got " + Twine(arguments.state.size()));
    return family.build(builder);
  };
  FailureOr<FamilyResults> results = run();
  if (succeeded(results) && builder.error().empty())
    return *results;
  return llvm::createStringError(builder.error());
}

#define LINATTN_FAMILY(BUILDER, NAME)                                          \
  llvm::Expected<FamilyResults> mlir::linattn::build##BUILDER(                 \
      OpBuilder &b, Location loc, const FamilyArguments &arguments) {          \
    return buildFamily(b, loc, *lookupFamily(#NAME), arguments);               \
  }
#include "linattn/Families/Families.def"
