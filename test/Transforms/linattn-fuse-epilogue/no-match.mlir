// RUN: linattn-opt %s --linattn-fuse-epilogue --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-fuse-epilogue --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-NOT: linattn.epilogue

// REMARK: [Missed] fuse-epilogue {{.*}}"runs as a kernel of its own: form token writes a row in parts"
func.func @token(%q: memref<2x4x1x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x1x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>} : (memref<2x4x1x16xf32>, memref<2x4x1x16xf32>, memref<2x4x1x16xf32>, memref<2x4x1x16xf32>, memref<2x4x16x16xf32>) -> ()
  linattn.output_norm %o into(%o) : (memref<2x4x1x16xf32>, memref<2x4x1x16xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: with fewer than 4 heads, or an unknown number, several tasks share a row"
func.func @heads(%q: memref<2x?x8x16xf32>, %s: memref<2x?x16x64xf32>, %v: memref<2x?x8x64xf32>, %o: memref<2x?x8x64xf32>) {
  linattn.scan %q, %q, %v into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x?x8x16xf32>, memref<2x?x8x16xf32>, memref<2x?x8x64xf32>, memref<2x?x8x64xf32>, memref<2x?x16x64xf32>) -> ()
  linattn.output_norm %o into(%o) : (memref<2x?x8x64xf32>, memref<2x?x8x64xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: the outputs of the scan are a result, too"
func.func @result(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x8x16xf32>, %p: memref<2x4x8x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf32>) -> ()
  linattn.output_norm %o into(%p) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: something else reads or writes the outputs of the scan"
func.func @read(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf32>, %p: memref<2x4x8x16xf32>, %c: memref<2x4x8x16xf32>) {
  %o = memref.alloc() : memref<2x4x8x16xf32>
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf32>) -> ()
  linattn.output_norm %o into(%p) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>) -> ()
  memref.copy %o, %c : memref<2x4x8x16xf32> to memref<2x4x8x16xf32>
  memref.dealloc %o : memref<2x4x8x16xf32>
  return
}

// -----

// The state is read between them.
// REMARK: "runs as a kernel of its own: memref.copy stands between it and the scan"
func.func @between(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x8x16xf32>, %c: memref<2x4x16x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf32>) -> ()
  memref.copy %s, %c : memref<2x4x16x16xf32> to memref<2x4x16x16xf32>
  linattn.output_norm %o into(%o) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: the scan computes in another type"
func.func @wide(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf64>, %o: memref<2x4x8x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf64>) -> ()
  linattn.output_norm %o into(%o) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: packed sequences of a few tokens run token by token"
func.func @packed(%q: memref<1x4x?x16xf32>, %b: memref<1x4x?xf32>, %c: memref<?xi64>, %s: memref<?x4x16x16xf32>, %o: memref<1x4x?x16xf32>) {
  linattn.scan %q, %q, %q beta(%b) cu_seqlens(%c) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 32, few = 4>} : (memref<1x4x?x16xf32>, memref<1x4x?x16xf32>, memref<1x4x?x16xf32>, memref<1x4x?xf32>, memref<?xi64>, memref<1x4x?x16xf32>, memref<?x4x16x16xf32>) -> ()
  linattn.output_norm %o into(%o) : (memref<1x4x?x16xf32>, memref<1x4x?x16xf32>) -> ()
  return
}

// -----

// REMARK: "runs as a kernel of its own: sequences without a state have no rows in the kernel"
func.func @pool(%q: memref<2x4x8x16xf32>, %i: memref<2xi64>, %s: memref<9x4x16x16xf32>, %o: memref<2x4x8x16xf32>) {
  linattn.scan %q, %q, %q state_indices(%i) into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2xi64>, memref<2x4x8x16xf32>, memref<9x4x16x16xf32>) -> ()
  linattn.output_norm %o into(%o) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>) -> ()
  return
}
