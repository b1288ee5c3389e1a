//===- CodeGen.cpp - From the LLVM dialect to object code -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/CodeGen.h"
#include "BFloatMemory.h"
#include "linattn-c/Runtime.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/CodeGen/ForeignCode.h"
#include "linattn/Entry/EntryLayout.h"
#include "linattn/Support/OptimizeModule.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <cstdlib>
#include <mutex>
#include <unistd.h>

using namespace linattn;
using namespace linattn::detail;

std::string linattn::detail::getRunSymbol(const Signature &signature) {
  return signature.entry + "__packed";
}

std::string linattn::detail::getShapesSymbol(const Signature &signature) {
  return signature.entry + mlir::linattn::kShapesSuffix.str() + "__packed";
}

/// The CPU that LINATTN_CPU names. This machine must be able to run its code.
static const char *getForcedCPU() {
  static const char *forced = std::getenv("LINATTN_CPU");
  return forced && *forced ? forced : nullptr;
}

const std::string &linattn::detail::getTargetCPU() {
  static const std::string cpu =
      getForcedCPU() ? getForcedCPU() : llvm::sys::getHostCPUName().str();
  return cpu;
}

const std::string &linattn::detail::getTargetFeatures() {
  static const std::string features = [] {
    if (getForcedCPU()) // A named CPU has the features of its name.
      return std::string();
    llvm::StringMap<bool> map = llvm::sys::getHostCPUFeatures();
    // The map iterates in hash order; cache keys and code need a fixed one.
    std::vector<std::string> names;
    for (const auto &feature : map)
      names.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(names);
    return llvm::join(names, ",");
  }();
  return features;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Machine &named = {}) {
  bool isNamed = !named.cpu.empty();
  std::string cpu = isNamed ? named.cpu : getTargetCPU();
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  llvm::Triple triple(named.triple.empty() ? llvm::sys::getProcessTriple()
                                           : named.triple);
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("no code generator for " + triple.str() +
                                   ": " + error);
  llvm::TargetOptions options;
  // Fuse exactly the operations that the IR fuses: vector.fma arrives as
  // llvm.fmuladd, which Strict would split.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  if (triple.isRISCV64())
    options.MCOptions.ABIName = "lp64d";
  // The WebAssembly linker links position-independent code only to other such
  // code.
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, isNamed ? named.features : getTargetFeatures(), options,
      triple.isWasm() ? llvm::Reloc::Static : llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive,
      /*JIT=*/!isNamed));
  if (!machine)
    return llvm::createStringError("no code generator for " + triple.str());
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(cpu))
    return llvm::createStringError(
        (isNamed ? "expected the name of a CPU of "
                 : "expected LINATTN_CPU to name a CPU of ") +
        triple.str() + ", but got " + cpu);
  return machine;
}

static VectorTarget describe(const llvm::TargetMachine &machine) {
  const llvm::MCSubtargetInfo &cpu = *machine.getMCSubtargetInfo();
  auto has = [&](const char *feature) { return cpu.checkFeatures(feature); };
  VectorTarget target{128, 32};
  if (machine.getTargetTriple().isX86()) {
    target = {has("+avx2") ? 256 : 128, 16};
    if (has("+avx512f") && has("+avx512vl")) {
      target = {512, 32};
      target.avx512 = has("+avx512dq") && has("+avx512bw");
      target.avx512Bf16 = target.avx512 && has("+avx512bf16");
      target.amx = has("+amx-tile") && has("+amx-bf16");
    }
  }
  return target;
}

llvm::Expected<VectorTarget>
linattn::detail::getVectorTargetOf(const Machine &machine) {
  auto created = createTargetMachine(machine);
  if (!created)
    return created.takeError();
  VectorTarget target = describe(**created);
  if (machine.vectorBits)
    target.vectorBits = machine.vectorBits;
  return target;
}

static VectorTarget describeTarget() {
  auto machine = createTargetMachine();
  if (!machine) { // Code generation will report it.
    llvm::consumeError(machine.takeError());
    return {128, 16};
  }
  VectorTarget target = describe(**machine);
  if (getForcedCPU()) // Of another machine only the name is known.
    return target;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  target.l1 = std::max<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 0);
