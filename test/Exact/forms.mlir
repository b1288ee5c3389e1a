// RUN: linattn-run %s --all --open-size=1,21 --compare=exact
// RUN: linattn-run %s --all --open-size=7 --form=token --compare=exact
// RUN: linattn-run %s --entry=dplr --open-size=7 --form=segments:3 --compare=exact
// RUN: linattn-run %s --entry=vector_decay --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=exclusive --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=delta --open-size=1,21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=dplr --open-size=7,21 --form=chunk:5 --compare=exact

// The form chosen for this machine, its tiles, tails and padding included, has
// the naive loops' algebra.

func.func @add(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %m: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v mask(%m) into(%o) init(%s) {feature_map = #linattn.feature_map<elu1>, scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @vector_decay(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @both_decays(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %h: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) value_decay(%h) into(%o) init(%s) {reverse}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @exclusive(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %u: tensor<2x4xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) bonus(%u) readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<2x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @delta(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// Grouped heads, a normalizer and its running maximum, f16 tokens.
func.func @exponential(%q: tensor<1x4x?x4xf16>, %k: tensor<1x2x?x4xf16>, %v: tensor<1x2x?x4xf16>) -> tensor<1x4x?x4xf16> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x4x?x4xf16>, tensor<1x2x?x4xf16>, tensor<1x2x?x4xf16>) -> tensor<1x4x?x4xf16>
  return %o : tensor<1x4x?x4xf16>
}

// Blocks of keys with a running maximum: e^(a - m) e^m is e^a for any m.
func.func @softmax(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %m: tensor<1x?xi1>) -> tensor<1x2x?x3xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) weights(softmax) {causal, scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x?xi1>) -> tensor<1x2x?x3xf32>
  return %o : tensor<1x2x?x3xf32>
}

func.func @reassociated(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<relu2>, normalize = #linattn.normalize<floor = 0.01, clamp = 8.0>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32>
  return %o : tensor<1x2x?x3xf32>
}
