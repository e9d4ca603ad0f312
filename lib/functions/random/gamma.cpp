// plait.random: the gamma distribution by rejection, and those that are made of it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/nn.h>
#include <plait/primitives/special.h>
#include <plait/transforms/transforms.h>

#include "functions/one_program.h"
#include "functions/random/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using OptionalDType = std::optional<DType>;

enum class Space { linear, logarithmic };

// NOTE: [draws of gamma]
// One draw is d v^3 with d = a - 1/3 and v = 1 + x / (3 sqrt(d)) for a normal x with v > 0,
// accepted with probability min(1, exp(x^2 / 2 + d - d v^3 + d log v^3)) (Marsaglia and Tsang, A
// simple method for generating gamma variables, 2000). Below a = 1 it is a draw for a + 1 times
// U^(1/a). Keys are split as in JAX: for the loop and U; in each step for the next, for the normal
// numbers and for the uniform one. Each draw has a key and a loop of its own.
Array one_gamma(const Array& key, const Array& a, Space space) {
  const DType to = a.dtype();
  const auto number = [&](double value) { return Array::literal(value, to); };
  const auto part_of = [](const Array& keys, int index) {
    return lax::index_in_dim(keys, index, 0, false);
  };
  const Array one = number(1), is_large = lax::ge(a, one);
  const Array shape = lax::select(is_large, a, lax::add(a, one));
  const Array d = lax::sub(shape, number(1.0 / 3)), c = lax::div(number(1.0 / 3), lax::sqrt(d));

  // Carries: key, x^2, v^3, u.
  const Function is_rejected = [&](std::span<const Array> now) -> Arrays {
    const Array &square = now[1], &cube = now[2], &u = now[3];
    const Array squeeze = lax::sub(one, lax::mul(number(0.0331), lax::mul(square, square)));
    const Array rest = lax::mul(d, lax::add(lax::sub(one, cube), lax::log(cube)));
    const Array bound = lax::add(lax::mul(square, number(0.5)), rest);
    return {lax::bitwise_and(lax::ge(u, squeeze), lax::ge(lax::log(u), bound))};
  };
  const Function next = [&](std::span<const Array> now) -> Arrays {
    const Array keys = lax::random_split(now[0], {3});
    const Function is_negative = [&](std::span<const Array> kxv) -> Arrays {
      return {lax::le(kxv[2], number(0))};
    };
    const Function draw = [&](std::span<const Array> kxv) -> Arrays {
      const Array pair = lax::random_split(kxv[0], {2});
      const Array x = random::normal(part_of(pair, 1), {}, to);
      return {part_of(pair, 0), x, lax::add(one, lax::mul(x, c))};
    };
    const Arrays kxv =
        flat::while_loop(is_negative, draw, Arrays{part_of(keys, 1), number(0), number(-1)});
    const Array u = random::uniform(part_of(keys, 2), {}, to);
    const Array v = kxv[2];
    return {part_of(keys, 0), lax::mul(kxv[1], kxv[1]), lax::mul(lax::mul(v, v), v), u};
  };
  const Array keys = lax::random_split(key, {2});
  const Array cube =
      flat::while_loop(is_rejected, next, Arrays{part_of(keys, 0), number(0), one, number(2)})[2];
  const Array boost_key = part_of(keys, 1), power = lax::div(one, a);
  if (space == Space::logarithmic) {
    const Array logarithm = lax::neg(random::exponential(boost_key, {}, to));
    const Array is_none = lax::bitwise_or(is_large, lax::eq(logarithm, number(0)));
    const Array boost = lax::select(is_none, number(0), lax::mul(logarithm, power));
    return lax::add(lax::add(lax::log(d), lax::log(cube)), boost);
  }
  const Array uniform = lax::sub(one, random::uniform(boost_key, {}, to));
  const Array boost = lax::select(is_large, one, lax::pow(uniform, power));
  return lax::mul(lax::mul(d, cube), boost);
}

