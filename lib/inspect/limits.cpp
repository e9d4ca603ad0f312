// The peak rates of the machine: copies of memory that exceeds the caches, and multiply-adds in
// registers, on all threads. Each is the best of a few rounds, because other processes may use the
// cores meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/inspect/profile.h>

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

namespace plait {
namespace {

constexpr int rounds = 5;
constexpr int chains = 12, steps = 100'000;  // chains: as many as the units can overlap

// Multiply-adds that must not be optimised away.
#define PLAIT_CHAINS(name, isa, vector, set, fma)                       \
  __attribute__((target(isa))) void name() {                            \
    vector sum[chains];                                                 \
    const vector x = set(0.5f), y = set(1.0f);                          \
    for (vector & s : sum) s = set(0.25f);                              \
    for (int step = 0; step < steps; ++step) {                          \
      _Pragma("GCC unroll 12") for (vector & s : sum) s = fma(s, x, y); \
    }                                                                   \
    for (vector & s : sum) asm volatile("" ::"m"(s));                   \
  }
PLAIT_CHAINS(wide_products, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
PLAIT_CHAINS(products, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
#undef PLAIT_CHAINS

// The least seconds in which this many threads each do work(thread).
template <class Work>
double seconds_of(int num_threads, const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    parallel_for(num_threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) work(i);
    });
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

MachineLimits measure() {
  MachineLimits limits;
  limits.num_threads = num_threads();
  const int n = limits.num_threads;
  constexpr std::size_t all = std::size_t(1) << 26;
  const std::size_t piece = all / std::size_t(n) / 64 * 64;
  const Storage from = Storage::allocate(all), to = Storage::allocate(all);
  std::memset(from.data(), 1, all);
  std::memset(to.data(), 1, all);
  auto at = [&](const Storage& storage, std::int64_t i) {
    return static_cast<char*>(storage.data()) + std::size_t(i) * piece;
  };
  const double copied =
      seconds_of(n, [&](std::int64_t i) { std::memcpy(at(to, i), at(from, i), piece); });
  limits.copy = 2 * double(piece) * n / copied;
  const bool is_wide = __builtin_cpu_supports("avx512f");
  const double multiplied =
      seconds_of(n, [&](std::int64_t) { is_wide ? wide_products() : products(); });
  limits.flops32 = 2.0 * (is_wide ? 16 : 8) * chains * steps * n / multiplied;
  limits.flops64 = limits.flops32 / 2;
  return limits;
}

}  // namespace

const MachineLimits& machine_limits() {
  static const MachineLimits limits = measure();
  return limits;
}

}  // namespace plait
