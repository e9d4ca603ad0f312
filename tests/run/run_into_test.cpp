// Calls that write to memory of the caller: the values, the memory, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

using namespace plait;

namespace {

struct State {
  Array x, y;
};

Array row(std::int64_t n, double first) {
  return lax::iota(DType::float32, {n}, 0) + Array::literal(first, DType::float32);
}
float at(const Array& x, std::int64_t i) { return static_cast<const float*>(x.buffer().data())[i]; }

}  // namespace

TEST_CASE("run_into writes where the result of the last call lies") {
  const auto f = jit([](const Array& x, const Array& y) -> Array { return x * 2.0 + y; });
  Array result;
  f.run_into(result, row(1000, 0), row(1000, 5));
  CHECK(at(result, 7) == 2 * 7 + 12);
  const void* memory = result.buffer().data();
  for (int call = 0; call < 4; ++call) {
    const Array x = row(1000, call);
    f.run_into(result, x, x);
    CHECK(result.buffer().data() == memory);
    CHECK(at(result, 10) == 3 * (10 + call));
  }
}

TEST_CASE("run_into fills trees, results that are inputs or constants, and views") {
  const auto f = jit([](const State& s) {
    return std::vector<Array>{s.x, lax::full({3}, 4, DType::float32),
                              lax::rev(s.y, std::vector<int>{0}), s.x + s.y};
  });
  const State s{row(3, 0), row(3, 10)};
  std::vector<Array> result(4);
  for (int call = 0; call < 3; ++call) {
    f.run_into(result, s);
    REQUIRE(result.size() == 4);
    CHECK(at(result[0], 2) == 2);
    CHECK(result[0].buffer().data() != s.x.buffer().data());
    CHECK(at(result[1], 0) == 4);
    CHECK(at(result[2], 0) == 12);
    CHECK(at(result[3], 1) == 12);
  }
  auto step = jit([](const State& now) { return State{now.x + 1.0, now.y * 2.0}; });
  State here{row(4, 0), row(4, 1)}, there;
  for (int i = 0; i < 6; ++i) {
    step.run_into(there, here);
    std::swap(here, there);
  }
  CHECK(at(here.x, 3) == 9);
  CHECK(at(here.y, 1) == 128);
}

TEST_CASE("run_into refuses what it cannot write to, and leaves it as it was") {
  const auto f = jit([](const Array& x) -> Array { return x + 1.0; }, "f");
  const Array x = row(4, 0);
  auto message = [&](Array output, const Array& input) -> std::string {
    try {
      f.run_into(output, input);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(row(5, 0), x).find("output 0 has shape (5) where the result has (4)") !=
        std::string::npos);
  CHECK(message(lax::iota(DType::int32, {4}, 0), x).find("has dtype int32 where") !=
        std::string::npos);
  CHECK(message(x, x).find("is seen elsewhere") != std::string::npos);
  Array output = row(4, 0);
  const Array view = lax::reshape(output, {2, 2});
  CHECK_THROWS_AS(f.run_into(output, x), ValueError);
  CHECK(at(view, 3) == 3);
  CHECK_THROWS_AS(make_jaxpr(
                      [&](const Array& traced) -> Array {
                        Array result;
                        f.run_into(result, traced);
                        return result;
                      },
                      x),
                  TracerError);
  std::vector<Array> one{row(3, 7)};
  const auto pair = jit([](const Array& a) { return std::vector<Array>{a, a}; });
  CHECK_THROWS_AS(pair.run_into(one, x), TreeError);
  CHECK(at(one[0], 2) == 9);
}

TEST_CASE("an executable says what a call takes at most") {
  const std::vector<Aval> avals{{{1000}, DType::float32}};
  const Jaxpr program =
      make_jaxpr([](std::span<const Array> in) { return Arrays{lax::sort(in[0]), in[0]}; }, avals)
          .jaxpr;
  CHECK(compile(program)->peak_bytes() == compile(program)->arena_bytes() + 4000);
  CHECK(compile(program, {.donate = {true}})->peak_bytes() >= 4000);
}
