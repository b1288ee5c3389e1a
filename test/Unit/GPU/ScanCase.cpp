//===- ScanCase.cpp - Kernels of a scan in the emulator -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanCase.h"
#include "Rounding.h"
#include "ScanProgram.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/GPU/LaunchPlan.h"
#include "linattn/InitAll.h"
#include "linattn/Pipelines/Pipelines.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::test;
using reference::Array;
using reference::Normalize;
using reference::Result;
using reference::ScanOperands;
using reference::ScanOptions;
using reference::ScanResult;
using reference::State;

/// The rows of a pool that the sequences have.
static Array gather(const Array &pool, const std::vector<int64_t> &rows) {
  if (rows.empty())
    return pool;
  std::vector<int64_t> shape = pool.shape;
  shape[0] = rows.size();
  Array result(shape);
  int64_t size = pool.data.size() / pool.shape[0];
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= 0)
      std::copy_n(pool.data.begin() + rows[i] * size, size,
                  result.data.begin() + i * size);
  return result;
}

static void scatter(const Array &states, const std::vector<int64_t> &rows,
                    Array &pool) {
  if (rows.empty())
    pool = states;
  int64_t size = pool.data.size() / pool.shape[0];
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= 0)
      std::copy_n(states.data.begin() + i * size, size,
                  pool.data.begin() + rows[i] * size);
}

Result<ScanResult> ScanProgram::computeReference() {
  ScanOperands operands;
  operands.q = *arrayOf("query");
  operands.k = *arrayOf("key");
  operands.v = *arrayOf("value");
  operands.decay = arrayOf("decay");
  operands.valueDecay = arrayOf("value_decay");
  operands.beta = arrayOf("beta");
  operands.a = arrayOf("a");
  operands.b = arrayOf("b");
  operands.bonus = arrayOf("bonus");
  operands.erase = arrayOf("erase");
  operands.write = arrayOf("write");
  operands.mask = arrayOf("mask");
  if (!scan.offsets.empty())
    operands.cuSeqlens = scan.offsets;
  ScanOptions options;
  options.update = scan.update;
  options.readout = scan.readout;
  if (scan.update == UpdateRule::Dplr)
    options.transition = scan.readsBefore ? reference::Transition::Before
                                          : reference::Transition::After;
  options.featureMap.kind = scan.featureMap;
  options.reverse = scan.reverse;
  options.scale = 0.125;
  State initial{gather(initialState, rows)};
  if (scan.normalize) {
    options.normalize = Normalize();
    options.normalize->eps = 1e-6;
    initial.z = gather(initialZ, rows);
  }
  return reference::scan(operands, options, initial);
}

NamedBuffer &ScanProgram::bufferOf(mlir::Value value) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
    NamedBuffer &buffer = buffers[argument.getArgNumber()];
    // The caller passes one buffer as both.
    if (scan.initial == ScanCase::InPlace && buffer.name == "state")
      return *find("final");
    return buffer;
  }
  NamedBuffer &buffer = allocated[value];
  if (buffer.shape.empty()) {
    auto type = llvm::cast<mlir::MemRefType>(value.getType());
    auto strides = type.getStridesAndOffset().first;
    buffer = {"",
              DType::F32,
              type.getShape().vec(),
              std::vector<int64_t>(strides.begin(), strides.end()),
              {}};
    buffer.data.assign(buffer.bytes(), '\xff');
  }
  return buffer;
}

/// Adds up the reports of several launches.
static void append(emulator::Report &all, const emulator::Report &next) {
  for (unsigned i = 0; i < emulator::kNumChecks; ++i) {
    all.findings[i].count += next.findings[i].count;
    all.findings[i].example += next.findings[i].example;
  }
  all.traffic += next.traffic;
  all.finished &= next.finished;
}

llvm::Error ScanProgram::launch(mlir::ModuleOp module,
                                mlir::linattn::LaunchOp launch,
                                ScanOutcome &outcome) {
  auto plan = launch->getAttrOfType<mlir::linattn::LaunchPlanAttr>(
      mlir::linattn::LaunchOp::getPlanAttrName());
  auto operandOf = [&](mlir::linattn::LaunchValueAttr value) -> NamedBuffer & {
    return bufferOf(launch.getBuffers()[value.getOperand()]);
  };
  std::vector<int64_t> sizes;
  for (auto size : plan.getSizes())
    sizes.push_back(operandOf(size).shape[size.getDim()]);
  std::vector<emulator::Argument> arguments;
  for (auto value : plan.getArgs()) {
    NamedBuffer &buffer = operandOf(value);
    switch (value.getKind()) {
    case mlir::linattn::LaunchValueKind::Pointer:
      arguments.push_back(
          emulator::Argument::buffer(buffer.data.data(), buffer.data.size()));
      break;
    case mlir::linattn::LaunchValueKind::Size:
      arguments.push_back(
          emulator::Argument::i32(buffer.shape[value.getDim()]));
      break;
    case mlir::linattn::LaunchValueKind::Stride:
      arguments.push_back(
          emulator::Argument::i64(buffer.strides[value.getDim()]));
      break;
    }
  }
  auto gpuModule = module.lookupSymbol<mlir::gpu::GPUModuleOp>(
      launch.getKernel().getRootReference());
  auto kernel = emulator::EmulatedKernel::compile(
      gpuModule, launch.getKernel().getLeafReference().getValue());
  if (!kernel)
    return kernel.takeError();
  emulator::LaunchOptions options;
  std::array<int64_t, 3> grid = mlir::linattn::evaluateGrid(plan, sizes);
  options.grid = {unsigned(grid[0]), unsigned(grid[1]), unsigned(grid[2])};
  options.block.x = plan.getBlock();
  options.sharedBytes = plan.getShared();
  auto report = kernel->launch(arguments, options);
  if (!report)
    return report.takeError();
  append(outcome.report, *report);
  ++outcome.launches;
  return llvm::Error::success();
}

