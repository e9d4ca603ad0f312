// The list of laws, and what holds of them by design. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include "laws.h"

#include <algorithm>

namespace plait::laws {

const std::vector<Law> all_laws = {
    {"jvp", jvp_is_difference},
    {"adjoint", vjp_is_adjoint},
    {"second derivative", second_derivative_is_difference},
    {"transpose", transpose_is_adjoint},
    {"vmap", vmap_is_stack},
    {"batched gradient", gradient_of_vmap_is_stack},
    {"effect", effects_are_of_live_examples},
    {"jit", jit_is_eager},
    {"decompose", eval_is_decomposition},
    {"eval", bind_is_eval},
    {"fold", fold_is_eval},
    {"dtype", dtypes_agree},
    {"commute", operands_commute},
    {"put", put_is_shown},
    {"accumulate", accumulate_is_transpose},
    {"check", programs_check},
    {"text", text_is_exact},
    {"abstract", abstract_is_true},
    {"weak", weakness_is_kept},
    {"instantiate", instantiate_is_trace},
    {"mask", mask_ignores_padding},
    {"ragged", ragged_batch_is_loop},
    {"chunk", chunks_are_vmap},
    {"tape", tape_is_vjp},
    {"recorded gradient", recorded_gradient_is_vjp},
};

const Law& law_named(std::string_view name) {
  const auto found = std::find_if(all_laws.begin(), all_laws.end(),
                                  [&](const Law& law) { return law.name == name; });
  if (found == all_laws.end())
    throw ValueError("there is no law '" + std::string(name) + "'", "see all_laws");
  return *found;
}

std::vector<std::string> violations(const Law& law, const Primitive& primitive) {
  std::vector<std::string> found;
  const std::vector<Case> cases = cases_of(primitive);
  if (cases.empty()) found.push_back("`" + std::string(primitive.name()) + "` has no samples");
  for (const Case& one : cases) {
    Verdict verdict;
    try {
      verdict = law.check(one);
    } catch (const Error& error) {
      verdict = std::string("threw: ") + error.what();
    }
    if (verdict) found.push_back(one.to_string() + ": " + *verdict);
  }
  return found;
}

Verdict violation(const Law& law, const Primitive& primitive) {
  const std::vector<std::string> all = violations(law, primitive);
  return all.empty() ? Verdict() : all.front();
}

std::optional<std::string> reasoned_exception(const Law& law, const Primitive& primitive) {
  const std::string_view name = primitive.name();
  const bool differentiates_twice =
      law.check == second_derivative_is_difference || law.check == recorded_gradient_is_vjp;
  if ((name == "igamma" || name == "igammac") && differentiates_twice)
    return "its second derivative in a is none that plait has: refused by name";
  if (name == "stop_gradient" &&
      (law.check == jvp_is_difference || law.check == second_derivative_is_difference))
    return "its tangent is zero, which a case of its own checks";
  if ((name == "cast" || name == "narrow") && law.check == weakness_is_kept)
    return "its parameters say whether the result is weak";
  if (name == "det" && law.check == instantiate_is_trace)
    return "its derivative is a polynomial up to three rows, and a named size may be more";
  return std::nullopt;
}

}  // namespace plait::laws
