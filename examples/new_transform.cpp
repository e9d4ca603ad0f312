// Recipe: a transform from outside: interval arithmetic. A rule kind, an interpreter, rules for
// some primitives; what has none is reached through its decomposition, so calls work unheard of.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/rules.h>

#include <cmath>
#include <cstdio>

using namespace plait;

struct Interval {  // the kind is also the value that flows
  double lo, hi;
  static constexpr auto name = "interval";
  using Rule = std::function<Interval(std::span<const Interval>, const Params&)>;
  static RuleTable<Interval>& table() {
    static auto* table = new RuleTable<Interval>;
    return *table;
  }
};

struct IntervalInterpreter : Decomposing<Interval> {
  using Value = Interval;
  Value lift(const Array& c) { return {c.item<double>(), c.item<double>()}; }
  std::vector<Value> process(const Equation& e, std::span<const Value> in) {
    return {rule_of(e)(in, e.params)};
  }
};

static const auto interval_rules =
    rules<Interval>()
        .on(add_p, [](auto x, auto&) { return Interval{x[0].lo + x[1].lo, x[0].hi + x[1].hi}; })
        .on(neg_p, [](auto x, auto&) { return Interval{-x[0].hi, -x[0].lo}; })
        .on(mul_p,
            [](auto x, auto&) {
              const double p[] = {x[0].lo * x[1].lo, x[0].lo * x[1].hi, x[0].hi * x[1].lo,
                                  x[0].hi * x[1].hi};
              return Interval{*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
            })
        .on(tanh_p, [](auto x, auto&) { return Interval{std::tanh(x[0].lo), std::tanh(x[0].hi)}; });

Array f(const Array& x) { return lax::tanh(x) * x + 1.0; }

int main() {
  const Jaxpr jaxpr =
      make_jaxpr(jit(f), Array(0.0)).jaxpr;  // a call, which interval has no rule for
  const Interval bounds = interpret(IntervalInterpreter{}, jaxpr, {{-1, 2}})[0];
  std::printf("f([-1, 2]) is within [%.4f, %.4f]\n", bounds.lo, bounds.hi);
  try {
    interpret(IntervalInterpreter{},
              make_jaxpr([](const Array& x) -> Array { return lax::exp(x); }, Array(0.0)).jaxpr,
              {{0, 1}});
  } catch (const MissingRuleError& error) {
    std::puts(error.problem().c_str());
  }
}
