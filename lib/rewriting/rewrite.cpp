// Passes, pipelines, and rewriting by rules. See rewrite.h.
//
// A round visits the equations in order. Replacements are appended and visited in the same round.
// Rounds repeat until one finds nothing, because a match can enable another one before it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/rewrite.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/composites.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/environment.h"
#include "rewriting/by_primitive.h"

namespace plait {

// --- Passes --------------------------------------------------------------------------------------

Pass::Pass(std::string name, Run run) : state_(std::make_shared<State>()) {
  state_->name = std::move(name);
  state_->run = std::move(run);
}

Jaxpr Pass::operator()(const Jaxpr& jaxpr) const {
  using Clock = std::chrono::steady_clock;
  PassStatistics statistics;
  statistics.name = name();
  statistics.equations_before = num_equations(jaxpr);
  const Clock::time_point start = Clock::now();
  Jaxpr result = state_->run(jaxpr, statistics);
  auto fail = [&](const std::string& what, const char* fix) {
    throw ValueError("the pass `" + name() + "` " + what, fix);
  };
  if (!result) fail("returned no program", "return the program that it was given, or another one");
  if (!(result == jaxpr)) {
    const std::span<const Aval> before = jaxpr->input_avals(), after = result->input_avals();
    if (!std::equal(before.begin(), before.end(), after.begin(), after.end()))
      fail("made a program with other inputs",
           "keep the inputs, their order and their types; leave out none that is not used");
    if (jaxpr->outputs.size() != result->outputs.size())
      fail("made a program with " + std::to_string(result->outputs.size()) +
               " outputs of one with " + std::to_string(jaxpr->outputs.size()),
           "return an output for each");
    try {
      check(result);
    } catch (const InternalError& error) {
      fail("made an ill-formed program: " + error.problem(), "make programs with a builder");
    }
  }
  statistics.equations_after = num_equations(result);
  statistics.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::lock_guard lock(state_->mutex);
  state_->last = std::move(statistics);
  return result;
}

PassStatistics Pass::statistics() const {
  std::lock_guard lock(state_->mutex);
  return state_->last;
}

Pass apply_pass(std::function<Jaxpr(const Jaxpr&)> pass, std::string name) {
  return Pass(std::move(name), [pass = std::move(pass)](const Jaxpr& jaxpr, PassStatistics&) {
    return pass(jaxpr);
  });
}

Pass pipeline(std::vector<Pass> passes, std::string name) {
  return Pass(std::move(name),
              [passes = std::move(passes)](const Jaxpr& jaxpr, PassStatistics& statistics) {
                Jaxpr result = jaxpr;
                for (const Pass& pass : passes) {
                  result = pass(result);
                  statistics.parts.push_back(pass.statistics());
                  statistics.matches += statistics.parts.back().matches;
                }
                return result;
              });
}

Arrays flat::apply_pass(const Function& function, std::span<const Array> inputs, const Pass& pass) {
  const Traced traced = make_jaxpr(function, avals_of(inputs), pass.name());
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  return eval_jaxpr(pass(traced.jaxpr), operands);
}

namespace {

struct Row {
  std::string name, before, after, matches, time;
};
void add_rows(const PassStatistics& statistics, int depth, std::vector<Row>& rows) {
  char time[32];
  std::snprintf(time, sizeof time, "%.2f ms", statistics.seconds * 1e3);
  const bool is_rule = statistics.equations_before == 0 && depth > 0;
  rows.push_back({std::string(2 * std::size_t(depth), ' ') + statistics.name,
                  is_rule ? "" : std::to_string(statistics.equations_before),
                  is_rule ? "" : std::to_string(statistics.equations_after),
                  std::to_string(statistics.matches), is_rule ? "" : time});
  for (const PassStatistics& part : statistics.parts) add_rows(part, depth + 1, rows);
}

}  // namespace

std::string PassStatistics::to_string() const {
  std::vector<Row> rows{{"pass", "equations", "after", "matches", "time"}};
  add_rows(*this, 0, rows);
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  auto right = [](const std::string& text, std::size_t size) {
    return std::string(size > text.size() ? size - text.size() : 0, ' ') + text;
  };
  std::string text;
  for (const Row& row : rows) {
    text += row.name + std::string(width - row.name.size(), ' ') + right(row.before, 11) +
            right(row.after, 9) + right(row.matches, 9) + right(row.time, 13);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text.pop_back();
  return text;
}

// --- Rewriting -----------------------------------------------------------------------------------

namespace {

// The types at which patterns are traced for a program's values: one for each rank and dtype, whose
// sizes stand for any; or the values' own.
enum class TypeSizes { any, own };

std::vector<Aval> abstracted(const Aval& aval, TypeSizes sizes) {
  if (aval.stack) return {};
  if (sizes == TypeSizes::own) return {aval};
  std::vector<Aval> types{aval};
  if (!aval.shape.is_constant()) types.push_back(aval);  // with a named size, and with a number
  for (std::size_t i = 0; i < types.size(); ++i)
    for (Dim& dim : types[i].shape) dim = i == 0 ? Dim(48) : Dim::size("s");
  return types;
}

// The frequent ones first.
std::vector<Aval> types_of(const Jaxpr& jaxpr, TypeSizes sizes) {
  struct Hash {
    std::size_t operator()(const Aval& aval) const { return aval.hash(); }
  };
  std::unordered_map<Aval, std::size_t, Hash> counts;
  auto note = [&](const Aval& aval) {
    for (const Aval& type : abstracted(aval, sizes)) ++counts[type];
  };
  auto note_all = [&](const Jaxpr& program) {
    for (const Aval& aval : program->avals) note(aval);
  };
  note_all(jaxpr);
  walk(jaxpr, [&](const Jaxpr& owner, const Equation& equation) {
    for (const Atom& atom : equation.inputs)
      if (!atom.is_var()) note(owner->aval(atom));
    for_each_body(equation.params, note_all);
  });
  std::vector<std::pair<Aval, std::size_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    if (a.second != b.second) return a.second > b.second;
    return a.first.to_string() < b.first.to_string();
  });
  constexpr std::size_t most = 32;
  std::vector<Aval> types;
  for (const auto& [type, count] : sorted)
    if (types.size() < most) types.push_back(type);
  return types;
}

class Rewriter {
 public:
  Rewriter(const std::vector<Rule>& rules, const RewriteOptions& options, const Jaxpr& whole)
      : rules_(rules), options_(options), matches_(rules.size(), 0) {
    const std::vector<Aval> types = types_of(whole, TypeSizes::any);
    std::vector<Aval> own;
    for (std::size_t r = 0; r < rules.size(); ++r) {
      std::vector<Pattern> shapes = rules[r].shapes(types);
      if (shapes.empty()) {  // the function itself fixes sizes
        if (own.empty()) own = types_of(whole, TypeSizes::own);
        shapes = rules[r].shapes(own);
      }
      for (Pattern& shape : shapes) {
        const Primitive& root = *shape.jaxpr->equations[shape.root].primitive;
        by_root_.add(root, {r, std::move(shape)});
      }
    }
  }

