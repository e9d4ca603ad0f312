// Verifies a rule or a pass: both sides run on random numbers. See rewrite.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rewriting/rewrite.h>

#include <plait/functions/random.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace plait {
namespace {

DType widened(DType dtype) {
  if (is_complex(dtype)) return DType::complex128;
  return is_inexact(dtype) ? DType::float64 : dtype;
}

// Both functions traced at types of fixed sizes.
struct Sides {
  Jaxpr pattern, replacement;
  std::vector<Aval> avals;
};

std::optional<Sides> trace_sides(const Rule& rule, std::vector<Aval> avals, const WildParams& wild,
                                 std::string& reason) {
  try {
    Sides sides{rule.trace(Rule::Side::pattern, avals, wild),
                rule.trace(Rule::Side::replacement, avals, wild), std::move(avals)};
    const std::vector<Aval> a = sides.pattern->output_avals(),
                            b = sides.replacement->output_avals();
    const bool fits = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                 [](const Aval& x, const Aval& y) { return x.shape == y.shape; });
    if (fits) return sides;
    reason = "the results have different shapes";
  } catch (const Error& error) {
    reason = error.problem();
  }
  return std::nullopt;
}

// Both sides, in 64 bits if possible, at numbers for named sizes at which they can be traced.
Sides sides_of(const Rule& rule, const RuleInstance& instance) {
  std::vector<Dim> sizes;
  for (const Aval& aval : instance.avals) collect_sizes(aval.shape, sizes);
  std::string reason;
  for (const bool wide : {true, false})
    for (const std::int64_t number : {0, 4, 8, 16, 1}) {  // 0: all different
      std::vector<std::pair<Dim, Dim>> values;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        values.emplace_back(sizes[i], number ? number : std::int64_t(i) + 3);
      std::vector<Aval> avals = instance.avals;
      for (Aval& aval : avals) {
        aval.shape = substitute(aval.shape, values);
        if (wide) aval.dtype = widened(aval.dtype);
      }
      WildParams wild = instance.wild;
      for (auto& [primitive, params] : wild) params = substitute(params, values);
      if (std::optional<Sides> sides = trace_sides(rule, std::move(avals), wild, reason))
        return *std::move(sides);
      if (sizes.empty()) break;
    }
  throw ValueError("rewrite: `" + rule.name() + "` cannot be verified: " + reason,
                   "leave verify out for this rule");
}

// The narrowest inexact dtype of either side.
DType narrowest(const Sides& sides) {
  DType found = DType::float64;
  auto bits = [](DType dtype) { return size_of(is_complex(dtype) ? real_dtype_of(dtype) : dtype); };
  for (const Jaxpr& jaxpr : {sides.pattern, sides.replacement})
    for (const Aval& aval : jaxpr->avals)
      if (is_inexact(aval.dtype) && bits(aval.dtype) < bits(found))
        found = is_complex(aval.dtype) ? real_dtype_of(aval.dtype) : aval.dtype;
  return found;
}

double tolerance_of(DType dtype) {
  return dtype == DType::float64 ? 1e-9 : dtype == DType::float32 ? 1e-4 : 3e-2;
}

Array random_array(const Aval& aval, std::int64_t seed, double low, double high) {
  const Array key = random::key(seed);
  if (aval.dtype == DType::bool_) return random::bernoulli(key, 0.5, aval.shape);
  if (is_inexact(aval.dtype)) {
    const Array real = random::uniform(key, aval.shape, DType::float64, low, high);
    if (!is_complex(aval.dtype)) return lax::convert_element_type(real, aval.dtype);
    const Array imaginary =
        random::uniform(random::fold_in(key, 1), aval.shape, DType::float64, low, high);
    return lax::convert_element_type(lax::complex(real, imaginary), aval.dtype);
  }
  const bool is_signed = aval.dtype == DType::int8 || aval.dtype == DType::int16 ||
                         aval.dtype == DType::int32 || aval.dtype == DType::int64;
  const std::int64_t least = std::int64_t(std::ceil(is_signed ? low : std::max(low, 0.0)));
  const std::int64_t most = std::max(least, std::int64_t(std::floor(high)));
  return lax::convert_element_type(random::randint(key, aval.shape, least, most + 1, DType::int64),
                                   aval.dtype);
}

std::string text_of(complex128 value, bool is_complex) {
  char text[80];
  if (is_complex)
    std::snprintf(text, sizeof text, "(%.10g, %.10g)", value.real(), value.imag());
  else
    std::snprintf(text, sizeof text, "%.10g", value.real());
  return text;
}

bool agree(complex128 a, complex128 b, double tolerance) {
  auto same = [&](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (std::isinf(x) || std::isinf(y)) return x == y;
    return std::abs(x - y) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
  };
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}

// What messages call the two sides.
struct Labels {
  const char *before, *after, *fix;
};

