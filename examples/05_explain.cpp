// Lesson 5: looking inside: the program, where it runs and why, and who has which rule.
//
// Prints the same as its twin, 05_explain.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cstdio>

using plait::Array;
namespace jnp = plait::numpy;

Array loss(const Array& w, const Array& x, const Array& y) {
  return jnp::mean(jnp::square(jnp::tanh(jnp::matmul(x, w)) - y));
}

int main() {
  // Whatever transforms were composed, the result is one program, and its text can be read: typed
  // vars, then one equation a line. A composite such as mean shows its body.
  const Array w = jnp::ones({256, 128}), x = jnp::ones({64, 256}), y = jnp::ones({64, 128});
  const plait::Jaxpr program = plait::make_jaxpr(plait::grad(loss), w, x, y).jaxpr;
  std::puts(print(program).c_str());
  std::string names;
  for (const plait::Equation& equation : program->equations)
    names += (names.empty() ? "" : ", ") + std::string(equation.primitive->name());
  std::printf("equations: %s\n", names.c_str());

  // compile shows the steps: which backend runs them, how much memory they make, and for those that
  // stay with the reference, why another did not take them. A smaller product is not worth its
  // call.
  std::puts(plait::compile(program)->explain().c_str());
  std::puts(plait::compile(plait::make_jaxpr(loss, "4 2", "3 4", "3 2").jaxpr)->explain().c_str());

  // Every transform is a table of rules, one for each primitive. A rule is written in the
  // primitive's block, or comes from its family, or from what it decomposes to; a refusal says why.
  for (const char* kind : {"jvp", "batch", "mask"})
    for (const plait::Coverage& row : plait::coverage(kind))
      if (row.primitive == "tanh" || row.primitive == "dot_general" ||
          row.primitive == "check_sizes")
        std::printf("%-6s %-12s %s\n", kind, row.primitive.c_str(), row.state.c_str());

  // What this installation found on the machine.
  std::string backends;
  for (const plait::Backend* backend : plait::backends_of())
    backends += (backends.empty() ? "" : ", ") + std::string(backend->name());
  std::printf("backends: %s\n", backends.c_str());
}