  Jaxpr rewrite(const Jaxpr& jaxpr) {
    if (const auto found = done_.find(&*jaxpr); found != done_.end()) return found->second.after;
    Jaxpr result = jaxpr;
    // Bounds the number of matches, to catch rules that let a program grow without end.
    limit_ = 1000 + 20 * num_equations(jaxpr);
    for (bool again = true; again;) again = run_round(result) && options_.repeat;
    done_.emplace(&*jaxpr, Done{jaxpr, result});
    return result;
  }

  const std::vector<std::size_t>& matches() const { return matches_; }

 private:
  struct Candidate {
    std::size_t rule;
    Pattern shape;
  };
  struct Done {
    Jaxpr before, after;
  };

  // Runs one round over a program. Returns whether anything changed.
  bool run_round(Jaxpr& jaxpr) {
    ProgramBuilder program(jaxpr);
    bool changed = false;
    if (options_.nested == Nested::yes)
      for (std::size_t e = 0; e < jaxpr->equations.size(); ++e)
        changed |= rewrite_bodies(program, int(e), jaxpr->equations[e]);
    const std::size_t num_old = program.num_equations();
    for (std::size_t e = 0; e < program.num_equations(); ++e) {
      if (!options_.repeat && e == num_old) break;
      if (!program.is_erased(int(e))) changed |= rewrite_at(program, int(e));
    }
    if (changed) jaxpr = program.close_unchecked();
    return changed;
  }

  bool rewrite_bodies(ProgramBuilder& program, int index, const Equation& equation) {
    if (!holds_bodies(equation.params)) return false;
    bool changed = false;
    Equation rewritten = map_bodies(equation, [&](const Jaxpr& body) {
      const std::size_t limit = limit_;
      Jaxpr now = rewrite(body);
      limit_ = limit;
      changed |= !(now == body);
      return now;
    });
    if (!changed) return false;
    program.set(index, *rewritten.primitive, std::move(rewritten.params));
    return true;
  }

