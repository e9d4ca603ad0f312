// Declared constraints: their text, and their effect on specs and traces. See constraints.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/constraints.h>

#include <plait/base/argument_names.h>
#include <plait/base/size_facts.h>
#include <plait/trace/multiples.h>

#include <charconv>
#include <numeric>

namespace plait {
namespace {

struct Comparison {
  Dim left;
  std::string sign;
  Dim right;
};

[[noreturn]] void fail(const std::string& text, const std::string& reason) {
  throw ValueError("the constraint \"" + text + "\": " + reason,
                   "write comparisons of sizes, as \"b > 0\", \"t % 8 == 0\" or \"0 < n <= m\"");
}

// "0 < n <= m" as 0 < n and n <= m.
std::vector<Comparison> comparisons_of(const std::string& text) {
  std::vector<std::string> signs;
  std::vector<Dim> sides;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t at = std::min(text.find_first_of("<>=!", begin), text.size());
    try {
      sides.push_back(Dim::parse(text.substr(begin, at - begin)));
    } catch (const Error& error) {
      fail(text, error.problem());
    }
    if (at == text.size()) break;
    const std::size_t length = at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1;
    signs.push_back(text.substr(at, length));
    if (signs.back() == "=" || signs.back()[0] == '!')
      fail(text, "\"" + signs.back() + "\" at position " + std::to_string(at) +
                     " is none of <=, <, >=, >, ==");
    begin = at + length;
  }
  if (signs.empty()) fail(text, "it compares nothing");
  std::vector<Comparison> result;
  for (std::size_t i = 0; i < signs.size(); ++i)
    result.push_back({sides[i], signs[i], sides[i + 1]});
  return result;
}

// t and k for a comparison t % k == 0.
std::optional<std::pair<Dim, std::int64_t>> multiple_of(const Comparison& one) {
  if (one.sign != "==" || !(one.right == Dim(0)) || one.left.is_constant() || one.left.is_size() ||
      one.left.operation() != Dim::Operation::modulo)
    return std::nullopt;
  const auto [size, factor] = one.left.operands();
  if (!size.is_size() || !factor.is_constant() || factor.constant() < 2) return std::nullopt;
  return std::pair(size, factor.constant());
}

std::vector<Constraint> orders_of(const Comparison& one) {
  if (one.sign == "<=") return {{one.left, one.right}};
  if (one.sign == "<") return {{one.left + 1, one.right}};
  if (one.sign == ">=") return {{one.right, one.left}};
  if (one.sign == ">") return {{one.right + 1, one.left}};
  return {{one.left, one.right}, {one.right, one.left}};
}

std::vector<std::pair<Dim, Dim>> pairs_of(std::span<const Constraint> orders) {
  std::vector<std::pair<Dim, Dim>> pairs;
  for (const Constraint& order : orders) pairs.emplace_back(order.left, order.right);
  return pairs;
}

}  // namespace

Constraints::Constraints(std::span<const std::string> texts) : texts_(texts.begin(), texts.end()) {
  std::vector<std::pair<Dim, std::int64_t>> factors;
  std::vector<std::pair<Comparison, std::string>> others;
  for (const std::string& text : texts)
    for (Comparison& one : comparisons_of(text)) {
      const auto multiple = multiple_of(one);
      if (!multiple) {
        others.emplace_back(std::move(one), text);
        continue;
      }
      const Dim size = multiple->first;
      const auto known = std::find_if(factors.begin(), factors.end(),
                                      [&](const auto& pair) { return pair.first == size; });
      if (known == factors.end())
        factors.push_back(*multiple);
      else
        known->second = std::lcm(known->second, multiple->second);
    }
  for (const auto& [size, factor] : factors) {
    const std::string part = std::string(size.name()) + "_" + std::to_string(factor);
    multiples_.emplace_back(size, factor * Dim::size(part));
  }
  for (const auto& [one, text] : others)
    for (const Constraint& order : orders_of(one)) {
      const Constraint now{order.left.substitute(multiples_), order.right.substitute(multiples_)};
      const std::optional<bool> decided = less_equal(now.left, now.right);
      if (decided == false) fail(text, "no sizes satisfy it");
      if (!decided) orders_.push_back(now);
    }
}

Constraints Constraints::with(std::span<const std::string> texts) const {
  std::vector<std::string> all = texts_;
  all.insert(all.end(), texts.begin(), texts.end());
  return Constraints(all);
}

void Constraints::require_sizes(std::span<const Dim> sizes, std::string_view function) const {
  std::vector<Dim> used;
  for (const auto& [size, whole] : multiples_) used.push_back(size);
  for (const Constraint& order : orders_) collect_sizes(Shape{order.left, order.right}, used);
  for (Dim size : used) {
    const bool is_part = std::any_of(multiples_.begin(), multiples_.end(), [&](const auto& pair) {
      return pair.second.sizes()[0] == size;
    });
    if (is_part || std::find(sizes.begin(), sizes.end(), size) != sizes.end()) continue;
    std::string names;
    for (Dim other : sizes) names += (names.empty() ? "" : ", ") + other.to_string();
    throw ValueError(std::string(function) + ": constraints speak of the size " + size.to_string() +
                         ", which no spec names",
                     "the specs' sizes are " + (names.empty() ? "none" : names));
  }
}

