// RUN: linattn-run %s --all --open-size=1,7 --compare=exact
// RUN: linattn-run %s --entry=exponentials --open-size=9 --form=chunk:4 --compare=exact
// RUN: linattn-run %s --entry=exponentials --open-size=9 --form=segments:4 --compare=exact
// RUN: linattn-run %s --entry=polynomials --open-size=9 --form=chunk:4 --compare=exact
// RUN: linattn-run %s --entry=favor_hyperbolic --reference-entry=favor_of_both_signs --open-size=7 --compare=exact
// RUN: linattn-run %s --entry=favor --reference-entry=favor_from_logarithms --open-size=7 --compare=exact
// RUN: linattn-run %s --entry=hedgehog --reference-entry=hedgehog_from_exponentials --open-size=7 --compare=exact
// RUN: linattn-run %s --entry=softmax --reference-entry=softmax_from_exponentials --open-size=7 --compare=exact
// RUN: not linattn-run %s --entry=favor --reference-entry=favor_of_half --open-size=7 --compare=exact

// Maps of whole tokens in vectors and as naive loops, alone and before a scan.
// Sums, products and exponentials keep their laws; sin, cos, sqrt and whatever
// else they are made of are fixed random functions, of which a proof may not
// know anything.

func.func @softmax(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<softmax>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  return %r : tensor<2x3x?x8xf32>
}

func.func @l2norm(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<l2norm>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  return %r : tensor<2x3x?x8xf32>
}

func.func @sum_norm(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<sum_norm>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  return %r : tensor<2x3x?x8xf32>
}

func.func @favor(%x: tensor<2x3x?x8xf32>, %w0: tensor<6x8xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}

func.func @favor_per_head(%x: tensor<2x3x?x8xf32>, %w0: tensor<3x6x8xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<3x6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}

func.func @favor_hyperbolic(%x: tensor<2x3x?x8xf32>, %w0: tensor<6x8xf32>, %o: tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<favor_hyperbolic>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  return %r : tensor<2x3x?x12xf32>
}

func.func @random_fourier(%x: tensor<2x3x?x8xf32>, %w0: tensor<3x6x8xf32>, %o: tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<random_fourier>} : (tensor<2x3x?x8xf32>, tensor<3x6x8xf32>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  return %r : tensor<2x3x?x12xf32>
}

func.func @random_fourier_exp(%x: tensor<2x3x?x8xf32>, %w0: tensor<6x8xf32>, %o: tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<random_fourier_exp>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  return %r : tensor<2x3x?x12xf32>
}

func.func @t2r(%x: tensor<2x3x?x8xf32>, %w0: tensor<6x8xf32>, %w1: tensor<3x6xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %r = linattn.feature_map %x params(%w0, %w1) into(%o) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<3x6xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}

func.func @hadamard(%x: tensor<2x3x?x8xf32>, %w0: tensor<6x8xf32>, %w1: tensor<3x6x8xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %r = linattn.feature_map %x params(%w0, %w1) into(%o) {feature_map = #linattn.feature_map<hadamard>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<3x6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}

func.func @cosformer(%x: tensor<2x3x?x8xf32>, %p: tensor<?xi32>, %o: tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32> {
  %r = linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 64>} : (tensor<2x3x?x8xf32>, tensor<?xi32>, tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32>
  return %r : tensor<2x3x?x16xf32>
}

func.func @hedgehog(%x: tensor<2x3x?x8xf32>, %w0: tensor<8x8xf32>, %o: tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<hedgehog>} : (tensor<2x3x?x8xf32>, tensor<8x8xf32>, tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32>
  return %r : tensor<2x3x?x16xf32>
}

func.func @hedgehog_exp(%x: tensor<2x3x?x8xf32>, %w0: tensor<8x8xf32>, %o: tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32> {
  %r = linattn.feature_map %x params(%w0) into(%o) {feature_map = #linattn.feature_map<hedgehog_exp, log = true>} : (tensor<2x3x?x8xf32>, tensor<8x8xf32>, tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32>
  return %r : tensor<2x3x?x16xf32>
}

func.func @dpfp(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x48xf32>) -> tensor<2x3x?x48xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<dpfp, shifts = 3>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x48xf32>) -> tensor<2x3x?x48xf32>
  return %r : tensor<2x3x?x48xf32>
}

func.func @taylor(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x45xf32>) -> tensor<2x3x?x45xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<taylor>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x45xf32>) -> tensor<2x3x?x45xf32>
  return %r : tensor<2x3x?x45xf32>
}

func.func @taylor_full(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x73xf32>) -> tensor<2x3x?x73xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<taylor_full>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x73xf32>) -> tensor<2x3x?x73xf32>
  return %r : tensor<2x3x?x73xf32>
}

