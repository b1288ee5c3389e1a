// RUN: linattn-run %s --entry=additive --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=simple_gla --open-size=21 --compare=exact
// RUN: linattn-run %s --entry=simple_gla --reference-entry=gla --open-size=21 --form=state_tile --compare=exact
// RUN: linattn-run %s --entry=deltanet --reference-entry=gdn_without_decay --open-size=21 --compare=exact
// RUN: linattn-run %s --entry=gdn --reference-entry=kda --open-size=21 --compare=exact
// RUN: linattn-run %s --entry=kda --reference-entry=dplr --open-size=21 --compare=exact
// RUN: linattn-run %s --entry=deltanet --reference-entry=gdn_without_decay --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=gdn --reference-entry=kda --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=kda --reference-entry=dplr --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=dplr --reference-entry=gdn --open-size=21 --form=chunk:8 --compare=exact


// Families that are one another's special cases.

func.func @additive(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// One decay for all channels, given once or per channel.
func.func @simple_gla(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @gla(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %c2 = arith.constant 2 : index
  %size = tensor.dim %q, %c2 : tensor<1x2x?x4xf32>
  %e = tensor.empty(%size) : tensor<1x2x?x4xf32>
  %channels = linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t)>, affine_map<(b, h, t, d) -> (b, h, t, d)>],
                              iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%g : tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<1x2x?x4xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%channels) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// A decay of e^0 is none.
func.func @deltanet(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @gdn_without_decay(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %size = tensor.dim %q, %c2 : tensor<1x2x?x4xf32>
  %e = tensor.empty(%size) : tensor<1x2x?xf32>
  %none = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x?xf32>) -> tensor<1x2x?xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%none) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @gdn(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @kda(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %c2 = arith.constant 2 : index
  %size = tensor.dim %q, %c2 : tensor<1x2x?x4xf32>
  %e = tensor.empty(%size) : tensor<1x2x?x4xf32>
  %channels = linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t)>, affine_map<(b, h, t, d) -> (b, h, t, d)>],
                              iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%g : tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<1x2x?x4xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%channels) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// The delta rule is a rank-one transition: a = -k, b = beta k, written beta k.
func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %c2 = arith.constant 2 : index
  %size = tensor.dim %q, %c2 : tensor<1x2x?x4xf32>
  %e = tensor.empty(%size) : tensor<1x2x?x4xf32>
  %channels = linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t)>, affine_map<(b, h, t, d) -> (b, h, t, d)>],
                              iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%g : tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<1x2x?x4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t, d)>, affine_map<(b, h, t, d) -> (b, h, t, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k : tensor<1x2x?x4xf32>) outs(%e : tensor<1x2x?x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  } -> tensor<1x2x?x4xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(b, h, t, d) -> (b, h, t, d)>, affine_map<(b, h, t, d) -> (b, h, t)>, affine_map<(b, h, t, d) -> (b, h, t, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %b : tensor<1x2x?x4xf32>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x4xf32>) {
  ^bb0(%x: f32, %beta: f32, %y: f32):
    %p = arith.mulf %x, %beta : f32
    linalg.yield %p : f32
  } -> tensor<1x2x?x4xf32>
  %r:2 = linattn.scan %q, %w, %v decay(%channels) a(%a) b(%w) update(dplr) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}
