// plait.numpy, nn, random and optim from C++: values, derivatives, named sizes, errors. The Python
// tests hold every function to NumPy over dtypes and shapes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/functions/catalogue.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>
#include <plait/rules/put.h>

#include <cmath>

using namespace plait;

namespace {

template <class T>
Array array_of(std::vector<T> values, Shape shape) {
  Buffer buffer = Buffer::empty(dtype_of<T>(), shape.to_sizes());
  std::copy(values.begin(), values.end(), static_cast<T*>(buffer.mutable_data()));
  return Array(buffer);
}
Array f64(std::vector<double> values, Shape shape) {
  return array_of(std::move(values), std::move(shape));
}
Array row(std::vector<double> values) {
  const std::int64_t n = values.size();
  return f64(std::move(values), {n});
}

std::vector<double> values_of(const Array& x) {
  const Buffer buffer = lax::convert_element_type(x, DType::float64).buffer().dense();
  const auto* data = static_cast<const double*>(buffer.data());
  return {data, data + num_elements(buffer.shape())};
}

void check_close(const Array& x, const std::vector<double>& expected, double tolerance = 1e-12) {
  const std::vector<double> values = values_of(x);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(expected[i]))
      CHECK(std::isnan(values[i]));
    else if (std::isinf(expected[i]))
      CHECK(values[i] == expected[i]);
    else
      CHECK(std::abs(values[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
  }
}

using Unary = std::function<Array(const Array&)>;
// The derivative of an elementwise function at each element.
Array slope(const Unary& f, const Array& x) {
  const Function sum = [&](std::span<const Array> inputs) {
    const Array y = f(inputs[0]);
    return Arrays{y.ndim() == 0 ? y : numpy::sum(y)};
  };
  return flat::value_and_grad(sum, std::vector<Array>{x}, {true}).gradients[0];
}

const double inf = INFINITY;

}  // namespace

TEST_CASE("reductions take axes in every form and keep them when asked") {
  const Array x = f64({1, 2, 3, 4, 5, 6}, {2, 3});
  check_close(numpy::sum(x), {21});
  check_close(numpy::sum(x, 0), {5, 7, 9});
  check_close(numpy::sum(x, -1), {6, 15});
  CHECK(numpy::sum(x, {0, 1}, {}, true).shape() == Shape{1, 1});
  check_close(numpy::mean(x, 1), {2, 5});
  check_close(numpy::var(x, 0), {2.25, 2.25, 2.25});
  check_close(numpy::std(x, {}, {}, 1), {std::sqrt(3.5)});
  check_close(numpy::max(x, 0), {4, 5, 6});
  CHECK(numpy::argmax(x).item<int>() == 5);
  CHECK(numpy::mean(array_of<std::int64_t>({1, 2}, {2})).dtype() == DType::float32);
  CHECK(numpy::sum(array_of<std::int8_t>({100, 100}, {2})).item<int>() == 200);
}

TEST_CASE("an empty axis has no maximum unless an initial value is given") {
  CHECK_THROWS_AS(numpy::max(numpy::zeros({0, 3}), 0), ValueError);
  CHECK(numpy::max(numpy::zeros({0, 3}), 1).shape() == Shape{0});
  check_close(numpy::max(numpy::zeros({0}), 0, false, Array(2.0)), {2});
}

TEST_CASE("the derivative of relu at 0 is 0, and NaN passes") {
  check_close(nn::relu(row({-1, 0, 2, NAN})), {0, 0, 2, NAN});
  check_close(slope(nn::relu, row({-1, 0, 2})), {0, 0, 1});
}

TEST_CASE("softmax and its kin are stable, and so are their derivatives") {
  const Array x = f64({1000, 1001, -inf, -inf}, {2, 2});
  check_close(nn::logsumexp(x, -1), {1001 + std::log1p(std::exp(-1)), -inf});
  check_close(slope([](const Array& a) { return nn::logsumexp(a, -1); },
                    f64({-inf, -inf, 0, -inf}, {2, 2})),
              {0, 0, 1, 0});
  const Array y = row({1, 2, 3});
  const double total = std::exp(1) + std::exp(2) + std::exp(3);
  check_close(nn::softmax(y), {std::exp(1) / total, std::exp(2) / total, std::exp(3) / total});
  check_close(numpy::exp(nn::log_softmax(y)), values_of(nn::softmax(y)));
  check_close(slope([](const Array& a) { return nn::softmax(a); }, y), {0, 0, 0}, 1e-15);
  check_close(nn::sigmoid(row({-1000, 0, 1000})), {0, 0.5, 1});
  check_close(slope(nn::sigmoid, row({-1000, 0, 1000})), {0, 0.25, 0});
  check_close(slope([](const Array& a) { return nn::softplus(a); }, row({-1000, 0, 1000})),
              {0, 0.5, 1});
  check_close(numpy::logaddexp(row({-inf, inf}), row({-inf, 1})), {-inf, inf});
}

TEST_CASE(
    "derivatives of functions with a stated rule agree with finite differences, to second order") {
  const std::vector<std::pair<Unary, std::vector<double>>> cases = {
      {numpy::tan, {-1, 0.3}},
      {numpy::arcsin, {-0.5, 0.2}},
      {numpy::arccos, {-0.5, 0.2}},
      {numpy::arctan, {-3, 0.4}},
      {numpy::sinh, {-2, 0.1}},
      {numpy::cosh, {-2, 0.1}},
      {numpy::arcsinh, {-2, 0.1}},
      {numpy::arccosh, {1.5, 4}},
      {numpy::arctanh, {-0.5, 0.1}},
      {numpy::cbrt, {-8, 2}},
      {nn::sigmoid, {-2, 0, 3}},
      {nn::silu, {-2, 0, 3}},
      {[](const Array& x) { return nn::gelu(x, true); }, {-2, 0, 3}},
      {[](const Array& x) { return nn::gelu(x, false); }, {-2, 0, 3}},
      {[](const Array& x) { return nn::softplus(x); }, {-2, 0, 3}},
      {[](const Array& x) { return nn::mish(x); }, {-2, 0, 3}},
      {[](const Array& x) { return nn::layer_norm(x) * numpy::arange(3, {}, {}, DType::float64); },
       {1, 2, 4}},
      {[](const Array& x) { return nn::log_softmax(x) * numpy::arange(3, {}, {}, DType::float64); },
       {1, 2, 4}},
      {[](const Array& x) { return numpy::hypot(x, 2.0); }, {-1, 0.5}},
      {[](const Array& x) { return nn::logsumexp(x); }, {1, 2, 4}}};
  for (std::size_t number = 0; number < cases.size(); ++number) {
    CAPTURE(number);
    const Unary& f = cases[number].first;  // no structured binding: lambdas capture them
    const std::vector<double>& at = cases[number].second;
    const Array x = row(at);
    const double h = 1e-6;
    auto numeric = [&](const Unary& g) {
      std::vector<double> result;
      for (std::size_t i = 0; i < at.size(); ++i) {
        std::vector<double> low = at, high = at;
        low[i] -= h;
        high[i] += h;
        result.push_back(
            (numpy::sum(g(row(high))).item<double>() - numpy::sum(g(row(low))).item<double>()) /
            (2 * h));
      }
      return result;
    };
    check_close(slope(f, x), numeric(f), 1e-6);
    const Unary first = [&](const Array& a) { return slope(f, a); };
    check_close(slope(first, x), numeric(first), 1e-6);
  }
}

TEST_CASE("a composite is one equation with its symbol and attributes, traced once") {
  const Function f = [](std::span<const Array> x) { return Arrays{nn::softmax(x[0], 0)}; };
  const Traced traced = make_jaxpr(f, std::vector<Aval>{{{2, 3}, DType::float32}});
  REQUIRE(traced.jaxpr->equations.size() == 1);
  const Equation& equation = traced.jaxpr->equations[0];
  CHECK(*equation.primitive == composite_p);
  CHECK(equation.params.text("symbol") == "softmax");
  CHECK(equation.params.ints("axes") == std::vector<int>{-2});
  const Traced again = make_jaxpr(f, std::vector<Aval>{{{2, 3}, DType::float32}});
  CHECK(&*equation.params.get<Jaxpr>("body") ==
        &*again.jaxpr->equations[0].params.get<Jaxpr>("body"));
  CHECK(find_composite("softmax") != nullptr);
  // The batch comes first, and the symbol and its axes stay.
  const Function batched = [&](std::span<const Array> x) {
    flat::VmapOptions options;
    options.in_dims = {1};
    options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
    return flat::vmap(f, x, options);
  };
  const Traced vmapped = make_jaxpr(batched, std::vector<Aval>{{{2, 5, 3}, DType::float32}});
  bool found = false;
  for (const Equation& e : vmapped.jaxpr->equations)
    if (*e.primitive == composite_p) {
      found = true;
      CHECK(e.params.text("symbol") == "softmax");
      CHECK(e.params.ints("axes") == std::vector<int>{-2});
    }
  CHECK(found);
}

TEST_CASE("matmul broadcasts its leading axes as NumPy does") {
  auto counting = [](Shape shape) {
    return numpy::reshape(numpy::arange(shape.num_elements(), {}, {}, DType::float64), shape);
  };
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3}, {3}},
                                                       {{2, 3}, {3}},
                                                       {{3}, {3, 2}},
                                                       {{2, 3}, {3, 4}},
                                                       {{5, 2, 3}, {3, 4}},
                                                       {{2, 3}, {5, 3, 4}},
                                                       {{5, 2, 3}, {5, 3, 4}},
                                                       {{5, 1, 2, 3}, {6, 3, 4}},
                                                       {{1, 2, 3}, {5, 3, 4}},
                                                       {{6, 1, 2, 3}, {1, 5, 3, 4}},
                                                       {{3}, {5, 3, 2}},
                                                       {{1, 2, 3}, {1, 3, 4}}};
  for (const auto& pair : shapes) {
    const Shape &left = pair.first, &right = pair.second;
    CAPTURE(left.to_string());
    CAPTURE(right.to_string());
    const Array a = counting(left), b = counting(right) * 0.5 - 1.0;
    const Array product = numpy::matmul(a, b);
    // The definition: broadcast, multiply, sum.
    const Array rows = a.ndim() == 1 ? lax::reshape(a, {1, left[0]}) : a,
                columns = b.ndim() == 1 ? lax::reshape(b, {right[0], 1}) : b;
    const Array expected = numpy::sum(
        numpy::multiply(numpy::expand_dims(rows, {-1}), numpy::expand_dims(columns, {-3})), -2);
    Shape shape = expected.shape();
    if (b.ndim() == 1) shape.pop_back();
    if (a.ndim() == 1) shape.erase(shape.size() - (b.ndim() == 1 ? 1 : 2));
    CHECK(product.shape() == shape);
    check_close(product, values_of(expected));
  }
  CHECK_THROWS_AS(numpy::matmul(counting({2, 3}), counting({2, 3})), ShapeError);
}

