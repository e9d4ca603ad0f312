// Loop-invariant code motion: which equations leave a scan, and that nothing else changes, against
// a loop written here that applies the body to one slice after the other.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/control/primitives.h>
#include <plait/plait.h>
#include <plait/transforms/transforms.h>

#include <cmath>

#include "../same_bits.h"
#include "compile/passes/pipeline.h"

using namespace plait;

namespace {

// Numbers from -1 to 1, or small integers.
Array random(const Aval& aval, unsigned seed) {
  Buffer buffer = Buffer::empty(DType::float64, aval.shape.to_sizes());
  double* data = static_cast<double*>(buffer.mutable_data());
  for (std::int64_t i = 0; i < num_elements(aval.shape.to_sizes()); ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = double(seed >> 8) / (1 << 23) - 1;
    if (!is_inexact(aval.dtype)) data[i] = std::floor(data[i] * 8);
  }
  return lax::convert_element_type(Array(std::move(buffer)), aval.dtype);
}

Array product(const Array& x, const Array& y, int x_axis = 1, int y_axis = 0) {
  return lax::dot_general(x, y, {{x_axis}, {y_axis}, {}, {}});
}

Array total(const Array& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.ndim(); ++axis) axes.push_back(axis);
  return lax::reduce_sum(x, axes);
}

struct Case {
  std::string what;
  std::string names;  // of the equations that are left
  std::vector<Aval> init, xs, consts;
  std::function<Arrays(std::span<const Array> carry, std::span<const Array> xs,
                       std::span<const Array> consts)>
      body;
  std::int64_t steps = 5;

  Arrays inputs() const {
    Arrays arrays;
    for (const auto* avals : {&init, &xs, &consts})
      for (const Aval& aval : *avals) {
        Aval whole = aval;
        if (avals == &xs) whole.shape.insert(0, steps);
        arrays.push_back(random(whole, unsigned(arrays.size()) * 977 + 5));
      }
    return arrays;
  }
  Arrays apply(std::span<const Array> now) const {
    return body(now.first(init.size()), now.subspan(init.size(), xs.size()),
                now.subspan(init.size() + xs.size()));
  }
  Function scan(bool reverse) const {
    return [this, reverse](std::span<const Array> in) {
      const flat::Scanned done = flat::scan(
          [&](std::span<const Array> now) {
            Arrays all(now.begin(), now.end());
            all.insert(all.end(), in.begin() + std::ptrdiff_t(init.size() + xs.size()), in.end());
            return apply(all);
          },
          in.first(init.size()), in.subspan(init.size(), xs.size()), {Dim(steps), reverse});
      Arrays results = done.carry;
      results.insert(results.end(), done.ys.begin(), done.ys.end());
      return results;
    };
  }
  // The same by a loop; ys of no step are left out.
  Arrays loop(bool reverse) const {
    const Arrays all = inputs();
    Arrays carry(all.begin(), all.begin() + std::ptrdiff_t(init.size()));
    std::vector<Arrays> ys;
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t step = reverse ? steps - 1 - i : i;
      Arrays now = carry;
      for (std::size_t x = init.size(); x < init.size() + xs.size(); ++x) {
        Shape start(all[x].ndim(), 0), limit = all[x].shape(), strides(all[x].ndim(), 1);
        start[0] = step, limit[0] = step + 1;
        const Array one =
            bind(slice_p, {all[x]}, {{"start", start}, {"limit", limit}, {"strides", strides}});
        now.push_back(lax::reshape(one, xs[x - init.size()].shape));
      }
      now.insert(now.end(), all.begin() + std::ptrdiff_t(init.size() + xs.size()), all.end());
      const Arrays results = apply(now);
      carry.assign(results.begin(), results.begin() + std::ptrdiff_t(init.size()));
      ys.resize(results.size() - init.size());
      for (std::size_t y = 0; y < ys.size(); ++y) {
        const Array& slice = results[init.size() + y];
        Shape shape = slice.shape();
        shape.insert(0, 1);
        ys[y].insert(reverse ? ys[y].begin() : ys[y].end(), lax::reshape(slice, shape));
      }
    }
    for (const Arrays& slices : ys)
      carry.push_back(bind(concatenate_p, slices, {{"axis", Dim(0)}}));
    return carry;
  }
};

Aval f64(Shape shape) { return {std::move(shape), DType::float64}; }
Aval i32(Shape shape) { return {std::move(shape), DType::int32}; }

std::string names(const Jaxpr& program) {
  std::string text;
  for (const Equation& equation : program->equations)
    text += (text.empty() ? "" : " ") + std::string(equation.primitive->name());
  return text;
}

