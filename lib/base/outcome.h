// What became of work on a device: whether it, or work whose results it read, has failed. Memory
// keeps the outcome of what wrote it (placement.h), so that it says so whenever it is read, long
// after the stream has told of the failure and let the work go.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/stream.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace plait {

class Outcome {
 public:
  // Of work that is submitted to the stream, or of what cannot fail by itself, such as a copy.
  enum class Own : std::uint8_t { pending, fine };
  Outcome(const Stream& stream, Own own) : stream_(stream), is_settled_(own == Own::fine) {}
  Outcome(const Outcome&) = delete;

  void read(std::shared_ptr<Outcome> other);  // before the work is submitted
  // The same, of a part of this work, such as a step of a loop.
  void add_part(const std::shared_ptr<Outcome>& part);
  // Whether a failure of this work is to be told: of all its parts, only the first is.
  bool is_first_told() { return !is_told()->exchange(true); }
  // How the work itself has ended; the first call counts. Waits for no other stream.
  void settle(std::exception_ptr thrown) noexcept;
  // What has failed of it by now, the work that it read first.
  std::exception_ptr failure();
  void rethrow() {
    if (const std::exception_ptr thrown = failure()) std::rethrow_exception(thrown);
  }
  bool is_fine() noexcept;  // for good: nothing that it depends on is open

 private:
  using Told = std::shared_ptr<std::atomic<bool>>;
  Told is_told();
  bool resolve() noexcept;

  const Stream stream_;
  std::mutex mutex_;  // taken before those of what was read
  Told is_told_;      // of the whole work; null: nobody has asked
  bool is_settled_;
  std::exception_ptr thrown_;
  std::vector<std::shared_ptr<Outcome>> read_;  // what is not known to be fine
};

// While it lives, what this thread reads and writes on devices belongs to the work of this outcome;
// null: to none.
class OutcomeScope {
 public:
  explicit OutcomeScope(std::shared_ptr<Outcome> outcome);
  ~OutcomeScope();
  OutcomeScope(const OutcomeScope&) = delete;
  static const std::shared_ptr<Outcome>& current();

 private:
  const std::shared_ptr<Outcome> outcome_;
  const OutcomeScope* const outer_;
};

}  // namespace plait
