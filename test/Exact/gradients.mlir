// RUN: linattn-opt %s --linattn-differentiate=isolate --symbol-dce --canonicalize --cse > %t.scan.mlir
// RUN: linattn-opt %S/Inputs/gradients-by-token.mlir --inline --linattn-differentiate=isolate --symbol-dce --canonicalize --cse > %t.token.mlir
// RUN: linattn-run %t.scan.mlir %t.token.mlir --all --target=reference --compare=exact
// RUN: linattn-opt %S/forms.mlir --linattn-differentiate=function=exclusive --canonicalize --cse \
// RUN:   | linattn-run - --entry=exclusive_vjp --open-size=21 --compare=exact
// RUN: linattn-opt %S/forms.mlir --linattn-differentiate=function=delta --canonicalize --cse \
// RUN:   | linattn-run - --entry=delta_vjp --open-size=9 --form=chunk:4 --compare=exact

// The gradient of a recurrence is the recurrences that docs/Gradients.md derives: the same
// elements of both fields as that of the tokens one by one. The forms that it runs in agree.

func.func @values(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %h: tensor<1x1x3x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x3x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) value_decay(%h) into(%dest) init(%S)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @exclusive(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x3x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) readout(exclusive) into(%dest) init(%S)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @delta(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %x: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x3x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) erase(%x) update(delta) into(%dest) init(%S)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @before(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %a: tensor<1x1x3x4xf32>, %b: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x3x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%dest) init(%S)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @after(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %a: tensor<1x1x3x4xf32>, %b: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %dest = tensor.empty() : tensor<1x1x3x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) readout(exclusive) into(%dest) init(%S)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}
