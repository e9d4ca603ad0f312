// mask: laws over functions of named sizes, compositions, and errors.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mask_properties.h"

using namespace plait;
using namespace plait::test;

namespace {

Array total(const Array& x) {
  std::vector<int> axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return lax::reduce_sum(x, axes);
}
Array matmul(const Array& x, const Array& w) {
  return lax::dot_general(x, w, {{x.ndim() - 1}, {0}, {}, {}});
}
Array over_last(const Array& reduced, const Shape& shape) {
  std::vector<int> dims;
  for (int i = 0; i + 1 < shape.rank(); ++i) dims.push_back(i);
  return lax::broadcast_in_dim(reduced, shape, dims);
}
Array softmax(const Array& x) {
  const std::vector<int> last{x.ndim() - 1};
  const Array shifted =
      lax::sub(x, over_last(lax::stop_gradient(lax::reduce_max(x, last)), x.shape()));
  const Array weights = lax::exp(shifted);
  return lax::div(weights, over_last(lax::reduce_sum(weights, last), x.shape()));
}
Array mean(const Array& x, int axis) {
  return lax::reduce_sum(x, std::vector<int>{axis}) /
         lax::convert_element_type(lax::dim_as_value(x.shape(axis)), x.dtype());
}
auto specs_of(Spec spec) {
  return [=](std::size_t count) { return std::vector<Spec>(count, spec); };
}
Array layer_norm(const Array& x) {
  const Array centred = lax::sub(x, over_last(mean(x, x.ndim() - 1), x.shape()));
  const Array variance = mean(lax::mul(centred, centred), x.ndim() - 1);
  return lax::div(centred, over_last(lax::sqrt(variance + 0.1), x.shape()));
}

}  // namespace

TEST_CASE("mask of elementwise functions, sums and means") {
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::sin(in[0]))}; }, {"n 3"}, {{"n", 4}}});
  check_mask_laws({[](auto in) { return Arrays{total(lax::exp(in[0]))}; }, {"n 3"}, {{"n", 4}}});
  check_mask_laws(
      {[](auto in) { return Arrays{total(lax::mul(in[0], in[1])), lax::add(in[0], in[1])}; },
       {"n m", "n m"},
       {{"n", 4}, {"m", 3}}});
  check_mask_laws({[](auto in) { return Arrays{mean(lax::log(lax::mul(in[0], in[0])), 0)}; },
                   {"n 2"},
                   {{"n", 5}}},
                  1);
}

TEST_CASE("mask of reductions of every kind over ragged axes") {
  for (auto reduce : {lax::reduce_sum, lax::reduce_prod, lax::reduce_max, lax::reduce_min})
    for (const std::vector<int>& axes :
         {std::vector<int>{0}, std::vector<int>{1}, std::vector<int>{0, 1}})
      check_mask_laws({[&](auto in) { return Arrays{reduce(in[0], axes)}; },
                       {"n m"},
                       {{"n", 4}, {"m", 3}},
                       {Sample::Input::Values::distinct}},
                      1);
}

TEST_CASE("mask of contractions over ragged, free and shared axes") {
  check_mask_laws({[](auto in) { return Arrays{matmul(in[0], in[1])}; },
                   {"n d", "d k"},
                   {{"n", 4}, {"d", 3}, {"k", 2}}});
  check_mask_laws({[](auto in) { return Arrays{lax::tanh(matmul(in[0], in[1]))}; },
                   {"n d", "d 2"},
                   {{"n", 4}, {"d", 3}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::dot_general(in[0], in[1], {{2}, {1}, {0}, {0}})}; },
       {"2 n d", "2 d k"},
       {{"n", 3}, {"d", 3}, {"k", 4}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::dot_general(in[0], in[1], {{2}, {1}, {0}, {0}})}; },
       {"b n 3", "b 3 2"},
       {{"b", 3}, {"n", 3}}});
}

TEST_CASE("mask of softmax, layer norm and attention over ragged axes") {
  check_mask_laws({[](auto in) { return Arrays{softmax(in[0])}; }, {"m n"}, {{"m", 3}, {"n", 4}}},
                  1);
  check_mask_laws(
      {[](auto in) { return Arrays{layer_norm(in[0])}; }, {"m n"}, {{"m", 3}, {"n", 4}}}, 1);
  auto attention = [](std::span<const Array> in) -> Arrays {
    const Array scores = lax::dot_general(in[0], in[1], {{1}, {1}, {}, {}});
    return {matmul(softmax(scores * 0.5), in[2])};
  };
  check_mask_laws({attention, {"q d", "k d", "k 3"}, {{"q", 3}, {"k", 4}, {"d", 2}}}, 1);
  check_mask_laws({attention, {"n 2", "n 2", "n 3"}, {{"n", 4}}}, 1);
}

