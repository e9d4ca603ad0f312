// Random programs. See programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include <plait/primitives/linalg.h>

#include <algorithm>

namespace plait::laws {
namespace {

const Primitive* mutant = nullptr;

std::vector<int> all_axes(const Array& x) {
  std::vector<int> axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}
Array number(double value) { return Array::literal(value, DType::float64); }
Array index(std::int64_t value) { return Array::literal(double(value), DType::int32); }

// --- Operations ----------------------------------------------------------------------------------

// Smooth, bounded functions; every result has finite derivatives everywhere.
Array elementwise_operation(unsigned choice, const Array& x) {
  switch (choice % 9) {
    case 0:
      return lax::sin(x);
    case 1:
      return lax::cos(x);
    case 2:
      return lax::tanh(x);
    case 3:
      return lax::erf(x);
    case 4:
      return lax::exp(lax::sin(x));
    case 5:
      return lax::log(x * x + 1.5);
    case 6:
      return lax::sqrt(x * x + 0.7);
    case 7:
      return 1.0 / (x * x + 1.2);
    default:
      return -lax::integer_pow(lax::tanh(x), 3);
  }
}

// Brings y to the shape of x: through its sum where nothing else fits.
Array fitted(const Array& y, const Array& x) {
  if (y.shape() == x.shape()) return y;
  return broadcast_to(total(y), x.shape());
}

Array binary_operation(unsigned choice, const Array& x, const Array& other) {
  const Array y = fitted(other, x);
  switch (choice % 5) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return lax::tanh(x) * y;
    case 3:
      return x / (y * y + 1.1);
    default:
      return lax::atan2(x, y * y + 0.9);
  }
}

// The lower factor of x x' + 2.
Array factor_of(const Array& x) {
  const int axis = x.ndim() - 1;
  const Array square = numpy::matmul(lax::tanh(x), numpy::matrix_transpose(lax::tanh(x)));
  return lax::linalg::cholesky(square +
                               number(2) * numpy::eye(x.shape(axis - 1), {}, 0, DType::float64));
}

// Works at any sizes; sizes of axes are read from the operand.
Array movement_operation(unsigned choice, const Array& x, const Array& other, bool any_size) {
  const int rank = x.ndim();
  if (rank == 0) return broadcast_to(x, {Dim(columns)}) * Array(0.5);
  const int last[] = {rank - 1}, first[] = {0};
  std::vector<int> reversed = all_axes(x);
  std::reverse(reversed.begin(), reversed.end());
  switch (choice % 10) {
    case 0:
      return lax::transpose(x, reversed);
    case 1:
      return lax::reduce_sum(x, first);
    case 2:
      return lax::reduce_sum(x, last);
    case 3:
      return lax::rev(x, first);
    case 4: {  // a new axis; of a length that no named size happens to have
      Shape shape{Dim(any_size ? 5 : 2)};
      std::vector<int> axes;
      if (rank > 2) return x;
      for (int i = 0; i < rank; ++i) shape.push_back(x.shape(i)), axes.push_back(i + 1);
      return lax::broadcast_in_dim(x, shape, axes);
    }
    case 5: {  // a longer last axis, cut again
      if (any_size) return x;
      const Array twice = lax::concatenate(Arrays{x, lax::sin(x)}, rank - 1);
      return lax::slice_in_dim(twice, Dim(1), x.shape(rank - 1) + Dim(1), 1, rank - 1);
    }
    case 6: {  // x x'
      const Array y = fitted(other, x);
      return lax::tanh(lax::dot_general(x, y, {{rank - 1}, {rank - 1}, {}, {}}));
    }
    case 7: {  // every second element of the last axis
      if (any_size) return x;
      const Array even =
          lax::eq(lax::rem(lax::iota(DType::int32, x.shape(), rank - 1), index(2)), index(0));
      return lax::select(even, x, fitted(other, x));
    }
    case 8:
      if (any_size || rank < 2) return lax::cumsum(x, rank - 1);
      return factor_of(x);
    default: {  // rows of one, in another shape and back
      if (any_size) return x * Array(0.9);
      return lax::sin(
          lax::reshape(lax::cos(lax::reshape(x, {x.shape().num_elements()})), x.shape()));
    }
  }
}

Array at_most_three_axes(const Array& x) {
  return x.ndim() > 3 ? lax::reduce_sum(x, std::vector<int>{0}) : x;
}

Array operation(unsigned choice, const Array& x, const Array& y, bool any_size) {
  if (choice == mutant_choice && mutant) return bind(*mutant, {x});
  const unsigned kind = choice % 3;
  if (kind == 0) return elementwise_operation(choice / 3, x);
  if (kind == 1) return binary_operation(choice / 3, x, y);
  return at_most_three_axes(movement_operation(choice / 3, x, y, any_size));
}

// --- Control flow in two ways --------------------------------------------------------------------

// plait's.
struct Structured {
  // How examples that go different ways run.
  static std::optional<bool> select(unsigned choice) {
    return choice % 3 == 0 ? std::nullopt : std::optional(choice % 3 == 1);
  }
  static Arrays cond(const Array& which, const std::vector<Function>& branches, const Arrays& x,
                     unsigned choice) {
    return flat::cond(which, branches, x, "cond", {}, select(choice));
  }
  static Arrays while_loop(const Function& cond, const Function& body, const Arrays& init,
                           std::optional<std::int64_t> max_steps, unsigned choice) {
    flat::WhileOptions options{max_steps, select(choice / 5)};
    if (choice % 3 == 0) options.checkpoints = 1 + choice / 3 % 4;
    return flat::while_loop(cond, body, init, options);
  }
  static Arrays fori_loop(const Array& lower, const Array& upper, const Function& body,
                          const Arrays& init, unsigned choice) {
    return flat::fori_loop(lower, upper, body, init, upper.as_literal() ? choice % 3 : 1);
  }
  static flat::Scanned scan(const Function& body, const Arrays& init, const Arrays& xs,
                            bool reverse, unsigned choice) {
    flat::ScanOptions options{{}, reverse};
    if (choice % 3 == 1) options.unroll = choice / 3 % 4;
    // What can be cut into segments has a size that is a number.
    if (choice % 3 == 2 && xs[0].shape(0).is_constant()) options.checkpoints = 1 + choice / 3 % 3;
    return flat::scan(body, init, xs, options);
  }
  static Arrays map(const Function& f, const Arrays& xs, std::optional<std::int64_t> batch_size) {
    return flat::map(f, xs, batch_size);
  }
  static Arrays associative_scan(const Function& f, const Arrays& xs, bool reverse, int axis) {
    return flat::associative_scan(f, xs, reverse, axis);
  }
  static Arrays jit(const Function& f, const Arrays& x) { return flat::Jit(f, "g")(x); }
  static Arrays checkpoint(const Function& f, const Arrays& x, unsigned choice) {
    const Callable policy = choice % 3 == 0   ? flat::nothing_saveable()
                            : choice % 3 == 1 ? flat::everything_saveable()
                                              : flat::dots_saveable();
    return flat::checkpoint(f, x, policy, "g");
  }
};

// C++'s: what is chosen must be known.
struct Plain {
  static Arrays cond(const Array& which, const std::vector<Function>& branches, const Arrays& x,
                     unsigned) {
    const std::int64_t last = std::int64_t(branches.size()) - 1,
                       chosen = which.dtype() == DType::bool_ ? which.item<bool>()
                                                              : which.item<std::int32_t>();
    return branches[std::size_t(std::clamp<std::int64_t>(chosen, 0, last))](x);
  }
  static Arrays while_loop(const Function& cond, const Function& body, const Arrays& init,
                           std::optional<std::int64_t>, unsigned) {
    Arrays carry = init;
    while (cond(carry)[0].item<bool>()) carry = body(carry);
    return carry;
  }
  static Arrays fori_loop(const Array& lower, const Array& upper, const Function& body,
                          const Arrays& init, unsigned) {
    Arrays carry = init;
    for (auto i = lower.item<std::int32_t>(); i < upper.item<std::int32_t>(); ++i) {
      Arrays inputs = carry;
      inputs.insert(inputs.begin(), index(i));
      carry = body(inputs);
    }
    return carry;
  }
  static flat::Scanned scan(const Function& body, const Arrays& init, const Arrays& xs,
                            bool reverse, unsigned) {
    const std::int64_t length = xs[0].shape(0).constant();
    flat::Scanned result{init, {}};
    std::vector<Arrays> ys;
    for (std::int64_t i = 0; i < length; ++i) {
      Arrays inputs = result.carry;
      for (const Array& x : xs) inputs.push_back(row_of(x, reverse ? length - 1 - i : i));
      const Arrays outputs = body(inputs);
      const auto y = outputs.begin() + std::ptrdiff_t(init.size());
      result.carry.assign(outputs.begin(), y);
      ys.resize(outputs.size() - init.size());
      for (std::size_t k = 0; k < ys.size(); ++k)
        ys[k].insert(reverse ? ys[k].begin() : ys[k].end(), y[std::ptrdiff_t(k)]);
    }
    for (const Arrays& each : ys) result.ys.push_back(stacked(each));
    return result;
  }
  static Arrays map(const Function& f, const Arrays& xs, std::optional<std::int64_t>) {
    return scan(f, {}, xs, false, 0).ys;
  }
  static Arrays associative_scan(const Function& f, const Arrays& xs, bool reverse, int axis) {
    const std::int64_t length = xs[0].shape(axis).constant();
    Arrays sum;
    std::vector<Arrays> all(xs.size());
    for (std::int64_t i = 0; i < length; ++i) {
      Arrays next;
      for (const Array& x : xs)
        next.push_back(lax::index_in_dim(x, reverse ? length - 1 - i : i, axis));
      Arrays both = sum;
      both.insert(both.end(), next.begin(), next.end());
      sum = i == 0 ? next : f(both);
      for (std::size_t k = 0; k < xs.size(); ++k)
        all[k].insert(reverse ? all[k].begin() : all[k].end(), sum[k]);
    }
    Arrays results;
    for (const Arrays& each : all) results.push_back(lax::concatenate(each, axis));
    return results;
  }
  static Arrays jit(const Function& f, const Arrays& x) { return f(x); }
  static Arrays checkpoint(const Function& f, const Arrays& x, unsigned) { return f(x); }
};

// --- Steps ---------------------------------------------------------------------------------------

template <class Flow>
Array run(const Steps& steps, Arrays values, bool any_size);

// Keeps what a loop goes on with small.
Array bounded(unsigned choice, const Array& x) {
  return choice % 2 == 0 ? lax::sin(x) : 0.7 * x + 0.1 * lax::tanh(x);
}

// A small integer that depends on the data.
Array counted(const Array& x, double least) {
  return lax::convert_element_type(lax::floor(2.0 * lax::sin(total(x)) + (least + 2.37)),
                                   DType::int32);
}

// Control flow of x, whose bodies capture y.
template <class Flow>
struct Controlled {
  const Step& step;
  const Array &x, &y;
  const bool any_size;

