// A deadline for calls of MPI that wait by themselves, as when it starts and when it ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "backends/mpi/find.h"

namespace plait::mpi {

// Ends the process with this code, after this message, where it is not destroyed in time. The
// launcher ends the job then.
class Watch {
 public:
  Watch(std::chrono::duration<double> time, std::string message, int code)
      : thread_([this, time, message = std::move(message), code] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, time, [&] { return is_over_; })) return;
          if (!message.empty()) say(message);
          usleep(50000);  // launchers drop what they have not read yet
          _exit(code);
        }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watch(const Watch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;  // begins when the others are there
};

}  // namespace plait::mpi
