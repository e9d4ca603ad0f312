// How two programs differ, equation by equation. See inspect.h.
//
// Equations are aligned in two passes. First, by a longest common subsequence, those with the same
// text whose operands come from the same primitives; then, in each remaining gap, those of the same
// primitive. The correspondence of values follows, and so does which of the aligned equations are
// equal: a change does not make later equations differ.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/hash.h>
#include <plait/inspect/inspect.h>

#include <algorithm>
#include <ostream>

namespace plait {
namespace {

using Keys = std::vector<std::size_t>;

// The equation that defines each var; -1 for inputs.
std::vector<int> definitions(const JaxprData& jaxpr) {
  std::vector<int> result(jaxpr.avals.size(), -1);
  for (std::size_t i = 0; i < jaxpr.equations.size(); ++i)
    for (const Var& var : jaxpr.equations[i].outputs) result[std::size_t(var.id)] = int(i);
  return result;
}

Keys strong_keys(const JaxprData& jaxpr) {
  const std::vector<int> defined = definitions(jaxpr);
  Keys keys;
  for (const Equation& equation : jaxpr.equations) {
    std::size_t key =
        hash_combine(std::size_t(equation.primitive->index()), equation.params.hash());
    for (const Atom& atom : equation.inputs) {
      if (!atom.is_var()) {
        key = hash_combine(key, atom.literal().hash());
        continue;
      }
      const int from = defined[std::size_t(atom.var().id)];
      const std::size_t origin =
          from < 0 ? std::size_t(atom.var().id)
                   : std::size_t(jaxpr.equations[std::size_t(from)].primitive->index()) + 1000000;
      key = hash_combine(key, origin);
    }
    keys.push_back(key);
  }
  return keys;
}

Keys weak_keys(const JaxprData& jaxpr) {
  Keys keys;
  for (const Equation& equation : jaxpr.equations)
    keys.push_back(std::size_t(equation.primitive->index()));
  return keys;
}

struct Range {
  int begin, end;
  int size() const { return end - begin; }
};
using Pairs = std::vector<std::pair<int, int>>;

// Appends a longest common subsequence of a[first] and b[second] to pairs, in order: common ends
// first, then Myers, "An O(ND) difference algorithm and its variations" (1986). Ranges with little
// in common are abandoned, as if they had nothing in common.
void align(const Keys& a, Range first, const Keys& b, Range second, Pairs& pairs) {
  while (first.size() > 0 && second.size() > 0 &&
         a[std::size_t(first.begin)] == b[std::size_t(second.begin)])
    pairs.emplace_back(first.begin++, second.begin++);
  Pairs tail;
  while (first.size() > 0 && second.size() > 0 &&
         a[std::size_t(first.end - 1)] == b[std::size_t(second.end - 1)])
    tail.emplace_back(--first.end, --second.end);
  constexpr int most_edits = 2000;
  const int n = first.size(), m = second.size(), limit = std::min(n + m, most_edits);
  const auto same = [&](int x, int y) {
    return a[std::size_t(first.begin + x)] == b[std::size_t(second.begin + y)];
  };
  // reach[k]: how far along `first` a path on diagonal k = x - y gets; one list for each number of
  // edits.
  std::vector<std::vector<int>> history;
  std::vector<int> reach(std::size_t(2 * limit + 3), 0);
  const auto at = [&](std::vector<int>& list, int k) -> int& {
    return list[std::size_t(k + limit + 1)];
  };
  bool found = n == 0 || m == 0;
  for (int edits = 0; edits <= limit && !found; ++edits) {
    for (int k = -edits; k <= edits; k += 2) {
      const bool down = k == -edits || (k != edits && at(reach, k - 1) < at(reach, k + 1));
      int x = down ? at(reach, k + 1) : at(reach, k - 1) + 1;
      while (x < n && x - k < m && x - k >= 0 && same(x, x - k)) ++x;
      at(reach, k) = x;
      if (x >= n && x - k >= m) found = true;
    }
    history.push_back(reach);
  }
  if (n > 0 && m > 0 && found) {
    Pairs middle;
    int x = n, y = m;
    for (int edits = int(history.size()) - 1; edits >= 0; --edits) {
      const int k = x - y;
      int from_x = 0, from_y = 0;
      if (edits > 0) {
        std::vector<int>& before = history[std::size_t(edits - 1)];
        const bool down = k == -edits || (k != edits && at(before, k - 1) < at(before, k + 1));
        const int from_k = down ? k + 1 : k - 1;
        from_x = at(before, from_k);
        from_y = from_x - from_k;
      }
      while (x > from_x && y > from_y && same(x - 1, y - 1)) {
        --x, --y;
        middle.emplace_back(first.begin + x, second.begin + y);
      }
      x = from_x, y = from_y;
    }
    pairs.insert(pairs.end(), middle.rbegin(), middle.rend());
  }
  pairs.insert(pairs.end(), tail.rbegin(), tail.rend());
}

// Corresponding equations, in pairs.
Pairs aligned(const JaxprData& first, const JaxprData& second) {
  const int n = int(first.equations.size()), m = int(second.equations.size());
  Pairs exact, all;
  align(strong_keys(first), {0, n}, strong_keys(second), {0, m}, exact);
  exact.emplace_back(n, m);
  const Keys a = weak_keys(first), b = weak_keys(second);
  int x = 0, y = 0;
  for (const auto& [i, j] : exact) {
    align(a, {x, i}, b, {y, j}, all);
    all.emplace_back(i, j);
    x = i + 1, y = j + 1;
  }
  all.pop_back();
  return all;
}

// For each var of the first program, the corresponding one of the second.
using Correspondence = std::vector<int>;

bool same_atom(const Atom& a, const Atom& b, const Correspondence& seconds) {
  if (a.is_var() != b.is_var()) return false;
  return a.is_var() ? seconds[std::size_t(a.var().id)] == b.var().id : a == b;
}
bool same_atoms(std::span<const Atom> a, std::span<const Atom> b, const Correspondence& seconds) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Atom& x, const Atom& y) { return same_atom(x, y, seconds); });
}
Correspondence correspondence(const JaxprData& first, const JaxprData& second,
                              std::span<const Change> changes) {
  Correspondence seconds(first.avals.size(), -1);
  for (int i = 0; i < std::min(first.num_binders, second.num_binders); ++i)
    seconds[std::size_t(i)] = i;
  for (const Change& change : changes) {
    if (change.first < 0 || change.second < 0) continue;
    const std::vector<Var>&a = first.equations[std::size_t(change.first)].outputs,
          &b = second.equations[std::size_t(change.second)].outputs;
    for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k)
      seconds[std::size_t(a[k].id)] = b[k].id;
  }
  return seconds;
}

