//===- FamilyMaps.cpp - Elementwise work and sums of families -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/FamilyBuilder.h"
#include "linattn/Families/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// The index of a term's elements as a function of the indices `loops`.
static AffineMap getIndexingMap(FamilyBuilder &f, ArrayRef<StringRef> loops,
                                StringRef dims) {
  MLIRContext *context = f.b.getContext();
  SmallVector<AffineExpr> results;
  for (StringRef dim : splitDims(dims)) {
    const auto *at = llvm::find(loops, dim);
    AffineExpr expr = getAffineConstantExpr(0, context);
    if (at != loops.end()) {
      expr = getAffineDimExpr(at - loops.begin(), context);
    } else if (dim != "1") {
      // With fewer heads or tokens, one serves several in turn.
      const auto *many = llvm::find_if(loops, [&](StringRef loop) {
        return classifyDim(loop) == classifyDim(dim);
      });
      expr = getAffineDimExpr(many - loops.begin(), context)
                 .floorDiv(f.ratio(*many, dim));
    }
    results.push_back(expr);
  }
  return AffineMap::get(static_cast<unsigned>(loops.size()), 0, results,
                        context);
}

static Value castTo(ImplicitLocOpBuilder &b, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(b, type, value);
  return from > to ? arith::TruncFOp::create(b, type, value) : value;
}

Value FamilyBuilder::map(StringRef dims, ArrayRef<FamilyTerm> terms, Type type,
                         Function function) {
  SmallVector<StringRef, 4> loops = splitDims(dims);
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (const FamilyTerm &term : terms) {
    maps.push_back(getIndexingMap(*this, loops, term.dims));
    inputs.push_back(term.value);
  }
  maps.push_back(b.getMultiDimIdentityMap(loops.size()));
  SmallVector<utils::IteratorType> iterators(loops.size(),
                                             utils::IteratorType::parallel);
  Value init = empty(dims, type);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, builder);
        SmallVector<Value> values;
        for (Value argument : arguments.drop_back())
          values.push_back(castTo(body, argument, accumulationType()));
        linalg::YieldOp::create(body,
                                castTo(body, function(body, values), type));
      });
  return generic.getResult(0);
}

SmallVector<Value> FamilyBuilder::mapAll(StringRef dims,
                                         ArrayRef<FamilyTerm> terms,
                                         ArrayRef<Type> types,
                                         Functions functions) {
  SmallVector<StringRef, 4> loops = splitDims(dims);
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs, inits;
  for (const FamilyTerm &term : terms) {
    maps.push_back(getIndexingMap(*this, loops, term.dims));
    inputs.push_back(term.value);
  }
  for (Type type : types) {
    maps.push_back(b.getMultiDimIdentityMap(loops.size()));
    inits.push_back(empty(dims, type));
  }
  SmallVector<utils::IteratorType> iterators(loops.size(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, TypeRange(ValueRange(inits)), inputs, inits, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, builder);
        linalg::YieldOp::create(
            body, functions(body, arguments.drop_back(types.size())));
      });
  return SmallVector<Value>(generic.getResults());
}

Value FamilyBuilder::reduce(StringRef dims, ArrayRef<FamilyTerm> terms,
                            double initial, Function function) {
  SmallVector<StringRef, 4> loops = splitDims(dims);
  std::string kept = llvm::join(ArrayRef<StringRef>(loops).drop_back(), " ");
  SmallVector<AffineMap> maps;
  SmallVector<Value> inputs;
  for (const FamilyTerm &term : terms) {
    maps.push_back(getIndexingMap(*this, loops, term.dims));
    inputs.push_back(term.value);
  }
  maps.push_back(getIndexingMap(*this, loops, kept));
  SmallVector<utils::IteratorType> iterators(loops.size(),
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value init = filled(kept, accumulationType(), initial);
  auto generic = linalg::GenericOp::create(
      b, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, builder);
        SmallVector<Value> values;
        for (Value argument : arguments)
          values.push_back(castTo(body, argument, accumulationType()));
        linalg::YieldOp::create(body, function(body, values));
      });
  return generic.getResult(0);
}

Value FamilyBuilder::l2norm(FamilyTerm x, double eps) {
  std::string kept =
      llvm::join(ArrayRef<StringRef>(splitDims(x.dims)).drop_back(), " ");
  Value squares = reduce(x.dims, x, 0.0,
                         [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                           return arith::AddFOp::create(
                               b, v[1], arith::MulFOp::create(b, v[0], v[0]));
                         });
  Value norms = map(
      kept, FamilyTerm{squares, kept}, accumulationType(),
      [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        Value sum = arith::AddFOp::create(b, v[0],
                                          emitConstant(b, v[0].getType(), eps));
        return arith::DivFOp::create(b, emitConstant(b, v[0].getType(), 1.0),
                                     math::SqrtOp::create(b, sum));
      });
  return map(x.dims, {x, {norms, kept}}, getElementTypeOrSelf(x.value),
             emitProduct);
}

Value FamilyBuilder::softmax(FamilyTerm x, Scale scale) {
  std::string kept =
      llvm::join(ArrayRef<StringRef>(splitDims(x.dims)).drop_back(), " ");
  auto scaled = [&](ImplicitLocOpBuilder &b, Value value) {
    return scale.apply(b, b.getLoc(), value);
  };
  Value most =
      reduce(x.dims, x, -std::numeric_limits<double>::infinity(),
             [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
               return arith::MaximumFOp::create(b, v[1], scaled(b, v[0]));
             });
  Value powers = map(x.dims, {x, {most, kept}}, accumulationType(),
                     [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                       return math::ExpOp::create(
                           b, arith::SubFOp::create(b, scaled(b, v[0]), v[1]));
                     });
  Value sums = reduce(x.dims, FamilyTerm{powers, x.dims}, 0.0,
                      [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                        return arith::AddFOp::create(b, v[1], v[0]);
                      });
  return map(x.dims, {{powers, x.dims}, {sums, kept}},
             getElementTypeOrSelf(x.value),
             [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
               return arith::DivFOp::create(b, v[0], v[1]);
             });
}
