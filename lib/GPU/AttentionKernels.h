//===- AttentionKernels.h - Kernels of attention without scans --*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For every op: why no kernel can run it (the end of a sentence, empty if one
// can), the schedule that is chosen unless the user says otherwise (null if its
// tiles do not fit the machine's shared memory), why a schedule cannot run it,
// and the kernel, appended to `module`; the op itself stays.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_ATTENTIONKERNELS_H
#define LINATTN_LIB_GPU_ATTENTIONKERNELS_H

#include "linattn/Dialect/LinAttn.h"
#include "linattn/GPU/Machine.h"

namespace mlir::linattn {

/// Why the buffers of `op` suit none of the kernels: these need strided layouts
/// with unit innermost strides of tokens and states, static head counts and
/// head sizes, and no f64.
std::string whyNotBuffers(Operation *op);

/// Why an op, whose first operand are tokens, cannot have the summands of a
/// schedule.
std::string whyNotSummands(Operation *op, ScheduleAttr schedule);
/// The same schedule with so many.
ScheduleAttr withSummands(ScheduleAttr schedule, int64_t summands);
/// The same schedule with tiles copied so.
ScheduleAttr withCopy(ScheduleAttr schedule, CopyEngine copy);

std::string whyNotKernel(QuadraticOp op);
ScheduleAttr chooseSchedule(QuadraticOp op, const GPUMachine &machine,
                            int64_t summands);
/// `schedule` with copies by tensor maps; itself, and `why`, where they cannot
/// be.
ScheduleAttr chooseTensorMaps(QuadraticOp op, ScheduleAttr schedule,
                              const GPUMachine &machine, std::string &why);
std::string whyNotSchedule(QuadraticOp op, ScheduleAttr schedule);
LaunchOp buildKernel(QuadraticOp op, ScheduleAttr schedule, ModuleOp module,
                     StringRef name);

std::string whyNotKernel(StateOp op);
ScheduleAttr chooseSchedule(StateOp op, const GPUMachine &machine,
                            int64_t summands);
std::string whyNotSchedule(StateOp op, ScheduleAttr schedule);
/// A copy or fill of the state before the op becomes part of the kernel.
LaunchOp buildKernel(StateOp op, ScheduleAttr schedule, ModuleOp module,
                     StringRef name);

std::string whyNotKernel(ReadOp op);
ScheduleAttr chooseSchedule(ReadOp op, const GPUMachine &machine,
                            int64_t summands);
std::string whyNotSchedule(ReadOp op, ScheduleAttr schedule);
LaunchOp buildKernel(ReadOp op, ScheduleAttr schedule, ModuleOp module,
                     StringRef name);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_ATTENTIONKERNELS_H
