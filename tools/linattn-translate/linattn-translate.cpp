//===- linattn-translate.cpp - Code out of modules ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/InitAll.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;

/// Prints the objects of every `gpu.binary`: PTX after
/// `linattn-lower-to-nvvm-pipeline`.
static LogicalResult printObjects(Operation *op, llvm::raw_ostream &os) {
  bool any = false;
  op->walk([&](gpu::BinaryOp binary) {
    for (Attribute object : binary.getObjects()) {
      // The text has a terminating null byte, for drivers.
      os << cast<gpu::ObjectAttr>(object).getObject().getValue().rtrim('\0');
      any = true;
    }
  });
  return any ? success() : op->emitError("expected a gpu.binary");
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration registration(
      "gpu-binary-to-assembly", "print what gpu.binary ops hold", printObjects,
      [](DialectRegistry &registry) {
        mlir::linattn::registerAllDialects(registry);
      });
  return failed(mlirTranslateMain(argc, argv, "linear attention translator\n"));
}
