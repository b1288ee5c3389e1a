//===- Elements.cpp - Reading and writing elements by type ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/Elements.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace linattn;

//===----------------------------------------------------------------------===//
// Narrow floats
//===----------------------------------------------------------------------===//

static double fromBits(const llvm::fltSemantics &semantics, uint16_t bits) {
  llvm::APFloat value(semantics, llvm::APInt(16, bits));
  bool losesInfo;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static uint16_t toBits(const llvm::fltSemantics &semantics, double number) {
  llvm::APFloat value(number);
  bool losesInfo;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
}

float linattn::fromHalfBits(uint16_t bits) {
  return static_cast<float>(fromBits(llvm::APFloat::IEEEhalf(), bits));
}

float linattn::fromBFloat16Bits(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t linattn::toHalfBits(double value) {
  return toBits(llvm::APFloat::IEEEhalf(), value);
}

uint16_t linattn::toBFloat16Bits(double value) {
  return toBits(llvm::APFloat::BFloat(), value);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

template <typename T>
static T loadAs(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const T *>(data) + index, sizeof(T));
  return value;
}

template <typename T>
static void storeAs(void *data, int64_t index, T value) {
  std::memcpy(static_cast<T *>(data) + index, &value, sizeof(T));
}

double linattn::loadElement(DType dtype, const void *data, int64_t index) {
  switch (dtype) {
  case DType::F16:
    return fromHalfBits(loadAs<uint16_t>(data, index));
  case DType::BF16:
    return fromBFloat16Bits(loadAs<uint16_t>(data, index));
  case DType::F32:
    return loadAs<float>(data, index);
  case DType::F64:
    return loadAs<double>(data, index);
  case DType::I1:
    return loadAs<uint8_t>(data, index) != 0;
  case DType::I8:
    return loadAs<int8_t>(data, index);
  case DType::I16:
    return loadAs<int16_t>(data, index);
  case DType::I32:
    return loadAs<int32_t>(data, index);
  case DType::I64:
  case DType::Index:
    return static_cast<double>(loadAs<int64_t>(data, index));
  }
  return 0;
}

void linattn::storeElement(DType dtype, void *data, int64_t index,
                           double value) {
  switch (dtype) {
  case DType::F16:
    return storeAs(data, index, toHalfBits(value));
  case DType::BF16:
    return storeAs(data, index, toBFloat16Bits(value));
  case DType::F32:
    return storeAs(data, index, static_cast<float>(value));
  case DType::F64:
    return storeAs(data, index, value);
  case DType::I1:
    return storeAs<uint8_t>(data, index, value != 0);
  case DType::I8:
    return storeAs(data, index, static_cast<int8_t>(value));
  case DType::I16:
    return storeAs(data, index, static_cast<int16_t>(value));
  case DType::I32:
    return storeAs(data, index, static_cast<int32_t>(value));
  case DType::I64:
  case DType::Index:
    return storeAs(data, index, static_cast<int64_t>(value));
  }
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

Difference linattn::compareElements(DType dtype, const void *actual,
                                    const void *expected, int64_t count) {
  Difference result;
  double maxExpected = 0;
  for (int64_t i = 0; i < count; ++i) {
    double a = loadElement(dtype, actual, i);
    double e = loadElement(dtype, expected, i);
    if (!std::isfinite(a) || !std::isfinite(e)) {
      bool same = (std::isnan(a) && std::isnan(e)) || a == e;
      if (!same && result.sameSpecials) {
        result.sameSpecials = false;
        result.index = i;
      }
      continue;
    }
    maxExpected = std::max(maxExpected, std::abs(e));
    if (std::abs(a - e) > result.maxAbsolute) {
      result.maxAbsolute = std::abs(a - e);
      if (result.sameSpecials)
        result.index = i;
    }
  }
  // Relative to an expected zero, any difference is infinite.
  result.maxRelative =
      result.maxAbsolute == 0 ? 0 : result.maxAbsolute / maxExpected;
  return result;
}

double linattn::getTolerance(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 2.5e-3;
  case DType::BF16:
    // Rounding to nearest errs by up to 2^-8 just above a power of two.
    return 5e-3;
  case DType::F32:
    return 3e-6;
  case DType::F64:
    return 1e-12;
  default:
    return 0;
  }
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

void linattn::fillRandom(DType dtype, void *data, int64_t count, uint64_t seed,
                         uint64_t stream) {
  // <random> specifies its engines bit by bit, but not its distributions. An
  // odd multiplier keeps the streams of a seed apart.
  std::mt19937_64 engine(seed + stream * 0x9E3779B97F4A7C15ull);
  auto uniform = [&] { // In (0, 1].
    return static_cast<double>((engine() >> 11) + 1) * 0x1.0p-53;
  };
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == DType::I1) {
      storeElement(dtype, data, i, static_cast<double>(engine() >> 63));
    } else if (!isFloat(dtype)) {
      storeElement(dtype, data, i, static_cast<double>(engine() >> 60) - 8);
    } else {
      double radius = std::sqrt(-2 * std::log(uniform()));
      double angle = kTwoPi * uniform();
      storeElement(dtype, data, i, radius * std::cos(angle));
      if (++i < count)
        storeElement(dtype, data, i, radius * std::sin(angle));
    }
  }
}
