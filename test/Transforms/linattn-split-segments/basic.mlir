// RUN: linattn-opt %s --linattn-split-segments --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-split-segments --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Three summaries, four scans. A gate's sum over a segment is a state as well.

// CHECK-LABEL: func.func @gate(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x100x4xf32>, %[[K:[^:]+]]: tensor<1x2x100x4xf32>, %[[V:[^:]+]]: tensor<1x2x100x8xf32>, %[[G:[^:]+]]: tensor<1x2x100x4xf32>, %[[O:[^:]+]]: tensor<1x2x100x8xf32>, %[[S:[^:]+]]: tensor<1x2x4x8xf32>
// CHECK:         %[[BORDERS:.+]] = linalg.generic {{.*}} outs({{.*}} : tensor<5xi64>)
// CHECK:           arith.muli
// CHECK:           arith.minsi
// CHECK:         %[[FIRST:.+]] = tensor.extract_slice %[[BORDERS]][0] [4] [1] : tensor<5xi64> to tensor<4xi64>
// CHECK:         %[[U:.+]] = linattn.state %[[K]], %[[V]] decay(%[[G]]) cu_seqlens(%[[FIRST]]) init({{.*}}) {feature_map = #linattn.feature_map<relu>} : {{.*}} -> tensor<3x2x4x8xf32>
// CHECK:         %[[SUM:.+]] = linattn.state %{{.*}}, %[[G]] cu_seqlens(%[[FIRST]]) {{.*}} -> tensor<3x2x1x4xf32>
// CHECK:         %[[FACTORS:.+]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK:           math.exp
// CHECK:         %[[R:.+]]:2 = scf.for %[[I:.+]] = %c0 to %c3 step %c1 iter_args(%[[IN:.+]] = %[[S]], %[[ALL:.+]] = %{{.*}}) -> (tensor<1x2x4x8xf32>, tensor<4x2x4x8xf32>)
// CHECK:           tensor.insert_slice %[[IN]] into %[[ALL]][%[[I]], 0, 0, 0]
// CHECK:           tensor.extract_slice %[[FACTORS]][%[[I]], 0, 0, 0] [1, 2, 1, 4] {{.*}} to tensor<2x4xf32>
// CHECK:           tensor.extract_slice %[[U]][%[[I]], 0, 0, 0]
// CHECK:           linalg.generic
// CHECK:         %[[LAST:.+]] = tensor.insert_slice %[[R]]#0 into %[[R]]#1[3, 0, 0, 0]
// CHECK:         %[[SCAN:.+]]:2 = linattn.scan %[[Q]], %[[K]], %[[V]] decay(%[[G]]) cu_seqlens(%[[BORDERS]]) into(%[[O]]) init(%[[LAST]]) {config = #linattn.config<form = auto, rows = 2>, feature_map = #linattn.feature_map<relu>}
// CHECK:         %[[END:.+]] = tensor.extract_slice %[[SCAN]]#1[3, 0, 0, 0] [1, 2, 4, 8]
// CHECK:         return %[[SCAN]]#0, %[[END]]
// REMARK:      remark: [Passed] split-segments {{.*}}"runs in segments of 32 tokens, in parallel"
func.func @gate(%q: tensor<1x2x100x4xf32>, %k: tensor<1x2x100x4xf32>, %v: tensor<1x2x100x8xf32>, %g: tensor<1x2x100x4xf32>, %o: tensor<1x2x100x8xf32>, %s: tensor<1x2x4x8xf32>) -> (tensor<1x2x100x8xf32>, tensor<1x2x4x8xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
      {feature_map = #linattn.feature_map<relu>, config = #linattn.config<form = segments, segment = 32, rows = 2>}
    : (tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x8xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x100x8xf32>, tensor<1x2x4x8xf32>)
  return %r#0, %r#1 : tensor<1x2x100x8xf32>, tensor<1x2x4x8xf32>
}

// A rank-1 transition is a K×K matrix: what becomes of the identity when
// nothing is written.

// CHECK-LABEL: func.func @delta(
// CHECK-SAME:    %[[K:[^:]+]]: tensor<1x2x96x4xf32>, %[[B:[^:]+]]: tensor<1x2x96xf32>
// CHECK:         %[[U:.+]]:2 = linattn.scan %[[K]], %[[K]], %[[K]] beta(%[[B]]) cu_seqlens({{.*}}) update(delta) {{.*}} -> (tensor<1x2x96x4xf32>, tensor<2x2x4x4xf32>)
// CHECK:         %[[NOTHING:.+]] = linalg.fill {{.*}} -> tensor<1x1x96x4xf32>
// CHECK:         %[[M:.+]]:2 = linattn.scan %[[K]], %[[K]], %[[NOTHING]] beta(%[[B]]) cu_seqlens({{.*}}) update(delta)
// CHECK:         scf.for
// CHECK:           linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK:         linattn.scan {{.*}} readout(exclusive)
func.func @delta(%k: tensor<1x2x96x4xf32>, %b: tensor<1x2x96xf32>, %o: tensor<1x2x96x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x96x4xf32> {
  %r:2 = linattn.scan %k, %k, %k beta(%b) update(delta) readout(exclusive) into(%o) init(%s) {config = #linattn.config<form = segments, segment = 32>}
    : (tensor<1x2x96x4xf32>, tensor<1x2x96x4xf32>, tensor<1x2x96x4xf32>, tensor<1x2x96xf32>, tensor<1x2x96x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x96x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x96x4xf32>
}

// Reverse scans end in the first segment, and summarize all but that one.

// CHECK-LABEL: func.func @reverse(
// CHECK-SAME:    %[[G:[^:]+]]: tensor<2xf32>
// CHECK:         tensor.extract_slice {{.*}}[1] [2] [1] : tensor<3xi64> to tensor<2xi64>
// CHECK:         linattn.state {{.*}} decay(%[[G]]) {{.*}} {reverse} {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         %[[SCAN:.+]]:2 = linattn.scan {{.*}} {{{.*}}reverse}
// CHECK:         tensor.extract_slice %[[SCAN]]#1[0, 0, 0, 0] [1, 2, 4, 4]
func.func @reverse(%g: tensor<2xf32>, %k: tensor<1x2x64x4xf32>, %o: tensor<1x2x64x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %r:2 = linattn.scan %k, %k, %k decay(%g) into(%o) init(%s) {reverse, config = #linattn.config<form = segments, segment = 32>}
    : (tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<2xf32>, tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>)
  return %r#1 : tensor<1x2x4x4xf32>
}
