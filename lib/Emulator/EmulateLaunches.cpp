//===- EmulateLaunches.cpp - Launches as calls of the emulator ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchRecord.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Emulator/Passes.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEMULATELAUNCHESPASS
#include "linattn/Emulator/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;
using namespace ::linattn::emulator;

namespace {

/// Fills the record of one launch, field by field.
class RecordBuilder {
public:
  RecordBuilder(Operation *op, int64_t numArguments)
      : loc(op->getLoc()), b(op) {
    // Allocated outside of loops, where every iteration would grow the stack.
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(
        &op->getParentOfType<func::FuncOp>().getBody().front());
    int64_t fields = kRecordFields + kArgumentFields * numArguments;
    record = memref::AllocaOp::create(b, loc,
                                      MemRefType::get(fields, b.getI64Type()));
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// A number of any type, as 64 bits.
  void append(Value value) {
    Type type = value.getType();
    if (isa<FloatType>(type))
      value = arith::BitcastOp::create(
          b, loc, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
    if (isa<IndexType>(value.getType()))
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    else if (!value.getType().isInteger(64))
      value = arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
    memref::StoreOp::create(b, loc, value, record, constant(next++));
  }

  void appendScalar(LaunchArgument::Kind kind, Value value) {
    append(constant(static_cast<int64_t>(kind)));
    append(value);
    append(constant(0));
  }

  /// The memory of a buffer: from its first element, or from the memref's base,
  /// `offset` elements before it.
  void appendBuffer(Value buffer, memref::ExtractStridedMetadataOp data,
                    bool fromFirst) {
    auto type = cast<MemRefType>(buffer.getType());
    Value bytes = constant(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
    Value pointer =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
    Value offset = arith::MulIOp::create(b, loc, data.getOffset(), bytes);
    Value extent = arith::MulIOp::create(b, loc, getExtent(data), bytes);
    append(constant(static_cast<int64_t>(LaunchArgument::Kind::Buffer)));
    append(fromFirst ? arith::AddIOp::create(b, loc, pointer, offset)
                     : pointer);
    append(fromFirst ? extent : arith::AddIOp::create(b, loc, extent, offset));
  }

  memref::ExtractStridedMetadataOp getMetadata(Value buffer) {
    return memref::ExtractStridedMetadataOp::create(b, loc, buffer);
  }

  /// The address of the record.
  Value finish() {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, record);
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  }

  OpBuilder &getBuilder() { return b; }

private:
  /// Elements from the first to the last: 1 + Σ (size - 1) stride, or none.
  Value getExtent(memref::ExtractStridedMetadataOp data) {
    Value one = constant(1), zero = constant(0), extent = one;
    Value empty = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 0);
    for (auto [size, stride] : llvm::zip(data.getSizes(), data.getStrides())) {
      Value last = arith::SubIOp::create(b, loc, size, one);
      Value distance = arith::MulIOp::create(b, loc, last, stride);
      extent = arith::AddIOp::create(b, loc, extent, distance);
      Value none =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, zero);
      empty = arith::OrIOp::create(b, loc, empty, none);
    }
    return arith::SelectOp::create(b, loc, empty, zero, extent);
  }

  Location loc;
  OpBuilder b;
  Value record;
  int64_t next = 0;
};

} // namespace

/// The launch record with the arguments that the launch plan lists.
static Value createRecord(LaunchOp op, LaunchPlanAttr plan) {
  RecordBuilder record(op, plan.getArgs().size());
  SmallVector<memref::ExtractStridedMetadataOp> metadata;
  for (Value buffer : op.getBuffers())
    metadata.push_back(record.getMetadata(buffer));
  auto getValue = [&](LaunchValueAttr value) -> Value {
    memref::ExtractStridedMetadataOp data = metadata[value.getOperand()];
    return value.getKind() == LaunchValueKind::Size
               ? data.getSizes()[value.getDim()]
               : data.getStrides()[value.getDim()];
  };
  SmallVector<Value> sizes;
  for (LaunchValueAttr size : plan.getSizes())
    sizes.push_back(getValue(size));
  for (AffineExpr expr : plan.getGrid().getResults())
    record.append(affine::expandAffineExpr(record.getBuilder(), op.getLoc(),
                                           expr, {}, sizes));
  int64_t numArguments = plan.getArgs().size();
  for (int64_t number : {plan.getBlock(), int64_t(1), int64_t(1),
                         plan.getShared(), numArguments})
    record.append(record.constant(number));
  for (LaunchValueAttr argument : plan.getArgs()) {
    if (argument.getKind() == LaunchValueKind::Pointer)
      record.appendBuffer(op.getBuffers()[argument.getOperand()],
                          metadata[argument.getOperand()], /*fromFirst=*/true);
    else
      record.appendScalar(argument.getKind() == LaunchValueKind::Size
                              ? LaunchArgument::Kind::I32
                              : LaunchArgument::Kind::I64,
                          getValue(argument));
  }
  return record.finish();
}

