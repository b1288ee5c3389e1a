//===- LoopBuilder.h - Shorthand for emitting loops -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_LOOPBUILDER_H
#define LINATTN_CONVERSION_LOOPBUILDER_H

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/EmitLoop.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {

/// On a loop, and on its branches until LLVM: `#llvm.loop_annotation`.
constexpr StringLiteral kLoopAnnotationAttrName = "llvm.loop_annotation";

/// Emits index and float arithmetic, memory accesses and loops at one insertion
/// point. Floats are scalars or vectors alike.
class LoopBuilder {
public:
  LoopBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  // Index arithmetic, folded when the operands are constants.
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return fold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return fold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return fold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return fold<arith::DivSIOp>(x, y); }
  Value rem(Value x, Value y) { return fold<arith::RemSIOp>(x, y); }
  Value min(Value x, Value y) { return fold<arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return fold<arith::MaxSIOp>(x, y); }
  Value ceilDiv(Value x, Value y) { return div(sub(add(x, y), index(1)), y); }
  Value ceilDiv(Value x, int64_t y) { return ceilDiv(x, index(y)); }

  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return fold<arith::CmpIOp>(predicate, x, y);
  }

  // Float arithmetic.
  Value constant(Type type, double value) {
    return emitFloat(b, loc, type, value);
  }
  /// The lowest finite number: in place of −∞, whose differences are none.
  Value lowest(Type type) {
    auto &semantics =
        cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
    return constant(
        type,
        APFloat::getLargest(semantics, /*Negative=*/true).convertToDouble());
  }
  Value addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  /// NaN if one is; which zero does not matter.
  Value maxf(Value x, Value y) {
    return arith::MaximumFOp::create(b, loc, x, y, arith::FastMathFlags::nsz);
  }
  /// The larger one, in one instruction where `maxf` takes several: a NaN in x
  /// is left out. For what is subtracted before exponentials, which are NaN
  /// where x is.
  Value larger(Value best, Value x) {
    Value exceeds =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, best);
    return select(exceeds, x, best);
  }
  Value negate(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value exp(Value x) { return math::ExpOp::create(b, loc, x); }
  Value convert(Value x, Type type) { return convertFloat(b, loc, x, type); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

  // Memory.
  Value dim(Value memref, int64_t position) {
    int64_t size = cast<MemRefType>(memref.getType()).getDimSize(position);
    if (!ShapedType::isDynamic(size))
      return index(size);
    return memref::DimOp::create(b, loc, memref, position).getResult();
  }
  Value lastDim(Value memref) {
    return dim(memref, cast<MemRefType>(memref.getType()).getRank() - 1);
  }
  /// ⌊head · heads(memref) / total⌋: grouped heads.
  Value headOf(Value memref, Value head, Value total) {
    Value heads = dim(memref, 1);
    auto from = getConstantIntValue(heads), to = getConstantIntValue(total);
    if (from && to && *from == *to)
      return head;
    return div(mul(head, heads), total);
  }
  Value load(Value memref, ValueRange indices) {
    return memref::LoadOp::create(b, loc, memref, indices);
  }
  void store(Value value, Value memref, ValueRange indices) {
    memref::StoreOp::create(b, loc, value, memref, indices);
  }

  // Control flow.
  void forEach(Value begin, Value end, int64_t step,
               function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, begin, end, index(step));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  void forEach(Value end, function_ref<void(Value)> body) {
    forEach(index(0), end, 1, body);
  }
  /// A loop carrying values; `body` returns the next ones.
  SmallVector<Value>
  reduce(Value begin, Value end, int64_t step, ValueRange initial,
         function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    return emitLoop(b, loc, begin, end, index(step), initial, body);
  }
  /// Reduces one value over [0, end).
  Value reduce(Value end, Value initial,
               function_ref<Value(Value, Value)> body) {
    return reduce(index(0), end, 1, initial,
                  [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                    return {body(iv, carried.front())};
                  })
        .front();
  }
  /// A loop over independent iterations in a task, which the threads of
  /// a GPU divide.
  void forLanes(Value end, function_ref<void(Value)> body) {
    if (!forThreads)
      return forEach(end, body);
    parallel(end, body);
  }
  /// The sum of terms, divided likewise.
  Value sumLanes(Value end, Type type, function_ref<Value(Value)> term) {
    return combineLanes(end, constant(type, 0.0), term,
                        [&](Value sum, Value x) { return addf(sum, x); });
  }
  /// The largest term, at least `lowest`, divided likewise.
  Value maxLanes(Value end, Value lowest, function_ref<Value(Value)> term) {
    return combineLanes(end, lowest, term,
                        [&](Value best, Value x) { return maxf(best, x); });
  }
  /// The loop over independent tasks; threads run it.
  void parallel(Value end, function_ref<void(Value)> body) {
    auto loop = scf::ParallelOp::create(b, loc, ValueRange{index(0)},
                                        ValueRange{end}, ValueRange{index(1)});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVars().front());
  }
  /// `parallel` over the rows of `tokens`, `[B, H, T, D]`: the body gets batch,
  /// head and token.
  void parallelRows(Value tokens,
                    function_ref<void(Value, Value, Value)> body) {
    Value heads = dim(tokens, 1), length = dim(tokens, 2);
    Value perBatch = mul(heads, length);
    parallel(mul(dim(tokens, 0), perBatch), [&](Value row) {
      Value inBatch = rem(row, perBatch);
      body(div(row, perBatch), div(inBatch, length), rem(inBatch, length));
    });
  }
  /// `parallel`, but on one thread if `memref` has few elements: to wake
  /// another one costs more than a step of decoding, and milliseconds where a
  /// thread of another library spins on its core.
  void parallelIfLarge(Value memref, Value end,
                       function_ref<void(Value)> body) {
    constexpr int64_t fewElements = 1 << 18;
    Value elements = index(1);
    for (int64_t d = 0, rank = cast<MemRefType>(memref.getType()).getRank();
         d < rank; ++d)
      elements = mul(elements, dim(memref, d));
    Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                          elements, index(fewElements));
    Value perTask =
        arith::SelectOp::create(b, loc, isSmall, max(end, index(1)), index(1));
    parallel(ceilDiv(end, perTask), [&](Value task) {
      Value from = mul(task, perTask);
      forEach(from, min(add(from, perTask), end), 1, body);
    });
  }
  /// Runs `body` with the row of the state that a sequence has: its own number,
  /// or what `indices` say. Where that is negative there is none: `otherwise`.
  void withState(Value indices, Value sequence, function_ref<void(Value)> body,
                 function_ref<void()> otherwise) {
    if (!indices)
      return body(sequence);
    Value row = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                           load(indices, {sequence}));
    Value exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, row, index(0));
    ifThenElse(exists, [&] { body(row); }, otherwise);
  }
  scf::IfOp ifThenElse(Value condition, function_ref<void()> body,
                       function_ref<void()> otherwise) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
    b.setInsertionPointToStart(branch.elseBlock());
    otherwise();
    return branch;
  }
  void ifThen(Value condition, function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  OpBuilder &b;
  Location loc;
  /// Whether a task is shared by the threads of a GPU.
  bool forThreads = false;

private:
  Value combineLanes(Value end, Value initial, function_ref<Value(Value)> term,
                     function_ref<Value(Value, Value)> combine) {
    if (!forThreads)
      return reduce(end, initial, [&](Value i, Value partial) {
        return combine(partial, term(i));
      });
    auto loop =
        scf::ParallelOp::create(b, loc, ValueRange{index(0)}, ValueRange{end},
                                ValueRange{index(1)}, ValueRange{initial});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value x = term(loop.getInductionVars().front());
    auto result = scf::ReduceOp::create(b, loc, ValueRange{x});
    Block &block = result.getReductions().front().front();
    b.setInsertionPointToStart(&block);
    scf::ReduceReturnOp::create(
        b, loc, combine(block.getArgument(0), block.getArgument(1)));
    return loop.getResult(0);
  }
  template <typename OpTy, typename... Args>
  Value fold(Args... args) {
    return b.createOrFold<OpTy>(loc, args...);
  }
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_LOOPBUILDER_H
