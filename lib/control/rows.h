// Values in memory: slices, elements of stacks, and rows, which hold the values of some examples of
// a batch contiguously.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stack.h>
#include <plait/trace/array.h>

namespace plait {

inline std::int64_t bytes_of(const View& view) { return view.size() * size_of(view.dtype); }

// The layout of an element of a stack, or of a slice, in memory.
inline View element_view(const Aval& slice) {
  const Aval aval = in_memory(slice);
  const Sizes64 shape = aval.shape.to_sizes();
  return {nullptr, aval.dtype, shape, dense_strides(shape)};
}

// The examples whose values the rows hold, by number; -1: padding. A padding row holds the values
// of another example, so that computing on it fails only where that example's row does.
class ActiveRows {
 public:
  ActiveRows() = default;
  // ActiveRows for these examples, none twice, of num_examples; padded to num_rows.
  ActiveRows(std::vector<std::int32_t> numbers, std::int64_t num_rows, std::int64_t num_examples);

  ActiveRows(Stack::RowNumbers numbers, std::int64_t num_examples);

  std::int64_t size() const { return num_rows_; }
  std::int32_t operator[](std::int64_t row) const {
    return numbers_ ? (*numbers_)[std::size_t(row)] : std::int32_t(row);
  }
  const Stack::RowNumbers& numbers() const { return numbers_; }     // null: all examples, in order
  std::span<const std::int32_t> places() const { return places_; }  // by example: its row, or -1

  // Gathers the rows from `all`, which holds a value like `example`, or a stack of such, per
  // example.
  Buffer gather(const View& all, const Aval& example, const Stream& stream) const;
  // Scatters rows into the values of all examples.
  void scatter(const View& rows, const View& all, std::int64_t row_bytes,
               const Stream& stream) const;
  // A stack of rows, renumbered to a stack of all examples.
  Stack::Handle scatter(const Stack::Handle& rows) const;

 private:
  std::int64_t num_rows_ = 0;
  Stack::RowNumbers numbers_;
  std::vector<std::int32_t> places_;
};

void copy_row(const void* from, std::int64_t from_row, void* to, std::int64_t to_row,
              std::int64_t bytes, const Stream& stream);
// Zeros.
void clear_row(void* rows, std::int64_t row, std::int64_t bytes, const Stream& stream);
// Bytes of the value of one example.
std::int64_t row_bytes(const Aval& example);
// Memory for rows of values, on the stream's device, or for a handle of a stack of rows.
Buffer make_rows(const Aval& example, std::int64_t num_rows, const Stream& stream);

// Reads elements of a stack as rows of chosen examples, for work of a stream: zeros for examples
// that an element lacks.
class StackReader {
 public:
  // Without lanes: elements as they are. Examples, if any, are along the first axis.
  StackReader(Stack::Handle stack, const Aval& element, const Stream& stream);
  // Elements of rows, each like `example`.
  StackReader(Stack::Handle stack, const Aval& example, const ActiveRows& rows,
              const Stream& stream);
  ~StackReader();
  StackReader(StackReader&&) = default;
  const View& at(std::int64_t index);  // valid until the next call

 private:
  void wait() const;
  void gather(std::int64_t index);

  Stack::Handle stack_;
  Stream stream_;
  View view_;
  bool of_stacks_;
  std::int64_t num_examples_ = 0;
  Stack::RowNumbers rows_;
  std::vector<std::int32_t> places_;
  Storage memory_;          // of an element gathered from segments
  Stack::Handle together_;  // the same for an element that is a stack
};

// The number of slices of an array along its first axis, or of elements of a stack.
std::int64_t num_slices(const Array& array);
// A slice of a concrete array, or an element of a stack: zeros past its end.
Array slice_at(const Array& array, std::int64_t index);

}  // namespace plait
