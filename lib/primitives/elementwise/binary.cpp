// Elementwise primitives of two operands: arithmetic and logic.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pack.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/commute.h>
#include <plait/rules/motion.h>

#include "primitives/elementwise/wrapping.h"
#include "primitives/spelling.h"

#include <cmath>

namespace plait {
namespace {

using Values = Sample::Input::Values;

// The cotangent of a linear operand, summed to a scalar where the operand is one.
Tangent cotangent_for(const TransposeInput& input, const Tangent& cotangent) {
  return input.is_linear() ? unbroadcast_cotangent(cotangent, input.aval()) : Tangent(input.aval());
}

// add and sub: sign is that of the second operand.
Jvp::Rule sum_jvp(bool subtract) {
  return [=](auto, std::span<const Tangent> tangents, std::span<const Array> outputs,
             const Params&) -> Tangents {
    const Tangent x = broadcast_tangent(tangents[0], outputs[0].aval());
    Tangent y = broadcast_tangent(tangents[1], outputs[0].aval());
    if (subtract && !y.is_zero()) {
      if (!x.is_zero()) return {Array(lax::sub(x.array(), y.array()))};
      y = Array(-y.array());
    }
    return {add_tangents(x, y)};
  };
}

}  // namespace

constinit const Primitive add_p{"add"};
static const auto add_def =
    define(add_p, "x + y; integers wrap.")
        .family(elementwise(numbers, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(
            binary_loops<numbers>([](auto x, auto y) { return wrapping(x) + wrapping(y); }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(sum_jvp(false))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          return {cotangent_for(inputs[0], cotangents[0]), cotangent_for(inputs[1], cotangents[0])};
        });
Array lax::add(Operand x, Operand y) { return bind(add_p, {x, y}); }

constinit const Primitive sub_p{"sub"};
static const auto sub_def =
    define(sub_p, "x - y; integers wrap.")
        .family(elementwise(numbers, 2))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(
            binary_loops<numbers>([](auto x, auto y) { return wrapping(x) - wrapping(y); }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(sum_jvp(true))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          const Tangent y = inputs[1].is_linear() ? Tangent(Array(-cotangents[0].array()))
                                                  : Tangent(inputs[1].aval());
          return {cotangent_for(inputs[0], cotangents[0]), cotangent_for(inputs[1], y)};
        });
Array lax::sub(Operand x, Operand y) { return bind(sub_p, {x, y}); }

constinit const Primitive mul_p{"mul"};
static const auto mul_def =
    define(mul_p, "x * y; integers wrap.")
        .family(elementwise(numbers, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops<numbers>([](auto x, auto y) { return product(x, y); }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(
            binary([](auto, auto y, auto) { return y; }, [](auto x, auto, auto) { return x; }))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval())};
          const int linear = inputs[0].is_linear() ? 0 : 1;
          if (inputs[0].is_linear() && inputs[1].is_linear())
            throw ValueError("transpose: the product of two linear values is not linear",
                             "linearize the function first");
          result[linear] = unbroadcast_cotangent(
              Array(lax::mul(cotangents[0].array(), inputs[1 - linear].known())),
              inputs[linear].aval());
          return result;
        });
Array lax::mul(Operand x, Operand y) { return bind(mul_p, {x, y}); }

constinit const Primitive div_p{"div"};
static const auto div_def =
    define(
        div_p,
        "x / y; of integers rounded to zero, with x / 0 = 0 and the smallest value / -1 = itself.")
        .family(elementwise(numbers, 2, ResultType::same, Values::nonzero))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops<numbers>([](auto x, auto y) {
          using T = decltype(x);
          if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
            return y == 0       ? T(0)
                   : y == T(-1) ? T(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(x))
                                : T(x / y);
          else if constexpr (std::is_integral_v<T>)
            return y == 0 ? T(0) : T(x / y);
          else
            return quotient(x, y);
        }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params&) -> Tangents {
          // d(x/y) = dx / y - (x/y) dy / y
          Tangent total(outputs[0].aval());
          if (!tangents[0].is_zero())
            total = broadcast_tangent(Array(lax::div(tangents[0].array(), primals[1])),
                                      outputs[0].aval());
          if (!tangents[1].is_zero()) {
            const Array factor = -(outputs[0] / primals[1]);
            total = add_tangents(
                total, broadcast_tangent(Array(tangents[1].array() * factor), outputs[0].aval()));
          }
          return {total};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          return {unbroadcast_cotangent(Array(lax::div(cotangents[0].array(), inputs[1].known())),
                                        inputs[0].aval()),
                  Tangent(inputs[1].aval())};
        });
Array lax::div(Operand x, Operand y) { return bind(div_p, {x, y}); }

constinit const Primitive rem_p{"rem"};
static const auto rem_def =
    define(rem_p,
           "The remainder of x / y rounded to zero: it has the sign of x. Integers: x rem 0 = 0.")
        .family(elementwise(real_numbers, 2, ResultType::same, Values::nonzero))
        .rule<Pointwise>(binary_loops<real_numbers>([](auto x, auto y) {
          using T = decltype(x);
          if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
            return y == 0 || y == T(-1) ? T(0) : T(x % y);
          else if constexpr (std::is_integral_v<T>)
            return y == 0 ? T(0) : T(x % y);
          else
            return math::rem(x, y);
        }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(
            binary([](auto x, auto,
                      auto out) { return broadcast_to(Array::literal(1, x.dtype()), out.shape()); },
                   [](auto x, auto y, auto) {  // d/dy = -trunc(x / y)
                     const Array quotient = x / y;
                     const Array zero = lax::zeros_like(quotient.aval());
                     return -lax::select(lax::lt(quotient, zero), lax::ceil(quotient),
                                         lax::floor(quotient));
                   }));
Array lax::rem(Operand x, Operand y) { return bind(rem_p, {x, y}); }

constinit const Primitive pow_p{"pow"};
static const auto pow_def =
    define(pow_p,
           "x to the power y, with C99's special cases; integers wrap, negative powers are 1/x^-y "
           "rounded to zero.")
        .family(elementwise(numbers, 2, ResultType::same, Values::positive))
        .rule<Pointwise>(binary_loops<numbers>([](auto x, auto y) {
          using T = decltype(x);
          if constexpr (std::is_integral_v<T>) {
            using U = std::make_unsigned_t<T>;
            if constexpr (std::is_signed_v<T>)
              if (y < 0) return x == 1 ? T(1) : x == T(-1) ? T(y % 2 ? -1 : 1) : T(0);
            std::uint64_t result = 1, square = U(x);
            for (U n = U(y); n > 0; n = U(n >> 1)) {
              if (n & 1) result *= square;
              square *= square;
            }
            return T(result);
          } else
            return math::pow(x, y);
        }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary(
            [](auto x, auto y, auto) {  // y x^(y-1), and 0 where y is 0 and 1/x is infinite
              const Array zero = lax::zeros_like(y.aval()),
                          one = broadcast_to(Array::literal(1, y.dtype()), y.shape());
              const Array size = lax::abs(x);
              const double largest = largest_finite(size.dtype()).as_literal()->as_double();
              const Array least =
                  broadcast_to(Array::literal(1 / largest, size.dtype()), x.shape());
              const Array both = lax::bitwise_and(lax::lt(size, least), lax::eq(y, zero));
              return y * lax::pow(x, lax::select(both, one, lax::sub(y, one)));
            },
            [](auto x, auto, auto out) {  // x^y log x, and 0 where x is 0
              const Array zero = lax::zeros_like(x.aval()),
                          one = broadcast_to(Array::literal(1, x.dtype()), x.shape());
              return lax::log(lax::select(lax::eq(x, zero), one, x)) * out;
            }));
Array lax::pow(Operand x, Operand y) { return bind(pow_p, {x, y}); }

namespace {

// The tangent goes to the operand that won; equal operands share it.
Partial winner(int operand) {
  return [=](const Array& x, const Array& y, const Array& out) {
    const Array& mine = operand == 0 ? x : y;
    const Array& other = operand == 0 ? y : x;
    auto full = [&](double value) {
      return broadcast_to(Array::literal(value, out.dtype()), out.shape());
    };
    const Array a = broadcast_to(mine, out.shape()), b = broadcast_to(other, out.shape());
    return lax::select(lax::eq(a, b), full(0.5), lax::select(lax::eq(a, out), full(1), full(0)));
  };
}

}  // namespace

constinit const Primitive max_p{"max"};
static const auto max_def =
    define(max_p, "The larger of x and y; NaN when either is. Of bools: or.")
        .family(elementwise(real_numbers | boolean, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops < real_numbers |
                         boolean > ([](auto x, auto y) {
                           if constexpr (std::is_integral_v<decltype(x)>)
                             return x > y ? x : y;
                           else
                             return math::select(!(x == x), x, math::select(y <= x, x, y));
                         }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary(winner(0), winner(1)));
Array lax::max(Operand x, Operand y) { return bind(max_p, {x, y}); }

constinit const Primitive min_p{"min"};
static const auto min_def =
    define(min_p, "The smaller of x and y; NaN when either is. Of bools: and.")
        .family(elementwise(real_numbers | boolean, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops < real_numbers |
                         boolean > ([](auto x, auto y) {
                           if constexpr (std::is_integral_v<decltype(x)>)
                             return x < y ? x : y;
                           else
                             return math::select(!(x == x), x, math::select(y >= x, x, y));
                         }))
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary(winner(0), winner(1)));
Array lax::min(Operand x, Operand y) { return bind(min_p, {x, y}); }

constinit const Primitive atan2_p{"atan2"};
static const auto atan2_def =
    define(atan2_p,
           "The angle of the point (y, x): atan2(x=first operand, y=second) as C's atan2(first, "
           "second).")
        .family(elementwise(floating, 2, ResultType::same, Values::nonzero))
        .rule<Pointwise>(binary_loops<floating>([](auto x, auto y) { return math::atan2(x, y); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary([](auto x, auto y, auto) { return y / (x * x + y * y); },
                          [](auto x, auto y, auto) { return -(x / (x * x + y * y)); }));
Array lax::atan2(Operand x, Operand y) { return bind(atan2_p, {x, y}); }

constinit const Primitive complex_p{"complex"};
static const auto complex_def =
    define(complex_p, "x + iy from real parts.")
        .family(elementwise(dtypes<float, double>(), 2))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = infer(add_p, inputs, params)[0];
          require_dtype("complex", aval, dtypes<float, double>());
          aval.dtype = complex_dtype_of(aval.dtype);
          return std::vector<Aval>{aval};
        })
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          auto make = [](auto x, auto y) { return std::complex<decltype(x)>(x, y); };
          if (in[0] == DType::float32)
            return {&detail::map2_loop<decltype(make), float, complex64>};
          return {&detail::map2_loop<decltype(make), double, complex128>};
        })
        .rule<Spelling>(spelling::function())
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params&) -> Tangents {
          const Aval part{outputs[0].shape(), primals[0].dtype()};
          return {lax::complex(broadcast_tangent(tangents[0], part).instantiate(),
                               broadcast_tangent(tangents[1], part).instantiate())};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          const Array& ct =
              cotangents[0].array();  // no conjugation: y's cotangent is Re(i ct) = -imag(ct)
          Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval())};
          if (inputs[0].is_linear())
            result[0] = unbroadcast_cotangent(lax::real(ct), inputs[0].aval());
          if (inputs[1].is_linear())
            result[1] = unbroadcast_cotangent(-lax::imag(ct), inputs[1].aval());
          return result;
        });
