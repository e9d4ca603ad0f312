// Counts and places by loops over memory. See known_values.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/numpy/known_values.h"

#include <plait/base/pool.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "functions/functions.h"

namespace plait::functions {
namespace {

constexpr std::int64_t places_per_block = 4096;  // that are counted before they are written

const Buffer& known_buffer_of(const Array& x) {
  return static_cast<const ConcreteNode*>(x.node())->buffer;
}

// An array of integers that a loop writes, where `from` lies.
template <class Write>
Array write_integers(const Array& from, const Sizes64& shape, const Write& write) {
  Buffer buffer = Buffer::empty(default_int(), shape);
  visit_dtype(default_int(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>)
      write(static_cast<T*>(buffer.mutable_data()));
  });
  buffer.set_free(known_buffer_of(from).is_free());
  return make_concrete({Shape::of(shape), default_int(), false}, std::move(buffer));
}

std::int64_t count_true(const std::uint8_t* mask, std::int64_t n) {
  constexpr int lanes = 32, most = 255;  // terms of a sum of bytes
  std::int64_t count = 0;
  while (n >= lanes) {
    std::uint8_t sums[lanes] = {};
    for (int i = 0; i < most && n >= lanes; ++i, n -= lanes, mask += lanes)
      for (int lane = 0; lane < lanes; ++lane) sums[lane] = std::uint8_t(sums[lane] + mask[lane]);
    for (std::uint8_t sum : sums) count += sum;
  }
  for (std::int64_t i = 0; i < n; ++i) count += mask[i];
  return count;
}

// Writes the places of true elements, counted from `from` on: as many as there is room for.
template <class T>
void write_places(const std::uint8_t* mask, std::int64_t n, std::int64_t from, T* to, T* end) {
  std::int64_t i = 0;
  const auto is_none_of_eight = [&] {
    std::uint64_t eight;
    std::memcpy(&eight, mask + i, sizeof eight);
    return eight == 0;
  };
  for (; i + 8 <= n && end - to >= 8; i += 8) {
    if (is_none_of_eight()) continue;
    for (int k = 0; k < 8; ++k) {  // branch-free: which are true cannot be foreseen
      *to = T(from + i + k);
      to += mask[i + k];
    }
  }
  for (; i < n && to < end; ++i) {
    while (i + 8 <= n && is_none_of_eight()) i += 8;
    if (i < n && mask[i]) *to++ = T(from + i);
  }
}

// The places at which a mask is true that mask_of(begin, count, bytes) writes for parts of a row.
template <class MaskOf>
Array places_where(const Array& row, const MaskOf& mask_of) {
  const std::int64_t n = row.shape().num_elements().constant();
  const std::int64_t blocks = (n + places_per_block - 1) / places_per_block;
  std::vector<std::int64_t> starts(std::size_t(blocks) + 1);
  const auto for_blocks = [&](const auto& body) {
    parallel_for(blocks, 16, [&](std::int64_t begin, std::int64_t end) {
      std::uint8_t bytes[places_per_block];
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t first = b * places_per_block,
                           count = std::min(places_per_block, n - first);
        body(b, first, count, mask_of(first, count, bytes));
      }
    });
  };
  for_blocks([&](std::int64_t b, std::int64_t, std::int64_t count, const std::uint8_t* mask) {
    starts[std::size_t(b) + 1] = count_true(mask, count);
  });
  for (std::size_t b = 0; b < std::size_t(blocks); ++b) starts[b + 1] += starts[b];
  return write_integers(row, {starts.back()}, [&](auto* out) {
    for_blocks(
        [&](std::int64_t b, std::int64_t first, std::int64_t count, const std::uint8_t* mask) {
          write_places(mask, count, first, out + starts[std::size_t(b)],
                       out + starts[std::size_t(b) + 1]);
        });
  });
}

}  // namespace

bool is_known(const Array& x) {
  if (Trace::current() || !x.is_valid() || !x.node()->is_plain()) return false;
  Whereabouts where;
  where.add(known_buffer_of(x));
  return where.are_on_host() && (!where.are_free() || DeviceScope::current().is_host());
}

