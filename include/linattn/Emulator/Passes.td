//===- Passes.td - GPU kernels for the host ----------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_EMULATOR_PASSES_TD
#define LINATTN_EMULATOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnNVVMToHostPass
    : Pass<"linattn-nvvm-to-host", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn NVVM kernels into host code that calls the emulator";
  let description = [{
    Kernels become functions of a thread and of an array with the arguments, 64
    bits each. Operations that only a GPU has become calls: barriers, products
    of matrices, shuffles, asynchronous copies. Special registers are read from
    the thread. Every access to shared or global memory calls the emulator,
    which checks it, counts it and returns the address on the host; pointers are
    addresses of the emulated GPU, without address spaces. Attributes of the
    module record the source of each numbered operation and the bytes of static
    shared memory. An op without emulation is an error.

    Runs on the NVVM dialect, before `convert-nvvm-to-llvm`, which would leave
    inline assembly. See docs/Emulator.md.

    Before:

    ```mlir
    llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %a = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %x = llvm.load %a : !llvm.ptr<1> -> f32
      nvvm.barrier0
      …
    ```

    After:

    ```mlir
    llvm.func @k(%thread: !llvm.ptr, %arguments: !llvm.ptr) {
      %p = llvm.load %arguments : !llvm.ptr -> !llvm.ptr
      %t = llvm.load %thread : !llvm.ptr -> i32
      %a = llvm.getelementptr %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %data = llvm.call @linattn_emu_load(%thread, %a, %c4, %c4, %site0) : …
      %x = llvm.load %data {alignment = 1} : !llvm.ptr -> f32
      llvm.call @linattn_emu_barrier(%thread, %c0, %c0, %site1) : …
      …
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def LinAttnEmulateLaunchesPass
    : Pass<"linattn-emulate-launches", "::mlir::ModuleOp"> {
  let summary = "Launch kernels in the emulator, from host code";
  let description = [{
    Every `linattn.launch` and `gpu.launch_func` becomes a call of the emulator.
    Its operands are the text of the kernel's module, as a constant, and a
    record of the launch: the grid and the arguments of the launch plan, each
    buffer with its size in bytes. A memref argument of a `gpu.func` takes the
    upstream form: two pointers, offset, sizes, strides.

    Before:

    ```mlir
    linattn.launch @layer_scan::@layer_scan(%q, %k, %v, %o, %s) {linattn.launch_plan = …} : …
    gpu.module @layer_scan { … }
    ```

    After:

    ```mlir
    llvm.mlir.global internal constant @layer_scan__text("gpu.module @layer_scan { …")
    …
    %record = memref.alloca() : memref<27xi64>
    memref.store %gridX, %record[%c0] : memref<27xi64>
    …
    func.call @linattn_emulate_launch(%text, %name, %address) : (i64, i64, i64) -> ()
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

#endif // LINATTN_EMULATOR_PASSES_TD
