// shard_map from C++: blocks, what varies, gradients, and what is refused. The law over random
// programs is in tests/python/test_shard_map.py.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/mesh.h>
#include <plait/plait.h>

using namespace plait;

namespace {

struct Layer {
  Array w, b;
};

const Mesh mesh({2, 3}, {"data", "model"});

Array whole(const Array& x) { return numpy::sum(numpy::tanh(x)); }

}  // namespace

TEST_CASE("shard_map gives each place its block, and puts blocks together") {
  const Array x = numpy::reshape(numpy::arange(24.0), {4, 6});
  const auto twice = shard_map([](const Array& block) { return block * 2; }, mesh,
                               P("data", "model"), P("data", "model"));
  CHECK(numpy::array_equal(twice(x), x * 2).item<bool>());
  const auto rows = shard_map(
      [](const Array& block) {
        CHECK(block.shape() == Shape{2, 6});
        return block + lax::axis_index("data");
      },
      mesh, P("data"), P("data"));
  CHECK(rows(x).to_vector<float>()[12] == 13.0f);
}

TEST_CASE("sums over places, and gradients of what all places share") {
  const Array x = numpy::reshape(numpy::arange(24.0) / 10.0, {4, 6});
  const auto total = shard_map(
      [](const Array& block) { return lax::psum(lax::psum(whole(block), "data"), "model"); }, mesh,
      P("data", "model"), P());
  CHECK(numpy::allclose(total(x), whole(x)).item<bool>());
  CHECK(numpy::allclose(grad(total)(x), grad(whole)(x)).item<bool>());

  const auto loss = [](const Layer& layer, const Array& batch) {
    return numpy::sum(numpy::tanh(numpy::matmul(batch, layer.w) + layer.b));
  };
  const auto parallel = shard_map(
      [=](const Layer& layer, const Array& batch) { return lax::psum(loss(layer, batch), "data"); },
      mesh, {P(), P("data")}, P());
  const Layer layer{numpy::ones({6, 2}) * 0.1, numpy::zeros({2})};
  const Layer wanted = grad(loss)(layer, x), got = jit(grad(parallel))(layer, x);
  CHECK(numpy::allclose(got.w, wanted.w).item<bool>());
  CHECK(numpy::allclose(got.b, wanted.b).item<bool>());
}

TEST_CASE("functions over several axes number places row by row") {
  const Array x = numpy::reshape(numpy::arange(36.0), {6, 6});
  const lax::AxisNames both{"data", "model"};
  const auto turned = shard_map(
      [&](const Array& row) {
        lax::Permutation ring;
        for (int i = 0; i < 6; ++i) ring.emplace_back(i, (i + 1) % 6);
        return lax::ppermute(row, both, ring);
      },
      mesh, P(std::vector<std::string>{"data", "model"}),
      P(std::vector<std::string>{"data", "model"}));
  CHECK(numpy::array_equal(turned(x), numpy::roll(x, 1, 0)).item<bool>());
  const auto exchanged =
      shard_map([&](const Array& row) { return lax::all_to_all(row, both, 1, 0, true); }, mesh,
                P(std::vector<std::string>{"data", "model"}),
                P(std::nullopt, std::vector<std::string>{"data", "model"}));
  CHECK(numpy::array_equal(exchanged(x), x).item<bool>());
  const auto gathered =
      shard_map([&](const Array& row) { return lax::all_gather_invariant(row, both, 0, true); },
                mesh, P(std::vector<std::string>{"data", "model"}), P());
  CHECK(numpy::array_equal(gathered(x), x).item<bool>());
}

TEST_CASE("without types a result is the first place's, and everything varies inside") {
  const Array x = numpy::arange(6.0);
  const auto first =
      shard_map([](const Array& block) { return block; }, mesh, P("data"), P(), CheckVma::no);
  CHECK(numpy::array_equal(first(x), numpy::arange(3.0)).item<bool>());
  const auto loss = [](const Array& w, const Array& block) {
    return lax::psum(numpy::sum(w * block), "data");
  };
  const auto inside = shard_map(
      [&](const Array& w, const Array& block) {
        return grad([&](const Array& w) { return loss(w, block); })(w);
      },
      mesh, {P(), P("data")}, P("data"), CheckVma::no);
  // Each place has the gradient of its own part, as often as there are places.
  const Array wanted = numpy::arange(6.0) * 2;
  CHECK(numpy::array_equal(inside(numpy::ones({3}), x), wanted).item<bool>());
}

TEST_CASE("axes that are left out have the same in all places") {
  const Array x = numpy::arange(6.0);
  const auto total = shard_map([](const Array& block) { return lax::psum(block, "data"); },
                               mesh.only({"data"}), P("data"), P());
  CHECK(numpy::array_equal(total(x), numpy::array({3.0, 5.0, 7.0})).item<bool>());
  CHECK_THROWS_AS(mesh.only({"other"}), ValueError);
}

TEST_CASE("shard_map says what does not fit") {
  const Array x = numpy::ones({4, 6});
  const auto same = [](const Array& block) { return Array(block); };
  CHECK_THROWS_AS(shard_map(same, mesh, P("data"), P())(x), ValueError);
  CHECK_THROWS_AS(shard_map(same, mesh, P("model"), P("model"))(x), ShapeError);
  CHECK_THROWS_AS(shard_map(same, mesh, P("other"), P())(x), ValueError);
  CHECK_THROWS_AS(Mesh({2, 3}, {"data"}), ValueError);
}