#endif
  target.cores = std::max<int64_t>(sysconf(_SC_NPROCESSORS_CONF), 1);
  return target;
}

VectorTarget linattn::getVectorTarget() {
  static const VectorTarget target = describeTarget();
  return target;
}

/// Without these LLVM assumes an unknown machine without a C library, during
/// optimisation as well as code generation.
static void setTarget(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  if (const std::string &abi = machine.Options.MCOptions.ABIName; !abi.empty())
    module.addModuleFlag(llvm::Module::Error, "target-abi",
                         llvm::MDString::get(module.getContext(), abi));
}

static void setFunctionTarget(llvm::Module &module,
                              llvm::TargetMachine &machine,
                              int64_t vectorBits) {
  bool wide = machine.getTargetTriple().isX86() &&
              machine.getMCSubtargetInfo()->checkFeatures("+avx512f");
  // The names of RISC-V's features say it already.
  bool isLong = machine.getTargetTriple().isAArch64() && vectorBits > 128;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (isLong)
      function.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(
          module.getContext(), static_cast<unsigned>(vectorBits / 128),
          /*MaxValue=*/0));
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("no-trapping-math", "true");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // The default avoids 512-bit registers on CPUs that once throttled.
    if (wide)
      function.addFnAttr("prefer-vector-width", "512");
  }
}

namespace {

/// Loads the fields of memref descriptors and the scalars from an array of
/// pointers, in the argument order of a lowered function.
class ArgumentUnpacker {
public:
  ArgumentUnpacker(llvm::IRBuilder<> &b, llvm::Value *array)
      : b(b), array(array) {}

  void addMemRef(int64_t rank) {
    llvm::Value *descriptor = nextPointer();
    // Allocated pointer, aligned pointer, offset, sizes, strides: every field
    // takes eight bytes.
    for (int64_t field = 0; field < 3 + 2 * rank; ++field) {
      llvm::Type *type =
          field < 2 ? b.getPtrTy() : static_cast<llvm::Type *>(b.getInt64Ty());
      values.push_back(b.CreateLoad(
          type, b.CreateConstGEP1_64(b.getInt64Ty(), descriptor, field)));
    }
  }

  void addScalar(DType dtype, llvm::Type *type) {
    llvm::Value *pointer = nextPointer();
    if (dtype != DType::I1)
      return values.push_back(b.CreateLoad(type, pointer));
    llvm::Value *byte = b.CreateLoad(b.getInt8Ty(), pointer);
    values.push_back(b.CreateIsNotNull(byte));
  }

  llvm::ArrayRef<llvm::Value *> getValues() const { return values; }

private:
  llvm::Value *nextPointer() {
    return b.CreateLoad(b.getPtrTy(),
                        b.CreateConstGEP1_64(b.getPtrTy(), array, next++));
  }

  llvm::IRBuilder<> &b;
  llvm::Value *array;
  uint64_t next = 0;
  llvm::SmallVector<llvm::Value *> values;
};

} // namespace

/// Emits `void symbol(void **args)`, which calls `callee` with the arguments of
/// `signature` followed by memrefs of the given ranks.
static llvm::Error emitPackedWrapper(llvm::Module &module,
                                     const Signature &signature,
                                     llvm::StringRef callee,
                                     llvm::StringRef symbol,
                                     llvm::ArrayRef<int64_t> trailingRanks) {
  llvm::Function *function = module.getFunction(("linattn." + callee).str());
  if (!function)
    return llvm::createStringError("the pipeline dropped the function '" +
                                   callee + "'");
  llvm::IRBuilder<> b(module.getContext());
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false);
  auto *wrapper = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  b.SetInsertPoint(
      llvm::BasicBlock::Create(module.getContext(), "entry", wrapper));

  ArgumentUnpacker unpacker(b, wrapper->getArg(0));
  llvm::FunctionType *calleeType = function->getFunctionType();
  auto mismatch = [&] {
    return llvm::createStringError("the pipeline changed the signature of '" +
                                   callee + "'");
  };
  for (const ValueInfo &argument : signature.arguments) {
    if (argument.isTensor) {
      unpacker.addMemRef(argument.getRank());
      continue;
    }
    size_t position = unpacker.getValues().size();
    if (position >= calleeType->getNumParams())
      return mismatch();
    unpacker.addScalar(argument.dtype, calleeType->getParamType(position));
  }
  for (int64_t rank : trailingRanks)
    unpacker.addMemRef(rank);
  if (unpacker.getValues().size() != calleeType->getNumParams())
    return mismatch();
  b.CreateCall(function, unpacker.getValues());
  b.CreateRetVoid();

  return llvm::Error::success();
}

