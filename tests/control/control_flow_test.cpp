// cond, while and scan under every transform, against loops written here in C++.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/control/primitives.h>
#include <plait/plait.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/prune.h>

#include <cmath>

using namespace plait;

namespace {

Array vector(const std::vector<double>& values) {
  Buffer buffer = Buffer::empty(DType::float64, {std::int64_t(values.size())});
  std::copy(values.begin(), values.end(), static_cast<double*>(buffer.mutable_data()));
  return Array(std::move(buffer));
}
double at(const Array& x, std::int64_t i = 0) {
  return static_cast<const double*>(x.buffer().dense().data())[i];
}
Array number(double value) { return Array::literal(value, DType::float64); }

// h' = sin(h * w) + x for each x; y = h * x.
Arrays recurrence(std::span<const Array> in) {
  const flat::Scanned done = flat::scan(
      [&](std::span<const Array> now) -> Arrays {
        return {lax::sin(now[0] * in[2]) + now[1], now[0] * now[1]};
      },
      in.first(1), in.subspan(1, 1));
  return {done.carry[0], done.ys[0]};
}
double recurrence_sum(double h, const std::vector<double>& xs, double w) {
  double sum = 0;
  for (double x : xs) {
    sum += h * x;
    h = std::sin(h * w) + x;
  }
  return sum + h;
}
Arrays recurrence_loss(std::span<const Array> in) {
  const Arrays out = recurrence(in);
  return {out[0] + lax::reduce_sum(out[1], std::vector<int>{0})};
}

// Halves x until it is below one, counting.
Arrays halve(std::span<const Array> in) {
  return flat::while_loop(
      [](std::span<const Array> now) -> Arrays { return {lax::gt(now[0], number(1))}; },
      [](std::span<const Array> now) -> Arrays { return {now[0] * 0.5, now[1] + 1}; }, in);
}

Arrays branches(std::span<const Array> in) {
  return flat::cond(in[0],
                    {[](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; },
                     [](std::span<const Array> x) -> Arrays { return {lax::log(x[0])}; },
                     [](std::span<const Array> x) -> Arrays { return {x[0] * x[0]}; }},
                    in.subspan(1));
}

}  // namespace

TEST_CASE("scan: values and gradients are those of a loop, eager and jitted") {
  const std::vector<double> xs{0.3, -0.2, 0.5, 0.9};
  const double h = 0.4, w = 1.3, step = 1e-6;
  const Arrays inputs{number(h), vector(xs), number(w)};
  const flat::Jit jitted(recurrence_loss, "recurrence_loss");
  for (const Function& f : {Function(recurrence_loss), Function(jitted)}) {
    CHECK(at(f(inputs)[0]) == doctest::Approx(recurrence_sum(h, xs, w)).epsilon(1e-12));
    const flat::ValueAndGrad result = flat::value_and_grad(f, inputs, {true, true, true});
    auto difference = [&](double dh, double dw) {
      return (recurrence_sum(h + dh, xs, w + dw) - recurrence_sum(h - dh, xs, w - dw)) / (2 * step);
    };
    CHECK(at(result.gradients[0]) == doctest::Approx(difference(step, 0)).epsilon(1e-7));
    CHECK(at(result.gradients[2]) == doctest::Approx(difference(0, step)).epsilon(1e-7));
    for (std::size_t i = 0; i < xs.size(); ++i) {
      std::vector<double> more = xs, less = xs;
      more[i] += step, less[i] -= step;
      const double expected =
          (recurrence_sum(h, more, w) - recurrence_sum(h, less, w)) / (2 * step);
      CHECK(at(result.gradients[1], std::int64_t(i)) == doctest::Approx(expected).epsilon(1e-7));
    }
  }
}

