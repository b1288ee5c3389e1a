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
