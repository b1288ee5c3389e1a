//===- Bundle.cpp - Kernels ahead of time ---------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Bundle/Bundle.h"
#include "Assemble.h"
#include "BundleWriter.h"
#include "CpuImage.h"
#include "HostProgram.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Session/CompiledCode.h"
#include "linattn/Session/Session.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Version.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm-c/Target.h"

using namespace ::linattn;
using namespace ::linattn::detail;
namespace json = llvm::json;

namespace {

/// Records the ops that have a schedule, before they become kernels.
class ScheduleWatcher : public mlir::PassInstrumentation {
public:
  explicit ScheduleWatcher(json::Array &rules) : rules(rules) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    if (pass->getArgument() != "linattn-select-schedule")
      return;
    op->walk([&](mlir::Operation *inner) {
      if (!inner->hasAttr(mlir::linattn::LaunchOp::getScheduleAttrName()))
        return;
      json::Object rule{{"op", inner->getName().getStringRef().str()}};
      for (mlir::NamedAttribute attribute : inner->getAttrs())
        if (attribute.getName() != "operandSegmentSizes")
          rule[attribute.getName().str()] = print(attribute.getValue());
      rules.push_back(std::move(rule));
    });
  }

private:
  static std::string print(mlir::Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
  }

  json::Array &rules;
};

/// The parts that all variants of a function share.
struct Interface {
  Signature signature;
  ShapeProgram shapes;
};

json::Object describe(const ValueInfo &info, bool isResult,
                      llvm::ArrayRef<std::string> names) {
  json::Array shape;
  for (auto [extent, name] : llvm::zip(info.shape, names)) {
    if (extent == kDynamicExtent)
      shape.push_back(name);
    else
      shape.push_back(extent);
  }
  json::Object operand{{"name", info.name},
                       {"result", isResult},
                       {"dtype", getName(info.dtype).data()},
                       {"shape", std::move(shape)}};
  if (!info.isTensor)
    operand["scalar"] = true;
  if (info.inPlaceOf >= 0)
    operand["in_place_of"] = info.inPlaceOf;
  return operand;
}

/// The first function that PTX declares but does not define; empty for none.
std::string findUndefined(llvm::StringRef ptx) {
  size_t at = ptx.find(".extern .func");
  if (at == llvm::StringRef::npos)
    return "";
  // ".extern .func (.param .b64 result) name ( .param … )"
  llvm::StringRef rest = ptx.drop_front(at + strlen(".extern .func")).ltrim();
  if (rest.starts_with("("))
    rest = rest.drop_front(rest.find(')') + 1).ltrim();
  return rest.take_until([](char c) { return c == '(' || isspace(c); }).str();
}

/// The machine of a chip's name. Initializes its code generator.
Machine getMachineOf(llvm::StringRef chip) {
  if (chip != "aarch64")
    return {chip.str()};
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  return {"generic", "aarch64-linux-gnu"};
}

/// Compiles one function for several chips in turn.
class BundleCompiler {
public:
  BundleCompiler(llvm::StringRef text, llvm::StringRef entry,
                 llvm::StringRef fileName, const BundleOptions &options)
      : text(text), entry(entry), fileName(fileName), options(options) {}

  llvm::Expected<CompiledBundle> run() {
    bool isCpu = options.target == BundleOptions::Target::CPU;
    for (llvm::StringRef chip : options.chips)
      if (llvm::Error error = isCpu ? addCpu(chip) : addNvvm(chip))
        return std::move(error);
    json::Array operands;
    const Signature &signature = interface.signature;
    size_t next = 0;
    for (const ValueInfo &info : signature.arguments)
      operands.push_back(
          describe(info, /*isResult=*/false, interface.shapes.names[next++]));
    for (const ValueInfo &info : signature.results)
      operands.push_back(
          describe(info, /*isResult=*/true, interface.shapes.names[next++]));
    // The strides of InnermostStride::Tokens, as the GPU pipeline assumes.
    for (json::Value &it : operands) {
      json::Object &operand = *it.getAsObject();
      if (!isCpu && !operand.get("scalar") &&
          operand.getArray("shape")->size() != 4)
        operand["strided"] = true;
    }
    json::Object manifest{{"compiler", "linattn " LINATTN_VERSION},
                          {"entry", signature.entry},
                          {"target", isCpu ? "cpu" : "nvvm"},
                          {"operands", std::move(operands)},
                          {"shapes", std::move(interface.shapes.rules)},
                          {"variants", std::move(variants)}};
    return CompiledBundle{writer.write(std::move(manifest)),
                          std::move(interface.signature), std::move(remarks)};
  }

private:
  llvm::Error start(Session &session, Signature &signature) {
    auto parsed = session.parse(text, entry, fileName, options.trusted,
                                options.differentiate);
    if (!parsed)
      return parsed.takeError();
    signature = std::move(*parsed);
    for (auto [i, result] : llvm::enumerate(signature.results))
      if (!result.isTensor)
        return llvm::createStringError(signature.describeResult(i) +
                                       ": expected a tensor, but got " +
                                       result.getTypeString());
    return llvm::Error::success();
  }

