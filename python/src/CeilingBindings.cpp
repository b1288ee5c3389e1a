//===- CeilingBindings.cpp - Peak rates of the machine --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Peak/FmaPeak.h"
#include "linattn/Peak/MemoryPeak.h"

namespace nb = nanobind;
using namespace nb::literals;

void linattn::python::registerCeilings(nb::module_ &module) {
  using nb::gil_scoped_release;
  module.def(
      "fma_kind", [] { return getFmaKind(getVectorTarget().vectorBits); },
      "The instructions that fma_gflops measures: avx512, avx2 or generic.");
  module.def(
      "vector_unit",
      [] {
        VectorTarget target = getVectorTarget();
        return nb::make_tuple(target.vectorBits, target.registers);
      },
      "Width in bits and number of the vector registers that code is made "
      "for.");
  module.def(
      "fma_gflops",
      [](int threads) {
        return measureFmaGflops(threads, getVectorTarget().vectorBits);
      },
      "threads"_a = 1, nb::call_guard<gil_scoped_release>(),
      "GFLOP/s of an f32 FMA loop on that many threads, in the vectors that "
      "code is made for.");
  module.def(
      "copy_gbytes",
      [](int64_t bytes, int threads) {
        return measureMemoryGbytes(MemoryPass::Copy, bytes, threads);
      },
      "bytes"_a, "threads"_a = 1, nb::call_guard<gil_scoped_release>(),
      "GB/s, read plus written, of copying within a footprint.");
  module.def(
      "update_gbytes",
      [](int64_t bytes, int threads, bool best) {
        return measureMemoryGbytes(MemoryPass::Update, bytes, threads,
                                   best ? PassTime::Best : PassTime::Median);
      },
      "bytes"_a, "threads"_a = 1, "best"_a = true,
      nb::call_guard<gil_scoped_release>(),
      "GB/s, read plus written, of updating a footprint in place: the best of "
      "several passes, or their median.");
}
