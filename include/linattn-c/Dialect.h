/*===- linattn-c/Dialect.h - The dialect from C ---------------------------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Extends MLIR's C API (mlir-c) by the linattn dialect, its attributes, and  *|
|* its passes, for bindings of other languages. Ops need no functions of      *|
|* their own: mlirOperationCreate and mlirOperationGetOperand build and read  *|
|* them, and mlirOperationVerify checks them.                                 *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef LINATTN_C_DIALECT_H
#define LINATTN_C_DIALECT_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** mlirGetDialectHandle__linattn__(): the dialect alone. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(LinAttn, linattn);

/** Registers the dialect, the upstream dialects that the pipelines pass
 * through, and the interfaces they need. */
MLIR_CAPI_EXPORTED void
linattnRegisterAllDialects(MlirDialectRegistry registry);

/** Registers linattn's passes and pipelines, for mlirParsePassPipeline. May be
 *  called several times. */
MLIR_CAPI_EXPORTED void linattnRegisterAllPasses(void);

/** #linattn.feature_map<kind>, with default parameters; a null attribute if
 *  the kind is unknown. The context must have loaded the dialect. */
MLIR_CAPI_EXPORTED MlirAttribute linattnFeatureMapAttrGet(MlirContext context,
                                                          MlirStringRef kind);
MLIR_CAPI_EXPORTED bool linattnAttributeIsAFeatureMap(MlirAttribute attribute);
/** The name of the kind, which lives as long as the process. */
MLIR_CAPI_EXPORTED MlirStringRef
linattnFeatureMapAttrGetKind(MlirAttribute attribute);

/** #linattn.normalize<eps = eps>: outputs are divided by q·z + eps. */
MLIR_CAPI_EXPORTED MlirAttribute linattnNormalizeAttrGet(MlirContext context,
                                                         double eps);
MLIR_CAPI_EXPORTED bool linattnAttributeIsANormalize(MlirAttribute attribute);

/** #linattn.config<form = form, chunk = chunk>: the schedule of a recurrence;
 *  `form` is token, state_tile, chunk, …, `chunk` the tokens per chunk or 0. A
 *  null attribute if the form is unknown or the schedule is not legal. */
MLIR_CAPI_EXPORTED MlirAttribute linattnConfigAttrGet(MlirContext context,
                                                      MlirStringRef form,
                                                      int64_t chunk);
MLIR_CAPI_EXPORTED bool linattnAttributeIsAConfig(MlirAttribute attribute);
/** The name of the form, which lives as long as the process. */
MLIR_CAPI_EXPORTED MlirStringRef
linattnConfigAttrGetForm(MlirAttribute attribute);

#ifdef __cplusplus
}
#endif

#endif /* LINATTN_C_DIALECT_H */
