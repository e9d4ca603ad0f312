// Elementwise primitives of one operand: rounding, exponentials, trigonometry, special functions.
// One block each; complex derivatives follow JAX's convention (holomorphic jvp).
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/special.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/put.h>
#include <plait/rules/share.h>

#include "primitives/cost.h"
#include "primitives/elementwise/wrapping.h"
#include "primitives/spelling.h"

#include <cmath>

namespace plait {
namespace {

using Values = Sample::Input::Values;

Transpose::Rule transpose_to(std::function<Array(const Array& cotangent, const Aval& input)> rule) {
  return [=](std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
             const Params&) -> Tangents { return {rule(cotangents[0].array(), inputs[0].aval())}; };
}

}  // namespace

constinit const Primitive neg_p{"neg"};
static const auto neg_def =
    define(neg_p, "Negation; of unsigned integers modulo 2^bits.")
        .family(elementwise(numbers))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(unary_loops<numbers>([](auto x) { return -wrapping(x); }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(linear_through(neg_p))
        .rule<Transpose>(transpose_to([](const Array& ct, const Aval&) { return -ct; }));
Array lax::neg(Operand x) { return bind(neg_p, {x}); }

constinit const Primitive abs_p{"abs"};
static const auto abs_def =
    define(abs_p, "Absolute value; the magnitude of complex numbers, whose result is real.")
        .family(elementwise(numbers, 1, ResultType::real, Values::nonzero))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          auto real = [](auto x) {
            using T = decltype(x);
            if constexpr (std::is_unsigned_v<T>)
              return x;
            else if constexpr (std::is_integral_v<T>)
              return T(x < 0 ? T(-wrapping(x)) : x);
            else
              return math::abs(x);
          };
          auto magnitude = [](auto z) {  // the larger part times a root, which never overflows
            using T = typename decltype(z)::value_type;
            const T a = math::abs(z.real()), b = math::abs(z.imag());
            const T large = b <= a || a != a ? a : b, small = b >= a || a != a ? a : b;
            const T ratio = small / large, length = large * std::sqrt(T(1) + ratio * ratio);
            constexpr T infinity = std::numeric_limits<T>::infinity();
            return a == infinity || b == infinity ? infinity : large == T(0) ? large : length;
          };
          if (in[0] == DType::complex64)
            return {&detail::map_loop<decltype(magnitude), complex64, float>};
          if (in[0] == DType::complex128)
            return {&detail::map_loop<decltype(magnitude), complex128, double>};
          return unary_loops<real_numbers>(real)(in, {});
        })
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](std::span<const Array> primals, std::span<const Tangent> tangents,
                      std::span<const Array> outputs, const Params&) -> Tangents {
          const Array& x = primals[0];
          const Array& t = tangents[0].array();
          if (is_complex(x.dtype())) {  // d|z| = Re(conj(z) dz) / |z|, 0 at 0
            const Array zero = Array::literal(0, outputs[0].dtype()),
                        one = Array::literal(1, outputs[0].dtype());
            const Array at_zero = lax::eq(outputs[0], zero);
            const Array product = lax::real(x) * lax::real(t) + lax::imag(x) * lax::imag(t);
            return {Array(product /
                          lax::select(at_zero, broadcast_to(one, outputs[0].shape()), outputs[0]))};
          }
          // d|x| = sign(x) dx, 0 at 0 and NaN at NaN.
          const Array zero = lax::zeros_like(x.aval());
          const Array sign =
              lax::select(lax::gt(x, zero), broadcast_to(Array::literal(1, x.dtype()), x.shape()),
                          lax::select(lax::lt(x, zero),
                                      broadcast_to(Array::literal(-1, x.dtype()), x.shape()), x));
          return {Array(t * sign)};
        });
Array lax::abs(Operand x) { return bind(abs_p, {x}); }

