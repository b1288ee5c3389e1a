// RUN: linattn-opt %s --linattn-reassociate | FileCheck %s
// RUN: linattn-opt %s --linattn-reassociate=mode=always | FileCheck %s --check-prefix=ALWAYS
// RUN: linattn-opt %s --linattn-reassociate=mode=never | FileCheck %s --check-prefix=NEVER --implicit-check-not=linattn.state
// RUN: linattn-opt %s --linattn-reassociate --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-reassociate=mode=never --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=NEVER-REMARK

// Long enough, and all sizes known: one state per head of keys and values.

// CHECK-LABEL: func.func @long(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<2x4x128x16xf32>, %[[K:[^:]+]]: tensor<2x2x96x16xf32>, %[[V:[^:]+]]: tensor<2x2x96x32xf32>, %[[M:[^:]+]]: tensor<2x96xi1>
// CHECK-DAG:     %[[S0:.+]] = linalg.fill {{.*}} -> tensor<2x2x16x32xf32>
// CHECK-DAG:     %[[Z0:.+]] = linalg.fill {{.*}} -> tensor<2x2x16xf32>
// CHECK-DAG:     %[[DEST:.+]] = tensor.empty() : tensor<2x4x128x32xf32>
// CHECK:         %[[SZ:.+]]:2 = linattn.state %[[K]], %[[V]] mask(%[[M]]) init(%[[S0]]) normalizer(%[[Z0]]) {feature_map = #linattn.feature_map<elu1>}
// CHECK:         %[[O:.+]] = linattn.read %[[Q]], %[[SZ]]#0 normalizer(%[[SZ]]#1) into(%[[DEST]])
// CHECK-SAME:      feature_map = #linattn.feature_map<elu1>
// CHECK-SAME:      normalize = #linattn.normalize<eps =
// CHECK-SAME:      scale = 5.000000e-01
// CHECK:         return %[[O]]
// REMARK:        attention.mlir:[[#@LINE+4]]:8: remark: [Passed] reassociate {{.*}}"(QKᵀ)V becomes Q(KᵀV)"
// NEVER-LABEL:   func.func @long(
// NEVER-REMARK:  remark: [Missed] reassociate {{.*}}Remark=mode=never
func.func @long(%q: tensor<2x4x128x16xf32>, %k: tensor<2x2x96x16xf32>, %v: tensor<2x2x96x32xf32>, %m: tensor<2x96xi1>) -> tensor<2x4x128x32xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 0.5}
    : (tensor<2x4x128x16xf32>, tensor<2x2x96x16xf32>, tensor<2x2x96x32xf32>, tensor<2x96xi1>) -> tensor<2x4x128x32xf32>
  return %o : tensor<2x4x128x32xf32>
}

// Its length is known at run time, and so is what is cheaper.

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x?x16xf32>, %[[K:[^:]+]]: tensor<1x2x?x16xf32>, %[[V:[^:]+]]: tensor<1x2x?x32xf32>
// CHECK-DAG:     tensor.dim %[[Q]]
// CHECK-DAG:     tensor.dim %[[K]]
// CHECK:         %[[LONG:.+]] = arith.cmpi sgt
// CHECK:         %[[R:.+]] = scf.if %[[LONG]] -> (tensor<1x2x?x32xf32>)
// CHECK:           %[[S:.+]] = linattn.state %[[K]], %[[V]]
// CHECK:           %[[READ:.+]] = linattn.read %[[Q]], %[[S]]
// CHECK:           scf.yield %[[READ]]
// CHECK:         } else {
// CHECK:           %[[QUADRATIC:.+]] = linattn.quadratic %[[Q]], %[[K]], %[[V]]
// CHECK:           scf.yield %[[QUADRATIC]]
// CHECK:         return %[[R]]
// REMARK:        remark: [Passed] reassociate {{.*}}"(QKᵀ)V becomes Q(KᵀV) at run time, where
// ALWAYS-LABEL:  func.func @dynamic(
// ALWAYS-NOT:      scf.if
// ALWAYS:          linattn.read
// NEVER-LABEL:   func.func @dynamic(
// NEVER:           linattn.attention
func.func @dynamic(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x32xf32>) -> tensor<1x2x?x32xf32> {
  %o = linattn.attention %q, %k, %v
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>) -> tensor<1x2x?x32xf32>
  return %o : tensor<1x2x?x32xf32>
}

// A stabilised exponential carries its maximum from the keys.

// CHECK-LABEL: func.func @exponential(
// CHECK:         linattn.state {{.*}} running_max(
func.func @exponential(%q: tensor<1x2x256x16xf32>) -> tensor<1x2x256x16xf32> {
  %o = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>) -> tensor<1x2x256x16xf32>
  return %o : tensor<1x2x256x16xf32>
}

// A user's φ goes with both halves.

// CHECK-LABEL: func.func @region(
// CHECK:         linattn.state {{.*}} phi {
// CHECK:           math.absf
// CHECK:         linattn.read {{.*}} phi {
// CHECK:           math.absf
func.func @region(%q: tensor<1x2x256x16xf32>) -> tensor<1x2x256x16xf32> {
  %o = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>, tensor<1x2x256x16xf32>) -> tensor<1x2x256x16xf32>
  return %o : tensor<1x2x256x16xf32>
}
