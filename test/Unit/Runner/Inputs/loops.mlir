// Host code with loops in loops and a branch: chunks of three tokens, each
// squared at once and then written token by token; halves where there are many.
func.func @loops(%x: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  %half = arith.constant 0.5 : f32
  %t = tensor.dim %x, %c1 : tensor<2x?x4xf32>
  %e = tensor.empty(%t) : tensor<2x?x4xf32>
  %r = scf.for %i = %c0 to %t step %c3 iter_args(%o = %e) -> tensor<2x?x4xf32> {
    %left = arith.subi %t, %i : index
    %n = arith.minsi %left, %c3 : index
    %chunk = tensor.extract_slice %x[0, %i, 0] [2, %n, 4] [1, 1, 1] : tensor<2x?x4xf32> to tensor<2x?x4xf32>
    %b = tensor.empty(%n) : tensor<2x?x4xf32>
    %squared = linalg.map ins(%chunk : tensor<2x?x4xf32>) outs(%b : tensor<2x?x4xf32>) (%a: f32, %old: f32) {
      %y = arith.mulf %a, %a : f32
      linalg.yield %y : f32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%q = %o) -> tensor<2x?x4xf32> {
      %token = tensor.extract_slice %squared[0, %j, 0] [2, 1, 4] [1, 1, 1] : tensor<2x?x4xf32> to tensor<2x4xf32>
      %at = arith.addi %i, %j : index
      %there = tensor.insert_slice %token into %q[0, %at, 0] [2, 1, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<2x?x4xf32>
      scf.yield %there : tensor<2x?x4xf32>
    }
    scf.yield %p : tensor<2x?x4xf32>
  }
  %isLong = arith.cmpi sgt, %t, %c100 : index
  %result = scf.if %isLong -> tensor<2x?x4xf32> {
    %halved = linalg.map ins(%r : tensor<2x?x4xf32>) outs(%r : tensor<2x?x4xf32>) (%a: f32, %old: f32) {
      %y = arith.mulf %a, %half : f32
      linalg.yield %y : f32
    }
    scf.yield %halved : tensor<2x?x4xf32>
  } else {
    scf.yield %r : tensor<2x?x4xf32>
  }
  return %result : tensor<2x?x4xf32>
}
