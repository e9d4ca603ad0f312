// Rules: their patterns traced at types, and their replacements. See patterns.h; match.cpp finds
// matches.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/patterns.h>

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <set>

namespace plait {

Pattern::Pattern(Jaxpr traced) : jaxpr(std::move(traced)), definition(jaxpr->avals.size(), -1) {
  for (std::size_t e = 0; e < jaxpr->equations.size(); ++e)
    for (Var var : jaxpr->equations[e].outputs) definition[var.id] = int(e);
  if (!jaxpr->outputs.empty() && jaxpr->outputs[0].is_var())
    root = definition[jaxpr->outputs[0].var().id];
}

struct Rule::State {
  Function pattern, replacement;
  int num_arguments;
  RuleOptions options;
  std::vector<const Primitive*> wild;
  // Caches. No lock is held while functions are traced.
  std::mutex mutex;
  std::map<std::string, std::optional<Pattern>> tried;  // by types
  std::map<std::string, std::pair<std::shared_ptr<const RuleInstance>, Jaxpr>> instances;
};

namespace {

std::string text_of(std::span<const Aval> avals) {
  std::string text;
  for (const Aval& aval : avals) text += (text.empty() ? "" : ", ") + aval.to_string();
  return "(" + text + ")";
}

std::string key_of(std::span<const Aval> avals, const WildParams& wild) {
  std::string key = text_of(avals);
  for (const auto& [primitive, params] : wild)
    key += " " + std::string(primitive->name()) + "[" + params.to_string() + "]";
  return key;
}

// Records a function, with given parameters for the equations of some primitives.
class PatternTrace final : public JaxprTrace {
 public:
  PatternTrace(std::string_view name, const WildParams& wild) : JaxprTrace(name), wild_(wild) {}
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override {
    for (const auto& [wild, given] : wild_)
      if (*wild == primitive) return JaxprTrace::bind(primitive, inputs, given);
    return JaxprTrace::bind(primitive, inputs, params);
  }

