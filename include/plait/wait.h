// Waiting for generated loops: see NOTE: [tiers].
//
//   const plait::Waiting waiting;
//   step(state, batch);             // compiled by every backend before it runs
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait {

// While it lives, what this thread calls or compiles for the first time is compiled by every
// backend before it runs, instead of running without generated loops until they are ready.
// PLAIT_WAIT=1 is the same for all threads.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;

 private:
  const bool outer_;
};

}  // namespace plait
