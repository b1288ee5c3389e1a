//===- Dialect.cpp - The dialect from C -----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn-c/Dialect.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/InitAll.h"
#include "mlir/CAPI/Registration.h"
#include <mutex>

using namespace mlir;
using namespace mlir::linattn;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(LinAttn, linattn, LinAttnDialect)

void linattnRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}

void linattnRegisterAllPasses() {
  static std::once_flag once;
  std::call_once(once, [] { registerAllPasses(); });
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

MlirAttribute linattnFeatureMapAttrGet(MlirContext context,
                                       MlirStringRef kind) {
  std::optional<FeatureMapKind> value = symbolizeFeatureMapKind(unwrap(kind));
  if (!value)
    return {nullptr};
  return wrap(FeatureMapAttr::get(unwrap(context), *value));
}

bool linattnAttributeIsAFeatureMap(MlirAttribute attribute) {
  return isa<FeatureMapAttr>(unwrap(attribute));
}

MlirStringRef linattnFeatureMapAttrGetKind(MlirAttribute attribute) {
  return wrap(stringifyFeatureMapKind(
      cast<FeatureMapAttr>(unwrap(attribute)).getKind()));
}

MlirAttribute linattnNormalizeAttrGet(MlirContext context, double eps) {
  Builder builder(unwrap(context));
  return wrap(NormalizeAttr::get(builder.getContext(),
                                 builder.getF64FloatAttr(eps), FloatAttr(),
                                 FloatAttr(), FloatAttr()));
}

bool linattnAttributeIsANormalize(MlirAttribute attribute) {
  return isa<NormalizeAttr>(unwrap(attribute));
}

MlirAttribute linattnConfigAttrGet(MlirContext context, MlirStringRef form,
                                   int64_t chunk) {
  std::optional<Form> value = symbolizeForm(unwrap(form));
  if (!value)
    return {nullptr};
  MLIRContext *ctx = unwrap(context);
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(ctx)); };
  // Only the form and the chunk are the caller's: a pass writes the rest.
  if (failed(ConfigAttr::verify(emitError, *value, chunk, 0, 0, 0, 0, 0, 0)))
    return {nullptr};
  return wrap(ConfigAttr::get(ctx, *value, chunk, 0, 0, 0, 0, 0, 0));
}

bool linattnAttributeIsAConfig(MlirAttribute attribute) {
  return isa<ConfigAttr>(unwrap(attribute));
}

MlirStringRef linattnConfigAttrGetForm(MlirAttribute attribute) {
  return wrap(stringifyForm(cast<ConfigAttr>(unwrap(attribute)).getForm()));
}