Array lax::complex(Operand x, Operand y) { return bind(complex_p, {x, y}); }

constinit const Primitive and_p{"and"};
static const auto and_def =
    define(and_p, "Bitwise and; logical of bools.")
        .family(elementwise(integers | boolean, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops < integers | boolean > ([](auto x, auto y) { return x & y; }))
        .rule<Spelling>(spelling::function("bitwise_and"))
        .rule<Jvp>(zero_derivative());
Array lax::bitwise_and(Operand x, Operand y) { return bind(and_p, {x, y}); }

constinit const Primitive or_p{"or"};
static const auto or_def =
    define(or_p, "Bitwise or; logical of bools.")
        .family(elementwise(integers | boolean, 2))
        .rule<Commute>(commute::always)
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>(binary_loops < integers | boolean > ([](auto x, auto y) { return x | y; }))
        .rule<Spelling>(spelling::function("bitwise_or"))
        .rule<Jvp>(zero_derivative());
Array lax::bitwise_or(Operand x, Operand y) { return bind(or_p, {x, y}); }

constinit const Primitive xor_p{"xor"};
static const auto xor_def =
    define(xor_p, "Bitwise exclusive or; logical of bools.")
        .family(elementwise(integers | boolean, 2))
        .rule<Commute>(commute::always)
        .rule<Pointwise>(binary_loops < integers | boolean > ([](auto x, auto y) { return x ^ y; }))
        .rule<Spelling>(spelling::function("bitwise_xor"))
        .rule<Jvp>(zero_derivative());
Array lax::bitwise_xor(Operand x, Operand y) { return bind(xor_p, {x, y}); }

constinit const Primitive shift_p{"shift"};
static const auto shift_def =
    define(
        shift_p,
        "Shifts the bits of x by y places: kind 'left', 'right_arithmetic' (copies the sign) or "
        "'right_logical' "
        "(brings zeros). By the width or more, or by a negative count: every bit is shifted out.")
        .family(elementwise(integers, 2, ResultType::same, Values::positive))
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) -> Chunk {
          const std::string& kind = params.text("kind");
          if (kind == "left")
            return binary_loops<integers>([](auto x, auto y) {
              using T = decltype(x);
              using U = std::make_unsigned_t<T>;
              return U(y) >= sizeof(T) * 8 ? T(0) : T(U(x) << y);
            })(in, params);
          if (kind == "right_logical")
            return binary_loops<integers>([](auto x, auto y) {
              using T = decltype(x);
              using U = std::make_unsigned_t<T>;
              return U(y) >= sizeof(T) * 8 ? T(0) : T(U(x) >> y);
            })(in, params);
          return binary_loops<integers>([](auto x, auto y) {
            using T = decltype(x);
            using S = std::make_signed_t<T>;
            return std::make_unsigned_t<T>(y) >= sizeof(T) * 8 ? T(S(x) < 0 ? -1 : 0)
                                                               : T(S(x) >> y);
          })(in, params);
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("shift_" + w.params().text("kind"), w.numbers());
        })
        .rule<Jvp>(zero_derivative())
        .rule<Samples>([] {
          std::vector<Sample> samples;
          for (const char* kind : {"left", "right_arithmetic", "right_logical"})
            samples.push_back({{{{{2, 3}, DType::int32}, Values::indices, 100},
                                {{{2, 3}, DType::int32}, Values::indices, 8}},
                               {{"kind", std::string(kind)}}});
          return samples;
        });
Array lax::shift_left(Operand x, Operand y) {
  return bind(shift_p, {x, y}, {{"kind", std::string("left")}});
}
Array lax::shift_right_arithmetic(Operand x, Operand y) {
  return bind(shift_p, {x, y}, {{"kind", std::string("right_arithmetic")}});
}
Array lax::shift_right_logical(Operand x, Operand y) {
  return bind(shift_p, {x, y}, {{"kind", std::string("right_logical")}});
}

}  // namespace plait
