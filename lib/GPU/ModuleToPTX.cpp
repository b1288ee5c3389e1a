//===- ModuleToPTX.cpp - From lowered kernels to PTX ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "linattn/Support/OptimizeModule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVM/ModuleToObject.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNMODULETOPTXPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// LLVM's O3 is for untuned programs. Here the builder has shaped
/// addresses and loops for the registers, and the assembler schedules: what is
/// left is to drop what repeats, to hoist what a loop does not change, and to
/// bring loops into the shape that the assembler knows. The ranges of thread
/// and block numbers come first: sums of their bits become disjunctions.
static constexpr const char *optimization =
    "function(nvvm-intr-range,simplifycfg,early-cse<memssa>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,reassociate,"
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,"
    "loop-rotate,licm,simple-loop-unswitch),simplifycfg,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sccp,bdce,"
    "instcombine<max-iterations=1;no-verify-fixpoint>)";

namespace {

/// Translation, optimization and code generation of one module.
class KernelsToPTX : public LLVM::ModuleToObject {
public:
  KernelsToPTX(gpu::GPUModuleOp module, NVVM::NVVMTargetAttr target)
      : ModuleToObject(*module, target.getTriple(), target.getChip(),
                       target.getFeatures(), target.getO()) {}

protected:
  LogicalResult optimizeModule(llvm::Module &module, int level) override;
  FailureOr<SmallVector<char, 0>> moduleToObject(llvm::Module &module) override;
};

struct LinAttnModuleToPTXPass final
    : mlir::linattn::impl::LinAttnModuleToPTXPassBase<LinAttnModuleToPTXPass> {
  using LinAttnModuleToPTXPassBase::LinAttnModuleToPTXPassBase;

  void runOnOperation() override {
    NVVM::SerializeGPUModuleBase::init();
    for (auto module :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(convert(module)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(gpu::GPUModuleOp module);
};

} // namespace

LogicalResult KernelsToPTX::optimizeModule(llvm::Module &module, int level) {
  FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
  if (failed(machine))
    return getOperation().emitError("expected LLVM to know the target ")
           << triple << ", " << chip;
  if (llvm::Error error =
          ::linattn::optimizeModule(module, **machine, optimization))
    return getOperation().emitError(llvm::toString(std::move(error)));
  return success();
}

FailureOr<SmallVector<char, 0>>
KernelsToPTX::moduleToObject(llvm::Module &module) {
  FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
  if (failed(machine))
    return failure();
  FailureOr<SmallString<0>> text = translateModuleToISA(
      module, **machine, [&] { return getOperation().emitError(); });
  if (failed(text))
    return failure();
  return SmallVector<char, 0>(text->begin(), text->end());
}

/// Copies by tensor maps are code of PTX 8.6. Assemblers and drivers of older
/// versions take the strides of a map for units of 16 bytes, not bytes: they
/// must refuse such a kernel.
static NVVM::NVVMTargetAttr withVersion(gpu::GPUModuleOp module,
                                        NVVM::NVVMTargetAttr target) {
  auto usesMaps = [](Operation *op) {
    return isa<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  if (target.getFeatures() != "+ptx80" ||
      !module.walk(usesMaps).wasInterrupted())
    return target;
  return NVVM::NVVMTargetAttr::get(
      target.getContext(), target.getO(), target.getTriple(), target.getChip(),
      "+ptx86", target.getFlags(), target.getLink(), target.getVerifyTarget());
}

LogicalResult LinAttnModuleToPTXPass::convert(gpu::GPUModuleOp module) {
  ArrayAttr targets = module.getTargetsAttr();
  auto target = targets && targets.size() == 1
                    ? dyn_cast<NVVM::NVVMTargetAttr>(targets[0])
                    : NVVM::NVVMTargetAttr();
  if (!target)
    return module.emitOpError("expected one target, of NVVM");
  target = withVersion(module, target);
  // The last time that it can be: passes do not verify in compilations.
  if (failed(verify(module)))
    return failure();
  std::optional<SmallVector<char, 0>> text = KernelsToPTX(module, target).run();
  if (!text)
    return failure();
  OpBuilder b(module);
  auto object = gpu::ObjectAttr::get(
      b.getContext(), target, gpu::CompilationTarget::Assembly,
      b.getStringAttr(StringRef(text->data(), text->size())),
      /*properties=*/{}, /*kernels=*/{});
  gpu::BinaryOp::create(b, module.getLoc(), module.getName(),
                        /*offloadingHandler=*/nullptr, b.getArrayAttr(object));
  module.erase();
  return success();
}