// Runs both sides on the same arguments. Returns whether any result was not NaN.
bool compare(const std::string& who, const Labels& labels, const Sides& sides,
             const Arrays& arguments, double tolerance) {
  const Arrays expected = eval_jaxpr(sides.pattern, arguments),
               found = eval_jaxpr(sides.replacement, arguments);
  bool any = false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool exact = !is_inexact(expected[i].dtype());
    const Buffer
        a = lax::convert_element_type(expected[i], DType::complex128).host_buffer().dense(),
        b = lax::convert_element_type(found[i], DType::complex128).host_buffer().dense();
    const auto *x = static_cast<const complex128*>(a.data()),
               *y = static_cast<const complex128*>(b.data());
    for (std::int64_t k = 0; k < num_elements(a.shape()); ++k) {
      any |= !std::isnan(x[k].real());
      if (agree(x[k], y[k], exact ? 0 : tolerance)) continue;
      const bool is_complex = plait::is_complex(expected[i].dtype());
      std::string types;
      for (const Aval& aval : sides.avals) types += (types.empty() ? "" : ", ") + aval.to_string();
      throw ValueError(
          who + " changes results: on random arguments (" + types +
              "), element " + std::to_string(k) + " of result " + std::to_string(i) + " is " +
              text_of(x[k], is_complex) + labels.before + " and " + text_of(y[k], is_complex) +
              labels.after + "; the tolerance is " + (exact ? "0" : [&] {
                char text[16];
                std::snprintf(text, sizeof text, "%g", tolerance);
                return std::string(text);
              }()),
          labels.fix);
    }
  }
  return any;
}

}  // namespace

namespace {

// Runs both sides on random numbers. Arguments that are literals keep their values.
void verify(const std::string& who, const Labels& labels, const Sides& sides,
            std::span<const Atom> arguments, double low, double high) {
  const double tolerance = tolerance_of(narrowest(sides));
  auto run = [&](std::int64_t trial, double least, double most) {
    Arrays values;
    for (std::size_t i = 0; i < sides.avals.size(); ++i) {
      const Aval& aval = sides.avals[i];
      const bool fixed = i < arguments.size() && !arguments[i].is_var();
      values.push_back(fixed ? Array::literal(cast(arguments[i].literal(), aval.dtype, aval.weak))
                             : random_array(aval, 1000 * trial + std::int64_t(i), least, most));
    }
    return compare(who, labels, sides, values, tolerance);
  };
  bool any = false;
  for (std::int64_t trial = 0; trial < 3; ++trial) any |= run(trial, low, high);
  // If all results are NaN, as of square roots, positive numbers say more.
  if (!any) run(3, 0.1, std::max(high, 1.0));
}

// Programs at fixed sizes, in 64 bits if their equations take these.
Sides sides_of(const Jaxpr& before, const Jaxpr& after) {
  auto at = [](const Jaxpr& jaxpr, const std::vector<Aval>& avals) {
    return make_closed_jaxpr([&](std::span<const Array> x) { return eval_jaxpr(jaxpr, x); }, avals);
  };
  std::vector<std::pair<Dim, Dim>> values;
  for (std::size_t i = 0; i < before->sizes.size(); ++i)
    values.emplace_back(before->sizes[i], std::int64_t(i) + 3);
  std::vector<Aval> avals(before->input_avals().begin(), before->input_avals().end()), wide;
  for (Aval& aval : avals) {
    aval.shape = substitute(aval.shape, values);
    wide.push_back({aval.shape, widened(aval.dtype), aval.weak});
  }
  try {
    return {at(before, wide), at(after, wide), wide};
  } catch (const Error&) {
    return {at(before, avals), at(after, avals), avals};
  }
}

}  // namespace

void verify_rule(const Rule& rule, const RuleInstance& instance, std::span<const Atom> arguments,
                 const RewriteOptions& options) {
  TraceScope now(nullptr);  // computes at once, even while something is traced
  verify("rewrite: `" + rule.name() + "`",
         {" by the pattern", " by the replacement",
          "correct the replacement, say where it holds, or verify on numbers for which it does"},
         sides_of(rule, instance), arguments, options.low, options.high);
}

void verify_program(const std::string& name, const Jaxpr& before, const Jaxpr& after, double low,
                    double high) {
  TraceScope now(nullptr);
  if (before->effectful || after->effectful)
    throw ValueError("the pass `" + name + "` cannot be verified: the program has effects",
                     "leave verify out, or verify a program without them");
  verify("the pass `" + name + "`",
         {" before", " after", "correct the pass, or verify on numbers for which it holds"},
         sides_of(before, after), {}, low, high);
}

Pass verified(const Pass& pass, double low, double high) {
  return Pass(pass.name(), [=](const Jaxpr& jaxpr, PassStatistics& statistics) {
    Jaxpr result = pass(jaxpr);
    const PassStatistics done = pass.statistics();
    statistics.matches = done.matches;
    statistics.parts = done.parts;
    if (!(result == jaxpr)) verify_program(pass.name(), jaxpr, result, low, high);
    return result;
  });
}

}  // namespace plait
