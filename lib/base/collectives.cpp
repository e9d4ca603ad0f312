// See collectives.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/collectives.h"

#include <plait/base/allocator.h>
#include <plait/base/hash.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <compare>
#include <cstring>
#include <map>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plait {
namespace {

// As in lib/primitives/elementwise/binary.cpp.
struct Sum {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return T(Unsigned(Unsigned(x) + Unsigned(y)));
    } else {
      return T(x + y);
    }
  }
};
struct Max {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_integral_v<T>)
      return x > y ? x : y;
    else
      return x != x ? x : y <= x ? x : y;
  }
};
struct Min {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_integral_v<T>)
      return x < y ? x : y;
    else
      return x != x ? x : y >= x ? x : y;
  }
};

using Combine = void (*)(const void* x, const void* y, void* out, std::int64_t count);

// 16-bit floats are computed with as floats, and each result is rounded.
template <class Operation, class T>
void combine(const void* x, const void* y, void* out, std::int64_t count) {
  constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
  const T* left = static_cast<const T*>(x);
  const T* right = static_cast<const T*>(y);
  T* result = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i)
    if constexpr (is_half)
      result[i] = T(Operation::of(float(left[i]), float(right[i])));
    else
      result[i] = Operation::of(left[i], right[i]);
}

Combine combine_of(Combination combination, DType dtype) {
  return visit_dtype(dtype, [&](auto zero) -> Combine {
    using T = decltype(zero);
    switch (combination) {
      case Combination::sum:
        if constexpr (is_complex_v<T>)  // part by part, as one loop
          return +[](const void* x, const void* y, void* out, std::int64_t count) {
            combine<Sum, typename T::value_type>(x, y, out, 2 * count);
          };
        else if constexpr (!std::is_same_v<T, bool>)
          return &combine<Sum, T>;
        break;
      case Combination::max:
        if constexpr (!is_complex_v<T>) return &combine<Max, T>;
        break;
      case Combination::min:
        if constexpr (!is_complex_v<T>) return &combine<Min, T>;
        break;
    }
    const bool is_sum = combination == Combination::sum;
    throw DtypeError(std::string("a ") + (is_sum ? "sum" : "largest or smallest") +
                         " over ranks cannot be taken of " + std::string(name_of(dtype)),
                     is_sum ? "convert it to an integer first: x.astype(\"int32\")"
                            : "take that of the real and the imaginary part");
  });
}

constexpr std::int64_t bytes_of_piece = 8192;  // results of a level stay in the first cache

// Of one piece of each array. The results of the first level lie in scratch, one piece for each
// pair.
void combine_piece(Combine combine, std::vector<const char*>& terms, char* scratch, void* out,
                   std::int64_t count) {
  bool is_first = true;
  for (std::size_t n = terms.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t i = 0; i + 1 < n; i += 2) {
      char* result = is_first ? scratch + std::int64_t(i / 2) * bytes_of_piece
                              : const_cast<char*>(terms[i]);  // lies in scratch
      combine(terms[i], terms[i + 1], n == 2 ? out : result, count);
      terms[i / 2] = result;
    }
    // One without a neighbour goes up; it is written over by nobody, as it is the last.
    if (n % 2 == 1) terms[n / 2] = terms[n - 1];
    is_first = false;
  }
}

}  // namespace

void check_combination(Combination combination, DType dtype) { combine_of(combination, dtype); }

void combine_in_tree(Combination combination, DType dtype, std::span<const void* const> arrays,
                     void* out, std::int64_t count) {
  const Combine combine = combine_of(combination, dtype);
  const std::int64_t item = size_of(dtype);
  if (arrays.size() == 1) {
    if (count > 0 && out != arrays[0]) std::memmove(out, arrays[0], std::size_t(count * item));
    return;
  }
  const std::int64_t in_piece = bytes_of_piece / item;
  constexpr std::int64_t pieces_of_grain = 8;
  parallel_for((count + in_piece - 1) / in_piece, pieces_of_grain,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<const char*> terms(arrays.size());
                 std::vector<char> scratch(
                     arrays.size() > 2 ? (arrays.size() + 1) / 2 * std::size_t(bytes_of_piece) : 0);
                 for (std::int64_t piece = begin; piece < end; ++piece) {
                   const std::int64_t start = piece * in_piece * item;
                   for (std::size_t i = 0; i < arrays.size(); ++i)
                     terms[i] = static_cast<const char*>(arrays[i]) + start;
                   terms.resize(arrays.size());
                   combine_piece(combine, terms, scratch.data(), static_cast<char*>(out) + start,
                                 std::min(in_piece, count - piece * in_piece));
                 }
               });
}

