// See sorts.h.
// SPDX-License-Identifier: Apache-2.0
#include "sorts.h"

#include <plait/base/internal_error.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <bit>

#include "codegen/walk.h"
#include "copies.h"

namespace plait::cuda {
namespace {

using codegen::Statement;

constexpr int bits_of_digit = 8;
constexpr std::int64_t most_digits = 256, warps = threads_that_sort / 32;
// With what blocks need besides, below the static shared memory of a block.
constexpr std::int64_t most_of_tile = 36 << 10;
// So many elements of a thread find room in registers, by the bytes of a key.
constexpr int most_items(std::int64_t bytes) { return bytes > 4 ? 8 : 12; }

std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

const char* infinity_text(DType dtype) {
  return dtype == DType::float16    ? "0x7c00"
         : dtype == DType::bfloat16 ? "0x7f80"
         : dtype == DType::float32  ? "0x7f800000"
                                    : "0x7ff0000000000000";
}

}  // namespace

Sorting::Sorting(const Statement& call) {
  const Jaxpr& program = call.call->program;
  const Equation& equation = program->equations[0];
  if (*equation.primitive != sort_p) throw InternalError("a loop program for a GPU calls a kernel");
  const std::span<const Aval> arrays = program->input_avals();
  keys = arrays[0].dtype;
  if (arrays.size() > 1) values = arrays[1].dtype;
  const Sizes64 sizes = arrays[0].shape.to_sizes();
  size = sizes.back();
  rows = num_elements(sizes) / size;
  is_descending = equation.params.flag("descending");
  const bool is_range_known = call.low < call.high && call.low >= 0;
  has_sign_bit = is_signed_integer(keys) && !is_range_known;
  const int all_bits = is_bool(keys)    ? 1
                       : is_range_known ? int(std::bit_width(std::uint64_t(call.high)))
                                        : 8 * int(size_of(keys));
  passes = (all_bits + bits_of_digit - 1) / bits_of_digit;
  bits = (all_bits + passes - 1) / passes;
  const std::int64_t bytes = std::int64_t(size_of(keys)) + (values ? size_of(*values) : 0);
  items = int(std::min<std::int64_t>(most_items(size_of(keys)),
                                     most_of_tile / (threads_that_sort * bytes)));
  is_short = size <= std::int64_t(threads_that_sort) * items;
  if (is_short)  // a few texts are for rows of all sizes
    for (const int fewer : {8, 4, 2})
      if (size <= std::int64_t(threads_that_sort) * fewer) items = std::min(items, fewer);
}

std::int64_t Sorting::tiles() const {
  const std::int64_t tile = std::int64_t(threads_that_sort) * items;
  return rows * ((size + tile - 1) / tile);
}
std::int64_t Sorting::tile_bytes() const {
  const std::int64_t bytes = std::int64_t(size_of(keys)) + (values ? size_of(*values) : 0);
  return round_up(std::int64_t(threads_that_sort) * items * bytes, 16);
}
std::int64_t Sorting::shared_bytes() const {
  constexpr std::int64_t sums = 64;
  return tile_bytes() + 4 * (warps + 1) * most_digits + sums;
}
std::int64_t Sorting::values_at() const {
  return passes > 1 ? round_up(rows * size * std::int64_t(size_of(keys)), 256) : 0;
}
std::int64_t Sorting::counts_at() const {
  const bool has_others = passes > 1 && values.has_value();
  return values_at() +
         (has_others ? round_up(rows * size * std::int64_t(size_of(*values)), 256) : 0);
}
std::int64_t Sorting::room_bytes() const {
  if (is_short) return 0;
  return round_up(counts_at() + 4 * 2 * most_digits * std::min(most_sorting_blocks, tiles()), 256);
}

const char* word_text(DType dtype) {
  if (size_of(dtype) > 8) throw InternalError("a sort of elements of another size");
  return word_text(std::size_t(size_of(dtype)));
}

std::string sort_text(const Sorting& sorting) {
  const DType keys = sorting.keys;
  const bool is_float = is_floating(keys);
  return std::string(sorting.is_short ? "sort_short_rows" : "sort_long_rows") + "<Order<" +
         word_text(keys) + ", KeyKind::" +
         (is_float               ? "floating"
          : sorting.has_sign_bit ? "with_sign"
                                 : "without_sign") +
         ", " + (is_float ? infinity_text(keys) : "0") + ", " +
         (sorting.is_descending ? "true" : "false") + ">, " +
         (sorting.values ? word_text(*sorting.values) : "NoValue") + ", " +
         std::to_string(sorting.items) + ", " + std::to_string(sorting.bits) + ">";
}

bool has_sorts(const Statement& statement) {
  bool has = false;
  codegen::for_each_statement(
      statement, [&](const Statement& s) { has = has || s.kind == Statement::Kind::call; });
  return has;
}
bool has_sorts(const codegen::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& s) { return has_sorts(s); });
}

}  // namespace plait::cuda
