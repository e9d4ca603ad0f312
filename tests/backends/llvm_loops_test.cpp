// Loops as one kernel of the llvm backend: against plain loops in C++, and against eager
// evaluation, bit by bit.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/compile/backend.h>
#include <plait/plait.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>

#include <cstdlib>
#include <random>

#include "../same_bits.h"
#include "backend_here.h"

using namespace plait;

namespace {

[[maybe_unused]] const bool asked =
    setenv("PLAIT_LLVM", "1", 0) == 0 && setenv("PLAIT_WAIT", "1", 0) == 0;

Array random_array(DType dtype, const Sizes64& shape, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Buffer buffer = Buffer::empty(dtype, shape);
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!is_complex_v<T>)
      for (std::int64_t i = 0; i < num_elements(shape); ++i) {
        const double x = uniform(generator);
        if constexpr (plait::detail::is_half<T>)
          static_cast<T*>(buffer.mutable_data())[i] = T(float(x));
        else
          static_cast<T*>(buffer.mutable_data())[i] =
              std::is_floating_point_v<T> ? T(x) : T(100 * x);
      }
  });
  return Array(buffer);
}

// How the program of f runs at these operands.
std::string explained(const Function& f, const Arrays& operands) {
  std::vector<Aval> avals;
  for (const Array& operand : operands) avals.push_back(operand.aval());
  return compile(make_jaxpr(f, avals, "f").jaxpr)->explain();
}

Arrays compiled(const Function& f, const Arrays& operands) {
  std::vector<Aval> avals;
  std::vector<Buffer> inputs;
  for (const Array& operand : operands) {
    avals.push_back(operand.aval());
    inputs.push_back(operand.buffer());
  }
  Arrays results;
  for (const Buffer& result : compile(make_jaxpr(f, avals, "f").jaxpr)->run(inputs))
    results.emplace_back(result);
  return results;
}

// f compiled has a kernel for a loop (or, with a refusal, none and says why), and eager bits.
void check_loop(const Function& f, const Arrays& operands, const std::string& expected) {
  const std::string text = explained(f, operands);
  CHECK_MESSAGE(text.find(expected) != std::string::npos, text);
  const Arrays got = compiled(f, operands), want = f(operands);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], want[i]));
}

template <class T>
std::array<T, 3> lorenz(const std::array<T, 3>& s) {
  return {T(10) * (s[1] - s[0]), s[0] * (T(28) - s[2]) - s[1], s[0] * s[1] - T(2) * s[2]};
}
// One step of Runge and Kutta's method, of numbers or arrays.
template <class T, class H>
std::array<T, 3> rk4(const std::array<T, 3>& s, H h,
                     std::array<T, 3> (*f)(const std::array<T, 3>&)) {
  auto moved = [&](const std::array<T, 3>& k, H by) {
    return std::array<T, 3>{s[0] + by * k[0], s[1] + by * k[1], s[2] + by * k[2]};
  };
  const auto k1 = f(s), k2 = f(moved(k1, h / 2)), k3 = f(moved(k2, h / 2)), k4 = f(moved(k3, h));
  std::array<T, 3> next = s;
  for (int i = 0; i < 3; ++i)
    next[i] = s[i] + h / 6 * (k1[i] + H(2) * k2[i] + H(2) * k3[i] + k4[i]);
  return next;
}
std::array<Array, 3> lorenz_arrays(const std::array<Array, 3>& s) {
  return {10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 2.0 * s[2]};
}

flat::Scanned scan_steps(const Function& body, const Arrays& carry, const Arrays& xs,
                         std::int64_t length, bool reverse = false) {
  flat::ScanOptions options;
  if (xs.empty()) options.length = length;
  options.reverse = reverse;
  return flat::scan(body, carry, xs, options);
}
Arrays all_of(const flat::Scanned& scanned) {
  Arrays all = scanned.carry;
  all.insert(all.end(), scanned.ys.begin(), scanned.ys.end());
  return all;
}

}  // namespace