  // Bodies see y, then their own arguments.
  Array body(std::size_t which, Arrays arguments) const {
    arguments.insert(arguments.begin(), y);
    return run<Flow>(step.bodies[which], std::move(arguments), any_size);
  }
  Function branch(std::size_t which) const {
    return [this, which](std::span<const Array> in) -> Arrays {
      return {fitted(body(which, {in[0]}), in[0])};
    };
  }
  std::vector<Function> branches() const {
    std::vector<Function> all;
    for (std::size_t i = 0; i < step.bodies.size(); ++i) all.push_back(branch(i));
    return all;
  }

  Array cond() const {
    const Array holds = lax::gt(total(y), number(0.1234 * double(step.choice % 5)));
    return Flow::cond(holds, branches(), {x}, step.choice / 5)[0];
  }
  Array switch_() const { return Flow::cond(counted(y, -1), branches(), {x}, step.choice)[0]; }

  // At most three steps, fewer where the data say so.
  Array while_loop() const {
    const std::int64_t limit = step.choice % 4;
    const Function holds = [&](std::span<const Array> now) -> Arrays {
      const Array large = lax::gt(total(lax::sin(now[1])), 0.1 * total(lax::tanh(y)) - 1.0);
      return {lax::bitwise_and(lax::lt(now[0], index(limit)), large)};
    };
    const Function next = [&](std::span<const Array> now) -> Arrays {
      const Array c = fitted(body(0, {now[1]}), now[1]);
      return {now[0] + index(1), bounded(step.choice / 4, c)};
    };
    return Flow::while_loop(holds, next, {index(0), x},
                            step.choice % 3 == 0 ? std::optional(limit) : std::nullopt,
                            unsigned(step.choice) / 16)[1];
  }
  Array fori_loop() const {
    const Function next = [&](std::span<const Array> now) -> Arrays {
      const Array scale = 1.0 + 0.1 * lax::convert_element_type(now[0], DType::float64);
      return {bounded(step.choice / 4, fitted(body(0, {now[1] * scale}), now[1]))};
    };
    const Array upper = step.choice % 4 == 3 ? index(3) : counted(y, 0);
    return Flow::fori_loop(index(step.choice % 2), upper, next, {x}, step.choice / 8)[0];
  }

