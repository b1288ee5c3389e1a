//===- CostFunctions.h - Operation and byte counts --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Closed forms for the cost of one attention head over n tokens of head size d.
// Each function's comment says its unit: flops (an addition, multiplication,
// division or exponential is one), multiply-adds, or bytes. Counts are doubles:
// exact up to 2^53, and no sequence length overflows them.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_REFERENCE_COSTFUNCTIONS_H
#define LINATTN_REFERENCE_COSTFUNCTIONS_H

namespace linattn::reference {

//===----------------------------------------------------------------------===//
// Flops and bytes of one head
//===----------------------------------------------------------------------===//

/// Flops of softmax attention: 4 n^2 d for the two products, 5 n^2 for scaling
/// and softmax.
double softmaxFlops(double n, double d);

/// Flops of normalized linear attention with elu+1: 4 n d^2 for state and read,
/// 4 n d for the map, its sum and the division, n for eps.
double linearFlops(double n, double d);

/// Bytes of softmax attention's n x n scores in fp32.
double softmaxScoreBytes(double n);

/// Bytes of the d x d state and its normalizer in fp32, for any n.
double linearStateBytes(double d);

//===----------------------------------------------------------------------===//
// The two orders of the product
//===----------------------------------------------------------------------===//

/// Multiply-adds of (phi(Q) phi(K)^T) V for keys of size k, values of size v.
double quadraticMultiplyAdds(double n, double k, double v);

/// Multiply-adds of phi(Q) (phi(K)^T V).
double reassociatedMultiplyAdds(double n, double k, double v);

/// The number of tokens at which both orders cost the same; above it
/// phi(Q) (phi(K)^T V) is cheaper. The causal form skips half of the quadratic
/// product, so that its crossover is twice as far.
double crossoverTokens(double k, double v, bool causal = false);

//===----------------------------------------------------------------------===//
// Growth of the mixing cost of one layer, for comparison between methods
//===----------------------------------------------------------------------===//

/// Multiply-adds of the scores of softmax attention: n^2 d.
double softmaxLayerMultiplyAdds(double n, double d);

/// Multiply-adds of the state of linear attention: n d^2.
double linearLayerMultiplyAdds(double n, double d);

/// Multiply-adds of FAVOR+ with m random features: n m d.
double favorLayerMultiplyAdds(double n, double d, double m);

/// Multiply-adds of the Nystrom approximation with m landmarks: n m d.
double nystromLayerMultiplyAdds(double n, double d, double m);

/// Multiply-adds of FNet's Fourier transform over tokens: n d log2(n).
double fnetLayerMultiplyAdds(double n, double d);

} // namespace linattn::reference

#endif // LINATTN_REFERENCE_COSTFUNCTIONS_H
