// plait.random: numbers of events: Poisson, binomial, multinomial and geometric.
// SPDX-License-Identifier: Apache-2.0
#include <plait/transforms/transforms.h>

#include "functions/one_program.h"
#include "functions/random/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using OptionalDType = std::optional<DType>;

constexpr std::int64_t loops_are_large = 1 << 20;  // for in_one_program

Array key_of(const Array& keys, int index) { return lax::index_in_dim(keys, index, 0, false); }

// Draws until all are accepted; draw gives (accepted, values) for a pair of keys. Draws that are
// done keep their first accepted value.
template <class Draw>
Array accepted_draws(const Array& key, const Array& done, DType dtype, Draw draw) {
  const Array none = plait::broadcast_to(Array::literal(-1, dtype), done.shape());
  const Function is_unfinished = [](std::span<const Array> now) -> Arrays {
    return {numpy::any(lax::bitwise_not(now[1]))};
  };
  const Function next = [&](std::span<const Array> now) -> Arrays {
    const Array keys = lax::random_split(now[0], {3});
    const auto [accepted, values] = draw(key_of(keys, 1), key_of(keys, 2));
    return {key_of(keys, 0), lax::bitwise_or(now[1], accepted),
            lax::select(accepted, values, now[2])};
  };
  return flat::while_loop(is_unfinished, next, Arrays{key, done, none})[2];
}

// Knuth's algorithm: the number of uniform factors until their product falls below exp(-mean).
Array poisson_by_product(const Array& key, const Array& mean) {
  const Array zero = filled(0, mean), limit = lax::neg(mean);
  const Function is_unfinished = [&](std::span<const Array> now) -> Arrays {
    return {numpy::any(lax::gt(now[2], limit))};
  };
  const Function next = [&](std::span<const Array> now) -> Arrays {
    const Array keys = lax::random_split(now[0], {2});
    const Array u = random::uniform(key_of(keys, 1), mean.shape(), mean.dtype());
    const Array more = lax::add(now[1], filled(1, mean));
    return {key_of(keys, 0), lax::select(lax::gt(now[2], limit), more, now[1]),
            lax::add(now[2], lax::log(u))};
  };
  return flat::while_loop(is_unfinished, next, Arrays{key, zero, zero})[1] - 1;
}

// Hoermann's transformed rejection PTRS (The transformed rejection method for generating Poisson
// random variables, 1993), for means from 10.
Array poisson_by_rejection(const Array& key, const Array& mean, const Array& done) {
  const Array log_mean = lax::log(mean), b = lax::sqrt(mean) * 2.53 + 0.931;
  const Array a = b * 0.02483 - 0.059, inverse_alpha = 1.1328 / (b - 3.4) + 1.1239;
  const Array v_r = 0.9277 - 3.6224 / (b - 2);
  return accepted_draws(key, done, mean.dtype(), [&](const Array& u_key, const Array& v_key) {
    const Array u = random::uniform(u_key, mean.shape(), mean.dtype()) - 0.5;
    const Array v = random::uniform(v_key, mean.shape(), mean.dtype());
    const Array distance = 0.5 - lax::abs(u);
    const Array k = lax::floor((a * 2 / distance + b) * u + mean + 0.43);
    const Array s = lax::log(v * inverse_alpha / (a / (distance * distance) + b));
    const Array t = k * log_mean - mean - lax::lgamma(k + 1);
    const Array at_once = (distance >= 0.07) & (v <= v_r);
    const Array rejected = (k < 0) | ((distance < 0.013) & (v > distance));
    return std::pair{Array(at_once | (~rejected & (s <= t))), k};
  });
}

// The number of geometric steps that fit into count.
Array binomial_by_inversion(const Array& key, const Array& count, const Array& p) {
  const Array zero = filled(0, p), logarithm = lax::log1p(lax::neg(p));
  const Function is_unfinished = [&](std::span<const Array> now) -> Arrays {
    return {numpy::any(lax::le(now[2], count))};
  };
  const Function next = [&](std::span<const Array> now) -> Arrays {
    const Array keys = lax::random_split(now[0], {2});
    const Array u = random::uniform(key_of(keys, 0), p.shape(), p.dtype());
    const Array more = lax::add(now[1], filled(1, p));
    return {key_of(keys, 1), lax::select(lax::le(now[2], count), more, now[1]),
            lax::add(now[2], lax::ceil(lax::div(lax::log(u), logarithm)))};
  };
  return flat::while_loop(is_unfinished, next, Arrays{key, zero, zero})[1] - 1;
}

