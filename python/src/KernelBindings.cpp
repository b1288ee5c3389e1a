//===- KernelBindings.cpp - Compiled functions, for Python ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Bindings.h"
#include "Buffer.h"
#include "Interrupts.h"
#include "KernelObject.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Support/Interrupted.h"
#include "linattn/Support/OutOfMemory.h"

#include <deque>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

void linattn::python::throwError(
    llvm::Error error, llvm::function_ref<std::string(std::string)> edit) {
  bool lacksMemory = error.isA<OutOfMemoryError>();
  bool interrupted = error.isA<InterruptedError>();
  try {
    if (interrupted)
      throwInterrupted(std::move(error));
    std::string message = llvm::toString(std::move(error));
    if (edit)
      message = edit(std::move(message));
    if (lacksMemory)
      throwMemoryError(message);
    throw nb::value_error(message.c_str());
  } catch (nb::python_error &raised) {
    // The kernel's results are incomplete.
    raised.value().attr("_ended_call") = true;
    throw;
  }
}

int32_t linattn::python::parseNumThreads(nb::handle numThreads) {
  if (numThreads.is_none())
    return 0;
  int64_t count = 0;
  if (PyBool_Check(numThreads.ptr()) || !nb::try_cast(numThreads, count))
    throw nb::type_error(("num_threads: expected an integer or None, but got " +
                          describeType(numThreads))
                             .c_str());
  if (count < 1 || count > INT32_MAX)
    throw nb::value_error(
        ("num_threads: expected a positive integer, but got " +
         std::to_string(count))
            .c_str());
  return static_cast<int32_t>(count);
}

namespace {

//===----------------------------------------------------------------------===//
// Calls with the function's own arguments
//===----------------------------------------------------------------------===//

/// Holds the numbers that are passed for scalars.
struct ScalarStorage {
  union {
    float f32;
    double f64;
    int64_t i64;
  };
};

/// A Python number as a view, for a scalar argument.
BufferView makeScalar(nb::handle number, const ValueInfo &info,
                      const std::string &name, ScalarStorage &storage) {
  bool isNumber = PyFloat_Check(number.ptr()) || PyLong_Check(number.ptr());
  bool fits = isNumber && (isFloat(info.dtype) || PyLong_Check(number.ptr()));
  if (!fits || info.dtype == DType::F16 || info.dtype == DType::BF16)
    throw nb::type_error((name + ": expected a number of type " +
                          getPythonName(info.dtype) + ", but got " +
                          describeType(number))
                             .c_str());
  if (info.dtype == DType::F32)
    storage.f32 = static_cast<float>(PyFloat_AsDouble(number.ptr()));
  else if (info.dtype == DType::F64)
    storage.f64 = PyFloat_AsDouble(number.ptr());
  else
    // Little-endian: the low bytes are the narrower integer.
    storage.i64 = PyLong_AsLongLong(number.ptr());
  if (PyErr_Occurred())
    throw nb::python_error();
  return BufferView(static_cast<void *>(&storage), info.dtype, {});
}

/// The inputs and outputs of one call.
class KernelCall {
public:
  KernelCall(const Kernel &kernel, nb::args args)
      : kernel(kernel), signature(kernel.signature()) {
    if (args.size() != signature.arguments.size())
      throw nb::type_error(("'" + signature.entry + "': expected " +
                            std::to_string(signature.arguments.size()) +
                            " arguments, but got " +
                            std::to_string(args.size()))
                               .c_str());
    for (size_t i = 0; i < args.size(); ++i)
      addInput(args[i], i);
  }

  nb::object run(nb::handle out, int32_t numThreads) {
    if (place.device != Place::kUnknown &&
        place.isDevice() != kernel.isForDevice())
      throw nb::value_error(
          ("'" + signature.entry + "': expected arrays in " +
           (kernel.isForDevice() ? "the memory of a GPU"
                                 : "the memory of the CPU") +
           ", which the function is compiled for, but got arrays in " +
           describeDevice(place.device))
              .c_str());
    llvm::SmallVector<Kernel::Shape, 2> shapes =
        unwrap(kernel.resultShapes(inputs));
    makeResults(shapes, out);
    if (isExplained(kernel, inputs))
      return finish();
    RunOptions options;
    options.numThreads = numThreads;
    options.stream = place.stream;
    auto call = [&] {
      ReleaseScope release;
      return kernel.run(inputs, outputs, options);
    };
    if (llvm::Error error = call())
      throwError(std::move(error));
    return finish();
  }

