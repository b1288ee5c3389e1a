// RUN: linattn-opt %s --linattn-select-schedule --split-input-file --remarks-filter=linattn 2>&1 | FileCheck %s --implicit-check-not=linattn.schedule

// CHECK: "no kernel: f64 has no kernel"
func.func @f64(%q: memref<2x8x?x64xf64>, %s: memref<2x8x64x64xf64>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x64xf64>, memref<2x8x?x64xf64>, memref<2x8x?x64xf64>,
       memref<2x8x?x64xf64>, memref<2x8x64x64xf64>) -> ()
  return
}

// -----

// CHECK: "no kernel: head counts and head sizes must be static"
func.func @dynamic(%q: memref<2x8x?x?xf32>, %s: memref<2x8x?x?xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x?xf32>, memref<2x8x?x?xf32>, memref<2x8x?x?xf32>,
       memref<2x8x?x?xf32>, memref<2x8x?x?xf32>) -> ()
  return
}

// -----

// CHECK: "no kernel: the innermost stride of a buffer is not known to be 1"
func.func @strided(%q: memref<2x8x?x64xf32, strided<[?, ?, ?, ?]>>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x64xf32, strided<[?, ?, ?, ?]>>, memref<2x8x?x64xf32, strided<[?, ?, ?, ?]>>,
       memref<2x8x?x64xf32, strided<[?, ?, ?, ?]>>, memref<2x8x?x64xf32, strided<[?, ?, ?, ?]>>,
       memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// CHECK: "no kernel: a transition along values has no kernel"
func.func @oja(%q: memref<2x8x?x64xf32>, %b: memref<2x8x?xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(oja) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// CHECK: "no kernel: an op of its kind has no kernel"
func.func @map(%q: memref<2x8x?x64xf32>) {
  linattn.feature_map %q into(%q) {feature_map = #linattn.feature_map<l2norm>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// -----

// CHECK: "no kernel: a scale that is an operand has no kernel"
func.func @scale(%q: memref<2x8x?x64xf32>, %scale: f64, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q scale(%scale) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, f64,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// CHECK: "no kernel: it is in a parallel loop, whose iterations are threads"
func.func @iteration(%q: memref<2x8x?x64xf32>, %o: memref<2x8x?x64xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    linattn.quadratic %q, %q, %q weights(softmax) into(%o) {causal}
      : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  }
  return
}