// log k! - (k + 1/2) log(k + 1) + k + 1 - log(2 pi) / 2, by table up to 9, and Stirling's series.
Array stirling_tail(const Array& k) {
  Arrays table;
  for (int n = 0; n < 10; ++n)
    table.push_back(Array::literal(
        std::lgamma(n + 1.0) - (n + 0.5) * std::log(n + 1.0) + n + 1 - 0.5 * std::log(2 * M_PI),
        k.dtype()));
  const Array small = lax::min(lax::max(k, filled(0, k)), filled(9, k));
  const Array square = (small + 1) * (small + 1), far_square = (k + 1) * (k + 1);
  const Array series = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260) / far_square) / far_square) / (k + 1);
  const Array exact = numpy::take(numpy::stack(table), astype(lax::floor(small), DType::int32));
  return numpy::where(k <= 9, exact, series);
}

// Hoermann's transformed rejection BTRS (The generation of binomial random variates, 1993), where
// count p is at least 10 and p at most 1/2.
Array binomial_by_rejection(const Array& key, const Array& count, const Array& p,
                            const Array& done) {
  const Array deviation = lax::sqrt(count * p * (1.0 - p)), b = deviation * 2.53 + 1.15;
  const Array a = b * 0.0248 - 0.0873 + p * 0.01, c = count * p + 0.5, v_r = 0.92 - 4.2 / b;
  const Array odds = p / (1.0 - p), alpha = (5.1 / b + 2.83) * deviation;
  const Array m = lax::floor((count + 1) * p);
  return accepted_draws(key, done, p.dtype(), [&](const Array& u_key, const Array& v_key) {
    const Array u = random::uniform(u_key, p.shape(), p.dtype()) - 0.5;
    const Array v = random::uniform(v_key, p.shape(), p.dtype());
    const Array distance = 0.5 - lax::abs(u);
    const Array at_once = (distance >= 0.07) & (v <= v_r);
    const Array k = lax::floor((a * 2 / distance + b) * u + c);
    const Array rejected = (k < 0) | (k > count);
    const Array s = lax::log(v * alpha / (a / (distance * distance) + b));
    const Array t = (m + 0.5) * lax::log((m + 1) / (odds * (count - m + 1))) +
                    (count + 1) * lax::log((count - m + 1) / (count - k + 1)) +
                    (k + 0.5) * lax::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(m) +
                    stirling_tail(count - m) - stirling_tail(k) - stirling_tail(count - k);
    return std::pair{Array(at_once | (~rejected & (s <= t))), k};
  });
}

// Draws of float counts, of the shape of both.
Array binomial_draws(const Array& key, const Array& n, const Array& p) {
  const Array is_below = p < 0.5, q = numpy::where(is_below, p, 1.0 - p);
  const Array is_invalid = numpy::isnan(q) | (q < 0) | numpy::isnan(n) | (n < 0);
  const Array safe = numpy::where(numpy::isnan(q) | (q < 0), 0.01, q);
  const Array is_infinite = numpy::isinf(n) & ~is_invalid;
  const Array inverts = numpy::isnan(n) | (n < 0) | (n * safe <= 10) | is_infinite;
  const Array count = lax::floor(n);
  const Array few = numpy::where(inverts & ~is_infinite & ~is_invalid, count, -1);
  const Array many = numpy::where(inverts, 1e4, count);
  const Array chance = numpy::where(inverts, 0.5, safe);
  const Array draws = numpy::where(inverts, binomial_by_inversion(key, few, safe),
                                   binomial_by_rejection(key, many, chance, inverts));
  const Array result = numpy::where(is_below, draws, count - draws);
  return astype(numpy::where(is_invalid, NAN, numpy::where(is_infinite, INFINITY, result)),
                p.dtype());
}

Array known_shape(std::string_view function, const Array& x, DType dtype, const Shape& shape) {
  return plait::broadcast_to(to_shape_of(function, astype(x, dtype), shape), shape);
}

}  // namespace

Array random::poisson(Operand key, Operand lam, const std::optional<Shape>& shape,
                      OptionalDType dtype) {
  require_key("poisson", key);
  const DType to = dtype.value_or(default_int());
  if (!is_integer(to))
    throw DtypeError("poisson: dtype " + std::string(name_of(to)) + " is not an integer",
                     "ask for an integer dtype");
  const Shape sizes = shape_or("poisson", shape, {lam});
  const Arrays inputs{key, known_shape("poisson", lam, DType::float32, sizes)};
  return in_one_program(
      "poisson", inputs, {{"dtype", to}}, Dim(loops_are_large),
      [&](std::span<const Array> inputs) -> Arrays {
        const Array& mean = inputs[1];
        const Array is_small = numpy::isnan(mean) | (mean < 10);
        const Array few = numpy::where(is_small, mean, 0), many = numpy::where(is_small, 1e5, mean);
        const Array draws = numpy::where(is_small, poisson_by_product(inputs[0], few),
                                         poisson_by_rejection(inputs[0], many, is_small));
        return {astype(numpy::where(numpy::equal(mean, 0), 0, draws), to)};
      });
}

