//===- FamilyModule.cpp - Families as functions ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/Families.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// One argument of the function.
struct Argument {
  std::string name;
  Type type;
};

/// Builds the function of a family.
class FunctionMaker {
public:
  FunctionMaker(MLIRContext *context, const Family &family,
                const FamilyRequest &request)
      : b(context), family(family), request(request) {}

  llvm::Expected<OwningOpRef<ModuleOp>> make();

private:
  llvm::Error addOperands();
  void addState();
  llvm::Error fillBody(func::FuncOp function);
  /// Drops the ops that the final state does not depend on.
  llvm::Error dropOutput(func::FuncOp function);
  Type makeType(ArrayRef<StringRef> dims, Type elementType) const;

  OpBuilder b;
  const Family &family;
  const FamilyRequest &request;
  SmallVector<Argument, 12> arguments;
  size_t numOperands = 0;
};

} // namespace

Type FunctionMaker::makeType(ArrayRef<StringRef> dims, Type elementType) const {
  SmallVector<int64_t> shape;
  for (StringRef dim : dims) {
    auto at = request.extents.find(dim);
    shape.push_back(dim == "1"                    ? 1
                    : at == request.extents.end() ? ShapedType::kDynamic
                                                  : at->second);
  }
  return RankedTensorType::get(shape, elementType);
}

llvm::Error FunctionMaker::addOperands() {
  for (const FamilyOperand &operand : family.operands) {
    auto given =
        llvm::find_if(request.operands, [&](const FamilyRequest::Given &given) {
          return given.name == operand.name;
        });
    bool isGiven = given != request.operands.end();
    if (!isGiven && operand.kind != FamilyOperandKind::Tokens) {
      if (operand.isOptional)
        continue;
      return llvm::createStringError(operand.name +
                                     ": expected an operand, but got none");
    }
    auto layouts = parseLayout(operand.layouts);
    size_t alternative = isGiven ? given->alternative : 0;
    if (alternative >= layouts.size())
      return llvm::createStringError(operand.name + ": expected one of " +
                                     Twine(layouts.size()) +
                                     " layouts, but got " + Twine(alternative));
    Type element = operand.kind == FamilyOperandKind::Tokens || !isGiven
                       ? request.tokenType
                       : given->elementType;
    Type type = operand.kind == FamilyOperandKind::Offsets
                    ? RankedTensorType::get({ShapedType::kDynamic}, element)
                    : makeType(layouts[alternative].logical, element);
    arguments.push_back({operand.name, type});
  }
  for (const FamilyRequest::Given &given : request.operands)
    if (llvm::none_of(family.operands, [&](const FamilyOperand &operand) {
          return operand.name == given.name;
        }))
      return llvm::createStringError(given.name + ": expected an operand of " +
                                     family.name +
                                     ", but it has none of that name");
  numOperands = arguments.size();
  if (!request.takesScale)
    return llvm::Error::success();
  if (llvm::none_of(family.options, [](const FamilyOption &option) {
        return option.name == "scale";
      }))
    return llvm::createStringError("scale: expected none for " + family.name +
                                   ", which has no such option, but got one");
  if (request.options.contains("scale"))
    return llvm::createStringError(
        "scale: expected an option or an argument, but got both");
  arguments.push_back({"scale", b.getF64Type()});
  return llvm::Error::success();
}

void FunctionMaker::addState() {
  Type type = getAccumulationType(request.tokenType);
  auto parts = getStateParts(family, request.options);
  for (const FamilyState *part : parts) {
    LayoutNames layout = parseLayout(part->layout).front();
    arguments.push_back({part->name, makeType(layout.logical, type)});
  }
}

