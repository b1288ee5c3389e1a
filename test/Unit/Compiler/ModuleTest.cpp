//===- ModuleTest.cpp - Modules that are built, and texts that are odd ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Compiler.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/InitAll.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

using namespace linattn;

namespace {

/// Causal attention over [1, 1, 2, 1], built op by op.
TEST(Compiler, CompilesABuiltModule) {
  mlir::DialectRegistry registry;
  mlir::linattn::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<mlir::func::FuncDialect, mlir::linattn::LinAttnDialect>();
  mlir::OpBuilder b(&context);
  mlir::Location loc = b.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  b.setInsertionPointToStart(module->getBody());
  auto tokens = mlir::RankedTensorType::get({1, 1, 2, 1}, b.getF32Type());
  auto func = mlir::func::FuncOp::create(
      b, loc, "f", b.getFunctionType({tokens, tokens, tokens}, {tokens}));
  b.setInsertionPointToStart(func.addEntryBlock());
  auto attention = mlir::linattn::AttentionOp::create(
      b, loc, tokens, func.getArgument(0), func.getArgument(1),
      func.getArgument(2), /*mask=*/mlir::Value(), /*prefix=*/mlir::Value(),
      /*scale_value=*/mlir::Value(), /*slopes=*/mlir::Value(),
      /*sinks=*/mlir::Value(), mlir::linattn::Weights::Linear,
      /*causal=*/true, mlir::linattn::PatternAttr(), /*softcap=*/nullptr,
      mlir::linattn::FeatureMapAttr(), mlir::linattn::NormalizeAttr(),
      mlir::FloatAttr(), mlir::linattn::ConfigAttr());
  mlir::func::ReturnOp::create(b, loc, attention.getOutput());

  Kernel kernel = llvm::cantFail(Compiler().compile(*module));
  float q[] = {1, 2}, k[] = {3, 5}, v[] = {7, 11}, o[2];
  auto view = [](float *data) {
    return BufferView(data, DType::F32, {1, 1, 2, 1});
  };
  llvm::cantFail(kernel.run({view(q), view(k), view(v)}, {view(o)}));
  EXPECT_EQ(o[0], 21);                   // 1·3·7
  EXPECT_EQ(o[1], 2 * (3 * 7 + 5 * 11)); // all keys so far
}

TEST(Compiler, RefusesTextThatWouldOverflowTheStack) {
  std::string deep = "module attributes {a = " + std::string(100000, '[') +
                     std::string(100000, ']') + "} {}";
  llvm::Expected<Kernel> kernel = Compiler().compile(deep);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(llvm::toString(kernel.takeError()),
            "<string>:1:1023: error: brackets are nested more than 1000 deep");
}

} // namespace