TEST_CASE("an integration of three variables is one kernel with the bits of a plain loop" *
          needs_backend("llvm")) {
  const double h = 1.0 / 128;
  const Function f = [&](std::span<const Array> in) {
    return all_of(scan_steps(
        [&](std::span<const Array> s) -> Arrays {
          const auto next = rk4<Array, double>({s[0], s[1], s[2]}, h, lorenz_arrays);
          return {next[0], next[1], next[2]};
        },
        {in.begin(), in.end()}, {}, 300));
  };
  const Arrays start{Array::literal(1.0, DType::float64), Array::literal(0.5, DType::float64),
                     Array::literal(-1.0, DType::float64)};
  CHECK(explained(f, start).find("scan  [one loop program]") != std::string::npos);
  std::array<double, 3> state{1, 0.5, -1};
  for (int step = 0; step < 300; ++step) state = rk4<double, double>(state, h, lorenz<double>);
  const Arrays got = compiled(f, start);
  for (int i = 0; i < 3; ++i) CHECK(got[i].item<double>() == state[i]);

  // The same for many at once, in lanes; 1000 are no whole number of vectors.
  Arrays many;
  for (unsigned i = 0; i < 3; ++i) many.push_back(random_array(DType::float64, {1000}, i));
  CHECK(explained(f, many).find("one loop program") != std::string::npos);
  const Arrays all = compiled(f, many);
  for (int example : {0, 7, 512, 999}) {
    for (int i = 0; i < 3; ++i)
      state[i] = static_cast<const double*>(many[i].buffer().data())[example];
    for (int step = 0; step < 300; ++step) state = rk4<double, double>(state, h, lorenz<double>);
    for (int i = 0; i < 3; ++i)
      CHECK(static_cast<const double*>(all[i].buffer().data())[example] == state[i]);
  }
}

TEST_CASE("loops of small arrays equal eager evaluation to the bit, for every dtype" *
          needs_backend("llvm")) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                            DType::int32, DType::int64}) {
    CAPTURE(name_of(dtype));
    const bool is_float = is_floating(dtype);
    for (const bool reverse : {false, true}) {
      const Function f = [&](std::span<const Array> in) {
        const Array w = in[2];
        return all_of(scan_steps(
            [&](std::span<const Array> s) -> Arrays {
              Array next = numpy::matmul(w, s[0]) + s[1] * numpy::sum(s[0]);
              if (is_float) next = numpy::tanh(next);
              const Array turned = numpy::flip(next, 0);
              return {next, numpy::stack({turned, numpy::maximum(next, s[1])}), numpy::max(turned)};
            },
            {in[0]}, {in[1]}, 0, reverse));
      };
      check_loop(f,
                 {random_array(dtype, {5}, 1), random_array(dtype, {9, 5}, 2),
                  random_array(dtype, {5, 5}, 3)},
                 "scan  [one loop program]");
    }
  }
}

TEST_CASE("reverse mode through a loop is a loop in one kernel" * needs_backend("llvm")) {
  const Function f = [](std::span<const Array> in) -> Arrays {
    const Arrays xs{in[1]};
    const std::function<Array(const Array&)> loss = [&](const Array& x) {
      const auto done = scan_steps(
          [](std::span<const Array> s) -> Arrays {
            const Array next = numpy::sin(s[0]) * s[1] + numpy::flip(s[0], 0);
            return {next, numpy::sum(next * next)};
          },
          {x}, xs, 0);
      return numpy::sum(done.ys[0]) + numpy::sum(done.carry[0]);
    };
    return {grad(loss)(in[0])};
  };
  const Arrays operands{random_array(DType::float64, {3}, 1),
                        random_array(DType::float64, {20, 3}, 2)};
  check_loop(f, operands, "scan  [one loop program]");
  const std::string text = explained(f, operands);
  CHECK(text.find("control") == std::string::npos);
}

TEST_CASE("while, nested loops and branches" * needs_backend("llvm")) {
  const Function roots = [](std::span<const Array> in) {
    return flat::while_loop(
        [&](std::span<const Array> s) -> Arrays {
          return {lax::gt(lax::abs(s[0] * s[0] - in[0]), Array::literal(1e-12, DType::float64))};
        },
        [&](std::span<const Array> s) -> Arrays { return {0.5 * (s[0] + in[0] / s[0]), s[1] + 1}; },
        Arrays{in[0], Array::literal(0, DType::int32)});
  };
  check_loop(roots, {Array::literal(2.0, DType::float64)}, "while  [one loop program]");
  double x = 2;
  int steps = 0;
  for (; std::abs(x * x - 2) > 1e-12; ++steps) x = 0.5 * (x + 2.0 / x);
  const Arrays got = compiled(roots, {Array::literal(2.0, DType::float64)});
  CHECK(got[0].item<double>() == x);
  CHECK(got[1].item<int>() == steps);

  // Branches: what the one not taken would do (NaN, a division by zero) is not done.
  const Function branching = [](std::span<const Array> in) {
    return all_of(scan_steps(
        [](std::span<const Array> s) -> Arrays {
          const Array next = lax::cond(
              lax::gt(numpy::sum(s[0]), Array::literal(0.0, DType::float64)),
              [](const Array& y) { return y - 1.0; }, [](const Array& y) { return y * y + 0.3; },
              s[0]);
          const auto inner = scan_steps(
              [](std::span<const Array> t) -> Arrays { return {t[0] * 0.5 + t[1], t[0] * t[1]}; },
              {numpy::sum(next)}, {next}, 0);
          return {next + 0.001 * inner.carry[0], inner.ys[0]};
        },
        {in[0]}, {}, 12));
  };
  check_loop(branching, {random_array(DType::float64, {4}, 5)}, "scan  [one loop program]");
}

