// Merges in which every element finds its own place; long rows are sorted instead, see
// emit_long_rows.h.
//
// Rows are cut into runs of a few elements. Within a run, an element's place is the number of those
// before it. Two neighbouring runs then become one: an element's place is that in its own run, and
// the number of elements of the other run before it, by binary search. Each merge is one loop whose
// steps are apart. Where only the first elements are wanted, runs are cut to as many.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/sorting/emit_order.h"

#include <plait/primitives/primitives.h>

#include <bit>

namespace plait {
namespace {

using namespace written;  // NOLINT

class OrderWriter {
 public:
  OrderWriter(std::span<const loops::Tensor> keys, std::size_t axis, std::int64_t count,
              bool descending)
      : keys_(keys),
        axis_(axis),
        size_(keys[0].aval.shape[int(axis)].constant()),
        count_(count),
        descending_(descending) {}

  loops::Tensor emit() {
    make_levels();
    write_first_runs(levels_[0]);
    for (std::size_t i = 1; i < levels_.size(); ++i) merge(levels_[i - 1], levels_[i]);
    return levels_.back().places;
  }

 private:
  static constexpr std::int64_t first_width = 32;

  // Run r holds the first `room` of the elements from r * width to (r + 1) * width, in order.
  struct Runs {
    std::int64_t count, width, room;
    loops::Tensor places = {};
  };
  Shape shape_of(std::int64_t slots) const {
    Shape shape = keys_[0].aval.shape;
    shape[int(axis_)] = slots;
    return shape;
  }

  // The runs before each merge, and behind the last one. They take turns with two memories; what is
  // given back has one of its own where it is smaller than others.
  void make_levels() {
    const std::int64_t width = std::min(first_width, size_);
    levels_.push_back({(size_ + width - 1) / width, width, std::min(width, count_)});
    for (Runs last = levels_[0]; last.count > 1; last = levels_.back())
      levels_.push_back({(last.count + 1) / 2, 2 * last.width, std::min(2 * last.room, count_)});
    const auto slots_of = [](const Runs& runs) { return runs.count * runs.room; };
    std::int64_t most = 0;
    for (const Runs& runs : levels_) most = std::max(most, slots_of(runs));
    loops::Tensor turns[2];
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      Runs& runs = levels_[i];
      const bool is_last = i + 1 == levels_.size();
      loops::Tensor& turn = turns[i % 2];
      if (is_last && slots_of(runs) < most) {
        runs.places = make(shape_of(slots_of(runs)), DType::int32);
        continue;
      }
      if (!turn.is_in_memory()) turn = make(shape_of(most), DType::int32);
      runs.places = turn;
      runs.places.aval.shape = shape_of(slots_of(runs));
    }
  }

  void write_first_runs(const Runs& runs) const {
    const std::int64_t width = runs.width, room = runs.room;
    for_all(keys_[0].aval.shape, [&](const Indices& at) {
      const Number i = number_of(at[axis_]), run = i / integer(width);
      const Numbers mine = keys_at(at, at[axis_]);
      const Number rank =
          combined(add_p, literal(0, DType::int32), width, [&](const Index& within) {
            const Number j = number_of(sum_of(times(index_of(run), width), within)),
                         inside = minimum(j, integer(size_ - 1));
            Number before = is_before(keys_at(at, index_below(inside, size_)), j, mine, i);
            if (size_ % width > 0) before = before & (j < integer(size_));
            return cast(before, DType::int32);
          });
      put_if(room < width, rank < literal(double(room), DType::int32), runs.places, at,
             run * integer(room) + cast(rank, DType::int64), runs.count * room, i);
    });
  }

  void merge(const Runs& runs, const Runs& next) const {
    const std::int64_t room = next.room;
    for_all(runs.places.aval.shape, [&](const Indices& at) {
      const Number slot = number_of(at[axis_]), run = slot / integer(runs.room),
                   place = slot % integer(runs.room);
      const bool are_full = size_ - (runs.count - 1) * runs.width >= runs.room;
      const auto merge = [&] {
        const Number i = element_at(runs, at, at[axis_]);
        const Number rank = place + num_before(runs, at, run, i);
        put_if(room < 2 * runs.room, rank < integer(room), next.places, at,
               run / integer(2) * integer(room) + rank, next.count * room, i);
      };
      if (are_full)
        merge();
      else
        only_where(place < length_of(runs, run), merge);
    });
  }

