//===- OutlineParallel.cpp - Parallel loops to runtime tasks --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNOUTLINEPARALLELPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

constexpr StringLiteral kParallelFor = "linattn_parallel_for";

/// Outlines one loop. The pieces are members, because the caller writes the
/// context structure and the task reads it.
class Outliner {
public:
  Outliner(scf::ParallelOp loop, const LLVMTypeConverter &converter,
           SymbolTable &symbols)
      : loop(loop), func(loop->getParentOfType<func::FuncOp>()),
        converter(converter), symbols(symbols) {}

  LogicalResult run() {
    collectCaptures();
    if (failed(computeContextType()))
      return failure();
    func::FuncOp task = createTask();
    emitCall(task);
    loop.erase();
    return success();
  }

private:
  static bool isConstant(Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->hasTrait<OpTrait::ConstantLike>();
  }

  void capture(Value value) {
    if (isConstant(value))
      constants.insert(value);
    else
      captures.insert(value);
  }

  void collectCaptures() {
    SetVector<Value> used;
    getUsedValuesDefinedAbove(loop.getRegion(), used);
    for (Value value : used)
      capture(value);
    for (ValueRange bounds :
         {ValueRange(loop.getLowerBound()), ValueRange(loop.getUpperBound()),
          ValueRange(loop.getStep())})
      for (Value value : bounds)
        capture(value);
  }

  LogicalResult computeContextType() {
    SmallVector<Type> fields;
    for (Value value : captures) {
      Type type = converter.convertType(value.getType());
      if (!type)
        return loop.emitError("expected captured values with an LLVM type, "
                              "but got ")
               << value.getType();
      fields.push_back(type);
    }
    contextType = LLVM::LLVMStructType::getLiteral(loop.getContext(), fields);
    return success();
  }

  /// Number of iterations of dimension `d`, never negative.
  static Value getTripCount(ImplicitLocOpBuilder &b, Value lower, Value upper,
                            Value step) {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value range = arith::SubIOp::create(b, upper, lower);
    Value clamped = arith::MaxSIOp::create(b, range, zero);
    return b.createOrFold<arith::CeilDivSIOp>(clamped, step);
  }

