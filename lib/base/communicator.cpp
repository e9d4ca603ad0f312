// The communicator of the process, and collectives made of messages. See communicator.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/communicator.h>

#include <plait/base/hash.h>
#include <plait/base/pool.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/device_modules.h"
#include "base/job.h"

namespace plait {
namespace {

struct Known {
  std::mutex mutex;
  bool is_set = false;
  pid_t process = 0;  // a forked child is no rank
  std::shared_ptr<Communicator> communicator;
  std::optional<BackendError> failure;
};
Known& known() {
  static Known& known = *new Known;  // other threads may ask at exit
  return known;
}
std::atomic<std::shared_ptr<Communicator> (*)()> engine{nullptr};

std::shared_ptr<Communicator> started_by_engine() {
  load_device_modules();
  const auto start = engine.load();
  if (!start)
    throw BackendError("this process is one of a job of MPI, and plait's module for MPI is missing",
                       "build plait with -Dmpi=enabled, or set PLAIT_MPI=0 to run every process "
                       "alone");
  std::shared_ptr<Communicator> started = start();
  if (!are_threads_chosen()) set_num_threads(num_threads_of_rank(started->num_on_this_machine()));
  return started;
}

// Once, by one of them.
void tell_of_tasks_alone() {
  const char* number = std::getenv("SLURM_PROCID");
  const int num_tasks = num_tasks_alone();
  if (num_tasks > 1 && number && std::string_view(number) == "0")
    std::fprintf(stderr,
                 "plait: srun started %d tasks without an MPI: each of them is alone, and runs the "
                 "whole program\n"
                 "  fix: give srun --mpi=pmi2 for MPICH or --mpi=pmix for Open MPI, or set "
                 "PLAIT_MPI=0 where they are to be alone\n",
                 num_tasks);
}

}  // namespace

std::shared_ptr<Communicator> communicator() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  if (all.is_set && all.process != getpid()) return nullptr;
  if (!all.is_set && job_of_environment()) {
    if (all.failure) throw *all.failure;
    try {
      all.communicator = started_by_engine();
    } catch (const BackendError& error) {
      all.failure = error;
      throw;
    }
  } else if (!all.is_set) {
    tell_of_tasks_alone();
  }
  all.is_set = true;
  all.process = getpid();
  return all.communicator;
}

bool are_places_ranks() {
  const std::shared_ptr<Communicator> job = communicator();
  return job && job->size() > 1;
}

void set_communicator(std::shared_ptr<Communicator> communicator) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.communicator = std::move(communicator);
  all.is_set = true;
  all.process = getpid();
}

void set_engine(std::shared_ptr<Communicator> (*start)()) { engine = start; }

std::chrono::duration<double> deadline_of_waits() {
  constexpr double usual = 600;
  const char* text = std::getenv("PLAIT_DEADLINE");
  if (!text || !*text) return std::chrono::duration<double>(usual);
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  if (*end || !(seconds > 0))
    throw ValueError("PLAIT_DEADLINE is \"" + std::string(text) + "\", which is no time in seconds",
                     "set it to how long a rank may wait for others, such as 600");
  return std::chrono::duration<double>(seconds);
}

int Communicator::place_in(const Ranks& ranks) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank());
  if (found == ranks.end())
    throw ValueError("rank " + std::to_string(rank()) + " takes no part in this group of ranks",
                     "call collectives on the ranks of the group alone");
  return int(found - ranks.begin());
}

namespace {

enum class Call : std::uint64_t { gather, all_to_all, pair };

// The same on all ranks of a call.
std::uint64_t hash_of(Call call, const Ranks& ranks, std::uint64_t purpose) {
  std::size_t hash = hash_combine(std::size_t(call), std::size_t(purpose));
  for (const int rank : ranks) hash = hash_combine(hash, std::size_t(rank));
  return hash;
}

int tag_of(std::uint64_t call, std::size_t size, std::uint64_t number) {
  const std::uint64_t hash = hash_combine(hash_combine(call, size), number) * 0x9e3779b97f4a7c15u;
  return int(hash >> 49);  // 15 bits
}

// The number of a message among those between two ranks; counts by the other rank.
std::uint64_t next_number(std::vector<std::uint64_t>& counts, int other) {
  if (counts.size() <= std::size_t(other)) counts.resize(std::size_t(other) + 1);
  return counts[std::size_t(other)]++;
}

void copy(Bytes to, ConstBytes from) {
  if (from.size > 0 && to.data != from.data) std::memcpy(to.data, from.data, from.size);
}

// Many small blocks are sent together: in ceil(log2(n)) turns, not n - 1.
bool are_small(std::span<const Bytes> all) {
  constexpr std::size_t many = 8, small = 4096;
  return all.size() > many && all[0].size > 0 && all[0].size <= small &&
         std::all_of(all.begin(), all.end(),
                     [&](const Bytes& block) { return block.size == all[0].size; });
}

}  // namespace

