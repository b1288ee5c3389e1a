//===- FeatureMaps.td - The table of feature maps ----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every feature map, each once. The enumerators of the dialect, the rows of
// `getFeatureMaps` (Analysis/FeatureMaps.h), the documentation of
// `#linattn.feature_map` and the functions of `linattn.feature_maps` are made of
// it. Words such as `positive` are names in lib/Analysis/FeatureMaps.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_FEATUREMAPS_TD
#define LINATTN_ANALYSIS_FEATUREMAPS_TD

include "linattn/Analysis/Tables.td"

/// The number of features, for people and as a formula.
class LinAttn_MapSize<string doc, string cpp> {
  string features = doc;
  string formula = cpp;
}
def LinAttn_MapSameSize : LinAttn_MapSize<"d", "sameSize">;
def LinAttn_MapTwiceTheSize : LinAttn_MapSize<"2d", "twiceTheSize">;
def LinAttn_MapTwiceTheSizeShifted : LinAttn_MapSize<"2dν", "twiceTheSize">;
def LinAttn_MapRows : LinAttn_MapSize<"m", "rows">;
def LinAttn_MapTwiceTheRows : LinAttn_MapSize<"2m", "twiceTheRows">;
def LinAttn_MapPairs : LinAttn_MapSize<"d(d + 1)/2", "pairs">;
def LinAttn_MapUpToPairs : LinAttn_MapSize<"1 + d + d(d + 1)/2", "upToPairs">;
def LinAttn_MapUpToAllPairs : LinAttn_MapSize<"1 + d + d²", "upToAllPairs">;

/// The parameters, as the documentation spells them and as a list of them.
class LinAttn_MapParams<string spelled, string cpp> {
  string doc = spelled;
  string names = cpp;
}
def LinAttn_MapNoParams : LinAttn_MapParams<"", "none">;
def LinAttn_MapProjection : LinAttn_MapParams<"W", "projection">;
def LinAttn_MapSquareMatrix : LinAttn_MapParams<"W", "square">;
def LinAttn_MapAffine : LinAttn_MapParams<"W, b?", "affine">;
def LinAttn_MapTwoMatrices : LinAttn_MapParams<"W1, W2", "two">;
def LinAttn_MapTwoSquares : LinAttn_MapParams<"W1, W2", "twoSquare">;
def LinAttn_MapNormParams : LinAttn_MapParams<"γ, β", "norm">;

class LinAttn_MapCase<string symbol, int value, string name>
    : I32EnumAttrCase<symbol, value, name>;

/// One row. `sign` is that of φ(x), `weightSign` that of φ(q)·φ(k) where it says
/// more; `eps` is the one it has unless given; `flags` are FeatureMapTraits'.
class LinAttn_Map<string symbol, int value, string name, string formula,
                  string sign, LinAttn_MapSize size, LinAttn_MapParams params>
    : LinAttn_MapCase<symbol, value, name> {
  bits<32> number = value;
  string mapFormula = formula;
  string mapSign = sign;
  string mapSize = size.formula;
  string features = size.features;
  string mapParameters = params.names;
  string docParams = params.doc;
  // The row of the documentation: none without a name.
  string docName = "`" # name # "`";
  string docFormula = formula;
  string source = "";
  string weightSign = "any";
  string eps = "{}";
  string flags = "0";
}

/// A map of one number.
class LinAttn_ElementMap<string symbol, int value, string name, string formula,
                         string sign>
    : LinAttn_Map<symbol, value, name, formula, sign, LinAttn_MapSameSize,
                  LinAttn_MapNoParams>;

/// A map that needs a whole token, in linattn.feature_map only.
class LinAttn_TokenMap<string symbol, int value, string name, string formula,
                       string sign = "any",
                       LinAttn_MapSize size = LinAttn_MapSameSize,
                       LinAttn_MapParams params = LinAttn_MapNoParams>
    : LinAttn_Map<symbol, value, name, formula, sign, size, params> {
  let flags = "T::Token";
}

