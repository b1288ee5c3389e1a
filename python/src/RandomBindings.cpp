//===- RandomBindings.cpp - Random projections, for Python ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "linattn/Analysis/RandomFeatures.h"

#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace linattn;
using namespace nb::literals;

static nb::object drawProjection(int64_t features, int64_t headSize,
                                 int64_t heads, bool isOrthogonal,
                                 bool hasChiNorms, uint64_t seed,
                                 uint64_t draw) {
  ProjectionOptions options{features, headSize, heads};
  options.kind =
      isOrthogonal ? ProjectionKind::Orthogonal : ProjectionKind::Independent;
  options.norms = hasChiNorms ? RowNorms::Chi : RowNorms::SqrtD;
  options.seed = seed;
  options.draw = draw;
  std::string error;
  std::optional<std::vector<double>> w = randomProjection(options, &error);
  if (!w)
    throw nb::value_error(error.c_str());
  auto *owned = new std::vector<double>(std::move(*w));
  nb::capsule owner(owned, [](void *pointer) noexcept {
    delete static_cast<std::vector<double> *>(pointer);
  });
  size_t shape[] = {static_cast<size_t>(heads), static_cast<size_t>(features),
                    static_cast<size_t>(headSize)};
  return nb::cast(
      nb::ndarray<nb::numpy, double>(owned->data(), 3, shape, owner));
}

void linattn::python::registerRandom(nb::module_ &module) {
  module.def("random_projection", drawProjection, "features"_a, "head_size"_a,
             "heads"_a, "orthogonal"_a, "chi_norms"_a, "seed"_a, "draw"_a);
}
