//===- Einsum.cpp - Building linalg ops from subscripts -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

Value mlir::linattn::convertFloat(OpBuilder &b, Location loc, Value value,
                                  Type type) {
  // Vectors keep their shape.
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(getElementTypeOrSelf(type));
  unsigned from = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  unsigned to = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (from == to)
    return value;
  // Between f64 and 16 bits, conversions pass through f32: runtimes lack the
  // direct routines.
  if (from + to == 64 + 16)
    value = convertFloat(b, loc, value, b.getF32Type());
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::TruncFOp::create(b, loc, type, value);
}

Value mlir::linattn::filled(OpBuilder &b, Location loc,
                            ArrayRef<OpFoldResult> sizes, Type elementType,
                            double value) {
  Value empty = tensor::EmptyOp::create(b, loc, sizes, elementType);
  Value scalar =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(elementType, value));
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

/// The number of heads of `init` that share a head of `value`, where both are
/// static.
static int64_t groupOf(Value value, int64_t dim, Value init, size_t initDim) {
  if (initDim == StringRef::npos)
    return 1;
  int64_t few = cast<ShapedType>(value.getType()).getDimSize(dim);
  int64_t many = cast<ShapedType>(init.getType()).getDimSize(initDim);
  bool known = !ShapedType::isDynamic(few) && !ShapedType::isDynamic(many);
  return known && few > 0 ? many / few : 1;
}

Value mlir::linattn::elementwise(
    OpBuilder &b, Location loc, StringRef subscripts, ValueRange inputs,
    Value init, function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  auto [operands, output] = subscripts.split("->");
  // Loops in order of the output, then the reduced letters as they appear.
  std::string letters = output.str();
  for (char letter : operands)
    if (letter != ',' && letters.find(letter) == std::string::npos)
      letters += letter;
  SmallVector<utils::IteratorType> iterators(letters.size(),
                                             utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), output.size(), utils::IteratorType::parallel);

  SmallVector<StringRef> groups;
  if (!operands.empty())
    operands.split(groups, ',');
  groups.push_back(output);
  SmallVector<Value> values(inputs);
  values.push_back(init);
  SmallVector<AffineMap> maps;
  for (auto [group, value] : llvm::zip_equal(groups, values)) {
    SmallVector<AffineExpr> exprs;
    for (auto [position, letter] : llvm::enumerate(group)) {
      size_t loop = letters.find(letter);
      AffineExpr expr = b.getAffineDimExpr(loop);
      // With fewer heads, head h reads head ⌊h / group⌋.
      if (letter == 'h')
        if (int64_t size = groupOf(value, position, init, output.find('h'));
            size > 1)
          expr = expr.floorDiv(size);
      exprs.push_back(expr);
    }
    maps.push_back(AffineMap::get(letters.size(), /*symbolCount=*/0, exprs,
                                  b.getContext()));
  }
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps, iterators,
             [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
               linalg::YieldOp::create(nested, nestedLoc,
                                       body(nested, nestedLoc, args));
             })
      .getResult(0);
}

Value mlir::linattn::einsum(OpBuilder &b, Location loc, StringRef subscripts,
                            Value lhs, Value rhs, Value init) {
  return elementwise(
      b, loc, subscripts, {lhs, rhs}, init,
      [](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Type type = args[2].getType();
        Value product = arith::MulFOp::create(
            nested, nestedLoc, convertFloat(nested, nestedLoc, args[0], type),
            convertFloat(nested, nestedLoc, args[1], type));
        return arith::AddFOp::create(nested, nestedLoc, args[2], product);
      });
}