TEST_CASE("mask of transposes, broadcasts and sizes as values") {
  const std::vector<int> swap{1, 0};
  check_mask_laws({[&](auto in) { return Arrays{lax::transpose(lax::sin(in[0]), swap)}; },
                   {"n m"},
                   {{"n", 4}, {"m", 3}}});
  check_mask_laws({[&](auto in) {
                     const Shape shape{in[0].shape(0), in[1].shape(0)};
                     const Array x = lax::broadcast_in_dim(in[0], shape, std::vector<int>{0}),
                                 y = lax::broadcast_in_dim(in[1], shape, std::vector<int>{1});
                     return Arrays{lax::exp(lax::sub(x, y))};
                   },
                   {"n", "m"},
                   {{"n", 4}, {"m", 3}}});
  check_mask_laws({[&](auto in) {
                     const Dim n = in[0].shape(0), m = in[0].shape(1);
                     auto number = [](Dim dim) {
                       return lax::convert_element_type(lax::dim_as_value(dim), DType::float64);
                     };
                     return Arrays{in[0] * number(floor_divide(n, 2) + modulo(n, 3)) +
                                   number(minimum(n, m)) - number(maximum(n - m, 1) * m)};
                   },
                   {"n m"},
                   {{"n", 7}, {"m", 3}}});
  check_mask_laws({[&](auto in) {
                     return Arrays{lax::mul(in[0], lax::iota(DType::float64, in[0].shape(), 0))};
                   },
                   {"n 2"},
                   {{"n", 4}}});
}

TEST_CASE("mask of reshapes: in prefix form and by gather") {
  auto reshaped = [](auto shape_of) {
    return [=](std::span<const Array> in) {
      return Arrays{lax::reshape(lax::sin(in[0]), shape_of(in[0].shape()))};
    };
  };
  check_mask_laws(
      {reshaped([](const Shape& s) { return Shape{s[0] * 6}; }), {"n 2 3"}, {{"n", 4}}});
  check_mask_laws({reshaped([](const Shape& s) { return Shape{floor_divide(s[0], 4), 2, 2}; }),
                   {"4*n"},
                   {{"n", 3}}});
  check_mask_laws({reshaped([](const Shape& s) { return Shape{2, s[0], 1, s[2] * 3}; }),
                   {"n 2 m 3"},
                   {{"n", 3}, {"m", 2}}});
  check_mask_laws(
      {reshaped([](const Shape& s) { return Shape{s[0] * s[1]}; }), {"n m"}, {{"n", 3}, {"m", 4}}});
  check_mask_laws(
      {reshaped([](const Shape& s) { return Shape{s[1], s[0]}; }), {"n m"}, {{"n", 3}, {"m", 4}}});
  check_mask_laws({reshaped([](const Shape& s) { return Shape{s[0], s[1] * s[2], 2}; }),
                   {"k n m 2"},
                   {{"k", 2}, {"n", 3}, {"m", 2}}});
  check_mask_laws({reshaped([](const Shape& s) { return Shape{2, s[0]}; }), {"n 2"}, {{"n", 4}}});
}

TEST_CASE("mask of sizes that are expressions of others") {
  check_mask_laws({[](auto in) { return Arrays{total(in[0]), total(lax::mul(in[1], in[2]))}; },
                   {"n", "2*n+1", "n+n+1"},
                   {{"n", 3}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::concatenate({in[0], in[1]}, 0), lax::exp(in[2])}; },
       {"n 2", "m 2", "n+m"},
       {{"n", 3}, {"m", 2}}});
}

TEST_CASE("mask of a jitted function, and of a function that captures") {
  const flat::Jit jitted(
      [](std::span<const Array> in) { return Arrays{lax::exp(in[0]), total(lax::exp(in[0]))}; },
      "f");
  check_mask_laws({[&](auto in) { return jitted(in); }, {"n 2"}, {{"n", 4}}});
  const Array w = values_for({{{2, 3}, DType::float64}}, 3);
  check_mask_laws({[&](auto in) { return Arrays{matmul(in[0], w)}; }, {"n 2"}, {{"n", 4}}});
}

TEST_CASE("mask in mask, with a size of the outer as the bound of the inner") {
  // The sum of the first m of n elements, by a masked sum in a masked function.
  auto inner = [](std::span<const Array> in) {
    return Arrays{total(lax::exp(in[0])), lax::exp(in[0])};
  };
  auto outer = [&](std::span<const Array> in) {
    const Array half =
        lax::convert_element_type(lax::dim_as_value(floor_divide(in[0].shape(0), 2)), DType::int32);
    Arrays out = flat::mask(inner, in.first(1), {{"n"}, {}, {{"n", half}}});
    out.push_back(lax::mul(in[0], out[1]));
    return out;
  };
  check_mask_laws({outer, {"n"}, {{"n", 5}}});
}

