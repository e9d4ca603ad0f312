// plait.optim: schedules of learning rates. See optim_schedules.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/optim_schedules.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using optim::Schedule;

// A count of steps, or a number of an option, as a float.
Array float_of(const Array& x) {
  if (const std::optional<Literal> literal = x.as_literal())
    return Array::literal(cast(*literal, default_float(), false));
  return astype(x, default_float());
}
Array number(double value) { return Array::literal(value, default_float()); }

void check_steps(const char* function, const char* name, std::int64_t steps) {
  if (steps <= 0)
    throw ValueError(std::string(function) + ": " + name + " is " + std::to_string(steps),
                     "give a positive number of steps");
}

// The part of the way that is done: from 0 at begin to 1 after so many steps.
Array progress(const Array& count, std::int64_t begin, std::int64_t steps) {
  const Array since = lax::sub(float_of(count), number(double(begin)));
  const Array done = lax::div(since, number(double(steps)));
  return lax::clamp(number(0), done, number(1));
}

}  // namespace

std::optional<optim::Rate> optim::Rate::from_argument(const Argument& argument) {
  if (const auto* function = std::get_if<Function>(&argument.value))
    return Rate([call = *function](const Array& count) -> Array {
      const Arrays results = call(std::span<const Array>(&count, 1));
      if (results.size() != 1)
        throw TreeError("a schedule returned " + std::to_string(results.size()) + " arrays",
                        "return one number");
      return results[0];
    });
  if (std::optional<Array> number = plait::detail::as_array(argument))
    return Rate(*std::move(number));
  return std::nullopt;
}

Array optim::Rate::at(const std::optional<Array>& count, std::string_view function) const {
  if (!schedule_) return number_;
  if (!count)
    throw ValueError(std::string(function) + ": a schedule, and no count of steps",
                     "give count=, the number of steps taken so far, or the number itself: "
                     "schedule(count)");
  const Array rate = schedule_(*count);
  if (rate.ndim() != 0)
    throw ShapeError(std::string(function) + ": the schedule gave an array of shape (" +
                         rate.shape().to_string() + ")",
                     "return one number");
  return rate;
}

Schedule optim::constant_schedule(Operand value) {
  return [value = Array(value)](const Array&) -> Array { return float_of(value); };
}

Schedule optim::polynomial_schedule(Operand init_value, Operand end_value, Operand power,
                                    std::int64_t transition_steps, std::int64_t transition_begin) {
  check_steps("polynomial_schedule", "transition_steps", transition_steps);
  return [=, first = Array(init_value), last = Array(end_value),
          power = Array(power)](const Array& count) -> Array {
    const Array left = lax::sub(number(1), progress(count, transition_begin, transition_steps));
    const Array end = float_of(last);
    const Array way = lax::sub(float_of(first), end);
    return lax::add(lax::mul(way, lax::pow(left, float_of(power))), end);
  };
}

Schedule optim::linear_schedule(Operand init_value, Operand end_value,
                                std::int64_t transition_steps, std::int64_t transition_begin) {
  check_steps("linear_schedule", "transition_steps", transition_steps);
  return [=, first = Array(init_value), last = Array(end_value)](const Array& count) -> Array {
    const Array start = float_of(first);
    const Array way = lax::sub(float_of(last), start);
    return lax::add(start, lax::mul(way, progress(count, transition_begin, transition_steps)));
  };
}

Schedule optim::cosine_decay_schedule(Operand init_value, std::int64_t decay_steps, Operand alpha,
                                      Operand exponent) {
  check_steps("cosine_decay_schedule", "decay_steps", decay_steps);
  return [=, first = Array(init_value), alpha = Array(alpha),
          exponent = Array(exponent)](const Array& count) -> Array {
    const Array wave = lax::cos(lax::mul(number(M_PI), progress(count, 0, decay_steps)));
    const Array half = lax::mul(number(0.5), lax::add(number(1), wave));
    // Rounding may leave less than 0, of which no power is taken.
    const Array power = lax::pow(lax::max(half, number(0)), float_of(exponent));
    const Array least = float_of(alpha);
    const Array decayed = lax::add(lax::mul(lax::sub(number(1), least), power), least);
    return lax::mul(float_of(first), decayed);
  };
}