 private:
  const WildParams& wild_;
};

// Why a traced pattern cannot match; nullopt if it can.
std::optional<std::string> fault_of(const Pattern& given,
                                    const std::vector<const Primitive*>& wild) {
  const Jaxpr& pattern = given.jaxpr;
  const std::vector<int>& definition = given.definition;
  if (pattern->outputs.empty()) return "has no result";
  for (const Atom& atom : pattern->outputs)
    if (!atom.is_var() || definition[atom.var().id] < 0)
      return "has a result that is an argument or a number, which every program has";
  if (pattern->effectful) return "has an effect, which is never dropped";
  std::vector<char> known(pattern->avals.size(), 0), matched(pattern->equations.size(), 0);
  for (const Equation& equation : pattern->equations)
    for (const Atom& atom : equation.inputs)
      if (atom.is_var()) known[atom.var().id] = 1;
  for (int i = 0; i < pattern->num_binders; ++i)
    if (!known[i]) return "does not use argument " + std::to_string(i);
  for (const Primitive* primitive : wild) {
    const auto count =
        std::count_if(pattern->equations.begin(), pattern->equations.end(),
                      [&](const Equation& equation) { return *equation.primitive == *primitive; });
    if (count != 1)
      return "has " + std::to_string(count) + " equations of `" + std::string(primitive->name()) +
             "`, whose parameters are any, and may have one";
  }
  // The equations reachable from the first result: through its operands, and what shares an
  // operand.
  std::fill(known.begin(), known.end(), 0);
  std::size_t num_matched = 0;
  std::vector<int> open{given.root};
  while (!open.empty()) {
    const int e = open.back();
    open.pop_back();
    if (std::exchange(matched[e], 1)) continue;
    ++num_matched;
    for (const Atom& atom : pattern->equations[e].inputs) {
      if (!atom.is_var()) continue;
      known[atom.var().id] = 1;
      if (definition[atom.var().id] >= 0) open.push_back(definition[atom.var().id]);
    }
    for (Var var : pattern->equations[e].outputs) known[var.id] = 1;
    if (!open.empty()) continue;
    for (std::size_t other = 0; other < matched.size(); ++other)
      if (!matched[other] &&
          std::any_of(pattern->equations[other].inputs.begin(),
                      pattern->equations[other].inputs.end(),
                      [&](const Atom& atom) { return atom.is_var() && known[atom.var().id]; }))
        open.push_back(int(other));
  }
  if (num_matched < pattern->equations.size()) return "has results that share no argument";
  return std::nullopt;
}

// Equal for patterns that match alike: their primitives, and what their operands are.
std::string wiring_of(const Jaxpr& jaxpr) {
  std::string text;
  auto add = [&](const Atom& atom) {
    text += atom.is_var() ? " " + std::to_string(atom.var().id) : std::string(" #");
  };
  for (const Equation& equation : jaxpr->equations) {
    text += std::string(equation.primitive->name());
    for (const Atom& atom : equation.inputs) add(atom);
    text += ">" + std::to_string(equation.outputs.size()) + ";";
  }
  for (const Atom& atom : jaxpr->outputs) add(atom);
  return text;
}

// Combinations of these types as arguments, at most limit. Those of few different types come first.
std::vector<std::vector<Aval>> combinations(std::span<const Aval> types, int num_arguments,
                                            std::size_t limit) {
  std::vector<std::vector<Aval>> result;
  double count = 1;
  for (int i = 0; i < num_arguments; ++i) count *= double(types.size());
  if (count <= double(limit)) {
    result.emplace_back();
    for (int i = 0; i < num_arguments; ++i) {
      std::vector<std::vector<Aval>> longer;
      for (const std::vector<Aval>& begin : result)
        for (const Aval& type : types) {
          longer.push_back(begin);
          longer.back().push_back(type);
        }
      result = std::move(longer);
    }
    return result;
  }
  for (const Aval& type : types) result.emplace_back(num_arguments, type);
  for (std::size_t a = 0; a < types.size(); ++a)
    for (std::size_t b = a + 1; b < types.size(); ++b)
      for (std::uint64_t mask = 1; mask + 1 < (std::uint64_t(1) << std::min(num_arguments, 16));
           ++mask) {
        if (result.size() >= limit) return result;
        std::vector<Aval> avals(num_arguments, types[a]);
        for (int i = 0; i < std::min(num_arguments, 16); ++i)
          if (mask >> i & 1) avals[i] = types[b];
        result.push_back(std::move(avals));
      }
  return result;
}

}  // namespace

Rule::Rule(Function pattern, Function replacement, int num_arguments, RuleOptions options)
    : state_(std::make_shared<State>()) {
  state_->pattern = std::move(pattern);
  state_->replacement = std::move(replacement);
  state_->num_arguments = num_arguments;
  state_->options = std::move(options);
  RuleOptions& given = state_->options;
  if (given.name.empty()) given.name = "rule";
  for (const std::string& name : given.any_params) {
    const Primitive* primitive = find_primitive(name);
    if (!primitive)
      throw ValueError("rewrite: any_params names `" + name + "`, which is no primitive",
                       "name one of those that plait.rules('abstract') lists");
    state_->wild.push_back(primitive);
  }
  if (!given.like.empty() && int(given.like.size()) != num_arguments)
    throw TreeError("rewrite: like has " + std::to_string(given.like.size()) +
                        " specs for a pattern of " + std::to_string(num_arguments) + " arguments",
                    "give one spec for each argument");
}

const std::string& Rule::name() const { return state_->options.name; }
const RuleOptions& Rule::options() const { return state_->options; }
int Rule::num_arguments() const { return state_->num_arguments; }

Jaxpr Rule::trace(Side side, std::span<const Aval> avals, const WildParams& wild) const {
  const bool is_pattern = side == Side::pattern;
  TransformScope transform("rewrite", name());
  PatternTrace trace("rewrite", wild);
  Arrays arguments;
  std::vector<Dim> sizes;
  for (const Aval& aval : avals) {
    arguments.push_back(trace.add_input(aval));
    collect_sizes(aval.shape, sizes);
  }
  SizeScope size_scope(sizes);
  TraceScope scope(&trace);
  const Arrays outputs = (is_pattern ? state_->pattern : state_->replacement)(arguments);
  const Traced traced = trace.close(outputs);
  if (!traced.captured.empty())
    throw ValueError("rewrite: the " + std::string(is_pattern ? "pattern" : "replacement") +
                         " of `" + name() + "` uses an array of type " +
                         traced.captured[0].aval().to_string() + " that is no argument of it",
                     "make it an argument, or of numbers inside the function");
  return traced.jaxpr;
}

std::vector<Pattern> Rule::shapes(std::span<const Aval> types) const {
  std::vector<std::vector<Aval>> candidates;
  if (state_->options.like.empty()) {
    constexpr std::size_t limit = 256;
    candidates = combinations(types, num_arguments(), limit);
  } else {
    candidates.emplace_back();
    for (const Spec& spec : state_->options.like) candidates[0].push_back(spec.resolve());
  }
  std::optional<std::string> fault;
  auto shape_at = [&](const std::vector<Aval>& avals) -> std::optional<Pattern> {
    const std::string key = text_of(avals);
    {
      std::lock_guard lock(state_->mutex);
      if (const auto found = state_->tried.find(key); found != state_->tried.end())
        return found->second;
    }
    std::optional<Pattern> shape;
    try {
      Pattern traced(trace(Side::pattern, avals, {}));
      fault = fault_of(traced, state_->wild);
      if (!fault) shape = std::move(traced);
    } catch (const TracerError&) {  // it asks for values, at any types
      throw;
    } catch (const Error& error) {  // no pattern at these types
      if (!state_->options.like.empty()) throw;
    }
    std::lock_guard lock(state_->mutex);
    return state_->tried.emplace(key, std::move(shape)).first->second;
  };
  std::vector<Pattern> result;
  std::set<std::string> wirings;
  for (const std::vector<Aval>& avals : candidates)
    if (std::optional<Pattern> shape = shape_at(avals))
      if (wirings.insert(wiring_of(shape->jaxpr)).second) result.push_back(std::move(*shape));
  // An identity vanishes at some types, so longer patterns come first.
  std::stable_sort(result.begin(), result.end(), [](const Pattern& a, const Pattern& b) {
    return a.jaxpr->equations.size() > b.jaxpr->equations.size();
  });
  if (result.empty() && fault) {
    // It may be a pattern at other types.
    for (DType dtype : {DType::float32, DType::float64, DType::int32, DType::bool_})
      for (const Shape& shape : {Shape{}, Shape{48}, Shape{48, 48}})
        if (shape_at(std::vector<Aval>(num_arguments(), Aval{shape, dtype, false}))) return {};
    throw ValueError("rewrite: the pattern of `" + name() + "` " + *fault,
                     "give a pattern that matches some equations");
  }
  return result;
}

std::shared_ptr<const RuleInstance> Rule::instance(const std::vector<Aval>& avals,
                                                   const WildParams& wild) const {
  const std::string key = key_of(avals, wild);
  {
    std::lock_guard lock(state_->mutex);
    if (const auto found = state_->instances.find(key); found != state_->instances.end())
      return found->second.first;
  }
  std::shared_ptr<RuleInstance> made;
  try {
    Pattern pattern(trace(Side::pattern, avals, wild));
    if (!fault_of(pattern, state_->wild))
      made = std::make_shared<RuleInstance>(RuleInstance{avals, wild, std::move(pattern)});
  } catch (const Error&) {  // no pattern at these types
  }
  constexpr std::size_t limit = 1024;
  std::lock_guard lock(state_->mutex);
  if (state_->instances.size() >= limit) state_->instances.clear();
  return state_->instances.emplace(key, std::pair(std::move(made), Jaxpr())).first->second.first;
}

Jaxpr Rule::replacement(const std::shared_ptr<const RuleInstance>& instance) const {
  const std::string key = key_of(instance->avals, instance->wild);
  {
    std::lock_guard lock(state_->mutex);
    if (const auto found = state_->instances.find(key);
        found != state_->instances.end() && found->second.second)
      return found->second.second;
  }
  Jaxpr made = trace(Side::replacement, instance->avals, instance->wild);
  const std::vector<Aval> wanted = instance->pattern.jaxpr->output_avals(),
                          given = made->output_avals();
  const bool fits = std::equal(
      wanted.begin(), wanted.end(), given.begin(), given.end(),
      [](const Aval& a, const Aval& b) { return a.shape == b.shape && a.dtype == b.dtype; });
  if (!fits || made->effectful)
    throw ValueError(
        "rewrite: the replacement of `" + name() + "` " +
            (fits ? "has an effect"
                  : "gives " + text_of(given) + " where the pattern gives " + text_of(wanted)) +
            ", for arguments " + text_of(instance->avals),
        fits ? "leave it out" : "return results of the same shapes and dtypes");
  if (wanted != given) {  // results keep their weakness
    ProgramBuilder builder(made);
    std::vector<Atom> outputs = builder.outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!(wanted[i] == given[i]))
        outputs[i] = builder.add(cast_p, {outputs[i]},
                                 {{"dtype", wanted[i].dtype}, {"weak", wanted[i].weak}}, {})[0];
    builder.set_outputs(std::move(outputs));
    made = builder.close();
  }
  std::lock_guard lock(state_->mutex);
  if (const auto found = state_->instances.find(key); found != state_->instances.end())
    found->second.second = made;
  return made;
}

}  // namespace plait
