// plait.nn: softmax and related functions, normalisation. All are composites, which a backend may
// claim whole. 16-bit floats are computed in float32 and rounded once.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>
#include <plait/primitives/narrow.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

std::vector<int> axes_of(const Params& attributes, int rank) {
  std::vector<int> axes = attributes.ints("axes");
  for (int& axis : axes) axis += rank;
  return axes;
}

// Converts 16-bit floats to float32; others stay as they are.
Array widened(const Array& x) {
  return size_of(x.dtype()) == 2 && is_floating(x.dtype()) ? astype(x, DType::float32) : x;
}

Array kept(const Array& reduced, const Array& x, std::span<const int> axes) {
  return plait::broadcast_to(with_axes(reduced, x.shape(), axes), x.shape());
}
Array max_over(const Array& x, std::span<const int> axes) {
  return lax::stop_gradient(lax::reduce_max(x, axes));
}

// x, with -inf where the optional second input is false.
Array excluded(std::span<const Array> inputs, bool has_where) {
  const Array x = widened(inputs[0]);
  return has_where ? lax::select(inputs[1], x, filled(-INFINITY, x)) : x;
}

// --- Softmax -------------------------------------------------------------------------------------

Array softmax_of(const Array& x, std::span<const int> axes) {
  const Array e = lax::exp(lax::sub(x, kept(max_over(x, axes), x, axes)));
  return lax::div(e, kept(lax::reduce_sum(e, axes), x, axes));
}
Arrays softmax_body(std::span<const Array> inputs, const Params& attributes) {
  const bool has_where = inputs.size() > 1;
  Array y = softmax_of(excluded(inputs, has_where), axes_of(attributes, inputs[0].ndim()));
  if (has_where) y = lax::select(inputs[1], y, lax::zeros_like(y.aval()));
  return {astype(y, inputs[0].dtype())};
}
// dy = y (dx - sum y dx)
Arrays softmax_jvp(std::span<const Array> inputs, const Params& attributes) {
  const std::size_t n = inputs.size() / 2;
  const std::vector<int> axes = axes_of(attributes, inputs[0].ndim());
  const Array result = softmax_body(inputs.first(n), attributes)[0], y = widened(result),
              dx = widened(inputs[n]);
  const Array weighted = lax::mul(y, dx);
  const Array dy = lax::sub(weighted, lax::mul(y, kept(lax::reduce_sum(weighted, axes), y, axes)));
  return {result, astype(dy, result.dtype())};
}
const Composite& softmax_composite = define_composite(
    {"softmax",
     "exp(x) over its sum over axes (counted from the back), the maximum taken off first.",
     softmax_body, softmax_jvp});

Arrays log_softmax_body(std::span<const Array> inputs, const Params& attributes) {
  const bool has_where = inputs.size() > 1;
  const Array x = excluded(inputs, has_where);
  const std::vector<int> axes = axes_of(attributes, x.ndim());
  const Array shifted = lax::sub(x, kept(max_over(x, axes), x, axes));
  Array y = lax::sub(shifted, kept(lax::log(lax::reduce_sum(lax::exp(shifted), axes)), x, axes));
  if (has_where) y = lax::select(inputs[1], y, filled(-INFINITY, y));
  return {astype(y, inputs[0].dtype())};
}
// dy = dx - sum exp(y) dx
Arrays log_softmax_jvp(std::span<const Array> inputs, const Params& attributes) {
  const std::size_t n = inputs.size() / 2;
  const std::vector<int> axes = axes_of(attributes, inputs[0].ndim());
  const Array result = log_softmax_body(inputs.first(n), attributes)[0], y = widened(result);
  Array dx = widened(inputs[n]);
  if (n > 1) dx = lax::select(inputs[1], dx, lax::zeros_like(dx.aval()));
  Array dy = lax::sub(dx, kept(lax::reduce_sum(lax::mul(lax::exp(y), dx), axes), y, axes));
  if (n > 1) dy = lax::select(inputs[1], dy, lax::zeros_like(dy.aval()));
  return {result, astype(dy, result.dtype())};
}
const Composite& log_softmax_composite = define_composite(
    {"log_softmax", "The logarithm of softmax, without the logarithm of a small number.",
     log_softmax_body, log_softmax_jvp});

