// scatter in a loop program, of many updates, where no kernel of a library runs it.
//
// Single updates of a small array are combined in the parts of NOTE: [scatter order], side by side.
// Few of them are looked at by a thread for each element of each part. Many are sorted by the
// elements that they change; those of an element in a part then follow each other, and one thread
// takes them in. Where most updates change one element, so few threads as there are parts do most
// of the work, but each of them reads neighbours, four at once.
//
// Others, and rows of several elements, are sorted by where they lie, and a thread for each element
// of those at one place takes them in.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>

#include <limits>

#include "primitives/indexing/index_rows.h"
#include "primitives/sorting/emit_long_rows.h"
#include "primitives/written.h"

namespace plait::indexing {
namespace {

using Kind = lax::ScatterKind;
using Mode = lax::GatherScatterMode;
using namespace written;  // NOLINT

// A number with the updates from `first` to `end` taken in, of `count` that there are.
Number combined_in_order(Number first, Number end, std::int64_t count, Number number,
                         const std::function<Number(const Index&)>& update_at,
                         const std::function<Number(Number, Number)>& combined) {
  constexpr std::int64_t at_once = 4;  // so that reads do not wait for each other
  return repeated_while(
      {first, number}, [&](const Numbers& now) { return now[0] < end; },
      [&](const Numbers& now) -> Numbers {
        Numbers some;
        for (std::int64_t i = 0; i < at_once; ++i)
          some.push_back(
              update_at(index_below(minimum(now[0] + integer(i), end - integer(1)), count)));
        Number all = now[1];
        for (std::int64_t i = 0; i < at_once; ++i)
          all = select(now[0] + integer(i) < end, combined(all, some[std::size_t(i)]), all);
        return {now[0] + integer(at_once), all};
      })[1];
}

// Where the windows of rows of indices start.
class Starts {
 public:
  Starts(loops::Writer& w, const Equation& equation, const loops::Tensor& array,
         const loops::Tensor& indices, Shape window)
      : w_(w),
        equation_(equation),
        array_(array),
        indices_(indices),
        dimensions_(dimensions_of(equation.params)),
        mode_(mode_of(equation.params)),
        window_(std::move(window)) {}

  void check() const {
    if (mode_ == Mode::check) check_windows(w_, equation_, array_, indices_, window_);
  }
  bool are_inside() const {
    return dimensions_.axes.empty() || mode_ == Mode::check || mode_ == Mode::clip;
  }
  // The sum of starts by strides, one for each indexed axis; `outside` if the window is left out.
  Number position_of(std::span<const Index> row, std::span<const std::int64_t> strides,
                     std::int64_t outside) const {
    Number position = integer(0);
    std::optional<Number> is_inside;
    for (std::size_t i = 0; i < dimensions_.axes.size(); ++i) {
      const std::int64_t last = last_start(array_, dimensions_, window_, i);
      Number start{start_of_window(w_, indices_, row, i), DType::int64};
      if (mode_ == Mode::check) {
        start.value = w_.checked(start.value, 0, last);
      } else if (are_inside()) {
        start.value = w_.clamped(start.value, 0, last);
      } else {
        const Number fits = (start >= integer(0)) & (start <= integer(last));
        is_inside = is_inside ? *is_inside & fits : fits;
      }
      position = position + start * integer(strides[i]);
    }
    return is_inside ? select(*is_inside, position, integer(outside)) : position;
  }

 private:
  loops::Writer& w_;
  const Equation& equation_;
  const loops::Tensor &array_, &indices_;
  const lax::IndexDimensions dimensions_;
  const Mode mode_;
  const Shape window_;
};

class Parts {
 public:
  Parts(loops::Writer& w, const Equation& equation, std::span<const loops::Tensor> inputs)
      : w_(w),
        equation_(equation),
        array_(inputs[0]),
        indices_(inputs[1]),
        updates_(inputs[2]),
        dimensions_(dimensions_of(equation.params)),
        kind_(scatter_kind_of(equation.params)),
        sizes_(array_.aval.shape.to_sizes()),
        num_parts_(num_parts_of(equation.params, array_.aval.shape, indices_.aval.shape,
                                updates_.aval.shape)),
        count_(updates_.aval.shape.num_elements().constant()),
        size_(array_.aval.shape.num_elements().constant()),
        longest_((count_ + num_parts_ - 1) / num_parts_) {}

