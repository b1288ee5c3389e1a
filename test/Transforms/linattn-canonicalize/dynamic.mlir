// RUN: linattn-opt %s --linattn-canonicalize | FileCheck %s

// CHECK-LABEL: func.func @permute(
// CHECK-NEXT:    return %arg0
func.func @permute(%x: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %y = linattn.permute %x [0, 2, 1, 3] : tensor<?x?x?x?xf32> to tensor<?x?x?x?xf32>
  %z = linattn.permute %y [0, 2, 1, 3] : tensor<?x?x?x?xf32> to tensor<?x?x?x?xf32>
  return %z : tensor<?x?x?x?xf32>
}
