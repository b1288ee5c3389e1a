//===- FamiliesTest.cpp - The table of named families ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/Families.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/InitAll.h"
#include "linattn/Reference/Reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::linattn;
namespace reference = ::linattn::reference;

namespace {

class Families : public testing::Test {
protected:
  Families() : b(&context) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// A request with every gate that must be there, and sizes for all
  /// dimensions that the rules do not give.
  FamilyRequest makeRequest(const Family &family) {
    FamilyRequest request;
    request.tokenType = b.getF32Type();
    for (const FamilyOption &option : family.options)
      if (option.isRequired)
        request.options[option.name] = 2.0;
    for (const FamilyOperand &operand : family.operands) {
      for (const LayoutNames &layout : parseLayout(operand.layouts))
        for (StringRef dim : layout.logical)
          if (classifyDim(dim) == DimClass::Head)
            request.extents[dim] = dim == "Hk" || dim == "G" ? 2 : 4;
          else if (classifyDim(dim) == DimClass::Feature && dim != "1")
            // Mamba-3 has no more angles than pairs of features.
            request.extents[dim] = dim == "S" ? 4 : 8;
      if (operand.kind == FamilyOperandKind::Gate && !operand.isOptional)
        request.operands.push_back({operand.name, 0, b.getF32Type()});
    }
    request.extents["H"] = request.extents["Ho"] = 4;
    return request;
  }

  MLIRContext context;
  OpBuilder b;
};

/// The parameters of a signature, with the text behind their "=" if any.
static llvm::StringMap<std::string> parseSignature(StringRef signature) {
  llvm::StringMap<std::string> parameters;
  SmallVector<StringRef> parts;
  signature.split(parts, ", ");
  for (StringRef part : parts) {
    auto [name, value] = part.split('=');
    if (name != "*")
      EXPECT_TRUE(parameters.try_emplace(name, value).second) << part.str();
  }
  return parameters;
}

static std::string asPython(const FamilyOption &option) {
  if (option.isRequired)
    return "";
  if (!option.defaultValue)
    return "None";
  if (const auto *word = std::get_if<std::string>(&*option.defaultValue))
    return '"' + *word + '"';
  return std::to_string(std::get<double>(*option.defaultValue));
}

TEST_F(Families, SignaturesNameOperandsAndOptionsWithTheirDefaults) {
  for (const Family &family : getFamilies()) {
    if (family.signature.empty())
      continue;
    SCOPED_TRACE(family.name);
    llvm::StringMap<std::string> parameters = parseSignature(family.signature);
    for (const FamilyOperand &operand : family.operands) {
      if (operand.kind == FamilyOperandKind::Offsets)
        continue;
      auto found = parameters.find(operand.name);
      ASSERT_NE(found, parameters.end()) << operand.name;
      EXPECT_TRUE(found->second.empty() ||
                  (operand.isOptional && found->second == "None"))
          << operand.name;
      parameters.erase(found);
    }
    for (const FamilyOption &option : family.options) {
      auto found = parameters.find(option.name);
      ASSERT_NE(found, parameters.end()) << option.name;
      std::string value = found->second;
      if (value == "True" || value == "False")
        value = std::to_string(value == "True" ? 1.0 : 0.0);
      else if (double number; !StringRef(value).getAsDouble(number))
        value = std::to_string(number);
      EXPECT_EQ(value, asPython(option)) << option.name;
      parameters.erase(found);
    }
    // The initial state, and whether the final one is returned.
    EXPECT_EQ(parameters.size(), 2u);
  }
}

TEST_F(Families, MatchTheDocumentation) {
  llvm::StringSet<> names;
  for (const Family &family : getFamilies()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.title.empty()) << family.name;
    EXPECT_FALSE(family.formula.empty()) << family.name;
    EXPECT_FALSE(family.paper.empty()) << family.name;
    EXPECT_FALSE(family.state.empty()) << family.name;
    ASSERT_FALSE(family.operands.empty()) << family.name;
    EXPECT_EQ(family.operands.front().kind, FamilyOperandKind::Tokens)
        << family.name;
  }
#define LINATTN_FAMILY(BUILDER, NAME) EXPECT_TRUE(names.erase(#NAME)) << #NAME;
#include "linattn/Families/Families.def"
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(lookupFamily("nothing"), nullptr);
}

TEST_F(Families, BuildWithAndWithoutAState) {
  for (const Family &family : getFamilies())
    for (bool state : {false, true}) {
      FamilyRequest request = makeRequest(family);
      request.hasInitialState = request.returnsState = state;
      auto module = buildFamily(&context, family, request);
      ASSERT_TRUE(static_cast<bool>(module))
          << family.name << ": " << llvm::toString(module.takeError());
      EXPECT_TRUE(succeeded(verify(**module))) << family.name;
      auto function = *(*module)->getOps<func::FuncOp>().begin();
      size_t parts = getStateParts(family, request.options).size();
      EXPECT_EQ(function.getNumResults(), state ? parts + 1 : 1) << family.name;
    }
}

