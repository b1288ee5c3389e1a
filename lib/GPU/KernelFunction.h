//===- KernelFunction.h - A kernel and its arguments ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel names the pointers, sizes and strides that it takes of the op's
// buffers; the arguments of its function, its launch plan and the operands of
// the launch follow from that.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_KERNELFUNCTION_H
#define LINATTN_LIB_GPU_KERNELFUNCTION_H

#include "KernelShape.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::linattn {

struct KernelWork;

/// The name of the dynamic shared memory in every kernel module.
constexpr llvm::StringLiteral sharedName = "linattn_shared";

/// A buffer in global memory as the kernel sees it. Strides are in elements, in
/// i64; the innermost is 1.
struct GlobalView {
  Value base;
  SmallVector<Value> strides;
  Type element;

  int64_t bytes() const {
    return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  }
  explicit operator bool() const { return base != nullptr; }

  /// The address of an element; trailing indices may be left out.
  Value at(KernelBuilder &k, ValueRange indices) const;
};

/// The access and aliasing attributes of a pointer argument.
enum class Access { Read, Write, ReadWrite, MayAlias };

class KernelFunction {
public:
  /// Adds a pointer to `buffer` and its outer strides as arguments. `align`:
  /// bytes that divide the address and those strides. A null buffer adds none.
  void addBuffer(Value buffer, Access access, int64_t align);
  /// Adds a size as an argument, unless it is static.
  void addSize(Value buffer, unsigned dim);
  /// A size as a symbol of the grid. There must be one at least.
  AffineExpr gridSize(Value buffer, unsigned dim);

  /// Creates a module with the function at the end of `module`; `body` emits
  /// the kernel, behind which the function returns.
  void emit(ModuleOp module, StringRef name, Location loc,
            function_ref<void(KernelBuilder &)> body);
  /// Sets grid, block and shared bytes, and launches the kernel before `op`.
  /// Extents that `grid` lacks are 1.
  LaunchOp launch(Operation *op, ArrayRef<AffineExpr> grid, int64_t threads,
                  int64_t shared);

  // For the body of `emit`.
  /// A null view of a buffer that is null or no argument. `isWritten`: where
  /// the kernel also reads the buffer by another argument, the one to write by.
  GlobalView view(KernelBuilder &k, Value buffer, bool isWritten = false) const;
  Value size(KernelBuilder &k, Value buffer, unsigned dim) const;
  Value sharedBase(KernelBuilder &k) const;

private:
  static constexpr unsigned none = ~0u;

  struct BufferArgument {
    Value buffer;
    Access access;
    int64_t align;
    unsigned pointer;
    /// Per outer dimension the argument, or the static stride.
    SmallVector<std::pair<unsigned, int64_t>> strides;
  };

  void create(ModuleOp module, StringRef name, Location loc);
  int64_t operandOf(Value buffer);
  unsigned addArgument(LaunchValueKind kind, Value buffer, unsigned dim,
                       int64_t align);

  SmallVector<Value> operands;
  SmallVector<LaunchValueAttr> arguments, gridSizes;
  SmallVector<BufferArgument> buffers;
  llvm::MapVector<std::pair<Value, unsigned>, unsigned> sizes;
  gpu::GPUModuleOp gpuModule;
  LLVM::LLVMFuncOp function;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_KERNELFUNCTION_H
