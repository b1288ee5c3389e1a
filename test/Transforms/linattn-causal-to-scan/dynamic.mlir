// RUN: linattn-opt %s --linattn-causal-to-scan --canonicalize --cse --split-input-file | FileCheck %s

// The sizes of state and destination come from the operands.

// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%[[Q:.+]]: tensor<?x?x?x?xf32>, %[[K:.+]]: tensor<?x?x?x?xf32>, %[[V:.+]]: tensor<?x?x?x?xf32>)
func.func @plain(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  // CHECK-DAG: %[[B:.+]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[HQ:.+]] = tensor.dim %[[Q]], %c1
  // CHECK-DAG: %[[T:.+]] = tensor.dim %[[Q]], %c2
  // CHECK-DAG: %[[HK:.+]] = tensor.dim %[[K]], %c1
  // CHECK-DAG: %[[KS:.+]] = tensor.dim %[[K]], %c3
  // CHECK-DAG: %[[HV:.+]] = tensor.dim %[[V]], %c1
  // CHECK-DAG: %[[VS:.+]] = tensor.dim %[[V]], %c3
  // CHECK-DAG: %[[H:.+]] = arith.maxsi %[[HK]], %[[HV]]
  // CHECK-DAG: %[[STATE:.+]] = tensor.empty(%[[B]], %[[H]], %[[KS]], %[[VS]]) : tensor<?x?x?x?xf32>
  // CHECK-DAG: %[[SUM:.+]] = tensor.empty(%[[B]], %[[H]], %[[KS]]) : tensor<?x?x?xf32>
  // CHECK-DAG: %[[HQK:.+]] = arith.maxsi %[[HQ]], %[[HK]]
  // CHECK-DAG: %[[HO:.+]] = arith.maxsi %[[HQK]], %[[HV]]
  // CHECK-DAG: %[[DEST:.+]] = tensor.empty(%[[B]], %[[HO]], %[[T]], %[[VS]]) : tensor<?x?x?x?xf32>
  // CHECK-DAG: %[[S:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[STATE]]
  // CHECK-DAG: %[[Z:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[SUM]]
  // CHECK: linattn.scan %[[Q]], %[[K]], %[[V]] into(%[[DEST]]) init(%[[S]]) normalizer(%[[Z]])
  %o = linattn.attention %q, %k, %v {causal, normalize = #linattn.normalize<>}
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %o : tensor<?x?x?x?xf32>
}

// -----

// Sizes that only the declared result knows are the destination's.

// CHECK-LABEL: func.func @more_static
func.func @more_static(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x?xf32>) -> tensor<2x8x?x32xf32> {
  // CHECK: %[[DEST:.+]] = tensor.empty(%{{.+}}) : tensor<2x8x?x32xf32>
  // CHECK: %[[O:.+]]:2 = linattn.scan {{.*}} into(%[[DEST]])
  // CHECK: return %[[O]]#0 : tensor<2x8x?x32xf32>
  %o = linattn.attention %q, %k, %v {causal} : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x?xf32>) -> tensor<2x8x?x32xf32>
  return %o : tensor<2x8x?x32xf32>
}
