// RUN: linattn-compile %s --target=aarch64-linux-gnu --form=state_tile --emit=asm -o %t.tile.s
// RUN: FileCheck %s --check-prefix=TILE --implicit-check-not="{{(str|stp|ldr|ldp)[[:space:]]+q[0-9]+.*[[]sp}}" < %t.tile.s
// RUN: linattn-compile %s --target=aarch64-linux-gnu --form=token --emit=asm -o %t.token.s
// RUN: FileCheck %s --check-prefix=TOKEN --implicit-check-not="{{(str|stp|ldr|ldp)[[:space:]]+q[0-9]+.*[[]sp}}" < %t.token.s
// RUN: linattn-compile %s --target=aarch64-linux-gnu --form=chunk:16 --emit=asm -o %t.chunk.s
// RUN: FileCheck %s --check-prefix=CHUNK < %t.chunk.s

// A tile of 8 by 8 numbers is 16 vectors: a token takes 16 fused products to
// write it and 16 to read it, and no vector goes through the stack.
// TILE: linear__task
// TILE: .LBB
// TILE-COUNT-32: fmla{{.*}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}.s[0]
// TILE: b.ne

// A panel of 32 columns: 8 vectors of values, 8 of sums, and a row of the state.
// TOKEN: linear__task
// TOKEN: .LBB
// TOKEN-COUNT-16: fmla{{.*}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}.s[0]
// TOKEN: b.ne

// CHUNK: linear__task
// CHUNK-COUNT-64: fmla{{.*}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}.s[
func.func @linear(%q: tensor<1x8x?x64xf32>, %k: tensor<1x8x?x64xf32>, %v: tensor<1x8x?x64xf32>, %s: tensor<1x8x64x64xf32>) -> (tensor<1x8x?x64xf32>, tensor<1x8x64x64xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<1x8x?x64xf32>
  %into = tensor.empty(%t) : tensor<1x8x?x64xf32>
  %o, %s1 = linattn.scan %q, %k, %v into(%into) init(%s) : (tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x?x64xf32>, tensor<1x8x64x64xf32>) -> (tensor<1x8x?x64xf32>, tensor<1x8x64x64xf32>)
  return %o, %s1 : tensor<1x8x?x64xf32>, tensor<1x8x64x64xf32>
}
