// C = A Bᵀ with one block of four warps: A is 64 x k, B is 16 x k, both bf16, C is
// 64 x 16 in f32; k is a multiple of 64. A stage holds 64 columns of both, in rows
// of 128 bytes, two stages in turn: while one is multiplied the next one is copied.

gpu.module @tile {
  llvm.mlir.global external @linattn_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

  // The byte in a tile where 16-byte chunk `chunk` of row `row` is.
  llvm.func @offset(%row: i32, %chunk: i32) -> i32 {
    %c4 = arith.constant 4 : i32
    %c7 = arith.constant 7 : i32
    %bytes = arith.shli %row, %c7 : i32
    %low = arith.andi %row, %c7 : i32
    %place = arith.xori %chunk, %low : i32
    %shifted = arith.shli %place, %c4 : i32
    %sum = arith.addi %bytes, %shifted : i32
    llvm.return %sum : i32
  }

  // Starts to copy one 16-byte chunk of a matrix with rows of k elements.
  llvm.func @copy(%matrix: !llvm.ptr<1>, %k: i32, %index: i32, %step: i32, %tile: !llvm.ptr<3>) {
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c7 = arith.constant 7 : i32
    %c3 = arith.constant 3 : i32
    %row = arith.shrui %index, %c3 : i32
    %chunk = arith.andi %index, %c7 : i32
    %elements = arith.muli %row, %k : i32
    %rowBytes = arith.shli %elements, %c1 : i32
    %chunkBytes = arith.shli %chunk, %c4 : i32
    %stepBytes = arith.shli %step, %c7 : i32
    %s0 = arith.addi %rowBytes, %chunkBytes : i32
    %s1 = arith.addi %s0, %stepBytes : i32
    %from = llvm.getelementptr %matrix[%s1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %o = llvm.call @offset(%row, %chunk) : (i32, i32) -> i32
    %to = llvm.getelementptr %tile[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    llvm.return
  }

  // Starts to copy 64 columns of both matrices into a stage.
  llvm.func @copy_stage(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %k: i32, %step: i32, %stage: !llvm.ptr<3>) {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %c512 = arith.constant 512 : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    scf.for %i = %c0 to %c512 step %c128 : i32 {
      %index = arith.addi %i, %tid : i32
      llvm.call @copy(%a, %k, %index, %step, %stage) : (!llvm.ptr<1>, i32, i32, i32, !llvm.ptr<3>) -> ()
    }
    %tileB = llvm.getelementptr %stage[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.call @copy(%b, %k, %tid, %step, %tileB) : (!llvm.ptr<1>, i32, i32, i32, !llvm.ptr<3>) -> ()
    llvm.return
  }

  llvm.func @matmul(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %k: i32) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c5 = arith.constant 5 : i32
    %c6 = arith.constant 6 : i32
    %c7 = arith.constant 7 : i32
    %c15 = arith.constant 15 : i32
    %c31 = arith.constant 31 : i32
    %stageBytes = arith.constant 10240 : i32
    %zero = arith.constant 0.0 : f32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %warp = arith.shrui %tid, %c5 : i32
    %lane = arith.andi %tid, %c31 : i32
    %shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %steps = arith.shrui %k, %c6 : i32

    // Rows and chunks that this lane names to ldmatrix: for A rows in lanes 0 to
    // 15, then the next chunk; for B rows 0 to 7, twice for two chunks, then 8 to 15.
    %strip = arith.shli %warp, %c4 : i32
    %low4 = arith.andi %lane, %c15 : i32
    %rowA = arith.addi %strip, %low4 : i32
    %chunkA = arith.shrui %lane, %c4 : i32
    %low3 = arith.andi %lane, %c7 : i32
    %high = arith.shli %chunkA, %c3 : i32
    %rowB = arith.addi %low3, %high : i32
    %bit3 = arith.shrui %lane, %c3 : i32
    %chunkB = arith.andi %bit3, %c1 : i32

    llvm.call @copy_stage(%a, %b, %k, %c0, %shared) : (!llvm.ptr<1>, !llvm.ptr<1>, i32, i32, !llvm.ptr<3>) -> ()
    nvvm.cp.async.commit.group
    %sums:8 = scf.for %t = %c0 to %steps step %c1
        iter_args(%s0 = %zero, %s1 = %zero, %s2 = %zero, %s3 = %zero, %s4 = %zero, %s5 = %zero, %s6 = %zero, %s7 = %zero)
        -> (f32, f32, f32, f32, f32, f32, f32, f32) : i32 {
      %odd = arith.andi %t, %c1 : i32
      %begin = arith.muli %odd, %stageBytes : i32
      %stage = llvm.getelementptr %shared[%begin] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %even = arith.xori %odd, %c1 : i32
      %otherBegin = arith.muli %even, %stageBytes : i32
      %other = llvm.getelementptr %shared[%otherBegin] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8

      // This stage has arrived, and everyone is done with the other one.
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      %next = arith.addi %t, %c1 : i32
      %more = arith.cmpi ult, %next, %steps : i32
      scf.if %more {
        llvm.call @copy_stage(%a, %b, %k, %next, %other) : (!llvm.ptr<1>, !llvm.ptr<1>, i32, i32, !llvm.ptr<3>) -> ()
      }
      nvvm.cp.async.commit.group

      %tileB = llvm.getelementptr %stage[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %part:8 = scf.for %i = %c0 to %c4 step %c1
          iter_args(%p0 = %s0, %p1 = %s1, %p2 = %s2, %p3 = %s3, %p4 = %s4, %p5 = %s5, %p6 = %s6, %p7 = %s7)
          -> (f32, f32, f32, f32, f32, f32, f32, f32) : i32 {
        %first = arith.shli %i, %c1 : i32
        %ca = arith.addi %first, %chunkA : i32
        %oa = llvm.call @offset(%rowA, %ca) : (i32, i32) -> i32
        %pa = llvm.getelementptr %stage[%oa] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %fa = nvvm.ldmatrix %pa {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
        %a0 = llvm.extractvalue %fa[0] : !llvm.struct<(i32, i32, i32, i32)>
        %a1 = llvm.extractvalue %fa[1] : !llvm.struct<(i32, i32, i32, i32)>
        %a2 = llvm.extractvalue %fa[2] : !llvm.struct<(i32, i32, i32, i32)>
        %a3 = llvm.extractvalue %fa[3] : !llvm.struct<(i32, i32, i32, i32)>
        %cb = arith.addi %first, %chunkB : i32
        %ob = llvm.call @offset(%rowB, %cb) : (i32, i32) -> i32
        %pb = llvm.getelementptr %tileB[%ob] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %fb = nvvm.ldmatrix %pb {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
        %b0 = llvm.extractvalue %fb[0] : !llvm.struct<(i32, i32, i32, i32)>
        %b1 = llvm.extractvalue %fb[1] : !llvm.struct<(i32, i32, i32, i32)>
        %b2 = llvm.extractvalue %fb[2] : !llvm.struct<(i32, i32, i32, i32)>
        %b3 = llvm.extractvalue %fb[3] : !llvm.struct<(i32, i32, i32, i32)>
        %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%p0, %p1, %p2, %p3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
        %e = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b2, %b3] C[%p4, %p5, %p6, %p7] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
        %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
        %d1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
        %d2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
        %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
        %e0 = llvm.extractvalue %e[0] : !llvm.struct<(f32, f32, f32, f32)>
        %e1 = llvm.extractvalue %e[1] : !llvm.struct<(f32, f32, f32, f32)>
        %e2 = llvm.extractvalue %e[2] : !llvm.struct<(f32, f32, f32, f32)>
        %e3 = llvm.extractvalue %e[3] : !llvm.struct<(f32, f32, f32, f32)>
        scf.yield %d0, %d1, %d2, %d3, %e0, %e1, %e2, %e3 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      scf.yield %part#0, %part#1, %part#2, %part#3, %part#4, %part#5, %part#6, %part#7 : f32, f32, f32, f32, f32, f32, f32, f32
    }

    // Two neighbours of a row at a time; rows of C have 64 bytes.
    %g = arith.shrui %lane, %c2 : i32
    %row = arith.addi %strip, %g : i32
    %rowBytes = arith.shli %row, %c6 : i32
    %q = arith.andi %lane, %c3 : i32
    %columnBytes = arith.shli %q, %c3 : i32
    %place = arith.addi %rowBytes, %columnBytes : i32
    %v0 = vector.from_elements %sums#0, %sums#1 : vector<2xf32>
    %v1 = vector.from_elements %sums#2, %sums#3 : vector<2xf32>
    %v2 = vector.from_elements %sums#4, %sums#5 : vector<2xf32>
    %v3 = vector.from_elements %sums#6, %sums#7 : vector<2xf32>
    %o0 = llvm.getelementptr %c[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %o1 = llvm.getelementptr %o0[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %o2 = llvm.getelementptr %o0[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %o3 = llvm.getelementptr %o0[544] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v0, %o0 : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v1, %o1 : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v2, %o2 : vector<2xf32>, !llvm.ptr<1>
    llvm.store %v3, %o3 : vector<2xf32>, !llvm.ptr<1>
    llvm.return
  }
}
