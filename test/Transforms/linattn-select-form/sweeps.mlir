// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32' | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-form='form=token' | FileCheck %s --check-prefix=TOKEN
// RUN: linattn-opt %s --linattn-select-form='form=token' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=SPLIT

// A sweep has a schedule in chunks, for all lengths. In another form each of its reads is a scan.

// REMARK: remark: [Passed] select-form {{.*}}"both reads of its state in one pass"
// CHECK-LABEL: func.func @chunks(
// CHECK:         linattn.sweep {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}>}
// SPLIT: remark: [Missed] select-form {{.*}}"its two reads are scans of their own: its form is token"
// TOKEN-LABEL: func.func @chunks(
// TOKEN-COUNT-2: linattn.scan {{.*}}<form = token
// TOKEN-NOT:     linattn.sweep
func.func @chunks(%q: tensor<1x2x?x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %g: tensor<1x2x?xf32>, %x: tensor<1x2x?x64xf32>, %o: tensor<1x2x?x64xf32>, %p: tensor<1x2x?x64xf32>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>
}

// CHECK-LABEL: func.func @transition(
// CHECK:         linattn.sweep {{.*}} {config = #linattn.config<form = chunk,
func.func @transition(%q: tensor<1x2x?x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %g: tensor<1x2x?x64xf32>, %a: tensor<1x2x?x64xf32>, %b: tensor<1x2x?x64xf32>, %x: tensor<1x2x?x64xf32>, %o: tensor<1x2x?x64xf32>, %p: tensor<1x2x?x64xf32>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) a(%a) b(%b) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>
}
