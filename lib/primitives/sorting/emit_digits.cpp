// Long rows in the order of integers, digit by digit from the lowest on: see emit_order.h.
//
// Keys become words of at most 32 bits, in order of significance. An element is an int64: its word,
// and below that its place. Each pass orders the elements by one digit of the word, and leaves
// those of the same digit in the order in which they were:
//
//   counts[digit][tile]  how many elements of each tile have the digit; a thread has a tile
//   their running sums   where the first of them goes
//   places               each tile's elements, one behind the other
//
// What counts wait for is memory, so a thread takes some neighbours at once: it reads all their
// counts, and adds how many of those before in the group have the same digit.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/sorting/emit_digits.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace plait {
namespace {

using namespace written;  // NOLINT

constexpr int bits_of_digit = 8, bits_of_place = 32;
constexpr std::int64_t at_once = 4;           // of a tile
constexpr std::int64_t most_tiles = 1 << 15;  // of all rows: their counts stay in the cache
constexpr std::int64_t shortest_tile = 64;
constexpr std::int64_t chunk = 128;  // counts that a thread sums one after the other

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

Number bitcast(Number x, DType dtype) {
  const Writing& writing = Writing::current();
  return {writing.writer.compute(bitcast_p, {{"dtype", dtype}}, {x.value}, writing.source), dtype};
}
Number shifted(const char* kind, Number x, int places) {
  const Writing& writing = Writing::current();
  return {writing.writer.compute(shift_p, {{"kind", std::string(kind)}},
                                 {x.value, integer(places).value}, writing.source),
          x.dtype};
}
Number lowest_bits(Number x, int bits) { return x & integer((std::int64_t{1} << bits) - 1); }

// --- Words ---------------------------------------------------------------------------------------

// A number from 0 to 2^bits - 1, as an int64, of the element of a row.
struct Word {
  int bits;
  std::function<Number(const Indices&)> at;
};

// An int64 that compares as x does: -0.0 equals 0.0, and NaN is the greatest.
Number ordered(Number x) {
  if (x.dtype == DType::uint64)
    return bitcast(x, DType::int64) + integer(std::numeric_limits<std::int64_t>::min());
  if (!is_floating(x.dtype)) return cast(x, DType::int64);
  const int bits = 8 * int(size_of(x.dtype));
  const DType bare = bits == 16 ? DType::int16 : bits == 32 ? DType::int32 : DType::int64;
  const std::int64_t greatest = std::int64_t((std::uint64_t{1} << (bits - 1)) - 1);
  const Number all = cast(bitcast(x, bare), DType::int64), zero = integer(0);
  const Number same = select(x == literal(0, x.dtype), zero, all);
  // The greater the bits of a negative number, the less it is.
  const Number turned = select(same < zero, integer(-greatest - 1) + (integer(-1) - same), same);
  return select(is_nan(x), integer(greatest), turned);
}

// The words of a real number, the least significant one first.
void add_words(std::vector<Word>& words, DType dtype,
               const std::function<Number(const Indices&)>& number) {
  const int bits = is_bool(dtype) ? 1 : 8 * int(size_of(dtype));
  if (bits == 64) {
    words.push_back({32, [=](const Indices& at) { return lowest_bits(ordered(number(at)), 32); }});
    words.push_back({32, [=](const Indices& at) {
                       return shifted("right_arithmetic", ordered(number(at)), 32) +
                              integer(std::int64_t{1} << 31);
                     }});
    return;
  }
  const bool has_sign = is_floating(dtype) || is_signed_integer(dtype);
  const std::int64_t least = has_sign ? -(std::int64_t{1} << (bits - 1)) : 0;
  words.push_back({bits, [=](const Indices& at) { return ordered(number(at)) - integer(least); }});
}
std::vector<Word> words_of(const loops::Tensor& key) {
  std::vector<Word> words;
  const DType dtype = key.aval.dtype;
  const auto number = [key](const Indices& at) { return get(key, at); };
  if (!is_complex(dtype)) {
    add_words(words, dtype, number);
    return words;
  }
  const auto re = [=](const Indices& at) { return real(number(at)); };
  const auto im = [=](const Indices& at) { return imag(number(at)); };
  add_words(words, real_dtype_of(dtype), im);
  add_words(words, real_dtype_of(dtype), re);
  words.push_back({2, [=](const Indices& at) {
                     const auto flag = [](Number truth) { return cast(truth, DType::int64); };
                     const Number of_real = flag(is_nan(re(at)));
                     return of_real + of_real + flag(is_nan(im(at)));
                   }});
  return words;
}

// --- Passes --------------------------------------------------------------------------------------

class Digits {
 public:
  Digits(const Shape& shape, std::size_t axis, std::int64_t count)
      : axis_(axis), size_(shape[int(axis)].constant()), result_shape_(shape), rows_(shape) {
    result_shape_[int(axis)] = count;
    rows_.erase(int(axis));
    num_rows_ = rows_.num_elements().constant();
    tile_ = std::clamp(round_up((size_ * num_rows_ + most_tiles - 1) / most_tiles, at_once),
                       shortest_tile, round_up(size_, at_once));
    tiles_ = (size_ + tile_ - 1) / tile_;
  }

