// lax::reduce and lax::reduce_window: reductions by a function of the caller, such as lax::max.
//
// The function is traced on two scalars. If the trace is one of the six monoids, its primitive
// reduces. So every spelling is recognised: lax::add, numpy::add, or [](auto x, auto y) .... Any
// other function is applied to pairs of neighbours, by vmap, until one element is left: it may fold
// several arrays at once, and derivatives and batches are those of its own operations.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/primitives/narrow.h>
#include <plait/transforms/transforms.h>

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

// The monoid that a function of two scalars is; none for any other function.
const Monoid* monoid_of(const Function& computation, DType dtype, std::string_view function) {
  const Aval scalar{{}, dtype, false};
  const Traced traced = make_jaxpr([&](std::span<const Array> x) { return computation(x); },
                                   std::vector<Aval>{scalar, scalar}, function);
  const JaxprData& jaxpr = *traced.jaxpr;
  if (jaxpr.equations.size() != 1 || jaxpr.outputs.size() != 1 || !traced.captured.empty())
    return nullptr;
  const Equation& equation = jaxpr.equations[0];
  const bool plain = equation.inputs.size() == 2 && equation.inputs[0].is_var() &&
                     equation.inputs[1].is_var() &&
                     !(equation.inputs[0].var() == equation.inputs[1].var()) &&
                     jaxpr.outputs[0].is_var() && jaxpr.outputs[0].var() == equation.outputs[0];
  for (const Monoid& monoid : monoids)
    if (plain && equation.primitive == monoid.primitive) return &monoid;
  return nullptr;
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

// --- Any function --------------------------------------------------------------------------------

// What a function of n elements and n more gives, in the dtypes of the first n.
Arrays folded_pair(const Function& computation, std::span<const Array> both,
                   std::string_view function) {
  const std::size_t count = both.size() / 2;
  Arrays results = computation(both);
  if (results.size() != count)
    throw ValueError(std::string(function) + ": the computation gives " +
                         std::to_string(results.size()) + " arrays where " + std::to_string(count) +
                         (count == 1 ? " is folded" : " are folded"),
                     "return one for each operand");
  for (std::size_t i = 0; i < count; ++i) {
    const DType dtype = both[i].dtype();
    if (results[i].ndim() != both[i].ndim())
      throw ShapeError(std::string(function) + ": the computation gives an array of shape (" +
                           results[i].shape().to_string() + ") for scalars",
                       "return a scalar for each operand");
    if (results[i].dtype() != dtype && !results[i].aval().weak)
      throw DtypeError(std::string(function) + ": the computation gives " +
                           std::string(name_of(results[i].dtype())) + " for operands of dtype " +
                           std::string(name_of(dtype)),
                       "convert one of them with astype");
    results[i] = yielded(results[i], dtype, false, function);
  }
  return results;
}

// The function on the elements of arrays of one shape.
Arrays combined(const Function& computation, const Arrays& x, const Arrays& y,
                std::string_view function) {
  const Shape shape = x[0].shape();
  Arrays both = x;
  both.insert(both.end(), y.begin(), y.end());
  if (shape.empty()) return folded_pair(computation, both, function);
  const Dim count = shape.num_elements();
  if (count == Dim(0)) return x;
  for (Array& array : both) array = lax::reshape(array, {count});
  flat::VmapOptions lanes;
  lanes.in_dims.assign(both.size(), 0);
  lanes.out_dims = [](std::size_t outputs) { return std::vector<std::optional<int>>(outputs, 0); };
  lanes.size = count;
  Arrays results = flat::vmap(
      [&](std::span<const Array> scalars) { return folded_pair(computation, scalars, function); },
      both, lanes);
  for (Array& array : results) array = lax::reshape(array, shape);
  return results;
}

// Rows, of which there are some, folded along the first axis, in their order.
Arrays folded_rows(const Function& computation, Arrays rows, std::string_view function) {
  const Dim size = rows[0].shape(0);
  if (!size.is_constant())
    throw MissingRuleError(std::string(function) + ": a computation of one's own along " +
                               size.to_string() + " elements",
                           "give add, mul, max, min, bitwise_and or bitwise_or, or a size that is "
                           "a number");
  Shape shape = rows[0].shape();
  shape.erase(0);
  for (std::int64_t n = size.constant(); n > 1; n = n - n / 2) {
    const std::int64_t paired = n / 2 * 2;
    Arrays evens, odds;
    for (const Array& row : rows) {
      evens.push_back(part(row, 0, 0, paired, 2));
      odds.push_back(part(row, 0, 1, paired, 2));
    }
    Arrays halves = combined(computation, evens, odds, function);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = paired == n
                    ? halves[i]
                    : lax::concatenate({halves[i], part(rows[i], 0, paired, paired + 1)}, 0);
  }
  for (Array& row : rows) row = lax::reshape(row, shape);
  return rows;
}

// The initial values, and after them what was folded.
Arrays after_starts(const Function& computation, const Arrays& starts, const Arrays& folded,
                    std::string_view function) {
  Arrays initial;
  for (const Array& start : starts)
    initial.push_back(plait::broadcast_to(start, folded[0].shape()));
  return combined(computation, initial, folded, function);
}

// Operands of one shape and their initial values.
Arrays starts_of(Operands operands, Operands init_values, std::string_view function) {
  if (operands.empty() || operands.size() != init_values.size())
    throw ValueError(std::string(function) + ": " + std::to_string(operands.size()) +
                         " operands and " + std::to_string(init_values.size()) + " initial values",
                     "give one initial value for each operand");
  Arrays starts;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!(operands[i].shape() == operands[0].shape()))
      throw ShapeError(std::string(function) + ": operands of shapes (" +
                           operands[0].shape().to_string() + ") and (" +
                           operands[i].shape().to_string() + ")",
                       "give operands of one shape");
    starts.push_back(start_of(init_values[i], operands[i].dtype(), function));
  }
  return starts;
}

