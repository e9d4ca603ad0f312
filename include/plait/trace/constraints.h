// What a user declares about named sizes: "b > 0", "t % 8 == 0", "0 < n <= m".
//
// "t % 8 == 0" replaces t by the expression 8*t_8 of an unconstrained size t_8, so that t//8 and t
// are sizes of which one divides the other wherever they occur. Every other constraint is an order.
// It decides comparisons while the program is traced, is part of the program ("where 1<=b"), and is
// checked at each call. So are the orders and multiples that the trace itself needed (see
// trace/multiples.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/sizes.h>

#include <initializer_list>

namespace plait {

class Constraints {
 public:
  Constraints() = default;
  // Texts of comparisons (<=, <, >=, >, ==), chained as in Python. ValueError names a text that is
  // not a comparison, or that no sizes satisfy.
  explicit Constraints(std::span<const std::string> texts);
  Constraints(std::initializer_list<std::string> texts)
      : Constraints(std::span<const std::string>(texts.begin(), texts.size())) {}

  bool empty() const { return multiples_.empty() && orders_.empty(); }
  // These constraints and further ones.
  Constraints with(std::span<const std::string> texts) const;
  // Maps a size that is a multiple to its expression: t to 8*t_8.
  SizeSubstitution multiples() const { return multiples_; }
  // The orders, in terms of the sizes that multiples() gives.
  std::span<const Constraint> orders() const { return orders_; }
  // ValueError names a size that is not in the list.
  void require_sizes(std::span<const Dim> sizes, std::string_view function) const;

 private:
  std::vector<std::string> texts_;
  std::vector<std::pair<Dim, Dim>> multiples_;
  std::vector<Constraint> orders_;
};

// As a user would write it: "t >= 8", "n%4 == 0", "m <= n".
std::string to_string(const Constraint& constraint);

// The function, traced with these orders known; they become constraints of its program. ShapeError
// where sizes that are numbers violate one.
Function with_orders(Function function, std::vector<Constraint> orders);

// trace_with_specs with sizes that satisfy constraints.
Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual, std::string_view name,
                        const Constraints& constraints);

// The values of a program's sizes at which its inputs have these avals, checked against its
// constraints. ShapeError names the function, the argument, the axis and what does not hold.
std::vector<std::pair<Dim, Dim>> solve_program_sizes(const Jaxpr& jaxpr,
                                                     std::span<const Aval> inputs,
                                                     std::string_view function);

// The size of a program, and its value, for a value of the size that the user named: t itself, or
// t_8. ValueError when the program has neither, ShapeError when the value is not a multiple.
std::pair<Dim, Dim> size_value(std::span<const Dim> sizes, const std::string& name, Dim value,
                               std::string_view function);
// The size t of which t_8 is a part, with the factor; nullopt for others.
std::optional<std::pair<std::string, std::int64_t>> whole_of(Dim part);

}  // namespace plait