llvm::Error FunctionMaker::fillBody(func::FuncOp function) {
  Block *block = b.createBlock(&function.getBody());
  FamilyArguments values;
  values.options = request.options;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    Location loc = NameLoc::get(b.getStringAttr(argument.name));
    Value value = block->addArgument(argument.type, loc);
    if (index < numOperands)
      values.operands[argument.name] = value;
    else if (request.takesScale && index == numOperands)
      values.scale = value;
    else
      values.state.push_back(value);
  }
  if (!request.config.empty()) {
    values.config = dyn_cast_if_present<ConfigAttr>(parseAttribute(
        "#linattn.config<" + request.config + ">", b.getContext()));
    if (!values.config)
      return llvm::createStringError("config: expected the parameters of "
                                     "#linattn.config, but got " +
                                     request.config);
  }
  llvm::Expected<FamilyResults> results =
      buildFamily(b, b.getUnknownLoc(), family, values);
  if (!results)
    return results.takeError();
  SmallVector<Value> returned;
  if (request.returnsOutput)
    returned.push_back(results->output);
  if (request.returnsState)
    returned.append(results->state);
  func::ReturnOp::create(b, b.getUnknownLoc(), returned);
  function.setFunctionType(b.getFunctionType(block->getArgumentTypes(),
                                             ValueRange(returned).getTypes()));
  return request.returnsOutput ? llvm::Error::success() : dropOutput(function);
}

/// A sum of the state that replaces a scan: `linattn.state` has no queries.
/// Null where tokens read the state that they update.
static StateOp createSum(OpBuilder &b, ScanOp scan) {
  if (scan.getUpdate() != Update::Add || scan.getInputGate() ||
      scan.getStateIndices() || !scan.getSnapshots().empty())
    return {};
  auto sum = StateOp::create(
      b, scan.getLoc(), scan.getKey(), scan.getValue(), scan.getDecay(),
      scan.getValueDecay(), scan.getMask(), scan.getCuSeqlens(),
      StateValues{scan.getState(), scan.getNormalizer(), scan.getRunningMax()});
  sum.setReverse(scan.getReverse());
  sum.setFeatureMapAttr(scan.getFeatureMapAttr());
  sum.setConfigAttr(scan.getConfigAttr());
  b.cloneRegionBefore(scan.getPhi(), sum.getPhi(), sum.getPhi().end());
  return sum;
}

llvm::Error FunctionMaker::dropOutput(func::FuncOp function) {
  IRRewriter rewriter(b.getContext());
  SmallVector<ScanOp> scans;
  function.walk([&](ScanOp scan) { scans.push_back(scan); });
  for (ScanOp scan : scans) {
    rewriter.setInsertionPoint(scan);
    StateOp sum = createSum(rewriter, scan);
    if (!sum)
      continue;
    rewriter.replaceAllUsesWith(scan.getResults().drop_front(),
                                sum.getResults());
  }
  (void)runRegionDCE(rewriter, function->getRegions());
  bool sums = false, others = false;
  function.walk([&](Operation *op) {
    if (isa<StateOp>(op))
      sums = true;
    else if (isa<ScanOp, RecurrenceOpInterface>(op))
      others = true;
  });
  if (sums && !others)
    return llvm::Error::success();
  return llvm::createStringError(
      "returns_output: expected it for " + family.name +
      ", whose final state is not a sum over tokens, but got false");
}

llvm::Expected<OwningOpRef<ModuleOp>> FunctionMaker::make() {
  if (llvm::Error error = addOperands())
    return std::move(error);
  if (request.hasInitialState)
    addState();
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getUnknownLoc());
  b.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(b, b.getUnknownLoc(), family.name,
                                       b.getFunctionType({}, {}));
  if (llvm::Error error = fillBody(function))
    return std::move(error);
  // A verifier's message describes the error in the request.
  std::string message;
  ScopedDiagnosticHandler handler(b.getContext(), [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
  });
  if (failed(verify(*module)))
    return llvm::createStringError(message);
  IRRewriter rewriter(b.getContext());
  DominanceInfo dominance(*module);
  eliminateCommonSubExpressions(rewriter, dominance, *module);
  return std::move(module);
}

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::linattn::buildFamily(MLIRContext *context, const Family &family,
                           const FamilyRequest &request) {
  context->loadDialect<LinAttnDialect, arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, math::MathDialect,
                       scf::SCFDialect, tensor::TensorDialect>();
  return FunctionMaker(context, family, request).make();
}

std::string mlir::linattn::printFamily(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().printNameLocAsPrefix());
  return text + "\n";
}
