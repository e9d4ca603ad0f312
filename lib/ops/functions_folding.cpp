// lax::reduce and lax::reduce_window: folds by a function that the caller names, as lax::max.
//
// The function is traced on two scalars; when the trace is one of the six monoids, its primitive
// folds. So every spelling of it is recognised: lax::add, numpy::add, or [](auto x, auto y) ....
// SPDX-License-Identifier: Apache-2.0
#include <plait/lax.h>
#include <plait/narrow.h>

#include <cmath>

#include "ops/functions.h"
#include "ops/window.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using ReduceWindow = Array (*)(Operand, const Shape&, const Shape&, const lax::WindowPadding&,
                               const Shape&, const Shape&);
struct Monoid {
  const Primitive* primitive;
  Array (*combine)(Operand, Operand);
  Array (*reduce)(Operand, std::span<const int>);
  ReduceWindow over_windows;  // of bools: and is min, or is max
};
const Monoid monoids[] = {
    {&add_p, lax::add, lax::reduce_sum, lax::reduce_window_sum},
    {&mul_p, lax::mul, lax::reduce_prod, lax::reduce_window_prod},
    {&max_p, lax::max, lax::reduce_max, lax::reduce_window_max},
    {&min_p, lax::min, lax::reduce_min, lax::reduce_window_min},
    {&and_p, lax::bitwise_and, lax::reduce_and, lax::reduce_window_min},
    {&or_p, lax::bitwise_or, lax::reduce_or, lax::reduce_window_max},
};

const Monoid& monoid_of(const BinaryFunction& computation, DType dtype, std::string_view function) {
  const Aval scalar{{}, dtype, false};
  const Traced traced =
      make_jaxpr([&](std::span<const Array> x) { return Arrays{computation(x[0], x[1])}; },
                 std::vector<Aval>{scalar, scalar}, function);
  const JaxprData& jaxpr = *traced.jaxpr;
  if (jaxpr.equations.size() == 1 && traced.captured.empty()) {
    const Equation& equation = jaxpr.equations[0];
    const bool plain = equation.inputs.size() == 2 && equation.inputs[0].is_var() &&
                       equation.inputs[1].is_var() &&
                       !(equation.inputs[0].var() == equation.inputs[1].var()) &&
                       jaxpr.outputs[0].is_var() && jaxpr.outputs[0].var() == equation.outputs[0];
    for (const Monoid& monoid : monoids)
      if (plain && equation.primitive == monoid.primitive) return monoid;
  }
  throw MissingRuleError(std::string(function) +
                             ": the computation is not a fold that is known; "
                             "it traces to " +
                             print(traced.jaxpr),
                         "give add, mul, max, min, bitwise_and or bitwise_or");
}

// The start of a fold in the operand's dtype, and whether it changes nothing.
Array start_of(const Array& init, DType dtype, std::string_view function) {
  if (init.ndim() != 0)
    throw ShapeError(
        std::string(function) + ": an initial value of shape (" + init.shape().to_string() + ")",
        "give a scalar");
  if (init.dtype() == dtype || init.aval().weak) return yielded(init, dtype, false, function);
  throw DtypeError(std::string(function) + ": an initial value of dtype " +
                       std::string(name_of(init.dtype())) + " for an operand of dtype " +
                       std::string(name_of(dtype)),
                   "convert one of them with astype");
}
bool is_identity(const Monoid& monoid, const Array& start) {
  if (!start.known_buffer()) return false;
  const DType dtype = start.dtype();
  if (is_complex(dtype))
    return start.item<complex128>() == complex128(monoid.primitive == &mul_p ? 1 : 0) &&
           (monoid.primitive == &add_p || monoid.primitive == &mul_p);
  if (monoid.primitive == &add_p || monoid.primitive == &mul_p)
    return start.item<double>() == (monoid.primitive == &mul_p ? 1 : 0);
  const bool largest = monoid.primitive == &min_p || monoid.primitive == &and_p;
  if (is_floating(dtype)) return start.item<double>() == (largest ? INFINITY : -INFINITY);
  return start.item<std::int64_t>() ==
         (largest ? functions::largest_of(dtype) : functions::lowest_of(dtype))
             .item<std::int64_t>();
}

}  // namespace