  loops::Tensor result() {
    find_positions();
    parts_ = make({size_, num_parts_}, array_.aval.dtype);
    // A thread for each element, which looks at all updates of a part, or at its own.
    constexpr std::int64_t most_elements = 4096, most_looks = 8192;
    if (size_ <= most_elements && longest_ <= most_looks)
      combine_by_element();
    else
      combine_in_order();
    const loops::Tensor whole = make(array_.aval.shape, array_.aval.dtype);
    for_all({size_}, [&](const Indices& at) {
      Number all = get(parts_, {at[0], Index{0}});
      for (std::int64_t part = 1; part < num_parts_; ++part)
        all = combined(all, get(parts_, {at[0], Index{part}}));
      put(whole, digits_of(at[0], sizes_), all);
    });
    return whole;
  }

 private:
  // Of every update the position of its element, or one behind all where it is left out; and the
  // updates, in rows of memory.
  void find_positions() {
    const Shape rows(indices_.aval.shape.begin(), indices_.aval.shape.end() - 1);
    const Starts starts(w_, equation_, array_, indices_,
                        window_sizes(array_.aval.rank(), updates_.aval.shape, dimensions_));
    starts.check();
    const Sizes64 row_sizes = rows.to_sizes(), strides = dense_strides(sizes_);
    Sizes64 strides_of_axes;
    for (const int axis : dimensions_.axes) strides_of_axes.push_back(strides[std::size_t(axis)]);
    are_all_inside_ = starts.are_inside();
    positions_ = make({count_}, DType::int32), values_ = make({count_}, array_.aval.dtype);
    for_all({count_}, [&](const Indices& number) {
      Indices row = digits_of(number[0], row_sizes);
      put(positions_, number, starts.position_of(row, strides_of_axes, size_));
      row.resize(std::size_t(updates_.aval.rank()), Index{0});
      put(values_, number, get(updates_, row));
    });
  }

  void combine_by_element() {
    for_all({size_, num_parts_}, [&](const Indices& at) {
      const Number position = cast(number_of(at[0]), DType::int32);
      const Numbers combined_one =
          repeated(longest_, {first_of(at)}, [&](const Index& step, const Numbers& now) -> Numbers {
            const Update update = update_of(at[1], step);
            const Number is_here = update.is_there & (get(positions_, {update.row}) == position);
            return {select(is_here, combined(now[0], get(values_, {update.row})), now[0])};
          });
      put(parts_, at, combined_one[0]);
    });
  }
  // The updates of an element are numbers in a row, those of a part behind each other.
  void combine_in_order() {
    const std::int64_t slots = size_ * num_parts_, most = slots + num_parts_ - 1;
    constexpr std::int64_t most_int32 = std::numeric_limits<std::int32_t>::max();
    const loops::Tensor unsorted = make({count_}, most <= most_int32 ? DType::int32 : DType::int64);
    for_all(count_, [&](const Index& row) {
      // Part p begins with row count * p / num_parts.
      const Number rows = number_of(row) + integer(1),
                   part = (rows * integer(num_parts_) - integer(1)) / integer(count_),
                   position = cast(get(positions_, {row}), DType::int64);
      put(unsorted, {row}, position * integer(num_parts_) + part);
    });
    const loops::Tensors sorted = emit_sorted_integers(unsorted, most, values_);
    find_runs(sorted[0]);
    for_all({size_, num_parts_}, [&](const Indices& at) {
      const Index slot = sum_of(times(at[0], num_parts_), at[1]);
      const auto bound_at = [&](const loops::Tensor& of) {
        return cast(get(of, {slot}), DType::int64);
      };
      put(parts_, at,
          combined_in_order(
              bound_at(begins_), bound_at(ends_), count_, first_of(at),
              [&](const Index& row) { return get(sorted[1], {row}); },
              [&](Number x, Number update) { return combined(x, update); }));
    });
  }
  // Where the updates of each element in each part begin and end.
  void find_runs(const loops::Tensor& sorted) {
    const std::int64_t slots = size_ * num_parts_;
    begins_ = make({slots}, DType::int32);
    ends_ = make({slots}, DType::int32);
    const Number none = literal(0, DType::int32);
    for_all(slots, [&](const Index& slot) { put(begins_, {slot}, none); });
    for_all(slots, [&](const Index& slot) { put(ends_, {slot}, none); });
    for_all(count_, [&](const Index& place) {
      const auto slot_at = [&](Number place) {
        return cast(get(sorted, {index_below(place, count_)}), DType::int64);
      };
      const Number i = number_of(place), zero = integer(0), last = integer(count_ - 1);
      const Number slot = slot_at(i), before = slot_at(maximum(i - integer(1), zero)),
                   after = slot_at(minimum(i + integer(1), last));
      const Number is_there = slot < integer(slots);
      const Index inside = index_below(minimum(slot, integer(slots - 1)), slots);
      only_where(is_there & ((i == zero) | (slot != before)), [&] { put(begins_, {inside}, i); });
      only_where(is_there & ((i == last) | (slot != after)),
                 [&] { put(ends_, {inside}, i + integer(1)); });
    });
  }

