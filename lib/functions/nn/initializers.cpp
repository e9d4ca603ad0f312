// plait.nn.initializers: random initial values of a network's arrays. In Python they are JAX's
// factories, which return functions of (key, shape, dtype). Here they are those functions, followed
// by the factories' arguments.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/random.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using OptionalDType = std::optional<DType>;

using Ints = std::vector<int>;

struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape, const nn::initializers::FanAxes& axes, std::string_view function) {
  auto lies_in = [&](const Ints& list) {
    return std::all_of(list.begin(), list.end(),
                       [&](int axis) { return axis < shape.rank() && axis >= -shape.rank(); });
  };
  if (!shape.is_constant() || !lies_in(axes.in_axis) || !lies_in(axes.out_axis))
    throw ShapeError(std::string(function) + ": the shape (" + shape.to_string() +
                         ") does not say how many inputs and outputs there are",
                     "give at least two axes, without named sizes, or name in_axis and out_axis");
  auto size = [&](const Ints& list) {
    double product = 1;
    for (int axis : list)
      product *= double(shape[normalize_axis(axis, shape.rank(), function)].constant());
    return product;
  };
  double total = 1;
  for (Dim dim : shape) total *= double(dim.constant());
  const double in = size(axes.in_axis), out = size(axes.out_axis);
  const double rest = in * out * size(axes.batch_axis);
  const double field = rest == 0 ? 0 : total / rest;
  return {in * field, out * field};
}

Array scaled(const Array& numbers, double factor) {
  return lax::mul(numbers, constant(factor, numbers));
}

// Complex numbers of these absolute values, at random angles.
Array on_circles(const Array& key, const Array& radius) {
  const Array angle = scaled(random::uniform(key, radius.shape(), radius.dtype()), 2 * M_PI);
  return lax::complex(lax::mul(radius, lax::cos(angle)), lax::mul(radius, lax::sin(angle)));
}
// Numbers of variance 1: evenly in [-sqrt(3), sqrt(3)), or over a disc.
Array spread_evenly(const Array& key, const Shape& shape, DType to) {
  if (!is_complex(to)) return scaled(random::uniform(key, shape, to, -1, 1), std::sqrt(3));
  const Array keys = random::split(key);
  const Array radius = scaled(
      lax::sqrt(random::uniform(numpy::take(keys, 0, 0), shape, real_dtype_of(to))), M_SQRT2);
  return on_circles(numpy::take(keys, 1, 0), radius);
}
// Normal numbers that are not further than 2 from 0, and their standard deviation.
std::pair<Array, double> cut_normal(const Array& key, const Shape& shape, DType to) {
  if (!is_complex(to))
    return {random::truncated_normal(key, -2, 2, shape, to), 0.87962566103423978};
  // The square of the radius is exponentially distributed.
  const Array keys = random::split(key);
  const Array unit = random::uniform(numpy::take(keys, 0, 0), shape, real_dtype_of(to));
  const Array radius = lax::sqrt(lax::neg(lax::log1p(scaled(unit, std::expm1(-4)))));
  return {on_circles(numpy::take(keys, 1, 0), radius), 0.95311164380491208};
}

DType real_float(OptionalDType dtype, std::string_view function) {
  const DType to = dtype.value_or(default_float());
  if (!is_floating(to))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(to)) + " is not a float",
        "ask for a float dtype");
  return to;
}
DType inexact_dtype(OptionalDType dtype, std::string_view function) {
  return dtype && is_complex(*dtype) ? *dtype : real_float(dtype, function);
}

}  // namespace

namespace nn {

Array initializers::zeros(Operand, const Shape& shape, OptionalDType dtype) {
  return lax::full(shape, 0, dtype.value_or(default_float()));
}
Array initializers::ones(Operand, const Shape& shape, OptionalDType dtype) {
  return lax::full(shape, 1, dtype.value_or(default_float()));
}
Array initializers::constant(Operand, const Shape& shape, OptionalDType dtype, Operand value) {
  return numpy::full(shape, value, dtype.value_or(default_float()));
}
Array initializers::uniform(Operand key, const Shape& shape, OptionalDType dtype, double scale) {
  return scaled(random::uniform(key, shape, real_float(dtype, "uniform")), scale);
}
Array initializers::normal(Operand key, const Shape& shape, OptionalDType dtype, double stddev) {
  return scaled(random::normal(key, shape, inexact_dtype(dtype, "normal")), stddev);
}
Array initializers::truncated_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                     double stddev, double lower, double upper) {
  return scaled(
      random::truncated_normal(key, lower, upper, shape, real_float(dtype, "truncated_normal")),
      stddev);
}

