// plait.nn.initializers: random arrays to start a network from. In JAX they are factories of
// functions of (key, shape, dtype); here they are those functions, with the factories' arguments
// behind.
// SPDX-License-Identifier: Apache-2.0
#include <plait/nn.h>
#include <plait/random.h>

#include <cmath>

#include "ops/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using OptionalDType = std::optional<DType>;

struct Fans {
  double in, out;
};
// The last two axes are inputs and outputs, those before them a receptive field.
Fans fans_of(const Shape& shape, std::string_view function) {
  if (shape.size() < 2 || !shape.is_constant())
    throw ShapeError(std::string(function) + ": the shape (" + shape.to_string() +
                         ") does not say how many inputs and outputs there are",
                     "give at least two axes, without named sizes");
  double field = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) field *= double(shape[i].constant());
  return {field * double(shape[shape.size() - 2].constant()),
          field * double(shape.back().constant())};
}

Array scaled(const Array& numbers, double factor) {
  return lax::mul(numbers, constant(factor, numbers));
}

DType real_float(OptionalDType dtype, std::string_view function) {
  const DType to = dtype.value_or(default_float);
  if (!is_floating(to))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(to)) + " is not a float",
        "ask for a float dtype");
  return to;
}

}  // namespace

namespace nn {

Array initializers::zeros(Operand, const Shape& shape, OptionalDType dtype) {
  return lax::full(shape, 0, dtype.value_or(default_float));
}
Array initializers::ones(Operand, const Shape& shape, OptionalDType dtype) {
  return lax::full(shape, 1, dtype.value_or(default_float));
}
Array initializers::constant(Operand, const Shape& shape, OptionalDType dtype, Operand value) {
  return numpy::full(shape, value, dtype.value_or(default_float));
}
Array initializers::uniform(Operand key, const Shape& shape, OptionalDType dtype, double scale) {
  return scaled(random::uniform(key, shape, real_float(dtype, "uniform")), scale);
}
Array initializers::normal(Operand key, const Shape& shape, OptionalDType dtype, double stddev) {
  return scaled(random::normal(key, shape, real_float(dtype, "normal")), stddev);
}
Array initializers::truncated_normal(Operand key, const Shape& shape, OptionalDType dtype,
                                     double stddev, double lower, double upper) {
  return scaled(
      random::truncated_normal(key, lower, upper, shape, real_float(dtype, "truncated_normal")),
      stddev);
}

Array initializers::variance_scaling(Operand key, const Shape& shape, OptionalDType dtype,
                                     double scale, const std::string& mode,
                                     const std::string& distribution) {
  const Fans fans = fans_of(shape, "variance_scaling");
  double denominator = 0;
  if (mode == "fan_in")
    denominator = fans.in;
  else if (mode == "fan_out")
    denominator = fans.out;
  else if (mode == "fan_avg")
    denominator = (fans.in + fans.out) / 2;
  else
    throw ValueError("variance_scaling: mode is '" + mode + "'",
                     "choose 'fan_in', 'fan_out' or 'fan_avg'");
  const double variance = scale / denominator;
  const DType to = real_float(dtype, "variance_scaling");
  if (distribution == "normal") return scaled(random::normal(key, shape, to), std::sqrt(variance));
  // The deviation of a normal number between -2 and 2.
  if (distribution == "truncated_normal")
    return scaled(random::truncated_normal(key, -2, 2, shape, to),
                  std::sqrt(variance) / 0.87962566103423978);
  if (distribution == "uniform")
    return scaled(random::uniform(key, shape, to, -1, 1), std::sqrt(3 * variance));
  throw ValueError("variance_scaling: distribution is '" + distribution + "'",
                   "choose 'truncated_normal', 'normal' or 'uniform'");
}

Array initializers::glorot_uniform(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 1, "fan_avg", "uniform");
}
Array initializers::glorot_normal(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 1, "fan_avg", "truncated_normal");
}
Array initializers::xavier_uniform(Operand key, const Shape& shape, OptionalDType dtype) {
  return glorot_uniform(key, shape, dtype);
}
Array initializers::xavier_normal(Operand key, const Shape& shape, OptionalDType dtype) {
  return glorot_normal(key, shape, dtype);
}
Array initializers::he_uniform(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 2, "fan_in", "uniform");
}
Array initializers::he_normal(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 2, "fan_in", "truncated_normal");
}
Array initializers::kaiming_uniform(Operand key, const Shape& shape, OptionalDType dtype) {
  return he_uniform(key, shape, dtype);
}
Array initializers::kaiming_normal(Operand key, const Shape& shape, OptionalDType dtype) {
  return he_normal(key, shape, dtype);
}
Array initializers::lecun_uniform(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 1, "fan_in", "uniform");
}
Array initializers::lecun_normal(Operand key, const Shape& shape, OptionalDType dtype) {
  return variance_scaling(key, shape, dtype, 1, "fan_in", "truncated_normal");
}

}  // namespace nn

