// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=512 registers=32}),canonicalize,cse)' | FileCheck %s
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=512 registers=32 l1=49152}),canonicalize,cse)' | FileCheck %s --check-prefix=LARGE

// The order in which a state tile goes over heads, blocks, panels and tiles.

// The first tile of a panel starts the sums, the last one writes them out, and
// every tile prefetches four tokens of the next block, one every eight tokens: of
// keys, values, queries and outputs every line, and the one that a row ends in.

// CHECK-LABEL: func.func @tiles(
// CHECK-NOT:     scf.for
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c8)
// CHECK:           %[[SUMS:.+]] = memref.alloca() {{.*}} : memref<1x32x32xf32>
// CHECK:           scf.for {{.*}} to %c4096 step %c32
// CHECK-NOT:         vector.store %{{.+}}, %[[SUMS]]
// CHECK:             scf.for {{.*}} = %c0 to %c4 step %c1 iter_args
// CHECK-COUNT-9:       memref.prefetch %arg0[{{.+}}], read
// CHECK-COUNT-3:       memref.prefetch %arg0[{{.+}}], write
// CHECK-NOT:           memref.prefetch
// CHECK:               scf.for {{.*}} iter_args
// CHECK-NOT:             vector.load %[[SUMS]]
// CHECK:                 vector.store %{{.+}}, %[[SUMS]]
// CHECK:             scf.for {{.*}} = %c8 to %c56 step %c8
// CHECK-COUNT-12:      memref.prefetch
// CHECK:               scf.for {{.*}} iter_args
// CHECK:                 vector.load %[[SUMS]]
// CHECK:                 vector.store %{{.+}}, %[[SUMS]]
// CHECK-COUNT-12:    memref.prefetch
// CHECK:             scf.for {{.*}} iter_args
// CHECK:               vector.load %[[SUMS]]
// CHECK-NOT:           vector.store
// CHECK:               vector.transfer_write %{{.+}}, %arg0
// CHECK:             scf.yield
// CHECK-NOT:         vector.load %[[SUMS]]
// CHECK:           scf.reduce
func.func @tiles(%q: memref<1x8x4096x64xf32>, %s: memref<1x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = state_tile, block = 32>}
    : (memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x64x64xf32>) -> ()
  return
}

// How many tiles there are is not known: the sums are cleared and copied.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         %[[SUMS:.+]] = memref.alloca() {{.*}} : memref<1x32x32xf32>
// CHECK:         vector.store %{{cst.*}}, %[[SUMS]]
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load %[[SUMS]]
// CHECK:           vector.store %{{.+}}, %[[SUMS]]
// CHECK:         vector.load %[[SUMS]]
// CHECK:         vector.transfer_write
func.func @dynamic(%q: memref<1x8x4096x?xf32>, %s: memref<1x8x?x?xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = state_tile, block = 32>}
    : (memref<1x8x4096x?xf32>, memref<1x8x4096x?xf32>, memref<1x8x4096x?xf32>, memref<1x8x4096x?xf32>, memref<1x8x?x?xf32>) -> ()
  return
}

// [B, T, H, D] seen as [B, H, T, D]: all heads do 256 tokens before any goes on.

!scattered = memref<1x8x4096x64xf32, strided<[2097152, 64, 512, 1]>>
// CHECK-LABEL: func.func @scattered(
// CHECK:         scf.for %[[SPAN:.+]] = %c0 to %c16 step %c1
// CHECK:           %[[FROM:.+]] = arith.muli %[[SPAN]], %c256
// CHECK:           %[[TO:.+]] = arith.addi %[[FROM]], %c256
// CHECK:           %[[END:.+]] = arith.minsi %[[TO]], %c4096
// CHECK:           scf.parallel
// CHECK:             scf.for {{.*}} = %[[FROM]] to %[[END]] step
func.func @scattered(%q: !scattered, %s: memref<1x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (!scattered, !scattered, !scattered, !scattered, memref<1x8x64x64xf32>) -> ()
  return
}

// Strides known at run time: decided there.

