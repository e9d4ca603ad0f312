// Measures each constant by a loop that does little else. Each is the least of a few rounds,
// because other processes may use the core meanwhile. An empty statement of assembly between
// operations keeps the compiler from joining or removing them.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/machine.h"

#include <plait/base/math.h>
#include <plait/base/pack.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace plait::codegen {
namespace {

constexpr int steps = 4000, unrolled = 8;

double now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The least nanoseconds of each of `count` operations that work() does.
template <class Work>
double each_of(double count, int rounds, const Work& work) {
  double best = 1e18;
  for (int round = 0; round < rounds; ++round) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best / count;
}
template <class Work>
double each_of(const Work& work) {
  constexpr int rounds = 5;
  return each_of(double(steps) * unrolled, rounds, work);
}

// Operations that wait for each other.
template <class T, class Operation>
double latency_of(T start, const Operation& operation) {
  return each_of([&] {
    T x = start;
    for (int step = 0; step < steps; ++step)
#pragma GCC unroll 8
      for (int i = 0; i < unrolled; ++i) {
        x = operation(x);
        if constexpr (std::is_integral_v<T>)
          asm volatile("" : "+r"(x));
        else
          asm volatile("" : "+x"(x));
      }
  });
}

// Operations that do not: by name, since elements of an array would not stay in registers. Two
// kinds in turn, because some processors have units for each.
#define PLAIT_INDEPENDENT(start, one, other)              \
  auto a = start, b = a, c = a, d = a, e = a, f = a;      \
  auto g = a, h = a, i = a, j = a, k = a, l = a;          \
  for (int step = 0; step < steps; ++step) {              \
    one(a), other(b), one(c), other(d), one(e), other(f); \
    one(g), other(h), one(i), other(j), one(k), other(l); \
  }
constexpr double independent = double(steps) * 12;

template <class T, class One, class Other>
double throughput_of(T start, const One& one, const Other& other) {
  const auto apply = [](const auto& operation) {
    return [&](T& x) __attribute__((always_inline)) {
      x = operation(x);
      asm volatile("" : "+x"(x));
    };
  };
  const auto first = apply(one);
  const auto second = apply(other);
  return each_of(independent, 5, [&] { PLAIT_INDEPENDENT(start, first, second) });
}

using Vector = VectorOf<double, 4>;
using WideVector = VectorOf<double, 8>;

// The same on the wide registers of AVX-512, for which the rest of this file is not compiled.
#define PLAIT_WIDE(name, one, other)                                                          \
  __attribute__((target("avx512f"))) void name() {                                            \
    const auto first = [](WideVector& x) __attribute__((target("avx512f"), always_inline)) {  \
      x = one;                                                                                \
      asm volatile("" : "+v"(x));                                                             \
    };                                                                                        \
    const auto second = [](WideVector& x) __attribute__((target("avx512f"), always_inline)) { \
      x = other;                                                                              \
      asm volatile("" : "+v"(x));                                                             \
    };                                                                                        \
    PLAIT_INDEPENDENT(WideVector{} + 1.5, first, second)                                      \
  }
PLAIT_WIDE(wide_arithmetic, x + 1.0, x * 0.999)
PLAIT_WIDE(wide_divisions, 2.0 / x, 2.0 / x)
#undef PLAIT_WIDE
#undef PLAIT_INDEPENDENT

// A number that goes through memory at every step.
double forwarding() {
  double memory[2] = {1, 1};
  return each_of([&] {
    double* const place = memory;
    for (int step = 0; step < steps * unrolled; ++step) {
      place[0] = place[0] + 1.0;
      asm volatile("" : : "r"(place) : "memory");
    }
  });
}

// Branches on random bits, of which half go another way than foreseen.
double misprediction() {
  const auto branches = [](std::uint64_t mask) {
    return each_of([mask] {
      std::uint64_t random = 88172645463325252U, count = 0;
      for (int step = 0; step < steps * unrolled; ++step) {
        random ^= random << 13U, random ^= random >> 7U, random ^= random << 17U;  // Marsaglia
        if ((random & mask) != 0) asm volatile("add $1, %0" : "+r"(count));
      }
      asm volatile("" : : "r"(count));
    });
  };
  return 2 * (branches(1) - branches(0));
}

double size_of_cache(int name, double otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? double(bytes) : otherwise;
}

void measure_levels(Machine& machine) {
  constexpr double most = 32e6;  // of which a core has half in no cache
  auto& levels = machine.levels;
  // The first cache holds other things too; of the others, pages that lie anywhere use some sets
  // more than others, and other cores share them.
  levels[0].bytes = 0.75 * size_of_cache(_SC_LEVEL1_DCACHE_SIZE, levels[0].bytes);
  levels[1].bytes = 0.5 * size_of_cache(_SC_LEVEL2_CACHE_SIZE, levels[1].bytes);
  levels[2].bytes = 0.5 * size_of_cache(_SC_LEVEL3_CACHE_SIZE, levels[2].bytes);
  levels[2].bytes = std::max(levels[2].bytes, levels[1].bytes);
  const auto count = std::size_t(std::min(3 * levels[2].bytes, most)) / sizeof(std::uint64_t);
  // Of small pages, as most arrays are.
  const std::unique_ptr<void, decltype(&std::free)> storage(
      std::aligned_alloc(64, count / 64 * 64 * sizeof(std::uint64_t)), std::free);
  auto* const memory = static_cast<std::uint64_t*>(storage.get());
  if (!memory) return;
  std::memset(memory, 0, count / 64 * 64 * sizeof(std::uint64_t));
  for (std::size_t level = 0; level < levels.size(); ++level) {
    // Enough that the cache before holds little of it; all, to reach memory.
    const double bytes = level == 0                  ? levels[0].bytes
                         : level + 1 < levels.size() ? 4 * levels[level - 1].bytes
                                                     : 1e18;
    const auto size = std::min(std::size_t(bytes) / sizeof(std::uint64_t), count) / 64 * 64;
    const auto sweeps = int(std::max<std::size_t>(1, 32'000 / size));
    const double swept = double(size) * sizeof(std::uint64_t) * sweeps;
    levels[level].read = 1 / each_of(swept, 6, [&] {
                           for (int sweep = 0; sweep < sweeps; ++sweep)
                             for (std::size_t i = 0; i < size; i += 16) {
                               const auto* const v = reinterpret_cast<const Vector*>(memory + i);
                               asm volatile("" : : "x"(v[0]), "x"(v[1]), "x"(v[2]), "x"(v[3]));
                             }
                         });
    // Writing as it is beside reading: what a copy takes more.
    const double copied = each_of(swept / 2, 6, [&] {
      for (int sweep = 0; sweep < sweeps; ++sweep)
        for (std::size_t i = 0; i < size / 2; i += 16) {
          const auto* const from = reinterpret_cast<const Vector*>(memory + i);
          auto* const to = reinterpret_cast<Vector*>(memory + size / 2 + i);
          to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = from[3];
          asm volatile("" : : "r"(to) : "memory");
        }
    });
    levels[level].written = 1 / std::max(copied - 1 / levels[level].read, copied / 2);
    // Where the next load goes depends on what this one gave: zeros, which only we know.
    constexpr int loads = 4000;
    constexpr double operations = 10;  // cycles from one load to the next one's address
    std::uint64_t at = 1;
    const double of_load = each_of(loads, 4, [&] {
      for (int load = 0; load < loads; ++load) {
        at = (at + memory[(at >> 33U) * size >> 31U]) * 6364136223846793005U + 1;
        asm volatile("" : "+r"(at));
      }
    });
    levels[level].latency = std::max(of_load - operations * machine.integer, machine.integer);
  }
}

struct Measured {
  Machine narrow, wide;
};

Measured measure() {
  Machine machine;
  const auto add = [](auto x) { return x + 1.0; };
  const auto multiply = [](auto x) { return x * 0.999; };
  const auto divide = [](auto x) { return 2.0 / x; };
  const auto exponential = [](auto x) { return math::exp(x - 1.0); };
  machine.integer = latency_of<std::int64_t>(1, [](std::int64_t x) { return x + 1; });
  machine.operation = throughput_of<double>(1.5, add, multiply);
  machine.vector = throughput_of<Vector>(Vector{} + 1.5, add, multiply);
  machine.division = throughput_of<double>(1.5, divide, divide);
  machine.vector_division = throughput_of<Vector>(Vector{} + 1.5, divide, divide);
  machine.addition = latency_of<double>(1.5, add);
  machine.multiply_add = latency_of<double>(1.5, [](double x) { return std::fma(x, 0.5, 1.0); });
  machine.divided = latency_of<double>(1.5, divide);
  machine.exponential = latency_of<double>(1.0, exponential) - machine.addition;
  const auto exponentials = [&](Vector x) { return exponential(Pack<double, 4>(x)).v; };
  machine.function = throughput_of<Vector>(Vector{} + 1.0, exponentials, exponentials);
  machine.forwarding = forwarding() - machine.addition;
  machine.misprediction = misprediction();
  measure_levels(machine);
  Measured measured{machine, machine};
  if (__builtin_cpu_supports("avx512f")) {
    Machine& wide = measured.wide;
    wide.vector = each_of(independent, 5, wide_arithmetic);
    wide.vector_division = each_of(independent, 5, wide_divisions);
    wide.function *= std::clamp(wide.vector / machine.vector, 1.0, 2.0);
    wide.vector_bytes = 64;
  }
  return measured;
}

}  // namespace

Machine measured_machine(int vector_bytes) {
  static const Measured measured = measure();
  return vector_bytes > measured.narrow.vector_bytes ? measured.wide : measured.narrow;
}

}  // namespace plait::codegen