Schedule optim::exponential_decay(Operand init_value, std::int64_t transition_steps,
                                  Operand decay_rate, std::int64_t transition_begin, bool staircase,
                                  const std::optional<Array>& end_value) {
  check_steps("exponential_decay", "transition_steps", transition_steps);
  return [=, first = Array(init_value), rate = Array(decay_rate)](const Array& count) -> Array {
    const Array since =
        lax::max(lax::sub(float_of(count), number(double(transition_begin))), number(0));
    Array power = lax::div(since, number(double(transition_steps)));
    if (staircase) power = lax::floor(power);
    const Array start = float_of(first), factor = float_of(rate);
    const Array decayed = lax::mul(start, lax::pow(factor, power));
    if (!end_value) return decayed;
    const Array end = float_of(*end_value);
    const Array falls = lax::lt(factor, number(1));
    return lax::select(falls, lax::max(decayed, end), lax::min(decayed, end));
  };
}

Schedule optim::piecewise_constant_schedule(
    Operand init_value, const std::map<std::int64_t, Array>& boundaries_and_scales) {
  return [first = Array(init_value), boundaries_and_scales](const Array& count) -> Array {
    Array rate = float_of(first);
    for (const auto& [boundary, scale] : boundaries_and_scales) {
      const Array is_before = lax::lt(count, lax::full({}, double(boundary), count.dtype()));
      rate = lax::select(is_before, rate, lax::mul(rate, float_of(scale)));
    }
    return rate;
  };
}

Schedule optim::join_schedules(const std::vector<Schedule>& schedules,
                               const std::vector<std::int64_t>& boundaries) {
  if (schedules.empty() || boundaries.size() + 1 != schedules.size())
    throw ValueError("join_schedules: " + std::to_string(schedules.size()) + " schedules and " +
                         std::to_string(boundaries.size()) + " boundaries",
                     "give one boundary between any two schedules");
  return [schedules, boundaries](const Array& count) -> Array {
    Array rate = schedules[0](count);
    for (std::size_t i = 0; i < boundaries.size(); ++i) {
      const Array start = lax::full({}, double(boundaries[i]), count.dtype());
      const Array is_before = lax::lt(count, start);
      const Array next = schedules[i + 1](lax::sub(count, start));
      rate = numpy::where(is_before, rate, next);
    }
    return rate;
  };
}

Schedule optim::warmup_constant_schedule(Operand init_value, Operand peak_value,
                                         std::int64_t warmup_steps) {
  return linear_schedule(init_value, peak_value, warmup_steps);
}

Schedule optim::warmup_cosine_decay_schedule(Operand init_value, Operand peak_value,
                                             std::int64_t warmup_steps, std::int64_t decay_steps,
                                             Operand end_value, Operand exponent) {
  if (warmup_steps < 0 || decay_steps <= warmup_steps)
    throw ValueError("warmup_cosine_decay_schedule: decay_steps is " + std::to_string(decay_steps) +
                         ", and warmup_steps " + std::to_string(warmup_steps),
                     "decay_steps counts from the start, warmup included");
  const Schedule decay = [=, peak = Array(peak_value), end = Array(end_value),
                          exponent = Array(exponent)](const Array& count) -> Array {
    const Array top = float_of(peak);
    const Array is_zero = lax::eq(top, number(0));
    const Array alpha = lax::select(is_zero, number(0), lax::div(float_of(end), top));
    return cosine_decay_schedule(top, decay_steps - warmup_steps, alpha, exponent)(count);
  };
  if (warmup_steps == 0) return decay;
  return join_schedules({linear_schedule(init_value, peak_value, warmup_steps), decay},
                        {warmup_steps});
}

