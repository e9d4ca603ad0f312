// plait.nn: attention, a composite, which a backend may claim whole. Scores of 16-bit floats are
// computed in float32.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>
#include <plait/primitives/narrow.h>
#include <plait/trace/multiples.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// Whether a key comes no later than the query, for pairs of [..., t, s].
Array causal_pairs(const Shape& pairs) {
  const int rank = pairs.rank();
  const Shape square{pairs[rank - 2], pairs[rank - 1]};
  return plait::broadcast_to(
      lax::ge(lax::iota(DType::int32, square, 0), lax::iota(DType::int32, square, 1)), pairs);
}

// scale q k^T of [..., t, s], in float32 of 16-bit floats. Inputs: q, k, v, and optionally a mask
// of
// [..., t, s]; or the attribute causal. Excluded pairs get the most negative finite number instead
// of -inf, so that a row without any pair is the mean of v and not NaN.
Array scores_of(std::span<const Array> inputs, const Params& attributes) {
  const Array &q = inputs[0], &k = inputs[1];
  const int batch = q.ndim() - 2;
  lax::DotDimensions axes{{batch + 1}, {batch + 1}, {}, {}};
  for (int i = 0; i < batch; ++i)
    for (auto* list : {&axes.lhs_batch, &axes.rhs_batch}) list->push_back(i);
  const DType wide = size_of(q.dtype()) == 2 ? DType::float32 : q.dtype();
  Array scores = lax::dot_general(q, k, axes, wide);
  scores = lax::mul(scores, constant(attributes.get<double>("scale"), scores));
  const bool is_causal = attributes.has("causal");
  if (inputs.size() > 3 || is_causal) {
    const Array allowed = is_causal ? causal_pairs(scores.shape()) : inputs[3];
    const Literal lowest = *lowest_finite(wide).as_literal();
    scores = lax::select(allowed, scores, filled(0.7 * lowest.real, scores));
  }
  return scores;
}
Arrays attention_body(std::span<const Array> inputs, const Params& attributes) {
  const Array& v = inputs[2];
  const int batch = inputs[0].ndim() - 2;
  lax::DotDimensions axes{{batch + 1}, {batch}, {}, {}};
  for (int i = 0; i < batch; ++i)
    for (auto* list : {&axes.lhs_batch, &axes.rhs_batch}) list->push_back(i);
  const Array scores = scores_of(inputs, attributes);
  const Array weights = nn::softmax(scores, -1);
  return {lax::dot_general(astype(weights, v.dtype()), v, axes)};
}
// The logarithm of the sum of the powers of each row of scores, [..., t]; none of operands that
// examples share, whose axes differ.
Arrays attention_statistics(std::span<const Array> inputs, const Params& attributes) {
  for (const Array& input : inputs)
    if (input.ndim() != inputs[0].ndim()) return {};
  const Array scores = scores_of(inputs, attributes);
  return {nn::logsumexp(scores, -1)};
}
const Composite& attention_composite =
    define_composite({"attention",
                      "softmax(scale q k^T) v over the last two axes, among the pairs that the "
                      "mask, a fourth input, allows; or, causal, those whose key comes no later "
                      "than the query. "
                      "Vaswani et al., 2017.",
                      attention_body,
                      {},
                      Autocast::low,
                      attention_statistics});

enum class Attended { all, causal };

Array attend(const Array& q, const Array& k, const Array& v, const std::optional<Array>& mask,
             std::optional<double> scale, Attended pairs) {
  Arrays x{q, k, v};
  promote_dtypes(x, "attention");
  for (Array& array : x) array = floating_only("attention", array);
  const int rank = q.ndim();
  auto fits = [&] {
    if (rank < 2 || k.ndim() != rank || v.ndim() != rank) return false;
    for (int i = 0; i < rank - 2; ++i)
      if (!(k.shape(i) == q.shape(i) && v.shape(i) == q.shape(i))) return false;
    return k.shape(rank - 1) == q.shape(rank - 1) && v.shape(rank - 2) == k.shape(rank - 2);
  };
  if (!fits())
    throw ShapeError("attention: q, k and v have shapes (" + q.shape().to_string() + "), (" +
                         k.shape().to_string() + ") and (" + v.shape().to_string() + ")",
                     "give q[..., t, d], k[..., s, d] and v[..., s, e] with equal leading axes");
  if (mask) {
    Shape shape = q.shape();
    shape.back() = k.shape(rank - 2);
    x.push_back(plait::broadcast_to(truth(numpy::broadcast_to(*mask, shape)), shape));
  }
  const Dim depth = q.shape(rank - 1);
  if (!scale && !depth.is_constant())
    throw ShapeError("attention: the depth " + depth.to_string() +
                         " is a named size, on which the scale depends",
                     "give scale=");
  Params attributes{{"scale", scale ? *scale : 1 / std::sqrt(double(depth.constant()))}};
  if (pairs == Attended::causal) attributes = attributes.with("causal", true);
  return composite(attention_composite, x, attributes);
}

}  // namespace