constinit const Primitive floor_p{"floor"};
static const auto floor_def =
    define(floor_p, "The largest integer not above x.")
        .family(elementwise(floating, 1, ResultType::same, Values::open_unit))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::floor(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(zero_derivative());
Array lax::floor(Operand x) { return bind(floor_p, {x}); }

constinit const Primitive ceil_p{"ceil"};
static const auto ceil_def =
    define(ceil_p, "The smallest integer not below x.")
        .family(elementwise(floating, 1, ResultType::same, Values::open_unit))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::ceil(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(zero_derivative());
Array lax::ceil(Operand x) { return bind(ceil_p, {x}); }

constinit const Primitive round_p{"round"};
static const auto round_def =
    define(round_p, "The nearest integer; halves go to the even one.")
        .family(elementwise(floating, 1, ResultType::same, Values::open_unit))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::round(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(zero_derivative());
Array lax::round(Operand x) { return bind(round_p, {x}); }

constinit const Primitive exp_p{"exp"};
static const auto exp_def =
    define(exp_p, "The exponential.")
        .family(elementwise(inexact))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::exp(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto, auto y) { return y; }));  // d exp = exp dx
Array lax::exp(Operand x) { return bind(exp_p, {x}); }

constinit const Primitive expm1_p{"expm1"};
static const auto expm1_def =
    define(expm1_p, "exp(x) - 1, exact near 0.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::expm1(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto, auto y) { return y + 1.0; }));  // d expm1 = exp dx
Array lax::expm1(Operand x) { return bind(expm1_p, {x}); }

constinit const Primitive log_p{"log"};
static const auto log_def =
    define(log_p, "The natural logarithm.")
        .family(elementwise(inexact, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::log(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](auto primals, auto tangents, auto, const Params&) -> Tangents {
          return {Array(tangents[0].array() / primals[0])};  // d log = dx / x
        });
Array lax::log(Operand x) { return bind(log_p, {x}); }

constinit const Primitive log1p_p{"log1p"};
static const auto log1p_def =
    define(log1p_p, "log(1 + x), exact near 0.")
        .family(elementwise(floating, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::log1p(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](auto primals, auto tangents, auto, const Params&) -> Tangents {
          return {Array(tangents[0].array() / (primals[0] + 1.0))};
        });
Array lax::log1p(Operand x) { return bind(log1p_p, {x}); }

constinit const Primitive sqrt_p{"sqrt"};
static const auto sqrt_def =
    define(sqrt_p, "The principal square root.")
        .family(elementwise(inexact, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::sqrt(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](auto, auto tangents, auto outputs, const Params&) -> Tangents {
          return {Array(tangents[0].array() / (outputs[0] * 2.0))};  // d sqrt = dx / (2 sqrt)
        });
Array lax::sqrt(Operand x) { return bind(sqrt_p, {x}); }

constinit const Primitive sin_p{"sin"};
static const auto sin_def =
    define(sin_p, "The sine of x in radians.")
        .family(elementwise(inexact))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::sin(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::cos(x); }));
Array lax::sin(Operand x) { return bind(sin_p, {x}); }

constinit const Primitive cos_p{"cos"};
static const auto cos_def =
    define(cos_p, "The cosine of x in radians.")
        .family(elementwise(inexact))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::cos(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return -lax::sin(x); }));
Array lax::cos(Operand x) { return bind(cos_p, {x}); }

constinit const Primitive tanh_p{"tanh"};
static const auto tanh_def =
    define(tanh_p, "The hyperbolic tangent.")
        .family(elementwise(inexact))
        .rule<Pointwise>(unary_loops<inexact>([](auto x) { return math::tanh(x); }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto, auto y) { return 1.0 - y * y; }));  // d tanh = (1 - tanh^2) dx
Array lax::tanh(Operand x) { return bind(tanh_p, {x}); }

constinit const Primitive erf_p{"erf"};
static const auto erf_def =
    define(erf_p, "The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::erf(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) {
          return lax::exp(-(x * x)) * 1.1283791670955126;
        }));  // 2/sqrt(pi) exp(-x^2)
Array lax::erf(Operand x) { return bind(erf_p, {x}); }

constinit const Primitive erf_inv_p{"erf_inv"};
static const auto erf_inv_def =
    define(erf_inv_p, "The inverse of erf, on (-1, 1).")
        .family(elementwise(floating, 1, ResultType::same, Values::open_unit))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::erf_inv(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto, auto y) {
          return lax::exp(y * y) * 0.8862269254527580;
        }));  // sqrt(pi)/2 exp(y^2)
Array lax::erf_inv(Operand x) { return bind(erf_inv_p, {x}); }

constinit const Primitive lgamma_p{"lgamma"};
static const auto lgamma_def =
    define(lgamma_p, "The logarithm of the absolute value of the gamma function.")
        .family(elementwise(floating, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::lgamma(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::digamma(x); }));
Array lax::lgamma(Operand x) { return bind(lgamma_p, {x}); }

constinit const Primitive digamma_p{"digamma"};
static const auto digamma_def =
    define(digamma_p, "The derivative of lgamma.")
        .family(elementwise(floating, 1, ResultType::same, Values::positive))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::digamma(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(
            unary([](auto x, auto) { return lax::polygamma(Array::literal(1, x.dtype()), x); }));
Array lax::digamma(Operand x) { return bind(digamma_p, {x}); }

constinit const Primitive not_p{"not"};
static const auto not_def =
    define(not_p, "Bitwise not of integers, logical not of bools.")
        .family(elementwise(integers | boolean))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) -> Chunk {
          if (in[0] != DType::bool_)
            return unary_loops<integers>([](auto x) { return decltype(x)(~x); })(in, params);
          // Bytes of 0 and 1, which g++ takes in vectors, unlike bools.
          const auto flip = [](std::uint8_t x) { return std::uint8_t(x ^ 1); };
          return {&detail::unary_loop<decltype(flip), std::uint8_t>};
        })
        .rule<Spelling>(spelling::function("bitwise_not"))
        .rule<Jvp>(zero_derivative());