// log sum exp(x - m) + m, where m is the maximum, or 0 if that is infinite. A slice of only -inf
// gives -inf.
Arrays logsumexp_body(std::span<const Array> inputs, const Params& attributes) {
  const Array x = widened(inputs[0]);
  const std::vector<int> axes = axes_of(attributes, x.ndim());
  const Array largest = max_over(x, axes);
  const Array m = lax::select(lax::eq(lax::abs(largest), constant(INFINITY, largest)),
                              lax::zeros_like(largest.aval()), largest);
  const Array e = lax::exp(lax::sub(x, kept(m, x, axes)));
  const Array y = lax::add(lax::log(lax::reduce_sum(e, axes)), m);
  return {
      astype(attributes.flag("keepdims") ? with_axes(y, x.shape(), axes) : y, inputs[0].dtype())};
}
// dy = sum exp(x - y) dx, and 0 where y is -inf.
Arrays logsumexp_jvp(std::span<const Array> inputs, const Params& attributes) {
  const Array x = widened(inputs[0]);
  const std::vector<int> axes = axes_of(attributes, x.ndim());
  const Array result = logsumexp_body(inputs.first(1), attributes)[0], y = widened(result);
  const Array finite =
      lax::select(lax::eq(y, constant(-INFINITY, y)), lax::zeros_like(y.aval()), y);
  const Array weights = lax::exp(lax::sub(x, kept(finite, x, axes)));
  const Array dy = lax::reduce_sum(lax::mul(weights, widened(inputs[1])), axes);
  return {result, astype(lax::reshape(dy, result.shape()), result.dtype())};
}
const Composite& logsumexp_composite =
    define_composite({"logsumexp", "log sum exp(x) over axes (counted from the back); keepdims.",
                      logsumexp_body, logsumexp_jvp});

Params axes_attribute(const Axes& axis, int rank, std::string_view function) {
  return {{"axes", from_back(axis.of(rank, function), rank)}};
}

Array mask_like(const Array& where, const Array& x, std::string_view function) {
  Arrays operands{truth(where), x};
  broadcast_shapes(std::span<Array>(operands), function);
  if (!(operands[1].shape() == x.shape()))
    throw ShapeError(std::string(function) + ": where has shape (" + where.shape().to_string() +
                         "), which does not broadcast to (" + x.shape().to_string() + ")",
                     "give a mask that broadcasts to the array");
  return plait::broadcast_to(operands[0], x.shape());
}

}  // namespace

Array nn::softmax(Operand x, const Axes& axis, const std::optional<Array>& where) {
  Arrays inputs{floating_only("softmax", x)};
  if (where) inputs.push_back(mask_like(*where, inputs[0], "softmax"));
  return composite(softmax_composite, inputs, axes_attribute(axis, x.ndim(), "softmax"));
}
Array nn::log_softmax(Operand x, const Axes& axis, const std::optional<Array>& where) {
  Arrays inputs{floating_only("log_softmax", x)};
  if (where) inputs.push_back(mask_like(*where, inputs[0], "log_softmax"));
  return composite(log_softmax_composite, inputs, axes_attribute(axis, x.ndim(), "log_softmax"));
}

namespace {
// sum b exp(a) = sum exp(m), before the logarithm. Without b the sum is not formed, and m is the
// result.
struct SumExp {
  std::optional<Array> sum;
  Array m;
};
SumExp sum_exp(const Operand& a, const Axes& axis, const std::optional<Array>& b, bool keepdims,
               const std::optional<Array>& where) {
  Array x = floating_only("logsumexp", a);
  if (where) {
    const Array mask = mask_like(*where, x, "logsumexp");
    x = lax::select(mask, x, filled(-INFINITY, x));
  }
  const std::vector<int> axes = axis.of(x.ndim(), "logsumexp");
  if (!b)
    return {{},
            composite(logsumexp_composite, {x},
                      {{"axes", from_back(axes, x.ndim())}, {"keepdims", keepdims}})};
  const Arrays both = promoted_inexact("logsumexp", {x, *b});
  x = plait::broadcast_to(both[0], both[0].ndim() ? both[0].shape() : both[1].shape());
  // A factor of 0 excludes an infinity.
  const Array factors = plait::broadcast_to(both[1], x.shape());
  x = lax::select(lax::eq(factors, constant(0, factors)), filled(-INFINITY, x), x);
  const std::vector<int> all = axis.of(x.ndim(), "logsumexp");
  const Array largest = lax::stop_gradient(lax::reduce_max(x, all));
  const Array m = lax::select(lax::lt(lax::abs(largest), constant(INFINITY, largest)), largest,
                              lax::zeros_like(largest.aval()));
  const Array sum = lax::reduce_sum(lax::mul(factors, lax::exp(lax::sub(x, kept(m, x, all)))), all);
  auto finished = [&](const Array& y) { return keepdims ? with_axes(y, x.shape(), all) : y; };
  return {finished(sum), finished(m)};
}
}  // namespace