void ScanProgram::compare(const ScanResult &reference, ScanOutcome &outcome) {
  Array o = reference.o;
  // Without a state the scan has no output.
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0)
      continue;
    bool isPacked = !scan.offsets.empty();
    int64_t first = isPacked ? scan.offsets[i] : 0;
    int64_t count = (isPacked ? scan.offsets[i + 1] : scan.tokens) - first;
    for (int64_t head = 0; head < outputHeads; ++head) {
      int64_t from = ((isPacked ? 0 : i) * outputHeads + head) * scan.tokens;
      std::fill_n(o.data.begin() + (from + first) * scan.valueSize,
                  count * scan.valueSize, 0.0);
    }
  }
  Array actual = find("o")->toArray();
  outcome.outputError = reference::compare(actual, o);
  outcome.beyondRounding = findBeyondRounding(scan.dtype, actual, o);
  size_t worst = 0;
  auto differs = [&](size_t i) { return std::abs(actual.data[i] - o.data[i]); };
  for (size_t i = 0; i < o.data.size(); ++i)
    if (differs(i) > differs(worst))
      worst = i;
  outcome.worst = llvm::formatv("output {0} is {1:F9}, expected {2:F9}", worst,
                                actual.data[worst], o.data[worst])
                      .str();
  Array state = initialState, z = initialZ;
  scatter(reference.state.S, rows, state);
  outcome.stateError = reference::compare(find("final")->toArray(), state);
  if (scan.normalize) {
    scatter(*reference.state.z, rows, z);
    outcome.normalizerError = reference::compare(find("final_z")->toArray(), z);
  }
}

ScanOutcome ScanProgram::run() {
  ScanOutcome outcome;
  auto fail = [&](std::string message) {
    outcome.error = std::move(message);
    return outcome;
  };
  mlir::DialectRegistry registry;
  mlir::linattn::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text(), &context);
  if (!module)
    return fail("the module does not parse");
  if (!scan.schedule.empty())
    (*module)->walk([&](mlir::linattn::ScanOp op) {
      op->setAttr(mlir::linattn::LaunchOp::getScheduleAttrName(),
                  mlir::parseAttribute(scan.schedule, &context));
    });
  mlir::PassManager pm(&context);
  mlir::linattn::GPUPipelineOptions options;
  options.chip = scan.chip;
  if (scan.warpgroups)
    options.scanMma = mlir::linattn::Mma::Wgmma;
  if (scan.fast)
    options.math = Math::Fast;
  mlir::linattn::buildGPUPipeline(pm, options);
  if (mlir::failed(linattn::detail::runPasses(pm, *module)))
    return fail("the pipeline failed");
  // A state that is updated in place holds the initial one.
  if (scan.initial == ScanCase::InPlace || scan.pool) {
    find("final")->data = find("state")->data;
    if (scan.normalize)
      find("final_z")->data = find("z")->data;
  } else if (scan.normalize && scan.initial == ScanCase::Copied)
    find("final_z")->data = find("z")->data;
  std::vector<mlir::linattn::LaunchOp> launches;
  module->walk([&](mlir::linattn::LaunchOp op) { launches.push_back(op); });
  if (launches.empty())
    return fail("no kernel was made");
  module->walk([&](mlir::LLVM::InlineAsmOp op) {
    outcome.usesWarpgroups |= op.getAsmString().contains("wgmma");
  });
  for (mlir::linattn::LaunchOp op : launches)
    if (llvm::Error error = launch(*module, op, outcome))
      return fail(llvm::toString(std::move(error)));
  outcome.output = find("o")->data;
  auto reference = computeReference();
  if (!reference)
    return fail("reference: " + reference.error());
  compare(*reference, outcome);
  for (const NamedBuffer &buffer : buffers) {
    bool isWritten = buffer.name == "o" || buffer.name.substr(0, 5) == "final";
    (isWritten ? outcome.bytesToWrite : outcome.bytesToRead) += buffer.bytes();
  }
  return outcome;
}

ScanCase linattn::test::makeCase(std::string name,
                                 llvm::function_ref<void(ScanCase &)> change) {
  ScanCase scan;
  scan.name = std::move(name);
  change(scan);
  return scan;
}

ScanOutcome linattn::test::runCase(const ScanCase &scan) {
  return ScanProgram(scan).run();
}
