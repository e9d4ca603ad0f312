// Where memory on a device lies: which streams use it, so that it is written, and given back, only
// once no other stream uses it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/outcome.h"

#include <plait/base/stream.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace plait {

class Placement {
 public:
  // give_back: of memory that is not the driver's (exchange.h).
  Placement(const Stream& home, void* data, std::size_t bytes, std::function<void()> give_back)
      : home_(home),
        data_(data),
        bytes_(bytes),
        give_back_(std::move(give_back)),
        writes_{{home, home.ticket()}} {}

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
  void note(std::vector<Use>& uses, const Stream& stream);
  void deallocate() noexcept;

  const Stream home_;
  void* const data_;
  const std::size_t bytes_;
  std::function<void()> give_back_;
  std::mutex mutex_;
  std::vector<Use> reads_;   // since the last write; one for each stream
  std::vector<Use> writes_;  // that no later one waited for; at first, the allocation itself
  std::shared_ptr<Outcome> written_by_;  // null: by what cannot have failed
};

}  // namespace plait
