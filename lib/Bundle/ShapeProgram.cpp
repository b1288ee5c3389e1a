//===- ShapeProgram.cpp - Shapes of results as data -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"
#include "HostProgram.h"
#include "linattn/Entry/EntryLayout.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace ::linattn;
using namespace ::linattn::detail;
using namespace mlir;

namespace {

/// Runs the companion once on formulas instead of numbers. Its results go to
/// slots: extents, the number of a failed check, and the sizes in its message.
class ShapeTranslator {
public:
  ShapeTranslator(Formulas &formulas, func::FuncOp func, size_t numSlots)
      : formulas(formulas), func(func), slots(numSlots, -1) {}

  LogicalResult run() { return visit(func.front(), /*condition=*/-1); }

  ArrayRef<int64_t> getSlots() const { return slots; }
  Operation *getUnknown() const { return unknown; }

private:
  LogicalResult visit(Block &block, int64_t condition) {
    for (Operation &op : block.without_terminator()) {
      if (failed(visit(op, condition))) {
        unknown = unknown ? unknown : &op;
        return failure();
      }
    }
    return success();
  }

  LogicalResult visit(Operation &op, int64_t condition) {
    if (formulas.take(&op))
      return success();
    if (auto dim = dyn_cast<memref::DimOp>(op))
      return visit(dim);
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      int64_t inner = formulas.lookup(branch.getCondition());
      if (inner < 0 || branch->getNumResults() != 0 || branch.elseBlock())
        return failure();
      if (condition >= 0)
        inner = formulas.add("and", {condition, inner});
      return visit(*branch.thenBlock(), inner);
    }
    auto store = dyn_cast<memref::StoreOp>(op);
    if (!store || store.getIndices().size() != 1)
      return failure();
    std::optional<int64_t> slot = getConstantIntValue(store.getIndices()[0]);
    int64_t value = formulas.lookup(store.getValue());
    if (!slot || *slot >= int64_t(slots.size()) || value < 0)
      return failure();
    int64_t &target = slots[*slot];
    if (condition >= 0)
      value =
          formulas.add("select", {condition, value,
                                  target < 0 ? formulas.constant(0) : target});
    target = value;
    return success();
  }

  LogicalResult visit(memref::DimOp dim) {
    auto argument = dyn_cast<BlockArgument>(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!argument || !index)
      return failure();
    formulas.bind(dim, formulas.size(argument.getArgNumber(), *index));
    return success();
  }

  Formulas &formulas;
  func::FuncOp func;
  SmallVector<int64_t> slots;
  Operation *unknown = nullptr;
};

} // namespace

/// Names the open sizes "n0", "n1", …, with one name for sizes that must be
/// equal.
static std::vector<std::vector<std::string>>
nameSizes(const Signature &signature, Formulas &formulas,
          ArrayRef<SmallVector<int64_t>> results) {
  using Dim = Formulas::Dim;
  llvm::EquivalenceClasses<Dim> classes;
  for (auto [a, b] : formulas.getEqualSizes())
    classes.unionSets(a, b);
  std::map<Dim, std::string> names;
  auto nameOf = [&](Dim dim) {
    auto leader = classes.findLeader(dim);
    Dim key = leader == classes.member_end() ? dim : *leader;
    std::string &name = names[key];
    if (name.empty())
      name = "n" + std::to_string(names.size() - 1);
    return name;
  };
  std::vector<std::vector<std::string>> all;
  std::map<int64_t, Dim> dimOf;
  for (auto [i, info] : llvm::enumerate(signature.arguments)) {
    auto &row = all.emplace_back(info.shape.size());
    for (auto [d, extent] : llvm::enumerate(info.shape))
      if (extent == kDynamicExtent) {
        Dim dim(i, d);
        row[d] = nameOf(dim);
        dimOf[formulas.size(i, d)] = dim;
      }
  }
  for (auto [info, extents] : llvm::zip(signature.results, results)) {
    auto &row = all.emplace_back(info.shape.size());
    for (auto [d, extent] : llvm::enumerate(info.shape))
      if (extent == kDynamicExtent)
        row[d] = dimOf.count(extents[d]) ? nameOf(dimOf[extents[d]]) : "?";
  }
  return all;
}

auto ::linattn::detail::translateShapes(ModuleOp module,
                                        const Signature &signature)
    -> llvm::Expected<ShapeProgram> {
  Formulas formulas;
  ShapeProgram program;
  SmallVector<SmallVector<int64_t>> results;
  std::string name = signature.entry + mlir::linattn::kShapesSuffix.str();
  auto companion = module.lookupSymbol<func::FuncOp>(name);
  size_t numDims = 0;
  for (const ValueInfo &result : signature.results)
    numDims += result.shape.size();
  ArrayRef<int64_t> slots;
  ShapeTranslator translator(formulas, companion,
                             numDims + 1 + mlir::linattn::kMaxCheckedSizes);
  if (companion) {
    if (failed(translator.run()))
      return llvm::createStringError(
          "shapes of results do not follow from sizes: " +
          translator.getUnknown()->getName().getStringRef());
    slots = translator.getSlots();
  }
  for (const ValueInfo &info : signature.results) {
    auto &extents = results.emplace_back();
    for (int64_t extent : info.shape) {
      bool isKnown = !slots.empty() && slots.front() >= 0;
      extents.push_back(isKnown ? slots.front() : formulas.constant(extent));
      slots = slots.empty() ? slots : slots.drop_front();
    }
  }
  auto messages =
      companion
          ? companion->getAttrOfType<ArrayAttr>(mlir::linattn::kChecksAttrName)
          : ArrayAttr();
  if (messages && !messages.empty() && slots.front() >= 0) {
    program.rules["check"] = slots.front();
    llvm::json::Array sizes, texts;
    for (int64_t size : slots.drop_front())
      sizes.push_back(size < 0 ? formulas.constant(0) : size);
    for (auto message : messages.getAsRange<StringAttr>())
      texts.push_back(message.str());
    program.rules["sizes"] = std::move(sizes);
    program.rules["messages"] = std::move(texts);
  }
  llvm::json::Array shapes;
  for (const auto &extents : results)
    shapes.push_back(llvm::json::Array(extents));
  program.rules["results"] = std::move(shapes);
  program.names = nameSizes(signature, formulas, results);
  program.rules["values"] = formulas.takeValues();
  return program;
}
