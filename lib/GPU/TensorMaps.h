//===- TensorMaps.h - Copies of whole tiles ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TMA of sm_90a: one thread issues the copy of a panel, and the hardware writes
// it to shared memory in the swizzle of `wgmma`, with zeros beyond the matrix.
// It knows the matrix by a tensor map in global memory. A block makes its own:
// it fills 128 zeroed bytes of shared memory field by field, copies them out,
// and makes them known to the proxy that reads maps. So no host need encode
// one, and the base address of a map already is that of the block's head.
//
// Barriers in shared memory (`mbarrier`) count the bytes that have arrived. A
// barrier goes through phases; that of parity 0 is the first.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_TENSORMAPS_H
#define LINATTN_LIB_GPU_TENSORMAPS_H

#include "SharedTile.h"

namespace mlir::linattn {

class TensorMaps {
public:
  /// Rows in global memory, the numbers of existing rows and columns, and the
  /// tile that covers some of them.
  struct Matrix {
    Rows rows;
    Value count;
    int64_t columns;
    SharedTile tile;
  };
  /// The tile of matrix number `matrix` whose first row is `firstRow`, for
  /// shared memory at `target`.
  struct Tile {
    unsigned matrix;
    Value target, firstRow;
  };

  /// Bytes of maps in global memory, for each block, and of maps and barriers
  /// in shared memory.
  static int64_t globalBytes(int64_t matrices);
  static int64_t sharedBytes(int64_t matrices, int64_t barriers);
  /// The alignment in bytes, of both.
  static int64_t alignment();

  /// The block makes maps and barriers, at `shared` and `global`; all of its
  /// threads may use them from here on.
  TensorMaps(KernelBuilder &k, Value thread, Value shared, Value global,
             ArrayRef<Matrix> matrices, int64_t barriers);

  /// No thread may still use the memory that they overwrite.
  void start(Value barrier, ArrayRef<Tile> tiles);
  /// Waits for the phase of this parity.
  void await(Value barrier, Value parity);

private:
  void fill(const Matrix &matrix, Value map);
  void makeMaps();
  void assembly(StringRef text, ValueRange operands);
  Value globalMap(unsigned matrix);
  Value barrierAt(Value number);

  KernelBuilder &k;
  Value thread, shared, global;
  SmallVector<Matrix> matrices;
  int64_t barriers;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_TENSORMAPS_H