  // By several words, the least significant one first.
  loops::Tensor order_by(const std::vector<Word>& words) {
    const loops::Tensor places = make(result_shape_, DType::int32);
    elements_ = make_by_row(tiles_ * tile_, DType::int64);
    others_ = make_by_row(tiles_ * tile_, DType::int64);
    int widest = 0;
    for (const Word& word : words) widest = std::max(widest, std::min(word.bits, bits_of_digit));
    counts_ = make_by_row(num_counts(widest), DType::int32);
    for (std::size_t i = 0; i < words.size(); ++i) {
      pack(words[i], i == 0);
      const int passes = (words[i].bits + bits_of_digit - 1) / bits_of_digit;
      for (int pass = 0; pass < passes; ++pass) {
        const int first = words[i].bits * pass / passes, end = words[i].bits * (pass + 1) / passes;
        const bool is_last = i + 1 == words.size() && pass + 1 == passes;
        order_by_digit({first, end - first}, is_last ? &places : nullptr);
      }
    }
    return places;
  }

 private:
  struct Digit {
    int first, bits;
  };

  loops::Tensor make_by_row(std::int64_t size, DType dtype) const {
    return make(by_row(size), dtype);
  }
  Shape by_row(std::int64_t size) const {
    Shape shape = rows_;
    shape.push_back(size);
    return shape;
  }
  static Indices in_row(Indices row, const Index& index) {
    row.back() = index;
    return row;
  }
  // The element of an array that has the axis where the operand has it.
  Indices in_array(Indices row, const Index& index) const {
    row.pop_back();
    row.insert(row.begin() + std::ptrdiff_t(axis_), index);
    return row;
  }

  // Of a row, in whole chunks if more than one.
  std::int64_t num_counts(int bits) const {
    const std::int64_t count = tiles_ << bits;
    return count > chunk ? round_up(count, chunk) : count;
  }

  // Behind the elements of a row come others, to the end of the last tile, which stay there.
  void pack(const Word& word, bool is_first) {
    const std::int64_t padded = tiles_ * tile_;
    const loops::Tensor &from = elements_, &to = is_first ? elements_ : others_;
    for_all(by_row(padded), [&](const Indices& at) {
      const Number i = number_of(at.back());
      const Number place = minimum(is_first ? i : place_of(get(from, at)), integer(size_ - 1));
      Number bits = word.at(in_array(at, index_below(place, size_)));
      if (padded > size_)
        bits = select(i < integer(size_), bits, integer((std::int64_t{1} << word.bits) - 1));
      put(to, at, shifted("left", bits, bits_of_place) | place);
    });
    if (!is_first) std::swap(elements_, others_);
  }
  static Number place_of(Number element) { return lowest_bits(element, bits_of_place); }

  void order_by_digit(const Digit& digit, const loops::Tensor* places) {
    const std::int64_t size = num_counts(digit.bits);
    loops::Tensor counts = counts_;
    counts.aval.shape = by_row(size);
    for_all(by_row(size), [&](const Indices& at) { put(counts, at, literal(0, DType::int32)); });
    for_each_group(digit, counts, [](const Indices&, Number, Number) {});
    const loops::Tensor sums = sums_before(counts, size);
    const std::int64_t count = result_shape_[int(axis_)].constant();
    for_each_group(digit, sums, [&](const Indices& row, Number element, Number to) {
      const std::int64_t padded = tiles_ * tile_;
      const Number place = cast(to, DType::int64);
      if (!places) return put(others_, in_row(row, index_below(place, padded)), element);
      const auto put_place = [&] {
        put(*places, in_array(row, index_below(place, count)), place_of(element));
      };
      if (count == padded)
        put_place();
      else
        only_where(place < integer(count), put_place);
    });
    std::swap(elements_, others_);
  }

