// Jaxprs: canonical order, text and its inverse, the checker, instantiation.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/primitives/primitives.h>

#include <string>

#include "../problem.h"

using namespace plait;

namespace {

const Aval vector_f32{{3}, DType::float32};

Jaxpr traced(const Function& f, std::vector<Aval> avals) { return make_jaxpr(f, avals).jaxpr; }

}  // namespace

TEST_CASE("a traced function prints as a jaxpr with canonical names") {
  const Jaxpr jaxpr =
      traced([](std::span<const Array> x) -> Arrays { return {lax::sin(x[0]) * 2.0 + x[1]}; },
             {vector_f32, vector_f32});
  CHECK(print(jaxpr) ==
        "{ lambda ; a:f32[3] b:f32[3] . let\n"
        "    c:f32[3] = sin a\n"
        "    d:f32[3] = mul c 2.0:f32\n"
        "    e:f32[3] = add d b\n"
        "  in (e,) }");
}

TEST_CASE("equations are in depth-first order and dead ones are gone") {
  const Jaxpr jaxpr = traced(
      [](std::span<const Array> x) -> Arrays {
        const Array unused = lax::exp(x[0]);
        const Array second = lax::cos(x[0]);
        const Array first = lax::sin(x[0]);
        return {first + second};
      },
      {vector_f32});
  CHECK(print(jaxpr) ==
        "{ lambda ; a:f32[3] . let\n"
        "    b:f32[3] = sin a\n"
        "    c:f32[3] = cos a\n"
        "    d:f32[3] = add b c\n"
        "  in (d,) }");
}

TEST_CASE("parse is the inverse of print") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  const std::vector<Jaxpr> jaxprs = {
      traced([](std::span<const Array> x) -> Arrays { return {x[0]}; }, {vector_f32}),
      traced([](std::span<const Array>) -> Arrays { return {}; }, {}),
      traced([](std::span<const Array> x)
                 -> Arrays { return {x[0], Array(1.5), Array(true), Array(std::int64_t(-3))}; },
             {vector_f32}),
      traced(
          [](std::span<const Array> x) -> Arrays {
            return {lax::reduce_max(x[0] * lax::full({3}, -INFINITY, DType::float32),
                                    std::vector<int>{0})};
          },
          {vector_f32}),
      traced([&](std::span<const Array> x)
                 -> Arrays { return {lax::reshape(x[0], {m * n}) / Array(n)}; },
             {{{n, m}, DType::float64}}),
      traced([](std::span<const Array> x)
                 -> Arrays { return {lax::dot_general(x[0], x[1], {{1}, {0}, {}, {}})}; },
             {{{2, 3}, DType::bfloat16}, {{3, 4}, DType::bfloat16}}),
  };
  for (const Jaxpr& jaxpr : jaxprs) {
    CAPTURE(print(jaxpr));
    const Jaxpr again = parse(print(jaxpr));
    CHECK(print(again) == print(jaxpr));
    CHECK(again == jaxpr);
    CHECK(again.hash() == jaxpr.hash());
  }
}

TEST_CASE("parse says line, column and what it expected") {
  CHECK(problem([] { parse("{ lambda ; a:f32[3] . let\n    b:f32[3] = sinn a\n  in (b,) }"); }) ==
        "parse: line 2, column 16: expected a primitive that is defined, found `sinn a`");
  CHECK(problem([] { parse("{ lambda ; a:f32[3] . let\n    b:f32[4] = sin a\n  in (b,) }"); }) ==
        "parse: line 2, column 16: expected output b of type f32[3], found `sin a`");
  CHECK(problem([] { parse("{ lambda ; a:f32[3] . let in (b,) }"); }) ==
        "parse: line 1, column 31: expected a var that is bound, found `b,) }`");
  CHECK(problem([] { parse("{ lambda ; a:f32[n] . let in (a,) }"); }) != "");
  CHECK(problem([] { parse(""); }) == "parse: line 1, column 1: expected `{`, and the text ends");
  CHECK(problem([] { parse("{ lambda ; a:u8[] . let in (a, 256:u8) }"); }) != "");
}

