//===- LaunchProgram.cpp - Launches as data -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostProgram.h"
#include "HostViews.h"
#include "linattn/Dialect/LinAttn.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace ::linattn;
using namespace ::linattn::detail;
using namespace mlir;
using namespace mlir::linattn;
namespace json = llvm::json;

namespace {

/// Translates the ops of an entry to data, one by one.
class LaunchTranslator {
public:
  LaunchTranslator(func::FuncOp func, const Signature &signature,
                   ArrayRef<std::string> modules, BundleWriter &writer)
      : func(func), signature(signature), modules(modules),
        views(func, getNumOperands(), formulas, writer) {}

  llvm::Expected<json::Object> run() {
    if (!visit(func.front()))
      return llvm::createStringError(
          "'" + signature.entry +
          "' needs a compiler to be launched: " + problem);
    addLifetimes();
    json::Object program{{"values", formulas.takeValues()},
                         {"buffers", std::move(views.buffers)},
                         {"launches", std::move(launches)}};
    if (!loops.empty())
      program["loops"] = std::move(loops);
    return program;
  }

private:
  int64_t getNumOperands() const {
    return signature.arguments.size() + signature.results.size();
  }

  bool fail(const llvm::Twine &what) {
    problem = what.str();
    return false;
  }

  bool visit(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!visit(op)) {
        std::string name = op.getName().getStringRef().str();
        // The innermost op has reported the error.
        if (!isReported)
          problem =
              name + (problem.empty() ? " in the host code" : ": " + problem);
        isReported = true;
        return false;
      }
    return true;
  }

  /// Launches in a loop run one after another.
  bool visit(scf::ForOp loop) {
    int64_t lower = formulas.lookup(loop.getLowerBound());
    int64_t upper = formulas.lookup(loop.getUpperBound());
    int64_t step = formulas.lookup(loop.getStep());
    if (lower < 0 || upper < 0 || step < 0)
      return fail("bounds that do not follow from sizes");
    if (loop.getNumRegionIterArgs() != 0)
      return fail("values carried from one iteration to the next");
    int64_t index = formulas.index(lower, upper);
    formulas.bind(loop.getInductionVar(), index);
    size_t first = launches.size(), place = loops.size();
    loops.push_back(nullptr);
    if (!visit(*loop.getBody()))
      return false;
    loops[place] =
        json::Object{{"index", index},
                     {"lower", lower},
                     {"upper", upper},
                     {"step", step},
                     {"first", first},
                     {"count", static_cast<int64_t>(launches.size() - first)},
                     {"inner", static_cast<int64_t>(loops.size() - place - 1)}};
    return true;
  }

  /// Launches of the branch that is not taken get empty grids, which are not
  /// launched.
  bool visit(scf::IfOp branch) {
    int64_t condition = formulas.lookup(branch.getCondition());
    if (condition < 0)
      return fail("a condition that is not a formula of sizes");
    int64_t outer = active,
            isFalse = formulas.add("eq", {condition, formulas.constant(0)});
    auto enter = [&](int64_t value) {
      active = outer < 0 ? value : formulas.add("and", {outer, value});
    };
    enter(formulas.add("eq", {isFalse, formulas.constant(0)}));
    bool ok = visit(*branch.thenBlock());
    if (ok && branch.elseBlock()) {
      enter(isFalse);
      ok = visit(*branch.elseBlock());
    }
    active = outer;
    if (!ok || branch.getNumResults() == 0)
      return ok;
    for (auto [result, yes, no] :
         llvm::zip(branch.getResults(), branch.thenYield().getOperands(),
                   branch.elseYield().getOperands())) {
      int64_t left = formulas.lookup(yes), right = formulas.lookup(no);
      if (left < 0 || right < 0)
        return fail("a result that is not a formula of sizes");
      formulas.bind(result, formulas.add("select", {condition, left, right}));
    }
    return true;
  }

  /// The number of blocks along x; 0 if the branch is not taken.
  int64_t guard(int64_t blocks) {
    return active < 0
               ? blocks
               : formulas.add("select", {active, blocks, formulas.constant(0)});
  }

