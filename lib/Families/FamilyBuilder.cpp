//===- FamilyBuilder.cpp - Building blocks of families --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/FamilyBuilder.h"
#include "linattn/Families/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/ScopedPrinter.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

FamilyBuilder::FamilyBuilder(OpBuilder &builder, Location loc,
                             const Family &family,
                             const FamilyArguments &arguments)
    : b(loc, builder), family(family), arguments(arguments) {}

LogicalResult FamilyBuilder::fail(const Twine &text) {
  if (message.empty())
    message = text.str();
  return failure();
}

//===----------------------------------------------------------------------===//
// Operands and options
//===----------------------------------------------------------------------===//

Value FamilyBuilder::operand(StringRef name) const {
  return arguments.operands.lookup(name);
}

StringRef FamilyBuilder::dimsOf(StringRef name) const {
  auto at = dims.find(name);
  return at == dims.end() ? StringRef() : StringRef(at->second);
}

static const FamilyValue *findOption(const Family &family,
                                     const llvm::StringMap<FamilyValue> &given,
                                     StringRef name) {
  auto at = given.find(name);
  if (at != given.end())
    return &at->second;
  for (const FamilyOption &option : family.options)
    if (option.name == name && option.defaultValue)
      return &*option.defaultValue;
  return nullptr;
}

std::optional<double> FamilyBuilder::number(StringRef option) const {
  const FamilyValue *value = findOption(family, arguments.options, option);
  if (!value || !std::holds_alternative<double>(*value))
    return std::nullopt;
  return std::get<double>(*value);
}

std::string FamilyBuilder::word(StringRef option) const {
  const FamilyValue *value = findOption(family, arguments.options, option);
  if (!value || !std::holds_alternative<std::string>(*value))
    return "";
  return std::get<std::string>(*value);
}

FailureOr<Scale> FamilyBuilder::scale(StringRef dim) {
  if (arguments.scale)
    return Scale(arguments.scale);
  if (std::optional<double> given = number("scale"))
    return Scale(*given);
  std::optional<int64_t> size = staticExtent(dim);
  if (!size)
    return fail("scale: expected a number where the size " + dim +
                " is dynamic, but got none");
  return Scale(1.0 / std::sqrt(static_cast<double>(*size)));
}

SmallVector<const FamilyState *, 3>
mlir::linattn::getStateParts(const Family &family,
                             const llvm::StringMap<FamilyValue> &options) {
  SmallVector<const FamilyState *, 3> parts;
  for (const FamilyState &part : family.state) {
    const FamilyValue *value =
        part.condition.empty() ? nullptr
                               : findOption(family, options, part.condition);
    if (part.condition.empty() ||
        (value && std::holds_alternative<double>(*value) &&
         std::get<double>(*value) != 0))
      parts.push_back(&part);
  }
  return parts;
}

std::vector<std::string>
mlir::linattn::getDimRules(const Family &family,
                           const llvm::StringMap<FamilyValue> &options) {
  std::vector<std::string> rules;
  for (StringRef rule : family.rules) {
    auto [head, rest] = rule.split('{');
    auto [name, tail] = rest.split('}');
    const FamilyValue *value =
        name.empty() ? nullptr : findOption(family, options, name);
    if (value && std::holds_alternative<double>(*value))
      rules.push_back(
          (head + Twine(static_cast<int64_t>(std::get<double>(*value))) + tail)
              .str());
    else if (name.empty())
      rules.push_back(rule.str());
  }
  return rules;
}

