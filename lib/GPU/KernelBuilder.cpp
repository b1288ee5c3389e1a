//===- KernelBuilder.cpp - Shorthand for emitting kernels -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "linattn/Dialect/EmitLoop.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value KernelBuilder::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}
Value KernelBuilder::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value KernelBuilder::f32(double value) {
  return arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}
Value KernelBuilder::extend(Value x) {
  return b.createOrFold<arith::ExtUIOp>(loc, b.getI64Type(), x);
}
Value KernelBuilder::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x, y);
}
Value KernelBuilder::greaterSigned(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sgt, x, y);
}
Value KernelBuilder::equal(Value x, int64_t y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x,
                                       i32(y));
}
Value KernelBuilder::negate(Value condition) {
  Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
  return b.createOrFold<arith::XOrIOp>(loc, condition, yes);
}
Value KernelBuilder::select(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(loc, condition, x, y);
}
Value KernelBuilder::fma(Value x, Value y, Value z) {
  return LLVM::FMAOp::create(b, loc, x, y, z);
}
/// Not arith's, which would become a call to libdevice.
Value KernelBuilder::minf(Value x, Value y) {
  return LLVM::MinNumOp::create(b, loc, x, y);
}
Value KernelBuilder::maxf(Value x, Value y) {
  return LLVM::MaxNumOp::create(b, loc, x, y);
}
Value KernelBuilder::lessf(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
}
Value KernelBuilder::convert(Value x, Type type) {
  auto from = cast<FloatType>(getElementTypeOrSelf(x));
  auto to = cast<FloatType>(type);
  Type target = to;
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    target = vector.clone(to);
  if (from.getWidth() < to.getWidth())
    return arith::ExtFOp::create(b, loc, target, x);
  if (from.getWidth() > to.getWidth())
    return arith::TruncFOp::create(b, loc, target, x);
  return x;
}

Value KernelBuilder::exp2Approximate(Value x) {
  return LLVM::CallIntrinsicOp::create(
             b, loc, b.getF32Type(),
             b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f"), ValueRange{x})
      .getResult(0);
}

/// 2^n · e^r with n the nearest integer to x·log2(e) and r what is left; the
/// polynomial is the one of Cephes.
Value KernelBuilder::exp(Value x) {
  // Adding 1.5 · 2^23 leaves the nearest integer in the low bits.
  Value magic = f32(12582912.0);
  Value shifted = fma(x, f32(1.44269504088896341), magic);
  Value n = subf(shifted, magic);
  Value r = fma(n, f32(-0.693359375), x);
  r = fma(n, f32(2.12194440e-4), r);
  Value p = f32(1.9875691500e-4);
  for (double c : {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                   1.6666665459e-1, 5.0000001201e-1})
    p = fma(p, r, f32(c));
  p = addf(fma(p, mulf(r, r), r), f32(1.0));
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), shifted);
  bits = shl(add(bits, i32(127)), 23);
  Value power = arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  // Below 2^-126 the exponent does not fit; the result is 0 there.
  return select(lessf(x, f32(-87.0)), f32(0.0), mulf(p, power));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::offset(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}
Value KernelBuilder::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  // In bounds, so that the constant folds into the instruction.
  return LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)},
      LLVM::GEPNoWrapFlags::inbounds);
}
Value KernelBuilder::loadFlag(Value pointer) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                               load(b.getI8Type(), pointer, 1),
                               arith::ConstantIntOp::create(b, loc, 0, 8));
}

Value KernelBuilder::load(Type type, Value pointer, int64_t align) {
  return LLVM::LoadOp::create(b, loc, type, pointer, align);
}
void KernelBuilder::store(Value value, Value pointer, int64_t align) {
  LLVM::StoreOp::create(b, loc, value, pointer, align);
}
Value KernelBuilder::element(Value vector, int64_t lane) {
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{lane});
}
Value KernelBuilder::vectorOf(ValueRange elements) {
  auto type = VectorType::get({static_cast<int64_t>(elements.size())},
                              elements.front().getType());
  return vector::FromElementsOp::create(b, loc, type, elements);
}

