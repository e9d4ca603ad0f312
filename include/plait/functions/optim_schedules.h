// Schedules of learning rates: functions of the number of steps taken so far. Part of optim.h;
// names and arguments are optax's.
//
//   auto rate = optim::warmup_cosine_decay_schedule(0.0, 1e-3, 100, 10'000);
//   auto [updates, next] = optim::adam(gradients, state, {.learning_rate = rate});
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

#include <functional>
#include <map>

namespace plait {
struct Argument;
}

namespace plait::optim {

// A number, computed in the default float, for a count of steps, an integer.
using Schedule = std::function<Array(const Array& count)>;

// A learning rate: a number, or a schedule, which optimisers call with the count in their state.
class Rate {
 public:
  static constexpr const char* argument_type = "number, or function of the count of steps";
  static std::optional<Rate> from_argument(const Argument& argument);

  Rate(double rate) : number_(rate) {}                         // NOLINT
  Rate(Array rate) : number_(std::move(rate)) {}               // NOLINT
  Rate(Schedule schedule) : schedule_(std::move(schedule)) {}  // NOLINT
  template <class F>
    requires(std::is_invocable_r_v<Array, const F&, const Array&> &&
             !std::is_convertible_v<F, Array> && !std::is_same_v<F, Schedule>)
  Rate(F schedule) : schedule_(std::move(schedule)) {}  // NOLINT

  // The number at a step; ValueError for a schedule without a count, ShapeError for one that gives
  // no scalar.
  Array at(const std::optional<Array>& count, std::string_view function) const;

 private:
  Array number_;
  Schedule schedule_;
};

Schedule constant_schedule(Operand value);
// From init_value to end_value in transition_steps, which begin at transition_begin; the rest of
// the way to go is (1 - t)^power.
Schedule polynomial_schedule(Operand init_value, Operand end_value, Operand power,
                             std::int64_t transition_steps, std::int64_t transition_begin = 0);
Schedule linear_schedule(Operand init_value, Operand end_value, std::int64_t transition_steps,
                         std::int64_t transition_begin = 0);
// From init_value to alpha init_value by half a cosine wave, raised to an exponent. Loshchilov and
// Hutter, 2017.
Schedule cosine_decay_schedule(Operand init_value, std::int64_t decay_steps, Operand alpha = 0.0,
                               Operand exponent = 1.0);
// init_value decay_rate^(t / transition_steps), where staircase takes the floor of the exponent; no
// further than end_value.
Schedule exponential_decay(Operand init_value, std::int64_t transition_steps, Operand decay_rate,
                           std::int64_t transition_begin = 0, bool staircase = false,
                           const std::optional<Array>& end_value = {});
// init_value, multiplied by a scale from each boundary on.
Schedule piecewise_constant_schedule(Operand init_value,
                                     const std::map<std::int64_t, Array>& boundaries_and_scales);
// Linear from init_value to peak_value in warmup_steps, then constant.
Schedule warmup_constant_schedule(Operand init_value, Operand peak_value,
                                  std::int64_t warmup_steps);
// Linear from init_value to peak_value in warmup_steps, then by a cosine to end_value at
// decay_steps.
Schedule warmup_cosine_decay_schedule(Operand init_value, Operand peak_value,
                                      std::int64_t warmup_steps, std::int64_t decay_steps,
                                      Operand end_value = 0.0, Operand exponent = 1.0);
// One schedule after the other; each counts from its boundary.
Schedule join_schedules(const std::vector<Schedule>& schedules,
                        const std::vector<std::int64_t>& boundaries);

}  // namespace plait::optim
