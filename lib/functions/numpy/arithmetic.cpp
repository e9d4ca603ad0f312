// plait.numpy: arithmetic, rounding, exponentials and logarithms, complex parts.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "functions/numpy/complex.h"
#include "functions/one_program.h"
#include "primitives/conjugate.h"

namespace plait {
using namespace functions;  // NOLINT

// --- Arithmetic ----------------------------------------------------------------------------------

Array numpy::add(Operand x1, Operand x2) { return x1 + x2; }
Array numpy::subtract(Operand x1, Operand x2) { return x1 - x2; }
Array numpy::multiply(Operand x1, Operand x2) { return x1 * x2; }
Array numpy::divide(Operand x1, Operand x2) { return x1 / x2; }
Array numpy::true_divide(Operand x1, Operand x2) { return x1 / x2; }

namespace {

// Arithmetic of bools is that of small integers.
Arrays promoted_numbers(std::string_view function, const Operand& x1, const Operand& x2) {
  Arrays x = promoted(function, {x1, x2});
  for (Array& array : x)
    if (is_bool(array.dtype())) array = astype(array, default_int());
  return x;
}

// Where a truncating division leaves a remainder with another sign than the divisor's.
Array needs_adjustment(const Array& r, const Array& y) {
  const Array zero = constant(0, r);
  const Array nonzero = lax::ne(r, zero);
  if (is_unsigned_integer(r.dtype())) return lax::ne(r, r);
  return lax::bitwise_and(nonzero, lax::ne(lax::lt(r, zero), lax::lt(y, constant(0, y))));
}

Array full_shape(const Array& x, const Array& like) {
  return x.ndim() == 0 ? plait::broadcast_to(x, like.shape()) : x;
}

Array remainder_of(const Array& x, const Array& y) {
  const Array r = lax::rem(x, y);
  if (is_unsigned_integer(r.dtype())) return r;
  const Array whole = lax::select(needs_adjustment(r, y), lax::add(r, y), r);
  if (is_integer(r.dtype())) return whole;
  // A zero has the sign of the divisor: r + 0 is never -0, and -(-r + 0) never +0.
  const Array zero = constant(0, r);
  return lax::select(lax::lt(y, constant(0, y)), lax::neg(lax::add(lax::neg(whole), zero)),
                     lax::add(whole, zero));
}

Array floor_divide_of(const Array& x, const Array& y) {
  if (is_unsigned_integer(x.dtype())) return lax::div(x, y);
  const Array r = lax::rem(x, y), quotient = lax::div(x, y);
  if (is_integer(x.dtype())) {
    const Array adjust = lax::bitwise_and(needs_adjustment(r, y), lax::ne(y, constant(0, y)));
    return lax::select(adjust, lax::sub(quotient, constant(1, quotient)), quotient);
  }
  // As in NumPy: x less the remainder divides exactly except for rounding, and the quotient is
  // rounded to an integer, so it cannot be off by one; a zero that is no special case is +0.
  // Infinities and zeros follow the array-API standard: the quotient, with its sign.
  const Array whole = lax::div(lax::sub(x, r), y);
  const Array adjusted =
      lax::select(needs_adjustment(r, y), lax::sub(whole, constant(1, whole)), whole);
  auto is_special = [](const Array& a) {
    return lax::bitwise_or(lax::eq(lax::abs(a), constant(INFINITY, a)), lax::eq(a, constant(0, a)));
  };
  const Array rounded = lax::add(lax::round(adjusted), constant(0, adjusted));
  return lax::select(lax::bitwise_or(is_special(x), is_special(y)), quotient, rounded);
}

}  // namespace

Array numpy::floor_divide(Operand x1, Operand x2) {
  const Arrays x = promoted_numbers("floor_divide", x1, x2);
  require_dtype("floor_divide", x[0].aval(), real_numbers);
  return in_one_program("floor_divide", x, [](std::span<const Array> x) {
    return Arrays{floor_divide_of(x[0], x[1])};
  });
}

Array numpy::remainder(Operand x1, Operand x2) {
  const Arrays x = promoted_numbers("remainder", x1, x2);
  require_dtype("remainder", x[0].aval(), real_numbers);
  return in_one_program("remainder", x,
                        [](std::span<const Array> x) { return Arrays{remainder_of(x[0], x[1])}; });
}
Array numpy::mod(Operand x1, Operand x2) { return remainder(x1, x2); }

Array numpy::fmod(Operand x1, Operand x2) {
  const Arrays x = promoted_numbers("fmod", x1, x2);
  require_dtype("fmod", x[0].aval(), real_numbers);
  return bind(rem_p, x);
}

std::pair<Array, Array> numpy::divmod(Operand x1, Operand x2) {
  return {floor_divide(x1, x2), remainder(x1, x2)};
}

Array numpy::power(Operand x1, Operand x2) {
  // A constant integer exponent: repeated multiplication, which is exact, and so is its derivative.
  if (const std::optional<Literal> y = x2.as_literal(); y && y->weak && is_integer(y->dtype)) {
    const std::int64_t n = y->integer;
    const Array x = is_bool(x1.dtype()) ? astype(x1, default_int()) : Array(x1);
    if (is_inexact(x.dtype()) ? n >= -1024 && n <= 1024 : n >= 0) return lax::integer_pow(x, n);
    if (is_integer(x.dtype()))
      throw ValueError(
          "power: integers have no negative powers, and the exponent is " + std::to_string(n),
          "convert the base to float first");
  }
  return bind(pow_p, promoted_numbers("power", x1, x2));
}
Array numpy::pow(Operand x1, Operand x2) { return power(x1, x2); }

Array numpy::float_power(Operand x1, Operand x2) {
  Arrays x = promoted("float_power", {x1, x2});
  const DType dtype = is_complex(x[0].dtype()) ? DType::complex128 : DType::float64;
  return lax::pow(astype(x[0], dtype), astype(x[1], dtype));
}

namespace {
Array extreme_of_two(const Primitive& primitive, std::string_view name, const Operand& x1,
                     const Operand& x2) {
  const Arrays x = promoted(name, {x1, x2});
  return is_complex(x[0].dtype()) ? complex_extreme(x[0], x[1], &primitive == &max_p)
                                  : bind(primitive, x);
}
}  // namespace

Array numpy::maximum(Operand x1, Operand x2) { return extreme_of_two(max_p, "maximum", x1, x2); }
Array numpy::minimum(Operand x1, Operand x2) { return extreme_of_two(min_p, "minimum", x1, x2); }

namespace {
Array ignoring_nan(const Primitive& primitive, std::string_view name, const Operand& x1,
                   const Operand& x2) {
  const Arrays numbers = promoted(name, {x1, x2});
  if (!is_floating(numbers[0].dtype())) return bind(primitive, numbers);
  return in_one_program(name, numbers, [&](std::span<const Array> x) {
    const Array result = bind(primitive, {x[0], x[1]});
    auto nan = [&](const Array& a) { return full_shape(lax::ne(a, a), result); };
    const Array y = full_shape(x[1], result), z = full_shape(x[0], result);
    return Arrays{lax::select(nan(x[0]), y, lax::select(nan(x[1]), z, result))};
  });
}
}  // namespace
Array numpy::fmax(Operand x1, Operand x2) { return ignoring_nan(max_p, "fmax", x1, x2); }
Array numpy::fmin(Operand x1, Operand x2) { return ignoring_nan(min_p, "fmin", x1, x2); }

Array numpy::negative(Operand x) { return lax::neg(x); }
Array numpy::positive(Operand x) { return x; }
Array numpy::abs(Operand x) { return is_bool(x.dtype()) ? Array(x) : lax::abs(x); }
Array numpy::absolute(Operand x) { return abs(x); }
Array numpy::fabs(Operand x) { return lax::abs(floating_only("fabs", x)); }

namespace {
Array sign_of(const Array& x) {
  const Array zero = constant(0, x);
  if (is_complex(x.dtype())) {  // x / |x|
    const Array size = lax::abs(x), one = constant(1, size);
    const Array zero_size = lax::eq(size, constant(0, size));
    const Array safe = lax::select(zero_size, plait::broadcast_to(one, x.shape()), size);
    return lax::select(zero_size, filled(0, x), lax::div(x, astype(safe, x.dtype())));
  }
  if (is_unsigned_integer(x.dtype()))
    return lax::convert_element_type(lax::ne(x, zero), x.dtype(), x.aval().weak);
  auto number = [&](const Array& flag) {
    return lax::convert_element_type(flag, x.dtype(), x.aval().weak);
  };
  const Array difference = lax::sub(number(lax::gt(x, zero)), number(lax::lt(x, zero)));
  return is_floating(x.dtype()) ? lax::select(lax::ne(x, x), filled(NAN, x), difference)
                                : difference;
}
}  // namespace

Array numpy::sign(Operand x) {
  if (is_bool(x.dtype())) return x;
  return in_one_program("sign", Arrays{x},
                        [](std::span<const Array> x) { return Arrays{sign_of(x[0])}; });
}

Array numpy::square(Operand x) { return power(x, 2); }
Array numpy::reciprocal(Operand x) {
  const Array y = to_inexact(x);
  return lax::div(constant(1, y), y);
}

Array numpy::clip(Operand a, const OptionalArray& min, const OptionalArray& max) {
  if (min && max && min->ndim() == 0 && max->ndim() == 0) {
    const Arrays x = promoted("clip", {a, *min, *max});
    return few_in_one_program("clip", x, [](std::span<const Array> x) {
      return Arrays{bind(min_p, {bind(max_p, {x[0], x[1]}), x[2]})};
    });
  }
  Array result = a;
  if (min) result = maximum(result, *min);
  if (max) result = minimum(result, *max);
  return result;
}

namespace {
Array heaviside_of(const Array& x, const Array& at_zero) {
  const Array zero = constant(0, x);
  const Array step = lax::convert_element_type(lax::gt(x, zero), x.dtype(), x.aval().weak);
  const Array number =
      lax::select(lax::eq(x, zero), full_shape(at_zero, x), full_shape(step, at_zero));
  return lax::select(lax::ne(x, x), full_shape(x, at_zero), number);
}
}  // namespace

Array numpy::heaviside(Operand x1, Operand x2) {
  return in_one_program("heaviside", promoted_inexact("heaviside", {x1, x2}),
                        [](std::span<const Array> x) { return Arrays{heaviside_of(x[0], x[1])}; });
}

Array numpy::nan_to_num(Operand x, double nan, const std::optional<double>& posinf,
                        const std::optional<double>& neginf) {
  if (!is_inexact(x.dtype())) return x;
  if (is_complex(x.dtype()))
    return lax::complex(nan_to_num(lax::real(x), nan, posinf, neginf),
                        nan_to_num(lax::imag(x), nan, posinf, neginf));
  auto like_x = [&](const Array& number) { return plait::broadcast_to(number, x.shape()); };
  const Array most =
      posinf ? constant(*posinf, x)
             : lax::convert_element_type(largest_finite(x.dtype()), x.dtype(), x.aval().weak);
  const Array least =
      neginf ? constant(*neginf, x)
             : lax::convert_element_type(lowest_finite(x.dtype()), x.dtype(), x.aval().weak);
  Array result = lax::select(lax::ne(x, x), like_x(constant(nan, x)), x);
  result = lax::select(lax::eq(x, constant(INFINITY, x)), like_x(most), result);
  return lax::select(lax::eq(x, constant(-INFINITY, x)), like_x(least), result);
}

// --- Rounding ------------------------------------------------------------------------------------

namespace {
Array rounded(const Primitive& primitive, std::string_view name, const Array& x) {
  if (is_integer(x.dtype()) || is_bool(x.dtype())) return x;
  return bind(primitive, {floating_only(name, x)});
}
}  // namespace
Array numpy::floor(Operand x) { return rounded(floor_p, "floor", x); }
Array numpy::ceil(Operand x) { return rounded(ceil_p, "ceil", x); }
Array numpy::trunc(Operand x) {
  if (!is_inexact(x.dtype())) return x;
  return in_one_program("trunc", Arrays{floating_only("trunc", x)}, [](std::span<const Array> x) {
    return Arrays{lax::select(lax::lt(x[0], constant(0, x[0])), lax::ceil(x[0]), lax::floor(x[0]))};
  });
}
Array numpy::fix(Operand x) { return trunc(x); }
Array numpy::rint(Operand x) {
  const Array y = to_inexact(x);
  return is_complex(y.dtype()) ? lax::complex(lax::round(lax::real(y)), lax::round(lax::imag(y)))
                               : lax::round(y);
}

Array numpy::round(Operand a, int decimals) {
  if (is_complex(a.dtype()))
    return lax::complex(round(lax::real(a), decimals), round(lax::imag(a), decimals));
  if (is_bool(a.dtype())) return a;
  if (is_integer(a.dtype())) {
    if (decimals >= 0) return a;
    const Array scaled = lax::div(astype(a, DType::float64),
                                  Array::literal(std::pow(10.0, -decimals), DType::float64));
    const Array whole =
        lax::mul(lax::round(scaled), Array::literal(std::pow(10.0, -decimals), DType::float64));
    return lax::convert_element_type(whole, a.dtype(), a.aval().weak);
  }
  if (decimals == 0) return lax::round(a);
  // 16-bit floats cannot represent useful powers of ten.
  if (size_of(a.dtype()) == 2) return astype(round(astype(a, DType::float32), decimals), a.dtype());
  const Array scale = constant(std::pow(10.0, std::abs(decimals)), a);
  if (decimals > 0) return lax::div(lax::round(lax::mul(a, scale)), scale);
  return lax::mul(lax::round(lax::div(a, scale)), scale);
}
Array numpy::around(Operand a, int decimals) { return round(a, decimals); }

// --- Exponentials and logarithms -----------------------------------------------------------------

Array numpy::exp(Operand x) { return lax::exp(to_inexact(x)); }
Array numpy::expm1(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_expm1>("expm1", x) : lax::expm1(to_inexact(x));
}
Array numpy::log(Operand x) { return lax::log(to_inexact(x)); }
Array numpy::log2(Operand x) {
  const Array y = to_inexact(x);
  return lax::div(lax::log(y), constant(M_LN2, y));
}
Array numpy::log10(Operand x) {
  const Array y = to_inexact(x);
  return lax::div(lax::log(y), constant(M_LN10, y));
}
Array numpy::log1p(Operand x) {
  return is_complex(x.dtype()) ? program_of<complex_log1p>("log1p", x) : lax::log1p(to_inexact(x));
}
Array numpy::sqrt(Operand x) { return lax::sqrt(to_inexact(x)); }

// --- Complex numbers -----------------------------------------------------------------------------

Array numpy::real(Operand val) { return is_complex(val.dtype()) ? lax::real(val) : Array(val); }
Array numpy::imag(Operand val) {
  return is_complex(val.dtype()) ? lax::imag(val) : lax::zeros_like(val.aval());
}
Array numpy::conj(Operand x) {
  if (!is_complex(x.dtype())) return x;
  return in_one_program("conj", Arrays{x},
                        [](std::span<const Array> z) { return Arrays{plait::conjugate(z[0])}; });
}
Array numpy::conjugate(Operand x) { return conj(x); }
Array numpy::angle(Operand z, bool deg) {
  const Array x = to_inexact(z);
  const Array radians =
      is_complex(x.dtype()) ? lax::atan2(lax::imag(x), lax::real(x)) : lax::atan2(filled(0, x), x);
  return deg ? degrees(radians) : radians;
}
Array numpy::isreal(Operand x) {
  if (!is_complex(x.dtype())) return plait::broadcast_to(Array(true), x.shape());
  const Array y = lax::imag(x);
  return lax::eq(y, constant(0, y));
}
Array numpy::iscomplex(Operand x) {
  if (!is_complex(x.dtype())) return plait::broadcast_to(Array(false), x.shape());
  return lax::bitwise_not(isreal(x));
}
bool numpy::isrealobj(Operand x) { return !is_complex(x.dtype()); }
bool numpy::iscomplexobj(Operand x) { return is_complex(x.dtype()); }

// --- Catalogue -----------------------------------------------------------------------------------

namespace {

[[maybe_unused]] const FunctionInfo* const arithmetic_functions[] = {
    function("numpy", "add(x1, x2)",
             "x1 + x2, element by element; of bools, or. Operands promote and broadcast.",
             &numpy::add),
    function("numpy", "subtract(x1, x2)", "x1 - x2, element by element. DtypeError for bools.",
             &numpy::subtract),
    function("numpy", "multiply(x1, x2)", "x1 * x2, element by element; of bools, and.",
             &numpy::multiply),
    function("numpy", "divide(x1, x2)",
             "x1 / x2, element by element; integers and bools are divided as float32.",
             &numpy::divide),
    function("numpy", "true_divide(x1, x2)", "The same as divide.", &numpy::true_divide),
    function("numpy", "floor_divide(x1, x2)",
             "The quotient rounded down. Integers: x // 0 is 0. Floats follow the array-API "
             "standard: an infinite x1 gives a signed infinity, where NumPy gives NaN, and an "
             "infinite x2 a signed zero, where NumPy gives -1 for numbers of unlike signs.",
             &numpy::floor_divide),
    function("numpy", "remainder(x1, x2)",
             "What floor_divide leaves: x1 - x2 * floor(x1 / x2), with the sign of x2.",
             &numpy::remainder),
    function("numpy", "mod(x1, x2)", "The same as remainder.", &numpy::mod),
    function("numpy", "fmod(x1, x2)",
             "The remainder of division rounded to zero, with the sign of x1, as in C.",
             &numpy::fmod),
    function("numpy", "divmod(x1, x2)", "The pair (floor_divide(x1, x2), remainder(x1, x2)).",
             &numpy::divmod),
    function("numpy", "power(x1, x2)",
             "x1 to the power x2. A Python integer as x2 is repeated multiplication; ValueError "
             "when it is negative and x1 an "
             "integer array.",
             &numpy::power),
    function("numpy", "pow(x1, x2)", "The same as power.", &numpy::pow),
    function("numpy", "float_power(x1, x2)", "x1 to the power x2 in float64 or complex128.",
             &numpy::float_power),
    function(
        "numpy", "maximum(x1, x2)",
        "The larger element of each pair; NaN where either is. Complex numbers are in the order "
        "of their real parts, then of their imaginary ones.",
        &numpy::maximum),
    function("numpy", "minimum(x1, x2)", "The smaller element of each pair, as maximum.",
             &numpy::minimum),
    function("numpy", "fmax(x1, x2)",
             "The larger element of each pair; the other one where one is NaN.", &numpy::fmax),
    function("numpy", "fmin(x1, x2)",
             "The smaller element of each pair; the other one where one is NaN.", &numpy::fmin),
    function("numpy", "negative(x)", "-x; of unsigned integers modulo 2**bits.", &numpy::negative),
    function("numpy", "positive(x)", "The numbers x as they are.", &numpy::positive),
    function("numpy", "abs(x)", "The absolute value; of complex numbers the magnitude, real.",
             &numpy::abs),
    function("numpy", "absolute(x)", "The same as abs.", &numpy::absolute),
    function("numpy", "fabs(x)", "The absolute value as a float. DtypeError for complex.",
             &numpy::fabs),
    function("numpy", "sign(x)",
             "-1, 0 or 1, and NaN where x is; of complex numbers x / |x|. Its derivative is 0.",
             &numpy::sign),
    function("numpy", "square(x)", "The square x * x of each element.", &numpy::square),
    function("numpy", "reciprocal(x)", "1 / x, as a float.", &numpy::reciprocal),
    function("numpy", "clip(a, min=None, max=None, out=None!)",
             "a between min and max, each an array, a number or None.", &numpy::clip),
    function("numpy", "heaviside(x1, x2)",
             "0 where x1 < 0, 1 where x1 > 0, x2 where it is 0, NaN where it is NaN.",
             &numpy::heaviside),
    function("numpy", "nan_to_num(x, copy=True!, nan=0.0, posinf=None, neginf=None)",
             "x with numbers for NaN and the infinities: by default 0 and the largest finite "
             "values of the dtype.",
             &numpy::nan_to_num),
    function("numpy", "floor(x)", "The largest integer not above x, in x's dtype; integers stay.",
             &numpy::floor),
    function("numpy", "ceil(x)", "The smallest integer not below x, in x's dtype; integers stay.",
             &numpy::ceil),
    function("numpy", "trunc(x)", "x without its fraction, in x's dtype; integers stay.",
             &numpy::trunc),
    function("numpy", "fix(x)", "The same as trunc.", &numpy::fix),
    function("numpy", "rint(x)", "The nearest integer as a float, halves to the even one.",
             &numpy::rint),
    function("numpy", "round(a, decimals=0, out=None!)",
             "a rounded to so many decimals, halves to the even one; negative: tens, hundreds.",
             &numpy::round),
    function("numpy", "around(a, decimals=0, out=None!)", "The same as round.", &numpy::around),
    function("numpy", "exp(x)", "The exponential e**x of each element.", &numpy::exp),
    function("numpy", "exp2(x)", "2 to the power x.", &numpy::exp2),
    function("numpy", "expm1(x)", "exp(x) - 1, exact near 0.", &numpy::expm1),
    function("numpy", "log(x)", "The natural logarithm: NaN below 0, -inf at 0.", &numpy::log),
    function("numpy", "log2(x)", "The logarithm to base 2.", &numpy::log2),
    function("numpy", "log10(x)", "The logarithm to base 10.", &numpy::log10),
    function("numpy", "log1p(x)", "log(1 + x), exact near 0.", &numpy::log1p),
    function("numpy", "sqrt(x)", "The square root: NaN below 0.", &numpy::sqrt),
    function("numpy", "real(val)", "The real part; real arrays as they are.", &numpy::real),
    function("numpy", "imag(val)", "The imaginary part; zeros for real arrays.", &numpy::imag),
    function("numpy", "conj(x)", "The complex conjugate; real arrays as they are.", &numpy::conj),
    function("numpy", "conjugate(x)", "The same as conj.", &numpy::conjugate),
    function("numpy", "angle(z, deg=False)",
             "The angle of a complex number, in (-pi, pi], or in degrees.", &numpy::angle),
    function("numpy", "isreal(x)", "Where the imaginary part is 0.", &numpy::isreal),
    function("numpy", "iscomplex(x)", "Where the imaginary part is not 0.", &numpy::iscomplex),
    function("numpy", "isrealobj(x)", "Whether the dtype of x is not complex.", &numpy::isrealobj),
    function("numpy", "iscomplexobj(x)", "Whether the dtype of x is complex.",
             &numpy::iscomplexobj),
};

}  // namespace
}  // namespace plait
