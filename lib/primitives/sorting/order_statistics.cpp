// order_statistics: the elements at some places of an axis after sorting, by selection. Everything
// but its kernel is that of sort.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/primitives/order_statistics.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <cmath>
#include <limits>

#include "primitives/cost.h"
#include "primitives/reduction/order.h"
#include "primitives/sorting/emit_sort.h"
#include "primitives/sorting/sort_numbers.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

namespace plait {
namespace {

using Places = std::span<const std::int64_t>;

Sizes64 places_of(const Params& params) { return params.get<Shape>("places").to_sizes(); }

Params sort_params(int axis) {
  return {{"axis", Dim(axis)}, {"num_keys", Dim(1)}, {"stable", true}, {"descending", false}};
}

// Numbers whose equals are equal in their bits: any others are told apart by their order alone.
template <class T>
bool are_unlike(const T* row, std::int64_t n) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::any_of(row, row + n, [](T x) {
      return !(float(x) == float(x)) || (float(x) == 0 && std::signbit(float(x)));
    });
}

template <class T>
void select_in_row(const T* row, T* dst, std::int64_t n, Places places) {
  using Key = UnsignedOf<sizeof(T)>;
  const Scratch<Key> keys(n);
  if constexpr (sizeof(T) >= 4)
    if (sorts_in_vectors<T>(n)) {
      const UnlikeEquals<T> unlike(row, n, 0);
      const std::span<Key> all(keys.get(), std::size_t(n));
      write_keys(row, all, keys_of<T>(false));
      vector_select(all, places);
      for (const std::int64_t place : places)
        *dst++ = unlike.at(keys.get()[place], place, keys.get(), n);
      return;
    }
  if (are_unlike(row, n)) {
    const Scratch<T> sorted(n);
    std::copy_n(row, n, sorted.get());
    std::stable_sort(sorted.get(), sorted.get() + n,
                     [](T x, T y) { return order_key(x) < order_key(y); });
    for (const std::int64_t place : places) *dst++ = sorted.get()[place];
    return;
  }
  std::transform(row, row + n, keys.get(), [](T x) { return order_key(x); });
  std::int64_t begin = 0;
  for (const std::int64_t place : places) {
    std::nth_element(keys.get() + begin, keys.get() + place, keys.get() + n);
    *dst++ = number_of_key<T>(keys.get()[place]);
    begin = place + 1;
  }
}

void order_statistics_eval(std::span<const View> inputs, std::span<const View> outputs,
                           const Params& params) {
  const int axis = int(params.integer("axis"));
  const Sizes64 places = places_of(params);
  const auto num_places = std::int64_t(places.size());
  if (num_elements(outputs[0].shape) == 0) return;
  const std::int64_t n = inputs[0].shape[axis], rows = num_elements(inputs[0].shape) / n;
  const View source = with_axis_last(inputs[0], axis), target = with_axis_last(outputs[0], axis);
  const Buffer dense = source.is_dense() ? Buffer({}, source) : Buffer::copy_of(source);
  const Buffer keep =
      target.is_dense() ? Buffer({}, target) : Buffer::empty(target.dtype, target.shape);
  visit_dtype(inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!is_complex_v<T>) {
      const T* const from = static_cast<const T*>(dense.data());
      T* const to = keep.view().as<T>();
      const std::int64_t grain = std::max<std::int64_t>(1, 32768 / n);
      parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row)
          select_in_row(from + row * n, to + row * num_places, n, {places.begin(), places.end()});
      });
    }
  });
  if (!target.is_dense()) copy_elements(keep.view(), target);
}

