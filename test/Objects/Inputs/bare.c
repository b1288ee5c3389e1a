/* What the compiler and an object want of a C library, and a start, for
 * machines whose C library is not installed here. */

#include <stddef.h>
#include <stdint.h>

int check(void);

void *memcpy(void *to, const void *from, size_t size) {
  char *out = to;
  const char *in = from;
  while (size--)
    *out++ = *in++;
  return to;
}

void *memset(void *to, int value, size_t size) {
  char *out = to;
  while (size--)
    *out++ = (char)value;
  return to;
}

static _Alignas(4096) char heap[1 << 24];
static size_t used;

void *aligned_alloc(size_t alignment, size_t size) {
  size_t start = (used + alignment - 1) / alignment * alignment;
  if (start + size > sizeof(heap))
    return NULL;
  used = start + size;
  return heap + start;
}

void free(void *memory) { (void)memory; }

void abort(void) { __builtin_trap(); }

/* Of mathematics, as close as a comparison in f32 needs it. */
double exp(double x) {
  double rest, sum = 1, term = 1, scale = 1;
  int n = (int)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5)), i;
  rest = x - n * 0.6931471805599453;
  for (i = 1; i < 18; ++i)
    sum += term *= rest / i;
  for (i = 0; i < (n < 0 ? -n : n) && i < 1100; ++i)
    scale *= n < 0 ? 0.5 : 2;
  return sum * scale;
}

double cos(double x) {
  double sum = 1, term = 1;
  int i;
  x -= 6.283185307179586 * (double)(long long)(x / 6.283185307179586);
  for (i = 1; i < 24; ++i)
    sum += term *= -x * x / ((2 * i - 1) * (2 * i));
  return sum;
}

double sin(double x) { return cos(x - 1.5707963267948966); }

void sincos(double x, double *sine, double *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}

double fma(double a, double b, double c) { return a * b + c; }

#if defined(__wasm__)
/* Of the compiler's library: the product of 64-bit numbers in 128 bits, by
 * which sizes are found not to overflow. */
__int128 __multi3(__int128 a, __int128 b) {
  uint64_t al = (uint64_t)a, bl = (uint64_t)b, mask = 0xffffffffu;
  uint64_t low = (al & mask) * (bl & mask);
  uint64_t middle = (al >> 32) * (bl & mask) + (low >> 32);
  uint64_t other = (al & mask) * (bl >> 32) + (middle & mask);
  uint64_t high = (al >> 32) * (bl >> 32) + (middle >> 32) + (other >> 32);
  high += (uint64_t)(a >> 64) * bl + al * (uint64_t)(b >> 64);
  return (__int128)((unsigned __int128)high << 64 | other << 32 | (low & mask));
}
#endif

/* Of a program that writes. In WebAssembly the host does. */
void emit(const void *bytes, size_t size);

#if defined(__aarch64__)
static long call(long number, long a, long b, long c) {
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x8 __asm__("x8") = number;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
  return x0;
}
#elif defined(__riscv)
static long call(long number, long a, long b, long c) {
  register long a0 __asm__("a0") = a;
  register long a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c;
  register long a7 __asm__("a7") = number;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
#endif

#if defined(__aarch64__) || defined(__riscv)
enum { WRITE = 64, EXIT = 93 };

void emit(const void *bytes, size_t size) {
  const char *next = bytes;
  while (size) {
    long written = call(WRITE, 1, (long)next, (long)size);
    if (written <= 0)
      __builtin_trap();
    next += written;
    size -= (size_t)written;
  }
}

void _start(void) { call(EXIT, check(), 0, 0); }
#endif
