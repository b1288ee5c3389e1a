// RUN: linattn-opt %s --linattn-lower-allocations --split-input-file --verify-diagnostics | FileCheck %s

// Nothing is declared where nothing is allocated; the stack is left alone.
// CHECK-NOT:   linattn_allocate
// CHECK-LABEL: func.func @stack(
// CHECK:         memref.alloca
func.func @stack() {
  %m = memref.alloca() : memref<4xf32>
  return
}

// -----

func.func @layout() -> memref<4x4xf32, strided<[8, 1]>> {
  // expected-error @+1 {{expected an allocation with the identity layout, of integers or floats, but got 'memref<4x4xf32, strided<[8, 1]>>'}}
  %m = memref.alloc() : memref<4x4xf32, strided<[8, 1]>>
  return %m : memref<4x4xf32, strided<[8, 1]>>
}
