// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=mamba3_mimo --with=Q_bias,K_bias,D,Z,MIMO_Z | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @mamba3_mimo(
// CHECK: linattn.scan {{.*}} : (tensor<2x1x?x1xf64>
// CHECK: tensor.collapse_shape
// CHECK: linattn.scan {{.*}}decay(
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 2, d2, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>
#map11 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4, d5)>
#map12 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
#map13 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5, d4)>
#map14 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
#map15 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d5, d4)>
#map16 = affine_map<(d0, d1, d2, d3, d4) -> (d1)>
#map17 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4, d3)>
#map18 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d3)>
#map19 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map20 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d2)>
#map21 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#map22 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>
module {
  func.func @mamba3_mimo(%Q: tensor<2x2x?x4x8xf32>, %K: tensor<2x2x?x4x8xf32>, %V: tensor<2x4x?x5xf32>, %ADT: tensor<2x4x?xf32>, %DT: tensor<2x4x?xf32>, %Trap: tensor<2x4x?xf32>, %Angles: tensor<2x4x?x4xf32>, %MIMO_V: tensor<4x4x5xf32>, %MIMO_Out: tensor<4x4x5xf32>, %Q_bias: tensor<4x4x8xf32>, %K_bias: tensor<4x4x8xf32>, %D: tensor<4xf32>, %Z: tensor<2x4x?x5xf32>, %MIMO_Z: tensor<4x4x5xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %Q, %c2 : tensor<2x2x?x4x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %2 = tensor.empty() : tensor<2x4x8x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %4 = tensor.empty() : tensor<2x4x4x8xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
    %6 = tensor.empty() : tensor<2x4x5xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
    %c4 = arith.constant 4 : index
    %8 = arith.muli %dim, %c4 : index
    %9 = tensor.empty(%dim) : tensor<2x4x?x4xf64>
    %10 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%Angles, %DT : tensor<2x4x?x4xf32>, tensor<2x4x?xf32>) outs(%9 : tensor<2x4x?x4xf64>) {
    ^bb0(%Angles_32: f32, %DT_33: f32, %out: f64):
      %53 = arith.extf %Angles_32 : f32 to f64
      %54 = math.absf %53 : f64
      %cst_34 = arith.constant -2.000000e+00 : f64
      %55 = arith.mulf %54, %cst_34 : f64
      %cst_35 = arith.constant -8.000000e+01 : f64
      %56 = arith.maximumf %55, %cst_35 : f64
      %cst_36 = arith.constant 1.4426950408889634 : f64
      %cst_37 = arith.constant 5.000000e-01 : f64
      %57 = math.fma %56, %cst_36, %cst_37 : f64
      %58 = math.floor %57 : f64
      %cst_38 = arith.constant -0.69314718055994529 : f64
      %59 = math.fma %58, %cst_38, %56 : f64
      %cst_39 = arith.constant -2.3190468138462996E-17 : f64
      %60 = math.fma %58, %cst_39, %59 : f64
      %cst_40 = arith.constant 2.08767569878681E-9 : f64
      %cst_41 = arith.constant 2.505210838544172E-8 : f64
      %61 = math.fma %60, %cst_40, %cst_41 : f64
      %cst_42 = arith.constant 2.7557319223985888E-7 : f64
      %62 = math.fma %60, %61, %cst_42 : f64
      %cst_43 = arith.constant 2.7557319223985893E-6 : f64
      %63 = math.fma %60, %62, %cst_43 : f64
      %cst_44 = arith.constant 2.4801587301587302E-5 : f64
      %64 = math.fma %60, %63, %cst_44 : f64
      %cst_45 = arith.constant 1.9841269841269841E-4 : f64
      %65 = math.fma %60, %64, %cst_45 : f64
      %cst_46 = arith.constant 0.0013888888888888889 : f64
      %66 = math.fma %60, %65, %cst_46 : f64
      %cst_47 = arith.constant 0.0083333333333333332 : f64
      %67 = math.fma %60, %66, %cst_47 : f64
      %cst_48 = arith.constant 0.041666666666666664 : f64
      %68 = math.fma %60, %67, %cst_48 : f64
      %cst_49 = arith.constant 0.16666666666666666 : f64
      %69 = math.fma %60, %68, %cst_49 : f64
      %70 = math.fma %60, %69, %cst_37 : f64
      %cst_50 = arith.constant 1.000000e+00 : f64
      %71 = math.fma %60, %70, %cst_50 : f64
      %72 = math.fma %60, %71, %cst_50 : f64
      %cst_51 = arith.constant 0x4338000000000000 : f64
      %73 = arith.addf %58, %cst_51 : f64
      %74 = arith.bitcast %73 : f64 to i64
      %c52_i64 = arith.constant 52 : i64
      %75 = arith.shli %74, %c52_i64 : i64
      %c4607182418800017408_i64 = arith.constant 4607182418800017408 : i64
      %76 = arith.addi %75, %c4607182418800017408_i64 : i64
      %77 = arith.bitcast %76 : i64 to f64
      %78 = arith.mulf %72, %77 : f64
      %79 = arith.subf %cst_50, %78 : f64
      %80 = arith.addf %cst_50, %78 : f64
      %81 = arith.divf %79, %80 : f64
      %cst_52 = arith.constant 0.000000e+00 : f64
      %82 = arith.cmpf olt, %53, %cst_52 : f64
      %83 = arith.negf %81 : f64
      %84 = arith.select %82, %83, %81 : f64
      %cst_53 = arith.constant 3.1415926535897931 : f64
      %85 = arith.mulf %84, %cst_53 : f64
      %86 = arith.extf %DT_33 : f32 to f64
      %87 = arith.mulf %85, %86 : f64
      linalg.yield %87 : f64
    } -> tensor<2x4x?x4xf64>
    %11 = tensor.empty() : tensor<2x4x1x4xf64>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x4xf32>) outs(%11 : tensor<2x4x1x4xf64>) {
    ^bb0(%in: f32, %out: f64):
      %53 = arith.extf %in : f32 to f64
      linalg.yield %53 : f64
    } -> tensor<2x4x1x4xf64>
    %cst_0 = arith.constant 1.000000e+00 : f64
    %13 = tensor.empty(%dim) : tensor<2x1x?x1xf64>
    %14 = linalg.fill ins(%cst_0 : f64) outs(%13 : tensor<2x1x?x1xf64>) -> tensor<2x1x?x1xf64>
    %15:2 = linattn.scan %14, %14, %10 into(%9) init(%12) : (tensor<2x1x?x1xf64>, tensor<2x1x?x1xf64>, tensor<2x4x?x4xf64>, tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>) -> (tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>)
    %16 = tensor.empty(%dim) : tensor<2x4x?x4xf32>
    %17:2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15#0 : tensor<2x4x?x4xf64>) outs(%16, %16 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f64, %out: f32, %out_32: f32):
      %cst_33 = arith.constant 0.63661977236758138 : f64
      %cst_34 = arith.constant 5.000000e-01 : f64
      %53 = math.fma %in, %cst_33, %cst_34 : f64
      %54 = math.floor %53 : f64
      %cst_35 = arith.constant -1.5707963267948966 : f64
      %55 = math.fma %54, %cst_35, %in : f64
      %cst_36 = arith.constant -6.123233995736766E-17 : f64
      %56 = math.fma %54, %cst_36, %55 : f64
      %57 = arith.mulf %56, %56 : f64
      %cst_37 = arith.constant -7.6471637318198164E-13 : f64
      %cst_38 = arith.constant 1.6059043836821613E-10 : f64
      %58 = math.fma %57, %cst_37, %cst_38 : f64
      %cst_39 = arith.constant -2.505210838544172E-8 : f64
      %59 = math.fma %57, %58, %cst_39 : f64
      %cst_40 = arith.constant 2.7557319223985893E-6 : f64
      %60 = math.fma %57, %59, %cst_40 : f64
      %cst_41 = arith.constant -1.9841269841269841E-4 : f64
      %61 = math.fma %57, %60, %cst_41 : f64
      %cst_42 = arith.constant 0.0083333333333333332 : f64
      %62 = math.fma %57, %61, %cst_42 : f64
      %cst_43 = arith.constant -0.16666666666666666 : f64
      %63 = math.fma %57, %62, %cst_43 : f64
      %64 = math.fma %57, %63, %cst_0 : f64
      %65 = arith.mulf %56, %64 : f64
      %cst_44 = arith.constant 4.7794773323873853E-14 : f64
      %cst_45 = arith.constant -1.1470745597729725E-11 : f64
      %66 = math.fma %57, %cst_44, %cst_45 : f64
      %cst_46 = arith.constant 2.08767569878681E-9 : f64
      %67 = math.fma %57, %66, %cst_46 : f64
      %cst_47 = arith.constant -2.7557319223985888E-7 : f64
      %68 = math.fma %57, %67, %cst_47 : f64
      %cst_48 = arith.constant 2.4801587301587302E-5 : f64
      %69 = math.fma %57, %68, %cst_48 : f64
      %cst_49 = arith.constant -0.0013888888888888889 : f64
      %70 = math.fma %57, %69, %cst_49 : f64
      %cst_50 = arith.constant 0.041666666666666664 : f64
      %71 = math.fma %57, %70, %cst_50 : f64
      %cst_51 = arith.constant -5.000000e-01 : f64
      %72 = math.fma %57, %71, %cst_51 : f64
      %73 = math.fma %57, %72, %cst_0 : f64
      %cst_52 = arith.constant 0x4338000000000000 : f64
      %74 = arith.addf %54, %cst_52 : f64
      %75 = arith.bitcast %74 : f64 to i64
      %c0_i64 = arith.constant 0 : i64
      %c1_i64 = arith.constant 1 : i64
      %c2_i64 = arith.constant 2 : i64
      %76 = arith.andi %75, %c1_i64 : i64
      %77 = arith.cmpi ne, %76, %c0_i64 : i64
      %78 = arith.select %77, %73, %65 : f64
      %79 = arith.select %77, %65, %73 : f64
      %80 = arith.addi %75, %c1_i64 : i64
      %81 = arith.andi %75, %c2_i64 : i64
      %82 = arith.cmpi ne, %81, %c0_i64 : i64
      %83 = arith.negf %78 : f64
      %84 = arith.select %82, %83, %78 : f64
      %85 = arith.andi %80, %c2_i64 : i64
      %86 = arith.cmpi ne, %85, %c0_i64 : i64
      %87 = arith.negf %79 : f64
      %88 = arith.select %86, %87, %79 : f64
      %89 = arith.truncf %88 : f64 to f32
      %90 = arith.truncf %84 : f64 to f32
      linalg.yield %89, %90 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %18 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%18 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_32: f32, %DT_33: f32, %out: f32):
      %cst_34 = arith.constant 1.000000e+00 : f32
      %cst_35 = arith.constant 8.700000e+01 : f32
      %53 = arith.negf %Trap_32 : f32
      %54 = arith.minimumf %53, %cst_35 : f32
      %55 = math.exp %54 : f32
      %56 = arith.addf %cst_34, %55 : f32
      %57 = arith.divf %cst_34, %56 : f32
      %58 = arith.mulf %57, %DT_33 : f32
      linalg.yield %58 : f32
    } -> tensor<2x4x?xf32>
    %dim_1 = tensor.dim %19, %c2 : tensor<2x4x?xf32>
    %c1 = arith.constant 1 : index
    %20 = arith.addi %dim_1, %c1 : index
    %21 = tensor.empty() : tensor<2x4xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %23 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%22 : tensor<2x4xf32>) outs(%21 : tensor<2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4xf32>
    %24 = tensor.empty(%20) : tensor<2x4x?xf32>
    %inserted_slice = tensor.insert_slice %23 into %24[0, 0, 0] [2, 4, 1] [1, 1, 1] : tensor<2x4xf32> into tensor<2x4x?xf32>
    %inserted_slice_2 = tensor.insert_slice %19 into %inserted_slice[0, 0, 1] [2, 4, %dim_1] [1, 1, 1] : tensor<2x4x?xf32> into tensor<2x4x?xf32>
    %extracted_slice = tensor.extract_slice %inserted_slice_2[0, 0, 0] [2, 4, %dim_1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4x?xf32>
    %25 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT, %ADT, %extracted_slice : tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%18 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_32: f32, %DT_33: f32, %ADT_34: f32, %in: f32, %out: f32):
      %53 = arith.negf %Trap_32 : f32
      %cst_35 = arith.constant 1.000000e+00 : f32
      %cst_36 = arith.constant 8.700000e+01 : f32
      %54 = arith.negf %53 : f32
      %55 = arith.minimumf %54, %cst_36 : f32
      %56 = math.exp %55 : f32
      %57 = arith.addf %cst_35, %56 : f32
      %58 = arith.divf %cst_35, %57 : f32
      %59 = arith.mulf %58, %DT_33 : f32
      %60 = arith.addf %59, %in : f32
      %61 = math.exp %ADT_34 : f32
      %62 = arith.mulf %61, %60 : f32
      linalg.yield %62 : f32
    } -> tensor<2x4x?xf32>
    %26 = tensor.empty(%dim) : tensor<2x4x?x4x8xf32>
    %extracted_slice_3 = tensor.extract_slice %Q[0, 0, 0, 0, 0] [2, 2, %dim, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_4 = tensor.extract_slice %Q[0, 0, 0, 0, 4] [2, 2, %dim, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_5 = tensor.extract_slice %Q_bias[0, 0, 0] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %extracted_slice_6 = tensor.extract_slice %Q_bias[0, 0, 4] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %27 = tensor.empty(%dim) : tensor<2x4x?x4x4xf32>
    %28:2 = linalg.generic {indexing_maps = [#map5, #map5, #map6, #map6, #map7, #map7, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_3, %extracted_slice_4, %17#0, %17#1, %extracted_slice_5, %extracted_slice_6 : tensor<2x2x?x4x4xf32>, tensor<2x2x?x4x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>) outs(%27, %27 : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_32: f32, %in_33: f32, %in_34: f32, %in_35: f32, %in_36: f32, %out: f32, %out_37: f32):
      %53 = arith.addf %in, %in_35 : f32
      %54 = arith.addf %in_32, %in_36 : f32
      %55 = arith.mulf %53, %in_33 : f32
      %56 = arith.mulf %54, %in_34 : f32
      %57 = arith.subf %55, %56 : f32
      %58 = arith.mulf %53, %in_34 : f32
      %59 = arith.mulf %54, %in_33 : f32
      %60 = arith.addf %58, %59 : f32
      linalg.yield %57, %60 : f32, f32
    } -> (tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>)
    %dim_7 = tensor.dim %28#0, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_8 = tensor.insert_slice %28#0 into %26[0, 0, 0, 0, 0] [2, 4, %dim_7, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_9 = tensor.dim %28#1, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_10 = tensor.insert_slice %28#1 into %inserted_slice_8[0, 0, 0, 0, 4] [2, 4, %dim_9, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %29 = arith.addi %dim, %c1 : index
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x4x4x8xf32>) outs(%4 : tensor<2x4x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x4x8xf32>
    %31 = tensor.empty(%29) : tensor<2x4x?x4x8xf32>
    %inserted_slice_11 = tensor.insert_slice %30 into %31[0, 0, 0, 0, 0] [2, 4, 1, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x4x8xf32> into tensor<2x4x?x4x8xf32>
    %dim_12 = tensor.dim %K, %c2 : tensor<2x2x?x4x8xf32>
    %extracted_slice_13 = tensor.extract_slice %K[0, 0, 0, 0, 0] [2, 2, %dim_12, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_14 = tensor.extract_slice %K[0, 0, 0, 0, 4] [2, 2, %dim_12, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_15 = tensor.extract_slice %K_bias[0, 0, 0] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %extracted_slice_16 = tensor.extract_slice %K_bias[0, 0, 4] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %32:2 = linalg.generic {indexing_maps = [#map5, #map5, #map6, #map6, #map7, #map7, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13, %extracted_slice_14, %17#0, %17#1, %extracted_slice_15, %extracted_slice_16 : tensor<2x2x?x4x4xf32>, tensor<2x2x?x4x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>) outs(%27, %27 : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_32: f32, %in_33: f32, %in_34: f32, %in_35: f32, %in_36: f32, %out: f32, %out_37: f32):
      %53 = arith.addf %in, %in_35 : f32
      %54 = arith.addf %in_32, %in_36 : f32
      %55 = arith.mulf %53, %in_33 : f32
      %56 = arith.mulf %54, %in_34 : f32
      %57 = arith.subf %55, %56 : f32
      %58 = arith.mulf %53, %in_34 : f32
      %59 = arith.mulf %54, %in_33 : f32
      %60 = arith.addf %58, %59 : f32
      linalg.yield %57, %60 : f32, f32
    } -> (tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>)
    %dim_17 = tensor.dim %32#0, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_18 = tensor.insert_slice %32#0 into %inserted_slice_11[0, 0, 1, 0, 0] [2, 4, %dim_17, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_19 = tensor.dim %32#1, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_20 = tensor.insert_slice %32#1 into %inserted_slice_18[0, 0, 1, 0, 4] [2, 4, %dim_19, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %33 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x5xf32>) outs(%6 : tensor<2x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x5xf32>
    %34 = tensor.empty(%29) : tensor<2x4x?x5xf32>
    %inserted_slice_21 = tensor.insert_slice %33 into %34[0, 0, 0, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x5xf32> into tensor<2x4x?x5xf32>
    %inserted_slice_22 = tensor.insert_slice %V into %inserted_slice_21[0, 0, 1, 0] [2, 4, %dim, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> into tensor<2x4x?x5xf32>
    %extracted_slice_23 = tensor.extract_slice %inserted_slice_20[0, 0, 0, 0, 0] [2, 4, %dim, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> to tensor<2x4x?x4x8xf32>
    %extracted_slice_24 = tensor.extract_slice %inserted_slice_22[0, 0, 0, 0] [2, 4, %dim, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x?x5xf32>
    %35 = tensor.empty(%dim) : tensor<2x4x?x4x5xf32>
    %36 = linalg.generic {indexing_maps = [#map6, #map9, #map7, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_24, %25, %MIMO_V : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<4x4x5xf32>) outs(%35 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %in_32: f32, %MIMO_V_33: f32, %out: f32):
      %53 = arith.mulf %in, %in_32 : f32
      %54 = arith.mulf %53, %MIMO_V_33 : f32
      linalg.yield %54 : f32
    } -> tensor<2x4x?x4x5xf32>
    %37 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ADT : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?x4xf32>) {
    ^bb0(%ADT_32: f32, %out: f32):
      %53 = linalg.index 3 : index
      %c0 = arith.constant 0 : index
      %54 = arith.cmpi eq, %53, %c0 : index
      %55 = arith.select %54, %ADT_32, %cst : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x?x4xf32>
    %collapsed = tensor.collapse_shape %37 [[0], [1], [2, 3]] : tensor<2x4x?x4xf32> into tensor<2x4x?xf32>
    %collapsed_25 = tensor.collapse_shape %inserted_slice_10 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x8xf32> into tensor<2x4x?x8xf32>
    %collapsed_26 = tensor.collapse_shape %extracted_slice_23 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x8xf32> into tensor<2x4x?x8xf32>
    %collapsed_27 = tensor.collapse_shape %36 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x5xf32> into tensor<2x4x?x5xf32>
    %38 = tensor.empty(%8) : tensor<2x4x?x5xf32>
    %39:2 = linattn.scan %collapsed_25, %collapsed_26, %collapsed_27 decay(%collapsed) into(%38) init(%3) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    %expanded = tensor.expand_shape %39#0 [[0], [1], [2, 3], [4]] output_shape [2, 4, %dim, 4, 5] : tensor<2x4x?x5xf32> into tensor<2x4x?x4x5xf32>
    %extracted_slice_28 = tensor.extract_slice %inserted_slice_20[0, 0, %dim, 0, 0] [2, 4, 1, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> to tensor<2x4x4x8xf32>
    %extracted_slice_29 = tensor.extract_slice %inserted_slice_22[0, 0, %dim, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x5xf32>
    %extracted_slice_30 = tensor.extract_slice %inserted_slice_20[0, 0, 1, 0, 0] [2, 4, %dim, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> to tensor<2x4x?x4x8xf32>
    %40 = linalg.fill ins(%cst : f32) outs(%27 : tensor<2x4x?x4x4xf32>) -> tensor<2x4x?x4x4xf32>
    %41 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_10, %extracted_slice_30 : tensor<2x4x?x4x8xf32>, tensor<2x4x?x4x8xf32>) outs(%40 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_32: f32, %out: f32):
      %53 = arith.mulf %in, %in_32 : f32
      %54 = arith.addf %out, %53 : f32
      linalg.yield %54 : f32
    } -> tensor<2x4x?x4x4xf32>
    %42 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%41, %19 : tensor<2x4x?x4x4xf32>, tensor<2x4x?xf32>) outs(%27 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_32: f32, %out: f32):
      %53 = arith.mulf %in, %in_32 : f32
      linalg.yield %53 : f32
    } -> tensor<2x4x?x4x4xf32>
    %43 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_10, %extracted_slice_23 : tensor<2x4x?x4x8xf32>, tensor<2x4x?x4x8xf32>) outs(%40 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_32: f32, %out: f32):
      %53 = arith.mulf %in, %in_32 : f32
      %54 = arith.addf %out, %53 : f32
      linalg.yield %54 : f32
    } -> tensor<2x4x?x4x4xf32>
    %44 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<2x4x?x4x4xf32>) outs(%27 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %53 = linalg.index 4 : index
      %54 = linalg.index 3 : index
      %55 = arith.cmpi ugt, %53, %54 : index
      %56 = arith.select %55, %in, %cst : f32
      linalg.yield %56 : f32
    } -> tensor<2x4x?x4x4xf32>
    %45 = linalg.fill ins(%cst : f32) outs(%35 : tensor<2x4x?x4x5xf32>) -> tensor<2x4x?x4x5xf32>
    %46 = linalg.generic {indexing_maps = [#map10, #map13, #map10, #map14, #map15, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%44, %36, %42, %V, %MIMO_V : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x5xf32>, tensor<2x4x?x4x4xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>) outs(%45 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %in_32: f32, %in_33: f32, %V_34: f32, %MIMO_V_35: f32, %out: f32):
      %53 = arith.mulf %in, %in_32 : f32
      %54 = arith.addf %out, %53 : f32
      %55 = arith.mulf %V_34, %MIMO_V_35 : f32
      %56 = arith.mulf %in_33, %55 : f32
      %57 = arith.addf %54, %56 : f32
      linalg.yield %57 : f32
    } -> tensor<2x4x?x4x5xf32>
    %47 = linalg.generic {indexing_maps = [#map8, #map8, #map6, #map7, #map16, #map6, #map7, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %46, %V, %MIMO_V, %D, %Z, %MIMO_Z : tensor<2x4x?x4x5xf32>, tensor<2x4x?x4x5xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>) outs(%35 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %in_32: f32, %V_33: f32, %MIMO_V_34: f32, %D_35: f32, %Z_36: f32, %MIMO_Z_37: f32, %out: f32):
      %53 = arith.addf %in, %in_32 : f32
      %54 = arith.mulf %V_33, %MIMO_V_34 : f32
      %55 = arith.mulf %D_35, %54 : f32
      %56 = arith.addf %53, %55 : f32
      %57 = arith.mulf %Z_36, %MIMO_Z_37 : f32
      %cst_38 = arith.constant 1.000000e+00 : f32
      %cst_39 = arith.constant 8.700000e+01 : f32
      %58 = arith.negf %57 : f32
      %59 = arith.minimumf %58, %cst_39 : f32
      %60 = math.exp %59 : f32
      %61 = arith.addf %cst_38, %60 : f32
      %62 = arith.divf %cst_38, %61 : f32
      %63 = arith.mulf %57, %62 : f32
      %64 = arith.mulf %56, %63 : f32
      linalg.yield %64 : f32
    } -> tensor<2x4x?x4x5xf32>
    %48 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %49 = linalg.fill ins(%cst : f32) outs(%48 : tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32>
    %50 = linalg.generic {indexing_maps = [#map17, #map18, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%47, %MIMO_Out : tensor<2x4x?x4x5xf32>, tensor<4x4x5xf32>) outs(%49 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %MIMO_Out_32: f32, %out: f32):
      %53 = arith.mulf %in, %MIMO_Out_32 : f32
      %54 = arith.addf %out, %53 : f32
      linalg.yield %54 : f32
    } -> tensor<2x4x?x5xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%50 : tensor<2x4x?x5xf32>) outs(%48 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x5xf32>
    %extracted_slice_31 = tensor.extract_slice %inserted_slice_2[0, 0, %dim_1] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
    %52 = linalg.generic {indexing_maps = [#map20, #map21, #map22, #map18, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice_28, %extracted_slice_29, %extracted_slice_31, %MIMO_V : tensor<2x4x4x8xf32>, tensor<2x4x5xf32>, tensor<2x4xf32>, tensor<4x4x5xf32>) outs(%3 : tensor<2x4x8x5xf32>) {
    ^bb0(%in: f32, %in_32: f32, %in_33: f32, %MIMO_V_34: f32, %out: f32):
      %53 = arith.mulf %in, %in_33 : f32
      %54 = arith.mulf %53, %in_32 : f32
      %55 = arith.mulf %54, %MIMO_V_34 : f32
      %56 = arith.addf %out, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<2x4x8x5xf32>
    return %51 : tensor<2x4x?x5xf32>
  }
}

