//===- CodeGen.cpp - From the LLVM dialect to object code -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/CodeGen.h"
#include "BFloatMemory.h"
#include "TargetMachine.h"
#include "linattn-c/Runtime.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/CodeGen/ForeignCode.h"
#include "linattn/Support/OptimizeModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include <cstdlib>

using namespace linattn;
using namespace linattn::detail;

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

/// The value that a variable of the environment names, one of two; the first
/// unless it is set.
template <typename Value>
static llvm::Expected<Value>
readVariable(const char *variable, std::pair<llvm::StringRef, Value> usual,
             std::pair<llvm::StringRef, Value> other) {
  const char *set = std::getenv(variable);
  llvm::StringRef text = set ? set : "";
  if (text.empty() || text == usual.first)
    return usual.second;
  if (text == other.first)
    return other.second;
  return llvm::createStringError(llvm::Twine("expected ") + variable +
                                 " to be " + usual.first + " or " +
                                 other.first + ", but got " + text);
}

llvm::Expected<Math> linattn::detail::getDefaultMath() {
  return readVariable<Math>("LINATTN_MATH", {"strict", Math::Strict},
                            {"fast", Math::Fast});
}

llvm::Expected<Optimization> linattn::detail::getDefaultOptimization() {
  return readVariable<Optimization>("LINATTN_OPTIMIZATION",
                                    {"full", Optimization::Full},
                                    {"quick", Optimization::Quick});
}

llvm::Expected<std::string> linattn::detail::getDefaultScanMma() {
  return readVariable<std::string>("LINATTN_SCAN_MMA", {"mma_sync", "mma_sync"},
                                   {"wgmma", "wgmma"});
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
  case MatrixUnit::Auto:
    return "";
  }
  llvm_unreachable("all units are above");
}

llvm::Expected<MatrixUnit> linattn::detail::getDefaultMatrixUnit() {
  const char *name = std::getenv("LINATTN_MATRIX_UNIT");
  llvm::StringRef text = name ? name : "";
  if (text == "auto" || text.empty())
    return MatrixUnit::Auto;
  if (text == "amx")
    return MatrixUnit::AMX;
  if (text == "dot")
    return MatrixUnit::Dot;
  if (text == "emulated")
    return MatrixUnit::EmulatedAMX;
  if (text == "none")
    return MatrixUnit::None;
  return llvm::createStringError(
      "expected LINATTN_MATRIX_UNIT to be auto, none, amx, dot or emulated, "
      "but got " +
      text);
}

/// The first unit of this machine that gains, or none.
static MatrixUnit chooseUnit(Math math) {
  if (whyNoUnit(MatrixUnit::AMX, math).empty())
    return MatrixUnit::AMX;
  bool gainsByDots = getVectorTarget().fastDotProducts &&
                     whyNoUnit(MatrixUnit::Dot, math).empty();
  return gainsByDots ? MatrixUnit::Dot : MatrixUnit::None;
}

MatrixUnit linattn::detail::resolveMatrixUnit(const CompilerOptions &options,
                                              std::string *why) {
  MatrixUnit unit = options.matrixUnit.value_or(MatrixUnit::None);
  Math math = options.math.value_or(Math::Strict);
  if (options.target != Target::CPU)
    return MatrixUnit::None;
  if (unit == MatrixUnit::Auto)
    return chooseUnit(math);
  llvm::StringRef problem = whyNoUnit(unit, math);
  if (problem.empty())
    return unit;
  if (why)
    *why = problem.str();
  return MatrixUnit::None;
}

/// Whether a module of the LLVM dialect has tiles of AMX.
static bool hasTiles(mlir::ModuleOp module) {
  return module
      .walk([](mlir::LLVM::CallIntrinsicOp op) {
        return op.getIntrin().starts_with("llvm.x86.tile")
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

static Optimization resolveOptimization(const CompilerOptions &options,
                                        mlir::ModuleOp module) {
  if (options.prime) // Code in a prime field runs once.
    return Optimization::Quick;
  Optimization optimization = options.optimization.value_or(Optimization::Full);
  // Without optimizations LLVM keeps no tile in a register across blocks.
  return optimization == Optimization::Quick && hasTiles(module)
             ? Optimization::Full
             : optimization;
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

/// Passes that take less time than the generation of the code that they remove.
static constexpr const char *kQuickOptimization =
    "function(sroa,early-cse,simplifycfg),globaldce";

static llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine,
                            Optimization optimization) {
  if (optimization == Optimization::Quick)
    return optimizeModule(module, machine, kQuickOptimization);
  keepTiledLoops(module);
  return optimizeModule(module, machine, kOptimization);
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
  return generateCode(mlirModule, signature.entry, emitEntries,
                      {format, options.math.value_or(Math::Strict),
                       resolveOptimization(options, mlirModule),
                       /*machine=*/{}});
}

llvm::Expected<llvm::SmallVector<char, 0>> linattn::detail::generateCode(
    mlir::ModuleOp mlirModule, llvm::StringRef name,
    llvm::function_ref<llvm::Error(llvm::Module &)> emitEntries,
    const CodeGenOptions &options) {
  auto machine = createTargetMachine(options.machine);
  if (!machine)
    return machine.takeError();
  if (options.optimization == Optimization::Quick)
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  DiagnosticCollector diagnostics(*mlirModule.getContext());
  llvm::LLVMContext context;
  // The module is verified below, with the entries and with a message.
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(
      mlirModule, context, name, /*disableVerification=*/true);
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
  if (llvm::Error error = optimize(*module, **machine, options.optimization))
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
