// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=mamba3 --with=Q_bias,K_bias,D,Z | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @mamba3(
// CHECK: linattn.scan {{.*}} : (tensor<2x1x?x1xf64>
// CHECK: linattn.scan {{.*}}decay(%ADT)
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 2, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d1)>
module {
  func.func @mamba3(%Q: tensor<2x2x?x8xf32>, %K: tensor<2x2x?x8xf32>, %V: tensor<2x4x?x5xf32>, %ADT: tensor<2x4x?xf32>, %DT: tensor<2x4x?xf32>, %Trap: tensor<2x4x?xf32>, %Angles: tensor<2x4x?x4xf32>, %Q_bias: tensor<4x8xf32>, %K_bias: tensor<4x8xf32>, %D: tensor<4xf32>, %Z: tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %Q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %2 = tensor.empty() : tensor<2x4x8x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %4 = tensor.empty() : tensor<2x4x8xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %6 = tensor.empty() : tensor<2x4x5xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
    %8 = tensor.empty(%dim) : tensor<2x4x?x4xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%Angles, %DT : tensor<2x4x?x4xf32>, tensor<2x4x?xf32>) outs(%8 : tensor<2x4x?x4xf64>) {
    ^bb0(%Angles_31: f32, %DT_32: f32, %out: f64):
      %41 = arith.extf %Angles_31 : f32 to f64
      %42 = math.absf %41 : f64
      %cst_33 = arith.constant -2.000000e+00 : f64
      %43 = arith.mulf %42, %cst_33 : f64
      %cst_34 = arith.constant -8.000000e+01 : f64
      %44 = arith.maximumf %43, %cst_34 : f64
      %cst_35 = arith.constant 1.4426950408889634 : f64
      %cst_36 = arith.constant 5.000000e-01 : f64
      %45 = math.fma %44, %cst_35, %cst_36 : f64
      %46 = math.floor %45 : f64
      %cst_37 = arith.constant -0.69314718055994529 : f64
      %47 = math.fma %46, %cst_37, %44 : f64
      %cst_38 = arith.constant -2.3190468138462996E-17 : f64
      %48 = math.fma %46, %cst_38, %47 : f64
      %cst_39 = arith.constant 2.08767569878681E-9 : f64
      %cst_40 = arith.constant 2.505210838544172E-8 : f64
      %49 = math.fma %48, %cst_39, %cst_40 : f64
      %cst_41 = arith.constant 2.7557319223985888E-7 : f64
      %50 = math.fma %48, %49, %cst_41 : f64
      %cst_42 = arith.constant 2.7557319223985893E-6 : f64
      %51 = math.fma %48, %50, %cst_42 : f64
      %cst_43 = arith.constant 2.4801587301587302E-5 : f64
      %52 = math.fma %48, %51, %cst_43 : f64
      %cst_44 = arith.constant 1.9841269841269841E-4 : f64
      %53 = math.fma %48, %52, %cst_44 : f64
      %cst_45 = arith.constant 0.0013888888888888889 : f64
      %54 = math.fma %48, %53, %cst_45 : f64
      %cst_46 = arith.constant 0.0083333333333333332 : f64
      %55 = math.fma %48, %54, %cst_46 : f64
      %cst_47 = arith.constant 0.041666666666666664 : f64
      %56 = math.fma %48, %55, %cst_47 : f64
      %cst_48 = arith.constant 0.16666666666666666 : f64
      %57 = math.fma %48, %56, %cst_48 : f64
      %58 = math.fma %48, %57, %cst_36 : f64
      %cst_49 = arith.constant 1.000000e+00 : f64
      %59 = math.fma %48, %58, %cst_49 : f64
      %60 = math.fma %48, %59, %cst_49 : f64
      %cst_50 = arith.constant 0x4338000000000000 : f64
      %61 = arith.addf %46, %cst_50 : f64
      %62 = arith.bitcast %61 : f64 to i64
      %c52_i64 = arith.constant 52 : i64
      %63 = arith.shli %62, %c52_i64 : i64
      %c4607182418800017408_i64 = arith.constant 4607182418800017408 : i64
      %64 = arith.addi %63, %c4607182418800017408_i64 : i64
      %65 = arith.bitcast %64 : i64 to f64
      %66 = arith.mulf %60, %65 : f64
      %67 = arith.subf %cst_49, %66 : f64
      %68 = arith.addf %cst_49, %66 : f64
      %69 = arith.divf %67, %68 : f64
      %cst_51 = arith.constant 0.000000e+00 : f64
      %70 = arith.cmpf olt, %41, %cst_51 : f64
      %71 = arith.negf %69 : f64
      %72 = arith.select %70, %71, %69 : f64
      %cst_52 = arith.constant 3.1415926535897931 : f64
      %73 = arith.mulf %72, %cst_52 : f64
      %74 = arith.extf %DT_32 : f32 to f64
      %75 = arith.mulf %73, %74 : f64
      linalg.yield %75 : f64
    } -> tensor<2x4x?x4xf64>
    %10 = tensor.empty() : tensor<2x4x1x4xf64>
    %11 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x4xf32>) outs(%10 : tensor<2x4x1x4xf64>) {
    ^bb0(%in: f32, %out: f64):
      %41 = arith.extf %in : f32 to f64
      linalg.yield %41 : f64
    } -> tensor<2x4x1x4xf64>
    %cst_0 = arith.constant 1.000000e+00 : f64
    %12 = tensor.empty(%dim) : tensor<2x1x?x1xf64>
    %13 = linalg.fill ins(%cst_0 : f64) outs(%12 : tensor<2x1x?x1xf64>) -> tensor<2x1x?x1xf64>
    %14:2 = linattn.scan %13, %13, %9 into(%8) init(%11) : (tensor<2x1x?x1xf64>, tensor<2x1x?x1xf64>, tensor<2x4x?x4xf64>, tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>) -> (tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>)
    %15 = tensor.empty(%dim) : tensor<2x4x?x4xf32>
    %16:2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14#0 : tensor<2x4x?x4xf64>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f64, %out: f32, %out_31: f32):
      %cst_32 = arith.constant 0.63661977236758138 : f64
      %cst_33 = arith.constant 5.000000e-01 : f64
      %41 = math.fma %in, %cst_32, %cst_33 : f64
      %42 = math.floor %41 : f64
      %cst_34 = arith.constant -1.5707963267948966 : f64
      %43 = math.fma %42, %cst_34, %in : f64
      %cst_35 = arith.constant -6.123233995736766E-17 : f64
      %44 = math.fma %42, %cst_35, %43 : f64
      %45 = arith.mulf %44, %44 : f64
      %cst_36 = arith.constant -7.6471637318198164E-13 : f64
      %cst_37 = arith.constant 1.6059043836821613E-10 : f64
      %46 = math.fma %45, %cst_36, %cst_37 : f64
      %cst_38 = arith.constant -2.505210838544172E-8 : f64
      %47 = math.fma %45, %46, %cst_38 : f64
      %cst_39 = arith.constant 2.7557319223985893E-6 : f64
      %48 = math.fma %45, %47, %cst_39 : f64
      %cst_40 = arith.constant -1.9841269841269841E-4 : f64
      %49 = math.fma %45, %48, %cst_40 : f64
      %cst_41 = arith.constant 0.0083333333333333332 : f64
      %50 = math.fma %45, %49, %cst_41 : f64
      %cst_42 = arith.constant -0.16666666666666666 : f64
      %51 = math.fma %45, %50, %cst_42 : f64
      %52 = math.fma %45, %51, %cst_0 : f64
      %53 = arith.mulf %44, %52 : f64
      %cst_43 = arith.constant 4.7794773323873853E-14 : f64
      %cst_44 = arith.constant -1.1470745597729725E-11 : f64
      %54 = math.fma %45, %cst_43, %cst_44 : f64
      %cst_45 = arith.constant 2.08767569878681E-9 : f64
      %55 = math.fma %45, %54, %cst_45 : f64
      %cst_46 = arith.constant -2.7557319223985888E-7 : f64
      %56 = math.fma %45, %55, %cst_46 : f64
      %cst_47 = arith.constant 2.4801587301587302E-5 : f64
      %57 = math.fma %45, %56, %cst_47 : f64
      %cst_48 = arith.constant -0.0013888888888888889 : f64
      %58 = math.fma %45, %57, %cst_48 : f64
      %cst_49 = arith.constant 0.041666666666666664 : f64
      %59 = math.fma %45, %58, %cst_49 : f64
      %cst_50 = arith.constant -5.000000e-01 : f64
      %60 = math.fma %45, %59, %cst_50 : f64
      %61 = math.fma %45, %60, %cst_0 : f64
      %cst_51 = arith.constant 0x4338000000000000 : f64
      %62 = arith.addf %42, %cst_51 : f64
      %63 = arith.bitcast %62 : f64 to i64
      %c0_i64 = arith.constant 0 : i64
      %c1_i64 = arith.constant 1 : i64
      %c2_i64 = arith.constant 2 : i64
      %64 = arith.andi %63, %c1_i64 : i64
      %65 = arith.cmpi ne, %64, %c0_i64 : i64
      %66 = arith.select %65, %61, %53 : f64
      %67 = arith.select %65, %53, %61 : f64
      %68 = arith.addi %63, %c1_i64 : i64
      %69 = arith.andi %63, %c2_i64 : i64
      %70 = arith.cmpi ne, %69, %c0_i64 : i64
      %71 = arith.negf %66 : f64
      %72 = arith.select %70, %71, %66 : f64
      %73 = arith.andi %68, %c2_i64 : i64
      %74 = arith.cmpi ne, %73, %c0_i64 : i64
      %75 = arith.negf %67 : f64
      %76 = arith.select %74, %75, %67 : f64
      %77 = arith.truncf %76 : f64 to f32
      %78 = arith.truncf %72 : f64 to f32
      linalg.yield %77, %78 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %17 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_31: f32, %DT_32: f32, %out: f32):
      %cst_33 = arith.constant 1.000000e+00 : f32
      %41 = arith.negf %Trap_31 : f32
      %42 = math.exp %41 : f32
      %43 = arith.addf %cst_33, %42 : f32
      %44 = arith.divf %cst_33, %43 : f32
      %45 = arith.mulf %44, %DT_32 : f32
      linalg.yield %45 : f32
    } -> tensor<2x4x?xf32>
    %dim_1 = tensor.dim %18, %c2 : tensor<2x4x?xf32>
    %c1 = arith.constant 1 : index
    %19 = arith.addi %dim_1, %c1 : index
    %20 = tensor.empty() : tensor<2x4xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %22 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%21 : tensor<2x4xf32>) outs(%20 : tensor<2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4xf32>
    %23 = tensor.empty(%19) : tensor<2x4x?xf32>
    %inserted_slice = tensor.insert_slice %22 into %23[0, 0, 0] [2, 4, 1] [1, 1, 1] : tensor<2x4xf32> into tensor<2x4x?xf32>
    %inserted_slice_2 = tensor.insert_slice %18 into %inserted_slice[0, 0, 1] [2, 4, %dim_1] [1, 1, 1] : tensor<2x4x?xf32> into tensor<2x4x?xf32>
    %extracted_slice = tensor.extract_slice %inserted_slice_2[0, 0, 0] [2, 4, %dim_1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4x?xf32>
    %extracted_slice_3 = tensor.extract_slice %inserted_slice_2[0, 0, %dim_1] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
    %24 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT, %ADT, %extracted_slice : tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_31: f32, %DT_32: f32, %ADT_33: f32, %in: f32, %out: f32):
      %41 = arith.negf %Trap_31 : f32
      %cst_34 = arith.constant 1.000000e+00 : f32
      %42 = arith.negf %41 : f32
      %43 = math.exp %42 : f32
      %44 = arith.addf %cst_34, %43 : f32
      %45 = arith.divf %cst_34, %44 : f32
      %46 = arith.mulf %45, %DT_32 : f32
      %47 = arith.addf %46, %in : f32
      %48 = math.exp %ADT_33 : f32
      %49 = arith.mulf %48, %47 : f32
      linalg.yield %49 : f32
    } -> tensor<2x4x?xf32>
    %25 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %extracted_slice_4 = tensor.extract_slice %Q[0, 0, 0, 0] [2, 2, %dim, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_5 = tensor.extract_slice %Q[0, 0, 0, 1] [2, 2, %dim, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_6 = tensor.extract_slice %Q_bias[0, 0] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %extracted_slice_7 = tensor.extract_slice %Q_bias[0, 1] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %26:2 = linalg.generic {indexing_maps = [#map5, #map5, #map, #map, #map6, #map6, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_4, %extracted_slice_5, %16#0, %16#1, %extracted_slice_6, %extracted_slice_7 : tensor<2x2x?x4xf32>, tensor<2x2x?x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f32, %in_31: f32, %in_32: f32, %in_33: f32, %in_34: f32, %in_35: f32, %out: f32, %out_36: f32):
      %41 = arith.addf %in, %in_34 : f32
      %42 = arith.addf %in_31, %in_35 : f32
      %43 = arith.mulf %41, %in_32 : f32
      %44 = arith.mulf %42, %in_33 : f32
      %45 = arith.subf %43, %44 : f32
      %46 = arith.mulf %41, %in_33 : f32
      %47 = arith.mulf %42, %in_32 : f32
      %48 = arith.addf %46, %47 : f32
      linalg.yield %45, %48 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %dim_8 = tensor.dim %26#0, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_9 = tensor.insert_slice %26#0 into %25[0, 0, 0, 0] [2, 4, %dim_8, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_10 = tensor.dim %26#1, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_11 = tensor.insert_slice %26#1 into %inserted_slice_9[0, 0, 0, 1] [2, 4, %dim_10, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_12 = tensor.dim %K, %c2 : tensor<2x2x?x8xf32>
    %extracted_slice_13 = tensor.extract_slice %K[0, 0, 0, 0] [2, 2, %dim_12, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_14 = tensor.extract_slice %K[0, 0, 0, 1] [2, 2, %dim_12, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_15 = tensor.extract_slice %K_bias[0, 0] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %extracted_slice_16 = tensor.extract_slice %K_bias[0, 1] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %27:2 = linalg.generic {indexing_maps = [#map5, #map5, #map, #map, #map6, #map6, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13, %extracted_slice_14, %16#0, %16#1, %extracted_slice_15, %extracted_slice_16 : tensor<2x2x?x4xf32>, tensor<2x2x?x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f32, %in_31: f32, %in_32: f32, %in_33: f32, %in_34: f32, %in_35: f32, %out: f32, %out_36: f32):
      %41 = arith.addf %in, %in_34 : f32
      %42 = arith.addf %in_31, %in_35 : f32
      %43 = arith.mulf %41, %in_32 : f32
      %44 = arith.mulf %42, %in_33 : f32
      %45 = arith.subf %43, %44 : f32
      %46 = arith.mulf %41, %in_33 : f32
      %47 = arith.mulf %42, %in_32 : f32
      %48 = arith.addf %46, %47 : f32
      linalg.yield %45, %48 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %dim_17 = tensor.dim %27#0, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_18 = tensor.insert_slice %27#0 into %25[0, 0, 0, 0] [2, 4, %dim_17, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_19 = tensor.dim %27#1, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_20 = tensor.insert_slice %27#1 into %inserted_slice_18[0, 0, 0, 1] [2, 4, %dim_19, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_21 = tensor.dim %inserted_slice_20, %c2 : tensor<2x4x?x8xf32>
    %28 = arith.addi %dim_21, %c1 : index
    %29 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x4x8xf32>) outs(%4 : tensor<2x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x8xf32>
    %30 = tensor.empty(%28) : tensor<2x4x?x8xf32>
    %inserted_slice_22 = tensor.insert_slice %29 into %30[0, 0, 0, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x8xf32> into tensor<2x4x?x8xf32>
    %inserted_slice_23 = tensor.insert_slice %inserted_slice_20 into %inserted_slice_22[0, 0, 1, 0] [2, 4, %dim_21, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> into tensor<2x4x?x8xf32>
    %extracted_slice_24 = tensor.extract_slice %inserted_slice_23[0, 0, 0, 0] [2, 4, %dim_21, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x?x8xf32>
    %extracted_slice_25 = tensor.extract_slice %inserted_slice_23[0, 0, %dim_21, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x8xf32>
    %dim_26 = tensor.dim %V, %c2 : tensor<2x4x?x5xf32>
    %31 = arith.addi %dim_26, %c1 : index
    %32 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x5xf32>) outs(%6 : tensor<2x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x5xf32>
    %33 = tensor.empty(%31) : tensor<2x4x?x5xf32>
    %inserted_slice_27 = tensor.insert_slice %32 into %33[0, 0, 0, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x5xf32> into tensor<2x4x?x5xf32>
    %inserted_slice_28 = tensor.insert_slice %V into %inserted_slice_27[0, 0, 1, 0] [2, 4, %dim_26, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> into tensor<2x4x?x5xf32>
    %extracted_slice_29 = tensor.extract_slice %inserted_slice_28[0, 0, 0, 0] [2, 4, %dim_26, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x?x5xf32>
    %extracted_slice_30 = tensor.extract_slice %inserted_slice_28[0, 0, %dim_26, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x5xf32>
    %34 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_24, %24 : tensor<2x4x?x8xf32>, tensor<2x4x?xf32>) outs(%25 : tensor<2x4x?x8xf32>) {
    ^bb0(%in: f32, %in_31: f32, %out: f32):
      %41 = arith.mulf %in, %in_31 : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x?x8xf32>
    %35 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %36:2 = linattn.scan %inserted_slice_11, %34, %extracted_slice_29 decay(%ADT) into(%35) init(%3) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    %37 = linalg.fill ins(%cst : f32) outs(%17 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %38 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_11, %inserted_slice_20 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) outs(%37 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %in_31: f32, %out: f32):
      %41 = arith.mulf %in, %in_31 : f32
      %42 = arith.addf %out, %41 : f32
      linalg.yield %42 : f32
    } -> tensor<2x4x?xf32>
    %39 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%38, %18 : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %in_31: f32, %out: f32):
      %41 = arith.mulf %in, %in_31 : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x?xf32>
    %40 = linalg.generic {indexing_maps = [#map, #map1, #map, #map7, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36#0, %39, %V, %D, %Z : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>) outs(%35 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %in_31: f32, %V_32: f32, %D_33: f32, %Z_34: f32, %out: f32):
      %41 = arith.addf %in_31, %D_33 : f32
      %42 = arith.mulf %41, %V_32 : f32
      %43 = arith.addf %in, %42 : f32
      %cst_35 = arith.constant 1.000000e+00 : f32
      %44 = arith.negf %Z_34 : f32
      %45 = math.exp %44 : f32
      %46 = arith.addf %cst_35, %45 : f32
      %47 = arith.divf %cst_35, %46 : f32
      %48 = arith.mulf %Z_34, %47 : f32
      %49 = arith.mulf %43, %48 : f32
      linalg.yield %49 : f32
    } -> tensor<2x4x?x5xf32>
    return %40 : tensor<2x4x?x5xf32>
  }
}

