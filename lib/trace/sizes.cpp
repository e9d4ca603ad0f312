// Specs, the values of named sizes, and instantiated programs. See sizes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/constraints.h>

#include <plait/base/argument_names.h>
#include <plait/base/size_multiples.h>
#include <plait/trace/accepts.h>
#include <plait/trace/multiples.h>

#include <algorithm>

#include "ir/splice.h"
#include "trace/size_scope.h"

namespace plait {
namespace {

thread_local std::vector<Dim> scope;

bool contains(std::span<const Dim> list, Dim dim) {
  return std::find(list.begin(), list.end(), dim) != list.end();
}

[[noreturn]] void fail_spec(std::string_view text, const std::string& reason) {
  throw ValueError("the spec \"" + std::string(text) + "\": " + reason,
                   "write sizes as \"n d\", \"2*n+1\", \"n+m\", \"_\" for one taken from the call, "
                   "and a dtype as \"i32[n d]\"");
}

}  // namespace

// --- Specs ---------------------------------------------------------------------------------------

Spec::Spec(std::string_view text) : dims_(std::in_place) {
  std::size_t begin = 0, end = text.size();
  auto trim = [&] {
    while (begin < end && text[begin] == ' ') ++begin;
    while (begin < end && text[end - 1] == ' ') --end;
  };
  trim();
  if (const std::size_t open = text.find('['); open != std::string_view::npos) {
    const std::string_view name = text.substr(begin, open - begin);
    dtype_ = dtype_from_name(name);
    if (!dtype_)
      fail_spec(text,
                "\"" + std::string(name) + "\" is no dtype, at position " + std::to_string(begin));
    if (text[end - 1] != ']')
      fail_spec(text, "\"]\" is expected at position " + std::to_string(end));
    begin = open + 1;
    --end;
    trim();
  } else if (dtype_from_name(text.substr(begin, end - begin))) {
    fail_spec(text, "a dtype alone; a scalar of it is \"" +
                        std::string(text.substr(begin, end - begin)) + "[]\"");
  }
  while (begin < end) {
    // A size ends at a space or comma outside parentheses.
    std::size_t at = begin;
    for (int depth = 0; at < end && (depth > 0 || (text[at] != ' ' && text[at] != ',')); ++at)
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    const std::string_view size = text.substr(begin, at - begin);
    if (size == "_") {
      dims_->push_back(std::nullopt);
    } else {
      try {
        dims_->push_back(Dim::parse(size));
      } catch (const Error& error) {
        fail_spec(text, "at position " + std::to_string(begin) + ", " + error.problem());
      }
      if (less_equal(0, *dims_->back()) == false)
        fail_spec(text, "the size at position " + std::to_string(begin) + " is negative");
    }
    begin = at;
    while (begin < end && text[begin] == ' ') ++begin;
    if (begin < end && text[begin] == ',') {
      ++begin;
      while (begin < end && text[begin] == ' ') ++begin;
      if (begin == end) fail_spec(text, "a size is expected at position " + std::to_string(begin));
    }
  }
}

Spec::Spec(const Aval& aval)
    : dtype_(aval.dtype),
      dims_(std::in_place, aval.shape.begin(), aval.shape.end()),
      weak_(aval.weak) {}

Aval Spec::resolve(const std::optional<Aval>& actual, const std::string& where) const {
  if (!dims_) {
    if (!actual)
      throw ValueError(where + "a spec of " + std::string(none_text()) +
                           " takes all from the call, and there is no value here",
                       "give a value, or a spec such as \"n d\"");
    return *actual;
  }
  if (actual && actual->rank() != int(dims_->size()))
    throw ShapeError(where + "the spec \"" + to_string() + "\" has " +
                         std::to_string(dims_->size()) + " dimensions, and the value has shape (" +
                         actual->shape.to_string() + ")",
                     "write one size for each axis");
  if (actual && dtype_ && *dtype_ != actual->dtype)
    throw DtypeError(where + "the spec \"" + to_string() + "\" says " +
                         std::string(name_of(*dtype_)) + ", and the value is " +
                         std::string(name_of(actual->dtype)),
                     "convert the value with astype, or say its dtype");
  Aval aval{{}, dtype_.value_or(default_float()), weak_};
  if (actual) aval.dtype = actual->dtype, aval.weak = actual->weak;
  for (std::size_t i = 0; i < dims_->size(); ++i) {
    if (!(*dims_)[i] && !actual)
      throw ValueError(where + "the spec \"" + to_string() + "\" takes axis " + std::to_string(i) +
                           " from the call, and there is no value here",
                       "write a size in place of \"_\"");
    aval.shape.push_back((*dims_)[i] ? *(*dims_)[i] : actual->shape[int(i)]);
  }
  return aval;
}

void Spec::collect_sizes(std::vector<Dim>& sizes) const {
  if (!dims_) return;
  for (const std::optional<Dim>& dim : *dims_)
    if (dim) plait::collect_sizes(Shape{*dim}, sizes);
}

Spec Spec::substitute(SizeSubstitution replacements) const {
  Spec result = *this;
  if (result.dims_)
    for (std::optional<Dim>& dim : *result.dims_)
      if (dim) dim = dim->substitute(replacements);
  return result;
}

std::string Spec::to_string() const {
  if (!dims_) return "None";
  std::string text;
  for (const std::optional<Dim>& dim : *dims_)
    text += (text.empty() ? "" : " ") + (dim ? dim->to_string() : "_");
  return dtype_ ? std::string(short_name_of(*dtype_)) + "[" + text + "]" : text;
}

// --- Names in scope ------------------------------------------------------------------------------

std::span<const Dim> sizes_in_scope() { return scope; }
SizeScope::SizeScope(std::span<const Dim> sizes) : previous_(scope.size()) {
  scope.insert(scope.end(), sizes.begin(), sizes.end());
}
SizeScope::~SizeScope() { scope.resize(previous_); }
void add_to_size_scope(Dim size) { scope.push_back(size); }

Dim fresh_size(Dim size, std::span<const Dim> taken) {
  std::string name(size.name());
  while (contains(taken, Dim::size(name))) name += "'";
  return Dim::size(name);
}

// --- Values --------------------------------------------------------------------------------------

namespace {

// An axis of an input: the size that it has, and that it is to have.
struct Extent {
  Dim formal, actual;
  std::size_t argument;
  int axis;

