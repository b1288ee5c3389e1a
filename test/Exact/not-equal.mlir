// RUN: not linattn-run %s --entry=inclusive --reference-entry=exclusive --open-size=7 --compare=exact --fields=2 | FileCheck %s --check-prefix=READ
// RUN: not linattn-run %s --entry=inclusive --reference-entry=scaled --open-size=7 --compare=exact | FileCheck %s --check-prefix=SCALE
// RUN: linattn-run %s --entry=sum --arg ones:3xf32 --compare=exact --fields=2 --json=%t.json | FileCheck %s --check-prefix=EQUAL
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: linattn-run %s %S/Inputs/sum.mlir --entry=sum --compare=exact --fields=2 | FileCheck %s --check-prefix=EQUAL
// RUN: linattn-run %s %S/Inputs/sum.mlir --entry=sum --compare=exact --fields=1 | FileCheck %s --check-prefix=ONE
// RUN: not linattn-run %s --entry=sum --compare=exact --fields=3 2>&1 | FileCheck %s --check-prefix=FIELDS
// RUN: not linattn-run %s --entry=sum --reference-entry=quotient --arg zeros:3xf32 --compare=exact | FileCheck %s --check-prefix=NAN
// RUN: not linattn-run %s --entry=sum --arg zeros:3xi32 --compare=exact 2>&1 | FileCheck %s --check-prefix=INTEGERS
// RUN: not linattn-run %s %s --entry=sum 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not linattn-run %s --entry=sum --reference-entry=inclusive --compare=exact 2>&1 | FileCheck %s --check-prefix=ARGUMENTS

// A difference is found and located. Both reads leave the same state.
// READ: result 0: not equal, first at [0, 0, 0, 0] modulo 2147483579
// READ: result 1: equal in both fields, 32 elements

// Too small a difference for floats.
// SCALE: result 0: not equal, first at [0, 0, 0, 0]

// EQUAL: result 0: equal in both fields, 6 elements
// ONE: result 0: equal in one field, 3 elements
// FIELDS: --fields: expected 1 or 2, but got 3
// JSON: "equal": true
// NAN: result 0: not equal, first at [0] modulo 2147483579 (not a number)
// INTEGERS: expected floats, but got 'zeros:3xi32'
// TWO: expected --compare=exact with two programs
// ARGUMENTS: --compare: expected 'sum' and 'inclusive' to have as many arguments and results

func.func @inclusive(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>, %v: tensor<1x1x?x4xf32>, %o: tensor<1x1x?x4xf32>, %s: tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>)
  return %r#0, %r#1 : tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>
}

func.func @exclusive(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>, %v: tensor<1x1x?x4xf32>, %o: tensor<1x1x?x4xf32>, %s: tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v readout(exclusive) into(%o) init(%s)
    : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>)
  return %r#0, %r#1 : tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>
}

func.func @scaled(%q: tensor<1x1x?x4xf32>, %k: tensor<1x1x?x4xf32>, %v: tensor<1x1x?x4xf32>, %o: tensor<1x1x?x4xf32>, %s: tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {scale = 1.0000002}
    : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>)
  return %r#0, %r#1 : tensor<1x1x?x4xf32>, tensor<1x1x4x4xf32>
}

func.func @sum(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = arith.addf %x, %x : tensor<3xf32>
  return %r : tensor<3xf32>
}

func.func @quotient(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = arith.divf %x, %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
