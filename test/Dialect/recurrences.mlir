// RUN: linattn-opt %s --verify-roundtrip | FileCheck %s

// Each optional clause of the recurrences beyond `linattn.scan`, on tensors and on
// buffers.

// CHECK-LABEL: func.func @selective_scan_plain(
// CHECK: linattn.selective_scan %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} into(%{{.+}}) init(%{{.+}}) : 
func.func @selective_scan_plain(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_all(
// CHECK: skip(%{{.+}}) gate(%{{.+}}) delta_bias(%{{.+}}) into(%{{.+}}) init(%{{.+}}) {delta_softplus, reverse}
func.func @selective_scan_all(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %skip: tensor<8xf32>, %gate: tensor<2x6x8xf32>, %delta_bias: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c skip(%skip) gate(%gate) delta_bias(%delta_bias) into(%into) init(%init) {delta_softplus, reverse}
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_complex(
// CHECK: a_imag(%{{.+}}) b_imag(%{{.+}}) c_imag(%{{.+}}) into(%{{.+}}) init(%{{.+}}) init_imag(%{{.+}})
func.func @selective_scan_complex(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<8x4xf32>, %a_imag: tensor<8x4xf32>, %b_imag: tensor<2x6x4xf32>, %c_imag: tensor<8x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>, %init_imag: tensor<2x8x4xf32>) {
  %r:3 = linattn.selective_scan %u, %delta, %a, %b, %c a_imag(%a_imag) b_imag(%b_imag) c_imag(%c_imag) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<8x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_fixed(
// CHECK: linattn.selective_scan
func.func @selective_scan_fixed(%u: tensor<?x?x?xbf16>, %delta: tensor<8xbf16>, %a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x4xf32>, %into: tensor<?x?x?xbf16>, %init: tensor<?x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<?x?x?xbf16>, tensor<8xbf16>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<?x?x?xbf16>, tensor<?x8x4xf32>) -> (tensor<?x?x?xbf16>, tensor<?x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_groups(
// CHECK: linattn.selective_scan
func.func @selective_scan_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x2x6x4xf32>, %c: tensor<2x2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_packed(
// CHECK: cu_seqlens(%{{.+}}) into
func.func @selective_scan_packed(%u: tensor<1x6x8xf32>, %delta: tensor<1x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<1x6x4xf32>, %c: tensor<1x6x4xf32>, %cu_seqlens: tensor<3xi32>, %into: tensor<1x6x8xf32>, %init: tensor<2x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8x4xf32>, tensor<1x6x4xf32>, tensor<1x6x4xf32>, tensor<3xi32>, tensor<1x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<1x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @diagonal_scan_real(
// CHECK: linattn.diagonal_scan %{{.+}} decay(%{{.+}}) into(%{{.+}}) init(%{{.+}}) : 
func.func @diagonal_scan_real(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// CHECK-LABEL: func.func @diagonal_scan_complex(
// CHECK: linattn.diagonal_scan %{{.+}} imag(%{{.+}}) decay(%{{.+}}) phase(%{{.+}}) into(%{{.+}}) into_imag(%{{.+}}) init(%{{.+}}) init_imag(%{{.+}}) {reverse}
func.func @diagonal_scan_complex(%x: tensor<2x6x8xf32>, %imag: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %into_imag: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf32>) {
  %r:4 = linattn.diagonal_scan %x imag(%imag) decay(%decay) phase(%phase) into(%into) into_imag(%into_imag) init(%init) init_imag(%init_imag) {reverse}
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// CHECK-LABEL: func.func @diagonal_scan_packed(
// CHECK: cu_seqlens(%{{.+}}) into
func.func @diagonal_scan_packed(%x: tensor<1x?x8xf64>, %decay: tensor<1x?x8xf32>, %cu_seqlens: tensor<?xi64>, %into: tensor<1x?x8xf64>, %init: tensor<?x8xf64>) {
  %r:2 = linattn.diagonal_scan %x decay(%decay) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x?x8xf64>, tensor<1x?x8xf32>, tensor<?xi64>, tensor<1x?x8xf64>, tensor<?x8xf64>) -> (tensor<1x?x8xf64>, tensor<?x8xf64>)
  return
}

// CHECK-LABEL: func.func @wkv4_plain(
// CHECK: linattn.wkv4 %{{.+}}, %{{.+}} decay(%{{.+}}) bonus(%{{.+}}) into(%{{.+}}) init(%{{.+}}) : 
func.func @wkv4_plain(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// CHECK-LABEL: func.func @wkv4_packed(
// CHECK: cu_seqlens(%{{.+}}) into(%{{.+}}) init(%{{.+}}) {reverse}
func.func @wkv4_packed(%k: tensor<1x?x8xf16>, %v: tensor<1x?x8xf16>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %cu_seqlens: tensor<?xi64>, %into: tensor<1x?x8xf16>, %init: tensor<?x3x8xf64>) {
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) cu_seqlens(%cu_seqlens) into(%into) init(%init) {reverse}
    : (tensor<1x?x8xf16>, tensor<1x?x8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<?xi64>, tensor<1x?x8xf16>, tensor<?x3x8xf64>) -> (tensor<1x?x8xf16>, tensor<?x3x8xf64>)
  return
}

// CHECK-LABEL: func.func @log_linear_plain(
// CHECK: linattn.log_linear %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) levels(%{{.+}}) into(%{{.+}}) init(%{{.+}}) : 
func.func @log_linear_plain(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// CHECK-LABEL: func.func @log_linear_all(
// CHECK: position(%{{.+}}) cu_seqlens(%{{.+}}) into(%{{.+}}) init(%{{.+}}) {scale = 1.250000e-01 : f64}
func.func @log_linear_all(%q: tensor<1x4x6x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>, %decay: tensor<1x2x6xf32>, %levels: tensor<1x2x6x4xf32>, %position: tensor<2xi64>, %cu_seqlens: tensor<3xi32>, %into: tensor<1x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) position(%position) cu_seqlens(%cu_seqlens) into(%into) init(%init) {scale = 1.250000e-01 : f64}
    : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6xf32>, tensor<1x2x6x4xf32>, tensor<2xi64>, tensor<3xi32>, tensor<1x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<1x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// CHECK-LABEL: func.func @selective_scan_buffers(
// CHECK: linattn.selective_scan
func.func @selective_scan_buffers(%u: memref<2x6x8xf32>, %delta: memref<2x6x8xf32>, %a: memref<8x4xf32>, %b: memref<2x6x4xf32>, %c: memref<2x6x4xf32>, %into: memref<2x6x8xf32>, %init: memref<2x8x4xf32>) {
  linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (memref<2x6x8xf32>, memref<2x6x8xf32>, memref<8x4xf32>, memref<2x6x4xf32>, memref<2x6x4xf32>, memref<2x6x8xf32>, memref<2x8x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @diagonal_scan_buffers(
// CHECK: linattn.diagonal_scan
func.func @diagonal_scan_buffers(%x: memref<2x6x8xf32>, %decay: memref<8xf32>, %into: memref<2x6x8xf32>, %init: memref<2x8xf32>) {
  linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (memref<2x6x8xf32>, memref<8xf32>, memref<2x6x8xf32>, memref<2x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @wkv4_buffers(
// CHECK: linattn.wkv4
func.func @wkv4_buffers(%k: memref<2x6x8xf32>, %v: memref<2x6x8xf32>, %decay: memref<8xf32>, %bonus: memref<8xf32>, %into: memref<2x6x8xf32>, %init: memref<2x3x8xf32>) {
  linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (memref<2x6x8xf32>, memref<2x6x8xf32>, memref<8xf32>, memref<8xf32>, memref<2x6x8xf32>, memref<2x3x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @log_linear_buffers(
// CHECK: linattn.log_linear
func.func @log_linear_buffers(%q: memref<2x4x6x8xf32>, %k: memref<2x2x6x8xf32>, %v: memref<2x2x6x8xf32>, %decay: memref<2x2x6xf32>, %levels: memref<2x2x6x4xf32>, %into: memref<2x4x6x8xf32>, %init: memref<2x2x4x8x8xf32>) {
  linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (memref<2x4x6x8xf32>, memref<2x2x6x8xf32>, memref<2x2x6x8xf32>, memref<2x2x6xf32>, memref<2x2x6x4xf32>, memref<2x4x6x8xf32>, memref<2x2x4x8x8xf32>) -> ()
  return
}
