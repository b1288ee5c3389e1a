// RUN: linattn-opt %s --linattn-separate-destinations | FileCheck %s
// RUN: linattn-opt %s --linattn-bufferize-pipeline | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[S0:[a-z0-9]+]]: tensor<1x2x4x4xf32>
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<1x2x4x4xf32>
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[EMPTY]] :
// CHECK: linattn.scan {{.+}} init(%[[COPY]])

// The caller's memory takes the copy and is updated in place.
// BUFFERS-LABEL: func.func @step
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.copy ins(%{{.+}} : {{.+}}) outs(%[[S1:[a-z0-9]+]] :
// BUFFERS-NEXT: }
// BUFFERS-NEXT: linattn.scan {{.+}} init(%[[S1]])
// BUFFERS-NEXT: return
func.func @step(%q: tensor<1x2x1x4xf32>, %s0: tensor<1x2x4x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>) {
  %e = tensor.empty() : tensor<1x2x1x4xf32>
  %o, %s1 = linattn.scan %q, %q, %q into(%e) init(%s0)
    : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>)
  return %o, %s1 : tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>
}

// So it is of a loop over tasks, each of which updates a state of its own.
// CHECK-LABEL: func.func @tasks
// CHECK-SAME: tensor<4x4x4xf32>, %[[S0:[a-z0-9]+]]: tensor<4x4x4xf32>
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]]
// CHECK: scf.forall {{.+}} shared_outs(%{{.+}} = %[[COPY]])
// BUFFERS-LABEL: func.func @tasks
// BUFFERS-SAME: linattn.in_place = array<i64: -1, -1, 1>
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.copy ins(%{{.+}} : {{.+}}) outs(%{{.+}} :
// BUFFERS-NEXT: }
// BUFFERS-NEXT: scf.forall
// BUFFERS-NOT: memref.copy
// BUFFERS: return
func.func @tasks(%k: tensor<4x4x4xf32>, %s0: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {
  %s1 = scf.forall (%h) in (4) shared_outs(%s = %s0) -> (tensor<4x4x4xf32>) {
    %keys = tensor.extract_slice %k[%h, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<4x4x4xf32> to tensor<4x4xf32>
    %own = tensor.extract_slice %s[%h, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<4x4x4xf32> to tensor<4x4xf32>
    %sum = linalg.add ins(%keys, %own : tensor<4x4xf32>, tensor<4x4xf32>) outs(%own : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %s[%h, 0, 0] [1, 4, 4] [1, 1, 1] : tensor<4x4xf32> into tensor<4x4x4xf32>
    }
  }
  return %s1 : tensor<4x4x4xf32>
}

// One copy in front of a branch serves the state that one side updates and the
// other yields.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: %[[S0:[a-z0-9]+]]: tensor<1x2x4x4xf32>, %{{.+}}: i1
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]]
// CHECK: scf.if
// CHECK: linattn.state {{.+}} init(%[[COPY]])
// CHECK: else
// CHECK: scf.yield %[[COPY]]
// BUFFERS-LABEL: func.func @branch
// BUFFERS-SAME: linattn.in_place = array<i64: -1, -1, -1, 1>
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.copy
// BUFFERS: scf.if
// BUFFERS-NEXT: linattn.state
// BUFFERS-NOT: copy
// BUFFERS: return
func.func @branch(%k: tensor<1x2x8x4xf32>, %s0: tensor<1x2x4x4xf32>, %some: i1) -> tensor<1x2x4x4xf32> {
  %s1 = scf.if %some -> (tensor<1x2x4x4xf32>) {
    %sum = linattn.state %k, %k init(%s0)
      : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
    scf.yield %sum : tensor<1x2x4x4xf32>
  } else {
    scf.yield %s0 : tensor<1x2x4x4xf32>
  }
  return %s1 : tensor<1x2x4x4xf32>
}

// A state with dynamic sizes, summed only.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: %[[S0:[a-z0-9]+]]: tensor<?x?x4x4xf32>
// CHECK-DAG: %[[B:.+]] = tensor.dim %[[S0]], %c0
// CHECK-DAG: %[[H:.+]] = tensor.dim %[[S0]], %c1
// CHECK: %[[EMPTY:.+]] = tensor.empty(%[[B]], %[[H]]) : tensor<?x?x4x4xf32>
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[EMPTY]] :
// CHECK: linattn.state {{.+}} init(%[[COPY]])
func.func @dynamic(%s0: tensor<?x?x4x4xf32>, %k: tensor<?x?x?x4xf32>) -> tensor<?x?x4x4xf32> {
  %s1 = linattn.state %k, %k init(%s0)
    : (tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>) -> tensor<?x?x4x4xf32>
  return %s1 : tensor<?x?x4x4xf32>
}

// Only arguments need a copy of their own.
// CHECK-LABEL: func.func @no_match
// CHECK-NOT: linalg.copy
func.func @no_match(%k: tensor<1x2x8x4xf32>) -> tensor<1x2x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x4xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = linattn.state %k, %k init(%s0)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s1 : tensor<1x2x4x4xf32>
}

