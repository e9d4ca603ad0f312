// lax::reduce and lax::reduce_window: reductions by a function of the caller, such as lax::max.
//
// The function is traced on two scalars. If the trace is one of the six monoids, its primitive
// reduces. So every spelling is recognised: lax::add, numpy::add, or [](auto x, auto y) ....
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/primitives/narrow.h>

#include <cmath>

#include "functions/functions.h"
#include "primitives/reduction/window.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using ReduceWindow = Array (*)(Operand, const Shape&, const Shape&, const lax::WindowPadding&,
                               const Shape&, const Shape&);
// What a fold starts with where nothing is to change.
enum class Neutral {
  zero,
  one,
  smallest,
  largest
};  // of the dtype's numbers; infinities of floats
struct Monoid {
  const Primitive* primitive;
  Neutral neutral;
  Array (*combine)(Operand, Operand);
  Array (*reduce)(Operand, std::span<const int>);
  ReduceWindow over_windows;  // of bools: and is min, or is max
  bool of_bits = false;       // windows have it of bools alone
};
const Monoid monoids[] = {
    {&add_p, Neutral::zero, lax::add, lax::reduce_sum, lax::reduce_window_sum},
    {&mul_p, Neutral::one, lax::mul, lax::reduce_prod, lax::reduce_window_prod},
    {&max_p, Neutral::smallest, lax::max, lax::reduce_max, lax::reduce_window_max},
    {&min_p, Neutral::largest, lax::min, lax::reduce_min, lax::reduce_window_min},
    {&and_p, Neutral::largest, lax::bitwise_and, lax::reduce_and, lax::reduce_window_min, true},
    {&or_p, Neutral::smallest, lax::bitwise_or, lax::reduce_or, lax::reduce_window_max, true},
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

// The initial value in the operand's dtype, and whether it is the identity.
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
  const bool is_number = monoid.neutral == Neutral::zero || monoid.neutral == Neutral::one;
  const double number = monoid.neutral == Neutral::one ? 1 : 0;
  if (is_complex(dtype)) return is_number && start.item<complex128>() == complex128(number);
  if (is_number) return start.item<double>() == number;
  const bool largest = monoid.neutral == Neutral::largest;
  if (is_floating(dtype)) return start.item<double>() == (largest ? INFINITY : -INFINITY);
  return start.item<std::int64_t>() ==
         (largest ? largest_finite(dtype) : lowest_finite(dtype)).item<std::int64_t>();
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
  const bool bits = monoid.of_bits;
  if (bits && !is_bool(dtype))
    throw MissingRuleError("reduce_window: bits of dtype " + std::string(name_of(dtype)),
                           "fold bools, or use max, min, add or mul");
  // Windows of bools are reduced as 0 and 1.
  const Array x = bits ? lax::convert_element_type(operand, DType::uint8) : Array(operand);
  auto folded = [&](const Array& from, const WindowPadding& pad, const Shape& base) {
    const Array result =
        monoid.over_windows(from, window_dimensions, window_strides, pad, base, window_dilation);
    return bits ? lax::convert_element_type(result, dtype) : result;
  };
  if (is_identity(monoid, start)) return folded(x, padding, base_dilation);
  // Padding and holes hold the initial value too, as in XLA.
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

[[maybe_unused]] const FunctionInfo* const folding_functions[] = {
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
