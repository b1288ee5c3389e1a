/*===- object.c - A layer as an object of a C program -----------------------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|*   linattn-compile layer.mlir --target=cpu --emit=obj -o layer.o            *|
|*   linattn-compile layer.mlir --target=cpu --emit=header -o layer.h         *|
|*   cc object.c layer.o -lm -o layer && ./layer                              *|
|*                                                                            *|
|* Links the C library and nothing else. Compares the last token's output with *|
|* the quadratic meaning.                                                     *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "layer.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 2, HEADS = 8, TOKENS = 100, SIZE = 64 };

static float q[BATCH][HEADS][TOKENS][SIZE], k[BATCH][HEADS][TOKENS][SIZE];
static float v[BATCH][HEADS][TOKENS][SIZE], o[BATCH][HEADS][TOKENS][SIZE];

/* elu(x) + 1 */
static double map(double x) { return x > 0 ? x + 1 : exp(x); }

/* The largest difference of a head's last output from its definition. */
static double difference(int n, int h) {
  double sums[SIZE] = {0}, weights = 1e-6, largest = 0;
  int t, i;
  for (t = 0; t < TOKENS; ++t) {
    double weight = 0;
    for (i = 0; i < SIZE; ++i)
      weight += map(q[n][h][TOKENS - 1][i]) * map(k[n][h][t][i]);
    weights += weight;
    for (i = 0; i < SIZE; ++i)
      sums[i] += weight * v[n][h][t][i];
  }
  for (i = 0; i < SIZE; ++i)
    largest = fmax(largest, fabs(sums[i] / weights - o[n][h][TOKENS - 1][i]));
  return largest;
}

int main(void) {
  const int64_t shape[4] = {BATCH, HEADS, TOKENS, SIZE};
  const int64_t fewer[4] = {BATCH, HEADS, TOKENS / 2, SIZE};
  linattn_array query = {q, shape, NULL}, key = {k, shape, NULL};
  linattn_array value = {v, shape, NULL}, output = {o, NULL, NULL};
  char message[256];
  double largest = 0;
  int n, h, i;

  for (i = 0; i < BATCH * HEADS * TOKENS * SIZE; ++i) {
    (&q[0][0][0][0])[i] = sinf(0.1F * (float)i);
    (&k[0][0][0][0])[i] = cosf(0.3F * (float)i);
    (&v[0][0][0][0])[i] = sinf(0.7F * (float)i);
  }
  if (layer(query, key, value, output, message, sizeof(message))) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  for (n = 0; n < BATCH; ++n)
    for (h = 0; h < HEADS; ++h)
      largest = fmax(largest, difference(n, h));
  printf("largest difference from the definition: %.1e\n", largest);

  /* Operands that do not fit are refused. */
  key.shape = fewer;
  if (layer(query, key, value, output, message, sizeof(message)))
    printf("refused: %s\n", message);
  return largest < 1e-5 ? 0 : 1;
}
