// Ranks that are threads of one process, and an interposer between them: messages are delayed,
// reordered and dropped, as a seed says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/communicator.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

namespace plait {

// What lies between ranks. Messages of one tag between two ranks keep their order, whatever happens
// to others: that is what MPI promises.
struct Wires {
  using Key = std::tuple<int, int, int>;  // from, to, tag
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, std::vector<std::vector<char>>> delivered;
  std::vector<std::pair<Key, std::vector<char>>> delayed;
  std::mt19937 random;
  int percent_delayed = 0, drop_message = -1;  // the number of the one that is dropped
  int num_sent = 0;
  std::chrono::milliseconds deadline{20000};

  void send(Key key, std::vector<char> bytes) {
    if (num_sent++ == drop_message) return;
    delayed.emplace_back(key, std::move(bytes));
    deliver_some();
  }
  // A random choice of what waits, in a random order, but for messages of the same key.
  void deliver_some() {
    const auto waits_behind = [&](std::size_t i) {
      for (std::size_t j = 0; j < i; ++j)
        if (delayed[j].first == delayed[i].first) return true;
      return false;
    };
    for (std::size_t tries = delayed.size(); tries-- > 0 && !delayed.empty();) {
      const std::size_t i = random() % delayed.size();
      if (int(random() % 100) < percent_delayed || waits_behind(i)) continue;
      delivered[delayed[i].first].push_back(std::move(delayed[i].second));
      delayed.erase(delayed.begin() + std::ptrdiff_t(i));
    }
    changed.notify_all();
  }
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Wires& wires, int rank, int size) : wires_(wires), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "threads"; }
  int num_on_this_machine() const override { return size_; }
  [[noreturn]] void abort(const std::string& message) override { throw JobError(message, ""); }

 protected:
  void exchange(std::span<const Sent> sent, std::span<const Received> received,
                const std::string& what) override {
    std::unique_lock lock(wires_.mutex);
    for (const Sent& one : sent) {
      const char* data = static_cast<const char*>(one.bytes.data);
      wires_.send({rank_, one.to, one.tag}, {data, data + one.bytes.size});
    }
    const auto end = std::chrono::steady_clock::now() + wires_.deadline;
    for (const Received& one : received) {
      auto& arrived = wires_.delivered[{one.from, rank_, one.tag}];
      while (arrived.empty()) {
        if (std::chrono::steady_clock::now() > end)
          abort("rank " + std::to_string(rank_) + " waits in " + what + " for rank " +
                std::to_string(one.from));
        wires_.changed.wait_for(lock, std::chrono::milliseconds(1));
        wires_.deliver_some();
      }
      std::memcpy(one.bytes.data, arrived[0].data(), one.bytes.size);
      arrived.erase(arrived.begin());
    }
  }

 private:
  Wires& wires_;
  const int rank_, size_;
};

// Runs body(communicator, ranks) on each rank. What each threw, or "".
template <class Body>
std::vector<std::string> on_ranks(Wires& wires, int size, const Body& body) {
  Ranks ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::string> problems(ranks.size());
  std::vector<std::thread> threads;
  for (const int rank : ranks)
    threads.emplace_back([&, rank] {
      ThreadRank communicator(wires, rank, size);
      try {
        body(communicator, ranks);
      } catch (const Error& error) {
        problems[std::size_t(rank)] = error.problem();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return problems;
}

}  // namespace plait
