//===- LLVMPasses.td - To the LLVM dialect -----------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_LLVMPASSES_TD
#define LINATTN_CONVERSION_LLVMPASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnLowerAllocationsPass
    : Pass<"linattn-lower-allocations", "::mlir::ModuleOp"> {
  let summary = "Lower allocations to functions of the runtime";
  let description = [{
    `memref.alloc` and `memref.dealloc` of memrefs with the identity layout
    become calls of `linattn_allocate` and `linattn_free`. An allocation that
    fails does not return: the runtime leaves the compiled code and frees the
    allocations of the call. The number of bytes is a checked product; on
    overflow it is 2^64 − 1, which no allocator can provide.

    Before:

    ```mlir
    %m = memref.alloc(%n) {alignment = 64 : i64} : memref<?x64xf32>
    ```

    After:

    ```mlir
    %product = "llvm.intr.umul.with.overflow"(%c256, %size)
      : (i64, i64) -> !llvm.struct<(i64, i1)>
    %fits = llvm.extractvalue %product[0] : !llvm.struct<(i64, i1)>
    %overflows = llvm.extractvalue %product[1] : !llvm.struct<(i64, i1)>
    %bytes = llvm.select %overflows, %all_ones, %fits : i1, i64
    %memory = llvm.call @linattn_allocate(%bytes, %c64) : (i64, i64) -> !llvm.ptr
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
  let statistics = [
    Statistic<"numAllocations", "allocations", "allocations lowered">
  ];
}

def LinAttnInsertPollsPass : Pass<"linattn-insert-polls", "::mlir::ModuleOp"> {
  let summary = "Let long loops end where their call is to end";
  let description = [{
    An interrupt or a deadline ends a call through a flag of the runtime, which
    the runtime reads before every task. This pass adds the same read to long
    loops. In each function and task it selects the outermost loops that contain
    loops, the innermost of these in a perfect nest, and deeper loops whose work
    per iteration, by static trip counts, hides a load and a branch. Loops that
    are known to be short are left alone.

    Before:

    ```mlir
    scf.for %token = %c0 to %n step %c16 {
      …
    }
    ```

    After:

    ```mlir
    scf.for %token = %c0 to %n step %c16 {
      %address = llvm.mlir.addressof @linattn_poll_flag : !llvm.ptr
      %flag = llvm.load %address atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32
      %isSet = llvm.icmp "ne" %flag, %zero : i32
      scf.if %isSet {
        llvm.call @linattn_poll() : () -> ()
      }
      …
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"
  ];
  let statistics = [
    Statistic<"numPolls", "polls", "loops that look at the flag">
  ];
}

def LinAttnFoldViewsPass : Pass<"linattn-fold-views"> {
  let summary = "Access the memory behind subviews and reshapes";
  let description = [{
    Loads, stores and transfers of a `memref.subview`, `memref.expand_shape` or
    `memref.collapse_shape` access its source. Applies the patterns of
    `fold-memref-alias-ops`, but visits the ops that have a pattern, and no
    others.

    Before:

    ```mlir
    %row = memref.subview %m[%i, 0] [1, 64] [1, 1]
      : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    %x = memref.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
    ```

    After:

    ```mlir
    %x = memref.load %m[%i, %j] : memref<?x64xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"
  ];
}

def LinAttnExpandViewsPass : Pass<"linattn-expand-views"> {
  let summary = "Expand subviews and reshapes to address arithmetic";
  let description = [{
    The remaining views become a `memref.reinterpret_cast` of their source, with
    offset, sizes and strides in affine maps. Applies the patterns of
    `expand-strided-metadata`, but visits the ops that have a pattern, and no
    others.

    Before:

    ```mlir
    %row = memref.subview %m[%i, 0] [1, 64] [1, 1]
      : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    ```

    After:

    ```mlir
    %base, %o, %n:2, %s:2 = memref.extract_strided_metadata %m : …
    %offset = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%i]
    %row = memref.reinterpret_cast %base to offset: [%offset], sizes: [64],
      strides: [1] : memref<f32> to memref<64xf32, strided<[1], offset: ?>>
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

def LinAttnLowerVectorsPass : Pass<"linattn-lower-vectors"> {
  let summary = "Lower transfers and reductions along several dimensions";
  let description = [{
    Transfers of vectors of several dimensions become unrolled transfers of
    their rows, reductions along several dimensions become reductions along one,
    and masked transfers take their mask as an operand. Visits the ops that have
    a pattern, and no others.

    Before:

    ```mlir
    %0 = vector.transfer_read %m[%i, %j], %pad {in_bounds = [true, true]}
      : memref<?x?xf32>, vector<2x8xf32>
    ```

    After:

    ```mlir
    %1 = vector.transfer_read %m[%i, %j], %pad {in_bounds = [true]}
      : memref<?x?xf32>, vector<8xf32>
    %2 = vector.insert %1, %poison [0] : vector<8xf32> into vector<2x8xf32>
    …
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnConvertToLLVMPass
    : Pass<"linattn-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert arithmetic, vectors and memory in one conversion";
  let description = [{
    First lowers vector ops without a counterpart in LLVM: contractions to outer
    products, transposes to shuffles, slices, and masks. Then converts `arith`,
    `cf`, `func`, `index`, `memref`, `ub` and `vector` to the LLVM dialect. One
    conversion for each dialect, as `convert-vector-to-llvm`,
    `finalize-memref-to-llvm` and `convert-to-llvm` are, takes twice the time
    for kernels of thousands of ops. Ops of other dialects stay. An annotation of a
    loop, `llvm.loop_annotation` of the branch back to its start, becomes that of `llvm.br`.

    Before:

    ```mlir
    %0 = vector.load %m[%i] : memref<?xf32>, vector<16xf32>
    %1 = arith.addf %0, %0 : vector<16xf32>
    ```

    After:

    ```mlir
    %0 = llvm.getelementptr %base[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %1 = llvm.load %0 {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
    %2 = llvm.fadd %1, %1 : vector<16xf32>
    ```
  }];
  let options = [
    Option<"amx", "amx", "bool", /*default=*/"false",
           "Convert ops of AMX tiles too">
  ];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"
  ];
}

#endif // LINATTN_CONVERSION_LLVMPASSES_TD