TEST_CASE("einsum contracts, takes diagonals, transposes and broadcasts") {
  const Array a = numpy::reshape(numpy::arange(6, {}, {}, DType::float64), {2, 3});
  const Array b = numpy::reshape(numpy::arange(12, {}, {}, DType::float64), {3, 4});
  check_close(numpy::einsum("ij,jk->ik", {a, b}), values_of(numpy::matmul(a, b)));
  check_close(numpy::einsum("ij,jk", {a, b}), values_of(numpy::matmul(a, b)));
  check_close(numpy::einsum("ij->ji", {a}), values_of(numpy::transpose(a)));
  check_close(numpy::einsum("ij->", {a}), {15});
  check_close(numpy::einsum("ii->i", {numpy::matmul(a, numpy::transpose(a))}), {5, 50});
  check_close(numpy::einsum("ii", {numpy::matmul(a, numpy::transpose(a))}), {55});
  check_close(numpy::einsum("...j,...j->...", {a, a}), {5, 50});
  check_close(numpy::einsum("i,j->ij", {row({1, 2}), row({3, 4})}), {3, 4, 6, 8});
  check_close(numpy::einsum("ij,jk,kl->il", {a, b, numpy::transpose(b)}),
              values_of(numpy::matmul(numpy::matmul(a, b), numpy::transpose(b))));
  CHECK_THROWS_AS(numpy::einsum("ij,jk->ik", {a}), ValueError);
  CHECK_THROWS_AS(numpy::einsum("ij,jk->iz", {a, b}), ValueError);
  CHECK_THROWS_AS(numpy::einsum("ij,jk->ik", {b, b}), ShapeError);
}

