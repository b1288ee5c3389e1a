//===- Session.cpp - One compilation through MLIR -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Session/Session.h"
#include "PipelineSelection.h"
#include "linattn/CodeGen/Diagnostics.h"
#include "linattn/CodeGen/ForeignCode.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Pipelines/Pipelines.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"

using namespace linattn;
using namespace linattn::detail;

namespace {

/// Appends each remark to a list, as "passed: name: message".
class RemarkCollector : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RemarkCollector(std::vector<std::string> &remarks)
      : remarks(remarks) {}

  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    std::string line;
    llvm::raw_string_ostream os(line);
    os << remark.getRemarkTypeString().lower() << ": " << remark.getRemarkName()
       << ":";
    for (const auto &arg : remark.getArgs()) {
      if (arg.key == "Remark" || arg.key == "Reason")
        os << " " << arg.val;
      else
        os << " " << arg.key << "=" << arg.val;
    }
    // Remarks are single lines; attributes may print several.
    llvm::replace(line, '\n', ' ');
    remarks.push_back(std::move(line));
  }

private:
  std::vector<std::string> &remarks;
};

/// Records the module after every pass that changed it.
class StageRecorder : public mlir::PassInstrumentation {
public:
  explicit StageRecorder(std::vector<Stage> &stages) : stages(stages) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    mlir::Operation *root = op;
    while (root->getParentOp())
      root = root->getParentOp();
    std::string ir = print(root);
    // Adaptors run a nested pipeline per function and change nothing
    // themselves.
    if (pass->getArgument().empty() || ir == stages.back().ir)
      return;
    stages.push_back({makeUnique(pass->getArgument()), std::move(ir)});
  }

  static std::string print(mlir::Operation *op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    op->print(os, mlir::OpPrintingFlags().useLocalScope());
    os << "\n";
    return text;
  }

private:
  std::string makeUnique(llvm::StringRef name) {
    unsigned copies = llvm::count_if(stages, [&](const Stage &stage) {
      return llvm::StringRef(stage.name).split('#').first == name;
    });
    return copies ? (name + "#" + llvm::Twine(copies + 1)).str() : name.str();
  }

  std::vector<Stage> &stages;
};

std::optional<DType> convertElement(mlir::Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return parseDType(name);
}

/// Describes one argument or result; fails on types without a representation.
bool describe(mlir::Type type, ValueInfo &info) {
  mlir::Type element = type;
  if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type)) {
    element = tensor.getElementType();
    for (int64_t extent : tensor.getShape())
      info.shape.push_back(mlir::ShapedType::isDynamic(extent) ? kDynamicExtent
                                                               : extent);
  } else {
    info.isTensor = false;
  }
  std::optional<DType> dtype = convertElement(element);
  if (dtype)
    info.dtype = *dtype;
  return dtype.has_value();
}

std::string getArgumentName(const mlir::AsmParserState &state,
                            mlir::Block &entry, unsigned index) {
  const auto *block = state.getBlockDef(&entry);
  if (!block || index >= block->arguments.size())
    return "";
  llvm::SMRange range = block->arguments[index].loc;
  if (!range.isValid())
    return "";
  llvm::StringRef name(range.Start.getPointer(),
                       range.End.getPointer() - range.Start.getPointer());
  name.consume_front("%");
  return name.str();
}

llvm::Expected<mlir::func::FuncOp> selectEntry(mlir::ModuleOp module,
                                               llvm::StringRef entry,
                                               llvm::StringRef fileName) {
  mlir::func::FuncOp selected;
  std::string candidates;
  unsigned numPublic = 0;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (func.getName() == entry)
      selected = func;
    if (!func.isPublic())
      continue;
    candidates += (numPublic++ ? ", " : "") + ("@" + func.getName()).str();
    if (entry.empty())
      selected = func;
  }
  if (entry.empty() && numPublic > 1)
    return llvm::createStringError(
        fileName +
        ": error: expected an entry to be named, since "
        "there are several public functions: " +
        candidates);
  if (entry.empty() && !selected)
    return llvm::createStringError(
        fileName + ": error: expected a public function, but the "
                   "module has none");
  if (!selected)
    return llvm::createStringError(
        fileName + ": error: no function is called '" + entry + "'" +
        (candidates.empty() ? "" : "; there are ") + candidates);
  if (selected.isDeclaration())
    return llvm::createStringError(formatLocation(selected.getLoc()) +
                                   ": error: expected '" + selected.getName() +
                                   "' to have a body");
  return selected;
}