// --- Text ----------------------------------------------------------------------------------------

std::string text_of(const Atom& atom) {
  return atom.is_var() ? var_name(atom.var().id) : atom.literal().to_string();
}
template <class List, class Text>
std::string joined(const List& list, const char* between, const Text& text) {
  std::string result;
  for (const auto& item : list) result += (result.empty() ? "" : between) + text(item);
  return result;
}
bool is_body(const ParamValue& value) {
  return std::holds_alternative<Jaxpr>(value) || std::holds_alternative<std::vector<Jaxpr>>(value);
}
// "axis=0" without the name; a body is only mentioned.
std::string value_text(const ParamValue& value) {
  return is_body(value) ? "{...}" : Params({{"v", value}}).to_string().substr(2);
}
std::string line_of(const JaxprData& jaxpr, const Equation& equation) {
  std::string text = joined(equation.outputs, " ", [&](const Var& var) {
    return var_name(var.id) + ":" + jaxpr.aval(var).to_string();
  });
  text += " = " + std::string(equation.primitive->name());
  if (!equation.params.entries().empty())
    text += "[" +
            joined(equation.params.entries(), ", ",
                   [](const Params::Entry& entry) {
                     return entry.first + "=" + value_text(entry.second);
                   }) +
            "]";
  for (const Atom& atom : equation.inputs) text += " " + text_of(atom);
  return text + (equation.source ? "  # " + equation.source.to_string() : "");
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string result = text.empty() ? "" : indent;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += indent;
  }
  return result;
}

std::vector<Jaxpr> bodies_of(const ParamValue* value) {
  if (value)
    if (const Jaxpr* body = std::get_if<Jaxpr>(value)) return {*body};
  return value && is_body(*value) ? std::get<std::vector<Jaxpr>>(*value) : std::vector<Jaxpr>();
}