func.func @rebased(%x: tensor<2x3x?x8xf32>, %w0: tensor<8xf32>, %w1: tensor<8xf32>, %o: tensor<2x3x?x36xf32>) -> tensor<2x3x?x36xf32> {
  %r = linattn.feature_map %x params(%w0, %w1) into(%o) {feature_map = #linattn.feature_map<rebased>} : (tensor<2x3x?x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x3x?x36xf32>) -> tensor<2x3x?x36xf32>
  return %r : tensor<2x3x?x36xf32>
}

func.func @outer_product(%x: tensor<2x3x?x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %o: tensor<2x3x?x36xf32>) -> tensor<2x3x?x36xf32> {
  %r = linattn.feature_map %x params(%w0, %w1) into(%o) {feature_map = #linattn.feature_map<outer_product>} : (tensor<2x3x?x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<2x3x?x36xf32>) -> tensor<2x3x?x36xf32>
  return %r : tensor<2x3x?x36xf32>
}

// Before a scan: logarithms of features under a running maximum, and features as
// they are.
func.func @exponentials(%q: tensor<2x3x?x8xf32>, %k: tensor<2x3x?x8xf32>, %v: tensor<2x3x?x5xf32>, %w: tensor<6x8xf32>, %d: tensor<2x3x?x6xf32>) -> tensor<2x3x?x5xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  %o = linattn.attention %fq, %fk, %v {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<2x3x?x6xf32>, tensor<2x3x?x6xf32>, tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32>
  return %o : tensor<2x3x?x5xf32>
}

func.func @polynomials(%q: tensor<2x3x?x8xf32>, %k: tensor<2x3x?x8xf32>, %v: tensor<2x3x?x5xf32>, %d: tensor<2x3x?x45xf32>) -> tensor<2x3x?x5xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<taylor>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x45xf32>) -> tensor<2x3x?x45xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<taylor>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x45xf32>) -> tensor<2x3x?x45xf32>
  %o = linattn.attention %fq, %fk, %v {causal, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x3x?x45xf32>, tensor<2x3x?x45xf32>, tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32>
  return %o : tensor<2x3x?x5xf32>
}

// The hyperbolic features are those of the projections and of their negatives.
func.func @favor_of_both_signs(%x: tensor<2x3x?x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32> {
  %n = arith.negf %w : tensor<6x8xf32>
  %both = tensor.concat dim(0) %w, %n : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<12x8xf32>
  %r = linattn.feature_map %x params(%both) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x?x8xf32>, tensor<12x8xf32>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  return %r : tensor<2x3x?x12xf32>
}

func.func @favor_from_logarithms(%x: tensor<2x3x?x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %l = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  %r = math.exp %l : tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}

// A softmax takes off a maximum that cancels.
func.func @softmax_from_exponentials(%x: tensor<2x3x?x8xf32>, %o: tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32> {
  %e = math.exp %x : tensor<2x3x?x8xf32>
  %r = linattn.feature_map %e into(%o) {feature_map = #linattn.feature_map<sum_norm, eps = 0.0>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  return %r : tensor<2x3x?x8xf32>
}

func.func @hedgehog_from_exponentials(%x: tensor<2x3x?x8xf32>, %w: tensor<8x8xf32>, %o: tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32> {
  %e = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<hedgehog_exp>} : (tensor<2x3x?x8xf32>, tensor<8x8xf32>, tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32>
  %r = linattn.feature_map %e into(%o) {feature_map = #linattn.feature_map<sum_norm, eps = 0.0>} : (tensor<2x3x?x16xf32>, tensor<2x3x?x16xf32>) -> tensor<2x3x?x16xf32>
  return %r : tensor<2x3x?x16xf32>
}

// Other projections are another map: this one has to be found out.
func.func @favor_of_half(%x: tensor<2x3x?x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32> {
  %half = arith.constant dense<0.5> : tensor<6x8xf32>
  %u = arith.mulf %w, %half : tensor<6x8xf32>
  %r = linattn.feature_map %x params(%u) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  return %r : tensor<2x3x?x6xf32>
}