TEST_CASE("mask in vmap in mask: padded examples are no examples") {
  // Rows of different lengths, and a ragged number of rows.
  auto inner = [](std::span<const Array> in) {
    return Arrays{lax::mul(lax::exp(in[0]), in[1]), mean(in[0], 0)};
  };
  auto outer = [&](std::span<const Array> in) {
    flat::VmapOptions options;
    options.in_dims = {0, 0, std::nullopt};
    options.out_dims = [](std::size_t count) { return std::vector<std::optional<int>>(count, 0); };
    auto row = [&](std::span<const Array> each) {
      return flat::mask(inner, std::vector<Array>{each[0], each[2]},
                        {{"m", "m"}, {}, {{"m", each[1]}}});
    };
    const Array lengths = lax::convert_element_type(
        lax::add(lax::iota(DType::int32, {in[0].shape(0)}, 0), Array::literal(1, DType::int32)),
        DType::int32);
    return flat::vmap(row, std::vector<Array>{in[0], lengths, in[1]}, options);
  };
  check_mask_laws({outer, {"n 4", "4"}, {{"n", 4}}});
}

TEST_CASE("sizes that the call does not give are those of the arrays") {
  auto f = [](std::span<const Array> in) { return Arrays{matmul(in[0], in[1])}; };
  const Array x = values_for({{{4, 3}, DType::float64}}, 1),
              w = values_for({{{3, 2}, DType::float64}}, 2);
  CHECK(problem_and_fix([&] {
          flat::mask(f, Arrays{x, w}, {{"n d", "d _"}, {}, {}});
        }).starts_with("mask: the call gives no size, and in_shapes names n, d"));
  check_close(flat::mask(f, Arrays{x, w}, {{"_ _", "_ _"}, {}, {}})[0], f(Arrays{x, w})[0]);
  const Array three = flat::mask(f, Arrays{x, w}, {{"n d", "d _"}, specs_of("n _"), {{"n", 3}}})[0];
  check_close(three, refilled(refilled(f(Arrays{x, w})[0], {3, 2}), {4, 2}, false));
}

TEST_CASE("one program serves all lengths") {
  int traces = 0;
  const Function f = [&](std::span<const Array> in) {
    ++traces;
    return Arrays{total(in[0])};
  };
  const flat::Jit jitted(
      [&](std::span<const Array> in) {
        return flat::mask(f, in.first(1), {{"n"}, {}, {{"n", in[1]}}});
      },
      "f");
  const Array x = lax::iota(DType::float64, {6}, 0);
  for (std::int64_t n = 0; n <= 6; ++n)
    CHECK(jitted(Arrays{x, size_array(n)})[0].item<double>() == double(n * (n - 1) / 2));
  CHECK(traces == 1);
}

TEST_CASE("errors of mask") {
  auto f = [](std::span<const Array> in) { return Arrays{lax::exp(in[0])}; };
  const Array x = lax::iota(DType::float64, {4, 3}, 0);
  auto message = [&](const std::vector<Spec>& specs, const Arrays& inputs, const Sizes& sizes,
                     std::function<std::vector<Spec>(std::size_t)> out = {}) {
    return problem_and_fix([&] { flat::mask(f, inputs, {specs, out, sizes}); });
  };
  CHECK(message({"n 3"}, {x}, {{"n", 5}}) ==
        "mask: the size n is 5, and the arrays are padded to 4 | give a size that is at most that, "
        "or pad the arrays to a larger one");
  CHECK(message({"n 3"}, {x}, {{"n", -1}}) == "mask: the size n is -1 | give a size of 0 or more");
  CHECK(message({"n 3"}, {x}, {{"m", 2}}) ==
        "mask: there is no size named 'm' in in_shapes | give values for some of its sizes: n");
  CHECK(message({"n 3"}, {x}, {{"n", 2.5}}) ==
        "mask: the size n is f64[]*, and should be an integer | give an integer");
  CHECK(message({"n n"}, {x}, {{"n", 2}}) ==
        "mask: argument 0, axis 1 has size 3, where n = 4 is needed: n is 4 in argument 0, axis 0 "
        "| make the sizes agree, or give them different names");
  CHECK(message({"n 2"}, {x}, {{"n", 2}}) ==
        "mask: argument 0, axis 1 has size 3, where 2 is needed | give an array of that size");
  CHECK(message({"n+m 3"}, {x}, {{"n", 2}}) ==
        "mask: the shapes do not tell to which size m is padded | let an argument have an axis of "
        "this size alone");
  CHECK(message({"2*n+1 3"}, {x}, {{"n", 1}}) ==
        "mask: argument 0, axis 0 has size 4, and no n makes 2*n+1 that | give an array of a size "
        "that fits");
  CHECK(message({"n"}, {x}, {{"n", 1}}) ==
        "mask: argument 0: the spec \"n\" has 1 dimensions, and the value has shape (4,3) | write "
        "one size for each axis");
  CHECK(message({"i32[n 3]"}, {x}, {{"n", 1}}) ==
        "mask: argument 0: the spec \"i32[n 3]\" says int32, and the value is float64 | convert "
        "the value with astype, or say its dtype");
  CHECK(message({"n 3"}, {x}, {{"n", 2}}, specs_of("n 4")) ==
        "mask: output 0 has shape (n,3), and out_shapes says \"n 4\" | correct out_shapes, or "
        "leave it away");
  CHECK(message({"n 3"}, {x, x}, {{"n", 2}}) ==
        "mask: 1 specs for 2 arrays | give in_shapes one spec for each array; std::nullopt takes "
        "all from the call");
}

