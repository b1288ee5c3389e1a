// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32' | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A sequence's own length decides between the schedules of a form: here where
// all are of one known length, else at run time.

// Without a state on either side, short sequences are one chunk.

// CHECK-LABEL: func.func @stateless(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}, whole = [[#WHOLE:]]>}
// REMARK:      "a sequence of up to [[#WHOLE:]] tokens is one chunk"
func.func @stateless(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>) -> tensor<2x3x?x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x64x64xf32>
  %s = linalg.fill ins(%c0 : f32) outs(%e : tensor<2x3x64x64xf32>) -> tensor<2x3x64x64xf32>
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s)
    : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0 : tensor<2x3x?x64xf32>
}

// Too few tokens for a chunk of a matrix unit have the form of a remainder: they
// go one by one, since zeros fill up a chunk for more, ...

// CHECK-LABEL: func.func @few_of_remainder(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token, {{.*}}>, linattn.remainder}
// REMARK:      "token, tile {{.*}}: few tokens: zeros fill up chunks for more"
func.func @few_of_remainder(%q: tensor<2x3x20x64xf32>, %s: tensor<2x3x64x64xf32>) -> tensor<2x3x20x64xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {linattn.remainder}
    : (tensor<2x3x20x64xf32>, tensor<2x3x20x64xf32>, tensor<2x3x20x64xf32>, tensor<2x3x20x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x20x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0 : tensor<2x3x20x64xf32>
}

// ... or where zeros cannot, in the form for a state that comes in and goes out.

// CHECK-LABEL: func.func @remainder(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}>, linattn.remainder}
func.func @remainder(%q: tensor<2x3x32x64xf32>, %m: tensor<2x32xi1>, %o: tensor<2x3x32x64xf32>) -> tensor<2x3x32x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x64x64xf32>
  %s = linalg.fill ins(%c0 : f32) outs(%e : tensor<2x3x64x64xf32>) -> tensor<2x3x64x64xf32>
  %r:2 = linattn.scan %q, %q, %q mask(%m) into(%o) init(%s) {linattn.remainder}
    : (tensor<2x3x32x64xf32>, tensor<2x3x32x64xf32>, tensor<2x3x32x64xf32>, tensor<2x32xi1>, tensor<2x3x32x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x32x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0 : tensor<2x3x32x64xf32>
}

// The same tokens packed: the same limit.

// CHECK-LABEL: func.func @packed(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, {{.*}} whole = [[#WHOLE]]>}
// REMARK:      "a sequence of up to [[#WHOLE]] tokens is one chunk"
func.func @packed(%q: tensor<1x3x2048x64xf32>, %o: tensor<1x3x2048x64xf32>, %c: tensor<5xi64>) -> tensor<1x3x2048x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3x64x64xf32>
  %s = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x3x64x64xf32>) -> tensor<4x3x64x64xf32>
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%c) into(%o) init(%s)
    : (tensor<1x3x2048x64xf32>, tensor<1x3x2048x64xf32>, tensor<1x3x2048x64xf32>, tensor<5xi64>, tensor<1x3x2048x64xf32>, tensor<4x3x64x64xf32>) -> (tensor<1x3x2048x64xf32>, tensor<4x3x64x64xf32>)
  return %r#0 : tensor<1x3x2048x64xf32>
}

// Of a known number the limit is either passed, or it is not.

// CHECK-LABEL: func.func @long(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}>}
// REMARK-NOT:  is one chunk
// REMARK:      "chunks of 16 tokens: cost {{[^;]*}}; state_tile {{[0-9]+}}, token {{[0-9]+}}"
func.func @long(%q: tensor<2x3x512x64xf32>, %o: tensor<2x3x512x64xf32>) -> tensor<2x3x512x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x64x64xf32>
  %s = linalg.fill ins(%c0 : f32) outs(%e : tensor<2x3x64x64xf32>) -> tensor<2x3x64x64xf32>
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s)
    : (tensor<2x3x512x64xf32>, tensor<2x3x512x64xf32>, tensor<2x3x512x64xf32>, tensor<2x3x512x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x512x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0 : tensor<2x3x512x64xf32>
}

// A state that comes in and goes out: a few tokens one by one, packed too.

// CHECK-LABEL: func.func @carried(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, {{.*}} few = [[#FEW:]]>}
// REMARK:      "a sequence of up to [[#FEW:]] tokens goes token by token, beside sequences of any length"
func.func @carried(%q: tensor<1x3x?x64xf32>, %b: tensor<1x3x?xf32>, %o: tensor<1x3x?x64xf32>, %s: tensor<?x3x64x64xf32>, %c: tensor<?xi64>) -> (tensor<1x3x?x64xf32>, tensor<?x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) cu_seqlens(%c) update(delta) into(%o) init(%s)
    : (tensor<1x3x?x64xf32>, tensor<1x3x?x64xf32>, tensor<1x3x?x64xf32>, tensor<1x3x?xf32>, tensor<?xi64>, tensor<1x3x?x64xf32>, tensor<?x3x64x64xf32>) -> (tensor<1x3x?x64xf32>, tensor<?x3x64x64xf32>)
  return %r#0, %r#1 : tensor<1x3x?x64xf32>, tensor<?x3x64x64xf32>
}

// CHECK-LABEL: func.func @carried_few(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token,
// REMARK:      "token, {{.*}}: few tokens: [[#FEW]] or fewer of a sequence go one by one, more in chunks"
func.func @carried_few(%q: tensor<2x3x2x64xf32>, %b: tensor<2x3x2xf32>, %o: tensor<2x3x2x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x2x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x3x2x64xf32>, tensor<2x3x2x64xf32>, tensor<2x3x2x64xf32>, tensor<2x3x2xf32>, tensor<2x3x2x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x2x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x2x64xf32>, tensor<2x3x64x64xf32>
}

// A form that was written stands for every length.

// CHECK-LABEL: func.func @given(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = {{[0-9]+}}>}
func.func @given(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk>}
    : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>
}

// A part of the columns has the form of all of them: of these alone 8 tokens would be few.

// CHECK-LABEL: func.func @columns(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32, few = 7>, linattn.columns = 64 : i64}
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32, few = 8>}
func.func @columns(%q: tensor<1x1x?x64xf32>, %v: tensor<1x1x?x32xf32>, %g: tensor<1x1x?xf32>, %b: tensor<1x1x?x32xf32>, %s: tensor<1x1x64x32xf32>) -> (tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>) {
  %r:2 = linattn.scan %q, %q, %v decay(%g) beta(%b) update(delta) into(%v) init(%s) {linattn.columns = 64 : i64}
    : (tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>) -> (tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>)
  %t:2 = linattn.scan %q, %q, %v decay(%g) beta(%b) update(delta) into(%v) init(%s)
    : (tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>) -> (tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>)
  return %r#0, %r#1, %t#0, %t#1 : tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x64x32xf32>
}