namespace {

// Memory of the caching allocator: no page faults where it was used before.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : storage_(Storage::allocate(bytes)) {}
  char* at(std::int64_t offset) const { return static_cast<char*>(storage_.data()) + offset; }

 private:
  Storage storage_;
};

// Slice i of an array that is cut into n: what rank i combines.
std::int64_t start_of(std::int64_t count, std::size_t i, std::size_t n) {
  return count / std::int64_t(n) * std::int64_t(i) +
         std::min<std::int64_t>(count % std::int64_t(n), std::int64_t(i));
}

// Calls of communicators that mean different things do not meet.
std::uint64_t purpose_of(Combination combination, DType dtype, std::uint64_t purpose) {
  return hash_combine(purpose, std::size_t(2 + int(combination) * num_dtypes + int(dtype)));
}
constexpr std::uint64_t of_agreement = 1;

// Everyone sends everything, and combines it alone.
void reduce_small(Communicator& communicator, const Ranks& ranks, Combination combination,
                  DType dtype, const void* in, void* out, std::int64_t count,
                  const std::string& what, std::uint64_t purpose) {
  const std::size_t n = ranks.size();
  const std::int64_t bytes = count * size_of(dtype);
  const Scratch scratch(n * std::size_t(bytes));
  std::vector<Bytes> all(n);
  std::vector<const void*> arrays(n);
  for (std::size_t i = 0; i < n; ++i) {
    all[i] = {scratch.at(std::int64_t(i) * bytes), std::size_t(bytes)};
    arrays[i] = all[i].data;
  }
  communicator.all_gather(ranks, {in, std::size_t(bytes)}, all, what, purpose);
  combine_in_tree(combination, dtype, arrays, out, count);
}

// Gives each rank the slices that are its own, and combines them into out; sizes in elements.
template <class Start>
void combine_slices(Communicator& communicator, const Ranks& ranks, Combination combination,
                    DType dtype, const void* in, void* out, const Start& start,
                    const std::string& what, std::uint64_t purpose) {
  const std::size_t n = ranks.size(), place = std::size_t(communicator.place_in(ranks));
  const std::int64_t item = size_of(dtype), count = start(place + 1) - start(place);
  const char* from = static_cast<const char*>(in);
  const Scratch scratch((n - 1) * std::size_t(count * item));
  std::vector<ConstBytes> sent(n);
  std::vector<Bytes> received(n);
  std::vector<const void*> arrays(n);
  std::int64_t used = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sent[i] = {from + start(i) * item, std::size_t((start(i + 1) - start(i)) * item)};
    // Its own slice stays where it is: all_to_all copies nothing onto itself.
    received[i] = {i == place ? const_cast<char*>(from) + start(i) * item : scratch.at(used),
                   std::size_t(count * item)};
    if (i != place) used += count * item;
    arrays[i] = received[i].data;
  }
  communicator.all_to_all(ranks, sent, received, what, purpose);
  combine_in_tree(combination, dtype, arrays, out, count);
}

}  // namespace

void all_reduce(Communicator& communicator, const Ranks& ranks, Combination combination,
                DType dtype, const void* in, void* out, std::int64_t count, const std::string& what,
                std::uint64_t purpose) {
  constexpr std::int64_t small = 64 << 10;
  check_combination(combination, dtype);
  purpose = purpose_of(combination, dtype, purpose);
  const std::size_t n = ranks.size(), place = std::size_t(communicator.place_in(ranks));
  const std::int64_t item = size_of(dtype);
  if (count == 0) return;
  if (n == 1) return combine_in_tree(combination, dtype, {&in, 1}, out, count);
  if (std::int64_t(n) * count * item <= small || count < std::int64_t(n))
    return reduce_small(communicator, ranks, combination, dtype, in, out, count, what, purpose);
  const auto start = [&](std::size_t i) { return start_of(count, i, n); };
  char* to = static_cast<char*>(out);
  combine_slices(communicator, ranks, combination, dtype, in, to + start(place) * item, start, what,
                 purpose);
  std::vector<Bytes> all(n);
  for (std::size_t i = 0; i < n; ++i)
    all[i] = {to + start(i) * item, std::size_t((start(i + 1) - start(i)) * item)};
  communicator.all_gather(ranks, {all[place].data, all[place].size}, all, what, purpose);
}

