//===- UpdateRules.td - The table of update rules ----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every update rule, each once. The enumerators of the dialect, the rows of
// `getUpdateRules` (Analysis/UpdateRules.h), the table in the contract of
// `linattn.scan` and the docstring of the Python function are made of it.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_UPDATERULES_TD
#define LINATTN_ANALYSIS_UPDATERULES_TD

include "linattn/Analysis/Tables.td"

/// An operand or a clause of a scan that only some rules take: its enumerator
/// in `Clause`, that enumerator's value, and its name in the dialect and Python.
class LinAttn_Clause<string symbol, int value, string name> {
  bits<32> number = value;
  string enumerator = "Clause::" # symbol;
  string spelled = name;
}
def LinAttn_BetaClause : LinAttn_Clause<"Beta", 0, "beta">;
def LinAttn_AClause : LinAttn_Clause<"A", 1, "a">;
def LinAttn_BClause : LinAttn_Clause<"B", 2, "b">;
def LinAttn_EraseClause : LinAttn_Clause<"Erase", 3, "erase">;
def LinAttn_WriteClause : LinAttn_Clause<"Write", 4, "write">;
def LinAttn_ValueDecayClause : LinAttn_Clause<"ValueDecay", 5, "value_decay">;
def LinAttn_BonusClause : LinAttn_Clause<"Bonus", 6, "bonus">;
def LinAttn_BeforeClause : LinAttn_Clause<"Before", 7, "transition(before)">;
def LinAttn_NormalizeClause : LinAttn_Clause<"Normalize", 8, "normalize">;

/// The clauses that a rule requires, and whether all of them or any one.
class LinAttn_Needs<list<LinAttn_Clause> required, bit isEach> {
  list<LinAttn_Clause> clauses = required;
  bit all = isEach;
}
def LinAttn_NeedsNothing : LinAttn_Needs<[], 1>;
class LinAttn_NeedsAll<list<LinAttn_Clause> clauses> : LinAttn_Needs<clauses, 1>;
class LinAttn_NeedsAny<list<LinAttn_Clause> clauses> : LinAttn_Needs<clauses, 0>;

/// One row, its fields as those of the struct `UpdateRule`: `transition` is one
/// of the enumerators there, and `formula` is S_t, for readers.
class LinAttn_Rule<string symbol, int value, string name, string formula,
                   string transition, list<LinAttn_Clause> takes,
                   LinAttn_Needs needs = LinAttn_NeedsNothing>
    : I32EnumAttrCase<symbol, value, name> {
  bits<32> number = value;
  string ruleFormula = formula;
  string ruleTransition = "T::" # transition;
  bit isGiven = 0;
  string takenClauses = "{" # !interleave(
      !foreach(clause, takes, clause.enumerator), ", ") # "}";
  string neededClauses = "{" # !interleave(
      !foreach(clause, needs.clauses, clause.enumerator), ", ") # "}";
  bit needsAll = needs.all;
  bit hasScalarBeta = 0;
  string docTakes = !interleave(
      !foreach(clause, takes, "`" # clause.spelled # "`"), ", ");
  string docNeeds = !interleave(
      !foreach(clause, needs.clauses, "`" # clause.spelled # "`"),
      !if(needs.all, " and ", " or "));
}

def : LinAttn_Rule<"Add", 0, "add", "Sd + k vᵀ", "None",
    [LinAttn_ValueDecayClause, LinAttn_BonusClause, LinAttn_NormalizeClause]>;
def : LinAttn_Rule<"Delta", 1, "delta",
    "Sd + k δᵀ, δ = beta (write ⊙ v − Sdᵀ(erase ⊙ k))", "Keys",
    [LinAttn_BetaClause, LinAttn_EraseClause, LinAttn_WriteClause],
    LinAttn_NeedsAny<[LinAttn_BetaClause, LinAttn_EraseClause]>>;
def : LinAttn_Rule<"Dplr", 2, "dplr", "Sd + k vᵀ + b rᵀ, r = Xᵀ a", "Keys",
    [LinAttn_AClause, LinAttn_BClause, LinAttn_BonusClause, LinAttn_BeforeClause],
    LinAttn_NeedsAll<[LinAttn_AClause, LinAttn_BClause]>> {
  let isGiven = 1;
}
// Delta on Sᵀ with keys and values exchanged.
def : LinAttn_Rule<"Oja", 3, "oja", "Sd + (k − Sd v)(beta v)ᵀ", "Values",
    [LinAttn_BetaClause, LinAttn_ValueDecayClause],
    LinAttn_NeedsAll<[LinAttn_BetaClause]>> {
  let hasScalarBeta = 1;
}

//===----------------------------------------------------------------------===//
// Made of the rows
//===----------------------------------------------------------------------===//

defvar LinAttn_UnsortedRules = !instances<LinAttn_Rule>();
defvar LinAttn_Rules = !foreach(value, !range(!size(LinAttn_UnsortedRules)),
    !head(!filter(rule, LinAttn_UnsortedRules, !eq(rule.value, value))));

def LinAttn_RuleTable {
  string rows = !foldl("", LinAttn_Rules, text, rule, text
      # "\n    | `" # rule.str # "` | `" # rule.ruleFormula # "` | "
      # rule.docTakes # " | " # rule.docNeeds # " |");
}

/// The fields of ClauseRow, in the order of the first one.
def ClauseTable : GenericTable {
  let FilterClass = "LinAttn_Clause";
  let CppTypeName = "ClauseRow";
  let Fields = ["number", "spelled"];
}

/// The fields of UpdateRuleRow, rows in the order of the first one.
def UpdateRuleTable : GenericTable {
  let FilterClass = "LinAttn_Rule";
  let CppTypeName = "UpdateRuleRow";
  let Fields = ["number", "str", "ruleFormula", "ruleTransition", "isGiven",
                "takenClauses", "neededClauses", "needsAll", "hasScalarBeta"];
  string TypeOf_ruleTransition = "code";
  string TypeOf_takenClauses = "code";
  string TypeOf_neededClauses = "code";
}

#endif // LINATTN_ANALYSIS_UPDATERULES_TD
