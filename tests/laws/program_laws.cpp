// Laws of programs: what transforms make is well-formed, prints and parses. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/interpret.h>

#include <algorithm>

#include "laws.h"

namespace plait::laws {
namespace {

std::vector<bool> differentiable(std::span<const Aval> avals) {
  std::vector<bool> flags;
  for (const Aval& aval : avals) flags.push_back(is_differentiable(aval));
  return flags;
}

// The avals that flags mark, after those given.
std::vector<Aval> with_marked(std::vector<Aval> avals, std::span<const Aval> more,
                              const std::vector<bool>& flags) {
  for (std::size_t i = 0; i < more.size(); ++i)
    if (flags[i]) avals.push_back(more[i]);
  return avals;
}

Tangents marked_tangents(std::span<const Aval> avals, const std::vector<bool>& flags,
                         std::span<const Array> arrays) {
  Tangents tangents;
  std::size_t next = 0;
  for (std::size_t i = 0; i < avals.size(); ++i)
    tangents.push_back(flags[i] ? Tangent(arrays[next++]) : Tangent(avals[i]));
  return tangents;
}

Arrays instantiated(const Tangents& tangents) {
  Arrays arrays;
  for (const Tangent& tangent : tangents) arrays.push_back(tangent.instantiate());
  return arrays;
}

}  // namespace

std::vector<std::pair<std::string, Jaxpr>> transformed(const Case& one) {
  std::vector<std::pair<std::string, Jaxpr>> programs;
  const Function f = one.function();
  const std::vector<Aval> avals = one.avals();
  const std::size_t n = avals.size();
  const Jaxpr plain = make_jaxpr(f, avals).jaxpr;
  const std::vector<Aval> outputs = plain->output_avals();
  programs.emplace_back("make_jaxpr", plain);
  programs.emplace_back("jit", make_jaxpr(flat::Jit(f, "f"), avals).jaxpr);

  const std::vector<bool> wrt = differentiable(avals), pulled = differentiable(outputs);
  const bool is_refused =
      one.primitive && Jvp::table().origin(*one.primitive) && !Jvp::table().find(*one.primitive);
  if (std::find(wrt.begin(), wrt.end(), true) != wrt.end() && !is_refused) {
    const Function jvp = [&](std::span<const Array> inputs) {
      Differentiated result =
          flat::jvp(f, inputs.first(n), marked_tangents(avals, wrt, inputs.subspan(n)));
      for (Array& tangent : instantiated(result.tangents))
        result.outputs.push_back(std::move(tangent));
      return result.outputs;
    };
    const Function vjp = [&](std::span<const Array> inputs) {
      const flat::Pullback pullback = flat::vjp(f, inputs.first(n), wrt);
      return instantiated(pullback.pull(marked_tangents(outputs, pulled, inputs.subspan(n))));
    };
    programs.emplace_back("jvp", make_jaxpr(jvp, with_marked(avals, avals, wrt)).jaxpr);
    const std::vector<Aval> vjp_avals = with_marked(avals, outputs, pulled);
    programs.emplace_back("vjp", make_jaxpr(vjp, vjp_avals).jaxpr);
    programs.emplace_back(
        "vmap(vjp)",
        batch_jaxpr(programs.back().second, 3, std::vector<std::optional<int>>(vjp_avals.size(), 0))
            ->jaxpr);
    const auto linearized = linearize_jaxpr(plain, wrt);
    programs.emplace_back("linearize_jaxpr, known", linearized->known);
    programs.emplace_back("linearize_jaxpr, linear", linearized->linear);
    const std::size_t num_tangents = std::size_t(std::count(wrt.begin(), wrt.end(), true));
    std::vector<bool> linear(linearized->linear->num_binders, false);
    std::fill(linear.begin(),
              linear.begin() + std::ptrdiff_t(std::min(num_tangents, linear.size())), true);
    if (!linearized->linear->outputs.empty())
      programs.emplace_back(
          "transpose_jaxpr",
          transpose_jaxpr(linearized->linear, linear,
                          std::vector<bool>(linearized->linear->outputs.size(), true))
              ->jaxpr);
  }
  for (bool last : {false, true}) {
    std::vector<std::optional<int>> dims;
    for (const Aval& aval : avals) dims.push_back(last ? aval.rank() : 0);
    const std::string name = last ? "batch_jaxpr at the last axis" : "batch_jaxpr";
    programs.emplace_back(name, batch_jaxpr(plain, 3, dims)->jaxpr);
    programs.emplace_back(name + ", forced", batch_jaxpr(plain, 3, dims, true)->jaxpr);
  }
  if (one.primitive && Decompose::table().find(*one.primitive))
    programs.emplace_back("decompose", decomposition(*one.primitive, avals, one.params));
  return programs;
}

Verdict programs_check(const Case& one) {
  for (const auto& [transform, program] : transformed(one)) {
    try {
      check(program);
    } catch (const InternalError& error) {
      return transform + ": " + error.problem();
    }
  }
  return std::nullopt;
}

Verdict text_is_exact(const Case& one) {
  for (const auto& [transform, program] : transformed(one)) {
    if (holds_callable(program))
      continue;  // parse refuses @name#3: no sample's program holds one today
    const std::string text = print(program);
    try {
      const Jaxpr parsed = parse(text);
      if (!(parsed == program))
        return transform + ": parse(print(j)) is another program than j:\n" + text + "\n" +
               print(parsed);
      if (print(parsed) != text)
        return transform + ": prints differently after parsing:\n" + text + "\n" + print(parsed);
    } catch (const Error& error) {
      return transform + ": " + error.problem() + "\n" + text;
    }
  }
  return std::nullopt;
}

Verdict abstract_is_true(const Case& one) {
  const Arrays inputs = one.values();
  const Jaxpr plain = make_jaxpr(one.function(), one.avals()).jaxpr;
  const std::vector<Aval> stated = plain->output_avals();
  auto compare = [&](const std::string& what, std::span<const Aval> actual) -> Verdict {
    if (actual.size() != stated.size())
      return what + ": " + std::to_string(actual.size()) + " results where Abstract says " +
             std::to_string(stated.size());
    for (std::size_t i = 0; i < stated.size(); ++i)
      if (!(actual[i] == stated[i]))
        return what + ": result " + std::to_string(i) + " is " + actual[i].to_string() +
               " where Abstract says " + stated[i].to_string();
    return std::nullopt;
  };
  std::vector<Aval> applied,
      traced_again = make_jaxpr(one.function(), one.avals()).jaxpr->output_avals();
  for (const Array& output : one(inputs)) applied.push_back(output.aval());
  if (auto found = compare("applied", applied)) return found;
  if (auto found = compare("traced again", traced_again)) return found;
  std::vector<std::optional<int>> dims(one.inputs.size(), 0);
  std::vector<Aval> batched = batch_jaxpr(plain, 3, dims, true)->jaxpr->output_avals();
  for (Aval& aval : batched) aval.shape.erase(0);
  if (auto found = compare("batched", batched)) return found;
  if (one.primitive && Decompose::table().find(*one.primitive))
    if (auto found =
            compare("the decomposition",
                    decomposition(*one.primitive, one.avals(), one.params)->output_avals()))
      return found;
  const std::vector<Aval> avals = one.avals();
  const std::vector<bool> wrt = differentiable(avals);
  if (std::find(wrt.begin(), wrt.end(), true) == wrt.end() || !one.primitive) return std::nullopt;
  if (Jvp::table().origin(*one.primitive) && !Jvp::table().find(*one.primitive))
    return std::nullopt;  // refused
  const flat::LinearMap map = flat::linearize(one.function(), inputs, wrt);
  std::vector<Aval> tangents = stated;
  const std::vector<Aval> found_tangents = map.jaxpr->output_avals();
  for (std::size_t i = 0; i < map.outputs_with_tangent.size(); ++i)
    tangents[map.outputs_with_tangent[i]] = found_tangents[i];
  return compare("the tangents", tangents);
}

namespace {

// The numbers of samples that numbers of Python may stand for; the others are indices, conditions
// and keys.
bool is_number(const Aval& aval) {
  return aval.dtype == DType::float64 || aval.dtype == DType::complex128;
}

std::vector<Aval> results_of(const Case& one, const std::vector<bool>& weak) {
  std::vector<Aval> avals = one.avals();
  for (std::size_t i = 0; i < avals.size(); ++i) avals[i].weak = weak[i];
  std::vector<Aval> results = make_jaxpr(one.function(), avals).jaxpr->output_avals();
  std::erase_if(results, [](const Aval& aval) { return !is_number(aval) || aval.stack > 0; });
  return results;
}

}  // namespace

Verdict weakness_is_kept(const Case& one) {
  std::vector<bool> numbers;
  for (const Aval& aval : one.avals()) numbers.push_back(is_number(aval) && aval.stack == 0);
  const std::size_t count = std::size_t(std::count(numbers.begin(), numbers.end(), true));
  // Programs that are parameters state the types of their results.
  if (!one.primitive || count == 0 || holds_bodies(one.params)) return std::nullopt;
  for (const Aval& result : results_of(one, numbers))
    if (!result.weak) return "gives " + result.to_string() + " for weak numbers";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i]) continue;
    std::vector<bool> weak = numbers;
    weak[i] = false;
    const std::vector<Aval> results = results_of(one, weak);
    if (!results.empty() &&
        std::ranges::all_of(results, [](const Aval& aval) { return aval.weak; }))
      return "gives " + results[0].to_string() + " where operand " + std::to_string(i) +
             " is strong";
  }
  Case weak = one;
  for (std::size_t i = 0; i < numbers.size(); ++i) weak.inputs[i].aval.weak = numbers[i];
  return programs_check(weak);
}

}  // namespace plait::laws
