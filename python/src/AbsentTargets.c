/*===- AbsentTargets.c - What a wheel leaves out of LLVM ------------------===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* MLIR's attributes of AMD's and SPIR-V's GPUs initialise these backends of  *|
|* LLVM, a third of its code, which linattn does not lower to. Here they      *|
|* register nothing; a module that names such a target fails to serialise     *|
|* with the message that the target is unknown.                               *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include <stdint.h>
#include <sys/random.h>

#define ABSENT(name)                                                           \
  void LLVMInitialize##name(void) {}

ABSENT(AMDGPUAsmParser)
ABSENT(AMDGPUAsmPrinter)
ABSENT(AMDGPUTarget)
ABSENT(AMDGPUTargetInfo)
ABSENT(AMDGPUTargetMC)
ABSENT(SPIRVAsmPrinter)
ABSENT(SPIRVTarget)
ABSENT(SPIRVTargetInfo)
ABSENT(SPIRVTargetMC)

/* LLVM takes it from glibc 2.36 where it was built with one; older systems lack
 * it. The bytes name temporary files. */
uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  return number;
}
