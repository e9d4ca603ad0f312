// top_k: the largest elements along an axis, without sorting the rest.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <limits>
#include <memory>

#include "primitives/cost.h"
#include "primitives/reduction/order.h"
#include "primitives/sorting/emit_long_rows.h"
#include "primitives/sorting/emit_order.h"
#include "primitives/spelling.h"
#include "radix_sort.h"

namespace plait {
namespace {

// Keys of up to 32 bits share a word with the index, which compares faster than a pair.
template <class Key>
struct Packed {
  std::uint64_t word = 0;
  Packed() = default;
  Packed(Key key, std::uint32_t index) : word(std::uint64_t{key} << 32 | index) {}
  std::uint32_t index() const { return std::uint32_t(word); }
  friend bool operator<(Packed a, Packed b) { return a.word < b.word; }
};
struct Pair : Ranked<std::uint64_t> {
  Pair() : Ranked{0, 0} {}
  Pair(std::uint64_t key, std::uint32_t index) : Ranked{key, index} {}
  std::uint32_t index() const { return Ranked::index; }
};

// The k largest of n elements, in order: the least of items by inverted key, then index. Candidates
// are collected up to a limit, then cut to k; afterwards an element must exceed all that were cut.
template <class T, class Item, class ItemAt>
void select_largest(const T* x, std::int64_t n, std::int64_t k, Item* candidates,
                    std::int64_t capacity, const ItemAt& item_at) {
  using A = detail::Compute<T>;
  std::int64_t count = 0, i = 0;
  auto cut = [&] {
    std::nth_element(candidates, candidates + (k - 1), candidates + count);
    count = k;
  };
  for (; i < n && count < capacity; ++i) candidates[count++] = item_at(i);
  while (count == capacity) {
    cut();
    const A least = A(x[candidates[k - 1].index()]);
    // An equal later element loses; NaN is never below.
    auto is_candidate = [=](auto value) { return !(value <= decltype(value)(least)); };
    while (count < capacity) {
      if constexpr (detail::is_half<T>)
        while (i < n && !is_candidate(A(x[i]))) ++i;
      else
        i = find_first(x, i, n, is_candidate);
      if (i == n) break;
      candidates[count++] = item_at(i);
      ++i;
    }
  }
  if (count > k) cut();
  std::sort(candidates, candidates + k);
}

template <class T>
void top_k_rows(const T* x, T* values, std::int32_t* indices, std::int64_t rows, std::int64_t n,
                std::int64_t k) {
  using Key = UnsignedOf<sizeof(T)>;
  using Item = std::conditional_t<sizeof(T) == 8, Pair, Packed<Key>>;
  // Descending order is ascending order of the inverted keys; the index breaks ties.
  auto key_of = [](T value) { return Key(~order_key(value)); };
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / n);
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    const bool sort_all = k > n / 8;  // most would be candidates
    const std::int64_t capacity = sort_all ? 1 : std::min(n, std::max<std::int64_t>(2 * k, 64));
    const std::unique_ptr<Item[]> candidates(new Item[capacity]);
    const std::unique_ptr<Ranked<Key>[]> ranked(new Ranked<Key>[sort_all ? 2 * n : 1]);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = x + row * n;
      if (sort_all) {
        for (std::int64_t i = 0; i < n; ++i) ranked[i] = {key_of(from[i]), std::uint32_t(i)};
        radix_sort(ranked.get(), ranked.get() + n, n,
                   [](const Ranked<Key>& item) { return item.key; });
      } else {
        select_largest(from, n, k, candidates.get(), capacity,
                       [&](std::int64_t i) { return Item(key_of(from[i]), std::uint32_t(i)); });
      }
      for (std::int64_t i = 0; i < k; ++i) {
        const std::uint32_t index = sort_all ? ranked[i].index : candidates[i].index();
        values[row * k + i] = from[index];
        indices[row * k + i] = std::int32_t(index);
      }
    }
  });
}

void top_k_eval(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  const int axis = int(params.integer("axis"));
  if (num_elements(outputs[0].shape) == 0) return;
  const std::int64_t n = inputs[0].shape[axis], k = outputs[0].shape[axis];
  const std::int64_t rows = num_elements(inputs[0].shape) / n;
  const View source = with_axis_last(inputs[0], axis);
  const Buffer dense = source.is_dense() ? Buffer({}, source) : Buffer::copy_of(source);
  View targets[2];
  Buffer keep[2];
  for (int i = 0; i < 2; ++i) {
    targets[i] = with_axis_last(outputs[i], axis);
    if (targets[i].is_dense()) continue;
    keep[i] = Buffer::empty(outputs[i].dtype, targets[i].shape);
    targets[i] = keep[i].view();
  }
  visit_dtype(inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!is_complex_v<T>)
      top_k_rows(static_cast<const T*>(dense.data()), targets[0].as<T>(),
                 targets[1].as<std::int32_t>(), rows, n, k);
  });
  for (int i = 0; i < 2; ++i)
    if (targets[i].data != outputs[i].data)
      copy_elements(targets[i], with_axis_last(outputs[i], axis));
}

