//===- RandomFeatures.h - Random projections --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The matrices W of FAVOR+ and random Fourier features. The same seed gives the
// same bits on every platform: the numbers come from a counter-based generator
// (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011) and become normal by Box and Muller's transform, whose logarithm, sine
// and cosine are computed here from additions, multiplications, divisions and
// square roots alone, each of them rounded exactly as IEEE 754 demands.
// std::normal_distribution and the functions of libm differ between libraries.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_RANDOMFEATURES_H
#define LINATTN_ANALYSIS_RANDOMFEATURES_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace linattn {

/// How the rows of W relate. `Independent`: every element is N(0, 1).
/// `Orthogonal`: blocks of d orthonormal rows, each uniform on the sphere and
/// orthogonal to the others of its block, times their norms; the last
/// block has m mod d rows, if d does not divide m. Both make unbiased
/// estimates; those of orthogonal rows vary less (Choromanski et al.,
/// "Rethinking attention with Performers", 2021).
enum class ProjectionKind { Independent, Orthogonal };

/// The norms of the rows. `Chi`: those of N(0, I), independent of the
/// directions; the only ones that make the estimate unbiased. `SqrtD`: all √d,
/// a common variant of less variance and a small bias.
enum class RowNorms { Chi, SqrtD };

struct ProjectionOptions {
  int64_t features; ///< m, the rows.
  int64_t headSize; ///< d, the columns.
  int64_t heads = 1;
  ProjectionKind kind = ProjectionKind::Orthogonal;
  RowNorms norms = RowNorms::Chi;
  uint64_t seed = 0;
  /// Numbers the draws of one seed, which are independent of one another: to
  /// draw anew, count up. Below 2^63.
  uint64_t draw = 0;
};

/// W as [heads, m, d], row-major; `heads` independent draws. Nothing, and the
/// reason in `error`, for sizes that are not from 1 to 2^20 or make more than
/// 2^31 elements.
std::optional<std::vector<double>>
randomProjection(const ProjectionOptions &options,
                 std::string *error = nullptr);

/// One block of the generator: four words of `counter`, enciphered by `key`.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

} // namespace linattn

#endif // LINATTN_ANALYSIS_RANDOMFEATURES_H