  Array axis_first(const Array& array, int axis) const {
    std::vector<int> order = all_axes(array);
    order.erase(order.begin() + axis);
    order.insert(order.begin(), axis);
    return lax::transpose(array, order);
  }
  int axis() const { return int(step.choice) % x.ndim(); }

  // Over an axis, with a carry of numbers and one that counts.
  Array scan() const {
    const bool both = y.shape() == x.shape();
    Arrays xs{axis_first(x, axis())};
    if (both) xs.push_back(axis_first(y, axis()));
    const Array start = 0.3 * lax::reduce_sum(xs[0], std::vector<int>{0});
    const Function next = [&](std::span<const Array> now) -> Arrays {
      const Array &i = now[0], &c = now[1], &row = now[2];
      Arrays arguments{row, c};
      if (both) arguments.insert(arguments.begin(), now[3]);
      const Array carried = bounded(step.choice, fitted(body(0, arguments), c));
      const Array weight = 1.0 + 0.1 * lax::convert_element_type(i, DType::float64);
      return {i + index(1), carried, lax::sin(c) * row * weight};
    };
    const flat::Scanned done = Flow::scan(next, {index(0), start}, xs, step.choice / 4 % 2 == 1,
                                          unsigned(step.choice) / 24);
    return step.choice / 8 % 3 == 0 ? done.carry[1] : done.ys[0];
  }
  Array map() const {
    const Function each = [&](std::span<const Array> row) -> Arrays { return {body(0, {row[0]})}; };
    return Flow::map(each, {axis_first(x, axis())},
                     step.choice % 2 ? std::optional<std::int64_t>(2) : std::nullopt)[0];
  }
  Array associative_scan() const {  // of affine maps
    const Function after = [](std::span<const Array> f) -> Arrays {
      return {f[2] * f[0], f[2] * f[1] + f[3]};
    };
    return Flow::associative_scan(after, {lax::tanh(x), fitted(y, x)}, step.choice % 2 == 1,
                                  axis())[1];
  }

