//===- FieldLibrary.cpp - Prime field arithmetic in IR --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FieldLibrary.h"

using namespace mlir::linattn;

/// Pairs are never negative; NaN is -1, −∞ is -2, ∞ is -3. Arithmetic on pairs
/// takes the first branch of each function.
static constexpr const char *kArithmetic = R"mlir(
func.func private @$add(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %any = arith.ori %x, %y : i64
  %pairs = arith.cmpi sge, %any, %zero : i64
  %r = scf.if %pairs -> i64 {
    %low = arith.constant 0xffffffff : i64
    %half = arith.constant 32 : i64
    %p = arith.constant $p : i64
    %q = arith.constant $q : i64
    %x0 = arith.andi %x, %low : i64
    %y0 = arith.andi %y, %low : i64
    %x1 = arith.shrui %x, %half : i64
    %y1 = arith.shrui %y, %half : i64
    %s0 = arith.addi %x0, %y0 : i64
    %s1 = arith.addi %x1, %y1 : i64
    %r0 = arith.remui %s0, %p : i64
    %r1 = arith.remui %s1, %q : i64
    %up = arith.shli %r1, %half : i64
    %pair = arith.ori %up, %r0 : i64
    scf.yield %pair : i64
  } else {
    // Infinities absorb; two different ones have no sum.
    %nan = arith.constant -1 : i64
    %xPair = arith.cmpi sge, %x, %zero : i64
    %yPair = arith.cmpi sge, %y, %zero : i64
    %same = arith.cmpi eq, %x, %y : i64
    %xNaN = arith.cmpi eq, %x, %nan : i64
    %yNaN = arith.cmpi eq, %y, %nan : i64
    %both = arith.select %same, %x, %nan : i64
    %a = arith.select %yPair, %x, %both : i64
    %b = arith.select %xPair, %y, %a : i64
    %c = arith.select %xNaN, %nan, %b : i64
    %d = arith.select %yNaN, %nan, %c : i64
    scf.yield %d : i64
  }
  return %r : i64
}

func.func private @$neg(%x: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %low = arith.constant 0xffffffff : i64
  %half = arith.constant 32 : i64
  %p = arith.constant $p : i64
  %q = arith.constant $q : i64
  %x0 = arith.andi %x, %low : i64
  %x1 = arith.shrui %x, %half : i64
  %s0 = arith.subi %p, %x0 : i64
  %s1 = arith.subi %q, %x1 : i64
  %r0 = arith.remui %s0, %p : i64
  %r1 = arith.remui %s1, %q : i64
  %up = arith.shli %r1, %half : i64
  %pair = arith.ori %up, %r0 : i64
  // The infinities are -2 and -3.
  %nan = arith.constant -1 : i64
  %sum = arith.constant -5 : i64
  %other = arith.subi %sum, %x : i64
  %isNaN = arith.cmpi eq, %x, %nan : i64
  %special = arith.select %isNaN, %nan, %other : i64
  %isPair = arith.cmpi sge, %x, %zero : i64
  %r = arith.select %isPair, %pair, %special : i64
  return %r : i64
}

func.func private @$sub(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %n = func.call @$neg(%y) : (i64) -> i64
  %r = func.call @$add(%x, %n) : (i64, i64) -> i64
  return %r : i64
}

func.func private @$mul(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %low = arith.constant 0xffffffff : i64
  %any = arith.ori %x, %y : i64
  %pairs = arith.cmpi sge, %any, %zero : i64
  %r = scf.if %pairs -> i64 {
    %half = arith.constant 32 : i64
    %p = arith.constant $p : i64
    %q = arith.constant $q : i64
    %x0 = arith.andi %x, %low : i64
    %y0 = arith.andi %y, %low : i64
    %x1 = arith.shrui %x, %half : i64
    %y1 = arith.shrui %y, %half : i64
    %s0 = arith.muli %x0, %y0 : i64
    %s1 = arith.muli %x1, %y1 : i64
    %r0 = arith.remui %s0, %p : i64
    %r1 = arith.remui %s1, %q : i64
    %up = arith.shli %r1, %half : i64
    %pair = arith.ori %up, %r0 : i64
    scf.yield %pair : i64
  } else {
    // A field has no signs: a factor scales an infinity and keeps it.
    %nan = arith.constant -1 : i64
    %negative = arith.constant -2 : i64
    %positive = arith.constant -3 : i64
    %xPair = arith.cmpi sge, %x, %zero : i64
    %yPair = arith.cmpi sge, %y, %zero : i64
    %same = arith.cmpi eq, %x, %y : i64
    %both = arith.select %same, %positive, %negative : i64
    %a = arith.select %yPair, %x, %both : i64
    %b = arith.select %xPair, %y, %a : i64
    %x0 = arith.andi %x, %low : i64
    %y0 = arith.andi %y, %low : i64
    %xZero = arith.cmpi eq, %x0, %zero : i64
    %yZero = arith.cmpi eq, %y0, %zero : i64
    %xNaN = arith.cmpi eq, %x, %nan : i64
    %yNaN = arith.cmpi eq, %y, %nan : i64
    %n0 = arith.ori %xZero, %yZero : i1
    %n1 = arith.ori %xNaN, %yNaN : i1
    %none = arith.ori %n0, %n1 : i1
    %c = arith.select %none, %nan, %b : i64
    scf.yield %c : i64
  }
  return %r : i64
}

