// See rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "control/rows.h"

#include <plait/base/transfer.h>
#include <plait/control/primitives.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace plait {
void copy_row(const void* from, std::int64_t from_row, void* to, std::int64_t to_row,
              std::int64_t bytes, const Stream& stream) {
  if (bytes <= 0) return;
  char* const source = static_cast<char*>(const_cast<void*>(from)) + from_row * bytes;
  char* const target = static_cast<char*>(to) + to_row * bytes;
  if (stream.is_host())
    std::memcpy(target, source, std::size_t(bytes));
  else
    copy({source, DType::uint8, {bytes}, {1}}, {target, DType::uint8, {bytes}, {1}}, stream);
}

void clear_row(void* rows, std::int64_t row, std::int64_t bytes, const Stream& stream) {
  clear({static_cast<char*>(rows) + row * bytes, DType::uint8, {bytes}, {1}}, stream);
}

std::int64_t row_bytes(const Aval& example) { return bytes_of(element_view(example)); }

Buffer make_rows(const Aval& example, std::int64_t num_rows, const Stream& stream) {
  if (example.stack > 0) {
    const Storage storage = allocate_handle();
    View view = element_view(example);
    view.data = storage.data();
    return Buffer(storage, view);
  }
  Shape shape = example.shape;
  shape.insert(0, num_rows);
  return Buffer::empty(example.dtype, shape.to_sizes(), stream);
}

ActiveRows::ActiveRows(std::vector<std::int32_t> numbers, std::int64_t num_rows,
                       std::int64_t num_examples)
    : num_rows_(num_rows), places_(std::size_t(num_examples), -1) {
  bool is_all = std::int64_t(numbers.size()) == num_examples && num_rows == num_examples;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    places_[std::size_t(numbers[row])] = std::int32_t(row);
    is_all &= numbers[row] == std::int32_t(row);
  }
  if (is_all) return;
  numbers.resize(std::size_t(num_rows), -1);
  numbers_ = std::make_shared<const std::vector<std::int32_t>>(std::move(numbers));
}

ActiveRows::ActiveRows(Stack::RowNumbers numbers, std::int64_t num_examples)
    : num_rows_(numbers ? std::int64_t(numbers->size()) : num_examples),
      numbers_(std::move(numbers)),
      places_(std::size_t(num_examples), -1) {
  for (std::int64_t row = 0; row < num_rows_; ++row)
    if ((*this)[row] >= 0) places_[std::size_t((*this)[row])] = std::int32_t(row);
}

Buffer ActiveRows::gather(const View& all, const Aval& example, const Stream& stream) const {
  Buffer rows = make_rows(example, num_rows_, stream);
  if (example.stack > 0) {
    *rows.view().as<Stack::Handle>() = Stack::renumbered(*all.as<Stack::Handle>(), places_);
    return rows;
  }
  const std::int64_t bytes = row_bytes(example);
  for (std::int64_t row = 0; row < num_rows_; ++row) {
    const std::int32_t number = (*this)[row];
    copy_row(all.data, number < 0 ? (*this)[0] : number, rows.placed().data, row, bytes, stream);
  }
  return rows;
}

void ActiveRows::scatter(const View& rows, const View& all, std::int64_t row_bytes,
                         const Stream& stream) const {
  for (std::int64_t row = 0; row < num_rows_; ++row)
    if (const std::int32_t number = (*this)[row]; number >= 0)
      copy_row(rows.data, row, all.data, number, row_bytes, stream);
}

Stack::Handle ActiveRows::scatter(const Stack::Handle& rows) const {
  return numbers_ ? Stack::renumbered(rows, *numbers_) : rows;
}

// What wrote elements comes before what reads them, and they stay until they were read.
void StackReader::wait() const {
  if (stream_.is_host() || !stack_ || of_stacks_) return;
  for (const Stack::Segment& segment : stack_->segments()) segment.elements->wait_to_read(stream_);
}

StackReader::~StackReader() {
  if (stream_.is_host() || !stack_ || of_stacks_) return;
  for (const Stack::Segment& segment : stack_->segments()) segment.elements->note_read(stream_);
}

