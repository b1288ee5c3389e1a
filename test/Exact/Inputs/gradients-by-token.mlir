// Three tokens of each recurrence, written out: their gradients come from the rules of
// linalg and arith alone.

#kv = affine_map<(i, j) -> (i, j)>
#k = affine_map<(i, j) -> (i)>
#v = affine_map<(i, j) -> (j)>

// e^g S e^h
func.func private @decayed(%s: tensor<4x3xf32>, %g: tensor<4xf32>, %h: tensor<3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#kv, #k, #v, #kv], iterator_types = ["parallel", "parallel"]}
      ins(%s, %g, %h : tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
    %0 = math.exp %y : f32
    %1 = math.exp %z : f32
    %2 = arith.mulf %x, %0 : f32
    %3 = arith.mulf %2, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// S + k vᵀ
func.func private @written(%s: tensor<4x3xf32>, %k: tensor<4xf32>, %v: tensor<3xf32>) -> tensor<4x3xf32> {
  %r = linalg.generic {indexing_maps = [#k, #v, #kv], iterator_types = ["parallel", "parallel"]}
      ins(%k, %v : tensor<4xf32>, tensor<3xf32>) outs(%s : tensor<4x3xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// o + Sᵀq
func.func private @read(%s: tensor<4x3xf32>, %q: tensor<4xf32>, %o: tensor<3xf32>) -> tensor<3xf32> {
  %r = linalg.generic {indexing_maps = [#kv, #k, #v], iterator_types = ["reduction", "parallel"]}
      ins(%s, %q : tensor<4x3xf32>, tensor<4xf32>) outs(%o : tensor<3xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

func.func @values(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %h: tensor<1x1x3x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<1x1x3x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %q0 = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g0 = tensor.extract_slice %g[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %h0 = tensor.extract_slice %h[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %D0 = func.call @decayed(%S0, %g0, %h0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S1 = func.call @written(%D0, %k0, %v0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o0 = func.call @read(%S1, %q0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out0 = tensor.insert_slice %o0 into %e[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q1 = tensor.extract_slice %q[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k1 = tensor.extract_slice %k[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v1 = tensor.extract_slice %v[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g1 = tensor.extract_slice %g[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %h1 = tensor.extract_slice %h[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %D1 = func.call @decayed(%S1, %g1, %h1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S2 = func.call @written(%D1, %k1, %v1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o1 = func.call @read(%S2, %q1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out1 = tensor.insert_slice %o1 into %out0[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q2 = tensor.extract_slice %q[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k2 = tensor.extract_slice %k[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v2 = tensor.extract_slice %v[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g2 = tensor.extract_slice %g[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %h2 = tensor.extract_slice %h[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %D2 = func.call @decayed(%S2, %g2, %h2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S3 = func.call @written(%D2, %k2, %v2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o2 = func.call @read(%S3, %q2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out2 = tensor.insert_slice %o2 into %out1[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %S3 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %out2, %end : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @exclusive(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<1x1x3x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %q0 = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g0 = tensor.extract_slice %g[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D0 = func.call @decayed(%S0, %g0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S1 = func.call @written(%D0, %k0, %v0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o0 = func.call @read(%S0, %q0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out0 = tensor.insert_slice %o0 into %e[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q1 = tensor.extract_slice %q[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k1 = tensor.extract_slice %k[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v1 = tensor.extract_slice %v[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g1 = tensor.extract_slice %g[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D1 = func.call @decayed(%S1, %g1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S2 = func.call @written(%D1, %k1, %v1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o1 = func.call @read(%S1, %q1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out1 = tensor.insert_slice %o1 into %out0[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q2 = tensor.extract_slice %q[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k2 = tensor.extract_slice %k[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v2 = tensor.extract_slice %v[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g2 = tensor.extract_slice %g[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D2 = func.call @decayed(%S2, %g2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S3 = func.call @written(%D2, %k2, %v2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o2 = func.call @read(%S2, %q2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out2 = tensor.insert_slice %o2 into %out1[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %S3 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %out2, %end : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @delta(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %x: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<1x1x3x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %q0 = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g0 = tensor.extract_slice %g[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D0 = func.call @decayed(%S0, %g0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %n0 = arith.mulf %k0, %x0 : tensor<4xf32>
  %r0 = func.call @read(%D0, %n0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d0 = arith.subf %v0, %r0 : tensor<3xf32>
  %S1 = func.call @written(%D0, %k0, %d0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o0 = func.call @read(%S1, %q0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out0 = tensor.insert_slice %o0 into %e[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q1 = tensor.extract_slice %q[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k1 = tensor.extract_slice %k[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v1 = tensor.extract_slice %v[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g1 = tensor.extract_slice %g[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %x1 = tensor.extract_slice %x[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D1 = func.call @decayed(%S1, %g1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %n1 = arith.mulf %k1, %x1 : tensor<4xf32>
  %r1 = func.call @read(%D1, %n1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d1 = arith.subf %v1, %r1 : tensor<3xf32>
  %S2 = func.call @written(%D1, %k1, %d1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o1 = func.call @read(%S2, %q1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out1 = tensor.insert_slice %o1 into %out0[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q2 = tensor.extract_slice %q[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k2 = tensor.extract_slice %k[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v2 = tensor.extract_slice %v[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g2 = tensor.extract_slice %g[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %x2 = tensor.extract_slice %x[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D2 = func.call @decayed(%S2, %g2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %n2 = arith.mulf %k2, %x2 : tensor<4xf32>
  %r2 = func.call @read(%D2, %n2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d2 = arith.subf %v2, %r2 : tensor<3xf32>
  %S3 = func.call @written(%D2, %k2, %d2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o2 = func.call @read(%S3, %q2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out2 = tensor.insert_slice %o2 into %out1[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %S3 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %out2, %end : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @before(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %a: tensor<1x1x3x4xf32>, %b: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<1x1x3x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %q0 = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g0 = tensor.extract_slice %g[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a0 = tensor.extract_slice %a[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b0 = tensor.extract_slice %b[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %r0 = func.call @read(%S0, %a0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %D0 = func.call @decayed(%S0, %g0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %B0 = func.call @written(%D0, %b0, %r0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S1 = func.call @written(%B0, %k0, %v0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o0 = func.call @read(%S1, %q0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out0 = tensor.insert_slice %o0 into %e[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q1 = tensor.extract_slice %q[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k1 = tensor.extract_slice %k[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v1 = tensor.extract_slice %v[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g1 = tensor.extract_slice %g[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a1 = tensor.extract_slice %a[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b1 = tensor.extract_slice %b[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %r1 = func.call @read(%S1, %a1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %D1 = func.call @decayed(%S1, %g1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %B1 = func.call @written(%D1, %b1, %r1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S2 = func.call @written(%B1, %k1, %v1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o1 = func.call @read(%S2, %q1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out1 = tensor.insert_slice %o1 into %out0[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q2 = tensor.extract_slice %q[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k2 = tensor.extract_slice %k[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v2 = tensor.extract_slice %v[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g2 = tensor.extract_slice %g[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a2 = tensor.extract_slice %a[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b2 = tensor.extract_slice %b[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %r2 = func.call @read(%S2, %a2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %D2 = func.call @decayed(%S2, %g2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %B2 = func.call @written(%D2, %b2, %r2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S3 = func.call @written(%B2, %k2, %v2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o2 = func.call @read(%S3, %q2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out2 = tensor.insert_slice %o2 into %out1[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %S3 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %out2, %end : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}

func.func @after(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x3xf32>, %g: tensor<1x1x3x4xf32>, %a: tensor<1x1x3x4xf32>, %b: tensor<1x1x3x4xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<1x1x3x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %q0 = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k0 = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g0 = tensor.extract_slice %g[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a0 = tensor.extract_slice %a[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b0 = tensor.extract_slice %b[0, 0, 0, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D0 = func.call @decayed(%S0, %g0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %r0 = func.call @read(%D0, %a0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %B0 = func.call @written(%D0, %b0, %r0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S1 = func.call @written(%B0, %k0, %v0) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o0 = func.call @read(%S0, %q0, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out0 = tensor.insert_slice %o0 into %e[0, 0, 0, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q1 = tensor.extract_slice %q[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k1 = tensor.extract_slice %k[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v1 = tensor.extract_slice %v[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g1 = tensor.extract_slice %g[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a1 = tensor.extract_slice %a[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b1 = tensor.extract_slice %b[0, 0, 1, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D1 = func.call @decayed(%S1, %g1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %r1 = func.call @read(%D1, %a1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %B1 = func.call @written(%D1, %b1, %r1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S2 = func.call @written(%B1, %k1, %v1) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o1 = func.call @read(%S1, %q1, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out1 = tensor.insert_slice %o1 into %out0[0, 0, 1, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %q2 = tensor.extract_slice %q[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %k2 = tensor.extract_slice %k[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %v2 = tensor.extract_slice %v[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x3x3xf32> to tensor<3xf32>
  %g2 = tensor.extract_slice %g[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %a2 = tensor.extract_slice %a[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %b2 = tensor.extract_slice %b[0, 0, 2, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x3x4xf32> to tensor<4xf32>
  %D2 = func.call @decayed(%S2, %g2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %r2 = func.call @read(%D2, %a2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %B2 = func.call @written(%D2, %b2, %r2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %S3 = func.call @written(%B2, %k2, %v2) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %o2 = func.call @read(%S2, %q2, %c) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>
  %out2 = tensor.insert_slice %o2 into %out1[0, 0, 2, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x3x3xf32>
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %S3 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %out2, %end : tensor<1x1x3x3xf32>, tensor<1x1x4x3xf32>
}
