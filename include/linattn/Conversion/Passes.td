//===- Passes.td - Conversions out of linattn --------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_PASSES_TD
#define LINATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertLinAttnToLinalgPass
    : Pass<"convert-linattn-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Convert every linattn op on tensors to linalg";
  let description = [{
    The portable route: attention in its quadratic form, a scan as a loop over
    the ops of a chunk (`linattn-expand-form`), other recurrences as loops over
    tokens, and every structured op by its decomposition. Decays, transitions,
    gates, grouped heads, packed sequences, pools of states and snapshots are
    converted as well. An op without a decomposition is an error with the
    reason.

    Before:

    ```mlir
    %s1 = linattn.chunk.update keys(%k) values(%v) into(%s0) : …
    ```

    After:

    ```mlir
    %w  = linalg.generic {…} ins(%k, %v : …) outs(%zeros : …) { … }   // KᵀV
    %s1 = linalg.generic {…} ins(%w : …) outs(%s0 : …) { … }          // S + W
    ```
  }];
  let options = [
    Option<"chunkSize", "chunk-size", "int64_t", /*default=*/"16",
           "Tokens per chunk of a scan whose schedule does not say">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LinAttnLowerToLoopsPass
    : Pass<"linattn-lower-to-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower every linattn op on buffers to plain scalar loops";
  let description = [{
    The naive form of each op, element by element, in the accumulation type: the
    oracle in IR. Ops must be on buffers. Batch and head become one
    `scf.parallel` loop, as do the rows of maps and norms. With `lanes`, loops
    over the elements of a row and over the value columns of a state become
    inner parallel loops, for the threads of a GPU.
  }];
  let options = [
    Option<"lanes", "lanes", "bool", /*default=*/"false",
           "Parallel loops inside a task, for the threads of a GPU">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LinAttnLowerToVectorPass
    : Pass<"linattn-lower-to-vector", "::mlir::func::FuncOp"> {
  let summary = "Lower linattn ops on buffers to register-tiled vector loops";
  let description = [{
    The forms of a recurrence:

    - `state_tile`: a task packs a block of `block` tokens, then visits the tiles
      of its state, `rows` by `cols`. A tile stays in `rows` vectors of `cols`
      elements while the tokens of the block pass, and adds the share of its rows
      to every output.
    - `token`: the state streams through registers once per token. An initial state
      that is copied to the state right before is read where it lies, by the first
      token; the copy is left to calls without tokens, and to lengths that run in
      chunks.
    - `chunk`, also the form of rank-1 updates without a config: `chunk` tokens at
      a time are products of matrices and a triangular system, solved by forward
      substitution. The first chunk does not read a state that is filled with zero
      right before, and the fill is left out; the last one does not write a state
      that is allocated for the scan alone. A sequence of up to `whole` tokens is
      one chunk, one of up to `few` tokens goes token by token: the code compares
      each sequence's own length.

    `linattn.quadratic` runs block by block with a running maximum; with `tiles`, one with
    `summands` makes its products as `amx.tile_mulf`, scores and outputs transposed, in
    blocks of 128 keys. The small
    recurrences (`linattn.selective_scan` and its like) run a few vectors of
    channels from the first token to the last. A `linattn.feature_map` of whole
    tokens multiplies blocks of them with its packed matrices. Tile sizes come
    from the op's `config`, else from the options. An op without a vector schedule
    is left for `linattn-lower-to-loops`, with a remark; a form that cannot run the
    op is an error.

    Before:

    ```mlir
    linattn.scan %q, %k, %v into(%o) init(%s)
        {config = #linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>} : (memref<…>, …) -> ()
    ```

    After, the innermost loop, over the tokens of a block:

    ```mlir
    %tile:8 = scf.for %t = … iter_args(%s0 = …, …, %s7 = …) -> (vector<32xf32>, …) {
      %next0 = vector.fma %k0, %v, %s0 : vector<32xf32>
      %sum0 = vector.fma %q0, %next0, %zero : vector<32xf32>
      … // the other seven rows, and the sum of all eight to the output of %t
    }
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits, a power of two from 128 on">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers, a power of two from 16 on">,
    Option<"l1", "l1", "int64_t", /*default=*/"0",
           "Bytes of a core's first data cache; 0: not known. Rows that may "
           "lie pages apart are prefetched into it if it exceeds 32 KiB, else "
           "into the second cache">,
    Option<"tiles", "tiles", "int64_t", /*default=*/"0",
           "Products with summands are those of AMX's tiles, in blocks of so many each way, "
           "1 or 2; their vectors have 512 bits. 0: in vectors">,
    Option<"exact", "exact", "bool", /*default=*/"false",
           "Numbers will be elements of a prime field: tiles are packed without "
           "arithmetic on their bits">
  ];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect",
    "::mlir::LLVM::LLVMDialect"
  ];
}

def LinAttnLowerChunksToVectorPass
    : Pass<"linattn-lower-chunks-to-vector", "::mlir::func::FuncOp"> {
  let summary = "Lower the ops of a chunk on buffers to register-tiled loops";
  let description = [{
    The `linattn.chunk` ops of one head, whose sizes are known, become products
    with tiles of sums in registers, `registers / 4` rows by two vectors. Keys
    are transposed once for all scores, and the factors of a decay are computed
    once for all ops. Some ops become one: a read whose destination was filled
    with zero starts from zero, the decay of its rows multiplies its sums, and
    rows that are unpacked unchanged go to the tokens. Where the ops are in a loop
    over chunks in a task of `linattn-expand-form=tasks`, products prefetch the rows
    of the next chunk, the last one those of the next head; the buffers of a
    chunk lie on the task's stack. Factors, transposed keys and packed matrices
    of buffers that a loop leaves as they are come once, in front of it.

    With `tiles`, products with `summands` are `amx.tile_mulf` of tiles of 16 rows
    of 32 bf16, in blocks of so many tiles of sums each way. Their matrices are split into
    summands and packed in pairs once for all products; bf16 tokens, keys that decay to the
    end of the chunk and scores without an f32 buffer, where only tiles read them, and a state
    that a loop updates by its update. Decays, masks and gates meet the
    sums as vectors. Where values, or a matrix of several summands, hold a number that is not
    finite, or too large for bf16, the product runs in vectors, row by row, in loops that LLVM
    leaves as they are: a tile would multiply it by the zeros above the diagonal.

    Where each term of a sum meets a decay of its own, rows come in tiles: what is
    before a tile has decayed to it in memory, what is in it decays in registers. Of scores
    with `summands` only those within 16 tokens are made so; keys before them and rows
    decay to the end of the keys' block and from there on, as matrices of products in tiles.

    A normaliser is a state of one column, which lies in memory as a row: its vectors run
    along features and keys. Maps of single elements of a chunk's rows are among its ops.

    A shift, a running maximum, a bonus, a transpose, decays of both rows and columns of a
    state, several heads and sizes that are not known stay for `linattn-lower-to-loops`,
    and a remark says so.

    Before:

    ```mlir
    linattn.chunk.update keys(%k) values(%v) into(%s)
      : (memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x64x64xf32>) -> ()
    ```

    After, the innermost loop:

    ```mlir
    %sums:8 = scf.for %j = … iter_args(%s0 = …, …, %s7 = …) -> (vector<32xf32>, …) {
      %line = vector.load %v[%c0, %c0, %j, %column] : memref<1x1x16x64xf32>, vector<32xf32>
      %k0 = memref.load %k[%c0, %c0, %j, %d] : memref<1x1x16x64xf32>
      %splat0 = vector.broadcast %k0 : f32 to vector<32xf32>
      %next0 = vector.fma %splat0, %line, %s0 : vector<32xf32>
      … // the other rows, and three more tokens
    }
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits, a power of two from 128 on">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers, a power of two from 16 on">,
    Option<"l1", "l1", "int64_t", /*default=*/"0",
           "Bytes of a core's first data cache; 0: not known. Rows that may "
           "lie pages apart are prefetched into it if it exceeds 32 KiB, else "
           "into the second cache">,
    Option<"tiles", "tiles", "int64_t", /*default=*/"0",
           "Products with summands are those of AMX's tiles, in blocks of so many each way, "
           "1 or 2; vectors have 512 bits. 0: in vectors">,
    Option<"exact", "exact", "bool", /*default=*/"false",
           "Numbers will be elements of a prime field: tiles are packed without "
           "arithmetic on their bits">
  ];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect",
    "::mlir::LLVM::LLVMDialect"
  ];
}

def LinAttnDivideCopiesPass : Pass<"linattn-divide-copies", "::mlir::func::FuncOp"> {
  let summary = "Let each task copy its own part of an initial state";
  let description = [{
    A copy of a whole state leaves the cache before the tasks read it, and runs on one
    thread where it is small. Where tasks use the memory through one view each, which
    together are all of it, and nothing else reads it in between, each task copies
    its own part. The source must be an argument that the tasks do not read.

    Before:

    ```mlir
    scf.if %differ {
      linalg.copy ins(%s0 : …) outs(%s1 : …)
    }
    scf.forall (%b, %h) in (2, 8) {
      %own = memref.subview %s1[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : …
      …
    ```

    After:

    ```mlir
    scf.forall (%b, %h) in (2, 8) {
      %own = memref.subview %s1[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : …
      scf.if %differ {
        %initial = memref.subview %s0[%b, %h, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : …
        linalg.copy ins(%initial : …) outs(%own : …)
      }
      …
    ```
  }];
  let statistics = [
    Statistic<"numDivided", "num-divided", "Number of copies divided">
  ];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def LinAttnEmulateAMXPass : Pass<"linattn-emulate-amx", "::mlir::func::FuncOp"> {
  let summary = "Lower the tiles of AMX to vectors that compute the same bits";
  let description = [{
    A tile becomes a buffer on the stack and each of its ops a loop over rows.
    Tiles must stay in the block that defines them: a tile that a loop carries
    is an error, as is a product of types other than bf16. `amx.tile_mulf`
    computes each sum as the unit does:

    ```
    even = fma(a_30, b_30, … fma(a_2, b_2, fma(a_0, b_0, 0)))
    odd  = fma(a_31, b_31, … fma(a_3, b_3, fma(a_1, b_1, 0)))
    sum  = sum + (even + odd)
    ```

    rounded to nearest even, with subnormal operands, intermediates and results flushed
    to zero of their sign. With `keep-subnormals` nothing is flushed, which has no meaning
    in a prime field.

    Before:

    ```mlir
    %y = amx.tile_mulf %a, %b, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    ```

    After, the innermost loop, over the pairs of one row of sums:

    ```mlir
    %chains:2 = scf.for %p = %c0 to %c16 step %c1 iter_args(%even = %zero, %odd = %zero) {
      %pairs = vector.load %tileB[%p, %c0] : memref<16x32xbf16>, vector<32xbf16>
      …
      %even1 = vector.fma %a0, %b0, %even : vector<16xf32>
      %odd1 = vector.fma %a1, %b1, %odd : vector<16xf32>
      scf.yield %even1, %odd1
    }
    ```
  }];
  let options = [
    Option<"keepSubnormals", "keep-subnormals", "bool", /*default=*/"false",
           "Flush nothing">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LinAttnLowerAMXToDotPass : Pass<"linattn-lower-amx-to-dot", "::mlir::func::FuncOp"> {
  let summary = "Lower the tiles of AMX to the dot products of AVX-512 BF16";
  let description = [{
    `vdpbf16ps` adds the products of two pairs of bf16 to each of 16 sums, twice the products
    of an FMA. A tile of sums becomes 16 vectors in registers; an operand stays in memory,
    and its pairs are those of the instruction. Tiles must stay in the block that defines
    them, and the memory of an operand must not change before its product: anything else
    is an error.

    Before:

    ```mlir
    %a = amx.tile_load %left[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
    %b = amx.tile_load %right[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
    %y = amx.tile_mulf %a, %b, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    ```

    After:

    ```mlir
    %y:16 = scf.for %p = %c0 to %c16 step %c1 iter_args(%x0 = …, …, %x15 = …) -> (vector<16xf32>, …) {
      %columns = vector.load %right[%p, %c0] : memref<16x32xbf16>, vector<32xbf16>
      %pair0 = vector.load %left[%c0, %p2] : memref<16x32xbf16>, vector<2xbf16>
      … // in all lanes
      %y0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%x0, %columns, %all0)
      … // the other rows
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LinAttnLowerContractionsPass
    : Pass<"linattn-lower-contractions", "::mlir::func::FuncOp"> {
  let summary = "Lower products of matrices on buffers to register-tiled loops";
  let description = [{
    `linalg.matmul`, `linalg.batch_matmul` and any other contraction of floats
    (`linalg.contract`, a `linalg.generic` of products that are summed) become a
    parallel loop over panels of columns and blocks of rows. A task packs its
    panels of the operand that has the output's last dimension, transposed where
    the sums are neighbours in memory, a block of summands at a time, and keeps
    some rows of the output in registers while the block passes. It has up to
    eight panels, one after the other in each block, which share the elements of
    the other operand: of several heads, where that operand has none. These
    elements are packed, too, where their rows are neighbours in memory or have 16
    bits. Sums are in the accumulation type, one chain of fused multiply-adds for
    each element.

    An operand that is a vector, fewer than eight rows or summands or a vector
    of columns, and a product within a task stay for
    `linattn-lower-linalg-to-loops`.

    Before:

    ```mlir
    linalg.matmul ins(%a, %b : memref<?x512xf32>, memref<512x512xf32>) outs(%c : memref<?x512xf32>)
    ```

    After, the innermost loop:

    ```mlir
    %sums:12 = scf.for %k = … iter_args(%s0 = …, …, %s11 = …) -> (vector<32xf32>, …) {
      %line = vector.load %panel[%k, %c0] : memref<512x32xf32>, vector<32xf32>
      %a0 = memref.load %a[%m0, %k] : memref<?x512xf32>
      %splat0 = vector.broadcast %a0 : f32 to vector<32xf32>
      %next0 = vector.fma %splat0, %line, %s0 : vector<32xf32>
      … // the other rows, and three more k
    }
    ```
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register in bits, a power of two from 128 on">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers, a power of two from 16 on">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LinAttnToFiniteFieldPass
    : Pass<"linattn-to-finite-field", "::mlir::ModuleOp"> {
  let summary = "Compute in a prime field instead of in floats";
  let description = [{
    For exact comparison: two programs that are the same algebra give the same
    elements, in any order of sums and any division of the tokens.
    Runs on loops, vectors and memory, after every linattn and linalg op is
    lowered. A float of any width becomes one `i64`, a pair of residues modulo
    primes p and q = (p − 1) / 2:

    - sums, differences, products, quotients and constants act on both residues;
      0.1 is 1/10;
    - `e^x` is g^(second residue) modulo p, so that e^(x+y) = e^x e^y, and
      e^(−∞) = 0;
    - `max`, `min` and comparisons follow the order of the signed first residue;
    - every other function, `sqrt` and `tanh` for instance, is a fixed random
      function of the first residue;
    - conversions between float types do nothing; converted to an integer, the
      element of an integer is that integer, and any other one a fixed random
      integer.

    `prime` selects one of two fields. Anything else on floats is an error that
    names the op.

    Before:

    ```mlir
    %y = arith.mulf %x, %c : f32
    %e = math.exp %y : f32
    memref.store %e, %m[%i] : memref<?xf32>
    ```

    After:

    ```mlir
    %y = call @linattn_field0_mul(%x, %c) : (i64, i64) -> i64
    %e = call @linattn_field0_exp(%y) : (i64) -> i64
    memref.store %e, %m[%i] : memref<?xi64>
    ```
  }];
  let options = [
    Option<"prime", "prime", "unsigned", /*default=*/"0",
           "Which of the two fields to compute in: 0 or 1">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"
  ];
}

include "linattn/Conversion/LLVMPasses.td"

#endif // LINATTN_CONVERSION_PASSES_TD
