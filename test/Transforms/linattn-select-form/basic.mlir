// RUN: linattn-opt %s --linattn-select-form | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form='form=chunk:32 vector-bits=256 registers=16' | FileCheck %s --check-prefix=CHUNK
// RUN: linattn-opt %s --linattn-select-form --linattn-select-form | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @dynamic(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}, few = {{[0-9]+}}>}
// CHUNK-LABEL: func.func @dynamic(
// CHUNK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 32, rows = 4, cols = 16, block = {{[0-9]+}}>}
// REMARK:      remark: [Passed] select-form {{.*}}"chunks of 16 tokens: cost {{[0-9]+}} per token and head, {{[0-9]+}} % of the peak of multiply-adds; state_tile {{[0-9]+}}, token {{[0-9]+}}"
func.func @dynamic(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>
}

// A step of decoding streams the state once.

// CHECK-LABEL: func.func @few(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token,
// REMARK:      remark: [Passed] select-form {{.*}}"token, {{.*}}: few tokens: {{.*}}"
func.func @few(%q: tensor<2x3x1x64xf32>, %o: tensor<2x3x1x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s)
    : (tensor<2x3x1x64xf32>, tensor<2x3x1x64xf32>, tensor<2x3x1x64xf32>, tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>
}

// A form in the source stays; the pass fills in the rest.

// CHECK-LABEL: func.func @given(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token, rows = 2, cols = 32,
// CHUNK-LABEL: func.func @given(
// CHUNK:         linattn.scan {{.*}} {config = #linattn.config<form = token, rows = 2, cols = 16,
// REMARK:      remark: [Passed] select-form {{.*}}"token, tile 2x32 over {{[0-9]+}} tokens: as requested; cost {{[0-9]+}}"
func.func @given(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token, rows = 2>} : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>
}

// f64 fills a register with half as many elements; state and read have no
// chunks.

// CHECK-LABEL: func.func @state_and_read(
// CHECK:         linattn.state {{.*}} {config = #linattn.config<form = state_tile, rows = 8, cols = 16,
// CHECK:         linattn.read {{.*}} {config = #linattn.config<form = state_tile, rows = 8, cols = 16,
// CHUNK-LABEL: func.func @state_and_read(
// CHUNK:         linattn.state {{.*}} {config = #linattn.config<form = state_tile, rows = 4, cols = 8,
// CHUNK:         linattn.read {{.*}} {config = #linattn.config<form = state_tile, rows = 4, cols = 8,
func.func @state_and_read(%q: tensor<2x3x40x64xf64>, %o: tensor<2x3x40x64xf64>, %s: tensor<2x3x64x64xf64>) -> tensor<2x3x40x64xf64> {
  %r = linattn.state %q, %q init(%s) : (tensor<2x3x40x64xf64>, tensor<2x3x40x64xf64>, tensor<2x3x64x64xf64>) -> tensor<2x3x64x64xf64>
  %t = linattn.read %q, %r into(%o) : (tensor<2x3x40x64xf64>, tensor<2x3x64x64xf64>, tensor<2x3x40x64xf64>) -> tensor<2x3x40x64xf64>
  return %t : tensor<2x3x40x64xf64>
}

// A rank-1 update: chunks for many tokens, one by one for a few.

// CHECK-LABEL: func.func @delta(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32,
// CHUNK-LABEL: func.func @delta(
// CHUNK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 32, rows = 4, cols = 16,
// REMARK:      remark: [Passed] select-form {{.*}}"chunks of 16 tokens: cost {{[0-9]+}} per token and head, {{.*}}token {{[0-9]+}}"
func.func @delta(%q: tensor<2x3x?x128xf32>, %b: tensor<2x3x?xf32>, %o: tensor<2x3x?x128xf32>, %s: tensor<2x3x128x128xf32>) -> tensor<2x3x?x128xf32> {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?xf32>, tensor<2x3x?x128xf32>, tensor<2x3x128x128xf32>) -> (tensor<2x3x?x128xf32>, tensor<2x3x128x128xf32>)
  return %r#0 : tensor<2x3x?x128xf32>
}

// CHECK-LABEL: func.func @few_deltas(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token,
// REMARK:      remark: [Passed] select-form {{.*}}"token, {{.*}}: few tokens: {{.*}}"
func.func @few_deltas(%q: tensor<2x3x1x64xf32>, %b: tensor<2x3x1xf32>, %o: tensor<2x3x1x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x3x1x64xf32>, tensor<2x3x1x64xf32>, tensor<2x3x1x64xf32>, tensor<2x3x1xf32>, tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x1x64xf32>, tensor<2x3x64x64xf32>
}
