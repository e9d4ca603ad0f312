// Rows are sorted where they lie dense. One key, and one array that goes with it, are sorted at
// once; else the places of a row are, by one key after the other, the least significant one first,
// and the arrays are read there. A complex number is three keys: whether its parts are NaN counts
// most, then the real part.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/sorting/emit_long_rows.h"

#include <algorithm>
#include <limits>

#include "primitives/sorting/emit_order.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

class LongRows {
 public:
  LongRows(const Shape& shape, std::size_t axis, bool descending)
      : axis_(axis), descending_(descending), rows_(shape) {
    rows_.erase(int(axis));
    rows_.push_back(shape[int(axis)]);
  }

  // Arrays in the order of the first one.
  loops::Tensors sorted(std::span<const loops::Tensor> arrays) const {
    loops::Tensors rows, results;
    for (const loops::Tensor& array : arrays) rows.push_back(rows_of(array));
    for (const loops::Tensor& row : sorted_rows(rows)) results.push_back(as_operand(row));
    return results;
  }

  // The places of elements in the order of all keys.
  loops::Tensor order_by(std::span<const loops::Tensor> keys) const {
    loops::Tensor places = make(rows_, DType::int32);
    for_all(rows_, [&](const Indices& at) { put(places, at, number_of(at.back())); });
    bool is_first = true;
    for (std::size_t i = keys.size(); i-- > 0;)
      for (const Part& part : parts_of(keys[i])) {
        const loops::Tensor key = make(rows_, part.dtype);
        for_all(rows_, [&](const Indices& at) {
          Indices from = at;
          if (!is_first) from.back() = index_below(get(places, at), rows_.back().constant());
          put(key, at, part.at(operand_indices(from)));
        });
        const loops::Tensor both[] = {key, places};
        places = sorted_rows(both)[1];
        is_first = false;
      }
    return as_operand(places);
  }

 private:
  struct Part {
    DType dtype;
    std::function<Number(const Indices&)> at;
  };
  // The least significant one first.
  static std::vector<Part> parts_of(const loops::Tensor& key) {
    const DType dtype = key.aval.dtype;
    if (!is_complex(dtype)) return {{dtype, [=](const Indices& at) { return get(key, at); }}};
    const auto re = [=](const Indices& at) { return real(get(key, at)); };
    const auto im = [=](const Indices& at) { return imag(get(key, at)); };
    const auto nans = [=](const Indices& at) {
      const Number of_real = cast(is_nan(re(at)), DType::int32);
      return cast(of_real + of_real + cast(is_nan(im(at)), DType::int32), DType::uint8);
    };
    const DType part = real_dtype_of(dtype);
    return {{part, im}, {part, re}, {DType::uint8, nans}};
  }

  loops::Tensors sorted_rows(std::span<const loops::Tensor> rows) const {
    const Writing& writing = Writing::current();
    return writing.writer.sorted(rows, descending_, {}, writing.source);
  }

  Indices operand_indices(const Indices& of_rows) const {
    Indices at(of_rows.begin(), of_rows.end() - 1);
    at.insert(at.begin() + std::ptrdiff_t(axis_), of_rows.back());
    return at;
  }
  // Dense, with the axis last.
  loops::Tensor rows_of(const loops::Tensor& array) const {
    if (array.is_in_memory() && axis_ + 1 == std::size_t(rows_.rank()) &&
        array.strides == dense_strides(rows_.to_sizes()))
      return array;
    const loops::Tensor rows = make(rows_, array.aval.dtype);
    for_all(rows_, [&](const Indices& at) { put(rows, at, get(array, operand_indices(at))); });
    return rows;
  }
  // The same memory as an array like the operands.
  loops::Tensor as_operand(loops::Tensor rows) const {
    const auto move_last = [&](Sizes64& list) {
      const std::int64_t last = list.back();
      list.pop_back();
      list.insert(axis_, last);
    };
    move_last(rows.strides);
    Sizes64 sizes = rows.aval.shape.to_sizes();
    move_last(sizes);
    rows.aval.shape = Shape::of(sizes);
    return rows;
  }

  const std::size_t axis_;
  const bool descending_;
  Shape rows_;
};

bool is_real(const loops::Tensor& array) { return !is_complex(array.aval.dtype); }

void require_int32_places(std::int64_t count) {
  if (count > std::numeric_limits<std::int32_t>::max())
    Writing::current().writer.refuse("the order of more elements than int32 counts");
}

}  // namespace

bool are_long_rows(std::int64_t size, std::int64_t count) {
  constexpr std::int64_t fewest = 512, fewest_wanted = 128;
  return size >= fewest && count >= fewest_wanted;
}

loops::Tensors emit_long_rows(std::span<const loops::Tensor> operands, std::size_t num_keys,
                              std::size_t axis, bool descending) {
  const Shape& shape = operands[0].aval.shape;
  require_int32_places(shape[int(axis)].constant());
  const LongRows rows(shape, axis, descending);
  if (num_keys == 1 && operands.size() <= 2 && std::ranges::all_of(operands, is_real))
    return rows.sorted(operands);
  const loops::Tensor order = rows.order_by(operands.first(num_keys));
  loops::Tensors results;
  for (const loops::Tensor& operand : operands) results.push_back(emit_taken(operand, axis, order));
  return results;
}

loops::Tensor places_along(const Shape& shape, std::size_t axis) {
  loops::Formula formula;
  formula.element = [axis](std::span<const Index> at) {
    return cast(number_of(at[axis]), DType::int32).value;
  };
  return Writing::current().writer.computed({shape, DType::int32}, std::move(formula));
}

loops::Tensors emit_sorted_integers(const loops::Tensor& integers, std::int64_t most,
                                    const loops::Tensor& values) {
  const Writing& writing = Writing::current();
  const Shape& shape = integers.aval.shape;
  require_int32_places(shape[0].constant());
  const bool go_along = is_real(values);
  const loops::Tensor both[] = {integers, go_along ? values : places_along(shape, 0)};
  loops::Tensors sorted = writing.writer.sorted(both, false, loops::Range{0, most}, writing.source);
  if (!go_along) sorted[1] = emit_taken(values, 0, sorted[1]);
  return sorted;
}

}  // namespace plait
