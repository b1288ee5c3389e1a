// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK:         %{{.*}}:3 = linattn.sweep %{{.*}}, %{{.*}}, %{{.*}} value_query(%{{.*}}) into(%{{.*}}, %{{.*}}) init(%{{.*}}) : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
func.func @plain(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

// CHECK-LABEL: func.func @all(
// CHECK:         linattn.sweep %{{.*}} decay(%{{.*}}) a(%{{.*}}) b(%{{.*}}) value_query(%{{.*}}) cu_seqlens(%{{.*}}) readout(exclusive) into(%{{.*}}, %{{.*}}) init(%{{.*}}) {reverse, scale = 5.000000e-01 : f64}
func.func @all(%q: memref<1x2x?x4xbf16>, %k: memref<1x2x?x4xbf16>, %v: memref<1x2x?x3xbf16>, %g: memref<1x2x?xbf16>, %a: memref<1x2x?x4xbf16>, %b: memref<1x2x?x4xbf16>, %x: memref<1x2x?x3xbf16>, %n: memref<?xi64>, %o: memref<1x2x?x3xbf16>, %p: memref<1x2x?x4xbf16>, %s: memref<?x2x4x3xf32>) {
  linattn.sweep %q, %k, %v decay(%g) a(%a) b(%b) value_query(%x) cu_seqlens(%n) readout(exclusive) into(%o, %p) init(%s) {reverse, scale = 0.5}
    : (memref<1x2x?x4xbf16>, memref<1x2x?x4xbf16>, memref<1x2x?x3xbf16>, memref<1x2x?xbf16>, memref<1x2x?x4xbf16>, memref<1x2x?x4xbf16>, memref<1x2x?x3xbf16>, memref<?xi64>, memref<1x2x?x3xbf16>, memref<1x2x?x4xbf16>, memref<?x2x4x3xf32>) -> ()
  return
}

// -----

func.func @W1_query(%q: tensor<1x2x5x3xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 3 and 4}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W1_value_output(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected value_output and key to have the same head size, but got 3 and 4}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W1_value_query(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x4xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected value_query and value to have the same value size, but got 4 and 3}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W1_output(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x4xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected output and value to have the same value size, but got 4 and 3}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W2_batch(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<2x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected value and key to have the same batch size, but got 2 and 1}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<2x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W2_heads(%q: tensor<1x4x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected query and key to have the same head count, but got 4 and 2}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x4x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W2_tokens(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x6x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected value_query and key to have the same sequence length, but got 6 and 5}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x6x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W3(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf16>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected query and value_query to have the same element type, but got 'f32' and 'f16'}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf16>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W4_type(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf16>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf16>) {
  // expected-error @+1 {{expected state to have element type 'f32' or 'f64', but got 'f16'}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf16>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf16>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf16>
}

// -----

func.func @W4_batch(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<2x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>) {
  // expected-error @+1 {{expected state and key to have the same batch size, but got 2 and 1}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>
}

// -----

func.func @W4_heads(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x1x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x1x4x3xf32>) {
  // expected-error @+1 {{expected state and key to have the same head count, but got 1 and 2}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x1x4x3xf32>
}

// -----

func.func @W4_keys(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x5x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>) {
  // expected-error @+1 {{expected state and key to have the same head size, but got 5 and 4}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>
}

// -----

func.func @W4_values(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>) {
  // expected-error @+1 {{expected state and value to have the same value size, but got 4 and 3}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>
}

// -----

func.func @W5_heads(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %g: tensor<3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 3 and 2}}
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W5_tokens(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %g: tensor<1x2x6xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected decay and key to have the same sequence length, but got 6 and 5}}
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x6xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W5_channels(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %g: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected decay and key to have the same head size, but got 3 and 4}}
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W5_rank(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %a: tensor<1x2x5x4xf32>, %b: tensor<1x2x5xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected b to be [B, H, T, K], but got 'tensor<1x2x5xf32>'}}
  %r:3 = linattn.sweep %q, %k, %v a(%a) b(%b) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W6(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %a: tensor<1x2x5x4xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected both a and b or neither, but got only a}}
  %r:3 = linattn.sweep %q, %k, %v a(%a) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W7_batch(%q: tensor<2x2x5x4xf32>, %k: tensor<2x2x5x4xf32>, %v: tensor<2x2x5x3xf32>, %x: tensor<2x2x5x3xf32>, %n: tensor<?xi64>, %o: tensor<2x2x5x3xf32>, %p: tensor<2x2x5x4xf32>, %s: tensor<2x2x4x3xf32>) -> (tensor<2x2x5x3xf32>, tensor<2x2x5x4xf32>, tensor<2x2x4x3xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) cu_seqlens(%n) into(%o, %p) init(%s)
    : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x3xf32>, tensor<2x2x5x3xf32>, tensor<?xi64>, tensor<2x2x5x3xf32>, tensor<2x2x5x4xf32>, tensor<2x2x4x3xf32>) -> (tensor<2x2x5x3xf32>, tensor<2x2x5x4xf32>, tensor<2x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x2x5x3xf32>, tensor<2x2x5x4xf32>, tensor<2x2x4x3xf32>
}

// -----

func.func @W7_states(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %n: tensor<2xi64>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<2x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>) {
  // expected-error @+1 {{expected the batch size of state to be one less than the length of cu_seqlens (2), but got 2}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) cu_seqlens(%n) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<2xi64>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<2x2x4x3xf32>
}

// -----

func.func @W8(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got 1.0}}
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s) {scale = 1.0e-300}
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

func.func @W9(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %x: tensor<1x2x5x3xf32>, %o: tensor<1x2x5x3xf32>, %p: tensor<1x2x5x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) {
  %g = arith.constant dense<[-0.5, 0.25]> : tensor<2xf32>
  // expected-error @+1 {{expected decay to hold natural logarithms of at most 0, but got 0.25 at element 1}}
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<2xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>
}

// -----

// CHECK-LABEL: func.func @decay_writes(
// CHECK:         linattn.sweep {{.*}} decay({{.*}}) {{.*}} {decay_writes}
func.func @decay_writes(%k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %g: tensor<2xf32>, %s: tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %k, %k, %v decay(%g) value_query(%v) into(%v, %k) init(%s) {decay_writes}
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<2xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return
}

// -----

func.func @W10_decay(%k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %s: tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected decay_writes with a decay and without a and b, but got no decay}}
  %r:3 = linattn.sweep %k, %k, %v value_query(%v) into(%v, %k) init(%s) {decay_writes}
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return
}

// -----

func.func @W10_transition(%k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x3xf32>, %g: tensor<2xf32>, %s: tensor<1x2x4x3xf32>) {
  // expected-error @+1 {{expected decay_writes with a decay and without a and b, but got a}}
  %r:3 = linattn.sweep %k, %k, %v decay(%g) a(%k) b(%k) value_query(%v) into(%v, %k) init(%s) {decay_writes}
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<2xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x5x3xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x3xf32>)
  return
}
