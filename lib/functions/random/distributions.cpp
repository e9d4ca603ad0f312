// plait.random: continuous distributions, by inversion of uniform numbers, as in JAX.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "functions/one_program.h"
#include "functions/random/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {
using OptionalDType = std::optional<DType>;
}

Array random::normal(Operand key, const Shape& shape, OptionalDType dtype) {
  require_key("normal", key);
  const DType to = dtype.value_or(default_float());
  if (is_complex(to)) {
    const Array keys = lax::random_split(key, {2});
    const DType real = real_dtype_of(to);
    const Array scale = Array::literal(M_SQRT1_2, real);
    return lax::complex(lax::mul(normal(lax::index_in_dim(keys, 0, 0, false), shape, real), scale),
                        lax::mul(normal(lax::index_in_dim(keys, 1, 0, false), shape, real), scale));
  }
  float_dtype("normal", dtype);
  // sqrt(2) erf_inv(u), u above -1.
  auto steps = [&](std::span<const Array> inputs) {
    const Array u = uniform_between(inputs[0], shape, to, -1 + format_of(to).epsilon / 2, 1);
    return Arrays{lax::mul(Array::literal(M_SQRT2, to), lax::erf_inv(u))};
  };
  return in_one_program("normal", Arrays{key}, {{"shape", shape}, {"dtype", to}},
                        shape.num_elements(), steps);
}

Array random::truncated_normal(Operand key, Operand lower, Operand upper,
                               const std::optional<Shape>& shape, OptionalDType dtype) {
  const DType to = float_dtype("truncated_normal", dtype);
  const Shape sizes = shape_or("truncated_normal", shape, {lower, upper});
  const Array low = to_shape_of("truncated_normal", astype(lower, to), sizes),
              high = to_shape_of("truncated_normal", astype(upper, to), sizes);
  const Array root = Array::literal(M_SQRT2, to);
  const Array u =
      uniform(key, sizes, to, lax::erf(lax::div(low, root)), lax::erf(lax::div(high, root)));
  const Array z = lax::mul(root, lax::erf_inv(u));
  // Rounding must not leave the open interval.
  const Array first = numpy::nextafter(low, INFINITY), last = numpy::nextafter(high, -INFINITY);
  return lax::min(lax::max(z, first), last);
}

Array random::exponential(Operand key, const Shape& shape, OptionalDType dtype) {
  return lax::neg(lax::log1p(lax::neg(uniform(key, shape, float_dtype("exponential", dtype)))));
}
Array random::laplace(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = float_dtype("laplace", dtype);
  const Array u = uniform_between(key, shape, to, -1 + format_of(to).epsilon / 2, 1);
  return lax::mul(numpy::sign(u), lax::log1p(lax::neg(lax::abs(u))));
}
Array random::logistic(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = float_dtype("logistic", dtype);
  const Array u = uniform_between(key, shape, to, format_of(to).tiny, 1);
  return lax::sub(lax::log(u), lax::log1p(lax::neg(u)));
}
Array random::gumbel(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = float_dtype("gumbel", dtype);
  return lax::neg(
      lax::log(lax::neg(lax::log(uniform_between(key, shape, to, format_of(to).tiny, 1)))));
}
Array random::cauchy(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = float_dtype("cauchy", dtype);
  const Array u = uniform_between(key, shape, to, format_of(to).epsilon, 1);
  return numpy::tan(lax::mul(Array::literal(M_PI, to), lax::sub(u, Array::literal(0.5, to))));
}
Array random::pareto(Operand key, Operand b, const std::optional<Shape>& shape,
                     OptionalDType dtype) {
  const DType to = float_dtype("pareto", dtype);
  const Shape sizes = shape_or("pareto", shape, {b});
  return lax::exp(
      lax::div(exponential(key, sizes, to), to_shape_of("pareto", astype(b, to), sizes)));
}
Array random::rayleigh(Operand key, Operand scale, const std::optional<Shape>& shape,
                       OptionalDType dtype) {
  const DType to = float_dtype("rayleigh", dtype);
  const Shape sizes = shape_or("rayleigh", shape, {scale});
  const Array root = lax::sqrt(lax::mul(lax::log(uniform(key, sizes, to)), Array::literal(-2, to)));
  return lax::mul(to_shape_of("rayleigh", astype(scale, to), sizes), root);
}
Array random::weibull_min(Operand key, Operand scale, Operand concentration, const Shape& shape,
                          OptionalDType dtype) {
  const DType to = float_dtype("weibull_min", dtype);
  const Array power =
      lax::div(Array::literal(1, to), to_shape_of("weibull_min", astype(concentration, to), shape));
  return lax::mul(lax::pow(exponential(key, shape, to), power),
                  to_shape_of("weibull_min", astype(scale, to), shape));
}
Array random::lognormal(Operand key, Operand sigma, const std::optional<Shape>& shape,
                        OptionalDType dtype) {
  const DType to = float_dtype("lognormal", dtype);
  const Shape sizes = shape_or("lognormal", shape, {sigma});
  return lax::exp(
      lax::mul(normal(key, sizes, to), to_shape_of("lognormal", astype(sigma, to), sizes)));
}

namespace {

[[maybe_unused]] const FunctionInfo* const distributions_functions[] = {
    function("random", "normal(key, shape=(), dtype=None)",
             "Standard normal numbers: sqrt(2) erf_inv of uniform ones.", &random::normal),
    function(
        "random", "truncated_normal(key, lower, upper, shape=None, dtype=None)",
        "Standard normal numbers in the open interval (lower, upper), through the inverse of erf.",
        &random::truncated_normal),
    function("random", "exponential(key, shape=(), dtype=None)",
             "Numbers of density exp(-x), by inversion.", &random::exponential),
    function("random", "laplace(key, shape=(), dtype=None)",
             "Numbers of density exp(-|x|) / 2, by inversion.", &random::laplace),
    function("random", "logistic(key, shape=(), dtype=None)",
             "Numbers whose distribution is the logistic function, by inversion.",
             &random::logistic),
    function("random", "gumbel(key, shape=(), dtype=None)",
             "Numbers of Gumbel's distribution exp(-exp(-x)), by inversion.", &random::gumbel),
    function("random", "cauchy(key, shape=(), dtype=None)",
             "Numbers of density 1 / (pi (1 + x**2)), by inversion.", &random::cauchy),
    function("random", "pareto(key, b, shape=None, dtype=None)",
             "Numbers above 1 of density b / x**(b+1), by inversion.", &random::pareto),
    function("random", "rayleigh(key, scale, shape=None, dtype=None)",
             "Lengths of normal vectors in the plane, by inversion.", &random::rayleigh),
    function("random", "weibull_min(key, scale, concentration, shape=(), dtype=None)",
             "Numbers of Weibull's distribution, by inversion.", &random::weibull_min),
    function("random", "lognormal(key, sigma=1.0, shape=None, dtype=None)",
             "Exponentials of normal numbers with mean 0 and deviation sigma.", &random::lognormal),
};

}  // namespace
}  // namespace plait
