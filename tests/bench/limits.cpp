// bench_limits: what the machine can do at most, in lines "name value", by one thread and by
// several.
//
//   bench_limits THREADS [copy] [fma]
//
// copy: bytes a second that copies read and write; fma: products and sums a second, in registers.
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t piece = std::size_t{1}
                              << 26;  // bytes that a thread copies: no cache holds them

// The least seconds in which so many threads each do `work(thread)`.
double seconds(int threads, const std::function<void(int)>& work) {
  double best = 1e9;
  for (int round = 0; round < 15; ++round) {
    std::vector<double> times(static_cast<std::size_t>(threads));
    auto run = [&](int i) {
      const auto start = std::chrono::steady_clock::now();
      work(i);
      const auto end = std::chrono::steady_clock::now();
      times[static_cast<std::size_t>(i)] = std::chrono::duration<double>(end - start).count();
    };
    std::vector<std::thread> team;
    for (int i = 1; i < threads; ++i) team.emplace_back(run, i);
    run(0);
    for (std::thread& thread : team) thread.join();
    best = std::min(best, *std::max_element(times.begin(), times.end()));
  }
  return best;
}

__attribute__((target("avx2"))) void stream(char* to, const char* from) {
  for (std::size_t i = 0; i < piece; i += 32) {
    const auto x = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), x);
  }
  _mm_sfence();
}

using Block = std::unique_ptr<char, decltype(&std::free)>;

Block block() {
  Block made(static_cast<char*>(std::aligned_alloc(64, piece)), std::free);
  std::memset(made.get(), 1, piece);
  return made;
}

double copied(int threads) {
  std::vector<Block> from, to;
  for (int i = 0; i < threads; ++i) {
    from.push_back(block());
    to.push_back(block());
  }
  auto at = [](std::vector<Block>& blocks, int i) {
    return blocks[static_cast<std::size_t>(i)].get();
  };
  const double best =
      std::min(seconds(threads, [&](int i) { std::memcpy(at(to, i), at(from, i), piece); }),
               seconds(threads, [&](int i) { stream(at(to, i), at(from, i)); }));
  return 2 * double(piece) * threads / best;
}

constexpr int chains = 12, steps = 1'000'000;  // chains: as many as the units can hold in flight

// Sums of products in registers, which must not be optimised away.
#define PLAIT_CHAINS(name, isa, vector, set, fma)                       \
  __attribute__((target(isa))) void name(int) {                         \
    vector sum[chains];                                                 \
    const vector x = set(0.5f), y = set(1.0f);                          \
    for (vector & s : sum) s = set(0.25f);                              \
    for (int step = 0; step < steps; ++step) {                          \
      _Pragma("GCC unroll 12") for (vector & s : sum) s = fma(s, x, y); \
    }                                                                   \
    for (vector & s : sum) asm volatile("" ::"m"(s));                   \
  }
PLAIT_CHAINS(wide_single, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
PLAIT_CHAINS(wide_double, "avx512f", __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
PLAIT_CHAINS(single, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
PLAIT_CHAINS(twofold, "avx2,fma", __m256d, _mm256_set1_pd, _mm256_fmadd_pd)

double fused(int threads, bool doubles) {
  const bool wide = __builtin_cpu_supports("avx512f");
  const double lanes = (wide ? 16 : 8) / (doubles ? 2 : 1);
  const auto work = wide ? (doubles ? wide_double : wide_single) : (doubles ? twofold : single);
  return 2 * lanes * chains * double(steps) * threads / seconds(threads, work);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "copy") == 0) {
      const double one = copied(1);
      std::printf("copy_one %.6g\ncopy %.6g\n", one, std::max(one, copied(threads)));
    } else {
      std::printf("fma32_one %.6g\nfma32 %.6g\n", fused(1, false), fused(threads, false));
      std::printf("fma64_one %.6g\nfma64 %.6g\n", fused(1, true), fused(threads, true));
    }
  }
}
