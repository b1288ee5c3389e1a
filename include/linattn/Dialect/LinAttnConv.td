//===- LinAttnConv.td - The short causal convolution -------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by LinAttnOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNCONV_TD
#define LINATTN_DIALECT_LINATTNCONV_TD

def LinAttn_ConvWeight : LinAttn_Shaped<[2], "[C, W] weights">;
def LinAttn_ConvState : LinAttn_Shaped<[3], "[B, C, S] state">;

def LinAttn_CausalConvOp : LinAttn_RecurrenceOp<"causal_conv", [AttrSizedOperandSegments]> {
  let summary = "short causal convolution of every channel, with an activation";
  let description = [{
    The convolution that stands before the recurrence in Mamba, gated DeltaNet,
    KDA and their kin. Per channel c, for t = 0, 1, …, with W weights and
    δ = `dilation`:

    ```
    o_t[c] = act(bias[c] + Σ_k weight[c, k] · x_{t − (W−1−k)·δ}[c])
    ```

    `activation` is silu, x·σ(x), or sigmoid; without it act(x) = x. The inputs
    before the first token are those of the state: the last S ≥ (W−1)·δ inputs
    of each channel, oldest first, zeros to start from nothing. Terms are added
    in the order of k, from the bias on, in f32, or in f64 for inputs of f64.

    Starts from the state it is given and returns the final one: a sequence
    split anywhere gives the same bits. `cu_seqlens` and `reverse` as in
    `linattn.scan`: with `reverse` the newest of the inputs in the state is the
    one with the lowest position.

    Constraints, beside the operand types:
    - (K1) input and output have the same shape and element type.
    - (K2) weight is `[C, W]` with a static W from 1 to 16.
    - (K3) bias is `[C]`.
    - (K4) the state is `[B, C, S]` with the input's element type and a static
      S of at least (W−1)·dilation.
    - (K5) dilation is at least 1.
    - (K6) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.

    Example:

    ```mlir
    %y, %s1 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%dest) init(%s0)
      : (tensor<2x?x512xbf16>, tensor<512x4xbf16>, tensor<512xbf16>, tensor<2x?x512xbf16>,
         tensor<2x512x3xbf16>) -> (tensor<2x?x512xbf16>, tensor<2x512x3xbf16>)
    ```
  }];
  let arguments = (ins
    LinAttn_ChannelTokens:$input, LinAttn_ConvWeight:$weight,
    Optional<LinAttn_Channels>:$bias, Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_ChannelTokens:$output, LinAttn_ConvState:$state,
    OptionalAttr<LinAttn_ActivationAttr>:$activation,
    DefaultValuedAttr<I64Attr, "1">:$dilation, UnitAttr:$reverse);
  let assemblyFormat = [{
    $input `,` $weight (`bias` `(` $bias^ `)`)?
    (`activation` `(` custom<Keyword>($activation)^ `)`)?
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    `into` `(` $output `)` `init` `(` $state `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// W, how many inputs an output has.
    int64_t getWidth() {
      return ::llvm::cast<::mlir::ShapedType>(getWeight().getType()).getDimSize(1);
    }
    /// S, how many inputs the state holds.
    int64_t getStateLength() {
      return ::llvm::cast<::mlir::ShapedType>(getState().getType()).getDimSize(2);
    }
  }];
}

#endif // LINATTN_DIALECT_LINATTNCONV_TD