void Communicator::send(int to, std::uint64_t call, ConstBytes bytes) {
  constexpr std::uint64_t most_ahead = 64;
  if (bytes.size == 0) return;
  const std::uint64_t number = next_number(num_sent_, to);
  sent_.push_back(
      {to, tag_of(call, bytes.size, number), bytes, number % most_ahead == most_ahead - 1});
}

void Communicator::receive(int from, std::uint64_t call, Bytes bytes) {
  if (bytes.size == 0) return;
  const std::uint64_t number = next_number(num_received_, from);
  received_.push_back({from, tag_of(call, bytes.size, number), bytes});
}

void Communicator::exchange_all(const std::string& what) {
  struct Clear {  // also where it throws
    Communicator& all;
    ~Clear() { all.sent_.clear(), all.received_.clear(); }
  } clear{*this};
  if (!sent_.empty() || !received_.empty()) exchange(sent_, received_, what);
}

void Communicator::all_gather(const Ranks& ranks, ConstBytes mine, std::span<const Bytes> all,
                              const std::string& what, std::uint64_t purpose) {
  const std::size_t n = ranks.size(), place = std::size_t(place_in(ranks));
  const std::uint64_t call = hash_of(Call::gather, ranks, purpose);
  if (are_small(all)) return all_gather_doubling(ranks, mine, all, call, what);
  copy(all[place], mine);
  for (std::size_t away = 1; away < n; ++away) {  // so that not all send to one
    const std::size_t to = (place + away) % n, from = (place + n - away) % n;
    send(ranks[to], call, mine);
    receive(ranks[from], call, all[from]);
  }
  exchange_all(what);
}

// Bruck et al. 1997: a rank has blocks place, place + 1, ... (mod n), twice as many after each
// turn.
void Communicator::all_gather_doubling(const Ranks& ranks, ConstBytes mine,
                                       std::span<const Bytes> all, std::uint64_t call,
                                       const std::string& what) {
  const std::size_t n = ranks.size(), place = std::size_t(place_in(ranks)), each = mine.size;
  std::vector<char> blocks(n * each);
  copy({blocks.data(), each}, mine);
  for (std::size_t have = 1; have < n; have *= 2) {
    const std::size_t size = std::min(have, n - have) * each;
    send(ranks[(place + n - have) % n], call, {blocks.data(), size});
    receive(ranks[(place + have) % n], call, {blocks.data() + have * each, size});
    exchange_all(what);
  }
  for (std::size_t i = 0; i < n; ++i) copy(all[(place + i) % n], {blocks.data() + i * each, each});
}

void Communicator::all_to_all(const Ranks& ranks, std::span<const ConstBytes> sent,
                              std::span<const Bytes> received, const std::string& what,
                              std::uint64_t purpose) {
  const std::size_t n = ranks.size(), place = std::size_t(place_in(ranks));
  const std::uint64_t call = hash_of(Call::all_to_all, ranks, purpose);
  copy(received[place], sent[place]);
  for (std::size_t away = 1; away < n; ++away) {
    const std::size_t to = (place + away) % n, from = (place + n - away) % n;
    send(ranks[to], call, sent[to]);
    receive(ranks[from], call, received[from]);
  }
  exchange_all(what);
}

void Communicator::send_receive(int to, ConstBytes sent, int from, Bytes received,
                                const std::string& what, std::uint64_t purpose) {
  const std::uint64_t call = hash_of(Call::pair, {}, purpose);
  if (to == rank() && from == rank()) return copy(received, sent);
  if (to >= 0) send(to, call, sent);
  if (from >= 0) receive(from, call, received);
  exchange_all(what);
}

}  // namespace plait
