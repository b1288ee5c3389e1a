/*===- main.c - A recurrence on several processes of MPI --------------------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Every process runs its tokens, and compares its outputs and the final      *|
|* state, bit by bit, with those of one process that runs all tokens.         *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "gla.h"
#include "whole.h"

#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 2, HEADS = 4, TOKENS = 192, KEYS = 32, VALUES = 16 };

static float q[BATCH][HEADS][TOKENS][KEYS], k[BATCH][HEADS][TOKENS][KEYS];
static float g[BATCH][HEADS][TOKENS][KEYS], v[BATCH][HEADS][TOKENS][VALUES];
static float o[BATCH][HEADS][TOKENS][VALUES], part[BATCH][HEADS][TOKENS][VALUES];
static float s[BATCH][HEADS][KEYS][VALUES], end[BATCH][HEADS][KEYS][VALUES];
static float expected[BATCH][HEADS][KEYS][VALUES];

static void fail(const char *message) {
  fprintf(stderr, "%s\n", message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(float *x, int count, float step, float scale, float shift) {
  int i;
  for (i = 0; i < count; ++i)
    x[i] = scale * sinf(step * (float)(i % 9973)) + shift;
}

int main(int argc, char **argv) {
  int rank, ranks, n, h, differing = 0, total;
  char message[256];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  fill(&q[0][0][0][0], BATCH * HEADS * TOKENS * KEYS, 0.1F, 1, 0);
  fill(&k[0][0][0][0], BATCH * HEADS * TOKENS * KEYS, 0.3F, 0.5F, 0);
  fill(&v[0][0][0][0], BATCH * HEADS * TOKENS * VALUES, 0.7F, 1, 0);
  fill(&g[0][0][0][0], BATCH * HEADS * TOKENS * KEYS, 0.2F, 0.1F, -0.1F);
  fill(&s[0][0][0][0], BATCH * HEADS * KEYS * VALUES, 0.9F, 1, 0);
  const int64_t local = TOKENS / ranks, first = rank * local;
  const int64_t keys[4] = {BATCH, HEADS, TOKENS, KEYS}, strides[4] = {HEADS * TOKENS * KEYS, TOKENS * KEYS, KEYS, 1};
  const int64_t values[4] = {BATCH, HEADS, TOKENS, VALUES}, vstrides[4] = {HEADS * TOKENS * VALUES, TOKENS * VALUES, VALUES, 1};
  const int64_t localKeys[4] = {BATCH, HEADS, local, KEYS}, localValues[4] = {BATCH, HEADS, local, VALUES};
  const int64_t state[4] = {BATCH, HEADS, KEYS, VALUES};
  linattn_array start = {s, state, NULL};

  if (whole((linattn_array){q, keys, NULL}, (linattn_array){k, keys, NULL}, (linattn_array){v, values, NULL},
            (linattn_array){g, keys, NULL}, start, (linattn_array){o, NULL, NULL}, (linattn_array){expected, NULL, NULL},
            message, sizeof(message)))
    fail(message);
  if (gla((linattn_array){&q[0][0][first], localKeys, strides}, (linattn_array){&k[0][0][first], localKeys, strides},
          (linattn_array){&v[0][0][first], localValues, vstrides}, (linattn_array){&g[0][0][first], localKeys, strides}, start,
          (linattn_array){&part[0][0][first], NULL, vstrides}, (linattn_array){end, NULL, NULL}, message, sizeof(message)))
    fail(message);
  for (n = 0; n < BATCH; ++n)
    for (h = 0; h < HEADS; ++h)
      differing += memcmp(o[n][h][first], part[n][h][first], sizeof(float) * local * VALUES) != 0;
  differing += memcmp(end, expected, sizeof(end)) != 0;
  MPI_Allreduce(&differing, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d processes: %s\n", ranks, total ? "different bits" : "the bits of one process");
  MPI_Finalize();
  return total != 0;
}
