// bench_inspect: looking into a program of 10,000 equations in 100 scopes, in lines "name value":
// milliseconds of its summary, its code, and its difference from one that has one equation more.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <cstdio>

#include "clock.h"
#include "right.h"

using namespace plait;

namespace {

Jaxpr program(int equations) {
  const Function chain = [&](std::span<const Array> inputs) -> Arrays {
    Array x = inputs[0];
    for (int i = 0; i < equations;) {
      const NamedScope block("block" + std::to_string(i / 1000)), layer(std::to_string(i / 100));
      const bool two = i % 3 == 1 && i + 1 < equations;
      x = two ? lax::mul(lax::sin(inputs[0]), x) : lax::tanh(x);
      i += two ? 2 : 1;
    }
    return {x};
  };
  return make_closed_jaxpr(chain, std::vector<Aval>{{{8, 8}, DType::float32}});
}

// The best of several rounds, each on a program that nobody has looked at.
template <class F>
void print_best(const char* name, const F& look) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const Jaxpr one = program(10000), other = program(10001);
    const double start = seconds();
    look(one, other);
    best = std::min(best, seconds() - start);
  }
  std::printf("%s %.3f\n", name, best * 1e3);
}

}  // namespace

int main() {
  const Jaxpr one = program(10000), other = program(10001);
  require(one->equations.size() + 1 == other->equations.size(), "the programs differ by one");
  require(code(one).text.find("tanh") != std::string::npos, "the code says nothing of tanh");
  require(summary(one).to_string().find("block9") != std::string::npos, "a scope is lost");
  require(diff(one, one).is_equal(), "a program differs from itself");
  require(!diff(one, other).is_equal(), "the difference is not seen");
  print_best("summary_ms", [](const Jaxpr& one, const Jaxpr&) { summary(one).to_string(); });
  print_best("code_ms", [](const Jaxpr& one, const Jaxpr&) { code(one); });
  print_best("diff_ms", [](const Jaxpr& one, const Jaxpr& other) { diff(one, other).to_string(); });
}
