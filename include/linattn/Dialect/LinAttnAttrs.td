//===- LinAttnAttrs.td - Attributes ------------------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNATTRS_TD
#define LINATTN_DIALECT_LINATTNATTRS_TD

include "linattn/Dialect/LinAttnEnums.td"

class LinAttn_Attr<string name, string mnem> : AttrDef<LinAttn_Dialect, name> {
  let mnemonic = mnem;
}

def LinAttn_FeatureMapAttr : LinAttn_Attr<"FeatureMap", "feature_map"> {
  let summary = "the feature map φ of queries and keys";
  let description = !strconcat([{
    | kind | φ(x) |
    |---|---|}], LinAttn_MapTables.elements, [{
    | `region` | the scalar function in the op's region |

    The maps below need a whole token x ∈ R^d, and stand in `linattn.feature_map`
    only. W, W1, W2, b, γ and β are its `params`, t is the token's position.

    | kind | params | features | φ(x) |
    |---|---|---|---|}], LinAttn_MapTables.tokens, [{

    Parameters beside the kind: `scale` multiplies x beforehand (d^−¼ makes FAVOR+
    estimate softmax(QKᵀ/√d)); `log` leaves the exponential of `favor`,
    `favor_hyperbolic` and `hedgehog_exp` to a consumer with the map `exp`, which
    stabilises it under a normalizer: by the maximum of each query, and one
    constant for all keys of a head, causally their running maximum. The eps of
    that normalizer is the ε that others add to the features.

    Examples: `#linattn.feature_map<elu1>`,
    `#linattn.feature_map<favor, log = true, scale = 0.5>`.
  }]);
  let parameters = (ins
    EnumParameter<LinAttn_FeatureMapKind>:$kind,
    DefaultValuedParameter<"bool", "false">:$log,
    DefaultValuedParameter<"int64_t", "1">:$shifts,
    DefaultValuedParameter<"int64_t", "0">:$max_length,
    OptionalParameter<"::mlir::FloatAttr">:$scale,
    OptionalParameter<"::mlir::FloatAttr">:$eps);
  let builders = [AttrBuilder<(ins "::mlir::linattn::FeatureMapKind":$kind), [{
    return $_get($_ctxt, kind, false, 1, 0, ::mlir::FloatAttr(), ::mlir::FloatAttr());
  }]>];
  let assemblyFormat = "`<` $kind (`,` struct($log, $shifts, $max_length, $scale, $eps)^)? `>`";
  let genVerifyDecl = 1;
}

def LinAttn_NormalizeAttr : LinAttn_Attr<"Normalize", "normalize"> {
  let summary = "how an output is divided by its denominator q·z";
  let description = [{
    `num / (den + eps)`; with a `floor` instead `num / max(den, floor)`; with an
    `abs_floor` `num / (max(|den|, abs_floor) + eps)`, eps being 0 there unless
    given (mLSTM: abs_floor 1). A `clamp` c comes last and limits the output to
    [−c, c]. A zero denominator with a positive eps gives 0.

    Examples: `#linattn.normalize<eps = 1.0e-6>`,
    `#linattn.normalize<floor = 1.0e-4, clamp = 10.0>`.
  }];
  let parameters = (ins
    OptionalParameter<"::mlir::FloatAttr">:$eps,
    OptionalParameter<"::mlir::FloatAttr">:$floor,
    OptionalParameter<"::mlir::FloatAttr">:$abs_floor,
    OptionalParameter<"::mlir::FloatAttr">:$clamp);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def LinAttn_PatternAttr : LinAttn_Attr<"Pattern", "pattern"> {
  let summary = "which keys a query of attention sees";
  let description = [{
    Query i stands at position p = i + Tk − Tq, and sees key j if

    ```
    |p − j| < window · dilation  and  (p − j) mod dilation = 0,  or j < globals,  or p < globals
    ```

    and j ≤ p where the attention is causal. A window of 0 has no bound. `window`
    alone is a sliding window (Mistral; Longformer, Beltagy et al., 2020),
    `dilation` its dilated kind, a window of 0 with a `dilation` the strided
    pattern of Child et al., 2019. `globals` counts the first tokens, which all
    others see and which see all others (Longformer, BigBird); causal, they are
    attention sinks (StreamingLLM, Xiao et al., 2023).

    Example: `#linattn.pattern<window = 512, globals = 4>`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0">:$window,
    DefaultValuedParameter<"int64_t", "1">:$dilation,
    DefaultValuedParameter<"int64_t", "0">:$globals);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The distance from which on keys are out of sight; 0 without a window.
    int64_t getReach() const { return getWindow() * getDilation(); }
  }];
}

def LinAttn_ConfigAttr : LinAttn_Attr<"Config", "config"> {
  let summary = "the schedule chosen for an op";
  let description = [{
    Written by `linattn-select-form` or by the user, only read by later passes.

    | parameter | meaning |
    |---|---|
    | `form` | the schedule |
    | `chunk` | tokens per chunk of the chunk form |
    | `rows`, `cols` | rows and columns of the state tile that stays in registers |
    | `block` | tokens that stream past one tile before the next is loaded |
    | `segment` | tokens per segment of the segments form; 0: from the number of tokens |
    | `whole` | tokens up to which a sequence is one chunk of the chunk form |
    | `few` | tokens up to which a sequence runs token by token instead |

    Example: `#linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>`.
  }];
  let parameters = (ins
    EnumParameter<LinAttn_Form>:$form,
    DefaultValuedParameter<"int64_t", "0">:$chunk,
    DefaultValuedParameter<"int64_t", "0">:$rows,
    DefaultValuedParameter<"int64_t", "0">:$cols,
    DefaultValuedParameter<"int64_t", "0">:$block,
    DefaultValuedParameter<"int64_t", "0">:$segment,
    DefaultValuedParameter<"int64_t", "0">:$whole,
    DefaultValuedParameter<"int64_t", "0">:$few);
  let builders = [
    AttrBuilder<(ins "::mlir::linattn::Form":$form, "int64_t":$chunk,
      "int64_t":$rows, "int64_t":$cols, "int64_t":$block), [{
      return $_get($_ctxt, form, chunk, rows, cols, block, /*segment=*/0,
                   /*whole=*/0, /*few=*/0);
    }]>
  ];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

// A matrix unit multiplies bf16 numbers. `summands` says how many of them stand
// for one element of each matrix of a product.
def LinAttn_Summands : OptionalAttr<DenseI64ArrayAttr>;

#endif // LINATTN_DIALECT_LINATTNATTRS_TD
