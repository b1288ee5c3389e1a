// RUN: linattn-opt %s --pass-pipeline='builtin.module(linattn-bufferize-pipeline,linattn-lower-to-llvm-pipeline)' | FileCheck %s
// RUN: linattn-opt %s --pass-pipeline='builtin.module(linattn-bufferize-pipeline{innermost=dynamic},linattn-lower-to-llvm-pipeline{parallel=false})' | FileCheck %s --check-prefix=SEQUENTIAL

// CHECK:         llvm.func @linattn_parallel_for(i64, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL:   llvm.func @scale(
// CHECK:           llvm.call @linattn_parallel_for
// CHECK-LABEL:   llvm.func @scale__task(
// No function is called, and no cast is left over.
// CHECK-NOT:     builtin.unrealized_conversion_cast
// CHECK-NOT:     llvm.call @
// CHECK-LABEL:   llvm.func @scale__shapes(

// SEQUENTIAL-NOT:     linattn_parallel_for
// SEQUENTIAL-LABEL: llvm.func @scale(
// SEQUENTIAL-NOT:     builtin.unrealized_conversion_cast
func.func private @factor(%x: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %0 = linalg.exp ins(%x : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func @scale(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x16xf32> {
    %s = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<?x16xf32> to tensor<16xf32>
    %v = func.call @factor(%s) : (tensor<16xf32>) -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<?x16xf32>
    }
  }
  return %r : tensor<?x16xf32>
}
