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
    ^bb0(%Angles_29: f32, %DT_30: f32, %out: f64):
      %40 = arith.extf %Angles_29 : f32 to f64
      %41 = math.absf %40 : f64
      %cst_31 = arith.constant -2.000000e+00 : f64
      %42 = arith.mulf %41, %cst_31 : f64
      %cst_32 = arith.constant -8.000000e+01 : f64
      %43 = arith.maximumf %42, %cst_32 : f64
      %cst_33 = arith.constant 1.4426950408889634 : f64
      %cst_34 = arith.constant 5.000000e-01 : f64
      %44 = math.fma %43, %cst_33, %cst_34 : f64
      %45 = math.floor %44 : f64
      %cst_35 = arith.constant -0.69314718055994529 : f64
      %46 = math.fma %45, %cst_35, %43 : f64
      %cst_36 = arith.constant -2.3190468138462996E-17 : f64
      %47 = math.fma %45, %cst_36, %46 : f64
      %cst_37 = arith.constant 2.08767569878681E-9 : f64
      %cst_38 = arith.constant 2.505210838544172E-8 : f64
      %48 = math.fma %47, %cst_37, %cst_38 : f64
      %cst_39 = arith.constant 2.7557319223985888E-7 : f64
      %49 = math.fma %47, %48, %cst_39 : f64
      %cst_40 = arith.constant 2.7557319223985893E-6 : f64
      %50 = math.fma %47, %49, %cst_40 : f64
      %cst_41 = arith.constant 2.4801587301587302E-5 : f64
      %51 = math.fma %47, %50, %cst_41 : f64
      %cst_42 = arith.constant 1.9841269841269841E-4 : f64
      %52 = math.fma %47, %51, %cst_42 : f64
      %cst_43 = arith.constant 0.0013888888888888889 : f64
      %53 = math.fma %47, %52, %cst_43 : f64
      %cst_44 = arith.constant 0.0083333333333333332 : f64
      %54 = math.fma %47, %53, %cst_44 : f64
      %cst_45 = arith.constant 0.041666666666666664 : f64
      %55 = math.fma %47, %54, %cst_45 : f64
      %cst_46 = arith.constant 0.16666666666666666 : f64
      %56 = math.fma %47, %55, %cst_46 : f64
      %57 = math.fma %47, %56, %cst_34 : f64
      %cst_47 = arith.constant 1.000000e+00 : f64
      %58 = math.fma %47, %57, %cst_47 : f64
      %59 = math.fma %47, %58, %cst_47 : f64
      %cst_48 = arith.constant 0x4338000000000000 : f64
      %60 = arith.addf %45, %cst_48 : f64
      %61 = arith.bitcast %60 : f64 to i64
      %c52_i64 = arith.constant 52 : i64
      %62 = arith.shli %61, %c52_i64 : i64
      %c4607182418800017408_i64 = arith.constant 4607182418800017408 : i64
      %63 = arith.addi %62, %c4607182418800017408_i64 : i64
      %64 = arith.bitcast %63 : i64 to f64
      %65 = arith.mulf %59, %64 : f64
      %66 = arith.subf %cst_47, %65 : f64
      %67 = arith.addf %cst_47, %65 : f64
      %68 = arith.divf %66, %67 : f64
      %cst_49 = arith.constant 0.000000e+00 : f64
      %69 = arith.cmpf olt, %40, %cst_49 : f64
      %70 = arith.negf %68 : f64
      %71 = arith.select %69, %70, %68 : f64
      %cst_50 = arith.constant 3.1415926535897931 : f64
      %72 = arith.mulf %71, %cst_50 : f64
      %73 = arith.extf %DT_30 : f32 to f64
      %74 = arith.mulf %72, %73 : f64
      linalg.yield %74 : f64
    } -> tensor<2x4x?x4xf64>
    %10 = tensor.empty() : tensor<2x4x1x4xf64>
    %11 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x4xf32>) outs(%10 : tensor<2x4x1x4xf64>) {
    ^bb0(%in: f32, %out: f64):
      %40 = arith.extf %in : f32 to f64
      linalg.yield %40 : f64
    } -> tensor<2x4x1x4xf64>
    %cst_0 = arith.constant 1.000000e+00 : f64
    %12 = tensor.empty(%dim) : tensor<2x1x?x1xf64>
    %13 = linalg.fill ins(%cst_0 : f64) outs(%12 : tensor<2x1x?x1xf64>) -> tensor<2x1x?x1xf64>
    %14:2 = linattn.scan %13, %13, %9 into(%8) init(%11) : (tensor<2x1x?x1xf64>, tensor<2x1x?x1xf64>, tensor<2x4x?x4xf64>, tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>) -> (tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>)
    %15 = tensor.empty(%dim) : tensor<2x4x?x4xf32>
    %16:2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14#0 : tensor<2x4x?x4xf64>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f64, %out: f32, %out_29: f32):
      %cst_30 = arith.constant 0.63661977236758138 : f64
      %cst_31 = arith.constant 5.000000e-01 : f64
      %40 = math.fma %in, %cst_30, %cst_31 : f64
      %41 = math.floor %40 : f64
      %cst_32 = arith.constant -1.5707963267948966 : f64
      %42 = math.fma %41, %cst_32, %in : f64
      %cst_33 = arith.constant -6.123233995736766E-17 : f64
      %43 = math.fma %41, %cst_33, %42 : f64
      %44 = arith.mulf %43, %43 : f64
      %cst_34 = arith.constant -7.6471637318198164E-13 : f64
      %cst_35 = arith.constant 1.6059043836821613E-10 : f64
      %45 = math.fma %44, %cst_34, %cst_35 : f64
      %cst_36 = arith.constant -2.505210838544172E-8 : f64
      %46 = math.fma %44, %45, %cst_36 : f64
      %cst_37 = arith.constant 2.7557319223985893E-6 : f64
      %47 = math.fma %44, %46, %cst_37 : f64
      %cst_38 = arith.constant -1.9841269841269841E-4 : f64
      %48 = math.fma %44, %47, %cst_38 : f64
      %cst_39 = arith.constant 0.0083333333333333332 : f64
      %49 = math.fma %44, %48, %cst_39 : f64
      %cst_40 = arith.constant -0.16666666666666666 : f64
      %50 = math.fma %44, %49, %cst_40 : f64
      %51 = math.fma %44, %50, %cst_0 : f64
      %52 = arith.mulf %43, %51 : f64
      %cst_41 = arith.constant 4.7794773323873853E-14 : f64
      %cst_42 = arith.constant -1.1470745597729725E-11 : f64
      %53 = math.fma %44, %cst_41, %cst_42 : f64
      %cst_43 = arith.constant 2.08767569878681E-9 : f64
      %54 = math.fma %44, %53, %cst_43 : f64
      %cst_44 = arith.constant -2.7557319223985888E-7 : f64
      %55 = math.fma %44, %54, %cst_44 : f64
      %cst_45 = arith.constant 2.4801587301587302E-5 : f64
      %56 = math.fma %44, %55, %cst_45 : f64
      %cst_46 = arith.constant -0.0013888888888888889 : f64
      %57 = math.fma %44, %56, %cst_46 : f64
      %cst_47 = arith.constant 0.041666666666666664 : f64
      %58 = math.fma %44, %57, %cst_47 : f64
      %cst_48 = arith.constant -5.000000e-01 : f64
      %59 = math.fma %44, %58, %cst_48 : f64
      %60 = math.fma %44, %59, %cst_0 : f64
      %cst_49 = arith.constant 0x4338000000000000 : f64
      %61 = arith.addf %41, %cst_49 : f64
      %62 = arith.bitcast %61 : f64 to i64
      %c0_i64 = arith.constant 0 : i64
      %c1_i64 = arith.constant 1 : i64
      %c2_i64 = arith.constant 2 : i64
      %63 = arith.andi %62, %c1_i64 : i64
      %64 = arith.cmpi ne, %63, %c0_i64 : i64
      %65 = arith.select %64, %60, %52 : f64
      %66 = arith.select %64, %52, %60 : f64
      %67 = arith.addi %62, %c1_i64 : i64
      %68 = arith.andi %62, %c2_i64 : i64
      %69 = arith.cmpi ne, %68, %c0_i64 : i64
      %70 = arith.negf %65 : f64
      %71 = arith.select %69, %70, %65 : f64
      %72 = arith.andi %67, %c2_i64 : i64
      %73 = arith.cmpi ne, %72, %c0_i64 : i64
      %74 = arith.negf %66 : f64
      %75 = arith.select %73, %74, %66 : f64
      %76 = arith.truncf %75 : f64 to f32
      %77 = arith.truncf %71 : f64 to f32
      linalg.yield %76, %77 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %17 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_29: f32, %DT_30: f32, %out: f32):
      %cst_31 = arith.constant 1.000000e+00 : f32
      %cst_32 = arith.constant 8.700000e+01 : f32
      %40 = arith.negf %Trap_29 : f32
      %41 = arith.minimumf %40, %cst_32 : f32
      %42 = math.exp %41 : f32
      %43 = arith.addf %cst_31, %42 : f32
      %44 = arith.divf %cst_31, %43 : f32
      %45 = arith.mulf %44, %DT_30 : f32
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
    %24 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT, %ADT, %extracted_slice : tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_29: f32, %DT_30: f32, %ADT_31: f32, %in: f32, %out: f32):
      %40 = arith.negf %Trap_29 : f32
      %cst_32 = arith.constant 1.000000e+00 : f32
      %cst_33 = arith.constant 8.700000e+01 : f32
      %41 = arith.negf %40 : f32
      %42 = arith.minimumf %41, %cst_33 : f32
      %43 = math.exp %42 : f32
      %44 = arith.addf %cst_32, %43 : f32
      %45 = arith.divf %cst_32, %44 : f32
      %46 = arith.mulf %45, %DT_30 : f32
      %47 = arith.addf %46, %in : f32
      %48 = math.exp %ADT_31 : f32
      %49 = arith.mulf %48, %47 : f32
      linalg.yield %49 : f32
    } -> tensor<2x4x?xf32>
    %25 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %extracted_slice_3 = tensor.extract_slice %Q[0, 0, 0, 0] [2, 2, %dim, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_4 = tensor.extract_slice %Q[0, 0, 0, 1] [2, 2, %dim, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_5 = tensor.extract_slice %Q_bias[0, 0] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %extracted_slice_6 = tensor.extract_slice %Q_bias[0, 1] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %26:2 = linalg.generic {indexing_maps = [#map5, #map5, #map, #map, #map6, #map6, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_3, %extracted_slice_4, %16#0, %16#1, %extracted_slice_5, %extracted_slice_6 : tensor<2x2x?x4xf32>, tensor<2x2x?x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f32, %in_29: f32, %in_30: f32, %in_31: f32, %in_32: f32, %in_33: f32, %out: f32, %out_34: f32):
      %40 = arith.addf %in, %in_32 : f32
      %41 = arith.addf %in_29, %in_33 : f32
      %42 = arith.mulf %40, %in_30 : f32
      %43 = arith.mulf %41, %in_31 : f32
      %44 = arith.subf %42, %43 : f32
      %45 = arith.mulf %40, %in_31 : f32
      %46 = arith.mulf %41, %in_30 : f32
      %47 = arith.addf %45, %46 : f32
      linalg.yield %44, %47 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %dim_7 = tensor.dim %26#0, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_8 = tensor.insert_slice %26#0 into %25[0, 0, 0, 0] [2, 4, %dim_7, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_9 = tensor.dim %26#1, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_10 = tensor.insert_slice %26#1 into %inserted_slice_8[0, 0, 0, 1] [2, 4, %dim_9, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %27 = arith.addi %dim, %c1 : index
    %28 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x4x8xf32>) outs(%4 : tensor<2x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x8xf32>
    %29 = tensor.empty(%27) : tensor<2x4x?x8xf32>
    %inserted_slice_11 = tensor.insert_slice %28 into %29[0, 0, 0, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x8xf32> into tensor<2x4x?x8xf32>
    %dim_12 = tensor.dim %K, %c2 : tensor<2x2x?x8xf32>
    %extracted_slice_13 = tensor.extract_slice %K[0, 0, 0, 0] [2, 2, %dim_12, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_14 = tensor.extract_slice %K[0, 0, 0, 1] [2, 2, %dim_12, 4] [1, 1, 1, 2] : tensor<2x2x?x8xf32> to tensor<2x2x?x4xf32>
    %extracted_slice_15 = tensor.extract_slice %K_bias[0, 0] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %extracted_slice_16 = tensor.extract_slice %K_bias[0, 1] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
    %30:2 = linalg.generic {indexing_maps = [#map5, #map5, #map, #map, #map6, #map6, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13, %extracted_slice_14, %16#0, %16#1, %extracted_slice_15, %extracted_slice_16 : tensor<2x2x?x4xf32>, tensor<2x2x?x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%15, %15 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f32, %in_29: f32, %in_30: f32, %in_31: f32, %in_32: f32, %in_33: f32, %out: f32, %out_34: f32):
      %40 = arith.addf %in, %in_32 : f32
      %41 = arith.addf %in_29, %in_33 : f32
      %42 = arith.mulf %40, %in_30 : f32
      %43 = arith.mulf %41, %in_31 : f32
      %44 = arith.subf %42, %43 : f32
      %45 = arith.mulf %40, %in_31 : f32
      %46 = arith.mulf %41, %in_30 : f32
      %47 = arith.addf %45, %46 : f32
      linalg.yield %44, %47 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %dim_17 = tensor.dim %30#0, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_18 = tensor.insert_slice %30#0 into %inserted_slice_11[0, 0, 1, 0] [2, 4, %dim_17, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %dim_19 = tensor.dim %30#1, %c2 : tensor<2x4x?x4xf32>
    %inserted_slice_20 = tensor.insert_slice %30#1 into %inserted_slice_18[0, 0, 1, 1] [2, 4, %dim_19, 4] [1, 1, 1, 2] : tensor<2x4x?x4xf32> into tensor<2x4x?x8xf32>
    %31 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x5xf32>) outs(%6 : tensor<2x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x5xf32>
    %32 = tensor.empty(%27) : tensor<2x4x?x5xf32>
    %inserted_slice_21 = tensor.insert_slice %31 into %32[0, 0, 0, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x5xf32> into tensor<2x4x?x5xf32>
    %inserted_slice_22 = tensor.insert_slice %V into %inserted_slice_21[0, 0, 1, 0] [2, 4, %dim, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> into tensor<2x4x?x5xf32>
    %extracted_slice_23 = tensor.extract_slice %inserted_slice_20[0, 0, 0, 0] [2, 4, %dim, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x?x8xf32>
    %extracted_slice_24 = tensor.extract_slice %inserted_slice_22[0, 0, 0, 0] [2, 4, %dim, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x?x5xf32>
    %33 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %34 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_24, %24 : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) outs(%33 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %in_29: f32, %out: f32):
      %40 = arith.mulf %in, %in_29 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x?x5xf32>
    %35:2 = linattn.scan %inserted_slice_10, %extracted_slice_23, %34 decay(%ADT) into(%33) init(%3) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    %extracted_slice_25 = tensor.extract_slice %inserted_slice_20[0, 0, %dim, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x8xf32>
    %extracted_slice_26 = tensor.extract_slice %inserted_slice_22[0, 0, %dim, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x5xf32>
    %extracted_slice_27 = tensor.extract_slice %inserted_slice_20[0, 0, 1, 0] [2, 4, %dim, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x?x8xf32>
    %36 = linalg.fill ins(%cst : f32) outs(%17 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %37 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_10, %extracted_slice_27 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) outs(%36 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %in_29: f32, %out: f32):
      %40 = arith.mulf %in, %in_29 : f32
      %41 = arith.addf %out, %40 : f32
      linalg.yield %41 : f32
    } -> tensor<2x4x?xf32>
    %38 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37, %18 : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%17 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %in_29: f32, %out: f32):
      %40 = arith.mulf %in, %in_29 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x?xf32>
    %39 = linalg.generic {indexing_maps = [#map, #map1, #map, #map7, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35#0, %38, %V, %D, %Z : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>) outs(%33 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %in_29: f32, %V_30: f32, %D_31: f32, %Z_32: f32, %out: f32):
      %40 = arith.addf %in_29, %D_31 : f32
      %41 = arith.mulf %40, %V_30 : f32
      %42 = arith.addf %in, %41 : f32
      %cst_33 = arith.constant 1.000000e+00 : f32
      %cst_34 = arith.constant 8.700000e+01 : f32
      %43 = arith.negf %Z_32 : f32
      %44 = arith.minimumf %43, %cst_34 : f32
      %45 = math.exp %44 : f32
      %46 = arith.addf %cst_33, %45 : f32
      %47 = arith.divf %cst_33, %46 : f32
      %48 = arith.mulf %Z_32, %47 : f32
      %49 = arith.mulf %42, %48 : f32
      linalg.yield %49 : f32
    } -> tensor<2x4x?x5xf32>
    %extracted_slice_28 = tensor.extract_slice %inserted_slice_2[0, 0, %dim_1] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
    return %39 : tensor<2x4x?x5xf32>
  }
}

