//===- Reference.h - Float64 oracle of linear attention ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of linattn's operations, written as directly as their formulas
// and computed in double precision. Every other implementation is compared
// with these functions, so nothing here depends on MLIR or LLVM, nothing is
// reassociated for speed, and attention (quadratic) shares no code with the
// recurrences (scan, state, read) beyond the feature maps and the normalizer.
//
// Tokens are [B, H, T, D], states are [B, H, K, V]. Heads may be grouped: there
// are H = max(Hk, Hv) state heads and Ho = max(Hq, H) output heads, and each
// head count divides the one above it. Output head i uses query head i*Hq/Ho
// and state head i*H/Ho; state head j uses key head j*Hk/H and value head
// j*Hv/H.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_REFERENCE_REFERENCE_H
#define LINATTN_REFERENCE_REFERENCE_H

#include <cassert>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace linattn::reference {

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The reason of a refused call: names the operand, the expected value and the
/// actual one.
struct Error {
  std::string message;
};

/// A value, or the reason why there is none.
template <typename T>
class Result {
public:
  Result(T value) : storage(std::move(value)) {}
  Result(Error error) : storage(std::move(error)) {}

  /// True when there is a value.
  explicit operator bool() const { return storage.index() == 0; }

  T &operator*() { return *get(); }
  const T &operator*() const { return *const_cast<Result *>(this)->get(); }
  T *operator->() { return get(); }
  const T *operator->() const { return const_cast<Result *>(this)->get(); }

  /// The message; empty when there is a value.
  std::string error() const {
    const Error *failure = std::get_if<Error>(&storage);
    return failure ? failure->message : std::string();
  }

private:
  T *get() {
    assert(storage.index() == 0 && "no value in a failed result");
    return std::get_if<T>(&storage);
  }

  std::variant<T, Error> storage;
};

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// A contiguous row-major array of doubles.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;

  Array() = default;

  /// An array of the given shape, filled with one value.
  explicit Array(std::vector<int64_t> shape, double fill = 0.0);

  /// An array of the given shape and data; every function that takes arrays
  /// refuses one whose data does not fit its shape.
  Array(std::vector<int64_t> shape, std::vector<double> data);

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t dim(int64_t index) const { return shape[index]; }

  /// The position in `data` of the element at `indices`; fewer indices than
  /// dimensions give the start of that sub-array.
  int64_t offset(std::initializer_list<int64_t> indices) const;

  double &at(std::initializer_list<int64_t> indices) {
    return data[offset(indices)];
  }
  double at(std::initializer_list<int64_t> indices) const {
    return data[offset(indices)];
  }

  /// The start of the sub-array at `indices`, for instance of one token.
  double *row(std::initializer_list<int64_t> indices) {
    return data.data() + offset(indices);
  }
  const double *row(std::initializer_list<int64_t> indices) const {
    return data.data() + offset(indices);
  }
};

/// The tokens [begin, end) of an array whose dimension `axis` counts tokens.
Result<Array> slice(const Array &array, int64_t axis, int64_t begin,
                    int64_t end);

/// max|out - ref| / max|ref|: 0 when both are zero everywhere (or empty),
/// infinity for a NaN, for differing shapes and for an infinity in one array
/// only. An infinity found in both at the same place agrees.
double compare(const Array &out, const Array &ref);

//===----------------------------------------------------------------------===//
// Feature maps and normalizer
//===----------------------------------------------------------------------===//

enum class FeatureMapKind {
  /// x
  Identity,
  /// max(x, 0)
  Relu,
  /// max(x, 0)^2
  Relu2,
  /// x + 1 for x > 0, else e^x
  Elu1,
  /// e^(x - max_d x), the maximum taken over the features of each token
  SoftmaxKernel,
  /// e^x. With a normalizer the query is e^(q - max_d q) and the key e^(k - m),
  /// m being the largest key element the query may see: one number per head,
  /// which cancels in the quotient.
  Exp,
  /// The user's function of one element.
  Custom,
};

/// The function applied to queries and keys.
struct FeatureMap {
  FeatureMapKind kind = FeatureMapKind::Identity;
  std::function<double(double)> custom = nullptr;

  /// The map called `name`: identity, relu, relu2, elu (or elu1),
  /// softmax_kernel or exp.
  static Result<FeatureMap> parse(const std::string &name);

  /// A map made of the user's function of one element.
  static FeatureMap fromFunction(std::function<double(double)> function) {
    return {FeatureMapKind::Custom, std::move(function)};
  }
};

/// The name that `FeatureMap::parse` takes (elu for Elu1); "custom" for Custom.
const char *featureMapName(FeatureMapKind kind);

/// Applies the map along the last dimension; Exp is the plain e^x.
Result<Array> applyFeatureMap(const Array &x, const FeatureMap &map);

