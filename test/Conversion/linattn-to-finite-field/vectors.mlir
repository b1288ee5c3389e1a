// RUN: linattn-opt %s --linattn-to-finite-field --split-input-file | FileCheck %s

// One helper per operation and number of lanes; matrices go row by row.

// CHECK-LABEL: func.func @lanes
// CHECK-SAME: (%[[X:.*]]: vector<4xi64>, %[[Y:.*]]: vector<2x4xi64>)
// CHECK: %[[PRODUCT:.*]] = call @linattn_field0_mul_x4(%[[X]], %[[X]]) : (vector<4xi64>, vector<4xi64>) -> vector<4xi64>
// CHECK: call @linattn_field0_add_x4(%[[PRODUCT]], %[[X]])
// CHECK: vector.extract %[[Y]][0] : vector<4xi64> from vector<2x4xi64>
// CHECK: call @linattn_field0_neg_x4
// CHECK: vector.insert {{.*}} [0] : vector<4xi64> into vector<2x4xi64>
// CHECK: vector.extract %[[Y]][1]
// CHECK: call @linattn_field0_neg_x4
// CHECK: call @linattn_field0_cmp_by_scalar_x4(%{{.*}}, %[[X]], %{{.*}}) : (vector<4xi64>, vector<4xi64>, i64) -> vector<4xi1>
// CHECK-COUNT-3: call @linattn_field0_add(
// CHECK-NOT: call @linattn_field0_add(
// CHECK: return

// CHECK: func.func private @linattn_field0_mul_x4(%{{.*}}: vector<4xi64>, %{{.*}}: vector<4xi64>) -> vector<4xi64> attributes {no_inline}
// CHECK-COUNT-4: call @linattn_field0_mul(
func.func @lanes(%x: vector<4xf32>, %y: vector<2x4xf32>) -> (vector<2x4xf32>, vector<4xf32>, f32) {
  %fma = vector.fma %x, %x, %x : vector<4xf32>
  %n = arith.negf %y : vector<2x4xf32>
  %less = arith.cmpf olt, %fma, %x : vector<4xf32>
  %s = arith.select %less, %fma, %x : vector<4xi1>, vector<4xf32>
  %sum = vector.reduction <add>, %s : vector<4xf32> into f32
  return %n, %s, %sum : vector<2x4xf32>, vector<4xf32>, f32
}

// -----

// Padding and masks are what they were.
// CHECK-LABEL: func.func @memory
// CHECK: vector.transfer_read %{{.*}}[%{{.*}}], %{{.*}}, %{{.*}} : memref<?xi64, strided<[?], offset: ?>>, vector<8xi64>
// CHECK: vector.broadcast %{{.*}} : i64 to vector<8xi64>
// CHECK: vector.transfer_write {{.*}} : vector<8xi64>, memref<?xi64, strided<[?], offset: ?>>
func.func @memory(%m: memref<?xf16, strided<[?], offset: ?>>, %i: index, %x: f16, %mask: vector<8xi1>) {
  %pad = arith.constant 0.0 : f16
  %v = vector.transfer_read %m[%i], %pad, %mask : memref<?xf16, strided<[?], offset: ?>>, vector<8xf16>
  %w = vector.broadcast %x : f16 to vector<8xf16>
  %s = vector.shuffle %v, %w [0, 9, 2, 11, 4, 13, 6, 15] : vector<8xf16>, vector<8xf16>
  vector.transfer_write %s, %m[%i], %mask : vector<8xf16>, memref<?xf16, strided<[?], offset: ?>>
  return
}

// -----

// Contractions become products and sums of rows.
// CHECK-LABEL: func.func @contract
// CHECK-NOT: vector.contract
// CHECK: call @linattn_field0_mul_x4
// CHECK: call @linattn_field0_add_x4
func.func @contract(%a: vector<2x3xf32>, %b: vector<3x4xf32>, %c: vector<2x4xf32>) -> vector<2x4xf32> {
  %r = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                        iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>}
    %a, %b, %c : vector<2x3xf32>, vector<3x4xf32> into vector<2x4xf32>
  return %r : vector<2x4xf32>
}
