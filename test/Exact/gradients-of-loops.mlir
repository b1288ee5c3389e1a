// RUN: linattn-opt %s --linattn-differentiate=isolate --symbol-dce --canonicalize --cse > %t.op.mlir
// RUN: linattn-opt %S/Inputs/gradients-of-loops.mlir --inline --linattn-differentiate=isolate --symbol-dce --canonicalize --cse > %t.loop.mlir
// RUN: linattn-run %t.op.mlir %t.loop.mlir --all --target=reference --compare=exact

// The gradients of these ops are those of loops over their tokens, which come from the rules of scf,
// linalg and arith alone: the same elements of both fields.

func.func @oja(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %h: tensor<1x1x5x3xf32>, %b: tensor<1x1x5xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x5x3xf32>
  %r:2 = linattn.scan %q, %k, %v value_decay(%h) beta(%b) update(oja) into(%dest) init(%S)
    : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x1x5xf32>, tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>
}

// A step of its own for every column.
func.func @columns(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %b: tensor<1x1x5x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x5x3xf32>
  %r:2 = linattn.scan %q, %k, %v beta(%b) update(delta) into(%dest) init(%S)
    : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>
}

// States after two and after four of five tokens.
func.func @snapshots(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x5x3xf32>
  %kept = tensor.empty() : tensor<1x2x1x4x3xf32>
  %r:3 = linattn.scan %q, %k, %v into(%dest) init(%S) snapshots(%kept) {every = 2 : i64}
    : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x3xf32>, tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>
}

// Sequences of two, none and three tokens, with three weights: two inputs of each are those of the state.
func.func @packed_conv(%x: tensor<1x5x2xf32>, %w: tensor<2x3xf32>, %s: tensor<3x2x2xf32>) -> (tensor<1x5x2xf32>, tensor<3x2x2xf32>) attributes {linattn.differentiate = array<i64>} {
  %n = arith.constant dense<[0, 2, 2, 5]> : tensor<4xi64>
  %dest = tensor.empty() : tensor<1x5x2xf32>
  %r:2 = linattn.causal_conv %x, %w cu_seqlens(%n) into(%dest) init(%s)
    : (tensor<1x5x2xf32>, tensor<2x3xf32>, tensor<4xi64>, tensor<1x5x2xf32>, tensor<3x2x2xf32>) -> (tensor<1x5x2xf32>, tensor<3x2x2xf32>)
  return %r#0, %r#1 : tensor<1x5x2xf32>, tensor<3x2x2xf32>
}

// The branch that was taken is walked backwards; what the other one uses gets zeros.
func.func @branches(%x: tensor<5x4xf32>, %w: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %t = %c0 to %c5 step %c1 iter_args(%state = %s) -> tensor<4xf32> {
    %xt = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<4xf32>
    %early = arith.cmpi slt, %t, %c3 : index
    %next = scf.if %early -> tensor<4xf32> {
      %0 = arith.mulf %state, %xt : tensor<4xf32>
      %1 = arith.addf %0, %state : tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } else {
      %0 = arith.mulf %state, %w : tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    }
    scf.yield %next : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
