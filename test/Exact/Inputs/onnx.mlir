// The operator's specification, token by token, with loops and numbers only:
// S ← e^g S; δ = β (v − Sᵀk), or δ = v; S ← S + k δᵀ; o = Sᵀq / √d_k.

func.func private @recurrence(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x8xf32>, %b: tensor<2x?x2xf32>, %erase: f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.5 : f32
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %e = tensor.empty(%n) : tensor<2x?x12xf32>
  %r:2 = scf.for %batch = %c0 to %c2 step %c1 iter_args(%ob = %e, %sb = %s) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
    %rh:2 = scf.for %h = %c0 to %c2 step %c1 iter_args(%oh = %ob, %sh = %sb) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
      %rt:2 = scf.for %t = %c0 to %n step %c1 iter_args(%ot = %oh, %st = %sh) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
        %h3 = arith.muli %h, %c3 : index
        %h4 = arith.muli %h, %c4 : index
        %beta = tensor.extract %b[%batch, %t, %h] : tensor<2x?x2xf32>
        %rc:2 = scf.for %col = %c0 to %c3 step %c1 iter_args(%oc = %ot, %sc = %st) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
          %decayed, %read = scf.for %row = %c0 to %c4 step %c1 iter_args(%sr = %sc, %sum = %zero) -> (tensor<2x2x4x3xf32>, f32) {
            %i = arith.addi %h4, %row : index
            %gate = tensor.extract %g[%batch, %t, %i] : tensor<2x?x8xf32>
            %x = tensor.extract %k[%batch, %t, %i] : tensor<2x?x8xf32>
            %old = tensor.extract %sr[%batch, %h, %row, %col] : tensor<2x2x4x3xf32>
            %factor = math.exp %gate : f32
            %new = arith.mulf %old, %factor : f32
            %kept = tensor.insert %new into %sr[%batch, %h, %row, %col] : tensor<2x2x4x3xf32>
            %term = arith.mulf %new, %x : f32
            %next = arith.addf %sum, %term : f32
            scf.yield %kept, %next : tensor<2x2x4x3xf32>, f32
          }
          %j = arith.addi %h3, %col : index
          %value = tensor.extract %v[%batch, %t, %j] : tensor<2x?x6xf32>
          %known = arith.mulf %read, %erase : f32
          %error = arith.subf %value, %known : f32
          %delta = arith.mulf %error, %beta : f32
          %written = scf.for %row = %c0 to %c4 step %c1 iter_args(%sr = %decayed) -> (tensor<2x2x4x3xf32>) {
            %i = arith.addi %h4, %row : index
            %x = tensor.extract %k[%batch, %t, %i] : tensor<2x?x8xf32>
            %old = tensor.extract %sr[%batch, %h, %row, %col] : tensor<2x2x4x3xf32>
            %term = arith.mulf %x, %delta : f32
            %new = arith.addf %old, %term : f32
            %kept = tensor.insert %new into %sr[%batch, %h, %row, %col] : tensor<2x2x4x3xf32>
            scf.yield %kept : tensor<2x2x4x3xf32>
          }
          %answers = scf.for %member = %c0 to %c2 step %c1 iter_args(%om = %oc) -> (tensor<2x?x12xf32>) {
            %twice = arith.muli %h, %c2 : index
            %head = arith.addi %twice, %member : index
            %head3 = arith.muli %head, %c3 : index
            %head4 = arith.muli %head, %c4 : index
            %sum = scf.for %row = %c0 to %c4 step %c1 iter_args(%partial = %zero) -> (f32) {
              %i = arith.addi %head4, %row : index
              %x = tensor.extract %q[%batch, %t, %i] : tensor<2x?x16xf32>
              %state = tensor.extract %written[%batch, %h, %row, %col] : tensor<2x2x4x3xf32>
              %term = arith.mulf %x, %state : f32
              %next = arith.addf %partial, %term : f32
              scf.yield %next : f32
            }
            %scaled = arith.mulf %sum, %scale : f32
            %at = arith.addi %head3, %col : index
            %answer = tensor.insert %scaled into %om[%batch, %t, %at] : tensor<2x?x12xf32>
            scf.yield %answer : tensor<2x?x12xf32>
          }
          scf.yield %answers, %written : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
        }
        scf.yield %rc#0, %rc#1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
      }
      scf.yield %rt#0, %rt#1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
    }
    scf.yield %rh#0, %rh#1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
  }
  return %r#0, %r#1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func private @spread(%x: tensor<2x?x2xf32>) -> tensor<2x?x8xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x2xf32>
  %r = tensor.generate %n {
  ^bb0(%b: index, %t: index, %i: index):
    %c4 = arith.constant 4 : index
    %h = arith.divui %i, %c4 : index
    %y = tensor.extract %x[%b, %t, %h] : tensor<2x?x2xf32>
    tensor.yield %y : f32
  } : tensor<2x?x8xf32>
  return %r : tensor<2x?x8xf32>
}

func.func @linear(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %zero = arith.constant 0.0 : f32
  %none = tensor.splat %zero[%n] : tensor<2x?x8xf32>
  %one = arith.constant 1.0 : f32
  %betas = tensor.splat %one[%n] : tensor<2x?x2xf32>
  %erase = arith.constant 0.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %none, %betas, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %gates = call @spread(%g) : (tensor<2x?x2xf32>) -> tensor<2x?x8xf32>
  %one = arith.constant 1.0 : f32
  %betas = tensor.splat %one[%n] : tensor<2x?x2xf32>
  %erase = arith.constant 0.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %gates, %betas, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_per_channel(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x8xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %one = arith.constant 1.0 : f32
  %betas = tensor.splat %one[%n] : tensor<2x?x2xf32>
  %erase = arith.constant 0.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %g, %betas, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @delta_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %zero = arith.constant 0.0 : f32
  %none = tensor.splat %zero[%n] : tensor<2x?x8xf32>
  %erase = arith.constant 1.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %none, %b, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @delta_per_token(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %b: tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %zero = arith.constant 0.0 : f32
  %none = tensor.splat %zero[%n] : tensor<2x?x8xf32>
  %betas = tensor.generate %n {
  ^bb0(%i: index, %t: index, %h: index):
    %c0 = arith.constant 0 : index
    %y = tensor.extract %b[%i, %t, %c0] : tensor<2x?x1xf32>
    tensor.yield %y : f32
  } : tensor<2x?x2xf32>
  %erase = arith.constant 1.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %none, %betas, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_delta_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %gates = call @spread(%g) : (tensor<2x?x2xf32>) -> tensor<2x?x8xf32>
  %erase = arith.constant 1.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %gates, %b, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_delta_per_channel(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x8xf32>, %b: tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %betas = tensor.generate %n {
  ^bb0(%i: index, %t: index, %h: index):
    %c0 = arith.constant 0 : index
    %y = tensor.extract %b[%i, %t, %c0] : tensor<2x?x1xf32>
    tensor.yield %y : f32
  } : tensor<2x?x2xf32>
  %erase = arith.constant 1.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %s, %g, %betas, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @without_past(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<2x2x4x3xf32>
  %gates = call @spread(%g) : (tensor<2x?x2xf32>) -> tensor<2x?x8xf32>
  %erase = arith.constant 1.0 : f32
  %o, %s1 = call @recurrence(%q, %k, %v, %zeros, %gates, %b, %erase) : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x2xf32>, f32) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}
