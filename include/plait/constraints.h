// What a user declares of named sizes: "b > 0", "t % 8 == 0", "0 < n <= m".
//
// "t % 8 == 0" makes t the expression 8*t_8 of a size t_8 that may be any: so t//8 and t are sizes
// of which one divides the other, wherever they meet. Everything else is an order, which decides
// what the program asks while it is traced, stands in it ("where 1<=b"), and is checked at each
// call, as orders and multiples are that the trace itself needed (see trace/multiples.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/sizes.h>

#include <initializer_list>

namespace plait {

class Constraints {
 public:
  Constraints() = default;
  // Texts of comparisons (<=, <, >=, >, ==), chained as in Python. ValueError says which text is
  // none, and which holds for no sizes.
  explicit Constraints(std::span<const std::string> texts);
  Constraints(std::initializer_list<std::string> texts)
      : Constraints(std::span<const std::string>(texts.begin(), texts.size())) {}

  bool empty() const { return multiples_.empty() && orders_.empty(); }
  // These and more.
  Constraints with(std::span<const std::string> texts) const;
  // From sizes that are multiples to what they are: t to 8*t_8.
  SizeSubstitution multiples() const { return multiples_; }
  // The others, of sizes as multiples() leaves them.
  std::span<const Constraint> orders() const { return orders_; }
  // ValueError names a size that is not among these.
  void require_sizes(std::span<const Dim> sizes, std::string_view function) const;

 private:
  std::vector<std::string> texts_;
  std::vector<std::pair<Dim, Dim>> multiples_;
  std::vector<Constraint> orders_;
};

// As a user would write it: "t >= 8", "n%4 == 0", "m <= n".
std::string to_string(const Constraint& constraint);

// The function, traced with these orders known; they become constraints of its program. ShapeError
// where sizes that are numbers do not satisfy one.
Function with_orders(Function function, std::vector<Constraint> orders);

// trace_with_specs of sizes that satisfy constraints.
Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual, std::string_view name,
                        const Constraints& constraints);

// The values of a program's sizes at which its inputs have these avals, checked against its
// constraints. ShapeError names the function, the argument, the axis and what does not hold.
std::vector<std::pair<Dim, Dim>> solve_program_sizes(const Jaxpr& jaxpr,
                                                     std::span<const Aval> inputs,
                                                     std::string_view function);

// What a size of a program is for a value of the size that its user named: itself, or t_8 for t.
// ValueError when the program has neither, ShapeError when the value is no multiple.
std::pair<Dim, Dim> size_value(std::span<const Dim> sizes, const std::string& name, Dim value,
                               std::string_view function);
// The size t that a size t_8 is a part of, with the factor; none for others.
std::optional<std::pair<std::string, std::int64_t>> whole_of(Dim part);

}  // namespace plait
