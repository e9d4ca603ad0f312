// A rank of the jobs that tests/python/test_mpi_engine.py starts: engine_job WHAT [SEED].
//
// What ranks compute together is compared with what each computes alone from all their inputs, in
// the order of NOTE: [sums over ranks], to the bit.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/allocator.h>
#include <plait/base/communicator.h>
#include <plait/base/pool.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "base/collectives.h"

using namespace plait;

namespace {

std::shared_ptr<Communicator> job;

Ranks everyone() {
  Ranks ranks(std::size_t(job->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// For the test, in a file of this rank: launchers mix what ranks print.
void note(const std::string& text) {
  const char* folder = std::getenv("ENGINE_JOB_NOTES");
  std::ofstream(std::string(folder ? folder : ".") + "/" + std::to_string(job->rank())) << text;
}

void expect(bool is_so, const std::string& what) {
  if (is_so) return;
  std::fprintf(stderr, "rank %d: wrong: %s\n", job->rank(), what.c_str());
  std::exit(4);
}

// An array of a rank: the same wherever it is made.
std::vector<char> made_by(int rank, DType dtype, std::int64_t count) {
  std::mt19937 random(unsigned(rank) * 1009 + unsigned(dtype) * 31 + unsigned(count));
  std::vector<char> bytes(std::size_t(count * size_of(dtype)));
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* values = reinterpret_cast<T*>(bytes.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const float number = std::normal_distribution<float>(0, 100)(random);
      if constexpr (std::is_same_v<T, bool>)
        values[i] = number > 0;
      else if constexpr (std::is_integral_v<T>)
        values[i] = T(random());
      else if constexpr (is_complex_v<T>)
        values[i] = T(number, number * 3.14159f);
      else
        values[i] = T(number);
    }
  });
  return bytes;
}

void check_all_reduce(const Ranks& ranks, DType dtype, Combination combination,
                      std::int64_t count) {
  std::vector<std::vector<char>> all;
  std::vector<const void*> arrays;
  for (const int rank : ranks) all.push_back(made_by(rank, dtype, count));
  for (const auto& bytes : all) arrays.push_back(bytes.data());
  const auto mine = made_by(job->rank(), dtype, count);
  std::vector<char> wanted(mine.size()), out(mine.size()), in_place = mine;
  combine_in_tree(combination, dtype, arrays, wanted.data(), count);
  all_reduce(*job, ranks, combination, dtype, mine.data(), out.data(), count, "all_reduce");
  all_reduce(*job, ranks, combination, dtype, in_place.data(), in_place.data(), count, "in place");
  const std::string what = std::string(name_of(dtype)) + " of " + std::to_string(count);
  expect(out == wanted, "all_reduce of " + what);
  expect(in_place == wanted, "all_reduce in place of " + what);
  if (count % std::int64_t(ranks.size()) != 0) return;
  const std::int64_t part = count / std::int64_t(ranks.size());
  const std::size_t size = std::size_t(part * size_of(dtype));
  std::vector<char> block(size);
  reduce_scatter(*job, ranks, combination, dtype, mine.data(), block.data(), part, "scatter");
  expect(std::equal(block.begin(), block.end(),
                    wanted.begin() + std::ptrdiff_t(size) * job->place_in(ranks)),
         "reduce_scatter of " + what);
}

// Blocks of several sizes, some of them empty.
void check_moves(const Ranks& ranks) {
  const std::size_t n = ranks.size(), place = std::size_t(job->place_in(ranks));
  const auto size_of_block = [](std::size_t from, std::size_t to) {
    return from * to * 1000 % 7001;
  };
  const auto block = [&](std::size_t from, std::size_t to) {
    return std::string(size_of_block(from, to), char('a' + (from * 5 + to) % 26));
  };
  std::vector<std::string> sent(n), received(n), gathered(n);
  std::vector<ConstBytes> out(n);
  std::vector<Bytes> in(n), all(n);
  for (std::size_t i = 0; i < n; ++i) {
    sent[i] = block(place, i);
    received[i].resize(size_of_block(i, place));
    gathered[i].resize(i * 100);
    out[i] = {sent[i].data(), sent[i].size()};
    in[i] = {received[i].data(), received[i].size()};
    all[i] = {gathered[i].data(), gathered[i].size()};
  }
  job->all_to_all(ranks, out, in, "all_to_all");
  const std::string mine(place * 100, char('a' + place));
  job->all_gather(ranks, {mine.data(), mine.size()}, all, "all_gather");
  for (std::size_t i = 0; i < n; ++i) {
    expect(received[i] == block(i, place), "all_to_all");
    expect(gathered[i] == std::string(i * 100, char('a' + i)), "all_gather");
  }
  const int next = ranks[(place + 1) % n], before = ranks[(place + n - 1) % n];
  const int mine_number = job->rank();
  int theirs = -1;
  job->send_receive(next, {&mine_number, sizeof(int)}, before, {&theirs, sizeof(int)}, "ring");
  expect(theirs == before, "send_receive");
  // Along the line, whose first receives from none.
  job->send_receive(place + 1 < n ? next : -1, {&mine_number, sizeof(int)}, place > 0 ? before : -1,
                    {&theirs, sizeof(int)}, "line");
}

int check_laws() {
  const Ranks all = everyone();
  Ranks half, backwards(all.rbegin(), all.rend());
  for (const int rank : all)
    if (rank % 2 == job->rank() % 2) half.push_back(rank);
  for (int i = 0; i < num_computing_dtypes; ++i) {
    const bool is_sum = DType(i) != DType::bool_;
    check_all_reduce(all, DType(i), is_sum ? Combination::sum : Combination::max, 60);
    if (!is_complex(DType(i))) check_all_reduce(all, DType(i), Combination::min, 24001);
  }
  for (const Ranks& ranks : {all, half, backwards}) {
    agree(*job, ranks, 7, "the laws");
    for (const std::int64_t count : {1, 3, 48000})
      check_all_reduce(ranks, DType::float32, Combination::sum, count);
    check_moves(ranks);
  }
  note("fine, " + std::to_string(job->num_on_this_machine()) + " here, " +
       std::to_string(num_threads()) + " threads");
  return 0;
}

// Ranks run random collectives, and one of them differs in one: an error on some rank, which ends
// all.
int diverge(unsigned seed) {
  std::mt19937 random(seed);
  const unsigned steps = 20, odd_step = unsigned(random() % steps);
  const int odd_rank = int(random() % unsigned(job->size()));
  const unsigned change = unsigned(random() % 4);
  for (unsigned step = 0; step < steps; ++step) {
    const bool is_odd = step == odd_step && job->rank() == odd_rank;
    std::int64_t count = 1 + std::int64_t(random() % 30000);
    bool is_gather = random() % 2 == 0;
    if (is_odd && change == 0) continue;  // leaves one out
    if (is_odd && change == 1) is_gather = !is_gather;
    if (is_odd && change == 2) ++count;
    if (is_odd && change == 3) return 0;  // ends
    const std::string what = "step " + std::to_string(step);
    std::vector<float> in(std::size_t(count), 1.0f), out(in.size() * std::size_t(job -> size()));
    if (!is_gather) {
      all_reduce(*job, everyone(), Combination::sum, DType::float32, in.data(), out.data(), count,
                 what);
      continue;
    }
    std::vector<Bytes> blocks;
    for (int i = 0; i < job->size(); ++i)
      blocks.push_back({out.data() + i * count, in.size() * sizeof(float)});
    job->all_gather(everyone(), {in.data(), in.size() * sizeof(float)}, blocks, what);
  }
  return 0;
}

void reduce_ones(const std::string& what) {
  std::vector<float> ones(1000, 1.0f);
  all_reduce(*job, everyone(), Combination::sum, DType::float32, ones.data(), ones.data(), 1000,
             what);
  expect(ones[999] == float(job->size()), what);
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Each of many calls, which may be more than there are tags, has its own values, and memory stays
// as it is. A rank that only sends is soon as slow as the one that receives.
int call_often(std::int32_t turns) {
  const int n = job->size(), mine = job->rank();
  std::int64_t before = 0;
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    if (turn == turns / 4) before = resident_bytes();
    const std::int32_t number = turn * n + mine;
    std::int32_t sum = 0;
    all_reduce(*job, everyone(), Combination::sum, DType::int32, &number, &sum, 1, "a small psum");
    expect(sum == n * n * turn + n * (n - 1) / 2, "a small psum");
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  int num_ahead = 0;
  if (mine == 1) usleep(300000);
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    std::vector<std::int32_t> block(128, turn), received(128);
    const Bytes bytes{received.data(), 512};
    if (mine == 0) job->send_receive(1, {block.data(), 512}, -1, {}, "a stream");
    if (mine == 1) job->send_receive(-1, {}, 0, bytes, "a stream");
    if (mine == 1) expect(received == block, "a stream");
    if (Clock::now() - began < std::chrono::milliseconds(200)) num_ahead = turn + 1;
  }
  expect(mine != 0 || num_ahead <= 128,
         "a stream that runs ahead, by " + std::to_string(num_ahead));
  const std::int64_t grown = resident_bytes() - before;
  expect(grown < (8 << 20), "memory, which has grown by " + std::to_string(grown) + " bytes");
  return 0;
}

int disagree() {
  try {
    agree(*job, everyone(), 5, "the first program");
    const bool is_odd = job->rank() == 1;
    agree(*job, everyone(), is_odd ? 8 : 6, is_odd ? "psum at b.py:2" : "psum at a.py:1");
  } catch (const JobError& error) {
    note(error.problem());
    return 0;
  }
  return 5;
}

// Messages of more bytes than an int counts.
int move_much() {
  const std::size_t count = (std::size_t(5) << 29) + 12345;  // 2.5 GB
  std::vector<std::uint8_t> mine(count, std::uint8_t(job->rank() + 1)), theirs(count);
  mine[count - 1] = 99;
  const int other = 1 - job->rank();
  job->send_receive(other, {mine.data(), count}, other, {theirs.data(), count}, "a large message");
  expect(theirs[0] == other + 1 && theirs[count - 2] == other + 1 && theirs[count - 1] == 99,
         "a large message");
  return 0;
}

// Seconds of all_reduce by bytes, of the best of several calls.
int measure(std::int64_t most) {
  using Clock = std::chrono::steady_clock;
  for (std::int64_t bytes = 4; bytes <= most; bytes *= 4) {
    const std::int64_t count = bytes / 4;
    const Storage memory = Storage::allocate(std::size_t(2 * bytes));  // as arrays have it
    float *in = static_cast<float*>(memory.data()), *out = in + count;
    std::fill(in, out + count, 1.0f);
    const int repeats = int(std::clamp<std::int64_t>((64 << 20) / bytes, 5, 2000));
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      char mine = 0;
      std::vector<char> all(std::size_t(job->size()));
      std::vector<Bytes> blocks;
      for (char& one : all) blocks.push_back({&one, 1});
      job->all_gather(everyone(), {&mine, 1}, blocks, "barrier");
      const Clock::time_point began = Clock::now();
      all_reduce(*job, everyone(), Combination::sum, DType::float32, in, out, count, "all_reduce");
      times.push_back(std::chrono::duration<double>(Clock::now() - began).count());
    }
    std::sort(times.begin(), times.end());
    if (job->rank() == 0)
      std::printf("%ld %.9f %.9f\n", long(bytes), times[0], times[times.size() / 2]);
  }
  return 0;
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  job = communicator();
  if (!job) {
    std::printf("alone\n");
    return 0;
  }
  const bool is_odd = job->rank() == 1;
  if (what == "laws") return check_laws();
  if (what == "diverge") return diverge(unsigned(std::atoi(argv[2])));
  if (what == "disagree") return disagree();
  if (what == "large") return move_much();
  if (what == "often") return call_often(argc > 2 ? std::atoi(argv[2]) : 4000);
  if (what == "measure") return measure(argc > 2 ? std::atoll(argv[2]) : 256 << 20);
  reduce_ones("the first psum");
  if (what == "stop" && is_odd) sleep(1000);
  if (what == "fail" && is_odd) return 3;
  if (what == "end" && is_odd) return 0;
  if (what == "fork") {
    const pid_t child = fork();
    if (child == 0) return communicator() ? 6 : 0;  // alone, and ends nothing
  }
  if (what == "work") {
    std::printf("%d %d\n", job->rank(), int(getpid()));
    std::fflush(stdout);
    while (true) reduce_ones("a psum of work");
  }
  reduce_ones("the psum at train.py:12");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