def : LinAttn_ElementMap<"Identity", 0, "identity", "x", "any">;
def : LinAttn_ElementMap<"Relu", 1, "relu", "max(x, 0)", "notNegative"> {
  let docName = "`relu`, `relu2`";
  let docFormula = "max(x, 0), and its square";
}
def : LinAttn_ElementMap<"Relu2", 2, "relu2", "max(x, 0)²", "notNegative"> {
  let docName = "";
}
def : LinAttn_ElementMap<"Elu1", 3, "elu1", "x + 1 for x > 0, else e^x",
                         "positive"> {
  let source = "Katharopoulos et al., 2020";
}
def : LinAttn_ElementMap<"SoftmaxKernel", 4, "softmax_kernel",
    "e^(x − max x), the maximum over the features of one token", "positive">;
def : LinAttn_ElementMap<"Exp", 5, "exp", "e^x", "positive"> {
  let docFormula = "e^x. Under a normalizer it is stabilised: queries by their "
      "row maximum, keys by the running maximum of their head, earlier "
      "contributions rescaled; eps then meets the stabilised denominator";
}
// The function in an op's region has no row.
def : LinAttn_MapCase<"Region", 6, "region">;

def : LinAttn_TokenMap<"Softmax", 7, "softmax", "softmax(x)", "positive">;
def : LinAttn_TokenMap<"L2norm", 8, "l2norm", "x / √(x·x + eps)"> {
  let docFormula = "x / √(x·x + eps), eps 1e-6";
  let eps = "1e-6";
}
def : LinAttn_TokenMap<"SumNorm", 9, "sum_norm", "x / (Σx + eps)"> {
  let docFormula = "x / (Σx + eps), eps 1e-4";
  let eps = "1e-4";
}
def : LinAttn_TokenMap<"Favor", 10, "favor", "m^−½ e^(Wx − x·x/2)", "positive",
                       LinAttn_MapRows, LinAttn_MapProjection> {
  let source = "FAVOR+; Choromanski et al., 2021";
  let flags = "T::Token | T::Log | T::Random";
}
def : LinAttn_TokenMap<"FavorHyperbolic", 11, "favor_hyperbolic",
                       "(2m)^−½ e^([Wx, −Wx] − x·x/2)", "positive",
                       LinAttn_MapTwiceTheRows, LinAttn_MapProjection> {
  let flags = "T::Token | T::Variant | T::Log | T::Random";
}
def : LinAttn_TokenMap<"RandomFourier", 12, "random_fourier",
                       "m^−½ [sin Wx, cos Wx]", "any", LinAttn_MapTwiceTheRows,
                       LinAttn_MapProjection> {
  let source = "Rahimi and Recht, 2007; RFA, Peng et al., 2021";
  let flags = "T::Token | T::Random";
}
def : LinAttn_TokenMap<"RandomFourierExp", 13, "random_fourier_exp",
                       "m^−½ e^(x·x/2) [sin Wx, cos Wx]", "any",
                       LinAttn_MapTwiceTheRows, LinAttn_MapProjection> {
  let docFormula = "the same times e^(x·x/2)";
  let flags = "T::Token | T::Variant | T::Random";
}
def : LinAttn_TokenMap<"T2r", 14, "t2r", "max(Wx + b, 0)", "notNegative",
                       LinAttn_MapRows, LinAttn_MapAffine> {
  let source = "Kasai et al., 2021";
}
def : LinAttn_TokenMap<"Hadamard", 15, "hadamard", "W1x ⊙ W2x", "any",
                       LinAttn_MapRows, LinAttn_MapTwoMatrices>;
