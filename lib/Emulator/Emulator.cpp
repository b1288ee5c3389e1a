//===- Emulator.cpp - NVVM kernels on the CPU -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Emulator/Emulator.h"
#include "Block.h"
#include "Runtime.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/CodeGen/ObjectLoader.h"
#include "linattn/Emulator/Passes.h"
#include "linattn/InitAll.h"
#include "linattn/LowerToLLVM/LowerToLLVM.h"
#include "linattn/Support/Sizes.h"

#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::detail;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static Argument makeScalar(Argument::Kind kind, uint64_t bits) {
  Argument argument;
  argument.kind = kind;
  argument.bits = bits;
  return argument;
}

Argument Argument::i32(int32_t value) {
  return makeScalar(Kind::I32, static_cast<uint32_t>(value));
}
Argument Argument::i64(int64_t value) { return makeScalar(Kind::I64, value); }
Argument Argument::f32(float value) {
  return makeScalar(Kind::F32, llvm::bit_cast<uint32_t>(value));
}
Argument Argument::f64(double value) {
  return makeScalar(Kind::F64, llvm::bit_cast<uint64_t>(value));
}
Argument Argument::half(uint16_t bits, bool isBrain) {
  return makeScalar(isBrain ? Kind::BF16 : Kind::F16, bits);
}

Argument Argument::buffer(void *data, uint64_t bytes) {
  Argument argument;
  argument.kind = Kind::Buffer;
  argument.data = static_cast<char *>(data);
  argument.bytes = bytes;
  argument.writable = true;
  return argument;
}

Argument Argument::constBuffer(const void *data, uint64_t bytes) {
  Argument argument = buffer(const_cast<void *>(data), bytes);
  argument.writable = false;
  return argument;
}

static std::optional<Argument::Kind> getKind(mlir::Type type) {
  if (type.isInteger(32))
    return Argument::Kind::I32;
  if (type.isInteger(64))
    return Argument::Kind::I64;
  if (type.isF16())
    return Argument::Kind::F16;
  if (type.isBF16())
    return Argument::Kind::BF16;
  if (type.isF32())
    return Argument::Kind::F32;
  if (type.isF64())
    return Argument::Kind::F64;
  if (llvm::isa<mlir::LLVM::LLVMPointerType>(type))
    return Argument::Kind::Buffer;
  return std::nullopt;
}

