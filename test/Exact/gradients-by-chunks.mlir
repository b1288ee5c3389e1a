// RUN: linattn-opt %s "--linattn-differentiate=isolate chunk-size=8" --symbol-dce --canonicalize --cse --remarks-filter=linattn -o %t.chunks.mlir 2>&1 | FileCheck %s
// RUN: linattn-opt %s --linattn-differentiate=isolate --symbol-dce --canonicalize --cse > %t.scans.mlir
// RUN: linattn-run %t.chunks.mlir %t.scans.mlir --all --open-size=19 --target=reference --compare=exact
// RUN: linattn-run %t.chunks.mlir %t.scans.mlir --all --open-size=16 --compare=exact

// The gradient as a loop over chunks, of which the last one may be shorter, is that of scans and sweeps.

// CHECK: its gradient is a loop over chunks of 8 tokens
func.func @gated_delta(%q: tensor<2x2x?x16xf32>, %k: tensor<2x2x?x16xf32>, %v: tensor<2x2x?x32xf32>, %g: tensor<2x2x?xf32>, %beta: tensor<2x2x?xf32>, %s0: tensor<2x2x16x32xf32>) -> (tensor<2x2x?x32xf32>, tensor<2x2x16x32xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<2x2x?x16xf32>
  %dest = tensor.empty(%T) : tensor<2x2x?x32xf32>
  %o, %s = linattn.scan %q, %k, %v decay(%g) beta(%beta) update(delta) into(%dest) init(%s0) {scale = 0.25}
    : (tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>, tensor<2x2x?x32xf32>, tensor<2x2x?xf32>, tensor<2x2x?xf32>, tensor<2x2x?x32xf32>, tensor<2x2x16x32xf32>) -> (tensor<2x2x?x32xf32>, tensor<2x2x16x32xf32>)
  return %o, %s : tensor<2x2x?x32xf32>, tensor<2x2x16x32xf32>
}

// CHECK: its gradient is a loop over chunks of 8 tokens
func.func @delta(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %beta: tensor<1x2x?xf32>, %s0: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%dest) init(%s0)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK: its gradient is a loop over chunks of 8 tokens
func.func @decay(%q: tensor<1x2x?x32xf32>, %k: tensor<1x2x?x32xf32>, %v: tensor<1x2x?x16xf32>, %g: tensor<1x2x?xf32>, %s0: tensor<1x2x32x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x32x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x32xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v decay(%g) into(%dest) init(%s0)
    : (tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?x16xf32>, tensor<1x2x32x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x32x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x32x16xf32>
}

// CHECK: its gradient is scans and sweeps: a sweep of its state costs less
func.func @linear(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %s0: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v into(%dest) init(%s0)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK: its gradient is a loop over chunks of 8 tokens
func.func @kda(%q: tensor<2x1x?x16xf32>, %k: tensor<2x1x?x16xf32>, %v: tensor<2x1x?x32xf32>, %g: tensor<2x1x?x16xf32>, %beta: tensor<2x1x?xf32>, %s0: tensor<2x1x16x32xf32>) -> (tensor<2x1x?x32xf32>, tensor<2x1x16x32xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<2x1x?x16xf32>
  %dest = tensor.empty(%T) : tensor<2x1x?x32xf32>
  %o, %s = linattn.scan %q, %k, %v decay(%g) beta(%beta) update(delta) into(%dest) init(%s0) {scale = 0.25}
    : (tensor<2x1x?x16xf32>, tensor<2x1x?x16xf32>, tensor<2x1x?x32xf32>, tensor<2x1x?x16xf32>, tensor<2x1x?xf32>, tensor<2x1x?x32xf32>, tensor<2x1x16x32xf32>) -> (tensor<2x1x?x32xf32>, tensor<2x1x16x32xf32>)
  return %o, %s : tensor<2x1x?x32xf32>, tensor<2x1x16x32xf32>
}

// CHECK: its gradient is a loop over chunks of 8 tokens
func.func @channels(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %g: tensor<1x2x?x16xf32>, %s0: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v decay(%g) into(%dest) init(%s0)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK: its gradient is scans and sweeps: it has a bonus, or a gate of erasing, writing or value columns
func.func @columns(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %beta: tensor<1x2x?x16xf32>, %s0: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%dest) init(%s0)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK: its gradient is scans and sweeps: its features are not whole vectors
func.func @odd(%q: tensor<1x2x?x9xf32>, %k: tensor<1x2x?x9xf32>, %v: tensor<1x2x?x16xf32>, %beta: tensor<1x2x?xf32>, %s0: tensor<1x2x9x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x9x16xf32>) attributes {linattn.differentiate = array<i64>} {
  %c2 = arith.constant 2 : index
  %T = tensor.dim %q, %c2 : tensor<1x2x?x9xf32>
  %dest = tensor.empty(%T) : tensor<1x2x?x16xf32>
  %o, %s = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%dest) init(%s0)
    : (tensor<1x2x?x9xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?x16xf32>, tensor<1x2x9x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x9x16xf32>)
  return %o, %s : tensor<1x2x?x16xf32>, tensor<1x2x9x16xf32>
}