Array nn::logsumexp(Operand a, const Axes& axis, const std::optional<Array>& b, bool keepdims,
                    const std::optional<Array>& where) {
  const auto [sum, m] = sum_exp(a, axis, b, keepdims, where);
  return sum ? lax::add(lax::log(*sum), m) : m;
}
std::pair<Array, Array> nn::logsumexp_with_sign(Operand a, const Axes& axis,
                                                const std::optional<Array>& b, bool keepdims,
                                                const std::optional<Array>& where) {
  const auto [sum, m] = sum_exp(a, axis, b, keepdims, where);
  if (sum) return {lax::add(lax::log(lax::abs(*sum)), m), numpy::sign(*sum)};
  return {m, numpy::where(lax::eq(m, filled(-INFINITY, m)), 0, numpy::where(lax::eq(m, m), 1, m))};
}
Array nn::logmeanexp(Operand x, const Axes& axis, const std::optional<Array>& where,
                     bool keepdims) {
  const Array sum = logsumexp(x, axis, {}, keepdims, where);
  Array count = number_for(sum, size_of_axes(x.shape(), axis.of(x.ndim(), "logmeanexp")));
  if (where)
    count = as_weak_as(sum, numpy::sum(astype(mask_like(*where, x, "logmeanexp"), sum.dtype()),
                                       axis, {}, keepdims));
  return lax::sub(sum, lax::log(count));
}

// --- Normalisation -------------------------------------------------------------------------------

namespace {

// One division for many products, here and in derivatives.
Array inverse(const Array& x) { return lax::div(constant(1, x), x); }

// Inputs: x, then scale and bias if flagged, of the size of the axis.
Arrays layer_norm_body(std::span<const Array> inputs, const Params& attributes) {
  const Array x = widened(inputs[0]);
  const std::vector<int> axes = axes_of(attributes, x.ndim());
  const Array size = number_for(x, size_of_axes(x.shape(), axes));
  const Array mean = lax::div(lax::reduce_sum(x, axes), size);
  const Array centered = lax::sub(x, kept(mean, x, axes));
  const Array var = lax::div(lax::reduce_sum(lax::mul(centered, centered), axes), size);
  const Array deviation =
      lax::sqrt(lax::add(var, constant(attributes.get<double>("epsilon"), var)));
  Array y = lax::mul(centered, kept(inverse(deviation), x, axes));
  std::size_t next = 1;
  auto along = [&](const Array& v) { return lax::broadcast_in_dim(widened(v), y.shape(), axes); };
  if (attributes.flag("has_scale")) y = lax::mul(y, along(inputs[next++]));
  if (attributes.flag("has_bias")) y = lax::add(y, along(inputs[next]));
  return {astype(y, inputs[0].dtype())};
}
const Composite& layer_norm_composite =
    define_composite({"layer_norm",
                      "(x - mean) / sqrt(var + epsilon) over axes (counted from the back), times "
                      "scale, plus bias, as has_scale and "
                      "has_bias say. Ba et al., 2016.",
                      layer_norm_body,
                      {}});

Arrays rms_norm_body(std::span<const Array> inputs, const Params& attributes) {
  const Array x = widened(inputs[0]);
  const std::vector<int> axes = axes_of(attributes, x.ndim());
  const Array mean =
      lax::div(lax::reduce_sum(lax::mul(x, x), axes), number_for(x, size_of_axes(x.shape(), axes)));
  const Array root = lax::sqrt(lax::add(mean, constant(attributes.get<double>("epsilon"), mean)));
  Array y = lax::mul(x, kept(inverse(root), x, axes));
  if (inputs.size() > 1)
    y = lax::mul(y, lax::broadcast_in_dim(widened(inputs[1]), y.shape(), axes));
  return {astype(y, inputs[0].dtype())};
}
const Composite& rms_norm_composite =
    define_composite({"rms_norm",
                      "x / sqrt(mean x^2 + epsilon) over axes (counted from the back), times "
                      "scale. Zhang and Sennrich, 2019.",
                      rms_norm_body,
                      {}});

Array parameter_of(std::string_view function, const Array& parameter, const Array& x, int dim) {
  if (parameter.ndim() != 1 || !(parameter.shape(0) == x.shape(dim)))
    throw ShapeError(std::string(function) + ": a parameter of shape (" +
                         parameter.shape().to_string() + ") for an axis of size " +
                         x.shape(dim).to_string(),
                     "give a vector of that size");
  return astype(parameter, x.dtype());
}

}  // namespace

