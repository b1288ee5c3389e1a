// RUN: linattn-opt %s --linattn-expand-snapshots | linattn-run - --all --open-size=0,1,3,4,14 --target=reference --compare=%s
// RUN: linattn-run %s --all --open-size=0,1,3,14,70 --compare=reference

// Normalizers and running maxima have snapshots as well.

func.func @exp(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %o: tensor<2x2x?x5xf32>) -> (tensor<2x2x?x5xf32>, tensor<2x?x2x8x5xf32>, tensor<2x?x2x8xf32>, tensor<2x?x2xf32>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %t = tensor.dim %k, %c2 : tensor<2x2x?x8xf32>
  %n = arith.divsi %t, %c3 : index
  %es = tensor.empty() : tensor<2x2x8x5xf32>
  %s = linalg.fill ins(%zero : f32) outs(%es : tensor<2x2x8x5xf32>) -> tensor<2x2x8x5xf32>
  %ez = tensor.empty() : tensor<2x2x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
  %em = tensor.empty() : tensor<2x2xf32>
  %m = linalg.fill ins(%low : f32) outs(%em : tensor<2x2xf32>) -> tensor<2x2xf32>
  %ps = tensor.empty(%n) : tensor<2x?x2x8x5xf32>
  %pz = tensor.empty(%n) : tensor<2x?x2x8xf32>
  %pm = tensor.empty(%n) : tensor<2x?x2xf32>
  %r:7 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) snapshots(%ps, %pz, %pm) {every = 3, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x2x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x2x8xf32>, tensor<2x2xf32>, tensor<2x?x2x8x5xf32>, tensor<2x?x2x8xf32>, tensor<2x?x2xf32>) -> (tensor<2x2x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x2x8xf32>, tensor<2x2xf32>, tensor<2x?x2x8x5xf32>, tensor<2x?x2x8xf32>, tensor<2x?x2xf32>)
  return %r#0, %r#4, %r#5, %r#6 : tensor<2x2x?x5xf32>, tensor<2x?x2x8x5xf32>, tensor<2x?x2x8xf32>, tensor<2x?x2xf32>
}
