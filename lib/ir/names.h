// Names in the text of a jaxpr, and the vars for which they stand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <algorithm>
#include <unordered_map>

namespace plait {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '\''; }

// The names that print writes, "a", ..., "z", "aa", ..., are handled as numbers.
class Names {
 public:
  std::optional<Var> find(std::string_view name) const {
    const std::size_t number = number_of(name);
    if (number < numbered_.size() && numbered_[number] >= 0) return Var{numbered_[number]};
    const auto found = others_.find(name);
    return found == others_.end() ? std::nullopt : std::optional(found->second);
  }
  // False where the name already stands for another var.
  bool bind(std::string_view name, Var var) {
    if (find(name)) return false;
    const std::size_t number = number_of(name);
    ++count_;
    if (number >= 64 + 4 * count_) return others_.emplace(name, var).second;
    if (number >= numbered_.size())
      numbered_.resize(std::max(number + 1, 2 * numbered_.size()), -1);
    numbered_[number] = var.id;
    return true;
  }

 private:
  static std::size_t number_of(std::string_view name) {
    std::size_t number = 0;
    if (name.size() > 8) return std::size_t(-1);
    for (char c : name) {
      if (c < 'a' || c > 'z') return std::size_t(-1);
      number = number * 26 + std::size_t(c - 'a' + 1);
    }
    return number;
  }
  std::vector<int> numbered_;
  std::unordered_map<std::string_view, Var> others_;
  std::size_t count_ = 0;
};

}  // namespace plait
