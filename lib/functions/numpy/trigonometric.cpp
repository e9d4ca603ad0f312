// plait.numpy: trigonometry, hyperbolic functions, and others with stated derivatives.
//
// Each is a composite: a body of primitives, accurate over the whole range, and the textbook form
// of its derivative. Differentiating the body would lead to cancellation or 0 * inf.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "functions/float_layout.h"
#include "functions/numpy/complex.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using Unary = Array (*)(const Array& x);
using UnaryPartial = Array (*)(const Array& x, const Array& y);  // dy/dx

const Composite& define_unary(const char* symbol, const char* doc, Unary body,
                              UnaryPartial partial) {
  return define_composite(
      {symbol, doc, [=](std::span<const Array> x, const Params&) { return Arrays{body(x[0])}; },
       [=](std::span<const Array> x, const Params&) {
         const Array y = body(x[0]);
         return Arrays{y, lax::mul(x[1], partial(x[0], y))};
       }});
}

Array one(const Array& like) { return constant(1, like); }
Array select_like(const Array& pred, double value, const Array& x) {
  return lax::select(pred, filled(value, x), x);
}

// --- Circular functions --------------------------------------------------------------------------

const Composite& tan_composite = define_unary(
    "tan", "The tangent: sin x / cos x.",
    [](const Array& x) { return lax::div(lax::sin(x), lax::cos(x)); },
    [](const Array& x, const Array& y) { return lax::add(one(x), lax::mul(y, y)); });  // 1 + tan^2

// sqrt(1 - x^2), factored so that nothing cancels near 1.
Array opposite(const Array& x) {
  return lax::sqrt(lax::mul(lax::sub(one(x), x), lax::add(one(x), x)));
}

const Composite& arcsin_composite = define_unary(
    "arcsin", "The inverse sine: atan2(x, sqrt(1 - x^2)).",
    [](const Array& x) { return lax::atan2(x, opposite(x)); },
    [](const Array& x, const Array&) { return lax::div(one(x), opposite(x)); });
const Composite& arccos_composite = define_unary(
    "arccos", "The inverse cosine: atan2(sqrt(1 - x^2), x).",
    [](const Array& x) { return lax::atan2(opposite(x), x); },
    [](const Array& x, const Array&) { return lax::div(constant(-1, x), opposite(x)); });
const Composite& arctan_composite = define_unary(
    "arctan", "The inverse tangent: atan2(x, 1).",
    [](const Array& x) { return lax::atan2(x, one(x)); },
    [](const Array& x, const Array&) {
      return lax::div(one(x), lax::add(one(x), lax::mul(x, x)));
    });

// --- Hyperbolic functions ------------------------------------------------------------------------

// Half of exp(x) as a product of square roots, which overflows only where the result does.
Array half_exp(const Array& x) {
  const Array root = lax::exp(lax::mul(constant(0.5, x), x));
  return lax::mul(lax::mul(constant(0.5, x), root), root);
}
// With e = expm1(x): (e + e / (e + 1)) / 2, exact near 0.
Array sinh_of(const Array& x) {
  const Array is_large = lax::gt(lax::abs(x), one(x)), e = lax::expm1(select_like(is_large, 0, x));
  const Array small = lax::mul(constant(0.5, x), lax::add(e, lax::div(e, lax::add(e, one(x)))));
  return lax::select(is_large, lax::sub(half_exp(x), half_exp(lax::neg(x))), small);
}
Array cosh_of(const Array& x) { return lax::add(half_exp(x), half_exp(lax::neg(x))); }
const Composite& sinh_composite =
    define_unary("sinh", "The hyperbolic sine.", sinh_of,
                 [](const Array& x, const Array&) { return cosh_of(x); });
const Composite& cosh_composite =
    define_unary("cosh", "The hyperbolic cosine: (exp x + exp -x) / 2.", cosh_of,
                 [](const Array& x, const Array&) { return sinh_of(x); });

