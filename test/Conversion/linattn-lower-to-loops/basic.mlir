// RUN: linattn-opt %s --linattn-lower-to-loops --canonicalize --cse | FileCheck %s --implicit-check-not='linattn.{{[a-z_]+}} %'

// Batch and head are one parallel loop; the rest is the formula.

// CHECK-LABEL: func.func @scan(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<2x3x?x4xf32>, %[[K:[^:]+]]: memref<2x3x?x4xf32>, %[[V:[^:]+]]: memref<2x3x?x5xf32>, %[[O:[^:]+]]: memref<2x3x?x5xf32>, %[[S:[^:]+]]: memref<2x3x4x5xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c6)
// CHECK:           scf.for %[[T:.+]] = %c0 to
// CHECK:             %[[OLD:.+]] = memref.load %[[S]]
// CHECK:             %[[KEY:.+]] = memref.load %[[K]]
// CHECK:             %[[KV:.+]] = arith.mulf %[[KEY]]
// CHECK:             %[[NEW:.+]] = arith.addf %[[OLD]], %[[KV]]
// CHECK:             memref.store %[[NEW]], %[[S]]
// CHECK:             %[[SUM:.+]] = scf.for {{.*}} -> (f32)
// CHECK:             memref.store %[[SUM]], %[[O]]
func.func @scan(%q: memref<2x3x?x4xf32>, %k: memref<2x3x?x4xf32>, %v: memref<2x3x?x5xf32>, %o: memref<2x3x?x5xf32>, %s: memref<2x3x4x5xf32>) {
  linattn.scan %q, %k, %v into(%o) init(%s)
    : (memref<2x3x?x4xf32>, memref<2x3x?x4xf32>, memref<2x3x?x5xf32>, memref<2x3x?x5xf32>, memref<2x3x4x5xf32>) -> ()
  return
}

// Sums are kept in f32, whatever the tokens are; a masked key is not written.

// CHECK-LABEL: func.func @state(
// CHECK-SAME:    %[[M:[^:]+]]: memref<1x8xi1>, %[[S:[^:]+]]: memref<1x2x4x5xf32>
// CHECK:         %[[ON:.+]] = memref.load %[[M]]
// CHECK:         %[[KEY:.+]] = arith.select %[[ON]], %{{.+}}, %{{.+}} : f32
// CHECK:         memref.store {{.*}}, %[[S]]{{.*}} : memref<1x2x4x5xf32>
func.func @state(%k: memref<1x2x8x4xbf16>, %v: memref<1x2x8x5xbf16>, %m: memref<1x8xi1>, %s: memref<1x2x4x5xf32>) {
  linattn.state %k, %v mask(%m) init(%s) : (memref<1x2x8x4xbf16>, memref<1x2x8x5xbf16>, memref<1x8xi1>, memref<1x2x4x5xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @feature_map(
// CHECK-SAME:    %[[X:[^:]+]]: memref<?x?x?x?xf32>, %[[Y:[^:]+]]: memref<?x?x?x?xf32>
// CHECK:         %[[V:.+]] = memref.load %[[X]]
// CHECK:         %[[RELU:.+]] = arith.maximumf %[[V]], %cst
// CHECK:         memref.store %[[RELU]], %[[Y]]
func.func @feature_map(%x: memref<?x?x?x?xf32>, %y: memref<?x?x?x?xf32>) {
  linattn.feature_map %x into(%y) {feature_map = #linattn.feature_map<relu>} : (memref<?x?x?x?xf32>, memref<?x?x?x?xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @softmax(
// CHECK:         math.exp
func.func @softmax(%q: memref<1x2x8x4xf32>, %o: memref<1x2x8x4xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%o) : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @region(
// CHECK:         math.absf
func.func @region(%q: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>, %o: memref<1x2x8x4xf32>) {
  linattn.read %q, %s into(%o) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (memref<1x2x8x4xf32>, memref<1x2x4x4xf32>, memref<1x2x8x4xf32>) -> ()
  return
}

// A scale that is an operand is rounded to the type of sums.

// CHECK-LABEL: func.func @scale_operand(
// CHECK-SAME:    %[[SCALE:[a-z0-9]+]]: f64
// CHECK:         %[[ROUNDED:.+]] = arith.truncf %[[SCALE]] : f64 to f32
// CHECK:         arith.mulf %{{.+}}, %[[ROUNDED]] : f32
func.func @scale_operand(%q: memref<1x2x?x4xbf16>, %s: memref<1x2x4x4xf32>, %scale: f64, %o: memref<1x2x?x4xbf16>) {
  linattn.read %q, %s scale(%scale) into(%o) : (memref<1x2x?x4xbf16>, memref<1x2x4x4xf32>, f64, memref<1x2x?x4xbf16>) -> ()
  return
}
