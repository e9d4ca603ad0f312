// Steps that a device captures as one piece of work (Driver::capture), for a few sets of addresses:
// a program that is called again and again mostly meets the same memory. Other memory takes the
// place of what was met longest ago.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/driver.h>
#include <plait/base/stream.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace plait {

class CapturedSteps {
 public:
  // Thread-safe. Whether these addresses have been met: then what they were met with runs again.
  bool replay(const Stream& stream, std::span<void* const> addresses);
  // Gives the stream what give() submits, which depends on these addresses alone.
  void submit(const Stream& stream, std::span<void* const> addresses,
              const std::function<void()>& give);

 private:
  struct Entry {
    std::vector<void*> addresses;
    std::unique_ptr<Driver::Captured> work;
    std::uint64_t last_met = 0;
  };
  Entry* find(std::span<void* const> addresses);
  void replay(Entry& entry, Driver& driver, const Stream& stream);
  // What these addresses are met with from now on; null: they are not captured.
  Entry* captured(Driver& driver, const Stream& stream, const std::function<void()>& give);

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
  int num_unmet_ = 0;      // calls with addresses that were not captured
  int costly_in_row_ = 0;  // changes that cost as much as capturing anew, since addresses were met
  bool is_off_ = false;    // capturing them gains nothing
};

}  // namespace plait