Array initializers::variance_scaling(Operand key, const Shape& shape, OptionalDType dtype,
                                     double scale, const std::string& mode,
                                     const std::string& distribution, const FanAxes& axes) {
  const Fans fans = fans_of(shape, axes, "variance_scaling");
  double denominator = 0;
  if (mode == "fan_in")
    denominator = fans.in;
  else if (mode == "fan_out")
    denominator = fans.out;
  else if (mode == "fan_avg")
    denominator = (fans.in + fans.out) / 2;
  else if (mode == "fan_geo_avg")
    denominator = std::sqrt(fans.in * fans.out);
  else
    throw ValueError("variance_scaling: mode is '" + mode + "'",
                     "choose 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'");
  const double variance = scale / denominator;
  const DType to = inexact_dtype(dtype, "variance_scaling");
  if (distribution == "normal") return scaled(random::normal(key, shape, to), std::sqrt(variance));
  if (distribution == "truncated_normal") {
    const auto [numbers, deviation] = cut_normal(key, shape, to);
    return scaled(numbers, std::sqrt(variance) / deviation);
  }
  if (distribution == "uniform") return scaled(spread_evenly(key, shape, to), std::sqrt(variance));
  throw ValueError("variance_scaling: distribution is '" + distribution + "'",
                   "choose 'truncated_normal', 'normal' or 'uniform'");
}

Array initializers::glorot_uniform(Operand key, const Shape& shape, OptionalDType dtype,
                                   const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 1, "fan_avg", "uniform", axes);
}
Array initializers::glorot_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                  const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 1, "fan_avg", "truncated_normal", axes);
}
Array initializers::xavier_uniform(Operand key, const Shape& shape, OptionalDType dtype,
                                   const FanAxes& axes) {
  return glorot_uniform(key, shape, dtype, axes);
}
Array initializers::xavier_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                  const FanAxes& axes) {
  return glorot_normal(key, shape, dtype, axes);
}
Array initializers::he_uniform(Operand key, const Shape& shape, OptionalDType dtype,
                               const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 2, "fan_in", "uniform", axes);
}
Array initializers::he_normal(Operand key, const Shape& shape, OptionalDType dtype,
                              const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 2, "fan_in", "truncated_normal", axes);
}
Array initializers::kaiming_uniform(Operand key, const Shape& shape, OptionalDType dtype,
                                    const FanAxes& axes) {
  return he_uniform(key, shape, dtype, axes);
}
Array initializers::kaiming_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                   const FanAxes& axes) {
  return he_normal(key, shape, dtype, axes);
}
Array initializers::lecun_uniform(Operand key, const Shape& shape, OptionalDType dtype,
                                  const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 1, "fan_in", "uniform", axes);
}
Array initializers::lecun_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                 const FanAxes& axes) {
  return variance_scaling(key, shape, dtype, 1, "fan_in", "truncated_normal", axes);
}

// Q of a normal matrix, with the signs that make R's diagonal positive: uniformly distributed over
// the orthogonal matrices. Mezzadri, 2007.
Array initializers::orthogonal(Operand key, const Shape& shape, OptionalDType dtype, double scale,
                               int column_axis) {
  if (shape.size() < 2 || !shape.is_constant())
    throw ShapeError("orthogonal: the shape (" + shape.to_string() + ") is that of no matrix",
                     "give at least two axes, without named sizes");
  const int axis = normalize_axis(column_axis, shape.rank(), "orthogonal");
  Shape others = shape;
  others.erase(axis);
  const Dim rows = others.num_elements(), columns = shape[axis];
  const bool is_wide = less_equal(rows + 1, columns) == true;
  const Array numbers = random::normal(key, is_wide ? Shape{columns, rows} : Shape{rows, columns},
                                       real_float(dtype, "orthogonal"));
  const auto [q, r] = numpy::linalg::qr(numbers);
  const Array signs = numpy::sign(numpy::diagonal(r));
  Array matrix = numpy::multiply(q, signs);
  if (is_wide) matrix = lax::transpose(matrix, std::vector<int>{1, 0});
  others.push_back(columns);
  return scaled(moved(lax::reshape(matrix, others), shape.rank() - 1, axis), scale);
}

// The center of a kernel is orthogonal, and the rest 0. Xiao et al., 2018.
Array initializers::delta_orthogonal(Operand key, const Shape& shape, OptionalDType dtype,
                                     double scale, int column_axis) {
  const int rank = shape.rank();
  if (rank < 3 || rank > 5 || !shape.is_constant() ||
      less_equal(shape[rank - 2], shape[rank - 1]) == false)
    throw ShapeError("delta_orthogonal: the shape (" + shape.to_string() + ")",
                     "give one to three spatial axes, and no fewer outputs than inputs, which are "
                     "the last axis and the one before");
  const Array matrix =
      orthogonal(key, Shape{shape[rank - 2], shape[rank - 1]}, dtype, scale, column_axis);
  Shape lifted(rank - 2, 1);
  lifted.push_back(shape[rank - 2]), lifted.push_back(shape[rank - 1]);
  std::vector<lax::Padding> padding(rank);
  for (int i = 0; i < rank - 2; ++i) {
    padding[i].low = floor_divide(shape[i] - 1, 2);
    padding[i].high = shape[i] - 1 - padding[i].low;
  }
  return lax::pad(lax::reshape(matrix, lifted), plait::functions::constant(0, matrix), padding);
}

}  // namespace nn

