//===- ScanCase.cpp - Kernels of a scan in the emulator -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanCase.h"
#include "Rounding.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/GPU/LaunchPlan.h"
#include "linattn/InitAll.h"
#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Support/Elements.h"
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

namespace {

/// An operand or result of the function.
struct NamedBuffer {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape, strides;
  std::vector<char> data;

  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    return n;
  }
  uint64_t bytes() const { return count() * getByteSize(dtype); }

  /// Where the element of row-major number `index` is.
  int64_t place(int64_t index) const {
    int64_t at = 0;
    for (size_t dim = shape.size(); dim-- > 0;) {
      at += index % shape[dim] * strides[dim];
      index /= shape[dim];
    }
    return at;
  }
  Array toArray() const {
    Array array(shape);
    for (int64_t i = 0; i < count(); ++i)
      array.data[i] = loadElement(dtype, data.data(), place(i));
    return array;
  }
  void set(const Array &array) {
    for (int64_t i = 0; i < count(); ++i)
      storeElement(dtype, data.data(), place(i), array.data[i]);
  }
  std::string type(bool dynamicTokens) const {
    std::string text = "tensor<";
    for (size_t dim = 0; dim < shape.size(); ++dim)
      text +=
          dynamicTokens && dim == 2 ? "?x" : std::to_string(shape[dim]) + "x";
    return text + std::string(getName(dtype)) + ">";
  }
};

/// The operands of a case and its function.
class Program {
public:
  explicit Program(const ScanCase &scan);

  ScanOutcome run();
  std::string text() const;

private:
  NamedBuffer &add(std::string name, DType dtype, std::vector<int64_t> shape,
                   bool tokens);
  void fill(NamedBuffer &buffer, double scale, bool negative);
  void addGates();
  void addMask();
  /// Few tokens are static, as in decoding.
  bool isDynamic(const NamedBuffer &buffer) const {
    return scan.tokens > 8 && buffer.shape.size() >= 3 &&
           buffer.shape[2] == scan.tokens && buffer.name != "state" &&
           buffer.name != "z";
  }
  NamedBuffer *find(llvm::StringRef name) {
    for (NamedBuffer &buffer : buffers)
      if (buffer.name == name)
        return &buffer;
    return nullptr;
  }
  std::optional<Array> arrayOf(llvm::StringRef name) {
    NamedBuffer *buffer = find(name);
    return buffer ? std::optional(buffer->toArray()) : std::nullopt;
  }
  Result<ScanResult> computeReference();
  NamedBuffer &bufferOf(mlir::Value value);
  llvm::Error launch(mlir::ModuleOp module, mlir::linattn::LaunchOp launch,
                     ScanOutcome &outcome);
  void compare(const ScanResult &reference, ScanOutcome &outcome);