TEST_CASE("while: values, forward derivatives, and lanes that end at different times") {
  const Arrays one = halve(Arrays{number(10), Array::literal(0, DType::int32)});
  CHECK(at(one[0]) == 0.625);
  CHECK(one[1].item<int>() == 4);
  const Differentiated pushed =
      flat::jvp(halve, Arrays{number(10), Array::literal(0, DType::int32)},
                Tangents{number(1), Tangent(Aval{{}, DType::int32})});
  CHECK(at(pushed.tangents[0].array()) == 0.0625);
  flat::VmapOptions options;
  options.in_dims = {0, std::nullopt};
  const Arrays inputs{vector({10, 0.5, 3, 100}), Array::literal(0, DType::int32)};
  const Arrays many = flat::vmap(halve, inputs, options);
  const int steps[] = {4, 0, 2, 7};
  const double ends[] = {0.625, 0.5, 0.75, 0.78125};
  for (int i = 0; i < 4; ++i) {
    CHECK(at(many[0], i) == ends[i]);
    CHECK(static_cast<const int*>(many[1].buffer().data())[i] == steps[i]);
  }
}

TEST_CASE("cond: the branch not taken contributes an exact zero, under vmap too") {
  auto gradient = [](std::span<const Array> in) {
    return flat::value_and_grad(branches, in, {false, true}).gradients;
  };
  const Array index = Array::literal(2, DType::int32);
  CHECK(at(gradient(Arrays{index, number(-3)})[0]) == -6);  // log(-3) is NaN
  flat::VmapOptions options;
  options.in_dims = {0, 0};
  Buffer which = Buffer::empty(DType::int32, {4});
  for (int i = 0; i < 4; ++i) static_cast<int*>(which.mutable_data())[i] = i;
  const Arrays many = flat::vmap(gradient, Arrays{Array(which), vector({0, 2, -3, -1})}, options);
  const double expected[] = {1, 0.5, -6, -2};  // an index of 3 is clamped
  for (int i = 0; i < 4; ++i) CHECK(at(many[0], i) == expected[i]);
}

namespace {

struct State {
  Array x, steps;
};
State newton(const Array& a) {
  return lax::while_loop(
      [&](const State& s) {
        return lax::gt(lax::abs(s.x * s.x - a), Array::literal(1e-12, DType::float64));
      },
      [&](const State& s) { return State{0.5 * (s.x + a / s.x), s.steps + 1}; },
      State{a, Array::literal(0, DType::int32)});
}
Array root(const Array& a) { return newton(a).x; }

}  // namespace

TEST_CASE("the typed functions take lambdas, structs and captures, and differentiate") {
  CHECK(at(root(number(2))) == doctest::Approx(std::sqrt(2.0)).epsilon(1e-12));
  CHECK(at(grad(root)(number(2))) == doctest::Approx(0.5 / std::sqrt(2.0)).epsilon(1e-9));
  CHECK(at(jit(grad(grad(root)))(number(2))) ==
        doctest::Approx(-0.25 / std::pow(2.0, 1.5)).epsilon(1e-7));
  const Array many = vmap(grad(root))(vector({1.5, 4, 100}));
  for (int i = 0; const double a : {1.5, 4.0, 100.0})
    CHECK(at(many, i++) == doctest::Approx(0.5 / std::sqrt(a)).epsilon(1e-8));

  const Array w = number(3);
  const auto [last, ys] = lax::scan(
      [&](const State& s, const Array& x) {
        const State next{s.x * w + x, s.steps + 1};
        return std::pair{next, next.x};
      },
      State{number(0), Array::literal(0, DType::int32)}, vector({1, 2, 3}));
  CHECK(at(last.x) == 18);
  CHECK(last.steps.item<int>() == 3);
  CHECK(at(ys, 1) == 5);

  auto branch = [&](const Array& x) {
    return lax::cond(
        lax::gt(x, number(0)), [](const Array& y) { return lax::log(y); },
        [&](const Array& y) { return y * w; }, x);
  };
  CHECK(at(branch(number(-2))) == -6);
  CHECK(at(grad(std::function<Array(const Array&)>(branch))(number(4))) == 0.25);
  CHECK(at(lax::fori_loop(
            1, 5, [](const Array& i, const Array& p) { return p * i; }, number(1))) == 24);
  CHECK(at(lax::map([](const Array& x) { return x * x; }, vector({1, 2, 3}), 2), 2) == 9);
  const Array sums = lax::associative_scan([](const Array& a, const Array& b) { return a + b; },
                                           vector({1, 2, 3, 4, 5}));
  CHECK(at(sums, 4) == 15);
}