llvm::Expected<Signature> getSignature(mlir::func::FuncOp func,
                                       const mlir::AsmParserState &state) {
  Signature signature;
  signature.entry = func.getName().str();
  auto fail = [&](const llvm::Twine &what, mlir::Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return llvm::createStringError(
        formatLocation(func.getLoc()) + ": error: " + what +
        ": expected a ranked tensor or scalar of f16, bf16, f32, "
        "f64, i1, i8, i16, i32, i64 or index, but got " +
        text);
  };
  for (mlir::BlockArgument arg : func.getArguments()) {
    ValueInfo &info = signature.arguments.emplace_back();
    info.name = getArgumentName(state, func.front(), arg.getArgNumber());
    if (!describe(arg.getType(), info))
      return fail(signature.describeArgument(arg.getArgNumber()),
                  arg.getType());
  }
  for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
    if (!describe(type, signature.results.emplace_back()))
      return fail(signature.describeResult(i), type);
  return signature;
}

} // namespace

llvm::Error linattn::detail::verifyKernelOptions(llvm::StringRef copy,
                                                 llvm::StringRef scanMma) {
  if (!mlir::linattn::symbolizeCopyEngine(copy))
    return llvm::createStringError(
        "expected copy to be cp_async or tma, but got '" + copy + "'");
  auto mma = mlir::linattn::symbolizeMma(scanMma);
  if (!mma || *mma == mlir::linattn::Mma::Fma)
    return llvm::createStringError(
        "expected the products of scans to be mma_sync or wgmma, but got '" +
        scanMma + "'");
  return llvm::Error::success();
}

Session::Session()
    : context(getDialectRegistry(), mlir::MLIRContext::Threading::DISABLED) {
  mlir::remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.failed =
      categories.analysis = "linattn.*";
  (void)mlir::remark::enableOptimizationRemarks(
      context, std::make_unique<RemarkCollector>(remarks),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories);
}

Session::~Session() = default;

/// Ops of other frameworks are raised by name; any other unregistered op
/// is a mistake.
static mlir::LogicalResult checkRegistered(mlir::Block &block) {
  mlir::WalkResult result = block.walk([](mlir::Operation *op) {
    static constexpr llvm::StringRef known[] = {
        "onnx.LinearAttention", "onnx.CausalConvWithState", "onnx.NoValue",
        "torch.operator", "torch.constant.none"};
    if (op->isRegistered() ||
        llvm::is_contained(known, op->getName().getStringRef()))
      return mlir::WalkResult::advance();
    op->emitError("expected an op of a known dialect, but got '")
        << op->getName() << "'";
    return mlir::WalkResult::interrupt();
  });
  return mlir::failure(result.wasInterrupted());
}

llvm::Error Session::parseModule(llvm::StringRef text, llvm::StringRef fileName,
                                 llvm::SourceMgr &sources,
                                 mlir::AsmParserState *state) {
  if (llvm::Error error = checkNesting(text, fileName))
    return error;
  DiagnosticCollector diagnostics(context);
  // The lexer requires a terminating null, which a StringRef does not
  // guarantee.
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, fileName), llvm::SMLoc());
  // For the ops that the first pass raises, and no others.
  context.allowUnregisteredDialects();
  mlir::Block block;
  if (failed(mlir::parseAsmSourceFile(sources, &block,
                                      mlir::ParserConfig(&context), state)) ||
      failed(checkRegistered(block)))
    return diagnostics.takeError("parsing failed");
  auto location = mlir::FileLineColLoc::get(&context, fileName, 0, 0);
  module =
      mlir::detail::constructContainerOpForParserIfNecessary<mlir::ModuleOp>(
          &block, &context, location);
  if (!module)
    return diagnostics.takeError("parsing failed");
  return llvm::Error::success();
}

llvm::Expected<std::vector<std::string>>
Session::getPublicFunctions(llvm::StringRef text, llvm::StringRef fileName) {
  llvm::SourceMgr sources;
  if (llvm::Error error = parseModule(text, fileName, sources))
    return std::move(error);
  std::vector<std::string> names;
  for (auto func : module->getOps<mlir::func::FuncOp>())
    if (func.isPublic())
      names.push_back(func.getName().str());
  return names;
}

