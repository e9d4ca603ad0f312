// scatter: combines updates into windows of an array, at positions given by rows of indices.
//
//   operand [b..., o...], indices [b..., i..., k]: as in gather.cpp
//   updates [b..., i..., w...]                     of the shape of gather with the same parameters
//   result  [b..., o...]
//   for each (b, i) in row-major order, for each w:
//     result[b, start(indices[b, i]) + w] = kind(result[b, start + w], updates[b, i, w])
//
// kind: set (the update; the last one wins), add, mul, min, max (NaN wins). A window that does not
// lie inside the operand is, by mode: an IndexError, before anything is written (check); moved to
// the nearest that does (clip); left out (fill, promise). `unique` promises that no two windows of
// a batch overlap.
//
// Updates are combined in that order, or for each of several parts of the rows, on any number of
// threads: see NOTE: [scatter order]. So sums
// are deterministic to the bit, and set is a linear function of operand and updates.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/indexing/index_rows.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

#include <algorithm>

namespace plait {
namespace {

using namespace indexing;
using Kind = lax::ScatterKind;
using Mode = lax::GatherScatterMode;

constexpr const char* kind_names[] = {"set", "add", "mul", "min", "max"};

// --- Differentiation -----------------------------------------------------------------------------

Array scatter_kind(Kind kind, const Array& x, const Array& indices, const Array& updates,
                   const Params& params) {
  return bind(scatter_p, {x, indices, updates},
              params.with("kind", std::string(kind_names[int(kind)])));
}

// The elements of x at the positions of updates of this shape; 0 for updates that are left out.
Array at_updates(const Array& x, const Array& indices, const Shape& updates, const Params& params) {
  const lax::IndexDimensions dimensions = dimensions_of(params);
  return lax::gather(x, indices, dimensions, window_sizes(x.ndim(), updates, dimensions),
                     mode_of(params), 0.0);
}

Array full_like(const Array& x, double value) { return lax::full(x.shape(), value, x.dtype()); }
Array as_number(const Array& predicate, DType dtype) {
  return lax::convert_element_type(predicate, dtype);
}

// True for the updates that remain where several set an element: found by scattering the updates'
// numbers.
Array winners(const Array& indices, const Aval& operand, const Aval& updates,
              const Params& params) {
  const Dim count = updates.shape.num_elements();
  // The low 32 bits suffice to distinguish fewer than 2^32 updates.
  const DType dtype =
      less_equal(std::int64_t(1) << 32, count).value_or(false) ? DType::int64 : DType::int32;
  const Array numbers = lax::reshape(lax::iota(dtype, {count}, 0), updates.shape);
  const Array none = lax::full(operand.shape, -1, dtype);
  const Array standing = scatter_kind(Kind::set, none, indices, numbers, params);
  return lax::eq(at_updates(standing, indices, updates.shape, params), numbers);
}

// For each update, the product of all other factors of its element. That is result / update, except
// where the update is 0: there it is the product without zeros, if no other zero is a factor.
// (Second derivatives with respect to two zeros of one element are lost.)
Array product_of_others(const Array& x, const Array& indices, const Array& updates,
                        const Array& out, const Params& params) {
  const Shape& shape = updates.shape();
  const Array zero = Array::literal(0, updates.dtype()), one = Array::literal(1, updates.dtype());
  const Array is_zero = lax::eq(updates, zero), divisors = lax::select(is_zero, one, updates);
  const Array counts = scatter_kind(Kind::add, lax::full(x.shape(), 0, DType::int32), indices,
                                    as_number(is_zero, DType::int32), params);
  const Array without = scatter_kind(Kind::mul, x, indices, divisors, params);
  const Array only =
      lax::eq(at_updates(counts, indices, shape, params), Array::literal(1, DType::int32));
  const Array at_zero =
      lax::select(only, at_updates(without, indices, shape, params), full_like(updates, 0));
  return lax::select(is_zero, at_zero, lax::div(at_updates(out, indices, shape, params), divisors));
}

// Of products, and of the least or the greatest, where each element has one update at most.
Tangent product_or_best_of_windows(std::span<const Array> primals,
                                   std::span<const Tangent> tangents, const Array& out,
                                   const Params& params) {
  const Array &x = primals[0], &indices = primals[1], &updates = primals[2];
  const auto windows = [&](const Array& array) {
    return at_updates(array, indices, updates.shape(), params);
  };
  const Array old = windows(x);
  std::optional<Array> total;
  const auto add = [&](const Array& tangent, const Array& factor) {
    const Array part = lax::mul(tangent, factor);
    total = total ? lax::add(*total, part) : part;
  };
  if (scatter_kind_of(params) == Kind::mul) {
    if (!tangents[0].is_zero()) add(windows(tangents[0].array()), updates);
    if (!tangents[2].is_zero()) add(tangents[2].array(), old);
  } else {
    const Array best = windows(out);
    const Array x_won = as_number(lax::eq(old, best), out.dtype()),
                won = as_number(lax::eq(updates, best), out.dtype());
    const Array shares = lax::max(lax::add(x_won, won), Array::literal(1, out.dtype()));
    if (!tangents[0].is_zero()) add(windows(tangents[0].array()), lax::div(x_won, shares));
    if (!tangents[2].is_zero()) add(tangents[2].array(), lax::div(won, shares));
  }
  return scatter_kind(Kind::set, tangents[0].instantiate(), indices, *total, params);
}

Tangents jvp_scatter(std::span<const Array> primals, std::span<const Tangent> tangents,
                     std::span<const Array> outputs, const Params& params) {
  const Array &x = primals[0], &indices = primals[1], &updates = primals[2], &out = outputs[0];
  const Kind kind = scatter_kind_of(params);
  if (kind == Kind::set || kind == Kind::add) {
    const Array dx = tangents[0].instantiate(), du = tangents[2].instantiate();
    return {scatter_kind(kind, dx, indices, du, params)};
  }
  Tangent total(out.aval());
  // Where no two windows share an element, what an update changes lies in its window, and a loop
  // that updates elements one by one keeps numbers instead of arrays.
  if (is_disjoint(params, indices.shape()))
    return {product_or_best_of_windows(primals, tangents, out, params)};
  if (kind == Kind::mul) {  // d (x prod u) = dx prod u + sum_j du_j (x prod of the other u)
    if (!tangents[0].is_zero())
      total = Array(lax::mul(tangents[0].array(),
                             scatter_kind(Kind::mul, full_like(x, 1), indices, updates, params)));
    if (tangents[2].is_zero()) return {total};
    const Array du =
        lax::mul(tangents[2].array(), product_of_others(x, indices, updates, out, params));
    return {total.is_zero() ? scatter_kind(Kind::add, full_like(x, 0), indices, du, params)
                            : scatter_kind(Kind::add, total.array(), indices, du, params)};
  }
  // The tangent goes to the operand or update that won; equal ones share it.
  const Array x_won = as_number(lax::eq(x, out), out.dtype());
  const Array won =
      as_number(lax::eq(updates, at_updates(out, indices, updates.shape(), params)), out.dtype());
  const Array shares = lax::max(scatter_kind(Kind::add, x_won, indices, won, params),
                                Array::literal(1, out.dtype()));
  const Array dx =
      tangents[0].is_zero() ? full_like(x, 0) : Array(lax::mul(tangents[0].array(), x_won));
  if (tangents[2].is_zero()) return {Array(lax::div(dx, shares))};
  const Array sum =
      scatter_kind(Kind::add, dx, indices, lax::mul(tangents[2].array(), won), params);
  return {Array(lax::div(sum, shares))};
}

Tangents transpose_scatter(std::span<const Tangent> cotangents,
                           std::span<const TransposeInput> inputs, const Params& params) {
  const Array &ct = cotangents[0].array(), &indices = inputs[1].known();
  const Aval& updates = inputs[2].aval();
  const Kind kind = scatter_kind_of(params);
  if (kind == Kind::min || kind == Kind::max || (kind == Kind::mul && inputs[2].is_linear()))
    throw ValueError("transpose: a scatter of kind " + params.text("kind") + " is not linear",
                     "linearize the function first");
  Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval()), Tangent(updates)};
  if (inputs[0].is_linear()) {
    if (kind == Kind::add)
      result[0] = ct;
    else if (kind == Kind::mul)
      result[0] = Array(lax::mul(
          ct, scatter_kind(Kind::mul, full_like(ct, 1), indices, inputs[2].known(), params)));
    else
      result[0] =
          scatter_kind(Kind::set, ct, indices, lax::full(updates.shape, 0, ct.dtype()), params);
  }
  if (inputs[2].is_linear()) {
    Array du = at_updates(ct, indices, updates.shape, params);
    if (kind == Kind::set && !is_disjoint(params, indices.shape()))
      du = lax::select(winners(indices, inputs[0].aval(), updates, params), du, full_like(du, 0));
    result[2] = du;
  }
  return result;
}