bool is_close(const Array& a, const Array& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  const Buffer x = lax::convert_element_type(a, DType::float64).buffer().dense(),
               y = lax::convert_element_type(b, DType::float64).buffer().dense();
  for (std::int64_t i = 0; i < num_elements(x.shape()); ++i) {
    const double p = static_cast<const double*>(x.data())[i],
                 q = static_cast<const double*>(y.data())[i];
    if (std::abs(p - q) > 1e-12 * (1 + std::abs(q))) return false;
  }
  return true;
}

using In = std::span<const Array>;

std::vector<Case> cases() {
  const Aval h = f64({2, 3}), x = f64({2, 6}), w = f64({6, 3}), u = f64({3, 3});
  return {
      {"a product of slices and a const stands before",
       "dot_general scan",
       {h},
       {x},
       {w, u},
       [](In c, In x, In k) -> Arrays {
         const Array next = lax::tanh(product(x[0], k[0]) + product(c[0], k[1]));
         return {next, next};
       }},
      {"so do products of matrices with vectors, and sums of outer ones",
       "dot_general transpose scan dot_general add dot_general transpose",
       {f64({3}), f64({3, 6})},
       {f64({6})},
       {f64({3, 6}), f64({3, 3}), f64({2, 3})},
       [](In c, In x, In k) -> Arrays {
         const Array next = lax::tanh(product(k[0], x[0], 1, 0) + product(k[1], c[0], 1, 0));
         return {next, c[1] + lax::dot_general(next, x[0], {{}, {}, {}, {}}),
                 product(k[2], next, 1, 0)};
       }},
      {"what depends on consts alone is computed once",
       "tanh scan",
       {h},
       {x},
       {w, u},
       [](In c, In x, In k) -> Arrays { return {product(c[0], lax::tanh(k[1])), x[0] * 2.0}; }},
      {"a sum of products contracts the steps",
       "scan dot_general add",
       {h, f64({6, 3})},
       {x},
       {u},
       [](In c, In x, In k) -> Arrays {
         const Array next = lax::sin(product(c[0], k[0]));
         return {next, c[1] + product(x[0], next, 0, 0)};
       }},
      {"terms of a sum may be transposed, and several",
       "scan dot_general dot_general transpose add add",
       {h, f64({6, 3})},
       {x},
       {},
       [](In c, In x, In) -> Arrays {
         const Array next = lax::sin(c[0]);
         const Array term = lax::transpose(product(next, x[0], 0, 0), std::vector<int>{1, 0});
         return {next, lax::add(lax::add(product(x[0], c[0], 0, 0), term), c[1])};
       }},
      {"a sum of few elements stays",
       "scan",
       {h, f64({3, 3})},
       {x},
       {u},
       [](In c, In, In k) -> Arrays {
         const Array next = lax::sin(product(c[0], k[0]));
         return {next, c[1] + product(c[0], next, 0, 0)};
       }},
      {"one of few elements and many terms leaves",
       "scan dot_general add",
       {f64({20, 3}), f64({3, 3})},
       {x},
       {u},
       [](In c, In, In k) -> Arrays {
         const Array next = lax::sin(product(c[0], k[0]));
         return {next, c[1] + product(c[0], next, 0, 0)};
       }},
      {"a sum that the loop reads stays",
       "scan",
       {h, f64({6, 3})},
       {x},
       {},
       [](In c, In x, In) -> Arrays {
         return {product(x[0], c[1]), c[1] + product(x[0], c[0], 0, 0)};
       }},
      {"a product that ys alone need stands behind, and what follows it",
       "scan dot_general tanh mul",
       {h},
       {x},
       {f64({3, 5})},
       [](In c, In x, In k) -> Arrays {
         const Array next = lax::sin(c[0]) + total(product(x[0], x[0], 1, 1)) * 0.1;
         return {next, lax::tanh(product(next, k[0])) * 2.0};
       }},
      {"ys that are read behind the loop are stacked once",
       "scan dot_general add dot_general",
       {f64({2, 5}), f64({5, 5})},
       {x},
       {f64({5, 5})},
       [](In c, In, In k) -> Arrays {
         const Array next = lax::sin(c[0]);
         return {next, c[1] + product(next, c[0], 0, 0), next, product(next, k[0])};
       }},
      {"without a carry no loop is left",
       "dot_general",
       {},
       {x},
       {w},
       [](In, In x, In k) -> Arrays { return {product(x[0], k[0])}; }},
      {"integers",
       "dot_general scan dot_general add",
       {i32({}), i32({6, 3})},
       {i32({2, 6})},
       {i32({6, 3})},
       [](In c, In x, In k) -> Arrays {
         const Array z = product(x[0], k[0]) + c[0];
         return {c[0] + 1, lax::add(product(x[0], z, 0, 0), c[1])};
       }},
      {"carries and consts without xs",
       "scan",
       {h},
       {},
       {u},
       [](In c, In, In k) -> Arrays { return {product(c[0], k[0]), c[0]}; }},
      {"ys that are slices, consts or numbers",
       "scan",
       {h},
       {x},
       {u},
       [](In c, In x, In k) -> Arrays {
         return {product(c[0], k[0]), x[0], k[0], Array::literal(2.0, DType::float64)};
       }},
      {"no step: nothing moves",
       "scan",
       {h},
       {x},
       {w, u},
       [](In c, In x, In k) -> Arrays {
         return {lax::tanh(product(x[0], k[0]) + product(c[0], k[1]))};
       },
       0},
      {"one step: nothing is gained",
       "scan",
       {h},
       {x},
       {w, u},
       [](In c, In x, In k) -> Arrays {
         return {lax::tanh(product(x[0], k[0]) + product(c[0], k[1]))};
       },
       1},
      {"what would take too much memory stays",
       "broadcast_in_dim scan reduce add",  // the sum of all steps leaves, the product stays
       {f64({})},
       {f64({1, 1})},
       {f64({1, 4096})},
       [](In c, In x, In k) -> Arrays { return {c[0] + total(lax::sin(product(x[0], k[0])))}; },
       600},
      {"scans within scans",
       "dot_general scan dot_general add",
       {h, f64({6, 3})},
       {x},
       {w, u},
       [](In c, In x, In k) -> Arrays {
         const flat::Scanned inner = flat::scan(
             [&](In now) -> Arrays { return {lax::tanh(product(now[0], k[1])), now[0]}; },
             In(c).first(1), {}, {Dim(3), false});
         const Array next = inner.carry[0] + product(x[0], k[0]) + total(inner.ys[0]) * 0.01;
         return {next, c[1] + product(x[0], next, 0, 0)};
       }},
  };
}

}  // namespace

