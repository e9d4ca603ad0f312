// Passes: functions from programs to programs, used as transforms of functions and in pipelines;
// and rewrite, a pass whose pattern and replacement are ordinary functions.
//
//   auto fuse = plait::rewrite([](const Array& x) { return lax::log(lax::exp(x)); },
//                              [](const Array& x) { return x; });
//   auto g = plait::grad(fuse(f));             // under, around and between other transforms
//   Jaxpr smaller = fuse(jaxpr);
//   auto all = plait::pipeline({fuse, plait::apply_pass(mine, "mine")});
//   std::cout << all.statistics().to_string();
//
// For what a pattern matches, see patterns.h. Recipes: examples/13_rewrite.cpp, fold_batchnorm.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rewriting/edit.h>
#include <plait/rewriting/patterns.h>
#include <plait/transforms/specs.h>

namespace plait {

// Statistics of one run of a pass.
struct PassStatistics {
  std::string name;
  std::size_t equations_before = 0, equations_after = 0;  // including those of bodies
  std::size_t matches = 0;                                // of patterns
  double seconds = 0;
  std::vector<PassStatistics> parts = {};  // the rules of a rewrite, the passes of a pipeline
  std::string to_string() const;           // a table
};

// A function from programs to programs. Applied to a function it is a transform: the function is
// traced, and its rewritten program runs instead, under any other transforms.
class Pass {
 public:
  using Run = std::function<Jaxpr(const Jaxpr& jaxpr, PassStatistics& statistics)>;
  Pass(std::string name, Run run);
  const std::string& name() const { return state_->name; }
  // The result is checked. ValueError names the pass when it is ill-formed, or when its inputs or
  // its number of outputs differ.
  Jaxpr operator()(const Jaxpr& jaxpr) const;
  template <class F>
    requires(!std::is_convertible_v<F, Jaxpr>)
  auto operator()(F f) const;
  // Of the last run, on whichever thread.
  PassStatistics statistics() const;

 private:
  struct State {
    std::string name;
    Run run;
    std::mutex mutex;
    PassStatistics last;
  };
  std::shared_ptr<State> state_;
};

// Makes a pass from a function from programs to programs.
Pass apply_pass(std::function<Jaxpr(const Jaxpr&)> pass, std::string name = "pass");
// The same pass, verified: it runs the programs before and after it on random numbers between low
// and high, in float64 where their equations allow it. ValueError names the pass and shows both
// values where results differ by more than verify_rule allows; programs with effects are a
// ValueError too.
Pass verified(const Pass& pass, double low = -2, double high = 2);
// Runs these passes one after the other.
Pass pipeline(std::vector<Pass> passes, std::string name = "pipeline");

struct RewriteOptions {
  Nested nested = Nested::yes;  // enter the bodies of calls and control flow
  bool repeat = true;           // until nothing matches; else one pass over the equations
  // Runs pattern and replacement of every rule that matched, at the types of its matches, on random
  // numbers, in float64 where both can be traced so. ValueError names the rule and shows both
  // values.
  bool verify = false;
  double low = -2, high = 2;  // the range of the random numbers
};

// Rules in order of preference: at each equation the first that matches is applied. Rules are
// indexed by the primitive of the pattern's root. ValueError for a rule that keeps matching its own
// result.
Pass rewrite(std::vector<Rule> rules, const RewriteOptions& options = {});

// Throws ValueError, which names the rule and shows both values, where pattern and replacement
// differ on random arguments of these types; arguments that are literals keep their values.
// Tolerances, relative to values above 1: 1e-9 in float64, 1e-4 in float32, 3e-2 in 16 bits;
// integers must be equal.
void verify_rule(const Rule& rule, const RuleInstance& instance, std::span<const Atom> arguments,
                 const RewriteOptions& options);

void verify_program(const std::string& name, const Jaxpr& before, const Jaxpr& after, double low,
                    double high);

namespace flat {
Arrays apply_pass(const Function& function, std::span<const Array> inputs, const Pass& pass);
}  // namespace flat

namespace detail {
// Turns a C++ function of Arrays, which returns a tree of Arrays, into one over flat lists.
template <class F, std::size_t... i>
Function flat_function(F f, std::index_sequence<i...>) {
  return [f = std::move(f)](std::span<const Array> inputs) {
    Arrays outputs;
    flatten(f(inputs[i]...), outputs);
    return outputs;
  };
}
}  // namespace detail

// Makes a rule from two C++ functions of the same Arrays.
template <class Pattern, class Replacement>
Rule make_rule(Pattern pattern, Replacement replacement, RuleOptions options = {}) {
  constexpr std::size_t count = std::tuple_size_v<detail::arguments_of<Pattern>>;
  static_assert(count == std::tuple_size_v<detail::arguments_of<Replacement>>,
                "pattern and replacement take the same arguments");
  const auto numbers = std::make_index_sequence<count>();
  return Rule(detail::flat_function(std::move(pattern), numbers),
              detail::flat_function(std::move(replacement), numbers), int(count),
              std::move(options));
}

template <class Pattern, class Replacement>
  requires(!std::is_convertible_v<Replacement, RewriteOptions>)
Pass rewrite(Pattern pattern, Replacement replacement, RuleOptions rule = {},
             const RewriteOptions& options = {}) {
  return rewrite({make_rule(std::move(pattern), std::move(replacement), std::move(rule))}, options);
}

template <class F>
  requires(!std::is_convertible_v<F, Jaxpr>)
auto Pass::operator()(F f) const {
  using Result = detail::result_of<F>;
  return typename detail::signature_of<F>::template Returning<Result>(
      [f, pass = *this](const auto&... arguments) -> Result {
        TransformScope scope(pass.name(), "");
        const detail::Flat<F> flat(f, arguments...);
        return unflatten<Result>(*flat.result, flat::apply_pass(flat.function, flat.inputs, pass));
      });
}

}  // namespace plait