// The differences of parameters, a line for each, and those of bodies.
std::string params_text(const Params& first, const Params& second) {
  std::vector<std::string> names;
  for (const Params* params : {&first, &second})
    for (const auto& [name, value] : params->entries())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::string text;
  for (const std::string& name : names) {
    const ParamValue *a = first.find(name), *b = second.find(name);
    if (a && b && Params({{name, *a}}) == Params({{name, *b}})) continue;
    const std::vector<Jaxpr> before = bodies_of(a), after = bodies_of(b);
    if (!before.empty() && before.size() == after.size()) {
      for (std::size_t i = 0; i < before.size(); ++i)
        if (const Difference inner(before[i], after[i]); inner)
          text += "    " + name + (before.size() > 1 ? "[" + std::to_string(i) + "]" : "") + ":\n" +
                  indented(inner.to_string(), "      ");
      continue;
    }
    text += "    " + name + ": " + (a ? value_text(*a) : "absent") + " -> " +
            (b ? value_text(*b) : "absent") + "\n";
  }
  return text;
}

std::string header_of(const JaxprData& jaxpr) {
  std::string text = joined(jaxpr.sizes, " ", [](Dim size) { return size.to_string(); });
  if (!text.empty()) text += " ; ";
  return text + joined(jaxpr.input_avals(), " ", [](const Aval& aval) { return aval.to_string(); });
}

std::string changed_text(const Equation& a, const JaxprData& second, const Equation& b,
                         const Correspondence& seconds) {
  std::string text = "~ " + line_of(second, b) + "\n";
  if (!same_atoms(a.inputs, b.inputs, seconds)) {
    // An operand of the first program, under its name in the second if it has one.
    const auto name = [&](const Atom& atom) {
      const int second_id = atom.is_var() ? seconds[std::size_t(atom.var().id)] : -1;
      if (second_id >= 0) return var_name(second_id);
      return text_of(atom) + (atom.is_var() ? " of the first" : "");
    };
    text += "    operands: " + joined(a.inputs, " ", name) + " -> " +
            joined(b.inputs, " ", [](const Atom& atom) { return text_of(atom); }) + "\n";
  }
  return text + params_text(a.params, b.params);
}

}  // namespace

Difference::Difference(Jaxpr first, Jaxpr second)
    : first_(std::move(first)), second_(std::move(second)) {
  const Pairs pairs = aligned(*first_, *second_);
  int x = 0, y = 0;
  const auto add_until = [&](int i, int j) {
    while (x < i) changes_.push_back({Change::Kind::removed, x++, -1});
    while (y < j) changes_.push_back({Change::Kind::added, -1, y++});
  };
  for (const auto& [i, j] : pairs) {
    add_until(i, j);
    changes_.push_back({Change::Kind::same, x++, y++});
  }
  add_until(int(first_->equations.size()), int(second_->equations.size()));
  const Correspondence seconds = correspondence(*first_, *second_, changes_);
  for (Change& change : changes_) {
    if (change.kind != Change::Kind::same) continue;
    const Equation &a = first_->equations[std::size_t(change.first)],
                   &b = second_->equations[std::size_t(change.second)];
    if (!(a.params == b.params) || !same_atoms(a.inputs, b.inputs, seconds))
      change.kind = Change::Kind::changed;
  }
}

std::string Difference::to_string() const {
  if (is_equal()) return "";
  const Correspondence seconds = correspondence(*first_, *second_, changes_);
  std::string text;
  if (const std::string a = header_of(*first_), b = header_of(*second_); a != b)
    text += "~ inputs: " + a + " -> " + b + "\n";
  std::size_t same = 0;
  const auto leave_out = [&] {  // unchanged equations
    if (same > 0)
      text +=
          "  (" + std::to_string(same) + (same == 1 ? " equation" : " equations") + " the same)\n";
    same = 0;
  };
  for (const Change& change : changes_) {
    if (change.kind == Change::Kind::same) {
      ++same;
      continue;
    }
    leave_out();
    const Equation* a = change.first < 0 ? nullptr : &first_->equations[std::size_t(change.first)];
    const Equation* b =
        change.second < 0 ? nullptr : &second_->equations[std::size_t(change.second)];
    if (a && b)
      text += changed_text(*a, *second_, *b, seconds);
    else
      text += a ? "- " + line_of(*first_, *a) + "\n" : "+ " + line_of(*second_, *b) + "\n";
  }
  leave_out();
  if (!same_atoms(first_->outputs, second_->outputs, seconds)) {
    const auto list = [](const Jaxpr& jaxpr) {
      return joined(jaxpr->outputs, " ", [](const Atom& atom) { return text_of(atom); });
    };
    text += "~ outputs: " + list(first_) + " -> " + list(second_) + "\n";
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Difference& difference) {
  return out << difference.to_string();
}

}  // namespace plait