  /// Shapes and names do not depend on the machine.
  llvm::Error takeInterface(Session &session, Signature signature) {
    auto shapes = translateShapes(session.getModule(), signature);
    if (!shapes)
      return shapes.takeError();
    session.takeInPlace(signature);
    interface = {std::move(signature), std::move(*shapes)};
    return llvm::Error::success();
  }

  llvm::Error addNvvm(llvm::StringRef chip) {
    Session session;
    Signature signature;
    if (llvm::Error error = start(session, signature))
      return error;
    json::Array rules;
    auto build = [&](mlir::OpPassManager &pm) {
      mlir::linattn::GPUPipelineOptions gpu;
      gpu.chip = chip.str();
      gpu.copy = *mlir::linattn::symbolizeCopyEngine(options.copy);
      gpu.scanMma = *mlir::linattn::symbolizeMma(options.scanMma);
      gpu.math = options.math;
      gpu.setHints(options.hints);
      mlir::linattn::buildNVVMPipeline(pm, gpu);
      auto &functions = pm.nest<mlir::func::FuncOp>();
      functions.addPass(mlir::linattn::createLinAttnCanonicalizePass());
      functions.addPass(mlir::createCSEPass());
    };
    if (llvm::Error error =
            session.run(build, std::make_unique<ScheduleWatcher>(rules)))
      return error;
    if (llvm::Error error = takeInterface(session, std::move(signature)))
      return error;
    std::vector<std::string> names;
    std::vector<std::string> lines = session.takeRemarks();
    auto modules = addModules(session.getModule(), chip, names, lines);
    if (!modules)
      return modules.takeError();
    auto func = session.getModule().lookupSymbol<mlir::func::FuncOp>(
        interface.signature.entry);
    auto variant = translateLaunches(func, interface.signature, names, writer);
    if (!variant)
      return variant.takeError();
    (*variant)["chip"] = chip.str();
    (*variant)["modules"] = std::move(*modules);
    (*variant)["rules"] = std::move(rules);
    addRemarks(*variant, std::move(lines));
    variants.push_back(std::move(*variant));
    return llvm::Error::success();
  }

  llvm::Error addCpu(llvm::StringRef chip) {
    Session session;
    Signature signature;
    if (llvm::Error error = start(session, signature))
      return error;
    Machine machine = getMachineOf(chip);
    auto target = getVectorTargetOf(machine);
    if (!target)
      return target.takeError();
    auto toLoops = [&](mlir::OpPassManager &pm) {
      mlir::linattn::buildCPULoopsPipeline(pm, *target, options.form);
    };
    auto toLLVM = [&](mlir::OpPassManager &pm) {
      mlir::linattn::LowerToLLVMOptions lower;
      lower.avx512 = target->avx512;
      lower.avx512Bf16 = target->avx512Bf16;
      mlir::linattn::buildLowerToLLVMPipeline(pm, lower);
    };
    if (llvm::Error error = session.run(toLoops, nullptr))
      return error;
    // At this point, shapes are still arithmetic on sizes.
    if (llvm::Error error = takeInterface(session, std::move(signature)))
      return error;
    if (llvm::Error error = session.run(toLLVM, nullptr))
      return error;
    session.takeChecks(interface.signature);
    auto image = compileCpuImage(session.getModule(), interface.signature,
                                 machine, options);
    if (!image)
      return image.takeError();
    json::Object variant{{"chip", chip.str()},
                         {"image", writer.addBlob(std::move(*image))},
                         {"symbol", getRunSymbol(interface.signature)}};
    addRemarks(variant, session.takeRemarks());
    variants.push_back(std::move(variant));
    return llvm::Error::success();
  }