  struct Update {
    Index row;
    Number is_there;  // whether the part has so many
  };
  Update update_of(const Index& part, const Index& step) const {
    const Number number = number_of(part), count = integer(count_), parts = integer(num_parts_);
    const Number row = count * number / parts + number_of(step),
                 end = count * (number + integer(1)) / parts;
    return {index_below(minimum(row, integer(count_ - 1)), count_), row < end};
  }

  // The first part begins with the array. The others begin with what changes nothing: of sums the
  // negative zero, for -0 + 0 is 0; of the least and the greatest the array again.
  Number first_of(const Indices& at) const {
    const Number element = get(array_, digits_of(at[0], sizes_));
    if (kind_ != Kind::add) return element;
    const DType dtype = array_.aval.dtype;
    Literal none{dtype};
    if (is_inexact(dtype)) none.real = -0.0;
    if (complexes.has(dtype)) none.imaginary = -0.0;
    return select(number_of(at[1]) == integer(0), element, {w_.literal(none), dtype});
  }
  Number combined(Number x, Number update) const {
    return {updated(w_, kind_, x.value, update.value, array_.aval.dtype, equation_.source),
            x.dtype};
  }

  loops::Writer& w_;
  const Equation& equation_;
  const loops::Tensor &array_, &indices_, &updates_;
  const lax::IndexDimensions dimensions_;
  const Kind kind_;
  const Sizes64 sizes_;
  const std::int64_t num_parts_, count_, size_, longest_;
  bool are_all_inside_ = true;
  loops::Tensor positions_, values_, parts_, begins_, ends_;
};

// Windows that are the same or apart, sorted by where they start.
class Windows {
 public:
  Windows(loops::Writer& w, const Equation& equation, const loops::Tensor& whole,
          const loops::Tensor& indices, const loops::Tensor& updates)
      : w_(w),
        equation_(equation),
        whole_(whole),
        indices_(indices),
        updates_(updates),
        dimensions_(dimensions_of(equation.params)),
        window_(window_sizes(whole.aval.rank(), updates.aval.shape, dimensions_)),
        rows_(Shape(indices.aval.shape.begin(), indices.aval.shape.end() - 1).to_sizes()),
        count_(num_elements(rows_)) {
    for (int axis = 0; axis < dimensions_.batch_dims; ++axis) axes_.push_back(axis);
    axes_.insert(axes_.end(), dimensions_.axes.begin(), dimensions_.axes.end());
    for (const int axis : axes_) sizes_.push_back(whole.aval.shape[axis].constant());
    num_places_ = num_elements(sizes_);
  }

  // Whether no two windows overlap in part, and sorting takes less than one after the other.
  bool is_worth() const {
    constexpr std::int64_t fewest = 2048, most = std::numeric_limits<std::int32_t>::max();
    return count_ >= fewest && count_ <= most && num_places_ < most &&
           num_elements(updates_.aval.shape.to_sizes()) > 0 &&
           std::all_of(dimensions_.axes.begin(), dimensions_.axes.end(),
                       [&](int axis) { return window_[axis - dimensions_.batch_dims] == Dim(1); });
  }

  void update() {
    sort();
    const bool is_set = scatter_kind_of(equation_.params) == Kind::set;
    const loops::Tensor ends = make({num_places_}, DType::int32);
    if (!is_set)
      for_all(count_, [&](const Index& at) {
        only_where(is_there(at) & differs(at, 1),
                   [&] { put(ends, {place_at(at)}, number_of(at) + integer(1)); });
      });
    Shape all{count_};
    for (int axis = 0; axis < whole_.aval.rank(); ++axis)
      all.push_back(axis < dimensions_.batch_dims ? Dim(1)
                                                  : window_[axis - dimensions_.batch_dims]);
    for_all(all, [&](const Indices& at) {
      const Index first = at[0];
      const std::span<const Index> within = std::span(at).subspan(1);
      // The last one sets; the first one takes in those behind it.
      only_where(is_there(first) & differs(first, is_set ? 1 : -1), [&] {
        Indices target(within.begin(), within.end());
        const Indices digits = digits_of(place_at(first), sizes_);
        for (std::size_t i = 0; i < axes_.size(); ++i) target[std::size_t(axes_[i])] = digits[i];
        put(whole_, target,
            is_set ? update_at(first, within)
                   : combined_run(number_of(first), get(ends, {place_at(first)}),
                                  get(whole_, target), within));
      });
    });
  }

