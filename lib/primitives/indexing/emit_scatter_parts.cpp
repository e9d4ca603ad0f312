// scatter in a loop program, of many single updates of a small array, where no kernel of a library
// runs it: in the parts of NOTE: [scatter order], side by side.
//
// Few updates are looked at by a thread for each element of each part. Many are sorted by the
// elements that they change; those of an element in a part then follow each other, and one thread
// takes them in. Where most updates change one element, so few threads as there are parts do most
// of the work, but each of them reads neighbours, four at once.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>

#include "primitives/indexing/index_rows.h"
#include "primitives/sorting/emit_digits.h"
#include "primitives/sorting/emit_order.h"
#include "primitives/written.h"

namespace plait::indexing {
namespace {

using Kind = lax::ScatterKind;
using Mode = lax::GatherScatterMode;
using namespace written;  // NOLINT

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
    parts_ = make({num_parts_, size_}, array_.aval.dtype);
    // A thread for each element, which looks at all updates of a part, or at its own.
    constexpr std::int64_t most_elements = 4096, most_looks = 8192;
    if (size_ <= most_elements && longest_ <= most_looks)
      combine_by_element();
    else
      combine_in_order();
    const loops::Tensor whole = make(array_.aval.shape, array_.aval.dtype);
    for_all({size_}, [&](const Indices& at) {
      Number all = get(parts_, {Index{0}, at[0]});
      for (std::int64_t part = 1; part < num_parts_; ++part)
        all = combined(all, get(parts_, {Index{part}, at[0]}));
      put(whole, digits_of(at[0], sizes_), all);
    });
    return whole;
  }

 private:
  // Of every update the position of its element, or one behind all where it is left out; and the
  // updates, in rows of memory.
  void find_positions() {
    const Shape rows(indices_.aval.shape.begin(), indices_.aval.shape.end() - 1);
    const Shape window = window_sizes(array_.aval.rank(), updates_.aval.shape, dimensions_);
    const Mode mode = mode_of(equation_.params);
    if (mode == Mode::check) check_windows(w_, equation_, array_, indices_, window);
    const Sizes64 row_sizes = rows.to_sizes(), strides = dense_strides(sizes_);
    positions_ = make({count_}, DType::int32), values_ = make({count_}, array_.aval.dtype);
    for_all({count_}, [&](const Indices& number) {
      Indices row = digits_of(number[0], row_sizes);
      Number position = integer(0);
      std::optional<Number> is_inside;
      for (std::size_t i = 0; i < dimensions_.axes.size(); ++i) {
        const std::int64_t last = last_start(array_, dimensions_, window, i);
        Number start{start_of_window(w_, indices_, row, i), DType::int64};
        if (mode == Mode::check) {
          start.value = w_.checked(start.value, 0, last);
        } else if (mode == Mode::fill || mode == Mode::promise) {
          const Number fits = (start >= integer(0)) & (start <= integer(last));
          is_inside = is_inside ? *is_inside & fits : fits;
        } else {
          start.value = w_.clamped(start.value, 0, last);
        }
        position = position + start * integer(strides[std::size_t(dimensions_.axes[i])]);
      }
      put(positions_, number, is_inside ? select(*is_inside, position, integer(size_)) : position);
      are_all_inside_ = !is_inside;
      row.resize(std::size_t(updates_.aval.rank()), Index{0});
      put(values_, number, get(updates_, row));
    });
  }

  void combine_by_element() {
    for_all({num_parts_, size_}, [&](const Indices& at) {
      const Number position = cast(number_of(at[1]), DType::int32);
      const Numbers combined_one =
          repeated(longest_, {first_of(at)}, [&](const Index& step, const Numbers& now) -> Numbers {
            const Update update = update_of(at[0], step);
            const Number is_here = update.is_there & (get(positions_, {update.row}) == position);
            return {select(is_here, combined(now[0], get(values_, {update.row})), now[0])};
          });
      put(parts_, at, combined_one[0]);
    });
  }
  void combine_in_order() {
    const loops::Tensor order =
        emit_order_of_integers(positions_, size_ + (are_all_inside_ ? 0 : 1));
    find_runs(order);
    const loops::Tensor values = emit_taken(values_, 0, order);
    constexpr std::int64_t at_once = 4;  // so that reads do not wait for each other
    for_all({num_parts_, size_}, [&](const Indices& at) {
      const Number end = get(ends_, at);
      const Numbers last = repeated_while(
          {get(begins_, at), first_of(at)}, [&](const Numbers& now) { return now[0] < end; },
          [&](const Numbers& now) -> Numbers {
            Numbers some;
            for (std::int64_t i = 0; i < at_once; ++i) {
              const Number row = cast(now[0], DType::int64) + integer(i);
              some.push_back(get(values, {index_below(minimum(row, integer(count_ - 1)), count_)}));
            }
            Number all = now[1];
            for (std::int64_t i = 0; i < at_once; ++i)
              all = select(now[0] + literal(double(i), DType::int32) < end,
                           combined(all, some[std::size_t(i)]), all);
            return {now[0] + literal(double(at_once), DType::int32), all};
          });
      put(parts_, at, last[1]);
    });
  }
  // Where the updates of each element in each part begin and end.
  void find_runs(const loops::Tensor& order) {
    begins_ = make({num_parts_, size_}, DType::int32);
    ends_ = make({num_parts_, size_}, DType::int32);
    const Number none = literal(0, DType::int32);
    for_all({num_parts_, size_}, [&](const Indices& at) { put(begins_, at, none); });
    for_all({num_parts_, size_}, [&](const Indices& at) { put(ends_, at, none); });
    struct Run {
      Number part, position;
    };
    for_all(count_, [&](const Index& place) {
      const auto run_at = [&](Number place) -> Run {
        const Index row = index_below(get(order, {index_below(place, count_)}), count_);
        // Part p begins with row count * p / num_parts.
        const Number rows = number_of(row) + integer(1),
                     part = (rows * integer(num_parts_) - integer(1)) / integer(count_);
        return {part, cast(get(positions_, {row}), DType::int64)};
      };
      const Number i = number_of(place), zero = integer(0), last = integer(count_ - 1);
      const Run run = run_at(i), before = run_at(maximum(i - integer(1), zero)),
                after = run_at(minimum(i + integer(1), last));
      const auto differs = [&](const Run& other) {
        return (run.part != other.part) | (run.position != other.position);
      };
      const Number is_there = run.position < integer(size_);
      const Indices at{index_below(run.part, num_parts_),
                       index_below(minimum(run.position, integer(size_ - 1)), size_)};
      only_where(is_there & ((i == zero) | differs(before)), [&] { put(begins_, at, i); });
      only_where(is_there & ((i == last) | differs(after)),
                 [&] { put(ends_, at, i + integer(1)); });
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
    const Number element = get(array_, digits_of(at[1], sizes_));
    if (kind_ != Kind::add) return element;
    const DType dtype = array_.aval.dtype;
    Literal none{dtype};
    if (is_inexact(dtype)) none.real = -0.0;
    if (complexes.has(dtype)) none.imaginary = -0.0;
    return select(number_of(at[0]) == integer(0), element, {w_.literal(none), dtype});
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

}  // namespace

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