// arcsinh |x| = log1p(|x| + x^2 / (1 + sqrt(1 + x^2))); for large |x| log(2 |x|).
Array arcsinh_of(const Array& x) {
  const Array size = lax::abs(x);
  const Array is_large = lax::gt(size, constant(size_of(x.dtype()) == 8 ? 1e8 : 1e4, x));
  const Array bounded = select_like(is_large, 1, size), square = lax::mul(bounded, bounded);
  const Array root = lax::sqrt(lax::add(one(x), square));
  const Array small = lax::log1p(lax::add(bounded, lax::div(square, lax::add(one(x), root))));
  const Array large = lax::add(lax::log(size), constant(M_LN2, x));
  const Array y = lax::select(is_large, large, small);
  return lax::select(lax::lt(x, constant(0, x)), lax::neg(y),
                     lax::select(lax::eq(x, constant(0, x)), x, y));
}
Array hypotenuse_of_one(const Array& x) {  // sqrt(1 + x^2)
  const Array size = lax::abs(x),
              large = lax::gt(size, constant(size_of(x.dtype()) == 8 ? 1e8 : 1e4, x));
  const Array bounded = select_like(large, 1, x);
  return lax::select(large, size, lax::sqrt(lax::add(one(x), lax::mul(bounded, bounded))));
}
const Composite& arcsinh_composite = define_unary(
    "arcsinh", "The inverse hyperbolic sine.", arcsinh_of,
    [](const Array& x, const Array&) { return lax::div(one(x), hypotenuse_of_one(x)); });

// arccosh x = log1p(t + sqrt(t (t + 2))) with t = x - 1; for large x log(2 x).
Array arccosh_of(const Array& x) {
  const Array is_large = lax::gt(x, constant(size_of(x.dtype()) == 8 ? 1e8 : 1e4, x));
  const Array t = lax::sub(select_like(is_large, 1, x), one(x));
  const Array small = lax::log1p(lax::add(t, lax::sqrt(lax::mul(t, lax::add(t, constant(2, x))))));
  const Array y = lax::select(is_large, lax::add(lax::log(x), constant(M_LN2, x)), small);
  return lax::select(lax::lt(x, one(x)), filled(NAN, x), y);
}
const Composite& arccosh_composite =
    define_unary("arccosh", "The inverse hyperbolic cosine: NaN below 1.", arccosh_of,
                 [](const Array& x, const Array&) {
                   return lax::div(lax::div(one(x), lax::sqrt(lax::sub(x, one(x)))),
                                   lax::sqrt(lax::add(x, one(x))));
                 });
const Composite& arctanh_composite = define_unary(
    "arctanh", "The inverse hyperbolic tangent: (log(1 + x) - log(1 - x)) / 2.",
    [](const Array& x) {
      return lax::mul(constant(0.5, x), lax::sub(lax::log1p(x), lax::log1p(lax::neg(x))));
    },
    [](const Array& x, const Array&) {
      return lax::div(one(x), lax::mul(lax::sub(one(x), x), lax::add(one(x), x)));
    });

// --- Others --------------------------------------------------------------------------------------

// A third of a float's bits, a geometric series in shifts, is the logarithm of its cube root but
// for the bias, and 5 % of the root or less. Halley's steps triple the digits, Newton's double
// them; the last one finds no error in the roots of cubes.
Array cbrt_of(const Array& x) {
  if (size_of(x.dtype()) == 2) return astype(cbrt_of(astype(x, DType::float32)), x.dtype());
  const FloatLayout layout = layout_of(x.dtype());
  const auto shifted = [&](const Array& bits, int count) {
    return lax::shift_right_logical(bits, Array::literal(count, layout.word));
  };
  const Array size = lax::abs(x);
  // A number near the subnormal ones is scaled by 2^(3 k).
  const int scale = layout.fraction / 3 + 1;
  const Array is_small = lax::lt(size, constant(std::ldexp(1.0, 4 - layout.bias), size));
  const Array lifted = lax::mul(size, constant(std::ldexp(1.0, 3 * scale), size));
  const Array y = lax::select(is_small, lifted, size);
  const Array quarter = constant(0.25, y), fourth = lax::mul(y, quarter);  // no sum overflows
  const Array bits = lax::bitcast_convert_type(y, layout.word);
  Array third = lax::add(shifted(bits, 2), shifted(bits, 4));
  third = lax::add(third, shifted(third, 4));
  third = lax::add(third, shifted(third, 8));
  const double bias = (layout.bias * 2.0 / 3 - 0.03306235651) * std::ldexp(1.0, layout.fraction);
  const Array moved = lax::add(third, Array::literal(std::floor(bias), layout.word));
  Array root = lax::convert_element_type(lax::bitcast_convert_type(moved, x.dtype()), x.dtype(),
                                         x.aval().weak);
  for (int step = 0; step < (size_of(x.dtype()) == 8 ? 2 : 1); ++step) {
    const Array cube = lax::mul(lax::mul(root, root), lax::mul(root, quarter));
    root = lax::mul(root, lax::div(lax::add(cube, lax::add(fourth, fourth)),
                                   lax::add(lax::add(cube, cube), fourth)));
  }
  for (int step = 0; step < 2; ++step) {
    const Array square = lax::mul(root, root);
    const Array error = lax::sub(lax::mul(square, lax::mul(root, quarter)), fourth);
    root = lax::sub(root, lax::div(error, lax::mul(constant(0.75, square), square)));
  }
  root = lax::select(is_small, lax::mul(root, constant(std::ldexp(1.0, -scale), root)), root);
  const Array is_ordinary =
      lax::bitwise_and(lax::gt(size, constant(0, x)), lax::lt(size, constant(INFINITY, x)));
  return lax::select(is_ordinary, lax::select(lax::lt(x, constant(0, x)), lax::neg(root), root), x);
}
const Composite& cbrt_composite =
    define_unary("cbrt", "The cube root.", cbrt_of, [](const Array& x, const Array& y) {
      return lax::div(one(x), lax::mul(constant(3, x), lax::mul(y, y)));  // 1 / (3 y^2)
    });