TEST_CASE("calls with several operands leave the rest of a loop's frame alone" *
          needs_backend("llvm")) {
  const Function loop = [](std::span<const Array> in) {
    return flat::while_loop(
        [&](std::span<const Array> s) -> Arrays { return {lax::lt(s[0], in[2])}; },
        [](std::span<const Array> s) -> Arrays {
          const Array column = lax::broadcasted_iota(DType::int32, {4, 3}, 1),
                      even = numpy::equal(lax::rem(column, Array::literal(2, DType::int32)), 0);
          const Array scale = 1.0 + 0.1 * lax::convert_element_type(s[0], DType::float64);
          const Array x = s[1] * scale, t = s[2] * scale;
          return {s[0] + 1, lax::sin(x), lax::select(even, t, t) * lax::cos(x)};
        },
        Arrays{Array::literal(0, DType::int32), in[0], in[1]});
  };
  check_loop(loop,
             {random_array(DType::float64, {4, 3}, 7), random_array(DType::float64, {4, 3}, 8),
              Array::literal(5, DType::int32)},
             "while  [one loop program]");
}

TEST_CASE("examples lie in lanes: of any axis, with random numbers, and steps that all share" *
          needs_backend("llvm")) {
  const Function one = [](std::span<const Array> in) {
    return all_of(scan_steps(
        [&](std::span<const Array> s) -> Arrays {
          const Array next = numpy::tanh(numpy::matmul(in[2], s[0]) + s[1]);
          return {next, numpy::sum(next)};
        },
        {in[0]}, {in[1]}, 0));
  };
  const Array w = random_array(DType::float64, {3, 3}, 1),
              xs = random_array(DType::float64, {9, 3}, 2);
  for (const int axis : {0, 1}) {
    const Function all = [&](std::span<const Array> in) {
      flat::VmapOptions options;
      options.in_dims = {axis, std::nullopt, std::nullopt};
      options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
      return flat::vmap(one, in, options);
    };
    check_loop(
        all, {random_array(DType::float64, axis == 0 ? Sizes64{21, 3} : Sizes64{3, 21}, 3), xs, w},
        "one loop program");
  }
  const Function paths = [](std::span<const Array> in) {
    return all_of(scan_steps(
        [&](std::span<const Array> s) -> Arrays {
          const Array z = random::normal(random::fold_in(in[1], s[1]), Shape{777});
          return {s[0] * numpy::exp(0.1 * z), s[1] + 1};
        },
        {in[0], Array::literal(0, DType::int32)}, {}, 6));
  };
  check_loop(paths, {random_array(DType::float32, {777}, 4), random::key(3)}, "one loop program");
}

TEST_CASE("steps with several random keys keep their axes" * needs_backend("llvm")) {
  const Function f = [](std::span<const Array> in) {
    return flat::map(
        [](std::span<const Array> s) -> Arrays {
          const Array keys = lax::random_fold(s[0], s[1]);
          return {keys, lax::random_bits(keys, {2})};
        },
        in, {});
  };
  const Arrays operands{random_array(DType::uint32, {3, 3, 2}, 5),
                        random_array(DType::uint32, {3}, 6)};
  const Arrays got = compiled(f, operands);
  for (std::int64_t i = 0; i < 3; ++i) {
    const Array keys = lax::random_fold(operands[0][i], operands[1][i]);
    CHECK(same_bits(got[0][i], keys));
    CHECK(same_bits(got[1][i], lax::random_bits(keys, {2})));
  }
}

TEST_CASE("steps of matrices may fill smaller arrays with a number" * needs_backend("llvm")) {
  const Function f = [](std::span<const Array> in) {
    return flat::map(
        [](std::span<const Array> s) -> Arrays {
          return {lax::full({4, 3}, 0.25, DType::float64), lax::sin(s[0]) * s[0]};
        },
        in, {});
  };
  const Arrays operands{random_array(DType::float64, {3, 4, 3, 2}, 5)};
  const Arrays got = compiled(f, operands);
  CHECK(same_bits(got[0], lax::full({3, 4, 3}, 0.25, DType::float64)));
  CHECK(same_bits(got[1], lax::sin(operands[0]) * operands[0]));
}