/// How a numerator is divided by the sum of the weights.
struct Normalize {
  /// Added to the denominator; 1e-6 unless `floor` is given. May be 0.
  std::optional<double> eps = std::nullopt;
  /// Lower bound of the denominator; excludes `eps`.
  std::optional<double> floor = std::nullopt;
  /// Bound of the output's magnitude, applied last.
  std::optional<double> clamp = std::nullopt;
  /// Lower bound of the denominator's magnitude, which then divides; excludes
  /// `floor`, and `eps`, added to it, is 0 unless given. Not for the Exp map.
  std::optional<double> absFloor = std::nullopt;
};

/// The divisor for a sum of weights: den + eps, max(den, floor), or
/// max(|den|, absFloor * e^-m) + eps for a sum that is stored times e^-m.
double normalizerDivisor(double den, const Normalize &normalize,
                         double m = 0.0);

/// num / divisor, 0 where the divisor is 0 (nothing was attended), clamped.
double normalizeValue(double num, double den, const Normalize &normalize,
                      double m = 0.0);

//===----------------------------------------------------------------------===//
// Attention: the quadratic definition
//===----------------------------------------------------------------------===//

enum class AttentionWeights { Linear, Softmax };

/// Query i, at position p = i + Tk - Tq, attends to key j if |p - j| is below
/// window * dilation and divided by dilation, or if j or p is below globals. A
/// window of 0 has no bound.
struct AttentionPattern {
  int64_t window = 0, dilation = 1, globals = 0;

  bool isAll() const { return window == 0 && dilation == 1; }
};

struct AttentionOptions {
  /// A query attends only to keys up to its position i + Tk - Tq; without
  /// softmax weights or a pattern requires Tq == Tk.
  bool causal = false;
  AttentionWeights weights = AttentionWeights::Linear;
  /// Must stay Identity for softmax weights.
  FeatureMap featureMap = {};
  /// Must stay empty for softmax weights, which sum to one already.
  std::optional<Normalize> normalize = std::nullopt;
  /// Multiplies the scores; unless given 1 for linear weights and K^-1/2 for
  /// softmax weights.
  std::optional<double> scale = std::nullopt;
  /// [B, Tk], 0 where the key must not be attended.
  std::optional<Array> mask = std::nullopt;
  /// [B], with causal: every query also sees this many first keys.
  std::optional<Array> prefix = std::nullopt;
  AttentionPattern pattern = {};
  // With softmax weights only.
  /// Scores s become softcap * tanh(s / softcap).
  std::optional<double> softcap = std::nullopt;
  /// [Ho], by which scores fall with each token of distance.
  std::optional<Array> slopes = std::nullopt;
  /// [Ho], the score of a key whose value is 0.
  std::optional<Array> sinks = std::nullopt;
};

/// o_i = sum_j w_ij v_j with w_ij = scale * phi(q_i).phi(k_j), divided by their
/// sum when normalized, or w_i = softmax_j(scale * q_i.k_j). A row that attends
/// nothing is 0. q [B,Hq,Tq,K], k [B,Hk,Tk,K], v [B,Hv,Tk,V] -> [B,Ho,Tq,V].
Result<Array> attention(const Array &q, const Array &k, const Array &v,
                        const AttentionOptions &options);

/// The matrix that `attention` multiplies v by, before any clamp: [B,Ho,Tq,Tk].
Result<Array> weights(const Array &q, const Array &k,
                      const AttentionOptions &options);

//===----------------------------------------------------------------------===//
// Scan: the general recurrence
//===----------------------------------------------------------------------===//

/// The state of a recurrence between two tokens.
struct State {
  /// [B, H, K, V]
  Array S;
  /// Sum of the keys, [B, H, K]; present exactly when the read is normalized.
  std::optional<Array> z = std::nullopt;
  /// [B, H], -infinity before the first token; S and z are then e^-m times the
  /// plain sums. Present exactly for the normalized Exp map, where it is the
  /// largest key element so far, and with an input gate: max(decay + m, gate).
  std::optional<Array> m = std::nullopt;
};

enum class UpdateRule {
  /// S <- Sd + k v^T
  Add,
  /// S <- Sd + k (beta * (write*v - Sd^T (erase*k)))^T
  Delta,
  /// S <- Sd + b (X^T a)^T + k v^T with the user's a and b
  Dplr,
  /// S <- Sd + (k - Sd v) (beta * v)^T: Delta on S^T with k and v exchanged
  Oja,
};

/// The rule of that name, "add", "delta", …; nothing for an unknown one.
std::optional<UpdateRule> findUpdateRule(const std::string &name);

/// Whether token t reads the state with its own write, or the one before it.
enum class Readout { Inclusive, Exclusive };

/// Whether Dplr's `a` reads the state before or after the decay.
enum class Transition { Before, After };