TEST_CASE(
    "loop-invariant code motion: what leaves the loop, and the loop's values, eager and jitted") {
  for (const Case& c : cases()) {
    CAPTURE(c.what);
    const Arrays inputs = c.inputs();
    std::vector<Aval> avals;
    for (const Array& input : inputs) avals.push_back(input.aval());
    const Jaxpr program = make_closed_jaxpr(c.scan(false), avals);
    const Jaxpr moved = compile_passes::simplify_program(program, [](auto&&...) { return false; });
    CHECK(names(moved) == c.names);
    check(moved);
    // No y twice.
    for (const Equation& equation : moved->equations)
      if (*equation.primitive == scan_p) {
        const Jaxpr& body = equation.params.get<Jaxpr>("body");
        for (std::size_t y = std::size_t(equation.params.integer("carry"));
             y < body->outputs.size(); ++y)
          CHECK(std::count(body->outputs.begin() + std::ptrdiff_t(equation.params.integer("carry")),
                           body->outputs.end(), body->outputs[y]) == 1);
      }
    for (const bool reverse : {false, true}) {
      const Arrays eager = c.scan(reverse)(inputs);
      const Arrays jitted = flat::Jit(c.scan(reverse), "scan")(inputs);
      const Arrays expected = c.loop(reverse);
      REQUIRE(eager.size() >= expected.size());
      for (std::size_t i = 0; i < eager.size(); ++i) {
        CAPTURE(i);
        if (i < expected.size()) CHECK(is_close(eager[i], expected[i]));
        CHECK(same_bits(eager[i], jitted[i]));
      }
    }
  }
}

TEST_CASE("loop-invariant code motion: a second time moves nothing") {
  for (const Case& c : cases()) {
    CAPTURE(c.what);
    std::vector<Aval> avals;
    for (const Array& input : c.inputs()) avals.push_back(input.aval());
    const auto none = [](auto&&...) { return false; };
    const Jaxpr once =
        compile_passes::simplify_program(make_closed_jaxpr(c.scan(false), avals), none);
    CHECK(print(compile_passes::simplify_program(once, none)) == print(once));
  }
}

TEST_CASE("loop-invariant code motion: a check stays in its step, and so does what it guards") {
  const Case c{"",
               "dot_general scan",
               {f64({2, 3})},
               {f64({2, 4})},
               {f64({4, 3})},
               [](In c, In x, In k) -> Arrays {
                 const Array next = c[0] + product(x[0], k[0]);
                 check(lax::lt(total(lax::abs(next)), Array::literal(1e3, DType::float64)), "grew");
                 return {next};
               }};
  Arrays inputs = c.inputs();
  CHECK(is_close(c.scan(false)(inputs)[0], c.loop(false)[0]));
  inputs[1] = inputs[1] * 1e6;
  CHECK_THROWS_WITH_AS(flat::Jit(c.scan(false), "scan")(inputs), doctest::Contains("grew"), Error);
}