TEST_F(Families, HaveBuildersOfTheirOwn) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  auto tokens = RankedTensorType::get({1, 2, 5, 4}, b.getF32Type());
  auto gate = RankedTensorType::get({1, 2, 5}, b.getF32Type());
  auto function = func::FuncOp::create(
      b, b.getUnknownLoc(), "f",
      b.getFunctionType({tokens, tokens, tokens, gate, gate}, {tokens}));
  b.setInsertionPointToStart(function.addEntryBlock());
  FamilyArguments arguments;
  const char *names[] = {"q", "k", "v", "g", "beta"};
  for (auto [index, name] : llvm::enumerate(names))
    arguments.operands[name] = function.getArgument(index);
  arguments.options["use_qk_l2norm_in_kernel"] = 1.0;
  auto results = buildGatedDeltaRule(b, b.getUnknownLoc(), arguments);
  ASSERT_TRUE(static_cast<bool>(results))
      << llvm::toString(results.takeError());
  EXPECT_EQ(results->output.getType(), tokens);
  ASSERT_EQ(results->state.size(), 1u);
  func::ReturnOp::create(b, b.getUnknownLoc(), results->output);
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(Families, NameTheError) {
  const Family &family = *lookupFamily("kda");
  auto error = [&](const FamilyRequest &request) {
    auto module = buildFamily(&context, family, request);
    return module ? "no error" : llvm::toString(module.takeError());
  };
  FamilyRequest request = makeRequest(family);
  request.operands.clear();
  EXPECT_EQ(error(request), "g: expected an operand, but got none");
  request = makeRequest(family);
  request.operands.push_back({"gate", 0, b.getF32Type()});
  EXPECT_EQ(error(request),
            "gate: expected an operand of kda, but it has none of that name");
  request = makeRequest(family);
  request.options["speed"] = 1.0;
  EXPECT_EQ(error(request),
            "speed: expected an option of kda, but it has none of that name");
  request = makeRequest(family);
  request.options["use_gate_in_kernel"] = 1.0;
  EXPECT_EQ(error(request), "A_log: expected it with use_gate_in_kernel and no "
                            "lower_bound, but got none");
  request = makeRequest(family);
  request.extents["H"] = 6;
  EXPECT_NE(error(request), "no error");
  request = makeRequest(*lookupFamily("gated_deltaproduct"));
  request.options.clear();
  auto module =
      buildFamily(&context, *lookupFamily("gated_deltaproduct"), request);
  ASSERT_FALSE(static_cast<bool>(module));
  EXPECT_EQ(llvm::toString(module.takeError()),
            "num_householder: expected a value, but got none");
}

/// Kimi's delta rule against the oracle's general recurrence.
TEST_F(Families, AgreeWithTheOracle) {
  FamilyRequest request = makeRequest(*lookupFamily("kda"));
  request.operands.push_back({"beta", 0, b.getF32Type()});
  auto module =
      llvm::cantFail(buildFamily(&context, *lookupFamily("kda"), request));
  ::linattn::Kernel kernel =
      llvm::cantFail(::linattn::Compiler().compile(printFamily(*module)));

  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  std::vector<std::vector<float>> data;
  auto draw = [&](std::vector<int64_t> shape, float scale, float shift) {
    reference::Array array(shape);
    data.emplace_back();
    for (double &value : array.data) {
      data.back().push_back(scale * uniform(random) + shift);
      value = data.back().back();
    }
    return array;
  };
  reference::ScanOperands operands{draw({2, 4, 11, 8}, 1, -0.5f),
                                   draw({2, 2, 11, 8}, 0.6f, -0.3f),
                                   draw({2, 4, 11, 8}, 1, -0.5f)};
  operands.decay = draw({2, 4, 11, 8}, -1, 0);
  operands.beta = draw({2, 4, 11}, 1, 0);
  reference::ScanOptions options;
  options.update = reference::UpdateRule::Delta;
  auto expected = reference::scan(operands, options);
  ASSERT_TRUE(static_cast<bool>(expected)) << expected.error();

  std::vector<std::vector<int64_t>> shapes = {
      {2, 4, 11, 8}, {2, 2, 11, 8}, {2, 4, 11, 8}, {2, 4, 11, 8}, {2, 4, 11}};
  llvm::SmallVector<::linattn::BufferView> inputs;
  for (auto [values, shape] : llvm::zip(data, shapes))
    inputs.emplace_back(static_cast<void *>(values.data()),
                        ::linattn::DType::F32, shape);
  std::vector<float> o(2 * 4 * 11 * 8);
  llvm::cantFail(kernel.run(
      inputs, {::linattn::BufferView(static_cast<void *>(o.data()),
                                     ::linattn::DType::F32, shapes[0])}));
  reference::Array got({2, 4, 11, 8}, std::vector<double>(o.begin(), o.end()));
  EXPECT_LE(reference::compare(got, expected->o), 3e-6);
}

} // namespace