  std::string place() const {
    return ArgumentNames::of(argument) + ", axis " + std::to_string(axis);
  }
};

// dim = factor * unknown + offset once the known sizes are substituted; nullopt when dim is not
// linear in unknown.
struct Line {
  Dim factor, offset;
};
std::optional<Line> line_of(Dim dim, Dim unknown, SizeSubstitution known) {
  std::vector<std::pair<Dim, Dim>> with(known.begin(), known.end());
  with.emplace_back(unknown, 0);
  auto at = [&](Dim value) {
    with.back().second = value;
    return dim.substitute(with);
  };
  const Dim probe = Dim::size("_probe"), offset = at(0), factor = at(1) - offset;
  if (!(at(probe) == factor * probe + offset) || factor == Dim(0)) return std::nullopt;
  return Line{factor, offset};
}

std::optional<Dim> solved(const Line& line, Dim actual) {
  const Dim rest = actual - line.offset,
            value = line.factor == Dim(1) ? rest : floor_divide(rest, line.factor);
  if (!(line.factor * value == rest) || less_equal(0, value) == false) return std::nullopt;
  return value;
}

// The user's names for the sizes of a program: t, where inputs have sizes 8*t_8.
std::vector<SizeMultiple> size_multiples(std::span<const Dim> sizes, std::span<const Aval> formal) {
  std::vector<SizeMultiple> result;
  for (Dim size : sizes) {
    const auto whole = whole_of(size);
    if (!whole) continue;
    const Dim product = size * whole->second;
    const bool is_part = std::any_of(formal.begin(), formal.end(), [&](const Aval& aval) {
      return std::find(aval.shape.begin(), aval.shape.end(), product) != aval.shape.end();
    });
    if (is_part) result.push_back({std::string(size.name()), whole->first, whole->second});
  }
  return result;
}

// Values of sizes, and the extent that determined each.
struct Solution {
  std::vector<std::pair<Dim, Dim>> known;
  std::vector<Extent> origin;
};

// The extents of the inputs of a function; ShapeError where they have other ranks.
std::vector<Extent> extents_of(std::span<const Aval> formal, std::span<const Aval> actual,
                               const std::string& function) {
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (formal[i].rank() != actual[i].rank())
      throw ShapeError(function + ": " + ArgumentNames::of(i) + " has shape (" +
                           actual[i].shape.to_string() + ") where (" + formal[i].shape.to_string() +
                           ") is needed",
                       "give an array of " + std::to_string(formal[i].rank()) + " dimensions");
    for (int axis = 0; axis < formal[i].rank(); ++axis)
      extents.push_back({formal[i].shape[axis], actual[i].shape[axis], i, axis});
  }
  return extents;
}

// Solves for one size after the other, where an extent has but one that is unknown; then every
// extent has to agree.
class SizeSolver {
 public:
  SizeSolver(std::span<const Dim> sizes, const std::string& function)
      : sizes_(sizes), function_(function) {}

