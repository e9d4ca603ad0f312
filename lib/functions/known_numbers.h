// Numbers that an eager call knows, for errors about them. See known_values.h for work on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/kernels.h>
#include <plait/trace/array.h>
#include <plait/trace/trace.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace plait::functions {

// The elements of x, if they are known. What a trace reads may be another array in the next call,
// unless it is a literal.
template <class T>
std::optional<std::vector<T>> known_numbers(const Array& x) {
  if (Trace::current() && !x.as_literal()) return std::nullopt;
  const std::optional<Buffer> buffer = x.known_buffer();
  if (!buffer) return std::nullopt;
  return Array(*buffer).to_vector<T>();
}

// Whether some known number breaks a rule; false where numbers are not known.
template <class T, class Breaks>
bool any_known(const Array& x, const Breaks& breaks) {
  if (Trace::current() && !x.as_literal()) return false;
  const std::optional<Buffer> known = x.known_buffer();
  if (!known) return false;
  const Buffer buffer = Array(*known).host_buffer().dense();
  const std::int64_t n = num_elements(buffer.shape());
  bool any = false;
  visit_dtype(buffer.dtype(), [&](auto element) {
    using Element = decltype(element);
    if constexpr (!is_complex_v<Element>) {
      const auto* const numbers = static_cast<const Element*>(buffer.data());
      for (std::int64_t i = 0; i < n; ++i) any |= breaks(T(detail::Compute<Element>(numbers[i])));
    }
  });
  return any;
}

// Whether a vector is in order, with Less between neighbours; true where it is not known.
template <class Less = std::less<>>
bool may_rise(const Array& x, Less less = {}) {
  const std::optional<std::vector<double>> numbers = known_numbers<double>(x);
  return !numbers || std::is_sorted(numbers->begin(), numbers->end(), less);
}

}  // namespace plait::functions