Array number_of_true(const Array& mask) {
  const Buffer bytes = known_buffer_of(mask).dense();
  const auto* const data = static_cast<const std::uint8_t*>(bytes.data());
  const std::int64_t n = num_elements(bytes.shape()),
                     blocks = (n + places_per_block - 1) / places_per_block;
  const auto number = [&](std::int64_t count) {
    return write_integers(mask, {}, [&]<class T>(T* out) { *out = T(count); });
  };
  if (blocks <= 1) return number(count_true(data, n));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(blocks));
  parallel_for(blocks, 128, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      counts[std::size_t(b)] = count_true(data + b * places_per_block,
                                          std::min(places_per_block, n - b * places_per_block));
  });
  std::int64_t total = 0;
  for (std::int64_t count : counts) total += count;
  return number(total);
}

Array places_of_true(const Array& mask) {
  const Buffer bytes = known_buffer_of(mask).dense();
  const auto* const data = static_cast<const std::uint8_t*>(bytes.data());
  return places_where(
      mask, [&](std::int64_t first, std::int64_t, std::uint8_t*) { return data + first; });
}

Array places_of_runs(const Array& sorted, bool equal_nan) {
  const Buffer row = known_buffer_of(sorted).dense();
  Array places;
  visit_dtype(row.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* const x = static_cast<const T*>(row.data());
    const auto differs = [&](T a, T b) {
      using C = detail::Compute<T>;
      const C x = C(a), y = C(b);
      if constexpr (std::is_integral_v<C>)
        return x != y;
      else
        return x != y && !(equal_nan && x != x && y != y);
    };
    places = places_where(sorted, [&](std::int64_t first, std::int64_t count, std::uint8_t* mask) {
      std::int64_t i = 0;
      if (first == 0) mask[i++] = 1;
      for (; i < count; ++i) mask[i] = differs(x[first + i], x[first + i - 1]);
      return static_cast<const std::uint8_t*>(mask);
    });
  });
  return places;
}

namespace {

// The quotients and the rests of numbers by a size. Those that rise are seldom divided.
template <class T>
void divide_rising(const T* numbers, std::int64_t n, T size, T* quotients, T* rests) {
  T quotient = 0, start = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T number = numbers[i];
    if (number < start || number - start >= size) {
      quotient = number / size;
      start = quotient * size;
    }
    quotients[i] = quotient;
    rests[i] = number - start;
  }
}

}  // namespace

std::vector<Array> indices_along_axes(const Array& places, const Sizes64& shape) {
  const std::int64_t n = places.shape().num_elements().constant();
  const Sizes64 like = places.shape().to_sizes();
  std::vector<Array> indices(shape.size());
  Array rest = places;
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    const Buffer numbers = known_buffer_of(rest).dense();
    indices[axis] = write_integers(places, like, [&]<class T>(T* rests) {
      rest = write_integers(places, like, [&]<class U>(U* quotients) {
        if constexpr (std::is_same_v<T, U>) {
          const T* const from = static_cast<const T*>(numbers.data());
          parallel_for(n, 32768, [&](std::int64_t begin, std::int64_t end) {
            divide_rising(from + begin, end - begin, T(shape[axis]), quotients + begin,
                          rests + begin);
          });
        }
      });
    });
  }
  if (!indices.empty()) indices[0] = rest;
  return indices;
}

Array distances(const Array& places, std::int64_t n) {
  const Buffer buffer = known_buffer_of(places).dense();
  const std::int64_t count = num_elements(buffer.shape());
  return write_integers(places, {count}, [&]<class T>(T* out) {
    const T* const from = static_cast<const T*>(buffer.data());
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = T((i + 1 < count ? std::int64_t(from[i + 1]) : n) - from[i]);
  });
}

Array runs_by_place(const Array& places, const Array& order) {
  const Buffer starts = known_buffer_of(places).dense(), from = known_buffer_of(order).dense();
  const std::int64_t runs = num_elements(starts.shape()), n = num_elements(from.shape());
  return write_integers(order, {n}, [&]<class T>(T* out) {
    const T* const first = static_cast<const T*>(starts.data());
    const T* const place = static_cast<const T*>(from.data());
    for (std::int64_t run = 0; run < runs; ++run)
      for (std::int64_t i = first[run], end = run + 1 < runs ? first[run + 1] : n; i < end; ++i)
        out[place[i]] = T(run);
  });
}

