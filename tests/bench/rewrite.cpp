// bench_rewrite: what passes over a program of 100,000 equations cost, in lines "name value":
// milliseconds of 20 rules, one of which matches 20,000 times, with the checker; the same where
// none matches; and of a builder that begins with the program and closes it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/rewriting/rewrite.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace plait;

namespace {

using X = const Array&;

template <class F>
double milliseconds(const F& f) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best;
}

Array chain(Array x, Array y, int steps) {
  for (int i = 0; i < steps; ++i) {
    y = lax::log(lax::exp(x * y)) + x;
    x = i % 2 ? lax::sin(x) : -x;
  }
  return x + y;
}

std::vector<Rule> other_rules() {
  using namespace lax;
  return {
      make_rule([](X x) { return -(-x); }, [](X x) { return x; }),
      make_rule([](X x) { return x + 0.0; }, [](X x) { return x; }),
      make_rule([](X x) { return x * 1.0; }, [](X x) { return x; }),
      make_rule([](X a, X b, X c) { return a * b + a * c; },
                [](X a, X b, X c) { return a * (b + c); }),
      make_rule([](X x) { return exp(log(x)); }, [](X x) { return x; }),
      make_rule([](X x, X y) { return exp(x) * exp(y); }, [](X x, X y) { return exp(x + y); }),
      make_rule([](X x, X y) { return log(x) + log(y); }, [](X x, X y) { return log(x * y); }),
      make_rule([](X x) { return tanh(-x); }, [](X x) { return -tanh(x); }),
      make_rule([](X x) { return sqrt(x * x); }, [](X x) { return abs(x); }),
      make_rule([](X x) { return log(sin(x)); }, [](X x) { return -sin(-x); }),
      make_rule([](X x) { return cos(-x); }, [](X x) { return cos(x); }),
      make_rule([](X x, X y) { return x - (-y); }, [](X x, X y) { return x + y; }),
      make_rule([](X x, X y) { return x + -(-y); }, [](X x, X y) { return x + y; }),
      make_rule([](X x, X y) { return (x / y) * y; }, [](X x, X) { return x; }),
      make_rule([](X x, X y) { return max(x, max(x, y)); }, [](X x, X y) { return max(x, y); }),
      make_rule([](X x) { return abs(-x); }, [](X x) { return abs(x); }),
      make_rule([](X x) { return abs(abs(x)); }, [](X x) { return abs(x); }),
      make_rule([](X x, X y) { return min(x, y) + max(x, y); }, [](X x, X y) { return x + y; }),
      make_rule([](X x) { return log(exp(exp(x))); }, [](X x) { return exp(x); }),
  };
}

}  // namespace

int main() {
  const Array x = numpy::ones({3});
  const Jaxpr program = make_jaxpr([](X x, X y) { return chain(x, y, 20000); }, x, x).jaxpr;
  std::vector<Rule> rules = other_rules();
  const Pass none = rewrite(rules);
  rules.push_back(make_rule([](X x) { return lax::log(lax::exp(x)); }, [](X x) { return x; }));
  const Pass many = rewrite(rules);
  std::printf("rewrite_ms %.2f\n", milliseconds([&] { many(program); }));
  std::printf("rewrite_none_ms %.2f\n", milliseconds([&] { none(program); }));
  std::printf("builder_ms %.2f\n", milliseconds([&] { ProgramBuilder(program).close(); }));
  return many.statistics().matches == 20000 ? 0 : 1;
}