// 2^x = 2^n exp((x - n) ln 2) for n near x, exact where x is whole. Two factors make 2^n: each is a
// float, and only the last product is rounded to a subnormal number.
Array exp2_of(const Array& x) {
  if (size_of(x.dtype()) == 2) return astype(exp2_of(astype(x, DType::float32)), x.dtype());
  const FloatLayout layout = layout_of(x.dtype());
  const double most = layout.bias + 2, least = -(layout.bias + layout.fraction + 2);
  const Array bounded = lax::min(lax::max(x, constant(least, x)), constant(most, x));
  const Array whole = lax::round(bounded);
  const Array part = lax::exp(lax::mul(lax::sub(bounded, whole), constant(M_LN2, x)));
  const auto power = [&](const Array& n) {
    const Array biased = lax::add(n, Array::literal(layout.bias, layout.word));
    const Array bits = lax::shift_left(biased, Array::literal(layout.fraction, layout.word));
    return lax::convert_element_type(lax::bitcast_convert_type(bits, x.dtype()), x.dtype(),
                                     x.aval().weak);
  };
  const Array n = lax::convert_element_type(whole, layout.word);
  const Array half = lax::shift_right_arithmetic(n, Array::literal(1, layout.word));
  return lax::mul(lax::mul(part, power(half)), power(lax::sub(n, half)));
}
const Composite& exp2_composite =
    define_unary("exp2", "2 to the power x.", exp2_of,
                 [](const Array& x, const Array& y) { return lax::mul(constant(M_LN2, x), y); });

// sqrt(x^2 + y^2) without overflow: the larger one times sqrt(1 + ratio^2).
Array hypot_of(const Array& x, const Array& y) {
  const Array a = lax::abs(x), b = lax::abs(y), infinity = constant(INFINITY, a);
  const Array large = lax::max(a, b), small = lax::min(a, b),
              zero = lax::eq(large, constant(0, large));
  const Array ratio = lax::div(small, select_like(zero, 1, large));
  const Array h = lax::mul(large, lax::sqrt(lax::add(one(ratio), lax::mul(ratio, ratio))));
  const Array infinite = lax::bitwise_or(lax::eq(a, infinity), lax::eq(b, infinity));
  return lax::select(infinite, filled(INFINITY, h), h);
}
const Composite& hypot_composite = define_composite(
    {"hypot", "sqrt(x^2 + y^2) without overflow; inf where either is infinite.",
     [](std::span<const Array> x, const Params&) { return Arrays{hypot_of(x[0], x[1])}; },
     [](std::span<const Array> x, const Params&) {  // (x dx + y dy) / h, 0 at 0
       const Array h = hypot_of(x[0], x[1]), safe = select_like(lax::eq(h, constant(0, h)), 1, h);
       const Array t =
           lax::add(lax::mul(lax::div(x[0], safe), x[2]), lax::mul(lax::div(x[1], safe), x[3]));
       return Arrays{h, t};
     }});