// --- Batching ------------------------------------------------------------------------------------

std::vector<Batched> batch_scatter(Dim size, std::span<const Batched> inputs,
                                   const Params& params) {
  const Batched &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  lax::IndexDimensions dimensions = dimensions_of(params);
  const int first = dimensions.batch_dims;
  int dim = 0, updates_dim = 0;
  if (indices.dim) {
    ++dimensions.batch_dims;
  } else {
    // Every window is written in all examples: the batch axis is one more axis of it.
    dim = std::max(x.dim.value_or(first), first);
    updates_dim = indices.array.ndim() - 1;
    for (int axis = first; axis < dim; ++axis) updates_dim += !contains(dimensions.collapse, axis);
  }
  for (std::vector<int>* list : {&dimensions.axes, &dimensions.collapse})
    for (int& axis : *list) axis += axis >= dim;
  const Params changed = params.with("axes", to_shape(dimensions.axes))
                             .with("collapse", to_shape(dimensions.collapse))
                             .with("batch_dims", Dim(dimensions.batch_dims));
  const Array rows = indices.dim ? move_batch(indices, size, 0) : indices.array;
  return {{Array(bind(scatter_p,
                      {move_batch(x, size, dim), rows, move_batch(updates, size, updates_dim)},
                      changed)),
           dim}};
}

