// RUN: linattn-run %s --entry matmul --arg random:5x64xf32:3 --compare=reference --time=2 --flops=20480 --json=%t.json --out %t.npy --print | FileCheck %s --check-prefix=MATMUL
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: linattn-run %s --entry scale --arg %t.npy --arg ones:f32 --threads 2 --compare=reference | FileCheck %s --check-prefix=SCALE
// RUN: linattn-run %s --entry scale --arg zeros:0x32xf32 --arg ones:f32 --print | FileCheck %s --check-prefix=EMPTY
// RUN: linattn-run %s --entry scale --arg ones:1x32xf32 --arg ones:f32 --target=reference --print | FileCheck %s --check-prefix=PRINT
// RUN: not linattn-run %s 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not linattn-run %s --entry scale 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not linattn-run %s --entry scale --arg random:4x32xbf16 --arg ones:f32 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not linattn-run %s --entry scale --arg random:4x32 2>&1 | FileCheck %s --check-prefix=SPEC
// RUN: not linattn-run %s --entry scale --arg %s 2>&1 | FileCheck %s --check-prefix=NPY
// RUN: not linattn-run %s --entry matmul --time=often 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not linattn-run %s --entry scale --arg zeros:4611686018427387904x32xf32 --arg ones:f32 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not linattn-run %s --entry scale --arg zeros:36028797018963968x32xf32 --arg ones:f32 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not linattn-run %t.npy 2>&1 | FileCheck %s --check-prefix=MLIR

// LARGE:       expected an array of at most 9223372036854775807 bytes, but got shape 4611686018427387904x32 with elements of 4 bytes
// MEMORY:      expected an array that fits into memory, but got shape 36028797018963968x32, 4611686018427387904 bytes

// MATMUL:      result 0: 5x32 f32 {{\[\[}}
// MATMUL-NEXT: result 0: agrees with the reference: max relative error {{.+}}, tolerance 3e-06
// MATMUL-NEXT: time: median {{.+}} ms, min {{.+}} ms, 2 repetitions
// MATMUL-NEXT: one core's FMA peak ({{avx512|avx2|generic}}): {{.+}} GFLOP/s before, {{.+}} after
// MATMUL-NEXT: speed: {{.+}} GFLOP/s, {{.+}} % of that peak

// JSON-DAG: "entry": "matmul"
// JSON-DAG: "agrees": true
// JSON-DAG: "median_ms":

func.func @matmul(%a: tensor<?x64xf32>, %b: tensor<64x32xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf32>
  %empty = tensor.empty(%m) : tensor<?x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32xf32>) -> tensor<?x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>) outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}

// SCALE: result 0: agrees with the reference
// EMPTY: result 0: 0x32 f32 []
// PRINT: result 0: 1x32 f32 {{\[\[}}2.71828, 2.71828,
// ENTRY: run.mlir: error: expected an entry to be named, since there are several public functions: @matmul, @scale
// SHAPE: argument 0 (%x): expected --arg, since its type tensor<?x32xf32> leaves the shape open
// TYPE:  argument 0 (%x): expected elements of type f32, but got bf16
// SPEC:  expected a type such as 2x128x4x64xf32, but got '4x32'
// NPY:   run.mlir: byte 0: error: expected a .npy file
// TIME:  --time: expected a number of repetitions, but got 'often'
// MLIR:  .npy:1:1: error:

func.func @scale(%x: tensor<?x32xf32>, %s: f32) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<?x32xf32>
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?x32xf32> {
    %row = tensor.extract_slice %x[%i, 0] [1, 32] [1, 1] : tensor<?x32xf32> to tensor<32xf32>
    %out = tensor.extract_slice %o[%i, 0] [1, 32] [1, 1] : tensor<?x32xf32> to tensor<32xf32>
    %exp = linalg.exp ins(%row : tensor<32xf32>) outs(%out : tensor<32xf32>) -> tensor<32xf32>
    %v = linalg.map ins(%exp : tensor<32xf32>) outs(%out : tensor<32xf32>)
      (%a: f32, %old: f32) {
        %0 = arith.mulf %a, %s : f32
        linalg.yield %0 : f32
      }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0] [1, 32] [1, 1] : tensor<32xf32> into tensor<?x32xf32>
    }
  }
  return %r : tensor<?x32xf32>
}
