// The catalogue of plait.lax's elementwise functions; catalogue.cpp has the others.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/lax_numbers.h>
#include <plait/primitives/special.h>

#include "functions/functions.h"

namespace plait {
namespace {

// Of operands of one rank, sizes of 1 are repeated. What does not meet is the primitive's to
// refuse.
void repeat_ones(Arrays& operands) {
  Shape shape;
  for (const Array& x : operands)
    if (x.ndim() > shape.rank()) shape = x.shape();
  bool is_one_shape = true;
  for (const Array& x : operands) {
    if (x.ndim() == 0 || x.shape() == shape) continue;
    if (x.ndim() != shape.rank()) return;
    is_one_shape = false;
    for (int i = 0; i < shape.rank(); ++i) {
      const bool is_repeated = shape[i] == Dim(1);
      if (!is_repeated && x.shape(i) != Dim(1) && x.shape(i) != shape[i]) return;
      if (is_repeated) shape[i] = x.shape(i);
    }
  }
  if (is_one_shape) return;
  for (Array& x : operands)
    if (x.ndim() > 0) x = broadcast_to(x, shape);
}
// A Python number takes the dtype of the other operand.
template <Array (*function)(Operand, Operand)>
Array binary(Operand x, Operand y) {
  Arrays operands{x, y};
  if (x.aval().weak || y.aval().weak) promote_dtypes(operands, "lax");
  repeat_ones(operands);
  return function(operands[0], operands[1]);
}
template <Array (*of_floats)(Operand), Array (*of_complex)(Operand)>
Array inexact(Operand x) {
  return is_complex(x.dtype()) ? of_complex(x) : of_floats(x);
}
template <Array (*of_reals)(Operand, Operand), Array (*of_complex)(Operand, Operand)>
Array extreme(Operand x, Operand y) {
  return is_complex(x.dtype()) || is_complex(y.dtype()) ? binary<of_complex>(x, y)
                                                        : binary<of_reals>(x, y);
}
template <auto function, class... Several>
Array several(Several... operands) {
  Arrays all{operands...};
  promote_dtypes(all, "lax");
  repeat_ones(all);
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return function(all[i]...);
  }(std::index_sequence_for<Several...>());
}
Array convert_element_type(Operand operand, DType new_dtype) {
  return lax::convert_element_type(operand, new_dtype);
}
Array select(Operand pred, Operand on_true, Operand on_false) {
  Arrays cases{on_true, on_false};
  if (on_true.aval().weak || on_false.aval().weak) promote_dtypes(cases, "select");
  return lax::select(pred, cases[0], cases[1]);
}

Tree<Array> stop_gradient(Tree<Array> x) {
  for (Array& leaf : x.leaves) leaf = lax::stop_gradient(leaf);
  return x;
}

[[maybe_unused]] const FunctionInfo* const elementwise_catalogue[] = {
    function("lax", "neg(x)",
             "The negative, -x; of unsigned integers modulo 2**bits. Not of bools.", &lax::neg),
    function("lax", "abs(x)", "|x|; of complex numbers the magnitude, real.", &lax::abs),
    function("lax", "sign(x)", "-1, 0 or 1; NaN of NaN; x / |x| of complex numbers.", &lax::sign),
    function("lax", "floor(x)", "The largest integer not above x, of floats.", &lax::floor),
    function("lax", "ceil(x)", "The smallest integer not below x, of floats.", &lax::ceil),
    function("lax", "exp(x)", "The exponential, of floats or complex numbers.", &lax::exp),
    function("lax", "exp2(x)", "2 to the power x, of floats or complex numbers.", &lax::exp2),
    function("lax", "expm1(x)", "exp(x) - 1, exact near 0, of floats or complex numbers.",
             &inexact<lax::expm1, numpy::expm1>),
    function("lax", "log(x)",
             "The natural logarithm of floats (NaN below 0, -inf at 0) or complex numbers.",
             &lax::log),
    function("lax", "log1p(x)", "log(1 + x), exact near 0, of floats or complex numbers.",
             &inexact<lax::log1p, numpy::log1p>),
    function("lax", "sqrt(x)", "The square root of floats (NaN below 0) or complex numbers.",
             &lax::sqrt),
    function("lax", "rsqrt(x)",
             "The reciprocal root 1 / sqrt(x), of floats or complex numbers; NaN below 0.",
             &lax::rsqrt),
    function("lax", "cbrt(x)", "The real cube root of floats.", &lax::cbrt),
    function("lax", "square(x)", "The square x * x of numbers.", &lax::square),
    function("lax", "reciprocal(x)", "The reciprocal 1 / x, of floats or complex numbers.",
             &lax::reciprocal),
    function("lax", "integer_pow(x, y)", "x to a constant integer power.", &lax::integer_pow),
    function("lax", "sin(x)", "The sine of x in radians, of floats or complex numbers.", &lax::sin),
    function("lax", "cos(x)", "The cosine of x in radians, of floats or complex numbers.",
             &lax::cos),
    function("lax", "tan(x)", "The tangent of x in radians, of floats or complex numbers.",
             &lax::tan),
    function("lax", "asin(x)",
             "The angle in [-pi/2, pi/2] whose sine is x, of floats; NaN outside [-1, 1].",
             &lax::asin),
    function("lax", "acos(x)",
             "The angle in [0, pi] whose cosine is x, of floats; NaN outside [-1, 1].", &lax::acos),
    function("lax", "atan(x)", "The angle in [-pi/2, pi/2] whose tangent is x, of floats.",
             &lax::atan),
    function("lax", "sinh(x)", "The hyperbolic sine of floats or complex numbers, exact near 0.",
             &lax::sinh),
    function("lax", "cosh(x)", "The hyperbolic cosine of floats or complex numbers.", &lax::cosh),
    function("lax", "tanh(x)", "The hyperbolic tangent of floats or complex numbers.", &lax::tanh),
    function("lax", "asinh(x)", "The inverse hyperbolic sine of floats, exact near 0.",
             &lax::asinh),
    function("lax", "acosh(x)", "The inverse hyperbolic cosine of floats; NaN below 1.",
             &lax::acosh),
    function("lax", "atanh(x)", "The inverse hyperbolic tangent of floats; NaN outside [-1, 1].",
             &lax::atanh),
    function("lax", "logistic(x)", "1 / (1 + exp(-x)), of floats or complex numbers.",
             &lax::logistic),
    function("lax", "erf(x)", "The error function, of floats.", &lax::erf),
    function("lax", "erf_inv(x)", "The inverse of erf on (-1, 1).", &lax::erf_inv),
    function("lax", "lgamma(x)", "The logarithm of |gamma(x)|, of floats.", &lax::lgamma),
    function("lax", "digamma(x)", "The derivative of lgamma, of floats.", &lax::digamma),
    function("lax", "igamma(a, x)",
             "The regularized lower incomplete gamma function P(a, x), of floats.",
             &binary<lax::igamma>),
    function("lax", "igammac(a, x)",
             "The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).",
             &binary<lax::igammac>),
    function("lax", "igamma_grad_a(a, x)", "The derivative of igamma(a, x) in a.",
             &binary<lax::igamma_grad_a>),
    function("lax", "random_gamma_grad(a, x)",
             "The derivative in a of a sample x of the gamma distribution, at equal probability.",
             &binary<lax::random_gamma_grad>),
    function("lax", "betainc(a, b, x)",
             "The regularized incomplete beta function I_x(a, b); its derivative is in x alone.",
             &several<&lax::betainc, Operand, Operand, Operand>),
    function("lax", "zeta(x, q)",
             "Hurwitz's zeta function, the sum of (q + k)**-x over k >= 0; its derivative is in q "
             "alone.",
             &binary<lax::zeta>),
    function("lax", "polygamma(m, x)", "The derivative of digamma of whole order m, at x.",
             &binary<lax::polygamma>),
    function("lax", "bessel_i0e(x)", "The modified Bessel function I_0(x) times exp(-|x|).",
             &lax::bessel_i0e),
    function("lax", "bessel_i1e(x)", "The modified Bessel function I_1(x) times exp(-|x|).",
             &lax::bessel_i1e),
    function("lax", "erfc(x)", "1 - erf(x), exact where it is small.", &lax::erfc),
    function("lax", "erfcx(x)", "exp(x**2) times erfc(x).", &lax::erfcx),
    function("lax", "ndtri(p)", "The inverse of the standard normal distribution function.",
             &lax::ndtri),
    function("lax", "expi(x)", "The exponential integral Ei(x).", &lax::expi),
    function("lax", "expn(n, x)", "The exponential integral E_n(x) of whole order n.",
             &binary<lax::expn>),
    function("lax", "spence(x)", "Spence's function, the integral of log(t) / (1 - t) from 1 to x.",
             &lax::spence),
    function("lax", "dawsn(x)",
             "Dawson's integral, exp(-x**2) times that of exp(t**2) from 0 to x.", &lax::dawsn),
    function("lax", "fresnel_sine(x)", "The integral of sin(pi t**2 / 2) from 0 to x.",
             &lax::fresnel_sine),
    function("lax", "fresnel_cosine(x)", "The integral of cos(pi t**2 / 2) from 0 to x.",
             &lax::fresnel_cosine),
    function("lax", "sine_integral(x)", "The integral of sin(t) / t from 0 to x.",
             &lax::sine_integral),
    function("lax", "cosine_integral(x)", "The integral of cos(t) / t from infinity to |x|.",
             &lax::cosine_integral),
    function("lax", "owens_t(h, a)",
             "Owen's T, the probability of X > h and 0 < Y < a X for normal X and Y.",
             &binary<lax::owens_t>),
    function("lax", "hyp1f1(a, b, x)",
             "Kummer's confluent hypergeometric function M(a, b, x); its derivative is in x alone.",
             &several<&lax::hyp1f1, Operand, Operand, Operand>),
    function("lax", "hyp2f1(a, b, c, x)",
             "Gauss's hypergeometric function F(a, b; c; x) for x up to 1; its derivative is in x "
             "alone.",
             &several<&lax::hyp2f1, Operand, Operand, Operand, Operand>),
    function("lax", "is_finite(x)", "Where x is neither NaN nor infinite.", &lax::is_finite),
    function("lax", "real(x)", "The real part, of complex numbers.", &lax::real),
    function("lax", "imag(x)", "The imaginary part, of complex numbers.", &lax::imag),
    function("lax", "conj(x)", "The complex conjugate.", &lax::conj),
    function("lax", "bitwise_not(x)", "The bits not set; of bools, not.", &lax::bitwise_not),
    function("lax", "convert_element_type(operand, new_dtype)",
             "operand in another dtype: floats truncate to integers and saturate.",
             &convert_element_type),

    function("lax", "stop_gradient(x)", "x, a tree of arrays, as constants for differentiation.",
             &stop_gradient),
    function(
        "lax", "add(x, y)",
        "x + y. Operands of lax have one dtype, and one rank unless one is a scalar; sizes of 1 "
        "are repeated. Python numbers take the other's dtype.",
        &binary<lax::add>),
    function("lax", "sub(x, y)", "The difference x - y; of integers modulo 2**bits.",
             &binary<lax::sub>),
    function("lax", "mul(x, y)", "The product x * y; of integers modulo 2**bits.",
             &binary<lax::mul>),
    function("lax", "div(x, y)", "x / y; of integers rounded to zero, and x / 0 is 0.",
             &binary<lax::div>),
    function("lax", "rem(x, y)", "The remainder of div, with the sign of x.", &binary<lax::rem>),
    function("lax", "pow(x, y)", "x to the power y.", &binary<lax::pow>),
    function("lax", "max(x, y)",
             "The larger one; NaN wins. Complex numbers are in the order of their real parts, then "
             "of their imaginary ones.",
             &extreme<lax::max, numpy::maximum>),
    function("lax", "min(x, y)", "The smaller one, as max.", &extreme<lax::min, numpy::minimum>),
    function("lax", "atan2(x, y)", "The angle of the point (y, x), as C's atan2(x, y).",
             &binary<lax::atan2>),
    function("lax", "complex(x, y)", "Complex numbers x + iy of two float32 or two float64 arrays.",
             &binary<lax::complex>),
    function("lax", "bitwise_and(x, y)", "The bits set in both.", &binary<lax::bitwise_and>),
    function("lax", "bitwise_or(x, y)", "The bits set in either.", &binary<lax::bitwise_or>),
    function("lax", "bitwise_xor(x, y)", "The bits set in exactly one.", &binary<lax::bitwise_xor>),
    function("lax", "shift_left(x, y)", "The bits of x moved up by y places.",
             &binary<lax::shift_left>),
    function("lax", "shift_right_arithmetic(x, y)",
             "The bits of x moved down by y places, the sign copied.",
             &binary<lax::shift_right_arithmetic>),
    function("lax", "shift_right_logical(x, y)",
             "The bits of x moved down by y places, zeros brought in.",
             &binary<lax::shift_right_logical>),
    function("lax", "mulhi(x, y)", "The upper half of the product of integers, in their dtype.",
             &binary<lax::mulhi>),
    function("lax", "eq(x, y)", "x == y, as bool.", &binary<lax::eq>),
    function("lax", "ne(x, y)", "x != y, as bool.", &binary<lax::ne>),
    function("lax", "lt(x, y)", "x < y, as bool.", &binary<lax::lt>),
    function("lax", "le(x, y)", "x <= y, as bool.", &binary<lax::le>),
    function("lax", "gt(x, y)", "x > y, as bool.", &binary<lax::gt>),
    function("lax", "ge(x, y)", "x >= y, as bool.", &binary<lax::ge>),
    function("lax", "clamp(min, x, max)", "x between min and max, scalars or of x's shape.",
             &lax::clamp),
    function("lax", "select(pred, on_true, on_false)",
             "on_true where pred, bool, is true; on_false elsewhere.", &select),
    function("lax", "select_n(which, *cases)",
             "cases[which], element by element, for a bool or int32 array.", &lax::select_n),
};

}  // namespace
}  // namespace plait