namespace {

// A dict whose keys are steps.
struct ScalesByStep {
  std::map<std::int64_t, Array> scales;
  static constexpr const char* argument_type = "dict of numbers by step";
  static std::optional<ScalesByStep> from_argument(const Argument& argument) {
    const auto* tree = std::get_if<Tree<Array>>(&argument.value);
    if (!tree || tree->structure.children().size() != tree->leaves.size()) return std::nullopt;
    ScalesByStep result;
    for (std::size_t i = 0; i < tree->leaves.size(); ++i) {
      const std::string& key = tree->structure.keys()[i];  // "[1000]"
      char* end = nullptr;
      const long long step = key.size() < 3 ? 0 : std::strtoll(key.c_str() + 1, &end, 10);
      if (!end || *end != ']' || end == key.c_str() + 1) return std::nullopt;
      result.scales.emplace(step, tree->leaves[i]);
    }
    return result;
  }
};

// A sequence of schedules.
struct Schedules {
  std::vector<Schedule> list;
  static constexpr const char* argument_type = "sequence of functions";
  static std::optional<Schedules> from_argument(const Argument& argument) {
    const auto* parts = std::get_if<Argument::List>(&argument.value);
    if (!parts) return std::nullopt;
    Schedules result;
    for (const Argument& part : *parts) {
      if (!std::holds_alternative<Function>(part.value)) return std::nullopt;
      const optim::Rate rate = *optim::Rate::from_argument(part);
      result.list.push_back(
          [rate](const Array& count) { return rate.at(count, "join_schedules"); });
    }
    return result;
  }
};

Function as_function(Schedule schedule) {
  return [schedule = std::move(schedule)](std::span<const Array> arguments) -> Arrays {
    if (arguments.size() != 1)
      throw TreeError(
          "a schedule was called with " + std::to_string(arguments.size()) + " arguments",
          "call it with the count of steps");
    return {schedule(arguments[0])};
  };
}

template <auto schedule, class... A>
Function made(A... arguments) {
  return as_function(schedule(arguments...));
}
Function piecewise_of(Operand init_value, const ScalesByStep& boundaries_and_scales) {
  return as_function(optim::piecewise_constant_schedule(init_value, boundaries_and_scales.scales));
}
Function joined(const Schedules& schedules, const std::vector<int>& boundaries) {
  return as_function(optim::join_schedules(schedules.list, {boundaries.begin(), boundaries.end()}));
}

using I = std::int64_t;
using MaybeArray = std::optional<Array>;

[[maybe_unused]] const FunctionInfo* const schedule_functions[] = {
    function("optim", "constant_schedule(value)",
             "A schedule that gives one number for every count of steps.",
             &made<optim::constant_schedule, Operand>),
    function("optim",
             "polynomial_schedule(init_value, end_value, power, transition_steps, "
             "transition_begin=0)",
             "A schedule from init_value to end_value in transition_steps, which begin at "
             "transition_begin: end_value + (init_value - end_value) (1 - t)^power. ValueError "
             "unless transition_steps is positive.",
             &made<optim::polynomial_schedule, Operand, Operand, Operand, I, I>),
    function("optim",
             "linear_schedule(init_value, end_value, transition_steps, transition_begin=0)",
             "A schedule linear from init_value to end_value in transition_steps, which begin at "
             "transition_begin. ValueError unless transition_steps is positive.",
             &made<optim::linear_schedule, Operand, Operand, I, I>),
    function("optim", "cosine_decay_schedule(init_value, decay_steps, alpha=0.0, exponent=1.0)",
             "A schedule from init_value to alpha init_value in decay_steps, by half a cosine wave "
             "raised to exponent. ValueError unless decay_steps is positive. Loshchilov and "
             "Hutter, 2017.",
             &made<optim::cosine_decay_schedule, Operand, I, Operand, Operand>),
    function("optim",
             "exponential_decay(init_value, transition_steps, decay_rate, transition_begin=0, "
             "staircase=False, end_value=None)",
             "A schedule init_value decay_rate^(t / transition_steps), t counted from "
             "transition_begin; staircase takes the floor of the exponent, and end_value is as far "
             "as it goes. ValueError unless transition_steps is positive.",
             &made<optim::exponential_decay, Operand, I, Operand, I, bool, MaybeArray>),
    function("optim", "piecewise_constant_schedule(init_value, boundaries_and_scales)",
             "A schedule that starts with init_value and is multiplied by a scale from each "
             "boundary on: {1000: 0.1, 2000: 0.1}.",
             &piecewise_of),
    function("optim", "warmup_constant_schedule(init_value, peak_value, warmup_steps)",
             "A schedule linear from init_value to peak_value in warmup_steps, then constant.",
             &made<optim::warmup_constant_schedule, Operand, Operand, I>),
    function("optim",
             "warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, "
             "end_value=0.0, exponent=1.0)",
             "A schedule linear from init_value to peak_value in warmup_steps, then by a cosine to "
             "end_value at decay_steps, which counts the warmup too. ValueError unless decay_steps "
             "is the larger.",
             &made<optim::warmup_cosine_decay_schedule, Operand, Operand, I, I, Operand, Operand>),
    function("optim", "join_schedules(schedules, boundaries)",
             "One schedule after the other: the next from each boundary on, where it counts from "
             "0. ValueError unless there is one boundary less than schedules.",
             &joined),
};

}  // namespace
}  // namespace plait
