// RUN: linattn-opt %s --linattn-select-form=form=segments:3 --linattn-split-segments | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form=form=segments:3 --linattn-split-segments | linattn-run - --all --open-size=0,1,3,7,14 --target=reference --compare=%s
// RUN: linattn-run %s --all --open-size=1,5,14 --form=segments:4 --compare=reference
// RUN: linattn-opt %S/select-form.mlir --linattn-select-form=form=segments:2 --linattn-split-segments | linattn-run - --all --open-size=1,7 --target=reference --compare=%S/select-form.mlir

// Segments and their merge against the scan in one piece.

// CHECK-LABEL: func.func @reverse
// CHECK: linattn.state {{.*}} cu_seqlens
// CHECK: linattn.scan {{.*}} cu_seqlens
func.func @reverse(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %g: tensor<2x3x?xf32>, %h: tensor<2x3x?x5xf32>, %o: tensor<2x3x?x5xf32>, %s: tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) value_decay(%h) into(%o) init(%s) {reverse, scale = 0.5}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x3x?xf32>, tensor<2x3x?x5xf32>, tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>)
  return %r#0, %r#1 : tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>
}

// CHECK-LABEL: func.func @running_max
// CHECK: linattn.state {{.*}} cu_seqlens
func.func @running_max(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>, %z: tensor<1x2x4xf32>, %m: tensor<1x2xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) {
  %p = linattn.feature_map %q into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %zp = math.absf %z : tensor<1x2x4xf32>
  %gp = math.absf %g : tensor<1x2x?x4xf32>
  %gn = arith.negf %gp : tensor<1x2x?x4xf32>
  %r:4 = linattn.scan %p, %k, %v decay(%gn) into(%o) init(%s) normalizer(%zp) running_max(%m) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>
}
