/* Launches a bundle from C: what a GPU machine needs is this program, the
 * library it links and the file it loads.
 *
 *   linattn-compile examples/layer.mlir --target=nvvm --chip=sm_80 -o layer.lab
 *   linattn-runner-example layer.lab 128
 *
 * Every size that the bundle leaves open is the second argument. */
#include "linattn-c/Runner.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_OPERANDS 16
#define MAX_RANK 8

static void check(linattn_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", linattn_error_message(error));
  linattn_error_free(error);
  exit(1);
}

int main(int argc, char **argv) {
  linattn_kernel *kernel = NULL;
  linattn_view views[MAX_OPERANDS];
  int64_t shapes[MAX_OPERANDS][MAX_RANK];
  int32_t count, i, d;
  size_t bytes = 0;
  void *workspace = NULL;
  static const int sizes[] = {2, 2, 4, 8, 1, 1, 2, 4, 8, 8};
  if (argc != 3) {
    fprintf(stderr, "usage: %s BUNDLE SIZE\n", argv[0]);
    return 1;
  }
  check(linattn_kernel_load_file(argv[1], &kernel));
  check(linattn_kernel_prepare(kernel));
  count = linattn_kernel_num_arguments(kernel) +
          linattn_kernel_num_results(kernel);
  for (i = 0; i < count && i < MAX_OPERANDS; ++i) {
    const linattn_operand *operand = linattn_kernel_operand(kernel, i);
    int64_t elements = 1;
    for (d = 0; d < operand->rank && d < MAX_RANK; ++d) {
      shapes[i][d] =
          operand->shape[d] < 0 ? atoll(argv[2]) : operand->shape[d];
      elements *= shapes[i][d];
    }
    views[i].shape = shapes[i];
    views[i].strides = NULL;
    views[i].rank = operand->rank;
    views[i].dtype = operand->dtype;
    check(linattn_device_allocate((size_t)elements * sizes[operand->dtype],
                                  &views[i].data));
  }
  check(linattn_kernel_workspace_size(kernel, views, count, &bytes));
  check(linattn_device_allocate(bytes, &workspace));
  check(linattn_kernel_launch(kernel, views, count, workspace, bytes, NULL));
  printf("launched %s, workspace %lu bytes\n", linattn_kernel_entry(kernel),
         (unsigned long)bytes);
  check(linattn_device_free(workspace));
  for (i = 0; i < count; ++i)
    check(linattn_device_free(views[i].data));
  linattn_kernel_free(kernel);
  return 0;
}