LogicalResult FamilyBuilder::checkOptions() {
  for (const auto &given : arguments.options)
    if (llvm::none_of(family.options, [&](const FamilyOption &option) {
          return option.name == given.getKey();
        }))
      return fail(given.getKey() + ": expected an option of " + family.name +
                  ", but it has none of that name");
  for (const FamilyOption &option : family.options)
    if (option.isRequired && !arguments.options.contains(option.name))
      return fail(option.name + ": expected a value, but got none");
  for (const auto &given : arguments.options) {
    const auto *number = std::get_if<double>(&given.getValue());
    if (!number ||
        (std::isfinite(*number) && (*number >= 0 || given.getKey() != "eps")))
      continue;
    return fail(given.getKey() + ": expected a finite number" +
                (given.getKey() == "eps" ? " from 0 on" : "") + ", but got " +
                std::to_string(*number));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

OpFoldResult FamilyBuilder::extent(StringRef dim) const {
  if (dim == "1")
    return OpFoldResult(IntegerAttr::get(IndexType::get(b.getContext()), 1));
  return extents.lookup(dim);
}

std::optional<int64_t> FamilyBuilder::staticExtent(StringRef dim) const {
  OpFoldResult size = extent(dim);
  return size ? getConstantIntValue(size) : std::nullopt;
}

/// Records the extents of one operand and the names of its dimensions.
LogicalResult FamilyBuilder::bindDims(StringRef name, Value value,
                                      StringRef layouts, std::string &names) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return fail(name + ": expected a ranked tensor");
  auto alternatives = parseLayout(layouts);
  const LayoutNames *layout = nullptr;
  for (const LayoutNames &alternative : alternatives)
    if (!layout &&
        alternative.logical.size() == static_cast<size_t>(type.getRank()))
      layout = &alternative;
  if (!layout)
    return fail(name + ": expected dimensions " + layouts + ", but got " +
                Twine(type.getRank()));
  names = llvm::join(layout->logical, " ");
  for (auto [index, dim] : llvm::enumerate(layout->logical)) {
    if (dim == "1")
      continue;
    OpFoldResult size =
        tensor::getMixedSize(b, b.getLoc(), value, static_cast<int64_t>(index));
    OpFoldResult &known = extents[dim];
    auto before = known ? getConstantIntValue(known) : std::nullopt;
    auto now = getConstantIntValue(size);
    if (before && now && *before != *now)
      return fail(name + ": expected size " + Twine(*before) +
                  " of dimension " + dim + ", but got " + Twine(*now));
    if (!known || (now && !before))
      known = size;
  }
  return success();
}

LogicalResult FamilyBuilder::bindOperands() {
  for (const auto &given : arguments.operands)
    if (llvm::none_of(family.operands, [&](const FamilyOperand &operand) {
          return operand.name == given.getKey();
        }))
      return fail(given.getKey() + ": expected an operand of " + family.name +
                  ", but it has none of that name");
  for (const FamilyOperand &operand : family.operands) {
    Value value = this->operand(operand.name);
    if (!value) {
      if (!operand.isOptional)
        return fail(operand.name + ": expected a tensor, but got none");
      continue;
    }
    if (operand.kind == FamilyOperandKind::Offsets) {
      OpFoldResult offsets = tensor::getMixedSize(b, b.getLoc(), value, 0);
      Value one = arith::ConstantIndexOp::create(b, 1);
      extents["N"] = getAsOpFoldResult(arith::SubIOp::create(
          b, getValueOrCreateConstantIndexOp(b, b.getLoc(), offsets), one));
      continue;
    }
    if (failed(
            bindDims(operand.name, value, operand.layouts, dims[operand.name])))
      return failure();
    if (operand.kind != FamilyOperandKind::Tokens)
      continue;
    Type type = getElementTypeOrSelf(value);
    if (!tokens)
      tokens = type;
    if (type != tokens)
      return fail(operand.name + ": expected elements of type " +
                  llvm::to_string(tokens) + ", but got " +
                  llvm::to_string(type));
  }
  return success();
}

LogicalResult FamilyBuilder::applyRules() {
  auto toValue = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
  };
  for (const std::string &text : getDimRules(family, arguments.options)) {
    std::optional<SizeRule> rule = parseSizeRule(text);
    if (!rule || rule->kind == SizeRule::Features ||
        rule->kind == SizeRule::Quotient)
      return fail("expected a rule of sizes, but got " + text);
    OpFoldResult &size = extents[rule->result];
    if (rule->kind == SizeRule::Max) {
      OpFoldResult x = extent(rule->left), y = extent(rule->right);
      auto m = getConstantIntValue(x), n = getConstantIntValue(y);
      if (m && n && *m && *n && std::max(*m, *n) % std::min(*m, *n) != 0)
        return fail("expected head counts that divide one another, but got " +
                    Twine(*m) + " and " + Twine(*n));
      if (m && n)
        size = b.getIndexAttr(std::max(*m, *n));
      else if (!size || !getConstantIntValue(size))
        size = getAsOpFoldResult(
            arith::MaxSIOp::create(b, toValue(x), toValue(y)));
      continue;
    }
    factors[rule->result] = {rule->left.str(), rule->factor};
    OpFoldResult x = rule->kind == SizeRule::Constant
                         ? OpFoldResult(b.getIndexAttr(1))
                         : extent(rule->left);
    if (auto m = getConstantIntValue(x))
      size = b.getIndexAttr(*m * rule->factor);
    else if (!size || !getConstantIntValue(size))
      size = getAsOpFoldResult(arith::MulIOp::create(
          b, toValue(x), arith::ConstantIndexOp::create(b, rule->factor)));
  }
  if (!extents.lookup("N"))
    extents["N"] = extents.lookup("B");
  return success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value FamilyBuilder::empty(StringRef dims, Type type) {
  SmallVector<OpFoldResult> sizes;
  for (StringRef dim : splitDims(dims))
    sizes.push_back(extent(dim));
  return tensor::EmptyOp::create(b, sizes, type);
}

Value FamilyBuilder::filled(StringRef dims, Type type, double value) {
  Value scalar = emitConstant(b, type, value);
  return linalg::FillOp::create(b, ValueRange{scalar},
                                ValueRange{empty(dims, type)})
      .getResult(0);
}

FailureOr<Value>
FamilyBuilder::perHead(StringRef dim,
                       llvm::function_ref<double(int64_t, int64_t)> make) {
  std::optional<int64_t> heads = staticExtent(dim);
  if (!heads)
    return fail(family.name + ": expected a static number of heads");
  SmallVector<Attribute> values;
  for (int64_t head = 0; head < *heads; ++head)
    values.push_back(b.getFloatAttr(accumulationType(), make(head, *heads)));
  auto type = RankedTensorType::get({*heads}, accumulationType());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, values))
      .getResult();
}