  Array operator()() const {
    switch (step.control) {
      case Control::cond:
        return cond();
      case Control::switch_:
        return switch_();
      case Control::while_loop:
        return while_loop();
      case Control::fori_loop:
        return fori_loop();
      case Control::scan:
        return x.ndim() == 0 ? fori_loop() : scan();
      case Control::map:
        return x.ndim() == 0 ? cond() : at_most_three_axes(map());
      case Control::associative_scan:  // of named sizes, it is refused
        return x.ndim() == 0 ? x : any_size ? lax::cumsum(x, axis()) : associative_scan();
      case Control::jit:
        return Flow::jit(branch(0), {x})[0];
      case Control::checkpoint:
        return Flow::checkpoint(branch(0), {x}, step.choice)[0];
      default: {
        const Tangents tangents{lax::tanh(fitted(y, x))};
        return flat::jvp(branch(0), Arrays{x}, tangents).tangents[0].instantiate();
      }
    }
  }
};

template <class Flow>
Array run(const Steps& steps, Arrays values, bool any_size) {
  for (const Step& step : steps) {
    const Array x = values[step.first % values.size()], y = values[step.second % values.size()];
    values.push_back(step.control == Control::none ? operation(step.choice, x, y, any_size)
                                                   : Controlled<Flow>{step, x, y, any_size}());
  }
  return values.back();
}

std::size_t num_bodies(Control control) {
  switch (control) {
    case Control::none:
    case Control::associative_scan:
      return 0;
    case Control::cond:
    case Control::map:  // of a scalar, it is a cond
      return 2;
    case Control::switch_:
      return 3;
    default:
      return 1;
  }
}

Steps random_steps(std::mt19937& generator, std::size_t count, std::size_t num_inputs, int depth) {
  Steps steps;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t known = num_inputs + i;
    // Mostly the latest value, so that little is dead.
    Step step;
    step.first = generator() % 3 ? known - 1 : generator() % known;
    step.second = generator() % known;
    step.choice = unsigned(generator() % 270);
    if (depth < 2 && generator() % (depth == 0 ? 3 : 4) == 0)
      step.control = Control(1 + generator() % 10);
    for (std::size_t b = 0; b < num_bodies(step.control); ++b)
      step.bodies.push_back(random_steps(generator, generator() % 4, 2, depth + 1));
    steps.push_back(std::move(step));
  }
  return steps;
}

