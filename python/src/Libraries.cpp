//===- Libraries.cpp - Array libraries of this process --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libraries.h"

#include <cstring>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

Libraries::Libraries() {
  nb::module_ numpy = nb::module_::import_("numpy");
  numpyArray = numpy.attr("ndarray");
  numpyEmpty = numpy.attr("empty");
  float32 = numpy.attr("dtype")("float32");
  float64 = numpy.attr("dtype")("float64");
  uint16 = numpy.attr("dtype")("uint16");
  viewName = nb::str("view");
  dtypeName = nb::str("dtype");
  dlpackName = nb::str("__dlpack__");
  dlpackDeviceName = nb::str("__dlpack_device__");
  cudaName = nb::str("__cuda_array_interface__");
  gradientName = nb::str("requires_grad");
  isNegName = nb::steal(PyUnicode_InternFromString("is_neg"));
  levelName = nb::steal(PyUnicode_InternFromString("_current_level"));
  maxVersion = nb::make_tuple(1, 0);
}

Libraries &linattn::python::getLibraries() {
  static Libraries *libraries = new Libraries;
  return *libraries;
}

nb::object linattn::python::getBFloat16() {
  Libraries &libraries = getLibraries();
  if (!libraries.bfloat16.is_valid())
    libraries.bfloat16 = nb::module_::import_("numpy").attr("dtype")(
        nb::module_::import_("ml_dtypes").attr("bfloat16"));
  return libraries.bfloat16;
}

bool linattn::python::recordsForward() {
  Libraries &libraries = getLibraries();
  if (!libraries.forwardGradients.is_valid())
    return false;
  PyObject *level = PyDict_GetItemWithError(libraries.forwardGradients.ptr(),
                                            libraries.levelName.ptr());
  return level && PyLong_Check(level) && PyLong_AsLong(level) >= 0;
}

/// Whether the type is a tensor or a parameter, instead of a subclass of them.
static bool isPlainTensor(nb::handle type, const std::string &module) {
  nb::object name = type.attr("__name__");
  std::string typeName = nb::str(nb::handle(name)).c_str();
  return (module == "torch" && typeName == "Tensor") ||
         (module == "torch.nn.parameter" && typeName == "Parameter");
}

static bool isDerivedTensor(nb::handle object, const std::string &module) {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  PyObject *torch = PyDict_GetItemString(modules.ptr(), "torch");
  return torch && nb::hasattr(torch, "Tensor") &&
         !isPlainTensor(object.type(), module) &&
         PyObject_IsInstance(object.ptr(),
                             nb::handle(torch).attr("Tensor").ptr()) == 1;
}

static bool isTracerType(nb::handle object) {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  PyObject *core = PyDict_GetItemString(modules.ptr(), "jax.core");
  return core && nb::hasattr(core, "Tracer") &&
         PyObject_IsInstance(object.ptr(),
                             nb::handle(core).attr("Tracer").ptr()) == 1;
}

/// Looks up the variables of forward gradients in the place where PyTorch 2 has
/// them.
static void findForwardGradients() {
  Libraries &libraries = getLibraries();
  nb::object modules = nb::module_::import_("sys").attr("modules");
  if (PyObject *module =
          PyDict_GetItemString(modules.ptr(), "torch.autograd.forward_ad"))
    libraries.forwardGradients = nb::borrow(PyModule_GetDict(module));
}

/// The exchange functions of a type. Subclasses inherit those of a tensor,
/// though their elements may be elsewhere, or nowhere.
static const dlpack::ExchangeAPI *findAPI(nb::handle type,
                                          const std::string &module) {
  if (!isPlainTensor(type, module))
    return nullptr;
  if (!nb::hasattr(type, "__dlpack_c_exchange_api__"))
    return nullptr;
  nb::object capsule = type.attr("__dlpack_c_exchange_api__");
  if (!PyCapsule_IsValid(capsule.ptr(), dlpack::kExchangeName))
    return nullptr;
  const auto *api = static_cast<const dlpack::ExchangeAPI *>(
      PyCapsule_GetPointer(capsule.ptr(), dlpack::kExchangeName));
  while (api && api->version.major > 1)
    api = api->previous;
  return api && api->version.major == 1 && api->borrow ? api : nullptr;
}

TypeInfo linattn::python::classify(nb::handle object, const char *name) {
  Libraries &libraries = getLibraries();
  PyTypeObject *type = Py_TYPE(object.ptr());
  if (auto it = libraries.types.find(type); it != libraries.types.end())
    return it->second;
  nb::object moduleName = object.type().attr("__module__");
  std::string module = nb::str(nb::handle(moduleName)).c_str();
  auto isIn = [&](const char *package) {
    size_t length = std::strlen(package);
    return module.compare(0, length, package) == 0 &&
           (module.size() == length || module[length] == '.');
  };
  // A masked array's buffer includes the elements that the mask hides.
  if (nb::hasattr(object, "mask") && nb::hasattr(object, "fill_value") &&
      PyObject_IsInstance(object.ptr(), libraries.numpyArray.ptr()) == 1)
    throw nb::type_error((std::string(name) +
                          ": expected an array without a mask, but got " +
                          describeType(object) +
                          "; pass its `filled()`, and the mask as an operand")
                             .c_str());
  TypeInfo info;
  if (PyObject_IsInstance(object.ptr(), libraries.numpyArray.ptr()) == 1)
    info.kind = ArrayKind::NumPy;
  else if (isIn("torch") || nb::hasattr(object, "requires_grad"))
    info.kind = ArrayKind::Torch;
  else if (isIn("jax") || isIn("jaxlib"))
    info.kind = ArrayKind::Jax;
  else if (nb::hasattr(object, "__array_namespace__"))
    info.kind = ArrayKind::ArrayApi;
  if (info.kind == ArrayKind::Torch) {
    info.api = findAPI(object.type(), module);
    info.isTensorSubclass = isDerivedTensor(object, module);
    findForwardGradients();
  }
  if (info.kind == ArrayKind::Jax)
    info.isTracer = isTracerType(object);
  // Keeps the map's key valid.
  Py_INCREF(reinterpret_cast<PyObject *>(type));
  libraries.types.emplace(type, info);
  return info;
}
