// bench_dispatch: what plait itself costs from C++, in lines "name value": nanoseconds of a jitted
// x + 1 on one element, of an eager add, of tracing and compiling an equation in programs of
// several lengths.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <cstdio>

#include "clock.h"
#include "right.h"

using namespace plait;

namespace {

Array chain(const Array& start, int equations) {
  Array x = start;
  for (int i = 0; i + 1 < equations; i += 2) x = lax::mul(lax::sin(x), start);
  return x;
}
double plain_chain(double start, int equations) {
  double x = start;
  for (int i = 0; i + 1 < equations; i += 2) x = std::sin(x) * start;
  return x;
}

double number_of(const Buffer& buffer) { return Array(buffer).item<double>(); }

}  // namespace

int main() {
  const Array x = lax::full({1}, 1, DType::float32) + lax::iota(DType::float32, {1}, 0);
  auto plus_one = [](const Array& a) -> Array { return a + 1.0; };
  const auto jitted = jit(plus_one);
  require_near(jitted(x).item<double>(), 2, 0, "jitted x + 1");
  std::printf("jit_plus_one_ns %.1f\n", nanoseconds(200, 500, [&] { jitted(x); }));
  const auto executable = compile(make_jaxpr(plus_one, x).jaxpr);
  const Buffer input = x.buffer();
  const Buffer* inputs[] = {&input};
  require_near(number_of(executable->run(std::span(&input, 1))[0]), 2, 0, "the executable's x + 1");
  require_near(lax::add(x, x).item<double>(), 2, 0, "x + x");
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
    const auto compiled = compile(program);
    const double end = seconds();
    const Buffer from = lax::full({1}, 1.75, DType::float32).buffer();
    require_near(number_of(compiled->run(std::span(&from, 1))[0]), plain_chain(1.75, equations),
                 1e-3, "a compiled chain");
    std::printf("compile_%d_ns %.1f\n", equations, (end - start) / equations * 1e9);
  }
}