namespace {

namespace of = nn::initializers;

template <Array (*init)(Operand, const Shape&, OptionalDType, const of::FanAxes&)>
Array over(Operand key, const Shape& shape, OptionalDType dtype, const Ints& in_axis,
           const Ints& out_axis, const Ints& batch_axis) {
  return init(key, shape, dtype, {in_axis, out_axis, batch_axis});
}
Array variance_scaling_of(Operand key, const Shape& shape, OptionalDType dtype, double scale,
                          const std::string& mode, const std::string& distribution,
                          const Ints& in_axis, const Ints& out_axis, const Ints& batch_axis) {
  return of::variance_scaling(key, shape, dtype, scale, mode, distribution,
                              {in_axis, out_axis, batch_axis});
}

[[maybe_unused]] const FunctionInfo* const initializers_functions[] = {
    function("nn.initializers", "zeros(key, shape, dtype=None)", "Zeros; the key is not used.",
             &of::zeros),
    function("nn.initializers", "ones(key, shape, dtype=None)", "Ones; the key is not used.",
             &of::ones),
    function("nn.initializers", "constant(key, shape, dtype=None, *, value=0.0)",
             "A number everywhere; the key is not used.", &of::constant),
    function("nn.initializers", "uniform(key, shape, dtype=None, *, scale=1e-2)",
             "Evenly distributed in [0, scale).", &of::uniform),
    function("nn.initializers", "normal(key, shape, dtype=None, *, stddev=1e-2)",
             "Normal numbers with mean 0 and deviation stddev.", &of::normal),
    function("nn.initializers",
             "truncated_normal(key, shape, dtype=None, *, stddev=1e-2, lower=-2.0, upper=2.0)",
             "Normal numbers between lower and upper, times stddev.", &of::truncated_normal),
    function("nn.initializers",
             "variance_scaling(key, shape, dtype=None, *, scale=1.0, mode='fan_in', "
             "distribution='truncated_normal', in_axis=-2, out_axis=-1, batch_axis=())",
             "Numbers of variance scale over the count of inputs ('fan_in'), outputs ('fan_out') "
             "or their mean ('fan_avg', 'fan_geo_avg'), real or complex; "
             "in_axis counts inputs, out_axis outputs, batch_axis networks, other axes are a "
             "receptive field. distribution: 'truncated_normal', 'normal', "
             "'uniform'.",
             &variance_scaling_of),
    function("nn.initializers",
             "glorot_uniform(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 1, fan_avg, uniform. Glorot and Bengio, 2010.",
             &over<of::glorot_uniform>),
    function("nn.initializers",
             "glorot_normal(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 1, fan_avg, truncated normal.", &over<of::glorot_normal>),
    function("nn.initializers",
             "xavier_uniform(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "The same as glorot_uniform.", &over<of::xavier_uniform>),
    function("nn.initializers",
             "xavier_normal(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "The same as glorot_normal.", &over<of::xavier_normal>),
    function("nn.initializers",
             "he_uniform(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 2, fan_in, uniform. He et al., 2015.", &over<of::he_uniform>),
    function("nn.initializers",
             "he_normal(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 2, fan_in, truncated normal.", &over<of::he_normal>),
    function("nn.initializers",
             "kaiming_uniform(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "The same as he_uniform.", &over<of::kaiming_uniform>),
    function("nn.initializers",
             "kaiming_normal(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "The same as he_normal.", &over<of::kaiming_normal>),
    function("nn.initializers",
             "lecun_uniform(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 1, fan_in, uniform. LeCun et al., 1998.", &over<of::lecun_uniform>),
    function("nn.initializers",
             "lecun_normal(key, shape, dtype=None, *, in_axis=-2, out_axis=-1, batch_axis=())",
             "variance_scaling 1, fan_in, truncated normal.", &over<of::lecun_normal>),
    function("nn.initializers", "orthogonal(key, shape, dtype=None, *, scale=1.0, column_axis=-1)",
             "Columns along column_axis (or rows, where there are more columns than rows) that are "
             "orthogonal and of length scale; other axes count rows. ShapeError for fewer than two "
             "axes. Saxe et al., 2013.",
             &of::orthogonal),
    function("nn.initializers",
             "delta_orthogonal(key, shape, dtype=None, *, scale=1.0, column_axis=-1)",
             "A kernel (spatial ..., inputs, outputs) whose center is orthogonal and whose rest is "
             "0. ShapeError unless it has one to three spatial axes. Xiao et al., 2018.",
             &of::delta_orthogonal),
};

}  // namespace
}  // namespace plait