// The draws for a, an array of the result's shape.
Array gamma_draws(const Array& key, const Array& a, Space space) {
  const Dim count = a.shape().num_elements();
  const bool is_log = space == Space::logarithmic;
  constexpr std::int64_t loops_are_large = 1 << 20;
  return in_one_program(
      "gamma", Arrays{key, a}, {{"log", is_log}}, Dim(loops_are_large),
      [&](std::span<const Array> inputs) -> Arrays {
        const Arrays each{lax::random_split(inputs[0], {count}), lax::reshape(inputs[1], {count})};
        flat::VmapOptions lanes;
        lanes.in_dims = {0, 0};
        lanes.out_dims = [](std::size_t) { return std::vector<std::optional<int>>{0}; };
        lanes.size = count;
        const Function one = [&](std::span<const Array> x) -> Arrays {
          return {one_gamma(x[0], x[1], space)};
        };
        const Array draws = flat::vmap(one, each, lanes)[0];
        return {lax::reshape(draws, inputs[1].shape())};
      });
}

// With the derivative in a of the draw at which the distribution function has the same value
// (implicit reparametrisation: Figurnov, Mohamed and Mnih, 2018).
Array differentiable_gamma(std::string_view function, const Array& key, Operand a,
                           const std::optional<Shape>& shape, OptionalDType dtype, Space space) {
  require_key(function, key);
  const DType to = float_dtype(function, dtype);
  const Shape sizes = shape_or(function, shape, {a});
  const Array shapes = plait::broadcast_to(to_shape_of(function, astype(a, to), sizes), sizes);
  const Function draws = [space](std::span<const Array> inputs) -> Arrays {
    return {gamma_draws(inputs[0], inputs[1], space)};
  };
  const Function rule = [space](std::span<const Array> inputs) -> Arrays {
    const Array draw = gamma_draws(inputs[0], inputs[1], space);
    Array x = draw;
    if (space == Space::logarithmic)
      x = lax::max(lax::exp(draw), filled(format_of(draw.dtype()).tiny, draw));
    Array slope = lax::random_gamma_grad(inputs[1], x);
    if (space == Space::logarithmic) slope = lax::div(slope, x);
    return {draw, lax::mul(slope, inputs[3])};
  };
  return flat::custom_jvp(draws, rule, Arrays{key, shapes}, std::string(function))[0];
}

Array half_of(Operand df, DType dtype) { return numpy::divide(astype(df, dtype), 2); }
Array key_at(const Array& keys, int index) { return lax::index_in_dim(keys, index, 0, false); }

}  // namespace