namespace {

// An array of bytes that a loop writes, of this shape.
template <class Write>
Array write_bytes(const Array& from, const Shape& shape, const Write& write) {
  Buffer buffer = Buffer::empty(DType::uint8, shape.to_sizes());
  write(static_cast<std::uint8_t*>(buffer.mutable_data()));
  buffer.set_free(known_buffer_of(from).is_free());
  return make_concrete({shape, DType::uint8, false}, std::move(buffer));
}

constexpr std::int64_t bytes_per_thread = 1 << 16;

}  // namespace

// Eight bytes of 0 and 1 are a number of 64 bits: times this one, its highest byte has them as
// bits, to each of which one product contributes.
Array packed_bits(const Array& flags, FirstBit first) {
  const Buffer from = known_buffer_of(flags).dense();
  const std::uint64_t factor = first == FirstBit::highest ? 0x8040201008040201 : 0x0102040810204080;
  Shape shape = flags.shape();
  shape.pop_back();
  return write_bytes(flags, shape, [&](std::uint8_t* out) {
    parallel_for(shape.num_elements().constant(), bytes_per_thread,
                 [&](std::int64_t begin, std::int64_t end) {
                   // Bytes may be any memory: what is read in the loop lies in registers.
                   const std::uint64_t by = factor;
                   const auto* const eights = static_cast<const std::uint8_t*>(from.data());
                   std::uint8_t* const to = out;
                   for (std::int64_t i = begin; i < end; ++i) {
                     std::uint64_t eight;
                     std::memcpy(&eight, eights + 8 * i, sizeof eight);
                     to[i] = std::uint8_t(eight * by >> 56);
                   }
                 });
  });
}

namespace {

// The bits of each byte as eight bytes of 0 and 1.
std::array<std::uint64_t, 256> bits_of_bytes(FirstBit first) {
  std::array<std::uint64_t, 256> bits{};
  for (std::uint64_t byte = 0; byte < bits.size(); ++byte)
    for (int i = 0; i < 8; ++i)
      bits[byte] |= (byte >> (first == FirstBit::highest ? 7 - i : i) & 1) << (8 * i);
  return bits;
}

}  // namespace

Array unpacked_bits(const Array& bytes, FirstBit first) {
  static const std::array<std::uint64_t, 256> tables[] = {bits_of_bytes(FirstBit::highest),
                                                          bits_of_bytes(FirstBit::lowest)};
  const std::array<std::uint64_t, 256>& bits = tables[first == FirstBit::highest ? 0 : 1];
  const Buffer from = known_buffer_of(bytes).dense();
  Shape shape = bytes.shape();
  shape.back() = shape.back() * 8;
  return write_bytes(bytes, shape, [&](std::uint8_t* out) {
    parallel_for(bytes.shape().num_elements().constant(), bytes_per_thread,
                 [&](std::int64_t begin, std::int64_t end) {
                   const std::uint64_t* const of_byte = bits.data();
                   const auto* const data = static_cast<const std::uint8_t*>(from.data());
                   std::uint8_t* const to = out;
                   for (std::int64_t i = begin; i < end; ++i)
                     std::memcpy(to + 8 * i, of_byte + data[i], sizeof *of_byte);
                 });
  });
}

bool has_negative(const Array& numbers) {
  const Buffer buffer = known_buffer_of(numbers).dense();
  const std::int64_t n = num_elements(buffer.shape());
  bool result = false;
  visit_dtype(buffer.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      const T* const x = static_cast<const T*>(buffer.data());
      for (std::int64_t first = 0; first < n && !result; first += places_per_block) {
        T signs = 0;
        for (std::int64_t i = first; i < std::min(n, first + places_per_block); ++i)
          signs = T(signs | x[i]);
        result = signs < 0;
      }
    }
  });
  return result;
}

}  // namespace plait::functions