// The weight of an operand in log(exp x + exp y): exp(x - result), also for infinite results.
Array logaddexp_weight(const Array& x, const Array& other, const Array& result) {
  const Array wins = lax::eq(x, result), shares = lax::eq(other, result);
  const Array share = lax::select(shares, filled(0.5, result), filled(1, result));
  return lax::select(wins, share, lax::exp(lax::sub(x, result)));
}
Array logaddexp_of(const Array& x, const Array& y) {
  const Array difference = lax::sub(x, y),
              same = lax::ne(difference, difference);  // inf - inf, or NaN
  // Maximum and absolute value by select, so that derivatives of every order are correct where x is
  // y.
  const Array below = lax::lt(difference, constant(0, difference));
  const Array smaller = lax::exp(lax::select(below, difference, lax::neg(difference)));
  const Array sum = lax::add(lax::select(below, plait::broadcast_to(y, below.shape()),
                                         plait::broadcast_to(x, below.shape())),
                             lax::log1p(smaller));
  return lax::select(same, lax::add(x, y), sum);
}
const Composite& logaddexp_composite = define_composite(
    {"logaddexp", "log(exp x + exp y) without overflow.",
     [](std::span<const Array> x, const Params&) { return Arrays{logaddexp_of(x[0], x[1])}; },
     [](std::span<const Array> x, const Params&) {
       const Array y = logaddexp_of(x[0], x[1]);
       const Array t = lax::add(lax::mul(x[2], logaddexp_weight(x[0], x[1], y)),
                                lax::mul(x[3], logaddexp_weight(x[1], x[0], y)));
       return Arrays{y, t};
     }});

Array unary(const Composite& c, const Array& x) {
  return composite(c, {floating_only(c.symbol, x)});
}

}  // namespace

Array numpy::sin(Operand x) { return lax::sin(to_inexact(x)); }
Array numpy::cos(Operand x) { return lax::cos(to_inexact(x)); }
Array numpy::tan(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_tan>("tan", x)
                               : composite(tan_composite, {to_inexact(x)});
}
Array numpy::arcsin(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arcsin>("arcsin", x)
                               : unary(arcsin_composite, x);
}
Array numpy::arccos(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arccos>("arccos", x)
                               : unary(arccos_composite, x);
}
Array numpy::arctan(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arctan>("arctan", x)
                               : unary(arctan_composite, x);
}
Array numpy::arctan2(Operand x1, Operand x2) {
  return bind(atan2_p, promoted_inexact("arctan2", {x1, x2}));
}
Array numpy::sinh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_sinh>("sinh", x) : unary(sinh_composite, x);
}
Array numpy::cosh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_cosh>("cosh", x) : unary(cosh_composite, x);
}
Array numpy::tanh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_tanh>("tanh", x) : lax::tanh(to_inexact(x));
}
Array numpy::arcsinh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arcsinh>("arcsinh", x)
                               : unary(arcsinh_composite, x);
}
Array numpy::arccosh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arccosh>("arccosh", x)
                               : unary(arccosh_composite, x);
}
Array numpy::arctanh(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_arctanh>("arctanh", x)
                               : unary(arctanh_composite, x);
}
Array numpy::asin(Operand x) { return arcsin(x); }
Array numpy::acos(Operand x) { return arccos(x); }
Array numpy::atan(Operand x) { return arctan(x); }
Array numpy::atan2(Operand x1, Operand x2) { return arctan2(x1, x2); }
Array numpy::asinh(Operand x) { return arcsinh(x); }
Array numpy::acosh(Operand x) { return arccosh(x); }
Array numpy::atanh(Operand x) { return arctanh(x); }
Array numpy::exp2(Operand x) {
  const Array y = to_inexact(x);
  return is_complex(y.dtype()) ? lax::pow(constant(2, y), y) : composite(exp2_composite, {y});
}
Array numpy::cbrt(Operand x) { return unary(cbrt_composite, x); }
Array numpy::hypot(Operand x1, Operand x2) {
  const Arrays x = promoted_inexact("hypot", {x1, x2});
  floating_only("hypot", x[0]);
  return composite(hypot_composite, x);
}
Array numpy::logaddexp(Operand x1, Operand x2) {
  const Arrays x = promoted_inexact("logaddexp", {x1, x2});
  if (is_complex(x[0].dtype())) return complex_logaddexp(x[0], x[1]);
  return composite(logaddexp_composite, x);
}
Array numpy::logaddexp2(Operand x1, Operand x2) {
  const Arrays x = promoted_inexact("logaddexp2", {x1, x2});
  return in_one_program("logaddexp2", x, [](std::span<const Array> x) {
    const Array y =
        logaddexp(lax::mul(x[0], constant(M_LN2, x[0])), lax::mul(x[1], constant(M_LN2, x[1])));
    return Arrays{lax::div(y, constant(M_LN2, y))};
  });
}

