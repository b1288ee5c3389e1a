// RUN: linattn-opt %s --linattn-expand-form=tasks --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form=tasks --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline=through-chunks | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: linattn.chunk

// A task a head; what is left of the tokens is a chunk of five.

// CHECK-LABEL: func.func @known(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (2, 4)
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c16
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x16x16xf32>
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x5x16xf32>
// CHECK-NOT:     linattn.scan
// REMARK: [Passed] expand-form {{.*}}"becomes a loop over chunks of 16 tokens"
func.func @known(%q: tensor<2x4x37x16xf32>, %s: tensor<2x4x16x16xf32>) -> (tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>) -> (tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>)
  return %r#0, %r#1 : tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>
}

// Of a dynamic number, one by one.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.forall
// CHECK:           arith.remui
// CHECK:           scf.for
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x16x16xf32>
// CHECK:           scf.for
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x1x16xf32>
// CHECK-NOT:     linattn.scan
func.func @dynamic(%q: tensor<?x4x?x16xf32>, %s: tensor<?x4x16x16xf32>) -> (tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>) -> (tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>)
  return %r#0, %r#1 : tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>
}

// Other scans stay.

// CHECK-LABEL: func.func @grouped(
// CHECK:         linattn.scan
// REMARK: [Missed] expand-form {{.*}}"stays a scan: its operands' head counts differ or are dynamic"
func.func @grouped(%q: tensor<1x4x32x16xf32>, %k: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %k, %k into(%q) init(%s) : (tensor<1x4x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK-LABEL: func.func @channels(
// CHECK:         linattn.scan
// REMARK: "stays a scan: it has a decay per channel or a bonus"
func.func @channels(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q decay(%q) into(%q) init(%s) : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK-LABEL: func.func @narrow(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its head sizes are not static multiples of 16"
func.func @narrow(%q: tensor<1x2x32x8xf32>, %s: tensor<1x2x8x8xf32>) -> (tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>)
  return %r#0, %r#1 : tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>
}

// CHECK-LABEL: func.func @mapped(
// CHECK:         linattn.scan
// REMARK: "stays a scan: it has a feature map"
func.func @mapped(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<relu>} : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK-LABEL: func.func @scheduled(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its schedule is not chunks"
func.func @scheduled(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = state_tile>} : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>
}
