// RUN: linattn-opt %s --linattn-lower-chunks-to-vector | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-chunks-to-vector --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not linattn-opt %s --linattn-lower-chunks-to-vector=vector-bits=96 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: vector-bits

// CHECK-NOT: vector.
// CHECK-LABEL: func.func @dynamic(
// CHECK:         linattn.chunk.pack
// REMARK: [Missed] lower-chunks-to-vector {{.*}}"runs as scalar loops: it has sizes that are not known"
func.func @dynamic(%x: memref<1x1x?x16xf32>, %y: memref<1x1x?x16xf32>) {
  linattn.chunk.pack %x into(%y) : (memref<1x1x?x16xf32>, memref<1x1x?x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @heads(
// CHECK:         linattn.chunk.pack
// REMARK: "runs as scalar loops: it has several heads"
func.func @heads(%x: memref<1x2x16x16xf32>, %y: memref<1x2x16x16xf32>) {
  linattn.chunk.pack %x into(%y) : (memref<1x2x16x16xf32>, memref<1x2x16x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @narrow(
// CHECK:         linattn.chunk.read
// REMARK: "runs as scalar loops: it has features that are not whole vectors"
func.func @narrow(%x: memref<1x1x16x16xf32>, %s: memref<1x1x16x24xf32>, %y: memref<1x1x16x24xf32>) {
  linattn.chunk.read %x, %s into(%y) : (memref<1x1x16x16xf32>, memref<1x1x16x24xf32>, memref<1x1x16x24xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @halves(
// CHECK:         linattn.chunk.solve
// REMARK: "runs as scalar loops: it has rows that are neither f32 nor f64"
func.func @halves(%a: memref<1x1x16x16xf16>, %y: memref<1x1x16x32xf16>) {
  linattn.chunk.solve %a into(%y) : (memref<1x1x16x16xf16>, memref<1x1x16x32xf16>) -> ()
  return
}

// CHECK-LABEL: func.func @strided(
// CHECK:         linattn.chunk.update
// REMARK: "runs as scalar loops: it has rows that do not lie in memory as such"
func.func @strided(%k: memref<1x1x16x16xf32>, %s: memref<1x1x16x16xf32, strided<[256, 256, 1, 16]>>) {
  linattn.chunk.update keys(%k) values(%k) into(%s) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32, strided<[256, 256, 1, 16]>>) -> ()
  return
}

// CHECK-LABEL: func.func @clauses(
// CHECK:         linattn.chunk.pack
// CHECK:         linattn.chunk.update
// CHECK:         linattn.chunk.scores
// CHECK:         linattn.chunk.solve
// CHECK:         linattn.chunk.unpack
// CHECK:         linattn.chunk.stabilize
// REMARK: "runs as scalar loops: it has a shift"
// REMARK: "runs as scalar loops: it has decays of both rows and columns"
// REMARK: "runs as scalar loops: it has a bonus"
// REMARK: "runs as scalar loops: it has scores of later tokens without whole tiles"
// REMARK: "runs as scalar loops: it has a running maximum"
// REMARK: "runs as scalar loops: it has an op without vectors"
func.func @clauses(%x: memref<1x1x16x16xf32>, %n: memref<1x1x16xf32>, %u: memref<1x16xf32>, %few: memref<1x1x12x12xf32>, %v: memref<1x1x12x16xf32>, %d: memref<1x1x16x1xf32>, %y: memref<1x1x16x16xf32>, %m: memref<1x1xf32>) {
  linattn.chunk.pack %x shift(%n) into(%y) : (memref<1x1x16x16xf32>, memref<1x1x16xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.update decay(%x) value_decay(%x) into(%y) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.scores %x, %x bonus(%u) into(%y) {strict} : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x16xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.solve %few into(%v) {transpose} : (memref<1x1x12x12xf32>, memref<1x1x12x16xf32>) -> ()
  linattn.chunk.unpack %x denominator(%d) running_max(%n) into(%y) {normalize = #linattn.normalize<abs_floor = 1.0>} : (memref<1x1x16x16xf32>, memref<1x1x16x1xf32>, memref<1x1x16xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.stabilize %n into(%n, %n) init(%m) : (memref<1x1x16xf32>, memref<1x1x16xf32>, memref<1x1x16xf32>, memref<1x1xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @column(
// CHECK:         linattn.chunk.read
// CHECK:         linattn.chunk.read
// CHECK:         linattn.feature_map
// REMARK: "runs as scalar loops: it has a column that does not lie in memory as a row"
// REMARK: "runs as scalar loops: it has features that are not whole vectors"
func.func @column(%x: memref<1x1x16x16xf32>, %z: memref<1x1x16x1xf32, strided<[256, 256, 16, 1]>>, %t: memref<1x1x1x16xf32>, %y: memref<1x1x16x1xf32>, %w: memref<1x2x16x16xf32>) {
  linattn.chunk.read %x, %z into(%y) : (memref<1x1x16x16xf32>, memref<1x1x16x1xf32, strided<[256, 256, 16, 1]>>, memref<1x1x16x1xf32>) -> ()
  linattn.chunk.read %x, %t into(%y) {transpose} : (memref<1x1x16x16xf32>, memref<1x1x1x16xf32>, memref<1x1x16x1xf32>) -> ()
  linattn.feature_map %w into(%w) {feature_map = #linattn.feature_map<elu1>} : (memref<1x2x16x16xf32>, memref<1x2x16x16xf32>) -> ()
  return
}