/// H below counts state heads. All gates of decay are natural logarithms.
struct ScanOperands {
  Array q; ///< [B, Hq, T, K]
  Array k; ///< [B, Hk, T, K]
  Array v; ///< [B, Hv, T, V]
  /// [H], [B, H, T] or [B, H, T, K]
  std::optional<Array> decay = std::nullopt;
  /// [B, H, T, V]
  std::optional<Array> valueDecay = std::nullopt;
  /// [B, H, T] or [B, H, T, V] for Delta, 1 unless given; [B, H, T] for Oja
  std::optional<Array> beta = std::nullopt;
  /// [B, H, T, K], for Dplr
  std::optional<Array> a = std::nullopt;
  std::optional<Array> b = std::nullopt;
  /// [H, K], for the exclusive read: adds scale * (q.(bonus*k)) v
  std::optional<Array> bonus = std::nullopt;
  /// [B, H, T, K], for Delta: gate on the key that is read (erased)
  std::optional<Array> erase = std::nullopt;
  /// [B, H, T, V], for Delta: gate on the value that is written
  std::optional<Array> write = std::nullopt;
  /// [B, H, T], for a normalized Add: the logarithm, of any sign, of a factor
  /// of the key
  std::optional<Array> inputGate = std::nullopt;
  /// [B, T]: 0 where the token must not be written; it still decays the state
  /// and reads it
  std::optional<Array> mask = std::nullopt;
  /// N+1 offsets that rise from 0 to T, for B = 1: token cuSeqlens[n] starts
  /// sequence n, which has the n-th state of [N, H, K, V]
  std::optional<std::vector<int64_t>> cuSeqlens = std::nullopt;
};

struct ScanOptions {
  UpdateRule update = UpdateRule::Add;
  Readout readout = Readout::Inclusive;
  /// Before unless given, for Dplr. Delta always reads after the decay.
  std::optional<Transition> transition = std::nullopt;
  /// Applied to q and k, never to a and b.
  FeatureMap featureMap = {};
  /// The denominator is what a value column of ones would read. Hence it
  /// excludes gates that differ between value columns (value decay, beta
  /// [B,H,T,V], write), and with the Exp map or an input gate every update but
  /// Add; Oja, whose steps depend on the values, is never normalized.
  std::optional<Normalize> normalize = std::nullopt;
  /// Multiplies the numerator and the denominator; K^-1/2 unless given.
  std::optional<double> scale = std::nullopt;
  /// Visits the tokens of each sequence from the last to the first.
  bool reverse = false;
};

struct ScanResult {
  Array o; ///< [B, Ho, T, V]
  State state;
};

/// For each token, with Sd = Diag(e^decay) S Diag(e^valueDecay): update S by
/// the rule, then o = scale * S^T q (inclusive), or o = scale * (S^T q +
/// (q.(bonus*k)) v) with the S before the token (exclusive).
Result<ScanResult> scan(const ScanOperands &operands,
                        const ScanOptions &options,
                        const std::optional<State> &initial = std::nullopt);

//===----------------------------------------------------------------------===//
// State and read: the two halves of non-causal linear attention
//===----------------------------------------------------------------------===//

struct StateOptions {
  FeatureMap featureMap = {};
  /// Whether to sum the keys as well; with the Exp map, also to stabilize.
  bool normalize = false;
  /// [B, Tk], 0 where the token must not be written.
  std::optional<Array> mask = std::nullopt;
};

/// S = sum_t phi(k_t) v_t^T and z = sum_t phi(k_t), over all tokens.
Result<State> state(const Array &k, const Array &v,
                    const StateOptions &options);

struct ReadOptions {
  FeatureMap featureMap = {};
  /// Present exactly when the state carries z. An absFloor takes the m of a
  /// state that an input gate has written into account.
  std::optional<Normalize> normalize = std::nullopt;
  /// 1 unless given.
  std::optional<double> scale = std::nullopt;
};

/// o = scale * S^T phi(q), divided by scale * z.phi(q) when normalized.
Result<Array> read(const Array &q, const State &state,
                   const ReadOptions &options);

//===----------------------------------------------------------------------===//
// Norms of outputs
//===----------------------------------------------------------------------===//

enum class NormKind { Rms, Layer, None };
enum class Activation { Silu, Sigmoid };

struct OutputNormOptions {
  NormKind kind = NormKind::Rms;
  /// [D] or [H, D]
  std::optional<Array> weight = std::nullopt, bias = std::nullopt;
  /// Of the input's shape.
  std::optional<Array> gate = std::nullopt;
  Activation activation = Activation::Silu;
  /// The gate multiplies the input rather than the result.
  bool gateFirst = false;
  double eps = 1e-5;
  /// Of the input's shape, and [D] or [H, D]: their product is added to the
  /// input first.
  std::optional<Array> skip = std::nullopt, skipWeight = std::nullopt;
  /// Added to the weight.
  double weightOffset = 0.0;
};

/// For the features x of every token and head, o = (y * (weight + offset) +
/// bias) * act(gate) with y = x / sqrt(mean(x^2) + eps), or for layer norms y =
/// (x - mean(x)) / sqrt(var(x) + eps), or y = x. x [B, H, T, D].
Result<Array> outputNorm(const Array &x, const OutputNormOptions &options);

} // namespace linattn::reference

#endif // LINATTN_REFERENCE_REFERENCE_H