Array random::binomial(Operand key, Operand n, Operand p, const std::optional<Shape>& shape,
                       OptionalDType dtype) {
  require_key("binomial", key);
  const DType to = float_dtype("binomial", dtype);
  const Shape sizes = shape_or("binomial", shape, {n, p});
  const Array chance = to_inexact(p);
  const DType own = chance.aval().weak ? default_float() : chance.dtype();
  const Arrays inputs{key, known_shape("binomial", n, own, sizes),
                      known_shape("binomial", chance, own, sizes)};
  return astype(in_one_program("binomial", inputs, {}, Dim(loops_are_large),
                               [](std::span<const Array> inputs) -> Arrays {
                                 return {binomial_draws(inputs[0], inputs[1], inputs[2])};
                               }),
                to);
}

// Each outcome in turn takes a binomial share of what is left.
Array random::multinomial(Operand key, Operand n, Operand p, const std::optional<Shape>& shape,
                          OptionalDType dtype, int unroll) {
  require_key("multinomial", key);
  const DType to = float_dtype("multinomial", dtype);
  Arrays both{to_inexact(n), to_inexact(p)};
  promote_dtypes(both, "multinomial");
  const DType own = both[1].aval().weak ? default_float() : both[1].dtype();
  if (both[1].ndim() < 1)
    throw ShapeError("multinomial: p is a number", "give the probabilities along the last axis");
  const Shape whole = shape.value_or(both[1].shape());
  const Shape batch(whole.begin(), whole.end() - 1);
  const int last = whole.rank() - 1;
  const Array chances = moved(known_shape("multinomial", both[1], own, whole), last, 0);
  const Array remaining = lax::cumsum(chances, 0, true);
  const Array ratios = chances / numpy::where(numpy::equal(remaining, 0), 1, remaining);
  const Arrays xs{numpy::clip(ratios, 0.0, 1.0), lax::random_split(key, {whole.back()})};
  const flat::Scanned scanned = flat::scan(
      [](std::span<const Array> now) -> Arrays {
        const Array count = binomial_draws(now[2], now[0], now[1]);
        return {lax::sub(now[0], count), count};
      },
      Arrays{known_shape("multinomial", both[0], own, batch)}, xs, {.unroll = unroll});
  return astype(moved(scanned.ys[0], 0, last), to);
}

Array random::geometric(Operand key, Operand p, const std::optional<Shape>& shape,
                        OptionalDType dtype) {
  require_key("geometric", key);
  const DType to = dtype.value_or(default_int());
  if (!is_integer(to))
    throw DtypeError("geometric: dtype " + std::string(name_of(to)) + " is not an integer",
                     "ask for an integer dtype");
  const Array chance = to_inexact(p);
  const DType own = chance.aval().weak ? default_float() : chance.dtype();
  const Shape sizes = shape_or("geometric", shape, {chance});
  const Array u = uniform(key, sizes, own);
  const Array above = numpy::where(numpy::equal(u, 0), 1, u);
  const Array logarithm =
      lax::log1p(lax::neg(to_shape_of("geometric", astype(chance, own), sizes)));
  return astype(lax::floor(numpy::divide(lax::log(above), logarithm)) + 1, to);
}

namespace {

[[maybe_unused]] const FunctionInfo* const counts_functions[] = {
    function("random", "poisson(key, lam, shape=None, dtype=None)",
             "Counts of events whose mean is lam, int32 by default; of the shape of lam unless "
             "given.",
             &random::poisson),
    function("random", "binomial(key, n, p, shape=None, dtype=None)",
             "Successes, as floats, in n trials of probability p; of the shape of both unless "
             "given.",
             &random::binomial),
    function("random", "multinomial(key, n, p, *, shape=None, dtype=None, unroll=1)",
             "Counts, as floats, of outcomes in n trials; p holds their probabilities along the "
             "last axis. unroll outcomes are in one step of the loop.",
             &random::multinomial),
    function("random", "geometric(key, p, shape=None, dtype=None)",
             "Numbers of trials until the first success of probability p, int32 by default.",
             &random::geometric),
};

}  // namespace
}  // namespace plait
