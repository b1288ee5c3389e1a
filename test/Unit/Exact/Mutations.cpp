//===- Mutations.cpp - Programs with planted errors -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "linattn/Entry/EntryLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ::linattn::test;

/// The predicate that holds where the other one does not: OGT and ULE.
static arith::CmpFPredicate getComplement(arith::CmpFPredicate predicate) {
  using arith::CmpFPredicate;
  switch (predicate) {
  case CmpFPredicate::AlwaysFalse:
    return CmpFPredicate::AlwaysTrue;
  case CmpFPredicate::AlwaysTrue:
    return CmpFPredicate::AlwaysFalse;
  case CmpFPredicate::ORD:
    return CmpFPredicate::UNO;
  case CmpFPredicate::UNO:
    return CmpFPredicate::ORD;
  default:
    // From OEQ to ONE, and back from UNE to UEQ.
    return static_cast<CmpFPredicate>(14 - static_cast<int>(predicate));
  }
}

namespace {

class Planter {
public:
  Planter(func::FuncOp function, const volatile int64_t *active,
          std::vector<Mutation> &mutations, llvm::StringMap<int64_t> &counts)
      : function(function), b(function.getContext()), loc(function.getLoc()),
        mutations(mutations), counts(counts) {
    b.setInsertionPointToStart(&function.front());
    auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(active));
    Value word = arith::ConstantIntOp::create(b, loc, address, 64);
    Value pointer = LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), word);
    this->active = LLVM::LoadOp::create(b, loc, b.getI64Type(), pointer,
                                        /*alignment=*/0, /*isVolatile=*/true);
  }

  void run() {
    SmallVector<Operation *> ops;
    // Numbers the values of the function once for all texts.
    AsmState names(function, OpPrintingFlags().skipRegions().useLocalScope());
    Operation *first = active.getDefiningOp()->getNextNode();
    for (Operation *op = first; op; op = op->getNextNode())
      op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
        ops.push_back(nested);
        int64_t number = counts[nested->getName().getStringRef()]++;
        llvm::raw_string_ostream os(originals[nested].text);
        nested->print(os, names);
        originals[nested].number = number;
      });
    // Constants last: what is wrong with the others depends on them.
    for (bool constants : {false, true})
      for (Operation *op : ops)
        if (isa<arith::ConstantOp>(op) == constants)
          mutate(op);
  }