// base^exponent modulo a prime.
func.func private @$power(%base: i64, %exponent: i64, %modulus: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r:3 = scf.while (%result = %one, %square = %base, %rest = %exponent) : (i64, i64, i64) -> (i64, i64, i64) {
    %more = arith.cmpi ne, %rest, %zero : i64
    scf.condition(%more) %result, %square, %rest : i64, i64, i64
  } do {
  ^bb0(%result: i64, %square: i64, %rest: i64):
    %bit = arith.andi %rest, %one : i64
    %odd = arith.cmpi ne, %bit, %zero : i64
    %product = arith.muli %result, %square : i64
    %reduced = arith.remui %product, %modulus : i64
    %next = arith.select %odd, %reduced, %result : i64
    %squared = arith.muli %square, %square : i64
    %nextSquare = arith.remui %squared, %modulus : i64
    %nextRest = arith.shrui %rest, %one : i64
    scf.yield %next, %nextSquare, %nextRest : i64, i64, i64
  }
  return %r#0 : i64
}

// 1/x by Fermat's theorem; 1/±∞ is 0, 1/0 is NaN.
func.func private @$inv(%x: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %nan = arith.constant -1 : i64
  %two = arith.constant 2 : i64
  %half = arith.constant 32 : i64
  %low = arith.constant 0xffffffff : i64
  %p = arith.constant $p : i64
  %q = arith.constant $q : i64
  %isPair = arith.cmpi sge, %x, %zero : i64
  %x0 = arith.andi %x, %low : i64
  %isZero = arith.cmpi eq, %x0, %zero : i64
  %r = scf.if %isPair -> i64 {
    %x1 = arith.shrui %x, %half : i64
    %e0 = arith.subi %p, %two : i64
    %e1 = arith.subi %q, %two : i64
    %r0 = func.call @$power(%x0, %e0, %p) : (i64, i64, i64) -> i64
    %r1 = func.call @$power(%x1, %e1, %q) : (i64, i64, i64) -> i64
    %up = arith.shli %r1, %half : i64
    %pair = arith.ori %up, %r0 : i64
    %safe = arith.select %isZero, %nan, %pair : i64
    scf.yield %safe : i64
  } else {
    %isNaN = arith.cmpi eq, %x, %nan : i64
    %special = arith.select %isNaN, %nan, %zero : i64
    scf.yield %special : i64
  }
  return %r : i64
}

func.func private @$div(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %i = func.call @$inv(%y) : (i64) -> i64
  %r = func.call @$mul(%x, %i) : (i64, i64) -> i64
  return %r : i64
}
)mlir";

static constexpr const char *kFunctions = R"mlir(
// The finalizer of SplitMix64.
func.func private @$mix(%x: i64) -> i64 attributes {$attrs} {
  %golden = arith.constant 0x9e3779b97f4a7c15 : i64
  %m1 = arith.constant 0xbf58476d1ce4e5b9 : i64
  %m2 = arith.constant 0x94d049bb133111eb : i64
  %c30 = arith.constant 30 : i64
  %c27 = arith.constant 27 : i64
  %c31 = arith.constant 31 : i64
  %a = arith.addi %x, %golden : i64
  %b = arith.shrui %a, %c30 : i64
  %c = arith.xori %a, %b : i64
  %d = arith.muli %c, %m1 : i64
  %e = arith.shrui %d, %c27 : i64
  %f = arith.xori %d, %e : i64
  %g = arith.muli %f, %m2 : i64
  %h = arith.shrui %g, %c31 : i64
  %r = arith.xori %g, %h : i64
  return %r : i64
}