  Solution solve(std::span<const Extent> extents) {
    // An extent that is a size tells its value best, also in errors.
    for (const Extent& extent : extents)
      if (extent.formal.is_size()) learn(extent);
    for (bool progress = true; progress;) {
      progress = false;
      for (const Extent& extent : extents) progress |= learn(extent);
    }
    for (const Extent& extent : extents) check(extent);
    return std::move(solution_);
  }

 private:
  std::vector<Dim> unknowns(Dim dim) const {
    std::vector<Dim> result;
    for (Dim size : sizes_of(dim))
      if (contains(sizes_, size) && !is_known(size)) result.push_back(size);
    return result;
  }
  bool is_known(Dim size) const {
    return std::any_of(solution_.known.begin(), solution_.known.end(),
                       [&](const auto& pair) { return pair.first == size; });
  }
  static std::vector<Dim> sizes_of(Dim dim) {
    return dim.is_constant() ? std::vector<Dim>() : dim.sizes();
  }

  // Whether the extent tells the value of a size.
  bool learn(const Extent& extent) {
    const std::vector<Dim> unknown = unknowns(extent.formal);
    if (unknown.size() != 1) return false;
    const std::optional<Line> line = line_of(extent.formal, unknown[0], solution_.known);
    const std::optional<Dim> value = line ? solved(*line, extent.actual) : std::nullopt;
    if (!value) return false;
    solution_.known.emplace_back(unknown[0], *value);
    solution_.origin.push_back(extent);
    return true;
  }

  // An extent with several unknown sizes tells nothing, and may be anything.
  void check(const Extent& extent) const {
    const std::vector<Dim> unknown = unknowns(extent.formal);
    if (unknown.size() == 1)
      check_solvable(extent, unknown[0]);
    else if (unknown.empty())
      check_equal(extent);
  }

  void check_solvable(const Extent& extent, Dim unknown) const {
    const std::optional<Line> line = line_of(extent.formal, unknown, solution_.known);
    if (!line) return;
    ask_multiple(extent.actual - line->offset, line->factor);
    if (line->offset == Dim(0) && line->factor.is_constant())
      throw ShapeError(has_size(extent) + ", where " + extent.formal.to_string() +
                           ", a multiple of " + line->factor.to_string() + ", is needed",
                       "give an array of a size that " + line->factor.to_string() + " divides");
    throw ShapeError(has_size(extent) + ", and no " + unknown.to_string() + " makes " +
                         extent.formal.to_string() + " that",
                     "give an array of a size that fits");
  }

  void check_equal(const Extent& extent) const {
    const Dim expected = extent.formal.substitute(solution_.known);
    if (expected == extent.actual) return;
    const std::string formal = extent.formal.is_constant() ? "" : extent.formal.to_string() + " = ";
    const std::string why = origins_of(extent.formal);
    throw ShapeError(
        has_size(extent) + ", where " + formal + expected.to_string() + " is needed" + why,
        why.empty() ? "give an array of that size"
                    : "make the sizes agree, or give them different names");
  }

