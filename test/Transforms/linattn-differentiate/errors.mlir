// RUN: linattn-opt %s --split-input-file --verify-diagnostics --linattn-differentiate

func.func @no_gradient(%x: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  // expected-error @+1 {{linattn-differentiate: 'math.cbrt' has no gradient yet}}
  %0 = math.cbrt %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @pool(%q: tensor<2x1x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x1x3x4xf32>, %i: tensor<2xi32>, %s: tensor<8x1x4x4xf32>) -> tensor<2x1x3x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %e = tensor.empty() : tensor<2x1x3x4xf32>
  // expected-error @+1 {{linattn-differentiate: 'linattn.scan' has no gradient yet for state_indices: their states are overwritten}}
  %r:2 = linattn.scan %q, %k, %v state_indices(%i) into(%e) init(%s)
    : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2xi32>, tensor<2x1x3x4xf32>, tensor<8x1x4x4xf32>) -> (tensor<2x1x3x4xf32>, tensor<8x1x4x4xf32>)
  return %r#0 : tensor<2x1x3x4xf32>
}

// -----

func.func @snapshots(%q: tensor<2x1x4x4xf32>, %s: tensor<2x1x4x4xf32>, %kept: tensor<2x2x1x4x4xf32>) -> tensor<2x1x4x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %e = tensor.empty() : tensor<2x1x4x4xf32>
  // expected-error @+1 {{linattn-differentiate: 'linattn.scan' has no gradient yet for snapshots of a reversed scan}}
  %r:3 = linattn.scan %q, %q, %q into(%e) init(%s) snapshots(%kept) {reverse, every = 2 : i64}
    : (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x2x1x4x4xf32>) -> (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x2x1x4x4xf32>)
  return %r#0 : tensor<2x1x4x4xf32>
}

// -----

func.func @oja(%q: tensor<2x1x4x4xf32>, %g: tensor<2x1x4x4xf32>, %b: tensor<2x1x4xf32>, %s: tensor<2x1x4x4xf32>) -> tensor<2x1x4x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %e = tensor.empty() : tensor<2x1x4x4xf32>
  // expected-error @+1 {{linattn-differentiate: 'linattn.scan' has no gradient yet for update(oja) with a decay of shape [B, H, T, K]}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) beta(%b) update(oja) into(%e) init(%s)
    : (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>) -> (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>)
  return %r#0 : tensor<2x1x4x4xf32>
}

// -----

func.func @columns(%q: tensor<2x1x4x4xf32>, %v: tensor<2x1x4x?xf32>, %s: tensor<2x1x4x?xf32>) -> tensor<2x1x4x?xf32> attributes {linattn.differentiate = array<i64: 0>} {
  // expected-error @+1 {{linattn-differentiate: 'linattn.scan' has no gradient yet for beta of shape [B, H, T, V] with a dynamic number of columns}}
  %r:2 = linattn.scan %q, %q, %v beta(%v) update(delta) into(%v) init(%s)
    : (tensor<2x1x4x4xf32>, tensor<2x1x4x4xf32>, tensor<2x1x4x?xf32>, tensor<2x1x4x?xf32>, tensor<2x1x4x?xf32>, tensor<2x1x4x?xf32>) -> (tensor<2x1x4x?xf32>, tensor<2x1x4x?xf32>)
  return %r#0 : tensor<2x1x4x?xf32>
}

// -----

func.func @levels(%q: tensor<2x?x4x4xf32>, %l: tensor<2x?x4x3xf32>, %s: tensor<2x?x3x4x4xf32>) -> tensor<2x?x4x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  // expected-error @+1 {{linattn-differentiate: 'linattn.log_linear' has no gradient yet for a dynamic number of heads}}
  %r:2 = linattn.log_linear %q, %q, %q levels(%l) into(%q) init(%s)
    : (tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>, tensor<2x?x4x3xf32>, tensor<2x?x4x4xf32>, tensor<2x?x3x4x4xf32>) -> (tensor<2x?x4x4xf32>, tensor<2x?x3x4x4xf32>)
  return %r#0 : tensor<2x?x4x4xf32>
}

// -----

// Ops inside of a loop need a gradient, too.
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    // expected-error @+1 {{linattn-differentiate: 'math.cbrt' has no gradient yet}}
    %0 = math.cbrt %y : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @product(%x: tensor<3x4xf32>, %s: tensor<3xf32>) -> tensor<3xf32> attributes {linattn.differentiate = array<i64: 0>} {
  // expected-error @+1 {{'linalg.reduce' has no gradient yet: expected a sum, a maximum or a minimum over the loops}}
  %0 = linalg.reduce { arith.mulf } ins(%x : tensor<3x4xf32>) outs(%s : tensor<3xf32>) dimensions = [1]
  return %0 : tensor<3xf32>
}