// A function of the first residue, or of which infinity it is.
func.func private @$random2(%x: i64, %y: i64, %function: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %nan = arith.constant -1 : i64
  %low = arith.constant 0xffffffff : i64
  %half = arith.constant 32 : i64
  %p = arith.constant $p : i64
  %q = arith.constant $q : i64
  %xPair = arith.cmpi sge, %x, %zero : i64
  %yPair = arith.cmpi sge, %y, %zero : i64
  %x0 = arith.andi %x, %low : i64
  %y0 = arith.andi %y, %low : i64
  %xKey = arith.select %xPair, %x0, %x : i64
  %yKey = arith.select %yPair, %y0, %y : i64
  %a = func.call @$mix(%function) : (i64) -> i64
  %b = arith.xori %a, %xKey : i64
  %c = func.call @$mix(%b) : (i64) -> i64
  %d = arith.xori %c, %yKey : i64
  %e = func.call @$mix(%d) : (i64) -> i64
  %f = func.call @$mix(%e) : (i64) -> i64
  %r0 = arith.remui %e, %p : i64
  %r1 = arith.remui %f, %q : i64
  %up = arith.shli %r1, %half : i64
  %pair = arith.ori %up, %r0 : i64
  %xNaN = arith.cmpi eq, %x, %nan : i64
  %yNaN = arith.cmpi eq, %y, %nan : i64
  %none = arith.ori %xNaN, %yNaN : i1
  %r = arith.select %none, %nan, %pair : i64
  return %r : i64
}

func.func private @$random(%x: i64, %function: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %r = func.call @$random2(%x, %zero, %function) : (i64, i64, i64) -> i64
  return %r : i64
}

// g^x modulo p; e^(−∞) = 0 and e^0 = 1.
func.func private @$exp(%x: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 0x100000001 : i64
  %negative = arith.constant -2 : i64
  %low = arith.constant 0xffffffff : i64
  %half = arith.constant 32 : i64
  %g = arith.constant $g : i64
  %p = arith.constant $p : i64
  %isPair = arith.cmpi sge, %x, %zero : i64
  %r = scf.if %isPair -> i64 {
    %x1 = arith.shrui %x, %half : i64
    %r0 = func.call @$power(%g, %x1, %p) : (i64, i64, i64) -> i64
    %function = arith.constant 1 : i64
    %random = func.call @$random(%r0, %function) : (i64, i64) -> i64
    %r1 = arith.shrui %random, %half : i64
    %up = arith.shli %r1, %half : i64
    %pair = arith.ori %up, %r0 : i64
    %isZero = arith.cmpi eq, %x1, %zero : i64
    %value = arith.select %isZero, %one, %pair : i64
    scf.yield %value : i64
  } else {
    %isNegative = arith.cmpi eq, %x, %negative : i64
    %special = arith.select %isNegative, %zero, %x : i64
    scf.yield %special : i64
  }
  return %r : i64
}

// A random function but for log 0 = −∞, the gate that forgets.
func.func private @$log(%x: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %low = arith.constant 0xffffffff : i64
  %negative = arith.constant -2 : i64
  %function = arith.constant 2 : i64
  %random = func.call @$random(%x, %function) : (i64, i64) -> i64
  %x0 = arith.andi %x, %low : i64
  %isZero = arith.cmpi eq, %x0, %zero : i64
  %r = arith.select %isZero, %negative, %random : i64
  return %r : i64
}

// The place in the order of residues from −p/2 to p/2, −∞ below, ∞ above.
func.func private @$rank(%x: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %low = arith.constant 0xffffffff : i64
  %negative = arith.constant -2 : i64
  %p = arith.constant $p : i64
  %middle = arith.constant $middle : i64
  %below = arith.constant -1 : i64
  %isPair = arith.cmpi sge, %x, %zero : i64
  %isNegative = arith.cmpi eq, %x, %negative : i64
  %x0 = arith.andi %x, %low : i64
  %shifted = arith.addi %x0, %middle : i64
  %rank = arith.remui %shifted, %p : i64
  %special = arith.select %isNegative, %below, %p : i64
  %r = arith.select %isPair, %rank, %special : i64
  return %r : i64
}

// A predicate is the set of outcomes: 1 equal, 2 greater, 4 less, 8 NaN.
func.func private @$cmp(%x: i64, %y: i64, %predicate: i64) -> i1 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %nan = arith.constant -1 : i64
  %equal = arith.constant 1 : i64
  %greater = arith.constant 2 : i64
  %less = arith.constant 4 : i64
  %unordered = arith.constant 8 : i64
  %xRank = func.call @$rank(%x) : (i64) -> i64
  %yRank = func.call @$rank(%y) : (i64) -> i64
  %isLess = arith.cmpi slt, %xRank, %yRank : i64
  %isEqual = arith.cmpi eq, %xRank, %yRank : i64
  %xNaN = arith.cmpi eq, %x, %nan : i64
  %yNaN = arith.cmpi eq, %y, %nan : i64
  %isUnordered = arith.ori %xNaN, %yNaN : i1
  %a = arith.select %isLess, %less, %greater : i64
  %b = arith.select %isEqual, %equal, %a : i64
  %c = arith.select %isUnordered, %unordered, %b : i64
  %d = arith.andi %c, %predicate : i64
  %r = arith.cmpi ne, %d, %zero : i64
  return %r : i1
}