  const ScanCase &scan;
  int64_t heads, outputHeads, states;
  /// In the order of the function: operands, then results.
  std::vector<NamedBuffer> buffers;
  std::vector<int64_t> rows; ///< Of the pool.
  /// Memory that the function allocates.
  llvm::DenseMap<mlir::Value, NamedBuffer> allocated;
  Array initialState, initialZ;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

NamedBuffer &Program::add(std::string name, DType dtype,
                          std::vector<int64_t> shape, bool tokens) {
  NamedBuffer buffer{
      name, dtype, shape, std::vector<int64_t>(shape.size(), 1), {}};
  // Row-major, or with tokens before heads.
  std::vector<size_t> order;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    order.push_back(dim);
  if (tokens && scan.tokensFirst)
    std::swap(order[1], order[2]);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    buffer.strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  buffer.data.resize(buffer.bytes());
  buffers.push_back(std::move(buffer));
  return buffers.back();
}

/// Standard normal numbers times `scale`, or minus their magnitudes.
void Program::fill(NamedBuffer &buffer, double scale, bool negative) {
  std::vector<double> numbers(buffer.count());
  fillRandom(DType::F64, numbers.data(), numbers.size(), scan.seed,
             /*stream=*/buffers.size());
  Array array(buffer.shape);
  for (size_t i = 0; i < numbers.size(); ++i)
    array.data[i] =
        negative ? -scale * std::abs(numbers[i]) : scale * numbers[i];
  buffer.set(array);
}

void Program::addGates() {
  std::vector<int64_t> perToken{scan.batch, heads, scan.tokens};
  auto withLast = [&](int64_t size) {
    std::vector<int64_t> shape = perToken;
    shape.push_back(size);
    return shape;
  };
  auto gate = [&](std::string name, std::vector<int64_t> shape, double scale,
                  bool negative) {
    fill(add(name, scan.gates, shape, shape.size() > 2), scale, negative);
  };
  double decayScale = 0.1 * scan.decayScale;
  if (scan.decay == ScanCase::Head)
    gate("decay", {heads}, decayScale, true);
  else if (scan.decay == ScanCase::Token)
    gate("decay", perToken, decayScale, true);
  else if (scan.decay == ScanCase::Channel)
    gate("decay", withLast(scan.keySize), decayScale, true);
  if (scan.valueDecay)
    gate("value_decay", withLast(scan.valueSize), 0.1, true);
  if (scan.update == UpdateRule::Delta && scan.beta)
    gate("beta", scan.columnBeta ? withLast(scan.valueSize) : perToken, 0.5,
         false);
  // A transition that grows would be ill-conditioned.
  if (scan.update == UpdateRule::Dplr)
    for (const char *name : {"a", "b"})
      gate(name, withLast(scan.keySize), 0.5 / std::sqrt(scan.keySize), false);
  if (scan.bonus)
    gate("bonus", {heads, scan.keySize}, 1, false);
  if (scan.erase)
    gate("erase", withLast(scan.keySize), 0.5, false);
  if (scan.write)
    gate("write", withLast(scan.valueSize), 1, false);
}

/// Masked tokens hold NaN.
void Program::addMask() {
  NamedBuffer &mask =
      add("mask", DType::I1, {scan.batch, scan.tokens}, /*tokens=*/false);
  auto isWritten = [](int64_t number) { return number % 3 != 0; };
  for (int64_t i = 0; i < mask.count(); ++i)
    storeElement(DType::I1, mask.data.data(), i, isWritten(i));
  for (const char *name :
       {"key", "value", "beta", "a", "b", "erase", "write"}) {
    NamedBuffer *buffer = find(name);
    if (!buffer)
      continue;
    Array array = buffer->toArray();
    int64_t rows = array.dim(0) * array.dim(1) * array.dim(2);
    int64_t width = rows ? array.data.size() / rows : 0;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t sequence = i / (array.dim(1) * array.dim(2));
      if (!isWritten(sequence * scan.tokens + i % array.dim(2)))
        std::fill_n(&array.data[i * width], width,
                    std::numeric_limits<double>::quiet_NaN());
    }
    buffer->set(array);
  }
}