int64_t FamilyBuilder::ratio(StringRef many, StringRef few) {
  auto known = factors.find(many);
  if (known != factors.end() && known->second.first == few)
    return known->second.second;
  auto m = staticExtent(many), n = staticExtent(few);
  if (m && n)
    return *n ? *m / *n : 1;
  (void)fail(family.name + ": expected static numbers of heads");
  return 1;
}

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

SmallVector<Value, 3> FamilyBuilder::initialState() {
  if (!arguments.state.empty())
    return arguments.state;
  SmallVector<Value, 3> state;
  for (const FamilyState *part : getStateParts(family, arguments.options)) {
    auto layout = parseLayout(part->layout).front();
    state.push_back(filled(llvm::join(layout.logical, " "), accumulationType(),
                           part->initial));
  }
  return state;
}

SmallVector<Value, 4> FamilyBuilder::scan(const FamilyScan &s,
                                          StringRef outputDims) {
  StateValues state{s.state[0], s.state.size() > 1 ? s.state[1] : Value(),
                    s.state.size() > 2 ? s.state[2] : Value()};
  auto op =
      ScanOp::create(b, s.query, s.key, s.value, /*mask=*/Value(),
                     empty(outputDims, getElementTypeOrSelf(s.query)), state);
  auto assign = [](MutableOperandRange operand, Value value) {
    if (value)
      operand.assign(value);
  };
  assign(op.getDecayMutable(), s.decay);
  assign(op.getValueDecayMutable(), s.valueDecay);
  assign(op.getBetaMutable(), s.beta);
  assign(op.getAMutable(), s.a);
  assign(op.getBMutable(), s.b);
  assign(op.getBonusMutable(), s.bonus);
  assign(op.getEraseMutable(), s.erase);
  assign(op.getWriteMutable(), s.write);
  assign(op.getInputGateMutable(), s.inputGate);
  assign(op.getCuSeqlensMutable(), s.offsets);
  op.setUpdate(s.update);
  op.setReadout(s.readout);
  op.setTransition(s.transition);
  op.setReverse(s.reverse);
  if (s.featureMap != FeatureMapKind::Identity)
    op.setFeatureMapAttr(FeatureMapAttr::get(b.getContext(), s.featureMap));
  op.setNormalizeAttr(s.normalize);
  assign(op.getScaleValueMutable(), s.scale.getValue());
  op.setScaleAttr(s.scale.getAttr(b));
  op.setConfigAttr(arguments.config);
  return SmallVector<Value, 4>(op.getResults());
}

FamilyResults FamilyBuilder::finish(FamilyScan s) {
  if (s.state.empty())
    s.state = initialState();
  if (!s.offsets)
    s.offsets = operand("cu_seqlens");
  auto layout = parseLayout(family.output).front();
  SmallVector<Value, 4> results = scan(s, llvm::join(layout.logical, " "));
  FamilyResults values;
  values.output = results.front();
  values.state.append(results.begin() + 1, results.end());
  return values;
}