void reduce_scatter(Communicator& communicator, const Ranks& ranks, Combination combination,
                    DType dtype, const void* in, void* out, std::int64_t count,
                    const std::string& what, std::uint64_t purpose) {
  check_combination(combination, dtype);
  if (count == 0) return;
  combine_slices(
      communicator, ranks, combination, dtype, in, out,
      [&](std::size_t i) { return std::int64_t(i) * count; }, what,
      purpose_of(combination, dtype, purpose));
}

namespace {

// "0", "0 and 2", "0, 1 and 2"
std::string listed(const Ranks& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

// What each rank gives, on all of them.
std::vector<std::string> gathered(Communicator& communicator, const Ranks& ranks,
                                  const std::string& mine, const std::string& what) {
  const std::size_t n = ranks.size();
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(n);
  std::vector<Bytes> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = {&lengths[i], sizeof length};
  communicator.all_gather(ranks, {&length, sizeof length}, all, what, of_agreement);
  std::vector<std::string> texts(n);
  for (std::size_t i = 0; i < n; ++i) {
    texts[i].resize(lengths[i]);
    all[i] = {texts[i].data(), texts[i].size()};
  }
  communicator.all_gather(ranks, {mine.data(), mine.size()}, all, what, of_agreement);
  return texts;
}

// The first line in which a text differs from another one; "" at its end.
std::string first_other_line(std::string_view text, std::string_view from) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line != from.substr(0, from.find('\n'))) {
      const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
      constexpr std::size_t most = 200;
      return std::string(line.substr(start, most)) + (line.size() > start + most ? "..." : "");
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    from.remove_prefix(std::min(std::min(from.find('\n'), from.size()) + 1, from.size()));
  }
  return {};
}

}  // namespace

void agree(Communicator& communicator, const Ranks& ranks, std::uint64_t hash,
           const std::string& what, const std::string& program) {
  struct Call {
    std::uint64_t number, hash;
    auto operator<=>(const Call&) const = default;
  };
  const std::size_t n = ranks.size();
  const Call mine{communicator.count_call(ranks), hash};
  std::vector<Call> calls(n);
  std::vector<Bytes> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = {&calls[i], sizeof(Call)};
  communicator.all_gather(ranks, {&mine, sizeof mine}, all, what, of_agreement);
  if (std::all_of(calls.begin(), calls.end(), [&](const Call& call) { return call == calls[0]; }))
    return;
  // Everyone sees that they differ, so everyone says what it is about to do.
  const std::vector<std::string> names = gathered(communicator, ranks, what, what),
                                 programs = gathered(communicator, ranks, program, what);
  struct Group {
    Ranks ranks;
    std::string program;
  };
  std::map<std::pair<Call, std::string>, Group> groups;
  for (std::size_t i = 0; i < n; ++i) {
    Group& group = groups[{calls[i], names[i]}];
    group.ranks.push_back(ranks[i]);
    group.program = programs[i];
  }
  std::string text = "the ranks of a job are about to do different things:";
  for (const auto& [call, group] : groups) {
    text += std::string("\n  ") + (group.ranks.size() == 1 ? "rank " : "ranks ") +
            listed(group.ranks) + ": " + call.second + " (call " +
            std::to_string(call.first.number) + ", program " + std::to_string(call.first.hash) +
            ")";
    for (const auto& [other, from] : groups)  // the first one that is another program
      if (other.first.hash != call.first.hash) {
        if (const std::string line = first_other_line(group.program, from.program); !line.empty())
          text += "\n    with " + line;
        break;
      }
  }
  throw JobError(text,
                 "every rank must run the same program in the same order: let nothing that differs "
                 "by rank, such as the rank itself, choose what is called");
}

}  // namespace plait
