// Quicksort of numbers by vectors of 64 bytes, where the processor has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plait {

// Whether this processor can; PLAIT_MAX_ISA=avx2 forbids it.
bool has_vector_sort();

enum class Threads { one, all };

// Sorts keys; all threads share what is long.
void vector_sort(std::span<std::uint32_t> keys, Threads threads);
void vector_sort(std::span<std::uint64_t> keys, Threads threads);

// Puts at each of these places, which rise, what is there after sorting; before it lies nothing
// that is greater, and behind it nothing that is less.
void vector_select(std::span<std::uint32_t> keys, std::span<const std::int64_t> places);
void vector_select(std::span<std::uint64_t> keys, std::span<const std::int64_t> places);

// The keys of order_key (radix_sort.h), inverted if descending, of numbers from src on, and the
// numbers of keys. NaN becomes one NaN, and -0.0 becomes 0.0. src may be dst.
struct KeysOf {
  enum class Numbers { without_sign, with_sign, floating } numbers;
  bool descending;
};
void write_keys(const void* src, std::span<std::uint32_t> keys, KeysOf of);
void write_keys(const void* src, std::span<std::uint64_t> keys, KeysOf of);
void write_numbers(std::span<const std::uint32_t> keys, void* dst, KeysOf of);
void write_numbers(std::span<const std::uint64_t> keys, void* dst, KeysOf of);

// Whether any of these floating-point numbers is NaN or -0.0.
bool have_unlike_equals(const float* numbers, std::int64_t n);
bool have_unlike_equals(const double* numbers, std::int64_t n);

}  // namespace plait
