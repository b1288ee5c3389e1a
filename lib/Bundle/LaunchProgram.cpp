//===- LaunchProgram.cpp - Launches as data -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"
#include "HostProgram.h"
#include "linattn/Compiler/BufferView.h"
#include "linattn/Dialect/LinAttn.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace linattn;
using namespace linattn::detail;
using namespace mlir;
using namespace mlir::linattn;
namespace json = llvm::json;

namespace {

/// A memref on the host, in terms of formulas.
struct View {
  /// The number of an operand, or of another buffer, counted after the
  /// operands.
  int64_t buffer = 0;
  /// The offset in elements; −1 for 0.
  int64_t offset = -1;
  SmallVector<int64_t> extents, strides;
};

/// Translates the ops of an entry to data, one by one.
class LaunchTranslator {
public:
  LaunchTranslator(func::FuncOp func, const Signature &signature,
                   ArrayRef<std::string> modules, BundleWriter &writer)
      : func(func), signature(signature), modules(modules), writer(writer) {}

  llvm::Expected<json::Object> run() {
    bindArguments();
    if (!visit(func.front()))
      return llvm::createStringError(
          "'" + signature.entry +
          "' needs a compiler to be launched: " + problem);
    addLifetimes();
    json::Object program{{"values", formulas.takeValues()},
                         {"buffers", std::move(buffers)},
                         {"launches", std::move(launches)}};
    if (!loops.empty())
      program["loops"] = std::move(loops);
    return program;
  }

private:
  int64_t getNumOperands() const {
    return signature.arguments.size() + signature.results.size();
  }

