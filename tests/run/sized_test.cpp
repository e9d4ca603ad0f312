// Constraints on named sizes, and functions that run at the sizes of their calls: per size, in
// buckets, up to a bound.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/size_facts.h>
#include <plait/compile/sized.h>
#include <plait/plait.h>

#include "../problem.h"

using namespace plait;

namespace {

struct Pair {
  Array sum, rows;
};

Pair model(const Array& x, const Array& w) {
  const Array y = numpy::tanh(numpy::matmul(x, w));
  return {numpy::sum(y), y};
}

Array rows(std::int64_t n, std::int64_t d = 3) {
  return numpy::sin(lax::iota(DType::float32, {n, d}, 0) + lax::iota(DType::float32, {n, d}, 1));
}

double number(const Array& x) { return double(x.item<float>()); }

Array halves(const Array& x) {
  return numpy::sum(numpy::reshape(x, {floor_divide(x.shape(0), 8), 8}), 1);
}

}  // namespace

TEST_CASE("what is known of sizes decides orders in its scope, and nothing after it") {
  const Dim n = Dim::size("n"), m = Dim::size("m"), k = Dim::size("k");
  CHECK_FALSE(less_equal(2, n));
  {
    const std::pair<Dim, Dim> orders[] = {{4, n}, {n, m}, {m, k}};
    const SizeFacts facts(orders);
    CHECK(less_equal(2, n) == true);
    CHECK(less_equal(4, k) == true);  // through m
    CHECK(less_equal(n + m, 2 * k) == true);
    CHECK(less_equal(12, 3 * n) == true);
    CHECK(less_equal(n, 3) == false);
    CHECK_FALSE(less_equal(5, n));
    CHECK_FALSE(less_equal(m, n));
    const NoSizeFacts nothing;
    CHECK_FALSE(less_equal(2, n));
  }
  CHECK_FALSE(less_equal(2, n));
}

TEST_CASE("what facts decide holds at every size that satisfies them") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  const std::pair<Dim, Dim> orders[] = {{3, n}, {2 * n, m}, {m, 11}};
  const SizeFacts facts(orders);
  for (const char* left : {"n", "m", "2*n", "m-n", "n//2", "m%4", "min(n, 5)", "7"})
    for (const char* right : {"n", "m", "2*n", "m-n", "n+1", "m//2", "10", "max(n, m)"}) {
      const Dim a = Dim::parse(left), b = Dim::parse(right);
      const std::optional<bool> decided = less_equal(a, b);
      if (!decided) continue;
      for (std::int64_t x = 3; 2 * x <= 11; ++x)
        for (std::int64_t y = 2 * x; y <= 11; ++y) {
          const auto at = [&](std::string_view name) { return std::optional(name == "n" ? x : y); };
          CAPTURE(left);
          CAPTURE(right);
          CHECK((a.evaluate(at) <= b.evaluate(at)) == *decided);
        }
    }
}

TEST_CASE("constraints are read, and what they say is in the program") {
  const Constraints constraints{"t % 8 == 0", "t % 12 == 0", "0 < n <= m", "2*n == m"};
  REQUIRE(constraints.multiples().size() == 1);
  CHECK(constraints.multiples()[0].second == 24 * Dim::size("t_24"));
  std::string text;
  for (const Constraint& order : constraints.orders()) text += to_string(order) + "; ";
  CHECK(text == "n >= 1; n <= m; 2*n <= m; m <= 2*n; ");
  const Jaxpr program = make_jaxpr(halves, Constraints{"t % 8 == 0", "t <= 64"}, "t").jaxpr;
  CHECK(print(program).starts_with("{ lambda t_8 ; a:f32[8*t_8] where 8*t_8<=64 . let"));
  CHECK(parse(print(program)) == program);
  check(program);
  CHECK(print(instantiate(program, {{"t", 16}})) == print(make_jaxpr(halves, "16").jaxpr));
  CHECK(problem([&] { instantiate(program, {{"t", 12}}); }) ==
        "instantiate: the size t is 12, and the program needs t % 8 == 0");
}

TEST_CASE("jit of named sizes gives the same however it runs, traced once") {
  const Array w = rows(3, 2);
  for (const SizeOptions& options :
       std::vector<SizeOptions>{{},
                                {.executables = 2},
                                {.buckets = powers_of_two},
                                {.buckets = {{"b", {4, 16}}}},
                                {.constraints = {"b > 0"}, .bound = {{"b", 16}}}}) {
    const auto f = jit(model, {"b 3", std::nullopt}, options);
    for (std::int64_t n : {1, 5, 4, 9, 5}) {
      const Pair wanted = model(rows(n), w), given = f(rows(n), w);
      CHECK(given.rows.shape() == wanted.rows.shape());
      CHECK(number(given.sum) == doctest::Approx(number(wanted.sum)));
      CHECK(number(numpy::max(numpy::abs(given.rows - wanted.rows))) < 1e-6);
    }
    CHECK(f.num_traces() == 1);
  }
  const auto f = jit(model, {"b 3", std::nullopt}, {.bound = {{"b", 8}}});
  const std::string text = f.explain(rows(2), w);
  CHECK(text.starts_with("sizes: b = 2; masked, padded to b = 8: "));
  CHECK(problem([&] { f(rows(9), w); }) == "jit: the size b of `f` is 9, and its bound is 8");
  CHECK(problem([&] { f(rows(2, 4), w); }) ==
        "jit: argument 0, axis 1 has size 4, where 3 is needed");
  // Through transforms.
  const auto loss = [&](const Array& x) { return f(x, w).sum; };
  const auto plain = [&](const Array& x) { return model(x, w).sum; };
  const Array slope = grad(loss)(rows(5)) - grad(plain)(rows(5));
  CHECK(number(numpy::max(numpy::abs(slope))) < 1e-6);
}
