// A stand-in for an accelerator, for tests on machines that have none. Its memory faults when the
// host follows an address, nothing runs when it is submitted, and memory is poisoned when it is
// handed out and when it is given back: so missing waits and early frees are seen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/driver.h>

#include <functional>

namespace standin {

// When work runs. lazy: once somebody waits for it, on the thread that waits, or when much is
// pending; the same at each run. delayed: on a thread of each stream, with pauses by seed.
enum class Mode { lazy, delayed };

// Faults of the device itself. Each must fail a test that needs the device to be right.
struct Faults {
  bool order_does_nothing = false;  // streams do not wait for each other
  bool frees_at_once = false;       // memory is given back before the stream comes past it
  bool marks_are_early = false;     // a mark is reached before the work ahead of it
  int failing_allocation = 0;       // the n-th from now on finds no memory; 0: none
  bool failing_again = false;       // and when it is asked for again
  int failing_staging = 0;
};

// The kinds of device "standin" (lazy) and "delayed" (delayed, by seed), with two devices each.
plait::Device lazy(int index = 0);
plait::Device delayed(int index = 0);

Faults& faults();              // change them while nothing is pending
void run_pending();            // of all streams
std::size_t bytes_in_use();    // on all devices, once what is pending has run
std::size_t staging_in_use();  // host memory that devices copy
// Submits work that may touch device memory through translate.
void submit(const plait::Stream& stream, std::function<void()> work);
// Where memory of a device really is: for work that was submitted, and for nothing else.
void* translate(const void* device_address);
plait::View translate(plait::View view);

// At the end of a test, work is done and faults are undone.
struct Quiet {
  Quiet() = default;
  Quiet(const Quiet&) = delete;
  ~Quiet() {
    run_pending();
    faults() = {};
  }
};

}  // namespace standin
