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
    ^bb0(%Angles_34: f32, %DT_35: f32, %out: f64):
      %55 = arith.extf %Angles_34 : f32 to f64
      %56 = math.absf %55 : f64
      %cst_36 = arith.constant -2.000000e+00 : f64
      %57 = arith.mulf %56, %cst_36 : f64
      %cst_37 = arith.constant -8.000000e+01 : f64
      %58 = arith.maximumf %57, %cst_37 : f64
      %cst_38 = arith.constant 1.4426950408889634 : f64
      %cst_39 = arith.constant 5.000000e-01 : f64
      %59 = math.fma %58, %cst_38, %cst_39 : f64
      %60 = math.floor %59 : f64
      %cst_40 = arith.constant -0.69314718055994529 : f64
      %61 = math.fma %60, %cst_40, %58 : f64
      %cst_41 = arith.constant -2.3190468138462996E-17 : f64
      %62 = math.fma %60, %cst_41, %61 : f64
      %cst_42 = arith.constant 2.08767569878681E-9 : f64
      %cst_43 = arith.constant 2.505210838544172E-8 : f64
      %63 = math.fma %62, %cst_42, %cst_43 : f64
      %cst_44 = arith.constant 2.7557319223985888E-7 : f64
      %64 = math.fma %62, %63, %cst_44 : f64
      %cst_45 = arith.constant 2.7557319223985893E-6 : f64
      %65 = math.fma %62, %64, %cst_45 : f64
      %cst_46 = arith.constant 2.4801587301587302E-5 : f64
      %66 = math.fma %62, %65, %cst_46 : f64
      %cst_47 = arith.constant 1.9841269841269841E-4 : f64
      %67 = math.fma %62, %66, %cst_47 : f64
      %cst_48 = arith.constant 0.0013888888888888889 : f64
      %68 = math.fma %62, %67, %cst_48 : f64
      %cst_49 = arith.constant 0.0083333333333333332 : f64
      %69 = math.fma %62, %68, %cst_49 : f64
      %cst_50 = arith.constant 0.041666666666666664 : f64
      %70 = math.fma %62, %69, %cst_50 : f64
      %cst_51 = arith.constant 0.16666666666666666 : f64
      %71 = math.fma %62, %70, %cst_51 : f64
      %72 = math.fma %62, %71, %cst_39 : f64
      %cst_52 = arith.constant 1.000000e+00 : f64
      %73 = math.fma %62, %72, %cst_52 : f64
      %74 = math.fma %62, %73, %cst_52 : f64
      %cst_53 = arith.constant 0x4338000000000000 : f64
      %75 = arith.addf %60, %cst_53 : f64
      %76 = arith.bitcast %75 : f64 to i64
      %c52_i64 = arith.constant 52 : i64
      %77 = arith.shli %76, %c52_i64 : i64
      %c4607182418800017408_i64 = arith.constant 4607182418800017408 : i64
      %78 = arith.addi %77, %c4607182418800017408_i64 : i64
      %79 = arith.bitcast %78 : i64 to f64
      %80 = arith.mulf %74, %79 : f64
      %81 = arith.subf %cst_52, %80 : f64
      %82 = arith.addf %cst_52, %80 : f64
      %83 = arith.divf %81, %82 : f64
      %cst_54 = arith.constant 0.000000e+00 : f64
      %84 = arith.cmpf olt, %55, %cst_54 : f64
      %85 = arith.negf %83 : f64
      %86 = arith.select %84, %85, %83 : f64
      %cst_55 = arith.constant 3.1415926535897931 : f64
      %87 = arith.mulf %86, %cst_55 : f64
      %88 = arith.extf %DT_35 : f32 to f64
      %89 = arith.mulf %87, %88 : f64
      linalg.yield %89 : f64
    } -> tensor<2x4x?x4xf64>
    %11 = tensor.empty() : tensor<2x4x1x4xf64>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x4xf32>) outs(%11 : tensor<2x4x1x4xf64>) {
    ^bb0(%in: f32, %out: f64):
      %55 = arith.extf %in : f32 to f64
      linalg.yield %55 : f64
    } -> tensor<2x4x1x4xf64>
    %cst_0 = arith.constant 1.000000e+00 : f64
    %13 = tensor.empty(%dim) : tensor<2x1x?x1xf64>
    %14 = linalg.fill ins(%cst_0 : f64) outs(%13 : tensor<2x1x?x1xf64>) -> tensor<2x1x?x1xf64>
    %15:2 = linattn.scan %14, %14, %10 into(%9) init(%12) : (tensor<2x1x?x1xf64>, tensor<2x1x?x1xf64>, tensor<2x4x?x4xf64>, tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>) -> (tensor<2x4x?x4xf64>, tensor<2x4x1x4xf64>)
    %16 = tensor.empty(%dim) : tensor<2x4x?x4xf32>
    %17:2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15#0 : tensor<2x4x?x4xf64>) outs(%16, %16 : tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>) {
    ^bb0(%in: f64, %out: f32, %out_34: f32):
      %cst_35 = arith.constant 0.63661977236758138 : f64
      %cst_36 = arith.constant 5.000000e-01 : f64
      %55 = math.fma %in, %cst_35, %cst_36 : f64
      %56 = math.floor %55 : f64
      %cst_37 = arith.constant -1.5707963267948966 : f64
      %57 = math.fma %56, %cst_37, %in : f64
      %cst_38 = arith.constant -6.123233995736766E-17 : f64
      %58 = math.fma %56, %cst_38, %57 : f64
      %59 = arith.mulf %58, %58 : f64
      %cst_39 = arith.constant -7.6471637318198164E-13 : f64
      %cst_40 = arith.constant 1.6059043836821613E-10 : f64
      %60 = math.fma %59, %cst_39, %cst_40 : f64
      %cst_41 = arith.constant -2.505210838544172E-8 : f64
      %61 = math.fma %59, %60, %cst_41 : f64
      %cst_42 = arith.constant 2.7557319223985893E-6 : f64
      %62 = math.fma %59, %61, %cst_42 : f64
      %cst_43 = arith.constant -1.9841269841269841E-4 : f64
      %63 = math.fma %59, %62, %cst_43 : f64
      %cst_44 = arith.constant 0.0083333333333333332 : f64
      %64 = math.fma %59, %63, %cst_44 : f64
      %cst_45 = arith.constant -0.16666666666666666 : f64
      %65 = math.fma %59, %64, %cst_45 : f64
      %66 = math.fma %59, %65, %cst_0 : f64
      %67 = arith.mulf %58, %66 : f64
      %cst_46 = arith.constant 4.7794773323873853E-14 : f64
      %cst_47 = arith.constant -1.1470745597729725E-11 : f64
      %68 = math.fma %59, %cst_46, %cst_47 : f64
      %cst_48 = arith.constant 2.08767569878681E-9 : f64
      %69 = math.fma %59, %68, %cst_48 : f64
      %cst_49 = arith.constant -2.7557319223985888E-7 : f64
      %70 = math.fma %59, %69, %cst_49 : f64
      %cst_50 = arith.constant 2.4801587301587302E-5 : f64
      %71 = math.fma %59, %70, %cst_50 : f64
      %cst_51 = arith.constant -0.0013888888888888889 : f64
      %72 = math.fma %59, %71, %cst_51 : f64
      %cst_52 = arith.constant 0.041666666666666664 : f64
      %73 = math.fma %59, %72, %cst_52 : f64
      %cst_53 = arith.constant -5.000000e-01 : f64
      %74 = math.fma %59, %73, %cst_53 : f64
      %75 = math.fma %59, %74, %cst_0 : f64
      %cst_54 = arith.constant 0x4338000000000000 : f64
      %76 = arith.addf %56, %cst_54 : f64
      %77 = arith.bitcast %76 : f64 to i64
      %c0_i64 = arith.constant 0 : i64
      %c1_i64 = arith.constant 1 : i64
      %c2_i64 = arith.constant 2 : i64
      %78 = arith.andi %77, %c1_i64 : i64
      %79 = arith.cmpi ne, %78, %c0_i64 : i64
      %80 = arith.select %79, %75, %67 : f64
      %81 = arith.select %79, %67, %75 : f64
      %82 = arith.addi %77, %c1_i64 : i64
      %83 = arith.andi %77, %c2_i64 : i64
      %84 = arith.cmpi ne, %83, %c0_i64 : i64
      %85 = arith.negf %80 : f64
      %86 = arith.select %84, %85, %80 : f64
      %87 = arith.andi %82, %c2_i64 : i64
      %88 = arith.cmpi ne, %87, %c0_i64 : i64
      %89 = arith.negf %81 : f64
      %90 = arith.select %88, %89, %81 : f64
      %91 = arith.truncf %90 : f64 to f32
      %92 = arith.truncf %86 : f64 to f32
      linalg.yield %91, %92 : f32, f32
    } -> (tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>)
    %18 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT : tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%18 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_34: f32, %DT_35: f32, %out: f32):
      %cst_36 = arith.constant 1.000000e+00 : f32
      %55 = arith.negf %Trap_34 : f32
      %56 = math.exp %55 : f32
      %57 = arith.addf %cst_36, %56 : f32
      %58 = arith.divf %cst_36, %57 : f32
      %59 = arith.mulf %58, %DT_35 : f32
      linalg.yield %59 : f32
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
    %extracted_slice_3 = tensor.extract_slice %inserted_slice_2[0, 0, %dim_1] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
    %25 = linalg.generic {indexing_maps = [#map3, #map3, #map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%Trap, %DT, %ADT, %extracted_slice : tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>) outs(%18 : tensor<2x4x?xf32>) {
    ^bb0(%Trap_34: f32, %DT_35: f32, %ADT_36: f32, %in: f32, %out: f32):
      %55 = arith.negf %Trap_34 : f32
      %cst_37 = arith.constant 1.000000e+00 : f32
      %56 = arith.negf %55 : f32
      %57 = math.exp %56 : f32
      %58 = arith.addf %cst_37, %57 : f32
      %59 = arith.divf %cst_37, %58 : f32
      %60 = arith.mulf %59, %DT_35 : f32
      %61 = arith.addf %60, %in : f32
      %62 = math.exp %ADT_36 : f32
      %63 = arith.mulf %62, %61 : f32
      linalg.yield %63 : f32
    } -> tensor<2x4x?xf32>
    %26 = tensor.empty(%dim) : tensor<2x4x?x4x8xf32>
    %extracted_slice_4 = tensor.extract_slice %Q[0, 0, 0, 0, 0] [2, 2, %dim, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_5 = tensor.extract_slice %Q[0, 0, 0, 0, 4] [2, 2, %dim, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_6 = tensor.extract_slice %Q_bias[0, 0, 0] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %extracted_slice_7 = tensor.extract_slice %Q_bias[0, 0, 4] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %27 = tensor.empty(%dim) : tensor<2x4x?x4x4xf32>
    %28:2 = linalg.generic {indexing_maps = [#map5, #map5, #map6, #map6, #map7, #map7, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_4, %extracted_slice_5, %17#0, %17#1, %extracted_slice_6, %extracted_slice_7 : tensor<2x2x?x4x4xf32>, tensor<2x2x?x4x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>) outs(%27, %27 : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_34: f32, %in_35: f32, %in_36: f32, %in_37: f32, %in_38: f32, %out: f32, %out_39: f32):
      %55 = arith.addf %in, %in_37 : f32
      %56 = arith.addf %in_34, %in_38 : f32
      %57 = arith.mulf %55, %in_35 : f32
      %58 = arith.mulf %56, %in_36 : f32
      %59 = arith.subf %57, %58 : f32
      %60 = arith.mulf %55, %in_36 : f32
      %61 = arith.mulf %56, %in_35 : f32
      %62 = arith.addf %60, %61 : f32
      linalg.yield %59, %62 : f32, f32
    } -> (tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>)
    %dim_8 = tensor.dim %28#0, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_9 = tensor.insert_slice %28#0 into %26[0, 0, 0, 0, 0] [2, 4, %dim_8, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_10 = tensor.dim %28#1, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_11 = tensor.insert_slice %28#1 into %inserted_slice_9[0, 0, 0, 0, 4] [2, 4, %dim_10, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_12 = tensor.dim %K, %c2 : tensor<2x2x?x4x8xf32>
    %extracted_slice_13 = tensor.extract_slice %K[0, 0, 0, 0, 0] [2, 2, %dim_12, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_14 = tensor.extract_slice %K[0, 0, 0, 0, 4] [2, 2, %dim_12, 4, 4] [1, 1, 1, 1, 1] : tensor<2x2x?x4x8xf32> to tensor<2x2x?x4x4xf32>
    %extracted_slice_15 = tensor.extract_slice %K_bias[0, 0, 0] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %extracted_slice_16 = tensor.extract_slice %K_bias[0, 0, 4] [4, 4, 4] [1, 1, 1] : tensor<4x4x8xf32> to tensor<4x4x4xf32>
    %29:2 = linalg.generic {indexing_maps = [#map5, #map5, #map6, #map6, #map7, #map7, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_13, %extracted_slice_14, %17#0, %17#1, %extracted_slice_15, %extracted_slice_16 : tensor<2x2x?x4x4xf32>, tensor<2x2x?x4x4xf32>, tensor<2x4x?x4xf32>, tensor<2x4x?x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>) outs(%27, %27 : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_34: f32, %in_35: f32, %in_36: f32, %in_37: f32, %in_38: f32, %out: f32, %out_39: f32):
      %55 = arith.addf %in, %in_37 : f32
      %56 = arith.addf %in_34, %in_38 : f32
      %57 = arith.mulf %55, %in_35 : f32
      %58 = arith.mulf %56, %in_36 : f32
      %59 = arith.subf %57, %58 : f32
      %60 = arith.mulf %55, %in_36 : f32
      %61 = arith.mulf %56, %in_35 : f32
      %62 = arith.addf %60, %61 : f32
      linalg.yield %59, %62 : f32, f32
    } -> (tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x4xf32>)
    %dim_17 = tensor.dim %29#0, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_18 = tensor.insert_slice %29#0 into %26[0, 0, 0, 0, 0] [2, 4, %dim_17, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_19 = tensor.dim %29#1, %c2 : tensor<2x4x?x4x4xf32>
    %inserted_slice_20 = tensor.insert_slice %29#1 into %inserted_slice_18[0, 0, 0, 0, 4] [2, 4, %dim_19, 4, 4] [1, 1, 1, 1, 1] : tensor<2x4x?x4x4xf32> into tensor<2x4x?x4x8xf32>
    %dim_21 = tensor.dim %inserted_slice_20, %c2 : tensor<2x4x?x4x8xf32>
    %30 = arith.addi %dim_21, %c1 : index
    %31 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x4x4x8xf32>) outs(%4 : tensor<2x4x4x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x4x8xf32>
    %32 = tensor.empty(%30) : tensor<2x4x?x4x8xf32>
    %inserted_slice_22 = tensor.insert_slice %31 into %32[0, 0, 0, 0, 0] [2, 4, 1, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x4x8xf32> into tensor<2x4x?x4x8xf32>
    %inserted_slice_23 = tensor.insert_slice %inserted_slice_20 into %inserted_slice_22[0, 0, 1, 0, 0] [2, 4, %dim_21, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> into tensor<2x4x?x4x8xf32>
    %extracted_slice_24 = tensor.extract_slice %inserted_slice_23[0, 0, 0, 0, 0] [2, 4, %dim_21, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> to tensor<2x4x?x4x8xf32>
    %extracted_slice_25 = tensor.extract_slice %inserted_slice_23[0, 0, %dim_21, 0, 0] [2, 4, 1, 4, 8] [1, 1, 1, 1, 1] : tensor<2x4x?x4x8xf32> to tensor<2x4x4x8xf32>
    %dim_26 = tensor.dim %V, %c2 : tensor<2x4x?x5xf32>
    %33 = arith.addi %dim_26, %c1 : index
    %34 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<2x4x5xf32>) outs(%6 : tensor<2x4x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x5xf32>
    %35 = tensor.empty(%33) : tensor<2x4x?x5xf32>
    %inserted_slice_27 = tensor.insert_slice %34 into %35[0, 0, 0, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x5xf32> into tensor<2x4x?x5xf32>
    %inserted_slice_28 = tensor.insert_slice %V into %inserted_slice_27[0, 0, 1, 0] [2, 4, %dim_26, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> into tensor<2x4x?x5xf32>
    %extracted_slice_29 = tensor.extract_slice %inserted_slice_28[0, 0, 0, 0] [2, 4, %dim_26, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x?x5xf32>
    %extracted_slice_30 = tensor.extract_slice %inserted_slice_28[0, 0, %dim_26, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x5xf32>
    %36 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_24, %25 : tensor<2x4x?x4x8xf32>, tensor<2x4x?xf32>) outs(%26 : tensor<2x4x?x4x8xf32>) {
    ^bb0(%in: f32, %in_34: f32, %out: f32):
      %55 = arith.mulf %in, %in_34 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x?x4x8xf32>
    %37 = tensor.empty(%dim) : tensor<2x4x?x4x5xf32>
    %38 = linalg.generic {indexing_maps = [#map6, #map7, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_29, %MIMO_V : tensor<2x4x?x5xf32>, tensor<4x4x5xf32>) outs(%37 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %MIMO_V_34: f32, %out: f32):
      %55 = arith.mulf %in, %MIMO_V_34 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x?x4x5xf32>
    %39 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ADT : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?x4xf32>) {
    ^bb0(%ADT_34: f32, %out: f32):
      %55 = linalg.index 3 : index
      %c0 = arith.constant 0 : index
      %56 = arith.cmpi eq, %55, %c0 : index
      %57 = arith.select %56, %ADT_34, %cst : f32
      linalg.yield %57 : f32
    } -> tensor<2x4x?x4xf32>
    %collapsed = tensor.collapse_shape %39 [[0], [1], [2, 3]] : tensor<2x4x?x4xf32> into tensor<2x4x?xf32>
    %collapsed_31 = tensor.collapse_shape %inserted_slice_11 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x8xf32> into tensor<2x4x?x8xf32>
    %collapsed_32 = tensor.collapse_shape %36 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x8xf32> into tensor<2x4x?x8xf32>
    %collapsed_33 = tensor.collapse_shape %38 [[0], [1], [2, 3], [4]] : tensor<2x4x?x4x5xf32> into tensor<2x4x?x5xf32>
    %40 = tensor.empty(%8) : tensor<2x4x?x5xf32>
    %41:2 = linattn.scan %collapsed_31, %collapsed_32, %collapsed_33 decay(%collapsed) into(%40) init(%3) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    %expanded = tensor.expand_shape %41#0 [[0], [1], [2, 3], [4]] output_shape [2, 4, %dim, 4, 5] : tensor<2x4x?x5xf32> into tensor<2x4x?x4x5xf32>
    %42 = linalg.fill ins(%cst : f32) outs(%27 : tensor<2x4x?x4x4xf32>) -> tensor<2x4x?x4x4xf32>
    %43 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_11, %inserted_slice_20 : tensor<2x4x?x4x8xf32>, tensor<2x4x?x4x8xf32>) outs(%42 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_34: f32, %out: f32):
      %55 = arith.mulf %in, %in_34 : f32
      %56 = arith.addf %out, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<2x4x?x4x4xf32>
    %44 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43, %19 : tensor<2x4x?x4x4xf32>, tensor<2x4x?xf32>) outs(%27 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_34: f32, %out: f32):
      %55 = arith.mulf %in, %in_34 : f32
      linalg.yield %55 : f32
    } -> tensor<2x4x?x4x4xf32>
    %45 = linalg.generic {indexing_maps = [#map10, #map11, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%inserted_slice_11, %36 : tensor<2x4x?x4x8xf32>, tensor<2x4x?x4x8xf32>) outs(%42 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %in_34: f32, %out: f32):
      %55 = arith.mulf %in, %in_34 : f32
      %56 = arith.addf %out, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<2x4x?x4x4xf32>
    %46 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%45 : tensor<2x4x?x4x4xf32>) outs(%27 : tensor<2x4x?x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = linalg.index 4 : index
      %56 = linalg.index 3 : index
      %57 = arith.cmpi ugt, %55, %56 : index
      %58 = arith.select %57, %in, %cst : f32
      linalg.yield %58 : f32
    } -> tensor<2x4x?x4x4xf32>
    %47 = linalg.fill ins(%cst : f32) outs(%37 : tensor<2x4x?x4x5xf32>) -> tensor<2x4x?x4x5xf32>
    %48 = linalg.generic {indexing_maps = [#map10, #map13, #map10, #map14, #map15, #map12], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%46, %38, %44, %V, %MIMO_V : tensor<2x4x?x4x4xf32>, tensor<2x4x?x4x5xf32>, tensor<2x4x?x4x4xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>) outs(%47 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %in_34: f32, %in_35: f32, %V_36: f32, %MIMO_V_37: f32, %out: f32):
      %55 = arith.mulf %in, %in_34 : f32
      %56 = arith.addf %out, %55 : f32
      %57 = arith.mulf %V_36, %MIMO_V_37 : f32
      %58 = arith.mulf %in_35, %57 : f32
      %59 = arith.addf %56, %58 : f32
      linalg.yield %59 : f32
    } -> tensor<2x4x?x4x5xf32>
    %49 = linalg.generic {indexing_maps = [#map8, #map8, #map6, #map7, #map16, #map6, #map7, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %48, %V, %MIMO_V, %D, %Z, %MIMO_Z : tensor<2x4x?x4x5xf32>, tensor<2x4x?x4x5xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>, tensor<4x4x5xf32>) outs(%37 : tensor<2x4x?x4x5xf32>) {
    ^bb0(%in: f32, %in_34: f32, %V_35: f32, %MIMO_V_36: f32, %D_37: f32, %Z_38: f32, %MIMO_Z_39: f32, %out: f32):
      %55 = arith.addf %in, %in_34 : f32
      %56 = arith.mulf %V_35, %MIMO_V_36 : f32
      %57 = arith.mulf %D_37, %56 : f32
      %58 = arith.addf %55, %57 : f32
      %59 = arith.mulf %Z_38, %MIMO_Z_39 : f32
      %cst_40 = arith.constant 1.000000e+00 : f32
      %60 = arith.negf %59 : f32
      %61 = math.exp %60 : f32
      %62 = arith.addf %cst_40, %61 : f32
      %63 = arith.divf %cst_40, %62 : f32
      %64 = arith.mulf %59, %63 : f32
      %65 = arith.mulf %58, %64 : f32
      linalg.yield %65 : f32
    } -> tensor<2x4x?x4x5xf32>
    %50 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %51 = linalg.fill ins(%cst : f32) outs(%50 : tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32>
    %52 = linalg.generic {indexing_maps = [#map17, #map18, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%49, %MIMO_Out : tensor<2x4x?x4x5xf32>, tensor<4x4x5xf32>) outs(%51 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %MIMO_Out_34: f32, %out: f32):
      %55 = arith.mulf %in, %MIMO_Out_34 : f32
      %56 = arith.addf %out, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<2x4x?x5xf32>
    %53 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<2x4x?x5xf32>) outs(%50 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x5xf32>
    %54 = linalg.generic {indexing_maps = [#map20, #map21, #map22, #map18, #map19], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice_25, %extracted_slice_30, %extracted_slice_3, %MIMO_V : tensor<2x4x4x8xf32>, tensor<2x4x5xf32>, tensor<2x4xf32>, tensor<4x4x5xf32>) outs(%3 : tensor<2x4x8x5xf32>) {
    ^bb0(%in: f32, %in_34: f32, %in_35: f32, %MIMO_V_36: f32, %out: f32):
      %55 = arith.mulf %in, %in_35 : f32
      %56 = arith.mulf %55, %in_34 : f32
      %57 = arith.mulf %56, %MIMO_V_36 : f32
      %58 = arith.addf %out, %57 : f32
      linalg.yield %58 : f32
    } -> tensor<2x4x8x5xf32>
    return %53 : tensor<2x4x?x5xf32>
  }
}