llvm::Expected<Signature> Session::parse(llvm::StringRef text,
                                         llvm::StringRef entry,
                                         llvm::StringRef fileName, bool trusted,
                                         const Operands &differentiated,
                                         const CompilerOptions *options) {
  // The state points into the source.
  llvm::SourceMgr sources;
  mlir::AsmParserState state;
  if (llvm::Error error = parseModule(text, fileName, sources, &state))
    return std::move(error);
  llvm::Expected<mlir::func::FuncOp> func =
      selectEntry(*module, entry, fileName);
  if (!func)
    return func.takeError();
  if (!trusted)
    if (llvm::Error error = checkSource(*module))
      return std::move(error);
  llvm::Expected<Signature> signature = getSignature(*func, state);
  if (!signature)
    return signature.takeError();
  // Only the entry is compiled. Its callees stay, and are inlined.
  for (auto other : module->getOps<mlir::func::FuncOp>())
    other.setVisibility(other == *func
                            ? mlir::SymbolTable::Visibility::Public
                            : mlir::SymbolTable::Visibility::Private);
  if (differentiated)
    if (llvm::Error error = differentiate(*signature, *differentiated, options))
      return std::move(error);
  return signature;
}

llvm::Error Session::differentiate(Signature &signature,
                                   llvm::ArrayRef<int64_t> operands,
                                   const CompilerOptions *options) {
  std::string entry = signature.entry;
  auto build = [&](mlir::OpPassManager &pm) {
    mlir::linattn::ChunkLoops chunks;
    if (options)
      chunks = getGradientChunks(*options);
    mlir::linattn::buildDifferentiatePipeline(pm, entry, operands, chunks);
  };
  if (llvm::Error error = run(build, nullptr))
    return error;
  std::string name = entry + mlir::linattn::kVjpSuffix.str();
  auto vjp = module->lookupSymbol<mlir::func::FuncOp>(name);
  llvm::Expected<Signature> differentiated =
      getSignature(vjp, mlir::AsmParserState());
  if (!differentiated)
    return differentiated.takeError();
  for (auto [i, info] : llvm::enumerate(differentiated->arguments))
    info.name =
        i < signature.arguments.size()
            ? signature.arguments[i].name
            : "cotangent" + std::to_string(i - signature.arguments.size());
  signature = std::move(*differentiated);
  return llvm::Error::success();
}

llvm::Error Session::run(llvm::function_ref<void(mlir::OpPassManager &)> build,
                         std::unique_ptr<mlir::PassInstrumentation> watcher,
                         bool verifyEach) {
  DiagnosticCollector diagnostics(context);
  mlir::PassManager pm(&context);
  if (watcher)
    pm.addInstrumentation(std::move(watcher));
  build(pm);
  if (failed(detail::runPasses(pm, *module, verifyEach)))
    return diagnostics.takeError("the pipeline failed");
  return llvm::Error::success();
}

llvm::Error Session::lower(const CompilerOptions &options,
                           const EntryLayout &layout,
                           std::vector<Stage> *stages) {
  std::unique_ptr<mlir::PassInstrumentation> recorder;
  if (stages) {
    stages->push_back({"input", StageRecorder::print(*module)});
    recorder = std::make_unique<StageRecorder>(*stages);
  }
  auto build = [&](mlir::OpPassManager &pm) {
    buildPipeline(pm, options, layout);
  };
  if (llvm::Error error =
          run(build, std::move(recorder), /*verifyEach=*/stages != nullptr))
    return error;
  if (stages)
    stages->push_back({"llvm", StageRecorder::print(*module)});
  return llvm::Error::success();
}

std::vector<std::string> Session::takeChecks(const Signature &signature) {
  std::vector<std::string> checks;
  std::string name = signature.entry + mlir::linattn::kShapesSuffix.str();
  mlir::Operation *companion = mlir::SymbolTable::lookupSymbolIn(*module, name);
  if (!companion)
    return checks;
  // Translation to LLVM IR does not know this attribute.
  auto messages = llvm::dyn_cast_if_present<mlir::ArrayAttr>(
      companion->removeAttr(mlir::linattn::kChecksAttrName));
  if (messages)
    for (auto message : messages.getAsRange<mlir::StringAttr>())
      checks.push_back(message.str());
  return checks;
}

void Session::takeInPlace(Signature &signature) {
  mlir::Operation *entry =
      mlir::SymbolTable::lookupSymbolIn(*module, signature.entry);
  auto inPlace = llvm::dyn_cast_if_present<mlir::DenseI64ArrayAttr>(
      entry->removeAttr(mlir::linattn::kInPlaceAttrName));
  if (!inPlace)
    return;
  for (auto [i, result] : llvm::enumerate(signature.results))
    result.inPlaceOf = inPlace[signature.arguments.size() + i];
}