private:
  void mutate(Operation *op) {
    current = op;
    b.setInsertionPointAfter(op);
    if (op->getNumResults() == 1)
      mutateResult(op->getResult(0));
    b.setInsertionPoint(op);
    mutateIndices();
    mutateBounds();
    mutateWrites();
  }

  /// Whether all that becomes of `value` is a maximum.
  static bool onlyFeedsMaximum(Value value, SmallPtrSetImpl<Value> &visited) {
    if (!visited.insert(value).second)
      return true;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<arith::MaximumFOp>(user))
        continue;
      if (isa<scf::YieldOp>(user)) {
        auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
        if (!loop)
          return false;
        unsigned number = use.getOperandNumber();
        if (!onlyFeedsMaximum(loop.getResult(number), visited) ||
            !onlyFeedsMaximum(loop.getRegionIterArg(number), visited))
          return false;
        continue;
      }
      if (user->getNumResults() == 0 || user->getNumRegions() > 0)
        return false;
      for (Value result : user->getResults())
        if (!onlyFeedsMaximum(result, visited))
          return false;
    }
    return true;
  }

  static bool isZero(Value value) {
    return matchPattern(value, m_AnyZeroFloat());
  }

  /// Whether the loop does nothing but store zeros.
  static bool clears(scf::ForOp loop) {
    return !loop.getBody()
                ->walk([](Operation *op) {
                  bool other = isa<memref::StoreOp, vector::StoreOp>(op)
                                   ? !isZero(op->getOperand(0))
                                   : op->getNumRegions() == 0 && !isPure(op) &&
                                         !isa<scf::YieldOp>(op);
                  return other ? WalkResult::interrupt()
                               : WalkResult::advance();
                })
                .wasInterrupted();
  }

  /// Is it asked whether two arrays are one?
  static bool comparesAddresses(Operation *op) {
    // Errors planted before are selects.
    if (!isa<arith::CmpIOp, arith::OrIOp, arith::SelectOp>(op))
      return false;
    auto choices = op->getOperands().drop_front(isa<arith::SelectOp>(op));
    return llvm::all_of(choices, [](Value operand) {
      Operation *from = operand.getDefiningOp();
      return from && (isa<memref::ExtractStridedMetadataOp,
                          memref::ExtractAlignedPointerAsIndexOp>(from) ||
                      comparesAddresses(from));
    });
  }

  /// Why the current op may be wrong without any effect. Other changes
  /// without effect are counted per program.
  std::string findExcuse() {
    auto loop = dyn_cast<scf::ForOp>(current);
    if ((loop && clears(loop)) ||
        (isa<memref::StoreOp, vector::StoreOp>(current) &&
         isZero(current->getOperand(0))))
      return "it clears padding, which meets zeros";
    if (comparesAddresses(current))
      return "arrays that begin at other places of the same memory";
    if (isa<arith::ConstantOp>(current) &&
        llvm::all_of(current->getUsers(),
                     llvm::IsaPred<vector::TransferReadOp>))
      return "lanes past the end are cleared or not written";
    SmallPtrSet<Value, 16> visited;
    if (isa<arith::MaximumFOp>(current) ||
        (current->getNumResults() == 1 && !current->use_empty() &&
         onlyFeedsMaximum(current->getResult(0), visited)))
      return "at most a running maximum depends on it, which cancels";
    return "";
  }

  /// Whether error `kind` is active; counts it.
  Value isActive(const Twine &kind) {
    const Original &original = originals.at(current);
    Value number = arith::ConstantIntOp::create(
        b, loc, static_cast<int64_t>(mutations.size()), 64);
    mutations.push_back(
        {kind.str(), original.text, original.number, findExcuse()});
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, active,
                                 number);
  }

  Value choose(const Twine &kind, Value wrong, Value right) {
    return arith::SelectOp::create(b, loc, isActive(kind), wrong, right);
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  void mutateResult(Value result) {
    wrong.clear();
    Operation *op = current, *next = op->getNextNode();
    if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
      addWrongFloats(op);
    else
      addWrongIntegers(op);
    if (wrong.empty())
      return;
    // Rounding errors are computed from the right values.
    SmallPtrSet<Operation *, 16> emitted;
    for (Operation *it = op->getNextNode(); it != next; it = it->getNextNode())
      emitted.insert(it);
    Value value = result;
    for (auto &[kind, mutant] : wrong) {
      value = choose(kind, mutant, value);
      emitted.insert(value.getDefiningOp());
    }
    result.replaceUsesWithIf(value, [&](OpOperand &use) {
      return !emitted.contains(use.getOwner());
    });
  }

  void add(StringRef kind, Value value) {
    wrong.emplace_back(kind.str(), value);
  }

  Value one(Type type) {
    TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), 1.0);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }

  void addWrongFloats(Operation *op) {
    Value x = op->getNumOperands() > 0 ? op->getOperand(0) : Value();
    Value y = op->getNumOperands() > 1 ? op->getOperand(1) : Value();
    if (isa<arith::AddFOp>(op)) {
      add("sign", arith::SubFOp::create(b, loc, x, y));
      add("drop first term", y);
      add("drop second term", x);
    } else if (isa<arith::SubFOp>(op)) {
      add("sign", arith::AddFOp::create(b, loc, x, y));
      add("drop second term", x);
    } else if (isa<arith::MulFOp>(op)) {
      add("drop first factor", y);
      add("drop second factor", x);
    } else if (isa<arith::DivFOp>(op)) {
      add("drop divisor", x);
    } else if (isa<arith::NegFOp>(op)) {
      add("sign", x);
    } else if (isa<arith::MaximumFOp, arith::MinimumFOp>(op)) {
      add("drop first operand", y);
      add("drop second operand", x);
    } else if (isa<math::ExpOp>(op)) {
      add("decay twice",
          math::ExpOp::create(b, loc, arith::AddFOp::create(b, loc, x, x)));
      add("no decay", one(x.getType()));
    } else if (auto fma = dyn_cast<vector::FMAOp>(op)) {
      Value product = arith::MulFOp::create(b, loc, x, y);
      add("sign", arith::SubFOp::create(b, loc, fma.getAcc(), product));
      add("drop product", fma.getAcc());
      add("drop addend", product);
      add("drop first factor", arith::AddFOp::create(b, loc, y, fma.getAcc()));
    } else if (isa<arith::SelectOp>(op)) {
      add("other choice", arith::SelectOp::create(b, loc, x, op->getOperand(2),
                                                  op->getOperand(1)));
    } else if (isa<arith::ConstantOp>(op) && isFiniteConstant(op)) {
      add("constant", arith::AddFOp::create(b, loc, op->getResult(0),
                                            one(op->getResult(0).getType())));
    }
  }

  /// Infinity and one is infinity.
  static bool isFiniteConstant(Operation *op) {
    APFloat value(0.0);
    return matchPattern(op, m_ConstantFloat(&value)) && value.isFinite() &&
           !value.isLargest();
  }

  void addWrongIntegers(Operation *op) {
    using arith::CmpIPredicate;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      auto neighbour = [&]() -> CmpIPredicate {
        switch (compare.getPredicate()) {
        case CmpIPredicate::slt:
          return CmpIPredicate::sle;
        case CmpIPredicate::sle:
          return CmpIPredicate::slt;
        case CmpIPredicate::sgt:
          return CmpIPredicate::sge;
        case CmpIPredicate::sge:
          return CmpIPredicate::sgt;
        case CmpIPredicate::ult:
          return CmpIPredicate::ule;
        case CmpIPredicate::ule:
          return CmpIPredicate::ult;
        case CmpIPredicate::ugt:
          return CmpIPredicate::uge;
        case CmpIPredicate::uge:
          return CmpIPredicate::ugt;
        case CmpIPredicate::eq:
          return CmpIPredicate::ne;
        case CmpIPredicate::ne:
          return CmpIPredicate::eq;
        }
        llvm_unreachable("unknown predicate");
      };
      add("comparison off by one",
          arith::CmpIOp::create(b, loc, neighbour(), compare.getLhs(),
                                compare.getRhs()));
    } else if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
      add("comparison inverted",
          arith::CmpFOp::create(b, loc, getComplement(compare.getPredicate()),
                                compare.getLhs(), compare.getRhs()));
    } else if (isa<arith::AndIOp, arith::OrIOp>(op) &&
               getElementTypeOrSelf(op->getResult(0)).isInteger(1)) {
      add("drop first condition", op->getOperand(1));
      add("drop second condition", op->getOperand(0));
    }
  }

  //===--------------------------------------------------------------------===//
  // Places
  //===--------------------------------------------------------------------===//

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// The element, row or head before, so that every access stays in bounds.
  void mutateIndices() {
    unsigned first, count;
    if (auto load = dyn_cast<memref::LoadOp>(current)) {
      first = 1, count = load.getIndices().size();
    } else if (auto store = dyn_cast<memref::StoreOp>(current)) {
      first = 2, count = store.getIndices().size();
    } else if (auto read = dyn_cast<vector::TransferReadOp>(current)) {
      first = 1, count = read.getIndices().size();
    } else if (auto write = dyn_cast<vector::TransferWriteOp>(current)) {
      first = 2, count = write.getIndices().size();
    } else if (auto mask = dyn_cast<vector::CreateMaskOp>(current)) {
      first = 0, count = mask->getNumOperands();
    } else {
      return;
    }
    for (unsigned i = first; i < first + count; ++i) {
      Value right = current->getOperand(i);
      if (getConstantIntValue(right))
        continue;
      Value before = arith::SubIOp::create(b, loc, right, index(1));
      Value inside = arith::MaxSIOp::create(b, loc, before, index(0));
      current->setOperand(
          i, choose("index " + Twine(i - first) + " before", inside, right));
    }
  }

  void mutateBounds() {
    if (auto loop = dyn_cast<scf::ForOp>(current)) {
      Value step = loop.getStep();
      Value end = arith::SubIOp::create(b, loc, loop.getUpperBound(), step);
      Value begin = arith::AddIOp::create(b, loc, loop.getLowerBound(), step);
      loop.setUpperBound(choose("last one missing", end, loop.getUpperBound()));
      loop.setLowerBound(
          choose("first one missing", begin, loop.getLowerBound()));
    }
    if (auto loop = dyn_cast<scf::ParallelOp>(current))
      for (OpOperand &end : loop.getUpperBoundMutable())
        end.set(choose("last task missing",
                       arith::SubIOp::create(b, loc, end.get(), index(1)),
                       end.get()));
  }

  void mutateWrites() {
    if (!isa<memref::StoreOp, vector::TransferWriteOp, vector::StoreOp>(
            current))
      return;
    Value dropped = isActive("not written");
    auto branch = scf::IfOp::create(b, loc, dropped, /*withElse=*/true);
    current->moveBefore(branch.elseBlock(), branch.elseBlock()->begin());
  }

  func::FuncOp function;
  OpBuilder b;
  Location loc;
  std::vector<Mutation> &mutations;
  /// How many ops of a name there were so far.
  llvm::StringMap<int64_t> &counts;
  /// An op before any mutation: as text, and how many of its name there were
  /// before it.
  struct Original {
    std::string text;
    int64_t number = 0;
  };
  DenseMap<Operation *, Original> originals;
  Value active;
  Operation *current = nullptr;
  std::vector<std::pair<std::string, Value>> wrong;
};

} // namespace

auto ::linattn::test::plantMutations(ModuleOp module,
                                     const volatile int64_t *active)
    -> std::vector<Mutation> {
  module.getContext()->getOrLoadDialect<LLVM::LLVMDialect>();
  std::vector<Mutation> mutations;
  llvm::StringMap<int64_t> counts;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() &&
        !function.getName().ends_with(mlir::linattn::kShapesSuffix))
      Planter(function, active, mutations, counts).run();
  return mutations;
}
