// plait.nn: activations. Those that backends claim, or whose derivative is better stated, are
// composites.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

Array one(const Array& like) { return constant(1, like); }
Array zero(const Array& like) { return constant(0, like); }

// With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) for negative x. Nothing overflows or cancels. |x|
// is computed by select, whose derivatives of every order are correct at 0; those of abs are not.
struct LogisticParts {
  Array value, derivative;
};
LogisticParts logistic_parts(const Array& x) {
  const Array negative = lax::lt(x, zero(x));
  const Array e = lax::exp(lax::select(negative, x, lax::neg(x))), sum = lax::add(one(x), e);
  const Array top = lax::select(negative, e, filled(1, x));
  return {lax::div(top, sum), lax::div(e, lax::mul(sum, sum))};
}
const Composite& logistic_composite = define_composite(
    {"logistic", "1 / (1 + exp(-x)).",
     [](std::span<const Array> x, const Params&) { return Arrays{logistic_parts(x[0]).value}; },
     [](std::span<const Array> x, const Params&) {
       const LogisticParts parts = logistic_parts(x[0]);
       return Arrays{parts.value, lax::mul(x[1], parts.derivative)};
     },
     Autocast::follows});

const Composite& relu_composite = define_composite(
    {"relu",
     "max(x, 0), with derivative 0 at 0.",
     [](std::span<const Array> x, const Params&) {
       return Arrays{lax::select(lax::le(x[0], zero(x[0])), lax::zeros_like(x[0].aval()),
                                 x[0])};  // NaN stays NaN
     },
     {},
     Autocast::follows});

// d silu = s (1 + x (1 - s)) dx
const Composite& silu_composite =
    define_composite({"silu", "x logistic(x).",
                      [](std::span<const Array> x, const Params&) {
                        return Arrays{lax::mul(x[0], logistic_parts(x[0]).value)};
                      },
                      [](std::span<const Array> x, const Params&) {
                        const LogisticParts parts = logistic_parts(x[0]);
                        const Array slope = lax::add(parts.value, lax::mul(x[0], parts.derivative));
                        return Arrays{lax::mul(x[0], parts.value), lax::mul(x[1], slope)};
                      },
                      Autocast::follows});

// The normal distribution function at x, or its approximation by tanh, and its derivative.
struct GeluParts {
  Array weight, slope;
};
GeluParts gelu_parts(const Array& x, bool approximate) {
  const Array half = constant(0.5, x), square = lax::mul(x, x);
  if (!approximate) {
    const Array weight =
        lax::mul(half, lax::add(one(x), lax::erf(lax::mul(x, constant(M_SQRT1_2, x)))));
    const Array density =
        lax::mul(constant(0.3989422804014327, x), lax::exp(lax::mul(constant(-0.5, x), square)));
    return {weight, density};  // exp(-x^2 / 2) / sqrt(2 pi)
  }
  // tanh(c (x + a x^3)), c = sqrt(2 / pi): Hendrycks and Gimpel, 2016.
  const Array c = constant(0.7978845608028654, x), a = constant(0.044715, x);
  const Array t = lax::tanh(lax::mul(c, lax::add(x, lax::mul(a, lax::mul(square, x)))));
  const Array inner = lax::mul(c, lax::add(one(x), lax::mul(constant(3 * 0.044715, x), square)));
  return {lax::mul(half, lax::add(one(x), t)),
          lax::mul(lax::mul(half, lax::sub(one(x), lax::mul(t, t))), inner)};
}
const Composite& gelu_composite = define_composite(
    {"gelu", "x times the normal distribution function at x; approximate: by tanh.",
     [](std::span<const Array> x, const Params& attributes) {
       return Arrays{lax::mul(x[0], gelu_parts(x[0], attributes.flag("approximate")).weight)};
     },
     [](std::span<const Array> x, const Params& attributes) {
       const GeluParts parts = gelu_parts(x[0], attributes.flag("approximate"));
       return Arrays{lax::mul(x[0], parts.weight),
                     lax::mul(x[1], lax::add(parts.weight, lax::mul(x[0], parts.slope)))};
     },
     Autocast::follows});

Array real_operand(std::string_view name, const Array& x) { return floating_only(name, x); }

}  // namespace

