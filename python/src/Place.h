//===- Place.h - Where the arrays of a call are -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_PLACE_H
#define LINATTN_PYTHON_PLACE_H

#include <cstdint>
#include <nanobind/nanobind.h>
#include <string>

namespace linattn::python {

/// The library of an array, in which results are returned.
enum class ArrayKind : uint8_t { NumPy, Torch, Jax, ArrayApi, Other };

/// The memory of a call's arrays. The first array determines it.
struct Place {
  static constexpr int32_t kUnknown = -2, kCPU = -1;
  /// The number of a GPU, or the CPU.
  int32_t device = kUnknown;
  /// The CUstream of a call on a GPU: the current one of the first array's
  /// library.
  void *stream = nullptr;
  /// Whether that GPU was made the current one for the call.
  bool entered = false;

  bool isDevice() const { return device >= 0; }
  /// The stream in the numbering of `__dlpack__`, where 1 is the default
  /// stream.
  int64_t getStreamNumber() const {
    return stream ? static_cast<int64_t>(reinterpret_cast<intptr_t>(stream))
                  : 1;
  }
};

/// "the memory of the CPU", "GPU 0".
std::string describeDevice(int32_t device);

/// Records the memory of `array`. Throws if earlier arrays are elsewhere.
void meet(Place &place, int32_t device, nanobind::handle array, ArrayKind kind,
          const char *name);

/// Restores the device that was current before a call, if `meet` changed it.
class DeviceScope {
public:
  explicit DeviceScope(const Place &place) : place(place) {}
  ~DeviceScope();
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

private:
  const Place &place;
};

/// Waits until the work in the stream is done.
void synchronize(const Place &place);

} // namespace linattn::python

#endif // LINATTN_PYTHON_PLACE_H