  bool rewrite_at(ProgramBuilder& program, int e) {
    for (const Candidate& candidate : by_root_.of(*program.equation(e).primitive)) {
      const Rule& rule = rules_[candidate.rule];
      const std::optional<FoundMatch> match = find_match(rule, candidate.shape, program, e);
      if (!match) continue;
      count(candidate.rule);
      if (options_.verify) verify(rule, *match);
      apply(program, rule, *match, e);
      return true;
    }
    return false;
  }

  void verify(const Rule& rule, const FoundMatch& match) {
    std::string literals;
    for (const Atom& atom : match.arguments)
      if (!atom.is_var()) literals += atom.literal().to_string() + " ";
    if (verified_.emplace(match.instance.get(), literals).second)
      verify_rule(rule, *match.instance, match.arguments, options_);
  }

  void count(std::size_t rule) {
    ++matches_[rule];
    if (limit_-- > 0) return;
    throw ValueError("rewrite: `" + rules_[rule].name() + "` matches without end: it was applied " +
                         std::to_string(matches_[rule]) + " times",
                     "let the replacement not match the pattern again, say where, or give "
                     "repeat=False");
  }

  static void apply(ProgramBuilder& program, const Rule& rule, const FoundMatch& match, int root) {
    const Jaxpr& pattern = match.instance->pattern.jaxpr;
    const Jaxpr replacement = rule.replacement(match.instance);
    const Source source = program.equation(root).source.under("rewrite");
    Environment environment(replacement, match.arguments);
    for (const Equation& equation : replacement->equations) {
      std::vector<Atom> inputs = environment.read(equation.inputs);
      std::vector<Aval> avals;
      for (const Atom& atom : equation.inputs) avals.push_back(replacement->aval(atom));
      if (const auto known = simplify(*equation.primitive, inputs, avals, equation.params))
        environment.set(equation.outputs, *known);
      else
        environment.set(equation.outputs,
                        program.add_known(*equation.primitive, std::move(inputs), equation.params,
                                          source, output_avals(*replacement, equation)));
    }
    for (const Constraint& constraint : replacement->constraints)
      program.add_constraint(constraint);
    // All results are looked up before the first is replaced.
    std::vector<Var> old;
    for (const Atom& atom : pattern->outputs) old.push_back(result_of(program, match, atom.var()));
    for (std::size_t i = 0; i < old.size(); ++i)
      if (const Atom now = environment.read(replacement->outputs[i]); !(now == Atom(old[i])))
        program.replace_all(old[i], now);
    for (int e : match.equations)
      if (!program.is_erased(e)) program.erase_unused(e);
  }

  static Var result_of(const ProgramBuilder& program, const FoundMatch& match, Var var) {
    const Jaxpr& pattern = match.instance->pattern.jaxpr;
    for (std::size_t e = 0; e < pattern->equations.size(); ++e) {
      const std::vector<Var>& outputs = pattern->equations[e].outputs;
      const auto place = std::find(outputs.begin(), outputs.end(), var);
      if (place != outputs.end())
        return program.equation(match.equations[e]).outputs[place - outputs.begin()];
    }
    throw InternalError("rewrite: a result of a pattern is none of its equations'");
  }

  const std::vector<Rule>& rules_;
  const RewriteOptions& options_;
  ByPrimitive<Candidate> by_root_;
  std::unordered_map<const JaxprData*, Done> done_;
  std::set<std::pair<const RuleInstance*, std::string>> verified_;
  std::vector<std::size_t> matches_;
  std::size_t limit_ = 0;
};

}  // namespace

Pass rewrite(std::vector<Rule> rules, const RewriteOptions& options) {
  std::string name;
  for (const Rule& rule : rules) name += (name.empty() ? "" : ", ") + rule.name();
  if (rules.size() > 3) name = std::to_string(rules.size()) + " rules";
  return Pass("rewrite(" + name + ")",
              [rules = std::move(rules), options](const Jaxpr& jaxpr, PassStatistics& statistics) {
                Rewriter rewriter(rules, options, jaxpr);
                const Jaxpr result = rewriter.rewrite(jaxpr);
                for (std::size_t r = 0; r < rules.size(); ++r) {
                  PassStatistics part;
                  part.name = rules[r].name();
                  part.matches = rewriter.matches()[r];
                  statistics.matches += part.matches;
                  statistics.parts.push_back(std::move(part));
                }
                return result;
              });
}

}  // namespace plait
