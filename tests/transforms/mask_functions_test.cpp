// mask, make_jaxpr on specs, instantiate and ragged over C++ functions and structs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mask_properties.h"

using namespace plait;
using namespace plait::test;
namespace jnp = plait::numpy;

namespace {

struct Weights {
  Array w, b;
};
struct Scores {
  Array rows, total;
};

Array normal(Shape shape, unsigned seed) { return values_for({{shape, DType::float64}}, seed); }
Weights weights() { return {normal({2, 3}, 1), normal({3}, 2)}; }
Array mean_of_tanh(const Weights& p, const Array& x) {
  const Array y = jnp::tanh(jnp::matmul(x, p.w) + p.b);
  return jnp::sum(y) / (Array(x.shape(0)) + 1.0);
}
Scores scores(const Weights& p, const Array& x) {
  const Array rows = jnp::sum(jnp::tanh(jnp::matmul(x, p.w) + p.b), 1);
  return {rows, jnp::sum(rows)};
}
Array lengths_of(const std::vector<std::int64_t>& lengths) { return array<std::int64_t>(lengths); }

}  // namespace

TEST_CASE("mask of a C++ function over structs is the function of the real part") {
  const Weights p = weights();
  const auto m = mask(mean_of_tanh, {{"d k", "k"}, "n d"});
  for (std::int64_t n : {0, 1, 3, 4}) {
    const Array x = normal({n, 2}, 7), padded = refilled(x, {4, 2});
    for (const Array& size : {Array(n), array<std::int32_t>({std::int32_t(n)}, {}),
                              array<std::uint8_t>({std::uint8_t(n)}, {})})
      check_close(m(p, padded, Sizes{{"n", size}}), mean_of_tanh(p, x));
    const auto [value, gradients] = value_and_grad<0, 1>(m)(p, padded, Sizes{{"n", n}});
    const auto [by_p, by_x] = grad<0, 1>(mean_of_tanh)(p, x);
    check_close(std::get<0>(gradients).w, by_p.w);
    check_close(std::get<0>(gradients).b, by_p.b);
    check_close(std::get<1>(gradients), refilled(by_x, {4, 2}, false));
  }
  const Array x = normal({4, 2}, 7);
  CHECK(problem_and_fix([&] { m(p, x, {}); }).starts_with("mask: the call gives no size"));
}

TEST_CASE("a ragged batch in C++ is a loop, in values and gradients, and compiles once") {
  const Weights p = weights();
  const std::vector<std::int64_t> lengths = {3, 0, 4, 1};
  Arrays rows;
  for (std::int64_t n : lengths) rows.push_back(normal({n, 2}, 11 + unsigned(n)));
  Arrays padded;
  for (const Array& row : rows) padded.push_back(refilled(row, {4, 2}));
  const Array batch = stacked(padded);
  int traces = 0;
  const auto m =
      mask([&](const Weights& weights, const Array& x) { return ++traces, scores(weights, x); },
           {{"d k", "k"}, "n d"}, {"n", ""});
  const auto ragged_batch = jit(vmap(m, {std::nullopt, 0, 0}));
  auto total = [&](const Weights& weights, const Array& x, const Sizes& sizes) -> Array {
    return jnp::sum(ragged_batch(weights, x, sizes).total);
  };
  const Scores together = ragged_batch(p, batch, Sizes{{"n", lengths_of(lengths)}});
  const auto [by_p, by_x] = jit(grad<0, 1>(total))(p, batch, Sizes{{"n", lengths_of(lengths)}});
  Array wanted = jnp::zeros({2, 3}, DType::float64);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Scores one = scores(p, rows[i]);
    check_close(example_of(together.total, 0, std::int64_t(i)), one.total);
    check_close(example_of(together.rows, 0, std::int64_t(i)), refilled(one.rows, {4}, false));
    auto alone = [](const Weights& weights, const Array& x) { return scores(weights, x).total; };
    const auto [g, h] = grad<0, 1>(alone)(p, rows[i]);
    wanted = wanted + g.w;
    check_close(example_of(by_x, 0, std::int64_t(i)), refilled(h, {4, 2}, false));
  }
  check_close(by_p.w, wanted);
  const int before = traces;
  for (std::int64_t shift = 0; shift < 4; ++shift)
    ragged_batch(p, batch, Sizes{{"n", lengths_of({shift, 4 - shift, 2, 0})}});
  CHECK(traces == before);
}