void linattn::detail::internalize(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setName("linattn." + function.getName());
  }
}

llvm::Error linattn::detail::emitWrappers(llvm::Module &module,
                                          const Signature &signature,
                                          Subnormals subnormals) {
  internalize(module); // Only wrappers are visible.
  llvm::SmallVector<int64_t> ranks;
  for (const ValueInfo &result : signature.results)
    ranks.push_back(result.getRank());
  std::string shapes = signature.entry + mlir::linattn::kShapesSuffix.str();
  if (llvm::Error error = emitPackedWrapper(module, signature, shapes,
                                            getShapesSymbol(signature), {1}))
    return error;
  std::string run = getRunSymbol(signature);
  if (llvm::Error error =
          emitPackedWrapper(module, signature, signature.entry, run, ranks))
    return error;
  bool isDouble = llvm::any_of(signature.results, [](const ValueInfo &result) {
    return result.dtype == DType::F64;
  });
  emitFloatMode(*module.getFunction(run),
                subnormals == Subnormals::Automatic && !isDouble);
  return llvm::Error::success();
}

llvm::Expected<Math> linattn::detail::getDefaultMath() {
  const char *name = std::getenv("LINATTN_MATH");
  llvm::StringRef text = name ? name : "strict";
  if (text == "fast")
    return Math::Fast;
  if (text == "strict" || text.empty())
    return Math::Strict;
  return llvm::createStringError(
      "expected LINATTN_MATH to be strict or fast, but got " + text);
}

llvm::Expected<MatrixUnit> linattn::detail::getDefaultMatrixUnit() {
  const char *name = std::getenv("LINATTN_MATRIX_UNIT");
  llvm::StringRef text = name ? name : "none";
  if (text == "amx")
    return MatrixUnit::AMX;
  if (text == "dot")
    return MatrixUnit::Dot;
  if (text == "emulated")
    return MatrixUnit::EmulatedAMX;
  if (text == "none" || text.empty())
    return MatrixUnit::None;
  return llvm::createStringError(
      "expected LINATTN_MATRIX_UNIT to be none, amx, dot or emulated, but "
      "got " +
      text);
}

/// Why this machine has no products of a unit, as a sentence; empty if it has.
static llvm::StringRef whyNoUnit(MatrixUnit unit, Math math) {
  switch (unit) {
  case MatrixUnit::AMX:
    if (!getVectorTarget().amx)
      return "the CPU has no AMX with bf16";
    return linattn_request_amx()
               ? ""
               : "the operating system does not give this process the tiles";
  case MatrixUnit::Dot:
    if (!getVectorTarget().avx512Bf16)
      return "the CPU has no AVX-512 BF16";
    // Two products at twice the rate are one.
    return math == Math::Fast
               ? ""
               : "dot products gain only by a single bf16 number for each "
                 "element, which math=fast allows";
  case MatrixUnit::None:
  case MatrixUnit::EmulatedAMX:
    return "";
  }
  llvm_unreachable("all units are above");
}

MatrixUnit linattn::detail::resolveMatrixUnit(const CompilerOptions &options,
                                              std::string *why) {
  MatrixUnit unit = options.matrixUnit.value_or(MatrixUnit::None);
  if (options.target != Target::CPU)
    return MatrixUnit::None;
  llvm::StringRef problem =
      whyNoUnit(unit, options.math.value_or(Math::Strict));
  if (problem.empty())
    return unit;
  if (why)
    *why = problem.str();
  return MatrixUnit::None;
}

/// NaN and infinities keep their meaning: masks and running maxima depend on
/// them.
static void relaxMath(llvm::Module &module) {
  llvm::FastMathFlags flags;
  flags.setAllowReassoc();
  flags.setAllowContract();
  flags.setAllowReciprocal();
  flags.setApproxFunc();
  flags.setNoSignedZeros();
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (llvm::isa<llvm::FPMathOperator>(instruction))
        instruction.setFastMathFlags(flags);
}