  std::string has_size(const Extent& extent) const {
    return function_ + ": " + extent.place() + " has size " + extent.actual.to_string();
  }
  // What told the sizes of an expression: ": n is 3 in argument 0, axis 0, and m is ...".
  std::string origins_of(Dim dim) const {
    std::string text;
    for (std::size_t i = 0; i < solution_.known.size(); ++i) {
      const auto& [size, value] = solution_.known[i];
      if (contains(sizes_of(dim), size))
        text += (text.empty() ? ": " : ", and ") + size.to_string() + " is " + value.to_string() +
                " in " + solution_.origin[i].place();
    }
    return text;
  }

  const std::span<const Dim> sizes_;
  const std::string& function_;
  Solution solution_;
};

Solution solution_of(std::span<const Dim> sizes, std::span<const Aval> formal,
                     std::span<const Aval> actual, std::string_view function) {
  const std::string name(function);
  const std::vector<Extent> extents = extents_of(formal, actual, name);
  const SizesInErrors in_errors(size_multiples(sizes, formal));
  return SizeSolver(sizes, name).solve(extents);
}

}  // namespace

bool accepts(const Aval& formal, const Aval& actual) {
  if (formal == actual) return true;
  if (formal.dtype != actual.dtype || formal.weak != actual.weak || formal.rank() != actual.rank())
    return false;
  for (int axis = 0; axis < formal.rank(); ++axis)
    if (formal.shape[axis].is_constant() && !(formal.shape[axis] == actual.shape[axis]))
      return false;
  return true;
}

std::vector<std::pair<Dim, Dim>> solve_sizes(std::span<const Dim> sizes,
                                             std::span<const Aval> formal,
                                             std::span<const Aval> actual,
                                             std::string_view function) {
  return solution_of(sizes, formal, actual, function).known;
}

std::vector<std::pair<Dim, Dim>> solve_program_sizes(const Jaxpr& jaxpr,
                                                     std::span<const Aval> inputs,
                                                     std::string_view function) {
  const auto [known, origin] = solution_of(jaxpr->sizes, jaxpr->input_avals(), inputs, function);
  const std::vector<SizeMultiple> words = size_multiples(jaxpr->sizes, jaxpr->input_avals());
  auto unit_of = [&](Dim size) {
    for (const SizeMultiple& word : words)
      if (word.part == size.name()) return word.factor;
    return std::int64_t(1);
  };
  for (const Constraint& constraint : jaxpr->constraints) {
    const Dim left = constraint.left.substitute(known), right = constraint.right.substitute(known);
    if (less_equal(left, right) != false) continue;
    std::vector<Dim> used;
    collect_sizes(Shape{constraint.left, constraint.right}, used);
    std::string why;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto [size, value] = known[i];
      if (!contains(used, size)) continue;
      const std::int64_t unit = unit_of(size);
      why += (why.empty() ? ", where " : ", and ") + (size * unit).to_string() + " is " +
             (value * unit).to_string() + " in " + origin[i].place();
    }
    const SizesInErrors in_errors(words);
    throw ShapeError(std::string(function) + ": " + to_string(constraint) + " is needed" + why,
                     "give arrays of sizes that satisfy this");
  }
  return known;
}

