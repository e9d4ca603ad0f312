// Passes and rewriting by rules over C++ functions, and builders of programs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/plait.h>
#include <plait/rewriting/rewrite.h>
#include <plait/rules/interpret.h>

#include <cmath>

using namespace plait;

namespace {

Array log_of_exp(const Array& x) { return lax::log(lax::exp(x)); }
Array same(const Array& x) { return x; }
Array with_log(const Array& x) { return lax::sin(log_of_exp(x)) + x; }
Array numbers() { return random::normal(random::key(0), {4}, DType::float64); }

std::vector<std::string> primitives(const Jaxpr& jaxpr) {
  std::vector<std::string> names;
  walk(jaxpr, [&](const Jaxpr&, const Equation& equation) {
    names.emplace_back(equation.primitive->name());
  });
  return names;
}
using Names = std::vector<std::string>;

template <class F>
Jaxpr program_of(const F& f) {
  return make_jaxpr(f, numbers()).jaxpr;
}

double distance(const Array& a, const Array& b) {
  return numpy::max(lax::abs(a - b)).item<double>();
}

struct Parts {
  Array sum, product;
};

}  // namespace

TEST_CASE("a rewrite is a transform, and composes with the others on either side") {
  const Pass pass = rewrite(log_of_exp, same, {.name = "log_exp"});
  CHECK(primitives(program_of(pass(with_log))) == Names{"sin", "add"});
  auto total = [](const Array& x) { return numpy::sum(with_log(x)); };
  const Array x = numbers(), expected = lax::cos(x) + 1.0;
  CHECK(distance(grad(pass(total))(x), expected) < 1e-12);
  CHECK(distance(pass(grad(total))(x), expected) < 1e-12);
  CHECK(distance(jit(grad(pass(jit(total))))(x), expected) < 1e-12);
  CHECK(distance(vmap(pass(with_log))(x), lax::sin(x) + x) < 1e-12);
  CHECK(pass.statistics().matches == 1);
}

TEST_CASE("patterns with several results and records are replaced together") {
  const Pass pass = rewrite([](const Array& x, const Array& y) { return Parts{x + y, x * y}; },
                            [](const Array& x, const Array& y) { return Parts{x - y, y}; });
  auto f = [](const Array& x) { return (x + lax::sin(x)) / (lax::sin(x) * x); };
  // sin(x) is written twice: two values
  CHECK(pass(program_of(f)) == program_of(f));
  auto g = [](const Array& x) {
    const Array y = lax::sin(x);
    return (x + y) / (y * x);
  };
  const Array x = numbers(), y = lax::sin(x);
  CHECK(distance(pass(g)(x), (x - y) / y) < 1e-12);
}

TEST_CASE("where is asked with types and parameters, and verify compares on random numbers") {
  RuleOptions small;
  small.where = [](const Match& match) { return match.avals[0].shape[0] == Dim(3); };
  CHECK(primitives(rewrite(log_of_exp, same, small)(program_of(log_of_exp))).size() == 2);
  CHECK_THROWS_WITH_AS(
      rewrite([](const Array& x) { return lax::abs(x); }, same, {.name = "abs"},
              {.verify = true})(program_of([](const Array& x) { return lax::abs(x) * 2.0; })),
      doctest::Contains("`abs` changes results"), ValueError);
  CHECK_THROWS_WITH_AS(
      rewrite([](const Array& x) { return lax::sin(x); },
              [](const Array& x) { return lax::sin(lax::sin(x)); })(program_of(with_log)),
      doctest::Contains("without end"), ValueError);
}

TEST_CASE("pipelines count what each pass did") {
  const Pass tidy = apply_pass(
      [](const Jaxpr& jaxpr) {
        return rebuild(jaxpr,
                       [](ProgramBuilder& builder, const Equation& equation,
                          std::span<const Atom> inputs) -> std::optional<std::vector<Atom>> {
                         if (!(*equation.primitive == sin_p)) return std::nullopt;
                         return builder.add(cos_p, {inputs.begin(), inputs.end()}, {});
                       });
      },
      "sin_to_cos");
  const Pass all = pipeline({rewrite(log_of_exp, same), tidy});
  CHECK(primitives(all(program_of(with_log))) == Names{"cos", "add"});
  const PassStatistics statistics = all.statistics();
  CHECK(statistics.equations_before == 4);
  CHECK(statistics.equations_after == 2);
  REQUIRE(statistics.parts.size() == 2);
  CHECK(statistics.parts[0].matches == 1);
  CHECK(statistics.to_string().find("sin_to_cos") != std::string::npos);
  CHECK_THROWS_WITH_AS(apply_pass([](const Jaxpr&) { return Jaxpr(); })(program_of(with_log)),
                       doctest::Contains("no program"), ValueError);
}