// Every list of steps that is less by one thing; of num_inputs values that come before.
std::vector<Steps> smaller_steps(const Steps& steps, std::size_t num_inputs) {
  std::vector<Steps> all;
  for (std::size_t i = steps.size(); i-- > 0;) {
    Steps fewer = steps;
    fewer.erase(fewer.begin() + std::ptrdiff_t(i));
    for (Step& step : fewer)
      for (std::size_t* operand : {&step.first, &step.second})
        if (*operand >= num_inputs + i && *operand > 0) --*operand;
    all.push_back(std::move(fewer));
    if (steps[i].control == Control::none) continue;
    Steps simpler = steps;
    simpler[i].control = Control::none;
    simpler[i].bodies.clear();
    all.push_back(std::move(simpler));
    for (std::size_t b = 0; b < steps[i].bodies.size(); ++b)
      for (Steps& body : smaller_steps(steps[i].bodies[b], 2)) {
        Steps inner = steps;
        inner[i].bodies[b] = std::move(body);
        all.push_back(std::move(inner));
      }
  }
  return all;
}

}  // namespace

void set_mutant(const Primitive* primitive) { mutant = primitive; }

Array total(const Array& x) { return x.ndim() == 0 ? x : lax::reduce_sum(x, all_axes(x)); }

Array stacked(const Arrays& arrays) {
  Arrays rows;
  for (const Array& array : arrays) rows.push_back(lax::expand_dims(array, {0}));
  return lax::concatenate(rows, 0);
}
Array row_of(const Array& x, std::int64_t index, int axis) {
  return lax::index_in_dim(x, index, axis, false);
}

Function Program::function(Style style) const {
  return [steps = steps, any_size = any_size, style](std::span<const Array> inputs) -> Arrays {
    const Arrays values(inputs.begin(), inputs.end());
    return {style == Style::plain ? run<Plain>(steps, values, any_size)
                                  : run<Structured>(steps, values, any_size)};
  };
}

Program random_program(std::mt19937& generator) {
  Program program;
  program.num_inputs = 1 + generator() % 2;
  program.steps = random_steps(generator, 1 + generator() % 7, program.num_inputs, 0);
  return program;
}

std::vector<Program> smaller_programs(const Program& program) {
  std::vector<Program> all;
  for (Steps& steps : smaller_steps(program.steps, program.num_inputs)) {
    if (steps.empty()) continue;
    all.push_back(program);
    all.back().steps = std::move(steps);
  }
  return all;
}

}  // namespace plait::laws