namespace {

namespace of = nn::initializers;

[[maybe_unused]] const FunctionInfo* const catalogue[] = {
    function("nn.initializers", "zeros(key, shape, dtype=None)", "Zeros; the key is not used.",
             &of::zeros),
    function("nn.initializers", "ones(key, shape, dtype=None)", "Ones; the key is not used.",
             &of::ones),
    function("nn.initializers", "constant(key, shape, dtype=None, *, value=0.0)",
             "A number everywhere; the key is not used.", &of::constant),
    function("nn.initializers", "uniform(key, shape, dtype=None, *, scale=1e-2)",
             "Evenly distributed in [0, scale).", &of::uniform),
    function("nn.initializers", "normal(key, shape, dtype=None, *, stddev=1e-2)",
             "Normal with mean 0.", &of::normal),
    function("nn.initializers",
             "truncated_normal(key, shape, dtype=None, *, stddev=1e-2, lower=-2.0, upper=2.0)",
             "Normal numbers between lower and upper, times stddev.", &of::truncated_normal),
    function("nn.initializers",
             "variance_scaling(key, shape, dtype=None, *, scale=1.0, mode='fan_in', "
             "distribution='truncated_normal')",
             "Numbers of variance scale over the count of inputs ('fan_in'), outputs ('fan_out') "
             "or their mean ('fan_avg'); the last "
             "two axes of shape are inputs and outputs, those before a receptive field. "
             "distribution: 'truncated_normal', 'normal', "
             "'uniform'.",
             &of::variance_scaling),
    function("nn.initializers", "glorot_uniform(key, shape, dtype=None)",
             "variance_scaling 1, fan_avg, uniform. Glorot and Bengio, 2010.", &of::glorot_uniform),
    function("nn.initializers", "glorot_normal(key, shape, dtype=None)",
             "variance_scaling 1, fan_avg, truncated normal.", &of::glorot_normal),
    function("nn.initializers", "xavier_uniform(key, shape, dtype=None)",
             "The same as glorot_uniform.", &of::xavier_uniform),
    function("nn.initializers", "xavier_normal(key, shape, dtype=None)",
             "The same as glorot_normal.", &of::xavier_normal),
    function("nn.initializers", "he_uniform(key, shape, dtype=None)",
             "variance_scaling 2, fan_in, uniform. He et al., 2015.", &of::he_uniform),
    function("nn.initializers", "he_normal(key, shape, dtype=None)",
             "variance_scaling 2, fan_in, truncated normal.", &of::he_normal),
    function("nn.initializers", "kaiming_uniform(key, shape, dtype=None)",
             "The same as he_uniform.", &of::kaiming_uniform),
    function("nn.initializers", "kaiming_normal(key, shape, dtype=None)", "The same as he_normal.",
             &of::kaiming_normal),
    function("nn.initializers", "lecun_uniform(key, shape, dtype=None)",
             "variance_scaling 1, fan_in, uniform. LeCun et al., 1998.", &of::lecun_uniform),
    function("nn.initializers", "lecun_normal(key, shape, dtype=None)",
             "variance_scaling 1, fan_in, truncated normal.", &of::lecun_normal),
};

}  // namespace
}  // namespace plait
