// Elementwise primitives: integrals that are no elementary functions, and hypergeometric functions.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/elementwise/special.h"

#include <cmath>

namespace plait {
using namespace special;  // NOLINT

namespace {

Array quarter_turns(const Array& x) { return x * x * (0.5 * M_PI); }

}  // namespace

constinit const Primitive dawsn_p{"dawsn"};
static const auto dawsn_def =
    define(dawsn_p, "Dawson's integral, exp(-x^2) times that of exp(t^2) from 0 to x.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::dawsn(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto y) { return 1.0 - 2.0 * x * y; }));
Array lax::dawsn(Operand x) { return bind(dawsn_p, {x}); }

constinit const Primitive fresnel_sine_p{"fresnel_sine"};
static const auto fresnel_sine_def =
    define(fresnel_sine_p, "Fresnel's integral of sin(pi t^2 / 2) from 0 to x.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::fresnel_sine(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::sin(quarter_turns(x)); }));
Array lax::fresnel_sine(Operand x) { return bind(fresnel_sine_p, {x}); }

constinit const Primitive fresnel_cosine_p{"fresnel_cosine"};
static const auto fresnel_cosine_def =
    define(fresnel_cosine_p, "Fresnel's integral of cos(pi t^2 / 2) from 0 to x.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::fresnel_cosine(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::cos(quarter_turns(x)); }));
Array lax::fresnel_cosine(Operand x) { return bind(fresnel_cosine_p, {x}); }

constinit const Primitive sine_integral_p{"sine_integral"};
static const auto sine_integral_def =
    define(sine_integral_p, "The integral of sin(t) / t from 0 to x.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::sine_integral(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) {  // sin(x) / x, a series near 0
          const Array is_near = lax::lt(lax::abs(x), literal_like(1e-2, x));
          const Array far = lax::select(is_near, literal_like(1, x), x);
          const Array near = lax::select(is_near, x, literal_like(0, x)), square = near * near;
          const Array series =
              1.0 - square * (1.0 / 6 - square * (1.0 / 120 - square * (1.0 / 5040)));
          return lax::select(is_near, series, lax::sin(far) / far);
        }));
Array lax::sine_integral(Operand x) { return bind(sine_integral_p, {x}); }

constinit const Primitive cosine_integral_p{"cosine_integral"};
static const auto cosine_integral_def =
    define(cosine_integral_p, "The integral of cos(t) / t from infinity to |x|.")
        .family(elementwise(floating, 1, ResultType::same, Sample::Input::Values::nonzero))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::cosine_integral(x); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(unary([](auto x, auto) { return lax::cos(x) / x; }));
Array lax::cosine_integral(Operand x) { return bind(cosine_integral_p, {x}); }

constinit const Primitive owens_t_p{"owens_t"};
static const auto owens_t_def =
    define(owens_t_p, "Owen's T, the probability of X > h and 0 < Y < a X for normal X and Y.")
        .family(elementwise(floating, 2))
        .rule<Pointwise>(binary_loops<floating>([](auto h, auto a) { return math::owens_t(h, a); }))
        .rule<Spelling>(spelling::function())
        .rule<Jvp>(binary(
            [](auto h, auto a, auto) {  // -exp(-h^2 / 2) erf(a h / sqrt(2)) / sqrt(8 pi)
              return lax::exp(h * h * -0.5) * lax::erf(a * h * M_SQRT1_2) * -0.19947114020071635;
            },
            [](auto h, auto a, auto) {  // exp(-h^2 (1 + a^2) / 2) / (2 pi (1 + a^2))
              const Array size = 1.0 + a * a;
              return lax::exp(h * h * size * -0.5) / (size * (2 * M_PI));
            }));
Array lax::owens_t(Operand h, Operand a) { return bind(owens_t_p, {h, a}); }

constinit const Primitive hyp1f1_p{"hyp1f1"};
static const auto hyp1f1_def =
    define(hyp1f1_p, "Kummer's confluent hypergeometric function M(a, b, x).")
        .family(elementwise(floating, 3))
        .rule<Pointwise>(loops_of<3>([](auto a, auto b, auto x) { return math::hyp1f1(a, b, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(in_last("hyp1f1", {"a", "b"}, [](auto in) {  // a / b M(a + 1, b + 1, x)
          return in[0] / in[1] * lax::hyp1f1(in[0] + 1.0, in[1] + 1.0, in[2]);
        }));
Array lax::hyp1f1(Operand a, Operand b, Operand x) { return bind(hyp1f1_p, {a, b, x}); }

constinit const Primitive hyp2f1_p{"hyp2f1"};
static const auto hyp2f1_def =
    define(hyp2f1_p, "Gauss's hypergeometric function F(a, b; c; x), for x up to 1.")
        .family(elementwise(floating, 4))
        .rule<Pointwise>(
            loops_of<4>([](auto a, auto b, auto c, auto x) { return math::hyp2f1(a, b, c, x); }))
        .rule<Spelling>(spelling::function())
        .rule<Samples>(no_samples)
        .rule<Jvp>(in_last("hyp2f1", {"a", "b", "c"}, [](auto in) {
          const Array above = lax::hyp2f1(in[0] + 1.0, in[1] + 1.0, in[2] + 1.0, in[3]);
          return in[0] * in[1] / in[2] * above;  // a b / c F(a + 1, b + 1; c + 1; x)
        }));
Array lax::hyp2f1(Operand a, Operand b, Operand c, Operand x) {
  return bind(hyp2f1_p, {a, b, c, x});
}

}  // namespace plait