Program::Program(const ScanCase &scan)
    : scan(scan), heads(std::max(scan.keyHeads, scan.valueHeads)),
      outputHeads(std::max(heads, scan.queryHeads)),
      states(scan.offsets.empty() ? scan.batch : scan.offsets.size() - 1) {
  auto tokens = [&](int64_t heads, int64_t size) {
    return std::vector<int64_t>{scan.batch, heads, scan.tokens, size};
  };
  // Keys of about unit length keep rank-1 updates stable.
  double keyScale =
      scan.update == UpdateRule::Add ? 1 : 1 / std::sqrt(scan.keySize);
  fill(add("query", scan.dtype, tokens(scan.queryHeads, scan.keySize), true), 1,
       false);
  fill(add("key", scan.dtype, tokens(scan.keyHeads, scan.keySize), true),
       keyScale, false);
  fill(add("value", scan.dtype, tokens(scan.valueHeads, scan.valueSize), true),
       1, false);
  addGates();
  if (scan.mask)
    addMask();
  if (!scan.offsets.empty()) {
    NamedBuffer &buffer = add("cu_seqlens", DType::I32, {states + 1}, false);
    for (int64_t i = 0; i <= states; ++i)
      storeElement(DType::I32, buffer.data.data(), i, scan.offsets[i]);
  }
  int64_t poolRows = states;
  if (scan.pool) {
    NamedBuffer &buffer = add("state_indices", DType::I32, {states}, false);
    poolRows = states + 2;
    for (int64_t i = 0; i < states; ++i) {
      rows.push_back(i == 1 ? -1 : poolRows - 1 - i);
      storeElement(DType::I32, buffer.data.data(), i, rows[i]);
    }
  }
  std::vector<int64_t> stateShape{poolRows, heads, scan.keySize,
                                  scan.valueSize};
  initialState = Array(stateShape);
  initialZ = Array({poolRows, heads, scan.keySize});
  if (scan.initial != ScanCase::Zero) {
    NamedBuffer &state = add("state", DType::F32, stateShape, false);
    fill(state, 1, false);
    initialState = state.toArray();
    if (scan.normalize) {
      NamedBuffer &z = add("z", DType::F32, initialZ.shape, false);
      fill(z, 1, false);
      for (int64_t i = 0; i < z.count(); ++i)
        storeElement(DType::F32, z.data.data(), i,
                     5 + std::abs(loadElement(DType::F32, z.data.data(), i)));
      initialZ = z.toArray();
    }
  }
  add("o", scan.dtype, tokens(outputHeads, scan.valueSize), true);
  add("final", DType::F32, stateShape, false);
  if (scan.normalize)
    add("final_z", DType::F32, initialZ.shape, false);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

std::string Program::text() const {
  std::string arguments, clauses, types, body;
  auto isResult = [](const NamedBuffer &buffer) {
    return buffer.name == "o" || buffer.name.substr(0, 5) == "final";
  };
  std::string resultTypes, output, state, z;
  for (const NamedBuffer &buffer : buffers) {
    std::string type = buffer.type(isDynamic(buffer));
    if (buffer.name == "o")
      output = type;
    if (isResult(buffer)) {
      resultTypes += (resultTypes.empty() ? "" : ", ") + type;
      continue;
    }
    arguments += (arguments.empty() ? "%" : ", %") + buffer.name + ": " + type;
    if (buffer.name == "state" || buffer.name == "z")
      continue;
    types += type + ", ";
    if (buffer.name != "query" && buffer.name != "key" &&
        buffer.name != "value")
      clauses += " " + buffer.name + "(%" + buffer.name + ")";
  }
  for (const NamedBuffer &buffer : buffers) {
    std::string type = buffer.type(false);
    if (buffer.name == "final")
      state = type;
    if (buffer.name == "final_z")
      z = type;
  }
  if (scan.initial == ScanCase::Zero)
    for (auto [name, type] : {std::pair("state", state), std::pair("z", z)})
      if (!type.empty())
        body += llvm::formatv(
                    "  %{0}_e = tensor.empty() : {1}\n"
                    "  %{0} = linalg.fill ins(%zero : f32) outs(%{0}_e : {1}) "
                    "-> {1}\n",
                    name, type)
                    .str();
  const char *updates[] = {"add", "delta", "dplr", "oja"};
  clauses += std::string(" update(") + updates[int(scan.update)] + ")";
  if (scan.readout == Readout::Exclusive)
    clauses += " readout(exclusive)";
  if (scan.update == UpdateRule::Dplr && scan.readsBefore)
    clauses += " transition(before)";
  std::string attributes = "scale = 0.125 : f64";
  if (scan.reverse)
    attributes += ", reverse";
  if (scan.normalize)
    attributes += ", normalize = #linattn.normalize<eps = 1.0e-6>";
  const char *maps[] = {"identity", "relu", "relu2", "elu1"};
  attributes += std::string(", feature_map = #linattn.feature_map<") +
                maps[int(scan.featureMap)] + ">";
  types += output + ", " + state + (z.empty() ? "" : ", " + z);
  return llvm::formatv(
             "func.func @layer({0}) -> ({1}) {{\n"
             "  %c2 = arith.constant 2 : index\n"
             "  %zero = arith.constant 0.0 : f32\n"
             "  %t = tensor.dim %query, %c2 : {2}\n"
             "  %e = tensor.empty({11}) : {3}\n{4}"
             "  %r:{5} = linattn.scan %query, %key, %value{6} into(%e) "
             "init(%state){7} {{{8}} : ({9}) -> ({1})\n"
             "  return {10} : {1}\n}\n",
             arguments, resultTypes, buffers[0].type(isDynamic(buffers[0])),
             output, body, z.empty() ? 2 : 3, clauses,
             z.empty() ? "" : " normalizer(%z)", attributes, types,
             z.empty() ? "%r#0, %r#1" : "%r#0, %r#1, %r#2",
             isDynamic(buffers[0]) ? "%t" : "")
      .str();
}

std::string linattn::test::toText(const ScanCase &scan) {
  return Program(scan).text();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

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

Result<ScanResult> Program::computeReference() {
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

NamedBuffer &Program::bufferOf(mlir::Value value) {
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

llvm::Error Program::launch(mlir::ModuleOp module,
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

void Program::compare(const ScanResult &reference, ScanOutcome &outcome) {
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

ScanOutcome Program::run() {
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
  return Program(scan).run();
}