!unknown = memref<1x8x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
// CHECK-LABEL: func.func @unknown(
// CHECK:         %[[META:.+]], %{{.+}}, %{{.+}}:4, %[[STRIDES:.+]]:4 = memref.extract_strided_metadata
// CHECK:         %[[SCATTERED:.+]] = arith.cmpi sgt, %[[STRIDES]]#2, %c128
// CHECK:         %[[SPAN:.+]] = arith.select %[[SCATTERED]], %c256
// CHECK:         scf.for
// CHECK:           arith.muli %{{.+}}, %[[SPAN]]
// CHECK:           scf.parallel
func.func @unknown(%q: !unknown, %s: memref<1x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (!unknown, !unknown, !unknown, !unknown, memref<1x8x64x64xf32>) -> ()
  return
}

// Few tokens or one head: all
// tokens at once.

!few = memref<1x8x256x64xf32, strided<[131072, 64, 512, 1]>>
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     scf.for
// CHECK:         scf.parallel
func.func @few(%q: !few, %s: memref<1x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (!few, !few, !few, !few, memref<1x8x64x64xf32>) -> ()
  return
}

!one = memref<1x1x4096x64xf32, strided<[2097152, 64, 512, 1]>>
// CHECK-LABEL: func.func @one_head(
// CHECK-NOT:     scf.for
// CHECK:         scf.parallel
func.func @one_head(%q: !one, %s: memref<1x1x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (!one, !one, !one, !one, memref<1x1x64x64xf32>) -> ()
  return
}

// The state is multiplied only in blocks in which the running maximum rises.

// CHECK-LABEL: func.func @running_maximum(
// CHECK:         %[[GATES:.+]] = memref.alloca() {{.*}} : memref<32xf32>
// CHECK:         %[[RISES:.+]] = scf.for {{.*}} iter_args({{.*}}) -> (i1)
// CHECK:           %[[GATE:.+]] = memref.load %[[GATES]]
// CHECK:           %[[DIFFERS:.+]] = arith.cmpf une, %[[GATE]], %cst
// CHECK:           arith.ori %{{.+}}, %[[DIFFERS]]
// CHECK:         scf.if %[[RISES]] {
// CHECK:           memref.load %[[GATES]]
// CHECK:         } else {
// CHECK-NOT:       memref.load %[[GATES]]
// CHECK:         return
func.func @running_maximum(%q: memref<1x8x4096x64xf32>, %s: memref<1x8x64x64xf32>, %z: memref<1x8x64xf32>, %m: memref<1x8xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) running_max(%m)
      {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>, config = #linattn.config<form = state_tile, block = 32>}
    : (memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x64x64xf32>, memref<1x8x64xf32>, memref<1x8xf32>) -> ()
  return
}

// With a decay every token multiplies it.

// CHECK-LABEL: func.func @running_maximum_and_decay(
// CHECK-NOT:     scf.if
// CHECK:         scf.reduce
func.func @running_maximum_and_decay(%q: memref<1x8x4096x64xf32>, %g: memref<1x8x4096xf32>, %s: memref<1x8x64x64xf32>, %z: memref<1x8x64xf32>, %m: memref<1x8xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) normalizer(%z) running_max(%m)
      {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>, config = #linattn.config<form = state_tile, block = 32>}
    : (memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096x64xf32>, memref<1x8x4096xf32>, memref<1x8x4096x64xf32>, memref<1x8x64x64xf32>, memref<1x8x64xf32>, memref<1x8xf32>) -> ()
  return
}

// Rows that lie apart are prefetched into the second cache; into the first one where it is large, where the
// tokens of a head are known to be neighbours, or where there are two operands only.