Array nn::layer_norm(Operand x, const std::optional<Array>& scale, const std::optional<Array>& bias,
                     int axis, double epsilon) {
  Arrays inputs{floating_only("layer_norm", x)};
  const int dim = normalize_axis(axis, x.ndim(), "layer_norm");
  for (const std::optional<Array>& parameter : {scale, bias})
    if (parameter) inputs.push_back(parameter_of("layer_norm", *parameter, inputs[0], dim));
  return composite(layer_norm_composite, inputs,
                   {{"axes", Shape{dim - x.ndim()}},
                    {"epsilon", epsilon},
                    {"has_scale", scale.has_value()},
                    {"has_bias", bias.has_value()}});
}
Array nn::rms_norm(Operand x, const std::optional<Array>& scale, int axis, double epsilon) {
  Arrays inputs{floating_only("rms_norm", x)};
  const int dim = normalize_axis(axis, x.ndim(), "rms_norm");
  if (scale) inputs.push_back(parameter_of("rms_norm", *scale, inputs[0], dim));
  return composite(rms_norm_composite, inputs,
                   {{"axes", Shape{dim - x.ndim()}}, {"epsilon", epsilon}});
}
Array nn::standardize(Operand x, const Axes& axis, double epsilon) {
  return composite(layer_norm_composite, {floating_only("standardize", x)},
                   axes_attribute(axis, x.ndim(), "standardize")
                       .with("epsilon", epsilon)
                       .with("has_scale", false)
                       .with("has_bias", false));
}

namespace {

Argument logsumexp_of(Operand a, const Axes& axis, const std::optional<Array>& b, bool keepdims,
                      bool return_sign, const std::optional<Array>& where) {
  if (return_sign) return detail::give(nn::logsumexp_with_sign(a, axis, b, keepdims, where));
  return detail::give(nn::logsumexp(a, axis, b, keepdims, where));
}

[[maybe_unused]] const FunctionInfo* const axes_functions[] = {
    function("nn", "softmax(x, axis=-1, where=None)",
             "exp(x) over its sum over axes (None: all). Elements where `where` is false do not "
             "count and give 0.",
             &nn::softmax),
    function("nn", "log_softmax(x, axis=-1, where=None)",
             "log(softmax(x)) without overflow; -inf where `where` is false.", &nn::log_softmax),
    function("nn", "logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None)",
             "log of the sum of b exp(a) over axes, without overflow; -inf of no elements, and of "
             "-inf alone. NaN of a negative sum, unless return_sign asks for the pair (log |sum|, "
             "sign).",
             &logsumexp_of),
    function("scipy.special",
             "logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None)",
             "The same as nn.logsumexp.", &logsumexp_of),
    function(
        "scipy.special", "softmax(x, axis=None)", "nn.softmax, over all axes unless named.",
        +[](Operand x, const Axes& axis) { return nn::softmax(x, axis); }),
    function(
        "scipy.special", "log_softmax(x, axis=None)", "nn.log_softmax, over all axes unless named.",
        +[](Operand x, const Axes& axis) { return nn::log_softmax(x, axis); }),
    function("nn", "logmeanexp(x, axis=None, where=None, keepdims=False)",
             "log of the mean of exp(x) over axes.", &nn::logmeanexp),
    function("nn", "standardize(x, axis=-1, epsilon=1e-5)",
             "(x - mean) / sqrt(var + epsilon) over axes.", &nn::standardize),
    function("nn", "layer_norm(x, scale=None, bias=None, *, axis=-1, epsilon=1e-5)",
             "x standardized over an axis, times scale, plus bias, vectors of its size. Ba et al., "
             "2016.",
             &nn::layer_norm),
    function(
        "nn", "rms_norm(x, scale=None, *, axis=-1, epsilon=1e-5)",
        "x over the root of its mean square over an axis, times scale. Zhang and Sennrich, 2019.",
        &nn::rms_norm),
};

}  // namespace
}  // namespace plait
