//===- Program.cpp - Formulas of sizes
//-------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace linattn::runner;

/// Wraps around like the machine, without undefined behaviour.
static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

static int64_t divide(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  return b == -1 ? wrap(-static_cast<uint64_t>(a)) : a / b;
}

static int64_t remainder(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t rest = remainder(a, b);
  return divide(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}

static int64_t ceilDivide(int64_t a, int64_t b) {
  int64_t rest = remainder(a, b);
  return divide(a, b) + (rest != 0 && (rest < 0) == (b < 0));
}

static int64_t modulo(int64_t a, int64_t b) {
  int64_t rest = remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t compute(Operation operation, int64_t a, int64_t b) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (operation) {
  case Operation::Add:
    return wrap(ua + ub);
  case Operation::Sub:
    return wrap(ua - ub);
  case Operation::Mul:
    return wrap(ua * ub);
  case Operation::Div:
    return divide(a, b);
  case Operation::Rem:
    return remainder(a, b);
  case Operation::FloorDiv:
    return floorDivide(a, b);
  case Operation::CeilDiv:
    return ceilDivide(a, b);
  case Operation::Mod:
    return modulo(a, b);
  case Operation::Min:
    return a < b ? a : b;
  case Operation::Max:
    return a < b ? b : a;
  case Operation::And:
    return a & b;
  case Operation::Or:
    return a | b;
  case Operation::Xor:
    return a ^ b;
  case Operation::Eq:
    return a == b;
  case Operation::Ne:
    return a != b;
  case Operation::Lt:
    return a < b;
  case Operation::Le:
    return a <= b;
  case Operation::Gt:
    return a > b;
  case Operation::Ge:
    return a >= b;
  default:
    return 0;
  }
}

void Program::evaluate(const linattn_view *views, int64_t *values) const {
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Instruction &it = instructions[i];
    switch (it.operation) {
    case Operation::Const:
      values[i] = it.constant;
      break;
    case Operation::Size:
      values[i] = views[it.a].shape[it.b];
      break;
    case Operation::Stride:
      values[i] = views[it.a].strides[it.b];
      break;
    case Operation::Select:
      values[i] = values[it.a] ? values[it.b] : values[it.c];
      break;
    default:
      values[i] = compute(it.operation, values[it.a], values[it.b]);
    }
  }
}