Array lax::bitwise_not(Operand x) { return bind(not_p, {x}); }

namespace {

// Every other real number of memory, from this one on.
Share::Rule every_other(std::int64_t first) {
  return [first](const View& z, std::span<const Sizes64>, const Params&) {
    View parts = z;
    parts.dtype = real_dtype_of(z.dtype);
    parts.data = z.as<char>() + first * size_of(parts.dtype);
    for (std::int64_t& stride : parts.strides) stride *= 2;
    return std::vector<View>{parts};
  };
}

}  // namespace

constinit const Primitive real_p{"real"};
static const auto real_def =
    define(real_p, "The real part.")
        .family(elementwise(complexes, 1, ResultType::real))
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          auto part = [](auto x) { return x.real(); };
          if (in[0] == DType::complex64)
            return {&detail::map_loop<decltype(part), complex64, float>};
          return {&detail::map_loop<decltype(part), complex128, double>};
        })
        .rule<Share>(every_other(0))
        .rule<Put>([](const Array& x, const Array& value, std::size_t, const Params&) {
          return lax::complex(value, lax::imag(x));
        })
        .rule<Cost>(cost::moves())
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(linear_through(real_p))
        .rule<Transpose>(transpose_to([](const Array& ct, const Aval&) {
          return lax::complex(ct, lax::zeros_like(ct.aval()));
        }));
Array lax::real(Operand x) { return bind(real_p, {x}); }

constinit const Primitive imag_p{"imag"};
static const auto imag_def =
    define(imag_p, "The imaginary part.")
        .family(elementwise(complexes, 1, ResultType::real))
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          auto part = [](auto x) { return x.imag(); };
          if (in[0] == DType::complex64)
            return {&detail::map_loop<decltype(part), complex64, float>};
          return {&detail::map_loop<decltype(part), complex128, double>};
        })
        .rule<Share>(every_other(1))
        .rule<Put>([](const Array& x, const Array& value, std::size_t, const Params&) {
          return lax::complex(lax::real(x), value);
        })
        .rule<Cost>(cost::moves())
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(linear_through(imag_p))
        // No conjugation in transpose: imag(z) = -i/2 (z - conj z), and its transpose sends ct to
        // -i ct.
        .rule<Transpose>(transpose_to([](const Array& ct, const Aval&) {
          return lax::complex(lax::zeros_like(ct.aval()), -ct);
        }));
Array lax::imag(Operand x) { return bind(imag_p, {x}); }

constinit const Primitive integer_pow_p{"integer_pow"};
static const auto integer_pow_def =
    define(integer_pow_p, "x to a constant integer power y; y >= 0 for integer x.")
        .family(elementwise(numbers, 1, ResultType::same, Values::nonzero))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Aval& x = inputs[0];
          if (x.dtype == DType::bool_)
            throw DtypeError("integer_pow takes numbers, and x is bool",
                             "convert x to int32 first");
          if (params.integer("y") < 0 && is_integer(x.dtype))
            throw ValueError("integer_pow: integers have no negative powers, and y is " +
                                 std::to_string(params.integer("y")),
                             "convert x to float first");
          return std::vector<Aval>{x};
        })
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) -> Chunk {
          const std::int64_t y = params.integer("y");
          // Exponentiation by squaring from the low bit up, in the same order for every lane.
          auto power = [](auto x, std::int64_t y) {
            using T = decltype(x);
            T result = T(1), square = x;
            bool is_first = true;
            for (std::int64_t n = y < 0 ? -y : y; n > 0; n >>= 1) {
              if (n & 1) result = std::exchange(is_first, false) ? square : product(result, square);
              square = product(square, square);
            }
            return y < 0 ? T(T(1) / result) : result;
          };
          if (y == 2) return unary_loops<numbers>([](auto x) { return product(x, x); })(in, {});
          return {detail::choose<numbers>(in[0],
                                          []<class T>() -> Chunk::Loop {
                                            return &detail::map_loop<decltype(power), T, T>;
                                          }),
                  y};
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("integer_pow", {w.operand(0), w.dim("y")});
        })
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          const std::int64_t y = params.integer("y");  // d x^y = y x^(y-1) dx
          if (y == 0) return {Tangent(outputs[0].aval())};
          return {Array(tangents[0].array() * (lax::integer_pow(primals[0], y - 1) * double(y)))};
        })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{{{{2, 3}, DType::float64}, Values::nonzero}}, {{"y", Dim(3)}}},
              {{{{{4}, DType::float64}, Values::nonzero}}, {{"y", Dim(-2)}}}};
        });
Array lax::integer_pow(Operand x, std::int64_t y) {
  if (y == 1) return x;
  return bind(integer_pow_p, {x}, {{"y", Dim(y)}});
}

}  // namespace plait