  func::FuncOp createTask() {
    ImplicitLocOpBuilder b(loop.getLoc(), loop.getContext());
    auto ptr = LLVM::LLVMPointerType::get(b.getContext());
    auto type = b.getFunctionType({ptr, b.getI64Type()}, {});
    auto task =
        func::FuncOp::create(b, (func.getName() + "__task").str(), type);
    task.setPrivate();
    symbols.insert(task, Block::iterator(func->getNextNode()));
    Block *entry = task.addEntryBlock();
    b.setInsertionPointToStart(entry);

    IRMapping mapping;
    for (Value value : constants)
      mapping.map(value,
                  b.clone(*value.getDefiningOp())
                      ->getResult(cast<OpResult>(value).getResultNumber()));
    if (!captures.empty()) {
      Value context =
          LLVM::LoadOp::create(b, contextType, entry->getArgument(0));
      for (auto [i, value] : llvm::enumerate(captures)) {
        Value field = LLVM::ExtractValueOp::create(b, context, i);
        mapping.map(value, fromLLVM(b, field, value.getType()));
      }
    }
    if (!hasVectors())
      distinguish(b, mapping);
    mapInductionVariables(b, entry->getArgument(1), mapping);
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, mapping);
    func::ReturnOp::create(b);
    return task;
  }

  /// Whether the loops are vectorized already.
  bool hasVectors() {
    return loop
        .walk([](Operation *op) {
          return llvm::any_of(op->getResultTypes(),
                              [](Type type) { return isa<VectorType>(type); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The allocation or function argument of which a memref is a view; null if
  /// unknown.
  static Value getRoot(Value buffer) {
    Value memref = memref::skipViewLikeOps(cast<MemrefValue>(buffer));
    if (memref.getDefiningOp<memref::AllocOp>())
      return memref;
    auto argument = dyn_cast<BlockArgument>(memref);
    bool isEntry =
        argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
    return isEntry ? memref : Value();
  }

  /// Declares that captured memrefs do not overlap where one of them is an
  /// allocation of the function. The task sees pointers of unknown origin,
  /// which vectorized loops would compare before every row.
  void distinguish(ImplicitLocOpBuilder &b, IRMapping &mapping) {
    for (auto [i, x] : llvm::enumerate(captures))
      for (Value y : ArrayRef(captures.getArrayRef()).drop_front(i + 1)) {
        if (!isa<MemRefType>(x.getType()) || !isa<MemRefType>(y.getType()))
          continue;
        Value xRoot = getRoot(x), yRoot = getRoot(y);
        if (!xRoot || !yRoot || xRoot == yRoot ||
            (isa<BlockArgument>(xRoot) && isa<BlockArgument>(yRoot)))
          continue;
        auto distinct = memref::DistinctObjectsOp::create(
            b, ValueRange{mapping.lookup(x), mapping.lookup(y)});
        mapping.map(x, distinct.getResult(0));
        mapping.map(y, distinct.getResult(1));
      }
  }

  /// Splits the flat iteration number into the loop's coordinates, the last
  /// dimension running fastest.
  void mapInductionVariables(ImplicitLocOpBuilder &b, Value flat,
                             IRMapping &mapping) {
    Value rest = arith::IndexCastOp::create(b, b.getIndexType(), flat);
    for (unsigned d = loop.getNumLoops(); d-- > 0;) {
      Value lower = mapping.lookup(loop.getLowerBound()[d]);
      Value step = mapping.lookup(loop.getStep()[d]);
      Value coordinate = rest;
      if (d > 0) {
        Value upper = mapping.lookup(loop.getUpperBound()[d]);
        Value trips = getTripCount(b, lower, upper, step);
        coordinate = arith::RemUIOp::create(b, rest, trips);
        rest = arith::DivUIOp::create(b, rest, trips);
      }
      Value scaled = arith::MulIOp::create(b, coordinate, step);
      mapping.map(loop.getInductionVars()[d],
                  arith::AddIOp::create(b, lower, scaled));
    }
  }

  void emitCall(func::FuncOp task) {
    ImplicitLocOpBuilder b(loop.getLoc(), loop);
    auto ptr = LLVM::LLVMPointerType::get(b.getContext());
    Value trips;
    for (unsigned d = 0; d < loop.getNumLoops(); ++d) {
      Value count = getTripCount(b, loop.getLowerBound()[d],
                                 loop.getUpperBound()[d], loop.getStep()[d]);
      trips = trips ? Value(arith::MulIOp::create(b, trips, count)) : count;
    }
    Value count = arith::IndexCastOp::create(b, b.getI64Type(), trips);
    Value context = emitContext(b, ptr);
    Value function = func::ConstantOp::create(b, task.getFunctionType(),
                                              SymbolRefAttr::get(task));
    Value pointer = toLLVM(b, function, ptr);
    LLVM::CallOp::create(b, TypeRange(), kParallelFor,
                         ValueRange{count, pointer, context});
  }

  /// Stores the captured values in the caller's frame. The slot is allocated in
  /// the entry block, so that a surrounding loop does not grow the stack.
  Value emitContext(ImplicitLocOpBuilder &b, Type ptr) {
    if (captures.empty())
      return LLVM::ZeroOp::create(b, ptr);
    Value slot;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&func.getBody().front());
      Value one =
          LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(1));
      slot = LLVM::AllocaOp::create(b, ptr, contextType, one);
    }
    Value context = LLVM::UndefOp::create(b, contextType);
    for (auto [i, value] : llvm::enumerate(captures)) {
      Type type = cast<LLVM::LLVMStructType>(contextType).getBody()[i];
      context =
          LLVM::InsertValueOp::create(b, context, toLLVM(b, value, type), i);
    }
    LLVM::StoreOp::create(b, context, slot);
    return slot;
  }

  static Value toLLVM(ImplicitLocOpBuilder &b, Value value, Type type) {
    if (value.getType() == type)
      return value;
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  }

  static Value fromLLVM(ImplicitLocOpBuilder &b, Value value, Type type) {
    return toLLVM(b, value, type);
  }

  scf::ParallelOp loop;
  func::FuncOp func;
  const LLVMTypeConverter &converter;
  SymbolTable &symbols;
  SetVector<Value> captures, constants;
  Type contextType;
};

struct OutlineParallelPass
    : public mlir::linattn::impl::LinAttnOutlineParallelPassBase<
          OutlineParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<scf::ParallelOp> loops;
    module.walk<WalkOrder::PreOrder>([&](scf::ParallelOp loop) {
      // Reductions would need a combining tree; they run sequentially.
      if (!loop.getInitVals().empty() || !loop->getParentOfType<func::FuncOp>())
        return WalkResult::advance();
      loops.push_back(loop);
      return WalkResult::skip();
    });
    if (loops.empty())
      return;

    declareRuntime(module);
    LLVMTypeConverter converter(&getContext());
    SymbolTable symbols(module);
    for (scf::ParallelOp loop : loops) {
      if (failed(Outliner(loop, converter, symbols).run()))
        return signalPassFailure();
      ++numTasks;
    }
  }

  static void declareRuntime(ModuleOp module) {
    if (module.lookupSymbol(kParallelFor))
      return;
    MLIRContext *context = module.getContext();
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    auto ptr = LLVM::LLVMPointerType::get(context);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            {b.getI64Type(), ptr, ptr});
    LLVM::LLVMFuncOp::create(b, module.getLoc(), kParallelFor, type);
  }
};

} // namespace
