// Copies in the order of a stream: what kernels that run programs do with memory, wherever it lies.
// On the CPU's stream they are done at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <vector>

namespace plait {

// Between views of equal shape and dtype on the stream's device, with any strides.
void copy(const View& from, const View& to, const Stream& stream);
void clear(const View& dense, const Stream& stream);  // zeros
// From memory of the host, which is free to change on return, and to it, which waits and throws
// what failed until then. Any strides on both sides.
void upload(const View& host, const View& to, const Stream& stream);
void download(const View& from, const View& host, const Stream& stream);

// Flags that the host and programs on a stream's device tell each other.
class SharedFlags {
 public:
  SharedFlags(std::int64_t count, const Stream& stream);
  SharedFlags(const SharedFlags&) = delete;
  SharedFlags& operator=(const SharedFlags&) = delete;

  const View& view() const { return view_; }                          // bool[count], for programs
  View scalar() const { return {view_.data, DType::bool_, {}, {}}; }  // of one
  // What the host has set, before a program reads it.
  void send() const {
    if (there_) upload(host_view(), view_, stream_);
  }
  // What a program has set: waits.
  void fetch() {
    if (there_) download(view_, host_view(), stream_);
  }
  View host_view() const;
  std::vector<char> values;  // on the host; false at first

 private:
  const Stream stream_;
  Storage there_;  // on a device
  View view_;
};

}  // namespace plait