Array nn::relu(Operand x) {
  return composite(relu_composite, {is_bool(x.dtype()) ? astype(x, default_int()) : Array(x)});
}
Array nn::relu6(Operand x) { return numpy::minimum(relu(x), 6); }
Array nn::leaky_relu(Operand x, Operand negative_slope) {
  const Array y = real_operand("leaky_relu", x);
  return numpy::where(lax::ge(y, zero(y)), y, numpy::multiply(negative_slope, y));
}

Array nn::elu(Operand x, Operand alpha) {
  const Array y = real_operand("elu", x), positive = lax::gt(y, zero(y));
  // expm1 gets no positive number, whose overflow would reach the derivative as 0 * inf.
  const Array safe = lax::select(positive, lax::zeros_like(y.aval()), y);
  return numpy::where(positive, y, numpy::multiply(alpha, lax::expm1(safe)));
}
Array nn::celu(Operand x, Operand alpha) {
  const Array y = real_operand("celu", x);
  const Array least = numpy::minimum(y, zero(y));
  return numpy::add(numpy::maximum(y, zero(y)),
                    numpy::multiply(alpha, numpy::expm1(numpy::divide(least, alpha))));
}
Array nn::selu(Operand x) {
  const Array y = elu(x, 1.6732632423543772848170429916717);
  return lax::mul(y, constant(1.0507009873554804934193349852946, y));
}
Array nn::gelu(Operand x, bool approximate) {
  return composite(gelu_composite, {real_operand("gelu", x)}, {{"approximate", approximate}});
}
Array nn::sigmoid(Operand x) { return composite(logistic_composite, {real_operand("sigmoid", x)}); }
Array nn::log_sigmoid(Operand x) {
  return lax::neg(softplus(lax::neg(real_operand("log_sigmoid", x))));
}
Array nn::softplus(Operand x) {
  const Array y = real_operand("softplus", x);
  return numpy::logaddexp(y, zero(y));
}
Array nn::sparse_plus(Operand x) {
  const Array y = real_operand("sparse_plus", x), next = lax::add(y, one(y));
  const Array middle = lax::mul(constant(0.25, y), lax::mul(next, next));
  return lax::select(lax::le(y, constant(-1, y)), lax::zeros_like(y.aval()),
                     lax::select(lax::ge(y, one(y)), y, middle));
}
Array nn::sparse_sigmoid(Operand x) {
  const Array y = real_operand("sparse_sigmoid", x);
  return numpy::multiply(0.5, numpy::clip(numpy::add(y, 1), Array(0.0), Array(2.0)));
}
Array nn::soft_sign(Operand x) {
  const Array y = real_operand("soft_sign", x);
  return lax::div(y, lax::add(lax::abs(y), one(y)));
}
Array nn::silu(Operand x) { return composite(silu_composite, {real_operand("silu", x)}); }
Array nn::swish(Operand x) { return silu(x); }
Array nn::mish(Operand x) {
  const Array y = real_operand("mish", x);
  return lax::mul(y, lax::tanh(softplus(y)));
}
Array nn::tanh(Operand x) { return numpy::tanh(x); }
Array nn::hard_tanh(Operand x) {
  const Array y = real_operand("hard_tanh", x);
  return lax::select(lax::gt(y, one(y)), filled(1, y),
                     lax::select(lax::lt(y, constant(-1, y)), filled(-1, y), y));
}
Array nn::hard_sigmoid(Operand x) {
  return numpy::divide(relu6(numpy::add(real_operand("hard_sigmoid", x), 3)), 6);
}
Array nn::hard_silu(Operand x) {
  const Array y = real_operand("hard_silu", x);
  return lax::mul(y, hard_sigmoid(y));
}
Array nn::hard_swish(Operand x) { return hard_silu(x); }
Array nn::squareplus(Operand x, Operand b) {
  const Array y = real_operand("squareplus", x);
  return numpy::multiply(0.5, numpy::add(y, numpy::sqrt(numpy::add(lax::mul(y, y), b))));
}
Array nn::glu(Operand x, int axis) {
  const int dim = normalize_axis(axis, x.ndim(), "glu");
  const Arrays halves = numpy::split(x, 2, dim);
  return lax::mul(halves[0], sigmoid(halves[1]));
}
Array nn::identity(Operand x) { return x; }