// The windows of an axis, as rows: axis 0 goes through each window.
Array window_rows(const Array& x, int axis, const Windows& windows) {
  const std::int64_t window = windows.window[axis].constant();
  const Dim count = num_windows(x.shape(axis), windows, axis);
  Arrays rows;
  for (std::int64_t k = 0; k < window; ++k) {
    const Dim first = windows.window_dilation[axis] * Dim(k);
    const Dim limit = first + (count - 1) * windows.strides[axis] + 1;
    rows.push_back(numpy::expand_dims(
        part(x, axis, first, count == Dim(0) ? first : limit, windows.strides[axis]), {0}));
  }
  return lax::concatenate(rows, 0);
}

// What windows pad.
std::vector<lax::Padding> amounts_of(const Windows& windows) {
  std::vector<lax::Padding> amounts;
  for (int axis = 0; axis < windows.low.rank(); ++axis)
    amounts.push_back({windows.low[axis], windows.high[axis], windows.base_dilation[axis] - 1});
  return amounts;
}

Function flat_of(const BinaryFunction& computation) {
  return [computation](std::span<const Array> x) { return Arrays{computation(x[0], x[1])}; };
}

}  // namespace

Arrays lax::reduce(Operands operands, Operands init_values, const Function& computation,
                   const std::vector<int>& dimensions) {
  const Arrays starts = starts_of(operands, init_values, "reduce");
  const Array& first = operands[0];
  std::vector<int> axes;
  for (int axis : dimensions) axes.push_back(normalize_axis(axis, first.ndim(), "reduce"));
  if (operands.size() == 1)
    if (const Monoid* monoid = monoid_of(computation, first.dtype(), "reduce")) {
      const Array reduced = monoid->reduce(first, axes);
      return {is_identity(*monoid, starts[0]) ? reduced : monoid->combine(starts[0], reduced)};
    }
  // The axes become one, in front.
  std::sort(axes.begin(), axes.end());
  std::vector<int> order = axes;
  Shape shape{size_of_axes(first.shape(), axes)};
  for (int axis = 0; axis < first.ndim(); ++axis)
    if (!std::binary_search(axes.begin(), axes.end(), axis)) {
      order.push_back(axis);
      shape.push_back(first.shape(axis));
    }
  Arrays rows;
  for (const Array& x : operands) rows.push_back(lax::reshape(lax::transpose(x, order), shape));
  if (shape[0] == Dim(0)) {
    shape.erase(0);
    Arrays empty;
    for (const Array& start : starts) empty.push_back(plait::broadcast_to(start, shape));
    return empty;
  }
  return after_starts(computation, starts, folded_rows(computation, std::move(rows), "reduce"),
                      "reduce");
}
Array lax::reduce(Operand operand, Operand init_value, const BinaryFunction& computation,
                  const std::vector<int>& dimensions) {
  return reduce(Operands{operand}, Operands{init_value}, flat_of(computation), dimensions)[0];
}

