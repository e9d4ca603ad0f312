// On GPUs, rows of many elements are put in the order that emit_order.h finds, and long ones are
// sorted by threads together. Rows of few elements are sorted by exchanges of neighbours: as many
// rounds as there are elements, of the even pairs and of the odd ones in turn. Neighbours change
// places only where the second one is less, so equal elements keep their order, as in the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/sorting/emit_sort.h"

#include <plait/primitives/primitives.h>

#include <algorithm>

#include "primitives/reduction/order.h"
#include "primitives/sorting/emit_long_rows.h"
#include "primitives/sorting/emit_order.h"

namespace plait {
namespace {

// One row of every operand.
using Row = std::vector<loops::Values>;

class Sorter {
 public:
  Sorter(loops::Writer& w, const Equation& equation, std::span<const loops::Tensor> operands)
      : w_(w),
        source_(equation.source),
        num_keys_(std::size_t(equation.params.integer("num_keys"))),
        descending_(equation.params.flag("descending")) {
    for (const loops::Tensor& operand : operands) dtypes_.push_back(operand.aval.dtype);
  }

  void sort(Row& row) const {
    const std::size_t size = row[0].size();
    for (std::size_t round = 0; round < size; ++round)
      for (std::size_t i = round % 2; i + 1 < size; i += 2) {
        const loops::Value swaps = is_before(row, i + 1, i);
        for (loops::Values& of : row) {
          const loops::Value first = of[i], second = of[i + 1];
          of[i] = compute(select_p, {swaps, second, first});
          of[i + 1] = compute(select_p, {swaps, first, second});
        }
      }
  }

 private:
  loops::Value compute(const Primitive& primitive, loops::Values operands,
                       const Params& params = {}) const {
    return w_.compute(primitive, params, std::move(operands), source_);
  }
  loops::Value compared(const char* direction, loops::Value x, loops::Value y) const {
    return compute(cmp_p, {x, y}, {{"direction", std::string(direction)}});
  }

  // Whether the elements at i come before those at j: by the first key in which they differ.
  loops::Value is_before(const Row& row, std::size_t i, std::size_t j) const {
    loops::Value before = key_is_before(row, num_keys_ - 1, i, j);
    for (std::size_t key = num_keys_ - 1; key-- > 0;)
      before = compute(
          select_p, {key_is_before(row, key, i, j), w_.literal(yes()),
                     compute(select_p, {key_is_before(row, key, j, i), w_.literal(no()), before})});
    return before;
  }
  // NaN is greater than every number.
  loops::Value key_is_before(const Row& row, std::size_t key, std::size_t i, std::size_t j) const {
    const loops::Value x = row[key][i], y = row[key][j];
    if (!is_floating(dtypes_[key])) return compared(descending_ ? "gt" : "lt", x, y);
    const loops::Value number = descending_ ? y : x;
    return compute(and_p, {compared("eq", number, number),
                           compute(not_p, {compared(descending_ ? "le" : "ge", x, y)})});
  }
  static Literal yes() { return {DType::bool_, false, 1, 0, 0}; }
  static Literal no() { return {DType::bool_, false, 0, 0, 0}; }

  loops::Writer& w_;
  const Source source_;
  const std::size_t num_keys_;
  const bool descending_;
  std::vector<DType> dtypes_;
};

bool is_few(std::span<const loops::Tensor> operands, int axis) {
  return operands[0].aval.shape[axis].constant() <= loops::few &&
         std::none_of(operands.begin(), operands.end(),
                      [](const loops::Tensor& operand) { return is_complex(operand.aval.dtype); });
}

// Rows of any length.
loops::Tensors by_order(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  const auto axis = std::size_t(equation.params.integer("axis"));
  const auto num_keys = std::size_t(equation.params.integer("num_keys"));
  const bool descending = equation.params.flag("descending");
  const std::int64_t size = inputs[0].aval.shape[int(axis)].constant();
  if (are_long_rows(size, size)) return emit_long_rows(inputs, num_keys, axis, descending);
  loops::Tensors operands, results;
  for (const loops::Tensor& input : inputs) operands.push_back(w.in_memory(input));
  const loops::Tensor order =
      emit_order(std::span(operands).first(num_keys), axis, size, descending);
  for (const loops::Tensor& operand : operands) results.push_back(emit_taken(operand, axis, order));
  return results;
}

void require_few(loops::Writer& w, std::span<const loops::Tensor> operands, int axis) {
  if (operands[0].aval.shape[axis].constant() > loops::few) w.refuse("`sort` of many elements");
  for (const loops::Tensor& operand : operands)
    if (is_complex(operand.aval.dtype)) w.refuse("`sort` of complex numbers");
}

}  // namespace

loops::Tensors emit_sort(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  const auto axis = std::size_t(equation.params.integer("axis"));
  const Shape& shape = inputs[0].aval.shape;
  const std::int64_t size = shape[int(axis)].constant(), all = shape.num_elements().constant();
  const written::Writing writing(w, equation.source);
  if (!w.has_kernels() && !is_few(inputs, int(axis))) return by_order(w, equation, inputs);
  require_few(w, inputs, int(axis));
  w.require_room(double(size * size) * double(2 + inputs.size()));
  loops::Tensors operands, results;
  for (const loops::Tensor& input : inputs) {
    operands.push_back(input.formula ? w.in_memory(input) : input);
    results.push_back(all <= loops::few ? loops::Tensor{input.aval, loops::Values(std::size_t(all))}
                                        : w.make(input.aval));
  }
  const Sizes64 strides = dense_strides(shape.to_sizes());
  const Sorter sorter(w, equation, inputs);
  const auto sort_row = [&](loops::Indices at) {
    Row row;
    for (const loops::Tensor& operand : operands) {
      row.emplace_back();
      for (at[axis] = {0}; at[axis].offset < size; ++at[axis].offset)
        row.back().push_back(w.element(operand, at));
    }
    sorter.sort(row);
    for (std::size_t o = 0; o < results.size(); ++o)
      for (at[axis] = {0}; at[axis].offset < size; ++at[axis].offset) {
        const loops::Value value = row[o][std::size_t(at[axis].offset)];
        loops::Place place = results[o].place;
        for (std::size_t i = 0; i < at.size(); ++i) loops::add_index(place, at[i], strides[i]);
        if (results[o].is_in_memory())
          w.store(place, value);
        else
          results[o].elements[std::size_t(place.offset)] = value;
      }
  };
  if (all > loops::few) {
    Shape rows = shape;
    rows[int(axis)] = 1;
    if (w.has_kernels())
      w.for_each(rows, [&](std::span<const loops::Index> at) { sort_row({at.begin(), at.end()}); });
    else
      written::for_all(rows, sort_row);
    return results;
  }
  const AxisLoops loops(shape.to_sizes(), int(axis));
  for (std::int64_t row = 0; row < all / size; ++row) {
    const std::int64_t first = row / loops.inner * size * loops.inner + row % loops.inner;
    loops::Indices at;
    for (std::size_t i = 0; i < strides.size(); ++i)
      at.push_back({first / strides[i] % shape[int(i)].constant()});
    sort_row(std::move(at));
  }
  return results;
}

}  // namespace plait
