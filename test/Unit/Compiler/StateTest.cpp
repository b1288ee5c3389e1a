//===- StateTest.cpp - Carrying a state from call to call -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/State.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Support/OutOfMemory.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>

using namespace linattn;

namespace {

constexpr int64_t tokens = 6, size = 4;

/// A scan over any number of tokens that starts from the state it is given, in
/// the form whose bits do not depend on where a sequence is split.
const char *source = R"(
func.func @scan(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>,
                %v: tensor<1x1x?x4xf32>, %s: tensor<1x1x4x4xf32>,
                %z: tensor<1x1x4xf32>)
    -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<1x1x?x4xf32>
  %e = tensor.empty(%t) : tensor<1x1x?x4xf32>
  %r:3 = linattn.scan %q, %k, %v into(%e) init(%s) normalizer(%z)
      {feature_map = #linattn.feature_map<elu1>,
       normalize = #linattn.normalize<eps = 1.0e-6>,
       config = #linattn.config<form = token>}
    : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>,
       tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4xf32>)
    -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4xf32>)
  return %r#0, %r#1, %r#2
    : tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4xf32>
})";

State makeState() {
  State::Options options;
  options.normalize = true;
  return llvm::cantFail(State::zeros(1, 1, size, size, options));
}

TEST(State, BeginsWithALineOrAPage) {
  for (auto [heads, alignment] : {std::pair(1, 64), std::pair(32, 2 << 20)}) {
    State state = llvm::cantFail(State::zeros(1, heads, 128, 128));
    auto *data = static_cast<float *>(state.S().data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    EXPECT_TRUE(std::all_of(data, data + heads * 128 * 128,
                            [](float x) { return x == 0; }));
    State copy = state;
    EXPECT_NE(copy.S().data, state.S().data);
  }
}

TEST(State, CarriesASequenceOn) {
  Kernel kernel = llvm::cantFail(Compiler().compile(source));
  std::vector<float> x(tokens * size), whole(x.size()), split(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(float(i));
  auto run = [&](int64_t begin, int64_t end, std::vector<float> &o, State &from,
                 State &to) {
    auto view = [&](std::vector<float> &data) {
      return BufferView(data.data() + begin * size, DType::F32,
                        {1, 1, end - begin, size});
    };
    llvm::SmallVector<BufferView> inputs{view(x), view(x), view(x)};
    llvm::append_range(inputs, from.views());
    llvm::SmallVector<BufferView> outputs{view(o)};
    llvm::append_range(outputs, to.views());
    llvm::cantFail(kernel.run(inputs, outputs));
  };
  State zero = makeState(), end = makeState();
  run(0, tokens, whole, zero, end);

  auto *expected = static_cast<float *>(end.S().data);
  auto matches = [&](State &state) {
    auto *s = static_cast<float *>(state.S().data);
    return std::equal(s, s + size * size, expected);
  };
  State current = makeState(), next = makeState();
  for (int64_t t = 0; t < tokens; ++t) {
    run(t, t + 1, split, current, next);
    std::swap(current, next);
  }
  EXPECT_EQ(split, whole);
  EXPECT_TRUE(matches(current));

  // The same in place, which the signature promises.
  EXPECT_EQ(kernel.signature().results[0].inPlaceOf, -1);
  EXPECT_EQ(kernel.signature().results[1].inPlaceOf, 3);
  EXPECT_EQ(kernel.signature().results[2].inPlaceOf, 4);
  std::vector<float> inPlace(x.size());
  State state = makeState();
  for (int64_t t = 0; t < tokens; ++t)
    run(t, t + 1, inPlace, state, state);
  EXPECT_EQ(inPlace, whole);
  EXPECT_TRUE(matches(state));
}

TEST(State, MayNotOverlapInPart) {
  Kernel kernel = llvm::cantFail(Compiler().compile(source));
  std::vector<float> x(size), o(size), memory(2 * size * size), z(size);
  BufferView token(x.data(), DType::F32, {1, 1, 1, size});
  BufferView output(o.data(), DType::F32, {1, 1, 1, size});
  BufferView sums(z.data(), DType::F32, {1, 1, size});
  auto at = [&](int64_t offset) {
    return BufferView(memory.data() + offset, DType::F32, {1, 1, size, size});
  };
  auto run = [&](const BufferView &from, const BufferView &to) {
    return llvm::toString(
        kernel.run({token, token, token, from, sums}, {output, to, sums}));
  };
  EXPECT_EQ(run(at(0), at(0)), "");
  EXPECT_EQ(run(at(0), at(size)),
            "result 1: expected a buffer of its own, but it overlaps argument "
            "3 (%s)");
  BufferView transposed = at(0);
  std::swap(transposed.strides[2], transposed.strides[3]);
  EXPECT_EQ(run(at(0), transposed),
            "result 1: expected a buffer of its own, but it overlaps argument "
            "3 (%s)");
}

/// A state of more sequences than the call has is a pool.
TEST(State, HoldsThePoolOfChangingBatches) {
  const char *text = R"(
func.func @step(%q: tensor<?x1x1x4xf32>, %i: tensor<?xi32>,
                %s: tensor<?x1x4x4xf32>)
    -> (tensor<?x1x1x4xf32>, tensor<?x1x4x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x1x1x4xf32>
  %e = tensor.empty(%n) : tensor<?x1x1x4xf32>
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%e) init(%s)
    : (tensor<?x1x1x4xf32>, tensor<?x1x1x4xf32>, tensor<?x1x1x4xf32>,
       tensor<?xi32>, tensor<?x1x1x4xf32>, tensor<?x1x4x4xf32>)
    -> (tensor<?x1x1x4xf32>, tensor<?x1x4x4xf32>)
  return %r#0, %r#1 : tensor<?x1x1x4xf32>, tensor<?x1x4x4xf32>
})";
  Kernel kernel = llvm::cantFail(Compiler().compile(text));
  EXPECT_EQ(kernel.signature().results[1].inPlaceOf, 2);
  State pool = llvm::cantFail(State::zeros(3, 1, size, size));
  auto *s = static_cast<float *>(pool.S().data);
  // Two sequences, the second without a state.
  std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, o(2 * size, -1);
  auto step = [&](std::vector<int32_t> rows) {
    BufferView tokens(x.data(), DType::F32, {2, 1, 1, size});
    BufferView indices(rows.data(), DType::I32, {2});
    BufferView output(o.data(), DType::F32, {2, 1, 1, size});
    return llvm::toString(
        kernel.run({tokens, indices, pool.S()}, {output, pool.S()}));
  };
  EXPECT_EQ(step({2, -1}), "");
  for (int64_t i = 0; i < 3 * size * size; ++i)
    EXPECT_EQ(s[i], i < 2 * size * size ? 0 : x[i / size % size] * x[i % size]);
  EXPECT_EQ(o, (std::vector<float>{30, 60, 90, 120, 0, 0, 0, 0}));
  EXPECT_EQ(step({3, 0}),
            "'step': expected state_indices to be -1 or a row of the state, "
            "which has 3, but got 3 at 0");
  EXPECT_EQ(step({1, 1}),
            "'step': expected a row of the state no more than once in "
            "state_indices, but got 1 at 0 and 1");
}

