//===- linattn-opt.cpp - Run passes on linattn IR -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Pipelines/LowerToLLVM.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  mlir::linattn::registerLinAttnTransformsPasses();
  mlir::linattn::registerLinAttnConversionPasses();
  mlir::linattn::registerLowerToLLVMPipelines();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<mlir::linattn::LinAttnDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "linear attention optimizer\n", registry));
}