  bool visit(Operation &op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visit(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return visit(branch);
    if (formulas.take(&op) || isa<memref::DeallocOp>(op))
      return true;
    if (auto literal =
            dyn_cast<arith::ConstantOp>(op)) // A float: see addScalar.
      return true;
    if (std::optional<bool> taken = views.take(op))
      return *taken || fail(views.getProblem());
    if (auto launch = dyn_cast<LaunchOp>(op))
      return visit(launch);
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      return visit(launch);
    return isa<memref::LoadOp>(op) && fail("an element in a GPU's memory");
  }

  /// Records the number of a kernel's module, and the kernel's name.
  bool addKernel(SymbolRefAttr kernel, json::Object &launch) {
    const auto *module =
        llvm::find(modules, kernel.getRootReference().getValue());
    if (module == modules.end())
      return fail("no code for " + kernel.getRootReference().getValue());
    launch["module"] = module - modules.begin();
    launch["kernel"] = kernel.getLeafReference().str();
    return true;
  }

  json::Object makePointer(const HostView &view) {
    if (!views.isOperand(view)) {
      Lifetime &lifetime = lifetimes[view.buffer];
      auto now = static_cast<int64_t>(launches.size());
      lifetime.first = std::min(lifetime.first, now);
      lifetime.last = std::max(lifetime.last, now);
    }
    json::Object pointer{
        {"pointer", view.buffer}, {"align", 1}, {"strides", json::Array()}};
    if (view.offset >= 0)
      pointer["offset"] = view.offset;
    return pointer;
  }

  /// Records the launches that use a buffer, whose memory other buffers may
  /// share before and after. A buffer used in a loop lives for the whole loop.
  void addLifetimes() {
    for (auto [i, buffer] : llvm::enumerate(views.buffers)) {
      json::Object &object = *buffer.getAsObject();
      if (!object.get("bytes"))
        continue;
      Lifetime lifetime = lifetimes.lookup(getNumOperands() + i);
      bool isUsed = lifetime.first <= lifetime.last;
      // Outer loops come first.
      for (const json::Value &value : loops) {
        const json::Object &loop = *value.getAsObject();
        int64_t first = *loop.getInteger("first");
        int64_t last = first + *loop.getInteger("count") - 1;
        if (!isUsed || lifetime.last < first || lifetime.first > last)
          continue;
        lifetime.first = std::min(lifetime.first, first);
        lifetime.last = std::max(lifetime.last, last);
      }
      object["first"] = isUsed ? lifetime.first : 0;
      object["last"] = isUsed ? lifetime.last : -1;
    }
  }

  bool visit(LaunchOp launch) {
    auto plan =
        launch->getAttrOfType<LaunchPlanAttr>(LaunchOp::getPlanAttrName());
    json::Object result;
    if (!plan || !addKernel(launch.getKernel(), result))
      return false;
    SmallVector<HostView> given;
    for (Value buffer : launch.getBuffers()) {
      const HostView *view = views.find(buffer);
      if (!view)
        return fail("a buffer of unknown origin");
      given.push_back(*view);
    }
    SmallVector<int64_t> symbols;
    for (LaunchValueAttr size : plan.getSizes())
      symbols.push_back(given[size.getOperand()].extents[size.getDim()]);
    json::Array grid, block, args;
    for (AffineExpr expr : plan.getGrid().getResults())
      grid.push_back(grid.empty() ? guard(formulas.affine(expr, symbols))
                                  : formulas.affine(expr, symbols));
    for (int64_t threads : {plan.getBlock(), int64_t(1), int64_t(1)})
      block.push_back(formulas.constant(threads));
    for (LaunchValueAttr arg : plan.getArgs())
      args.push_back(translate(arg, given[arg.getOperand()]));
    result["grid"] = std::move(grid);
    result["block"] = std::move(block);
    result["shared"] = plan.getShared();
    result["args"] = std::move(args);
    launches.push_back(std::move(result));
    return true;
  }

  json::Object translate(LaunchValueAttr arg, const HostView &view) {
    if (arg.getKind() == LaunchValueKind::Size)
      return json::Object{{"i32", view.extents[arg.getDim()]}};
    if (arg.getKind() == LaunchValueKind::Stride)
      return json::Object{{"i64", view.strides[arg.getDim()]}};
    json::Object pointer = makePointer(view);
    pointer["align"] = arg.getAlign();
    // All strides but the innermost, which is 1.
    json::Array strides;
    for (size_t d = 0; d + 1 < view.strides.size(); ++d)
      strides.push_back(json::Array{view.extents[d], view.strides[d]});
    pointer["strides"] = std::move(strides);
    return pointer;
  }

  bool visit(gpu::LaunchFuncOp launch) {
    json::Object result;
    if (!addKernel(launch.getKernel(), result))
      return false;
    if (launch.getAsyncToken() || !launch.getAsyncDependencies().empty() ||
        launch.hasClusterSize())
      return fail("a launch of another kind");
    json::Array grid, block, args;
    gpu::KernelDim3 blocks = launch.getGridSizeOperandValues();
    gpu::KernelDim3 threads = launch.getBlockSizeOperandValues();
    for (Value extent :
         {blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z})
      if (formulas.lookup(extent) < 0)
        return fail("a grid that is not a formula of sizes");
    grid.push_back(guard(formulas.lookup(blocks.x)));
    for (Value extent : {blocks.y, blocks.z})
      grid.push_back(formulas.lookup(extent));
    for (Value extent : {threads.x, threads.y, threads.z})
      block.push_back(formulas.lookup(extent));
    for (Value operand : launch.getKernelOperands())
      if (!translate(operand, args))
        return fail("an argument that no runtime can pass");
    std::optional<int64_t> shared;
    if (Value bytes = launch.getDynamicSharedMemorySize())
      shared = getConstantIntValue(bytes);
    else
      shared = 0;
    if (!shared)
      return fail("shared memory of unknown size");
    result["grid"] = std::move(grid);
    result["block"] = std::move(block);
    result["shared"] = *shared;
    result["args"] = std::move(args);
    launches.push_back(std::move(result));
    return true;
  }

  /// Translates an operand in the convention of `gpu.func`: a memref becomes
  /// the fields of its descriptor.
  bool translate(Value operand, json::Array &args) {
    const HostView *found = views.find(operand);
    if (!found)
      return translateScalar(operand, args);
    const HostView &view = *found;
    HostView base = view;
    base.offset = -1;
    args.push_back(makePointer(base));
    args.push_back(makePointer(base));
    args.push_back(json::Object{
        {"i64", view.offset < 0 ? formulas.constant(0) : view.offset}});
    for (int64_t extent : view.extents)
      args.push_back(json::Object{{"i64", extent}});
    for (int64_t stride : view.strides)
      args.push_back(json::Object{{"i64", stride}});
    return true;
  }

  bool translateScalar(Value operand, json::Array &args) {
    if (int64_t number = formulas.lookup(operand); number >= 0) {
      args.push_back(json::Object{{"i64", number}});
      return true;
    }
    if (auto argument = dyn_cast<BlockArgument>(operand)) {
      args.push_back(json::Object{{"scalar", argument.getArgNumber()}});
      return true;
    }
    FloatAttr literal;
    if (!matchPattern(operand, m_Constant(&literal)))
      return false;
    args.push_back(json::Object{
        {"bits", literal.getValue().bitcastToAPInt().getZExtValue()}});
    return true;
  }

  func::FuncOp func;
  const Signature &signature;
  ArrayRef<std::string> modules;
  Formulas formulas;
  HostViews views;
  json::Array launches, loops;
  struct Lifetime {
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
  };
  llvm::DenseMap<int64_t, Lifetime> lifetimes;
  /// Whether the surrounding branches are taken; −1 for always.
  int64_t active = -1;
  std::string problem;
  bool isReported = false;
};

} // namespace

auto ::linattn::detail::translateLaunches(func::FuncOp func,
                                          const Signature &signature,
                                          ArrayRef<std::string> modules,
                                          BundleWriter &writer)
    -> llvm::Expected<json::Object> {
  return LaunchTranslator(func, signature, modules, writer).run();
}
