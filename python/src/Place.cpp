//===- Place.cpp - Where the arrays of a call are -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place.h"
#include "Errors.h"
#include "linattn-c/Runner.h"

namespace nb = nanobind;
using namespace linattn::python;

std::string linattn::python::describeDevice(int32_t device) {
  return device == Place::kCPU ? "the memory of the CPU"
                               : "GPU " + std::to_string(device);
}

static void check(linattn_error *error) {
  if (!error)
    return;
  std::string message = linattn_error_message(error);
  linattn_error_free(error);
  throwValueError(message);
}

/// The current stream of an array's library.
static void *findStream(nb::handle array, ArrayKind kind, int32_t device) {
  auto toPointer = [](nb::object number) {
    return reinterpret_cast<void *>(nb::cast<uintptr_t>(number));
  };
  if (kind == ArrayKind::Torch)
    return toPointer(nb::module_::import_("torch")
                         .attr("cuda")
                         .attr("current_stream")(device)
                         .attr("cuda_stream"));
  nb::object module = array.type().attr("__module__");
  std::string name = nb::str(nb::handle(module)).c_str();
  if (name.compare(0, 4, "cupy") == 0)
    return toPointer(nb::module_::import_("cupy")
                         .attr("cuda")
                         .attr("get_current_stream")()
                         .attr("ptr"));
  if (nb::hasattr(array, "__cuda_array_interface__")) {
    nb::object interface = array.attr("__cuda_array_interface__");
    nb::object stream = interface.attr("get")("stream");
    if (!stream.is_none())
      return toPointer(stream);
  }
  return nullptr;
}

DeviceScope::~DeviceScope() {
  if (place.entered)
    linattn_error_free(linattn_device_leave());
}

void linattn::python::meet(Place &place, int32_t device, nb::handle array,
                           ArrayKind kind, const char *name) {
  if (place.device == Place::kUnknown) {
    if (device != Place::kCPU) {
      // Kernels are launched in the current context.
      int32_t entered = 0;
      check(linattn_device_enter(device, &entered));
      place.entered = entered;
      place.stream = findStream(array, kind, device);
    }
    place.device = device;
  }
  if (place.device != device)
    throwValueError(std::string(name) +
                    ": expected an array where the first one is, " +
                    describeDevice(place.device) + ", but got one in " +
                    describeDevice(device));
}

void linattn::python::synchronize(const Place &place) {
  check(linattn_stream_synchronize(place.stream));
}
