// RUN: linattn-opt %s --split-input-file --verify-diagnostics

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 1>]>
gpu.module @m {
  llvm.func @k(!llvm.ptr<1>) attributes {nvvm.kernel, linattn.launch_plan = #plan}
}
func.func @operand(%a: memref<4xf32>) {
  // expected-error @+1 {{expected an operand for #linattn.launch_value<pointer, operand = 1> of the plan, but got 1 operands}}
  linattn.launch @m::@k(%a) {linattn.launch_plan = #plan} : memref<4xf32>
  return
}

// -----

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<stride, operand = 0, dim = 1>]>
gpu.module @m {
  llvm.func @k(i64) attributes {nvvm.kernel, linattn.launch_plan = #plan}
}
func.func @dimension(%a: memref<4xf32>) {
  // expected-error @+1 {{expected a dimension for #linattn.launch_value<stride, operand = 0, dim = 1> of the plan, but got 'memref<4xf32>'}}
  linattn.launch @m::@k(%a) {linattn.launch_plan = #plan} : memref<4xf32>
  return
}

// -----

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 0>]>
gpu.module @m {
  llvm.func @k(!llvm.ptr<1>) attributes {nvvm.kernel}
}
func.func @no_plan(%a: memref<4xf32>) {
  // expected-error @+1 {{expected an attribute linattn.launch_plan}}
  linattn.launch @m::@k(%a) : memref<4xf32>
  return
}

// -----

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 0>]>
gpu.module @m {
  llvm.func @k(!llvm.ptr<1>) attributes {nvvm.kernel}
}
func.func @other_plan(%a: memref<4xf32>) {
  // expected-error @+1 {{expected linattn.launch_plan to be that of @m::@k}}
  linattn.launch @m::@k(%a) {linattn.launch_plan = #plan} : memref<4xf32>
  return
}

// -----

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 0>]>
gpu.module @m {
  llvm.func @k(!llvm.ptr<1>) attributes {nvvm.kernel}
}
func.func @no_kernel(%a: memref<4xf32>) {
  // expected-error @+1 {{expected a kernel named @m::@other}}
  linattn.launch @m::@other(%a) {linattn.launch_plan = #plan} : memref<4xf32>
  return
}

// -----

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32,
    shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 0>]>
gpu.module @m {
  llvm.func @k(!llvm.ptr<1>) attributes {nvvm.kernel}
}
func.func @no_module(%a: memref<4xf32>) {
  // expected-error @+1 {{expected a module named "n"}}
  linattn.launch @n::@k(%a) {linattn.launch_plan = #plan} : memref<4xf32>
  return
}

// -----

// expected-error @+1 {{expected form to be token, chunk or quadratic, but got segments}}
func.func private @f() attributes {a = #linattn.schedule<form = segments, mma = fma, chunk = 1, warps = 1>}

// -----

// expected-error @+1 {{expected form token to have mma fma, but got mma_sync}}
func.func private @f() attributes {a = #linattn.schedule<form = token, mma = mma_sync, chunk = 1, warps = 1>}

// -----

// expected-error @+1 {{expected copy tma to have mma wgmma, but got mma_sync}}
func.func private @f() attributes {a = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 64, warps = 4, copy = tma>}

// -----

// expected-error @+1 {{expected warps to be from 1 to 32, but got 33}}
func.func private @f() attributes {a = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 33>}

// -----

// expected-error @+1 {{expected summands to be from 1 to 3, but got 0}}
func.func private @f() attributes {a = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, summands = 0>}

// -----

// expected-error @+1 {{expected summands to be from 1 to 3, but got 4}}
func.func private @f() attributes {a = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, summands = 4>}

// -----

// expected-error @+1 {{expected copy tma to have mma wgmma, but got mma_sync}}
func.func private @f() attributes {a = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 64, warps = 4, copy = tma>}

// -----

// expected-error @+1 {{expected align to be a power of two, but got 3}}
func.func private @f() attributes {a = #linattn.launch_value<pointer, operand = 0, align = 3>}

// -----

// expected-error @+1 {{expected grid to have one symbol for each of 2 sizes}}
func.func private @f() attributes {a = #linattn.launch_plan<grid = ()[s0] -> (s0, 1, 1), block = 32, shared = 0, sizes = [<size, operand = 0>, <size, operand = 0>], args = [<pointer, operand = 0>]>}

// -----

// expected-error @+1 {{expected grid to have three results and no dimension}}
func.func private @f() attributes {a = #linattn.launch_plan<grid = () -> (1), block = 32, shared = 0, sizes = [<size, operand = 0>], args = [<pointer, operand = 0>]>}
