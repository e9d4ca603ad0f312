// Whether the pool's threads are still spinning for work: see NOTE: [waiting threads] in pool.cpp.
//
// Short kernels lie between the products of a loop's step. If one thread ran them, the others would
// fall asleep meanwhile, and each product would pay for waking them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace plait {

// The grain of a loop with `count` iterations whose results do not depend on its ranges. Just after
// this thread has run a loop on all threads, entering another takes 1 us, and the grain is a fifth:
// about 4 us.
std::int64_t grain_while_spinning(std::int64_t count, std::int64_t grain);

// Loops that one thread runs again and again, such as those in the steps of a loop. Where many
// have followed each other as closely as threads spin, the next ones will too: sharing them is
// worth waking the threads once, even where each takes less than that. Where sharing turns out to
// be slower, as on a machine that others use, more and more of the next ones of this thread are not
// shared, however long they are.
class CloseLoops {
 public:
  CloseLoops();
  ~CloseLoops();
  CloseLoops(const CloseLoops&) = delete;
  // The grain of a loop with `count` iterations, which begins now.
  std::int64_t begin(std::int64_t count, std::int64_t grain);
  void end();

 private:
  struct Speed {
    std::chrono::steady_clock::duration took{};
    double work = 0;  // in grains
  };
  static constexpr int many = 16, most_left_out = 16384;

  bool is_sharing_slower(double work) const;  // than so much work alone

  std::chrono::steady_clock::time_point began_at_{}, ended_at_{};
  double work_ = 0;
  enum { alone, shared, unknown } way_ = unknown;  // how the loop runs
  Speed alone_, shared_;
  int num_close_ = 0;  // up to many; below 0 while loops are left out
  int num_shared_ = 0, num_left_out_ = many;
};

}  // namespace plait
