//===- ForeignPasses.td - From and to other dialects -------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_FOREIGNPASSES_TD
#define LINATTN_TRANSFORMS_FOREIGNPASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnCanonicalizePass : Pass<"linattn-canonicalize"> {
  let summary = "Canonicalize with patterns that all passes share";
  let description = [{
    Does what `canonicalize` does. That pass collects the patterns of all
    dialects anew in every place of a pipeline, which takes a tenth of the time
    of a small kernel's passes; here a context collects them once.

    With `kernels`, ops are visited from the last to the first, and regions are
    not simplified. In kernels of thousands of ops whose loops are written out,
    this takes a quarter of the time, and leaves the same code.

    Before:

    ```mlir
    %0 = arith.addi %n, %c0 : index
    ```

    After: uses of `%0` are uses of `%n`.
  }];
  let options = [
    Option<"kernels", "kernels", "bool", /*default=*/"false",
           "Visit ops in the order for kernels, and leave regions alone">
  ];
  let dependentDialects = ["::mlir::linattn::LinAttnDialect"];
}

def LinAttnRaiseOnnxPass : Pass<"linattn-raise-onnx", "::mlir::func::FuncOp"> {
  let summary = "Raise LinearAttention and CausalConvWithState of ONNX";
  let description = [{
    Raises `"onnx.LinearAttention"` (opset 27), in the generic form that
    importers leave (`--allow-unregistered-dialect`), or `"torch.operator"` with
    that name and builtin tensors, to a scan. Tokens are packed, `[B, T, H·D]`;
    `linattn.permute` presents them as `[B, H, T, D]` by strides, and results
    are written to the caller's memory. Only a state of another element type and
    a beta that all heads share are copied.

    | `update_rule` | the scan |
    |---|---|
    | `linear` | `S ← S + k vᵀ` |
    | `gated` | `S ← e^g S + k vᵀ` |
    | `delta` | `S ← S + β k (v − Sᵀk)ᵀ` |
    | `gated_delta` | the same after `S ← e^g S` |

    and `o = scale · Sᵀq`. Sums are f32, or f64 for f64 tokens. `chunk_size` is a
    hint without effect on the result and is not used.

    The rules of the operator, each an error on the op where it is broken:
    - (N1) query, key, value, past_state, decay, beta and erase_gate in this order;
      absent ones are left out at the end or have a type `none`. One or two
      results, output and present_state.
    - (N2) query, key, value, decay, beta and erase_gate are `[B, T, F]` tensors of
      one element type, f16, bf16, f32 or f64; their B and T agree.
    - (N3) `q_num_heads` and `kv_num_heads` are positive, the first a multiple of
      the second; query head h reads KV head ⌊h / (Hq / Hkv)⌋.
    - (N4) the packed sizes are Hq·d_k, Hkv·d_k, Hkv·d_v with one d_k, which is known
      unless `scale` is given.
    - (N5) `update_rule` is one of the four, `gated_delta` when absent.
    - (N6) decay comes exactly with `gated` and `gated_delta`, its last size Hkv (tried
      first) or Hkv·d_k.
    - (N7) beta comes exactly with `delta` and `gated_delta`, its last size Hkv or 1.
    - (N8) erase_gate (of later versions) comes with `delta` or `gated_delta` only, its
      last size Hkv·d_k; the delta rule then reads `Sᵀ(erase_gate ⊙ k)`.
    - (N9) past_state is `[B, Hkv, d_k, d_v]`; present_state has its element type, or
      the query's without one. output is `[B, T, Hq·d_v]` of the query's.
    - (N10) `scale` is a finite number, 1/√d_k where it is 0 or absent; no attribute is
      unknown.

    Before:

    ```mlir
    %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s0, %g, %b)
        {q_num_heads = 8 : si64, kv_num_heads = 4 : si64} : (tensor<1x?x512xf32>, …
    ```

    After:

    ```mlir
    %e = tensor.expand_shape %q [[0], [1], [2, 3]] … into tensor<1x?x8x64xf32>
    %h = linattn.permute %e [0, 2, 1, 3] : tensor<1x?x8x64xf32> to tensor<1x8x?x64xf32>
    %r, %s1 = linattn.scan %h, … decay(%g1) beta(%b1) update(delta) into(%d) init(%s0) …
    %p = linattn.permute %r [0, 2, 1, 3] : …
    %o = tensor.collapse_shape %p [[0], [1], [2, 3]] : …
    ```

    `"onnx.CausalConvWithState"` (opset 27), the short convolution before such a
    recurrence, becomes `linattn.causal_conv`; its `[B, C, T]` is a matter of
    strides too. Its rules:
    - (C1) input, weight, bias and past_state in this order; absent ones are left
      out at the end or have a type `none`. One or two results, output and
      present_state.
    - (C2) input is `[B, C, T]` of f16, bf16, f32 or f64; weight `[C, 1, k]`, bias
      `[C]` and past_state `[B, C, k − 1]` have its element type.
    - (C3) k is known and from 1 to 16.
    - (C4) `activation` is none, silu or swish, none when absent.
    - (C5) no other attribute.
    - (C6) output has the type of input, present_state is `[B, C, k − 1]`.

    Other ops are left alone.
  }];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numRaised", "raised", "Number of operators raised">
  ];
}

def LinAttnLowerShardToMPIPass : Pass<"linattn-lower-shard-to-mpi", "func::FuncOp"> {
  let summary = "Lower messages between processes to sends and receives of MPI";
  let description = [{
    Lowers the ops that `convert-shard-to-mpi` of LLVM 22 leaves, `shard.send`,
    `shard.recv` and `shard.broadcast`, to `mpi.send` and `mpi.recv` on memory,
    between ranks of MPI_COMM_WORLD. Process i of the grid, counted linearly, is
    rank i. A broadcast is a send to each process of the group. Grids must have
    static sizes.

    ```mlir
    shard.send %s on @grid grid_axes = [0] destination = [%i] : (tensor<4x8xf32>, index) -> tensor<4x8xf32>
    ```

    becomes

    ```mlir
    %m = bufferization.to_buffer %s read_only : tensor<4x8xf32> to memref<4x8xf32>
    %all = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    mpi.send(%all, %tag, %rank, %world) : memref<32xf32>, i32, i32
    ```
  }];
  let dependentDialects = [
    "arith::ArithDialect", "bufferization::BufferizationDialect", "memref::MemRefDialect",
    "mpi::MPIDialect", "scf::SCFDialect", "tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numMessages", "num-messages", "Number of ops lowered">
  ];
}

def LinAttnLowerMPIToLLVMPass : Pass<"linattn-lower-mpi-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Call the functions of MPI";
  let description = [{
    Applies the patterns of LLVM 22 for `mpi` ops to modules with such ops; LLVM
    has no pass that does. The implementation is MPICH unless the attribute
    `MPI:Implementation` of the module's `dlti.map` is `OpenMPI`.

    ```mlir
    mpi.send(%m, %tag, %rank, %world) : memref<32xf32>, i32, i32
    ```

    becomes a call of `MPI_Send`. A `shard.grid` that nothing names any more is removed.
  }];
  let dependentDialects = ["LLVM::LLVMDialect"];
}

#endif // LINATTN_TRANSFORMS_FOREIGNPASSES_TD