  std::vector<std::string> explain() { return unwrap(kernel.explain(inputs)); }

private:
  void addInput(nb::handle argument, size_t index) {
    const ValueInfo &info = signature.arguments[index];
    std::string name = signature.describeArgument(index);
    if (info.shape.empty() &&
        (PyFloat_Check(argument.ptr()) || PyLong_Check(argument.ptr()))) {
      scalars.emplace_back();
      inputs.push_back(makeScalar(argument, info, name, scalars.back()));
      return;
    }
    arrays.emplace_back();
    arrays.back().import(argument, name.c_str(), place);
    inputs.push_back(arrays.back().view);
    if (!like.is_valid() && info.getRank() > 0) {
      like = nb::borrow(argument);
      kind = arrays.back().kind;
    }
  }

  void makeResults(llvm::ArrayRef<Kernel::Shape> shapes, nb::handle out) {
    bool isTuple =
        nb::isinstance<nb::tuple>(out) || nb::isinstance<nb::list>(out);
    size_t given = out.is_none() ? 0 : isTuple ? nb::len(out) : 1;
    if (given != 0 && given != shapes.size())
      throw nb::value_error(("out: expected " + std::to_string(shapes.size()) +
                             " arrays, but got " + std::to_string(given))
                                .c_str());
    for (size_t i = 0; i < shapes.size(); ++i) {
      results.emplace_back();
      if (given == 0)
        results.back().allocate(like, like.is_valid() ? kind : ArrayKind::NumPy,
                                signature.results[i].dtype, shapes[i], place);
      else
        results.back().adopt(isTuple ? nb::object(out[i]) : nb::borrow(out),
                             "out", place);
      outputs.push_back(results.back().view());
    }
  }

  nb::object finish() {
    if (results.size() == 1)
      return results.front().finish();
    nb::list list;
    for (ResultArray &result : results)
      list.append(result.finish());
    return nb::tuple(list);
  }

  const Kernel &kernel;
  const Signature &signature;
  std::deque<ImportedArray> arrays;
  std::deque<ScalarStorage> scalars;
  std::deque<ResultArray> results;
  llvm::SmallVector<BufferView, 8> inputs, outputs;
  nb::object like;
  ArrayKind kind = ArrayKind::NumPy;
  Place place;
  DeviceScope scope{place};
};

std::string describeSignature(const Signature &signature) {
  std::string text = "func @" + signature.entry + "(";
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    const ValueInfo &info = signature.arguments[i];
    text += (i ? ", " : "") +
            (info.name.empty() ? "" : "%" + info.name + ": ") +
            info.getTypeString();
  }
  text += ") -> (";
  for (size_t i = 0; i < signature.results.size(); ++i)
    text += (i ? ", " : "") + signature.results[i].getTypeString();
  return text + ")";
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

Kernel compile(const std::string &text, const std::string &entry,
               const std::string &fileName, const std::string &target,
               const std::string &form, const std::string &reassociate,
               const std::string &math, bool trusted,
               std::optional<std::vector<int64_t>> differentiate,
               int64_t sequences, int64_t tokens) {
  CompilerOptions options;
  options.hints.sequences = sequences;
  options.hints.tokens = tokens;
  options.trusted = trusted;
  options.isolated = !trusted;
  options.differentiate = std::move(differentiate);
  if (target == "reference")
    options.target = Target::Reference;
  else if (target == "nvvm-emulated")
    options.target = Target::NVVMEmulated;
  else if (target == "nvvm")
    options.target = Target::NVVM;
  else if (target != "cpu")
    throw nb::value_error(
        ("target: expected cpu, nvvm, reference or nvvm-emulated, but got " +
         target)
            .c_str());
  options.form = form;
  options.reassociate = reassociate;
  if (math == "fast")
    options.math = Math::Fast;
  else if (math == "strict")
    options.math = Math::Strict;
  else if (!math.empty())
    throw nb::value_error(
        ("math: expected strict or fast, but got " + math).c_str());
  nb::gil_scoped_release release;
  llvm::Expected<Kernel> kernel =
      Compiler(options).compile(text, entry, fileName);
  if (kernel)
    return std::move(*kernel);
  nb::gil_scoped_acquire acquire;
  throwError(kernel.takeError());
}

std::string joinLines(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += (text.empty() ? "" : "\n") + line;
  return text;
}

/// The remarks of kernels, while `explain` calls a function.
thread_local std::vector<std::string> *explanation = nullptr;
thread_local bool hasEndedCall = false;

/// Calls a function and returns the remarks of its kernels, without
/// repetitions.
std::string explainCall(nb::callable function) {
  std::vector<std::string> lines;
  struct Scope {
    std::vector<std::string> *outer = explanation;
    ~Scope() { explanation = outer; }
  } scope;
  explanation = &lines;
  hasEndedCall = false;
  try {
    function();
  } catch (nb::python_error &) {
    if (!hasEndedCall)
      throw;
  }
  return joinLines(lines);
}

} // namespace

