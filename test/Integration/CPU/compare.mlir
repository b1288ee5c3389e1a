// RUN: linattn-opt %s --linattn-reassociate=mode=always | linattn-run - --all --open-size=2,5 --compare=%s --json=%t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: not linattn-run %s --entry twice --open-size=3 --compare=%S/Inputs/other.mlir | FileCheck %s --check-prefix=DIFFERS
// RUN: not linattn-run %s --entry twice --open-size=3 --compare=%S/Inputs/none.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not linattn-run %s --entry thrice --open-size=3 --compare=%S/Inputs/other.mlir 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not linattn-run %s --all --arg ones:f32 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: cat %s | not linattn-run - --entry twice 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: echo "func" | not linattn-run - 2>&1 | FileCheck %s --check-prefix=STDIN

// A program and another one that should compute the same.

// CHECK:      @twice
// CHECK-NEXT: result 0: agrees with the reference
// CHECK-NEXT: result 0: agrees with the reference
// CHECK-NEXT: @thrice
// CHECK-NEXT: result 0: agrees with the reference
// CHECK-NEXT: result 0: agrees with the reference
// CHECK-NOT:  result

// JSON:      [
// JSON:        "entry": "twice"
// JSON:        "entry": "thrice"

// DIFFERS: result 0: differs from the reference
// NONE:    --compare: expected reference, exact or a program: {{.+}}none.mlir: error: cannot be read
// SHAPE:   --compare: expected result 0 as 4 f32, but got 3 f32
// ALL:     --all: expected neither --entry nor --arg nor --out
// OPEN:    argument 0 (%x): expected --arg, since its type tensor<?xf32> leaves the shape open
// STDIN:   <stdin>:1:{{.+}}: error:

func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @thrice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  %1 = arith.addf %0, %x : tensor<?xf32>
  return %1 : tensor<?xf32>
}