TEST_CASE("named sizes pass through shape functions and the mean") {
  const Dim n = Dim::size("n");
  const Function f = [](std::span<const Array> x) {
    const Array rows = numpy::reshape(x[0], {-1, 2});
    const Array joined = numpy::concatenate({rows, numpy::zeros({1, 2})});
    const Array means = numpy::mean(joined, 0) + numpy::sum(numpy::arange(x[0].shape(0)));
    return Arrays{means + nn::softmax(x[0], 0), numpy::var(x[0], 0), numpy::roll(x[0], {1}, 0),
                  numpy::flip(x[0])};
  };
  const Traced traced = make_jaxpr(f, std::vector<Aval>{{{n, 2}, DType::float32}}, "f", {n});
  const Array x = numpy::reshape(numpy::arange(8.0), {4, 2});
  const Arrays direct = f(std::vector<Array>{x});
  const Arrays through = eval_jaxpr(traced.jaxpr, std::vector<Array>{x});
  REQUIRE(direct.size() == through.size());
  for (std::size_t i = 0; i < direct.size(); ++i)
    check_close(through[i], values_of(direct[i]), 1e-6);
  // Putting the number in gives what tracing at the number gives.
  const Traced at_four = make_jaxpr(f, std::vector<Aval>{{{4, 2}, DType::float32}});
  const std::pair<Dim, Dim> four[] = {{n, 4}};
  CHECK(print(instantiate(traced.jaxpr, four)) == print(at_four.jaxpr));
}

