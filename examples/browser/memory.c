/*===- memory.c - What a page calls ---------------------------------------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* One token of two recurrences, with states in the module's memory. Needs no *|
|* C library.                                                                 *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "add.h"
#include "delta.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

enum { KEYS = 24, VALUES = 36 };

static float key_[KEYS], value_[VALUES], beta_[1], output_[2][VALUES];
static float state_[2][KEYS][VALUES];

static const int64_t keyShape[] = {1, 1, 1, KEYS};
static const int64_t valueShape[] = {1, 1, 1, VALUES};
static const int64_t betaShape[] = {1, 1, 1};
static const int64_t stateShape[] = {1, 1, KEYS, VALUES};

/* Where a page finds the numbers; of rule 0, add, or 1, delta. */
float *EXPORT(key)(void) { return key_; }
float *EXPORT(value)(void) { return value_; }
float *EXPORT(beta)(void) { return beta_; }
float *EXPORT(state)(int rule) { return &state_[rule][0][0]; }
float *EXPORT(output)(int rule) { return output_[rule]; }

/* Both recurrences take the token that lies there. Returns 0. */
int EXPORT(step)(void) {
  linattn_array k = {key_, keyShape, NULL}, v = {value_, valueShape, NULL};
  linattn_array b = {beta_, betaShape, NULL};
  linattn_array s0 = {state_[0], stateShape, NULL};
  linattn_array s1 = {state_[1], stateShape, NULL};
  linattn_array o0 = {output_[0], NULL, NULL}, o1 = {output_[1], NULL, NULL};
  return add(k, v, s0, o0, s0, NULL, 0) || delta(k, v, b, s1, o1, s1, NULL, 0);
}
