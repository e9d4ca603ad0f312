// The rule kind Put: how a value that is written to a view reaches what the view shows.
//
// A primitive that shows elements of its operand, wherever it moves them, is the get of a lens. Its
// Put rule is the other half: the operand with these elements replaced (Foster et al. 2007,
// Combinators for bidirectional tree transformations).
//
//   get(put(x, value)) = value        put(x, get(x)) = x
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

struct Put {
  static constexpr auto name = "put";
  // x with value in place of the elements that a result of the equation, by its number, shows.
  // ValueError where it shows an element more than once.
  using Rule = std::function<Array(const Array& x, const Array& value, std::size_t output,
                                   const Params& params)>;
  static RuleTable<Put>& table();
};

// x with value in place of the elements that view(x) shows: any function of one array whose result
// comes from it by primitives with Put rules. MissingRuleError for another primitive.
//
//   x = put_through([](const Array& x) { return numpy::flip(numpy::transpose(x)); }, x, value);
Array put_through(const std::function<Array(const Array& x)>& view, const Array& x,
                  const Array& value);

}  // namespace plait
