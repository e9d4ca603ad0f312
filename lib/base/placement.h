// Where memory on a device lies: which streams use it, so that it is written, and given back, only
// once no other stream uses it; and who asked for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/outcome.h"

#include <plait/base/inline_vector.h>
#include <plait/base/source.h>
#include <plait/base/stream.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace plait {

class Placement {
 public:
  // give_back: of memory that is not the driver's (exchange.h).
  Placement(const Stream& home, void* data, std::size_t bytes, std::function<void()> give_back);
  Placement(const Placement&) = delete;

  Device device() const { return home_.device(); }
  void wait_to_read(const Stream& stream);
  void wait_to_write(const Stream& stream);
  void note_read(const Stream& stream);
  void note_written(const Stream& stream);
  // Gives the memory back in the order of its home stream, behind all uses.
  void release() noexcept;

 private:
  struct Use {
    Stream stream;
    std::uint64_t ticket = 0;
  };
  using Uses = InlineVector<Use, 2>;
  void note(Uses& uses, const Stream& stream);
  void deallocate() noexcept;

  // Those of large memory, which are named where memory runs out.
  struct Holders;
  static Holders& holders();
  static constexpr std::size_t least_named = std::size_t{1} << 20;
  bool is_named() const { return bytes_ >= least_named && !give_back_; }
  friend std::string holders_of(Device device);

  const Stream home_;
  void* const data_;
  const std::size_t bytes_;
  std::function<void()> give_back_;
  std::mutex mutex_;
  Uses reads_;   // since the last write; one for each stream
  Uses writes_;  // that no later one waited for; at first, the allocation itself
  std::shared_ptr<Outcome> written_by_;  // null: by what cannot have failed
  Source asked_in_;                      // where it is named
  Placement *previous_ = nullptr, *next_ = nullptr;
};

// Those who hold the most memory of a device, a line each: "\n    2 x 8388608 bytes: train.py:12 in
// step:  y = x @ w". Empty where nobody holds much.
std::string holders_of(Device device);
// MemoryError that says how much is in use, and by whom.
[[noreturn]] void throw_out_of_memory(Device device, std::size_t bytes);
// Driver::release_memory of all devices whose drivers are there.
void release_memory_of_devices();

}  // namespace plait