Array nn::attention(Operand q, Operand k, Operand v, const std::optional<Array>& mask,
                    std::optional<double> scale) {
  return attend(q, k, v, mask, scale, Attended::all);
}

namespace {

// Which queries and keys there are, and which ones meet.
struct AttentionSpan {
  std::optional<Array> query_lengths, key_lengths;  // an integer for each example
  std::optional<std::pair<Dim, Dim>> window;        // how far left and right a query looks
};
AttentionSpan span_of(const std::optional<Array>& query_lengths,
                      const std::optional<Array>& key_lengths, const std::optional<Shape>& window) {
  AttentionSpan span{query_lengths, key_lengths, {}};
  if (!window) return span;
  if (window->empty() || window->size() > 2)
    throw ValueError("dot_product_attention: local_window_size has " +
                         std::to_string(window->size()) + " numbers",
                     "give one, or (left, right)");
  span.window = {(*window)[0], window->back()};
  return span;
}

// Where an element of the first of two axes [t, s] is within so many of the second.
Array within_window(const Shape& pairs, const std::pair<Dim, Dim>& window) {
  const Array row = lax::iota(DType::int32, pairs, 2), column = lax::iota(DType::int32, pairs, 3);
  auto number = [](Dim size) { return number_of(size, DType::int32); };
  return lax::bitwise_and(lax::ge(column, lax::sub(row, number(window.first))),
                          lax::le(column, lax::add(row, number(window.second))));
}
// Where an index along an axis of [b, n, t, s] is below the length of its example.
Array below_lengths(const Array& lengths, const Shape& pairs, int axis) {
  if (lengths.ndim() != 1 || !is_integer(lengths.dtype()))
    throw ShapeError("dot_product_attention: lengths of shape (" + lengths.shape().to_string() +
                         ") and dtype " + std::string(name_of(lengths.dtype())),
                     "give an integer for each example");
  return lax::lt(lax::iota(DType::int32, pairs, axis),
                 lax::broadcast_in_dim(astype(lengths, DType::int32), pairs, std::vector<int>{0}));
}

// Attention, and with_residual the logarithms of the sums of exponentials.
std::pair<Array, Array> attended(const Operand& query, const Operand& key, const Operand& value,
                                 const std::optional<Array>& bias, const std::optional<Array>& mask,
                                 std::optional<double> scale, bool is_causal,
                                 const AttentionSpan& span, bool with_residual) {
  const bool single = query.ndim() == 3;
  auto with_batch = [&](const Array& x) { return single ? numpy::expand_dims(x, {0}) : x; };
  Array q = with_batch(query), k = with_batch(key), v = with_batch(value);
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4)
    throw ShapeError("dot_product_attention: query, key and value have shapes (" +
                         query.shape().to_string() + "), (" + key.shape().to_string() + ") and (" +
                         value.shape().to_string() + ")",
                     "give [batch, length, heads, depth], or all without batch");
  const Dim heads = q.shape(2), groups = k.shape(2);
  if (!(modulo(heads, groups) == Dim(0))) {
    ask_multiple(heads, groups);
    throw ShapeError("dot_product_attention: " + heads.to_string() +
                         " query heads are no multiple of " + groups.to_string() + " key heads",
                     "give as many, or a divisor");
  }
  if (!(heads == groups)) {
    k = numpy::repeat(k, floor_divide(heads, groups), 2);
    v = numpy::repeat(v, floor_divide(heads, groups), 2);
  }
  const std::vector<int> heads_first{0, 2, 1, 3};
  q = lax::transpose(q, heads_first);
  k = lax::transpose(k, heads_first);
  v = lax::transpose(v, heads_first);
  const Dim length = q.shape(2), keys = k.shape(2);
  std::optional<Array> allowed;
  const Shape pairs{q.shape(0), heads, length, keys};
  if (mask)
    allowed = numpy::broadcast_to(
        truth(single && mask->ndim() == 3 ? numpy::expand_dims(*mask, {0}) : *mask), pairs);
  auto also = [&](const Array& where) {
    allowed = allowed ? lax::bitwise_and(*allowed, where) : where;
  };
  if (span.query_lengths) also(below_lengths(*span.query_lengths, pairs, 2));
  if (span.key_lengths) also(below_lengths(*span.key_lengths, pairs, 3));
  if (span.window) also(within_window(pairs, *span.window));
  const bool is_composite = !bias && !with_residual;
  const bool is_causal_alone = is_causal && !allowed && is_composite;
  if (is_causal && !is_causal_alone) also(causal_pairs(pairs));
  Array result, residual;
  if (!is_composite) {
    // A bias is not part of the composite. It cannot be expressed as one more column of q against a
    // column of ones.
    const double factor = scale ? *scale : 1 / std::sqrt(double(q.shape(3).constant()));
    Array scores = numpy::multiply(numpy::matmul(q, numpy::swapaxes(k, -1, -2)), factor);
    if (bias)
      scores = numpy::add(
          scores, numpy::broadcast_to(
                      single && bias->ndim() == 3 ? numpy::expand_dims(*bias, {0}) : *bias, pairs));
    if (allowed)
      scores =
          numpy::where(*allowed, scores, 0.7 * lowest_finite(scores.dtype()).as_literal()->real);
    result = numpy::matmul(astype(nn::softmax(scores), v.dtype()), v);
    if (with_residual)
      residual = lax::transpose(nn::logsumexp(scores, -1), std::vector<int>{0, 2, 1});
  } else {
    result = attend(q, k, v, allowed, scale, is_causal_alone ? Attended::causal : Attended::all);
  }
  // Of queries beyond the length, nothing is left.
  if (span.query_lengths)
    result = lax::select(below_lengths(*span.query_lengths, result.shape(), 2), result,
                         lax::zeros_like(result.aval()));
  result = lax::transpose(result, heads_first);
  if (single && with_residual) residual = numpy::squeeze(residual, 0);
  return {single ? numpy::squeeze(result, 0) : result, residual};
}

}  // namespace