func.func private @$max(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %nan = arith.constant -1 : i64
  %greater = arith.constant 2 : i64
  %unordered = arith.constant 8 : i64
  %isGreater = func.call @$cmp(%x, %y, %greater) : (i64, i64, i64) -> i1
  %isUnordered = func.call @$cmp(%x, %y, %unordered) : (i64, i64, i64) -> i1
  %best = arith.select %isGreater, %x, %y : i64
  %r = arith.select %isUnordered, %nan, %best : i64
  return %r : i64
}

func.func private @$min(%x: i64, %y: i64) -> i64 attributes {$attrs} {
  %nan = arith.constant -1 : i64
  %less = arith.constant 4 : i64
  %unordered = arith.constant 8 : i64
  %isLess = func.call @$cmp(%x, %y, %less) : (i64, i64, i64) -> i1
  %isUnordered = func.call @$cmp(%x, %y, %unordered) : (i64, i64, i64) -> i1
  %best = arith.select %isLess, %x, %y : i64
  %r = arith.select %isUnordered, %nan, %best : i64
  return %r : i64
}

func.func private @$abs(%x: i64) -> i64 attributes {$attrs} {
  %n = func.call @$neg(%x) : (i64) -> i64
  %r = func.call @$max(%x, %n) : (i64, i64) -> i64
  return %r : i64
}

func.func private @$from_int(%x: i64) -> i64 attributes {$attrs} {
  %half = arith.constant 32 : i64
  %p = arith.constant $p : i64
  %q = arith.constant $q : i64
  %s0 = arith.remsi %x, %p : i64
  %s1 = arith.remsi %x, %q : i64
  %t0 = arith.addi %s0, %p : i64
  %t1 = arith.addi %s1, %q : i64
  %r0 = arith.remui %t0, %p : i64
  %r1 = arith.remui %t1, %q : i64
  %up = arith.shli %r1, %half : i64
  %r = arith.ori %up, %r0 : i64
  return %r : i64
}

// The integer whose element this is; a random function of any other element.
func.func private @$to_int(%x: i64) -> i64 attributes {$attrs} {
  %low = arith.constant 0xffffffff : i64
  %middle = arith.constant $middle : i64
  %p = arith.constant $p : i64
  %x0 = arith.andi %x, %low : i64
  %isNegative = arith.cmpi sgt, %x0, %middle : i64
  %opposite = arith.subi %x0, %p : i64
  %integer = arith.select %isNegative, %opposite, %x0 : i64
  %element = func.call @$from_int(%integer) : (i64) -> i64
  %isInteger = arith.cmpi eq, %element, %x : i64
  %function = arith.constant 3 : i64
  %pair = func.call @$random(%x, %function) : (i64, i64) -> i64
  %random = arith.andi %pair, %low : i64
  %r = arith.select %isInteger, %integer, %random : i64
  return %r : i64
}

func.func private @$pow_int(%x: i64, %exponent: i64) -> i64 attributes {$attrs} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %unit = arith.constant 0x100000001 : i64
  %inverse = func.call @$inv(%x) : (i64) -> i64
  %isNegative = arith.cmpi slt, %exponent, %zero : i64
  %opposite = arith.subi %zero, %exponent : i64
  %base = arith.select %isNegative, %inverse, %x : i64
  %count = arith.select %isNegative, %opposite, %exponent : i64
  %r:2 = scf.while (%result = %unit, %left = %count) : (i64, i64) -> (i64, i64) {
    %more = arith.cmpi ne, %left, %zero : i64
    scf.condition(%more) %result, %left : i64, i64
  } do {
  ^bb0(%result: i64, %left: i64):
    %next = func.call @$mul(%result, %base) : (i64, i64) -> i64
    %less = arith.subi %left, %one : i64
    scf.yield %next, %less : i64, i64
  }
  return %r#0 : i64
}
)mlir";

static void replaceAll(std::string &text, llvm::StringRef from,
                       llvm::StringRef to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string mlir::linattn::getFieldLibrary(const ::linattn::PrimeField &field) {
  std::string text = std::string(kArithmetic) + kFunctions;
  replaceAll(text, "@$", ("@" + kFieldPrefix).str());
  // Inlined, the arithmetic would be most of a kernel and of its compile time.
  replaceAll(text, "$attrs", "no_inline");
  replaceAll(text, "$middle", std::to_string((field.getPrime() - 1) / 2));
  replaceAll(text, "$p", std::to_string(field.getPrime()));
  replaceAll(text, "$q", std::to_string(field.getOrder()));
  replaceAll(text, "$g", std::to_string(field.getBase()));
  return text;
}