TEST_CASE("a jitted function is traced for the default dtypes around its call") {
  int traces = 0;
  const auto f = jit([&](const Array& x) {
    ++traces;
    return nn::sigmoid(x) + numpy::ones({2});
  });
  const Array x = array_of<std::int32_t>({0, 0}, {2});
  for (int round = 0; round < 2; ++round) {
    CHECK(f(x).dtype() == DType::float32);
    const DefaultDTypesScope wide({DType::float64, DType::int64});
    CHECK(f(x).dtype() == DType::float64);
    CHECK(numpy::argmax(f(x)).dtype() == DType::int64);
  }
  CHECK(traces == 2);
}

TEST_CASE("optimisers work over C++ structs") {
  struct Weights {
    Array w, b;
  };
  Weights weights{row({1, -2}), f64({3}, {})};
  auto state = optim::adam_init(weights);
  for (int step = 0; step < 200; ++step) {
    const Weights gradients{2.0 * weights.w, 2.0 * weights.b};
    auto [updates, next] = optim::adam(gradients, state, {.learning_rate = 0.1});
    weights = optim::apply_updates(weights, updates);
    state = next;
  }
  CHECK(state.count.item<int>() == 200);
  CHECK(numpy::max(numpy::abs(weights.w)).item<double>() < 0.05);
  CHECK(optim::global_norm(Weights{row({3}), f64({4}, {})}).item<double>() == doctest::Approx(5));
  const Weights clipped = optim::clip_by_global_norm(Weights{row({3}), f64({4}, {})}, 1.0);
  CHECK(clipped.b.item<double>() == doctest::Approx(0.8));
  check_close(optim::sgd(weights, {.learning_rate = 0.5}).w, values_of(-0.5 * weights.w));

  const optim::Schedule schedule = optim::linear_schedule(0.5, 0.0, 10);
  const Weights start{row({1, -2}), f64({3}, {})};
  auto [halved, trace] =
      optim::momentum(start, optim::momentum_init(start), {.learning_rate = schedule});
  check_close(halved.w, {-0.5, 1});
  check_close(optim::momentum(start, trace, {.learning_rate = schedule}).first.b, {-0.45 * 1.9 * 3},
              1e-6);
  const auto by_hand = [](const Array& count) -> Array { return 0.1 * (count + 1); };
  auto [signs, _] = optim::lion(start, optim::lion_init(start), start,
                                {.learning_rate = by_hand, .weight_decay = 0});
  check_close(signs.w, {-0.1, 0.1}, 1e-6);
  const auto state_of_rows = optim::adafactor_init(Weights{numpy::ones({3, 4}), row({1})}, 2);
  CHECK(state_of_rows.rows.w.shape() == Shape{3});
}