TEST(State, NamesTheError) {
  auto message = [](llvm::Expected<State> state) {
    return state ? std::string() : llvm::toString(state.takeError());
  };
  EXPECT_EQ(message(State::zeros(1, -2, 4, 4)),
            "expected heads not to be negative, but got -2");
  State::Options half;
  half.dtype = DType::F16;
  EXPECT_EQ(message(State::zeros(1, 2, 4, 4, half)),
            "expected dtype of a state to be f32 or f64, but got f16");
  State::Options lonely;
  lonely.runningMax = true;
  EXPECT_EQ(message(State::zeros(1, 2, 4, 4, lonely)),
            "expected a running maximum only with a normalizer");
  EXPECT_EQ(message(State::zeros(1, 1, int64_t(1) << 31, int64_t(1) << 31)),
            "S: expected an array of at most 9223372036854775807 bytes, but "
            "got shape 1x1x2147483648x2147483648 with elements of 4 bytes");
  llvm::Error error =
      State::zeros(1, 1, int64_t(1) << 29, int64_t(1) << 29).takeError();
  EXPECT_TRUE(error.isA<OutOfMemoryError>());
  EXPECT_EQ(llvm::toString(std::move(error)),
            "expected memory for a state of shape 1x1x536870912x536870912, "
            "1152921504606846976 bytes, but the system gave none");
}

TEST(State, StartsTheRunningMaximumLowest) {
  State::Options options;
  options.normalize = options.runningMax = true;
  options.dtype = DType::F64;
  State state = llvm::cantFail(State::zeros(1, 2, 3, 4, options));
  EXPECT_EQ(state.views().size(), 3u);
  EXPECT_EQ(static_cast<double *>(state.m().data)[1],
            std::numeric_limits<double>::lowest());
  EXPECT_EQ(state.z().shape, (llvm::SmallVector<int64_t, 4>{1, 2, 3}));
}

} // namespace