Array nn::one_hot(Operand x, Dim num_classes, std::optional<DType> dtype, int axis) {
  const int dim = normalize_axis(axis, x.ndim() + 1, "one_hot");
  Shape shape = x.shape();
  shape.insert(dim, num_classes);
  std::vector<int> dims;
  for (int i = 0; i < x.ndim(); ++i) dims.push_back(i < dim ? i : i + 1);
  const DType numbers = is_bool(x.dtype()) ? default_int() : x.dtype();
  const Array wanted = lax::broadcast_in_dim(astype(x, numbers), shape, dims);
  return astype(lax::eq(wanted, lax::iota(numbers, shape, dim)), dtype.value_or(default_float()));
}

namespace {

[[maybe_unused]] const FunctionInfo* const activations_functions[] = {
    function("nn", "relu(x)", "max(x, 0); NaN stays, and the derivative at 0 is 0.", &nn::relu),
    function("nn", "relu6(x)", "The rectifier with a ceiling: min(max(x, 0), 6). Krizhevsky, 2010.",
             &nn::relu6),
    function("nn", "leaky_relu(x, negative_slope=0.01)", "x, times negative_slope below 0.",
             &nn::leaky_relu),
    function("nn", "elu(x, alpha=1.0)", "x, and alpha (exp(x) - 1) below 0. Clevert et al., 2015.",
             &nn::elu),
    function("nn", "celu(x, alpha=1.0)", "x, and alpha (exp(x / alpha) - 1) below 0. Barron, 2017.",
             &nn::celu),
    function("nn", "selu(x)",
             "elu scaled so that it keeps mean 0 and variance 1. Klambauer et al., 2017.",
             &nn::selu),
    function("nn", "gelu(x, approximate=True)",
             "x times the normal distribution function at x, by tanh or exactly. Hendrycks and "
             "Gimpel, 2016.",
             &nn::gelu),
    function("nn", "sigmoid(x)", "1 / (1 + exp(-x)), exact for large |x|.", &nn::sigmoid),
    function("nn", "log_sigmoid(x)", "The logarithm of sigmoid(x), without overflow.",
             &nn::log_sigmoid),
    function("nn", "softplus(x)", "log(1 + exp(x)) without overflow.", &nn::softplus),
    function("nn", "sparse_plus(x)", "0 below -1, x above 1, (x + 1)**2 / 4 between.",
             &nn::sparse_plus),
    function("nn", "sparse_sigmoid(x)", "The derivative of sparse_plus: 0, 1, (x + 1) / 2 between.",
             &nn::sparse_sigmoid),
    function("nn", "soft_sign(x)", "x / (1 + |x|).", &nn::soft_sign),
    function("nn", "silu(x)", "x times its sigmoid: x sigmoid(x). Elfwing et al., 2018.",
             &nn::silu),
    function("nn", "swish(x)", "The same as silu.", &nn::swish),
    function("nn", "mish(x)", "x tanh(softplus(x)), a smooth rectifier. Misra, 2019.", &nn::mish),
    function("nn", "tanh(x)", "The hyperbolic tangent of x.", &nn::tanh),
    function("nn", "hard_tanh(x)", "x between -1 and 1.", &nn::hard_tanh),
    function("nn", "hard_sigmoid(x)", "relu6(x + 3) / 6.", &nn::hard_sigmoid),
    function("nn", "hard_silu(x)",
             "The piecewise approximation x hard_sigmoid(x) of silu. Howard et al., 2019.",
             &nn::hard_silu),
    function("nn", "hard_swish(x)", "The same as hard_silu.", &nn::hard_swish),
    function("nn", "squareplus(x, b=4.0)", "(x + sqrt(x**2 + b)) / 2. Barron, 2021.",
             &nn::squareplus),
    function("nn", "glu(x, axis=-1)",
             "The first half of an axis times the sigmoid of the second. ShapeError for odd sizes.",
             &nn::glu),
    function("nn", "identity(x)", "The argument x itself, where an activation is asked for.",
             &nn::identity),
    function("nn", "one_hot(x, num_classes, *, dtype=None, axis=-1)",
             "A new axis with 1 at the place that x names, 0 elsewhere, float32 by default; all 0 "
             "for a number outside.",
             &nn::one_hot),
};

}  // namespace
}  // namespace plait
