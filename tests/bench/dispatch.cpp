// bench_dispatch: what plait itself costs from C++, in lines "name value": nanoseconds of a jitted
// x + 1 on one element, of an eager add, of tracing and compiling an equation in programs of
// several lengths.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <cstdio>

#include "clock.h"

using namespace plait;

namespace {

// The best of several rounds, in nanoseconds a call.
template <class F>
double nanoseconds(int rounds, int calls, const F& f) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) f();
    best = std::min(best, (seconds() - start) / calls);
  }
  return best * 1e9;
}

Array chain(Array x, int equations) {
  for (int i = 0; i + 1 < equations; i += 2) x = lax::mul(lax::sin(x), x);
  return x;
}

}  // namespace

int main() {
  const Array x = lax::full({1}, 1, DType::float32) + lax::iota(DType::float32, {1}, 0);
  auto plus_one = [](const Array& a) -> Array { return a + 1.0; };
  const auto jitted = jit(plus_one);
  jitted(x);
  std::printf("jit_plus_one_ns %.1f\n", nanoseconds(200, 500, [&] { jitted(x); }));
  const auto executable = compile(make_jaxpr(plus_one, x).jaxpr);
  const Buffer input = x.buffer();
  const Buffer* inputs[] = {&input};
  std::printf("executable_plus_one_ns %.1f\n", nanoseconds(200, 500, [&] {
                Buffer output;
                executable->run(inputs, std::span<Buffer>(&output, 1));
              }));
  std::printf("eager_add_ns %.1f\n", nanoseconds(200, 500, [&] { lax::add(x, x); }));
  for (int equations : {1000, 10000, 100000}) {
    Jaxpr program;
    const int calls = std::max(1, 10000 / equations);
    auto trace = [&] {
      program = make_jaxpr([&](const Array& a) -> Array { return chain(a, equations); }, x).jaxpr;
    };
    std::printf("trace_%d_ns %.1f\n", equations, nanoseconds(7, calls, trace) / equations);
    const double start = seconds();
    compile(program);
    std::printf("compile_%d_ns %.1f\n", equations, (seconds() - start) / equations * 1e9);
  }
}
