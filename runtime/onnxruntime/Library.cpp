//===- Library.cpp - Entry of the ONNX Runtime library --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator of ai.onnx that is registered here goes before the function body
// that ONNX Runtime would run, and one of com.microsoft before its own kernel:
// models need no change.
//
//===----------------------------------------------------------------------===//

#include "Op.h"

#include <array>

using namespace linattn;
using namespace linattn::ort;

const OrtApi *ort::theApi = nullptr;

namespace {

/// The entry of a session's configuration that adds com.microsoft's operators.
constexpr const char *kContributed = "linattn.contributed";

/// Sessions keep pointers to them.
struct Domains {
  std::array<OrtCustomOpDomain *, 2> all{};

  explicit Domains(const OrtApi *api) {
    add(api, all[0], "", 27);
    add(api, all[1], "com.microsoft", 1);
  }

private:
  static void add(const OrtApi *api, OrtCustomOpDomain *&domain,
                  const char *name, int since) {
    check(api, createCustomOpDomain(api, name, &domain));
    for (auto *get : {getLinearAttention, getCausalConv})
      check(api, addToCustomOpDomain(api, domain, &get(since)));
  }
};

} // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus *
RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
  const OrtApi *api = base->getApi(kApiVersion);
  if (!api) {
    // Statuses are made by the API, and slot 0 has been what it is since 1.0.
    api = base->getApi(1);
    return createStatus(
        api, Fail,
        (std::string("expected ONNX Runtime 1.18 or newer, but got ") +
         base->getVersionString())
            .c_str());
  }
  return guard(api, [&] {
    theApi = api;
    static const Domains domains(api);
    check(api, addCustomOpDomain(api, options, domains.all[0]));
    // A domain of custom operators has a version of its own. In models that do
    // not import com.microsoft, ONNX Runtime would not find its own operators
    // under that version, which its fusions put there.
    int isContributed = 0;
    check(api, hasConfigEntry(api, options, kContributed, &isContributed));
    if (isContributed)
      check(api, addCustomOpDomain(api, options, domains.all[1]));
  });
}
