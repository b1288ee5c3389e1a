//===- InitAll.cpp - Register all passes ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/InitAll.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Emulator/Passes.h"
#include "linattn/Entry/Passes.h"
#include "linattn/GPU/Passes.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Transforms/Passes.h"

void mlir::linattn::registerAllPasses() {
  registerLinAttnEntryPasses();
  registerLinAttnTransformsPasses();
  registerLinAttnConversionPasses();
  registerLinAttnEmulatorPasses();
  registerLinAttnGPUPasses();
  registerLinAttnGradientPasses();
  registerLowerToLLVMPipelines();
  registerPipelines();
  registerGPUPipelines();
}