std::string to_string(const Constraint& constraint) {
  const auto [left, right] = constraint;
  const bool is_modulo =
      !left.is_constant() && !left.is_size() && left.operation() == Dim::Operation::modulo;
  if (is_modulo && right == Dim(0)) return left.to_string() + " == 0";
  if (left.is_constant()) return right.to_string() + " >= " + left.to_string();
  return left.to_string() + " <= " + right.to_string();
}

Function with_orders(Function function, std::vector<Constraint> orders) {
  if (orders.empty()) return function;
  return [function = std::move(function),
          orders = std::move(orders)](std::span<const Array> inputs) {
    for (const Constraint& order : orders)
      require_less_equal(order.left, order.right, [&] {
        return ShapeError("the sizes of the call do not satisfy the constraint " + to_string(order),
                          "call it with sizes that satisfy this");
      });
    const SizeFacts facts(pairs_of(orders));
    return function(inputs);
  };
}

// trace_with_specs once; naming receives the names of the specs' sizes.
static Traced trace_once(const Function& function, std::span<const Spec> specs,
                         std::span<const std::optional<Aval>> actual, std::string_view name,
                         const Constraints& constraints, SizeNaming& renamed) {
  std::vector<Dim> taken(sizes_in_scope().begin(), sizes_in_scope().end()), named, sizes;
  for (const std::optional<Aval>& aval : actual)
    if (aval) collect_sizes(aval->shape, taken);
  for (const Spec& spec : specs) spec.collect_sizes(named);
  constraints.require_sizes(named, name);
  auto rename = [&](Dim size) {
    sizes.push_back(fresh_size(size, taken));
    taken.push_back(sizes.back());
    return std::pair(size, sizes.back());
  };
  std::vector<std::pair<Dim, Dim>> parts;  // t_8 to t_8', where that name is taken
  for (Dim size : named) {
    const auto multiple =
        std::find_if(constraints.multiples().begin(), constraints.multiples().end(),
                     [&](const auto& pair) { return pair.first == size; });
    if (multiple == constraints.multiples().end()) {
      renamed.push_back(rename(size));
      continue;
    }
    parts.push_back(rename(multiple->second.sizes()[0]));
    renamed.emplace_back(size, multiple->second.substitute({&parts.back(), 1}));
  }
  const SizesInErrors in_errors(size_multiples(renamed));
  std::vector<Constraint> orders;
  std::vector<std::pair<Dim, Dim>> all = renamed;
  all.insert(all.end(), parts.begin(), parts.end());
  for (const Constraint& order : constraints.orders())
    orders.push_back({order.left.substitute(all), order.right.substitute(all)});
  std::vector<Aval> avals;
  for (std::size_t i = 0; i < specs.size(); ++i)
    avals.push_back(specs[i].substitute(renamed).resolve(
        i < actual.size() ? actual[i] : std::nullopt,
        std::string(name) + ": " + ArgumentNames::of(i) + ": "));
  return make_jaxpr(with_orders(function, std::move(orders)), avals, name, std::move(sizes));
}

Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual, std::string_view name,
                        const Constraints& constraints) {
  std::optional<Traced> traced;
  trace_with_multiples(constraints, [&](const Constraints& known, SizeNaming& naming) {
    traced = trace_once(function, specs, actual, name, known, naming);
  });
  return std::move(*traced);
}

Traced trace_with_specs(const Function& function, std::span<const Spec> specs,
                        std::span<const std::optional<Aval>> actual, std::string_view name) {
  return trace_with_specs(function, specs, actual, name, {});
}

std::optional<std::pair<std::string, std::int64_t>> whole_of(Dim part) {
  if (!part.is_size()) return std::nullopt;
  const std::string_view name = part.name();
  const std::size_t line = name.rfind('_'), end = name.find('\'', line + 1);
  if (line == std::string_view::npos || line == 0) return std::nullopt;
  const char *first = name.data() + line + 1, *last = name.data() + std::min(end, name.size());
  std::int64_t factor = 0;
  const auto [stop, error] = std::from_chars(first, last, factor);
  if (error != std::errc() || stop != last || factor < 2) return std::nullopt;
  return std::pair(
      std::string(name.substr(0, line)) + std::string(name.substr(std::min(end, name.size()))),
      factor);
}

std::pair<Dim, Dim> size_value(std::span<const Dim> sizes, const std::string& name, Dim value,
                               std::string_view function) {
  for (Dim size : sizes)
    if (size.name() == name) return {size, value};
  for (Dim size : sizes) {
    const auto whole = whole_of(size);
    if (!whole || whole->first != name) continue;
    const Dim part = floor_divide(value, whole->second);
    if (!(part * whole->second == value))
      throw ShapeError(std::string(function) + ": the size " + name + " is " + value.to_string() +
                           ", and the program needs " + name + " % " +
                           std::to_string(whole->second) + " == 0",
                       "give a multiple of " + std::to_string(whole->second));
    return {size, part};
  }
  throw ValueError("the program has no size named '" + name + "'", "name one of its sizes");
}

}  // namespace plait
