// autocast of C++ functions over structs, and loss scaling.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/plait.h>
#include <plait/transforms/autocast.h>

#include <cmath>

using namespace plait;

namespace {

struct Layer {
  Array w, b;
};

Array loss(const Layer& p, const Array& x) {
  const Array y = numpy::matmul(x, p.w) + p.b;
  return numpy::mean(y * y);
}

Array numbers(const Shape& shape, std::int64_t seed) {
  return random::normal(random::key(seed), shape);
}

}  // namespace

TEST_CASE("autocast computes products in 16 bits and gives gradients of the parameters' dtype") {
  const Layer p{numbers({8, 3}, 0), numbers({3}, 1)};
  const Array x = numbers({16, 8}, 2);
  const Layer exact = grad(loss)(p, x);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const AutocastPolicy policy{dtype};
    for (const Layer& found :
         {grad(autocast(loss, policy))(p, x), autocast(grad(loss), policy)(p, x),
          jit(autocast(grad(jit(loss)), policy))(p, x)}) {
      CHECK(found.w.dtype() == DType::float32);
      const Array error = numpy::sum(lax::abs(found.w - exact.w)) / numpy::sum(lax::abs(exact.w));
      CHECK(error.item<double>() > 0);
      CHECK(error.item<double>() < 0.02);
    }
  }
  CHECK_THROWS_WITH_AS(autocast(loss, {DType::float32})(p, x), doctest::Contains("float32"),
                       ValueError);
}

TEST_CASE("loss scaling over structs undoes the scale and follows overflows") {
  const Layer grads{lax::full({2}, 8, DType::float32), lax::full({1}, 4, DType::float32)};
  const auto state = optim::loss_scale_init(4.0);
  CHECK(optim::scale_loss(Array::literal(3, DType::float32), state).item<float>() == 12);
  auto [unscaled, is_finite, next] = optim::unscale(grads, state, {1, 2.0});
  CHECK(numpy::sum(unscaled.w).item<float>() == 4);
  CHECK(is_finite.item<bool>());
  CHECK(next.scale.item<float>() == 8);
  const Layer infinite{grads.w / 0.0, grads.b};
  auto [unused, still_finite, after] = optim::unscale(infinite, next);
  CHECK_FALSE(still_finite.item<bool>());
  CHECK(after.scale.item<float>() == 4);
}