TEST_CASE("sparse arrays multiply, and are trees") {
  const Array dense = f64({0, 2, 0, 1, 0, 3}, {2, 3});
  const sparse::BCOO mat = sparse::bcoo_fromdense(dense);
  const auto product = [](const sparse::BCOO& a, const Array& x) -> Array {
    return sparse::bcoo_dot_general(a, x, {{1}, {0}, {}, {}});
  };
  check_close(product(mat, row({1, 2, 3})), {4, 10});
  check_close(jit(product)(mat, row({1, 2, 3})), {4, 10});
  check_close(sparse::bcoo_todense(sparse::bcoo_transpose(mat, {1, 0})), {0, 1, 2, 0, 0, 3});
}

TEST_CASE("functions given as operators fold arrays and windows") {
  const Array x = f64({1, 5, 2, 4, 3, 6}, {2, 3});
  check_close(lax::reduce(x, -inf, lax::max, {1}), {5, 6});
  check_close(lax::reduce(x, 10, numpy::add, {0}), {15, 18, 18});
  check_close(lax::reduce_window(x, -inf, lax::max, {1, 2}), {5, 5, 4, 6});
  check_close(
      lax::reduce_window(x, 0, [](const Array& a, const Array& b) { return a + b; }, {2, 2}),
      {13, 16});
  check_close(lax::reduce_window(x, 1, lax::mul, {1, 3}, {1, 1}, {{0, 0}, {1, 1}}),
              {5, 10, 10, 12, 72, 18});
  check_close(lax::reduce(x, 0, numpy::hypot, {1}), {std::sqrt(30.0), std::sqrt(61.0)});
}

TEST_CASE("norms, repeats by counts, and columns first") {
  const Array x = f64({3, -4, 0, 12}, {2, 2});
  CHECK(numpy::linalg::norm(x).item<double>() == doctest::Approx(13));
  check_close(numpy::linalg::norm(x, 1, 0), {3, 16});
  check_close(numpy::linalg::norm(x, inf), {12});
  check_close(numpy::linalg::matrix_norm(x, false, -1), {3});
  check_close(numpy::linalg::norm(x, "nuc"), {std::sqrt(241.0)});  // s1 s2 = 36, s1^2 + s2^2 = 169
  check_close(numpy::repeat(row({1, 2, 3}), array_of<std::int32_t>({2, 0, 1}, {3})), {1, 1, 3});
  check_close(numpy::reshape(x, {4}, "F"), {3, 0, -4, 12});
  check_close(scipy::stats::norm::logpdf(row({0.5}), 0.5, 2), {-std::log(2 * std::sqrt(2 * M_PI))});
}