  Number length_of(const Runs& runs, Number run) const {
    const Number rest = integer(size_) - run * integer(runs.width);
    return minimum(maximum(rest, integer(0)), integer(runs.room));
  }
  // How many elements of the run beside this one come before an element.
  Number num_before(const Runs& runs, const Indices& row, Number run, Number i) const {
    const Numbers mine = keys_at(row, index_below(i, size_));
    const Number other = run + integer(1) - integer(2) * (run % integer(2)),
                 first = other * integer(runs.room), own = number_of(row[axis_]);
    return repeated(
        std::bit_width(std::uint64_t(runs.room)), {integer(0), length_of(runs, other)},
        [&](const Index&, const Numbers& bounds) {
          const Number low = bounds[0], high = bounds[1], middle = (low + high) / integer(2),
                       is_open = low < high;
          const Number slot = select(is_open, first + middle, own);
          const Number j = element_at(runs, row, index_below(slot, runs.count * runs.room));
          const Number before = is_before(keys_at(row, index_below(j, size_)), j, mine, i);
          return Numbers{select(is_open & before, middle + integer(1), low),
                         select(is_open & !before, middle, high)};
        })[0];
  }
  Number element_at(const Runs& runs, const Indices& row, const Index& slot) const {
    Indices at = row;
    at[axis_] = slot;
    return cast(get(runs.places, at), DType::int64);
  }
  void put_if(bool is_tested, Number truth, const loops::Tensor& places, const Indices& row,
              Number slot, std::int64_t slots, Number element) const {
    const auto put_place = [&] {
      Indices at = row;
      at[axis_] = index_below(slot, slots);
      put(places, at, element);
    };
    if (is_tested)
      only_where(truth, put_place);
    else
      put_place();
  }

  // --- Comparisons -------------------------------------------------------------------------------

  Numbers keys_at(Indices row, const Index& i) const {
    row[axis_] = i;
    Numbers keys;
    for (const loops::Tensor& key : keys_) {
      const Number x = get(key, row);
      if (!is_complex(key.aval.dtype)) {
        keys.push_back(x);
        continue;
      }
      const auto flag = [](Number truth) { return cast(truth, DType::int32); };
      const Number nan_of_real = flag(is_nan(real(x))), nan_of_imag = flag(is_nan(imag(x)));
      keys.insert(keys.end(), {nan_of_real + nan_of_real + nan_of_imag, real(x), imag(x)});
    }
    return keys;
  }
  // Whether element j comes before element i, by the first key in which they differ.
  Number is_before(const Numbers& x, Number j, const Numbers& y, Number i) const {
    Number before = j < i;
    for (std::size_t key = x.size(); key-- > 0;)
      before = precedes(x[key], y[key]) | ((!precedes(y[key], x[key])) & before);
    return before;
  }
  Number precedes(Number x, Number y) const {
    if (descending_) std::swap(x, y);
    if (!is_floating(x.dtype)) return x < y;
    return (x < y) | (is_nan(y) & !is_nan(x));
  }

  const std::span<const loops::Tensor> keys_;
  const std::size_t axis_;
  const std::int64_t size_, count_;
  const bool descending_;
  std::vector<Runs> levels_;
};

}  // namespace

loops::Tensor emit_order(std::span<const loops::Tensor> keys, std::size_t axis, std::int64_t count,
                         bool descending) {
  return OrderWriter(keys, axis, count, descending).emit();
}

loops::Tensor emit_taken(const loops::Tensor& operand, std::size_t axis,
                         const loops::Tensor& places) {
  const loops::Tensor result = make(places.aval.shape, operand.aval.dtype);
  for_all(places.aval.shape, [&](const Indices& at) {
    Indices from = at;
    from[axis] = index_below(get(places, at), operand.aval.shape[int(axis)].constant());
    put(result, at, get(operand, from));
  });
  return result;
}

}  // namespace plait
