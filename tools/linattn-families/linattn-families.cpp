//===- linattn-families.cpp - Show the table of named families ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linattn-families --list
//   linattn-families --emit=kda --set=use_gate_in_kernel=1 --with=A_log
//   linattn-families --docs
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/Families.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::linattn;
namespace cl = llvm::cl;

static cl::OptionCategory category("linattn-families options");
static cl::opt<bool> listNames("list", cl::desc("Print the families' names"),
                               cl::cat(category));
static cl::opt<bool> printDocs("docs",
                               cl::desc("Print the table as a page of docs"),
                               cl::cat(category));
static cl::opt<std::string> emitName("emit",
                                     cl::desc("Print a family as a function"),
                                     cl::value_desc("name"), cl::cat(category));
static cl::list<std::string>
    with("with",
         cl::desc("Optional operands to have; append :1 for their "
                  "second layout"),
         cl::value_desc("operand"), cl::CommaSeparated, cl::cat(category));
static cl::list<std::string> settings("set", cl::desc("Options of the family"),
                                      cl::value_desc("option=value"),
                                      cl::CommaSeparated, cl::cat(category));
static cl::list<std::string> sizes("size",
                                   cl::desc("Sizes of dimensions; ? for any"),
                                   cl::value_desc("dimension=size"),
                                   cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string> dtype("dtype",
                                  cl::desc("Element type of the tokens"),
                                  cl::init("f32"), cl::cat(category));
static cl::opt<std::string>
    config("config", cl::desc("Schedule: form = token, …"), cl::cat(category));
static cl::opt<bool> withState("state", cl::desc("Take and return the state"),
                               cl::cat(category));

static int report(llvm::Twine message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Default sizes of examples. The number of tokens stays open.
static int64_t defaultSize(StringRef dim) {
  if (dim == "Hq" || dim == "Hk" || dim == "G")
    return 2;
  return llvm::StringSwitch<int64_t>(dim)
      .Case("B", 2)
      .Case("K", 8)
      .Case("V", 5)
      .Case("M", 3)
      .Default(4);
}

static void setSizes(const Family &family, FamilyRequest &request) {
  auto bind = [&](StringRef layouts) {
    for (const LayoutNames &layout : parseLayout(layouts))
      for (StringRef dim : layout.logical)
        if (classifyDim(dim) != DimClass::Length && dim != "N" && dim != "1")
          request.extents.try_emplace(dim, defaultSize(dim));
  };
  for (const FamilyOperand &operand : family.operands)
    if (operand.kind != FamilyOperandKind::Offsets)
      bind(operand.layouts);
  for (StringRef setting : sizes) {
    auto [dim, size] = setting.split('=');
    int64_t extent = 0;
    request.extents.erase(dim);
    if (!size.getAsInteger(10, extent))
      request.extents[dim] = extent;
  }
  // The sizes by the rules, which must leave none open.
  for (StringRef rule : getDimRules(family, request.options)) {
    std::optional<SizeRule> parsed = parseSizeRule(rule);
    if (parsed && parsed->kind == SizeRule::Max)
      request.extents[parsed->result] =
          std::max(request.extents.lookup(parsed->left),
                   request.extents.lookup(parsed->right));
  }
}

static int emit(const Family &family) {
  MLIRContext context;
  Builder b(&context);
  FamilyRequest request;
  request.tokenType = llvm::StringSwitch<Type>(dtype)
                          .Case("f16", b.getF16Type())
                          .Case("bf16", b.getBF16Type())
                          .Case("f32", b.getF32Type())
                          .Case("f64", b.getF64Type())
                          .Default(Type());
  if (!request.tokenType)
    return report("dtype: expected f16, bf16, f32 or f64, but got " + dtype);
  for (StringRef setting : settings) {
    auto [name, text] = setting.split('=');
    double number = 0;
    request.options[name] = text.getAsDouble(number) ? FamilyValue(text.str())
                                                     : FamilyValue(number);
  }
  setSizes(family, request);
  Type gateType = request.tokenType.isF64() ? b.getF64Type() : b.getF32Type();
  for (const FamilyOperand &operand : family.operands) {
    auto given = llvm::find_if(with, [&](StringRef name) {
      return name.split(':').first == operand.name;
    });
    bool isGiven = given != with.end();
    if ((operand.isOptional && !isGiven) ||
        operand.kind == FamilyOperandKind::Tokens)
      continue;
    unsigned alternative = 0;
    if (isGiven && StringRef(*given).contains(':'))
      (void)StringRef(*given).split(':').second.getAsInteger(10, alternative);
    request.operands.push_back({operand.name, alternative,
                                operand.kind == FamilyOperandKind::Offsets
                                    ? Type(b.getI64Type())
                                    : gateType});
  }
  for (StringRef name : with)
    if (llvm::none_of(family.operands, [&](const FamilyOperand &operand) {
          return operand.name == name.split(':').first;
        }))
      return report(name + ": expected an operand of " + family.name);
  request.hasInitialState = request.returnsState = withState;
  request.config = config;
  auto module = buildFamily(&context, family, request);
  if (!module)
    return report(llvm::toString(module.takeError()));
  llvm::outs() << printFamily(**module);
  return 0;
}

//===----------------------------------------------------------------------===//
// Documentation
//===----------------------------------------------------------------------===//

/// Bars would end a cell.
static std::string escape(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

static std::string formatDefault(const FamilyOption &option) {
  if (!option.defaultValue)
    return option.isRequired ? " (required)" : "";
  if (const auto *word = std::get_if<std::string>(&*option.defaultValue))
    return " = " + *word;
  double number = std::get<double>(*option.defaultValue);
  std::string text;
  llvm::raw_string_ostream(text) << " = " << llvm::format("%g", number);
  return text;
}

static void printFamilyDocs(const Family &family, raw_ostream &os) {
  os << "\n## " << family.title << "\n\n`linattn." << family.name
     << "`: " << family.paper << ".\n\n```\n"
     << family.formula << "\n```\n\n"
     << family.note << (family.note.empty() ? "" : "\n\n")
     << "| | layout | |\n|---|---|---|\n";
  for (const FamilyOperand &operand : family.operands) {
    std::string layout =
        operand.kind == FamilyOperandKind::Offsets
            ? "N + 1"
            : StringRef(operand.layouts).split("->").first.rtrim().str();
    os << "| `" << operand.name << "`"
       << (operand.isOptional ? ", optional" : "") << " | `[" << escape(layout)
       << "]` | " << escape(operand.doc) << " |\n";
  }
  for (const FamilyOption &option : family.options)
    os << "| `" << option.name << formatDefault(option) << "` | | "
       << escape(option.doc) << " |\n";
  auto print = [&](StringRef what, StringRef layout, StringRef doc) {
    os << "| " << what << " | `[" << layout.split("->").first.rtrim() << "]` | "
       << doc << " |\n";
  };
  print("output", family.output, "");
  for (const FamilyState &part : family.state)
    print("state `" + part.name + "`", part.layout,
          part.condition.empty() ? "" : "with `" + part.condition + "`");
}

static void printTable(raw_ostream &os) {
  os << "# Named families\n\n"
        "<!-- Written by linattn-families --docs; do not edit. -->\n\n"
        "Every family is one entry of a table in `lib/Families`: its operands, "
        "its state and how it is built\nfrom the ops. The Python functions "
        "`linattn.<name>`, their references, the C++ builders and "
        "the\nexamples "
        "under `test/Families` come from it. Arrays are laid out as users give "
        "them; s is the scale,\nH counts states, T tokens, N states in memory "
        "(the batch, or packed sequences). Decays are natural\nlogarithms, "
        "≤ 0.\n\n| family | function | recurrence | paper "
        "|\n|---|---|---|---|\n";
  for (const Family &family : getFamilies())
    os << "| " << family.title << " | `" << family.name << "` | "
       << escape(family.formula) << " | " << family.paper << " |\n";
  for (const Family &family : getFamilies())
    printFamilyDocs(family, os);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "The named families of linattn\n");
  if (printDocs) {
    printTable(llvm::outs());
    return 0;
  }
  if (!emitName.empty()) {
    const Family *family = lookupFamily(emitName);
    return family
               ? emit(*family)
               : report("emit: expected a name that --list prints, but got " +
                        emitName);
  }
  for (const Family &family : getFamilies())
    llvm::outs() << family.name << "\n";
  return 0;
}
