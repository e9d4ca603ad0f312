// The multiples that a trace asks for, and the restart with them. See multiples.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/multiples.h>

#include <plait/trace/constraints.h>

#include <numeric>
#include <optional>

namespace plait {
namespace {

using Operation = Dim::Operation;

struct Multiple {
  Dim size;
  std::int64_t factor;
};

// The multiples that restartable traces of this thread were asked for, in order.
thread_local std::vector<Multiple> asked;
thread_local int num_traces = 0;

constexpr std::int64_t largest_factor = 1 << 20;

bool divides(Dim factor, Dim dim) { return !(factor == Dim(0)) && modulo(dim, factor) == Dim(0); }

std::pair<Dim, Dim> made_multiple(const Multiple& multiple) {
  return {multiple.size, multiple.size * multiple.factor};
}

// The value with every size 1: for 8*d it is 8, of which a size may have to be a multiple.
std::int64_t content_of(Dim dim) {
  return dim.evaluate([](std::string_view) { return std::optional<std::int64_t>(1); });
}

// The only size, with the least factor, whose multiples make factor divide dim.
std::optional<Multiple> multiple_for(Dim dim, Dim factor) {
  if (dim.is_constant()) return std::nullopt;
  const std::int64_t most = content_of(factor);
  if (most < 2 || most > largest_factor) return std::nullopt;
  std::optional<Multiple> found;
  for (Dim size : dim.sizes())
    for (std::int64_t part = 2; part <= most; ++part) {
      if (most % part != 0) continue;
      const Multiple multiple{size, part};
      const auto replacement = made_multiple(multiple);
      if (!divides(factor.substitute({&replacement, 1}), dim.substitute({&replacement, 1})))
        continue;
      if (found) return std::nullopt;  // either would do
      found = multiple;
      break;
    }
  return found;
}

void add(std::vector<Multiple>& multiples, const Multiple& multiple) {
  for (Multiple& known : multiples)
    if (known.size == multiple.size) {
      known.factor = std::lcm(known.factor, multiple.factor);
      return;
    }
  multiples.push_back(multiple);
}

// Collects multiples that make the quotients within dim exact.
void collect_quotients(Dim dim, std::vector<Multiple>& multiples) {
  if (dim.is_constant() || dim.is_size()) return;
  const auto [left, right] = dim.operands();
  if (dim.operation() == Operation::floor_divide)
    if (const auto multiple = multiple_for(left, right)) add(multiples, *multiple);
  collect_quotients(left, multiples);
  collect_quotients(right, multiples);
}

SizeNaming replacements_of(std::span<const Multiple> multiples) {
  SizeNaming pairs;
  for (const Multiple& multiple : multiples) pairs.push_back(made_multiple(multiple));
  return pairs;
}

void ask(std::span<const Multiple> multiples) {
  if (num_traces > 0) asked.insert(asked.end(), multiples.begin(), multiples.end());
}

// The declared constraints and those asked for since; nullopt where these concern sizes of other
// traces.
std::optional<Constraints> with_asked(const Constraints& known, const SizeNaming& naming,
                                      std::size_t since) {
  std::vector<std::string> more;
  for (std::size_t i = since; i < asked.size(); ++i)
    for (const auto& [size, traced] : naming) {
      const auto& [part, factor] = asked[i];
      const bool is_size = traced == part;
      if (!is_size && (traced.is_size() || !(traced.operands().second == part))) continue;
      const std::int64_t before = is_size ? 1 : traced.operands().first.constant();
      more.push_back(size.to_string() + " % " + std::to_string(before * factor) + " == 0");
    }
  if (more.empty()) return std::nullopt;
  return known.with(more);
}

}  // namespace

void ask_multiple(Dim dim, Dim factor) {
  std::vector<Multiple> multiples;
  collect_quotients(dim, multiples);
  collect_quotients(factor, multiples);
  const SizeNaming without = replacements_of(multiples);
  const Dim left = dim.substitute(without), by = factor.substitute(without);
  if (!divides(by, left)) {
    const auto one = multiple_for(left, by);
    if (!one) return;
    bool is_known = false;  // a multiple of a multiple
    for (Multiple& known : multiples)
      if (known.size == one->size) known.factor *= one->factor, is_known = true;
    if (!is_known) multiples.push_back(*one);
  }
  ask(multiples);
}

void ask_equal(Dim left, Dim right) {
  std::vector<Multiple> multiples;
  collect_quotients(left, multiples);
  collect_quotients(right, multiples);
  const SizeNaming without = replacements_of(multiples);
  if (left.substitute(without) == right.substitute(without)) ask(multiples);
}

std::vector<SizeMultiple> size_multiples(const SizeNaming& naming) {
  std::vector<SizeMultiple> result;
  for (const auto& [size, traced] : naming) {
    if (traced.is_size()) continue;
    const auto [factor, part] = traced.operands();
    result.push_back({std::string(part.name()), std::string(size.name()), factor.constant()});
  }
  return result;
}

void trace_with_multiples(const Constraints& declared,
                          const std::function<void(const Constraints&, SizeNaming&)>& trace) {
  constexpr int most = 8;  // a bound, because a function may keep asking
  const std::size_t since = asked.size();
  struct Counted {
    Counted() { ++num_traces; }
    ~Counted() {
      if (--num_traces == 0) asked.clear();
    }
  } counted;
  Constraints known = declared;
  for (int attempt = 0;; ++attempt) {
    SizeNaming naming;
    try {
      trace(known, naming);
      asked.resize(since);
      return;
    } catch (...) {
      std::optional<Constraints> more;
      if (attempt < most) more = with_asked(known, naming, since);
      if (!more) throw;
      asked.resize(since);
      known = std::move(*more);
    }
  }
}

}  // namespace plait
