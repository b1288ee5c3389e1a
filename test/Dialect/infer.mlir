// RUN: linattn-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse --split-input-file | FileCheck %s

// The dimensions of a result follow from those of the operands: once they are
// resolved, the op that had the sizes is dead.

// Batch and sequence length from the query, head size from the value, and the
// largest of the three head counts.

// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.+]]: tensor<?x?x?x64xf32>, %[[K:.+]]: tensor<?x?x?x64xf32>, %[[V:.+]]: tensor<?x?x?x?xf32>)
func.func @attention(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x?xf32>) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %o = linattn.attention %q, %k, %v : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %batch = tensor.dim %o, %c0 : tensor<?x?x?x?xf32>
  %heads = tensor.dim %o, %c1 : tensor<?x?x?x?xf32>
  %tokens = tensor.dim %o, %c2 : tensor<?x?x?x?xf32>
  %size = tensor.dim %o, %c3 : tensor<?x?x?x?xf32>
  // CHECK-NOT: linattn.attention
  // CHECK-DAG: %[[BATCH:.+]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[HQ:.+]] = tensor.dim %[[Q]], %c1
  // CHECK-DAG: %[[HK:.+]] = tensor.dim %[[K]], %c1
  // CHECK-DAG: %[[HV:.+]] = tensor.dim %[[V]], %c1
  // CHECK-DAG: %[[MOST:.+]] = arith.maxsi %[[HQ]], %[[HK]]
  // CHECK-DAG: %[[HEADS:.+]] = arith.maxsi %[[MOST]], %[[HV]]
  // CHECK-DAG: %[[TOKENS:.+]] = tensor.dim %[[Q]], %c2
  // CHECK-DAG: %[[SIZE:.+]] = tensor.dim %[[V]], %c3
  // CHECK: return %[[BATCH]], %[[HEADS]], %[[TOKENS]], %[[SIZE]]
  return %batch, %heads, %tokens, %size : index, index, index, index
}

// -----

// CHECK-LABEL: func.func @attention_static_heads
func.func @attention_static_heads(%q: tensor<?x8x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x4x?x32xf32>) -> (index, index) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %o = linattn.attention %q, %k, %v : (tensor<?x8x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x4x?x32xf32>) -> tensor<?x8x?x32xf32>
  %heads = tensor.dim %o, %c1 : tensor<?x8x?x32xf32>
  %size = tensor.dim %o, %c3 : tensor<?x8x?x32xf32>
  // CHECK: return %c8, %c32
  return %heads, %size : index, index
}

// -----

// The declared result may know more than the operands' types say.

// CHECK-LABEL: func.func @attention_more_static
func.func @attention_more_static(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x?xf32>) -> (tensor<2x8x?x32xf32>, index) {
  %c2 = arith.constant 2 : index
  // CHECK: linattn.attention {{.+}} -> tensor<2x8x?x32xf32>
  %o = linattn.attention %q, %k, %v : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x?xf32>) -> tensor<2x8x?x32xf32>
  %tokens = tensor.dim %o, %c2 : tensor<2x8x?x32xf32>
  // CHECK: tensor.dim %arg0, %c2
  return %o, %tokens : tensor<2x8x?x32xf32>, index
}

// -----

// Structured ops have the shapes of their destinations.

// CHECK-LABEL: func.func @scan
// CHECK-SAME: (%[[Q:.+]]: tensor<?x?x?x?xf32>, %[[O:.+]]: tensor<?x?x?x?xf32>, %[[S:.+]]: tensor<?x?x?x?xf32>, %[[Z:.+]]: tensor<?x?x?xf32>)
func.func @scan(%q: tensor<?x?x?x?xf32>, %o: tensor<?x?x?x?xf32>, %s: tensor<?x?x?x?xf32>, %z: tensor<?x?x?xf32>) -> (index, index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r:3 = linattn.scan %q, %q, %q into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?xf32>)
    -> (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?xf32>)
  %tokens = tensor.dim %r#0, %c2 : tensor<?x?x?x?xf32>
  %size = tensor.dim %r#1, %c3 : tensor<?x?x?x?xf32>
  %heads = tensor.dim %r#2, %c1 : tensor<?x?x?xf32>
  // CHECK-NOT: linattn.scan
  // CHECK-DAG: %[[TOKENS:.+]] = tensor.dim %[[O]], %c2
  // CHECK-DAG: %[[SIZE:.+]] = tensor.dim %[[S]], %c3
  // CHECK-DAG: %[[HEADS:.+]] = tensor.dim %[[Z]], %c1
  // CHECK: return %[[TOKENS]], %[[SIZE]], %[[HEADS]]
  return %tokens, %size, %heads : index, index, index
}

// -----

// CHECK-LABEL: func.func @structured
// CHECK-SAME: (%[[X:.+]]: tensor<?x?x?x?xf32>, %[[O:.+]]: tensor<?x?x?x?xf32>, %[[S:.+]]: tensor<?x?x?x?xf32>)
func.func @structured(%x: tensor<?x?x?x?xf32>, %o: tensor<?x?x?x?xf32>, %s: tensor<?x?x?x?xf32>) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %state = linattn.state %x, %x init(%s) : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %read = linattn.read %x, %s into(%o) : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %quadratic = linattn.quadratic %x, %x, %x into(%o) : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %map = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %0 = tensor.dim %state, %c0 : tensor<?x?x?x?xf32>
  %1 = tensor.dim %read, %c0 : tensor<?x?x?x?xf32>
  %2 = tensor.dim %quadratic, %c0 : tensor<?x?x?x?xf32>
  %3 = tensor.dim %map, %c0 : tensor<?x?x?x?xf32>
  // CHECK-DAG: %[[STATES:.+]] = tensor.dim %[[S]], %c0
  // CHECK-DAG: %[[BATCH:.+]] = tensor.dim %[[O]], %c0
  // CHECK: return %[[STATES]], %[[BATCH]], %[[BATCH]], %[[BATCH]]
  return %0, %1, %2, %3 : index, index, index, index
}