namespace {
Array sinc_of(const Array& x) {
  const Array y = lax::mul(x, constant(M_PI, x));
  const Array zero = lax::eq(y, constant(0, y)), safe = select_like(zero, 1, y);
  // The series 1 - y^2 / 3! + y^4 / 5! - ..., which gives the derivatives at 0 up to the seventh.
  // It is restricted to y near 0, because it would overflow elsewhere.
  const Array near = lax::select(zero, y, lax::zeros_like(y.aval())), square = lax::mul(near, near);
  Array series = constant(1, y);
  for (const double divisor : {42, 20, 6}) {
    const Array term = lax::mul(lax::mul(square, series), constant(1 / divisor, y));
    series = lax::sub(constant(1, y), term);
  }
  return lax::select(zero, series, lax::div(lax::sin(safe), safe));
}
}  // namespace

Array numpy::sinc(Operand x) {
  return in_one_program("sinc", Arrays{to_inexact(x)},
                        [](std::span<const Array> x) { return Arrays{sinc_of(x[0])}; });
}
Array numpy::degrees(Operand x) {
  const Array y = floating_only("degrees", x);
  return lax::mul(y, constant(180 / M_PI, y));
}
Array numpy::radians(Operand x) {
  const Array y = floating_only("radians", x);
  return lax::mul(y, constant(M_PI / 180, y));
}
Array numpy::rad2deg(Operand x) { return degrees(x); }
Array numpy::deg2rad(Operand x) { return radians(x); }

namespace {

[[maybe_unused]] const FunctionInfo* const trigonometric_functions[] = {
    function("numpy", "sin(x)", "The sine of x in radians.", &numpy::sin),
    function("numpy", "cos(x)", "The cosine of x in radians.", &numpy::cos),
    function("numpy", "tan(x)", "The tangent of x in radians: sin x / cos x.", &numpy::tan),
    function("numpy", "arcsin(x)",
             "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].", &numpy::arcsin),
    function("numpy", "arccos(x)", "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].",
             &numpy::arccos),
    function("numpy", "arctan(x)", "The angle in [-pi/2, pi/2] whose tangent is x.",
             &numpy::arctan),
    function("numpy", "arctan2(x1, x2)", "The angle of the point (x2, x1), in [-pi, pi].",
             &numpy::arctan2),
    function("numpy", "sinh(x)", "The hyperbolic sine, exact near 0.", &numpy::sinh),
    function("numpy", "cosh(x)", "The hyperbolic cosine of each element.", &numpy::cosh),
    function("numpy", "tanh(x)", "The hyperbolic tangent of each element.", &numpy::tanh),
    function("numpy", "arcsinh(x)", "The inverse of sinh, exact near 0.", &numpy::arcsinh),
    function("numpy", "arccosh(x)", "The inverse of cosh on [1, inf); NaN below.", &numpy::arccosh),
    function("numpy", "arctanh(x)", "The inverse of tanh on [-1, 1]; NaN outside.",
             &numpy::arctanh),
    function("numpy", "asin(x)", "The same as arcsin.", &numpy::asin),
    function("numpy", "acos(x)", "The same as arccos.", &numpy::acos),
    function("numpy", "atan(x)", "The same as arctan.", &numpy::atan),
    function("numpy", "atan2(x1, x2)", "The same as arctan2.", &numpy::atan2),
    function("numpy", "asinh(x)", "The same as arcsinh.", &numpy::asinh),
    function("numpy", "acosh(x)", "The same as arccosh.", &numpy::acosh),
    function("numpy", "atanh(x)", "The same as arctanh.", &numpy::atanh),
    function("numpy", "cbrt(x)", "The real cube root, exact for cubes.", &numpy::cbrt),
    function("numpy", "hypot(x1, x2)",
             "sqrt(x1**2 + x2**2) without overflow; inf where either is infinite.", &numpy::hypot),
    function("numpy", "logaddexp(x1, x2)", "log(exp(x1) + exp(x2)) without overflow.",
             &numpy::logaddexp),
    function("numpy", "logaddexp2(x1, x2)", "log2(2**x1 + 2**x2) without overflow.",
             &numpy::logaddexp2),
    function("numpy", "sinc(x)", "sin(pi x) / (pi x), and 1 at 0.", &numpy::sinc),
    function("numpy", "degrees(x)", "Angles in radians as degrees.", &numpy::degrees),
    function("numpy", "radians(x)", "Angles in degrees as radians.", &numpy::radians),
    function("numpy", "rad2deg(x)", "The same as degrees.", &numpy::rad2deg),
    function("numpy", "deg2rad(x)", "The same as radians.", &numpy::deg2rad),
};

}  // namespace
}  // namespace plait
