//===- Chain.cpp - Calls in segments, whose states are kept ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recurrence that starts from the state it is given may be cut anywhere, so a
// call that keeps the states in between is a chain of calls, each of some
// tokens and each from where the one before wrote its state. The kernels are
// those of calls without it, and the states are written once, where they are to
// be.
//
//===----------------------------------------------------------------------===//

#include "KernelObject.h"
#include "PlanCall.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

/// What the segments have in common.
struct PlanCall::Chain {
  /// Of the inputs, then of the output: the dimension of the tokens, or -1.
  llvm::SmallVector<int, 12> lengths;
  BufferView output;
  /// Where the state is before the next segment, and where it goes.
  Views current, next;
  int64_t tokens = 0;
  int32_t numThreads = 0;
};

/// Where the tokens are among the dimensions of the op's operand, or -1.
static int findTokens(const OperandSpec &spec, int64_t alternative,
                      const DimNames &names) {
  for (const Layout &layout : spec.layouts[0]) {
    if (layout.alternative != alternative)
      continue;
    for (auto [index, source] : llvm::enumerate(layout.logical))
      if (source.dim >= 0 &&
          names.classOf(layout.user[source.dim].id) == DimClass::Length)
        return static_cast<int>(index);
  }
  return -1;
}

/// The tokens [begin, end) of an operand.
static BufferView slice(const BufferView &view, int dim, int64_t begin,
                        int64_t end) {
  BufferView part = view;
  if (dim < 0)
    return part;
  part.data = static_cast<char *>(view.data) +
              begin * view.strides[dim] * getByteSize(view.dtype);
  part.shape[dim] = end - begin;
  return part;
}

/// One state among `count` of every sequence, as users lay it out.
static BufferView stateAt(const BufferView &states, int64_t index) {
  BufferView part = states;
  part.data = static_cast<char *>(states.data) +
              index * states.strides[1] * getByteSize(states.dtype);
  part.shape.erase(part.shape.begin() + 1);
  part.strides.erase(part.strides.begin() + 1);
  return part;
}

void PlanCall::runSegment(Chain &chain, int64_t begin, int64_t end,
                          bool reverse) {
  if (reverse)
    std::tie(begin, end) =
        std::make_pair(chain.tokens - end, chain.tokens - begin);
  Views operands,
      results{slice(chain.output, chain.lengths.back(), begin, end)};
  for (size_t i = 0; i < plan.operands.size(); ++i)
    operands.push_back(slice(inputs[i], chain.lengths[i], begin, end));
  operands.append(chain.current);
  results.append(chain.next);
  if (llvm::all_of(results, [](const BufferView &view) {
        return view.getNumElements() == 0;
      }))
    return;
  launch(findKernel(end - begin), operands, results, chain.numThreads);
}

nb::object PlanCall::chain(nb::handle out, nb::handle given, int64_t every,
                           bool reverse, InPlace inPlace, int32_t numThreads) {
  bindOperands();
  bindState();
  Chain chain;
  chain.numThreads = numThreads;
  chain.tokens = binder.extents[findLength()];
  int64_t count = chain.tokens / every;
  for (auto [index, spec] : llvm::enumerate(plan.operands)) {
    bool isTokens = spec.role == OperandRole::Tokens;
    // `others` has three numbers of everything but tokens.
    size_t before =
        llvm::count_if(llvm::ArrayRef(plan.operands).take_front(index),
                       [](const OperandSpec &operand) {
                         return operand.role != OperandRole::Tokens;
                       });
    chain.lengths.push_back(
        findTokens(spec, isTokens ? 0 : others[3 * before], plan.names));
  }
  int64_t first = std::min(every, chain.tokens);
  kernel = &findKernel(first);
  Views firstInputs = inputs;
  for (auto [input, dim] : llvm::zip(firstInputs, chain.lengths))
    input = slice(input, dim, 0, first);
  if (isExplained(*kernel, firstInputs)) {
    endExplainedCall();
    return nb::none();
  }
  makeOutput(out);
  const OperandSpec &outputSpec = plan.output.front();
  chain.output =
      binder.layoutOf(outputSpec).toLogical(output[0].view(), binder.extents);
  chain.lengths.push_back(findTokens(outputSpec, 0, plan.names));

  std::array<ResultArray, kMaxStateParts> kept;
  bool endsApart = count == 0 || chain.tokens % every != 0;
  Views last;
  for (auto [index, spec] : llvm::enumerate(plan.state)) {
    const Layout &layout = binder.layoutOf(spec);
    const BufferView &initial = inputs[plan.operands.size() + index];
    chain.current.push_back(initial);
    auto shape = layout.getShape(binder.extents);
    shape.insert(shape.begin() + 1, count);
    kept[index].allocate(like, kind, binder.dtypeOf(spec), shape, place);
    nb::handle mine = PyTuple_GET_ITEM(given.ptr(), index);
    if (inPlace == InPlace::Always)
      checkWritable(index, mine);
    // A first segment would read the state where it writes it.
    if (inPlace == InPlace::Always && endsApart && count > 0) {
      updated[index] = mine;
      last.push_back(initial);
    } else if (endsApart) {
      makeResult(spec, state[index], nb::none());
      last.push_back(layout.toLogical(state[index].view(), binder.extents));
    }
  }
  for (int64_t segment = 0; segment < count; ++segment) {
    chain.next.clear();
    for (auto [index, spec] : llvm::enumerate(plan.state))
      chain.next.push_back(binder.layoutOf(spec).toLogical(
          stateAt(kept[index].view(), segment), binder.extents));
    runSegment(chain, segment * every, (segment + 1) * every, reverse);
    chain.current = chain.next;
  }
  if (endsApart) {
    chain.next = last;
    runSegment(chain, count * every, chain.tokens, reverse);
  }

  nb::list result;
  result.append(output[0].finish());
  for (size_t i = 0; i < plan.state.size(); ++i)
    result.append(!endsApart   ? nb::none()
                  : updated[i] ? nb::borrow(updated[i])
                               : state[i].finish());
  for (size_t i = 0; i < plan.state.size(); ++i)
    result.append(kept[i].finish());
  return nb::tuple(result);
}