Array lax::reduce(Operand operands, Operand init_values, const BinaryFunction& computation,
                  const std::vector<int>& dimensions) {
  const Monoid& monoid = monoid_of(computation, operands.dtype(), "reduce");
  const Array start = start_of(init_values, operands.dtype(), "reduce");
  std::vector<int> axes;
  for (int axis : dimensions) axes.push_back(normalize_axis(axis, operands.ndim(), "reduce"));
  const Array reduced = monoid.reduce(operands, axes);
  return is_identity(monoid, start) ? reduced : monoid.combine(start, reduced);
}

Array lax::reduce_window(Operand operand, Operand init_value, const BinaryFunction& computation,
                         const Shape& window_dimensions, const Shape& window_strides,
                         const WindowPadding& padding, const Shape& base_dilation,
                         const Shape& window_dilation) {
  const DType dtype = operand.dtype();
  const Monoid& monoid = monoid_of(computation, dtype, "reduce_window");
  const Array start = start_of(init_value, dtype, "reduce_window");
  const bool bits = monoid.primitive == &and_p || monoid.primitive == &or_p;
  if (bits && !is_bool(dtype))
    throw MissingRuleError("reduce_window: bits of dtype " + std::string(name_of(dtype)),
                           "fold bools, or use max, min, add or mul");
  // Windows of bools are folded as 0 and 1.
  const Array x = bits ? lax::convert_element_type(operand, DType::uint8) : Array(operand);
  auto folded = [&](const Array& from, const WindowPadding& pad, const Shape& base) {
    const Array result =
        monoid.over_windows(from, window_dimensions, window_strides, pad, base, window_dilation);
    return bits ? lax::convert_element_type(result, dtype) : result;
  };
  if (is_identity(monoid, start)) return folded(x, padding, base_dilation);
  // Padding and holes hold the initial value too, as XLA has it.
  const int rank = operand.ndim();
  Windows windows{window_dimensions, or_ones(window_strides, rank), Shape(rank, 0),
                  Shape(rank, 0),    or_ones(base_dilation, rank),  or_ones(window_dilation, rank)};
  check_windows("reduce_window", windows, rank, operand.aval());
  resolve_padding("reduce_window", padding, operand.shape(), windows);
  std::vector<Padding> amounts;
  for (int axis = 0; axis < rank; ++axis)
    amounts.push_back({windows.low[axis], windows.high[axis], windows.base_dilation[axis] - 1});
  const Array fill = lax::convert_element_type(start, x.dtype());
  return monoid.combine(start, folded(lax::pad(x, fill, amounts), "VALID", {}));
}

namespace {

Array reduce_window_of(Operand operand, Operand init_value, const BinaryFunction& computation,
                       const Shape& window_dimensions, const std::optional<Shape>& window_strides,
                       const functions::WindowPadding& padding,
                       const std::optional<Shape>& base_dilation,
                       const std::optional<Shape>& window_dilation) {
  return lax::reduce_window(operand, init_value, computation, window_dimensions,
                            window_strides.value_or(Shape()), padding,
                            base_dilation.value_or(Shape()), window_dilation.value_or(Shape()));
}

[[maybe_unused]] const FunctionInfo* const catalogue[] = {
    function("lax", "reduce(operands, init_values, computation, dimensions, *, out_sharding=None!)",
             "The elements over axes folded by a function of two scalars, from init_values: add, "
             "mul, max, min, bitwise_and or bitwise_or, in any spelling (lax.max, numpy.maximum, a "
             "lambda). MissingRuleError for any other function.",
             &lax::reduce),
    function("lax",
             "reduce_window(operand, init_value, computation, window_dimensions, "
             "window_strides=None, padding='VALID', base_dilation=None, window_dilation=None)",
             "Windows folded by a function of two scalars, from init_value, which padding and the "
             "holes of base_dilation hold too: reduce_window(x, -inf, lax.max, (2, 2), (2, 2)) is "
             "max-pooling. padding: 'VALID', 'SAME', 'SAME_LOWER' or pairs. MissingRuleError for a "
             "function that is not add, mul, max, min, or on bools and, or.",
             &reduce_window_of),
};

}  // namespace
}  // namespace plait