namespace {

struct Interval {
  Dim low, high;
};

bool is_known_nonnegative(Dim dim) { return less_equal(0, dim).value_or(false); }

Interval interval_of(Dim dim, SizeSubstitution bounds) {
  using Operation = Dim::Operation;
  if (dim.is_constant()) return {dim, dim};
  if (dim.is_size()) {
    for (const auto& [size, bound] : bounds)
      if (size == dim) return {0, bound};
    return {dim, dim};
  }
  const auto [left, right] = dim.operands();
  const Interval a = interval_of(left, bounds), b = interval_of(right, bounds);
  auto corners = [](Dim p, Dim q, Dim r, Dim s) {
    return Interval{minimum(minimum(p, q), minimum(r, s)), maximum(maximum(p, q), maximum(r, s))};
  };
  switch (dim.operation()) {
    case Operation::add:
      return {a.low + b.low, a.high + b.high};
    case Operation::multiply:
      if (is_known_nonnegative(a.low) && is_known_nonnegative(b.low))
        return {a.low * b.low, a.high * b.high};
      return corners(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
    case Operation::minimum:
      return {minimum(a.low, b.low), minimum(a.high, b.high)};
    case Operation::maximum:
      return {maximum(a.low, b.low), maximum(a.high, b.high)};
    case Operation::modulo:  // of a divisor that is at least 1
      if (is_known_nonnegative(a.low)) return {0, minimum(a.high, maximum(b.high - 1, 0))};
      return {0, maximum(b.high - 1, 0)};
    default: {  // floor division by at least 1
      const Dim least = maximum(b.low, 1), most = maximum(b.high, 1);
      return corners(floor_divide(a.low, least), floor_divide(a.low, most),
                     floor_divide(a.high, least), floor_divide(a.high, most));
    }
  }
}

}  // namespace

Dim largest(Dim dim, SizeSubstitution bounds) {
  if (dim.is_constant()) return dim;
  const Dim high = interval_of(dim, bounds).high, at_bounds = dim.substitute(bounds);
  if (high == at_bounds) return maximum(high, 0);
  // n - n//2: the extremes of the operands alone give too large a value. Where the expression
  // provably does not fall, the upper bounds give the largest value.
  std::vector<std::pair<Dim, Dim>> below;
  for (const auto& [size, bound] : bounds)
    below.emplace_back(size, bound - Dim::size("_below_" + std::string(size.name())));
  if (less_equal(dim.substitute(below), at_bounds).value_or(false)) return maximum(at_bounds, 0);
  return maximum(high, 0);
}

Jaxpr with_sizes(const Jaxpr& jaxpr, const std::vector<Dim>& sizes) {
  if (jaxpr->sizes == sizes) return jaxpr;
  Builder builder;
  std::vector<Atom> inputs;
  for (const Aval& aval : jaxpr->input_avals()) inputs.push_back(builder.add_binder(aval));
  return builder.close(splice(builder, jaxpr, std::move(inputs)), sizes);
}

Jaxpr instantiate(const Jaxpr& jaxpr, const std::map<std::string, Dim>& sizes) {
  const SizesInErrors in_errors(size_multiples(jaxpr->sizes, jaxpr->input_avals()));
  std::vector<std::pair<Dim, Dim>> replacements;
  for (const auto& [name, value] : sizes) {
    if (less_equal(0, value) == false)
      throw ValueError("instantiate: the size " + name + " is " + value.to_string(),
                       "give a size of 0 or more");
    replacements.push_back(size_value(jaxpr->sizes, name, value, "instantiate"));
  }
  return instantiate(jaxpr, replacements);
}

namespace {
struct Instantiated {
  using Result = Jaxpr;
  std::vector<Dim> sizes;
  bool operator==(const Instantiated&) const = default;
};
}  // namespace

Jaxpr instantiate_for(const Jaxpr& jaxpr, std::span<const Aval> inputs) {
  if (jaxpr->sizes.empty()) return jaxpr;
  const std::vector<std::pair<Dim, Dim>> values = solve_program_sizes(jaxpr, inputs, "the program");
  // A rewrite runs the program on its own avals, whose sizes stay, including those that no input
  // determines.
  const bool same = std::all_of(values.begin(), values.end(),
                                [](const auto& pair) { return pair.first == pair.second; });
  if (same && Trace::current()) return jaxpr;
  std::vector<Dim> sizes;
  for (Dim size : jaxpr->sizes) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& pair) { return pair.first == size; });
    if (found == values.end())
      throw ValueError("no argument tells the size " + size.to_string() + " of the program",
                       "instantiate the program with a value for it first");
    sizes.push_back(found->second);
  }
  return *jaxpr->memo.get(Instantiated{std::move(sizes)},
                          [&] { return instantiate(jaxpr, values); });
}

}  // namespace plait
