llvm.func @getpid() -> i32
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = llvm.call @getpid() : () -> i32
  return %x : tensor<4xf32>
}