static std::optional<LaunchArgument::Kind> getScalarKind(Type type) {
  if (type.isIndex() || type.isInteger(64))
    return LaunchArgument::Kind::I64;
  if (type.isInteger(32))
    return LaunchArgument::Kind::I32;
  if (type.isF16())
    return LaunchArgument::Kind::F16;
  if (type.isBF16())
    return LaunchArgument::Kind::BF16;
  if (type.isF32())
    return LaunchArgument::Kind::F32;
  if (type.isF64())
    return LaunchArgument::Kind::F64;
  return std::nullopt;
}

/// A memref argument takes the upstream form: two pointers, offset, sizes,
/// strides. Null if an argument has another kind.
static Value createRecord(gpu::LaunchFuncOp op) {
  int64_t numArguments = 0;
  for (Value operand : op.getKernelOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type && !getScalarKind(operand.getType()))
      return {};
    numArguments += type ? 3 + 2 * type.getRank() : 1;
  }
  RecordBuilder record(op, numArguments);
  auto grid = op.getGridSizeOperandValues();
  auto block = op.getBlockSizeOperandValues();
  for (Value size : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
    record.append(size);
  record.append(op.getDynamicSharedMemorySize()
                    ? Value(op.getDynamicSharedMemorySize())
                    : record.constant(0));
  record.append(record.constant(numArguments));
  for (Value operand : op.getKernelOperands()) {
    if (std::optional<LaunchArgument::Kind> kind =
            getScalarKind(operand.getType())) {
      record.appendScalar(*kind, operand);
      continue;
    }
    memref::ExtractStridedMetadataOp data = record.getMetadata(operand);
    for (unsigned i = 0; i < 2; ++i)
      record.appendBuffer(operand, data, /*fromFirst=*/false);
    record.appendScalar(LaunchArgument::Kind::I64, data.getOffset());
    for (ValueRange numbers :
         {ValueRange(data.getSizes()), ValueRange(data.getStrides())})
      for (Value number : numbers)
        record.appendScalar(LaunchArgument::Kind::I64, number);
  }
  return record.finish();
}

namespace {

struct LinAttnEmulateLaunchesPass final
    : mlir::linattn::impl::LinAttnEmulateLaunchesPassBase<
          LinAttnEmulateLaunchesPass> {
  using LinAttnEmulateLaunchesPassBase::LinAttnEmulateLaunchesPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> launches;
    getOperation().walk([&](Operation *op) {
      if (isa<LaunchOp, gpu::LaunchFuncOp>(op))
        launches.push_back(op);
    });
    for (Operation *op : launches)
      if (failed(rewrite(op)))
        return signalPassFailure();
    for (auto kernels :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      kernels.erase();
  }

private:
  LogicalResult rewrite(Operation *op);
  Value createText(OpBuilder &b, Location loc, StringRef name, StringRef text);
  func::FuncOp getLaunchFunction(OpBuilder &b);
};

} // namespace

/// The address, as an index, of a constant that ends with a zero.
Value LinAttnEmulateLaunchesPass::createText(OpBuilder &b, Location loc,
                                             StringRef name, StringRef text) {
  auto global = getOperation().lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(getOperation().getBody());
    std::string data = text.str();
    data.push_back('\0');
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), data.size());
    global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name,
                                    b.getStringAttr(data));
  }
  Value address = LLVM::AddressOfOp::create(b, loc, global);
  return LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), address);
}

func::FuncOp LinAttnEmulateLaunchesPass::getLaunchFunction(OpBuilder &b) {
  if (auto func = getOperation().lookupSymbol<func::FuncOp>(kLaunchSymbol))
    return func;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(getOperation().getBody());
  Type i64 = b.getI64Type();
  auto func = func::FuncOp::create(b, getOperation().getLoc(), kLaunchSymbol,
                                   b.getFunctionType({i64, i64, i64}, {}));
  func.setPrivate();
  return func;
}

LogicalResult LinAttnEmulateLaunchesPass::rewrite(Operation *op) {
  auto launch = dyn_cast<LaunchOp>(op);
  SymbolRefAttr symbol =
      launch ? launch.getKernelAttr() : cast<gpu::LaunchFuncOp>(op).getKernel();
  auto kernels = SymbolTable::lookupNearestSymbolFrom<gpu::GPUModuleOp>(
      op, symbol.getRootReference());
  if (!kernels)
    return op->emitOpError("expected its kernel as a gpu.module, not compiled");
  Value record;
  if (launch) {
    auto plan = op->getAttrOfType<LaunchPlanAttr>(LaunchOp::getPlanAttrName());
    if (!plan)
      return op->emitOpError("expected an attribute ")
             << LaunchOp::getPlanAttrName();
    record = createRecord(launch, plan);
  } else {
    record = createRecord(cast<gpu::LaunchFuncOp>(op));
    if (!record)
      return op->emitOpError(
          "expected its arguments to be buffers, index, i32, i64, f16, bf16, "
          "f32 or f64");
  }

  std::string text;
  llvm::raw_string_ostream(text) << kernels << "\n";
  StringRef module = kernels.getName();
  StringRef kernel = symbol.getLeafReference();
  OpBuilder b(op);
  SmallVector<Value> operands = {
      createText(b, op->getLoc(), (module + "__text").str(), text),
      createText(b, op->getLoc(), (module + "__" + kernel + "__name").str(),
                 kernel),
      record};
  func::CallOp::create(b, op->getLoc(), getLaunchFunction(b), operands);
  op->erase();
  return success();
}
