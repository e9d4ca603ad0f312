// C++ values as arguments and results: which types are trees, what belongs to their structure, and
// that a jitted function returns the structure of its own call.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <thread>

#include "../problem.h"

using namespace plait;

namespace {

Array row(std::initializer_list<double> values) { return numpy::array(values, DType::float64); }
std::vector<double> numbers(const Array& x) { return x.to_vector<double>(); }

struct Empty {};
struct Tagged : Empty {
  Array a;
  int n;
};
struct Dense {
  Array w, b;
};
struct Scaled : Dense {
  Array scale;
  static constexpr auto plait_fields =
      plait::fields("w", &Scaled::w, "b", &Scaled::b, "scale", &Scaled::scale);
};
struct Wide {
  Array a, b, c, d, e, f, g, h, i, j, k, l, m, n;
};
struct Model {
  std::vector<Dense> layers;
  std::unordered_map<std::string, Array> named;
  Array pair[2];
  std::optional<Array> maybe;
  double lr = 0;
  std::string name;
  std::vector<int> sizes;
};
struct Node {
  Array value;
  std::vector<Node> children;
};
class Counter {  // a class with private members
 public:
  Counter() = default;
  explicit Counter(Array value) : value_(std::move(value)) {}
  const Array& value() const { return value_; }

 private:
  Array value_;

 public:
  static constexpr auto plait_fields = plait::fields("value", &Counter::value_);
};

}  // namespace

TEST_CASE("jit returns the structure of its own call, whatever was traced in between") {
  auto rows = jit([](const Array& x) { return numpy::unstack(x * 2.0); });
  const Array three = numpy::ones({3}), two = numpy::ones({2});
  CHECK(rows(three).size() == 3);
  CHECK(rows(two).size() == 2);
  CHECK(rows(three).size() == 3);
  auto maybe = jit([](const Array& x) -> std::optional<Array> {
    return x.ndim() ? std::optional<Array>(x + 1.0) : std::nullopt;
  });
  CHECK(maybe(three));
  CHECK(!maybe(1.0));
  REQUIRE(maybe(three));
  CHECK(numbers(*maybe(three)) == std::vector<double>{2, 2, 2});
}