Array random::gamma(Operand key, Operand a, const std::optional<Shape>& shape,
                    OptionalDType dtype) {
  return differentiable_gamma("gamma", key, a, shape, dtype, Space::linear);
}
Array random::loggamma(Operand key, Operand a, const std::optional<Shape>& shape,
                       OptionalDType dtype) {
  return differentiable_gamma("loggamma", key, a, shape, dtype, Space::logarithmic);
}
// The share of one of two gamma draws in their sum, of logarithms whose larger one is taken off.
Array random::beta(Operand key, Operand a, Operand b, const std::optional<Shape>& shape,
                   OptionalDType dtype) {
  require_key("beta", key);
  const DType to = float_dtype("beta", dtype);
  const Shape sizes = shape_or("beta", shape, {a, b});
  const Array keys = lax::random_split(key, {2});
  const Array first =
      loggamma(key_at(keys, 0), to_shape_of("beta", astype(a, to), sizes), sizes, to);
  const Array second =
      loggamma(key_at(keys, 1), to_shape_of("beta", astype(b, to), sizes), sizes, to);
  const Array largest = lax::stop_gradient(lax::max(first, second));
  const Array x = lax::exp(lax::sub(first, largest)), y = lax::exp(lax::sub(second, largest));
  return lax::div(x, lax::add(x, y));
}
Array random::dirichlet(Operand key, Operand alpha, const std::optional<Shape>& shape,
                        OptionalDType dtype) {
  require_key("dirichlet", key);
  const DType to = float_dtype("dirichlet", dtype);
  if (alpha.ndim() < 1)
    throw ShapeError("dirichlet: alpha is a number", "give a vector of at least two elements");
  Shape sizes = shape.value_or(Shape(alpha.shape().begin(), alpha.shape().end() - 1));
  sizes.push_back(alpha.shape().back());
  return nn::softmax(loggamma(key, to_shape_of("dirichlet", astype(alpha, to), sizes), sizes, to),
                     {-1});
}
Array random::chisquare(Operand key, Operand df, const std::optional<Shape>& shape,
                        OptionalDType dtype) {
  const DType to = float_dtype("chisquare", dtype);
  return lax::mul(lax::exp(loggamma(key, half_of(df, to), shape, to)), Array::literal(2, to));
}
Array random::f(Operand key, Operand dfnum, Operand dfden, const std::optional<Shape>& shape,
                OptionalDType dtype) {
  require_key("f", key);
  const DType to = float_dtype("f", dtype);
  const Shape sizes = shape_or("f", shape, {dfnum, dfden});
  const Array keys = lax::random_split(key, {2});
  const Array above = astype(dfnum, to), below = astype(dfden, to);
  const Array numerator = chisquare(key_at(keys, 1), to_shape_of("f", above, sizes), sizes, to);
  const Array denominator = chisquare(key_at(keys, 0), to_shape_of("f", below, sizes), sizes, to);
  return numpy::divide(numpy::divide(numerator, above), numpy::divide(denominator, below));
}
Array random::t(Operand key, Operand df, const std::optional<Shape>& shape, OptionalDType dtype) {
  require_key("t", key);
  const DType to = float_dtype("t", dtype);
  const Shape sizes = shape_or("t", shape, {df});
  const Array keys = lax::random_split(key, {2}), half = half_of(df, to);
  const Array g = gamma(key_at(keys, 1), half, sizes, to);
  return lax::mul(normal(key_at(keys, 0), sizes, to), lax::sqrt(numpy::divide(half, g)));
}
// The power 1/p of a gamma draw of shape 1/p, with a random sign.
Array random::generalized_normal(Operand key, Operand p, const Shape& shape, OptionalDType dtype) {
  require_key("generalized_normal", key);
  const DType to = float_dtype("generalized_normal", dtype);
  const Array keys = lax::random_split(key, {2});
  const Array power = numpy::divide(1, astype(p, to));
  const Array g = gamma(key_at(keys, 0), power, shape, to);
  return lax::mul(rademacher(key_at(keys, 1), shape, to), numpy::power(g, power));
}
// A generalized normal vector over the length that one more, exponential, element gives it.
Array random::ball(Operand key, Dim d, Operand p, const Shape& shape, OptionalDType dtype) {
  require_key("ball", key);
  const DType to = float_dtype("ball", dtype);
  Shape vectors = shape;
  vectors.push_back(d);
  const Array keys = lax::random_split(key, {2}), power = astype(p, to);
  const Array g = generalized_normal(key_at(keys, 0), power, vectors, to);
  const Array size = numpy::sum(numpy::power(lax::abs(g), power), {-1});
  const Array length = numpy::power(lax::add(size, exponential(key_at(keys, 1), shape, to)),
                                    numpy::divide(1, power));
  return numpy::divide(g, numpy::expand_dims(length, {-1}));
}

namespace {

[[maybe_unused]] const FunctionInfo* const gamma_functions[] = {
    function("random", "gamma(key, a, shape=None, dtype=None)",
             "Numbers of density x**(a-1) exp(-x) / gamma(a), differentiable in a; of the shape of "
             "a unless given.",
             &random::gamma),
    function("random", "loggamma(key, a, shape=None, dtype=None)",
             "Logarithms of numbers as gamma draws, also where those would be 0.",
             &random::loggamma),
    function("random", "beta(key, a, b, shape=None, dtype=None)",
             "Numbers of density x**(a-1) (1-x)**(b-1) / beta(a, b), differentiable in a and b.",
             &random::beta),
    function("random", "dirichlet(key, alpha, shape=None, dtype=None)",
             "Vectors of sum 1 of the Dirichlet distribution along a new last axis; shape is that "
             "of the others.",
             &random::dirichlet),
    function("random", "chisquare(key, df, shape=None, dtype=None)",
             "Numbers of the chi-squared distribution of df degrees of freedom.",
             &random::chisquare),
    function("random", "f(key, dfnum, dfden, shape=None, dtype=None)",
             "Numbers of the F distribution of dfnum and dfden degrees of freedom.", &random::f),
    function("random", "t(key, df, shape=None, dtype=None)",
             "Numbers of Student's t distribution of df degrees of freedom.", &random::t),
    function("random", "generalized_normal(key, p, shape=(), dtype=None)",
             "Numbers of density proportional to exp(-|x|**p).", &random::generalized_normal),
    function("random", "ball(key, d, p=2, shape=(), dtype=None)",
             "Vectors of d elements evenly distributed in the unit ball of the norm of order p.",
             &random::ball),
};

}  // namespace
}  // namespace plait
