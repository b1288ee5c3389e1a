//===- LinAttnBase.td - The linattn dialect ----------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNBASE_TD
#define LINATTN_DIALECT_LINATTNBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def LinAttn_Dialect : Dialect {
  let name = "linattn";
  let cppNamespace = "::mlir::linattn";
  let summary = "Linear attention, its recurrences and the forms they run in";
  let description = [{
    Attention whose weights are a product of features, `φ(q)·φ(k)`, needs no
    N×N matrix: `(φ(Q)φ(K)ᵀ)V = φ(Q)(φ(K)ᵀV)`, and the causal case is a
    recurrence over a state of fixed size. The dialect states the attention once
    and holds every form it can take:

    | op | meaning |
    |---|---|
    | `linattn.attention` | what users write: the quadratic formula, linear or softmax weights |
    | `linattn.quadratic` | the same formula as a structured op with a destination |
    | `linattn.state`, `linattn.read` | the reassociated form: `S = φ(K)ᵀV`, then `O = φ(Q)S` |
    | `linattn.scan` | the recurrent form: state in, outputs and state out |
    | `linattn.sweep` | a scan that also reads its state along the values: gradients |
    | `linattn.feature_map` | φ alone |
    | `linattn.permute` | the same tensor under other strides |
    | `linattn.selective_scan`, `linattn.diagonal_scan`, `linattn.wkv4`, `linattn.log_linear` | recurrences that the scan cannot say: Mamba-1 and S4D, LRU, RWKV-4, log-linear attention |
    | `linattn.output_norm` | RMS or layer norm of outputs, per token and head |
    | `linattn.causal_conv` | the short convolution before a recurrence |

    **Shapes.** Logical dimensions are always `[B, H, T, D]`: batch, head, token,
    feature. Other memory layouts are strides of the buffers. A state is
    `[B, H, K, V]`, its normaliser `[B, H, K]`, its running maximum `[B, H]`.

    **Heads.** Head counts divide one another. With `Hq`, `Hk`, `Hv` heads of
    query, key and value there are `H = max(Hk, Hv)` states and `max(Hq, H)`
    output heads; output head `i` of `Ho` reads query head `⌊i·Hq/Ho⌋` and state
    `⌊i·H/Ho⌋`, state `j` is written by key head `⌊j·Hk/H⌋` and value head
    `⌊j·Hv/H⌋`.

    **Types.** Tokens are f16, bf16, f32 or f64; states and sums are f32, or f64
    when the tokens are f64. A state may be f64 beside narrower tokens, and sums
    are then f64 as well.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasCanonicalizer = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def LinAttn_Float : AnyTypeOf<[F16, BF16, F32, F64]>;

class LinAttn_Shaped<list<int> ranks, string what> :
    AnyTypeOf<[TensorRankOf<[LinAttn_Float], ranks>,
               MemRefRankOf<[LinAttn_Float], ranks>],
              what # " as a ranked tensor or memref of f16, bf16, f32 or f64">;

def LinAttn_Tokens : LinAttn_Shaped<[4], "[B, H, T, D] tokens">;
def LinAttn_State : LinAttn_Shaped<[4], "[B, H, K, V] state">;
def LinAttn_Normalizer : LinAttn_Shaped<[3], "[B, H, K] normalizer">;
def LinAttn_RunningMax : LinAttn_Shaped<[2], "[B, H] running maximum">;
def LinAttn_Snapshots : LinAttn_Shaped<[3, 4, 5],
    "[B, P, H, K, V], [B, P, H, K] or [B, P, H] snapshots">;
def LinAttn_Gate : LinAttn_Shaped<[1, 3, 4], "[H], [B, H, T] or [B, H, T, D] gate">;
def LinAttn_Bonus : LinAttn_Shaped<[2], "[H, K] bonus">;
def LinAttn_PerHead : LinAttn_Shaped<[1], "[H] numbers of heads">;
def LinAttn_Mask :
    AnyTypeOf<[TensorRankOf<[I1], [2]>, MemRefRankOf<[I1], [2]>],
              "[B, T] mask as a ranked tensor or memref of i1">;
def LinAttn_Offsets :
    AnyTypeOf<[TensorRankOf<[I32, I64], [1]>, MemRefRankOf<[I32, I64], [1]>],
              "[N+1] sequence offsets as a ranked tensor or memref of i32 or i64">;

def LinAttn_Indices :
    AnyTypeOf<[TensorRankOf<[I32, I64], [1]>, MemRefRankOf<[I32, I64], [1]>],
              "[N] indices of states as a ranked tensor or memref of i32 or i64">;

def LinAttn_Lengths :
    AnyTypeOf<[TensorRankOf<[I32, I64], [1]>, MemRefRankOf<[I32, I64], [1]>],
              "[B] lengths as a ranked tensor or memref of i32 or i64">;

#endif // LINATTN_DIALECT_LINATTNBASE_TD