TEST_CASE("steps read and write at computed places, and what they refuse is the usual error" *
          needs_backend("llvm")) {
  const Function walk = [](std::span<const Array> in) {
    return all_of(scan_steps(
        [&](std::span<const Array> s) -> Arrays {
          const Array place = s[1];  // of a table too large for registers, and of a carry
          const Array value =
              numpy::take(in[1], place) + numpy::take(s[0], numpy::remainder(place, 4));
          const Array window = lax::dynamic_slice(s[0], {numpy::remainder(place, 3)}, Shape{2});
          const Array next =
              lax::dynamic_update_slice(s[0], window * 0.5 + value, {numpy::remainder(place, 2)});
          return {next, place + 7, value};
        },
        {in[0], Array::literal(1, DType::int32)}, {}, 40));
  };
  check_loop(walk, {random_array(DType::float32, {4}, 1), random_array(DType::float32, {300}, 2)},
             "scan  [one loop program]");
  const Arrays few{random_array(DType::float32, {4}, 1), random_array(DType::float32, {270}, 2)};
  CHECK(explained(walk, few).find("one loop program") != std::string::npos);
  CHECK_THROWS_AS(compiled(walk, few), IndexError);  // the last place is 274

  const Function bounded = [](std::span<const Array> in) {
    flat::WhileOptions options;
    options.max_steps = 10;
    return flat::while_loop(
        [](std::span<const Array> s) -> Arrays { return {lax::lt(s[0], s[1])}; },
        [](std::span<const Array> s) -> Arrays { return {s[0] + 1.0, s[1]}; }, in, options);
  };
  auto number = [](double x) { return Array::literal(x, DType::float64); };
  check_loop(bounded, {number(0), number(10)}, "while  [one loop program]");
  CHECK_THROWS_AS(compiled(bounded, {number(0), number(11)}), ValueError);
}

TEST_CASE("elements of one shape run side by side, and what a step sums over them is summed last" *
          needs_backend("llvm")) {
  const Function iterated = [](std::span<const Array> in) {
    return all_of(scan_steps(
        [&](std::span<const Array> s) -> Arrays {
          const Array next = s[0] * s[0] - s[1] * s[1] + in[0];
          const Array live = lax::lt(next * next, Array::literal(4.0, DType::float32));
          return {numpy::where(live, next, s[0]), numpy::where(live, 2.0 * s[0] * s[1], s[1]),
                  s[2] + live};
        },
        {in[0] * 0.0, in[1], numpy::zeros(in[0].shape(), DType::int32)}, {}, 20));
  };
  check_loop(iterated,
             {random_array(DType::float32, {30, 41}, 1), random_array(DType::float32, {30, 41}, 2)},
             "one loop program");
  const Function shared = [](std::span<const Array> in) -> Arrays {
    const std::function<Array(const Array&)> loss = [&](const Array& w) {
      const auto done = scan_steps(
          [&](std::span<const Array> s) -> Arrays { return {numpy::sin(s[0] * w) + in[1]}; },
          {in[1]}, {}, 12);
      return numpy::sum(done.carry[0]);
    };
    return {grad(loss)(in[0])};
  };
  const Arrays operands{Array::literal(0.7, DType::float64),
                        random_array(DType::float64, {2000}, 1)};
  check_loop(shared, operands, "one loop program");
  CHECK(explained(shared, operands).find("control") == std::string::npos);
  // d/dw of x_t = sin(w x) + x_0, by differences.
  const double h = 1e-6;
  double sums[2] = {};
  for (int side : {0, 1})
    for (int i = 0; i < 2000; ++i) {
      const double x0 = static_cast<const double*>(operands[1].buffer().data())[i];
      double x = x0;
      for (int step = 0; step < 12; ++step) x = std::sin(x * (0.7 + (side ? h : -h))) + x0;
      sums[side] += x;
    }
  CHECK(compiled(shared, operands)[0].item<double>() ==
        doctest::Approx((sums[1] - sums[0]) / (2 * h)).epsilon(1e-6));
}

TEST_CASE("what no kernel takes runs as before, and explain says why" * needs_backend("llvm")) {
  const Function sorting = [](std::span<const Array> in) {
    return all_of(
        scan_steps([](std::span<const Array> s) -> Arrays { return {numpy::sort(s[0] * 0.5)}; },
                   {in[0]}, {}, 3));
  };
  check_loop(sorting, {random_array(DType::float32, {0}, 1)},
             "no loop program: an array without elements");
}
