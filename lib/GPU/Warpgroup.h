//===- Warpgroup.h - Products of four warps ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `wgmma` of sm_90a: four warps multiply 64 × 16 by 16 × N, sums in f32. Warp w
// has rows 16 w and on of the sums, in the order of `KernelBuilder::multiply`:
// lane l has, of every eight columns, 2 (l % 4) and the next, of the rows l / 4
// and l / 4 + 8; the same of A, where it is in registers. Operands in
// shared memory come from a tile of panels and are read by a proxy of their
// own: their writer needs a fence before the barrier.
//
// The products between `begin` and `await` run while other code does, and their
// sums may be used by nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_WARPGROUP_H
#define LINATTN_LIB_GPU_WARPGROUP_H

#include "SharedTile.h"

namespace mlir::linattn {

/// Rows and warps of a product.
constexpr int64_t warpgroupRows = 64, warpgroupWarps = 4;

/// A tile of panels in shared memory, as `wgmma` takes it.
class WarpgroupOperand {
public:
  /// `byRows`: the products add over the tile's rows, not over its columns.
  WarpgroupOperand(KernelBuilder &k, SharedTile tile, Value base, bool byRows);

  /// The descriptor of the 16 rows or columns that product `step` adds over.
  Value at(int64_t step) const;
  bool isByRows() const { return byRows; }

private:
  KernelBuilder *k;
  SharedTile tile;
  bool byRows;
  Value descriptor;
};

class WarpgroupProducts {
public:
  explicit WarpgroupProducts(KernelBuilder &k, Type type) : k(k), type(type) {}

  /// Orders earlier register writes before the products that read them
  /// (`wgmma.fence`).
  void begin();
  /// `sums` += a · b for `columns` and product `step` of b; null sums are 0.
  /// `a`: a descriptor, or the four registers of a fragment.
  void multiply(SmallVectorImpl<Value> &sums, int64_t columns, ValueRange a,
                const WarpgroupOperand &b, int64_t step);
  /// Ends a group of products.
  void commit();
  /// Waits for all groups but the last `pending`. The sums of the others are
  /// valid from here on.
  void await(SmallVectorImpl<Value> &sums, unsigned pending = 0);

private:
  SmallVector<Value> assembly(StringRef text, ValueRange operands,
                              ValueRange sums, size_t numSums);

  KernelBuilder &k;
  Type type;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_WARPGROUP_H
