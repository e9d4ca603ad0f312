// Axes: the `axis` argument of NumPy's functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace plait {

struct Argument;

// None (all axes), an axis, or several; negative ones count from the end.
class Axes {
 public:
  static constexpr const char* argument_type = "int or sequence of int or None";
  static std::optional<Axes> from_argument(const Argument& argument);

  Axes() = default;                                        // None
  Axes(std::nullopt_t) {}                                  // NOLINT
  Axes(int axis) : axes_(std::in_place, {axis}) {}         // NOLINT
  Axes(std::initializer_list<int> axes) : axes_(axes) {}   // NOLINT
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}  // NOLINT
  bool is_none() const { return !axes_; }
  const std::vector<int>& list() const { return *axes_; }  // as given; must not be None
  // Ascending, from 0; all of them for None. IndexError for one outside the rank, ValueError for a
  // duplicate.
  std::vector<int> of(int rank, std::string_view function) const;

 private:
  std::optional<std::vector<int>> axes_;
};

}  // namespace plait