bool linattn::python::isExplained(const Kernel &kernel,
                                  llvm::ArrayRef<BufferView> inputs) {
  if (!explanation)
    return false;
  for (std::string &line : unwrap(kernel.explain(inputs)))
    if (!llvm::is_contained(*explanation, line))
      explanation->push_back(std::move(line));
  return true;
}

void linattn::python::endExplainedCall() {
  if (!explanation)
    return;
  hasEndedCall = true;
  throw nb::value_error("explained");
}

void linattn::python::registerKernel(nb::module_ &module) {
  nb::class_<Kernel>(module, "Kernel",
                     "A compiled function; see linattn.compile.")
      .def(
          "__call__",
          [](const Kernel &self, nb::args args, nb::kwargs options) {
            nb::object out = nb::none(), numThreads = nb::none();
            for (auto [name, value] : options) {
              std::string key = nb::cast<std::string>(name);
              if (key != "out" && key != "num_threads")
                throw nb::type_error(("'" + self.signature().entry +
                                      "': expected the keywords out and "
                                      "num_threads, but got " +
                                      key)
                                         .c_str());
              (key == "out" ? out : numThreads) = nb::borrow(value);
            }
            return KernelCall(self, args).run(out, parseNumThreads(numThreads));
          },
          "args"_a, "options"_a,
          "Runs the function on arrays in the layout of its own signature. "
          "Returns an array, or a tuple where it has several results.")
      .def(
          "mlir",
          [](const Kernel &self, nb::object stage) {
            std::string name = "input";
            if (!stage.is_none() && !nb::try_cast(stage, name))
              throw nb::type_error(("stage: expected a string or None, but "
                                    "got " +
                                    describeType(stage))
                                       .c_str());
            return unwrap(self.mlir(name));
          },
          "stage"_a = nb::none(),
          "The IR at a stage (see `stages`); the source if none is named.")
      .def(
          "stages", [](const Kernel &self) { return unwrap(self.stages()); },
          "The names of the stages that `mlir` knows, in order.")
      .def(
          "asm", [](const Kernel &self) { return unwrap(self.assembly()); },
          "The code in the machine's assembly language.")
      .def(
          "llvm_ir", [](const Kernel &self) { return unwrap(self.llvmIR()); },
          "The optimised code in LLVM IR.")
      .def(
          "explain",
          [](const Kernel &self, nb::args args) {
            return joinLines(nb::len(args) ? KernelCall(self, args).explain()
                                           : self.explain());
          },
          "args"_a,
          "The compiler's decisions and their reasons, a line per remark; with "
          "the arguments of a call, also the cost of their layouts.")
      .def_prop_ro("entry",
                   [](const Kernel &self) { return self.signature().entry; })
      .def_prop_ro(
          "num_results",
          [](const Kernel &self) { return self.signature().results.size(); })
      .def("__repr__", [](const Kernel &self) {
        return "<linattn.Kernel " + describeSignature(self.signature()) + ">";
      });
  module.def("compile", compile, "text"_a, "entry"_a, "file_name"_a, "target"_a,
             "form"_a = "auto", "reassociate"_a = "auto", "math"_a = "",
             "trusted"_a = true, "differentiate"_a = nb::none(),
             "sequences"_a = 0, "tokens"_a = 0);
  module.def(
      "public_functions",
      [](const std::string &text, const std::string &fileName, bool trusted) {
        return unwrap(Compiler::getPublicFunctions(text, fileName,
                                                   /*isolated=*/!trusted));
      },
      "text"_a, "file_name"_a, "trusted"_a = true,
      nb::call_guard<nb::gil_scoped_release>(),
      "The names of the public functions of a module, in order.");
  module.def("explain", explainCall, "function"_a,
             "Calls a function whose kernels do not run but report what the "
             "compiler decided.");
  module.def(
      "clear_cache", [] { Compiler::clearMemoryCache(); },
      "Forgets the compiled code in memory; kernels in use live on.");
  module.def("has_matrix_unit", &Compiler::hasMatrixUnit,
             "Whether kernels of the CPU may have products in a matrix unit.");
  module.def("cache_stats", [] {
    CacheStats stats = Compiler::getCacheStats();
    nb::dict result;
    result["memory_hits"] = stats.memoryHits;
    result["disk_hits"] = stats.diskHits;
    result["misses"] = stats.misses;
    return result;
  });
  module.def(
      "disk_cache",
      [] {
        DiskCacheInfo info = unwrap(Compiler::getDiskCacheInfo());
        nb::dict result;
        result["directory"] = info.directory;
        result["problem"] = info.problem;
        result["files"] = info.files;
        result["bytes"] = info.bytes;
        result["max_bytes"] = info.maxBytes;
        return result;
      },
      "The folder of compiled code, why there is none, and its size.");
}