loops::Tensors emit_top_k(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  written::require_no_kernels(w);
  const written::Writing writing(w, equation.source);
  const auto axis = std::size_t(equation.params.integer("axis"));
  const Shape& shape = inputs[0].aval.shape;
  const std::int64_t count = equation.params.get<Dim>("k").constant();
  if (are_long_rows(shape[int(axis)].constant(), count)) {
    const loops::Tensor operands[] = {inputs[0], places_along(shape, axis)};
    loops::Tensors results = emit_long_rows(operands, 1, axis, true);
    for (loops::Tensor& result : results) result.aval.shape[int(axis)] = count;
    return results;
  }
  const loops::Tensor x = w.in_memory(inputs[0]);
  const loops::Tensor places = emit_order(std::span(&x, 1), axis, count, true);
  return {emit_taken(x, axis, places), places};
}

double top_k_flops(cost::Avals inputs, cost::Avals, const Params& params) {
  return elements_of(inputs[0]) * (1 + cost::comparisons(value_of(params.get<Dim>("k"))));
}

}  // namespace

constinit const Primitive top_k_p{"top_k"};
static const auto top_k_def =
    define(top_k_p,
           "The k largest elements along an axis, largest first, and their indices. NaN is "
           "largest; of "
           "equal elements the first comes first.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_dtype("top_k", inputs[0], real_numbers | boolean);
          const int axis = checked_axis(params, inputs[0], "top_k");
          const Dim k = params.get<Dim>("k"), size = inputs[0].shape[axis];
          auto describe = [&] {
            return ShapeError("top_k: k is " + k.to_string() + ", and axis " +
                                  std::to_string(axis) + " of an array of shape (" +
                                  inputs[0].shape.to_string() + ") has " + size.to_string() +
                                  " elements",
                              "give a k from 0 to the size of the axis");
          };
          require_less_equal(0, k, describe);
          require_less_equal(k, size, describe);
          if (size.is_constant() && size.constant() > std::numeric_limits<std::int32_t>::max())
            throw ShapeError("top_k: an axis of " + size.to_string() +
                                 " elements is too long for indices of dtype int32",
                             "take the largest of parts of it first");
          Aval values = inputs[0], indices{inputs[0].shape, DType::int32};
          values.shape[axis] = indices.shape[axis] = k;
          return std::vector<Aval>{values, indices};
        })
        .rule<Eval>(top_k_eval)
        .rule<Emit>(emit_top_k)
        .rule<Cost>(cost::arithmetic(top_k_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto, auto tangents, auto outputs, const Params& params) -> Tangents {
          return {take_along(tangents[0].array(), outputs[1], int(params.integer("axis"))),
                  Tangent(outputs[1].aval())};
        })
        .rule<Batch>([](Dim, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          const int dim = *inputs[0].dim, axis = batched_axis(int(params.integer("axis")), dim);
          const Arrays outputs = bind(top_k_p, {inputs[0].array}, params.with("axis", Dim(axis)));
          return {{outputs[0], dim}, {outputs[1], dim}};
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto outputs, const Params& params,
                       const SizeValues& sizes) {
          // Padding follows the real elements and is no larger than any of them: it is selected
          // last.
          const int axis = int(params.integer("axis"));
          const Array filled =
              fill_padding(inputs[0], lowest_of(inputs[0].aval.dtype), sizes, std::span(&axis, 1));
          return Arrays(
              bind(top_k_p, {filled}, params.with("k", sizes.bound(outputs[0].shape[axis]))));
        })
        .rule<Samples>([] {
          const Sample::Input x{{{3, 4}, DType::float64}, Sample::Input::Values::distinct};
          return std::vector<Sample>{{{x}, {{"axis", Dim(1)}, {"k", Dim(2)}}},
                                     {{x}, {{"axis", Dim(0)}, {"k", Dim(3)}}},
                                     {{x}, {{"axis", Dim(1)}, {"k", Dim(0)}}},
                                     {{{{{30}, DType::float64}, Sample::Input::Values::distinct}},
                                      {{"axis", Dim(0)}, {"k", Dim(1)}}}};
        });
std::pair<Array, Array> lax::top_k(Operand operand, Dim k, int axis) {
  const int normal = normalize_axis(axis, operand.ndim(), "top_k");
  const Arrays outputs = bind(top_k_p, {operand}, {{"k", k}, {"axis", Dim(normal)}});
  return {outputs[0], outputs[1]};
}

}  // namespace plait
