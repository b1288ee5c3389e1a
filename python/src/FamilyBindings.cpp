//===- FamilyBindings.cpp - The table of families, for Python -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "KernelObject.h"
#include "linattn/Families/Families.h"
#include "mlir/IR/MLIRContext.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace mlir::linattn;

static const Family &getFamily(const std::string &name) {
  if (const Family *family = lookupFamily(name))
    return *family;
  throw nb::value_error(("expected a family, but got " + name).c_str());
}

static llvm::StringMap<FamilyValue> toOptions(nb::dict options) {
  llvm::StringMap<FamilyValue> values;
  for (auto [name, value] : options) {
    FamilyValue &slot = values[nb::cast<std::string>(name)];
    if (nb::isinstance<nb::str>(value))
      slot = nb::cast<std::string>(value);
    else
      slot = nb::cast<double>(value);
  }
  return values;
}

static const char *getRole(FamilyOperandKind kind) {
  switch (kind) {
  case FamilyOperandKind::Tokens:
    return "tokens";
  case FamilyOperandKind::Gate:
    return "gate";
  case FamilyOperandKind::Offsets:
    return "offsets";
  }
  return "";
}

/// The description of a plan under these options: all operands as (name, role,
/// layouts, optional), the rules, the state and the output.
static nb::dict describe(const std::string &name, nb::dict optionDict) {
  const Family &family = getFamily(name);
  auto options = toOptions(optionDict);
  nb::list operands, rules, state;
  for (const FamilyOperand &operand : family.operands)
    operands.append(nb::make_tuple(operand.name, getRole(operand.kind),
                                   operand.layouts, operand.isOptional));
  for (const std::string &rule : getDimRules(family, options))
    rules.append(rule);
  for (const FamilyState *part : getStateParts(family, options))
    state.append(nb::make_tuple(part->name, "state", part->layout));
  nb::dict result;
  result["operands"] = operands;
  result["rules"] = rules;
  result["state"] = state;
  result["output"] = family.output;
  return result;
}

/// The documentation of a family: its signature, texts, and (name, text) of
/// operands and options.
static nb::dict document(const std::string &name) {
  const Family &family = getFamily(name);
  nb::list operands, options;
  for (const FamilyOperand &operand : family.operands)
    operands.append(nb::make_tuple(operand.name, operand.doc));
  for (const FamilyOption &option : family.options)
    options.append(nb::make_tuple(option.name, option.doc));
  nb::list state;
  for (const FamilyState &part : family.state)
    state.append(
        nb::make_tuple(part.name, part.layout, part.condition, part.initial));
  nb::dict result;
  result["signature"] = family.signature;
  result["has_forms"] = family.hasForms;
  result["title"] = family.title;
  result["formula"] = family.formula;
  result["paper"] = family.paper;
  result["note"] = family.note;
  result["operands"] = operands;
  result["options"] = options;
  result["state"] = state;
  return result;
}

static mlir::Type parseType(mlir::Builder &b, const std::string &name) {
  if (name == "f16")
    return b.getF16Type();
  if (name == "bf16")
    return b.getBF16Type();
  if (name == "f32")
    return b.getF32Type();
  if (name == "f64")
    return b.getF64Type();
  return name == "i32" ? b.getI32Type() : b.getI64Type();
}

static std::string emitText(const std::string &name, const std::string &dtype,
                            nb::dict extents, nb::list operands,
                            nb::dict options, bool hasState, bool returnsState,
                            const std::string &config, bool takesScale,
                            bool returnsOutput) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Builder b(&context);
  FamilyRequest request;
  request.tokenType = parseType(b, dtype);
  for (auto [dim, extent] : extents)
    if (!extent.is_none())
      request.extents[nb::cast<std::string>(dim)] = nb::cast<int64_t>(extent);
  for (nb::handle operand : operands)
    request.operands.push_back(
        {nb::cast<std::string>(operand[0]), nb::cast<unsigned>(operand[1]),
         parseType(b, nb::cast<std::string>(operand[2]))});
  request.options = toOptions(options);
  request.hasInitialState = hasState;
  request.returnsState = returnsState;
  request.config = config;
  request.takesScale = takesScale;
  request.returnsOutput = returnsOutput;
  auto module =
      linattn::python::unwrap(buildFamily(&context, getFamily(name), request));
  return printFamily(*module);
}

void linattn::python::registerFamilies(nb::module_ &module) {
  nb::module_ families =
      module.def_submodule("families", "The table of named families.");
  families.def("names", [] {
    nb::list names;
    for (const Family &family : getFamilies())
      names.append(family.name);
    return names;
  });
  families.def("describe", &describe, "name"_a, "options"_a,
               "Operands, rules, state and output, as a plan takes them.");
  families.def("document", &document, "name"_a,
               "Signature and texts, as a docstring takes them.");
  families.def(
      "rule",
      [](const std::string &text) {
        std::optional<SizeRule> rule = parseSizeRule(text);
        if (!rule)
          throw nb::value_error(
              ("rule: expected a size, but got " + text).c_str());
        constexpr const char *kinds[] = {"max", "times", "quotient", "constant",
                                         "features"};
        return nb::make_tuple(kinds[rule->kind], rule->result.str(),
                              rule->left.str(), rule->right.str(), rule->factor,
                              nb::make_tuple(rule->coefficients[0],
                                             rule->coefficients[1],
                                             rule->coefficients[2]));
      },
      "text"_a,
      "A rule of sizes: kind, result, left, right, factor, coefficients.");
  families.def("text", &emitText, "name"_a, "dtype"_a, "extents"_a,
               "operands"_a, "options"_a, "has_state"_a, "returns_state"_a,
               "config"_a, "takes_scale"_a = false, "returns_output"_a = true,
               "The family as a module for these types; the scale is an f64 "
               "argument behind the operands with `takes_scale`. Without "
               "`returns_output` the final state alone, of families that add "
               "to it.");
}