// Angles from 0 to π/2.
def : LinAttn_TokenMap<"Cosformer", 16, "cosformer",
    "[max(x, 0) cos θ, max(x, 0) sin θ], θ = πt / 2·max_length", "notNegative",
    LinAttn_MapTwiceTheSize> {
  let source = "Qin et al., 2022";
  let flags = "T::Token | T::Positions";
}
def : LinAttn_TokenMap<"Hedgehog", 17, "hedgehog", "softmax([Wx, −Wx])",
                       "positive", LinAttn_MapTwiceTheSize, LinAttn_MapSquareMatrix> {
  let source = "Zhang et al., 2024";
}
def : LinAttn_TokenMap<"HedgehogExp", 18, "hedgehog_exp", "e^[Wx, −Wx]",
                       "positive", LinAttn_MapTwiceTheSize, LinAttn_MapSquareMatrix> {
  let flags = "T::Token | T::Variant | T::Log";
}
def : LinAttn_TokenMap<"Dpfp", 19, "dpfp",
    "r ⊙ roll(r, j) for j = 1…ν, r = max([x, −x], 0), ν = shifts",
    "notNegative", LinAttn_MapTwiceTheSizeShifted> {
  let source = "Schlag et al., 2021";
  let flags = "T::Token | T::Shifts";
}
// Weights 1 + y + y²/2.
def : LinAttn_TokenMap<"Taylor", 20, "taylor",
    "[1, x_i / d^¼, x_i² / √2d, x_i x_j / √d (i > j, by rows)]", "any",
    LinAttn_MapUpToPairs> {
  let source = "Based; Arora et al., 2024";
  let weightSign = "positive";
}
def : LinAttn_TokenMap<"TaylorFull", 21, "taylor_full",
    "[1, x_i / d^¼, x_i x_j / √2d (by rows)]", "any", LinAttn_MapUpToAllPairs> {
  let flags = "T::Token | T::Variant";
  let weightSign = "positive";
}
// Weights y².
def : LinAttn_TokenMap<"Rebased", 22, "rebased",
    "[y_i² / √d, y_i y_j √(2/d) (i > j, by rows)], y = γ ⊙ LN(x) + β", "any",
    LinAttn_MapPairs, LinAttn_MapNormParams> {
  let docFormula = "[y_i² / √d, y_i y_j √(2/d) (i > j, by rows)], "
      "y = γ ⊙ LN(x) + β with eps 1e-5";
  let source = "Aksenov et al., 2024";
  let weightSign = "notNegative";
  let eps = "1e-5";
}
def : LinAttn_TokenMap<"OuterProduct", 23, "outer_product",
                       "y_i z_j (i ≤ j, by rows), y = W1x, z = W2x", "any",
                       LinAttn_MapPairs, LinAttn_MapTwoSquares>;

//===----------------------------------------------------------------------===//
// Made of the rows
//===----------------------------------------------------------------------===//

defvar LinAttn_UnsortedMaps = !instances<LinAttn_MapCase>();
defvar LinAttn_MapCases = !foreach(value, !range(!size(LinAttn_UnsortedMaps)),
    !head(!filter(map, LinAttn_UnsortedMaps, !eq(map.value, value))));

class LinAttn_MapDoc<LinAttn_Map map, string columns> {
  string row = !if(!empty(map.docName), "",
      "\n    | " # map.docName # " | " # columns # map.docFormula
      # !if(!empty(map.source), "", " (" # map.source # ")") # " |");
}
def LinAttn_MapTables {
  string elements = !foldl("", !instances<LinAttn_ElementMap>(), text, map,
                           text # LinAttn_MapDoc<map, "">.row);
  string tokens = !foldl("", !instances<LinAttn_TokenMap>(), text, map,
      text # LinAttn_MapDoc<map, map.docParams
          # !if(!empty(map.docParams), "", " ") # "| " # map.features # " | ">.row);
}

/// The fields of FeatureMapRow, rows in the order of the first one.
def FeatureMapTable : GenericTable {
  let FilterClass = "LinAttn_Map";
  let CppTypeName = "FeatureMapRow";
  let Fields = ["number", "str", "mapFormula", "source", "mapSize", "mapSign", "weightSign",
                "mapParameters", "eps", "flags"];
  string TypeOf_mapSize = "code";
  string TypeOf_mapSign = "code";
  string TypeOf_weightSign = "code";
  string TypeOf_mapParameters = "code";
  string TypeOf_eps = "code";
  string TypeOf_flags = "code";
}

#endif // LINATTN_ANALYSIS_FEATUREMAPS_TD