// --- Masking -------------------------------------------------------------------------------------

// A scatter of padded arrays while it is rewritten so that no padding overwrites real elements.
struct MaskedScatter {
  Array x, rows, updates;
  lax::IndexDimensions dimensions;
  Shape window;     // real sizes
  Shape rows_real;  // the real shape of rows
  Mode mode;
};

// Without indexed axes no index can leave a row out, so an axis of size 1 is added and indexed.
void index_something(MaskedScatter& s) {
  if (!s.dimensions.axes.empty()) return;
  const int axis = s.dimensions.batch_dims;
  s.x = lax::reshape(s.x, inserted(s.x.shape(), axis, 1));
  for (int& other : s.dimensions.collapse) ++other;
  s.dimensions.axes = {axis};
  s.dimensions.collapse.push_back(axis);
  s.window.insert(0, 1);
  s.rows_real.back() = 1;
  Shape shape = s.rows.shape();
  shape.back() = 1;
  s.rows = lax::full(shape, 0, s.rows.dtype());
}

// A window of named size along an axis becomes windows of size 1, each with its own index, which
// can be left out.
void index_elements(MaskedScatter& s, int axis) {
  const int k = int(s.dimensions.axes.size()), rank = s.rows.ndim(),
            batch_dims = s.dimensions.batch_dims;
  int from = rank - 1;
  for (int other = batch_dims; other < axis; ++other)
    from += !contains(s.dimensions.collapse, other);
  std::vector<int> order;
  for (int i = 0; i < s.updates.ndim(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + rank - 1, from);
  s.updates = transposed(s.updates, order);
  const Dim size = s.updates.shape(rank - 1);

  std::vector<int> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(i + 1 < rank ? i : rank);
  s.rows = lax::broadcast_in_dim(s.rows, inserted(s.rows.shape(), rank - 1, size), dims);
  const auto found = std::find(s.dimensions.axes.begin(), s.dimensions.axes.end(), axis);
  if (found == s.dimensions.axes.end()) {
    Shape column = s.rows.shape();
    column.back() = 1;
    s.rows = lax::concatenate({s.rows, lax::iota(s.rows.dtype(), column, rank - 1)}, rank);
    s.dimensions.axes.push_back(axis);
  } else {
    const Array step = lax::iota(s.rows.dtype(), s.rows.shape(), rank - 1),
                moved = lax::add(s.rows, step);
    const Array component = lax::iota(s.rows.dtype(), s.rows.shape(), rank);
    s.rows =
        k == 1 ? moved
               : Array(lax::select(
                     lax::eq(component, literal_like(component, found - s.dimensions.axes.begin())),
                     moved, s.rows));
  }
  s.dimensions.collapse.push_back(axis);
  s.rows_real.insert(rank - 1, s.window[axis - batch_dims]);
  s.rows_real.back() = Dim(std::int64_t(s.dimensions.axes.size()));
  s.window[axis - batch_dims] = 1;
}

Arrays mask_scatter(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                    const SizeValues& sizes) {
  const Masked &x = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const lax::IndexDimensions dimensions = dimensions_of(params);
  const Shape window = window_sizes(x.aval.rank(), updates.aval.shape, dimensions);
  MaskedScatter s{x.padded,       signed_indices(indices.padded),
                  updates.padded, dimensions,
                  window,         indices.aval.shape,
                  mode_of(params)};
  if (s.mode == Mode::check) {
    s.rows = checked_rows("scatter", s.rows, s.rows_real, x, dimensions, window, sizes);
    s.mode = Mode::fill;
  }
  const Mode mode = s.mode;
  if (has_ragged_axes(x.aval.shape, dimensions, window)) {
    s.rows = rows_in_real_sizes(s.rows, x, dimensions, window, mode, sizes);
    if (mode == Mode::clip) s.mode = Mode::fill;
  }
  std::vector<int> partial;  // axes along which a window's padding would overwrite real elements
  for (int axis = dimensions.batch_dims; axis < x.aval.rank(); ++axis) {
    const Dim size = window[axis - dimensions.batch_dims];
    if (!size.is_constant() && !(size == x.aval.shape[axis])) partial.push_back(axis);
  }
  if (!s.rows_real.is_constant() || !partial.empty()) {
    if (s.mode ==
        Mode::clip) {  // only mode fill leaves rows out, so other rows are moved inside here
      s.rows = rows_in_real_sizes(s.rows, x, dimensions, window, mode, sizes);
      s.mode = Mode::fill;
    }
    if (s.mode == Mode::promise) s.mode = Mode::fill;
    if (s.mode == Mode::fill && !partial.empty()) {
      // Windows left out so far start below 0, and must stay out when starts are moved.
      const Array outside = lax::lt(s.rows, literal_like(s.rows, 0));
      s.rows = lax::select(outside, literal_like(s.rows, -(std::int64_t(1) << 30)), s.rows);
    }
    index_something(s);
    std::sort(partial.begin(), partial.end());
    const int shift = s.x.ndim() - x.padded.ndim();
    for (int axis : partial) index_elements(s, axis + shift);
  }
  const std::optional<Array> real = validity(s.rows_real, sizes);
  if (real) s.rows = lax::select(*real, s.rows, literal_like(s.rows, -1));
  const Params changed = params_of(s.dimensions, s.mode,
                                   {{"kind", params.text("kind")},
                                    {"unique", params.flag("unique")},
                                    {"sorted", params.flag("sorted") && !real}});
  const Array out = bind(scatter_p, {s.x, s.rows, s.updates}, changed);
  return {out.shape() == x.padded.shape() ? out : lax::reshape(out, x.padded.shape())};
}

// --- Samples -------------------------------------------------------------------------------------

std::vector<Sample> scatter_samples() {
  const auto input = [](Shape shape) { return Sample::Input{{shape, DType::float64}}; };
  const auto indices = [](Shape shape, std::int64_t limit) {
    return Sample::Input{{shape, DType::int32}, Sample::Input::Values::indices, limit};
  };
  auto params = [](lax::IndexDimensions dimensions, Kind kind, Mode mode, bool unique = false) {
    return params_of(
        dimensions, mode,
        {{"kind", std::string(kind_names[int(kind)])}, {"unique", unique}, {"sorted", false}});
  };
  std::vector<Sample> samples;
  for (Kind kind : {Kind::set, Kind::add, Kind::mul, Kind::min, Kind::max}) {
    samples.push_back({{input({4, 3}), indices({5, 1}, 4), input({5, 3})},
                       params({{0}, {0}, 0}, kind, Mode::check)});
    samples.push_back({{input({4, 5}), indices({3, 2}, 6), input({3, 2, 2})},
                       params({{1, 0}, {}, 0}, kind, Mode::fill)});
    samples.push_back({{input({2, 5}), indices({2, 3, 1}, 8), input({2, 3})},
                       params({{1}, {1}, 1}, kind, Mode::clip)});
  }
  samples.push_back({{input({2, 4, 3}), indices({2, 1}, 4), input({2, 2, 3})},
                     params({{1}, {}, 1}, Kind::set, Mode::clip, true)});
  samples.push_back({{input({4, 3}), indices({1}, 4), input({3})},
                     params({{0}, {0}, 0}, Kind::set, Mode::promise, true)});
  samples.push_back({{input({4}), indices({0, 1}, 4), input({0})},
                     params({{0}, {0}, 0}, Kind::add, Mode::check)});
  samples.push_back({{input({4}), indices({2, 0}, 1), input({2, 4})},
                     params({{}, {}, 0}, Kind::add, Mode::check)});
  return samples;
}

double scatter_flops(cost::Avals inputs, cost::Avals, const Params& params) {
  return params.text("kind") == "set" ? 0 : elements_of(inputs[2]);
}

// Sets a window, or combines it with what it is updated by.
void update_window(loops::Writer& w, const Equation& equation, const loops::Tensor& window,
                   const loops::Tensor& updates) {
  const Kind kind = scatter_kind_of(equation.params);
  if (kind == Kind::set) return w.copy(updates, window);
  loops::Formula combined;
  combined.work = 1;
  combined.reads = w.reads_of(window);
  for (const loops::Formula::Read& read : w.reads_of(updates)) combined.reads.push_back(read);
  combined.element = [&](std::span<const loops::Index> indices) {
    return updated(w, kind, w.element(window, indices), w.element(updates, indices),
                   updates.aval.dtype, equation.source);
  };
  w.copy(w.computed(updates.aval, std::move(combined)), window);
}

// Of windows, those that differ in the first digits of their rows in any order.
void for_rows_apart(loops::Writer& w, const Equation& equation, const Shape& rows, int num_apart,
                    const std::function<void(std::span<const loops::Index>)>& update_at) {
  const written::Writing writing(w, equation.source);
  const auto split = rows.begin() + num_apart;
  written::for_all(Shape(rows.begin(), split), [&](const loops::Indices& first) {
    w.for_each(Shape(split, rows.end()), [&](std::span<const loops::Index> rest) {
      loops::Indices row = first;
      row.insert(row.end(), rest.begin(), rest.end());
      update_at(row);
    });
  });
}

// Several windows, one after the other.
void update_windows(loops::Writer& w, const Equation& equation, const loops::Tensor& whole,
                    const loops::Tensor& indices, const loops::Tensor& updates,
                    const Shape& sizes) {
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const lax::GatherScatterMode mode = mode_of(equation.params);
  const Shape rows(indices.aval.shape.begin(), indices.aval.shape.end() - 1);
  if (mode == lax::GatherScatterMode::check) check_windows(w, equation, whole, indices, sizes);
  const auto update_at = [&](std::span<const loops::Index> row) {
    loops::Tensor window = whole, update = updates;
    for (std::size_t i = 0; i < row.size(); ++i) {
      loops::add_index(update.place, row[i], update.strides[0]);
      update.strides.erase(0);
      update.aval.shape.erase(0);
      if (int(i) < dimensions.batch_dims) loops::add_index(window.place, row[i], whole.strides[i]);
    }
    std::optional<loops::Value> lies_inside;
    for (std::size_t i = 0; i < dimensions.axes.size(); ++i) {
      loops::Value start = start_of_window(w, indices, row, i);
      const std::int64_t last = last_start(whole, dimensions, sizes, i);
      if (mode == lax::GatherScatterMode::fill) {
        const auto compared = [&](const char* direction, std::int64_t bound) {
          return w.compute(cmp_p, {{"direction", std::string(direction)}},
                           {start, w.integer(bound)}, equation.source);
        };
        const loops::Value fits =
            w.compute(and_p, {}, {compared("ge", 0), compared("le", last)}, equation.source);
        lies_inside =
            lies_inside ? w.compute(and_p, {}, {*lies_inside, fits}, equation.source) : fits;
      } else if (mode == lax::GatherScatterMode::check) {
        start = w.checked(start, 0, last);
      } else {
        start = w.clamped(start, 0, last);
      }
      loops::add_index(window.place, {0, {{start, 1}}},
                       whole.strides[std::size_t(dimensions.axes[i])]);
    }
    window.strides.clear();
    for (int axis = 0; axis < sizes.rank(); ++axis)
      if (!contains(dimensions.collapse, dimensions.batch_dims + axis))
        window.strides.push_back(whole.strides[std::size_t(dimensions.batch_dims + axis)]);
    window.aval.shape = update.aval.shape;
    if (!lies_inside) return update_window(w, equation, window, update);
    w.branch(w.compute(cast_p, {{"dtype", DType::int32}, {"weak", false}}, {*lies_inside},
                       equation.source),
             2, [&](std::size_t is_inside) {
               if (is_inside) update_window(w, equation, window, update);
               return loops::Tensors{};
             });
  };
  const bool are_apart = is_disjoint(equation.params, indices.aval.shape);
  if (rows.rank() == 1 && are_apart)
    w.for_each_apart(rows[0].constant(),
                     [&](const loops::Index& row) { update_at(std::span(&row, 1)); });
  else if (w.has_kernels())
    w.for_each(rows, update_at);
  else  // threads of a GPU share what is apart: windows that do not overlap, and batches
    for_rows_apart(w, equation, rows, are_apart ? rows.rank() : dimensions.batch_dims, update_at);
}

// Whether one element changes of each row along the last axis.
bool changes_one_of_rows(const Equation& equation, const Shape& array, const Shape& indices,
                         const Shape& updates) {
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const int last = array.rank() - 1;
  if (last < 0 || dimensions.batch_dims != last || dimensions.axes != std::vector<int>{last} ||
      array[last] == Dim(0) || window_sizes(array.rank(), updates, dimensions)[0] != Dim(1))
    return false;
  return std::all_of(indices.begin() + last, indices.end(), [](Dim dim) { return dim == Dim(1); });
}

// The rows of an array that no memory holds, each with one element changed: a choice at each.
loops::Tensor rows_with_one_changed(loops::Writer& w, const Equation& equation,
                                    const loops::Tensor& array, const loops::Tensor& indices,
                                    const loops::Tensor& updates) {
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const Shape sizes = window_sizes(array.aval.rank(), updates.aval.shape, dimensions);
  const Mode mode = mode_of(equation.params);
  if (mode == Mode::check) check_windows(w, equation, array, indices, sizes);
  const std::int64_t last = last_start(array, dimensions, sizes, 0);
  loops::Formula formula;
  formula.work = array.formula->work + 2;  // the change is the same along a row
  formula.reads = w.reads_of(array);
  for (const loops::Tensor* each : {&indices, &updates})
    for (loops::Formula::Read read : w.reads_of(*each)) {
      read.is_anywhere = true;
      formula.reads.push_back(std::move(read));
    }
  formula.element = [=, &w, kind = scatter_kind_of(equation.params),
                     source = equation.source](std::span<const loops::Index> at) {
    const auto of_row = [&](const loops::Tensor& tensor) {
      loops::Indices row(at.begin(), at.end() - 1);
      row.resize(std::size_t(tensor.aval.rank()), loops::Index{0});
      return row;
    };
    const auto row = of_row(indices);
    loops::Value place = start_of_window(w, indices, std::span(row).first(row.size() - 1), 0);
    if (mode == Mode::check)
      place = w.checked(place, 0, last);
    else if (mode != Mode::fill)
      place = w.clamped(place, 0, last);
    const loops::Value is_here =
        w.compute(cmp_p, {{"direction", std::string("eq")}}, {w.number(at.back()), place}, source);
    const loops::Value before = w.element(array, at), update = w.element(updates, of_row(updates));
    return w.compute(select_p, {},
                     {is_here, updated(w, kind, before, update, array.aval.dtype, source), before},
                     source);
  };
  return w.computed(array.aval, std::move(formula));
}

loops::Tensors emit_scatter(loops::Writer& w, const Equation& equation,
                            std::span<const loops::Tensor> inputs) {
  const loops::Tensor &indices = inputs[1], &updates = inputs[2];
  const lax::IndexDimensions dimensions = dimensions_of(equation.params);
  const DType dtype = updates.aval.dtype;
  if (w.has_kernels() && scatter_kind_of(equation.params) != Kind::set &&
      (dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::bool_))
    w.refuse("`scatter` of kind " + equation.params.text("kind") + " of " +
             std::string(name_of(dtype)));
  if (num_parts_of(equation.params, inputs[0].aval.shape, indices.aval.shape, updates.aval.shape) >
      1) {
    if (w.has_kernels()) w.refuse("`scatter` of many updates");
    return {scattered_in_parts(w, equation, inputs)};
  }
  const bool is_one =
      dimensions.batch_dims == 0 &&
      indices.aval.shape.num_elements() == Dim(std::int64_t(dimensions.axes.size())) &&
      mode_of(equation.params) != lax::GatherScatterMode::fill;
  if (is_one) {
    const loops::Tensor whole = w.to_overwrite(0);
    const Shape sizes = window_sizes(whole.aval.rank(), updates.aval.shape, dimensions);
    update_window(w, equation, only_window(w, equation, whole, indices, sizes, updates.aval.shape),
                  updates);
    return {whole};
  }
  constexpr double most_work = 16;  // that is done for the test and for the window
  const bool is_cheap = indices.formula && indices.formula->work <= most_work;
  const loops::Tensor rows = is_cheap ? indices : w.in_memory(indices);
  if (inputs[0].formula &&
      changes_one_of_rows(equation, inputs[0].aval.shape, indices.aval.shape, updates.aval.shape)) {
    const bool are_cheap = updates.formula && updates.formula->work <= most_work;
    return {rows_with_one_changed(w, equation, inputs[0], rows,
                                  are_cheap ? updates : w.in_memory(updates))};
  }
  const loops::Tensor values = w.in_memory(updates);
  const loops::Tensor whole = w.to_overwrite(0);
  if (!w.has_kernels() && !is_disjoint(equation.params, indices.aval.shape) &&
      scattered_in_order(w, equation, whole, rows, values))
    return {whole};
  update_windows(w, equation, whole, rows, values,
                 window_sizes(whole.aval.rank(), updates.aval.shape, dimensions));
  return {whole};
}

}  // namespace