TEST_CASE("a builder replaces, splices and refuses") {
  const Jaxpr jaxpr = program_of(with_log);
  ProgramBuilder builder(jaxpr);
  const Uses uses(jaxpr);
  const Var x{0};
  CHECK(uses.users_of(x).size() == 2);
  CHECK_FALSE(uses.definition_of(x));
  CHECK(uses.depends_on(jaxpr->outputs[0], x));
  CHECK_THROWS_AS(uses.users_of(Var{99}), ValueError);
  for (int e : builder.equations()) {
    if (!(*builder.equation(e).primitive == exp_p)) continue;
    const Var old = builder.equation(e).outputs[0];
    const Atom twice =
        builder.add(mul_p, {old, *Array::literal(2, DType::float64).as_literal()}, {})[0];
    builder.replace(old, twice);
  }
  const Array value = numbers();
  const Array expected = lax::sin(value + std::log(2.0)) + value;
  CHECK(distance(eval_jaxpr(builder.close(), Arrays{value})[0], expected) < 1e-12);

  ProgramBuilder other;
  const Var input = other.add_input({{4}, DType::float64, false});
  const std::vector<Atom> once = other.splice(jaxpr, {input});
  other.set_outputs(other.splice(jaxpr, once));
  const Array applied = with_log(with_log(value));
  CHECK(distance(eval_jaxpr(other.close(), Arrays{value})[0], applied) < 1e-12);
  CHECK_THROWS_AS(other.add(sin_p, {Var{1000}}, {}), ValueError);
  CHECK_THROWS_AS(other.add(reshape_p, {input}, {}), ValueError);
  CHECK_THROWS_AS(other.add(add_p, {input}, {}), ValueError);
  CHECK_THROWS_AS(other.replace(input, Literal{DType::float64}), ShapeError);
}

TEST_CASE("a builder takes what every primitive says is typical of it, and refuses other kinds") {
  for (const PrimitiveInfo* info : all_primitives()) {
    const Samples::Rule* samples = Samples::table().find(*info->primitive);
    if (!samples) continue;
    CAPTURE(info->primitive->name());
    for (const Sample& sample : (*samples)()) {
      ProgramBuilder builder;
      std::vector<Atom> inputs;
      std::vector<Aval> avals;
      for (const Sample::Input& input : sample.inputs) {
        inputs.push_back(builder.add_input(input.aval));
        avals.push_back(input.aval);
      }
      const std::vector<Atom> outputs = builder.add(*info->primitive, inputs, sample.params);
      const std::vector<Aval> expected = infer(*info->primitive, avals, sample.params);
      REQUIRE(outputs.size() == expected.size());
      for (std::size_t i = 0; i < outputs.size(); ++i)
        CHECK(builder.aval(outputs[i]) == expected[i]);
      for (const auto& [name, value] : sample.params.entries())
        if (std::holds_alternative<bool>(value))
          CHECK_THROWS_AS(
              builder.add(*info->primitive, inputs, sample.params.with(name, std::string("odd"))),
              UserError);
    }
  }
}

TEST_CASE("passes run on entries of programs, and within other transforms of C++ functions") {
  const Entry entry("f", traced(with_log, numbers()));
  const Entry shorter = entry.with_jaxpr(rewrite(log_of_exp, same)(entry.jaxpr()));
  CHECK(primitives(shorter.jaxpr()) == Names{"sin", "add"});
  CHECK(distance(shorter(Arrays{numbers()})[0], with_log(numbers())) < 1e-12);
  CHECK_THROWS_AS(entry.with_jaxpr(Entry("g", traced(with_log, Array(1.0))).jaxpr()), ShapeError);
  const Pass wrong = verified(apply_pass(
      [](const Jaxpr& jaxpr) {
        return rebuild(jaxpr, [](auto& builder, auto& equation, auto inputs) {
          return *equation.primitive == sin_p ? std::optional(builder.add(cos_p, {inputs[0]}, {}))
                                              : std::nullopt;
        });
      },
      "sin_to_cos"));
  CHECK_THROWS_WITH_AS(checkpoint(wrong(with_log))(numbers()),
                       doctest::Contains("`sin_to_cos` changes results"), ValueError);
}
