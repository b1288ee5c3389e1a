//===- Shapes.cpp - From the layout of users to that of the ops -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Users write [B,T,H,D], ops take [B,H,T,D]. Transposing is a matter of
// strides, so that no element moves.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

using Shape = llvm::SmallVector<int64_t, 4>;

[[noreturn]] static void fail(const std::string &message) {
  throw nb::value_error(message.c_str());
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

BufferView linattn::python::toLogicalTokens(const BufferView &view) {
  const auto &shape = view.shape;
  const auto &strides = view.strides;
  switch (view.getRank()) {
  case 2:
    return BufferView(view.data, view.dtype, {1, 1, shape[0], shape[1]},
                      {0, 0, strides[0], strides[1]}, view.readOnly);
  case 3:
    return BufferView(view.data, view.dtype, {shape[0], 1, shape[1], shape[2]},
                      {strides[0], 0, strides[1], strides[2]}, view.readOnly);
  default:
    return BufferView(
        view.data, view.dtype, {shape[0], shape[2], shape[1], shape[3]},
        {strides[0], strides[2], strides[1], strides[3]}, view.readOnly);
  }
}

namespace {

/// One token operand with the sizes that its rank leaves out.
struct Tokens {
  const char *name;
  const BufferView *view;

  int64_t rank() const { return view->getRank(); }
  int64_t batch() const { return rank() == 2 ? 1 : view->shape[0]; }
  int64_t length() const { return view->shape[rank() == 2 ? 0 : 1]; }
  int64_t heads() const { return rank() == 4 ? view->shape[2] : 1; }
  int64_t size() const { return view->shape.back(); }
};

void checkTokens(const Tokens &tokens) {
  if (tokens.rank() < 2 || tokens.rank() > 4)
    fail(std::string(tokens.name) +
         ": expected shape (T, D), (B, T, D) or (B, T, H, D), but got " +
         formatPythonShape(tokens.view->shape));
  if (!isFloat(tokens.view->dtype))
    throw nb::type_error((std::string(tokens.name) +
                          ": expected float16, bfloat16, float32 or float64, "
                          "but got " +
                          getPythonName(tokens.view->dtype))
                             .c_str());
  if (tokens.size() < 1 || tokens.heads() < 1)
    fail(std::string(tokens.name) +
         ": expected at least one head and one feature, but got shape " +
         formatPythonShape(tokens.view->shape));
}

void checkEqual(const Tokens &a, const Tokens &b, const char *what, int64_t x,
                int64_t y) {
  if (x != y)
    fail(std::string(b.name) + ": expected the " + what + " of " + a.name +
         ", " + std::to_string(x) + ", but got " + std::to_string(y));
}

void checkAlike(const Tokens &a, const Tokens &b) {
  checkEqual(a, b, "number of dimensions", a.rank(), b.rank());
  if (a.view->dtype != b.view->dtype)
    throw nb::type_error((std::string(b.name) + ": expected the dtype of " +
                          a.name + ", " + getPythonName(a.view->dtype) +
                          ", but got " + getPythonName(b.view->dtype))
                             .c_str());
  checkEqual(a, b, "batch size", a.batch(), b.batch());
}

bool divide(int64_t a, int64_t b) {
  return std::max(a, b) % std::min(a, b) == 0;
}

} // namespace

void linattn::python::inferSizes(const BufferView *q, const BufferView *k,
                                 const BufferView *v, const BufferView *S,
                                 bool sameLength, Sizes &sizes) {
  Tokens query{"q", q}, key{"k", k}, value{"v", v};
  const Tokens &first = q ? query : key;
  checkTokens(first);
  sizes.rank = first.rank();
  sizes.dtype = first.view->dtype;
  sizes.batch = sizes.states = first.batch();
  sizes.keySize = first.size();
  if (k) {
    checkTokens(key);
    checkTokens(value);
    if (q) {
      checkAlike(query, key);
      checkEqual(query, key, "head size", query.size(), key.size());
      if (sameLength)
        checkEqual(query, key, "sequence length", query.length(), key.length());
    }
    checkAlike(first, value);
    checkEqual(key, value, "sequence length", key.length(), value.length());
    sizes.keys = key.length();
    sizes.keyHeads = key.heads();
    sizes.valueHeads = value.heads();
    sizes.valueSize = value.size();
    sizes.stateHeads = std::max(sizes.keyHeads, sizes.valueHeads);
  } else {
    if (S->getRank() != 4)
      fail("S: expected shape (N, H, K, V), but got " +
           formatPythonShape(S->shape));
    sizes.stateHeads = S->shape[1];
    sizes.valueSize = S->shape[3];
  }
  sizes.queryHeads = q ? query.heads() : sizes.stateHeads;
  sizes.queries = q ? query.length() : 0;
  sizes.outputHeads = std::max(sizes.queryHeads, sizes.stateHeads);
  if (sizes.stateHeads < 1 || sizes.valueSize < 1)
    fail("S: expected at least one head and one feature, but got shape " +
         formatPythonShape(S->shape));
  if (!divide(sizes.keyHeads, sizes.valueHeads) ||
      !divide(sizes.queryHeads, sizes.stateHeads))
    fail("k: expected the head counts of q, k and v to divide one another, but "
         "got " +
         std::to_string(sizes.queryHeads) + ", " +
         std::to_string(k ? sizes.keyHeads : sizes.stateHeads) + " and " +
         std::to_string(k ? sizes.valueHeads : sizes.stateHeads));
}

//===----------------------------------------------------------------------===//
// Other operands
//===----------------------------------------------------------------------===//

void linattn::python::checkArray(const char *name, const BufferView &view,
                                 DType dtype, llvm::ArrayRef<int64_t> shape) {
  if (llvm::ArrayRef<int64_t>(view.shape) != shape)
    fail(std::string(name) + ": expected shape " + formatPythonShape(shape) +
         ", but got " + formatPythonShape(view.shape));
  if (view.dtype != dtype)
    throw nb::type_error((std::string(name) + ": expected dtype " +
                          getPythonName(dtype) + ", but got " +
                          getPythonName(view.dtype))
                             .c_str());
}

int64_t linattn::python::checkOffsets(const BufferView &view,
                                      const Sizes &sizes) {
  if (view.dtype != DType::I32 && view.dtype != DType::I64)
    throw nb::type_error(
        (std::string("cu_seqlens: expected int32 or int64, but got ") +
         getPythonName(view.dtype))
            .c_str());
  if (view.getRank() != 1 || view.shape[0] < 1)
    fail("cu_seqlens: expected shape (N + 1,), but got " +
         formatPythonShape(view.shape));
  if (sizes.batch != 1)
    fail("cu_seqlens: expected a batch size of 1, but got " +
         std::to_string(sizes.batch));
  auto at = [&](int64_t i) -> int64_t {
    if (view.dtype == DType::I32)
      return static_cast<const int32_t *>(view.data)[i * view.strides[0]];
    return static_cast<const int64_t *>(view.data)[i * view.strides[0]];
  };
  int64_t count = view.shape[0] - 1;
  if (at(0) != 0)
    fail("cu_seqlens: expected the first offset to be 0, but got " +
         std::to_string(at(0)));
  for (int64_t i = 0; i < count; ++i)
    if (at(i + 1) < at(i))
      fail("cu_seqlens: expected offsets that do not decrease, but got " +
           std::to_string(at(i)) + " before " + std::to_string(at(i + 1)));
  if (at(count) != sizes.keys)
    fail("cu_seqlens: expected the last offset to be the number of tokens, " +
         std::to_string(sizes.keys) + ", but got " + std::to_string(at(count)));
  return count;
}

namespace {

/// A shape that an operand may have, and for each of the op's dimensions the
/// operand's; -1 stands for a dimension of extent 1 that is left out.
struct Form {
  Shape shape;
  llvm::SmallVector<int, 4> dims;
};

using Forms = llvm::SmallVector<Form, 6>;

void addGateForms(const Sizes &s, int64_t features, bool perHead,
                  Forms &forms) {
  if (perHead)
    forms.push_back({{s.stateHeads}, {0}});
  forms.push_back({{s.batch, s.keys, s.stateHeads}, {0, 2, 1}});
  forms.push_back({{s.batch, s.keys, s.stateHeads, features}, {0, 2, 1, 3}});
  if (s.rank == 3) {
    forms.push_back({{s.batch, s.keys}, {0, -1, 1}});
    forms.push_back({{s.batch, s.keys, features}, {0, -1, 1, 2}});
  } else if (s.rank == 2) {
    forms.push_back({{s.keys}, {-1, -1, 0}});
    forms.push_back({{s.keys, features}, {-1, -1, 0, 1}});
  }
}

Forms getForms(OperandKind kind, const Sizes &s) {
  Forms forms;
  switch (kind) {
  case OperandKind::KeyGate:
    addGateForms(s, s.keySize, /*perHead=*/true, forms);
    break;
  case OperandKind::ValueGate:
    addGateForms(s, s.valueSize, /*perHead=*/false, forms);
    break;
  case OperandKind::Bonus:
    forms.push_back({{s.stateHeads, s.keySize}, {0, 1}});
    if (s.rank < 4)
      forms.push_back({{s.keySize}, {-1, 0}});
    break;
  case OperandKind::Mask:
    forms.push_back({{s.batch, s.keys}, {0, 1}});
    if (s.rank == 2)
      forms.push_back({{s.keys}, {-1, 0}});
    break;
  case OperandKind::Offsets:
    forms.push_back({{s.states + 1}, {0}});
    break;
  }
  return forms;
}

} // namespace

BufferView linattn::python::toLogicalOperand(const OperandSpec &spec,
                                             const BufferView &view,
                                             const Sizes &sizes) {
  bool isGate =
      spec.kind != OperandKind::Mask && spec.kind != OperandKind::Offsets;
  if (isGate ? !isFloat(view.dtype)
             : spec.kind == OperandKind::Mask && view.dtype != DType::I1)
    throw nb::type_error(
        (spec.name + ": expected dtype " +
         (isGate ? "float16, bfloat16, float32 or float64" : "bool") +
         ", but got " + getPythonName(view.dtype))
            .c_str());
  Forms forms = getForms(spec.kind, sizes);
  for (const Form &form : forms) {
    if (form.shape != view.shape)
      continue;
    Shape shape, strides;
    for (int dim : form.dims) {
      shape.push_back(dim < 0 ? 1 : view.shape[dim]);
      strides.push_back(dim < 0 ? 0 : view.strides[dim]);
    }
    return BufferView(view.data, view.dtype, shape, strides, view.readOnly);
  }
  std::string expected;
  for (const Form &form : forms)
    expected +=
        (expected.empty() ? "" : " or ") + formatPythonShape(form.shape);
  fail(spec.name + ": expected shape " + expected + ", but got " +
       formatPythonShape(view.shape));
}