// -----

func.func @captured(%x: tensor<4xf32>, %w: f32) -> tensor<4xf32> attributes {linattn.differentiate = array<i64: 1>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{its body uses a value from outside that depends on what is differentiated}}
  %r = linalg.map ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
    (%a: f32, %out: f32) {
      %0 = arith.mulf %a, %w : f32
      linalg.yield %0 : f32
    }
  return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected operands of 'range' to be from 0 to 0, but got 3}}
func.func @range(%x: f32) -> f32 attributes {linattn.differentiate = array<i64: 3>} {
  return %x : f32
}

// -----

// expected-error @+1 {{expected operand 0 of 'integer' to be of a float type, but got 'i32'}}
func.func @integer(%x: i32) -> i32 attributes {linattn.differentiate = array<i64: 0>} {
  return %x : i32
}

// -----

// expected-error @+1 {{expected operand 0 of 'twice' to be listed once, but got it again}}
func.func @twice(%x: f32) -> f32 attributes {linattn.differentiate = array<i64: 0, 0>} {
  return %x : f32
}

// -----

// expected-error @+1 {{expected linattn.differentiate to be array<i64>, but got 3}}
func.func @attribute(%x: f32) -> f32 attributes {linattn.differentiate = 3 : i64} {
  return %x : f32
}

// -----

// expected-error @+1 {{expected no function 'taken_vjp', but the module has one}}
func.func @taken(%x: f32) -> f32 attributes {linattn.differentiate = array<i64: 0>} {
  return %x : f32
}
func.func private @taken_vjp()

// -----

// expected-error @+1 {{expected 'declared' to have a body of one block}}
func.func private @declared(f32) -> f32 attributes {linattn.differentiate = array<i64: 0>}

// -----

func.func @scale_of_attention(%q: tensor<2x1x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x1x3x4xf32>, %s: tensor<2x1x4x4xf32>, %scale: f64) -> tensor<2x1x3x4xf32> attributes {linattn.differentiate = array<i64: 0, 4>} {
  // expected-error @+1 {{linattn-differentiate: 'linattn.attention' has no gradient yet for a scale}}
  %r = linattn.attention %q, %k, %v scale(%scale) weights(softmax) : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, f64) -> tensor<2x1x3x4xf32>
  return %r : tensor<2x1x3x4xf32>
}

// -----

func.func @scale_of_quadratic(%q: tensor<2x1x3x4xf32>, %k: tensor<2x1x3x4xf32>, %v: tensor<2x1x3x4xf32>, %s: tensor<2x1x4x4xf32>, %scale: f64) -> tensor<2x1x3x4xf32> attributes {linattn.differentiate = array<i64: 0, 4>} {
  // expected-error @+1 {{linattn-differentiate: 'linattn.quadratic' has no gradient yet for a scale}}
  %r = linattn.quadratic %q, %k, %v scale(%scale) into(%k) : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, f64, tensor<2x1x3x4xf32>) -> tensor<2x1x3x4xf32>
  return %r : tensor<2x1x3x4xf32>
}

// -----

// Ops inside of a branch need a gradient, too.
func.func @branch(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64: 1>} {
  %r = scf.if %c -> tensor<4xf32> {
    // expected-error @+1 {{linattn-differentiate: 'math.cbrt' has no gradient yet}}
    %0 = math.cbrt %x : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @while(%x: f32) -> f32 attributes {linattn.differentiate = array<i64: 0>} {
  // expected-error @+1 {{linattn-differentiate: 'scf.while' has no gradient yet}}
  %r = scf.while (%y = %x) : (f32) -> f32 {
    %c = arith.cmpf olt, %y, %x : f32
    scf.condition(%c) %y : f32
  } do {
  ^bb0(%y: f32):
    scf.yield %y : f32
  }
  return %r : f32
}

// -----

// Which heads share others depends on their number.
func.func @heads(%q: tensor<2x?x4x4xf32>, %s: tensor<2x?x4x4xf32>) -> tensor<2x?x4x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  // expected-error @+1 {{linattn-differentiate: 'linattn.scan' has no gradient yet for a dynamic number of heads}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s)
    : (tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>) -> (tensor<2x?x4x4xf32>, tensor<2x?x4x4xf32>)
  return %r#0 : tensor<2x?x4x4xf32>
}
