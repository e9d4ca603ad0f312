// Saved programs: what is loaded does what was saved, in every way a function is used; and files
// that are not what save writes are errors.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/program/program.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "../problem.h"

using namespace plait;

namespace {

struct Weights {
  Array w, b;
};

Array predict(const Weights& p, const Array& x) { return numpy::tanh(numpy::matmul(x, p.w) + p.b); }

Weights weights() {
  const Array grid = numpy::reshape(numpy::arange(12), {4, 3}) * 0.1 - 0.5;
  return {lax::convert_element_type(grid, DType::float64),
          lax::convert_element_type(numpy::arange(3) * 0.25, DType::float64)};
}
Array inputs() {
  return lax::convert_element_type(numpy::reshape(numpy::arange(8), {2, 4}) * 0.3, DType::float64);
}

std::string path_of(const char* name) {
  return (std::filesystem::temp_directory_path() / ("plait_" + std::to_string(getpid()) + name))
      .string();
}

// A file that is removed with it.
struct File {
  explicit File(const char* name) : path(path_of(name)) {}
  ~File() { std::filesystem::remove(path); }
  std::string path;
};

double number(const Array& array, std::int64_t i) {
  return static_cast<const double*>(array.buffer().dense().data())[i];
}
void check_equal(const Array& a, const Array& b) {
  REQUIRE(a.shape() == b.shape());
  for (std::int64_t i = 0; i < num_elements(a.buffer().shape()); ++i)
    CHECK(number(a, i) == number(b, i));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("named arguments are in the file and in what it says of its callers") {
  const File file("named.plait");
  save(file.path, {{"predict", traced(predict, weights(), inputs()).named({"weights", "x"})}});
  const Program program = load(file.path, {.verify = true});
  CHECK(program["predict"].argument_names() == std::vector<std::string>{"weights", "x"});
  const auto loaded = program.entry<Array(Weights, Array)>();
  check_equal(loaded(weights(), inputs()), predict(weights(), inputs()));
  const std::string message = message_of([&] { loaded(weights(), numpy::ones({2, 5})); });
  CHECK_MESSAGE(message.find("argument x") != std::string::npos, message);
  CHECK(problem_and_fix([] { traced(predict, weights(), inputs()).named({"weights"}); }) ==
        "save: 1 names for 2 arguments | give one name for each argument");
}

TEST_CASE("a loaded entry computes, differentiates, vmaps and jits like the function") {
  const File file("a.plait");
  save(file.path, {{"predict", traced(predict, weights(), inputs())}});
  const Program program = load(file.path, {.verify = true});
  const auto loaded = program.entry<Array(Weights, Array)>();
  check_equal(loaded(weights(), inputs()), predict(weights(), inputs()));

  auto loss = [](auto f) {
    return std::function<Array(const Weights&, const Array&)>(
        [f](const Weights& p, const Array& x) { return numpy::sum(f(p, x)); });
  };
  const Weights ours = grad(loss(loaded))(weights(), inputs()),
                wanted = grad(loss(predict))(weights(), inputs());
  check_equal(ours.w, wanted.w);
  check_equal(ours.b, wanted.b);
  check_equal(jit(loaded)(weights(), inputs()), predict(weights(), inputs()));
  const Array many = numpy::stack(Arrays{inputs(), inputs() * 2.0});
  check_equal(vmap(loaded, {AxisTree(std::nullopt), 0})(weights(), many),
              vmap(predict, {AxisTree(std::nullopt), 0})(weights(), many));
}

TEST_CASE("a loaded entry runs at each size, in buckets or up to a bound, and checks constraints") {
  const File file("sizes.plait");
  const std::vector<Spec> specs{"f64[4 3]", "f64[3]", "f64[b 4]"};
  save(file.path, {{"predict", traced_with_specs(predict, specs, Constraints{"b % 2 == 0", "b > 0"},
                                                 weights(), inputs())}});
  const Program program = load(file.path);
  const Array four = numpy::concatenate(Arrays{inputs(), inputs() * 2.0});
  for (const SizeOptions& options : std::vector<SizeOptions>{
           {}, {.buckets = powers_of_two}, {.buckets = {{"b", {6}}}}, {.bound = {{"b", 10}}}}) {
    const auto loaded = program.entry<Array(Weights, Array)>("predict", options);
    check_equal(loaded(weights(), inputs()), predict(weights(), inputs()));
    check_equal(loaded(weights(), four), predict(weights(), four));
    CHECK(message_of([&] { loaded(weights(), four * four); }) == "no error");
  }
  const Array three = lax::slice_in_dim(four, 0, 3);
  const auto loaded = program.entry<Array(Weights, Array)>();
  CHECK(message_of([&] { loaded(weights(), three); }).find("where b, a multiple of 2, is needed") !=
        std::string::npos);
  const Entry bounded = program["predict"].at_sizes({.bound = {{"b", 4}}});
  std::vector<Aval> avals;
  for (const Aval& aval : program["predict"].inputs()) avals.push_back(aval);
  avals.back().shape[0] = 2;
  CHECK(bounded.explain(avals).starts_with("sizes: b = 2; masked, padded to b = 4: "));
}

TEST_CASE("captured arrays are constants, and entries share them") {
  const File file("b.plait");
  const Weights p = weights();
  auto f = [p](const Array& x) { return predict(p, x); };
  auto g = [p](const Array& x) { return numpy::sum(predict(p, x) * p.b); };
  save(file.path, {{"f", traced(f, inputs())}, {"g", traced(g, inputs())}},
       {.meta = {{"author", "someone"}}, .licence = "Apache-2.0"});
  const Program program = load(file.path);
  CHECK(program.meta().at("author") == "someone");
  CHECK(program.licence() == "Apache-2.0");
  check_equal(program.entry<Array(Array)>("f")(inputs()), f(inputs()));
  check_equal(program.entry<Array(Array)>("g")(inputs()), g(inputs()));
  CHECK(program["f"].constants()[0].buffer().data() == program["g"].constants()[0].buffer().data());
}

TEST_CASE("constants may be left out, given and replaced") {
  const File file("c.plait");
  const Array scale = lax::convert_element_type(numpy::arange(4), DType::float64);
  auto f = [scale](const Array& x) { return x * scale; };
  save(file.path, {{"f", traced(f, inputs())}}, {.constants = false, .test_vectors = false});
  CHECK(message_of([&] { load(file.path); }).find("without the constant c0, a f64[4] of entry f") !=
        std::string::npos);
  const Program program = load(file.path, {.constants = {{"c0", scale}}});
  check_equal(program.entry<Array(Array)>()(inputs()), f(inputs()));
  const Entry doubled = program["f"].with_constants({{"c0", scale * 2.0}});
  check_equal(doubled(Arrays{inputs()})[0], f(inputs()) * 2.0);
  CHECK(message_of([&] {
          program["f"].with_constants({{"c1", scale}});
        }).find("its constants are c0") != std::string::npos);
  CHECK(message_of([&] {
          program["f"].with_constants({{"c0", inputs()}});
        }).find("is f64[4], and f64[2,4] was given") != std::string::npos);
}

TEST_CASE("a program of named sizes takes any") {
  const File file("d.plait");
  const Traced trace = trace_with_specs(
      [](std::span<const Array> x) { return Arrays{numpy::sum(x[0] * 2.0)}; },
      std::vector<Spec>{Spec("f64[n 4]")}, std::vector<std::optional<Aval>>{std::nullopt});
  save(file.path,
       {{"f", {trace.jaxpr, {}, {}, TreeDef::tuple({TreeDef()}), TreeDef(), {"x"}, {}}}});
  const auto f = load(file.path).entry<Array(Array)>();
  CHECK(number(f(inputs()), 0) == doctest::Approx(2 * 28 * 0.3));
  CHECK(number(f(numpy::ones({5, 4}, DType::float64)), 0) == 40);
  CHECK(message_of([&] {
          f(numpy::ones({5, 3}, DType::float64));
        }).find("argument x is f64[5,3], and the program takes f64[n,4]") != std::string::npos);
}

TEST_CASE("arguments that do not fit are errors that name them") {
  const File file("e.plait");
  save(file.path, {{"predict", traced(predict, weights(), inputs())}});
  const Program program = load(file.path);
  const auto loaded = program.entry<Array(Weights, Array)>();
  CHECK(message_of([&] {
          loaded(weights(), lax::convert_element_type(inputs(), DType::float32));
        }).find("argument 1 is f32[2,4], and the program takes f64[2,4]") != std::string::npos);
  CHECK(message_of([&] { program.entry<Array(Array)>()(inputs()); }).find("was given") !=
        std::string::npos);
  CHECK(message_of([&] { program["train"]; }).find("its entries are predict") != std::string::npos);
}

TEST_CASE("plain numbers take the dtype that the program has") {
  const File file("w.plait");
  const Array three = lax::full({}, 3.0, DType::float32);
  auto twice = [](const Array& x) -> Array { return x * 2.0; };
  save(file.path, {{"twice", traced(twice, three)}});
  const auto loaded = load(file.path).entry<Array(Array)>();
  CHECK(loaded(Array(1.5)).aval() == three.aval());
  CHECK(loaded(Array(1.5)).item<float>() == 3);
  CHECK(message_of([&] { loaded(lax::full({}, 3.0, DType::float64)); }).find("takes f32[]") !=
        std::string::npos);
}

TEST_CASE("what is loaded is saved again, to the same bytes") {
  const File file("j.plait"), again("k.plait");
  const Weights p = weights();
  save(file.path, {{"f", traced([p](const Array& x) { return predict(p, x); }, inputs())},
                   {"predict", traced(predict, weights(), inputs())}});
  const Program program = load(file.path);
  std::map<std::string, TracedFunction> functions;
  for (const Entry& entry : program.entries()) functions.emplace(entry.name(), entry.function());
  save(again.path, functions);
  CHECK(bytes_of(file.path) == bytes_of(again.path));
}

TEST_CASE("a loaded program names the user's lines") {
  const File file("l.plait");
  save(file.path, {{"predict", traced(predict, weights(), inputs())}});
  const Program program = load(file.path);
  const Source source = program.only().jaxpr()->equations[0].source;
  REQUIRE(source);
  CHECK(source->file == "program_test.cpp");
  CHECK(source->line == 22);
  CHECK(message_of([&] { program["predict"](Arrays{}); }).find("program_test.cpp") !=
        std::string::npos);
}

TEST_CASE("the same program gives the same bytes, and an old file stays when saving fails") {
  const File file("f.plait"), again("g.plait");
  for (const File* each : {&file, &again})
    save(each->path, {{"predict", traced(predict, weights(), inputs())}});
  const std::string bytes = bytes_of(file.path);
  CHECK(bytes == bytes_of(again.path));
  const auto refused = [&] {
    save(file.path, {{"../escape", traced(predict, weights(), inputs())}});
  };
  CHECK(message_of(refused).find("is no name of a member") != std::string::npos);
  CHECK(bytes == bytes_of(file.path));
  CHECK(message_of([&] {
          save("/nowhere/at/all.plait", {{"f", traced(predict, weights(), inputs())}});
        }).find("cannot write") != std::string::npos);
}
