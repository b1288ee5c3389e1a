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
  let description = [{
    | kind | φ(x) |
    |---|---|
    | `identity` | x |
    | `relu`, `relu2` | max(x, 0), and its square |
    | `elu1` | x + 1 for x > 0, else e^x (Katharopoulos et al., 2020) |
    | `softmax_kernel` | e^(x − max x), the maximum over the features of one token |
    | `exp` | e^x. Under a normalizer it is stabilised: queries by their row maximum, keys by the running maximum of their head, earlier contributions rescaled; eps then meets the stabilised denominator |
    | `region` | the scalar function in the op's region |

    Example: `#linattn.feature_map<elu1>`.
  }];
  let parameters = (ins EnumParameter<LinAttn_FeatureMapKind>:$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def LinAttn_NormalizeAttr : LinAttn_Attr<"Normalize", "normalize"> {
  let summary = "how an output is divided by its denominator q·z";
  let description = [{
    `num / (den + eps)`; with a `floor` instead `num / max(den, floor)`. A
    `clamp` c comes last and limits the output to [−c, c]. A zero denominator
    with a positive eps gives 0.

    Examples: `#linattn.normalize<eps = 1.0e-6>`,
    `#linattn.normalize<floor = 1.0e-4, clamp = 10.0>`.
  }];
  let parameters = (ins
    OptionalParameter<"::mlir::FloatAttr">:$eps,
    OptionalParameter<"::mlir::FloatAttr">:$floor,
    OptionalParameter<"::mlir::FloatAttr">:$clamp);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
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

    Example: `#linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>`.
  }];
  let parameters = (ins
    EnumParameter<LinAttn_Form>:$form,
    DefaultValuedParameter<"int64_t", "0">:$chunk,
    DefaultValuedParameter<"int64_t", "0">:$rows,
    DefaultValuedParameter<"int64_t", "0">:$cols,
    DefaultValuedParameter<"int64_t", "0">:$block);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // LINATTN_DIALECT_LINATTNATTRS_TD
