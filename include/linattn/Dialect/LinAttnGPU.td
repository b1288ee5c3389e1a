//===- LinAttnGPU.td - Schedules and launches of GPU kernels *- tablegen --===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNGPU_TD
#define LINATTN_DIALECT_LINATTNGPU_TD

include "linattn/Dialect/LinAttnAttrs.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def LinAttn_ScheduleAttr : LinAttn_Attr<"Schedule", "schedule"> {
  let summary = "the schedule of a GPU kernel";
  let description = [{
    Written by `linattn-select-schedule` or by the user as the attribute
    `linattn.schedule` of an op on buffers, read by `linattn-to-kernel`.

    | parameter | meaning |
    |---|---|
    | `form` | `token`: one token after the other; `chunk`: products of matrices, chunk by chunk; `quadratic`: queries against tiles of keys |
    | `mma` | what multiplies matrices: `fma`, `mma_sync`, or `wgmma`, which is for sm_90a alone |
    | `chunk` | tokens per chunk, tokens staged together by the token form, or keys per tile |
    | `warps` | warps of a thread block |
    | `stages` | chunks or tiles that are in shared memory at once |
    | `value_slice` | columns of the state that a thread block owns |
    | `split` | segments of T that run in parallel |
    | `summands` | 16-bit numbers that a number of f32 is taken for in products: 3 are all of it, 2 keep 16 bits, 1 keeps 8 |
    | `copy` | how tiles of tokens come to shared memory: `cp_async`, or `tma`, which is for `wgmma` alone |

    Example:
    `#linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>`.
  }];
  let parameters = (ins
    EnumParameter<LinAttn_Form>:$form,
    EnumParameter<LinAttn_Mma>:$mma,
    "int64_t":$chunk,
    "int64_t":$warps,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"int64_t", "0">:$value_slice,
    DefaultValuedParameter<"int64_t", "1">:$split,
    DefaultValuedParameter<"int64_t", "3">:$summands,
    DefaultValuedParameter<"::mlir::linattn::CopyEngine",
                           "::mlir::linattn::CopyEngine::CpAsync">:$copy);
  let builders = [
    AttrBuilder<(ins "Form":$form, "Mma":$mma, "int64_t":$chunk,
                     "int64_t":$warps, CArg<"int64_t", "1">:$stages,
                     CArg<"int64_t", "0">:$value_slice,
                     CArg<"int64_t", "1">:$split), [{
      return $_get($_ctxt, form, mma, chunk, warps, stages, value_slice, split,
                   /*summands=*/3, CopyEngine::CpAsync);
    }]>
  ];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def LinAttn_LaunchValueAttr : LinAttn_Attr<"LaunchValue", "launch_value"> {
  let summary = "something a launch takes from its operands";
  let description = [{
    | kind | value |
    |---|---|
    | `pointer` | the address of the first element of operand `operand`; it and every stride but the innermost are multiples of `align` bytes, and the innermost stride is 1 |
    | `size` | the size of dimension `dim` of the operand, as `i32` |
    | `stride` | the stride of that dimension in elements, as `i64` |
  }];
  let parameters = (ins
    EnumParameter<LinAttn_LaunchValueKind>:$kind,
    "int64_t":$operand,
    DefaultValuedParameter<"int64_t", "0">:$dim,
    DefaultValuedParameter<"int64_t", "1">:$align);
  let assemblyFormat = "`<` $kind `,` struct($operand, $dim, $align) `>`";
  let genVerifyDecl = 1;
}

def LinAttn_LaunchPlanAttr : LinAttn_Attr<"LaunchPlan", "launch_plan"> {
  let summary = "how a kernel is launched";
  let description = [{
    The attribute `linattn.launch_plan` of a kernel holds all that a runtime must
    know to launch it on the operands of a `linattn.launch`:

    | parameter | meaning |
    |---|---|
    | `grid` | three results, the grid in x, y and z; its symbols are `sizes` |
    | `block` | threads of a block, all in x |
    | `shared` | bytes of dynamic shared memory |
    | `sizes` | the sizes the grid depends on |
    | `args` | the arguments of the kernel, in order |

    A grid with a zero is not launched.

    Example:

    ```mlir
    #linattn.launch_plan<grid = affine_map<()[s0, s1] -> (s0 * s1, 1, 1)>,
        block = 128, shared = 57344,
        sizes = [<size, operand = 0, dim = 0>, <size, operand = 0, dim = 1>],
        args = [<pointer, operand = 0, align = 16>, <stride, operand = 0, dim = 2>]>
    ```
  }];
  let parameters = (ins
    "::mlir::AffineMap":$grid,
    "int64_t":$block,
    "int64_t":$shared,
    ArrayRefParameter<"::mlir::linattn::LaunchValueAttr">:$sizes,
    ArrayRefParameter<"::mlir::linattn::LaunchValueAttr">:$args);
  let assemblyFormat = [{
    `<` `grid` `=` $grid `,` `block` `=` $block `,` `shared` `=` $shared `,`
    `sizes` `=` `[` $sizes `]` `,` `args` `=` `[` $args `]` `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// launch
//===----------------------------------------------------------------------===//

def LinAttn_LaunchOp : LinAttn_Op<"launch", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel on buffers";
  let description = [{
    Launches the kernel that `linattn-to-kernel` made of an op, on the buffers
    of that op. The kernel's `linattn.launch_plan` lists its arguments and its
    grid.

    Example:

    ```mlir
    linattn.launch @scan_module::@scan(%q, %k, %v, %o, %s)
      : memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
        memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Variadic<AnyStridedMemRef>:$buffers);
  let assemblyFormat = "$kernel `(` $buffers `)` attr-dict `:` type($buffers)";
  let extraClassDeclaration = [{
    /// The attribute of a kernel that holds its plan.
    static constexpr ::llvm::StringLiteral getPlanAttrName() {
      return "linattn.launch_plan";
    }
    /// The attribute of an op that holds its schedule.
    static constexpr ::llvm::StringLiteral getScheduleAttrName() {
      return "linattn.schedule";
    }
  }];
}

#endif // LINATTN_DIALECT_LINATTNGPU_TD