TEST_CASE("lanes: the work is that of the examples that go on, backwards too") {
  const auto power = [](const Array& x, const Array& n) {
    struct State {
      Array i, product;
    };
    return lax::while_loop([&](const State& s) { return lax::lt(s.i, n); },
                           [&](const State& s) { return State{s.i + 1.0, s.product * x}; },
                           State{number(0), number(1)})
        .product;
  };
  std::vector<double> xs, ns;
  double steps = 0;
  for (int i = 0; i < 64; ++i) {
    xs.push_back(1 + i / 64.0);
    ns.push_back(i == 40 ? 50 : i % 3);
    steps += ns.back();
  }
  const LaneWork before = lane_work();
  const Array slopes = jit(vmap(grad(std::function(power)), {0, 0}))(vector(xs), vector(ns));
  const LaneWork after = lane_work();
  for (int i = 0; i < 64; ++i)
    CHECK(at(slopes, i) == doctest::Approx(ns[i] * std::pow(xs[i], ns[i] - 1)));
  CHECK(after.live - before.live == 2 * std::int64_t(steps));
  CHECK(after.all - before.all <= 2 * (after.live - before.live));
}

TEST_CASE("loops refuse carries that change, and go on unharmed") {
  auto grows = [] {
    lax::while_loop([](const Array&) { return Array(true); },
                    [](const Array& x) { return lax::reshape(x, {1}); }, number(1));
  };
  CHECK_THROWS_WITH_AS(
      grows(), doctest::Contains("has type f64[] at the start, and the body returns f64[1]"),
      ShapeError);
  auto endless = [] {
    lax::while_loop([](const Array&) { return Array(true); },
                    [](const Array& x) { return x + 1.0; }, number(1), {.max_steps = 10});
  };
  CHECK_THROWS_WITH_AS(endless(), doctest::Contains("max_steps = 10"), ValueError);
  CHECK(at(root(number(9))) == doctest::Approx(3));
}

TEST_CASE("unrolled and checkpointed loops have the values and gradients of a loop") {
  const std::vector<double> xs{0.3, -0.2, 0.5, 0.9, 0.1};
  const double h = 0.4, step = 1e-6;
  for (const flat::ScanOptions& options :
       {flat::ScanOptions{.unroll = 2}, flat::ScanOptions{.unroll = 0},
        flat::ScanOptions{.checkpoints = 2}, flat::ScanOptions{.unroll = 2, .checkpoints = 1}}) {
    auto loss = [&](const Array& h) {
      const auto [last, ys] = lax::scan(
          [](const Array& h, const Array& x) {
            return std::pair<Array, Array>{lax::sin(h * 1.3) + x, h * x};
          },
          h, vector(xs), options);
      return Array(last + lax::reduce_sum(ys, std::vector<int>{0}));
    };
    const std::function<Array(const Array&)> f = loss;
    CHECK(at(f(number(h))) == doctest::Approx(recurrence_sum(h, xs, 1.3)).epsilon(1e-12));
    const double slope =
        (recurrence_sum(h + step, xs, 1.3) - recurrence_sum(h - step, xs, 1.3)) / (2 * step);
    CHECK(at(grad(f)(number(h))) == doctest::Approx(slope).epsilon(1e-7));
    CHECK(at(jit(grad(f))(number(h))) == doctest::Approx(slope).epsilon(1e-7));
  }
  auto power = [](const Array& x) {
    const flat::WhileOptions options{.checkpoints = 2};
    return lax::while_loop(
               [](const State& s) { return lax::lt(s.steps, Array::literal(9, DType::int32)); },
               [&](const State& s) { return State{s.x * x, s.steps + 1}; },
               State{x, Array::literal(0, DType::int32)}, options)
        .x;
  };
  const std::function<Array(const Array&)> f = power;
  CHECK(at(grad(f)(number(1.1))) == doctest::Approx(10 * std::pow(1.1, 9)));
  CHECK(at(jit(grad(grad(f)))(number(1.1))) == doctest::Approx(90 * std::pow(1.1, 8)));
  CHECK(at(lax::fori_loop(
            1, 6, [](const Array& i, const Array& p) { return p * i; }, number(1), 3)) == 120);
  CHECK_THROWS_WITH_AS(
      lax::scan([](const Array& c, const Array& x) { return std::pair<Array, Array>{c, x}; },
                number(0), vector(xs), {.checkpoints = 0}),
      doctest::Contains("checkpoints is 0"), ValueError);
}