void KernelBuilder::copyAsync(Value shared, Value global, int64_t bytes,
                              Value keep) {
  // Only 16 bytes may bypass the first-level cache.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                           : NVVM::LoadCacheModifierKind::CA;
  Value size = keep ? select(keep, i32(bytes), i32(0)) : Value();
  NVVM::CpAsyncOp::create(b, loc, shared, global, bytes, cache, size);
}
void KernelBuilder::commitCopies() {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}
void KernelBuilder::waitForCopies(int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, pending);
}
void KernelBuilder::fenceAsyncProxy() {
  NVVM::FenceProxyOp::create(
      b, loc,
      NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value KernelBuilder::thread() {
  return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
}
Value KernelBuilder::block(unsigned dim) {
  if (dim == 0)
    return NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
  if (dim == 1)
    return NVVM::BlockIdYOp::create(b, loc, b.getI32Type());
  return NVVM::BlockIdZOp::create(b, loc, b.getI32Type());
}
void KernelBuilder::barrier() { NVVM::Barrier0Op::create(b, loc); }
void KernelBuilder::barrier(Value number, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, /*res=*/Type(), number, i32(threads),
                          /*reductionOp=*/nullptr,
                          /*reductionPredicate=*/Value());
}
void KernelBuilder::warpBarrier() { NVVM::SyncWarpOp::create(b, loc, i32(-1)); }

Value KernelBuilder::shuffle(NVVM::ShflKind kind, Value x, Value offset,
                             int64_t clamp) {
  return NVVM::ShflOp::create(b, loc, x.getType(), i32(-1), x, offset,
                              i32(clamp), kind, UnitAttr());
}
Value KernelBuilder::shuffleFrom(Value x, Value source) {
  return shuffle(NVVM::ShflKind::idx, x, source, 31);
}
Value KernelBuilder::shuffleXor(Value x, Value mask) {
  return shuffle(NVVM::ShflKind::bfly, x, mask, 31);
}
Value KernelBuilder::shuffleUp(Value x, int64_t delta) {
  return shuffle(NVVM::ShflKind::up, x, i32(delta), 0);
}
Value KernelBuilder::shuffleDown(Value x, int64_t delta) {
  return shuffle(NVVM::ShflKind::down, x, i32(delta), 31);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

SmallVector<Value, 4> KernelBuilder::takeApart(Value x) {
  SmallVector<Value, 4> parts;
  auto type = cast<LLVM::LLVMStructType>(x.getType());
  for (int64_t i = 0, e = type.getBody().size(); i < e; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(b, loc, x, i));
  return parts;
}

SmallVector<Value, 4> KernelBuilder::loadMatrices(Value pointer,
                                                  bool transposed) {
  MLIRContext *context = b.getContext();
  SmallVector<Type, 4> types(4, b.getI32Type());
  auto result = LLVM::LLVMStructType::getLiteral(context, types);
  Value loaded = NVVM::LdMatrixOp::create(
      b, loc, result, pointer, /*num=*/4,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltType::B16);
  return takeApart(loaded);
}

SmallVector<Value, 4> KernelBuilder::multiply(Type type, ValueRange a,
                                              ValueRange bs, ValueRange c) {
  bool isBF16 = type.isBF16();
  // The instruction takes pairs of f16 as vectors, but of bf16 as integers.
  auto operands = [&](ValueRange pairs) {
    SmallVector<Value, 4> result(pairs);
    if (!isBF16)
      for (Value &pair : result)
        pair =
            LLVM::BitcastOp::create(b, loc, VectorType::get({2}, type), pair);
    return result;
  };
  SmallVector<Type, 4> types(4, b.getF32Type());
  auto multiplicand = isBF16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value product = NVVM::MmaOp::create(
      b, loc, LLVM::LLVMStructType::getLiteral(b.getContext(), types),
      operands(a), operands(bs), c, ArrayRef<int64_t>{16, 8, 16}, std::nullopt,
      std::nullopt, std::array{multiplicand, multiplicand},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return takeApart(product);
}

Value KernelBuilder::pack(Type type, Value low, Value high) {
  Value pair = convert(vectorOf({low, high}), type);
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), pair);
}

std::pair<Value, Value> KernelBuilder::unpack(Type type, Value pair) {
  Value vector =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, type), pair);
  Value wide = convert(vector, b.getF32Type());
  return {element(wide, 0), element(wide, 1)};
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value>
KernelBuilder::loop(Value end, ValueRange initial,
                    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return emitLoop(b, loc, i32(0), end, i32(1), initial, body);
}

void KernelBuilder::ifThen(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

Value KernelBuilder::ifElse(Value condition, function_ref<Value()> body,
                            Value otherwise) {
  auto values = [&] { return SmallVector<Value>{body()}; };
  return ifElse(condition, values, ValueRange(otherwise)).front();
}

SmallVector<Value>
KernelBuilder::ifElse(Value condition, function_ref<SmallVector<Value>()> body,
                      ValueRange otherwise) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, otherwise.getTypes(), condition,
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  return SmallVector<Value>(branch.getResults());
}
