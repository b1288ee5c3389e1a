/* Calls an object and compares it with the recurrence in double. C99 without a
 * C library, so that it runs wherever the object does. Returns 0 if all agrees. */

#include "gated_delta.h"

enum { B = 2, T = 37, HQ = 4, H = 2, K = 20, V = 36 };

static float q[B][HQ][T][K], k[B][H][T][K], v[B][T][H][V], s[B][H][K][V];
static float g[B][H][T], beta[B][H][T], o[B][HQ][T][V], s1[B][H][K][V];
static double state[B][H][K][V];
/* What the decays are the logarithms of. */
static double factor[B][H][T];

static const int64_t kShape[] = {B, H, T, K};
static const int64_t vShape[] = {B, H, T, V}, gShape[] = {B, H, T};
static const int64_t sShape[] = {B, H, K, V};
/* Tokens before heads. */
static const int64_t vStrides[] = {T * H * V, V, H * V, 1};

static float draw(void) {
  static uint32_t seed = 1;
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / (1 << 23) - 1;
}

static void fill(float *array, int count, float scale) {
  while (count-- > 0)
    *array++ = scale * draw();
}

static void reference(int n, int h, int t, double out[HQ][V]) {
  int i, j, head;
  for (j = 0; j < V; ++j) {
    double delta = v[n][t][h][j];
    for (i = 0; i < K; ++i) {
      state[n][h][i][j] *= factor[n][h][t];
      delta -= state[n][h][i][j] * k[n][h][t][i];
    }
    for (i = 0; i < K; ++i)
      state[n][h][i][j] += beta[n][h][t] * delta * k[n][h][t][i];
    for (head = h * HQ / H; head < (h + 1) * HQ / H; ++head) {
      out[head][j] = 0;
      for (i = 0; i < K; ++i)
        out[head][j] += 0.25 * state[n][h][i][j] * q[n][head][t][i];
    }
  }
}

static int differs(double a, double b) {
  double d = a - b;
  return !(d < 1e-5 && d > -1e-5);
}

static int compute(float *final, int64_t tokens, char *message, size_t size) {
  int64_t other[] = {B, HQ, tokens, K};
  linattn_array aq = {q, other, NULL}, ak = {k, kShape, NULL};
  linattn_array av = {v, vShape, vStrides}, ag = {g, gShape, NULL};
  linattn_array ab = {beta, gShape, NULL}, as = {s, sShape, NULL};
  linattn_array ao = {o, NULL, NULL}, af = {final, NULL, NULL};
  return gated_delta(aq, ak, av, ag, ab, as, ao, af, message, size);
}

static int agree(const float *final) {
  int n, h, t, i, j;
  for (n = 0; n < B; ++n)
    for (h = 0; h < H; ++h) {
      for (i = 0; i < K; ++i)
        for (j = 0; j < V; ++j)
          state[n][h][i][j] = s[n][h][i][j];
      for (t = 0; t < T; ++t) {
        double out[HQ][V];
        reference(n, h, t, out);
        for (i = h * HQ / H; i < (h + 1) * HQ / H; ++i)
          for (j = 0; j < V; ++j)
            if (differs(out[i][j], o[n][i][t][j]))
              return 0;
      }
      for (i = 0; i < K; ++i)
        for (j = 0; j < V; ++j)
          if (differs(state[n][h][i][j], final[((n * H + h) * K + i) * V + j]))
            return 0;
    }
  return 1;
}

static int same(const char *a, const char *b) {
  while (*a && *a == *b)
    ++a, ++b;
  return *a == *b;
}

int check(void) {
  char message[128];
  int i;
  static const float logs[] = {0.0F, -0.693147181F, -1.386294361F};
  static float wrong[B * H * K * V];
  fill(&q[0][0][0][0], sizeof(q) / 4, 1);
  fill(&k[0][0][0][0], sizeof(k) / 4, 0.3F);
  fill(&v[0][0][0][0], sizeof(v) / 4, 1);
  fill(&s[0][0][0][0], sizeof(s) / 4, 1);
  for (i = 0; i < B * H * T; ++i) {
    (&g[0][0][0])[i] = logs[i % 3];
    (&factor[0][0][0])[i] = 1.0 / (1 << i % 3);
    (&beta[0][0][0])[i] = 0.5F + 0.5F * draw();
  }
  if (compute(&s1[0][0][0][0], T, message, sizeof(message)))
    return 1;
  if (!agree(&s1[0][0][0][0]))
    return 2;
  /* Operands that do not fit are said to, and nothing is written. */
  if (!compute(wrong, T - 1, message, sizeof(message)))
    return 3;
  if (!same(message, "expected query and key to have the same sequence length, "
                     "but got 36 and 37"))
    return 4;
  for (i = 0; i < B * H * K * V; ++i)
    if (wrong[i] != 0)
      return 5;
  /* Cut where the memory ends. */
  if (!compute(wrong, T - 1, message, 9) || !same(message, "expected"))
    return 6;
  /* The state in place. */
  if (compute(&s[0][0][0][0], T, NULL, 0))
    return 7;
  for (i = 0; i < B * H * K * V; ++i)
    if ((&s[0][0][0][0])[i] != (&s1[0][0][0][0])[i])
      return 8;
  return 0;
}