TEST_CASE("a checkpointed while loop keeps so many carries, and segments of almost equal length") {
  for (const std::int64_t k : {1, 2, 3, 8, 9}) {
    for (const std::int64_t n : {0, 1, 5, 64, 1000}) {
      const Function loop = [&](std::span<const Array> in) {
        return flat::while_loop(
            [&](std::span<const Array> now) -> Arrays {
              return {lax::lt(now[1], Array::literal(double(n), DType::int32))};
            },
            [](std::span<const Array> now) -> Arrays { return {lax::sin(now[0]), now[1] + 1}; },
            Arrays{in[0], Array::literal(0, DType::int32)}, {.checkpoints = k});
      };
      const flat::LinearMap map = flat::linearize(loop, Arrays{number(0.7)}, {true});
      std::int64_t sum = 0, longest = 0, num_carries = 0;
      for (const Array& kept : map.residuals) {
        CHECK(kept.ndim() == 1);
        CHECK(kept.shape(0).constant() <= std::max<std::int64_t>(2, k));
        num_carries += kept.dtype() == DType::float64;
        if (kept.dtype() != DType::int64) continue;
        for (std::int64_t i = 0; i < kept.shape(0).constant(); ++i) {
          const std::int64_t steps = static_cast<const std::int64_t*>(kept.buffer().data())[i];
          sum += steps;
          longest = std::max(longest, steps);
        }
      }
      CHECK(num_carries == 1);
      CHECK(sum == n);
      CHECK(longest <= n / std::max<std::int64_t>(1, k / 2) + 1);
    }
  }
}

namespace {

// h' = tanh(h cos(w) + x), y = sin(h) for each x; another carry sums exp(h).
Arrays wasteful(std::span<const Array> in) {
  const flat::Scanned done = flat::scan(
      [&](std::span<const Array> now) -> Arrays {
        return {lax::tanh(now[0] * lax::cos(in[1]) + now[2]), now[1] + lax::exp(now[0]),
                lax::sin(now[0])};
      },
      Arrays{in[0], number(0)}, in.subspan(2));
  return {done.carry[0]};
}
std::string gradient_program(const Function& f) {
  const std::vector<Aval> avals{{{}, DType::float64}, {{}, DType::float64}, {{4}, DType::float64}};
  const Jaxpr plain = make_jaxpr(f, avals).jaxpr;
  return print(prune(make_closed_jaxpr(
      [&](std::span<const Array> in) {
        const Function body = [&](std::span<const Array> x) { return flat::call(plain, x); };
        return flat::value_and_grad(body, in, {true, true, false}).gradients;
      },
      avals)));
}

}  // namespace

TEST_CASE("the gradient of a scan keeps what all steps share once, and computes nothing unused") {
  CHECK(gradient_program(wasteful) == R"({ lambda ; a:f64[] b:f64[] c:f64[4] . let
    d:f64[4] e:f64[4] f:f64[] g:f64[] = call[body={ lambda ; a:f64[] b:f64[] c:f64[4] . let
          d:f64[] e:f64[4] f:f64[4] = scan[body={ lambda ; a:f64[] b:f64[] c:f64[] . let
                d:f64[] = cos c
                e:f64[] = mul a d
                f:f64[] = add e b
                g:f64[] = tanh f
                h:f64[] = mul g g
                i:f64[] = sub 1.0:f64* h
              in (g, a, i) }, carry=1, length=4, reverse=false, xs=1] a c b
          g:f64[] = sin b
          h:f64[] = neg g
          i:f64[] = cos b
        in (e, f, h, i) }] a b c
    h:f64[] i:f64[] = call[body={ lambda ; a:f64[4] b:f64[4] c:f64[] d:f64[] e:f64[] . let
          f:f64[] g:f64[] = scan[body={ lambda ; a:f64[] b:f64[] c:f64[] d:f64[] e:f64[] f:f64[] . let
                g:f64[] = mul a d
                h:f64[] = mul g f
                i:f64[] = mul g c
                j:f64[] = mul i e
                k:f64[] = add b j
              in (h, k) }, carry=2, length=4, reverse=true, xs=2] e 0.0:f64 a b c d
        in (f, g) }] d e f g 1.0:f64
  in (h, i) })");
}