TEST_CASE("per-example gradients of a ragged batch, and vmap in chunks") {
  const Weights p = weights();
  const std::vector<std::int64_t> lengths = {2, 0, 3};
  Arrays rows, padded;
  for (std::int64_t n : lengths)
    rows.push_back(normal({n, 2}, 21 + unsigned(n))),
        padded.push_back(refilled(rows.back(), {3, 2}));
  const auto m = grad(mask(mean_of_tanh, {{"d k", "k"}, "n d"}));
  const Sizes sizes{{"n", lengths_of(lengths)}};
  const Weights all = vmap(m, {std::nullopt, 0, 0})(p, stacked(padded), sizes);
  const Weights chunks = vmap(m, {std::nullopt, 0, 0}, 0, 2)(p, stacked(padded), sizes);
  check_close(chunks.w, all.w);
  for (std::size_t i = 0; i < rows.size(); ++i)
    check_close(example_of(all.w, 0, std::int64_t(i)), grad(mean_of_tanh)(p, rows[i]).w);
}

TEST_CASE("make_jaxpr of C++ functions takes specs in place of values") {
  auto product = [](const Array& x, const Array& w) -> Array { return jnp::matmul(x, w); };
  const Traced named = make_jaxpr(product, "n d", "d k");
  CHECK(print(named.jaxpr).substr(0, 42) == "{ lambda n d k ; a:f32[n,d] b:f32[d,k] . l");
  const Traced numbers = make_jaxpr(product, "4 3", "3 2");
  CHECK(print(instantiate(named.jaxpr, {{"n", 4}, {"d", 3}, {"k", 2}})) == print(numbers.jaxpr));
  CHECK(print(instantiate(named.jaxpr, {{"n", 4}})).substr(0, 22) == "{ lambda d k ; a:f32[4");
  // Structs take a spec for each part, or one for all; values stand beside specs.
  auto applied = [](const Weights& p, const Array& x) -> Array {
    return jnp::matmul(x, p.w) + p.b;
  };
  CHECK(make_jaxpr(applied, SpecTree{"d k", "k"}, "n d").jaxpr->sizes.size() == 3);
  CHECK(make_jaxpr(applied, weights(), "f64[n 2]").jaxpr->input_avals()[2].to_string() ==
        "f64[n,2]");
  CHECK(make_jaxpr(product, normal({4, 3}, 1), Spec("f64[3 k]"))
            .jaxpr->input_avals()[1]
            .to_string() == "f64[3,k]");
}

TEST_CASE("a declared output of mask that equals the traced one for sizes is accepted") {
  const auto tail = [](const Array& x) -> Array {
    return lax::slice_in_dim(x, 1, x.shape(0), 1, 0);
  };
  const Array x = normal({4}, 3);
  const auto m = mask(tail, "n", "n-1");
  const std::vector<double> cut = elements<double>(m(x, {{"n", 3}})), all = elements<double>(x);
  CHECK(cut == std::vector<double>{all[1], all[2], 0});
  CHECK(problem_and_fix([&] { m(x, {{"n", 0}}).buffer(); }).find("needs 1 <= n") !=
        std::string::npos);
  CHECK(problem_and_fix([&] {
          mask(tail, "n", "n-2")(x, {{"n", 3}});
        }).starts_with("mask: output 0 has shape (n-1), and out_shapes says \"n-2\""));
}

TEST_CASE("errors of named sizes in C++ say what Python's say") {
  const Weights p = weights();
  const Array x = normal({4, 2}, 3);
  const auto m = mask(mean_of_tanh, {{"d k", "k"}, "n d"});
  CHECK(problem_and_fix([&] { m(p, x, {{"n", 5}}); }) ==
        "mask: the size n is 5, and the arrays are padded to 4 | give a size that is at most that, "
        "or pad the arrays to a larger one");
  CHECK(
      problem_and_fix([&] { m(p, x, {{"m", 2}}); }) ==
      "mask: there is no size named 'm' in in_shapes | give values for some of its sizes: d, k, n");
  CHECK(problem_and_fix([&] { mask(mean_of_tanh, "n d")(p, x, {}); }) ==
        "mask: in_shapes has 1 spec, and the function takes 2 arguments | give one spec for each "
        "argument");
  CHECK(problem_and_fix([&] {
          mask(mean_of_tanh, {{"d k", "k", "k"}, "n d"})(p, x, {});
        }).starts_with("mask: in_shapes does not fit: a list of 3 for the 2 parts of "));
  CHECK(
      problem_and_fix([&] { mask(scores, {{"d k", "k"}, "n d"}, {"n", "1"})(p, x, {{"n", 2}}); }) ==
      "mask: output 1 has shape (), and out_shapes says \"1\" | correct out_shapes, or leave it "
      "away");
  CHECK(problem_and_fix([&] { make_jaxpr(mean_of_tanh, p, std::nullopt); }) ==
        "make_jaxpr: argument 2: a spec of std::nullopt takes all from the call, and there is no "
        "value "
        "here | give a value, or a spec such as \"n d\"");
  CHECK(problem_and_fix([&] {
          instantiate(make_jaxpr(mean_of_tanh, p, "f64[n 2]").jaxpr, {{"m", 2}});
        }) == "the program has no size named 'm' | name one of its sizes");
}
