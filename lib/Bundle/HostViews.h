//===- HostViews.h - Memrefs of host code as formulas -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_HOSTVIEWS_H
#define LINATTN_LIB_BUNDLE_HOSTVIEWS_H

#include "BundleWriter.h"
#include "Formulas.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace linattn::detail {

/// A memref on the host, in terms of formulas.
struct HostView {
  /// The number of an operand, or of another buffer, counted after the
  /// operands.
  int64_t buffer = 0;
  /// The offset in elements; −1 for 0.
  int64_t offset = -1;
  llvm::SmallVector<int64_t> extents, strides;
};

/// Translates the ops on memrefs of an entry: views become formulas, and
/// allocations and constants become buffers.
class HostViews {
public:
  /// `numOperands`: arguments and results, which are the first buffers.
  HostViews(mlir::func::FuncOp func, int64_t numOperands, Formulas &formulas,
            BundleWriter &writer);

  /// Adds an op on memrefs. Returns false if formulas cannot express it, and
  /// nothing for any other op.
  std::optional<bool> take(mlir::Operation &op);
  /// The reason of the last false, where the op's name does not say enough.
  llvm::StringRef getProblem() const { return problem; }

  /// The view of a memref; null if it is unknown.
  const HostView *find(mlir::Value memref) const {
    auto it = views.find(memref);
    return it == views.end() ? nullptr : &it->second;
  }
  bool isOperand(const HostView &view) const {
    return view.buffer < numOperands;
  }

  /// The buffers that are not operands, in the order of their numbers.
  llvm::json::Array buffers;

private:
  bool visit(mlir::memref::AllocOp alloc);
  bool visit(mlir::memref::GetGlobalOp constant);
  bool visit(mlir::memref::DimOp dim);
  bool visit(mlir::memref::ExtractAlignedPointerAsIndexOp address);
  bool visit(mlir::memref::ExtractStridedMetadataOp data);
  bool visit(mlir::memref::SubViewOp slice);
  bool visit(mlir::memref::CollapseShapeOp reshape);
  bool visit(mlir::memref::ExpandShapeOp reshape);
  bool visit(mlir::memref::CastOp cast);
  HostView makeView(llvm::SmallVector<int64_t> extents);
  int64_t getNumber(mlir::OpFoldResult value);
  bool fail(llvm::StringRef reason) {
    problem = reason;
    return false;
  }

  mlir::func::FuncOp func;
  int64_t numOperands;
  Formulas &formulas;
  BundleWriter &writer;
  llvm::DenseMap<mlir::Value, HostView> views;
  llvm::StringRef problem;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_HOSTVIEWS_H