namespace {

Array monoid_over_windows(const Monoid& monoid, const Array& operand, const Array& start,
                          const Windows& given, const lax::WindowPadding& padding) {
  const DType dtype = operand.dtype();
  const bool bits = monoid.of_bits;
  // Windows of bools are reduced as 0 and 1.
  const Array x = bits ? lax::convert_element_type(operand, DType::uint8) : operand;
  auto folded = [&](const Array& from, const lax::WindowPadding& pad, const Shape& base) {
    const Array result =
        monoid.over_windows(from, given.window, given.strides, pad, base, given.window_dilation);
    return bits ? lax::convert_element_type(result, dtype) : result;
  };
  if (is_identity(monoid, start)) return folded(x, padding, given.base_dilation);
  // Padding and holes hold the initial value too, as in XLA.
  const Array fill = lax::convert_element_type(start, x.dtype());
  return monoid.combine(start, folded(lax::pad(x, fill, amounts_of(given)), "VALID", {}));
}

}  // namespace

Arrays lax::reduce_window(Operands operands, Operands init_values, const Function& computation,
                          const Shape& window_dimensions, const Shape& window_strides,
                          const WindowPadding& padding, const Shape& base_dilation,
                          const Shape& window_dilation) {
  const Arrays starts = starts_of(operands, init_values, "reduce_window");
  const Array& first = operands[0];
  const int rank = first.ndim();
  Windows windows{window_dimensions, or_ones(window_strides, rank), Shape(rank, 0),
                  Shape(rank, 0),    or_ones(base_dilation, rank),  or_ones(window_dilation, rank)};
  check_windows("reduce_window", windows, rank, first.aval());
  resolve_padding("reduce_window", padding, first.shape(), windows);
  if (operands.size() == 1) {
    const Monoid* monoid = monoid_of(computation, first.dtype(), "reduce_window");
    if (monoid && (!monoid->of_bits || is_bool(first.dtype())))
      return {monoid_over_windows(*monoid, first, starts[0], windows, padding)};
  }
  // Padding and holes hold the initial values, too. The last axes are folded first, so that the
  // elements of a window are in their order.
  Arrays folded;
  for (std::size_t i = 0; i < operands.size(); ++i)
    folded.push_back(lax::pad(operands[i], starts[i], amounts_of(windows)));
  windows.low = windows.high = Shape(rank, 0);
  windows.base_dilation = Shape(rank, 1);
  for (int axis = rank; axis-- > 0;) {
    if (is_trivial(windows, axis)) continue;
    if (!windows.window[axis].is_constant())
      throw MissingRuleError("reduce_window: a computation of one's own over windows of " +
                                 windows.window[axis].to_string() + " elements",
                             "give add, mul, max or min, or a size that is a number");
    Arrays rows;
    for (const Array& x : folded) rows.push_back(window_rows(x, axis, windows));
    folded = folded_rows(computation, std::move(rows), "reduce_window");
  }
  return after_starts(computation, starts, folded, "reduce_window");
}
Array lax::reduce_window(Operand operand, Operand init_value, const BinaryFunction& computation,
                         const Shape& window_dimensions, const Shape& window_strides,
                         const WindowPadding& padding, const Shape& base_dilation,
                         const Shape& window_dilation) {
  return reduce_window(Operands{operand}, Operands{init_value}, flat_of(computation),
                       window_dimensions, window_strides, padding, base_dilation,
                       window_dilation)[0];
}