Array nn::dot_product_attention(Operand query, Operand key, Operand value,
                                const std::optional<Array>& bias, const std::optional<Array>& mask,
                                std::optional<double> scale, bool is_causal,
                                const std::optional<Array>& query_seq_lengths,
                                const std::optional<Array>& key_value_seq_lengths,
                                const std::optional<Shape>& local_window_size) {
  const AttentionSpan span = span_of(query_seq_lengths, key_value_seq_lengths, local_window_size);
  return attended(query, key, value, bias, mask, scale, is_causal, span, false).first;
}
std::pair<Array, Array> nn::dot_product_attention_with_residual(
    Operand query, Operand key, Operand value, const std::optional<Array>& bias,
    const std::optional<Array>& mask, std::optional<double> scale, bool is_causal,
    const std::optional<Array>& query_seq_lengths,
    const std::optional<Array>& key_value_seq_lengths,
    const std::optional<Shape>& local_window_size) {
  const AttentionSpan span = span_of(query_seq_lengths, key_value_seq_lengths, local_window_size);
  return attended(query, key, value, bias, mask, scale, is_causal, span, true);
}

namespace {

Argument dot_product_attention_of(Operand query, Operand key, Operand value,
                                  const std::optional<Array>& bias,
                                  const std::optional<Array>& mask, std::optional<double> scale,
                                  bool is_causal, const std::optional<Array>& query_seq_lengths,
                                  const std::optional<Array>& key_value_seq_lengths,
                                  const std::optional<Shape>& local_window_size,
                                  bool return_residual) {
  const AttentionSpan span = span_of(query_seq_lengths, key_value_seq_lengths, local_window_size);
  auto [result, residual] =
      attended(query, key, value, bias, mask, scale, is_causal, span, return_residual);
  return return_residual ? detail::give(std::pair(result, residual)) : detail::give(result);
}

[[maybe_unused]] const FunctionInfo* const attention_functions[] = {
    function("nn", "attention(q, k, v, mask=None, *, scale=None)",
             "softmax(scale q k^T) v for q[..., t, d], k[..., s, d], v[..., s, e]; mask, broadcast "
             "to [..., t, s], says which pairs "
             "count; scale is 1 / sqrt(d) by default. Vaswani et al., 2017.",
             &nn::attention),
    function(
        "nn",
        "dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, "
        "is_causal=False, query_seq_lengths=None, key_value_seq_lengths=None, "
        "local_window_size=None, implementation=None!, return_residual=False)",
        "Attention of query [b, t, n, h] to key and value [b, s, m, h] (or all without b), m "
        "a divisor of n; bias and mask broadcast to [b, n, t, s]. Lengths, an integer for each "
        "example, say how many queries and keys there are; local_window_size, a number or "
        "(left, right), how far from its own place a query looks. With return_residual "
        "(result, log of the sums of exponentials [b, t, n]).",
        &dot_product_attention_of),
};

}  // namespace
}  // namespace plait
