// RUN: linattn-opt %s --linattn-split-sweeps --canonicalize --cse | FileCheck %s --implicit-check-not=linattn.sweep
// RUN: linattn-opt %s --linattn-split-sweeps --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not linattn-opt %s --convert-linattn-to-linalg 2>&1 | FileCheck %s --check-prefix=LINALG
// RUN: linattn-run %s --entry=sweep --open-size=37 --compare=reference 2>&1 | FileCheck %s --check-prefix=EQUAL

// The states of all tokens, each channel a head, and their cotangents are scans of one row.

// REMARK: remark: [Passed] split-sweeps {{.*}}"the states of all its tokens are stored"
// LINALG: error: 'linattn.sweep_selective' op cannot be converted to linalg: run linattn-split-sweeps before
// EQUAL-COUNT-6: agrees with the reference
// CHECK-LABEL: func.func @sweep(
// CHECK:         linattn.scan {{.*}} value_decay(
// CHECK:         linattn.scan {{.*}} value_decay({{.*}} {reverse}
func.func @sweep(%u: tensor<2x?x6xf32>, %d: tensor<2x?x6xf32>, %a: tensor<6x3xf32>, %b: tensor<2x?x3xf32>, %h: tensor<2x6x3xf32>, %dy: tensor<2x?x6xf32>, %dh: tensor<2x6x3xf32>) -> (tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<6x3xf32>, tensor<2x?x3xf32>, tensor<2x?x3xf32>, tensor<2x6x3xf32>) {
  %c1 = arith.constant 1 : index
  %t = tensor.dim %u, %c1 : tensor<2x?x6xf32>
  %e = tensor.empty(%t) : tensor<2x?x6xf32>
  %f = tensor.empty(%t) : tensor<2x?x3xf32>
  %g = tensor.empty() : tensor<6x3xf32>
  %x = math.absf %d : tensor<2x?x6xf32>
  %y = math.absf %a : tensor<6x3xf32>
  %z = arith.negf %y : tensor<6x3xf32>
  %r:6 = linattn.sweep_selective %u, %x, %z, %b, %b start(%h) cotangent(%dy) into(%e, %e, %g, %f, %f) init(%dh)
    : (tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<6x3xf32>, tensor<2x?x3xf32>, tensor<2x?x3xf32>, tensor<2x6x3xf32>, tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<6x3xf32>, tensor<2x?x3xf32>, tensor<2x?x3xf32>, tensor<2x6x3xf32>) -> (tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<6x3xf32>, tensor<2x?x3xf32>, tensor<2x?x3xf32>, tensor<2x6x3xf32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<2x?x6xf32>, tensor<2x?x6xf32>, tensor<6x3xf32>, tensor<2x?x3xf32>, tensor<2x?x3xf32>, tensor<2x6x3xf32>
}