namespace {

// A function that folds: of two elements, or of as many and as many more as there are operands.
struct Computation {
  static constexpr const char* argument_type = "function of two arrays, or of two tuples of them";
  static constexpr bool takes_function = true;
  static std::optional<Computation> from_argument(const Argument& argument) {
    const auto* function = std::get_if<Function>(&argument.value);
    return function ? std::optional(Computation{*function}) : std::nullopt;
  }
  Function function;
};

// An array, or several; results have the form of the operands.
Arrays arrays_of(const Argument& argument, std::string_view function, const char* name) {
  if (std::optional<Array> array = detail::as_array(argument)) return {*array};
  if (std::optional<Arrays> arrays = detail::as_arrays(argument)) return *arrays;
  throw DtypeError(
      std::string(function) + ": " + name + " is neither an array nor a sequence of arrays",
      "see the documentation of lax." + std::string(function));
}
Argument in_form_of(const Argument& operands, const Arrays& results) {
  return detail::as_array(operands) ? Argument(results[0]) : detail::give(results);
}

Argument reduce_of(const Argument& operands, const Argument& init_values,
                   const Computation& computation, const std::vector<int>& dimensions) {
  return in_form_of(operands, lax::reduce(arrays_of(operands, "reduce", "operands"),
                                          arrays_of(init_values, "reduce", "init_values"),
                                          computation.function, dimensions));
}

Argument reduce_window_of(const Argument& operand, const Argument& init_value,
                          const Computation& computation, const Shape& window_dimensions,
                          const std::optional<Shape>& window_strides,
                          const functions::WindowPadding& padding,
                          const std::optional<Shape>& base_dilation,
                          const std::optional<Shape>& window_dilation) {
  return in_form_of(
      operand,
      lax::reduce_window(arrays_of(operand, "reduce_window", "operand"),
                         arrays_of(init_value, "reduce_window", "init_value"), computation.function,
                         window_dimensions, window_strides.value_or(Shape()), padding,
                         base_dilation.value_or(Shape()), window_dilation.value_or(Shape())));
}

[[maybe_unused]] const FunctionInfo* const folding_functions[] = {
    function("lax", "reduce(operands, init_values, computation, dimensions, *, out_sharding=None!)",
             "The elements over axes folded by a function of two scalars, which is associative, "
             "from init_values. add, mul, max, min, bitwise_and and bitwise_or, in any spelling "
             "(lax.max, numpy.maximum, a lambda), are the fast reductions; any other function is "
             "applied to neighbours, log2(n) times. operands may be a tuple of arrays of one "
             "shape: then init_values is a tuple, computation takes two and returns one. "
             "MissingRuleError for another function over an axis of a named size.",
             &reduce_of),
    function("lax",
             "reduce_window(operand, init_value, computation, window_dimensions, "
             "window_strides=None, padding='VALID', base_dilation=None, window_dilation=None)",
             "Windows folded by a function of two scalars, which is associative, from init_value, "
             "which padding and the holes of base_dilation hold too: reduce_window(x, -inf, "
             "lax.max, (2, 2), (2, 2)) is max-pooling. padding: 'VALID', 'SAME', 'SAME_LOWER' or "
             "pairs. Functions, and tuples of operands, are those of reduce. MissingRuleError for "
             "a function that reduce does not know and windows of a named size.",
             &reduce_window_of),
};

}  // namespace
}  // namespace plait
