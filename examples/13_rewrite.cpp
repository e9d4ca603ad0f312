// Lesson 13: rewriting programs: rules written as functions, passes of your own, pipelines.
//
// Prints the same as its twin, 13_rewrite.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>
#include <plait/rewrite.h>

#include <cstdio>

using plait::Array;
using plait::Atom;
using plait::Equation;
using plait::Jaxpr;
namespace jnp = plait::numpy;
namespace lax = plait::lax;

// The primitives of a function's program, in order.
std::string names(const Jaxpr& jaxpr) {
  std::string text;
  plait::walk(jaxpr, [&](const Jaxpr&, const Equation& equation) {
    text += (text.empty() ? "" : " ") + std::string(equation.primitive->name());
  });
  return text;
}

Array first(const Array& x) { return jnp::reshape(lax::slice(x, {0}, {1}), {}); }

// A rule is a pattern and a replacement: two functions. Arguments match any value of any shape and
// dtype; the rest must be the same, but for the order of a sum's or product's operands.
Array naive(const Array& x) { return jnp::log(jnp::sum(jnp::exp(x), -1)); }

Array stable(const Array& x) {
  const Array highest = jnp::max(x, -1);
  return jnp::log(jnp::sum(jnp::exp(x - jnp::expand_dims(highest, {-1})), -1)) + highest;
}

Array loss(const Array& x) { return naive(x * 2) - first(x); }

Array wordy(const Array& x, const Array& y) {
  return jnp::log(jnp::exp(y)) * x + jnp::log(jnp::exp(x * jnp::exp(y)));
}

double number(const Array& x) { return x.item<double>(); }

std::string row(const Array& x) {
  std::string text;
  for (std::int64_t i = 0; i < x.shape(0).constant(); ++i) {
    char item[32];
    std::snprintf(item, sizeof item, " %.1f", number(jnp::take(x, int(i))));
    text += item;
  }
  return text;
}

// A pass is any function from programs to programs. rebuild asks it about each equation: here,
// exponentials get arguments of 80 at most.
Jaxpr bound_exponents(const Jaxpr& jaxpr) {
  return plait::rebuild(jaxpr,
                        [](plait::ProgramBuilder& builder, const Equation& equation,
                           std::span<const Atom> inputs) -> std::optional<std::vector<Atom>> {
                          if (!(*equation.primitive == plait::exp_p)) return {};  // as it was
                          const plait::Aval aval = builder.aval(inputs[0]);
                          const Array most = Array::literal(80, aval.dtype);
                          const std::vector<Atom> bounded =
                              builder.add(plait::min_p, {inputs[0], *most.as_literal()}, {});
                          return builder.add(plait::exp_p, bounded, equation.params);
                        });
}

int main() {
  const plait::Pass careful =
      plait::rewrite(naive, stable, {.name = "logsumexp"}, {.repeat = false});
  const Array x = jnp::array({1.0, 500.0, 2.0});
  std::printf("%.1f is %.1f\n", number(loss(x)), number(careful(loss)(x)));

  // What rewrite gives is a transform: it composes with the others, on either side.
  std::printf("slope%s\n", row(plait::grad(careful(loss))(x)).c_str());
  const Array batch = jnp::stack(std::vector<Array>{x, x / 2});
  std::printf("batch%s\n", row(plait::jit(plait::vmap(careful(loss)))(batch)).c_str());

  // Rules are applied until none matches. where is asked about each match; a value that something
  // else needs is left alone; numbers of the program match arguments too.
  const plait::Pass tidy = plait::rewrite(
      {plait::make_rule([](const Array& x) { return jnp::log(jnp::exp(x)); },
                        [](const Array& x) { return x; }, {.name = "log_exp"}),
       plait::make_rule(
           [](const Array& a, const Array& b, const Array& c) { return a * b + a * c; },
           [](const Array& a, const Array& b, const Array& c) { return a * (b + c); },
           {.name = "factor"}),
       plait::make_rule([](const Array& x, const Array& c) { return jnp::power(jnp::exp(x), c); },
                        [](const Array& x, const Array& c) { return jnp::exp(x * c); },
                        {.name = "power_of_exp", .where = [](const plait::Match& match) {
                           const Atom& c = match.arguments[1];
                           return !c.is_var() && c.literal().as_double() > 2.5;
                         }})});
  std::printf("%s\n", names(plait::make_jaxpr(wordy, x, x).jaxpr).c_str());
  std::printf("%s\n", names(plait::make_jaxpr(tidy(wordy), x, x).jaxpr).c_str());
  auto powers = [](const Array& x) {
    const Array left = jnp::power(jnp::exp(x), 2.6);
    return left + jnp::power(jnp::exp(x), 2.4);
  };
  std::printf("%s\n", names(plait::make_jaxpr(tidy(powers), x).jaxpr).c_str());

  // Several results are replaced together. Bodies of jit, loops and branches are entered.
  const plait::Pass both = plait::rewrite(
      [](const Array& x) { return std::pair(jnp::sin(x), jnp::cos(x)); },
      [](const Array& x) { return std::pair(jnp::tanh(x), 1 - lax::integer_pow(jnp::tanh(x), 2)); },
      {.name = "sin_cos"});
  const auto inner = plait::jit([](const Array& y) { return jnp::sin(y) * jnp::cos(y) + y; });
  auto outer = [&](const Array& x) { return inner(x * 3); };
  std::printf("%s\n", names(plait::make_jaxpr(both(outer), x).jaxpr).c_str());

  const plait::Pass bound = plait::apply_pass(bound_exponents, "bound_exponents");
  std::printf("%.1f\n", number(bound(loss)(x)));

  // A builder begins with a program and changes it here and there; it refuses what would be
  // ill-formed.
  plait::ProgramBuilder builder(plait::make_jaxpr(wordy, x, x).jaxpr);
  for (int e : builder.equations()) {
    if (!(*builder.equation(e).primitive == plait::exp_p)) continue;
    const auto users = builder.users_of(builder.equation(e).outputs[0]);
    if (users.size() == 1 && *builder.equation(users[0]).primitive == plait::log_p)
      builder.replace(builder.equation(users[0]).outputs[0], builder.equation(e).inputs[0]);
  }
  std::printf("%s\n", names(builder.close()).c_str());
  try {
    const plait::Var input = builder.inputs()[0];
    builder.add(plait::add_p, {input, input, *Array::literal(1, x.dtype()).as_literal()}, {});
  } catch (const plait::UserError& error) {
    std::printf("refused: %s\n", error.problem().c_str());
  }

  // Passes in a row are one, which says what each did.
  const plait::Pass passes = plait::pipeline({tidy, bound});
  passes(wordy)(x, x);
  for (const plait::PassStatistics& part : passes.statistics().parts)
    std::printf("%s %zu %zu %zu\n", part.name.c_str(), part.equations_before, part.equations_after,
                part.matches);

  // With verify, both functions of a rule run on random numbers, and a rule that does not hold is
  // named.
  auto root = [](const Array& x) { return jnp::sqrt(x * x); };
  const plait::Pass wrong =
      plait::rewrite(root, [](const Array& x) { return x; }, {.name = "root"}, {.verify = true});
  try {
    wrong(root)(x);
  } catch (const plait::ValueError& error) {
    std::printf("%s\n", error.problem().c_str());
  }
}
