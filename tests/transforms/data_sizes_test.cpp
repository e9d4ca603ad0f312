// Sizes from data: functions that choose elements, under jit, grad and vmap, in C++; and the
// programs that they become.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/numpy.h>
#include <plait/plait.h>
#include <plait/trace/data_sizes.h>

using namespace plait;

namespace {

Array chosen(const Array& x) {
  return getitem(x, {lax::gt(x, lax::full(x.shape(), 0, x.dtype()))});
}
Array mean_of_chosen(const Array& x) { return numpy::mean(chosen(x)); }

Array example() { return numpy::array({1., -2., 3., 5.}, DType::float32); }

}  // namespace

TEST_CASE("a jitted function returns the elements that a mask chooses, for any mask") {
  const auto f = jit(chosen);
  CHECK(f(example()).to_vector<float>() == std::vector<float>{1, 3, 5});
  CHECK(f(-example()).to_vector<float>() == std::vector<float>{2});
  CHECK(f(lax::full({4}, -1, DType::float32)).shape() == Shape{0});
}

TEST_CASE("what is computed from chosen elements is differentiated and batched") {
  const float third = 1.0F / 3;
  const std::vector<float> slopes{third, 0, third, third};
  CHECK(jit(grad(mean_of_chosen))(example()).to_vector<float>() == slopes);
  CHECK(grad(jit(mean_of_chosen))(example()).to_vector<float>() == slopes);
  const Array rows =
      lax::concatenate({lax::reshape(example(), {1, 4}), lax::reshape(-example(), {1, 4})}, 0);
  CHECK(vmap(jit(mean_of_chosen))(rows).to_vector<float>() == std::vector<float>{3, 2});
  CHECK(jit(vmap(mean_of_chosen))(rows).to_vector<float>() == std::vector<float>{3, 2});
}

TEST_CASE("the program keeps the size within one masked equation") {
  const Jaxpr program = make_jaxpr(mean_of_chosen, example()).jaxpr;
  check(program);
  CHECK(program->sizes.empty());
  int masked = 0;
  for (const Equation& equation : program->equations)
    masked += equation.primitive->name() == "masked";
  CHECK(masked == 1);
}

TEST_CASE("equal masks choose equally many, and others need not") {
  const auto f = jit([](const Array& x) {
    const Array y = chosen(x) * chosen(x);
    return std::pair(chosen(y - 8.0), numpy::sum(y));
  });
  const auto [above, sum] = f(example());
  CHECK(above.to_vector<float>() == std::vector<float>{1, 17});
  CHECK(sum.item<float>() == 35);
  const auto g = jit([](const Array& x) { return chosen(x) + chosen(-x); });
  CHECK_THROWS_AS(g(example()), ShapeError);
}

TEST_CASE("a function whose result is of such a size is refused where sizes must be known") {
  CHECK_THROWS_AS(make_jaxpr(chosen, example()), ShapeError);
  const auto f = jit(chosen);
  Array result;
  CHECK_THROWS_AS(f.run_into(result, example()), ShapeError);
}
