// Stacks: one element of equal size for each step of a loop, in memory that grows without moving. A
// handle stands where an array would.
//
// Where each example of a batch takes its own number of steps, an element holds one row for each
// example that takes the step. The set of rows changes from segment to segment of the stack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <memory>
#include <span>
#include <vector>

namespace plait {

class Stack {
 public:
  // Null stands for a stack of zeros. Reading beyond the end of a stack, or a row that does not
  // exist, gives zeros.
  using Handle = std::shared_ptr<Stack>;
  // The example whose value each row of an element is; -1 for an unused row. Null: an element holds
  // a row for each example, in order.
  using RowNumbers = std::shared_ptr<const std::vector<std::int32_t>>;

  // Elements of element_bytes each, in chunks; or handles of stacks, which must have that size.
  class Elements {
   public:
    Elements(std::int64_t bytes, bool of_stacks, const Stream& stream)
        : bytes_((bytes + 63) / 64 * 64), of_stacks_(of_stacks), stream_(stream) {}
    ~Elements();
    Elements(const Elements&) = delete;

    std::int64_t size() const { return size_; }
    void* at(std::int64_t index) const;
    void* push();
    // Work of a stream that reads elements: what wrote them comes first, and they stay until then.
    void wait_to_read(const Stream& stream) const;
    void note_read(const Stream& stream) const;

   private:
    std::int64_t bytes_, size_ = 0;
    bool of_stacks_;
    Stream stream_;
    std::vector<Storage> chunks_;  // of first_chunk, 2 * first_chunk, 4 * first_chunk ... elements
  };
  // Steps [first, first + elements->size()), for the examples of its rows. Segments of the same
  // steps have different examples.
  struct Segment {
    std::int64_t first;
    RowNumbers rows;
    std::shared_ptr<Elements> elements;
    std::int64_t end() const { return first + elements->size(); }
  };

  // Elements lie on the stream's device, where its work writes them; handles of stacks on the host.
  explicit Stack(bool of_stacks, const Stream& stream = {})
      : of_stacks_(of_stacks), stream_(of_stacks ? Stream() : stream) {}
  Stack(const Stack&) = delete;

  bool of_stacks() const { return of_stacks_; }
  Device device() const { return stream_.device(); }
  std::int64_t size() const;
  std::span<const Segment> segments() const { return segments_; }
  // Begins a segment at a step: later pushes have these rows and this many bytes.
  void begin(std::int64_t first, RowNumbers rows, std::int64_t element_bytes);
  void* push();  // the new element: uninitialised memory, or a null handle

  // The same elements with the examples renumbered: example i becomes to[i]; -1 drops it.
  static Handle renumbered(const Handle& stack, std::span<const std::int32_t> to);
  // Joins the elements of stacks of different examples.
  static Handle merged(std::span<const Handle> stacks);

 private:
  bool of_stacks_;
  Stream stream_;
  std::vector<Segment> segments_;
};

// Memory for a handle, initially null, which is released with the memory.
Storage allocate_handle();

}  // namespace plait
