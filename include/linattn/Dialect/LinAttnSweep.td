//===- LinAttnSweep.td - A state read along both sides -----*- tablegen -*-===//
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

#ifndef LINATTN_DIALECT_LINATTNSWEEP_TD
#define LINATTN_DIALECT_LINATTNSWEEP_TD

def LinAttn_SweepOp : LinAttn_RecurrenceOp<"sweep", [AttrSizedOperandSegments]> {
  let summary = "a scan whose state is read along its keys and along its values";
  let description = [{
    The state of a scan's backward pass: one pass over the tokens gives both
    products of a state with vectors. Per head, for
    t = 0, 1, …:

    ```
    r_t = S_{t-1}ᵀ a_t
    S_t = Diag(e^{decay_t}) S_{t-1} + b_t r_tᵀ + k_t v_tᵀ
    o_t = scale · Xᵀ q_t        X = S_t (readout inclusive) or S_{t-1} (exclusive)
    p_t = scale · X x_t         x: value_query, p: value_output
    ```

    Without `a` and `b` the update is additive. The first output is that of
    `linattn.scan` with `update(add)`, or `update(dplr) transition(before)`; the
    second one that of the scan of the transposed state, whose keys and values
    are exchanged. `linattn-split-sweeps` writes these scans; a schedule in
    chunks shares the state, its updates and the packed tokens instead.
    `cu_seqlens`, `reverse`, `init` and the type of the state as in
    `linattn.scan`.

    Constraints, beside the operand types:
    - (W1) query and key have the same head size, value and value_query the same
      value size, output has the latter, value_output the former.
    - (W2) all have the same batch size, head count and sequence length.
    - (W3) all tokens have the same element type.
    - (W4) state is `[B, H, K, V]` of the accumulation type or of f64.
    - (W5) decay is `[H]`, `[B, H, T]` or `[B, H, T, K]`; a and b are
      `[B, H, T, K]`.
    - (W6) a and b come together.
    - (W7) cu_seqlens needs batch size 1; the state's first dimension is then
      one less than the number of offsets.
    - (W8) scale is 0 or a normal number of the state's type.
    - (W9) a constant decay holds natural logarithms of at most 0.

    Example:

    ```mlir
    %o, %p, %s1 = linattn.sweep %q, %k, %v decay(%g) value_query(%x)
        into(%dest, %value_dest) init(%s0) {reverse}
      : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x32xf32>, tensor<2x8x?xf32>,
         tensor<2x8x?x32xf32>, tensor<2x8x?x32xf32>, tensor<2x8x?x64xf32>, tensor<2x8x64x32xf32>)
      -> (tensor<2x8x?x32xf32>, tensor<2x8x?x64xf32>, tensor<2x8x64x32xf32>)
    ```
  }];
  let arguments = (ins
    LinAttn_Tokens:$query, LinAttn_Tokens:$key, LinAttn_Tokens:$value,
    Optional<LinAttn_Gate>:$decay, Optional<LinAttn_Gate>:$a,
    Optional<LinAttn_Gate>:$b, LinAttn_Tokens:$value_query,
    Optional<LinAttn_Offsets>:$cu_seqlens,
    LinAttn_Tokens:$output, LinAttn_Tokens:$value_output,
    LinAttn_State:$state,
    DefaultValuedAttr<LinAttn_ReadoutAttr, "::mlir::linattn::Readout::Inclusive">:$readout,
    UnitAttr:$reverse,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<LinAttn_ConfigAttr>:$config);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    (`decay` `(` $decay^ `)`)? (`a` `(` $a^ `)`)? (`b` `(` $b^ `)`)?
    `value_query` `(` $value_query `)`
    (`cu_seqlens` `(` $cu_seqlens^ `)`)?
    (`readout` `(` custom<Keyword>($readout)^ `)`)?
    `into` `(` $output `,` $value_output `)` `init` `(` $state `)`
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = baseDeclaration # [{
    /// The scan with the first output and the state, before the op. On buffers
    /// it writes to those of the op.
    ::mlir::linattn::ScanOp createScan(::mlir::OpBuilder &b);
  }];
}

#endif // LINATTN_DIALECT_LINATTNSWEEP_TD
