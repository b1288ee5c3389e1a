// RUN: linattn-opt %s --linattn-check-shapes=check-decays | FileCheck %s
// RUN: linattn-opt %s --linattn-check-shapes | FileCheck %s --check-prefix=UNASKED
// RUN: linattn-opt %s --linattn-check-shapes=check-decays --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-run %s --check-decays --entry=tokens --arg random:1x2x5x4xf32 --arg zeros:1x2x5xf32 --arg zeros:1x2x4x4xf32 --arg zeros:1x2x5x4xf32
// RUN: not linattn-run %s --check-decays --entry=tokens --arg random:1x2x5x4xf32 --arg ones:1x2x5xf32 --arg zeros:1x2x4x4xf32 --arg zeros:1x2x5x4xf32 2>&1 | FileCheck %s --check-prefix=POSITIVE
// RUN: linattn-run %s --entry=tokens --arg random:1x2x5x4xf32 --arg ones:1x2x5xf32 --arg zeros:1x2x4x4xf32 --arg zeros:1x2x5x4xf32
// RUN: not linattn-run %s --check-decays --target=reference --entry=both --arg random:1x5x2x4xf32 --arg zeros:2xbf16 --arg ones:1x5x2x4xf32 --arg zeros:1x2x4x4xf32 --arg zeros:1x2x5x4xf32 2>&1 | FileCheck %s --check-prefix=VALUE

// With the option, the decays among the arguments are looked at before
// anything runs, in the layout they come in.

// CHECK-LABEL: func.func @tokens__shapes(
// CHECK-SAME:    "linattn.scan: expected decay to be natural logarithms of at most 0, but got a positive number at [{0}, {1}, {2}]",
// CHECK-SAME:    "linattn.scan: expected decay to be natural logarithms of at most 0, but got NaN at [{0}, {1}, {2}]"
// CHECK-NOT:     linattn.scan {{%}}
// CHECK:         arith.cmpf ugt
// UNASKED-NOT:   arith.cmpf
// POSITIVE:    'tokens': linattn.scan: expected decay to be natural logarithms of at most 0, but got a positive number at [0, 0, 0]
func.func @tokens(%x: tensor<1x2x?x4xf32>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x4x4xf32>, %o: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %r:2 = linattn.scan %x, %x, %x decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// Through a permutation and a widening, of which each keeps every element.

// CHECK-LABEL: func.func @both__shapes(
// CHECK-SAME:    expected decay {{[^"]*}} positive number at [{0}]"
// CHECK-SAME:    expected value_decay {{[^"]*}} positive number at [{0}, {1}, {2}, {3}]"
// VALUE:       'both': linattn.scan: expected value_decay to be natural logarithms of at most 0, but got a positive number at [0, 0, 0, 0]
func.func @both(%x: tensor<1x5x2x4xf32>, %g: tensor<2xbf16>, %w: tensor<1x5x2x4xf32>, %s: tensor<1x2x4x4xf32>, %o: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %px = linattn.permute %x [0, 2, 1, 3] : tensor<1x5x2x4xf32> to tensor<1x2x5x4xf32>
  %pw = linattn.permute %w [0, 2, 1, 3] : tensor<1x5x2x4xf32> to tensor<1x2x5x4xf32>
  %wide = arith.extf %g : tensor<2xbf16> to tensor<2xf32>
  %r:2 = linattn.scan %px, %px, %px decay(%wide) value_decay(%pw) into(%o) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<2xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x5x4xf32>
}

// Computed decays are not checked: they are not arguments.

// CHECK-LABEL: func.func @computed__shapes(
// CHECK-SAME:    linattn.checks = []
// REMARK:      [Missed] check-shapes {{.*}}"decay is not checked: it is not an argument of the function"
func.func @computed(%x: tensor<1x2x5x4xf32>, %g: tensor<1x2x5xf32>, %s: tensor<1x2x4x4xf32>, %o: tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %negative = arith.negf %g : tensor<1x2x5xf32>
  %r:2 = linattn.scan %x, %x, %x decay(%negative) into(%o) init(%s)
    : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5xf32>, tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x5x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x5x4xf32>
}
