//===- LogLinearToLinalg.cpp - Log-linear attention as linalg ops ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLoops.h"

using namespace mlir;
using namespace mlir::linattn;

/// The state with the levels below the merged one added to it and cleared,
/// where a sequence is past its first token.
static Value mergeLevels(TokenLoops &loops, LogLinearOp part, Value position) {
  OpBuilder &b = loops.b;
  Value here = loops.position, state = part.getState();
  int64_t levels = cast<ShapedType>(state.getType()).getDimSize(2);
  Inputs in;
  in.add(state, "bhmkv");
  in.add(position, "b");
  Value zero = filled(b, loops.loc, tensor::getMixedSizes(b, loops.loc, state),
                      loops.type, 0.0);
  return loops.map(
      in.subscripts + "->bhlkv", in.values, zero,
      [&](RecurrenceBuilder &r, ValueRange args) -> Value {
        Value at = here;
        if (position)
          at = r.add(at, arith::IndexCastOp::create(
                             r.b, r.loc, r.b.getIndexType(), args[1]));
        Value bits =
            arith::IndexCastOp::create(r.b, r.loc, r.b.getI64Type(), at);
        Value trailing = arith::IndexCastOp::create(
            r.b, r.loc, r.b.getIndexType(),
            math::CountTrailingZerosOp::create(r.b, r.loc, bits));
        Value merged = r.min(r.add(trailing, r.index(1)), r.index(levels - 1));
        Value to = linalg::IndexOp::create(r.b, r.loc, 2),
              from = linalg::IndexOp::create(r.b, r.loc, 5);
        auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
          return Value(arith::CmpIOp::create(r.b, r.loc, predicate, x, y));
        };
        using Predicate = arith::CmpIPredicate;
        // Below the merged level nothing is left; it takes all from there.
        Value isMerged = compare(Predicate::eq, to, merged);
        Value same = compare(Predicate::eq, to, from);
        Value above = compare(Predicate::sgt, to, merged);
        Value stays = arith::AndIOp::create(r.b, r.loc, above, same);
        Value moves =
            r.select(isMerged, compare(Predicate::sle, from, to), stays);
        Value isFirst = compare(Predicate::sle, at, r.index(0));
        Value keep = r.select(isFirst, same, moves);
        return r.select(keep, r.addf(args.back(), args[0]), args.back());
      });
}

SmallVector<Value> mlir::linattn::expandTokens(OpBuilder &b, LogLinearOp op) {
  TokenLoops loops(b, op);
  double scale = scaleOr1(op.getScale());
  return loops.emit<LogLinearOp>([&](LogLinearOp part) -> SmallVector<Value> {
    Value position = part.getPosition();
    if (position && loops.sequence)
      position = loops.take(position, 0, loops.sequence, /*drop=*/false);
    Value state = mergeLevels(loops, part, position);
    Inputs in;
    in.add(part.getKey(), "bhk");
    in.add(part.getValue(), "bhv");
    size_t decay = in.add(part.getDecay(), "bh");
    state = loops.map(in.subscripts + "->bhlkv", in.values, state,
                      [&](RecurrenceBuilder &r, ValueRange args) -> Value {
                        Value s = args.back();
                        if (Value log = Inputs::get(args, decay))
                          s = r.mulf(s, r.exp(log));
                        Value isFirst = arith::CmpIOp::create(
                            r.b, r.loc, arith::CmpIPredicate::eq,
                            linalg::IndexOp::create(r.b, r.loc, 2), r.index(0));
                        return r.select(isFirst,
                                        r.addf(s, r.mulf(args[0], args[1])), s);
                      });
    Value sum = loops.map(
        "bhk,bhl,bhlkv->bhv", {part.getQuery(), part.getLevels(), state},
        loops.zerosLike(part.getOutput()),
        [&](RecurrenceBuilder &r, ValueRange args) -> Value {
          Value q = args[0];
          if (scale != 1.0)
            q = r.mulf(q, r.number(scale));
          return r.addf(args[3], r.mulf(args[1], r.mulf(q, args[2])));
        });
    Value output =
        loops.map("bhv->bhv", sum, part.getOutput(),
                  [](RecurrenceBuilder &, ValueRange args) { return args[0]; });
    return {output, state};
  });
}
