// What functions with derivative rules of their own are made of: the primitive custom_derivative,
// programs of functions and rules, and rules that run as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/bodies.h>
#include <plait/transforms/transforms.h>

namespace plait {

extern const Primitive custom_derivative_p;

// The derivative rules of a function as its user gave them: jvp, or fwd and bwd. varies says for
// which inputs there are tangents; the others are zero.
struct CustomRules {
  // primals, tangents -> outputs, tangents
  std::function<Arrays(std::span<const Array> both, const Flags& varies)> jvp;
  std::function<flat::Forward(std::span<const Array> primals, const Flags& varies)> fwd;
  Function bwd;  // residuals, cotangents -> cotangents of primals
  // Whether what a rule does depends on which inputs vary. Programs of such rules are traced only
  // where somebody differentiates, for the inputs that vary there.
  bool reads_zeros = false;
  // Whether the exception being handled is a failure of a rule. A rule that fails when it is traced
  // is traced again, and may fail, where somebody differentiates.
  bool (*is_failure)() = [] {
    try {
      throw;
    } catch (const Error&) {
      return true;
    } catch (...) {
      return false;
    }
  };
  const char* transform() const { return jvp ? "custom_jvp" : "custom_vjp"; }
};

class PendingRules;

// Its parameters: a function, and its jvp, or its fwd and bwd, or what will be traced to them.
struct CustomDerivative {
  CustomDerivative() = default;
  explicit CustomDerivative(const Params& params);
  Params to_params() const;

  // In the names of the program around it. Those that are not given are empty.
  Jaxpr body;
  Jaxpr jvp;       // primals, tangents -> outputs, tangents
  Jaxpr fwd, bwd;  // primals -> outputs, residuals; residuals, cotangents -> cotangents of primals
  std::shared_ptr<const PendingRules> rules;
  std::string name;
  // How many operands, the last ones, are arrays that function or rules captured, which must have
  // no tangents.
  std::int64_t num_captured = 0;
};

// Pending rules, traced as if all inputs varied, which gives right derivatives where fewer do: the
// parameters of such an equation, and a program of the arrays that the rules captured, which are
// operands behind the others. Nothing without pending rules, and for rules that fail or capture
// arrays that are large or unknown.
struct TracedRules {
  Params params;
  Jaxpr captured;
};
std::optional<TracedRules> trace_pending_rules(const Params& params);

// Function and rules, traced and applied as one custom_derivative.
Arrays stage_custom(const Function& function, const CustomRules& rules,
                    std::span<const Array> inputs, const std::string& name);

namespace flat {
// function with these rules: custom_jvp or custom_vjp.
Arrays custom(const Function& function, const CustomRules& rules, std::span<const Array> inputs,
              const std::string& name);
}  // namespace flat

// The backward rule of a custom_vjp that runs as it is, without a program.
struct OnlineBackward {
  Function bwd;  // residuals, cotangents of every output -> cotangents of every input
  std::vector<Aval> inputs, outputs;  // of the function
  std::string name;
  // Cotangents of the inputs that have one, from residuals and cotangents of the outputs that have
  // one.
  Arrays pull(std::span<const Array> arguments) const;
};

// The linear map from tangents of inputs to tangents of outputs whose transpose a backward rule is:
// custom_linear. arguments are residuals, then tangents of the inputs that have one.
Arrays bind_custom_linear(const OnlineBackward& backward, std::span<const Array> arguments);
Arrays bind_custom_linear(const Jaxpr& bwd, std::size_t num_residuals, const std::string& name,
                          std::span<const Array> arguments);

// ShapeError where a rule returned what has another type than is needed.
void check_rule_output(const char* rule, const std::string& name, std::size_t index,
                       const Aval& given, const Aval& wanted);

}  // namespace plait
