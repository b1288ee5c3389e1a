/*===- linattn-c/Runner.h - Compiled kernels without a compiler -----------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Loads the bundles that linattn-compile writes and launches them:           *|
|*                                                                            *|
|*   linattn_kernel *kernel = NULL;                                           *|
|*   linattn_error *error = linattn_kernel_load_file("kernel.lab", &kernel);  *|
|*   if (!error)                                                              *|
|*     error = linattn_kernel_prepare(kernel);                                *|
|*   if (!error)                                                              *|
|*     error = linattn_kernel_launch(kernel, views, 4, NULL, 0, stream);      *|
|*   if (error)                                                               *|
|*     fprintf(stderr, "%s\n", linattn_error_message(error));                 *|
|*                                                                            *|
|* C99. Links neither LLVM nor CUDA: the driver is opened when it is needed,  *|
|* from libcuda.so.1 or from what LINATTN_CUDA_DRIVER names. Every function   *|
|* may be called from several threads, also with the same kernel.             *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef LINATTN_C_RUNNER_H
#define LINATTN_C_RUNNER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LINATTN_EXPORT __attribute__((visibility("default")))
#else
#define LINATTN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What went wrong. Functions return NULL where nothing did; the caller owns an
 *  error and frees it. */
typedef struct linattn_error linattn_error;
LINATTN_EXPORT const char *linattn_error_message(const linattn_error *error);

typedef enum {
  LINATTN_ERROR_OTHER = 1,
  /** On the host or on the device. The results of a launch then have
   * unspecified contents, a state that is updated in place included; a later
   * one may succeed. */
  LINATTN_ERROR_OUT_OF_MEMORY = 2,
  /** A launch on the CPU was ended by the deadline of its thread, or by an
   *  interrupt (linattn-c/Runtime.h). Its contents are then as above. */
  LINATTN_ERROR_TIMED_OUT = 3,
  LINATTN_ERROR_INTERRUPTED = 4
} linattn_error_kind;
LINATTN_EXPORT linattn_error_kind
linattn_error_get_kind(const linattn_error *error);
/** NULL is allowed. */
LINATTN_EXPORT void linattn_error_free(linattn_error *error);

typedef enum {
  LINATTN_F16 = 0,
  LINATTN_BF16,
  LINATTN_F32,
  LINATTN_F64,
  LINATTN_I1, /**< a byte, 0 or 1 */
  LINATTN_I8,
  LINATTN_I16,
  LINATTN_I32,
  LINATTN_I64,
  LINATTN_INDEX /**< 64 bits */
} linattn_dtype;

/** A strided view of the caller's memory, that of the device for bundles of
 *  target nvvm. Scalars have rank 0 and lie in host memory. */
typedef struct {
  /** The element with index 0 in every dimension. */
  void *data;
  const int64_t *shape;
  /** In elements; NULL means contiguous. */
  const int64_t *strides;
  int32_t rank;
  /** A linattn_dtype. */
  int32_t dtype;
} linattn_view;

/** An argument or a result of a kernel. */
typedef struct {
  /** As in the source; empty if it has no name there. */
  const char *name;
  /** Extents; -1 where any is accepted. */
  const int64_t *shape;
  int32_t rank;
  int32_t dtype;
  /** Not a tensor: passed as a view of rank 0 in host memory. */
  int32_t is_scalar;
  /** Of a result: the argument whose very buffer it may be given, to update a
   *  state in place; -1 if there is none. */
  int32_t in_place_of;
} linattn_operand;

/** A loaded bundle. */
typedef struct linattn_kernel linattn_kernel;

/** Loads a bundle from memory, which is copied, or from a file. A damaged one
 *  is an error. Bundles hold code: load those that you trust. */
LINATTN_EXPORT linattn_error *linattn_kernel_load(const void *data, size_t size,
                                                  linattn_kernel **kernel);
LINATTN_EXPORT linattn_error *linattn_kernel_load_file(const char *path,
                                                       linattn_kernel **kernel);
/** Unloads it from all contexts. No launch may be in progress. NULL is
 *  allowed. */
LINATTN_EXPORT void linattn_kernel_free(linattn_kernel *kernel);

/** "nvvm" or "cpu". */
LINATTN_EXPORT const char *linattn_kernel_target(const linattn_kernel *kernel);
/** The name of the function it was compiled from. */
LINATTN_EXPORT const char *linattn_kernel_entry(const linattn_kernel *kernel);
/** The manifest, JSON. */
LINATTN_EXPORT const char *
linattn_kernel_manifest(const linattn_kernel *kernel);

