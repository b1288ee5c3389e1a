//===- Api.h - The used part of ONNX Runtime's C API ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The API is a table of functions, to which versions only append: a function is
// the number of its slot. These few are declared here, so that the library
// builds without ONNX Runtime and works with every version from 1.18 on.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_ONNXRUNTIME_API_H
#define LINATTN_RUNTIME_ONNXRUNTIME_API_H

#include <cstddef>
#include <cstdint>

extern "C" {
struct OrtStatus;
struct OrtSessionOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtShapeInferContext;
struct OrtTensorTypeAndShapeInfo;
struct OrtValue;
struct OrtOpAttr;

/// The table.
struct OrtApi {
  void *slots[279];
};

struct OrtApiBase {
  const OrtApi *(*getApi)(uint32_t version);
  const char *(*getVersionString)();
};
}

namespace linattn::ort {

/// The first version that knows all that is used: 1.18.
inline constexpr uint32_t kApiVersion = 18;

/// ONNXTensorElementDataType.
enum ElementType : int32_t { Undefined = 0, F32 = 1, F16 = 10, BF16 = 16 };

/// OrtErrorCode.
enum ErrorCode : int32_t { Fail = 1, InvalidArgument = 2 };

/// OrtOpAttrType.
enum AttributeType : int32_t { IntAttribute = 1 };

/// OrtCustomOpInputOutputCharacteristic.
enum Presence : int32_t { Required = 0, Optional = 1 };

/// The function in a slot. Those that return a status return null where all
/// went well.
template <size_t slot, typename Result, typename... Arguments>
struct Function {
  Result operator()(const OrtApi *api, Arguments... arguments) const {
    auto *function =
        reinterpret_cast<Result (*)(Arguments...)>(api->slots[slot]);
    return function(arguments...);
  }
};
template <size_t slot, typename... Arguments>
using Checked = Function<slot, OrtStatus *, Arguments...>;

inline constexpr Function<0, OrtStatus *, ErrorCode, const char *> createStatus;
inline constexpr Function<2, const char *, const OrtStatus *> getErrorMessage;
inline constexpr Function<93, void, OrtStatus *> releaseStatus;

struct CustomOp;
inline constexpr Checked<26, const char *, OrtCustomOpDomain **>
    createCustomOpDomain;
inline constexpr Checked<27, OrtCustomOpDomain *, const CustomOp *>
    addToCustomOpDomain;
inline constexpr Checked<28, OrtSessionOptions *, OrtCustomOpDomain *>
    addCustomOpDomain;
inline constexpr Checked<237, const OrtSessionOptions *, const char *, int *>
    hasConfigEntry;

inline constexpr Checked<85, const OrtKernelInfo *, const char *, float *>
    getFloatAttribute;
inline constexpr Checked<86, const OrtKernelInfo *, const char *, int64_t *>
    getIntAttribute;
inline constexpr Checked<87, const OrtKernelInfo *, const char *, char *,
                         size_t *>
    getStringAttribute;

inline constexpr Checked<88, const OrtKernelContext *, size_t *> getInputCount;
inline constexpr Checked<89, const OrtKernelContext *, size_t *> getOutputCount;
inline constexpr Checked<90, const OrtKernelContext *, size_t,
                         const OrtValue **>
    getInput;
inline constexpr Checked<91, OrtKernelContext *, size_t, const int64_t *,
                         size_t, OrtValue **>
    getOutput;
inline constexpr Checked<274, const OrtKernelContext *,
                         void (*)(void *, size_t), size_t, size_t, void *>
    parallelFor;

inline constexpr Checked<51, OrtValue *, void **> getTensorData;
inline constexpr Checked<65, const OrtValue *, OrtTensorTypeAndShapeInfo **>
    getTensorInfo;
inline constexpr Checked<57, OrtTensorTypeAndShapeInfo **> createTensorInfo;
inline constexpr Checked<58, OrtTensorTypeAndShapeInfo *, ElementType>
    setElementType;
inline constexpr Checked<59, OrtTensorTypeAndShapeInfo *, const int64_t *,
                         size_t>
    setDimensions;
inline constexpr Checked<60, const OrtTensorTypeAndShapeInfo *, ElementType *>
    getElementType;
inline constexpr Checked<61, const OrtTensorTypeAndShapeInfo *, size_t *>
    getRank;
inline constexpr Checked<62, const OrtTensorTypeAndShapeInfo *, int64_t *,
                         size_t>
    getDimensions;
inline constexpr Checked<63, const OrtTensorTypeAndShapeInfo *, const char **,
                         size_t>
    getSymbols;
inline constexpr Checked<271, OrtTensorTypeAndShapeInfo *, const char **,
                         size_t>
    setSymbols;
inline constexpr Function<99, void, OrtTensorTypeAndShapeInfo *>
    releaseTensorInfo;

inline constexpr Checked<267, const OrtShapeInferContext *, size_t *>
    getInferredInputCount;
inline constexpr Checked<268, const OrtShapeInferContext *, size_t,
                         OrtTensorTypeAndShapeInfo **>
    getInferredInput;
inline constexpr Checked<269, const OrtShapeInferContext *, const char *,
                         const OrtOpAttr **>
    getInferredAttribute;
inline constexpr Checked<270, const OrtShapeInferContext *, size_t,
                         const OrtTensorTypeAndShapeInfo *>
    setInferredOutput;
inline constexpr Checked<272, const OrtOpAttr *, AttributeType, void *, size_t,
                         size_t *>
    readAttribute;

/// OrtCustomOp: what an operator is, in functions that ONNX Runtime calls.
struct CustomOp {
  uint32_t version = kApiVersion;
  void *(*createKernel)(const CustomOp *, const OrtApi *,
                        const OrtKernelInfo *) = nullptr;
  const char *(*getName)(const CustomOp *) = nullptr;
  const char *(*getProvider)(const CustomOp *) = nullptr;
  ElementType (*getInputType)(const CustomOp *, size_t) = nullptr;
  size_t (*getInputTypeCount)(const CustomOp *) = nullptr;
  ElementType (*getOutputType)(const CustomOp *, size_t) = nullptr;
  size_t (*getOutputTypeCount)(const CustomOp *) = nullptr;
  void (*compute)(void *, OrtKernelContext *) = nullptr;
  void (*destroyKernel)(void *) = nullptr;
  Presence (*getInputPresence)(const CustomOp *, size_t) = nullptr;
  Presence (*getOutputPresence)(const CustomOp *, size_t) = nullptr;
  int32_t (*getInputMemoryType)(const CustomOp *, size_t) = nullptr;
  int (*getVariadicInputMinArity)(const CustomOp *) = nullptr;
  int (*getVariadicInputHomogeneity)(const CustomOp *) = nullptr;
  int (*getVariadicOutputMinArity)(const CustomOp *) = nullptr;
  int (*getVariadicOutputHomogeneity)(const CustomOp *) = nullptr;
  OrtStatus *(*createKernelV2)(const CustomOp *, const OrtApi *,
                               const OrtKernelInfo *, void **) = nullptr;
  OrtStatus *(*computeV2)(void *, OrtKernelContext *) = nullptr;
  OrtStatus *(*inferShapes)(const CustomOp *, OrtShapeInferContext *) = nullptr;
  int (*getStartVersion)(const CustomOp *) = nullptr;
  int (*getEndVersion)(const CustomOp *) = nullptr;
  size_t (*getMayInplace)(int **inputs, int **outputs) = nullptr;
  void (*releaseMayInplace)(int *inputs, int *outputs) = nullptr;
  size_t (*getAliasMap)(int **inputs, int **outputs) = nullptr;
  void (*releaseAliasMap)(int *inputs, int *outputs) = nullptr;
};

} // namespace linattn::ort

#endif // LINATTN_RUNTIME_ONNXRUNTIME_API_H
