/* With a C library; and with threads, where THREADS is defined. */

int check(void);

#ifdef THREADS
#include <pthread.h>
#include <stdint.h>

typedef struct {
  void (*task)(void *ctx, int64_t i);
  void *ctx;
  int64_t i;
} Work;

static int loops;

static void *run(void *opaque) {
  Work *work = opaque;
  work->task(work->ctx, work->i);
  return 0;
}

/* Instead of the one in the object. */
void linattn_parallel_for(int64_t n, void (*task)(void *ctx, int64_t i),
                          void *ctx) {
  pthread_t threads[64];
  Work work[64];
  int64_t i;
  ++loops;
  for (i = 0; i < n && i < 64; ++i) {
    work[i] = (Work){task, ctx, i};
    pthread_create(&threads[i], 0, run, &work[i]);
  }
  for (; i < n; ++i)
    task(ctx, i);
  for (i = 0; i < n && i < 64; ++i)
    pthread_join(threads[i], 0);
}

int main(void) {
  int status = check();
  return status ? status : loops ? 0 : 20;
}
#else
int main(void) { return check(); }
#endif