LINATTN_EXPORT int32_t
linattn_kernel_num_arguments(const linattn_kernel *kernel);
LINATTN_EXPORT int32_t linattn_kernel_num_results(const linattn_kernel *kernel);
/** Arguments first, then results; valid as long as the kernel. NULL if there is
 *  no such operand. */
LINATTN_EXPORT const linattn_operand *
linattn_kernel_operand(const linattn_kernel *kernel, int32_t index);

/** Computes the extents of all results, one result after the other, from those
 *  of the arguments. `num_views` is the number of arguments; their `data` is
 *  not looked at. */
LINATTN_EXPORT linattn_error *
linattn_kernel_result_shapes(const linattn_kernel *kernel,
                             const linattn_view *views, int32_t num_views,
                             int64_t *extents);

/** Makes the kernel ready in the current context of the calling thread, or in
 *  the primary one of device 0 if there is none: chooses the code for the
 *  device, loads it and sets attributes. Does nothing the second time. */
LINATTN_EXPORT linattn_error *linattn_kernel_prepare(linattn_kernel *kernel);

/** Bytes of device memory that a launch with views of these shapes needs for
 *  itself; often 0. The kernel must have been prepared. */
LINATTN_EXPORT linattn_error *
linattn_kernel_workspace_size(const linattn_kernel *kernel,
                              const linattn_view *views, int32_t num_views,
                              size_t *bytes);

/** Launches the kernel on `views`, arguments first and then results, in order
 *  with what else is in `stream`, a CUstream. It must have been prepared in
 *  this context. Checks shapes, strides, alignment and overlap; allocates no
 *  device memory, loads nothing and does not wait: it may be captured in a
 *  graph. `workspace` is aligned to 256 bytes, and used until the launch has
 *  run. A kernel of target cpu computes before this returns; its stream is
 *  NULL, and its workspace is allocated on the host. */
LINATTN_EXPORT linattn_error *
linattn_kernel_launch(const linattn_kernel *kernel, const linattn_view *views,
                      int32_t num_views, void *workspace,
                      size_t workspace_bytes, void *stream);

/** For bindings whose arrays speak DLPack. `tensor` is a DLTensor. Where it has
 *  the shape, the strides and the element type that `view` has already, on CUDA
 *  (`is_cuda`) or in host memory, sets its address and returns 1; else changes
 *  nothing and returns 0. */
LINATTN_EXPORT int32_t linattn_view_follow_dlpack(linattn_view *view,
                                                  const void *tensor,
                                                  int32_t is_cuda);
/** The same for a capsule of Python; `get` is PyCapsule_GetPointer, which this
 *  library does not link. The caller holds the interpreter's lock. */
LINATTN_EXPORT int32_t
linattn_view_follow_capsule(linattn_view *view, void *capsule, int32_t is_cuda,
                            void *(*get)(void *capsule, const char *name));

/** The number of the current device, and its compute capability. */
LINATTN_EXPORT linattn_error *
linattn_device_current(int32_t *ordinal, int32_t *major, int32_t *minor);
/** Of the current device: its multiprocessors, and the bandwidth of its memory
 * in bytes per second, from its clock and width; 0 where the driver does not
 * say. */
LINATTN_EXPORT linattn_error *
linattn_device_properties(int32_t *multiprocessors, int64_t *bandwidth);
/** Makes device `ordinal` the current one of this thread, by its primary
 * context, until `linattn_device_leave`. Where it is that already, sets
 * `entered` to 0: then there is nothing to leave. */
LINATTN_EXPORT linattn_error *linattn_device_enter(int32_t ordinal,
                                                   int32_t *entered);
LINATTN_EXPORT linattn_error *linattn_device_leave(void);
/** Waits until all work in a CUstream of the current context is done. */
LINATTN_EXPORT linattn_error *linattn_stream_synchronize(void *stream);

/** Device memory, for callers without an allocator of their own. */
LINATTN_EXPORT linattn_error *linattn_device_allocate(size_t bytes,
                                                      void **memory);
/** Waits until the device is idle. NULL is allowed. */
LINATTN_EXPORT linattn_error *linattn_device_free(void *memory);
/** Copies to and from device memory, in order with the default stream; wait
 *  for the launches of other streams before. */
LINATTN_EXPORT linattn_error *
linattn_device_write(void *memory, const void *from, size_t bytes);
LINATTN_EXPORT linattn_error *linattn_device_read(void *to, const void *memory,
                                                  size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* LINATTN_C_RUNNER_H */
