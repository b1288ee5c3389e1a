//===- LinAttnEnums.td - Enumerations ----------------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNENUMS_TD
#define LINATTN_DIALECT_LINATTNENUMS_TD

include "linattn/Dialect/LinAttnBase.td"
include "linattn/Analysis/FeatureMaps.td"
include "linattn/Analysis/UpdateRules.td"

class LinAttn_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::mlir::linattn";
}

def LinAttn_Weights : LinAttn_Enum<"Weights", "how a query weighs the keys", [
  I32EnumAttrCase<"Linear", 0, "linear">,
  I32EnumAttrCase<"Softmax", 1, "softmax">
]>;
def LinAttn_WeightsAttr : EnumAttr<LinAttn_Dialect, LinAttn_Weights, "weights">;

def LinAttn_FeatureMapKind : LinAttn_Enum<"FeatureMapKind", "a feature map φ", LinAttn_MapCases>;

def LinAttn_Update : LinAttn_Enum<"Update", "how a token is written into the state", LinAttn_Rules>;
def LinAttn_UpdateAttr : EnumAttr<LinAttn_Dialect, LinAttn_Update, "update">;

def LinAttn_Readout : LinAttn_Enum<"Readout", "whether a token reads its own write", [
  I32EnumAttrCase<"Inclusive", 0, "inclusive">,
  I32EnumAttrCase<"Exclusive", 1, "exclusive">
]>;
def LinAttn_ReadoutAttr : EnumAttr<LinAttn_Dialect, LinAttn_Readout, "readout">;

def LinAttn_Transition : LinAttn_Enum<"Transition",
    "whether the rank-1 transition reads the state before or after the decay", [
  I32EnumAttrCase<"Before", 0, "before">,
  I32EnumAttrCase<"After", 1, "after">
]>;
def LinAttn_TransitionAttr : EnumAttr<LinAttn_Dialect, LinAttn_Transition, "transition">;

def LinAttn_Form : LinAttn_Enum<"Form", "the schedule a recurrence runs in", [
  I32EnumAttrCase<"Auto", 0, "auto">,
  I32EnumAttrCase<"Quadratic", 1, "quadratic">,
  I32EnumAttrCase<"Token", 2, "token">,
  I32EnumAttrCase<"StateTile", 3, "state_tile">,
  I32EnumAttrCase<"Chunk", 4, "chunk">,
  I32EnumAttrCase<"Segments", 5, "segments">
]>;

def LinAttn_Mma : LinAttn_Enum<"Mma", "what multiplies matrices on a GPU", [
  I32EnumAttrCase<"Fma", 0, "fma">,
  I32EnumAttrCase<"MmaSync", 1, "mma_sync">,
  I32EnumAttrCase<"Wgmma", 2, "wgmma">
]>;

def LinAttn_CopyEngine : LinAttn_Enum<"CopyEngine", "how tokens come to shared memory", [
  I32EnumAttrCase<"CpAsync", 0, "cp_async">,
  I32EnumAttrCase<"Tma", 1, "tma">
]>;

def LinAttn_LaunchValueKind : LinAttn_Enum<"LaunchValueKind",
    "what a launch takes from an operand", [
  I32EnumAttrCase<"Pointer", 0, "pointer">,
  I32EnumAttrCase<"Size", 1, "size">,
  I32EnumAttrCase<"Stride", 2, "stride">
]>;

#endif // LINATTN_DIALECT_LINATTNENUMS_TD