  void bindArguments() {
    for (BlockArgument argument : func.getArguments()) {
      int64_t number = argument.getArgNumber();
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type)
        continue;
      View view;
      view.buffer = number;
      auto [strides, offset] = type.getStridesAndOffset();
      for (int64_t d = 0; d < type.getRank(); ++d) {
        view.extents.push_back(type.isDynamicDim(d)
                                   ? formulas.size(number, d)
                                   : formulas.constant(type.getDimSize(d)));
        view.strides.push_back(ShapedType::isDynamic(strides[d])
                                   ? formulas.stride(number, d)
                                   : formulas.constant(strides[d]));
      }
      views[argument] = std::move(view);
    }
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
      return fail("bounds that are no formulas of sizes");
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
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return visit(alloc);
    if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
      return visit(constant);
    if (auto dim = dyn_cast<memref::DimOp>(op))
      return visit(dim);
    if (auto slice = dyn_cast<memref::SubViewOp>(op))
      return visit(slice);
    if (auto reshape = dyn_cast<memref::CollapseShapeOp>(op))
      return visit(reshape);
    if (auto reshape = dyn_cast<memref::ExpandShapeOp>(op))
      return visit(reshape);
    if (auto address = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op))
      return visit(address);
    if (auto data = dyn_cast<memref::ExtractStridedMetadataOp>(op))
      return visit(data);
    if (auto cast = dyn_cast<memref::CastOp>(op)) {
      auto it = views.find(cast.getSource());
      if (it == views.end())
        return false;
      View view = it->second;
      views[cast] = std::move(view);
      return true;
    }
    if (auto launch = dyn_cast<LaunchOp>(op))
      return visit(launch);
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      return visit(launch);
    return isa<memref::LoadOp>(op) && fail("an element in a GPU's memory");
  }

  static int64_t getElementBytes(MemRefType type) {
    Type element = type.getElementType();
    return element.isIndex()
               ? 8
               : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  }

  /// A row-major view of the next buffer.
  View makeView(SmallVector<int64_t> extents) {
    View view;
    view.buffer = getNumOperands() + buffers.size();
    view.extents = std::move(extents);
    view.strides.resize(view.extents.size());
    int64_t count = formulas.constant(1);
    for (size_t d = view.extents.size(); d-- > 0;) {
      view.strides[d] = count;
      count = formulas.add("mul", {count, view.extents[d]});
    }
    return view;
  }

  bool visit(memref::AllocOp alloc) {
    MemRefType type = alloc.getType();
    if (!type.getLayout().isIdentity() ||
        !type.getElementType().isIntOrIndexOrFloat())
      return false;
    SmallVector<int64_t> extents;
    unsigned next = 0;
    for (int64_t d = 0; d < type.getRank(); ++d)
      extents.push_back(type.isDynamicDim(d)
                            ? formulas.lookup(alloc.getDynamicSizes()[next++])
                            : formulas.constant(type.getDimSize(d)));
    if (llvm::is_contained(extents, -1))
      return false;
    int64_t bytes = formulas.constant(getElementBytes(type));
    for (int64_t extent : extents) {
      // In a loop, the maximum over its iterations.
      int64_t most = formulas.boundAbove(extent);
      if (most < 0)
        return fail("a buffer whose size no formula bounds");
      bytes = formulas.add("mul", {bytes, most});
    }
    views[alloc] = makeView(std::move(extents));
    buffers.push_back(json::Object{{"bytes", bytes},
                                   {"element_bytes", getElementBytes(type)}});
    return true;
  }

  bool visit(memref::GetGlobalOp constant) {
    auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
        func, constant.getNameAttr());
    auto contents = dyn_cast_if_present<DenseElementsAttr>(
        global ? global.getInitialValueAttr() : Attribute());
    MemRefType type = constant.getType();
    if (!contents || type.getElementTypeBitWidth() < 8 ||
        !type.getLayout().isIdentity())
      return false;
    std::string bytes;
    int64_t copies = contents.isSplat() ? contents.getNumElements() : 1;
    for (int64_t i = 0; i < copies; ++i)
      bytes.append(contents.getRawData().begin(), contents.getRawData().end());
    SmallVector<int64_t> extents;
    for (int64_t extent : type.getShape())
      extents.push_back(formulas.constant(extent));
    views[constant] = makeView(std::move(extents));
    buffers.push_back(json::Object{{"contents", writer.addBlob(bytes)},
                                   {"element_bytes", getElementBytes(type)}});
    return true;
  }

  bool visit(memref::DimOp dim) {
    auto it = views.find(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (it == views.end() || !index)
      return false;
    formulas.bind(dim, it->second.extents[*index]);
    return true;
  }

  bool visit(memref::ExtractAlignedPointerAsIndexOp address) {
    auto it = views.find(address.getSource());
    if (it == views.end() || it->second.buffer >= getNumOperands())
      return fail("of a buffer that is not an operand");
    formulas.bind(address, formulas.address(it->second.buffer));
    return true;
  }

  bool visit(memref::ExtractStridedMetadataOp data) {
    auto it = views.find(data.getSource());
    if (it == views.end() || !data.getBaseBuffer().use_empty())
      return false;
    const View &view = it->second;
    formulas.bind(data.getOffset(),
                  view.offset < 0 ? formulas.constant(0) : view.offset);
    for (auto [value, number] : llvm::zip(data.getSizes(), view.extents))
      formulas.bind(value, number);
    for (auto [value, number] : llvm::zip(data.getStrides(), view.strides))
      formulas.bind(value, number);
    return true;
  }

  int64_t getNumber(OpFoldResult value) {
    if (std::optional<int64_t> known = getConstantIntValue(value))
      return formulas.constant(*known);
    return formulas.lookup(cast<Value>(value));
  }

  bool visit(memref::SubViewOp slice) {
    auto it = views.find(slice.getSource());
    if (it == views.end())
      return false;
    const View source = it->second;
    View view;
    view.buffer = source.buffer;
    view.offset = source.offset;
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    for (size_t d = 0; d < source.extents.size(); ++d) {
      int64_t offset = getNumber(slice.getMixedOffsets()[d]);
      int64_t extent = getNumber(slice.getMixedSizes()[d]);
      int64_t step = getNumber(slice.getMixedStrides()[d]);
      if (offset < 0 || extent < 0 || step < 0)
        return false;
      int64_t elements = formulas.add("mul", {offset, source.strides[d]});
      view.offset = view.offset < 0
                        ? elements
                        : formulas.add("add", {view.offset, elements});
      if (dropped[d])
        continue;
      view.extents.push_back(extent);
      view.strides.push_back(formulas.add("mul", {step, source.strides[d]}));
    }
    views[slice] = std::move(view);
    return true;
  }

  /// The verifier has checked that the collapsed dimensions are contiguous.
  bool visit(memref::CollapseShapeOp reshape) {
    auto it = views.find(reshape.getSrc());
    if (it == views.end())
      return false;
    const View source = it->second;
    View view{source.buffer, source.offset, {}, {}};
    for (ArrayRef<int64_t> group : reshape.getReassociationIndices()) {
      int64_t extent = formulas.constant(1);
      for (int64_t d : group)
        extent = formulas.add("mul", {extent, source.extents[d]});
      view.extents.push_back(extent);
      view.strides.push_back(source.strides[group.back()]);
    }
    views[reshape] = std::move(view);
    return true;
  }

  bool visit(memref::ExpandShapeOp reshape) {
    auto it = views.find(reshape.getSrc());
    if (it == views.end())
      return false;
    const View source = it->second;
    View view{source.buffer, source.offset, {}, {}};
    for (OpFoldResult size : reshape.getMixedOutputShape())
      view.extents.push_back(getNumber(size));
    if (llvm::is_contained(view.extents, -1))
      return false;
    view.strides.resize(view.extents.size());
    for (auto [d, group] : llvm::enumerate(reshape.getReassociationIndices())) {
      int64_t stride = source.strides[d];
      for (int64_t inner : llvm::reverse(group)) {
        view.strides[inner] = stride;
        stride = formulas.add("mul", {stride, view.extents[inner]});
      }
    }
    views[reshape] = std::move(view);
    return true;
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

  json::Object makePointer(const View &view) {
    if (view.buffer >= getNumOperands()) {
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
    for (auto [i, buffer] : llvm::enumerate(buffers)) {
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
    SmallVector<View> given;
    for (Value buffer : launch.getBuffers()) {
      auto it = views.find(buffer);
      if (it == views.end())
        return fail("a buffer of unknown origin");
      given.push_back(it->second);
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

  json::Object translate(LaunchValueAttr arg, const View &view) {
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
    auto it = views.find(operand);
    if (it == views.end())
      return translateScalar(operand, args);
    const View &view = it->second;
    View base = view;
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
  BundleWriter &writer;
  Formulas formulas;
  llvm::DenseMap<Value, View> views;
  json::Array buffers, launches, loops;
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
