//===- TensorMaps.cpp - Copies of whole tiles -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMaps.h"
#include "linattn/GPU/Machine.h"
#include "linattn/PTX/TensorMap.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::tensor_map;
using Field = ::linattn::TensorMapField;
using ::linattn::TensorMapReplace;

constexpr int64_t mapBytes = ::linattn::tensor_map::bytes;
constexpr int64_t barrierBytes = 8;
/// Columns of a panel, and so of a box.
constexpr int64_t panelColumns = SharedTile::panelPitch / 2;
/// How long a thread may sleep before it looks again, in nanoseconds.
constexpr int64_t longestSleep = 10000000;

int64_t TensorMaps::alignment() { return mapBytes; }
int64_t TensorMaps::globalBytes(int64_t matrices) {
  return matrices * mapBytes;
}
int64_t TensorMaps::sharedBytes(int64_t matrices, int64_t barriers) {
  return matrices * mapBytes + barriers * barrierBytes;
}

TensorMaps::TensorMaps(KernelBuilder &k, Value thread, Value shared,
                       Value global, ArrayRef<Matrix> matrices,
                       int64_t barriers)
    : k(k), thread(thread), shared(shared), global(global), matrices(matrices),
      barriers(barriers) {
  k.ifThen(k.less(thread, warpSize), [&] { makeMaps(); });
  k.barrier();
}

void TensorMaps::assembly(StringRef text, ValueRange operands) {
  std::string constraints;
  for (Value operand : operands)
    constraints += operand.getType().isInteger(32) ? "r," : "l,";
  LLVM::InlineAsmOp::create(
      k.b, k.loc, TypeRange(), operands, text, constraints + "~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(k.b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

Value TensorMaps::globalMap(unsigned matrix) {
  return k.offset(global, static_cast<int64_t>(matrix) * mapBytes);
}

Value TensorMaps::barrierAt(Value number) {
  Value first =
      k.offset(shared, static_cast<int64_t>(matrices.size()) * mapBytes);
  return k.offset(first, k.mul(number, barrierBytes));
}

/// All fields: dimension 0 are the columns, dimension 1 the rows.
void TensorMaps::fill(const Matrix &matrix, Value map) {
  auto set = [&](Field field, unsigned dim, Value value) {
    TensorMapReplace replace{field, dim, 0};
    assembly(replace.getAssembly(), {map, value});
  };
  auto setConstant = [&](Field field, unsigned constant) {
    TensorMapReplace replace{field, 0, constant};
    assembly(replace.getAssembly(), map);
  };
  constexpr unsigned rank = 2;
  Value address =
      LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), matrix.rows.base);
  set(Field::Address, 0, address);
  setConstant(Field::Rank, rank - 1);
  set(Field::Box, 0, k.i32(panelColumns));
  set(Field::Box, 1, k.i32(matrix.tile.rows));
  set(Field::Size, 0, k.i32(matrix.columns));
  set(Field::Size, 1, matrix.count);
  set(Field::Stride, 0, matrix.rows.stride);
  for (unsigned dim = 0; dim < rank; ++dim)
    set(Field::ElementStride, dim, k.i32(1));
  setConstant(Field::ElementType, elements16);
  setConstant(Field::Interleave, 0);
  setConstant(Field::Swizzle, ::linattn::tensor_map::swizzle128);
  setConstant(Field::Fill, 0);
}

/// Runs in the first warp. The thread that uses a map, lane 0, must acquire it
/// first.
void TensorMaps::makeMaps() {
  auto mapAt = [&](unsigned number) {
    return k.offset(shared, static_cast<int64_t>(number) * mapBytes);
  };
  auto addressOf = [&](Value pointer) -> Value {
    return LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI32Type(), pointer);
  };
  for (unsigned i = 0; i < matrices.size(); ++i)
    k.store(k.i32(0), k.offset(mapAt(i), k.mul(thread, 4)), 4);
  k.warpBarrier();
  k.ifThen(k.equal(thread, 0), [&] {
    for (auto [i, matrix] : llvm::enumerate(matrices))
      fill(matrix, addressOf(mapAt(i)));
    for (int64_t i = 0; i < barriers; ++i)
      NVVM::MBarrierInitOp::create(k.b, k.loc, barrierAt(k.i32(i)), k.i32(1),
                                   /*predicate=*/Value());
    k.fenceAsyncProxy(); // Copies signal barriers by that proxy.
  });
  k.warpBarrier();
  auto generic = LLVM::LLVMPointerType::get(k.b.getContext());
  for (unsigned i = 0; i < matrices.size(); ++i) {
    assembly(::linattn::getTensorMapPublish(),
             {globalMap(i), addressOf(mapAt(i))});
    Value map =
        LLVM::AddrSpaceCastOp::create(k.b, k.loc, generic, globalMap(i));
    NVVM::FenceProxyAcquireOp::create(k.b, k.loc, NVVM::MemScopeKind::GPU, map,
                                      k.i32(mapBytes));
  }
  // There is nothing to wait for; but ptxas has left out what the fences above
  // need behind them, which Triton found, and this makes up for it.
  NVVM::CpAsyncBulkCommitGroupOp::create(k.b, k.loc);
  NVVM::CpAsyncBulkWaitGroupOp::create(k.b, k.loc, 0, k.b.getUnitAttr());
}

void TensorMaps::start(Value barrier, ArrayRef<Tile> tiles) {
  k.ifThen(k.equal(thread, 0), [&] {
    Value there = barrierAt(barrier);
    // Boxes count whole, zeros included.
    int64_t total = 0;
    for (const Tile &part : tiles)
      total += matrices[part.matrix].tile.bytes();
    NVVM::MBarrierArriveExpectTxOp::create(
        k.b, k.loc, /*res=*/Type(), there, k.i32(total),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    auto generic = LLVM::LLVMPointerType::get(k.b.getContext());
    for (const Tile &part : tiles) {
      SharedTile tile = matrices[part.matrix].tile;
      Value map = LLVM::AddrSpaceCastOp::create(k.b, k.loc, generic,
                                                globalMap(part.matrix));
      for (int64_t column = 0; column < tile.columns; column += panelColumns)
        NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
            k.b, k.loc, k.offset(part.target, tile.offsetOfColumn(column)), map,
            ValueRange{k.i32(column), part.firstRow}, there,
            /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
            /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
            /*isCTAOnly=*/true, /*group=*/NVVM::CTAGroupKindAttr(),
            /*predicate=*/Value());
    }
  });
}

void TensorMaps::await(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(k.b, k.loc, barrierAt(barrier), parity,
                                        k.i32(longestSleep));
}
