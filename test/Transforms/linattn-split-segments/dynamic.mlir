// RUN: linattn-opt %s --linattn-split-segments --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-split-segments --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A batch is a loop; the length of the segments follows from the number of
// tokens: at least 512 tokens, at most 64 segments.

// CHECK-DAG:   #[[LENGTH:.+]] = affine_map<()[s0] -> (512, (s0 ceildiv 2048) * 32)>
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<?x?x?x4xf32>
// CHECK:         %[[B:.+]] = tensor.dim %{{.*}}, %c0
// CHECK:         scf.for %[[I:.+]] = %c0 to %[[B]] step %c1
// CHECK:           affine.max #[[LENGTH]]
// CHECK:           arith.ceildivsi
// CHECK:           linattn.state {{.*}} cu_seqlens({{.*}} -> tensor<?x?x4x4xf32>
// CHECK:           scf.for
// CHECK:           linattn.scan {{.*}} cu_seqlens({{.*}}
// REMARK:      remark: [Passed] split-segments {{.*}}"runs in segments, in parallel"
func.func @dynamic(%q: tensor<?x?x?x4xf32>, %o: tensor<?x?x?x4xf32>, %s: tensor<?x?x4x4xf32>) -> (tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = segments>}
    : (tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>) -> (tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>)
  return %r#0, %r#1 : tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>
}
