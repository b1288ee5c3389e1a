// RUN: linattn-opt %s --linattn-to-finite-field | FileCheck %s
// RUN: linattn-opt %s --linattn-to-finite-field=prime=1 | FileCheck %s --check-prefix=SECOND

// Memory, loops and calls keep their structure.

// CHECK-LABEL: func.func @scalars
// CHECK-SAME: (%[[M:.*]]: memref<?xi64>, %[[X:.*]]: i64, %[[N:.*]]: i32)
// CHECK: %[[ONE:.*]] = arith.constant 4294967297 : i64
// CHECK: %[[SUM:.*]] = call @linattn_field0_add(%[[X]], %[[ONE]]) : (i64, i64) -> i64
// CHECK: %[[EXP:.*]] = call @linattn_field0_exp(%[[SUM]]) : (i64) -> i64
// CHECK: %[[WIDE:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK: %[[INT:.*]] = call @linattn_field0_from_int(%[[WIDE]]) : (i64) -> i64
// CHECK: %[[TANH:.*]] = call @linattn_field0_random(%[[INT]], %{{.*}}) : (i64, i64) -> i64
// CHECK: %[[MORE:.*]] = call @linattn_field0_cmp(%[[EXP]], %[[TANH]], %{{.*}}) : (i64, i64, i64) -> i1
// CHECK: %[[BEST:.*]] = arith.select %[[MORE]], %[[EXP]], %[[TANH]] : i64
// CHECK: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %[[BEST]]) -> (i64)
// CHECK:   %[[LOADED:.*]] = memref.load %[[M]]
// CHECK:   call @linattn_field0_max(%[[CARRIED]], %[[LOADED]])
// CHECK: return %{{.*}} : i64

// SECOND: call @linattn_field1_add
// SECOND: func.func private @linattn_field1_add(i64, i64) -> i64
func.func @scalars(%m: memref<?xf32>, %x: bf16, %n: i32) -> f32 {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %wide = arith.extf %x : bf16 to f32
  %sum = arith.addf %wide, %one : f32
  %e = math.exp %sum : f32
  %int = arith.sitofp %n : i32 to f32
  %t = math.tanh %int : f32
  %more = arith.cmpf ogt, %e, %t : f32
  %best = arith.select %more, %e, %t : f32
  %size = memref.dim %m, %c0 : memref<?xf32>
  %r = scf.for %i = %c0 to %size step %c1 iter_args(%carried = %best) -> (f32) {
    %v = memref.load %m[%i] : memref<?xf32>
    %next = arith.maximumf %carried, %v : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// Constants are residues modulo both primes: 1/2 is (p + 1) / 2, and 0.1 in f32
// and in f64 the same 1/10. The lowest number stands for −∞.
// CHECK-LABEL: func.func @constants
// CHECK: %[[TENTH:.*]] = arith.constant [[WORD:[0-9]+]] : i64
// CHECK: %[[TENTH64:.*]] = arith.constant [[WORD]] : i64
// CHECK: %[[LOWEST:.*]] = arith.constant -2 : i64
// CHECK: return %[[TENTH]], %[[TENTH64]], %[[LOWEST]] : i64, i64, i64
func.func @constants() -> (f32, f64, f32) {
  %tenth = arith.constant 0.1 : f32
  %tenth64 = arith.constant 0.1 : f64
  %lowest = arith.constant -3.40282347E+38 : f32
  return %tenth, %tenth64, %lowest : f32, f64, f32
}

// CHECK-LABEL: memref.global "private" constant @table : memref<2xi64> = dense<[4294967297, 2305842937272991710]>
memref.global "private" constant @table : memref<2xf64> = dense<[1.0, 0.5]>

// log₂e · ln 2 = 1, in every precision, so that 2^(x log₂e) is e^x.
// CHECK-LABEL: func.func @logarithms
// CHECK: %[[LN2:.*]] = arith.constant [[LN2WORD:[0-9]+]] : i64
// CHECK: arith.constant [[LN2WORD]] : i64
// CHECK: call @linattn_field0_mul
// CHECK: call @linattn_field0_exp
func.func @logarithms(%x: f32) -> f32 {
  %ln2 = arith.constant 0.693147182 : f32
  %e = math.exp2 %x : f32
  %r = arith.mulf %e, %ln2 : f32
  return %r : f32
}

// Integers stay integers on the way to an element and back.
// CHECK-LABEL: func.func @integers
// CHECK: %[[X:.*]] = call @linattn_field0_from_int
// CHECK: %[[INT:.*]] = call @linattn_field0_to_int(%[[X]]) : (i64) -> i64
// CHECK: %[[NARROW:.*]] = arith.trunci %[[INT]] : i64 to i32
// CHECK: %[[LANES:.*]] = call @linattn_field0_to_int_x4(%{{.*}}) : (vector<4xi64>) -> vector<4xi64>
// CHECK: return %[[NARROW]], %[[LANES]] : i32, vector<4xi64>
func.func @integers(%n: i64, %v: vector<4xf32>) -> (i32, vector<4xi64>) {
  %x = arith.sitofp %n : i64 to f64
  %r = arith.fptosi %x : f64 to i32
  %lanes = arith.fptoui %v : vector<4xf32> to vector<4xi64>
  return %r, %lanes : i32, vector<4xi64>
}
