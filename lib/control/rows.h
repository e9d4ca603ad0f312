// Values in memory: slices, elements of stacks, and rows, the values of some examples of a batch
// next to each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stack.h>
#include <plait/trace/array.h>

namespace plait {

inline std::int64_t bytes_of(const View& view) { return view.size() * size_of(view.dtype); }

// What an element of a stack, or a slice, looks like in memory.
inline View element_view(const Aval& slice) {
  const Aval aval = in_memory(slice);
  const Sizes64 shape = aval.shape.to_sizes();
  return {nullptr, aval.dtype, shape, dense_strides(shape)};
}

// Which examples of a batch have rows, by number; -1: no one's. The values in such a row are those
// of another example, so that whatever is computed of them does not fail where no one's would.
class Rows {
 public:
  Rows() = default;
  // These examples, none twice, of so many; filled up to num_rows.
  Rows(std::vector<std::int32_t> numbers, std::int64_t num_rows, std::int64_t num_examples);

  Rows(Stack::Rows numbers, std::int64_t num_examples);

  std::int64_t size() const { return num_rows_; }
  std::int32_t operator[](std::int64_t row) const {
    return numbers_ ? (*numbers_)[std::size_t(row)] : std::int32_t(row);
  }
  const Stack::Rows& numbers() const { return numbers_; }           // null: all of them, in order
  std::span<const std::int32_t> places() const { return places_; }  // by example: its row, or -1

  // The rows of memory that holds a value like `example`, or a stack of such, of each example.
  Buffer gather(const View& all, const Aval& example) const;
  // Writes rows to where all examples' values are.
  void scatter(const View& rows, const View& all, std::int64_t row_bytes) const;
  // A stack of rows as one of all examples.
  Stack::Handle scatter(const Stack::Handle& rows) const;

 private:
  std::int64_t num_rows_ = 0;
  Stack::Rows numbers_;
  std::vector<std::int32_t> places_;
};

void copy_row(const void* from, std::int64_t from_row, void* to, std::int64_t to_row,
              std::int64_t bytes);
// Bytes of the value of one example.
std::int64_t row_bytes(const Aval& example);
// Memory for rows of values, or for a handle of a stack of rows.
Buffer make_rows(const Aval& example, std::int64_t num_rows);

// The elements of a stack, each with the rows of chosen examples: zeros where it has none of one.
class StackReader {
 public:
  // Elements as they are where there are no lanes: examples, if any, are along the first axis.
  StackReader(Stack::Handle stack, const Aval& element);
  // Elements of rows, each like `example`.
  StackReader(Stack::Handle stack, const Aval& example, const Rows& rows);
  const View& at(std::int64_t index);  // valid until the next call

 private:
  void gather(std::int64_t index);

  Stack::Handle stack_;
  View view_;
  bool of_stacks_;
  std::int64_t num_examples_ = 0;
  Stack::Rows rows_;
  std::vector<std::int32_t> places_;
  Storage memory_;          // for an element that is put together
  Stack::Handle together_;  // or for a stack in one
};

// How many slices an array has along its first axis, or elements a stack.
std::int64_t num_slices(const Array& array);
// A slice of a known array, or an element of a stack: zeros behind its end.
Array slice_at(const Array& array, std::int64_t index);

}  // namespace plait