!apart = memref<1x16x4096x64xf32, strided<[?, 64, 1024, 1]>>
// CHECK-LABEL: func.func @apart(
// CHECK:         memref.prefetch %arg0[{{.+}}], read, locality<2>
// CHECK:         memref.prefetch %arg1[{{.+}}], read, locality<3>
// LARGE-LABEL: func.func @apart(
// LARGE-NOT:     locality<2>
func.func @apart(%k: !apart, %v: memref<1x16x4096x64xf32>, %q: !apart, %o: !apart, %s: memref<1x16x64x64xf32>) {
  linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = state_tile, block = 32>}
    : (!apart, !apart, memref<1x16x4096x64xf32>, !apart, memref<1x16x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @keys_and_values(
// CHECK-NOT:     locality<2>
// CHECK:         memref.prefetch %arg0[{{.+}}], read, locality<3>
// CHECK-NOT:     locality<2>
// CHECK:         return
func.func @keys_and_values(%k: !apart, %v: !apart, %s: memref<1x16x64x64xf32>) {
  linattn.state %k, %v init(%s) : (!apart, !apart, memref<1x16x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @queries_and_outputs(
// CHECK-NOT:     locality<2>
// CHECK:         memref.prefetch %arg0[{{.+}}], read, locality<3>
// CHECK-NOT:     locality<2>
// CHECK:         return
func.func @queries_and_outputs(%q: !apart, %s: memref<1x16x64x64xf32>, %o: !apart) {
  linattn.read %q, %s into(%o) : (!apart, memref<1x16x64x64xf32>, !apart) -> ()
  return
}

// A state that a fill with zeros comes before starts from zeros itself, without the fill; rows apart come span by span,
// and only the first span does.

// CHECK-LABEL: func.func @from_zeros(
// CHECK-NOT:     linalg.fill
// CHECK:         scf.for %[[SPAN:.+]] = %c0 to %c16 step %c1
// CHECK:           %[[FROM:.+]] = arith.muli %[[SPAN]], %c256
// CHECK:           scf.parallel
// CHECK:             %[[TILE:.+]] = memref.alloca() {{.*}} : memref<2x64x32xf32>
// CHECK:             %[[FIRST:.+]] = arith.cmpi eq, %[[FROM]], %c0
// CHECK:             scf.if %[[FIRST]] {
// CHECK-NOT:           vector.transfer_read %arg2
// CHECK:               vector.store %{{cst.*}}, %[[TILE]]
// CHECK:             } else {
// CHECK:               vector.transfer_read %arg2
// CHECK:               vector.store %{{.+}}, %[[TILE]]
func.func @from_zeros(%k: !apart, %v: !apart, %s: memref<1x16x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<1x16x64x64xf32>)
  linattn.state %k, %v init(%s) : (!apart, !apart, memref<1x16x64x64xf32>) -> ()
  return
}

// Without spans no state is read; sizes need not be known.

// CHECK-LABEL: func.func @from_zeros_dynamic(
// CHECK-NOT:     linalg.fill
// CHECK-NOT:     vector.transfer_read %arg2
// CHECK:         vector.transfer_write %{{.+}}, %arg2
// CHECK:         return
func.func @from_zeros_dynamic(%k: memref<?x1x?x?xf32>, %v: memref<?x1x?x?xf32>, %s: memref<?x1x?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<?x1x?x?xf32>)
  linattn.state %k, %v init(%s) : (memref<?x1x?x?xf32>, memref<?x1x?x?xf32>, memref<?x1x?x?xf32>) -> ()
  return
}

// Another number, another reader of the zeros and the token form keep the fill.

// CHECK-LABEL: func.func @kept_fills(
// CHECK-COUNT-3: linalg.fill
// CHECK:         return
func.func @kept_fills(%k: !apart, %x: memref<1x16x1x64xf32>, %r: memref<1x16x64x64xf32>, %s: memref<1x16x64x64xf32>, %t: memref<1x16x64x64xf32>, %u: memref<1x16x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%s : memref<1x16x64x64xf32>)
  linattn.state %k, %k init(%s) : (!apart, !apart, memref<1x16x64x64xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%t : memref<1x16x64x64xf32>)
  memref.copy %t, %r : memref<1x16x64x64xf32> to memref<1x16x64x64xf32>
  linattn.state %k, %k init(%t) : (!apart, !apart, memref<1x16x64x64xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%u : memref<1x16x64x64xf32>)
  linattn.state %x, %x init(%u) {config = #linattn.config<form = token>} : (memref<1x16x1x64xf32>, memref<1x16x1x64xf32>, memref<1x16x64x64xf32>) -> ()
  return
}