StackReader::StackReader(Stack::Handle stack, const Aval& element, const Stream& stream)
    : stack_(std::move(stack)),
      stream_(stream),
      view_(element_view(element)),
      of_stacks_(element.stack > 0) {
  wait();
  if (element.shape.rank() > 0) num_examples_ = element.shape[0].constant();
}

StackReader::StackReader(Stack::Handle stack, const Aval& example, const ActiveRows& rows,
                         const Stream& stream)
    : stack_(std::move(stack)),
      stream_(stream),
      of_stacks_(example.stack > 0),
      num_examples_(std::int64_t(rows.places().size())),
      rows_(rows.numbers()),
      places_(rows.places().begin(), rows.places().end()) {
  Aval element = example;
  element.shape.insert(0, rows.size());
  view_ = element_view(element);
  wait();
}

const View& StackReader::at(std::int64_t index) {
  const Stack::Segment* only = nullptr;
  int found = 0;
  if (stack_)
    for (const Stack::Segment& segment : stack_->segments())
      if (segment.first <= index && index < segment.end()) {
        only = &segment;
        ++found;
      }
  if (found == 1 && only->rows == rows_)
    view_.data = only->elements->at(index - only->first);
  else
    gather(index);
  return view_;
}

void StackReader::gather(std::int64_t index) {
  const std::int64_t bytes = bytes_of(view_);
  std::vector<Stack::Handle> parts;
  if (!of_stacks_) {
    if (!memory_)
      memory_ = Storage::allocate(std::size_t(std::max<std::int64_t>(bytes, 1)), stream_);
    view_.data = memory_.data();
    clear(view_, stream_);
  }
  for (const Stack::Segment& segment :
       stack_ ? stack_->segments() : std::span<const Stack::Segment>()) {
    if (index < segment.first || index >= segment.end()) continue;
    const void* const element = segment.elements->at(index - segment.first);
    // By row of the segment: the row of the result, or -1.
    std::vector<std::int32_t> to(segment.rows ? segment.rows->size() : std::size_t(num_examples_));
    for (std::size_t row = 0; row < to.size(); ++row) {
      const std::int32_t number = segment.rows ? (*segment.rows)[row] : std::int32_t(row);
      to[row] = number < 0 || places_.empty() ? number : places_[std::size_t(number)];
    }
    if (of_stacks_) {
      parts.push_back(Stack::renumbered(*static_cast<const Stack::Handle*>(element), to));
      continue;
    }
    const std::int64_t row_bytes = bytes / std::max<std::int64_t>(view_.shape[0], 1);
    for (std::size_t row = 0; row < to.size(); ++row)
      if (to[row] >= 0)
        copy_row(element, std::int64_t(row), memory_.data(), to[row], row_bytes, stream_);
  }
  if (!of_stacks_) return;
  together_ = Stack::merged(parts);
  view_.data = &together_;
}

std::int64_t num_slices(const Array& array) {
  if (array.aval().stack == 0) return array.shape(0).constant();
  const Stack::Handle& stack = *array.buffer().view().as<Stack::Handle>();
  return stack ? stack->size() : 0;
}

Array slice_at(const Array& array, std::int64_t index) {
  const Aval aval = slices_of({array.aval()})[0];
  View like = element_view(aval);
  if (array.aval().stack == 0) {
    const Buffer whole = array.buffer().dense();
    return Array(new ConcreteNode(
        aval, whole.view_as(like.shape, like.strides, index * bytes_of(like)), false));
  }
  if (index >= num_slices(array)) return lax::zeros_like(aval);
  const Stack::Handle& stack = *array.buffer().view().as<Stack::Handle>();
  const Stream stream = Stream::current(stack->device());
  StackReader reader(stack, aval, stream);
  const View& element = reader.at(index);
  if (aval.stack == 0) {
    const Buffer made = Buffer::empty(element.dtype, element.shape, stream);
    copy(element, made.placed(), stream);
    made.storage().note_written(stream);
    return Array(new ConcreteNode(aval, made, false));
  }
  const Storage storage = allocate_handle();
  like.data = storage.data();
  *like.as<Stack::Handle>() = *element.as<Stack::Handle>();
  return Array(new ConcreteNode(aval, Buffer(storage, like), false));
}

}  // namespace plait
