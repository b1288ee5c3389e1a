// RUN: linattn-run %s %s --all --open-size=7 --target=linalg --form=chunk:3 --compare=exact

// Each clause of a scan in chunks of three tokens, by way of linalg: in prime
// fields what the scan says.

// Several queries and keys per state, backwards, with a mask.
func.func @grouped(%q: tensor<1x4x?x4xf32>, %k: tensor<1x1x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x4x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) mask(%mk) into(%o) init(%s) {reverse}
    : (tensor<1x4x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x?xi1>, tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>
}

// Decays per channel, a normaliser, a φ that is not 0 at 0.
func.func @normalized(%q: tensor<1x4x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x1x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x4x?x3xf32>, %s: tensor<1x2x4x3xf32>, %z: tensor<1x2x4xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>) {
  %r:3 = linattn.scan %q, %k, %v decay(%dy) mask(%mk) into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, reverse}
    : (tensor<1x4x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x1x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x?xi1>, tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>
}

// The stabilised exponential, whose maximum does not decay.
func.func @exponential(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>, %z: tensor<1x2x4xf32>, %x: tensor<1x2xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) {
  %r:4 = linattn.scan %q, %k, %v decay(%dy) mask(%mk) into(%o) init(%s) normalizer(%z) running_max(%x) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>
}

// An input gate, backwards, with a mask.
func.func @input_gate(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?xf32>, %ie: tensor<1x2x?xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>, %z: tensor<1x2x4xf32>, %x: tensor<1x2xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) {
  %r:4 = linattn.scan %q, %k, %v decay(%dy) input_gate(%ie) mask(%mk) into(%o) init(%s) normalizer(%z) running_max(%x) {normalize = #linattn.normalize<abs_floor = 1.0>, reverse}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>
}

// A bonus for the own token.
func.func @bonus(%q: tensor<1x4x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %bs: tensor<2x4xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x4x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) bonus(%bs) mask(%mk) readout(exclusive) into(%o) init(%s) {feature_map = #linattn.feature_map<elu1>}
    : (tensor<1x4x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<2x4xf32>, tensor<1x?xi1>, tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x4x?x3xf32>, tensor<1x2x4x3xf32>
}

// Gates per channel and column, backwards.
func.func @gates(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %ba: tensor<1x2x?x3xf32>, %ee: tensor<1x2x?x4xf32>, %we: tensor<1x2x?x3xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) beta(%ba) erase(%ee) write(%we) mask(%mk) update(delta) into(%o) init(%s) {reverse}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// A transition before the decay, read before the token.
func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %aa: tensor<1x2x?x4xf32>, %bb: tensor<1x2x?x4xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) a(%aa) b(%bb) mask(%mk) update(dplr) readout(exclusive) transition(before) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// Oja's rule, token by token.
func.func @oja(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?xf32>, %vy: tensor<1x2x?x3xf32>, %ba: tensor<1x2x?xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) value_decay(%vy) beta(%ba) mask(%mk) update(oja) into(%o) init(%s) {reverse}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// Decays of columns and a bonus.
func.func @columns(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %dy: tensor<1x2x?x4xf32>, %vy: tensor<1x2x?x3xf32>, %bs: tensor<2x4xf32>, %o: tensor<1x2x?x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) value_decay(%vy) bonus(%bs) readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<2x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x?x3xf32>, tensor<1x2x4x3xf32>
}

// A state wider than the tokens.
func.func @wide_state(%q: tensor<1x2x?x4xbf16>, %k: tensor<1x2x?x4xbf16>, %v: tensor<1x2x?x3xbf16>, %dy: tensor<1x2x?x4xbf16>, %ba: tensor<1x2x?xbf16>, %o: tensor<1x2x?x3xbf16>, %s: tensor<1x2x4x3xf64>) -> (tensor<1x2x?x3xbf16>, tensor<1x2x4x3xf64>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) beta(%ba) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xbf16>, tensor<1x2x?x4xbf16>, tensor<1x2x?x3xbf16>, tensor<1x2x?x4xbf16>, tensor<1x2x?xbf16>, tensor<1x2x?x3xbf16>, tensor<1x2x4x3xf64>) -> (tensor<1x2x?x3xbf16>, tensor<1x2x4x3xf64>)
  return %r#0, %r#1 : tensor<1x2x?x3xbf16>, tensor<1x2x4x3xf64>
}

// Nothing is known but the sizes of rows.
func.func @dynamic(%q: tensor<?x?x?x4xf32>, %k: tensor<?x?x?x4xf32>, %v: tensor<?x?x?x3xf32>, %dy: tensor<?x?x?xf32>, %ba: tensor<?x?x?xf32>, %mk: tensor<?x?xi1>, %o: tensor<?x?x?x3xf32>, %s: tensor<?x?x4x3xf32>) -> (tensor<?x?x?x3xf32>, tensor<?x?x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%dy) beta(%ba) mask(%mk) update(delta) into(%o) init(%s)
    : (tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x?x3xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?xi1>, tensor<?x?x?x3xf32>, tensor<?x?x4x3xf32>) -> (tensor<?x?x?x3xf32>, tensor<?x?x4x3xf32>)
  return %r#0, %r#1 : tensor<?x?x?x3xf32>, tensor<?x?x4x3xf32>
}

// Chunks of a known size.
func.func @whole_chunks(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x3xf32>, %ba: tensor<1x2x6xf32>, %o: tensor<1x2x6x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x6x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v beta(%ba) update(delta) into(%o) init(%s)
    : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x3xf32>, tensor<1x2x6xf32>, tensor<1x2x6x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x6x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x6x3xf32>, tensor<1x2x4x3xf32>
}

// The halves of a scan.
func.func @halves(%q: tensor<1x4x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>, %o: tensor<1x4x?x3xf32>) -> tensor<1x4x?x3xf32> {
  %s1 = linattn.state %k, %v decay(%g) init(%s) {reverse, feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r = linattn.read %q, %s1 into(%o) {scale = 0.5, feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<1x4x?x4xf32>, tensor<1x2x4x3xf32>, tensor<1x4x?x3xf32>) -> tensor<1x4x?x3xf32>
  return %r : tensor<1x4x?x3xf32>
}

// A read of what an input gate has written.
func.func @read(%q: tensor<1x4x?x4xf32>, %s: tensor<1x2x4x3xf32>, %z: tensor<1x2x4xf32>, %m: tensor<1x2xf32>, %o: tensor<1x4x?x3xf32>) -> tensor<1x4x?x3xf32> {
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<1x4x?x4xf32>, tensor<1x2x4x3xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>, tensor<1x4x?x3xf32>) -> tensor<1x4x?x3xf32>
  return %r : tensor<1x4x?x3xf32>
}