constinit const Primitive scatter_p{"scatter"};
static const auto scatter_def =
    define(scatter_p,
           "The first operand with the third set, added, multiplied, or its minimum or maximum "
           "taken, in windows that start where "
           "rows of the second say.")
        .operands(3)
        .takes_stored()
        .overwrites(0)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          const Aval &indices = inputs[1], &updates = inputs[2];
          const lax::IndexDimensions dimensions = dimensions_of(params);
          require_same_dtype("scatter", aval, updates, "the updates have");
          const Kind kind = scatter_kind_of(params);
          if (kind != Kind::set && is_stored(aval.dtype)) throw_stored(aval.dtype);
          if (kind == Kind::min || kind == Kind::max)
            require_dtype("scatter of kind " + params.text("kind"), aval, real_numbers | boolean);
          const int rank = indices.rank() - 1 + aval.rank() - dimensions.batch_dims -
                           int(dimensions.collapse.size());
          if (updates.rank() != rank)
            throw ShapeError("scatter: updates of shape " + text_of(updates.shape) +
                                 " do not hold the axes of indices of shape " +
                                 text_of(indices.shape) +
                                 " and of windows of an operand of shape " + text_of(aval.shape),
                             "give updates of " + std::to_string(rank) + " dimensions");
          const Shape window = window_sizes(aval.rank(), updates.shape, dimensions);
          Shape expected = leading_shape("scatter", aval, indices, params, window);
          for (int i = 0; i < window.rank(); ++i)
            if (!contains(dimensions.collapse, dimensions.batch_dims + i))
              expected.push_back(window[i]);
          if (!(expected == updates.shape))
            throw ShapeError("scatter: updates have shape " + text_of(updates.shape) +
                                 ", and indices of shape " + text_of(indices.shape) + " want " +
                                 text_of(expected),
                             "give updates of shape " + text_of(expected));
          aval.weak &= updates.weak;
          return std::vector<Aval>{aval};
        })
        .rule<Emit>(emit_scatter)
        .rule<Eval>(eval_scatter)
        .rule<Cost>(cost::arithmetic(scatter_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::movement)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
        .rule<Jvp>(jvp_scatter)
        .rule<Transpose>(transpose_scatter)
        .rule<Batch>(batch_scatter)
        .rule<Mask>(mask_scatter)
        .rule<Guard>({checks,
                      [](const Array& live, std::span<const Array> inputs, const Params& params) {
                        const lax::IndexDimensions dimensions = dimensions_of(params);
                        const Shape& array = inputs[0].shape();
                        const Array rows = guarded_rows(
                            "scatter", live, signed_indices(inputs[1]), array, dimensions,
                            window_sizes(array.rank(), inputs[2].shape(), dimensions));
                        return Arrays(bind(scatter_p, {inputs[0], rows, inputs[2]},
                                           params.with("mode", std::string("fill"))));
                      },
                      true})
        .rule<Samples>(scatter_samples);

Array lax::scatter(Operand operand, Operand indices, Operand updates,
                   const IndexDimensions& dimensions, ScatterKind kind,
                   const ScatterOptions& options) {
  const Params params = last_params(
      [&] {
        return params_of(dimensions, options.mode,
                         {{"kind", std::string(kind_names[int(kind)])},
                          {"unique", options.unique_indices},
                          {"sorted", options.indices_are_sorted}});
      },
      dimensions.axes, dimensions.collapse, dimensions.batch_dims, options.mode, kind,
      options.unique_indices, options.indices_are_sorted);
  return bind(scatter_p, {operand, indices, in_dtype_of(updates, operand)}, params);
}

namespace {

Array scatter_by_numbers(const Array& operand, const Array& indices, const Array& updates,
                         const lax::ScatterDimensionNumbers& numbers, Kind kind,
                         const lax::ScatterOptions& options) {
  const Canonical form = canonical(
      "scatter", operand.ndim(), indices.ndim(), updates.ndim(), numbers.update_window_dims,
      numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims,
      numbers.operand_batching_dims, numbers.scatter_indices_batching_dims);
  const Array array = transposed(operand, form.operand), rows = transposed(indices, form.indices);
  const Array values = transposed(updates, form.result);
  return transposed(lax::scatter(array, rows, values, form.dimensions, kind, options),
                    inverse_of(form.operand));
}

}  // namespace

Array lax::scatter(Operand operand, Operand scatter_indices, Operand updates,
                   const ScatterDimensionNumbers& dimension_numbers,
                   const ScatterOptions& options) {
  return scatter_by_numbers(operand, scatter_indices, updates, dimension_numbers, Kind::set,
                            options);
}
Array lax::scatter_add(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_by_numbers(operand, scatter_indices, updates, dimension_numbers, Kind::add,
                            options);
}
Array lax::scatter_mul(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_by_numbers(operand, scatter_indices, updates, dimension_numbers, Kind::mul,
                            options);
}
Array lax::scatter_min(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_by_numbers(operand, scatter_indices, updates, dimension_numbers, Kind::min,
                            options);
}
Array lax::scatter_max(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_by_numbers(operand, scatter_indices, updates, dimension_numbers, Kind::max,
                            options);
}

}  // namespace plait