TEST_CASE("a known signature may be called while another thread traces new ones") {
  auto rows = jit([](const Array& x) { return numpy::unstack(x + 1.0); });
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  rows(numpy::ones({3}));
  std::thread caller([&] {
    while (!done)
      if (rows(numpy::ones({3})).size() != 3) ++wrong;
  });
  for (int n = 4; n < 40; ++n)
    if (rows(numpy::ones({n})).size() != std::size_t(n)) ++wrong;
  done = true;
  caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("run_into takes an empty result of any structure, and afterwards its memory") {
  struct State {
    std::vector<Array> rows;
    std::map<std::string, Array> named;
    std::optional<Array> maybe;
    Array sum;
  };
  auto f = jit([](const Array& x) {
    return State{numpy::unstack(x), {{"twice", x * 2.0}}, x + 1.0, x.sum()};
  });
  State state;
  f.run_into(state, row({1, 2}));
  REQUIRE(state.rows.size() == 2);
  CHECK(numbers(state.named.at("twice")) == std::vector<double>{2, 4});
  REQUIRE(state.maybe);
  CHECK(numbers(*state.maybe) == std::vector<double>{2, 3});
  const void* memory = state.named.at("twice").buffer().data();
  f.run_into(state, row({3, 4}));
  CHECK(state.named.at("twice").buffer().data() == memory);
  CHECK(numbers(state.named.at("twice")) == std::vector<double>{6, 8});
  CHECK(state.sum.item<double>() == 7);
  CHECK(problem_and_fix([&] {
          f.run_into(state, row({1, 2, 3}));
        }).starts_with("run_into: the result that was given is State(rows=[*, *], "));
  CHECK(state.rows.size() == 2);
}

TEST_CASE("structs of many fields, base classes, C arrays and nested containers are trees") {
  Wide wide;
  int number = 0;
  std::apply([&](auto&... fields) { ((fields = Array(double(++number))), ...); },
             plait::detail::fields_of(wide));
  const Wide slopes = grad([](const Wide& x) -> Array { return x.a * x.n + x.m; })(wide);
  CHECK(slopes.a.item<double>() == 14);
  CHECK(slopes.n.item<double>() == 1);
  CHECK(slopes.m.item<double>() == 1);
  CHECK(slopes.b.item<double>() == 0);

  Scaled scaled;
  scaled.w = 2.0, scaled.b = 3.0, scaled.scale = 5.0;
  const Scaled by = grad([](const Scaled& s) -> Array { return s.w * s.scale + s.b; })(scaled);
  CHECK(by.w.item<double>() == 5);
  CHECK(by.scale.item<double>() == 2);
  CHECK(by.b.item<double>() == 1);

  const Tagged tagged{{}, Array(3.0), 4};
  const Tagged cubed = jit([](const Tagged& t) { return Tagged{{}, t.a * t.a, t.n + 1}; })(tagged);
  CHECK(cubed.a.item<double>() == 9);
  CHECK(cubed.n == 5);

  const Node tree{2.0, {{3.0, {}}, {4.0, {{5.0, {}}}}}};
  const Node back = jit([](const Node& n) { return n; })(tree);
  CHECK(back.children[1].children[0].value.item<double>() == 5);

  CHECK(jit([](const Counter& c) { return Counter(c.value() + 1.0); })(Counter(2.0))
            .value()
            .item<double>() == 3);

  Arrays leaves;
  Model model;
  model.layers = {{1.0, 2.0}};
  model.named = {{"z", 3.0}, {"a", 4.0}};
  model.pair[0] = 5.0, model.pair[1] = 6.0;
  model.lr = 0.5, model.name = "small", model.sizes = {1, 2};
  const TreeDef structure = flatten(model, leaves);
  CHECK(structure.to_string() ==
        "Model(layers=[Dense(w=*, b=*)], named={'a': *, 'z': *}, pair=[*, *], maybe=None, lr=0.5, "
        "name=\"small\", sizes=constant)");
  CHECK(structure.path(3) == ".named['z']");
  const Model again = unflatten<Model>(structure, leaves);
  CHECK(again.pair[1].item<double>() == 6);
  CHECK(again.named.at("a").item<double>() == 4);
  CHECK(again.lr == 0.5);
  CHECK(again.sizes == model.sizes);
}

TEST_CASE("a member that is no array is static: its value is compared bit by bit") {
  struct Rated {
    Array w;
    double lr;
  };
  int traces = 0;
  auto step = jit([&](const Rated& m, const Array& x) {
    ++traces;
    return x * m.w * m.lr;
  });
  Rated model{1.0, 0.5};
  CHECK(step(model, 2.0).item<double>() == 1);
  CHECK(step(model, 4.0).item<double>() == 2);
  CHECK(traces == 1);
  model.lr = 0.25;
  CHECK(step(model, 4.0).item<double>() == 1);
  CHECK(traces == 2);
  model.lr = 0.0;
  CHECK(!std::signbit(step(model, 4.0).item<double>()));
  model.lr = -0.0;
  CHECK(std::signbit(step(model, 4.0).item<double>()));
  model.lr = NAN;
  step(model, 4.0);
  const int before = traces;
  step(model, 4.0);
  CHECK(traces == before);
}

TEST_CASE("static members are compared bit by bit, whatever holds them") {
  struct Signed {
    double at;
    bool operator==(const Signed&) const = default;
  };
  struct Held {
    Array w;
    std::map<std::string, double> named;
    std::unordered_map<std::string, std::optional<double>> maybe;
    Signed one;
    std::complex<double> number;
  };
  int traces = 0;
  auto f = jit([&](const Held& held, const Array& x) {
    ++traces;
    return x * held.w * std::copysign(1.0, held.one.at) * std::copysign(1.0, held.number.imag());
  });
  Held held{1.0, {{"a", NAN}}, {{"b", NAN}, {"c", {}}}, {0.0}, {NAN, 0.0}};
  CHECK(f(held, 2.0).item<double>() == 2);
  CHECK(f(held, 3.0).item<double>() == 3);
  CHECK(traces == 1);
  held.one.at = -0.0;
  CHECK(f(held, 2.0).item<double>() == -2);
  held.number = {NAN, -0.0};
  CHECK(f(held, 2.0).item<double>() == 2);
  CHECK(traces == 3);
  held.maybe["c"] = 1.0;
  f(held, 2.0);
  CHECK(traces == 4);
}

namespace {
struct Viewing {
  Array w;
  std::string_view mode;
};
}  // namespace

TEST_CASE("which types are trees") {
  static_assert(!TreeType<Viewing> && !TreeType<std::pair<Array, std::span<const double>>>,
                "what somebody else holds may be gone when it is compared");
  static_assert(TreeType<Array> && TreeType<Model> && TreeType<Node> && TreeType<Scaled>);
  static_assert(TreeType<std::tuple<>> && TreeType<std::pair<Array, Model>>);
  struct Derived : Dense {
    Array more;
  };
  static_assert(!TreeType<Derived>);  // the base's members are not its own
  static_assert(!TreeType<double> && !TreeType<std::vector<double>>);
  static_assert(!TreeType<std::map<int, Array>> && !TreeType<std::shared_ptr<Array>>);
  struct Pointer {
    Array a;
    double* p;
  };
  static_assert(!TreeType<Pointer>);
}
