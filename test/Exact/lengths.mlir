// RUN: linattn-run %s --all --open-size=5,21 --compare=exact
// RUN: linattn-run %s --entry=add_used --open-size=0,9 --compare=reference

// A sequence of up to 9 tokens is one chunk, a longer one several of 4; the
// first one does not read a state of zeros, the last one writes none that is
// not used. Where a state comes in and goes out, up to 5 tokens go one by one.

func.func @add(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @add_used(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @add_given(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @add_both(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, few = 5>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @decay(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @normalized(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %ez = tensor.empty() : tensor<1x2x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @gate(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {reverse, config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @gate_used(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @bonus(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %u: tensor<2x4xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) bonus(%u) readout(exclusive) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<2x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @delta(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @gated_delta(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}

func.func @gated_delta_used(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @kda_both(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, few = 5>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x3xf32>) -> (tensor<1x2x?x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x3xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 4, whole = 9>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0 : tensor<1x2x?x3xf32>
}