/// Loops over vectors are tiled for the registers of the machine already.
/// Unrolled, they take twice as long to compile and no less to run.
static void keepTiledLoops(llvm::Module &module) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      bool tiled = llvm::any_of(loop->blocks(), [](llvm::BasicBlock *block) {
        return llvm::any_of(*block, [](const llvm::Instruction &instruction) {
          return instruction.getType()->isVectorTy();
        });
      });
      if (tiled)
        loop->setLoopAlreadyUnrolled();
    }
  }
}

/// LLVM's O3 without the passes that find nothing in this code, which has few
/// functions, no calls, and a handful of loops. The cleaning passes run after
/// the steps that create new code.
static constexpr const char *kOptimization =
    "function(simplifycfg,sroa,early-cse),globalopt,cgscc(inline),"
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<"
    "max-iterations=1;no-verify-fixpoint>,"
    "loop-mssa(licm<no-allowspeculation>,loop-rotate,licm),simplifycfg,"
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sroa,gvn,dse,"
    "adce,simplifycfg,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop-vectorize,vector-combine,loop-unroll<O3>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop-mssa(licm),div-rem-pairs,simplifycfg),globaldce,constmerge";

static llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine,
                            bool fast) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = fast;
  tuning.LoopVectorization = fast;
  tuning.SLPVectorization = fast;
  keepTiledLoops(module);
  return optimizeModule(module, machine, fast ? kOptimization : "default<O1>",
                        tuning);
}

llvm::Expected<llvm::SmallVector<char, 0>>
linattn::detail::generateCode(mlir::ModuleOp mlirModule,
                              const Signature &signature, CodeFormat format,
                              const CompilerOptions &options) {
  // An emulated GPU keeps subnormal numbers, as a real one does.
  Subnormals subnormals = options.target == Target::NVVMEmulated
                              ? Subnormals::Kept
                              : Subnormals::Automatic;
  auto emitEntries = [&](llvm::Module &module) -> llvm::Error {
    if (!options.trusted)
      if (llvm::Error error = checkSymbols(module))
        return error;
    return emitWrappers(module, signature, subnormals);
  };
  // Code in a prime field runs once.
  return generateCode(mlirModule, signature.entry, emitEntries,
                      {format, options.math.value_or(Math::Strict),
                       options.prime.has_value(),
                       /*machine=*/{}});
}

llvm::Expected<llvm::SmallVector<char, 0>> linattn::detail::generateCode(
    mlir::ModuleOp mlirModule, llvm::StringRef name,
    llvm::function_ref<llvm::Error(llvm::Module &)> emitEntries,
    const CodeGenOptions &options) {
  auto machine = createTargetMachine(options.machine);
  if (!machine)
    return machine.takeError();
  if (options.runsOnce)
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  DiagnosticCollector diagnostics(*mlirModule.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(mlirModule, context, name);
  if (!module)
    return diagnostics.takeError("translation to LLVM IR failed");
  setTarget(*module, **machine);
  if (llvm::Error error = emitEntries(*module))
    return std::move(error);
  setFunctionTarget(*module, **machine, options.machine.vectorBits);
  std::string problem;
  llvm::raw_string_ostream problemStream(problem);
  if (llvm::verifyModule(*module, &problemStream))
    return llvm::createStringError("invalid LLVM IR: " + problem);
  accessBFloatAsInteger(*module);
  if (options.math == Math::Fast)
    relaxMath(*module);
  if (llvm::Error error =
          optimize(*module, **machine, /*fast=*/!options.runsOnce))
    return std::move(error);

  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream os(code);
  if (options.format == CodeFormat::LLVMIR) {
    module->print(os, nullptr);
    return code;
  }
  llvm::legacy::PassManager passes;
  auto type = options.format == CodeFormat::Object
                  ? llvm::CodeGenFileType::ObjectFile
                  : llvm::CodeGenFileType::AssemblyFile;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr, type))
    return llvm::createStringError(
        "this machine's code generator cannot write files");
  passes.run(*module);
  return code;
}
