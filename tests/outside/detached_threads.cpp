// Main returns while detached threads trace, compile and run: exit destroys nothing that they use.
// Products of matrices are oneDNN's and loops LLVM's, which keep objects that exit destroys.
//
// detached_threads MS: what they do goes on for so many milliseconds before main returns.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace jnp = plait::numpy;
using plait::Array;

namespace {

struct Pair {
  Array a, b;
};

[[noreturn]] void work(int thread) {
  for (int i = 0;; ++i) {
    const auto f = plait::jit([=](const Pair& p, const std::vector<Array>& v) -> Pair {
      const Array mask = jnp::greater(p.b, Array(double(i % 7)));
      return {jnp::tanh(jnp::matmul(p.a, v[0])) + jnp::where(mask, p.a, p.b),
              jnp::sin(p.b) + Array(double(thread))};
    });
    const Array x = jnp::ones({40 + i % 3, 40 + i % 3});
    for (int call = 0; call < 12; ++call) f(Pair{x, x}, std::vector<Array>{x, x});
  }
}

}  // namespace

int main(int, char** argv) {
  for (int thread = 0; thread < 2; ++thread) std::thread(work, thread).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[1])));
}