TEST_CASE("sizes beyond their bounds are found when the program runs") {
  auto f = [](std::span<const Array> in) { return Arrays{total(in[0])}; };
  const Array x = lax::iota(DType::float64, {3, 4}, 1);
  auto row = [&](std::span<const Array> in) {
    return flat::mask(f, in.first(1), {{"n"}, {}, {{"n", in[1]}}});
  };
  const Function batch = [&](std::span<const Array> in) {
    flat::VmapOptions options;
    options.in_dims = {0, 0};
    options.out_dims = [](std::size_t) { return std::vector<std::optional<int>>{0}; };
    return flat::vmap(row, in, options);
  };
  const Array good = array<std::int32_t>({4, 0, 2}), large = array<std::int32_t>({4, 5, 2}),
              negative = array<std::int32_t>({4, 0, -2});
  CHECK(elements<double>(batch(Arrays{x, good})[0]) == std::vector<double>{6, 0, 1});
  const std::string expected =
      "mask: the size n is 5 in example 1, and the arrays are padded to 4 | give a size that is at "
      "most that, or pad the arrays to a larger one";
  CHECK(problem_and_fix([&] { batch(Arrays{x, large}); }) == expected);
  CHECK(problem_and_fix([&] { flat::Jit(batch, "batch")(Arrays{x, large}); }) == expected);
  CHECK(problem_and_fix([&] { batch(Arrays{x, negative}); }) ==
        "mask: the size n is -2 in example 2 | give a size of 0 or more");
  // A constraint that the sizes did not decide while tracing.
  auto first = [](std::span<const Array> in) {
    return Arrays{lax::slice_in_dim(in[0], Dim(0), in[1].shape(0))};
  };
  auto masked = [&](std::int64_t n, std::int64_t m) {
    return flat::mask(first,
                      Arrays{lax::iota(DType::float64, {5}, 0), lax::iota(DType::float64, {4}, 0)},
                      {{"n", "m"}, {}, {{"n", Array(n)}, {"m", Array(m)}}});
  };
  CHECK(elements<double>(masked(4, 3)[0]) == std::vector<double>{0, 1, 2, 0});
  CHECK(problem_and_fix([&] { masked(2, 3); }) ==
        "mask: the function needs m <= n, and here that is 3 <= 2 | call it with sizes that "
        "satisfy this");
}

TEST_CASE("a primitive that refuses mask is named with its equation") {
  static constinit const Primitive whole_p{"whole"};
  define(whole_p, "The operand, in a way that cannot be masked.")
      .rule<Abstract>(
          [](std::span<const Aval> inputs, const Params&) { return std::vector<Aval>{inputs[0]}; })
      .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
        copy_elements(inputs[0], outputs[0]);
      })
      .refuse<Mask>("it sees the whole array");
  auto f = [](std::span<const Array> in) -> Arrays { return bind(whole_p, {in[0]}); };
  const Array x = lax::iota(DType::float64, {4, 3}, 0);
  CHECK(
      problem_and_fix([&] { flat::mask(f, Arrays{x}, {{"n 3"}, {}, {{"n", 2}}}); }).substr(0, 96) ==
      "`whole` refuses mask: it sees the whole array; the equation is `whole[] f64[n,3]` | "
      "rewrite the ");
  // Where nothing is ragged it is what it is.
  auto g = [](std::span<const Array> in) -> Arrays {
    return {lax::exp(in[0]), Array(bind(whole_p, {in[1]}))};
  };
  check_close(flat::mask(g, Arrays{x, x}, {{"n 3", std::nullopt}, {}, {{"n", 2}}})[1], x);
}
