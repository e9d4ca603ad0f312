// How threads sort: what a call of `sort` in a loop program is on a GPU (device/plait/sort.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codegen/program.h"

namespace plait::cuda {

// More blocks take no part, so that the memory for their counts is known.
inline constexpr std::int64_t most_sorting_blocks = 2048;
inline constexpr int threads_that_sort = 256;

struct Sorting {
  explicit Sorting(const codegen::Statement& call);

  DType keys;
  std::optional<DType> values;
  std::int64_t rows, size;
  bool is_descending;
  bool has_sign_bit;     // of integers: known not to be negative, they are compared without
  int items;             // of a thread in a tile
  int bits, passes = 1;  // of a digit, and how many digits there are
  bool is_short;         // a row is no longer than a tile, and stays in a block

  std::int64_t tiles() const;
  std::int64_t tile_bytes() const;
  std::int64_t shared_bytes() const;
  // In the memory that long rows take turns with: keys, then values, then counts.
  std::int64_t values_at() const, counts_at() const, room_bytes() const;
};

// The unsigned integer that has as many bytes.
const char* word_text(DType dtype);
// What sorts, as a template with its arguments.
std::string sort_text(const Sorting& sorting);

// Whether statements sort.
bool has_sorts(const codegen::Block& block);
bool has_sorts(const codegen::Statement& statement);

}  // namespace plait::cuda
