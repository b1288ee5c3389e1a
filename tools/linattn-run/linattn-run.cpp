//===- linattn-run.cpp - Run, compare and time compiled functions ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "CommandLine.h"
#include "Exact.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Emulator/LaunchLog.h"
#include "linattn/Peak/FmaPeak.h"
#include "linattn/Support/Elements.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace cl = llvm::cl;
using namespace linattn;

namespace {

/// The results of one run: buffers, and the report as JSON.
struct Report {
  std::vector<NpyArray> outputs;
  llvm::json::Object json;
};

double getMilliseconds() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CompilerOptions getCompilerOptions(const CommandLine &options, Target target) {
  CompilerOptions compilerOptions;
  compilerOptions.target = target;
  compilerOptions.reassociate = options.reassociate;
  compilerOptions.form = options.form;
  compilerOptions.checkDecays = options.checkDecays;
  compilerOptions.trusted = options.trusted;
  compilerOptions.isolated = !options.trusted;
  if (options.math.getNumOccurrences())
    compilerOptions.math = options.math;
  if (options.matrixUnit.getNumOccurrences())
    compilerOptions.matrixUnit = options.matrixUnit;
  return compilerOptions;
}

llvm::Expected<Kernel> compile(const CommandLine &options,
                               const Program &program, llvm::StringRef entry,
                               Target target) {
  return Compiler(getCompilerOptions(options, target))
      .compile(program.text, entry, program.name);
}

/// Prints the difference to the reference. Returns false if it is too large.
llvm::Expected<bool> compareToReference(const CommandLine &options,
                                        const Program &program,
                                        llvm::StringRef entry,
                                        std::vector<NpyArray> &inputs,
                                        Report &report) {
  llvm::Expected<Kernel> reference =
      compile(options, program,
              options.referenceEntry.empty() ? entry : options.referenceEntry,
              Target::Reference);
  if (!reference)
    return reference.takeError();
  auto expected = runOnce(*reference, inputs, {options.threads});
  if (!expected)
    return expected.takeError();
  if (expected->size() != report.outputs.size())
    return llvm::createStringError(
        "--compare: expected " + llvm::Twine(expected->size()) +
        " results, but got " + llvm::Twine(report.outputs.size()));
  bool agrees = true;
  llvm::json::Array records;
  for (size_t i = 0; i < expected->size(); ++i) {
    const NpyArray &exact = (*expected)[i], &got = report.outputs[i];
    if (exact.dtype != got.dtype || exact.shape != got.shape)
      return llvm::createStringError(
          "--compare: expected result " + llvm::Twine(i) + " as " +
          formatShape(exact.shape) + " " + std::string(getName(exact.dtype)) +
          ", but got " + formatShape(got.shape) + " " +
          std::string(getName(got.dtype)));
    Difference difference = compareElements(
        exact.dtype, got.data.data(), exact.data.data(),
        static_cast<int64_t>(exact.data.size()) / getByteSize(exact.dtype));
    double tolerance = options.tolerance.getNumOccurrences()
                           ? options.tolerance
                           : getTolerance(exact.dtype);
    bool ok = difference.sameSpecials && difference.maxRelative <= tolerance;
    agrees &= ok;
    llvm::outs() << "result " << i << ": "
                 << (ok ? "agrees with" : "differs from") << " the reference: "
                 << "max relative error "
                 << llvm::format("%.3g", difference.maxRelative)
                 << ", tolerance " << llvm::format("%.3g", tolerance);
    if (!ok)
      llvm::outs() << ", worst at element " << difference.index
                   << (difference.sameSpecials ? "" : " (not finite)");
    llvm::outs() << "\n";
    records.push_back(
        llvm::json::Object{{"max_rel_error", difference.maxRelative},
                           {"tolerance", tolerance},
                           {"agrees", ok}});
  }
  report.json["compare"] = std::move(records);
  return agrees;
}

/// The number of calls to time; 0 without --time.
llvm::Expected<unsigned> getRepetitions(const CommandLine &options) {
  if (options.time.getNumOccurrences() == 0)
    return 0;
  if (options.time.empty())
    return 20;
  unsigned repetitions;
  if (llvm::StringRef(options.time).getAsInteger(10, repetitions) ||
      repetitions == 0 || repetitions > 1000000)
    return llvm::createStringError(
        "--time: expected a number of repetitions, but got '" + options.time +
        "'");
  return repetitions;
}

llvm::Error timeKernel(const CommandLine &options, unsigned repetitions,
                       const Kernel &kernel, std::vector<NpyArray> &inputs,
                       Report &report) {
  auto call = CallBuffers::create(kernel, inputs, report.outputs);
  if (!call)
    return call.takeError();
  int64_t vectorBits = getVectorTarget().vectorBits;
  double peakBefore = measureFmaGflops(/*threads=*/1, vectorBits);
  std::vector<double> times(repetitions);
  for (double &time : times) {
    double start = getMilliseconds();
    if (llvm::Error error = call->run(kernel, {options.threads}))
      return error;
    time = getMilliseconds() - start;
  }
  double peakAfter = measureFmaGflops(/*threads=*/1, vectorBits);
  llvm::sort(times);
  double median = times[times.size() / 2];
  llvm::outs() << "time: median " << llvm::format("%.4g", median) << " ms, min "
               << llvm::format("%.4g", times.front()) << " ms, " << times.size()
               << " repetitions\n"
               << "one core's FMA peak (" << getFmaKind(vectorBits)
               << "): " << llvm::format("%.1f", peakBefore)
               << " GFLOP/s before, " << llvm::format("%.1f", peakAfter)
               << " after\n";
  report.json["time"] = llvm::json::Object{{"median_ms", median},
                                           {"min_ms", times.front()},
                                           {"repetitions", times.size()},
                                           {"fma_gflops_before", peakBefore},
                                           {"fma_gflops_after", peakAfter}};
  if (options.flops > 0) {
    double gflops = options.flops / median * 1e-6;
    double share = gflops / std::max(peakBefore, peakAfter);
    llvm::outs() << "speed: " << llvm::format("%.2f", gflops) << " GFLOP/s, "
                 << llvm::format("%.1f", 100 * share) << " % of that peak\n";
    report.json["gflops"] = gflops;
    report.json["share"] = share;
  }
  return llvm::Error::success();
}

/// Prints nested brackets, as NumPy does.
void printElements(const NpyArray &array, size_t dim, int64_t &next) {
  if (dim == array.shape.size()) {
    llvm::outs() << llvm::format(
        "%.6g", loadElement(array.dtype, array.data.data(), next++));
    return;
  }
  llvm::outs() << "[";
  for (int64_t i = 0; i < array.shape[dim]; ++i) {
    if (i > 0)
      llvm::outs() << ", ";
    printElements(array, dim + 1, next);
  }
  llvm::outs() << "]";
}

void printArray(const NpyArray &array) {
  int64_t next = 0;
  llvm::outs() << formatShape(array.shape) << " " << getName(array.dtype)
               << " ";
  printElements(array, 0, next);
  llvm::outs() << "\n";
}

void printArguments(const Signature &signature,
                    llvm::ArrayRef<NpyArray> inputs) {
  for (auto [i, input] : llvm::enumerate(inputs)) {
    llvm::outs() << signature.describeArgument(i) << ": ";
    printArray(input);
  }
}

/// Writes and prints the requested outputs.
llvm::Error writeOutputs(const CommandLine &options, const Report &report) {
  if (options.outs.size() > report.outputs.size())
    return llvm::createStringError(
        "expected at most " + llvm::Twine(report.outputs.size()) +
        " --out, but got " + llvm::Twine(options.outs.size()));
  for (auto [path, output] : llvm::zip(options.outs, report.outputs))
    if (llvm::Error error =
            writeNpy(path, output.dtype, output.shape, output.data.data()))
      return error;
  if (options.print || options.trace)
    for (auto [i, output] : llvm::enumerate(report.outputs)) {
      llvm::outs() << "result " << i << ": ";
      printArray(output);
    }
  return llvm::Error::success();
}

llvm::Error writeJSON(const CommandLine &options, llvm::json::Value json) {
  if (options.json.empty())
    return llvm::Error::success();
  std::error_code code;
  llvm::raw_fd_ostream os(options.json, code);
  if (code)
    return llvm::createStringError(
        options.json + ": error: cannot be written: " + code.message());
  os << llvm::formatv("{0:2}", json) << "\n";
  os.close();
  if (os.has_error()) {
    code = os.error();
    os.clear_error();
    return llvm::createStringError(
        options.json + ": error: cannot be written: " + code.message());
  }
  return llvm::Error::success();
}

/// Compares one function with naive loops in prime fields.
llvm::Expected<bool> runExactly(const CommandLine &options,
                                const Program &program,
                                const Program &reference, llvm::StringRef entry,
                                llvm::json::Array &records) {
  if (options.fields < 1 || options.fields > PrimeField::kNumFields)
    return llvm::createStringError("--fields: expected 1 or 2, but got " +
                                   std::to_string(options.fields.getValue()));
  llvm::StringRef referenceEntry =
      options.referenceEntry.empty() ? entry : options.referenceEntry;
  ExactSide candidate{program, entry.str(),
                      getCompilerOptions(options, options.target)};
  ExactSide other{reference, referenceEntry.str(),
                  getCompilerOptions(options, Target::Reference)};
  llvm::SmallVector<std::string> args(options.args.begin(), options.args.end());
  llvm::SmallVector<int64_t> sizes(options.openSizes.begin(),
                                   options.openSizes.end());
  llvm::json::Array results;
  auto equal =
      compareExactly(candidate, other,
                     {args, sizes, options.threads, options.fields}, results);
  records.push_back(llvm::json::Object{{"entry", entry.str()},
                                       {"exact", std::move(results)}});
  return equal;
}

/// Prints the emulator's counts. Findings are errors before this point.
void printLaunches(const emulator::LaunchLog &launches) {
  for (const emulator::LaunchLog::Launch &launch : launches.getLaunches())
    llvm::outs() << "kernel " << launch.kernel << ": no findings\n"
                 << launch.report.describeTraffic();
}

/// Runs one function. Returns false if it disagrees with the reference.
llvm::Expected<bool> runFunction(const CommandLine &options,
                                 const Program &program,
                                 const Program &reference,
                                 llvm::StringRef entry,
                                 llvm::json::Array &records) {
  if (options.compare == "exact" && options.target == Target::NVVM)
    return llvm::createStringError(
        "--compare=exact: expected a target that computes in "
        "prime fields, but got nvvm");
  if (options.compare == "exact")
    return runExactly(options, program, reference, entry, records);
  if (options.tolerance.getNumOccurrences() && !(options.tolerance >= 0))
    return llvm::createStringError(
        "--tolerance: expected a number from 0 on, but got " +
        std::to_string(options.tolerance.getValue()));
  llvm::Expected<unsigned> repetitions = getRepetitions(options);
  if (!repetitions)
    return repetitions.takeError();
  double start = getMilliseconds();
  llvm::Expected<Kernel> kernel =
      compile(options, program, entry,
              options.trace ? Target::Trace : Target(options.target));
  if (!kernel)
    return kernel.takeError();
  Report report;
  report.json["entry"] = kernel->signature().entry;
  report.json["compile_ms"] = getMilliseconds() - start;
  if (options.explain)
    for (const std::string &line : kernel->explain())
      llvm::outs() << line << "\n";

  auto isStatic = [](const ValueInfo &info) { return info.hasStaticShape(); };
  llvm::SmallVector<int64_t> sizes(options.openSizes.begin(),
                                   options.openSizes.end());
  if (sizes.empty() || llvm::all_of(kernel->signature().arguments, isStatic))
    sizes.assign(1, sizes.empty() ? -1 : sizes.front());
  std::vector<NpyArray> inputs;
  bool agrees = true;
  for (int64_t size : sizes) {
    auto made = makeInputs(kernel->signature(), options.args, size);
    if (!made)
      return made.takeError();
    inputs = std::move(*made);
    if (options.trace)
      printArguments(kernel->signature(), inputs);
    emulator::LaunchLog launches;
    auto outputs = runOnce(*kernel, inputs, {options.threads});
    if (!outputs)
      return outputs.takeError();
    printLaunches(launches);
    report.outputs = std::move(*outputs);
    if (llvm::Error error = writeOutputs(options, report))
      return std::move(error);
    if (options.compare.empty())
      continue;
    auto result = compareToReference(options, reference, entry, inputs, report);
    if (!result)
      return result.takeError();
    agrees &= *result;
  }
  if (*repetitions > 0)
    if (llvm::Error error =
            timeKernel(options, *repetitions, *kernel, inputs, report))
      return std::move(error);
  records.push_back(std::move(report.json));
  return agrees;
}

/// Runs every public function. Returns false if one disagrees with the
/// reference.
llvm::Expected<bool> runAll(const CommandLine &options, const Program &program,
                            const Program &reference,
                            llvm::json::Array &records) {
  if (!options.entry.empty() || !options.args.empty() || !options.outs.empty())
    return llvm::createStringError(
        "--all: expected neither --entry nor --arg nor --out");
  auto names = Compiler::getPublicFunctions(program.text, program.name,
                                            /*isolated=*/!options.trusted);
  if (!names)
    return names.takeError();
  bool agree = true;
  for (const std::string &name : *names) {
    llvm::outs() << "@" << name << "\n";
    auto agrees = runFunction(options, program, reference, name, records);
    if (!agrees)
      return agrees.takeError();
    agree &= *agrees;
  }
  return agree;
}

llvm::Expected<bool> run(const CommandLine &options) {
  llvm::Expected<Program> program = readProgram(options.file);
  if (!program)
    return program.takeError();
  Program reference = *program;
  std::string path = options.compare;
  if (options.compare == "exact")
    path = options.referenceFile;
  else if (!options.referenceFile.empty())
    return llvm::createStringError(
        "expected --compare=exact with two programs");
  if (!path.empty() && path != "reference") {
    llvm::Expected<Program> other = readProgram(path);
    if (!other)
      return llvm::createStringError(
          "--compare: expected reference, exact or a program: " +
          llvm::toString(other.takeError()));
    reference = std::move(*other);
  }
  llvm::json::Array records;
  auto agrees = options.all ? runAll(options, *program, reference, records)
                            : runFunction(options, *program, reference,
                                          options.entry, records);
  if (!agrees)
    return agrees.takeError();
  llvm::json::Value json = options.all ? llvm::json::Value(std::move(records))
                                       : std::move(records.front());
  if (llvm::Error error = writeJSON(options, std::move(json)))
    return std::move(error);
  return agrees;
}

} // namespace

int main(int argc, char **argv) {
  // The shared LLVM library registers options of its own tools, "threads" among
  // them.
  cl::ResetCommandLineParser();
  llvm::InitLLVM init(argc, argv);
  CommandLine options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(
      argc, argv, "Runs a function of tensors, compares and times it.\n");
  llvm::Expected<bool> agrees = run(options);
  if (agrees)
    return *agrees ? 0 : 1;
  llvm::errs() << llvm::toString(agrees.takeError()) << "\n";
  return 1;
}