loops::Tensors emit_order_statistics(loops::Writer& w, const Equation& equation,
                                     std::span<const loops::Tensor> inputs) {
  const auto axis = std::size_t(equation.params.integer("axis"));
  Equation sorting = equation;
  sorting.primitive = &sort_p;
  sorting.params = sort_params(int(axis));
  const loops::Tensor sorted = w.in_memory(emit_sort(w, sorting, inputs)[0]);
  const written::Writing writing(w, equation.source);
  const Sizes64 places = places_of(equation.params);
  Aval aval = inputs[0].aval;
  aval.shape[int(axis)] = std::int64_t(places.size());
  const loops::Tensor result = w.make(aval);
  Shape rows = aval.shape;
  rows[int(axis)] = 1;
  for (std::size_t i = 0; i < places.size(); ++i)
    written::for_all(rows, [&](const written::Indices& at) {
      written::Indices from = at, to = at;
      from[axis] = {places[i]};
      to[axis] = {std::int64_t(i)};
      written::put(result, to, written::get(sorted, from));
    });
  return {result};
}

double order_statistics_flops(cost::Avals inputs, cost::Avals, const Params& params) {
  return elements_of(inputs[0]) * (2 + cost::comparisons(double(places_of(params).size())));
}

}  // namespace

constinit const Primitive order_statistics_p{"order_statistics"};
static const auto order_statistics_def =
    define(order_statistics_p,
           "The elements that sorting along an axis puts at these places, which rise. NaN is "
           "greatest.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_dtype("order_statistics", inputs[0], real_numbers | boolean);
          const int axis = checked_axis(params, inputs[0], "order_statistics");
          const Sizes64 places = places_of(params);
          const Dim size = inputs[0].shape[axis];
          for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i] < (i == 0 ? 0 : places[i - 1] + 1) ||
                less_equal(Dim(places[i]) + 1, size) != true)
              throw ValueError("order_statistics: the place " + std::to_string(places[i]) +
                                   " along an axis of " + size.to_string() + " elements",
                               "give places of the axis that rise");
          if (size.is_constant() && size.constant() > std::numeric_limits<std::uint32_t>::max())
            throw ShapeError(
                "order_statistics: an axis of " + size.to_string() + " elements is too long",
                "select from parts of it");
          Aval aval = inputs[0];
          aval.shape[axis] = std::int64_t(places.size());
          return std::vector<Aval>{aval};
        })
        .rule<Eval>(order_statistics_eval)
        .rule<Emit>(emit_order_statistics)
        .rule<Decompose>([](std::span<const Array> inputs, const Params& params) -> Arrays {
          const int axis = int(params.integer("axis"));
          const Array sorted = lax::sort(inputs[0], axis);
          Arrays parts;
          for (const std::int64_t place : places_of(params))
            parts.push_back(lax::slice_in_dim(sorted, place, place + 1, 1, axis));
          if (parts.empty()) return {lax::slice_in_dim(sorted, 0, 0, 1, axis)};
          return {lax::concatenate(parts, axis)};
        })
        .rule<Cost>(cost::arithmetic(order_statistics_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Batch>([](Dim, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          const int dim = *inputs[0].dim, axis = batched_axis(int(params.integer("axis")), dim);
          return {
              {Array(bind(order_statistics_p, {inputs[0].array}, params.with("axis", Dim(axis)))),
               dim}};
        })
        .rule<Samples>([] {
          const Sample::Input x{{{3, 5}, DType::float64}, Sample::Input::Values::distinct};
          const Sample::Input y{{{30}, DType::float64}, Sample::Input::Values::distinct};
          auto params = [](int axis, const Shape& places) {
            return Params{{"axis", Dim(axis)}, {"places", places}};
          };
          return std::vector<Sample>{
              {{x}, params(1, {1, 4})}, {{x}, params(0, {1})}, {{y}, params(0, {0, 14, 15, 29})}};
        });
Array lax::order_statistics(Operand operand, const std::vector<std::int64_t>& places, int axis) {
  const int normal = normalize_axis(axis, operand.ndim(), "order_statistics");
  return bind(order_statistics_p, {operand},
              {{"axis", Dim(normal)}, {"places", Shape::of(places)}});
}

}  // namespace plait