TEST_CASE("a two-layer network learns from its own gradients") {
  Arrays keys;
  for (int i = 0; i < 4; ++i) keys.push_back(random::fold_in(random::key(0), i));
  Arrays params{nn::initializers::he_normal(keys[0], {4, 16}), numpy::zeros({16}),
                nn::initializers::lecun_normal(keys[1], {16, 3}), numpy::zeros({3})};
  const Array x = random::normal(keys[2], {64, 4});
  const Array labels = numpy::argmax(numpy::matmul(x, random::normal(keys[3], {4, 3})), 1);
  const Function loss = [&](std::span<const Array> p) {
    const Array hidden = nn::relu(numpy::matmul(x, p[0]) + p[1]);
    const Array logits = numpy::matmul(hidden, p[2]) + p[3];
    return Arrays{-numpy::mean(numpy::sum(nn::log_softmax(logits) * nn::one_hot(labels, 3), -1))};
  };
  auto state = optim::adam_init(params);
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    const flat::ValueAndGrad result = flat::value_and_grad(loss, params, {true, true, true, true});
    last = result.outputs[0].item<double>();
    if (step == 0) first = last;
    auto [updates, next] = optim::adam(result.gradients, state, {.learning_rate = 3e-2});
    params = optim::apply_updates(params, updates);
    state = next;
  }
  CHECK(last < 0.2 * first);
}

TEST_CASE("the catalogue calls functions by name with arguments of any language") {
  const FunctionInfo* sum = find_function("numpy", "sum");
  REQUIRE(sum != nullptr);
  const std::vector<Argument> arguments{Argument(row({1, 2, 3})),
                                        Argument(std::int64_t(0)),
                                        Argument(),
                                        Argument(),  // out, which says nothing
                                        Argument(false),
                                        Argument(),
                                        Argument(),
                                        Argument(true)};
  const Argument result = sum->call(arguments);
  CHECK(std::get<Array>(result.value).item<double>() == 6);
  std::vector<Argument> with_out = arguments;
  with_out[3] = Argument(row({1}));
  CHECK_THROWS_WITH_AS(sum->call(with_out), doctest::Contains("'out'"), ValueError);
  for (const FunctionInfo* info : all_functions()) {
    CAPTURE(info->signature);
    CHECK(!info->doc.empty());
    CHECK(info->doc.back() == '.');
  }
}

TEST_CASE("a value is put through every function that only shows elements") {
  const Array x = f64({0, 1, 2, 3, 4, 5}, {2, 3});
  const Unary view = [](const Array& a) {
    return numpy::split(numpy::flip(numpy::transpose(a)), 3)[1];
  };
  check_close(view(x), {4, 1});
  check_close(put_through(view, x, f64({40, 10}, {1, 2})), {0, 10, 2, 3, 40, 5});
  const Unary every_other = [](const Array& a) {
    return getitem(a, {Range{}, Range{{}, {}, Dim(2)}});
  };
  check_close(put_through(every_other, x, f64({6, 7, 8, 9}, {2, 2})), {6, 1, 7, 8, 4, 9});
  check_close(
      slope([&](const Array& a) { return put_through(view, a, numpy::square(view(a))); }, x),
      {1, 2, 1, 1, 8, 1});
  CHECK_THROWS_AS(put_through([](const Array& a) { return lax::sin(a); }, x, x), MissingRuleError);
  CHECK_THROWS_AS(
      put_through(
          [](const Array& a) { return lax::broadcast_in_dim(a, {4, 2, 3}, std::vector{1, 2}); }, x,
          lax::full({4, 2, 3}, 0, DType::float64)),
      ValueError);
}
