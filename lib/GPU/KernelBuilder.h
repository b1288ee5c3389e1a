//===- KernelBuilder.h - Shorthand for emitting kernels ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per instruction that a kernel is made of. Integers are unsigned
// i32 unless a name says 64; pointers are moved by bytes.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_KERNELBUILDER_H
#define LINATTN_LIB_GPU_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace mlir::linattn {

/// Address spaces of NVPTX.
constexpr unsigned globalSpace = 1, sharedSpace = 3;

class KernelBuilder {
public:
  KernelBuilder(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  //===--------------------------------------------------------------------===//
  // Numbers
  //===--------------------------------------------------------------------===//

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(double value);

  Value add(Value x, Value y) { return fold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return fold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return fold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return fold<arith::DivUIOp>(x, y); }
  Value rem(Value x, Value y) { return fold<arith::RemUIOp>(x, y); }
  Value band(Value x, Value y) { return fold<arith::AndIOp>(x, y); }
  Value bxor(Value x, Value y) { return fold<arith::XOrIOp>(x, y); }
  Value shl(Value x, int64_t n) { return fold<arith::ShLIOp>(x, i32(n)); }
  Value shr(Value x, Value n) { return fold<arith::ShRUIOp>(x, n); }
  Value shl(Value x, Value n) { return fold<arith::ShLIOp>(x, n); }
  Value shr(Value x, int64_t n) { return fold<arith::ShRUIOp>(x, i32(n)); }
  Value add(Value x, int64_t y) { return y ? add(x, i32(y)) : x; }
  Value mul(Value x, int64_t y) { return mul(x, i32(y)); }
  Value div(Value x, int64_t y) { return div(x, i32(y)); }
  Value rem(Value x, int64_t y) { return rem(x, i32(y)); }
  Value band(Value x, int64_t y) { return band(x, i32(y)); }
  Value bxor(Value x, int64_t y) { return y ? bxor(x, i32(y)) : x; }
  Value extend(Value x); ///< i32 to i64.
  Value less(Value x, Value y);
  Value less(Value x, int64_t y) { return less(x, i32(y)); }
  Value greaterSigned(Value x, Value y);
  Value greaterSigned(Value x, int64_t y) { return greaterSigned(x, i32(y)); }
  Value equal(Value x, int64_t y);
  Value negate(Value condition);
  Value both(Value x, Value y) { return x && y ? band(x, y) : x ? x : y; }
  Value select(Value condition, Value x, Value y);

  Value addf(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value subf(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mulf(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value minf(Value x, Value y);
  Value maxf(Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value lessf(Value x, Value y);
  /// Converts floats, one rounding at most.
  Value convert(Value x, Type type);

  /// 2^x by the special function unit, for x ≤ 0: 22 bits, denormals are 0. The
  /// only instruction that is called by name.
  Value exp2Approximate(Value x);
  /// e^x for x ≤ 0, to the last bit or two.
  Value exp(Value x);

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  Value offset(Value pointer, Value bytes);
  Value offset(Value pointer, int64_t bytes);
  Value load(Type type, Value pointer, int64_t align);
  /// i1: whether the byte, of a mask, is set.
  Value loadFlag(Value pointer);
  void store(Value value, Value pointer, int64_t align);
  /// The element `lane` of a vector.
  Value element(Value vector, int64_t lane);
  Value vectorOf(ValueRange elements);

  /// Starts the copy of `bytes` (4, 8 or 16) to shared memory. If `keep` is
  /// false, writes zeros and reads nothing.
  void copyAsync(Value shared, Value global, int64_t bytes, Value keep);
  void commitCopies();
  void waitForCopies(int64_t pending);
  /// Makes this thread's writes to shared memory visible to warpgroup products.
  void fenceAsyncProxy();

  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  Value thread();
  Value block(unsigned dim);
  void barrier();
  /// Of `threads` threads, in whole warps; number 0 is that of the block.
  void barrier(Value number, int64_t threads);
  void warpBarrier();
  /// The value of lane `source`, `lane ^ mask`, `lane − delta`, `lane + delta`.
  Value shuffleFrom(Value x, Value source);
  Value shuffleXor(Value x, Value mask);
  Value shuffleXor(Value x, int64_t mask) { return shuffleXor(x, i32(mask)); }
  Value shuffleUp(Value x, int64_t delta);
  Value shuffleDown(Value x, int64_t delta);
  /// The value itself, in all lanes at once: what is computed from it stays in
  /// the loop, where it is cheap, and does not fill registers around it.
  Value keepInLoop(Value x) { return shuffleXor(x, 0); }

  //===--------------------------------------------------------------------===//
  // Matrices
  //===--------------------------------------------------------------------===//

  /// Four 8×8 matrices of 16-bit elements, one row address per lane.
  SmallVector<Value, 4> loadMatrices(Value pointer, bool transposed);
  /// c + a·b for a 16×16, b 16×8 of `type` (bf16, f16), c 16×8 of f32.
  SmallVector<Value, 4> multiply(Type type, ValueRange a, ValueRange b,
                                 ValueRange c);
  /// Two f32 as a pair of `type` in 32 bits, and back.
  Value pack(Type type, Value low, Value high);
  std::pair<Value, Value> unpack(Type type, Value pair);
  /// The members of a struct.
  SmallVector<Value, 4> takeApart(Value x);

  //===--------------------------------------------------------------------===//
  // Control flow
  //===--------------------------------------------------------------------===//

  /// A loop from 0 carrying values; `body` returns the next ones.
  SmallVector<Value>
  loop(Value end, ValueRange initial,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void ifThen(Value condition, function_ref<void()> body);
  /// The value of `body` where `condition` holds (or is null), else
  /// `otherwise`.
  Value ifElse(Value condition, function_ref<Value()> body, Value otherwise);
  SmallVector<Value> ifElse(Value condition,
                            function_ref<SmallVector<Value>()> body,
                            ValueRange otherwise);

  OpBuilder &b;
  Location loc;

private:
  Value shuffle(NVVM::ShflKind kind, Value x, Value offset, int64_t clamp);
  template <typename OpTy>
  Value fold(Value x, Value y) {
    return b.createOrFold<OpTy>(loc, x, y);
  }
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_KERNELBUILDER_H