 private:
  void sort() {
    const Starts starts(w_, equation_, whole_, indices_, window_);
    starts.check();
    const Sizes64 strides = dense_strides(sizes_);
    const loops::Tensor places = make({count_}, DType::int32);
    for_all(count_, [&](const Index& number) {
      const Indices row = digits_of(number, rows_);
      const auto batch_dims = std::size_t(dimensions_.batch_dims);
      Number place = integer(0);
      for (std::size_t i = 0; i < batch_dims; ++i)
        place = place + number_of(row[i]) * integer(strides[i]);
      // What is left out lies behind all.
      const Number start =
          starts.position_of(row, std::span(strides).subspan(batch_dims), num_places_);
      put(places, {number}, minimum(place + start, integer(num_places_)));
    });
    const bool are_single = num_elements(updates_.aval.shape.to_sizes()) <= count_;
    loops::Tensor values = places_along({count_}, 0);
    if (are_single) {
      values = make({count_}, updates_.aval.dtype);
      const Indices within(std::size_t(whole_.aval.rank()), Index{0});
      for_all(count_, [&](const Index& at) { put(values, {at}, update_of_row(at, within)); });
    }
    const loops::Tensors sorted =
        emit_sorted_integers(places, num_places_ - (starts.are_inside() ? 1 : 0), values);
    places_ = sorted[0];
    (are_single ? values_ : order_) = sorted[1];
  }

  // Of the updates in the order of their places:
  Index place_at(const Index& at) const {
    return index_below(minimum(number_at(at), integer(num_places_ - 1)), num_places_);
  }
  Number number_at(const Index& at) const { return cast(get(places_, {at}), DType::int64); }
  Number is_there(const Index& at) const { return number_at(at) < integer(num_places_); }
  // Whether the one before it, or behind it, has another place.
  Number differs(const Index& at, int step) const {
    const Number i = number_of(at), last = integer(step < 0 ? 0 : count_ - 1);
    const Number beside = minimum(maximum(i + integer(step), integer(0)), integer(count_ - 1));
    return (i == last) | (number_at(at) != number_at(index_below(beside, count_)));
  }
  Number update_at(const Index& at, std::span<const Index> within) const {
    return values_ ? get(*values_, {at})
                   : update_of_row(index_below(get(*order_, {at}), count_), within);
  }
  Number update_of_row(const Index& row, std::span<const Index> within) const {
    Indices update = digits_of(row, rows_);
    for (int axis = dimensions_.batch_dims; axis < whole_.aval.rank(); ++axis)
      if (!contains(dimensions_.collapse, axis)) update.push_back(within[std::size_t(axis)]);
    return get(updates_, update);
  }
  Number combined_run(Number first, Number end, Number element,
                      std::span<const Index> within) const {
    return combined_in_order(
        first, cast(end, DType::int64), count_, element,
        [&](const Index& at) { return update_at(at, within); },
        [&](Number x, Number update) -> Number {
          return {updated(w_, scatter_kind_of(equation_.params), x.value, update.value, x.dtype,
                          equation_.source),
                  x.dtype};
        });
  }

  loops::Writer& w_;
  const Equation& equation_;
  const loops::Tensor &whole_, &indices_, &updates_;
  const lax::IndexDimensions dimensions_;
  const Shape window_;
  const Sizes64 rows_;
  const std::int64_t count_;
  std::vector<int> axes_;  // that say where a window lies: of batches, and of indices
  Sizes64 sizes_;          // of them
  std::int64_t num_places_ = 1;
  loops::Tensor places_;                         // in order
  std::optional<loops::Tensor> values_, order_;  // with them: of single elements, or their rows
};

}  // namespace

bool scattered_in_order(loops::Writer& w, const Equation& equation, const loops::Tensor& whole,
                        const loops::Tensor& indices, const loops::Tensor& updates) {
  const Writing writing(w, equation.source);
  Windows windows(w, equation, whole, indices, updates);
  if (!windows.is_worth()) return false;
  windows.update();
  return true;
}

loops::Tensor scattered_in_parts(loops::Writer& w, const Equation& equation,
                                 std::span<const loops::Tensor> inputs) {
  const Writing writing(w, equation.source);
  return Parts(w, equation, inputs).result();
}

loops::Value updated(loops::Writer& w, Kind kind, loops::Value element, loops::Value update,
                     DType dtype, Source source) {
  if (kind == Kind::set) return update;
  const bool is_truth = dtype == DType::bool_;
  const Primitive& by = kind == Kind::add   ? (is_truth ? or_p : add_p)
                        : kind == Kind::mul ? (is_truth ? and_p : mul_p)
                        : kind == Kind::min ? (is_truth ? and_p : min_p)
                        : is_truth          ? or_p
                                            : max_p;
  return w.compute(by, {}, {element, update}, source);
}

}  // namespace plait::indexing