TEST_CASE("no prefix and no mutation of a text crashes parse") {
  const std::string text = print(traced(
      [](std::span<const Array> x) -> Arrays {
        return {lax::reduce_sum(lax::tanh(x[0]) * 2.0, std::vector<int>{0})};
      },
      {vector_f32}));
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_THROWS_AS(parse(text.substr(0, i)), Error);
    for (char c : {'(', ']', '9', 'z', '\n'}) {
      std::string changed = text;
      changed[i] = c;
      try {
        parse(changed);
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("scalars that are written as numbers are literals, and fold") {
  const Jaxpr jaxpr = traced(
      [](std::span<const Array> x) -> Arrays { return {x[0] * (Array(2.0) * Array(3.0) + 1.0)}; },
      {vector_f32});
  CHECK(print(jaxpr) ==
        "{ lambda ; a:f32[3] . let\n"
        "    b:f32[3] = mul a 7.0:f32\n"
        "  in (b,) }");
}

TEST_CASE("instantiate gives the text of tracing at those sizes") {
  const Dim n = Dim::size("n"), d = Dim::size("d");
  const Function f = [](std::span<const Array> x) -> Arrays {
    const Array flat = lax::reshape(x[0], {x[0].shape(0) * x[0].shape(1)});
    return {lax::reduce_sum(flat, std::vector<int>{0}) / Array(x[0].shape(0)),
            broadcast_to(flat, {2, x[0].shape(0) * x[0].shape(1)})};
  };
  const Jaxpr named = traced(f, {{{n, d}, DType::float32}});
  for (std::int64_t rows : {1, 2, 5}) {
    const std::vector<std::pair<Dim, Dim>> sizes{{n, rows}, {d, 3}};
    CHECK(print(instantiate(named, sizes)) == print(traced(f, {{{rows, 3}, DType::float32}})));
  }
  CHECK(problem([&] {
          instantiate(named, std::vector<std::pair<Dim, Dim>>{{Dim::size("z"), 1}});
        }) == "the program has no size named 'z'");
}

TEST_CASE("equal programs are equal whatever lines they came from") {
  const Function f = [](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; };
  const Function g = [](std::span<const Array> y) -> Arrays { return {lax::sin(y[0])}; };
  CHECK(traced(f, {vector_f32}) == traced(g, {vector_f32}));
  CHECK_FALSE(traced(f, {vector_f32}) == traced(f, {{{4}, DType::float32}}));
}

TEST_CASE("a program of 100,000 equations closes, prints and parses in linear time") {
  const Jaxpr jaxpr = traced(
      [](std::span<const Array> x) -> Arrays {
        Array y = x[0];
        for (int i = 0; i < 50000; ++i) y = lax::sin(y) + x[0];
        return {y};
      },
      {vector_f32});
  CHECK(jaxpr->equations.size() == 100000);
  CHECK(parse(print(jaxpr)) == jaxpr);
}

TEST_CASE("check cites the invariant that a program breaks") {
  const Jaxpr good =
      traced([](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; }, {vector_f32});
  auto broken = [&](auto change) {
    auto data = std::make_shared<JaxprData>();
    data->num_binders = good->num_binders;
    data->avals = good->avals;
    data->equations = good->equations;
    data->outputs = good->outputs;
    change(*data);
    return problem([&] { check(Jaxpr(data)); });
  };
  CHECK(problem([&] { check(good); }) == "");
  CHECK(broken([](JaxprData& j) { j.outputs[0] = Var{7}; }).find("J1") != std::string::npos);
  CHECK(broken([](JaxprData& j) { j.avals[0].shape = {Dim::size("n")}; }).find("J2") !=
        std::string::npos);
  CHECK(broken([](JaxprData& j) { j.avals[1].dtype = DType::int32; }).find("J4") !=
        std::string::npos);
  CHECK(broken([](JaxprData& j) {
          j.outputs[0] = Literal{DType::uint8, false, 300, 0, 0};
        }).find("J5") != std::string::npos);
  CHECK(broken([](JaxprData& j) { j.outputs = {Var{0}}; }).find("J6") != std::string::npos);
}
