//===- Program.cpp - Formulas of sizes ------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace linattn::runner;

/// Wraps around without undefined behaviour.
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

inline bool Program::evaluate(const linattn_view *views, size_t number,
                              int64_t *values) const {
  const Instruction &it = instructions[number];
  switch (it.operation) {
  case Operation::Const:
    values[number] = it.constant;
    break;
  case Operation::Size:
    values[number] = views[it.a].shape[it.b];
    break;
  case Operation::Stride:
    values[number] = views[it.a].strides[it.b];
    break;
  case Operation::Address:
    values[number] = reinterpret_cast<intptr_t>(views[it.a].data);
    break;
  case Operation::Select:
    values[number] = values[it.a] ? values[it.b] : values[it.c];
    break;
  case Operation::Index:
    values[number] = values[it.a];
    break;
  case Operation::Mul:
    return !__builtin_mul_overflow(values[it.a], values[it.b], &values[number]);
  default:
    values[number] = compute(it.operation, values[it.a], values[it.b]);
  }
  return true;
}

bool Program::evaluate(const linattn_view *views, int64_t *values) const {
  bool fits = true;
  for (size_t i = 0; i < instructions.size(); ++i)
    fits &= evaluate(views, i, values);
  return fits;
}

void Program::evaluate(const linattn_view *views,
                       const std::vector<int32_t> &some,
                       int64_t *values) const {
  for (int32_t number : some)
    evaluate(views, static_cast<size_t>(number), values);
}

std::vector<int32_t> Program::findUsers(int32_t index) const {
  std::vector<bool> depends(instructions.size());
  std::vector<int32_t> users;
  depends[index] = true;
  for (size_t i = index + 1; i < instructions.size(); ++i) {
    const Instruction &it = instructions[i];
    switch (it.operation) {
    case Operation::Const:
    case Operation::Size:
    case Operation::Stride:
    case Operation::Address:
      continue;
    case Operation::Index:
      depends[i] = depends[it.a];
      break;
    case Operation::Select:
      depends[i] = depends[it.a] || depends[it.b] || depends[it.c];
      break;
    default:
      depends[i] = depends[it.a] || depends[it.b];
    }
    if (depends[i])
      users.push_back(static_cast<int32_t>(i));
  }
  return users;
}