  // Of each tile, group by group, what(row, element, number) for its elements, where number is the
  // count of their digit; and counts them.
  void for_each_group(const Digit& digit, const loops::Tensor& counts,
                      const std::function<void(const Indices&, Number, Number)>& what) const {
    for_all(by_row(tiles_), [&](const Indices& row) {
      const Index tile = row.back();
      for_steps(tile_ / at_once, [&](const Index& step) {
        Numbers elements, digits, before;
        std::vector<Indices> slots;
        const Index first = sum_of(times(tile, tile_), times(step, at_once));
        for (std::int64_t i = 0; i < at_once; ++i)
          elements.push_back(get(elements_, in_row(row, sum_of(first, {i}))));
        for (const Number& element : elements) {
          digits.push_back(lowest_bits(
              shifted("right_logical", element, bits_of_place + digit.first), digit.bits));
          slots.push_back(in_row(
              row, sum_of(times(index_below(digits.back(), std::int64_t{1} << digit.bits), tiles_),
                          tile)));
        }
        for (const Indices& slot : slots) before.push_back(get(counts, slot));
        for (std::size_t i = 0; i < digits.size(); ++i)
          for (std::size_t j = 0; j < i; ++j)
            before[i] = before[i] + cast(digits[j] == digits[i], DType::int32);
        // The last one of a digit stores last.
        for (std::size_t i = 0; i < digits.size(); ++i) {
          what(row, elements[i], before[i]);
          put(counts, slots[i], before[i] + literal(1, DType::int32));
        }
      });
    });
  }

  // The sums of what comes before each number of a row, which may be written over. There are whole
  // chunks of them, if more than one.
  loops::Tensor sums_before(const loops::Tensor& numbers, std::int64_t size) const {
    const Number zero = literal(0, DType::int32);
    constexpr std::int64_t most = 1024, most_work = std::int64_t{1} << 22;
    if (size <= chunk || (size <= most && num_rows_ * size * size <= most_work)) {
      const loops::Tensor sums = make_by_row(size, DType::int32);
      for_all(by_row(size), [&](const Indices& at) {
        const Number i = number_of(at.back());
        put(sums, at, combined(add_p, zero, size, [&](const Index& j) {
              return select(number_of(j) < i, get(numbers, in_row(at, j)), zero);
            }));
      });
      return sums;
    }
    const std::int64_t groups = size / chunk;
    const std::int64_t padded = groups > chunk ? round_up(groups, chunk) : groups;
    const loops::Tensor of_groups = make_by_row(padded, DType::int32);
    for_all(by_row(padded), [&](const Indices& at) {
      const Number group = number_of(at.back()), inside = minimum(group, integer(groups - 1));
      const Number sum = combined(add_p, zero, chunk, [&](const Index& j) {
        return get(numbers, in_row(at, sum_of(times(index_below(inside, groups), chunk), j)));
      });
      put(of_groups, at, padded > groups ? select(group < integer(groups), sum, zero) : sum);
    });
    const loops::Tensor sums = sums_before(of_groups, padded);
    for_all(by_row(groups), [&](const Indices& at) {
      repeated(chunk, {get(sums, at)}, [&](const Index& j, const Numbers& sum) -> Numbers {
        const Indices slot = in_row(at, sum_of(times(at.back(), chunk), j));
        const Number next = sum[0] + get(numbers, slot);
        put(numbers, slot, sum[0]);
        return {next};
      });
    });
    return numbers;
  }

  const std::size_t axis_;
  const std::int64_t size_;
  Shape result_shape_, rows_;
  std::int64_t num_rows_ = 1, tile_ = 1, tiles_ = 1;
  loops::Tensor elements_, others_, counts_;
};

}  // namespace

void require_int32_places(std::int64_t count) {
  if (count > std::numeric_limits<std::int32_t>::max())
    Writing::current().writer.refuse("the order of more elements than int32 counts");
}

bool has_few_digits(std::span<const loops::Tensor> keys) {
  constexpr std::int64_t most_bytes = 20;  // each makes some kernels
  std::int64_t bytes = 0;
  for (const loops::Tensor& key : keys) bytes += size_of(key.aval.dtype);
  return bytes <= most_bytes;
}

loops::Tensor emit_order_by_digits(std::span<const loops::Tensor> keys, std::size_t axis,
                                   std::int64_t count, bool descending) {
  std::vector<Word> words;
  for (std::size_t i = keys.size(); i-- > 0;)
    for (Word& word : words_of(keys[i])) {
      if (descending)
        word.at = [at = std::move(word.at), bits = word.bits](const Indices& place) {
          return integer((std::int64_t{1} << bits) - 1) - at(place);
        };
      words.push_back(std::move(word));
    }
  return Digits(keys[0].aval.shape, axis, count).order_by(words);
}

loops::Tensor emit_order_of_integers(const loops::Tensor& numbers, std::int64_t end) {
  const int bits = std::max(1, int(std::bit_width(std::uint64_t(end - 1))));
  const Word word{bits, [&](const Indices& at) { return cast(get(numbers, at), DType::int64); }};
  const std::int64_t count = numbers.aval.shape[0].constant();
  require_int32_places(count);
  return Digits(numbers.aval.shape, 0, count).order_by({word});
}

}  // namespace plait
