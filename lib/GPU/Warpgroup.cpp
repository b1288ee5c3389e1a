//===- Warpgroup.cpp - Products of four warps -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warpgroup.h"
#include "linattn/PTX/Wgmma.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::wgmma_descriptor;
using ::linattn::WgmmaForm;

WarpgroupOperand::WarpgroupOperand(KernelBuilder &k, SharedTile tile,
                                   Value base, bool byRows)
    : k(&k), tile(tile), byRows(byRows) {
  assert(tile.panels && "expected the layout of wgmma");
  Value address = LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI32Type(), base);
  Value unit = k.band(k.shr(address, unitShift), (1 << addressBits) - 1);
  // From eight rows to the next; and to the next panel, which only operands
  // that are read by rows look for.
  uint64_t stride = 8 * SharedTile::panelPitch, leading = tile.panelBytes();
  uint64_t fixed = ::linattn::wgmma_descriptor::swizzle128 << swizzleShift |
                   stride >> unitShift << strideShift |
                   leading >> unitShift << leadingShift;
  descriptor = LLVM::OrOp::create(k.b, k.loc, k.extend(unit),
                                  k.i64(static_cast<int64_t>(fixed)));
}

Value WarpgroupOperand::at(int64_t step) const {
  constexpr int64_t depth = 16;
  int64_t bytes = byRows ? depth * step * SharedTile::panelPitch
                         : tile.offsetOfColumn(depth * step);
  return bytes ? k->add(descriptor, k->i64(bytes >> unitShift)) : descriptor;
}

SmallVector<Value> WarpgroupProducts::assembly(StringRef text,
                                               ValueRange operands,
                                               ValueRange sums,
                                               size_t numSums) {
  std::string constraints;
  for (size_t i = 0; i < numSums; ++i)
    constraints += "=f,";
  for (Value operand : operands)
    constraints += operand.getType().isInteger(64) ? "l," : "r,";
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += std::to_string(i) + ",";
  constraints += "~{memory}";
  SmallVector<Value> all(operands);
  llvm::append_range(all, sums);
  MLIRContext *context = k.b.getContext();
  auto result = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(numSums, k.b.getF32Type()));
  auto op = LLVM::InlineAsmOp::create(
      k.b, k.loc, result, all, text, constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(context, LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  return k.takeApart(op.getResult(0));
}

void WarpgroupProducts::begin() {
  NVVM::WgmmaFenceAlignedOp::create(k.b, k.loc);
}

void WarpgroupProducts::multiply(SmallVectorImpl<Value> &sums, int64_t columns,
                                 ValueRange a, const WarpgroupOperand &b,
                                 int64_t step) {
  WgmmaForm form;
  form.columns = columns;
  form.isBF16 = type.isBF16();
  form.registersA = a.size() == 4;
  form.transposedB = b.isByRows();
  form.accumulates = !sums.empty();
  SmallVector<Value> operands(a);
  operands.push_back(b.at(step));
  SmallVector<Value> next =
      assembly(form.getAssembly(), operands, sums, form.numSums());
  sums.assign(next);
}

void WarpgroupProducts::commit() {
  NVVM::WgmmaGroupSyncAlignedOp::create(k.b, k.loc);
}

void WarpgroupProducts::await(SmallVectorImpl<Value> &sums, unsigned pending) {
  SmallVector<Value> ready =
      assembly(::linattn::getWgmmaWait(pending), {}, sums, sums.size());
  sums.assign(ready);
}