// One filled tensor, as two states and as one that is only read.
// CHECK-LABEL: func.func @shared_fill
// CHECK: %[[A:.+]] = linalg.fill
// CHECK: %[[B:.+]] = linalg.fill
// CHECK: %[[C:.+]] = linalg.fill
// CHECK: linattn.state {{.+}} init(%[[FIRST:[0-9a-z]+]])
// CHECK-NOT: linattn.state {{.+}} init(%[[FIRST]])
// CHECK: linattn.read
// BUFFERS-LABEL: func.func @shared_fill
// BUFFERS-NOT: memref.copy
// BUFFERS: return
func.func @shared_fill(%k: tensor<1x2x4x4xf32>, %v: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x4xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = linattn.state %k, %k init(%s0)
    : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s2 = linattn.state %k, %v init(%s0)
    : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %o = linattn.read %k, %s0 into(%e) : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s1, %s2, %o : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}

// A computed tensor that two ops go on from.
// CHECK-LABEL: func.func @shared_state
// CHECK: %[[S1:.+]] = linattn.state
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S1]]
// CHECK: linattn.state {{.+}} init(%[[COPY]])
// CHECK: linattn.state {{.+}} init(%[[S1]])
func.func @shared_state(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %e: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %s1 = linattn.state %k, %k init(%e)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s2 = linattn.state %k, %v init(%s1)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s3 = linattn.state %v, %k init(%s1)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s2, %s3 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}

// Zeros that a loop overwrites in each iteration, and that it carries, too, are filled there: no buffer of zeros is copied.
// CHECK-LABEL: func.func @zeros_in_loop
// CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{.+}})
// CHECK-NEXT: %[[EMPTY:.+]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: %[[ZEROS:.+]] = linalg.fill {{.+}} outs(%[[EMPTY]] :
// CHECK-NEXT: linalg.matmul {{.+}} outs(%[[ZEROS]] :
// BUFFERS-LABEL: func.func @zeros_in_loop
// BUFFERS: scf.for
// BUFFERS-NOT: memref.copy
// BUFFERS: linalg.fill
// BUFFERS: linalg.matmul
// BUFFERS: return
func.func @zeros_in_loop(%x: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%state = %zeros) -> (tensor<4x4xf32>) {
    %read = linalg.matmul ins(%x, %state : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<4x4xf32>) -> tensor<4x4xf32>
    %next = linalg.matmul ins(%x, %read : tensor<4x4xf32>, tensor<4x4xf32>) outs(%state : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %next : tensor<4x4xf32>
  }
  return %s : tensor<4x4xf32>
}

// A fill of a part of a task's result is cloned as one of an empty tensor: the part is written at the end, after the clone was read.
// CHECK-LABEL: func.func @parts
// CHECK: scf.forall {{.+}} shared_outs(%[[A:.+]] = %{{.+}}, %[[B:.+]] = %{{.+}})
// CHECK: %[[PART:.+]] = tensor.extract_slice %[[A]]
// CHECK: linalg.fill {{.+}} outs(%[[PART]] :
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<1x4xf32>
// CHECK: %[[OWN:.+]] = linalg.fill {{.+}} outs(%[[EMPTY]] :
// CHECK: linalg.matmul {{.+}} outs(%[[OWN]] :
func.func @parts(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %r:2 = scf.forall (%i) in (4) shared_outs(%a = %e, %b = %f) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %rows = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<1x4xf32>
    %part = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<1x4xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%part : tensor<1x4xf32>) -> tensor<1x4xf32>
    %p = linalg.matmul ins(%rows, %x : tensor<1x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<1x4xf32>) -> tensor<1x4xf32>
    %q = linalg.matmul ins(%rows, %y : tensor<1x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<1x4xf32>) -> tensor<1x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q into %a[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<4x4xf32>
      tensor.parallel_insert_slice %p into %b[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<4x4xf32>
    }
  }
  return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
}
