// Loops over the tokens of each recurrence.

#kv = affine_map<(i, j) -> (i, j)>
#k = affine_map<(i, j) -> (i)>
#v = affine_map<(i, j) -> (j)>
#each = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>

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

// Sᵀq
func.func private @read(%s: tensor<4x3xf32>, %q: tensor<4xf32>) -> tensor<3xf32> {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#kv, #k, #v], iterator_types = ["reduction", "parallel"]}
      ins(%s, %q : tensor<4x3xf32>, tensor<4xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// S v
func.func private @read_rows(%s: tensor<4x3xf32>, %v: tensor<3xf32>) -> tensor<4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#kv, #v, #k], iterator_types = ["parallel", "reduction"]}
      ins(%s, %v : tensor<4x3xf32>, tensor<3xf32>) outs(%zero : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// S e^h
func.func private @decayed(%s: tensor<4x3xf32>, %h: tensor<3xf32>) -> tensor<4x3xf32> {
  %r = linalg.generic {indexing_maps = [#v, #kv], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<3xf32>) outs(%s : tensor<4x3xf32>) {
  ^bb0(%y: f32, %x: f32):
    %0 = math.exp %y : f32
    %1 = arith.mulf %x, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

func.func @oja(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %h: tensor<1x1x5x3xf32>, %b: tensor<1x1x5xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<1x1x5x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%St = %S0, %y = %e) -> (tensor<4x3xf32>, tensor<1x1x5x3xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %kt = tensor.extract_slice %k[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %vt = tensor.extract_slice %v[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %ht = tensor.extract_slice %h[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %bt = tensor.extract_slice %b[0, 0, %t] [1, 1, 1] [1, 1, 1] : tensor<1x1x5xf32> to tensor<f32>
    %D = func.call @decayed(%St, %ht) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %p = func.call @read_rows(%D, %vt) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
    %error = arith.subf %kt, %p : tensor<4xf32>
    %room = tensor.empty() : tensor<3xf32>
    %step = linalg.generic {indexing_maps = [#scalar, #each, #each], iterator_types = ["parallel"]}
        ins(%bt, %vt : tensor<f32>, tensor<3xf32>) outs(%room : tensor<3xf32>) {
    ^bb0(%beta: f32, %value: f32, %old: f32):
      %0 = arith.mulf %beta, %value : f32
      linalg.yield %0 : f32
    } -> tensor<3xf32>
    %Sn = func.call @written(%D, %error, %step) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %o = func.call @read(%Sn, %qt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %yn = tensor.insert_slice %o into %y[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x5x3xf32>
    scf.yield %Sn, %yn : tensor<4x3xf32>, tensor<1x1x5x3xf32>
  }
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %r#0 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %r#1, %end : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>
}

func.func @columns(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %b: tensor<1x1x5x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<1x1x5x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%St = %S0, %y = %e) -> (tensor<4x3xf32>, tensor<1x1x5x3xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %kt = tensor.extract_slice %k[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %vt = tensor.extract_slice %v[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %bt = tensor.extract_slice %b[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %p = func.call @read(%St, %kt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %error = arith.subf %vt, %p : tensor<3xf32>
    %step = arith.mulf %bt, %error : tensor<3xf32>
    %Sn = func.call @written(%St, %kt, %step) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %o = func.call @read(%Sn, %qt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %yn = tensor.insert_slice %o into %y[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x5x3xf32>
    scf.yield %Sn, %yn : tensor<4x3xf32>, tensor<1x1x5x3xf32>
  }
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %r#0 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  return %r#1, %end : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>
}

func.func @snapshots(%q: tensor<1x1x5x4xf32>, %k: tensor<1x1x5x4xf32>, %v: tensor<1x1x5x3xf32>, %S: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>) attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<1x1x5x3xf32>
  %S0 = tensor.extract_slice %S[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<1x1x4x3xf32> to tensor<4x3xf32>
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %t = %c0 to %c2 step %c1 iter_args(%St = %S0, %y = %e) -> (tensor<4x3xf32>, tensor<1x1x5x3xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %kt = tensor.extract_slice %k[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %vt = tensor.extract_slice %v[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %Sn = func.call @written(%St, %kt, %vt) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %o = func.call @read(%Sn, %qt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %yn = tensor.insert_slice %o into %y[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x5x3xf32>
    scf.yield %Sn, %yn : tensor<4x3xf32>, tensor<1x1x5x3xf32>
  }
  %r2:2 = scf.for %t = %c2 to %c4 step %c1 iter_args(%St = %r#0, %y = %r#1) -> (tensor<4x3xf32>, tensor<1x1x5x3xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %kt = tensor.extract_slice %k[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %vt = tensor.extract_slice %v[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %Sn = func.call @written(%St, %kt, %vt) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %o = func.call @read(%Sn, %qt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %yn = tensor.insert_slice %o into %y[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x5x3xf32>
    scf.yield %Sn, %yn : tensor<4x3xf32>, tensor<1x1x5x3xf32>
  }
  %r3:2 = scf.for %t = %c4 to %c5 step %c1 iter_args(%St = %r2#0, %y = %r2#1) -> (tensor<4x3xf32>, tensor<1x1x5x3xf32>) {
    %qt = tensor.extract_slice %q[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %kt = tensor.extract_slice %k[0, 0, %t, 0] [1, 1, 1, 4] [1, 1, 1, 1] : tensor<1x1x5x4xf32> to tensor<4xf32>
    %vt = tensor.extract_slice %v[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<1x1x5x3xf32> to tensor<3xf32>
    %Sn = func.call @written(%St, %kt, %vt) : (tensor<4x3xf32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4x3xf32>
    %o = func.call @read(%Sn, %qt) : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
    %yn = tensor.insert_slice %o into %y[0, 0, %t, 0] [1, 1, 1, 3] [1, 1, 1, 1] : tensor<3xf32> into tensor<1x1x5x3xf32>
    scf.yield %Sn, %yn : tensor<4x3xf32>, tensor<1x1x5x3xf32>
  }
  %es = tensor.empty() : tensor<1x1x4x3xf32>
  %end = tensor.insert_slice %r3#0 into %es[0, 0, 0, 0] [1, 1, 4, 3] [1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x1x4x3xf32>
  %ep = tensor.empty() : tensor<1x2x1x4x3xf32>
  %p1 = tensor.insert_slice %r#0 into %ep[0, 0, 0, 0, 0] [1, 1, 1, 4, 3] [1, 1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x2x1x4x3xf32>
  %p2 = tensor.insert_slice %r2#0 into %p1[0, 1, 0, 0, 0] [1, 1, 1, 4, 3] [1, 1, 1, 1, 1] : tensor<4x3xf32> into tensor<1x2x1x4x3xf32>
  return %r3#1, %end, %p2 : tensor<1x1x5x3xf32>, tensor<1x1x4x3xf32>, tensor<1x2x1x4x3xf32>
}

// Each sequence behind the inputs of its state.
func.func @packed_conv(%x: tensor<1x5x2xf32>, %w: tensor<2x3xf32>, %s: tensor<3x2x2xf32>) -> (tensor<1x5x2xf32>, tensor<3x2x2xf32>) attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<1x5x2xf32>
  %es = tensor.empty() : tensor<3x2x2xf32>
  %i0 = tensor.empty() : tensor<2x4xf32>
  %s0 = tensor.extract_slice %s[0, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<3x2x2xf32> to tensor<2x2xf32>
  %b0 = tensor.insert_slice %s0 into %i0[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x4xf32>
  %a0 = scf.for %t = %c0 to %c2 step %c1 iter_args(%in = %b0) -> tensor<2x4xf32> {
    %f = arith.constant 0 : index
    %g = arith.addi %t, %f : index
    %p = arith.addi %t, %c2 : index
    %xt = tensor.extract_slice %x[0, %g, 0] [1, 1, 2] [1, 1, 1] : tensor<1x5x2xf32> to tensor<2xf32>
    %n = tensor.insert_slice %xt into %in[0, %p] [2, 1] [1, 1] : tensor<2xf32> into tensor<2x4xf32>
    scf.yield %n : tensor<2x4xf32>
  }
  %y0 = scf.for %t = %c0 to %c2 step %c1 iter_args(%out = %e) -> tensor<1x5x2xf32> {
    %f = arith.constant 0 : index
    %g = arith.addi %t, %f : index
    %zero = arith.constant dense<0.0> : tensor<2xf32>
    %in = tensor.extract_slice %a0[0, %t] [2, 3] [1, 1] : tensor<2x4xf32> to tensor<2x3xf32>
    %sum = linalg.generic {indexing_maps = [#kv, #kv, #k], iterator_types = ["parallel", "reduction"]}
        ins(%in, %w : tensor<2x3xf32>, tensor<2x3xf32>) outs(%zero : tensor<2xf32>) {
    ^bb0(%xk: f32, %wk: f32, %old: f32):
      %0 = arith.mulf %xk, %wk : f32
      %1 = arith.addf %old, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<2xf32>
    %n = tensor.insert_slice %sum into %out[0, %g, 0] [1, 1, 2] [1, 1, 1] : tensor<2xf32> into tensor<1x5x2xf32>
    scf.yield %n : tensor<1x5x2xf32>
  }
  %l0 = tensor.extract_slice %a0[0, 2] [2, 2] [1, 1] : tensor<2x4xf32> to tensor<2x2xf32>
  %e0 = tensor.insert_slice %l0 into %es[0, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<2x2xf32> into tensor<3x2x2xf32>
  %i1 = tensor.empty() : tensor<2x2xf32>
  %s1 = tensor.extract_slice %s[1, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<3x2x2xf32> to tensor<2x2xf32>
  %b1 = tensor.insert_slice %s1 into %i1[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x2xf32>
  %l1 = tensor.extract_slice %b1[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> to tensor<2x2xf32>
  %e1 = tensor.insert_slice %l1 into %e0[1, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<2x2xf32> into tensor<3x2x2xf32>
  %i2 = tensor.empty() : tensor<2x5xf32>
  %s2 = tensor.extract_slice %s[2, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<3x2x2xf32> to tensor<2x2xf32>
  %b2 = tensor.insert_slice %s2 into %i2[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<2x5xf32>
  %a2 = scf.for %t = %c0 to %c3 step %c1 iter_args(%in = %b2) -> tensor<2x5xf32> {
    %f = arith.constant 2 : index
    %g = arith.addi %t, %f : index
    %p = arith.addi %t, %c2 : index
    %xt = tensor.extract_slice %x[0, %g, 0] [1, 1, 2] [1, 1, 1] : tensor<1x5x2xf32> to tensor<2xf32>
    %n = tensor.insert_slice %xt into %in[0, %p] [2, 1] [1, 1] : tensor<2xf32> into tensor<2x5xf32>
    scf.yield %n : tensor<2x5xf32>
  }
  %y2 = scf.for %t = %c0 to %c3 step %c1 iter_args(%out = %y0) -> tensor<1x5x2xf32> {
    %f = arith.constant 2 : index
    %g = arith.addi %t, %f : index
    %zero = arith.constant dense<0.0> : tensor<2xf32>
    %in = tensor.extract_slice %a2[0, %t] [2, 3] [1, 1] : tensor<2x5xf32> to tensor<2x3xf32>
    %sum = linalg.generic {indexing_maps = [#kv, #kv, #k], iterator_types = ["parallel", "reduction"]}
        ins(%in, %w : tensor<2x3xf32>, tensor<2x3xf32>) outs(%zero : tensor<2xf32>) {
    ^bb0(%xk: f32, %wk: f32, %old: f32):
      %0 = arith.mulf %xk, %wk : f32
      %1 = arith.addf %old, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<2xf32>
    %n = tensor.insert_slice %sum into %out[0, %g, 0] [1, 1, 2] [1, 1, 1] : tensor<2xf32> into tensor<1x5x2xf32>
    scf.yield %n : tensor<1x5x2xf32>
  }
  %l2 = tensor.extract_slice %a2[0, 3] [2, 2] [1, 1] : tensor<2x5xf32> to tensor<2x2xf32>
  %e2 = tensor.insert_slice %l2 into %e1[2, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<2x2xf32> into tensor<3x2x2xf32>
  return %y2, %e2 : tensor<1x5x2xf32>, tensor<3x2x2xf32>
}

func.func @branches(%x: tensor<5x4xf32>, %w: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%state = %s) -> tensor<4xf32> {
    %xt = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<4xf32>
    %0 = arith.mulf %state, %xt : tensor<4xf32>
    %1 = arith.addf %0, %state : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = arith.mulf %r, %w : tensor<4xf32>
  %3 = arith.mulf %2, %w : tensor<4xf32>
  return %3 : tensor<4xf32>
}
