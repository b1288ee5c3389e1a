//===- XlaApi.h - The used part of XLA's FFI --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// XLA calls foreign functions with a frame of plain structures. Every one
// begins with its size, and versions only append to them. Those that a handler
// reads are declared here, so that the module builds without JAX and works with
// every version of it that has them.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_XLAAPI_H
#define LINATTN_PYTHON_XLAAPI_H

#include <cstddef>
#include <cstdint>

namespace linattn::xla {

struct Error;

/// An extension of a structure.
struct Extension {
  size_t size;
  int32_t type;
  Extension *next;
};

/// The beginning of every structure.
struct Header {
  size_t size;
  Extension *extensions;
};

struct Version {
  Header header;
  int32_t major, minor;
};

/// A handler's description of itself. Newer versions append the type of its
/// state, which remains zero here.
struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
};

/// The first kind of extension: XLA reads the metadata instead of making a
/// call.
inline constexpr int32_t kMetadataExtension = 1;
struct MetadataExtension {
  Extension extension;
  Metadata *metadata;
};

enum ErrorCode : int32_t {
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  ResourceExhausted = 8,
};

struct ErrorArguments {
  Header header;
  const char *message;
  ErrorCode code;
};

/// The table of functions, of which this is the first.
struct Api {
  Header header;
  Version version;
  const void *internal;
  Error *(*createError)(ErrorArguments *arguments);
};

/// PrimitiveType.
enum ElementType : int32_t {
  Pred = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  BF16 = 16,
};

/// A contiguous row-major array.
struct Buffer {
  Header header;
  ElementType type;
  void *data;
  int64_t rank;
  int64_t *shape;
};

struct String {
  const char *data;
  size_t size;
};

/// Arguments or results. In both, kind 1 is a buffer.
struct Buffers {
  Header header;
  int64_t count;
  int32_t *kinds;
  void **items;
};
inline constexpr int32_t kBuffer = 1;

/// Attributes in the order of their names.
struct Attributes {
  Header header;
  int64_t count;
  int32_t *kinds;
  String **names;
  void **items;
};
inline constexpr int32_t kString = 4;

struct CallFrame {
  Header header;
  const Api *api;
  void *context;
  int32_t stage;
  Buffers arguments, results;
  Attributes attributes;
};

} // namespace linattn::xla

#endif // LINATTN_PYTHON_XLAAPI_H
