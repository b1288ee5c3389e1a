// RUN: linattn-opt %s --linattn-convert-to-llvm --reconcile-unrealized-casts | FileCheck %s
// RUN: linattn-opt %s --linattn-convert-to-llvm=amx --reconcile-unrealized-casts \
// RUN:   | FileCheck %s

// CHECK-LABEL: llvm.func @add(
// CHECK:         %[[AT:.+]] = llvm.getelementptr
// CHECK:         %[[X:.+]] = llvm.load %[[AT]] {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK:         %[[SUM:.+]] = llvm.fadd %[[X]], %[[X]] : vector<16xf32>
// CHECK:         llvm.store %[[SUM]]
// CHECK-NOT:     unrealized_conversion_cast
func.func @add(%m: memref<64xf32>, %i: index) {
  %x = vector.load %m[%i] : memref<64xf32>, vector<16xf32>
  %sum = arith.addf %x, %x : vector<16xf32>
  vector.store %sum, %m[%i] : memref<64xf32>, vector<16xf32>
  return
}

// The branch back to the start of a loop has its annotation.
// CHECK-LABEL: llvm.func @annotated(
// CHECK:         llvm.br ^[[HEAD:.+]](%{{.+}} : i64)
// CHECK-NOT:     loop_annotation
// CHECK:         llvm.br ^[[HEAD]](%{{.+}} : i64) {loop_annotation = #{{.+}}}
func.func @annotated(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %more = arith.cmpi ult, %i, %n : index
  cf.cond_br %more, ^body, ^end
^body:
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index) {llvm.loop_annotation = #llvm.loop_annotation<disableNonforced = true>}
^end:
  return
}

// Branches carry converted values.
// CHECK-LABEL: llvm.func @loop(%arg0: i64) -> i64
// CHECK:         llvm.br ^[[HEAD:.+]](%{{.+}} : i64)
// CHECK:       ^[[HEAD]](%[[I:.+]]: i64):
// CHECK:         llvm.icmp "slt" %[[I]], %arg0
// CHECK:         llvm.cond_br
// CHECK:         llvm.return %[[I]] : i64
func.func @loop(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %more = arith.cmpi slt, %i, %n : index
  cf.cond_br %more, ^body, ^end
^body:
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^end:
  return %i : index
}

// A contraction is a sum of outer products, row by row.
// CHECK-LABEL: llvm.func @product(
// CHECK-COUNT-4: llvm.intr.fmuladd
// CHECK-NOT:     vector.contract
func.func @product(%a: vector<2x2xf32>, %b: vector<2x8xf32>, %c: vector<2x8xf32>) -> vector<2x8xf32> {
  %r = vector.contract {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                     affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } %a, %b, %c : vector<2x2xf32>, vector<2x8xf32> into vector<2x8xf32>
  return %r : vector<2x8xf32>
}

// Lanes are numbered in 32 bits.
// CHECK-LABEL: llvm.func @mask(
// CHECK:         llvm.icmp {{.*}} : vector<16xi32>
func.func @mask(%n: index) -> vector<16xi1> {
  %mask = vector.create_mask %n : vector<16xi1>
  return %mask : vector<16xi1>
}