  void addRemarks(json::Object &variant, std::vector<std::string> lines) {
    variant["remarks"] = json::Array(lines);
    remarks.insert(remarks.end(), lines.begin(), lines.end());
  }

  llvm::Expected<json::Array> addModules(mlir::ModuleOp module,
                                         llvm::StringRef chip,
                                         std::vector<std::string> &names,
                                         std::vector<std::string> &lines) {
    json::Array modules;
    for (auto binary : module.getOps<mlir::gpu::BinaryOp>()) {
      auto object = llvm::cast<mlir::gpu::ObjectAttr>(binary.getObjects()[0]);
      // The driver requires a terminating null.
      std::string ptx =
          object.getObject().getValue().rtrim(llvm::StringRef("\0", 1)).str();
      if (std::string called = findUndefined(ptx); !called.empty())
        return llvm::createStringError(
            "kernel '" + binary.getName() + "' calls " + called +
            ", a function that no driver has: expected one that "
            "linattn-expand-math or linattn-expand-double-math knows");
      json::Object entry{{"name", binary.getName().str()}};
      if (!options.ptxas.empty()) {
        auto cubin = assemblePTX(ptx, chip, options.ptxas);
        if (cubin)
          entry["cubin"] = writer.addBlob(std::move(*cubin));
        else if (options.needsPtxas)
          return cubin.takeError();
        else
          lines.push_back("PTX of '" + binary.getName().str() +
                          "' is left to the driver to assemble: " +
                          llvm::toString(cubin.takeError()));
      }
      entry["ptx"] = writer.addBlob(ptx + '\0');
      modules.push_back(std::move(entry));
      names.push_back(binary.getName().str());
    }
    return modules;
  }

  llvm::StringRef text, entry, fileName;
  const BundleOptions &options;
  BundleWriter writer;
  Interface interface;
  json::Array variants;
  std::vector<std::string> remarks;
};

} // namespace

/// A chip: "sm_", a number and possibly a letter; a level of x86-64; or
/// AArch64.
static bool isChip(llvm::StringRef chip, BundleOptions::Target target) {
  if (target == BundleOptions::Target::CPU)
    return chip == "x86-64-v2" || chip == "x86-64-v3" || chip == "x86-64-v4" ||
           chip == "aarch64";
  unsigned number;
  return chip.consume_front("sm_") && !chip.consumeInteger(10, number) &&
         number >= 10 && (chip.empty() || chip == "a" || chip == "f");
}

namespace linattn {

llvm::Expected<CompiledBundle> compileBundle(llvm::StringRef text,
                                             llvm::StringRef entry,
                                             llvm::StringRef fileName,
                                             const BundleOptions &options) {
  if (options.chips.empty())
    return llvm::createStringError("expected at least one chip");
  for (llvm::StringRef chip : options.chips)
    if (!isChip(chip, options.target))
      return llvm::createStringError(
          (options.target == BundleOptions::Target::CPU
               ? "expected x86-64-v2, x86-64-v3, x86-64-v4 or aarch64, but got "
               : "expected chips such as sm_90, but got ") +
          chip);
  if (llvm::Error error =
          detail::verifyKernelOptions(options.copy, options.scanMma))
    return std::move(error);
  if (!options.isolated)
    return BundleCompiler(text, entry, fileName, options).run();
  auto work = [&]() -> llvm::Expected<std::string> {
    auto bundle = BundleCompiler(text, entry, fileName, options).run();
    if (!bundle)
      return bundle.takeError();
    return serialize({std::move(bundle->signature), /*checks=*/{},
                      std::move(bundle->remarks), std::move(bundle->file)});
  };
  llvm::Expected<std::string> bytes = runIsolated(text, fileName, work);
  if (!bytes)
    return bytes.takeError();
  std::optional<CompiledCode> code = deserialize(*bytes);
  if (!code)
    return llvm::createStringError("expected the bundle of '" + fileName +
                                   "' from a child process, but got something "
                                   "else");
  return CompiledBundle{std::move(code->object), std::move(code->signature),
                        std::move(code->remarks)};
}

} // namespace linattn