static llvm::StringRef getName(Argument::Kind kind) {
  constexpr llvm::StringLiteral names[] = {"i32", "i64", "f16",     "bf16",
                                           "f32", "f64", "a buffer"};
  return names[static_cast<unsigned>(kind)];
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace {
struct Parameter {
  Argument::Kind kind;
  /// `llvm.readonly`, which the emulator checks.
  bool readOnly;
};
} // namespace

struct EmulatedKernel::Impl {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<std::string> sites;
  uint64_t staticShared = 0, maxThreads = 0;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  Block::Kernel run = nullptr;
};

EmulatedKernel::EmulatedKernel(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
EmulatedKernel::EmulatedKernel(EmulatedKernel &&) = default;
EmulatedKernel &EmulatedKernel::operator=(EmulatedKernel &&) = default;
EmulatedKernel::~EmulatedKernel() = default;

llvm::StringRef EmulatedKernel::getName() const { return impl->name; }
uint64_t EmulatedKernel::getMaxThreads() const { return impl->maxThreads; }

/// Lowers structured control flow and kernels on memrefs to `llvm.func` with
/// NVVM operations, by upstream's passes.
static void buildDevicePipeline(mlir::OpPassManager &pm) {
  auto &gpu = pm.nest<mlir::gpu::GPUModuleOp>();
  mlir::arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  gpu.addPass(mlir::arith::createArithExpandOpsPass(expand));
  gpu.addPass(mlir::linattn::createStructuredToBranchesPass());
  gpu.addPass(mlir::linattn::createKernelToNVVMPass());
  gpu.addPass(mlir::createReconcileUnrealizedCastsPass());
}

static void findKernelFacts(mlir::LLVM::LLVMFuncOp kernel,
                            uint64_t &maxThreads) {
  for (llvm::StringRef name : {mlir::NVVM::NVVMDialect::getMaxntidAttrName(),
                               mlir::NVVM::NVVMDialect::getReqntidAttrName()})
    if (auto sizes = kernel->getAttrOfType<mlir::DenseI32ArrayAttr>(name))
      maxThreads = countElements(sizes.asArrayRef());
}

/// Runs the passes on a copy of the kernel's module, and moves the result into
/// a module that LLVM can translate.
static llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
lowerToHost(mlir::gpu::GPUModuleOp source, llvm::StringRef &name,
            std::string &storage, uint64_t &maxThreads) {
  mlir::MLIRContext *context = source.getContext();
  DiagnosticCollector diagnostics(*context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(source.getLoc());
  mlir::OpBuilder builder(module->getBodyRegion());
  auto gpu =
      llvm::cast<mlir::gpu::GPUModuleOp>(builder.clone(*source.getOperation()));
  gpu->removeAttr("targets");

  mlir::PassManager device(context);
  if (!gpu.getOps<mlir::gpu::GPUFuncOp>().empty())
    buildDevicePipeline(device);
  if (mlir::failed(runPasses(device, *module)))
    return diagnostics.takeError("lowering the kernel failed");
  mlir::LLVM::LLVMFuncOp kernel;
  for (auto func : gpu.getOps<mlir::LLVM::LLVMFuncOp>()) {
    if (!func->hasAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName()) ||
        (!name.empty() && func.getName() != name))
      continue;
    if (kernel)
      return llvm::createStringError(
          "expected the name of a kernel, as there are several");
    kernel = func;
  }
  if (!kernel)
    return llvm::createStringError(
        name.empty() ? llvm::Twine("expected a kernel")
                     : "expected a kernel named '" + name + "'");
  storage = kernel.getName().str();
  findKernelFacts(kernel, maxThreads);

  mlir::PassManager host(context);
  host.nest<mlir::gpu::GPUModuleOp>().addPass(
      mlir::linattn::createLinAttnNVVMToHostPass());
  if (mlir::failed(runPasses(host, *module)))
    return diagnostics.takeError("turning the kernel into host code failed");
  mlir::OwningOpRef<mlir::ModuleOp> result =
      mlir::ModuleOp::create(source.getLoc());
  result->getBody()->getOperations().splice(result->getBody()->end(),
                                            gpu.getBody()->getOperations());
  for (llvm::StringRef attribute : {kSitesAttr, kStaticSharedAttr})
    (*result)->setAttr(attribute, gpu->getAttr(attribute));

  mlir::PassManager lower(context);
  mlir::linattn::LowerToLLVMOptions options;
  options.parallel = false;
  mlir::linattn::buildLowerToLLVMPipeline(lower, options);
  if (mlir::failed(runPasses(lower, *result)))
    return diagnostics.takeError("lowering the kernel for the host failed");
  return result;
}

static constexpr const char *kEntrySymbol = "linattn_emulated_kernel";

static llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
compileHost(mlir::ModuleOp module, llvm::StringRef name) {
  auto emitEntries = [&](llvm::Module &llvmModule) -> llvm::Error {
    internalize(llvmModule);
    llvm::Function *kernel = llvmModule.getFunction(("linattn." + name).str());
    kernel->setName(kEntrySymbol);
    kernel->setLinkage(llvm::GlobalValue::ExternalLinkage);
    return llvm::Error::success();
  };
  CodeGenOptions options;
  options.optimization = Optimization::Quick;
  auto object = generateCode(module, name, emitEntries, options);
  if (!object)
    return object.takeError();
  llvm::SmallVector<HostSymbol> symbols;
  forEachRuntimeFunction([&](llvm::StringRef symbol, void *address) {
    symbols.push_back({symbol, address});
  });
  return loadObject(llvm::StringRef(object->data(), object->size()), name,
                    symbols);
}

llvm::Expected<EmulatedKernel>
EmulatedKernel::compile(mlir::gpu::GPUModuleOp source, llvm::StringRef name) {
  auto impl = std::make_unique<Impl>();
  // The caller's context may lack the translation interfaces.
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  source.getContext()->appendDialectRegistry(registry);

  auto module = lowerToHost(source, name, impl->name, impl->maxThreads);
  if (!module)
    return module.takeError();
  mlir::ModuleOp host = **module;
  for (auto site : host->getAttrOfType<mlir::ArrayAttr>(kSitesAttr)
                       .getAsRange<mlir::StringAttr>())
    impl->sites.push_back(site.str());
  impl->staticShared =
      host->getAttrOfType<mlir::IntegerAttr>(kStaticSharedAttr).getInt();
  auto kernel = host.lookupSymbol<mlir::LLVM::LLVMFuncOp>(impl->name);
  for (mlir::Attribute attribute :
       kernel->getAttrOfType<mlir::ArrayAttr>(kArgumentsAttr)) {
    // The type, in an array if the argument is read-only.
    auto array = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
    auto type = llvm::cast<mlir::TypeAttr>(array ? array[0] : attribute);
    std::optional<Argument::Kind> kind = getKind(type.getValue());
    if (!kind)
      return llvm::createStringError(
          "expected arguments of '" + impl->name +
          "' to be pointers, i32, i64, f16, bf16, f32 or f64");
    impl->parameters.push_back({*kind, array != nullptr});
  }
  auto jit = compileHost(host, impl->name);
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);
  auto run = impl->jit->lookup(kEntrySymbol);
  if (!run)
    return run.takeError();
  impl->run = run->toPtr<Block::Kernel>();
  return EmulatedKernel(std::move(impl));
}

llvm::Expected<EmulatedKernel>
EmulatedKernel::compile(llvm::StringRef text, llvm::StringRef name,
                        llvm::StringRef sourceName) {
  // Filling the registry takes longer than compiling a small kernel.
  static const mlir::DialectRegistry *registry = [] {
    auto *filled = new mlir::DialectRegistry;
    mlir::linattn::registerAllDialects(*filled);
    return filled;
  }();
  mlir::MLIRContext context(*registry, mlir::MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(&context), sourceName);
  if (!module)
    return diagnostics.takeError("parsing the kernel failed");
  auto modules = module->getOps<mlir::gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(modules))
    return llvm::createStringError(
        "expected one gpu.module, but got " +
        llvm::Twine(std::distance(modules.begin(), modules.end())));
  return compile(*modules.begin(), name);
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

/// Limits of every device since sm_30.
static llvm::Error checkLaunch(const LaunchOptions &options,
                               uint64_t maxThreads) {
  uint64_t threads = options.block.getVolume();
  uint64_t limit = maxThreads ? std::min<uint64_t>(maxThreads, 1024) : 1024;
  if (threads == 0 || threads > limit)
    return llvm::createStringError("expected 1 to " + llvm::Twine(limit) +
                                   " threads per block, but got " +
                                   llvm::Twine(threads));
  if (options.sharedBytes > 227 << 10)
    return llvm::createStringError(
        "expected at most 227 KiB of shared memory, but got " +
        llvm::Twine(options.sharedBytes) + " bytes");
  return llvm::Error::success();
}

llvm::Expected<Report>
EmulatedKernel::launch(llvm::ArrayRef<Argument> arguments,
                       const LaunchOptions &options) const {
  if (arguments.size() != impl->parameters.size())
    return llvm::createStringError(
        "expected " + llvm::Twine(impl->parameters.size()) + " arguments of '" +
        impl->name + "', but got " + llvm::Twine(arguments.size()));
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.kind != impl->parameters[i].kind)
      return llvm::createStringError("expected argument " + llvm::Twine(i) +
                                     " of '" + impl->name + "' to be " +
                                     ::getName(impl->parameters[i].kind) +
                                     ", but got " + ::getName(argument.kind));
  if (llvm::Error error = checkLaunch(options, impl->maxThreads))
    return std::move(error);
  llvm::SmallVector<Argument> checked(arguments);
  for (auto [i, argument] : llvm::enumerate(checked))
    argument.writable &= !impl->parameters[i].readOnly;
  GlobalMemory global(checked);

  Report report;
  for (const std::string &site : impl->sites)
    report.sites.push_back({site, {}});
  Block block(impl->run, global, options, impl->staticShared, report);
  for (unsigned z = 0; z < options.grid.z; ++z)
    for (unsigned y = 0; y < options.grid.y; ++y)
      for (unsigned x = 0; x < options.grid.x; ++x)
        report.finished &= block.run({x, y, z});
  for (const SiteTraffic &site : report.sites)
    report.traffic += site.traffic;
  global.forEachBuffer([&](const GlobalMemory::Buffer &buffer) {
    report.uniqueBytesRead += buffer.bytesRead.size();
    report.uniqueBytesWritten += buffer.bytesWritten.size();
  });
  return report;
}
